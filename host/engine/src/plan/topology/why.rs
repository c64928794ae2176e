//! Why a pool has no domain for pods of a class: the constraint, its key and the counts.

use super::asks::Aim;
use super::class_rules::{Level, Rule};
use super::set::Set;
use super::tally::Tally;
use super::{HOST, Topology};
use crate::plan::states::{StateId, States};
use crate::plan::tables::Tables;
use crate::report::TopologyRefusal;

impl Topology<'_> {
    /// The first rule of a level that keeps a new node in this state from holding one of its pods.
    pub(crate) fn why(
        &mut self,
        tables: &Tables<'_>,
        states: &States,
        level: &Level,
        state: StateId,
        tally: &Tally,
    ) -> Option<TopologyRefusal> {
        for rule in &level.host {
            if rule.kind == Aim::Near && !(rule.me && tally.0[rule.counter as usize].total == 0) {
                let total = tally.0[rule.counter as usize].total;
                return Some(TopologyRefusal::NoneThere { key: self.key_name(HOST).to_owned(), elsewhere: total });
            }
        }
        let refusing = |topology: &mut Self, rule: &Rule| {
            let reach = topology.reach(tables, states, state, rule.key).clone();
            let alone = Level { keyed: std::iter::once(*rule).collect(), host: smallvec::SmallVec::new(), ..level.clone() };
            let mut wishes = Vec::new();
            let able = topology.wishes(&alone, tally, &mut wishes);
            let met = able
                && wishes
                    .iter()
                    .all(|wish| wish.follow.is_none() && (!reach.and(&wish.allowed).is_empty() || (!wish.must && reach.is_empty())));
            (!met).then(|| topology.refusal(rule, &reach, tally))
        };
        for rule in &level.keyed {
            if let Some(refusal) = refusing(self, rule) {
                return Some(refusal);
            }
        }
        let mut wishes = Vec::new();
        let together = self.wishes(level, tally, &mut wishes);
        let unmet = wishes.iter().find(|wish| {
            let reach = &self.reaches[state as usize][wish.key];
            reach.and(&wish.allowed).is_empty() && (wish.must || !reach.is_empty())
        });
        let key = unmet.map(|wish| wish.key).or_else(|| level.keyed.first().filter(|_| !together).map(|rule| rule.key))?;
        Some(TopologyRefusal::Together { key: self.key_name(key).to_owned() })
    }

    fn refusal(&self, rule: &Rule, reach: &Set, tally: &Tally) -> TopologyRefusal {
        let (count, key) = (&tally.0[rule.counter as usize], self.key_name(rule.key).to_owned());
        let counts = |domains: &mut dyn Iterator<Item = u32>| {
            domains.map(|d| (self.domain_name(rule.key, d).to_owned(), count.sure(d))).collect::<Vec<(String, u32)>>()
        };
        match rule.kind {
            Aim::Spread { skew, min_domains } => {
                let least = self.least(rule, min_domains, tally);
                let counts = counts(&mut self.eligible[rule.eligible as usize].1.iter());
                TopologyRefusal::Spread { key, max_skew: skew, least, counts }
            }
            Aim::Near if count.total == 0 => TopologyRefusal::NoPods { key },
            Aim::Near => TopologyRefusal::PodsElsewhere { key, counts: counts(&mut count.present()) },
            Aim::Apart => {
                let open = reach.iter().any(|d| count.sure(d) == 0);
                TopologyRefusal::Excluded { key, counts: counts(&mut reach.iter()), open }
            }
        }
    }
}
