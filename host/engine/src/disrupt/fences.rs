//! What keeps a node from being disrupted for the sake of its pods: `karpenter.sh/do-not-disrupt`, for ever or for a
//! while, and PodDisruptionBudgets. Asked once for pods that are alike.
//!
//! What must not enter: what is done about it.

use std::sync::Arc;

use whittle_model::{Effect, PodDisruptionBudget, PodKey, Taint, Timestamp, keys};

use crate::intern::Lookup;
use crate::protection::{self, DoNotDisrupt, Eviction};
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
        let budgets = self.budgets_of(record);
        if budgets.is_empty() || self.disrupted.tolerated_by(&world.shape_of(record).tolerations) {
            return None;
        }
        match protection::within(record, &budgets, |_| 0) {
            Eviction::Free | Eviction::Within(_) => None,
            Eviction::Perhaps(budget) | Eviction::Spent(budget) => {
                Some(format!("PodDisruptionBudget {} lets pod {key} not go now", budget.key))
            }
            Eviction::Several(budgets) => {
                let names: Vec<String> = budgets.iter().map(|budget| budget.key.to_string()).collect();
                Some(format!("pod {key} has more than one PodDisruptionBudget ({}), and eviction refuses that", names.join(", ")))
            }
        }
    }

    fn protected(&mut self, key: &PodKey, record: &PodRecord) -> Option<String> {
        match protection::do_not_disrupt(self.world, record, self.now) {
            DoNotDisrupt::Free => None,
            DoNotDisrupt::Always => Some(format!("pod {key} has the annotation {}", keys::DO_NOT_DISRUPT)),
            DoNotDisrupt::Unstarted(span) => Some(format!("pod {key} is not to be disrupted for {span}, and has not started")),
            DoNotDisrupt::Until(until) => {
                self.next = Some(self.next.map_or(until, |next| next.min(until)));
                Some(format!("pod {key} is not to be disrupted for another {}", until.since(self.now)))
            }
        }
    }

    fn budgets_of(&mut self, record: &PodRecord) -> Arc<[&'w PodDisruptionBudget]> {
        if let Some(known) = self.budgets.get(&record.identity) {
            return Arc::clone(known);
        }
        let found: Arc<[&PodDisruptionBudget]> = protection::budgets_of(self.world, record).into();
        self.budgets.insert(record.identity, Arc::clone(&found));
        found
    }
}
