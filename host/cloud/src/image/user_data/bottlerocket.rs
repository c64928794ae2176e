//! User data of Bottlerocket: TOML settings, the user's with ours over them.
//!
//! Settings: <https://bottlerocket.dev/en/os/latest/#/api/settings/>. What must not enter: other
//! families' user data.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};
use whittle_model::ec2_node_class::{Ami, AmiSelectorTerm};

use super::kubelet::Kubelet;
use super::settings::{KUBERNETES, Mismatch, keep_known};
use super::{Boot, UserData};
use crate::image::{Alias, ImageError};

pub(super) fn render(boot: &Boot<'_>) -> Result<UserData, ImageError> {
    let text = boot.own_user_data().unwrap_or_default();
    let mut own: Table = text.parse().map_err(|error: toml::de::Error| ImageError::Toml {
        line: line(text, error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    })?;
    let named = |mismatch| setting(text, mismatch);
    let mut settings = take_table(&mut own, "settings", &[]).map_err(named)?;
    let mut left_out: Vec<String> = own.keys().cloned().collect();
    let mut kubernetes = Value::Table(take_table(&mut settings, "kubernetes", &["settings"]).map_err(named)?);
    let path = ["settings".to_owned(), "kubernetes".to_owned()];
    keep_known(KUBERNETES, &mut kubernetes, &path, &mut left_out).map_err(named)?;
    if let Value::Table(kubernetes) = &mut kubernetes {
        put(boot, &Kubelet::read(boot.kubelet)?, kubernetes);
    }
    settings.insert("kubernetes".to_owned(), kubernetes);
    if boot.raid0 {
        let mut commands = take_table(&mut settings, "bootstrap-commands", &["settings"]).map_err(named)?;
        commands.insert("000-mount-instance-storage".to_owned(), mount_instance_storage(boot.image_version).into());
        settings.insert("bootstrap-commands".to_owned(), commands.into());
    }
    let mut whole = Table::new();
    whole.insert("settings".to_owned(), ordered(settings.into()));
    left_out.sort();
    Ok(UserData { text: whole.to_string(), left_out })
}

/// The same with every table in the order of its keys: equal settings are equal text, and one
/// launch template, in whatever order they came.
fn ordered(value: Value) -> Value {
    match value {
        Value::Table(table) => {
            let by_key: BTreeMap<String, Value> = table.into_iter().collect();
            Value::Table(by_key.into_iter().map(|(key, value)| (key, ordered(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => value,
    }
}

/// Takes the table of this name out of another; an empty one if it is absent.
fn take_table(from: &mut Table, name: &str, above: &[&str]) -> Result<Table, Mismatch> {
    match from.remove(name) {
        None => Ok(Table::new()),
        Some(Value::Table(table)) => Ok(table),
        Some(other) => {
            let path = above.iter().copied().chain([name]).map(str::to_owned).collect();
            Err(Mismatch { path, found: other.type_str(), wanted: "a table" })
        }
    }
}

/// Writes what we know of the node over the user's settings.
fn put(boot: &Boot<'_>, kubelet: &Kubelet, settings: &mut Table) {
    let cluster = boot.cluster;
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(name.to_owned(), value);
        }
    };
    let text = |text: &String| Value::from(text.as_str());
    let texts = |pairs: &BTreeMap<String, String>| {
        Value::Table(pairs.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect())
    };
    let number = |number: i32| Value::from(i64::from(number));
    set("api-server", Some(text(&cluster.endpoint)));
    set("cluster-name", Some(text(&cluster.name)));
    set("cluster-dns-ip", kubelet.dns().map(Value::from));
    set("max-pods", kubelet.max_pods.map(number));
    set("system-reserved", kubelet.system_reserved.as_ref().map(texts));
    set("kube-reserved", kubelet.kube_reserved.as_ref().map(texts));
    set("eviction-hard", kubelet.eviction_hard.as_ref().map(texts));
    set("eviction-soft", kubelet.eviction_soft.as_ref().map(texts));
    set("eviction-soft-grace-period", kubelet.eviction_soft_grace_period.as_ref().map(texts));
    set("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period.map(number));
    // These two are strings there.
    set("image-gc-high-threshold-percent", kubelet.image_gc_high_threshold_percent.map(|n| n.to_string().into()));
    set("image-gc-low-threshold-percent", kubelet.image_gc_low_threshold_percent.map(|n| n.to_string().into()));
    set("cpu-cfs-quota-enforced", kubelet.cpu_cfs_quota.map(Value::from));
    set("node-taints", Some(taints(boot)));
    match &cluster.ca_bundle {
        Some(bundle) => settings.insert("cluster-certificate".to_owned(), text(bundle)),
        // A certificate of another cluster than ours would keep the node from joining.
        None => settings.remove("cluster-certificate"),
    };
    let labels = settings.entry("node-labels").or_insert_with(|| Table::new().into());
    if let Value::Table(labels) = labels {
        labels.extend(boot.own_labels().map(|(key, value)| (key.to_owned(), Value::from(value))));
    }
}

/// `key = ["value:Effect"]`.
fn taints(boot: &Boot<'_>) -> Value {
    let mut all = Table::new();
    for taint in boot.all_taints() {
        let value = Value::from(format!("{}:{:?}", taint.value, taint.effect));
        if let Value::Array(values) = all.entry(taint.key).or_insert_with(|| Value::Array(Vec::new())) {
            values.push(value);
        }
    }
    all.into()
}

/// The command that joins the instance's own disks and puts pods' storage on them.
fn mount_instance_storage(image_version: Option<&str>) -> Table {
    let command = |words: &[&str]| Value::Array(words.iter().map(|word| Value::from(*word)).collect());
    let bind: &[&str] = if image_version.is_some_and(binds_by_default) {
        &["apiclient", "ephemeral-storage", "bind"]
    } else {
        &["apiclient", "ephemeral-storage", "bind", "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"]
    };
    let mut table = Table::new();
    table.insert("commands".to_owned(), Value::Array(vec![command(&["apiclient", "ephemeral-storage", "init"]), command(bind)]));
    table.insert("mode".to_owned(), "always".into());
    table.insert("essential".to_owned(), true.into());
    table
}

/// Whether a release knows by itself which directories to bind: 1.46.0 and later.
fn binds_by_default(version: &str) -> bool {
    let numbers: Vec<&str> = version.trim_start_matches('v').split('.').collect();
    version == "latest"
        || match numbers[..] {
            [major, minor, _, ..] => match (major.parse::<u32>(), minor.parse::<u32>()) {
                (Ok(major), Ok(minor)) => (major, minor) >= (1, 46),
                _ => false,
            },
            _ => false,
        }
}

/// The Bottlerocket release that a class boots, as far as its selector terms or the names of the
/// images found tell it: `latest`, `1.46.0` or `v1.46.0`.
#[must_use]
pub fn bottlerocket_version(terms: &[AmiSelectorTerm], images: &[Ami]) -> Option<String> {
    let alias = terms.iter().filter_map(|term| term.alias.as_deref()?.parse::<Alias>().ok()).map(|alias| alias.version).next();
    let of = |image: &Ami| image.name.as_deref().filter(|name| name.contains("bottlerocket")).and_then(release);
    alias
        .or_else(|| terms.iter().find_map(|term| release(term.name.as_deref()?)))
        .or_else(|| terms.iter().find_map(|term| of(images.iter().find(|image| Some(&image.id) == term.id.as_ref())?)))
        .or_else(|| images.iter().find_map(of))
}

/// The release in an image's name such as `bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a`.
fn release(name: &str) -> Option<String> {
    name.split('-').find(|part| part.starts_with('v') && part.contains('.')).map(str::to_owned)
}

fn setting(text: &str, mismatch: Mismatch) -> ImageError {
    let Mismatch { path, found, wanted } = mismatch;
    ImageError::Setting { line: line_of(text, &path), key: path.join("."), found, wanted }
}

/// The line on which the value of a key stands.
fn line_of(text: &str, path: &[String]) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 1 };
    let mut table = document.get_ref();
    let mut at = 0;
    for name in path {
        let found = table.iter().find(|(key, _)| key.get_ref().as_ref() == name.as_str());
        let Some((key, value)) = found else { break };
        at = key.span().start;
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    line(text, at)
}

/// The line, from 1, of a byte.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
