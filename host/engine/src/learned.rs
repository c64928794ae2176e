//! What nodes turned out to have: memory of an instance type is computed before any is bought, and now and then the
//! kubelet finds less. Planning with the guess again would buy the same node for ever, so the largest shortfall seen is
//! remembered by node class, type and image, and taken off the catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use whittle_model::resources::MEMORY;
use whittle_model::{Catalog, InstanceType, Resources, Timestamp};

use crate::world::World;

/// More entries than types of any region times a few node classes: beyond it, what was seen longest ago is forgotten.
const MOST: usize = 5_000;

/// Shortfalls by node class and instance type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Learned(BTreeMap<(String, String), Shortfall>);

/// How much less a node has than was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shortfall {
    node_class: String,
    instance_type: String,
    /// The image it was seen with: another one may bring another kernel.
    image: String,
    /// Bytes.
    memory: i64,
    /// When a node of that image was last seen to join.
    at: Timestamp,
}

impl Learned {
    pub(crate) fn objects(&self) -> Vec<Shortfall> {
        self.0.values().cloned().collect()
    }

    pub(crate) fn of_objects(objects: Vec<Shortfall>) -> Self {
        Self(objects.into_iter().map(|s| ((s.node_class.clone(), s.instance_type.clone()), s)).collect())
    }

    /// Bytes by which nodes of the type have less memory than computed.
    fn memory(&self, node_class: &str, instance_type: &str) -> i64 {
        self.0.get(&(node_class.to_owned(), instance_type.to_owned())).map_or(0, |s| s.memory)
    }

    fn enter(&mut self, shortfall: Shortfall) {
        self.0.insert((shortfall.node_class.clone(), shortfall.instance_type.clone()), shortfall);
        if self.0.len() > MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(key, s)| (s.at, *key)).map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
    }
}

fn reduce(amounts: &mut Resources, by: i64) {
    amounts.set(MEMORY, (amounts.get(MEMORY) - by).max(0));
}

impl World {
    /// Takes in what a node class can buy, less what its nodes turned out not to have.
    pub(crate) fn put_catalog(&mut self, catalog: &Arc<Catalog>) {
        let mut catalog = Arc::clone(catalog);
        let short = |t: &InstanceType| self.learned.memory(&catalog.node_class, &t.name);
        let shortfalls: Vec<(usize, i64)> = if self.learned.0.is_empty() {
            Vec::new()
        } else {
            catalog.types.iter().map(short).enumerate().filter(|(_, by)| *by != 0).collect()
        };
        if !shortfalls.is_empty() {
            let types = &mut Arc::make_mut(&mut catalog).types;
            shortfalls.into_iter().for_each(|(at, by)| reduce(&mut types[at].allocatable, by));
        }
        self.catalogs.insert(catalog.node_class.clone(), catalog);
    }

    /// What a node of this type is expected to have, of what was computed.
    pub(crate) fn expected(&self, node_class: &str, instance_type: &str, computed: &Resources) -> Resources {
        let mut expected = computed.clone();
        let by = self.learned.memory(node_class, instance_type);
        if by != 0 {
            reduce(&mut expected, by);
        }
        expected
    }

    /// Compares what a node that has just joined has with what was planned.
    pub(crate) fn learn_from(&mut self, claim: &str, now: Timestamp) {
        let Some(claim) = self.claims.get(claim) else { return };
        let Some(seen) = self.node_of(claim).map(|node| node.allocatable.get(MEMORY)).filter(|seen| *seen > 0) else { return };
        let key = (claim.node_class.clone(), claim.status.instance_type.clone());
        let image = claim.status.image.clone();
        let Some(catalog) = self.catalogs.get_mut(&key.0) else { return };
        let Ok(at) = catalog.types.binary_search_by(|t| t.name.cmp(&key.1)) else { return };
        let known = self.learned.0.get(&key);
        let before = known.map_or(0, |s| s.memory);
        let computed = catalog.types[at].allocatable.get(MEMORY) + before;
        let same_image = known.filter(|s| s.image == image);
        let short = (computed - seen).max(same_image.map_or(0, |s| s.memory));
        if short == before && same_image.is_some() {
            return;
        }
        if short == 0 && before == 0 {
            return;
        }
        if short != before {
            self.stocks.get_mut().clear();
            Arc::make_mut(catalog).types[at].allocatable.set(MEMORY, computed - short);
        }
        if short == 0 {
            self.learned.0.remove(&key);
        } else {
            let (node_class, instance_type) = key;
            self.learned.enter(Shortfall { node_class, instance_type, image, memory: short, at: now });
        }
        if short != before {
            self.overlay();
        }
    }
}
