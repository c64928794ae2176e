//! The answer for people: assumptions, timeline, nodes, cost, and why anything is pending.

use std::collections::BTreeMap;
use std::io::{self, Write};

use whittle_model::{Micros, Timestamp};
use whittle_sim::{NodeRow, Summary};

use super::timeline::Line;
use crate::args::World;
use crate::out::{BAD, FAINT, HEAD, Side, WARN, WIDTH, against, clock, count, percent, price, styled, table, table_width, wrapped};

/// Up to so many nodes, each has a row; more are told by type, so that the answer stays readable.
const MOST_ROWS: usize = 12;

/// Everything a person is told.
pub struct Report<'a> {
    /// What happened.
    pub timeline: Vec<Line>,
    /// When it ended.
    pub now: Timestamp,
    /// Where it ended.
    pub summary: &'a Summary,
    /// How the input was read.
    pub remarks: &'a [String],
    /// Whether fields were set aside that would change where pods run.
    pub partial: bool,
}

impl Report<'_> {
    /// The text, with styles.
    ///
    /// # Errors
    /// Never in practice: it is written to memory.
    pub fn text(&self, world: &World) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.assumptions(&mut out, world)?;
        self.events(&mut out)?;
        let borrowed = world.market.region != self.summary.assumptions.price_region;
        self.nodes(&mut out, borrowed)?;
        self.pending(&mut out)?;
        self.buffers(&mut out)?;
        self.cost(&mut out, borrowed)?;
        if self.partial {
            writeln!(out, "\n{}: fields named above would change where pods run and were set aside", styled(BAD, "PARTIAL"))?;
        }
        Ok(out)
    }

    fn assumptions(&self, out: &mut dyn Write, world: &World) -> io::Result<()> {
        let assumed = &self.summary.assumptions;
        writeln!(out, "{}", styled(HEAD, "Assumptions"))?;
        let region = &world.market.region;
        let tilde = if *region == assumed.price_region { "" } else { "; ~ marks prices of another region" };
        let packing = match world.packing {
            crate::args::PackingChoice::Cost => "",
            crate::args::PackingChoice::Greedy => "; packing: greedy",
        };
        let facts = [
            ("region", format!("{region}; prices: {}{tilde}{packing}", assumed.prices)),
            ("spot", assumed.spot.strip_prefix("spot prices: ").unwrap_or(&assumed.spot).to_owned()),
            ("scheduler", assumed.scheduler.clone()),
            ("boot", assumed.boot.clone()),
            ("weather", format!("{}; seed {}", assumed.weather, assumed.seed)),
        ];
        let notes = self.remarks.iter().map(|remark| ("note", remark.clone()));
        for (name, text) in facts.into_iter().chain(notes) {
            for line in wrapped(&format!("{name:<9}  {text}"), 2, 13) {
                writeln!(out, "{}", styled(FAINT, &line))?;
            }
        }
        Ok(())
    }

    fn events(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}", styled(HEAD, "Timeline"))?;
        for line in &self.timeline {
            for (number, part) in wrapped(&line.text, 11, 13).iter().enumerate() {
                let time = if number == 0 { clock(line.at) } else { String::new() };
                writeln!(out, "{time:>9}{}", styled(line.style, part.get(9..).unwrap_or_default()))?;
            }
        }
        Ok(())
    }

    fn nodes(&self, out: &mut dyn Write, borrowed: bool) -> io::Result<()> {
        let mut nodes: Vec<&NodeRow> = self.summary.nodes.iter().collect();
        // The second node before the tenth.
        nodes.sort_by_key(|node| (node.name.len(), &node.name));
        let pending: usize = self.summary.pods.pending.iter().map(|group| group.pods.len()).sum();
        let counts = format!("{}, {} running, {pending} pending", count(nodes.len(), "node"), count(self.summary.pods.running, "pod"));
        writeln!(out, "\n{} after {}: {counts}", styled(HEAD, "Nodes"), clock(self.now))?;
        if nodes.is_empty() {
            return Ok(());
        }
        if nodes.len() <= MOST_ROWS { each_node(out, &nodes, borrowed) } else { by_type(out, &nodes, borrowed) }
    }

    fn pending(&self, out: &mut dyn Write) -> io::Result<()> {
        let groups = &self.summary.pods.pending;
        if groups.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", styled(WARN, "Pending"))?;
        for group in groups {
            writeln!(out, "  {} of {}", count(group.pods.len(), "pod"), group.workload)?;
            let nearest = group.nearest.iter().map(|nearest| format!("nearest: {nearest}"));
            for line in group.reasons.iter().cloned().chain(nearest) {
                for part in wrapped(&line, 4, 6) {
                    writeln!(out, "{part}")?;
                }
            }
        }
        Ok(())
    }

    fn buffers(&self, out: &mut dyn Write) -> io::Result<()> {
        let buffers = &self.summary.buffers;
        if buffers.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", styled(HEAD, "Room"))?;
        for row in buffers {
            let wanted = row.ready + row.coming + row.missing;
            let left = [(row.coming, "on the way"), (row.missing, "that nothing can be bought for")];
            let left: String = left.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!(", {number} {what}")).collect();
            writeln!(out, "  for {} of {} of CapacityBuffer {}{left}", row.ready, count(wanted as usize, "pod"), row.buffer)?;
        }
        Ok(())
    }

    fn cost(&self, out: &mut dyn Write, borrowed: bool) -> io::Result<()> {
        let cost = &self.summary.cost;
        let money = |micros: i64| price(Micros(micros), borrowed && micros > 0);
        writeln!(out, "\n{}", styled(HEAD, "Cost"))?;
        let beside = |name: &str, base: i64| format!("{name} {} ({})", money(base), against(cost.hourly_micros, base));
        if cost.greedy_micros > 0 {
            let (greedy, bound) = (beside("greedy", cost.greedy_micros), beside("bound", cost.bound_micros));
            writeln!(out, "  {}/h now; the same pods packed anew: {greedy}, {bound}", money(cost.hourly_micros))?;
        } else {
            writeln!(out, "  {}/h now", money(cost.hourly_micros))?;
        }
        let gone = |joined: bool| self.summary.disruptions.iter().filter(|gone| gone.node.is_empty() != joined).count();
        let given_up = if gone(false) > 0 { format!(", {} given up", count(gone(false), "claim")) } else { String::new() };
        let launched = count(self.summary.launches.len(), "instance");
        let (total, span, removed) = (money(cost.total_micros), clock(self.now), count(gone(true), "node"));
        writeln!(out, "  {total} over {span}: {launched} launched, {removed} removed{given_up}")?;
        if let Some(mix) = mix(&self.summary.nodes) {
            for line in wrapped(&format!("mix: {mix}"), 2, 4) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

const CPU_AND_MEMORY: [(&str, Side); 2] = [("CPU", Side::Right), ("MEMORY", Side::Right)];

fn each_node(out: &mut dyn Write, nodes: &[&NodeRow], borrowed: bool) -> io::Result<()> {
    let mut columns = vec![
        ("NAME", Side::Left),
        ("NODEPOOL", Side::Left),
        ("TYPE", Side::Left),
        ("ZONE", Side::Left),
        ("CAPACITY", Side::Left),
        ("PRICE/H", Side::Right),
        ("PODS", Side::Right),
    ];
    columns.extend(CPU_AND_MEMORY);
    let row = |node: &&NodeRow| {
        let (cpu, memory) = (node.cpu_milli, node.memory_mib);
        vec![
            node.name.clone(),
            or_dash(&node.nodepool),
            or_dash(&node.offering.instance_type),
            or_dash(&node.offering.zone),
            or_dash(node.offering.capacity_type),
            if node.price_micros > 0 { price(Micros(node.price_micros), borrowed) } else { "-".to_owned() },
            node.pods.to_string(),
            percent(cpu.requested, cpu.allocatable),
            percent(memory.requested, memory.allocatable),
        ]
    };
    let mut rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    if table_width(&columns, &rows) > WIDTH {
        // The host without its domain, which is the same for all.
        rows.iter_mut().for_each(|row| row[0] = row[0].split('.').next().unwrap_or_default().to_owned());
    }
    table(out, &columns, &rows)
}

fn by_type(out: &mut dyn Write, nodes: &[&NodeRow], borrowed: bool) -> io::Result<()> {
    let mut columns = vec![
        ("NODES", Side::Right),
        ("NODEPOOL", Side::Left),
        ("TYPE", Side::Left),
        ("CAPACITY", Side::Left),
        ("PRICE/H EACH", Side::Right),
        ("PODS", Side::Right),
    ];
    columns.extend(CPU_AND_MEMORY);
    let mut groups: BTreeMap<(&str, &str, &str, i64), Vec<&NodeRow>> = BTreeMap::new();
    for node in nodes.iter().copied() {
        let key = (node.nodepool.as_str(), node.offering.instance_type.as_str(), node.offering.capacity_type, node.price_micros);
        groups.entry(key).or_default().push(node);
    }
    let sum = |nodes: &[&NodeRow], of: &dyn Fn(&NodeRow) -> i64| nodes.iter().map(|node| of(node)).sum::<i64>();
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|((pool, instance_type, capacity_type, micros), nodes)| {
            vec![
                nodes.len().to_string(),
                or_dash(pool),
                or_dash(instance_type),
                or_dash(capacity_type),
                if *micros > 0 { price(Micros(*micros), borrowed) } else { "-".to_owned() },
                nodes.iter().map(|node| node.pods).sum::<usize>().to_string(),
                percent(sum(nodes, &|n| n.cpu_milli.requested), sum(nodes, &|n| n.cpu_milli.allocatable)),
                percent(sum(nodes, &|n| n.memory_mib.requested), sum(nodes, &|n| n.memory_mib.allocatable)),
            ]
        })
        .collect();
    table(out, &columns, &rows)
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// `3 spot (2 c7i.large, 1 m7i.xlarge), 1 on-demand (1 c7i.large)`.
fn mix(nodes: &[NodeRow]) -> Option<String> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| !node.offering.instance_type.is_empty()) {
        *counts.entry(node.offering.capacity_type).or_default().entry(&node.offering.instance_type).or_default() += 1;
    }
    let told: Vec<String> = counts
        .iter()
        .map(|(capacity_type, types)| {
            let each: Vec<String> = types.iter().map(|(name, number)| format!("{number} {name}")).collect();
            format!("{} {capacity_type} ({})", types.values().sum::<usize>(), each.join(", "))
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}
