//! How many volumes nodes hold and may hold, by driver.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Node, PodKey, keys};

use super::resolve::{self, Mounted, VolumeId, attached};
use crate::plan::amounts::Amounts;
use crate::world::World;

/// Volumes by driver, as far as drivers that pods to be placed use limit some node.
#[derive(Debug, Default)]
pub(crate) struct Attached<'w> {
    /// The drivers, by name. Each is a dimension.
    drivers: Vec<&'w str>,
    /// More volumes than the plan could attach to one node: what a node without a limit has room for.
    plenty: i64,
    /// What nodes hold, by name; nodes that hold nothing are not listed.
    nodes: BTreeMap<&'w str, Held>,
    /// The least that a node of a type was seen to take, by type and driver.
    types: BTreeMap<(&'w str, usize), i64>,
    /// Numbers of the volumes that several pods use.
    shared: BTreeMap<(usize, VolumeId<'w>), u32>,
}

/// What a node holds.
#[derive(Debug, Default)]
struct Held {
    /// Distinct volumes, by driver.
    counts: Vec<i64>,
    /// Those among them that pods to be placed use.
    shared: Vec<u32>,
}

impl<'w> Attached<'w> {
    /// The limits that matter to pods with these volumes.
    pub(super) fn new(world: &'w World, pods: &[(&PodKey, Vec<Mounted<'w>>)]) -> Self {
        let used = pods.iter().flat_map(|(_, mounted)| mounted).filter_map(|m| m.attached.as_ref());
        let used: BTreeSet<&str> = used.map(|(driver, _)| *driver).collect();
        let limited = |driver: &&str| world.storage.limits.values().any(|l| l.drivers.contains_key(*driver));
        let drivers: Vec<&str> = used.into_iter().filter(limited).collect();
        if drivers.is_empty() {
            return Self::default();
        }
        let mut this = Self { drivers, ..Self::default() };
        let mut uses: BTreeMap<(usize, VolumeId<'w>), usize> = BTreeMap::new();
        for (driver, id) in pods.iter().flat_map(|(_, mounted)| mounted).filter_map(|m| m.attached.clone()) {
            if let Some(driver) = this.driver(driver) {
                *uses.entry((driver, id)).or_default() += 1;
                this.plenty += 1;
            }
        }
        this.learn_types(world);
        let held = this.held(world);
        for (id, count) in uses {
            if count > 1 || held.values().any(|ids| ids.contains(&id)) {
                let number = u32::try_from(this.shared.len()).expect("fewer volumes than 2^32");
                this.shared.insert(id, number);
            }
        }
        for (node, ids) in held {
            let mut counts = vec![0; this.drivers.len()];
            ids.iter().for_each(|(driver, _)| counts[*driver] += 1);
            let shared = ids.iter().filter_map(|id| this.shared.get(id).copied()).collect();
            this.nodes.insert(node, Held { counts, shared });
        }
        this
    }

    fn driver(&self, name: &str) -> Option<usize> {
        self.drivers.binary_search(&name).ok()
    }

    /// Types never seen have no limit, as documented; of those seen the smallest limit counts.
    fn learn_types(&mut self, world: &'w World) {
        for limits in world.storage.limits.values() {
            let Some(of) = world.nodes.get(&limits.node).and_then(|node| node.labels.get(keys::INSTANCE_TYPE)) else { continue };
            for (at, driver) in self.drivers.iter().enumerate() {
                if let Some(limit) = limits.drivers.get(*driver) {
                    let known = self.types.entry((of, at)).or_insert(i64::from(*limit));
                    *known = i64::from(*limit).min(*known);
                }
            }
        }
    }

    /// The volumes on each node: those of its pods, and those that are attached to it for other reasons.
    fn held(&self, world: &'w World) -> BTreeMap<&'w str, BTreeSet<(usize, VolumeId<'w>)>> {
        let mut held: BTreeMap<&str, BTreeSet<(usize, VolumeId<'_>)>> = BTreeMap::new();
        let counted = |(driver, id)| self.driver(driver).map(|driver| (driver, id));
        for (node, usage) in &world.usage {
            for key in &usage.pods {
                let Some(record) = world.pods.get(key).filter(|record| !record.volumes.is_empty()) else { continue };
                let of_pod = record.volumes.iter().filter_map(|volume| resolve::counted(&world.storage, key, volume));
                held.entry(node).or_default().extend(of_pod.filter_map(counted));
            }
        }
        for attachment in world.storage.attachments.values() {
            let volume = world.storage.volumes.get(&attachment.volume);
            if let Some(id) = volume.and_then(attached).and_then(counted) {
                held.entry(&attachment.node).or_default().insert(id);
            }
        }
        held
    }

    /// How many volumes of its own a pod brings by driver, and those it shares with others.
    pub(super) fn split(&self, mounted: &[Mounted<'w>]) -> (Vec<i64>, Vec<(usize, u32)>) {
        let mut ids: Vec<(usize, VolumeId<'w>)> =
            mounted.iter().filter_map(|m| m.attached.clone()).filter_map(|(driver, id)| Some((self.driver(driver)?, id))).collect();
        ids.sort_unstable();
        ids.dedup();
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for id in ids {
            if let Some(number) = self.shared.get(&id) {
                shared.push((id.0, *number));
            } else {
                own.resize(self.drivers.len(), 0);
                own[id.0] += 1;
            }
        }
        (own, shared)
    }

    /// The names of the dimensions.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = String> {
        self.drivers.iter().map(|driver| format!("volumes of {driver}"))
    }

    /// Enters how many volumes a new node of a type has room for.
    pub(crate) fn room_of_type(&self, instance_type: &str, room: &mut Amounts, first: usize) {
        for at in 0..self.drivers.len() {
            room[first + at] = self.types.get(&(instance_type, at)).copied().unwrap_or(self.plenty);
        }
    }

    /// Enters how many more volumes a node has room for; returns those there that pods to be placed share.
    pub(crate) fn room_of_node(&self, world: &World, node: &Node, room: &mut Amounts, first: usize) -> Vec<u32> {
        if self.drivers.is_empty() {
            return Vec::new();
        }
        let limits = world.storage.limits.get(&node.name);
        let instance_type = node.labels.get(keys::INSTANCE_TYPE).map_or("", String::as_str);
        let held = self.nodes.get(node.name.as_str());
        for (at, driver) in self.drivers.iter().enumerate() {
            let limit = limits.and_then(|limits| limits.drivers.get(*driver)).map(|limit| i64::from(*limit));
            // Until a node's drivers have spoken, it is as others of its type.
            let limit = limit.or_else(|| {
                let of_type = self.types.get(&(instance_type, at)).copied();
                of_type.filter(|_| limits.is_none())
            });
            room[first + at] = limit.map_or(self.plenty, |limit| limit - held.map_or(0, |held| held.counts[at]));
        }
        held.map(|held| held.shared.clone()).unwrap_or_default()
    }
}
