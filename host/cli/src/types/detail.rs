//! Everything about one type.

use std::io::Write;

use whittle_model::resources::{EPHEMERAL_STORAGE, MEMORY, format_amount};
use whittle_model::{Catalog, InstanceType, Requirement, Resources};

use super::{borrowed, json};
use crate::failure::Failure;
use crate::out::{FAINT, HEAD, Side, bytes, price, styled, table};

/// Prints labels, capacity, allocatable and offerings of a type.
///
/// # Errors
/// When the answer cannot be written.
pub fn show(
    instance_type: &InstanceType,
    catalog: &Catalog,
    assumptions: &[String],
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if as_json {
        return json(instance_type, catalog, out);
    }
    writeln!(out, "{}  {}", styled(HEAD, &instance_type.name), styled(FAINT, &catalog.region))?;

    writeln!(out, "\n{}", styled(HEAD, "Labels"))?;
    for (key, value) in &instance_type.labels {
        writeln!(out, "  {key}={value}")?;
    }
    for requirement in instance_type.requirements.iter() {
        if let Some(text) = open_label(requirement) {
            writeln!(out, "  {text}")?;
        }
    }

    writeln!(out, "\n{}", styled(HEAD, "Resources"))?;
    let names = instance_type.capacity.iter().map(|(name, _)| name);
    let rows: Vec<Vec<String>> =
        names.map(|name| vec![name.to_owned(), amount(&instance_type.capacity, name), amount(&instance_type.allocatable, name)]).collect();
    table(out, &[("RESOURCE", Side::Left), ("CAPACITY", Side::Right), ("ALLOCATABLE", Side::Right)], &rows)?;

    writeln!(out, "\n{}", styled(HEAD, "Offerings"))?;
    let columns = [("ZONE", Side::Left), ("ZONE ID", Side::Left), ("CAPACITY TYPE", Side::Left), ("PRICE/H", Side::Right)];
    let rows: Vec<Vec<String>> = instance_type
        .offerings
        .iter()
        .map(|o| {
            let sold = if o.available { price(o.price, borrowed(catalog)) } else { "not for sale".to_owned() };
            vec![o.zone.clone(), o.zone_id.clone(), o.capacity_type.to_string(), sold]
        })
        .collect();
    table(out, &columns, &rows)?;
    writeln!(out)?;
    for line in assumptions {
        writeln!(out, "{}", styled(FAINT, line))?;
    }
    Ok(())
}

/// A label that may take one of several values; absent labels are not told.
fn open_label(requirement: &Requirement) -> Option<String> {
    let values: Vec<&str> = requirement.values().iter().map(String::as_str).collect();
    (!values.is_empty()).then(|| format!("{}={}", requirement.key(), values.join("|")))
}

fn amount(all: &Resources, name: &str) -> String {
    let amount = all.get(name);
    if name == MEMORY || name == EPHEMERAL_STORAGE { format!("{} ({})", bytes(amount), amount) } else { format_amount(name, amount) }
}
