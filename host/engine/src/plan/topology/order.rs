//! Who goes first among pods that seek each other: those with fewer domains to choose from. Were the
//! free ones first, they could settle where the others cannot follow.

use std::collections::{BTreeMap, BTreeSet};

use super::asks::Aim;
use super::set::Set;
use super::tally::CounterId;
use super::{HOST, KeyId, Topology};
use crate::plan::classes::{Class, Run};
use crate::plan::states::{ProfileId, States};
use crate::plan::tables::Tables;

impl Topology<'_> {
    /// Moves runs of pods with little choice before those of pods that seek them, or that they seek.
    pub(crate) fn tighter_first(&mut self, tables: &Tables<'_>, states: &mut States, classes: &[Class<'_>], runs: &mut Vec<Run>) {
        let mut seekers: BTreeMap<CounterId, BTreeSet<usize>> = BTreeMap::new();
        for (number, class) in classes.iter().enumerate() {
            for rule in class.required().keyed.iter().filter(|rule| rule.kind == Aim::Near) {
                seekers.entry(rule.counter).or_default().insert(number);
            }
        }
        if seekers.is_empty() {
            return;
        }
        for (number, class) in classes.iter().enumerate() {
            for counter in &class.company.counts {
                if let Some(members) = seekers.get_mut(counter) {
                    members.insert(number);
                }
            }
        }
        for (counter, members) in seekers {
            let alike = |a: &usize| classes[*a].profiles == classes[*members.first().unwrap_or(a)].profiles;
            if members.iter().all(alike) {
                continue;
            }
            let key = self.counters[counter as usize].key;
            let choices: BTreeMap<usize, u32> =
                members.iter().map(|m| (*m, self.choices(tables, states, key, &classes[*m].profiles))).collect();
            let Some(first) = runs.iter().position(|run| choices.contains_key(&run.class)) else { continue };
            let most = choices[&runs[first].class];
            let tighter = |run: &Run| choices.get(&run.class).is_some_and(|choice| *choice < most);
            let mut ahead: Vec<Run> = runs[first..].iter().copied().filter(tighter).collect();
            ahead.sort_by_key(|run| choices[&run.class]);
            let mut rest: Vec<Run> = runs[first..].iter().copied().filter(|run| !tighter(run)).collect();
            runs.truncate(first);
            runs.append(&mut ahead);
            runs.append(&mut rest);
        }
    }

    /// How many domains of a key pods of these alternatives could have on new nodes.
    fn choices(&mut self, tables: &Tables<'_>, states: &mut States, key: KeyId, profiles: &[ProfileId]) -> u32 {
        if key == HOST {
            return u32::MAX;
        }
        let mut all = Set::default();
        for pool in 0..tables.pools.len() {
            for profile in profiles {
                let Some(state) = states.base(pool).and_then(|base| states.merge(tables, base, *profile)) else { continue };
                all.add(&self.sold_in(tables, states, state, key));
            }
        }
        all.len()
    }
}
