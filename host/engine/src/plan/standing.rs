//! Whether all that pods ask of company beyond their node holds once a packing is carried out. The greedy asks pod by pod, in
//! the order of its counts; who packs anew what it has put on claims moves the counts under those that stay where they are.

use std::collections::{BTreeMap, BTreeSet};

use super::bins::Bins;
use super::finish::Finished;
use super::greedy::Bench;
use super::leftovers::opened;
use super::limits::Remaining;
use super::seats::Seats;
use super::states::StateId;
use super::topology::asks::Aim;
use super::topology::set::Set;
use super::topology::tally::{CounterId, Tally};
use crate::world::World;

/// What every packer of a plan starts from.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) world: &'a World,
    pub(crate) seats: &'a Seats<'a>,
    /// Who sits on what exists, where anybody looks at company beyond a node.
    pub(crate) places: &'a [Place],
    /// Counts of what runs alone, and with those that have a seat.
    pub(crate) running: &'a Tally,
    pub(crate) tally: &'a Tally,
    pub(crate) remaining: &'a Remaining,
}

/// Pods of one class at one place.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    class: usize,
    count: usize,
    /// By key: the domains it is in, or may come to be in.
    reach: Vec<Set>,
}

/// Whether anybody asks anything that goes beyond nodes.
fn anybody(bench: &Bench<'_, '_>) -> bool {
    bench.classes.iter().any(|class| !class.required().keyed.is_empty())
}

/// The places of pods on what exists: class, bin and number of each.
pub(crate) fn places(bench: &Bench<'_, '_>, bins: &Bins<'_>, seated: impl Iterator<Item = (usize, usize, usize)>) -> Vec<Place> {
    if !anybody(bench) {
        return Vec::new();
    }
    seated.map(|(class, bin, count)| Place { class, count, reach: bins.reach(bin).to_vec() }).collect()
}

/// Whether what everybody asks holds in some order of binding once there are these claims, and beside those of `start` the
/// pods of `more`, which are counted in `tally`.
pub(crate) fn stands(bench: &mut Bench<'_, '_>, start: Start<'_>, claims: &[Finished], more: &[Place], tally: &Tally) -> bool {
    if !anybody(bench) {
        return true;
    }
    let (mut after, mut states) = (tally.clone(), BTreeSet::new());
    let mut places: Vec<Place> = start.places.iter().chain(more).cloned().collect();
    for claim in claims {
        let state = opened(bench, claim, &mut after).state;
        states.insert(state);
        let reach: Vec<Set> =
            (0..bench.topology.keys()).map(|key| bench.topology.reach(bench.tables, bench.states, state, key).clone()).collect();
        places.extend(claim.content.iter().map(|(class, count)| Place { class: *class, count: *count, reach: reach.clone() }));
    }
    let asking = asking(bench, &places);
    let mut brought: BTreeMap<CounterId, Set> = BTreeMap::new();
    let classes = bench.classes;
    places.iter().all(|place| {
        classes[place.class].required().keyed.iter().all(|rule| {
            let (reach, spread) = (&place.reach[rule.key], matches!(rule.kind, Aim::Spread { .. }));
            if spread && !brought.contains_key(&rule.counter) {
                brought.insert(rule.counter, in_claims(bench, &states, rule.counter));
            }
            let none = Set::default();
            let bound = |domain: u32| {
                start.running.0[rule.counter as usize].sure(domain) + asking.get(&(rule.counter, domain)).copied().unwrap_or(0)
            };
            bench.topology.stands(rule, reach, brought.get(&rule.counter).unwrap_or(&none), &bound, &after)
        })
    })
}

fn in_claims(bench: &mut Bench<'_, '_>, states: &BTreeSet<StateId>, counter: CounterId) -> Set {
    bench.topology.brought(bench.tables, bench.states, states, counter)
}

/// The pods by domain that spread by a counter in which they count: any others can be bound after them.
fn asking(bench: &Bench<'_, '_>, places: &[Place]) -> BTreeMap<(CounterId, u32), u32> {
    let mut asking: BTreeMap<(CounterId, u32), u32> = BTreeMap::new();
    for place in places {
        let rules = bench.classes[place.class].required().keyed.iter();
        for rule in rules.filter(|rule| rule.me && matches!(rule.kind, Aim::Spread { .. })) {
            if let Some(domain) = place.reach[rule.key].single() {
                *asking.entry((rule.counter, domain)).or_default() += u32::try_from(place.count).unwrap_or(u32::MAX);
            }
        }
    }
    asking
}
