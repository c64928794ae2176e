//! The hash of an EC2NodeClass: what its instances are made of, without the ways in which subnets, security
//! groups, reservations and images are found.

use serde_json::Value;

use super::node_pool::word;
use super::structure::{Struct, boolean, int32, int64, map, set, text};
use crate::api;

/// The family of images whose user data is the owner's alone.
pub const AMI_FAMILY_CUSTOM: &str = "Custom";

/// Families that an alias may name, in small letters.
const FAMILIES: [&str; 6] = ["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025"];

/// The hash of an EC2NodeClass as the API server shows it, in the version
/// [`NODE_CLASS_VERSION`](super::NODE_CLASS_VERSION). `ca_bundle` is the cluster's certificate bundle in base 64, as
/// it is written into user data; `None` when it is not known.
#[must_use]
pub fn node_class_hash(class: &api::EC2NodeClass, ca_bundle: Option<&str>) -> String {
    let family = text(ami_family(&class.spec));
    let kubelet = text(&kubelet(class.spec.kubelet.as_ref()));
    set([spec(&class.spec), family, text(ca_bundle.unwrap_or_default()), kubelet]).to_string()
}

/// The image family of a class: the one it names, its alias's, or `Custom`.
#[must_use]
pub fn ami_family(spec: &api::EC2NodeClassSpec) -> &str {
    if let Some(family) = &spec.ami_family {
        return family;
    }
    let alias = spec.ami_selector_terms.iter().find_map(|term| term.alias.as_deref().filter(|a| !a.is_empty()));
    let named = alias.and_then(|alias| alias.split('@').next()).unwrap_or_default();
    FAMILIES.into_iter().find(|family| family.to_ascii_lowercase() == named).unwrap_or(AMI_FAMILY_CUSTOM)
}

fn spec(spec: &api::EC2NodeClassSpec) -> u64 {
    let texts = |written: &Option<String>| written.as_deref().map(text);
    Struct::new("EC2NodeClassSpec")
        .field("PlacementGroupSelector", spec.placement_group_selector.as_ref().map(placement))
        .field("AssociatePublicIPAddress", spec.associate_public_ip_address.map(boolean))
        .field("UserData", texts(&spec.user_data))
        .field("Role", word(spec.role.as_deref()))
        .field("InstanceProfile", texts(&spec.instance_profile))
        .field("Tags", spec.tags.as_ref().map(map))
        .field("BlockDeviceMappings", spec.block_device_mappings.as_ref().map(|all| set(all.iter().map(mapping))))
        .field("InstanceStorePolicy", texts(&spec.instance_store_policy))
        .field("NetworkInterfaces", spec.network_interfaces.as_ref().map(|all| set(all.iter().map(interface))))
        .field("DetailedMonitoring", spec.detailed_monitoring.map(boolean))
        .field("MetadataOptions", spec.metadata_options.as_ref().map(metadata))
        .field("ConnectionTracking", spec.connection_tracking.as_ref().map(tracking))
        .field("Context", texts(&spec.context))
        .field("CPUOptions", spec.cpu_options.as_ref().map(cpu))
        .hash()
}

fn placement(group: &api::PlacementGroupSelector) -> u64 {
    Struct::new("PlacementGroupSelector").field("Name", group.name.as_deref().map(text)).field("ID", group.id.as_deref().map(text)).hash()
}

fn mapping(mapping: &api::BlockDeviceMapping) -> u64 {
    Struct::new("BlockDeviceMapping")
        .field("DeviceName", mapping.device_name.as_deref().map(text))
        .field("EBS", mapping.ebs.as_ref().map(volume))
        .field("RootVolume", mapping.root_volume.filter(|root| *root).map(boolean))
        .hash()
}

fn volume(volume: &api::BlockDevice) -> u64 {
    Struct::new("BlockDevice")
        .field("DeleteOnTermination", volume.delete_on_termination.map(boolean))
        .field("Encrypted", volume.encrypted.map(boolean))
        .field("IOPS", volume.iops.map(int64))
        .field("KMSKeyID", volume.kms_key_id.as_deref().map(text))
        .field("SnapshotID", volume.snapshot_id.as_deref().map(text))
        .field("Throughput", volume.throughput.map(int64))
        .field("VolumeInitializationRate", volume.volume_initialization_rate.map(int32))
        .field("VolumeSize", volume.volume_size.as_deref().map(|size| text(&size_text(size))))
        .field("VolumeType", volume.volume_type.as_deref().map(text))
        .hash()
}

/// A volume's size as Kubernetes prints it: whole thousands of G are T, whole 1024s of Gi are Ti.
fn size_text(written: &str) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let digits = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
    let (number, unit) = written.split_at(digits);
    let (base, binary) = match unit.strip_suffix('i') {
        Some(base) => (base, "i"),
        None => (unit, ""),
    };
    let by = if binary.is_empty() { 1000 } else { 1024 };
    let (Ok(mut number), Some(mut at)) = (number.parse::<u64>(), UNITS.iter().position(|u| *u == base)) else {
        return written.to_owned();
    };
    while number != 0 && number.is_multiple_of(by) && at + 1 < UNITS.len() {
        (number, at) = (number / by, at + 1);
    }
    if number == 0 { "0".to_owned() } else { format!("{number}{}{binary}", UNITS[at]) }
}

fn interface(interface: &api::NetworkInterface) -> u64 {
    let index = |value: i32| (value != 0).then(|| int32(value));
    Struct::new("NetworkInterface")
        .field("NetworkCardIndex", index(interface.network_card_index))
        .field("DeviceIndex", index(interface.device_index))
        .field("InterfaceType", word(Some(&interface.interface_type)))
        .hash()
}

fn metadata(options: &api::MetadataOptions) -> u64 {
    Struct::new("MetadataOptions")
        .field("HTTPEndpoint", options.http_endpoint.as_deref().map(text))
        .field("HTTPProtocolIPv6", options.http_protocol_ipv6.as_deref().map(text))
        .field("HTTPPutResponseHopLimit", options.http_put_response_hop_limit.map(int64))
        .field("HTTPTokens", options.http_tokens.as_deref().map(text))
        .hash()
}

fn tracking(tracking: &api::ConnectionTracking) -> u64 {
    let seconds = |value: Option<i64>| value.and_then(|v| i32::try_from(v).ok()).map(int32);
    Struct::new("ConnectionTracking")
        .field("TCPEstablishedTimeout", seconds(tracking.tcp_established_timeout))
        .field("UDPStreamTimeout", seconds(tracking.udp_stream_timeout))
        .field("UDPTimeout", seconds(tracking.udp_timeout))
        .hash()
}

fn cpu(options: &api::CpuOptions) -> u64 {
    Struct::new("CPUOptions").field("NestedVirtualization", options.nested_virtualization.as_deref().map(text)).hash()
}

/// The kubelet's settings as Go writes JSON; `null` when there are none.
fn kubelet(settings: Option<&std::collections::BTreeMap<String, Value>>) -> String {
    let mut out = String::new();
    match settings {
        Some(settings) if !settings.is_empty() => json::object(settings.iter(), &mut out),
        Some(_) | None => out.push_str("null"),
    }
    out
}

/// JSON as Go's `encoding/json` writes it: keys in order, no spaces, `<`, `>`, `&` and line separators escaped.
mod json {
    use serde_json::{Number, Value};

    fn value(value: &Value, out: &mut String) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(value) => out.push_str(&number(value)),
            Value::String(value) => text(value, out),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self::value(item, out);
                }
                out.push(']');
            }
            Value::Object(fields) => object(fields.iter(), out),
        }
    }

    pub(super) fn object<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut String) {
        let mut fields: Vec<_> = fields.collect();
        fields.sort_by_key(|(key, _)| *key);
        out.push('{');
        for (at, (key, field)) in fields.into_iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            text(key, out);
            out.push(':');
            value(field, out);
        }
        out.push('}');
    }

    fn text(text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..'\u{20}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
        }
        out.push('"');
    }

    /// Floats are plain between 1e-6 and 1e21, and have a signed exponent outside.
    fn number(number: &Number) -> String {
        let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
        let size = float.abs();
        if size == 0.0 || (1e-6..1e21).contains(&size) {
            return format!("{float}");
        }
        let short = format!("{float:e}");
        match short.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            Some(_) | None => short,
        }
    }
}
