//! Many types as a table.

use std::cmp::Reverse;
use std::io::Write;

use whittle_model::resources::{CPU, MEMORY, PODS, format_amount};
use whittle_model::{CapacityType, Catalog, InstanceType, Micros, Offering, Resources, keys};

use super::filter::{Filter, listed_memory_mib};
use super::{borrowed, json};
use crate::args::{Sort, Types};
use crate::failure::Failure;
use crate::out::{FAINT, Side, WIDTH, bytes, price, styled, table, table_width};

/// A type that is shown, with what the columns say of it.
struct Row<'a> {
    instance_type: &'a InstanceType,
    on_demand: Option<Micros>,
    /// Lowest and highest.
    spot: Option<(Micros, Micros)>,
    zones: Vec<&'a str>,
    /// Pods that fit on an empty node.
    fit: Option<i64>,
}

impl Row<'_> {
    /// The least an hour of it costs.
    fn cheapest(&self) -> Micros {
        let spot = self.spot.map(|(lowest, _)| lowest);
        spot.into_iter().chain(self.on_demand).min().unwrap_or(Micros(i64::MAX))
    }

    /// The price that is sorted by: on-demand, or spot where only spot is sold or asked for.
    fn price(&self) -> Micros {
        self.on_demand.unwrap_or_else(|| self.cheapest())
    }

    /// An hour of a pod, in micro-dollars, when the node is full of them.
    fn per_pod(&self) -> Option<i64> {
        self.fit.filter(|pods| *pods > 0).map(|pods| self.price().0 / pods)
    }
}

/// Prints the types that the filter takes.
///
/// # Errors
/// When a filter names a label that no type has, or the answer cannot be written.
pub fn show(args: &Types, catalog: &Catalog, assumptions: &[String], out: &mut dyn Write) -> Result<(), Failure> {
    let filter = Filter::new(args)?;
    let ask = args.pods_fit.as_ref().map(|amounts| with_one_pod(&amounts.0));
    let mut rows: Vec<Row<'_>> = catalog
        .types
        .iter()
        .filter(|candidate| filter.takes(candidate))
        .filter_map(|candidate| row(candidate, &filter, ask.as_ref()))
        .collect();
    sort(&mut rows, args.sort, args.pods_fit.is_some());
    let found = rows.len();
    if args.limit > 0 {
        rows.truncate(args.limit);
    }
    if args.json {
        for row in &rows {
            json(row.instance_type, catalog, out)?;
        }
        return Ok(());
    }
    let shown = Shown { catalog, filter: &filter, args, wide: true };
    let (mut head, mut lines) = (shown.columns(), shown.rows(&rows));
    if table_width(&head, &lines) > WIDTH {
        let narrow = Shown { wide: false, ..shown };
        (head, lines) = (narrow.columns(), narrow.rows(&rows));
    }
    table(out, &head, &lines)?;
    let counted = if rows.len() < found { format!("{} of {found} types", rows.len()) } else { format!("{found} types") };
    let tilde = if borrowed(catalog) { format!("; ~ marks prices of {}", catalog.price_region) } else { String::new() };
    let remark = format!("{counted} in {}; POD CPU, POD MIB: what pods can use; ZONES: letters of its zones{tilde}", catalog.region);
    writeln!(out, "\n{}", styled(FAINT, &remark))?;
    for line in assumptions {
        writeln!(out, "{}", styled(FAINT, line))?;
    }
    Ok(())
}

fn with_one_pod(amounts: &Resources) -> Resources {
    let mut all = amounts.clone();
    all.set(PODS, 1);
    all
}

fn row<'a>(candidate: &'a InstanceType, filter: &Filter<'_>, ask: Option<&Resources>) -> Option<Row<'a>> {
    let sold: Vec<&Offering> = candidate.offerings.iter().filter(|offering| filter.sells(offering)).collect();
    let prices = |way: CapacityType| sold.iter().filter(move |o| o.capacity_type == way).map(|o| o.price);
    let spot = prices(CapacityType::Spot);
    let spot = spot.clone().min().zip(spot.max());
    let mut zones: Vec<&str> = sold.iter().map(|o| o.zone.as_str()).collect();
    zones.dedup();
    let fit = ask.map(|ask| ask.iter().map(|(name, amount)| candidate.allocatable.get(name) / amount).min().unwrap_or(0));
    (!sold.is_empty()).then(|| Row { instance_type: candidate, on_demand: prices(CapacityType::OnDemand).min(), spot, zones, fit })
}

fn sort(rows: &mut [Row<'_>], by: Option<Sort>, fit: bool) {
    match by {
        None if fit => rows.sort_by_key(|row| row.per_pod().unwrap_or(i64::MAX)),
        Some(Sort::Price) => rows.sort_by_key(|row| (row.price(), row.cheapest())),
        Some(Sort::Cpu) => rows.sort_by_key(|row| (row.instance_type.capacity.get(CPU), row.price())),
        Some(Sort::Memory) => rows.sort_by_key(|row| (listed_memory_mib(row.instance_type), row.price())),
        // By name, but m7i.2xlarge before m7i.12xlarge: by family, then by size.
        None | Some(Sort::Name) => rows.sort_by_cached_key(|row| {
            let (family, size) = row.instance_type.name.split_once('.').unwrap_or((&row.instance_type.name, ""));
            (family.to_owned(), row.instance_type.capacity.get(CPU), Reverse(size.len()), size.to_owned())
        }),
    }
}

/// The longest name of a GPU in a list that would be too wide.
const SHORT_GPU: usize = 10;

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

/// How rows are shown.
struct Shown<'a> {
    catalog: &'a Catalog,
    filter: &'a Filter<'a>,
    args: &'a Types,
    /// Spot prices from the lowest to the highest, and GPUs by their full name.
    wide: bool,
}

impl Shown<'_> {
    fn columns(&self) -> Vec<(&'static str, Side)> {
        let mut columns = vec![
            ("NAME", Side::Left),
            ("ARCH", Side::Left),
            ("VCPU", Side::Right),
            ("MEMORY", Side::Right),
            ("POD CPU", Side::Right),
            ("POD MIB", Side::Right),
            ("PODS", Side::Right),
        ];
        if self.args.pods_fit.is_some() {
            columns.extend([("FIT", Side::Right), ("$/POD", Side::Right)]);
        } else {
            columns.extend([("GPU", Side::Left), ("MBIT/S", Side::Right)]);
        }
        if self.filter.only() != Some(CapacityType::Spot) {
            columns.push(("ON-DEMAND", Side::Right));
        }
        if self.filter.only() != Some(CapacityType::OnDemand) {
            columns.push((if self.wide { "SPOT" } else { "SPOT FROM" }, Side::Right));
        }
        columns.push(("ZONES", Side::Left));
        columns
    }

    fn rows(&self, rows: &[Row<'_>]) -> Vec<Vec<String>> {
        rows.iter().map(|row| self.cells(row)).collect()
    }

    fn cells(&self, row: &Row<'_>) -> Vec<String> {
        let one = row.instance_type;
        let label = |key: &str| one.labels.get(key).cloned().unwrap_or_default();
        let aws = |name: &str| label(&format!("{}{name}", keys::AWS_PREFIX));
        let mut cells = vec![
            one.name.clone(),
            label(keys::ARCH),
            format_amount(CPU, one.capacity.get(CPU)),
            bytes(listed_memory_mib(one) << 20),
            format_amount(CPU, one.allocatable.get(CPU)),
            // In MiB, so that a plan can be checked by hand.
            (one.allocatable.get(MEMORY) >> 20).to_string(),
            one.allocatable.get(PODS).to_string(),
        ];
        if self.args.pods_fit.is_some() {
            cells.extend([row.fit.unwrap_or(0).to_string(), self.money(row.per_pod().map(Micros))]);
        } else {
            let gpus = match aws("instance-gpu-count") {
                count if count.is_empty() => String::new(),
                count => format!("{count} {}", aws("instance-gpu-name")),
            };
            let gpus = if self.wide { gpus } else { shortened(&gpus, SHORT_GPU) };
            cells.extend([gpus, aws("instance-network-bandwidth")]);
        }
        if self.filter.only() != Some(CapacityType::Spot) {
            cells.push(self.money(row.on_demand));
        }
        if self.filter.only() != Some(CapacityType::OnDemand) {
            cells.push(match row.spot {
                Some((low, high)) if self.wide && low != high => format!("{}-{high}", self.money(Some(low))),
                spot => self.money(spot.map(|(low, _)| low)),
            });
        }
        cells.push(row.zones.iter().map(|zone| zone.strip_prefix(&self.catalog.region).unwrap_or(zone)).collect());
        cells
    }

    fn money(&self, micros: Option<Micros>) -> String {
        micros.map_or_else(|| "-".to_owned(), |micros| price(micros, borrowed(self.catalog)))
    }
}
