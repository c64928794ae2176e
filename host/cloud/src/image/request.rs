//! A launch template's content as EC2 takes it.
//!
//! What must not enter: any choice. What the template holds is all said in [`TemplateSpec`], but for
//! the few words that every template has.

use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget, ConnectionTrackingSpecificationRequest,
    LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest, LaunchTemplateIamInstanceProfileSpecificationRequest,
    LaunchTemplateInstanceMarketOptionsRequest, LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest, LaunchTemplateTagSpecificationRequest,
    LaunchTemplatesMonitoringRequest, MarketType, RequestLaunchTemplateData, ResourceType, Tag, TagSpecification, Tenancy,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::interface::Tracking;
use super::{CapacityChoice, Interface, Market, Metadata, Placement, TemplateSpec, Volume};

impl TemplateSpec {
    /// The content as EC2 takes it.
    #[must_use]
    pub fn data(&self) -> RequestLaunchTemplateData {
        let encoded = (!self.user_data.is_empty()).then(|| STANDARD.encode(&self.user_data));
        // EC2 refuses an empty list.
        let volumes = (!self.volumes.is_empty()).then(|| self.volumes.iter().map(volume).collect());
        let cpu = self.nested_virtualization.as_deref();
        RequestLaunchTemplateData::builder()
            .image_id(&self.image)
            .iam_instance_profile(LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(&self.profile).build())
            .set_user_data(encoded)
            .set_block_device_mappings(volumes)
            .metadata_options(metadata(&self.metadata))
            .monitoring(LaunchTemplatesMonitoringRequest::builder().enabled(self.detailed_monitoring).build())
            .set_cpu_options(cpu.map(|nested| LaunchTemplateCpuOptionsRequest::builder().nested_virtualization(nested.into()).build()))
            .enclave_options(LaunchTemplateEnclaveOptionsRequest::builder().enabled(self.enclave).build())
            .placement(placement(&self.placement))
            .set_network_interfaces(Some(self.interfaces.iter().map(interface).collect()))
            .set_tag_specifications(Some(self.launched_tags()))
            .set_capacity_reservation_specification(reservation(&self.reservation))
            .set_instance_market_options(self.market.map(market))
            .build()
    }

    /// The tags of the template itself.
    #[must_use]
    pub fn template_tags(&self) -> TagSpecification {
        TagSpecification::builder().resource_type(ResourceType::LaunchTemplate).set_tags(Some(self.tag_list())).build()
    }

    fn tag_list(&self) -> Vec<Tag> {
        self.tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
    }

    /// Tags of what CreateFleet cannot tag: it names those of the instance, its volumes and itself.
    fn launched_tags(&self) -> Vec<LaunchTemplateTagSpecificationRequest> {
        let kinds = [Some(ResourceType::NetworkInterface), self.spot.then_some(ResourceType::SpotInstancesRequest)];
        let tagged = |kind| LaunchTemplateTagSpecificationRequest::builder().resource_type(kind).set_tags(Some(self.tag_list())).build();
        kinds.into_iter().flatten().map(tagged).collect()
    }
}

fn volume(volume: &Volume) -> LaunchTemplateBlockDeviceMappingRequest {
    let ebs = LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_delete_on_termination(volume.delete_on_termination)
        .set_encrypted(volume.encrypted)
        .set_iops(volume.iops)
        .set_throughput(volume.throughput)
        .set_kms_key_id(volume.kms_key_id.clone())
        .set_snapshot_id(volume.snapshot_id.clone())
        .set_volume_initialization_rate(volume.initialization_rate)
        .set_volume_size(volume.size_gib)
        .set_volume_type(volume.kind.as_deref().map(Into::into))
        .build();
    LaunchTemplateBlockDeviceMappingRequest::builder().set_device_name(volume.device.clone()).ebs(ebs).build()
}

fn metadata(metadata: &Metadata) -> LaunchTemplateInstanceMetadataOptionsRequest {
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_endpoint(metadata.endpoint.as_str().into())
        .set_http_protocol_ipv6(metadata.ipv6.as_deref().map(Into::into))
        .http_put_response_hop_limit(metadata.hop_limit)
        .http_tokens(metadata.tokens.as_str().into())
        // The service cannot show tags with a slash in their key, and refuses to launch if asked to.
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
        .build()
}

fn placement(placement: &Placement) -> LaunchTemplatePlacementRequest {
    LaunchTemplatePlacementRequest::builder()
        .tenancy(if placement.dedicated { Tenancy::Dedicated } else { Tenancy::Default })
        .set_group_id(placement.group_id.clone())
        .set_partition_number(placement.partition)
        .build()
}

fn interface(nic: &Interface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .set_network_card_index(nic.card)
        .device_index(nic.device)
        .set_interface_type(nic.kind.clone())
        .set_groups(Some(nic.groups.clone()))
        .set_associate_public_ip_address(nic.public_address)
        .set_ipv4_prefix_count(nic.ipv4_prefixes)
        .set_ipv6_prefix_count(nic.ipv6_prefixes)
        .set_ipv6_address_count(nic.ipv6_addresses)
        .set_primary_ipv6(nic.ipv6_addresses.map(|_| true))
        .set_connection_tracking_specification(nic.tracking.map(tracking))
        .build()
}

fn tracking(tracking: Tracking) -> ConnectionTrackingSpecificationRequest {
    ConnectionTrackingSpecificationRequest::builder()
        .set_tcp_established_timeout(tracking.tcp_established)
        .set_udp_stream_timeout(tracking.udp_stream)
        .set_udp_timeout(tracking.udp)
        .build()
}

fn reservation(choice: &CapacityChoice) -> Option<LaunchTemplateCapacityReservationSpecificationRequest> {
    let builder = LaunchTemplateCapacityReservationSpecificationRequest::builder();
    let built = match choice {
        CapacityChoice::Open => return None,
        CapacityChoice::Avoid => builder.capacity_reservation_preference(CapacityReservationPreference::None),
        CapacityChoice::Only(id) => builder
            .capacity_reservation_preference(CapacityReservationPreference::CapacityReservationsOnly)
            .capacity_reservation_target(CapacityReservationTarget::builder().capacity_reservation_id(id).build()),
    };
    Some(built.build())
}

fn market(market: Market) -> LaunchTemplateInstanceMarketOptionsRequest {
    let kind = match market {
        Market::CapacityBlock => MarketType::CapacityBlock,
        Market::InterruptibleReservation => MarketType::InterruptibleCapacityReservation,
    };
    LaunchTemplateInstanceMarketOptionsRequest::builder().market_type(kind).build()
}

#[cfg(test)]
#[path = "../../tests_unit/image_request.rs"]
mod tests;
