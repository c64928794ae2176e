//! kube-scheduler and the kubelets' side of it: who goes where, and when pods start. The scheduler
//! is the engine's model of it; it hears of plans by nomination only.

use std::collections::BTreeSet;

use whittle_engine::scheduler::queue_order;
use whittle_model::{Duration, Event, Pod, PodKey, PodPhase, Timestamp, resources};

use super::{Happening, Reality};
use crate::timeline::TimelineEvent;

/// How long kube-scheduler takes to notice.
const NOTICE: Duration = Duration(50);

/// A bound pod starts so much later.
pub(super) const START: Duration = Duration::seconds(2);

impl Reality {
    /// Something changed that may help pods without a node.
    pub(super) fn reschedule(&mut self) {
        if !self.waiting.is_empty() {
            self.queue.cycle_at(self.now.plus(NOTICE));
        }
    }

    /// kube-scheduler goes through its queue once.
    pub(super) fn cycle(&mut self) {
        let mut queue: Vec<(&Pod, Timestamp)> =
            self.waiting.iter().filter_map(|(key, entered)| self.api.pods.get(key).map(|pod| (pod, *entered))).collect();
        queue_order(&mut queue);
        let keys: Vec<PodKey> = queue.into_iter().map(|(pod, _)| pod.key.clone()).collect();
        // Binding only takes room: what did not fit a moment ago does not fit its like either.
        let mut hopeless: BTreeSet<String> = BTreeSet::new();
        for key in keys {
            let Some(mut pod) = self.api.pods.get(&key).cloned() else { continue };
            pod.node = self.pinned.get(&key).cloned();
            let like = self.member_of.get(&key).map(|(kind, owner)| format!("{} {owner} {}", kind.name(), pod.priority));
            let expected = pod.nominated.as_ref().is_some_and(|n| self.api.nodes.get(n).is_some_and(|n| n.ready));
            if !expected
                && let Some(like) = &like
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
    }

    fn bound(&mut self, key: &PodKey, node: &str) {
        self.waiting.remove(key);
        self.refusals.remove(key);
        self.on_node.entry(node.to_owned()).or_default().insert(key.clone());
        let Some(pod) = self.api.pods.get_mut(key) else { return };
        pod.node = Some(node.to_owned());
        pod.nominated = None;
        pod.unschedulable = false;
        let pod = pod.clone();
        self.check_room(node);
        if !self.pinned.contains_key(key) {
            let node = node.to_owned();
            self.note_pods(TimelineEvent::PodsBound { node, pods: vec![key.clone()] });
        }
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
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| !p.unschedulable) else { return };
        pod.unschedulable = true;
        let pod = pod.clone();
        if !pinned {
            self.note_pods(TimelineEvent::PodsPending { workload, pods: vec![key.clone()] });
        }
        self.tell(Event::Pod(Box::new(pod)));
    }

    /// A bound pod's containers run.
    pub(super) fn start(&mut self, key: &PodKey) {
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| p.phase == PodPhase::Pending && p.node.is_some() && !p.deleting) else {
            return;
        };
        pod.phase = PodPhase::Running;
        pod.ready = true;
        pod.started = Some(self.now);
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
        if self.api.nodes.get(node).is_some_and(|n| n.ready) {
            self.reschedule();
        }
        self.tell(Event::Pod(Box::new(pod)));
    }
}
