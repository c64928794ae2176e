//! kube-scheduler and the kubelets' side of it: who goes where, and when pods start. The scheduler
//! is the engine's model of it; it hears of plans by nomination only.

use std::collections::BTreeSet;

use whittle_engine::scheduler::queue_order;
use whittle_model::{Affinity, Duration, Event, Node, Pod, PodKey, PodPhase, Timestamp, resources, taint};

use super::{Happening, Reality};
use crate::timeline::TimelineEvent;

/// How long kube-scheduler takes to notice.
const NOTICE: Duration = Duration(50);

/// A bound pod starts so much later.
pub(super) const START: Duration = Duration::seconds(2);

/// kube-scheduler tries a pod again after so long although nothing happened that could help it.
/// Source: `podMaxInUnschedulablePodsDuration` of kube-scheduler.
const TRIED_AGAIN: Duration = Duration::minutes(5);

impl Reality {
    /// Something changed that may help any pod without a node.
    pub(super) fn reschedule(&mut self) {
        self.requeue(|_| true);
    }

    /// A pod without a node is new.
    pub(super) fn enqueue(&mut self, key: PodKey) {
        self.queued.insert(key);
        self.queue.cycle_at(self.now.plus(NOTICE));
    }

    /// Something changed that may help those pods without a node that `helped` picks: they are tried again.
    pub(super) fn requeue(&mut self, helped: impl Fn(&Pod) -> bool) {
        let picked = self.waiting.keys().filter_map(|key| self.api.pods.get(key)).filter(|pod| helped(pod));
        self.queued.extend(picked.map(|pod| pod.key.clone()));
        if !self.queued.is_empty() {
            self.queue.cycle_at(self.now.plus(NOTICE));
        }
    }

    /// A node is new or changed: pods are tried again that this may help.
    pub(super) fn requeue_for(&mut self, before: Option<&Node>, now: &Node) {
        let Some(before) = before else { return self.reschedule() };
        let more = now.allocatable.iter().any(|(name, amount)| amount > before.allocatable.get(name));
        if more || (before.cordoned && !now.cordoned) || (!before.ready && now.ready && now.taints == before.taints) {
            return self.reschedule();
        }
        let (relabelled, taints) = (before.labels != now.labels, before.taints != now.taints);
        if relabelled || taints {
            self.requeue(|pod| (relabelled && by_labels(pod)) || (taints && untainted(pod, before, now)));
        }
    }

    /// Pods that were not tried for a long time are tried again.
    pub(super) fn flush(&mut self) {
        let long_ago = self.waiting.iter().filter(|(_, since)| since.plus(TRIED_AGAIN) <= self.now);
        self.queued.extend(long_ago.map(|(key, _)| key.clone()));
        self.flushes = false;
        self.flush_later();
        if !self.queued.is_empty() {
            self.queue.cycle_at(self.now);
        }
    }

    fn flush_later(&mut self) {
        let first = self.waiting.iter().filter(|(key, _)| !self.queued.contains(*key)).map(|(_, since)| *since).min();
        if let Some(since) = first.filter(|_| !self.flushes) {
            self.flushes = true;
            self.queue.put(since.plus(TRIED_AGAIN).max(self.now), Happening::Flush);
        }
    }

    /// kube-scheduler goes through its queue once.
    pub(super) fn cycle(&mut self) {
        let queued = std::mem::take(&mut self.queued);
        let entered = |key| self.waiting.get(key).copied();
        let mut queue: Vec<(&Pod, Timestamp)> = queued.iter().filter_map(|key| self.api.pods.get(key).zip(entered(key))).collect();
        queue_order(&mut queue);
        let keys: Vec<PodKey> = queue.into_iter().map(|(pod, _)| pod.key.clone()).collect();
        // Binding only takes room: what did not fit a moment ago does not fit its like either.
        let mut hopeless: BTreeSet<String> = BTreeSet::new();
        for key in keys {
            let Some(mut pod) = self.api.pods.get(&key).cloned() else { continue };
            pod.node = self.pinned.get(&key).cloned();
            let like = self.member_of.get(&key).map(|(kind, owner)| format!("{} {owner} {}", kind.name(), pod.priority));
            let like = like.filter(|_| pod.nominated.is_none() && alike(&pod));
            if let Some(like) = &like
                && hopeless.contains(like)
            {
                self.refuse(&key, None);
                continue;
            }
            match self.scheduler.schedule_and_bind(&pod) {
                Ok(node) => self.bound(&key, &node),
                Err(refusal) => {
                    hopeless.extend(like);
                    self.refuse(&key, Some(refusal.message));
                }
            }
        }
        self.flush_later();
    }

    fn bound(&mut self, key: &PodKey, node: &str) {
        self.waiting.remove(key);
        self.toll.waits_no_more(key, self.now);
        self.refusals.remove(key);
        self.on_node.entry(node.to_owned()).or_default().insert(key.clone());
        let Some(pod) = self.api.pods.get_mut(key) else { return };
        pod.node = Some(node.to_owned());
        pod.nominated = None;
        pod.unschedulable = false;
        let pod = pod.clone();
        self.mount(&pod, node);
        self.check_room(node);
        if !self.pinned.contains_key(key) {
            let node = node.to_owned();
            self.note_pods(TimelineEvent::PodsBound { node, pods: vec![key.clone()] });
        }
        // Who wants to be near other pods, or even with them, may have what it waits for.
        self.requeue(|other| !other.pod_affinity.is_empty() || other.spread.iter().any(|constraint| constraint.required));
        self.tell(Event::Pod(Box::new(pod)));
        self.later(START, Happening::Start(key.clone()));
    }

    /// Nothing may be bound beyond a node's room: the model of kube-scheduler would be wrong.
    fn check_room(&mut self, node: &str) {
        let Some(allocatable) = self.api.nodes.get(node).map(|n| n.allocatable.clone()) else { return };
        let mut used = resources::Resources::default();
        for pod in self.pods_on(node) {
            used.add(&pod.requests);
        }
        if !used.fit_in(&allocatable) {
            self.violations.push(format!("pods on node {node} ask for more than it has"));
        }
    }

    fn refuse(&mut self, key: &PodKey, message: Option<String>) {
        self.waiting.insert(key.clone(), self.now);
        let workload = self.workload_of(key);
        if let Some(message) = message {
            self.refusals.insert(key.clone(), message);
        }
        let pinned = self.pinned.contains_key(key);
        // An attempt that fails costs the pod its nomination.
        self.scheduler.forget_nomination(key);
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| !p.unschedulable || p.nominated.is_some()) else { return };
        let known = std::mem::replace(&mut pod.unschedulable, true);
        pod.nominated = None;
        let pod = pod.clone();
        if !pinned && !known {
            self.note_pods(TimelineEvent::PodsPending { workload, pods: vec![key.clone()] });
        }
        self.tell(Event::Pod(Box::new(pod)));
    }

    /// A bound pod's containers run.
    pub(super) fn start(&mut self, key: &PodKey) {
        let clock = self.clock();
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| p.phase == PodPhase::Pending && p.node.is_some() && !p.deleting) else {
            return;
        };
        pod.phase = PodPhase::Running;
        pod.ready = true;
        pod.started = Some(clock);
        let pod = pod.clone();
        if !self.pinned.contains_key(key) {
            let workload = self.workload_of(key);
            self.note_pods(TimelineEvent::PodsRunning { workload, pods: vec![key.clone()] });
        }
        self.tell(Event::Pod(Box::new(pod)));
        self.runs(key);
    }

    /// A nomination by the engine; an older server drops it.
    pub(super) fn nominate(&mut self, key: &PodKey, node: &str) {
        if !self.settings.nominates() {
            return;
        }
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| p.node.is_none() && !p.terminal() && !p.deleting) else { return };
        pod.nominated = Some(node.to_owned());
        let pod = pod.clone();
        self.scheduler.nominate(&pod, node);
        self.tell(Event::Pod(Box::new(pod)));
    }
}

/// Whether a pod shares its fate with all others of its workload, while pods are bound: its volumes are its own, and who
/// wants others near, or is to be even with them, may gain by each that is bound.
fn alike(pod: &Pod) -> bool {
    pod.volumes.is_empty() && pod.pod_affinity.is_empty() && !pod.spread.iter().any(|constraint| constraint.required)
}

/// Whether labels of nodes decide where a pod may go.
fn by_labels(pod: &Pod) -> bool {
    pod.affinity != Affinity::default() || !pod.spread.is_empty() || !pod.pod_affinity.is_empty() || !pod.volumes.is_empty()
}

/// Whether a node had a taint that kept a pod away, and has none now.
fn untainted(pod: &Pod, before: &Node, now: &Node) -> bool {
    let keeps_away = |node: &Node| taint::untolerated(&node.taints, &pod.tolerations).is_some();
    keeps_away(before) && !keeps_away(now)
}
