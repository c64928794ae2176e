//! What the rules of a level come to at one moment: for each key the domains that will do, the best
//! first, and whether one of them has to be settled on.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::asks::Aim;
use super::class_rules::{Level, Rule};
use super::set::Set;
use super::tally::{Count, CounterId, Local, Tally, there};
use super::{KeyId, Topology};
use crate::plan::classes::Class;

/// Pods that ask for a place in one form, and how things stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a, 'w> {
    pub(crate) class: &'a Class<'w>,
    pub(crate) level: &'a Level,
    pub(crate) wishes: &'a [Wish],
    pub(crate) tally: &'a Tally,
}

/// What a level wants of one key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) key: KeyId,
    /// The domains that will do, as a set and in order: least loaded first, then by name.
    pub(crate) allowed: Set,
    pub(crate) order: SmallVec<[u32; 4]>,
    /// Whether the node must have the label at all.
    pub(crate) must: bool,
    /// Whether a claim must settle on one domain.
    pub(crate) single: bool,
    /// Whether its own pods count for one of the rules.
    pub(crate) me: bool,
    /// Only places that hold pods of this counter will do: those it means are on claims whose domain
    /// is open, and joining them settles it.
    pub(crate) follow: Option<CounterId>,
    /// Of spread rules: the counter, and how many pods a domain may have of it already.
    pub(crate) caps: SmallVec<[(CounterId, u32); 1]>,
}

/// What a plan comes to for those whose rules could not be checked when they were seated.
pub(crate) struct Outcome<'t> {
    /// The counts before the plan.
    pub(crate) before: &'t Tally,
    /// The counts after it.
    pub(crate) after: &'t Tally,
    /// Its pods that are counted where they spread, by counter and domain: any others can be bound after them.
    pub(crate) askers: &'t BTreeMap<(CounterId, u32), u32>,
    /// The counts of those who are there whatever becomes of pods that need company.
    pub(crate) company: &'t Tally,
}

impl Wish {
    /// Whether a claim with these pods, whose domain is open, may settle on a domain: they come along.
    pub(crate) fn bears(&self, local: &Local, domain: u32, tally: &Tally) -> bool {
        self.caps.iter().all(|(counter, most)| tally.0[*counter as usize].sure(domain) + there(local, *counter) <= *most)
    }
}

impl Topology<'_> {
    /// What `level` wants now; false when no domain will do.
    pub(crate) fn wishes(&self, level: &Level, tally: &Tally, wishes: &mut Vec<Wish>) -> bool {
        wishes.clear();
        let mut rules = &level.keyed[..];
        while let Some(first) = rules.first() {
            let count = rules.iter().take_while(|rule| rule.key == first.key).count();
            let wish = self.wish(&rules[..count], tally);
            if wish.must && wish.allowed.is_empty() {
                return false;
            }
            wishes.push(wish);
            rules = &rules[count..];
        }
        true
    }

    fn wish(&self, rules: &[Rule], tally: &Tally) -> Wish {
        let mut wish = Wish { key: rules[0].key, ..Wish::default() };
        let all = self.domains(wish.key);
        let mut load: SmallVec<[(u32, u32); 4]> = (0..all).map(|domain| (0, domain)).collect();
        for rule in rules {
            let count = &tally.0[rule.counter as usize];
            match rule.kind {
                Aim::Spread { skew, min_domains } => {
                    let (least, eligible) = (self.least(rule, min_domains, tally), &self.eligible[rule.eligible as usize].1);
                    let most = (least + skew).saturating_sub(u32::from(rule.me));
                    load.retain(|(_, domain)| eligible.contains(*domain) && count.sure(*domain) <= most);
                    load.iter_mut().for_each(|(pods, domain)| *pods += count.sure(*domain));
                    wish.caps.push((rule.counter, most));
                }
                Aim::Near if count.present().next().is_some() => load.retain(|(_, domain)| count.sure(*domain) > 0),
                Aim::Near if count.total > 0 => wish.follow = Some(rule.counter),
                Aim::Near if rule.me => {}
                Aim::Near => load.clear(),
                Aim::Apart => load.retain(|(_, domain)| !count.feared(*domain)),
            }
            wish.must |= rule.kind != Aim::Apart;
            wish.me |= rule.me;
            // One that others of its own kind must avoid does not keep more domains than it needs.
            wish.single |= rule.kind != Aim::Apart || rule.me;
        }
        load.sort_unstable();
        wish.allowed = load.iter().map(|(_, domain)| *domain).collect();
        wish.order = load.into_iter().map(|(_, domain)| domain).collect();
        wish
    }

    /// Whether the keyed rules of a level can hold in some order of binding, of a pod that is in these domains.
    pub(crate) fn holds(&self, level: &Level, reach: &[Set], outcome: &Outcome<'_>) -> bool {
        level.keyed.iter().all(|rule| {
            let (count, me) = (&outcome.after.0[rule.counter as usize], u32::from(rule.me));
            match (rule.kind, reach[rule.key].single()) {
                (Aim::Apart, _) => reach[rule.key].iter().all(|domain| count.at(domain) <= me),
                (Aim::Spread { .. } | Aim::Near, None) => false,
                (Aim::Spread { skew, min_domains }, Some(domain)) => {
                    let asking = outcome.askers.get(&(rule.counter, domain)).copied().unwrap_or(0);
                    outcome.before.0[rule.counter as usize].sure(domain) + asking <= self.least(rule, min_domains, outcome.after) + skew
                }
                // Those who need company themselves are none to each other: somebody has to be the first.
                (Aim::Near, Some(domain)) => outcome.company.0[rule.counter as usize].sure(domain) > 0 || (rule.me && count.total == 1),
            }
        })
    }

    /// The least count of the domains that a spread rule compares.
    pub(crate) fn least(&self, rule: &Rule, min_domains: u32, tally: &Tally) -> u32 {
        least_of(&self.eligible[rule.eligible as usize].1, &tally.0[rule.counter as usize], min_domains)
    }

    /// Whether a rule holds in the end of a pod in these domains, when claims have brought `brought` to what is compared.
    /// `bound` tells of a domain how many are bound there when the last is that asks.
    pub(crate) fn stands(&self, rule: &Rule, reach: &Set, brought: &Set, bound: &dyn Fn(u32) -> u32, after: &Tally) -> bool {
        let (count, me) = (&after.0[rule.counter as usize], u32::from(rule.me));
        match rule.kind {
            Aim::Apart => reach.iter().all(|domain| count.at(domain) <= me),
            Aim::Near => !reach.is_empty() && ((rule.me && count.total == 1) || reach.iter().all(|domain| count.sure(domain) > me)),
            Aim::Spread { skew, min_domains } => {
                let mut compared = self.eligible[rule.eligible as usize].1.clone();
                compared.add(brought);
                let most = least_of(&compared, count, min_domains) + skew;
                // One that counts itself has to be somewhere.
                (reach.single().is_some() || !(rule.me || reach.is_empty())) && reach.iter().all(|domain| bound(domain) <= most)
            }
        }
    }
}

fn least_of(compared: &Set, count: &Count, min_domains: u32) -> u32 {
    if compared.len() < min_domains {
        return 0;
    }
    compared.iter().map(|domain| count.sure(domain)).min().unwrap_or(0)
}

/// How many more pods of a class its rules on single nodes admit beside what is there.
pub(crate) fn beside(level: &Level, local: &Local, tally: &Tally) -> u32 {
    let mut most = u32::MAX;
    for rule in &level.host {
        let present = there(local, rule.counter);
        let admitted = match rule.kind {
            Aim::Spread { skew, .. } if rule.me => skew.saturating_sub(present),
            Aim::Spread { skew, .. } => {
                if present <= skew {
                    u32::MAX
                } else {
                    0
                }
            }
            Aim::Near if present > 0 || (rule.me && tally.0[rule.counter as usize].total == 0) => u32::MAX,
            Aim::Near => 0,
            Aim::Apart if present > 0 => 0,
            Aim::Apart if rule.me => 1,
            Aim::Apart => u32::MAX,
        };
        most = most.min(admitted);
    }
    most
}

/// Whether a refusal by the rules on single nodes is for good: only company that is sought may come.
pub(crate) fn lasting(level: &Level) -> bool {
    level.host.iter().all(|rule| rule.kind != Aim::Near)
}
