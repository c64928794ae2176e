//! EC2NodeClass, `karpenter.k8s.aws/v1`, as its owner writes it and as AWS answers it: the words
//! that the doors to Kubernetes and to AWS share. Texts that the schema limits to a few words stay
//! texts, so that a wrong word can be answered with the right one. Planning reads
//! [`NodeClass`](crate::NodeClass) and the catalogue instead.
//!
//! What must not enter: clients, rules about what is valid, what is made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What an EC2NodeClass wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassSpec {
    /// 1 to 30 ways to find the subnets that nodes may be in; a subnet counts that any of them finds.
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// 1 to 30 ways to find the security groups that nodes have; all that any of them finds.
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Ways to find capacity reservations that nodes may use, at most 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// The placement group that instances stand in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public address; the subnet's setting when absent.
    #[serde(default, rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// How many IPv4 prefixes the network interface gets.
    #[serde(default, rename = "ipPrefixCount", skip_serializing_if = "Option::is_none")]
    pub ip_prefix_count: Option<i32>,
    /// 1 to 30 ways to find machine images; the newest that suits an instance type is taken.
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// What user data and disks look like: `AL2`, `AL2023`, `Bottlerocket`, `Custom`, `Windows2019`, `Windows2022`, `Windows2025`.
    /// That of the alias when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<String>,
    /// User data in the form of the image family; what nodes need to join is merged into it. `Custom` takes it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// IAM role of the nodes, for which an instance profile is made; this or `instanceProfile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Instance profile of the nodes, which somebody else keeps; this or `role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Tags of everything that is made in EC2: instances, volumes, network interfaces, launch templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Fields of the kubelet's configuration, as in KubeletConfiguration; status tells which cannot be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<BTreeMap<String, serde_json::Value>>,
    /// Disks, at most 50; the family's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// `RAID0` puts pods' local storage on the instance's own disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<String>,
    /// Network interfaces, at most 150.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether CloudWatch measures instances every minute, which costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// The instance's metadata service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// Time-outs of tracked connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Given to CreateFleet as its `Context`, which EC2 reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// CPU features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// Subnets by tags, or one by id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubnetSelectorTerm {
    /// Tags that it has, at most 20; the value `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The id of a subnet, `subnet-…`; alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Security groups by tags or name, or one by id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSelectorTerm {
    /// Tags that it has, at most 20; the value `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The id of a group, `sg-…`; alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name of a group; alone. Not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Capacity reservations by tags and owner, or one by id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags that it has, at most 20; the value `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The id of a reservation, `cr-…`; alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The account that owns it, 12 digits.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// `open`: instances that match use it by themselves. `targeted`: only those that name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<String>,
}

/// A placement group, by name or id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacementGroupSelector {
    /// Its name; this or the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its id, `pg-…`; this or the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Machine images by alias, tags, name, parameter or id.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// `family@version`, such as `al2023@latest`; alone in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Tags that it has, at most 20; the value `*` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The id of an image, `ami-…`; alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The name of an image, in which `*` is any text; not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who owns the image: an account, `self`, `amazon` or `aws-marketplace`; beside a name or tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name or ARN of an SSM parameter that holds the id of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// What the instance calls it, such as `/dev/xvda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// Whether pods' local storage is on it; at most one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

/// An EBS volume.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Whether it is deleted with its instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations a second that are paid for: `gp3`, `io1` and `io2` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The KMS key that it is encrypted with: id, alias or ARN.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// The snapshot that it starts from; this or `volumeSize`, or both.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// MiB a second that are paid for: `gp3` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// How fast the snapshot is read in: 100 to 300 MiB a second. Needs `snapshotID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_initialization_rate: Option<i32>,
    /// Its size in `G`, `Gi`, `T` or `Ti`, such as `100Gi`.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<String>,
    /// `standard`, `io1`, `io2`, `gp2`, `sc1`, `st1` or `gp3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network card, from 0.
    pub network_card_index: i32,
    /// The device on the card, from 0.
    pub device_index: i32,
    /// `interface` for addresses, `efa-only` for the Elastic Fabric Adapter alone.
    pub interface_type: String,
}

/// The instance's metadata service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether instances can ask it: `enabled` (when absent) or `disabled`.
    #[serde(default, rename = "httpEndpoint", skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<String>,
    /// Whether it answers over IPv6: `enabled` or `disabled` (when absent).
    #[serde(default, rename = "httpProtocolIPv6", skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<String>,
    /// How many hops an answer may go, 1 to 64; 1, which keeps pods away, when absent.
    #[serde(default, rename = "httpPutResponseHopLimit", skip_serializing_if = "Option::is_none")]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether a session token is `required` (when absent) or `optional`.
    #[serde(default, rename = "httpTokens", skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<String>,
}

/// Seconds until an idle connection is forgotten.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Seconds until an idle TCP connection is forgotten, 60 to 432000; as EC2 has it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_established_timeout: Option<i64>,
    /// Seconds until an idle UDP flow that went both ways more than once is forgotten, 60 to 180; 180 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_stream_timeout: Option<i64>,
    /// Seconds until any other idle UDP flow is forgotten, 30 to 60; 30 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_timeout: Option<i64>,
}

/// CPU features.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether virtual machines can run in the instance: `enabled` or `disabled`. Only types that can are then bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<String>,
}

/// A subnet that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoundSubnet {
    /// `subnet-…`.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Its zone's id.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A machine image that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Ami {
    /// `ami-…`.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its owner deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// The instance types it boots.
    pub requirements: Vec<AmiRequirement>,
}

/// A capacity reservation that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// `cr-…`.
    pub id: String,
    /// Its zone.
    pub availability_zone: String,
    /// Its instance type.
    pub instance_type: String,
    /// `open` or `targeted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<String>,
    /// Account.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// When it ends, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// `default` or `capacity-block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_type: Option<String>,
    /// Whether it may be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// `active` or `expiring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// One requirement of a machine image on instance types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AmiRequirement {
    /// The label.
    pub key: String,
    /// `In`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// A quantity, which people also write as a number: what is wrong with that is better said by the rules of its field.
fn amount<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "wants a size such as 20Gi")]
    enum Written {
        Text(String),
        Whole(i64),
        Fraction(f64),
    }
    Ok(Option::<Written>::deserialize(deserializer)?.map(|written| match written {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Fraction(number) => number.to_string(),
    }))
}
