//! Disks of an instance.
//!
//! What must not enter: AWS types.

use serde::Serialize;
use whittle_model::Quantity;
use whittle_model::ec2_node_class::BlockDeviceMapping;

use super::ImageError;

const GIB: i64 = 1 << 30;

/// A disk of an instance; what is absent is EC2's choice or the snapshot's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Volume {
    /// Such as `/dev/xvda`.
    pub device: Option<String>,
    /// Whether it goes with its instance.
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    pub encrypted: Option<bool>,
    /// Operations a second.
    pub iops: Option<i32>,
    /// MiB a second.
    pub throughput: Option<i32>,
    /// Key it is encrypted with.
    pub kms_key_id: Option<String>,
    /// Snapshot it starts from.
    pub snapshot_id: Option<String>,
    /// MiB a second at which a snapshot is read.
    pub initialization_rate: Option<i32>,
    /// GiB.
    pub size_gib: Option<i32>,
    /// Such as `gp3`.
    pub kind: Option<String>,
}

impl Volume {
    /// The disk of a block device mapping; its size is rounded up to whole GiB.
    ///
    /// # Errors
    /// When its size is no quantity, or a number is beyond 32 bits.
    pub fn of(mapping: &BlockDeviceMapping) -> Result<Self, ImageError> {
        let ebs = mapping.ebs.clone().unwrap_or_default();
        let size = ebs.volume_size.as_deref().map(|text| gib(mapping.device_name.as_deref().unwrap_or_default(), text)).transpose()?;
        // 0 is how an absent number reads once it went through a client that writes zeros.
        let number = |field, value: Option<i64>| value.filter(|value| *value != 0).map(|value| narrow(field, value)).transpose();
        Ok(Self {
            device: mapping.device_name.clone(),
            delete_on_termination: ebs.delete_on_termination,
            encrypted: ebs.encrypted,
            iops: number("blockDeviceMappings.ebs.iops", ebs.iops)?,
            throughput: number("blockDeviceMappings.ebs.throughput", ebs.throughput)?,
            kms_key_id: ebs.kms_key_id,
            snapshot_id: ebs.snapshot_id,
            initialization_rate: ebs.volume_initialization_rate,
            size_gib: size,
            kind: ebs.volume_type,
        })
    }
}

fn gib(device: &str, text: &str) -> Result<i32, ImageError> {
    let size = Quantity::parse(text).map_err(|source| ImageError::VolumeSize { device: device.to_owned(), source })?;
    narrow("blockDeviceMappings.ebs.volumeSize", size.units_ceil().div_euclid(GIB) + i64::from(size.units_ceil().rem_euclid(GIB) > 0))
}

/// A number as EC2 takes it.
pub(super) fn narrow(field: &'static str, value: i64) -> Result<i32, ImageError> {
    i32::try_from(value).map_err(|_| ImageError::Number { field, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_gib_rounded_up() {
        for (text, size) in [("20Gi", 20), ("20G", 19), ("1Ti", 1024), ("1T", 932), ("1", 1), ("1073741825", 2)] {
            assert_eq!(gib("/dev/xvda", text), Ok(size), "{text}");
        }
        let wrong = gib("/dev/xvda", "big").map_err(|error| error.to_string());
        assert_eq!(wrong, Err("reading the volume size of /dev/xvda".to_owned()));
        assert_eq!(gib("/dev/xvda", "7E"), Err(ImageError::Number { field: "blockDeviceMappings.ebs.volumeSize", value: 6_519_258_023 }));
    }
}
