//! Pods that come, change and go, and what follows for the books: who waits, what nodes hold, whose claims are touched.

use std::collections::BTreeMap;

use whittle_model::{Owner, Pod, PodKey, PodPhase};

use super::{Identity, PodRecord, Shape, World};

/// The DaemonSet that owns a pod, if one does.
fn daemon_set_of(namespace: &str, owner: Option<&Owner>) -> Option<PodKey> {
    owner.filter(|o| o.kind == "DaemonSet").map(|o| PodKey::new(namespace, &o.name))
}

/// Takes a pod of this shape and identity out of those on a node.
fn count_down(sorts: &mut BTreeMap<(u32, u32), BTreeMap<u32, u32>>, sort: (u32, u32), node: Option<u32>) {
    let Some((nodes, node)) = sorts.get_mut(&sort).zip(node) else { return };
    if let Some(count) = nodes.get_mut(&node) {
        *count -= 1;
        if *count == 0 {
            nodes.remove(&node);
        }
    }
    if nodes.is_empty() {
        sorts.remove(&sort);
    }
}

impl World {
    pub(crate) fn put_pod(&mut self, pod: &Pod) {
        self.drop_pod(&pod.key, false);
        let shape = self.shapes.number(Shape {
            requests: pod.requests.clone(),
            affinity: pod.affinity.clone(),
            tolerations: pod.tolerations.clone(),
            spread: pod.spread.clone(),
            pod_affinity: pod.pod_affinity.clone(),
            anti_affinity: pod.anti_affinity.clone(),
            preferences: pod.preferences.clone(),
            host_ports: pod.host_ports.clone(),
            resource_claims: pod.resource_claims,
            unsupported: pod.unsupported.clone(),
            priority: pod.priority,
            priority_class: pod.priority_class.clone(),
        });
        let identity = self.identities.number(Identity {
            namespace: pod.key.namespace.clone(),
            labels: pod.labels.clone(),
            annotations: pod.annotations.clone(),
            owner: pod.owner.clone(),
        });
        let record = PodRecord {
            uid: pod.uid.clone(),
            shape,
            identity,
            created: pod.created,
            phase: pod.phase,
            node: pod.node.clone(),
            nominated: pod.nominated.clone(),
            unschedulable: pod.unschedulable,
            deleting: pod.deleting,
            ready: pod.ready,
            volumes: pod.volumes.clone().into_boxed_slice(),
            started: pod.started,
            grace: pod.grace,
            ends_at: pod.ends_at,
            restarts: pod.restarts,
        };
        if let Some(owner) = pod.owner.as_ref().filter(|_| !record.deleting && !record.terminal()) {
            *self.replicas.entry((pod.key.namespace.clone(), owner.clone())).or_default() += 1;
        }
        if record.node.is_some() || record.terminal() || record.deleting {
            self.assigned.clear(&pod.key);
            self.seated.remove(&pod.key);
        }
        if record.node.is_none() && record.unschedulable && !record.deleting && !record.terminal() && !pod.tied_to_node() {
            self.pending.insert(pod.key.clone());
        }
        if let Some(node) = pod.node.as_ref().filter(|_| pod.holds_room()) {
            self.take_room(pod, node, (shape, identity));
        }
        if let Some(node) = record.nominated.as_ref().filter(|_| record.node.is_none()) {
            *self.nominated.entry(node.clone()).or_default() += 1;
        }
        if pod.phase == PodPhase::Running
            && !pod.deleting
            && let Some(set) = daemon_set_of(&pod.key.namespace, pod.owner.as_ref())
        {
            self.daemon_pods.insert(set, pod.created, &pod.key.name);
        }
        self.pods.insert(pod.key.clone(), record);
        self.touch_claims_of(&pod.key);
    }

    /// Counts a pod on its node.
    fn take_room(&mut self, pod: &Pod, node: &str, sort: (u32, u32)) {
        let usage = self.usage.entry(node.to_owned()).or_default();
        usage.total.add(&pod.requests);
        usage.pods.insert(pod.key.clone());
        usage.workload += usize::from(!pod.tied_to_node());
        if !pod.deleting {
            let node = self.node_names.number(node.to_owned());
            *self.sorts.entry(sort).or_default().entry(node).or_default() += 1;
            if !pod.anti_affinity.is_empty() {
                self.excluders.entry(sort.0).or_default().insert(pod.key.clone());
            }
        }
        if let Some(set) = daemon_set_of(&pod.key.namespace, pod.owner.as_ref()) {
            *usage.daemons.entry(self.set_names.number(set)).or_default() += 1;
        }
    }

    /// What a pod that waits for a place asks for: who it is and what decides where it may go.
    pub(crate) fn wants(&self, key: &PodKey) -> Option<(String, u32, u32)> {
        let record = self.pods.get(key).filter(|_| self.pending.contains(key))?;
        Some((record.uid.clone(), record.shape, record.identity))
    }

    /// Marks the claims that a pod concerns: that of its node, of its nomination, of its plan.
    fn touch_claims_of(&mut self, key: &PodKey) {
        let Some(record) = self.pods.get(key) else { return };
        let nodes = record.node.iter().chain(&record.nominated).filter_map(|name| self.nodes.get(name));
        let claims = nodes.filter_map(|node| self.claim_by_provider.get(&node.provider_id)).chain(self.assigned.claim(key));
        self.touched.extend(claims.cloned());
    }

    /// A pod is no longer one of its controller's.
    fn count_out(&mut self, record: &PodRecord) {
        let identity = self.identities.value(record.identity);
        let Some(owner) = identity.owner.as_ref().filter(|_| !record.deleting && !record.terminal()) else { return };
        let of = (identity.namespace.clone(), owner.clone());
        if let Some(count) = self.replicas.get_mut(&of) {
            *count -= 1;
            if *count == 0 {
                self.replicas.remove(&of);
            }
        }
    }

    /// How many pods the controller of a pod keeps, as it has made them; 0 of one without a controller.
    pub(crate) fn replicas_beside(&self, record: &PodRecord) -> usize {
        let identity = self.identities.value(record.identity);
        let of = identity.owner.as_ref().map(|owner| (identity.namespace.clone(), owner.clone()));
        of.and_then(|of| self.replicas.get(&of)).copied().unwrap_or(0)
    }

    /// Forgets a pod; `for_good` also forgets what was planned for it.
    pub(crate) fn drop_pod(&mut self, key: &PodKey, for_good: bool) {
        self.touch_claims_of(key);
        if for_good {
            self.assigned.clear(key);
            self.seated.remove(key);
        }
        let Some(record) = self.pods.remove(key) else { return };
        self.pending.remove(key);
        self.count_out(&record);
        if let Some(node) = record.nominated.as_ref().filter(|_| record.node.is_none())
            && let Some(count) = self.nominated.get_mut(node)
        {
            *count -= 1;
            if *count == 0 {
                self.nominated.remove(node);
            }
        }
        let tied = self.tied_to_node(&record);
        let set = daemon_set_of(&key.namespace, self.identity_of(&record).owner.as_ref());
        if let Some(set) = &set {
            self.daemon_pods.remove(set, record.created, &key.name);
        }
        let requests = self.shapes.value(record.shape).requests.clone();
        if let Some(pods) = self.excluders.get_mut(&record.shape) {
            pods.remove(key);
            if pods.is_empty() {
                self.excluders.remove(&record.shape);
            }
        }
        let Some(name) = record.node.as_ref().filter(|_| !record.terminal()) else { return };
        if let Some(usage) = self.usage.get_mut(name)
            && usage.pods.remove(key)
        {
            usage.total.subtract(&requests);
            usage.workload -= usize::from(!tied);
            if !record.deleting {
                count_down(&mut self.sorts, (record.shape, record.identity), self.node_names.known(name));
            }
            let set = set.and_then(|set| self.set_names.known(&set));
            if let Some((set, count)) = set.and_then(|set| usage.daemons.get_mut(&set).map(|count| (set, count))) {
                *count -= 1;
                if *count == 0 {
                    usage.daemons.remove(&set);
                }
            }
            if usage.pods.is_empty() {
                self.usage.remove(name);
            }
        }
    }
}
