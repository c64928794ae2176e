//! The figures of runs as a table for people and as JSON lines for programs.
//!
//! What must not enter: playing anything.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use whittle_model::{Micros, Timestamp};
use whittle_sim::{Assumptions, Figures, Sample};

use super::json::line;
use crate::args::World;
use crate::out::{FAINT, HEAD, Side as Lean, WARN, against, clock, count, price, styled, table, wrapped};

/// What a side came to.
#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// At the end.
    #[serde(flatten)]
    pub figures: Figures,
    /// On the way there.
    pub course: Vec<Sample>,
    /// Lines of the story that did not come true, and why.
    pub untrue: Vec<String>,
}

/// What came of one seed.
#[derive(Debug, Clone, Serialize)]
pub struct Seed {
    /// The seed.
    pub seed: u64,
    /// When the figures were taken, in milliseconds of the story.
    #[serde(rename = "endMs", serialize_with = "millis")]
    pub end: Timestamp,
    /// Ours.
    #[serde(rename = "whittle")]
    pub ours: Side,
    /// The model's.
    #[serde(rename = "karpenter", skip_serializing_if = "Option::is_none")]
    pub peer: Option<Side>,
}

fn millis<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(at.0)
}

/// How a figure is written.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Micros,
    /// Seconds, shown as hours.
    Hours,
    Plain,
}

/// A figure: what people read, what programs read, how it is written, and where it stands.
type Figure = (&'static str, &'static str, Unit, fn(&Figures) -> i64);

/// The figures in the order in which they are told.
const FIGURES: [Figure; 8] = [
    ("cost", "totalMicros", Unit::Micros, |f| f.total_micros),
    ("cost/h at the end", "hourlyMicros", Unit::Micros, |f| f.hourly_micros),
    ("node hours", "nodeSeconds", Unit::Hours, |f| f.node_seconds),
    ("most nodes", "mostNodes", Unit::Plain, |f| f.most_nodes),
    ("nodes at the end", "nodes", Unit::Plain, |f| f.nodes),
    ("launches", "launches", Unit::Plain, |f| f.launches),
    ("evictions", "evictions", Unit::Plain, |f| f.evictions),
    ("pending pod-seconds", "pendingPodSeconds", Unit::Plain, |f| f.pending_pod_seconds),
];

/// The parts of all seeds that are told, in percent.
const PERCENTILES: [usize; 3] = [10, 50, 90];

impl Unit {
    fn write(self, amount: i64, borrowed: bool) -> String {
        match self {
            Self::Micros => price(Micros(amount), borrowed && amount > 0),
            Self::Hours => {
                let hundredths = (amount + 18).div_euclid(36);
                format!("{}.{:02}", hundredths / 100, hundredths % 100)
            }
            Self::Plain => amount.to_string(),
        }
    }
}

/// The nearest-rank percentiles of a figure.
fn percentiles(sides: &[&Side], of: fn(&Figures) -> i64) -> [i64; 3] {
    let mut all: Vec<i64> = sides.iter().map(|side| of(&side.figures)).collect();
    all.sort_unstable();
    PERCENTILES.map(|percent| all.get((all.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0))
}

/// Writes the table, with all that it rests on.
///
/// # Errors
/// When it cannot be written.
pub fn say(out: &mut dyn Write, world: &World, assumed: &Assumptions, seeds: &[Seed], remarks: &[String]) -> io::Result<()> {
    let [first, .., last] = seeds else { return one(out, world, assumed, seeds, remarks) };
    head(out, world, assumed, &format!("{} to {}", first.seed, last.seed), first.peer.is_some(), remarks)?;
    let borrowed = world.market.region != assumed.price_region;
    let ours: Vec<&Side> = seeds.iter().map(|seed| &seed.ours).collect();
    let peers: Vec<&Side> = seeds.iter().filter_map(|seed| seed.peer.as_ref()).collect();
    writeln!(out, "\n{} of {}, p10 p50 p90", styled(HEAD, "Figures"), count(seeds.len(), "seed"))?;
    let mut columns = vec![("", Lean::Left), ("WHITTLE P10", Lean::Right), ("P50", Lean::Right), ("P90", Lean::Right)];
    if !peers.is_empty() {
        columns.extend([("KARPENTER P10", Lean::Right), ("P50", Lean::Right), ("P90", Lean::Right), ("P50 DIFFERS", Lean::Right)]);
    }
    let rows = FIGURES.map(|(name, _, unit, of)| {
        let mine = percentiles(&ours, of);
        let mut row = vec![name.to_owned()];
        row.extend(mine.map(|amount| unit.write(amount, borrowed)));
        if !peers.is_empty() {
            let theirs = percentiles(&peers, of);
            row.extend(theirs.map(|amount| unit.write(amount, borrowed)));
            row.push(against(mine[1], theirs[1]));
        }
        row
    });
    table(out, &columns, &rows)?;
    untrue(out, seeds)
}

/// The table of one seed, and the course of it.
fn one(out: &mut dyn Write, world: &World, assumed: &Assumptions, seeds: &[Seed], remarks: &[String]) -> io::Result<()> {
    let Some(seed) = seeds.first() else { return Ok(()) };
    head(out, world, assumed, &seed.seed.to_string(), seed.peer.is_some(), remarks)?;
    let borrowed = world.market.region != assumed.price_region;
    writeln!(out, "\n{} after {}", styled(HEAD, "Figures"), clock(seed.end))?;
    let mut columns = vec![("", Lean::Left), ("WHITTLE", Lean::Right)];
    if seed.peer.is_some() {
        columns.extend([("KARPENTER", Lean::Right), ("DIFFERS", Lean::Right)]);
    }
    let rows = FIGURES.map(|(name, _, unit, of)| {
        let mine = of(&seed.ours.figures);
        let mut row = vec![name.to_owned(), unit.write(mine, borrowed)];
        if let Some(peer) = &seed.peer {
            let theirs = of(&peer.figures);
            row.extend([unit.write(theirs, borrowed), against(mine, theirs)]);
        }
        row
    });
    table(out, &columns, &rows)?;
    course(out, seed, borrowed)?;
    untrue(out, seeds)
}

fn course(out: &mut dyn Write, seed: &Seed, borrowed: bool) -> io::Result<()> {
    writeln!(out, "\n{}", styled(HEAD, "Course"))?;
    let mut columns = vec![("UNTIL", Lean::Right), ("WHITTLE/H", Lean::Right), ("NODES", Lean::Right)];
    if seed.peer.is_some() {
        columns.extend([("KARPENTER/H", Lean::Right), ("NODES", Lean::Right)]);
    }
    let cells = |sample: &Sample| [Unit::Micros.write(sample.hourly_micros, borrowed), sample.nodes.to_string()];
    let rows: Vec<Vec<String>> = (seed.ours.course.iter().enumerate())
        .map(|(nth, sample)| {
            let mut row = vec![clock(Timestamp(sample.at * 1000))];
            row.extend(cells(sample));
            row.extend(seed.peer.iter().filter_map(|peer| peer.course.get(nth)).flat_map(cells));
            row
        })
        .collect();
    table(out, &columns, &rows)
}

fn head(out: &mut dyn Write, world: &World, assumed: &Assumptions, seeds: &str, peer: bool, remarks: &[String]) -> io::Result<()> {
    writeln!(out, "{}", styled(HEAD, "Assumptions"))?;
    let region = &world.market.region;
    let mut facts = vec![
        ("region", format!("{region}; prices: {}", assumed.prices)),
        ("spot", assumed.spot.strip_prefix("spot prices: ").unwrap_or(&assumed.spot).to_owned()),
        ("boot", assumed.boot.clone()),
        ("weather", format!("{}; seed {seeds}", assumed.weather)),
    ];
    if peer {
        let model = "a model of Karpenter 1.14 in the same world: greedy packing, pods left to kube-scheduler, one move after the other";
        facts.push(("karpenter", format!("{model} (whittle simulate --help says where it differs)")));
    }
    facts.extend(remarks.iter().map(|remark| ("note", remark.clone())));
    for (name, text) in facts {
        for line in wrapped(&format!("{name:<9}  {text}"), 2, 13) {
            writeln!(out, "{}", styled(FAINT, &line))?;
        }
    }
    Ok(())
}

/// What of the story did not come true; ours is told on standard error.
fn untrue(out: &mut dyn Write, seeds: &[Seed]) -> io::Result<()> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let all = seeds.iter().filter_map(|seed| seed.peer.as_ref()).flat_map(|peer| &peer.untrue);
    all.for_each(|why| *times.entry(why).or_default() += 1);
    if !times.is_empty() {
        writeln!(out, "\n{}", styled(WARN, "Not true under the model of Karpenter"))?;
    }
    for (why, times) in times {
        let often = if seeds.len() > 1 { format!(" ({})", count(times, "seed")) } else { String::new() };
        for line in wrapped(&format!("{why}{often}"), 2, 4) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Writes what came of one seed.
///
/// # Errors
/// When it cannot be written.
pub fn seed_line(out: &mut dyn Write, seed: &Seed) -> io::Result<()> {
    line(out, seed)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Last<'a> {
    seeds: usize,
    percentiles: [usize; 3],
    whittle: BTreeMap<&'static str, [i64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    karpenter: Option<BTreeMap<&'static str, [i64; 3]>>,
    partial: bool,
    notes: &'a [String],
}

/// Writes the last line: the percentiles of each figure.
///
/// # Errors
/// When it cannot be written.
pub fn summary_line(out: &mut dyn Write, seeds: &[Seed], notes: &[String], partial: bool) -> io::Result<()> {
    let of = |sides: Vec<&Side>| -> BTreeMap<&'static str, [i64; 3]> {
        FIGURES.iter().map(|(_, name, _, of)| (*name, percentiles(&sides, *of))).collect()
    };
    let peers: Vec<&Side> = seeds.iter().filter_map(|seed| seed.peer.as_ref()).collect();
    let whittle = of(seeds.iter().map(|seed| &seed.ours).collect());
    let karpenter = (!peers.is_empty()).then(|| of(peers));
    line(
        out,
        &serde_json::json!({ "comparison": Last { seeds: seeds.len(), percentiles: PERCENTILES, whittle, karpenter, partial, notes } }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(cost: i64) -> Side {
        Side { figures: Figures { total_micros: cost, ..Figures::default() }, course: Vec::new(), untrue: Vec::new() }
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let sides: Vec<Side> = (1..=20).rev().map(side).collect();
        assert_eq!(percentiles(&sides.iter().collect::<Vec<_>>(), |f| f.total_micros), [2, 10, 18]);
        assert_eq!(percentiles(&[&side(7)], |f| f.total_micros), [7, 7, 7]);
    }

    #[test]
    fn what_does_not_come_true_there_is_told_with_how_often() {
        let missed = |lines: &[&str]| Side { untrue: lines.iter().map(|line| (*line).to_owned()).collect(), ..side(1) };
        let seed = |peer: Side| Seed { seed: 1, end: Timestamp(0), ours: missed(&["ours is told elsewhere"]), peer: Some(peer) };
        let said = |seeds: &[Seed]| {
            let mut out = Vec::new();
            untrue(&mut out, seeds).unwrap();
            anstream::adapter::strip_bytes(&out).into_vec()
        };
        assert_eq!(said(&[seed(side(1))]), b"");
        let one = said(&[seed(missed(&["story line 2: never"]))]);
        assert_eq!(String::from_utf8(one).unwrap(), "\nNot true under the model of Karpenter\n  story line 2: never\n");
        let three = said(&[seed(missed(&["a", "b"])), seed(missed(&["a"])), seed(side(1))]);
        assert_eq!(String::from_utf8(three).unwrap(), "\nNot true under the model of Karpenter\n  a (2 seeds)\n  b (1 seed)\n");
    }

    #[test]
    fn seconds_are_shown_as_hours() {
        assert_eq!([0, 36, 3600, 5400, 17].map(|s| Unit::Hours.write(s, false)), ["0.00", "0.01", "1.00", "1.50", "0.00"]);
    }
}
