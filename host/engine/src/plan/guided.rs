//! The greedy under other manners, for pods that look at company beyond their node: no other packer knows these. Claims
//! may be filled in the order of their age, as first fit does, and may keep to types at which capacity is cheap by the
//! duals of the bound. The best of what comes out competes with the documented greedy.

use fixedbitset::FixedBitSet;
use whittle_model::Micros;
use whittle_model::scorer::ScorerFailure;

use super::classes::runs;
use super::finish::{Priced, finish};
use super::greedy::{Bench, Draft, Ground, Manner, OpenClaim, clear_of_daemons, pack};
use super::reserved;
use super::standing::{Start, stands};
use super::states::StateId;
use super::topology::HOST;

/// The types that claims keep to.
struct Taste {
    /// What a type must promise, as a part of the best one's.
    promise: f64,
    /// What it may cost, as a multiple of what a node of the documented greedy's plan costs on average.
    price: f64,
}

const fn taste(promise: f64, price: f64) -> Taste {
    Taste { promise, price }
}

/// What is tried: every type, those at which capacity is cheapest, and of these such as are no larger than pods that keep
/// apart can fill.
const TASTES: [Taste; 8] = [
    taste(0.0, f64::INFINITY),
    taste(0.99, f64::INFINITY),
    taste(0.95, f64::INFINITY),
    taste(0.8, f64::INFINITY),
    taste(0.8, 0.7),
    taste(0.8, 1.0),
    taste(0.8, 1.5),
    taste(0.8, 2.5),
];

/// The cheapest packing of the pods that `seats` leaves, with its draft, if one is better than the documented greedy's: it
/// places every pod that the greedy does, and more of them or at a lower rank.
pub(crate) fn guided(
    bench: &mut Bench<'_, '_>,
    start: Start<'_>,
    promises: &[Vec<(f64, Micros)>],
    greedy: &Priced,
) -> Result<Option<(Draft, Priced)>, ScorerFailure> {
    let best = promises.iter().flatten().map(|(promise, _)| *promise).fold(0.0, f64::max);
    let average = greedy.rank.0 as f64 / greedy.claims.len().max(1) as f64;
    let Start { seats, tally, remaining, .. } = start;
    let mut order = runs(bench.classes, &seats.left);
    bench.topology.tighter_first(bench.tables, bench.states, bench.classes, &mut order);
    let mut found: Option<(Draft, Priced)> = None;
    let mut tried: Vec<Vec<FixedBitSet>> = Vec::new();
    for Taste { promise, price } in TASTES {
        let favoured = favoured(promises, best * promise, average * price);
        if tried.contains(&favoured) {
            continue;
        }
        let manner = Manner { oldest_first: true, favoured: Some(&favoured) };
        let mut ground = Ground { bins: None, tally: &mut tally.clone(), remaining: &mut remaining.clone(), manner };
        let mut draft = pack(bench, &mut ground, &order);
        draft.claims.iter_mut().for_each(|claim| claim.state = widened(bench, claim));
        reserved::tighten(bench, &mut draft, remaining);
        let priced = finish(bench, draft.clone(), "guided", remaining.clone())?;
        let known = found.as_ref().map_or(greedy, |(_, known)| known);
        // A claim that is given up takes pods out of domains that others were placed by.
        let whole = priced.claims.len() == draft.claims.len() && priced.places_all_of(greedy);
        let better = whole && (priced.missing(), priced.rank) < (known.missing(), known.rank);
        if better && stands(bench, start, &priced.claims, &[], tally) {
            found = Some((draft, priced));
        }
        tried.push(favoured);
    }
    Ok(found)
}

/// By table the rows that promise so much and cost no more than that.
fn favoured(promises: &[Vec<(f64, Micros)>], least: f64, most: f64) -> Vec<FixedBitSet> {
    let suits = |(promise, rank): &(f64, Micros)| *promise >= least && rank.0 as f64 <= most;
    promises.iter().map(|rows| rows.iter().enumerate().filter(|(_, row)| suits(row)).map(|(row, _)| row).collect()).collect()
}

/// The state of a claim once it may become every type again that its requirements leave it: EC2 gets all the choice
/// there is. A claim that would be in more domains than its pods were placed for stays as it is.
fn widened(bench: &mut Bench<'_, '_>, claim: &OpenClaim) -> StateId {
    let mut state = bench.states.widened(bench.tables, claim.state);
    for (class, _) in &claim.content {
        let clear = clear_of_daemons(bench.states, bench.tables, state, &bench.classes[*class]);
        let Some(clear) = clear else { return claim.state };
        state = clear;
    }
    let same = (HOST + 1..bench.topology.keys()).all(|key| {
        let before = bench.topology.reach(bench.tables, bench.states, claim.state, key).clone();
        before == *bench.topology.reach(bench.tables, bench.states, state, key)
    });
    if same { state } else { claim.state }
}
