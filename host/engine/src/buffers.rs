//! Capacity buffers: for each pod that there is to be room for, the world has one that waits for a place and never gets
//! one from kube-scheduler. Plans see it as any other, last in their order; nobody else is told of it.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{CapacityBuffer, Pod, PodKey, PodPhase, Timestamp};

use crate::world::World;

/// The buffers, and the pods that stand for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    all: BTreeMap<PodKey, CapacityBuffer>,
    pods: BTreeSet<PodKey>,
}

impl Buffers {
    /// Takes a buffer in.
    pub(crate) fn put(&mut self, buffer: CapacityBuffer) {
        self.all.insert(buffer.key.clone(), buffer);
    }

    /// Forgets one.
    pub(crate) fn drop(&mut self, key: &PodKey) {
        self.all.remove(key);
    }

    /// Whether a pod stands for a buffer.
    pub(crate) fn holds(&self, pod: &PodKey) -> bool {
        self.pods.contains(pod)
    }

    /// All of them, for a checkpoint.
    pub(crate) fn objects(&self) -> Vec<CapacityBuffer> {
        self.all.values().cloned().collect()
    }

    /// The pods there should be.
    fn wanted(&self) -> BTreeMap<PodKey, Pod> {
        let pods = self.all.values().flat_map(|buffer| (0..buffer.count).map(move |number| pod(buffer, number)));
        pods.map(|pod| (pod.key.clone(), pod)).collect()
    }
}

/// One pod of a buffer, as Karpenter names it. Nothing goes after it, and its volumes are nobody's.
fn pod(buffer: &CapacityBuffer, number: u32) -> Pod {
    let key = PodKey::new(&buffer.key.namespace, &format!("capacity-buffer-{}-{number}", buffer.key.name));
    Pod {
        uid: format!("{key}"),
        key,
        owner: None,
        created: Timestamp(i64::MAX),
        phase: PodPhase::Pending,
        node: None,
        nominated: None,
        unschedulable: true,
        deleting: false,
        ready: false,
        volumes: Vec::new(),
        started: None,
        priority: i32::MIN,
        ..buffer.template.clone()
    }
}

impl World {
    /// Makes the pods that stand for buffers what buffers and settings say.
    pub(crate) fn fill_buffers(&mut self) {
        let wanted = if self.settings.features.capacity_buffer { self.buffers.wanted() } else { BTreeMap::new() };
        for key in self.buffers.pods.clone() {
            if !wanted.contains_key(&key) {
                self.drop_pod(&key, true);
                self.buffers.pods.remove(&key);
            }
        }
        for (key, pod) in wanted {
            // A pod of the cluster may have that name: then there is one less to keep room for.
            let own = self.buffers.pods.contains(&key);
            if (own || !self.pods.contains_key(&key)) && self.pod(&key).as_ref() != Some(&pod) {
                self.put_pod(&pod);
                self.buffers.pods.insert(key);
            }
        }
    }

    /// Notes where a plan leaves room for buffers on nodes that exist: these are not empty.
    pub(crate) fn hold_room(&mut self, placed: &BTreeMap<String, Vec<PodKey>>) {
        if self.buffers.pods.is_empty() {
            return;
        }
        for key in self.buffers.pods.clone() {
            self.assigned.clear(&key);
        }
        for (on, pods) in placed {
            let node = self.nodes.get(on);
            let claim = node.map_or_else(|| Some(on.clone()), |node| self.claim_of(node).map(|claim| claim.name.clone()));
            let Some(claim) = claim else { continue };
            for pod in pods.iter().filter(|pod| self.buffers.pods.contains(*pod)).cloned().collect::<Vec<_>>() {
                self.assigned.set(pod, &claim);
                self.touched.insert(claim.clone());
            }
        }
    }
}
