//! Why a pool has no domain for pods of a class: the constraint, its key and the counts.

use super::asks::Aim;
use super::class_rules::{Level, Rule};
use super::set::Set;
use super::tally::Tally;
use super::{HOST, Topology};
use crate::plan::states::{StateId, States};
use crate::plan::tables::Tables;

impl Topology<'_> {
    /// The first rule of a level that keeps a new node in this state from holding one of its pods.
    pub(crate) fn why(&mut self, tables: &Tables<'_>, states: &States, level: &Level, state: StateId, tally: &Tally) -> Option<String> {
        for rule in &level.host {
            if rule.kind == Aim::Near && !(rule.me && tally.0[rule.counter as usize].total == 0) {
                let total = tally.0[rule.counter as usize].total;
                let text = format!(
                    "podAffinity on {}: a new node has none of the pods that it selects ({total} are elsewhere)",
                    self.key_name(HOST)
                );
                return Some(text);
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
            (!met).then(|| topology.text(rule, &reach, tally))
        };
        for rule in &level.keyed {
            if let Some(text) = refusing(self, rule) {
                return Some(text);
            }
        }
        let mut wishes = Vec::new();
        let together = self.wishes(level, tally, &mut wishes);
        let unmet = wishes.iter().find(|wish| {
            let reach = &self.reaches[state as usize][wish.key];
            reach.and(&wish.allowed).is_empty() && (wish.must || !reach.is_empty())
        });
        let key = unmet.map(|wish| wish.key).or_else(|| level.keyed.first().filter(|_| !together).map(|rule| rule.key))?;
        Some(format!("no value of {} suits all of its constraints on company together", self.key_name(key)))
    }

    fn text(&self, rule: &Rule, reach: &Set, tally: &Tally) -> String {
        let (count, key) = (&tally.0[rule.counter as usize], self.key_name(rule.key));
        let counts = |domains: &mut dyn Iterator<Item = u32>| {
            let all: Vec<String> = domains.map(|d| format!("{} {}", self.domain_name(rule.key, d), count.sure(d))).collect();
            if all.is_empty() { "there is none".to_owned() } else { all.join(", ") }
        };
        match rule.kind {
            Aim::Spread { skew, min_domains } => {
                let least = self.least(rule, min_domains, tally);
                let compared = counts(&mut self.eligible[rule.eligible as usize].iter());
                format!(
                    "topologySpreadConstraints on {key} with maxSkew {skew}: no domain there may have one more, least is {least} ({compared})"
                )
            }
            Aim::Near if count.total == 0 => format!("podAffinity on {key}: no pod that it selects has a place"),
            Aim::Near => {
                format!("podAffinity on {key}: none of the pods that it selects is in a domain there ({})", counts(&mut count.present()))
            }
            Aim::Apart => {
                let open = if reach.iter().any(|d| count.sure(d) == 0) {
                    "; nodes whose domain is open yet may come to be in the others"
                } else {
                    ""
                };
                format!(
                    "podAntiAffinity on {key}: every domain there has pods that exclude or are excluded ({}{open})",
                    counts(&mut reach.iter())
                )
            }
        }
    }
}
