//! Topology keys and their domains: nodes with one value of a label are one domain of its key. Both are small integers;
//! those of values that no node has any more are used again.

use whittle_model::Labels;

use crate::intern::Lookup;

/// Stands for a node without the label.
const NOWHERE: u32 = u32::MAX;

/// All keys that some pod has asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Topologies {
    ids: Lookup<String, u32>,
    keys: Vec<Topology>,
}

#[derive(Debug, Clone, Default)]
struct Topology {
    key: String,
    domains: Lookup<String, u32>,
    /// Value and number of nodes, by domain.
    values: Vec<(String, u32)>,
    free: Vec<u32>,
    of_slot: Vec<u32>,
}

impl Topologies {
    /// The integer of a key; `nodes` are read when it is new.
    pub fn id<'n>(&mut self, key: &str, nodes: impl Iterator<Item = (u32, &'n Labels)>) -> u32 {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        let id = self.keys.len() as u32;
        let mut topology = Topology { key: key.to_owned(), ..Topology::default() };
        nodes.for_each(|(slot, labels)| topology.put(slot, Some(labels)));
        self.keys.push(topology);
        self.ids.insert(key.to_owned(), id);
        id
    }

    /// The node at a slot has these labels; `None` when there is none any more.
    pub fn put(&mut self, slot: u32, labels: Option<&Labels>) {
        self.keys.iter_mut().for_each(|topology| topology.put(slot, labels));
    }

    /// The domain of a node, if it has the label.
    pub fn domain(&self, key: u32, slot: u32) -> Option<usize> {
        let domain = self.keys[key as usize].of_slot.get(slot as usize).copied();
        domain.filter(|domain| *domain != NOWHERE).map(|domain| domain as usize)
    }

    /// One more than the largest domain of a key.
    pub fn size(&self, key: u32) -> usize {
        self.keys[key as usize].values.len()
    }
}

impl Topology {
    fn put(&mut self, slot: u32, labels: Option<&Labels>) {
        let slot = slot as usize;
        if self.of_slot.len() <= slot {
            self.of_slot.resize(slot + 1, NOWHERE);
        }
        let value = labels.and_then(|labels| labels.get(&self.key));
        let before = self.of_slot[slot];
        if before != NOWHERE && value == Some(&self.values[before as usize].0) {
            return;
        }
        self.of_slot[slot] = value.map_or(NOWHERE, |value| self.enter(value));
        if before != NOWHERE {
            self.leave(before);
        }
    }

    fn enter(&mut self, value: &str) -> u32 {
        if let Some(domain) = self.domains.get(value) {
            self.values[*domain as usize].1 += 1;
            return *domain;
        }
        let domain = self.free.pop().unwrap_or(self.values.len() as u32);
        let entry = (value.to_owned(), 1);
        match self.values.get_mut(domain as usize) {
            Some(free) => *free = entry,
            None => self.values.push(entry),
        }
        self.domains.insert(value.to_owned(), domain);
        domain
    }

    fn leave(&mut self, domain: u32) {
        let (value, nodes) = &mut self.values[domain as usize];
        *nodes -= 1;
        if *nodes == 0 {
            self.domains.remove(value);
            self.free.push(domain);
        }
    }
}
