//! What EC2's answer means for claims: who got which instance, and why others got none.
//!
//! What must not enter: calls, memory.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::{
    operation::create_fleet::CreateFleetOutput,
    types::{CreateFleetError, CreateFleetInstance, FleetLaunchTemplateOverrides},
};
use whittle_model::{CapacityType, Catalog, LaunchFailure, Launched, Micros, NodeClaim, OfferingKey, Outcome, keys};

use super::{
    instances::{InstanceFacts, provider_id},
    plan::Plan,
    scope::{Scope, closed, scope_of},
};
use crate::{CloudError, ErrorKind};

/// As much of a message as a condition shows.
const MESSAGE: usize = 300;

/// An instance to deal to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bought {
    pub(crate) provider_id: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: CapacityType,
    /// The capacity reservation that was asked for.
    pub(crate) reservation: Option<String>,
    pub(crate) image: String,
    pub(crate) subnet: String,
}

impl Bought {
    /// An instance that was bought before, for an order of this capacity type. Where no reservation is named, EC2 puts
    /// what is bought on demand into open ones: it stays on demand.
    pub(crate) fn found(facts: InstanceFacts, asked: CapacityType) -> Self {
        let open = facts.capacity_type == CapacityType::Reserved && asked != CapacityType::Reserved;
        Self {
            provider_id: facts.provider_id,
            instance_type: facts.instance_type,
            zone: facts.zone,
            capacity_type: if open { CapacityType::OnDemand } else { facts.capacity_type },
            reservation: facts.reservation.filter(|_| !open),
            image: facts.image,
            subnet: facts.subnet,
        }
    }

    /// Whether a claim can do with it. Claims of one group may ask for different amounts.
    pub(crate) fn suits(&self, claim: &NodeClaim, catalog: &Catalog) -> bool {
        let wanted = [
            (keys::INSTANCE_TYPE, self.instance_type.as_str()),
            (keys::ZONE, self.zone.as_str()),
            (keys::CAPACITY_TYPE, self.capacity_type.name()),
        ];
        let reserved = self.reservation.iter().map(|id| (keys::RESERVATION_ID, id.as_str()));
        wanted
            .into_iter()
            .chain(reserved)
            .all(|(key, value)| claim.requirements.get(key).is_none_or(|requirement| requirement.allows(value)))
            && catalog.get(&self.instance_type).is_none_or(|t| claim.requests.fit_in(&t.allocatable))
    }

    pub(crate) fn launched(&self, claim: &NodeClaim, catalog: &Catalog, sold_out: &[OfferingKey]) -> Outcome {
        let key = OfferingKey { instance_type: self.instance_type.clone(), zone: self.zone.clone(), capacity_type: self.capacity_type };
        // A type that left the catalogue since it was bought is still worth what was asked of it.
        let known = catalog.get(&self.instance_type).map(|t| (t.capacity.clone(), t.allocatable.clone()));
        let (capacity, allocatable) = known.unwrap_or_else(|| (claim.requests.clone(), claim.requests.clone()));
        Outcome::Launched(Launched {
            claim: claim.name.clone(),
            provider_id: self.provider_id.clone(),
            instance_type: self.instance_type.clone(),
            zone: self.zone.clone(),
            capacity_type: self.capacity_type,
            reservation: self.reservation.clone(),
            price: catalog.offering(&key).map_or(Micros(0), |offering| offering.price),
            capacity,
            allocatable,
            image: self.image.clone(),
            sold_out: sold_out.to_vec(),
        })
    }
}

/// What one fleet came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    pub(crate) bought: Vec<Bought>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Why an offering was not bought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
    /// What was refused; all that was asked for, when EC2 does not say.
    pub(crate) offering: Option<OfferingKey>,
    pub(crate) subnet: Option<String>,
}

/// Reads the answer to CreateFleet. `subnets` are those that were asked for, by zone.
pub(crate) fn read(output: &CreateFleetOutput, plan: &Plan, subnets: &BTreeMap<String, String>) -> Answer {
    let bought = output.instances().iter().flat_map(|instance| bought(instance, plan, subnets)).collect();
    let mut refusals: Vec<Refusal> = output.errors().iter().map(|error| refusal(error, plan, subnets)).collect();
    refusals.sort();
    refusals.dedup();
    Answer { bought, refusals }
}

fn zone_of(overrides: Option<&FleetLaunchTemplateOverrides>, subnets: &BTreeMap<String, String>) -> Option<String> {
    let overrides = overrides?;
    let by_subnet = || subnets.iter().find(|(_, id)| Some(id.as_str()) == overrides.subnet_id()).map(|(zone, _)| zone.clone());
    overrides.availability_zone().map(ToOwned::to_owned).or_else(by_subnet)
}

/// The instances of one pool. What the answer does not say is what was asked for.
fn bought(instance: &CreateFleetInstance, plan: &Plan, subnets: &BTreeMap<String, String>) -> Vec<Bought> {
    let overrides = instance.launch_template_and_overrides().and_then(|both| both.overrides());
    let named = instance.instance_type().or_else(|| overrides.and_then(|o| o.instance_type()));
    let instance_type = named.map(|t| t.as_str().to_owned()).unwrap_or_default();
    let zone = instance.availability_zone().map(ToOwned::to_owned).or_else(|| zone_of(overrides, subnets)).unwrap_or_default();
    let capacity_type = match instance.lifecycle().map(|lifecycle| lifecycle.as_str()) {
        Some("spot") => CapacityType::Spot,
        Some("on-demand") if plan.capacity_type == CapacityType::Spot => CapacityType::OnDemand,
        Some(_) | None => plan.capacity_type,
    };
    let image = overrides.and_then(|o| o.image_id()).map(ToOwned::to_owned);
    let pick = plan.pick(&instance_type, &zone);
    let image = image.or_else(|| Some(plan.boots(pick?)?.image.clone())).unwrap_or_default();
    let reservation = pick.and_then(|pick| pick.reservation.as_ref()).map(|reservation| reservation.id.clone());
    let subnet = subnets.get(&zone).cloned().unwrap_or_default();
    let one = |id: &String| Bought {
        provider_id: provider_id(&zone, id),
        instance_type: instance_type.clone(),
        zone: zone.clone(),
        capacity_type,
        reservation: reservation.clone(),
        image: image.clone(),
        subnet: subnet.clone(),
    };
    instance.instance_ids().iter().map(one).collect()
}

fn refusal(error: &CreateFleetError, plan: &Plan, subnets: &BTreeMap<String, String>) -> Refusal {
    let overrides = error.launch_template_and_overrides().and_then(|both| both.overrides());
    let zone = zone_of(overrides, subnets);
    let named = overrides.and_then(|o| o.instance_type()).zip(zone.clone());
    Refusal {
        code: error.error_code().unwrap_or_default().to_owned(),
        message: error.error_message().unwrap_or_default().to_owned(),
        offering: named.map(|(t, zone)| OfferingKey { instance_type: t.as_str().to_owned(), zone, capacity_type: plan.capacity_type }),
        subnet: overrides.and_then(|o| o.subnet_id()).map(ToOwned::to_owned).or_else(|| subnets.get(&zone?).cloned()),
    }
}

/// The offerings that refusals of capacity close, each refusal at its scope. `emptied` is told of each subnet without
/// free addresses and says whether that closes its zone.
pub(crate) fn sold_out(refusals: &[Refusal], plan: &Plan, catalog: &Catalog, emptied: &dyn Fn(&str) -> bool) -> Vec<OfferingKey> {
    let mut all = BTreeSet::new();
    for refusal in refusals {
        let Some(scope) = scope_of(&refusal.code) else { continue };
        if scope == Scope::Subnet && !refusal.subnet.as_deref().is_none_or(emptied) {
            continue;
        }
        let refused = refusal.offering.clone().map_or_else(|| plan.keys(), |key| vec![key]);
        all.extend(refused.iter().flat_map(|key| closed(scope, key, catalog)));
    }
    all.into_iter().collect()
}

/// Why a claim got nothing: a lack of capacity only when nothing else was said.
pub(crate) fn failure(refusals: &[Refusal], sold_out: &[OfferingKey]) -> LaunchFailure {
    let Some(first) = refusals.first() else {
        return LaunchFailure::Other(
            "LaunchFailed".to_owned(),
            "EC2 bought fewer instances than asked for, and did not say why".to_owned(),
        );
    };
    match refusals.iter().find(|refusal| scope_of(&refusal.code).is_none()) {
        None if sold_out.is_empty() => LaunchFailure::Other(reason(&first.code, &first.message), cut(&first.text())),
        None => LaunchFailure::InsufficientCapacity(sold_out.to_vec()),
        Some(other) => LaunchFailure::Other(reason(&other.code, &other.message), cut(&other.text())),
    }
}

impl Refusal {
    /// A call that was refused as a whole.
    pub(crate) fn of_call(error: &CloudError) -> Self {
        Self { code: error.code.clone(), message: error.message.clone(), offering: None, subnet: None }
    }

    fn text(&self) -> String {
        let refused = self.offering.as_ref().map(|key| format!(" for {key}")).unwrap_or_default();
        format!("{}{refused}: {}", self.code, self.message)
    }
}

/// Why a claim got nothing when a call failed.
pub(crate) fn call_failure(error: &CloudError) -> LaunchFailure {
    LaunchFailure::Other(reason(&error.code, &error.message), cut(&error.to_string()))
}

/// The word that a claim's condition shows for a code (as Karpenter's).
fn reason(code: &str, message: &str) -> String {
    let says = |part: &str| message.to_ascii_lowercase().contains(part);
    let reason = match code {
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted" => "SpotSLRCreationFailed",
        "AuthFailure" if says("image") => "AMIAuthorizationFailure",
        "InvalidAMIID.NotFound" | "InvalidAMIID.Unavailable" => "AMINotFound",
        "InvalidAMIID.Malformed" => "InvalidAMIID",
        "VcpuLimitExceeded" => "VCPULimitExceeded",
        "MaxSpotInstanceCountExceeded" => "SpotQuotaExceeded",
        "MaxFleetCountExceeded" => "FleetQuotaExceeded",
        "InsufficientFreeAddressesInSubnet" => "InsufficientFreeAddressesInSubnet",
        "PendingVerification" => "AccountPendingVerification",
        "InternalError" | "InternalFailure" | "ServerInternal" | "InternalServerError" => "InternalError",
        _ if says("user data is limited") => "UserDataSizeLimitExceeded",
        _ if says("belong to different networks") => "SecurityGroupSubnetVPCMismatch",
        _ if says("iam instance profile") => "InstanceProfileNameInvalid",
        _ if says("free tier") => "FreeTierIneligible",
        code => match ErrorKind::of_code(code) {
            ErrorKind::Throttled => "RequestLimitExceeded",
            ErrorKind::Unauthorized => "Unauthorized",
            ErrorKind::LaunchTemplateNotFound => "LaunchTemplateNotFound",
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::InsufficientCapacity
            | ErrorKind::SpotRoleMissing
            | ErrorKind::TokenReused
            | ErrorKind::DryRunOk
            | ErrorKind::NoAnswer
            | ErrorKind::Configuration
            | ErrorKind::Other => "LaunchFailed",
        },
    };
    reason.to_owned()
}

/// At most as much of a message as a condition shows.
pub(crate) fn cut(message: &str) -> String {
    if message.chars().count() <= MESSAGE { message.to_owned() } else { message.chars().take(MESSAGE - 1).chain(['…']).collect() }
}

#[cfg(test)]
#[path = "../../tests_unit/fleet_outcome.rs"]
mod tests;
