//! EC2NodeClass. Some rules say "not all terms are wrong" where "no term is wrong" would be expected:
//! clusters hold objects that passed them, so they stay as they are.

use crate::from::FAMILIES;
use serde_json::json;

use super::document::{AGE, Column, Kind, READY};
use super::fact::{
    At, Fact, any_fields, at, at_each, default, format, max_items, max_length, max_properties, min_items, min_length, minimum, one_of,
    pattern, range, required, rule,
};
use super::structural;
use crate::api;

/// The size of a volume, in the units and up to the sizes that EBS has.
const VOLUME_SIZE: &str = "^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|\
                           (?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|\
                           ([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$";
/// An AWS account.
const ACCOUNT: &str = "^[0-9]{12}$";
/// A capacity reservation.
const RESERVATION: &str = "^cr-[0-9a-z]+$";

pub(super) fn kind() -> Kind {
    Kind {
        group: "karpenter.k8s.aws",
        version: "v1",
        kind: "EC2NodeClass",
        plural: "ec2nodeclasses",
        short: &["ec2nc", "ec2ncs"],
        category: "karpenter",
        columns: const { &[READY, AGE, Column::text("Role", ".spec.role").wide()] },
        scale: None,
        schema: structural::of::<api::EC2NodeClass>,
        facts: || [top(), images(), selectors(), selected_tags(), tags(), disks(), metadata(), network(), status()].concat(),
    }
}

fn top() -> Vec<At> {
    let not_empty = |field: &str| rule("self != ''", format!("{field} may not be empty"));
    vec![
        at("", [required(&[])]),
        at(
            "spec",
            [rule(
                "(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))",
                "a class has exactly one of 'role' and 'instanceProfile'",
            )]
            .into_iter()
            .chain(FAMILIES.iter().map(|(alias, family)| family_of_alias(alias, family)))
            .chain([rule(
                "self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)",
                "'amiFamily' is needed, because no term of 'amiSelectorTerms' has an alias",
            )]),
        ),
        at("spec.role", [not_empty("role")]),
        at("spec.instanceProfile", [not_empty("instanceProfile")]),
        at("spec.instanceStorePolicy", [one_of(&["RAID0"])]),
        at("spec.cpuOptions.nestedVirtualization", [one_of(&["enabled", "disabled"])]),
        at("spec.kubelet", [any_fields()]),
    ]
}

/// With an alias of one family, `amiFamily` is that family, `Custom` or absent.
fn family_of_alias(alias: &str, family: &str) -> Fact {
    rule(
        format!(
            "!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == '{alias}') ? \
             (self.amiFamily == 'Custom' || self.amiFamily == '{family}') : true)"
        ),
        format!("with an alias of {alias}, 'amiFamily' is '{family}' or 'Custom', or is left out"),
    )
}

fn images() -> Vec<At> {
    let families: Vec<&str> = ["Custom"].into_iter().chain(FAMILIES.map(|(_, family)| family)).collect();
    let aliases = FAMILIES.map(|(alias, _)| format!("'{alias}'")).join(",");
    let alone = |field: &str, others: [&str; 4]| {
        let others = others.map(|other| format!("has(x.{other})")).join(" || ");
        rule(
            format!("!self.exists(x, has(x.{field}) && ({others}))"),
            format!("a term of 'amiSelectorTerms' that has '{field}' has nothing else"),
        )
    };
    vec![
        at("spec.amiFamily", [one_of(&families)]),
        at(
            "spec.amiSelectorTerms",
            [
                min_items(1),
                max_items(30),
                rule(
                    "self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
                    "each term of 'amiSelectorTerms' needs one of 'tags', 'id', 'name', 'alias' and 'ssmParameter'",
                ),
                alone("id", ["alias", "tags", "name", "owner"]),
                alone("alias", ["id", "tags", "name", "owner"]),
                rule("!(self.exists(x, has(x.alias)) && self.size() != 1)", "a term with 'alias' is the only one of 'amiSelectorTerms'"),
            ],
        ),
        at(
            "spec.amiSelectorTerms[].alias",
            [
                max_length(30),
                rule("self.matches('^[a-zA-Z0-9]+@.+$')", "an alias is written family@version, such as al2023@latest"),
                rule(
                    format!("self.split('@')[0] in [{aliases}]"),
                    format!("the family of an alias is one of {}", aliases.replace(',', ", ")),
                ),
                rule(
                    "self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.split('@')[1] == 'latest' : true",
                    "images of Windows have no version but 'latest'",
                ),
            ],
        ),
        at("spec.amiSelectorTerms[].id", [pattern("ami-[0-9a-z]+")]),
    ]
}

fn selectors() -> Vec<At> {
    vec![
        at(
            "spec.subnetSelectorTerms",
            [
                max_items(30),
                rule("self.size() != 0", "'subnetSelectorTerms' needs at least one term"),
                rule("self.all(x, has(x.tags) || has(x.id))", "each term of 'subnetSelectorTerms' needs 'tags' or 'id'"),
                rule("!self.all(x, has(x.id) && has(x.tags))", "a term of 'subnetSelectorTerms' that has 'id' has nothing else"),
            ],
        ),
        at("spec.subnetSelectorTerms[].id", [pattern("subnet-[0-9a-z]+")]),
        at(
            "spec.securityGroupSelectorTerms",
            [
                max_items(30),
                rule("self.size() != 0", "'securityGroupSelectorTerms' needs at least one term"),
                rule(
                    "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
                    "each term of 'securityGroupSelectorTerms' needs one of 'tags', 'id' and 'name'",
                ),
                rule(
                    "!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
                    "a term of 'securityGroupSelectorTerms' that has 'id' has nothing else",
                ),
                rule(
                    "!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
                    "a term of 'securityGroupSelectorTerms' that has 'name' has nothing else",
                ),
            ],
        ),
        at("spec.securityGroupSelectorTerms[].id", [pattern("sg-[0-9a-z]+")]),
        at(
            "spec.capacityReservationSelectorTerms",
            [
                max_items(30),
                rule(
                    "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
                    "each term of 'capacityReservationSelectorTerms' needs one of 'tags', 'id' and 'instanceMatchCriteria'",
                ),
                rule(
                    "!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
                    "a term of 'capacityReservationSelectorTerms' that has 'id' has nothing else",
                ),
            ],
        ),
        at("spec.capacityReservationSelectorTerms[].id", [pattern(RESERVATION)]),
        at("spec.capacityReservationSelectorTerms[].ownerID", [pattern(ACCOUNT)]),
        at("spec.capacityReservationSelectorTerms[].instanceMatchCriteria", [one_of(&["open", "targeted"])]),
        at(
            "spec.placementGroupSelector",
            [
                rule("has(self.name) || has(self.id)", "a placement group needs 'name' or 'id'"),
                rule("!(has(self.name) && has(self.id))", "a placement group has 'name' or 'id', not both"),
            ],
        ),
        at("spec.placementGroupSelector.name", [min_length(1)]),
        at("spec.placementGroupSelector.id", [pattern("^pg-[0-9a-z]+$")]),
    ]
}

/// The tags that things are looked for by.
fn selected_tags() -> Vec<At> {
    let places = [
        "spec.subnetSelectorTerms[].tags",
        "spec.securityGroupSelectorTerms[].tags",
        "spec.capacityReservationSelectorTerms[].tags",
        "spec.amiSelectorTerms[].tags",
    ];
    let written = rule("self.all(k, k != '' && self[k] != '')", "keys and values of tags may not be empty; the value '*' means any");
    at_each(places, &[max_properties(20), written]).collect()
}

/// The tags that are put on things.
fn tags() -> Vec<At> {
    let ours = |tag: &str| rule(format!("self.all(k, k != '{tag}')"), format!("the tag {tag} is restricted: the autoscaler sets it"));
    vec![at(
        "spec.tags",
        [
            rule("self.all(k, k != '')", "keys of tags may not be empty"),
            ours("eks:eks-cluster-name"),
            rule(
                "self.all(k, !k.startsWith('kubernetes.io/cluster'))",
                "tags that begin with kubernetes.io/cluster are restricted: the autoscaler sets them",
            ),
            ours("karpenter.sh/nodepool"),
            ours("karpenter.sh/nodeclaim"),
            ours("karpenter.k8s.aws/ec2nodeclass"),
        ],
    )]
}

fn disks() -> Vec<At> {
    vec![
        at(
            "spec.blockDeviceMappings",
            [
                max_items(50),
                rule(
                    "self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",
                    "at most one of 'blockDeviceMappings' has rootVolume: true",
                ),
            ],
        ),
        at(
            "spec.blockDeviceMappings[].ebs",
            [
                rule("has(self.snapshotID) || has(self.volumeSize)", "a volume needs 'volumeSize' or 'snapshotID'"),
                rule(
                    "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
                    "'volumeInitializationRate' needs 'snapshotID'",
                ),
            ],
        ),
        at("spec.blockDeviceMappings[].ebs.volumeInitializationRate", range(100, 300)),
        at("spec.blockDeviceMappings[].ebs.volumeSize", [pattern(VOLUME_SIZE)]),
        at("spec.blockDeviceMappings[].ebs.volumeType", [one_of(&["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"])]),
    ]
}

fn metadata() -> Vec<At> {
    let switch = one_of(&["enabled", "disabled"]);
    vec![
        at(
            "spec.metadataOptions",
            [default(json!({
                "httpEndpoint": "enabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "required",
            }))],
        ),
        at("spec.metadataOptions.httpEndpoint", [default("enabled"), switch.clone()]),
        at("spec.metadataOptions.httpProtocolIPv6", [default("disabled"), switch]),
        at("spec.metadataOptions.httpPutResponseHopLimit", [default(1)].into_iter().chain(range(1, 64))),
        at("spec.metadataOptions.httpTokens", [default("required"), one_of(&["required", "optional"])]),
    ]
}

fn network() -> Vec<At> {
    let seconds = |least, most| [format("int32")].into_iter().chain(range(least, most));
    vec![
        at("spec.ipPrefixCount", [minimum(0)]),
        at(
            "spec.connectionTracking",
            [rule(
                "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
                "'connectionTracking' needs one of 'tcpEstablishedTimeout', 'udpStreamTimeout' and 'udpTimeout'",
            )],
        ),
        at("spec.connectionTracking.tcpEstablishedTimeout", seconds(60, 432_000)),
        at("spec.connectionTracking.udpStreamTimeout", seconds(60, 180)),
        at("spec.connectionTracking.udpTimeout", seconds(30, 60)),
        at(
            "spec.networkInterfaces",
            [
                max_items(150),
                rule(
                    "self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",
                    "'networkInterfaces' needs the first one: device 0 on card 0, of type 'interface'",
                ),
                rule(
                    "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && \
                     (x.interfaceType != 'efa-only' || \
                     self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",
                    "each device of each card stands in 'networkInterfaces' once, and at most one of a card is 'efa-only'",
                ),
            ],
        ),
        at("spec.networkInterfaces[].networkCardIndex", [minimum(0)]),
        at("spec.networkInterfaces[].deviceIndex", [minimum(0)]),
        at("spec.networkInterfaces[].interfaceType", [one_of(&["interface", "efa-only"])]),
    ]
}

fn status() -> Vec<At> {
    vec![
        at("status.capacityReservations[]", [required(&["availabilityZone", "id", "instanceMatchCriteria", "instanceType", "ownerID"])]),
        at("status.capacityReservations[].id", [pattern(RESERVATION)]),
        at("status.capacityReservations[].ownerID", [pattern(ACCOUNT)]),
        at("status.capacityReservations[].instanceMatchCriteria", [one_of(&["open", "targeted"])]),
        at("status.capacityReservations[].reservationType", [default("default"), one_of(&["default", "capacity-block"])]),
        at("status.capacityReservations[].state", [default("active"), one_of(&["active", "expiring"])]),
        at("status.capacityReservations[].endTime", [format("date-time")]),
        at("status.amis[].requirements[].values", [super::fact::atomic()]),
    ]
}
