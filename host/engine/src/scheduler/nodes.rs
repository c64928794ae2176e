//! The nodes with what is taken on each, and the order in which they are looked at.

use whittle_model::{Effect, Labels, Node, Taint, keys, resources};

use super::identity::{Amounts, Identities};
use super::shapes::Shape;
use super::topology::Topologies;
use crate::intern::Lookup;

/// Taint of a node whose `Ready` condition is not true, set by the node lifecycle controller.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// A node by slot. A slot without `info` is a name that pods are bound or nominated to while no
/// such node is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub name: String,
    pub info: Option<Info>,
    /// Requests of the pods bound here.
    pub used: Amounts,
    /// CPU and memory of the pods bound here, with defaults for pods that ask for none.
    pub used_for_score: [i64; 2],
    /// Number of pods bound here.
    pub pods: i64,
    /// Host ports of the pods bound here, each kind as often as there are pods that take it.
    pub ports: Vec<u32>,
    /// Number of pods nominated to here.
    pub held: u32,
    /// Changes with anything above but `ports` and `held`; never the same for two states.
    pub revision: u64,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Info {
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub cordoned: bool,
    pub allocatable: Amounts,
    pub max_pods: i64,
    /// The zone as the node tree groups by it: region and zone.
    tree_zone: (String, String),
    /// Changes with anything above.
    pub revision: u64,
}

/// All nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    slots: Vec<Entry>,
    by_name: Lookup<String, u32>,
    free: Vec<u32>,
    /// Zones in the order of their first node, each with its nodes in the order they came.
    tree: Vec<((String, String), Vec<u32>)>,
    order: Vec<u32>,
    order_stale: bool,
    /// The domains that nodes are in.
    pub topologies: Topologies,
    revision: u64,
}

impl Nodes {
    /// A node is as given.
    pub fn apply(&mut self, node: &Node, identities: &mut Identities) {
        let slot = self.slot(&node.name);
        self.topologies.put(slot, Some(&node.labels));
        let mut info = Self::describe(node, identities);
        let tree_zone = info.tree_zone.clone();
        let before = self.slots[slot as usize].info.take();
        if let Some(before) = before {
            info.revision = before.revision;
            if before == info {
                self.slots[slot as usize].info = Some(info);
                return;
            }
            if before.tree_zone != tree_zone {
                self.prune(&before.tree_zone, slot);
                self.graft(tree_zone, slot);
            }
        } else {
            self.graft(tree_zone, slot);
        }
        info.revision = self.next_revision();
        self.slots[slot as usize].revision = info.revision;
        self.slots[slot as usize].info = Some(info);
    }

    /// A node is gone.
    pub fn remove(&mut self, name: &str) {
        let Some(slot) = self.find(name) else { return };
        if let Some(info) = self.slots[slot as usize].info.take() {
            self.prune(&info.tree_zone, slot);
        }
        self.topologies.put(slot, None);
        self.release(slot);
    }

    /// The integer of a topology key.
    pub fn topology(&mut self, key: &str) -> u32 {
        let slots = self.slots.iter().zip(0..);
        let nodes = slots.filter_map(|(entry, slot)| entry.info.as_ref().map(|info| (slot, &info.labels)));
        self.topologies.id(key, nodes)
    }

    /// Accounts host ports, of a pod that has any.
    pub fn take_ports(&mut self, slot: u32, ports: u32) {
        self.slots[slot as usize].ports.push(ports);
    }

    /// Takes host ports off the books.
    pub fn give_ports_back(&mut self, slot: u32, ports: u32) {
        let taken = &mut self.slots[slot as usize].ports;
        if let Some(at) = taken.iter().position(|other| *other == ports) {
            taken.swap_remove(at);
        }
    }

    /// The slot of a name, made if need be.
    pub fn slot(&mut self, name: &str) -> u32 {
        if let Some(slot) = self.find(name) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(Entry::default());
        }
        self.slots[slot as usize] = Entry { name: name.to_owned(), ..Entry::default() };
        self.by_name.insert(name.to_owned(), slot);
        slot
    }

    /// The slot of a name, if there is one.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The node at a slot.
    pub fn entry(&self, slot: u32) -> &Entry {
        &self.slots[slot as usize]
    }

    /// What the node at a slot is, when there is a node.
    pub fn info(&self, slot: u32) -> Option<&Info> {
        self.slots[slot as usize].info.as_ref()
    }

    /// The name of a slot.
    pub fn name(&self, slot: u32) -> &str {
        &self.slots[slot as usize].name
    }

    /// The number of slots there have ever been at once.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Accounts a pod.
    pub fn take(&mut self, slot: u32, shape: &Shape) {
        self.account(slot, shape, 1);
    }

    /// Takes a pod off the books.
    pub fn give_back(&mut self, slot: u32, shape: &Shape) {
        self.account(slot, shape, -1);
        self.release(slot);
    }

    /// Notes that a pod is nominated to the slot.
    pub fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].held += 1;
    }

    /// Notes that a pod is no longer nominated to the slot.
    pub fn let_go(&mut self, slot: u32) {
        self.slots[slot as usize].held -= 1;
        self.release(slot);
    }

    /// The nodes in the order the search goes through them: one of each zone in turn.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Brings [`order`](Self::order) up to date.
    pub fn refresh_order(&mut self) {
        if !std::mem::take(&mut self.order_stale) {
            return;
        }
        self.order.clear();
        let longest = self.tree.iter().map(|(_, slots)| slots.len()).max().unwrap_or(0);
        for turn in 0..longest {
            self.order.extend(self.tree.iter().filter_map(|(_, slots)| slots.get(turn)));
        }
    }

    fn describe(node: &Node, identities: &mut Identities) -> Info {
        let mut taints = node.taints.clone();
        let not_ready = Taint::new(NOT_READY, "", Effect::NoSchedule);
        if !node.ready && !taints.contains(&not_ready) {
            taints.push(not_ready);
        }
        let label = |key: &str| node.labels.get(key).cloned().unwrap_or_default();
        Info {
            taints,
            cordoned: node.cordoned,
            allocatable: identities.columns.amounts(&node.allocatable),
            max_pods: node.allocatable.get(resources::PODS),
            tree_zone: (label(keys::REGION), label(keys::ZONE)),
            labels: node.labels.clone(),
            revision: 0,
        }
    }

    fn account(&mut self, slot: u32, shape: &Shape, sign: i64) {
        let revision = self.next_revision();
        let entry = &mut self.slots[slot as usize];
        if entry.used.len() < shape.requests.len() {
            entry.used.resize(shape.requests.len(), 0);
        }
        for (used, amount) in entry.used.iter_mut().zip(&shape.requests) {
            *used += sign * amount;
        }
        for (used, amount) in entry.used_for_score.iter_mut().zip(shape.for_score) {
            *used += sign * amount;
        }
        entry.pods += sign;
        entry.revision = revision;
    }

    /// Frees a slot that nothing needs.
    fn release(&mut self, slot: u32) {
        let entry = &self.slots[slot as usize];
        if entry.info.is_none() && entry.pods == 0 && entry.held == 0 {
            self.by_name.remove(&entry.name);
            self.free.push(slot);
        }
    }

    fn graft(&mut self, zone: (String, String), slot: u32) {
        self.order_stale = true;
        match self.tree.iter_mut().find(|(known, _)| *known == zone) {
            Some((_, slots)) => slots.push(slot),
            None => self.tree.push((zone, vec![slot])),
        }
    }

    fn prune(&mut self, zone: &(String, String), slot: u32) {
        self.order_stale = true;
        if let Some((_, slots)) = self.tree.iter_mut().find(|(known, _)| known == zone) {
            slots.retain(|other| *other != slot);
        }
        self.tree.retain(|(_, slots)| !slots.is_empty());
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}
