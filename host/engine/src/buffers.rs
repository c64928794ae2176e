//! Capacity buffers: for each pod that there is to be room for, the world has one that waits for a place and never gets
//! one from kube-scheduler. Plans see it as any other, last in their order; nobody else is told of it.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{CapacityBuffer, Event, Node, Pod, PodKey, PodPhase, Timestamp};

use crate::world::World;

/// The buffers, and the pods that stand for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers {
    all: BTreeMap<PodKey, CapacityBuffer>,
    pods: BTreeSet<PodKey>,
    /// Those of the pods that the last plan looked for room for, as they are now.
    seen: BTreeSet<PodKey>,
    /// Those of the pods that have room on a node without a claim, with the node.
    apart: BTreeMap<PodKey, String>,
}

/// How much room a buffer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferRoom {
    /// For how many pods there is room on nodes in use.
    pub ready: u32,
    /// For how many there will be, on nodes that are on their way.
    pub coming: u32,
    /// For how many there is none, and none can be bought.
    pub missing: u32,
}

impl BufferRoom {
    /// For how many there is to be room.
    #[must_use]
    pub const fn wanted(self) -> u32 {
        self.ready + self.coming + self.missing
    }
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
        let pods = self.all.values().flat_map(|buffer| (1..=buffer.count).map(move |number| pod(buffer, number)));
        pods.map(|pod| (pod.key.clone(), pod)).collect()
    }
}

/// What Karpenter calls one pod of a buffer; they are numbered from 1.
fn name(buffer: &CapacityBuffer, number: u32) -> PodKey {
    PodKey::new(&buffer.key.namespace, &format!("capacity-buffer-{}-{number}", buffer.key.name))
}

/// One pod of a buffer. Nothing goes after it, and its volumes are nobody's.
fn pod(buffer: &CapacityBuffer, number: u32) -> Pod {
    let key = name(buffer, number);
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
                self.buffers.seen.remove(&key);
                self.buffers.apart.remove(&key);
            }
        }
        for (key, pod) in wanted {
            // A pod of the cluster may have that name: then there is one less to keep room for.
            let own = self.buffers.pods.contains(&key);
            if (own || !self.pods.contains_key(&key)) && self.pod(&key).as_ref() != Some(&pod) {
                self.put_pod(&pod);
                self.buffers.seen.remove(&key);
                self.buffers.pods.insert(key);
            }
        }
    }

    /// Notes where a plan leaves room for buffers on nodes that exist: these are not empty.
    pub(crate) fn hold_room(&mut self, placed: &BTreeMap<String, Vec<PodKey>>) {
        if self.buffers.pods.is_empty() {
            return;
        }
        self.buffers.seen = self.buffers.pods.clone();
        self.buffers.apart.clear();
        for key in self.buffers.pods.clone() {
            self.assigned.clear(&key);
        }
        for (on, pods) in placed {
            let node = self.nodes.get(on);
            let claim = node.map_or_else(|| Some(on.clone()), |node| self.claim_of(node).map(|claim| claim.name.clone()));
            for pod in pods.iter().filter(|pod| self.buffers.pods.contains(*pod)).cloned().collect::<Vec<_>>() {
                if let Some(claim) = &claim {
                    self.assigned.set(pod, claim);
                    self.touched.insert(claim.clone());
                } else {
                    self.buffers.apart.insert(pod, on.clone());
                }
            }
        }
    }

    /// Whether a pod only stands for pods to come, for which a buffer keeps room.
    #[must_use]
    pub fn keeps_room(&self, pod: &PodKey) -> bool {
        self.buffers.holds(pod)
    }

    /// How much room each buffer has; nothing of those that no plan has looked at as they are now.
    #[must_use]
    pub fn buffer_rooms(&self) -> BTreeMap<PodKey, BufferRoom> {
        let all = self.buffers.all.values().filter(|_| self.settings.features.capacity_buffer);
        all.filter_map(|buffer| Some((buffer.key.clone(), self.buffer_room(buffer)?))).collect()
    }

    fn buffer_room(&self, buffer: &CapacityBuffer) -> Option<BufferRoom> {
        let mut room = BufferRoom::default();
        let pods = (1..=buffer.count).map(|number| name(buffer, number)).filter(|pod| self.buffers.holds(pod));
        for pod in pods {
            if !self.buffers.seen.contains(&pod) {
                return None;
            }
            let node = self.buffers.apart.get(&pod);
            if let Some(claim) = self.assigned.claim(&pod) {
                // One that goes takes its room along: the next plan says what comes of it.
                let claim = self.claims.get(claim).filter(|claim| !claim.deleting)?;
                *(if claim.status.initialized.is_some() { &mut room.ready } else { &mut room.coming }) += 1;
            } else if let Some(node) = node {
                self.nodes.get(node)?;
                room.ready += 1;
            } else {
                room.missing += 1;
            }
        }
        Some(room)
    }

    /// Whether an event takes away room that is kept for buffers: a pod comes to a node with such room, or the node goes.
    pub(crate) fn takes_room(&self, event: &Event) -> bool {
        if self.buffers.pods.is_empty() {
            return false;
        }
        if let Event::Pod(pod) = event {
            let before = self.pods.get(&pod.key).and_then(|record| record.node.as_ref());
            pod.holds_room() && before != pod.node.as_ref() && pod.node.as_ref().is_some_and(|node| self.has_room_on(node))
        } else if let Event::Node(node) = event {
            let open = |node: &Node| !node.cordoned && !node.deleting;
            !open(node) && self.nodes.get(&node.name).is_some_and(open) && self.has_room_on(&node.name)
        } else if let Event::Claim(claim) = event {
            claim.deleting && self.claims.get(&claim.name).is_some_and(|known| !known.deleting) && self.has_room(&claim.name)
        } else {
            false
        }
    }

    /// Whether room is kept on a node, or may be: of nodes without a claim that does not outlive the process.
    fn has_room_on(&self, node: &str) -> bool {
        let claim = self.nodes.get(node).and_then(|node| self.claim_of(node));
        claim.is_none_or(|claim| self.has_room(&claim.name))
    }

    fn has_room(&self, claim: &str) -> bool {
        self.assigned.pods(claim).any(|pod| self.buffers.holds(pod))
    }
}
