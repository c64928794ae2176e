//! B1, B2 and B3: how fast pods are packed, how that grows with their number, and what preferences cost.
//!
//! Timed is the plan alone, pods and types being known: for the engine from its world of interned
//! pods, for the reference from its sorted queue and filtered types.

use whittle_model::{Packing, Pod, Settings};

use super::{BenchError, Line};
use crate::filter::Filter;
use crate::fixtures::{self, DIVERSE, FixtureError};
use crate::markets;
use crate::measure::{Millis, Times, alternate, timed};
use crate::ours::{Ours, Planned};
use crate::reference::{Outcome, Reference};
use crate::{Input, bound};

/// A workload and how the engine is set for it.
struct Case {
    name: String,
    pods: fn(usize) -> Result<Vec<Pod>, FixtureError>,
    count: usize,
    packing: Packing,
}

fn diverse(count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(fixtures::constrained(&fixtures::diverse(count)?))
}

fn generic(count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(fixtures::generic(&fixtures::diverse(count)?))
}

fn anti(count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(fixtures::anti(&fixtures::diverse(count)?))
}

fn distinct(count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(fixtures::distinct(count))
}

fn drawn(count: usize) -> Result<Vec<Pod>, FixtureError> {
    Ok(fixtures::constrained(&fixtures::drawn(count)))
}

fn settings(packing: Packing) -> Settings {
    Settings { packing, ..Settings::default() }
}

fn plan(input: &Input, packing: Packing) -> (std::time::Duration, Planned) {
    plan_under(input, &settings(packing))
}

fn plan_under(input: &Input, settings: &Settings) -> (std::time::Duration, Planned) {
    let ours = Ours::new(input, settings);
    let (time, plan) = timed(|| ours.plan());
    (time, Planned::from(&plan))
}

/// B1: pods a second against the reference, node counts, and for the default portfolio cost.
///
/// # Errors
/// When a fixture cannot be read.
pub fn b1(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    let case = |count: usize, suffix: &str, pods, packing| Case { name: format!("B1/{count}{suffix}"), pods, count, packing };
    let mut cases = Vec::new();
    for count in DIVERSE.into_iter().filter(|n| *n >= 100) {
        cases.push(case(count, "", diverse as fn(usize) -> _, Packing::Greedy));
        cases.push(case(count, "/full", diverse, Packing::Cost));
        cases.push(case(count, "/sizes", generic, Packing::Greedy));
        cases.push(case(count, "/sizes/full", generic, Packing::Cost));
        cases.push(case(count, "/anti", anti, Packing::Greedy));
    }
    cases.push(case(5000, "/distinct", distinct, Packing::Greedy));
    cases.push(case(5000, "/distinct/full", distinct, Packing::Cost));
    for case in cases.iter().filter(|c| filter.wants(&c.name)) {
        line(b1_line(case)?);
    }
    Ok(())
}

fn b1_line(case: &Case) -> Result<String, BenchError> {
    let input = markets::synthetic().with_pods((case.pods)(case.count)?);
    let reference = Reference::new(&input);
    let (mut planned, mut outcome) = (Planned::default(), Outcome::default());
    let (ours, peer) = alternate(
        || {
            let (time, result) = plan(&input, case.packing);
            planned = result;
            time
        },
        || {
            let (time, result) = timed(|| reference.solve());
            outcome = result;
            time
        },
    );
    let mut text = format!(
        "{}: {}, {:.0} pods/s, {} nodes, {:.1} x reference",
        case.name,
        Millis(ours.median()),
        rate(case.count, &ours),
        planned.nodes,
        peer.seconds() / ours.seconds(),
    );
    if case.packing == Packing::Cost {
        let over = |other: i64| bound::as_float(planned.cost.0) / bound::as_float(other);
        text += &format!(", {:.4} of bound, {:.4} of greedy", over(planned.bound.0), over(planned.greedy.0));
    }
    text += &format!(" ({}; reference {}, {} nodes)", ours.spread(), Millis(peer.median()), outcome.nodes.len());
    Ok(text + &disagreement(case.packing, &planned, &outcome))
}

/// A warning at the end of the line when the engine's greedy and the reference part.
fn disagreement(packing: Packing, planned: &Planned, outcome: &Outcome) -> String {
    let same_nodes = packing != Packing::Greedy || planned.nodes == outcome.nodes.len();
    if same_nodes && planned.greedy == outcome.cost() && planned.unplaced == outcome.unplaced.len() {
        return String::new();
    }
    format!(
        " DISAGREES with the reference: greedy {} against {}, unplaced {} against {}",
        planned.greedy,
        outcome.cost(),
        planned.unplaced,
        outcome.unplaced.len()
    )
}

fn rate(count: usize, times: &Times) -> f64 {
    bound::as_float(i64::try_from(count).unwrap_or(i64::MAX)) / times.seconds()
}

/// B2: how the time grows when there are ten times as many pods.
///
/// # Errors
/// When a fixture cannot be read.
pub fn b2(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    let case = |count: usize, suffix: &str, pods| Case { name: format!("B2/{count}{suffix}"), pods, count, packing: Packing::Greedy };
    let cases = [
        case(10_000, "", diverse as fn(usize) -> _),
        case(20_000, "", diverse),
        case(10_000, "/sizes", generic),
        case(20_000, "/sizes", generic),
        case(10_000, "/drawn", drawn),
        case(20_000, "/drawn", drawn),
        case(50_000, "/drawn", drawn),
        case(100_000, "/drawn", drawn),
        case(10_000, "/anti", anti),
        case(20_000, "/anti", anti),
    ];
    for case in cases.iter().filter(|c| filter.wants(&c.name)) {
        let many = markets::synthetic().with_pods((case.pods)(case.count)?);
        let few = markets::synthetic().with_pods((case.pods)(case.count / 10)?);
        let (ours, tenth) = alternate(|| plan(&many, case.packing).0, || plan(&few, case.packing).0);
        line(format!(
            "{}: {}, {:.0} pods/s, T({}) is {:.1} x T({}) ({}; {})",
            case.name,
            Millis(ours.median()),
            rate(case.count, &ours),
            case.count,
            ours.seconds() / tenth.seconds(),
            case.count / 10,
            ours.spread(),
            tenth.spread(),
        ));
    }
    Ok(())
}

/// B3: identical pods with preferences, respected and ignored.
///
/// # Errors
/// Never; as the others.
pub fn b3(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    const COUNT: usize = 4000;
    for (name, respect) in [("respect", true), ("ignore", false)] {
        let name = format!("B3/{COUNT}/{name}");
        if !filter.wants(&name) {
            continue;
        }
        let input = markets::synthetic().with_pods(fixtures::preferring(COUNT));
        let mut told = input.clone();
        if !respect {
            told.pods.iter_mut().for_each(|pod| pod.preferences = whittle_model::Preferences::default());
        }
        let (reference, under) = (Reference::new(&told), Settings { respect_preferences: respect, ..settings(Packing::Greedy) });
        let (mut planned, mut outcome) = (Planned::default(), Outcome::default());
        let (ours, peer) = alternate(
            || {
                let (time, result) = plan_under(&input, &under);
                planned = result;
                time
            },
            || {
                let (time, result) = timed(|| reference.solve());
                outcome = result;
                time
            },
        );
        let text = format!(
            "{name}: {}, {:.0} pods/s, {} nodes, {:.1} x reference ({}; reference {}, {} nodes)",
            Millis(ours.median()),
            rate(COUNT, &ours),
            planned.nodes,
            peer.seconds() / ours.seconds(),
            ours.spread(),
            Millis(peer.median()),
            outcome.nodes.len(),
        );
        line(text + &disagreement(Packing::Greedy, &planned, &outcome));
    }
    Ok(())
}
