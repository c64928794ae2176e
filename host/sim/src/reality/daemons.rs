//! The DaemonSet controller: one pod on every node that suits.

use whittle_model::{DaemonSet, Effect, Node, Owner, Pod, PodKey, Toleration, taint};

use super::Reality;
use crate::names;

/// Taints that the DaemonSet controller has its pods tolerate.
/// Source: <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>.
const TOLERATED: [(&str, Effect); 6] = [
    ("node.kubernetes.io/not-ready", Effect::NoExecute),
    ("node.kubernetes.io/unreachable", Effect::NoExecute),
    ("node.kubernetes.io/disk-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/unschedulable", Effect::NoSchedule),
];

impl Reality {
    /// Makes the daemons' pods that a node should have and has not.
    pub(super) fn place_daemons(&mut self, name: &str) {
        let Some(node) = self.api.nodes.get(name).filter(|n| !n.deleting).cloned() else { return };
        let sets: Vec<DaemonSet> = self.api.daemon_sets.values().cloned().collect();
        for set in sets {
            let slot = (set.key.clone(), name.to_owned());
            let template = with_tolerations(&set.template);
            if !self.daemons.contains_key(&slot) && suits(&template, &node) {
                let letters = names::letters(self.seed.of("daemons").of(&set.key.to_string()).of(name), 5);
                let key = PodKey::new(&set.key.namespace, &format!("{}-{letters}", set.key.name));
                self.daemons.insert(slot, key.clone());
                self.pinned.insert(key.clone(), name.to_owned());
                let owner = Owner { kind: "DaemonSet".to_owned(), name: set.key.name.clone() };
                self.make_pod(key, &template, Some(owner));
            }
        }
    }

    /// A DaemonSet is new or changed; of a changed template, all pods are made anew.
    pub(super) fn put_daemon_set(&mut self, set: DaemonSet) {
        let changed = self.api.daemon_sets.get(&set.key).is_some_and(|old| *old != set);
        self.tell(whittle_model::Event::DaemonSet(Box::new(set.clone())));
        let key = set.key.clone();
        self.api.daemon_sets.insert(key.clone(), set);
        if changed {
            self.stop_daemons(&key);
        }
        let nodes: Vec<String> = self.api.nodes.keys().cloned().collect();
        for node in nodes {
            self.place_daemons(&node);
        }
    }

    /// Deletes a DaemonSet with its pods; false when there is none.
    pub(super) fn drop_daemon_set(&mut self, key: &PodKey) -> bool {
        if self.api.daemon_sets.remove(key).is_none() {
            return false;
        }
        self.tell(whittle_model::Event::DaemonSetGone(key.clone()));
        self.stop_daemons(key);
        true
    }

    fn stop_daemons(&mut self, set: &PodKey) {
        let pods: Vec<_> = self.daemons.iter().filter(|((of, _), _)| of == set).map(|(slot, pod)| (slot.clone(), pod.clone())).collect();
        for (slot, pod) in pods {
            self.daemons.remove(&slot);
            self.delete_pod(&pod);
        }
    }

    /// A daemon's pod that was there before the story began.
    pub(super) fn adopt_daemon(&mut self, pod: &Pod) {
        let owner = pod.owner.as_ref().filter(|o| o.kind == "DaemonSet");
        if let (Some(owner), Some(node)) = (owner, &pod.node) {
            let set = PodKey::new(&pod.key.namespace, &owner.name);
            self.daemons.insert((set, node.clone()), pod.key.clone());
            self.pinned.insert(pod.key.clone(), node.clone());
        }
    }

    /// Daemons' pods made for a node that is gone, and never bound, vanish.
    pub(super) fn unpin(&mut self, name: &str) {
        let pods: Vec<PodKey> = self.pinned.iter().filter(|(_, node)| *node == name).map(|(pod, _)| pod.clone()).collect();
        for key in pods {
            if let Some(uid) = self.api.pods.get(&key).map(|p| p.uid.clone()) {
                self.vanish(&key, &uid);
            }
        }
    }

    /// A daemon's pod is gone: its node may get another.
    pub(super) fn daemon_gone(&mut self, pod: &PodKey) {
        let Some(node) = self.pinned.remove(pod) else { return };
        self.daemons.retain(|_, key| key != pod);
        let alive = self.ec2.instances.iter().rev().find(|i| i.node == node).is_none_or(|i| i.ended.is_none());
        if alive {
            self.place_daemons(&node);
        }
    }
}

fn with_tolerations(template: &Pod) -> Pod {
    let usual =
        TOLERATED.map(|(key, effect)| Toleration { key: Some(key.to_owned()), exists: true, value: String::new(), effect: Some(effect) });
    let mut template = template.clone();
    template.tolerations.extend(usual);
    template
}

/// Whether a daemon's pod should be on a node: selector, required affinity and taints; room is
/// kube-scheduler's matter.
fn suits(template: &Pod, node: &Node) -> bool {
    let affinity = &template.affinity;
    affinity.node_selector.met_by(&node.labels)
        && (affinity.node_terms.is_empty() || affinity.node_terms.iter().any(|term| term.met_by(&node.labels)))
        && taint::untolerated(&node.taints, &template.tolerations).is_none()
}
