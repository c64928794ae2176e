//! The rules of the EC2NodeClass schema.

use std::collections::BTreeSet;

use whittle_model::Labels;

use super::Cx;
use crate::api;

/// Checks `spec`.
pub(super) fn check(spec: &api::EC2NodeClassSpec, cx: &mut Cx) {
    subnets(&spec.subnet_selector_terms, cx);
    security_groups(&spec.security_group_selector_terms, cx);
    images(&spec.ami_selector_terms, cx);
    identity(spec, cx);
    tags(spec.tags.as_ref(), cx);
    disks(spec.block_device_mappings.as_deref().unwrap_or_default(), cx);
    metadata(spec.metadata_options.as_ref(), cx);
    network(spec.network_interfaces.as_deref().unwrap_or_default(), cx);
    if let Some(policy) = spec.instance_store_policy.as_deref() {
        cx.one_of("instanceStorePolicy", policy, &["RAID0"]);
    }
    if let Some(group) = &spec.placement_group_selector
        && group.name.is_some() == group.id.is_some()
    {
        cx.broken_at("placementGroupSelector", "write either name or id");
    }
    if let Some(tracking) = &spec.connection_tracking {
        cx.key("connectionTracking", |cx| {
            within("tcpEstablishedTimeout", tracking.tcp_established_timeout, 60, 432_000, cx);
            within("udpStreamTimeout", tracking.udp_stream_timeout, 60, 180, cx);
            within("udpTimeout", tracking.udp_timeout, 30, 60, cx);
        });
    }
    if spec.ip_prefix_count.is_some_and(|n| n < 0) {
        cx.broken_at("ipPrefixCount", "is below zero; write at least 0");
    }
}

fn within(key: &str, value: Option<i64>, least: i64, most: i64, cx: &mut Cx) {
    if let Some(value) = value
        && !(least..=most).contains(&value)
    {
        cx.broken_at(key, format!("{value} is out of range; write {least} to {most}"));
    }
}

/// Between 1 and 30 terms, none of them empty.
fn count(key: &str, empties: &[bool], choice: &str, cx: &mut Cx) {
    if empties.is_empty() {
        cx.broken_at(key, format!("needs at least one term, with {choice}"));
    } else if empties.len() > 30 {
        cx.broken_at(key, format!("{} terms are more than the 30 that are taken", empties.len()));
    }
    cx.each(key, empties, |cx, empty| {
        if *empty {
            cx.broken(format!("the term is empty; write {choice}"));
        }
    });
}

fn term_tags(tags: Option<&Labels>, cx: &mut Cx) {
    let Some(tags) = tags else { return };
    if tags.len() > 20 {
        cx.broken_at("tags", format!("{} tags are more than the 20 that are taken", tags.len()));
    }
    if tags.iter().any(|(key, value)| key.is_empty() || value.is_empty()) {
        cx.broken_at("tags", "a tag has an empty key or value; write * for any value");
    }
}

fn id_shape(id: Option<&str>, prefix: &str, cx: &mut Cx) {
    let good = |id: &str| id.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    if let Some(id) = id
        && !good(id)
    {
        cx.broken_at("id", format!("{id:?} is no such id; they look like {prefix}0123456789abcdef0"));
    }
}

fn subnets(terms: &[api::SubnetSelectorTerm], cx: &mut Cx) {
    const KEY: &str = "subnetSelectorTerms";
    let empties: Vec<bool> = terms.iter().map(|t| t.tags.is_none() && t.id.is_none()).collect();
    count(KEY, &empties, "tags or id", cx);
    cx.each(KEY, terms, |cx, term| {
        term_tags(term.tags.as_ref(), cx);
        id_shape(term.id.as_deref(), "subnet-", cx);
    });
    // The schema refuses the list only when every term mixes them; so does this.
    if !terms.is_empty() && terms.iter().all(|t| t.id.is_some() && t.tags.is_some()) {
        cx.broken_at(KEY, "id stands alone in its term; take the tags away");
    }
}

fn security_groups(terms: &[api::SecurityGroupSelectorTerm], cx: &mut Cx) {
    const KEY: &str = "securityGroupSelectorTerms";
    let empties: Vec<bool> = terms.iter().map(|t| t.tags.is_none() && t.id.is_none() && t.name.is_none()).collect();
    count(KEY, &empties, "tags, id or name", cx);
    cx.each(KEY, terms, |cx, term| {
        term_tags(term.tags.as_ref(), cx);
        id_shape(term.id.as_deref(), "sg-", cx);
    });
    if !terms.is_empty() && terms.iter().all(|t| t.id.is_some() && (t.tags.is_some() || t.name.is_some())) {
        cx.broken_at(KEY, "id stands alone in its term; take tags and name away");
    }
    if !terms.is_empty() && terms.iter().all(|t| t.name.is_some() && (t.tags.is_some() || t.id.is_some())) {
        cx.broken_at(KEY, "name stands alone in its term; take tags and id away");
    }
}

fn images(terms: &[api::AmiSelectorTerm], cx: &mut Cx) {
    const KEY: &str = "amiSelectorTerms";
    let others = |t: &api::AmiSelectorTerm| t.tags.is_some() || t.name.is_some() || t.owner.is_some();
    let empties: Vec<bool> = terms.iter().map(|t| t.alias.is_none() && t.id.is_none() && t.ssm_parameter.is_none() && !others(t)).collect();
    count(KEY, &empties, "alias, tags, id, name or ssmParameter", cx);
    cx.each(KEY, terms, |cx, term| {
        term_tags(term.tags.as_ref(), cx);
        id_shape(term.id.as_deref(), "ami-", cx);
        if term.id.is_some() && (others(term) || term.alias.is_some()) {
            cx.broken("id stands alone in its term; take the other fields away");
        }
        if term.alias.is_some() && (others(term) || term.id.is_some()) {
            cx.broken("alias stands alone in its term; take the other fields away");
        }
    });
    if terms.len() > 1 && terms.iter().any(|t| t.alias.is_some()) {
        cx.broken_at(KEY, "a term with an alias must be the only one; take the others away");
    }
}

fn identity(spec: &api::EC2NodeClassSpec, cx: &mut Cx) {
    match (spec.role.as_deref(), spec.instance_profile.as_deref()) {
        (Some(_), Some(_)) => cx.broken_at("instanceProfile", "role and instanceProfile exclude each other; keep one of them"),
        (None, None) => cx.broken("role is missing: write the IAM role of the nodes, or an instanceProfile"),
        (Some(""), None) => cx.broken_at("role", "the role is empty; write the IAM role of the nodes"),
        (None, Some("")) => cx.broken_at("instanceProfile", "the profile is empty; write its name"),
        (Some(_), None) | (None, Some(_)) => {}
    }
}

fn tags(tags: Option<&Labels>, cx: &mut Cx) {
    const OWN: [&str; 4] = ["eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"];
    cx.key("tags", |cx| {
        for key in tags.into_iter().flatten().map(|(key, _)| key) {
            if key.is_empty() {
                cx.broken("a tag has an empty key; give it one");
            } else if OWN.contains(&key.as_str()) || key.starts_with("kubernetes.io/cluster") {
                cx.broken_at(key, "this tag is set by the autoscaler; take it away");
            }
        }
    });
}

fn disks(mappings: &[api::BlockDeviceMapping], cx: &mut Cx) {
    const TYPES: [&str; 7] = ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"];
    const KEY: &str = "blockDeviceMappings";
    if mappings.len() > 50 {
        cx.broken_at(KEY, format!("{} mappings are more than the 50 that are taken", mappings.len()));
    }
    if mappings.iter().filter(|m| m.root_volume == Some(true)).count() > 1 {
        cx.broken_at(KEY, "rootVolume: true stands on more than one mapping; keep one of them");
    }
    cx.each(KEY, mappings, |cx, mapping| {
        let Some(ebs) = &mapping.ebs else { return };
        cx.key("ebs", |cx| {
            if ebs.snapshot_id.is_none() && ebs.volume_size.is_none() {
                cx.broken("volumeSize is missing: write a size such as 20Gi, or a snapshotID");
            }
            if let Some(size) = ebs.volume_size.as_ref().filter(|s| !volume_size(s)) {
                cx.broken_at("volumeSize", format!("{:?} is no volume size; write a whole number of G, Gi, T or Ti, such as 20Gi", size));
            }
            if let Some(kind) = ebs.volume_type.as_deref() {
                cx.one_of("volumeType", kind, &TYPES);
            }
            within("volumeInitializationRate", ebs.volume_initialization_rate.map(i64::from), 100, 300, cx);
            if ebs.volume_initialization_rate.is_some() && ebs.snapshot_id.is_none() {
                cx.broken_at("volumeInitializationRate", "needs a snapshotID beside it");
            }
        });
    });
}

/// A whole number of G, Gi, T or Ti, from 1 to 64 Ti, as the schema has it.
fn volume_size(text: &str) -> bool {
    let number = ["Gi", "Ti", "G", "T"].into_iter().find_map(|unit| text.strip_suffix(unit));
    number.is_some_and(|n| (1..=5).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()) && !n.starts_with('0'))
}

fn metadata(options: Option<&api::MetadataOptions>, cx: &mut Cx) {
    let Some(options) = options else { return };
    cx.key("metadataOptions", |cx| {
        for (key, value, words) in [
            ("httpEndpoint", &options.http_endpoint, ["enabled", "disabled"]),
            ("httpProtocolIPv6", &options.http_protocol_ipv6, ["enabled", "disabled"]),
            ("httpTokens", &options.http_tokens, ["required", "optional"]),
        ] {
            if let Some(value) = value.as_deref() {
                cx.one_of(key, value, &words);
            }
        }
        within("httpPutResponseHopLimit", options.http_put_response_hop_limit, 1, 64, cx);
    });
}

fn network(interfaces: &[api::NetworkInterface], cx: &mut Cx) {
    const KEY: &str = "networkInterfaces";
    if interfaces.is_empty() {
        return;
    }
    if interfaces.len() > 150 {
        cx.broken_at(KEY, format!("{} interfaces are more than the 150 that are taken", interfaces.len()));
    }
    if !interfaces.iter().any(|i| i.network_card_index == 0 && i.device_index == 0 && i.interface_type == "interface") {
        cx.broken_at(KEY, "the primary interface is missing: networkCardIndex 0, deviceIndex 0, interfaceType interface");
    }
    let (mut places, mut efa_cards) = (BTreeSet::new(), BTreeSet::new());
    cx.each(KEY, interfaces, |cx, one| {
        cx.one_of("interfaceType", &one.interface_type, &["interface", "efa-only"]);
        if one.network_card_index < 0 || one.device_index < 0 {
            cx.broken("networkCardIndex and deviceIndex count from 0");
        }
        if !places.insert((one.network_card_index, one.device_index)) {
            cx.broken("another interface has the same networkCardIndex and deviceIndex; change one of them");
        }
        if one.interface_type == "efa-only" && !efa_cards.insert(one.network_card_index) {
            cx.broken("a network card takes one efa-only interface; take this one away");
        }
    });
}
