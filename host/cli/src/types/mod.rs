//! `whittle types`: the catalogue as people use it to choose, and to check a plan by hand.
//! What must not enter: anything about clusters.

mod detail;
pub mod filter;
mod list;

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use whittle_cluster::yaml::closest;
use whittle_model::{Catalog, InstanceType};
use whittle_sim::catalog::{AmiFamily, CatalogOptions, build};

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

fn find<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a InstanceType, Failure> {
    catalog.get(name).ok_or_else(|| {
        let hint = closest(name, catalog.types.iter().map(|t| t.name.as_str())).map(|meant| format!("; did you mean {meant}?"));
        Failure::Usage(format!("there is no instance type {name:?} in {}{}", catalog.region, hint.unwrap_or_default()))
    })
}

/// Whether prices are another region's.
fn borrowed(catalog: &Catalog) -> bool {
    catalog.price_region != catalog.region
}

/// A type as one JSON object. Amounts are cores in thousandths, bytes, or a count.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    name: &'a str,
    region: &'a str,
    price_region: &'a str,
    labels: &'a whittle_model::Labels,
    capacity: BTreeMap<&'a str, i64>,
    allocatable: BTreeMap<&'a str, i64>,
    offerings: Vec<JsonOffering<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonOffering<'a> {
    zone: &'a str,
    zone_id: &'a str,
    capacity_type: &'static str,
    price_micros: i64,
    available: bool,
}

/// Writes a type as one JSON line.
fn json(instance_type: &InstanceType, catalog: &Catalog, out: &mut dyn Write) -> Result<(), Failure> {
    let offerings = instance_type.offerings.iter().map(|offering| JsonOffering {
        zone: &offering.zone,
        zone_id: &offering.zone_id,
        capacity_type: offering.capacity_type.name(),
        price_micros: offering.price.0,
        available: offering.available,
    });
    let line = Json {
        name: &instance_type.name,
        region: &catalog.region,
        price_region: &catalog.price_region,
        labels: &instance_type.labels,
        capacity: instance_type.capacity.iter().collect(),
        allocatable: instance_type.allocatable.iter().collect(),
        offerings: offerings.collect(),
    };
    serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}
