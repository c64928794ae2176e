//! Cases under `tests/image`: a class, a claim and a cluster as JSON, and what is made of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use whittle_model::ec2_node_class::{Ami, Ec2NodeClassSpec, SecurityGroup};
use whittle_model::{CapacityType, Labels, NodeClaim, Resources, Taint};

use super::*;

/// A case as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Case {
    pub(crate) cluster: Cluster,
    pub(crate) class: Ec2NodeClassSpec,
    pub(crate) claim: Claim,
    image: String,
    image_name: String,
    profile: String,
    pub(crate) security_groups: Vec<String>,
    pub(crate) max_pods: u32,
    efas: u32,
    pub(crate) capacity_type: String,
    dedicated: bool,
    group_id: String,
    partition: i32,
    targeted: bool,
    reservation: Option<Reserved>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cluster {
    pub(crate) name: String,
    endpoint: String,
    ca_bundle: String,
    dns_ip: String,
    pub(crate) service_cidr: String,
    region: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    node_pool: String,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) startup_taints: Vec<Taint>,
    pub(crate) requests: BTreeMap<String, i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reserved {
    id: String,
    capacity_block: bool,
    interruptible: bool,
}

impl Case {
    pub(crate) fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/image")
    }

    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(Self::folder().join(name).with_extension("json")).expect("a case is a file");
        serde_json::from_str(&text).expect("a case has the fields that a case has")
    }

    /// What is made of it.
    pub(crate) fn template(&self) -> Result<(TemplateSpec, UserData), ImageError> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let cluster = ClusterFacts {
            name: self.cluster.name.clone(),
            endpoint: self.cluster.endpoint.clone(),
            ca_bundle: some(&self.cluster.ca_bundle),
            dns_ip: self.cluster.dns_ip.parse::<IpAddr>().ok(),
            service_cidr: some(&self.cluster.service_cidr),
            region: self.cluster.region.clone(),
        };
        let mut labels = self.claim.labels.clone();
        labels.insert(whittle_model::keys::NODE_POOL.to_owned(), self.claim.node_pool.clone());
        let requests: Vec<(&str, i64)> = self.claim.requests.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        let claim = NodeClaim {
            labels,
            taints: self.claim.taints.clone(),
            startup_taints: self.claim.startup_taints.clone(),
            requests: Resources::of(&requests),
            ..NodeClaim::default()
        };
        let reservation = self.reservation.as_ref().map(|reserved| Reservation {
            id: reserved.id.clone(),
            capacity_block: reserved.capacity_block,
            interruptible: reserved.interruptible,
        });
        let group = Group {
            image: self.image.clone(),
            max_pods: self.max_pods,
            efas: self.efas,
            reservation,
            instance_types: vec!["m5.large".to_owned()],
        };
        let groups: Vec<SecurityGroup> = self.security_groups.iter().map(|id| SecurityGroup { id: id.clone(), name: None }).collect();
        let launched = Launched { cluster: &cluster.name, class: "default", pool: &self.claim.node_pool };
        let tags = launch_tags(self.class.tags.as_ref(), launched)?;
        let image = Ami { id: self.image.clone(), name: some(&self.image_name), deprecated: None, requirements: Vec::new() };
        TemplateSpec::new(&TemplateInputs {
            cluster: &cluster,
            class_name: "default",
            class: &self.class,
            images: &[image],
            security_groups: &groups,
            profile: &self.profile,
            claim: &claim,
            group: &group,
            capacity_type: CapacityType::parse(&self.capacity_type).expect("a case is spot, on-demand or reserved"),
            placement: Placement {
                dedicated: self.dedicated,
                group_id: some(&self.group_id),
                partition: (self.partition != 0).then_some(self.partition),
            },
            tags: &tags,
            targeted_reservations: self.targeted,
        })
    }
}
