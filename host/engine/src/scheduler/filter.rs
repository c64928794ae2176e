//! The filters: whether a pod may go to a node, and in what words it may not. The order is that of
//! the default profile; the first filter that objects gives the reason.
//! Source: <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins>.

use std::collections::BTreeMap;

use whittle_model::{Affinity, Effect, Labels, Pod, Taint, Toleration, taint};

use super::conflicts::Clash;
use super::identity::{Amounts, Identity};
use super::nodes::{Entry, Info};
use super::shapes::Shape;
use super::{Scheduler, Unschedulable};

/// Taint that stands for a cordon.
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";

/// What the filters say of a pod on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Verdict {
    /// It may go there.
    #[default]
    Fits,
    /// NodeUnschedulable: the node is cordoned.
    Cordoned,
    /// NodeName: the pod asks for another node.
    Name,
    /// TaintToleration.
    Taint,
    /// NodeAffinity.
    Affinity,
    /// NodeResourcesFit.
    Resources,
    /// InterPodAffinity.
    Clash(Clash),
}

impl Verdict {
    /// The reason in kube-scheduler's words; lacking resources are named one by one elsewhere.
    fn reason(self) -> Option<&'static str> {
        match self {
            Self::Fits | Self::Resources => None,
            Self::Cordoned => Some("node(s) were unschedulable"),
            Self::Name => Some("node(s) didn't match the requested node name"),
            Self::Taint => Some("node(s) had untolerated taint(s)"),
            Self::Affinity => Some("node(s) didn't match Pod's node affinity/selector"),
            Self::Clash(Clash::Own) => Some("node(s) didn't match pod anti-affinity rules"),
            Self::Clash(Clash::Existing) => Some("node(s) didn't satisfy existing pods anti-affinity rules"),
        }
    }
}

/// Whether labels meet the node selector and one of the required terms.
pub(super) fn affinity_met(affinity: &Affinity, labels: &Labels) -> bool {
    let terms = &affinity.node_terms;
    affinity.node_selector.met_by(labels) && (terms.is_empty() || terms.iter().any(|term| term.met_by(labels)))
}

/// The filters that do not depend on what is on the node.
pub(super) fn class_verdict(info: &Info, tolerations: &[Toleration], affinity_met: bool) -> Verdict {
    if info.cordoned && !Taint::new(CORDON_TAINT, "", Effect::NoSchedule).tolerated_by(tolerations) {
        return Verdict::Cordoned;
    }
    if taint::untolerated(&info.taints, tolerations).is_some() {
        return Verdict::Taint;
    }
    if affinity_met { Verdict::Fits } else { Verdict::Affinity }
}

/// Whether a pod of this shape has no room beside the pods bound to the node.
pub(super) fn lacks_room(shape: &Shape, entry: &Entry, info: &Info) -> bool {
    entry.pods + 1 > info.max_pods || lacking(shape, entry, info, &Amounts::new()).next().is_some()
}

/// The columns in which a shape has no room beside what is used and `held`. What is not asked for
/// does not matter, however overfull.
fn lacking<'a>(shape: &'a Shape, entry: &'a Entry, info: &'a Info, held: &'a Amounts) -> impl Iterator<Item = usize> + 'a {
    let at = |amounts: &Amounts, column: usize| amounts.get(column).copied().unwrap_or(0);
    shape.requests.iter().enumerate().filter_map(move |(column, wanted)| {
        let free = at(&info.allocatable, column).saturating_sub(at(&entry.used, column)).saturating_sub(at(held, column));
        (*wanted > 0 && *wanted > free).then_some(column)
    })
}

impl Scheduler {
    /// What the filters say of the pod on the node at `slot`. `asked` is the node the pod asks for
    /// by name, if it does: `Some(None)` when there is no such node.
    pub(super) fn verdict(&mut self, pod: &Pod, identity: &Identity, asked: Option<Option<u32>>, slot: u32) -> Verdict {
        let Some(info) = self.nodes.info(slot) else { return Verdict::Name };
        let entry = self.nodes.entry(slot);
        let known = self.shapes.look(identity.shape, slot, self.nodes.len(), entry, info).verdict;
        if known == Verdict::Cordoned {
            return known;
        }
        if asked.is_some_and(|asked| asked != Some(slot)) {
            return Verdict::Name;
        }
        if known != Verdict::Fits {
            return known;
        }
        let clash = self.marks.get(slot);
        if entry.held == 0 {
            return clash.map_or(Verdict::Fits, Verdict::Clash);
        }
        self.verdict_beside_held(pod, identity, slot, clash)
    }

    /// As [`verdict`](Self::verdict) for a node that fits but for the pods nominated to it, which
    /// count as if they were bound.
    fn verdict_beside_held(&self, pod: &Pod, identity: &Identity, slot: u32, clash: Option<Clash>) -> Verdict {
        let (entry, Some(info)) = (self.nodes.entry(slot), self.nodes.info(slot)) else { return Verdict::Name };
        let (held, held_pods) = self.held(pod, identity, slot);
        let shape = self.shapes.shape(identity.shape);
        if entry.pods + held_pods + 1 > info.max_pods || lacking(shape, entry, info, &held).next().is_some() {
            return Verdict::Resources;
        }
        let others =
            || self.nominations.before(slot, &pod.key, identity.priority).filter_map(|other| self.conflicts.clash(identity, other));
        // The pod's own terms are asked before those of others, bound or nominated.
        let clash = match clash {
            Some(Clash::Own) => clash,
            Some(Clash::Existing) | None => others().find(|clash| *clash == Clash::Own).or(clash).or_else(|| others().next()),
        };
        clash.map_or(Verdict::Fits, Verdict::Clash)
    }

    /// The room held at `slot` by pods nominated to it that this pod must yield to, and how many.
    fn held(&self, pod: &Pod, identity: &Identity, slot: u32) -> (Amounts, i64) {
        let (mut held, mut pods) = (Amounts::new(), 0);
        for other in self.nominations.before(slot, &pod.key, identity.priority) {
            let requests = &self.shapes.shape(other.shape).requests;
            if held.len() < requests.len() {
                held.resize(requests.len(), 0);
            }
            held.iter_mut().zip(requests).for_each(|(sum, amount)| *sum += amount);
            pods += 1;
        }
        (held, pods)
    }

    /// The reasons of all nodes, counted, in kube-scheduler's form and order (that of the text).
    pub(super) fn refusal(&mut self, pod: &Pod, identity: &Identity, asked: Option<Option<u32>>) -> Unschedulable {
        let all = self.nodes.order().len();
        let mut reasons = BTreeMap::<String, u32>::new();
        let mut columns = Vec::<u32>::new();
        let mut verdicts = Vec::<(Verdict, u32)>::new();
        for at in 0..all {
            let slot = self.nodes.order()[at];
            let verdict = self.verdict(pod, identity, asked, slot);
            match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, count)) => *count += 1,
                None => verdicts.push((verdict, 1)),
            }
            if verdict == Verdict::Resources {
                self.count_lacking(pod, identity, slot, &mut columns, &mut reasons);
            }
        }
        for (verdict, count) in verdicts {
            reasons.extend(verdict.reason().map(|reason| (reason.to_owned(), count)));
        }
        let lacking = columns.iter().enumerate().filter(|(_, count)| **count > 0);
        reasons.extend(lacking.map(|(column, count)| (format!("Insufficient {}", self.identities.columns.name(column)), *count)));
        let mut counted: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        counted.sort();
        Unschedulable { message: format!("0/{all} nodes are available: {}.", counted.join(", ")) }
    }

    /// Counts, for a node without room, each resource that is lacking.
    fn count_lacking(&self, pod: &Pod, identity: &Identity, slot: u32, columns: &mut Vec<u32>, reasons: &mut BTreeMap<String, u32>) {
        let (entry, Some(info)) = (self.nodes.entry(slot), self.nodes.info(slot)) else { return };
        // kube-scheduler tries with the nominated pods first and says what failed then.
        let (held, held_pods) = self.held(pod, identity, slot);
        if entry.pods + held_pods + 1 > info.max_pods {
            *reasons.entry("Too many pods".to_owned()).or_default() += 1;
        }
        for column in lacking(self.shapes.shape(identity.shape), entry, info, &held) {
            if columns.len() <= column {
                columns.resize(column + 1, 0);
            }
            columns[column] += 1;
        }
    }
}
