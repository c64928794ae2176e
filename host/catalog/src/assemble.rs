//! Puts labels, capacity, overhead, zones and prices together into a catalogue.

use std::borrow::Cow;

use whittle_model::resources::MEMORY;
use whittle_model::{CapacityType, Catalog, InstanceType, Micros, Offering};

use crate::compatible::incompatible;
use crate::zones::{Offered, assumed_zone_id};
use crate::{Absences, CatalogError, CatalogOptions, Image, InstanceFacts, Overhead, Sources, Spot, capacity, labels};

/// Everything a NodeClass can buy in its region: the types that it can use, one of its images boots
/// on and some zone of the region offers, with one offering for each zone and way to buy. An offering
/// without price, or in a zone without subnet, is there but not available; without price its price
/// reads 0.
///
/// # Errors
/// When the region or a zone is not known, no price list serves the region, or a kubelet setting
/// cannot be read. A zone that a listed table of offerings does not know offers nothing.
pub fn build(options: &CatalogOptions, sources: &Sources) -> Result<Catalog, CatalogError> {
    let overhead = Overhead::new(&options.kubelet)?;
    let (offered, assumed) = match &sources.offered {
        Some(listed) => (Cow::Borrowed(listed), false),
        None => (Cow::Owned(Offered::builtin(&options.region)?), true),
    };
    let zones = zones(options, offered.zones(), assumed)?;
    let price_region = sources.prices.price_region(&options.region)?;
    let mut absences = Absences::default();
    let mut types = Vec::with_capacity(1500);
    for facts in sources.facts.iter().filter(|facts| incompatible(facts, options).is_none()) {
        let offerings = offerings(facts, &zones, &offered, sources, price_region);
        if offerings.is_empty() {
            continue;
        }
        let made = instance_type(facts, options, &overhead, &mut absences, offerings);
        if options.images.as_ref().is_none_or(|images| Image::for_labels(images, &made.labels).is_some()) {
            types.push(made);
        }
    }
    Ok(Catalog { node_class: options.node_class.clone(), region: options.region.clone(), price_region: price_region.to_owned(), types })
}

/// One type as the NodeClass makes it, with these offerings.
#[must_use]
pub fn instance_type(
    facts: &InstanceFacts,
    options: &CatalogOptions,
    overhead: &Overhead,
    absences: &mut Absences,
    offerings: Vec<Offering>,
) -> InstanceType {
    let labels = labels(facts, &options.region);
    let mut capacity = capacity(facts, options);
    let image = options.images.as_ref().and_then(|images| Image::for_labels(images, &labels));
    if let Some(bytes) = image.and_then(|image| options.memory_seen.get(&image.id)?.get(&facts.name)) {
        capacity.set(MEMORY, *bytes);
    }
    InstanceType {
        name: facts.name.clone(),
        requirements: absences.requirements(&labels),
        labels,
        allocatable: overhead.allocatable(facts, options, &capacity),
        capacity,
        offerings,
    }
}

fn offerings(facts: &InstanceFacts, zones: &[Zone<'_>], offered: &Offered, sources: &Sources, price_region: &str) -> Vec<Offering> {
    let on_demand = sources.prices.on_demand(price_region, &facts.name);
    let mut offerings = Vec::with_capacity(2 * zones.len());
    for zone in offered.offering(&facts.name).filter_map(|name| zones.iter().find(|zone| zone.name == name)) {
        for capacity_type in ways_to_buy(facts) {
            let price = match (capacity_type, sources.spot) {
                (CapacityType::Spot, Spot::Model(model)) => on_demand.map(|price| model.price(&facts.name, zone.name, price)),
                (CapacityType::Spot, Spot::Listed) => sources.prices.spot(zone.name, &facts.name),
                (CapacityType::Spot, Spot::ListPrice) | (CapacityType::OnDemand, _) => on_demand,
                (CapacityType::Reserved, _) => None,
            };
            offerings.push(Offering {
                zone: zone.name.to_owned(),
                zone_id: zone.id.clone(),
                capacity_type,
                price: price.unwrap_or(Micros(0)),
                available: price.is_some() && zone.has_subnet,
                reservation: None,
            });
        }
    }
    offerings
}

struct Zone<'o> {
    name: &'o str,
    id: String,
    has_subnet: bool,
}

/// With zones that are `assumed`, not the account's own, a name that is not among them is a mistake.
fn zones<'o>(options: &CatalogOptions, of_region: &'o [String], assumed: bool) -> Result<Vec<Zone<'o>>, CatalogError> {
    let mut named = options.zones.iter().flatten().chain(options.zone_ids.keys());
    if let Some(zone) = named.find(|zone| assumed && !of_region.contains(zone)) {
        return Err(CatalogError::UnknownZone { zone: zone.clone(), region: options.region.clone(), zones: of_region.to_vec() });
    }
    let assume = |name: &str| assumed.then(|| assumed_zone_id(name)).flatten();
    let zone = |name: &'o String| Zone {
        name,
        id: options.zone_ids.get(name).cloned().or_else(|| assume(name)).unwrap_or_default(),
        has_subnet: options.zones.as_ref().is_none_or(|some| some.contains(name)),
    };
    Ok(of_region.iter().map(zone).collect())
}

/// In the order of capacity types.
fn ways_to_buy(facts: &InstanceFacts) -> impl Iterator<Item = CapacityType> + use<> {
    let classes = facts.usage_classes;
    [(CapacityType::Spot, classes.spot), (CapacityType::OnDemand, classes.on_demand)]
        .into_iter()
        .filter_map(|(way, can)| can.then_some(way))
}
