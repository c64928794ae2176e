//! Why an image, its user data or a launch template cannot be made.

use whittle_model::QuantityError;

/// What is wrong with an EC2NodeClass, found while its image and launch template were made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// `amiFamily` is no family.
    #[error("reading amiFamily {0:?}: no such family, use AL2, AL2023, Bottlerocket, Custom, Windows2019, Windows2022 or Windows2025")]
    Family(String),
    /// An alias is no `family@version` of a family that has published images.
    #[error("reading alias {alias:?}: {why}")]
    Alias {
        /// As written.
        alias: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The family has no images for this Kubernetes version.
    #[error("finding images of {family} for Kubernetes 1.{minor}: {why}")]
    Unsupported {
        /// The family's name.
        family: &'static str,
        /// Kubernetes minor version.
        minor: u32,
        /// What is supported.
        why: &'static str,
    },
    /// A field of `kubelet` has the wrong shape.
    #[error("reading kubelet.{field}: {why}")]
    Kubelet {
        /// The field.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The user's user data is no MIME archive although it begins as one.
    #[error("reading userData as a MIME archive, line {line}: {why}")]
    Mime {
        /// Line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The user's user data is no TOML.
    #[error("reading userData as TOML, line {line}: {why}")]
    Toml {
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        why: String,
    },
    /// A setting in the user's user data has the wrong type.
    #[error("reading userData, line {line}: {key} is of type {found}, it must be {wanted}")]
    Setting {
        /// Dotted key.
        key: String,
        /// Line, from 1.
        line: usize,
        /// Its type.
        found: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// The user's user data means to be a NodeConfig and is no YAML.
    #[error("reading userData as a NodeConfig, line {line}: {why}")]
    NodeConfig {
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        why: String,
    },
    /// AL2023 nodes need the range of service addresses.
    #[error("making user data for nodes of cluster {0:?}: the cluster's service address range is not known yet, it is read from EKS")]
    NoClusterCidr(String),
    /// The certificate of the API server is not base64.
    #[error("reading the certificate bundle of cluster {cluster:?}: {why}")]
    CaBundle {
        /// The cluster's name.
        cluster: String,
        /// What is wrong.
        why: String,
    },
    /// More user data than EC2 takes.
    #[error("making user data: {bytes} bytes are more than the {} that EC2 takes, shorten userData by {} bytes", super::LIMIT, bytes - super::LIMIT)]
    TooLarge {
        /// Its size before base64.
        bytes: usize,
    },
    /// Tags that only the autoscaler may set.
    #[error("reading tags: {} may not be set, they mark what belongs to the cluster", .0.join(", "))]
    RestrictedTags(Vec<String>),
    /// No security group was found for the class.
    #[error("making a launch template for EC2NodeClass {0:?}: it has no security groups")]
    NoSecurityGroups(String),
    /// No image boots any of the types.
    #[error("finding images for {types} instance types: none of the images {} boots any of them", .images.join(", "))]
    NoImage {
        /// How many types were asked for.
        types: usize,
        /// The images there are.
        images: Vec<String>,
    },
    /// A volume's size is no quantity.
    #[error("reading the volume size of {device}")]
    VolumeSize {
        /// The device.
        device: String,
        /// Why not.
        source: QuantityError,
    },
    /// A number is beyond what EC2 takes.
    #[error("making a launch template: {field} {value} does not fit 32 bits")]
    Number {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
}
