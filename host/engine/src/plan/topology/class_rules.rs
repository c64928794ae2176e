//! The rules of a class: what its pods ask for level by level, and what they count in.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use smallvec::SmallVec;
use whittle_model::{NodeClaim, Operator, Requirement, Requirements, Toleration, taint};

use super::asks::{Aim, Wanted};
use super::set::Set;
use super::tally::{CounterId, Local, Tally, put};
use super::{FilterId, HOST, KeyId, Topology};
use crate::intern::Lookup;
use crate::plan::classes::Class;
use crate::plan::premises::Holders;
use crate::plan::states::{ProfileId, StateId, States};
use crate::plan::tables::Tables;
use crate::world::World;

/// What decides which domains a spread rule compares: its key and node filter, what its class may have and tolerates.
type Compares<'a> = (KeyId, FilterId, Vec<ProfileId>, &'a [Toleration]);

/// A rule of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) key: KeyId,
    pub(crate) counter: CounterId,
    pub(crate) kind: Aim,
    /// Whether its own pods count.
    pub(crate) me: bool,
    /// Of a spread: number of the domains that are compared.
    pub(crate) eligible: u32,
}

/// One form in which pods of a class may be asked for a place; the first level is the strictest.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    /// Its number among the levels of all classes.
    pub(crate) id: u32,
    /// Levels of one stage differ by the alternative of their requirements only.
    pub(crate) stage: u32,
    pub(crate) profile: ProfileId,
    /// Rules on single nodes.
    pub(crate) host: SmallVec<[Rule; 1]>,
    /// Rules on the other keys, by key.
    pub(crate) keyed: SmallVec<[Rule; 1]>,
    /// Whether taints that only ask pods to stay away are ignored.
    pub(crate) lenient: bool,
}

/// What a class has of this room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Company {
    pub(crate) levels: Vec<Level>,
    /// Counters in which its pods count, ascending.
    pub(crate) counts: SmallVec<[CounterId; 4]>,
}

impl Level {
    /// Whether others have to be where such a pod is.
    pub(crate) fn needs_company(&self) -> bool {
        self.host.iter().chain(&self.keyed).any(|rule| rule.kind == Aim::Near)
    }

    /// What a place that refused may come to depend on: counts that let more pods in as they grow.
    pub(crate) fn loosening(&self) -> impl Iterator<Item = CounterId> + '_ {
        let keyed = self.keyed.iter().filter(|rule| rule.kind != Aim::Apart);
        keyed.chain(self.host.iter().filter(|rule| rule.kind == Aim::Near)).map(|rule| rule.counter)
    }
}

impl<'w> Topology<'w> {
    /// The levels and counters of pods of a stance, whose alternatives of requirements these are.
    pub(crate) fn company(&mut self, stance: (u32, u32), alternatives: &[Requirements], states: &mut States, asker: u32) -> Company {
        let whos = std::mem::take(&mut self.sets[stance.1 as usize]);
        let asks = std::mem::take(&mut self.asks[stance.0 as usize]);
        let mut counts: SmallVec<[CounterId; 4]> = whos.iter().flat_map(|who| &self.selected[*who as usize]).copied().collect();
        counts.extend(asks.holds.iter().copied());
        counts.sort_unstable();
        counts.dedup();
        let shy = whos.iter().flat_map(|who| &self.owners[*who as usize]).map(|c| Wanted { counter: *c, kind: Aim::Apart });
        let shy: Vec<Wanted> = shy.collect();
        let (last, first) = alternatives.split_last().expect("there is always one alternative");
        let mut levels = Vec::new();
        for (number, stage) in asks.stages.iter().enumerate() {
            let wanted = |alternative: &Requirements| {
                let mut both = alternative.clone();
                stage.node.iter().for_each(|node| both.add_all(node));
                both
            };
            let mut enter = |topology: &mut Self, alternative: &Requirements| {
                let profile = states.profile(&wanted(alternative), asker);
                let rules = stage.rules.iter().chain(&shy);
                let (host, keyed) = topology.rules(rules, &counts);
                let level = Level { id: topology.levels, stage: super::number(number), profile, host, keyed, lenient: stage.lenient };
                topology.levels += 1;
                levels.push(level);
            };
            // As documented, the alternatives are given up before any preference is; when all of
            // these are gone, the alternatives have their turn once more.
            if number == 0 {
                first.iter().for_each(|alternative| enter(self, alternative));
            }
            enter(self, last);
            if number > 0 && number + 1 == asks.stages.len() {
                first.iter().for_each(|alternative| enter(self, alternative));
            }
        }
        self.sets[stance.1 as usize] = whos;
        self.asks[stance.0 as usize] = asks;
        Company { levels, counts }
    }

    fn rules<'r>(&self, wanted: impl Iterator<Item = &'r Wanted>, counts: &[CounterId]) -> (SmallVec<[Rule; 1]>, SmallVec<[Rule; 1]>) {
        let mut all: Vec<Rule> = wanted
            .map(|w| Rule {
                key: self.counters[w.counter as usize].key,
                counter: w.counter,
                kind: w.kind,
                me: counts.binary_search(&w.counter).is_ok(),
                eligible: 0,
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().partition(|rule| rule.key == HOST)
    }

    /// Enters the domains there are, and finds for each spread rule those that it compares.
    pub(crate) fn prepare(
        &mut self,
        world: &'w World,
        (holders, tables): (&Holders<'w>, &Tables<'w>),
        states: &mut States,
        classes: &mut [Class<'w>],
    ) {
        if self.keys.len() > 1 {
            self.enter_domains(world, (holders, tables), states, classes);
        }
        self.watch_flights(world);
        let mut known: BTreeMap<Compares<'_>, u32> = BTreeMap::new();
        for class in classes {
            let spreads = class.company.levels.iter().flat_map(|l| &l.keyed).filter(|r| matches!(r.kind, Aim::Spread { .. }));
            let mut counters: Vec<CounterId> = spreads.map(|r| r.counter).collect();
            counters.sort_unstable();
            counters.dedup();
            for counter in counters {
                let super::Counter { key, filter, .. } = self.counters[counter as usize];
                let sort = (key, filter, class.own.to_vec(), class.tolerations);
                let number = known.get(&sort).copied().unwrap_or_else(|| {
                    let eligible = self.compared(world, tables, states, class, (key, filter));
                    self.eligible.push((counter, eligible));
                    let number = super::number(self.eligible.len() - 1);
                    known.insert(sort, number);
                    number
                });
                for rule in class.company.levels.iter_mut().flat_map(|l| &mut l.keyed).filter(|r| r.counter == counter) {
                    rule.eligible = number;
                }
            }
        }
    }

    fn enter_domains(&mut self, world: &World, (holders, tables): (&Holders<'w>, &Tables<'w>), states: &States, classes: &[Class<'w>]) {
        // Of a node that is registered its own labels count.
        let settled = |claim: &NodeClaim| claim.status.registered.is_some() && holders.joined(claim);
        let coming: Vec<&NodeClaim> = world.claims.values().filter(|claim| !settled(claim)).collect();
        self.of_nodes = vec![Vec::new()];
        for key in HOST + 1..self.keys.len() {
            let name = &self.keys[key];
            let mut names: BTreeSet<String> = BTreeSet::new();
            let mut seen: Lookup<(usize, usize, Option<&Requirement>), ()> = Lookup::default();
            for (number, table) in tables.pools.iter().enumerate() {
                let Some(state) = states.base(number).map(|base| states.get(base)) else { continue };
                // Pools that share what they sell are asked once.
                let same = (Rc::as_ptr(&state.rows).addr(), Rc::as_ptr(&state.offers).addr(), state.requirements.get(name));
                if seen.get(&same).is_none() || !table.resting.is_empty() {
                    names.extend(super::reach::values(table, state, name, true));
                    seen.insert(same, ());
                }
            }
            let mut add = |name: &str| {
                if !names.contains(name) {
                    names.insert(name.to_owned());
                }
            };
            // What a pool leaves open its pods may settle.
            let wanted = classes.iter().flat_map(|class| &class.profiles).filter_map(|profile| states.wanted(*profile).get(name));
            wanted.filter(|wanted| wanted.operator() == Operator::In).flat_map(Requirement::values).for_each(|name| add(name));
            let of_nodes: Vec<Option<&str>> = world.nodes.values().map(|node| node.labels.get(name).map(String::as_str)).collect();
            of_nodes.iter().flatten().for_each(|name| add(name));
            coming.iter().filter_map(|claim| claim.labels.get(name)).for_each(|name| add(name));
            coming.iter().filter_map(|claim| claim.requirements.get(name)).flat_map(Requirement::values).for_each(|name| add(name));
            // Their pool may be closed, and they may still become anything that they allow.
            let mut seen = BTreeSet::new();
            let open = world.claims.values().filter(|claim| claim.status.launched.is_none());
            for claim in open.filter(|claim| seen.insert((&claim.node_pool, &claim.node_class))) {
                world.catalog_of(claim).iter().flat_map(|catalog| super::reach::sold(catalog, name)).for_each(&mut add);
            }
            names.remove("");
            self.names[key] = names.into_iter().collect();
            let number = |value: &str| self.names[key].binary_search_by(|known| known.as_str().cmp(value)).ok().map(super::number);
            self.of_nodes.push(of_nodes.into_iter().map(|value| value.and_then(number)).collect());
        }
    }

    /// The domains that a spread rule of a class compares: those of what can be bought for its pods, and
    /// those of nodes that count.
    fn compared(
        &mut self,
        world: &World,
        tables: &Tables<'_>,
        states: &mut States,
        class: &Class<'_>,
        (key, filter): (KeyId, FilterId),
    ) -> Set {
        let mut all = Set::default();
        for (number, table) in tables.pools.iter().enumerate() {
            if taint::untolerated(&table.pool.template.taints, class.tolerations).is_some() {
                continue;
            }
            let Some(base) = states.base(number) else { continue };
            for profile in &class.own {
                if let Some(state) = states.merge(tables, base, *profile) {
                    all.add(&self.sold_in(tables, states, state, key));
                }
            }
        }
        let departing = crate::plan::refusals::departing(world);
        let staying = world.nodes.values().enumerate().filter(|(_, node)| !departing.contains(node.name.as_str()));
        for (at, node) in staying {
            if self.filters[filter as usize].passes(&node.labels, &node.taints) {
                all.add(&self.reach_of_node(key, at));
            }
        }
        // Until a node is registered its claim tells what it will be.
        let coming = world.claims.values().filter(|c| !c.deleting && c.status.launched.is_some() && c.status.registered.is_none());
        for claim in coming {
            if self.filters[filter as usize].passes(&claim.labels, &claim.taints) {
                all.add(&self.reach_of_labels(key, &claim.labels));
            }
        }
        for flight in self.flights().filter(|flight| !flight.unsure.contains(&filter) && flight.reach[key].single().is_some()) {
            all.add(&flight.reach[key]);
        }
        all
    }

    /// Takes in the domains of claims that spread rules compare though their pods could not be bought a node there: once there
    /// is a node that its policies admit, kube-scheduler counts it. False when none is new.
    pub(crate) fn compare_also(&mut self, tables: &Tables<'_>, states: &States, claims: &BTreeSet<StateId>) -> bool {
        let mut more = false;
        for number in 0..self.eligible.len() {
            let counter = self.eligible[number].0;
            let brought = self.brought(tables, states, claims, counter);
            let known = &mut self.eligible[number].1;
            more |= !brought.within(known);
            known.add(&brought);
        }
        more
    }

    /// The domains that claims in these states surely are in, of those that count for a counter.
    pub(crate) fn brought(&mut self, tables: &Tables<'_>, states: &States, claims: &BTreeSet<StateId>, counter: CounterId) -> Set {
        let of = self.counters[counter as usize];
        let mut brought = Set::default();
        for state in claims {
            if let Some(domain) = self.settled_on(tables, states, *state, of.key)
                && !brought.contains(domain)
                && self.admits(tables, states, *state, &of)
            {
                brought.insert(domain);
            }
        }
        brought
    }

    /// Counts pods that join a claim, which goes over from one state to another with them. `crowd` is told
    /// of each counter what was on the claim and what is.
    #[expect(clippy::too_many_arguments, reason = "a claim, its pods and where they are counted")]
    pub(crate) fn join(
        &mut self,
        tables: &Tables<'_>,
        states: &States,
        tally: &mut Tally,
        (local, counts): (&mut Local, &[CounterId]),
        pods: u32,
        (from, to): (StateId, StateId),
        crowd: &mut dyn FnMut(CounterId, u32, u32),
    ) {
        if from != to {
            for key in HOST + 1..self.keys.len() {
                let before = self.reach(tables, states, from, key).clone();
                let after = self.reach(tables, states, to, key).clone();
                for (counter, pods) in local.iter().filter(|_| before != after) {
                    if self.counters[*counter as usize].key == key {
                        tally.0[*counter as usize].narrow(&before, &after, *pods);
                    }
                }
            }
        }
        for counter in counts.iter().copied() {
            let of = self.counters[counter as usize];
            if !self.admits(tables, states, to, &of) {
                continue;
            }
            let before = put(local, counter, pods);
            crowd(counter, before, before + pods);
            let key = of.key;
            let reach = if key == HOST { Set::default() } else { self.reach(tables, states, to, key).clone() };
            tally.0[counter as usize].placed(key == HOST || !reach.is_empty(), &reach, pods);
        }
    }
}
