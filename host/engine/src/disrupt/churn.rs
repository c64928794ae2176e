//! Who was moved lately, and off what: pods that came from a type by a move are not moved back to it within a day. Prices
//! and opinions that swing would otherwise carry them to and fro, and each restart would seem to save.
//!
//! What must not enter: nodes that were bought for pods that waited.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, NodeClaim, Timestamp, keys};

/// So long a move is remembered.
const REMEMBERED: Duration = Duration::minutes(24 * 60);
/// A node that is bought within this time after one of its type was taken away shows that the move was a mistake.
const REGRETTED: Duration = Duration::minutes(10);

/// So many moves are noted on a claim at most, the newest: annotations are short.
const NOTED: usize = 32;

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Churn {
    /// By claim that was bought for a move: the moves its pods went through, and off which type each was.
    lines: BTreeMap<String, Vec<(Timestamp, String)>>,
    /// Nodes that went because their pods fitted elsewhere: pool, type, and when.
    gone: Vec<(String, String, Timestamp)>,
}

impl Churn {
    /// A move exchanges these claims, of these types, for others.
    pub(super) fn exchanged(&mut self, old: &[(String, String)], new: &[&str], now: Timestamp) {
        let mut line: Vec<(Timestamp, String)> =
            old.iter().flat_map(|(claim, _)| self.lines.get(claim).into_iter().flatten().cloned()).collect();
        line.extend(old.iter().map(|(_, of)| (now, of.clone())));
        line.sort();
        line.dedup();
        for claim in new {
            self.lines.insert((*claim).to_owned(), line.clone());
        }
    }

    /// Notes on a claim what is known of it.
    pub(super) fn note(&self, claim: &mut NodeClaim, now: Timestamp) {
        let line: Vec<(Timestamp, &str)> = self.recent(&claim.name, now).map(|(at, of)| (*at, of.as_str())).collect();
        if !line.is_empty() {
            claim.note_moved_off(line.iter().skip(line.len().saturating_sub(NOTED)).copied());
        }
    }

    /// Takes up what an earlier life noted on a claim.
    pub(super) fn recall(&mut self, claim: &NodeClaim) {
        if self.knows(&claim.name) || !claim.annotations.contains_key(keys::MOVED_OFF) {
            return;
        }
        let line = claim.moved_off();
        if !line.is_empty() {
            self.lines.insert(claim.name.clone(), line);
        }
    }

    /// How many different exchanges are known since a time, at least.
    pub(super) fn since(&self, since: Timestamp) -> usize {
        let all: BTreeSet<&(Timestamp, String)> = self.lines.values().flatten().filter(|(at, _)| *at >= since).collect();
        all.len()
    }

    /// A node of this pool and type goes, and nothing is bought for its pods.
    pub(super) fn deleted(&mut self, pool: &str, of: &str, now: Timestamp) {
        self.gone.push((pool.to_owned(), of.to_owned(), now));
    }

    /// A node of this pool and type was bought for pods that waited: whether one like it went a moment ago.
    pub(super) fn regretted(&mut self, pool: &str, of: &str, now: Timestamp) -> bool {
        self.gone.retain(|(_, _, at)| now.since(*at) < REGRETTED);
        let found = self.gone.iter().position(|(p, t, _)| p == pool && t == of);
        found.map(|at| self.gone.remove(at)).is_some()
    }

    /// Whether a claim was bought for a move.
    pub(super) fn knows(&self, claim: &str) -> bool {
        self.lines.contains_key(claim)
    }

    /// The types that pods of a claim were moved off.
    pub(super) fn came_from(&self, claim: &str, now: Timestamp) -> BTreeSet<String> {
        self.recent(claim, now).map(|(_, of)| of.clone()).collect()
    }

    /// When pods of a claim were last moved, and how many times within a day.
    pub(crate) fn moves(&self, claim: &str, now: Timestamp) -> (Option<Timestamp>, usize) {
        let times: BTreeSet<Timestamp> = self.recent(claim, now).map(|(at, _)| *at).collect();
        (times.last().copied(), times.len())
    }

    fn recent(&self, claim: &str, now: Timestamp) -> impl Iterator<Item = &(Timestamp, String)> {
        self.lines.get(claim).into_iter().flatten().filter(move |(at, _)| now.since(*at) < REMEMBERED)
    }

    /// When the next move is forgotten.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.lines.values().flatten().map(|(at, _)| at.plus(REMEMBERED));
        all.filter(|at| *at > now).min()
    }

    /// A claim is gone.
    pub(super) fn forget(&mut self, claim: &str) {
        self.lines.remove(claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(claim: &str, of: &str) -> (String, String) {
        (claim.to_owned(), of.to_owned())
    }

    #[test]
    fn a_line_remembers_every_type_it_came_from_for_a_day() {
        let mut churn = Churn::default();
        let at = |hours: i64| Timestamp(0).plus(Duration::minutes(hours * 60));
        churn.exchanged(&[pair("a", "m5.xlarge"), pair("b", "c5.large")], &["c"], at(1));
        churn.exchanged(&[pair("c", "m6.xlarge")], &["d", "e"], at(2));
        let from = |churn: &Churn, claim: &str, hours: i64| churn.came_from(claim, at(hours)).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(from(&churn, "d", 3), "c5.large m5.xlarge m6.xlarge");
        assert_eq!(from(&churn, "e", 25), "m6.xlarge");
        assert_eq!(from(&churn, "a", 3), "");
        assert_eq!(
            (churn.moves("d", at(3)), churn.moves("d", at(25)), churn.moves("x", at(3))),
            ((Some(at(2)), 2), (Some(at(2)), 1), (None, 0))
        );
        let mut claim = NodeClaim { name: "d".to_owned(), ..NodeClaim::default() };
        churn.note(&mut claim, at(25));
        assert_eq!(claim.annotations[keys::MOVED_OFF], format!(r#"[[{},"m6.xlarge"]]"#, at(2).0));
        churn.note(&mut claim, at(3));
        let mut other = Churn::default();
        other.recall(&claim);
        assert_eq!((from(&other, "d", 3), from(&other, "d", 25)), (from(&churn, "d", 3), from(&churn, "d", 25)));
        claim = NodeClaim { name: "x".to_owned(), annotations: [(keys::MOVED_OFF.to_owned(), "mine".to_owned())].into(), ..claim };
        other.recall(&claim);
        assert!(!other.knows("x"), "what cannot be read says nothing");
        assert_eq!((other.since(at(2)), other.since(at(1)), other.since(at(3))), (1, 3, 0));
        churn.forget("d");
        assert_eq!((from(&churn, "d", 3), churn.knows("d"), churn.knows("e")), (String::new(), false, true));
    }

    #[test]
    fn a_node_that_is_bought_again_at_once_shows_a_mistake_once() {
        let mut churn = Churn::default();
        churn.deleted("p", "m5.large", Timestamp(0));
        assert!(!churn.regretted("q", "m5.large", Timestamp(1)) && !churn.regretted("p", "m5.xlarge", Timestamp(1)));
        assert!(churn.regretted("p", "m5.large", Timestamp(2)) && !churn.regretted("p", "m5.large", Timestamp(3)));
        churn.deleted("p", "m5.large", Timestamp(0));
        assert!(!churn.regretted("p", "m5.large", Timestamp(0).plus(REGRETTED)));
    }
}
