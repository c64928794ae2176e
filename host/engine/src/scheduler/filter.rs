//! The filters: whether a pod may go to a node, and in what words it may not. The order is that of
//! the default profile; the first filter that objects gives the reason.
//! Source: <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins>.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use whittle_model::{Affinity, Effect, Labels, Pod, Taint, Toleration, taint};

use super::identity::{Amounts, Identities, Identity};
use super::neighbours::{Books, Clash, Neighbours};
use super::nodes::{Entry, Info};
use super::shapes::{Shape, Shapes};
use super::volumes::{self, Faults, Mounts, Volumes};
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
    /// NodePorts.
    Ports,
    /// NodeResourcesFit.
    Resources,
    /// NodeVolumeLimits.
    Attachments,
    /// VolumeBinding.
    Volumes(Faults),
    /// PodTopologySpread or InterPodAffinity.
    Clash(Clash),
}

/// A pod for which a node is sought.
pub(super) struct Search<'p> {
    pub pod: &'p Pod,
    pub identity: Identity,
    /// The node it asks for by name, if it does: `Some(None)` when there is no such node.
    pub asked: Option<Option<u32>>,
    /// What its volumes ask; `None` when it has none.
    pub mounts: Option<Mounts>,
}

impl Verdict {
    /// The reasons in kube-scheduler's words; lacking resources are named one by one elsewhere.
    fn reasons(self) -> Vec<&'static str> {
        let reason = match self {
            Self::Fits | Self::Resources => return Vec::new(),
            Self::Volumes(faults) => return volumes::reasons(faults).collect(),
            Self::Cordoned => "node(s) were unschedulable",
            Self::Name => "node(s) didn't match the requested node name",
            Self::Taint => "node(s) had untolerated taint(s)",
            Self::Affinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::Attachments => "node(s) exceed max volume count",
            Self::Clash(Clash::Unlabelled) => "node(s) didn't match pod topology spread constraints (missing required label)",
            Self::Clash(Clash::Skew) => "node(s) didn't match pod topology spread constraints",
            Self::Clash(Clash::Affinity) => "node(s) didn't match pod affinity rules",
            Self::Clash(Clash::Own) => "node(s) didn't match pod anti-affinity rules",
            Self::Clash(Clash::Existing) => "node(s) didn't satisfy existing pods anti-affinity rules",
        };
        vec![reason]
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

/// What the filters look at.
struct Desk<'d> {
    books: Books<'d>,
    identities: &'d Identities,
    shapes: &'d mut Shapes,
    volumes: &'d Volumes,
    neighbours: &'d Neighbours,
}

impl Desk<'_> {
    /// What the filters say of a node that the class of the pod admits, where `held` are as if they were bound there;
    /// `room` is whether the pod has room beside those that are.
    fn verdict(&mut self, search: &Search<'_>, slot: u32, held: &[&Identity], room: bool) -> Verdict {
        let (identity, entry) = (&search.identity, self.books.nodes.entry(slot));
        if let Some(ports) = identity.ports {
            let taken = entry.ports.iter().copied().chain(held.iter().filter_map(|other| other.ports));
            if taken.into_iter().any(|other| self.identities.collide(ports, other)) {
                return Verdict::Ports;
            }
        }
        if !room {
            return Verdict::Resources;
        }
        if let Some(mounts) = &search.mounts {
            let claims = held.iter().flat_map(|other| &other.claims);
            if !mounts.weightless() && self.volumes.crowded(mounts, &entry.name, slot, claims) {
                return Verdict::Attachments;
            }
            let faults = entry.info.as_ref().map_or(0, |info| mounts.faults(&info.labels));
            if faults != 0 {
                return Verdict::Volumes(faults);
            }
        }
        if held.is_empty() && self.neighbours.indifferent() {
            return Verdict::Fits;
        }
        let skewed = self.neighbours.skewed(identity, slot, held, &self.books, self.shapes);
        let clash = skewed.or_else(|| self.neighbours.clash(identity, slot, held, &self.books));
        clash.map_or(Verdict::Fits, Verdict::Clash)
    }
}

impl Scheduler {
    /// What the filters say of a pod on the node at `slot`. Pods nominated there count as if they were bound, and the pod
    /// must pass without them too: one that is to be near another may not count on one that never comes.
    pub(super) fn verdict(&mut self, search: &Search<'_>, slot: u32) -> Verdict {
        let Some(info) = self.nodes.info(slot) else { return Verdict::Name };
        let entry = self.nodes.entry(slot);
        let known = self.shapes.look(search.identity.shape, slot, self.nodes.len(), entry, info).verdict;
        if known == Verdict::Cordoned {
            return known;
        }
        if search.asked.is_some_and(|asked| asked != Some(slot)) {
            return Verdict::Name;
        }
        if known != Verdict::Fits && known != Verdict::Resources {
            return known;
        }
        let plain = search.identity.ports.is_none() && search.mounts.is_none() && self.neighbours.indifferent();
        if plain && entry.held == 0 {
            return known;
        }
        let held: SmallVec<[&Identity; 8]> = self.nominations.before(slot, &search.pod.key, search.identity.priority).collect();
        let room = held.is_empty() || self.room_beside(search, slot);
        let mut desk = Desk {
            books: Books { nodes: &self.nodes, crowds: &self.crowds, companies: &self.companies },
            identities: &self.identities,
            shapes: &mut self.shapes,
            volumes: &self.volumes,
            neighbours: &self.neighbours,
        };
        if !held.is_empty() {
            let beside = desk.verdict(search, slot, &held, room);
            if beside != Verdict::Fits {
                return beside;
            }
        }
        if plain { known } else { desk.verdict(search, slot, &[], known == Verdict::Fits) }
    }

    /// Whether the pod has room beside pods bound and nominated to the node.
    fn room_beside(&self, search: &Search<'_>, slot: u32) -> bool {
        let (entry, Some(info)) = (self.nodes.entry(slot), self.nodes.info(slot)) else { return false };
        let (held, pods) = self.held(search.pod, &search.identity, slot);
        let shape = self.shapes.shape(search.identity.shape);
        entry.pods + pods < info.max_pods && lacking(shape, entry, info, &held).next().is_none()
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
    pub(super) fn refusal(&mut self, search: &Search<'_>) -> Unschedulable {
        let all = self.nodes.order().len();
        let mut reasons = BTreeMap::<String, u32>::new();
        let mut columns = Vec::<u32>::new();
        let mut verdicts = Vec::<(Verdict, u32)>::new();
        for at in 0..all {
            let slot = self.nodes.order()[at];
            let verdict = self.verdict(search, slot);
            match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, count)) => *count += 1,
                None => verdicts.push((verdict, 1)),
            }
            if verdict == Verdict::Resources {
                self.count_lacking(search.pod, &search.identity, slot, &mut columns, &mut reasons);
            }
        }
        for (verdict, count) in verdicts {
            for reason in verdict.reasons() {
                *reasons.entry(reason.to_owned()).or_default() += count;
            }
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
