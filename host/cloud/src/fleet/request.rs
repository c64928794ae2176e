//! A launch shape as EC2 takes it.
//!
//! What must not enter: any choice.

use std::collections::BTreeMap;

use aws_sdk_ec2::{
    operation::create_fleet::builders::CreateFleetInputBuilder,
    types::{
        DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
        FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy, FleetType, OnDemandOptionsRequest, ResourceType,
        SpotAllocationStrategy, SpotOptionsRequest, Tag, TagSpecification, TargetCapacitySpecificationRequest,
    },
};
use whittle_model::CapacityType;

use super::{
    plan::Plan,
    select::{Pick, Ranking},
};

const MICROS_OF_A_DOLLAR: f64 = 1_000_000.0;

/// The request for `count` instances, in the subnets chosen by zone; `None` when no zone has one.
pub(crate) fn fleet(plan: &Plan, subnets: &BTreeMap<String, String>, count: i32, token: &str) -> Option<CreateFleetInputBuilder> {
    let configs = configs(plan, subnets);
    if configs.is_empty() {
        return None;
    }
    let tagged = [ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet].map(|kind| tags(plan, kind));
    let request = CreateFleetInputBuilder::default()
        .r#type(FleetType::Instant)
        .client_token(token)
        .set_context(plan.context.clone())
        .set_launch_template_configs(Some(configs))
        .set_tag_specifications(Some(tagged.into()));
    let capacity = TargetCapacitySpecificationRequest::builder().total_target_capacity(count);
    let (request, kind) = match plan.capacity_type {
        CapacityType::Spot => {
            let strategy = match plan.ranking {
                Ranking::Ec2 => SpotAllocationStrategy::PriceCapacityOptimized,
                Ranking::Prices | Ranking::List => SpotAllocationStrategy::CapacityOptimizedPrioritized,
            };
            (request.spot_options(SpotOptionsRequest::builder().allocation_strategy(strategy).build()), DefaultTargetCapacityType::Spot)
        }
        // Capacity of a block, and what its owner may take back, is asked for by a name of its own; all picks are of one kind.
        CapacityType::OnDemand | CapacityType::Reserved => {
            let strategy = match plan.ranking {
                Ranking::Ec2 => FleetOnDemandAllocationStrategy::LowestPrice,
                Ranking::Prices | Ranking::List => FleetOnDemandAllocationStrategy::Prioritized,
            };
            let options = OnDemandOptionsRequest::builder().allocation_strategy(strategy).build();
            let kind = match plan.picks.first().and_then(|pick| pick.reservation.as_ref()) {
                Some(reservation) if reservation.capacity_block => DefaultTargetCapacityType::CapacityBlock,
                Some(reservation) if reservation.interruptible => DefaultTargetCapacityType::ReservedCapacity,
                Some(_) | None => DefaultTargetCapacityType::OnDemand,
            };
            (request.on_demand_options(options), kind)
        }
    };
    Some(request.target_capacity_specification(capacity.default_target_capacity_type(kind).build()))
}

fn tags(plan: &Plan, kind: ResourceType) -> TagSpecification {
    let tags = plan.tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect();
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags)).build()
}

/// One for each launch template, in the order of names.
fn configs(plan: &Plan, subnets: &BTreeMap<String, String>) -> Vec<FleetLaunchTemplateConfigRequest> {
    let mut overrides: BTreeMap<&str, Vec<FleetLaunchTemplateOverridesRequest>> = BTreeMap::new();
    for pick in &plan.picks {
        if let (Some(subnet), Some(boots)) = (subnets.get(&pick.zone), plan.boots(pick)) {
            let one = FleetLaunchTemplateOverridesRequest::builder()
                .instance_type(pick.instance_type.as_str().into())
                .subnet_id(subnet)
                .availability_zone(&pick.zone)
                .image_id(&boots.image)
                .priority(priority(plan, pick));
            overrides.entry(&boots.template).or_default().push(one.build());
        }
    }
    let config = |(template, overrides): (&str, Vec<_>)| {
        let named = FleetLaunchTemplateSpecificationRequest::builder().launch_template_name(template).version("$Latest").build();
        FleetLaunchTemplateConfigRequest::builder().launch_template_specification(named).set_overrides(Some(overrides)).build()
    };
    overrides.into_iter().map(config).collect()
}

/// The place in the list of a chain; or else the price in dollars, as Karpenter writes it.
fn priority(plan: &Plan, pick: &Pick) -> f64 {
    let number = as_float(pick.priority);
    match plan.ranking {
        Ranking::List => number,
        Ranking::Ec2 | Ranking::Prices => number / MICROS_OF_A_DOLLAR,
    }
}

/// Prices and places are far below what a float holds exactly.
fn as_float(number: i64) -> f64 {
    i32::try_from(number).map_or(f64::from(i32::MAX), f64::from)
}
