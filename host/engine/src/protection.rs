//! What keeps a pod where it is: the annotation do-not-disrupt, and PodDisruptionBudgets. One reading for drains, for
//! plans and for disruption.
//!
//! What must not enter: what is done with a pod that may go.

use whittle_model::{Duration, PodDisruptionBudget, PodPhase, Timestamp, keys};

use crate::world::{PodRecord, World};

/// Whether and until when the annotation protects something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoNotDisrupt {
    /// It does not, or no longer.
    Free,
    /// Until then.
    Until(Timestamp),
    /// For so long from its start, which has not come.
    Unstarted(Duration),
    /// As long as it stands.
    Always,
}

/// What the annotation of a pod comes to now. A span counts from the start of the pod; a value that names neither
/// `true` nor a span counts as absent.
pub(crate) fn do_not_disrupt(world: &World, record: &PodRecord, now: Timestamp) -> DoNotDisrupt {
    let Some(value) = world.identity_of(record).annotations.get(keys::DO_NOT_DISRUPT) else { return DoNotDisrupt::Free };
    if value == "true" {
        return DoNotDisrupt::Always;
    }
    let Some(span) = Duration::parse(value).filter(|span| span.0 > 0) else { return DoNotDisrupt::Free };
    match record.started.map(|started| started.plus(span)) {
        None => DoNotDisrupt::Unstarted(span),
        Some(until) if until > now => DoNotDisrupt::Until(until),
        Some(_) => DoNotDisrupt::Free,
    }
}

/// The budgets that select a pod, in the order of their names.
pub(crate) fn budgets_of<'w>(world: &'w World, record: &PodRecord) -> Vec<&'w PodDisruptionBudget> {
    let identity = world.identity_of(record);
    let from = whittle_model::PodKey::new(&identity.namespace, "");
    let of_namespace = world.budgets.range(from..).take_while(|(key, _)| key.namespace == identity.namespace);
    of_namespace.map(|(_, budget)| budget).filter(|budget| budget.selector.matches(&identity.labels)).collect()
}

/// What the eviction API would answer now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Eviction<'w> {
    /// No budget is asked.
    Free,
    /// This budget is asked, and has room.
    Within(&'w PodDisruptionBudget),
    /// It may say yes or no: a pod that is not ready may go if its budget is met without it, which is not known here.
    Perhaps(&'w PodDisruptionBudget),
    /// This budget lets no pod go now.
    Spent(&'w PodDisruptionBudget),
    /// More than one budget selects the pod: the API always refuses.
    Several(Vec<&'w PodDisruptionBudget>),
}

/// What the eviction API would answer for a pod if `spent` says how much of a budget is under way already.
/// Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works>.
pub(crate) fn eviction<'w>(world: &'w World, record: &PodRecord, spent: impl Fn(&PodDisruptionBudget) -> i32) -> Eviction<'w> {
    if record.terminal() || record.deleting || record.phase == PodPhase::Pending || world.budgets.is_empty() {
        return Eviction::Free;
    }
    within(record, &budgets_of(world, record), spent)
}

/// What the budgets that select a pod would answer.
pub(crate) fn within<'w>(
    record: &PodRecord,
    budgets: &[&'w PodDisruptionBudget],
    spent: impl Fn(&PodDisruptionBudget) -> i32,
) -> Eviction<'w> {
    match *budgets {
        [] => Eviction::Free,
        [budget] if !record.ready && budget.always_allow_unready => Eviction::Free,
        [budget] if budget.allowed > spent(budget) => Eviction::Within(budget),
        [budget] if !record.ready => Eviction::Perhaps(budget),
        [budget] => Eviction::Spent(budget),
        _ => Eviction::Several(budgets.to_vec()),
    }
}

/// Whether a pod on a node that goes is expected to need another place: it is one that moves, nothing holds it for
/// ever, and of a StatefulSet also one that is ending, because its successor has its name.
pub(crate) fn reschedulable(world: &World, record: &PodRecord, now: Timestamp) -> bool {
    let owner = world.identity_of(record).owner.as_ref();
    let returns = !record.deleting || owner.is_some_and(|owner| owner.kind == "StatefulSet");
    returns
        && !record.terminal()
        && !world.tied_to_node(record)
        && (record.deleting || do_not_disrupt(world, record, now) == DoNotDisrupt::Free)
        && !budgets_of(world, record).iter().any(|budget| budget.never)
}
