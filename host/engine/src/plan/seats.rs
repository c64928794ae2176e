//! Who sits where on what exists: first those for whom it was meant, then by the documented order,
//! pod by pod with what is bought.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::PodKey;

use super::bins::{self, Bins};
use super::classes::{self, Class, Member};
use super::greedy::{self, Bench, Draft, Ground, Manner};
use super::limits::Remaining;
use super::states::StateId;
use super::topology::asks::Aim;
use super::topology::tally::{CounterId, Tally};
use super::topology::wishes::{Asking, Outcome, Wish};
use crate::world::World;

/// Who sits where on what exists, by class.
#[derive(Debug, Default)]
pub(crate) struct Seats<'w> {
    /// Pods with a bin of their own from an earlier plan or a nomination, and their class.
    kept: Vec<(PodKey, usize, usize)>,
    /// Members of each class that were not kept, in order; those on bins first.
    pub(crate) members: Vec<Vec<&'w PodKey>>,
    /// Bin and count for each class, in order.
    filled: Vec<Vec<(usize, usize)>>,
    /// How many pods of each class have no seat.
    pub(crate) left: Vec<usize>,
}

impl<'w> Seats<'w> {
    /// Nobody has a seat: members of each class, of whom so many are to be placed.
    pub(crate) fn standing_all(members: Vec<Vec<&'w PodKey>>, left: Vec<usize>) -> Self {
        Self { members, left, ..Self::default() }
    }

    fn new(classes: &[Class<'w>], kept: &[Kept<'w>]) -> Self {
        let staying: BTreeSet<&PodKey> = kept.iter().map(|k| k.key).collect();
        let standing = |class: &Class<'w>| class.members.iter().map(|m| m.key).filter(|key| !staying.contains(key)).collect();
        Self {
            kept: kept.iter().map(|k| (k.key.clone(), k.class, k.bin)).collect(),
            members: classes.iter().map(standing).collect(),
            filled: vec![Vec::new(); classes.len()],
            left: vec![0; classes.len()],
        }
    }
}

impl Seats<'_> {
    pub(crate) fn placed(&self, bins: &Bins<'_>, classes: &[Class<'_>]) -> BTreeMap<String, Vec<PodKey>> {
        let mut placed: BTreeMap<String, Vec<PodKey>> = BTreeMap::new();
        for (key, _, bin) in &self.kept {
            placed.entry(bins.get(*bin).name.to_owned()).or_default().push(key.clone());
        }
        for (class, filled) in self.filled.iter().enumerate().take(classes.len()) {
            let mut members = self.members[class].iter();
            for (bin, count) in filled {
                let keys = members.by_ref().take(*count).map(|key| (*key).clone());
                placed.entry(bins.get(*bin).name.to_owned()).or_default().extend(keys);
            }
        }
        placed
    }

    /// Class, bin and number of all that sit somewhere.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let filled =
            self.filled.iter().enumerate().flat_map(|(class, filled)| filled.iter().map(move |(bin, count)| (class, *bin, *count)));
        self.kept.iter().map(|(_, class, bin)| (*class, *bin, 1)).chain(filled)
    }

    /// Seats pods that had none: class, bin and number.
    pub(crate) fn seat(&mut self, seated: &[(usize, usize, usize)]) {
        for (class, bin, count) in seated {
            self.left[*class] -= count;
            match self.filled[*class].last_mut() {
                Some((last, so_far)) if last == bin => *so_far += count,
                _ => self.filled[*class].push((*bin, *count)),
            }
        }
    }

    /// The members of a class without a seat, in order.
    pub(crate) fn standing(&self, class: usize) -> &[&PodKey] {
        let members = &self.members[class];
        &members[members.len() - self.left[class]..]
    }
}

/// A pod that stays where it was meant to go.
struct Kept<'w> {
    class: usize,
    key: &'w PodKey,
    bin: usize,
    /// Whether its constraints on company did not hold yet when it was asked: who comes before it is
    /// not known any more.
    doubtful: bool,
}

/// Places all pods by the documented rule, on what exists and on new claims. Returns the claims, and the
/// counts of what is on what exists. Pods that were meant for a place stay there if that holds in the end.
pub(crate) fn place<'w>(
    world: &'w World,
    bench: &mut Bench<'_, 'w>,
    bins: &mut Bins<'w>,
    running: &Tally,
    remaining: &Remaining,
) -> (Seats<'w>, Draft, Tally) {
    let (mut released, mut insisted): (BTreeSet<&PodKey>, BTreeSet<&PodKey>) = Default::default();
    loop {
        let mut tally = running.clone();
        let (kept, company) = keep(world, bench, bins, &mut tally, (&released, &insisted));
        let mut seats = Seats::new(bench.classes, &kept);
        let mut seated = tally.clone();
        let draft = fill(bench, bins, &mut tally, &mut seats, &kept, remaining);
        for (class, bin, count) in &draft.seated {
            bins.count(*bin, &bench.classes[*class], *count, bench.topology, &mut seated);
        }
        let before = released.len();
        if kept.iter().any(|k| k.doubtful) {
            let askers = askers(bench, bins, &kept, &draft);
            let outcome = Outcome { before: running, after: &tally, askers: &askers, company: &company };
            let holds = |k: &Kept<'_>| bench.topology.holds(bench.classes[k.class].required(), bins.reach(k.bin), &outcome);
            let broken: Vec<&PodKey> = kept.iter().filter(|k| k.doubtful && !holds(k)).map(|k| k.key).collect();
            released.extend(broken);
        }
        let states: BTreeSet<StateId> = draft.claims.iter().map(|claim| claim.state).collect();
        let compared = bench.topology.compare_also(bench.tables, bench.states, &states);
        let insisting = insist(world, &seats, &mut insisted);
        if released.len() == before && !compared && !insisting {
            return (seats, draft, seated);
        }
        bins.undo();
    }
}

/// Notes pods that would lose the room that the last plan had for them on a node in use; false when there are no more. By
/// the order of plans, what waits for nodes to come may draw them away from where kube-scheduler is about to bind them.
fn insist<'w>(world: &World, seats: &Seats<'w>, insisted: &mut BTreeSet<&'w PodKey>) -> bool {
    let before = insisted.len();
    if !world.seated.is_empty() {
        for (members, left) in seats.members.iter().zip(&seats.left) {
            insisted.extend(members[members.len() - left..].iter().filter(|key| world.seated.contains_key(**key)));
        }
    }
    insisted.len() > before
}

/// The pods of a plan by domain that spread by a counter in which they count: any others can be bound
/// after them.
fn askers(bench: &mut Bench<'_, '_>, bins: &Bins<'_>, kept: &[Kept<'_>], draft: &Draft) -> BTreeMap<(CounterId, u32), u32> {
    let mut counts: BTreeMap<(CounterId, u32), u32> = BTreeMap::new();
    let mut add = |class: &Class<'_>, count: usize, reach: &mut dyn FnMut(usize) -> Option<u32>| {
        for rule in class.required().keyed.iter().filter(|rule| rule.me && matches!(rule.kind, Aim::Spread { .. })) {
            if let Some(domain) = reach(rule.key) {
                *counts.entry((rule.counter, domain)).or_default() += u32::try_from(count).unwrap_or(u32::MAX);
            }
        }
    };
    let seated = draft.seated.iter().copied().chain(kept.iter().map(|k| (k.class, k.bin, 1)));
    for (class, bin, count) in seated {
        add(&bench.classes[class], count, &mut |key| bins.reach(bin)[key].single());
    }
    for claim in &draft.claims {
        for (class, count) in &claim.content {
            add(&bench.classes[*class], *count, &mut |key| bench.topology.reach(bench.tables, bench.states, claim.state, key).single());
        }
    }
    counts
}

/// Leaves pods where they were meant to go, as far as they still may. Each is asked again as long as that
/// lets more of them stay; the rest stay on trial. Returns also the counts without those on trial that need company.
fn keep<'w>(
    world: &'w World,
    bench: &mut Bench<'_, 'w>,
    bins: &mut Bins<'w>,
    tally: &mut Tally,
    (released, insisted): (&BTreeSet<&PodKey>, &BTreeSet<&PodKey>),
) -> (Vec<Kept<'w>>, Tally) {
    let (classes, topology, states) = (bench.classes, &*bench.topology, &*bench.states);
    let mut meant: Vec<(usize, &'w PodKey, usize, bool)> = Vec::new();
    for (number, class) in classes.iter().enumerate() {
        let bin_of = |pod: &Member<'w>| bins::meant_for(world, pod).and_then(|name| bins.find(name)).map(|bin| (bin, false));
        let seat_of = |pod: &Member<'w>| {
            world.seated.get(pod.key).filter(|_| insisted.contains(pod.key)).and_then(|name| bins.find(name)).map(|bin| (bin, true))
        };
        let members = class.members.iter().filter(|m| !released.contains(m.key));
        meant.extend(members.filter_map(|m| bin_of(m).or_else(|| seat_of(m)).map(|(bin, soon)| (number, m.key, bin, soon))));
    }
    // Whoever is about to be bound is there before all that wait for their nodes, and whoever has to spread goes before those
    // that only count.
    meant.sort_by_key(|(class, pod, _, soon)| {
        (world.buffers.holds(pod), !soon, classes[*class].company.levels.iter().all(|l| l.keyed.is_empty() && l.host.is_empty()))
    });
    let mut kept: Vec<Kept<'w>> = Vec::new();
    let mut wishes: Vec<Wish> = Vec::new();
    let mut company = Tally::default();
    for doubtful in [false, true] {
        loop {
            let before = meant.len();
            meant.retain(|(number, key, bin, soon)| {
                let class = &classes[*number];
                // A node in use is no pod's before kube-scheduler thinks so too.
                let stays = !(doubtful && *soon)
                    && class.company.levels.iter().any(|level| {
                        if doubtful {
                            wishes.clear();
                        } else if !topology.wishes(level, tally, &mut wishes) {
                            return false;
                        }
                        bins.capacity(*bin, Asking { class, level, wishes: &wishes, tally }, states, 1) > 0
                    });
                if stays {
                    bins.place(*bin, class, 1, topology, tally);
                    if doubtful && !class.required().needs_company() {
                        bins.count(*bin, class, 1, topology, &mut company);
                    }
                    kept.push(Kept { class: *number, key, bin: *bin, doubtful });
                }
                !stays
            });
            if meant.is_empty() || meant.len() == before {
                break;
            }
        }
        if !doubtful {
            company.clone_from(tally);
        }
    }
    (kept, company)
}

/// Places what was not kept.
fn fill<'w>(
    bench: &mut Bench<'_, 'w>,
    bins: &mut Bins<'w>,
    tally: &mut Tally,
    seats: &mut Seats<'w>,
    kept: &[Kept<'w>],
    remaining: &Remaining,
) -> Draft {
    seats.left = seats.members.iter().map(Vec::len).collect();
    let staying: BTreeSet<&PodKey> = kept.iter().map(|k| k.key).collect();
    let mut runs = classes::runs_among(bench.classes, &seats.left, &|key| !staying.contains(key));
    bench.topology.tighter_first(bench.tables, bench.states, bench.classes, &mut runs);
    let mut ground = Ground { bins: Some(bins), tally, remaining: &mut remaining.clone(), manner: Manner::default() };
    let draft = greedy::pack(bench, &mut ground, &runs);
    seats.seat(&draft.seated);
    draft
}
