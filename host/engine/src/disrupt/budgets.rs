//! How many nodes of each pool may be on their way out: the budgets of its NodePool that are open now, and the one of the
//! whole cluster.
//!
//! What must not enter: which nodes go.

use std::collections::BTreeMap;

use whittle_model::{DisruptionBudget, NodePool, Timestamp};

use super::cron::Cron;
use super::reason::Reason;
use crate::world::World;

/// What is left of the budgets. Each move takes from it.
#[derive(Debug, Clone, Default)]
pub(super) struct Budgets {
    /// By pool and reason.
    left: BTreeMap<(String, Reason), usize>,
    /// Nodes of each pool, and how many of them are going or not ready.
    counts: BTreeMap<String, Count>,
    /// What is left of the whole cluster's.
    cluster: Option<usize>,
    /// What is left of a slow start, for moves that save money.
    slow: Option<usize>,
    /// Pools in which nothing may go for a reason, and why: for the report.
    pub(super) closed: BTreeMap<(String, Reason), String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    nodes: usize,
    going: usize,
}

impl Budgets {
    /// The budgets of `world` at `now`.
    pub(super) fn new(world: &World, now: Timestamp) -> Self {
        let mut budgets = Self::default();
        for claim in world.claims.values().filter(|c| c.status.initialized.is_some() && c.status.instance_terminating.is_none()) {
            let Some(node) = world.node_of(claim) else { continue };
            let count = budgets.counts.entry(claim.node_pool.clone()).or_default();
            count.nodes += 1;
            count.going += usize::from(!node.ready || node.deleting || claim.deleting || world.leaving.contains(&claim.name));
        }
        let (mut nodes, mut going) = (0, 0);
        for count in budgets.counts.values() {
            (nodes, going) = (nodes + count.nodes, going + count.going);
        }
        let whole = world.settings.disruption.cluster_budget.as_ref();
        budgets.cluster = whole.map(|text| amount(text, nodes).map_or(0, |most| most.saturating_sub(going)));
        for pool in world.pools.values() {
            budgets.open(pool, now);
        }
        budgets
    }

    fn open(&mut self, pool: &NodePool, now: Timestamp) {
        let count = self.counts.get(&pool.name).copied().unwrap_or_default();
        for reason in Reason::BUDGETED {
            let (most, why) = allowed(pool, reason, count.nodes, now);
            if most == 0 && count.nodes > 0 {
                self.closed.insert((pool.name.clone(), reason), why);
            }
            self.left.insert((pool.name.clone(), reason), most.saturating_sub(count.going));
        }
    }

    /// So many nodes at most go to save money, besides what the budgets allow.
    pub(super) fn slowly(&mut self, nodes: usize, why: &str) {
        self.slow = Some(nodes);
        if nodes == 0 {
            let pools: Vec<String> = self.counts.keys().cloned().collect();
            self.closed.extend(pools.into_iter().map(|pool| ((pool, Reason::Underutilized), why.to_owned())));
        }
    }

    /// How many more nodes of a pool may go for a reason.
    pub(super) fn left(&self, pool: &str, reason: Reason) -> usize {
        let of_pool = self.left.get(&(pool.to_owned(), reason.budgeted())).copied().unwrap_or(0);
        self.over_all(reason).min(of_pool)
    }

    /// How many more nodes of all pools may go for a reason.
    pub(super) fn over_all(&self, reason: Reason) -> usize {
        let slow = self.slow.filter(|_| reason == Reason::Underutilized).unwrap_or(usize::MAX);
        self.cluster.unwrap_or(usize::MAX).min(slow)
    }

    /// Takes nodes of these pools, one entry for each node, if all of them may go; false changes nothing.
    pub(super) fn take(&mut self, pools: &[String], reason: Reason) -> bool {
        let mut wanted: BTreeMap<&String, usize> = BTreeMap::new();
        for pool in pools {
            *wanted.entry(pool).or_default() += 1;
        }
        let fits = wanted.iter().all(|(pool, count)| self.left(pool, reason) >= *count);
        if !fits || self.over_all(reason) < pools.len() {
            return false;
        }
        if reason == Reason::Underutilized {
            self.slow = self.slow.map(|left| left - pools.len());
        }
        for (pool, count) in wanted {
            // A node that goes for one reason is on its way out for all of them.
            for reason in Reason::BUDGETED {
                let left = self.left.entry((pool.clone(), reason)).or_default();
                *left = left.saturating_sub(count);
            }
        }
        self.cluster = self.cluster.map(|left| left - pools.len());
        true
    }
}

/// How many of a pool's nodes may be going for a reason, and why none may.
fn allowed(pool: &NodePool, reason: Reason, nodes: usize, now: Timestamp) -> (usize, String) {
    let (mut most, mut why) = (usize::MAX, String::new());
    for budget in pool.disruption.budgets.iter().filter(|b| b.reasons.is_empty() || b.reasons.iter().any(|r| r == reason.name())) {
        let (here, text) = match active(budget, now) {
            Ok(false) => continue,
            Ok(true) => amount(&budget.nodes, nodes).map_or_else(
                || (0, format!("budget {:?} cannot be read: nothing goes", budget.nodes)),
                |here| (here, format!("budget {} is closed for {}", written(budget), reason.name())),
            ),
            Err(why) => (0, format!("{why}: nothing goes")),
        };
        if here < most {
            (most, why) = (here, text);
        }
    }
    (most, why)
}

fn written(budget: &DisruptionBudget) -> String {
    let schedule = budget.schedule.as_ref().map(|schedule| format!(" of {schedule:?}")).unwrap_or_default();
    format!("{}{schedule}", budget.nodes)
}

/// Whether a budget binds now.
fn active(budget: &DisruptionBudget, now: Timestamp) -> Result<bool, String> {
    let (Some(schedule), Some(duration)) = (&budget.schedule, budget.duration) else { return Ok(true) };
    let last = Cron::parse(schedule)?.last(now);
    Ok(last.is_some_and(|at| at.plus(duration) > now))
}

/// A count, or a percentage rounded up; `None` for what is neither.
fn amount(text: &str, nodes: usize) -> Option<usize> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent: usize = percent.parse().ok().filter(|percent| *percent <= 100)?;
            Some((nodes * percent).div_ceil(100))
        }
        None => text.parse().ok(),
    }
}

/// When a budget of any pool opens or closes next.
pub(super) fn next_turn(world: &World, now: Timestamp) -> Option<Timestamp> {
    let budgets = world.pools.values().flat_map(|pool| &pool.disruption.budgets);
    let turns = budgets.filter_map(|budget| Some((Cron::parse(budget.schedule.as_ref()?).ok()?, budget.duration?)));
    turns
        .flat_map(|(cron, duration)| {
            let shuts = cron.last(now).map(|at| at.plus(duration)).filter(|at| *at > now);
            [cron.next(now), shuts].into_iter().flatten().collect::<Vec<_>>()
        })
        .min()
}

#[cfg(test)]
#[path = "../../tests_unit/budgets.rs"]
mod tests;
