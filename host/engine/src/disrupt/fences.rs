//! What keeps a node from being disrupted for the sake of its pods: `karpenter.sh/do-not-disrupt`, for ever or for a
//! while, and PodDisruptionBudgets. Asked once for pods that are alike.
//!
//! What must not enter: what is done about it.

use std::sync::Arc;

use whittle_model::{Duration, Effect, PodDisruptionBudget, PodKey, Taint, Timestamp, keys};

use crate::intern::Lookup;
use crate::world::{PodRecord, World};

/// The fences around the pods of a world.
pub(super) struct Fences<'w> {
    world: &'w World,
    now: Timestamp,
    budgets: Lookup<u32, Arc<[&'w PodDisruptionBudget]>>,
    disrupted: Taint,
    /// When the first protection for a while is over.
    pub(super) next: Option<Timestamp>,
}

/// How a pod asks to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Never,
    For(Duration),
    Unreadable,
}

impl<'w> Fences<'w> {
    pub(super) fn new(world: &'w World, now: Timestamp) -> Self {
        let disrupted = Taint::new(keys::DISRUPTED_TAINT, "", Effect::NoSchedule);
        Self { world, now, budgets: Lookup::default(), disrupted, next: None }
    }

    /// Why a pod that holds room must not be moved, if so.
    pub(super) fn around(&mut self, key: &PodKey, record: &PodRecord) -> Option<String> {
        if let Some(why) = self.protected(key, record) {
            return Some(why);
        }
        let world = self.world;
        let static_pod = world.identity_of(record).owner.as_ref().is_some_and(|owner| owner.kind == "Node");
        if record.deleting || static_pod || world.budgets.is_empty() {
            return None;
        }
        let budgets = self.budgets_of(key, record);
        if budgets.is_empty() || self.disrupted.tolerated_by(&world.shape_of(record).tolerations) {
            return None;
        }
        if budgets.len() > 1 {
            let names: Vec<String> = budgets.iter().map(|budget| budget.key.to_string()).collect();
            return Some(format!("pod {key} has more than one PodDisruptionBudget ({}), and eviction refuses that", names.join(", ")));
        }
        let budget = budgets.first()?;
        let free = budget.allowed > 0 || (budget.always_allow_unready && !record.ready);
        (!free).then(|| format!("PodDisruptionBudget {} lets pod {key} not go now", budget.key))
    }

    fn protected(&mut self, key: &PodKey, record: &PodRecord) -> Option<String> {
        let wish = wish(self.world.identity_of(record).annotations.get(keys::DO_NOT_DISRUPT)?)?;
        match wish {
            Wish::Never => Some(format!("pod {key} has the annotation {}", keys::DO_NOT_DISRUPT)),
            Wish::Unreadable => None,
            Wish::For(span) => {
                let Some(started) = record.started else {
                    return Some(format!("pod {key} is not to be disrupted for {span}, and has not started"));
                };
                let until = started.plus(span);
                if until <= self.now {
                    return None;
                }
                self.next = Some(self.next.map_or(until, |next| next.min(until)));
                Some(format!("pod {key} is not to be disrupted for another {}", until.since(self.now)))
            }
        }
    }

    fn budgets_of(&mut self, key: &PodKey, record: &PodRecord) -> Arc<[&'w PodDisruptionBudget]> {
        if let Some(known) = self.budgets.get(&record.identity) {
            return Arc::clone(known);
        }
        let labels = &self.world.identity_of(record).labels;
        let selects = |budget: &&PodDisruptionBudget| budget.key.namespace == key.namespace && budget.selector.matches(labels);
        let found: Arc<[&PodDisruptionBudget]> = self.world.budgets.values().filter(selects).collect();
        self.budgets.insert(record.identity, Arc::clone(&found));
        found
    }
}

/// What the annotation asks for; `None` when it asks for nothing.
fn wish(text: &str) -> Option<Wish> {
    match text {
        "true" => Some(Wish::Never),
        "false" => None,
        other => Some(span(other).filter(|span| span.0 > 0).map_or(Wish::Unreadable, Wish::For)),
    }
}

/// A duration as Go writes it: `1h30m`, `1.5h`, `300ms`; whole milliseconds, rounded down.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total = 0i64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        // In nanoseconds, as finest unit.
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let nanos = digits.checked_mul(scale)? / 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        total = total.checked_add(i64::try_from(nanos / 1_000_000).ok()?)?;
        rest = tail;
    }
    Some(Duration(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_is_for_ever_for_a_while_or_none() {
        let rows = [
            ("true", Some(Wish::Never)),
            ("false", None),
            ("30m", Some(Wish::For(Duration::minutes(30)))),
            ("1h30m", Some(Wish::For(Duration::minutes(90)))),
            ("1.5h", Some(Wish::For(Duration::minutes(90)))),
            ("300ms", Some(Wish::For(Duration(300)))),
            ("0s", Some(Wish::Unreadable)),
            ("-5m", Some(Wish::Unreadable)),
            ("soon", Some(Wish::Unreadable)),
            ("", Some(Wish::Unreadable)),
            ("5", Some(Wish::Unreadable)),
        ];
        for (text, expected) in rows {
            assert_eq!(wish(text), expected, "{text}");
        }
    }
}
