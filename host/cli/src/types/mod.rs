//! `whittle types`: the catalogue as people use it to choose, and to check a plan by hand.
//! What must not enter: anything about clusters.

mod detail;
pub mod filter;
mod list;

use std::io::Write;

use whittle_catalog::{AmiFamily, CatalogOptions, build};
use whittle_model::Catalog;

use crate::args::Types;
use crate::failure::{End, Failure};
use crate::market;

/// Prints the types asked for, or everything about one.
///
/// # Errors
/// When the tables cannot be read, the region is not known, or there is no such type.
pub fn run(args: &Types, out: &mut dyn Write) -> Result<End, Failure> {
    let sources = market::sources(&args.market)?;
    let mut options = CatalogOptions { region: args.market.region.clone(), ..CatalogOptions::default() };
    options.family = AmiFamily::parse(&args.ami_family).unwrap_or_default();
    options.kubelet.max_pods = args.max_pods;
    let catalog = build(&options, &sources)?;
    let assumptions = sources.assumptions(&options);
    match &args.name {
        Some(name) => detail::show(find(&catalog, name)?, &catalog, &assumptions, args.json, out)?,
        None => list::show(args, &catalog, &assumptions, out)?,
    }
    Ok(End::Done)
}

fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a whittle_model::InstanceType, Failure> {
    catalog.get(name).ok_or_else(|| {
        let nearest = catalog.types.iter().map(|t| t.name.as_str()).max_by(|a, b| {
            let likeness = |other: &str| strsim::jaro_winkler(other, name);
            likeness(a).total_cmp(&likeness(b)).then_with(|| b.cmp(a))
        });
        Failure::Usage(match nearest {
            Some(nearest) => format!("there is no instance type {name:?} in {}; did you mean {nearest}?", catalog.region),
            None => format!("there is no instance type {name:?}: the catalogue is empty"),
        })
    })
}

/// Whether prices are another region's.
fn borrowed(catalog: &Catalog) -> bool {
    catalog.price_region != catalog.region
}

/// A type as one JSON object.
fn json(instance_type: &whittle_model::InstanceType, catalog: &Catalog) -> serde_json::Value {
    let amounts = |all: &whittle_model::Resources| -> serde_json::Map<String, serde_json::Value> {
        all.iter().map(|(name, amount)| (name.to_owned(), amount.into())).collect()
    };
    let offerings: Vec<serde_json::Value> = instance_type
        .offerings
        .iter()
        .map(|offering| {
            serde_json::json!({
                "zone": offering.zone,
                "zoneId": offering.zone_id,
                "capacityType": offering.capacity_type.name(),
                "priceMicros": offering.price.0,
                "available": offering.available,
            })
        })
        .collect();
    serde_json::json!({
        "name": instance_type.name,
        "region": catalog.region,
        "priceRegion": catalog.price_region,
        "labels": instance_type.labels,
        "capacity": amounts(&instance_type.capacity),
        "allocatable": amounts(&instance_type.allocatable),
        "offerings": offerings,
    })
}
