//! What each node class can buy.

use std::collections::BTreeSet;
use std::sync::Arc;

use whittle_cluster::{Located, NodeClassObject, Object, yaml::closest};
use whittle_model::{Catalog, ComesTo, NodeClass};
use whittle_sim::catalog::{AmiFamily, CatalogOptions, InstanceStorePolicy, Kubelet, Sources, build, zones_of};
use whittle_sim::{ScenarioObject, Verb};

use crate::failure::Failure;

/// Makes catalogues.
#[derive(Debug)]
pub struct Catalogs {
    sources: Sources,
    region: String,
}

impl Catalogs {
    /// From these tables, in this region.
    #[must_use]
    pub fn new(sources: Sources, region: &str) -> Self {
        Self { sources, region: region.to_owned() }
    }

    /// What a node class makes of instance types.
    ///
    /// # Errors
    /// When the region or a zone is not known, or a kubelet setting cannot be read.
    pub fn of(&self, written: &NodeClassObject) -> Result<Arc<Catalog>, String> {
        let kubelet = &written.kubelet;
        let defaults = self.defaults(&written.class.name);
        let options = CatalogOptions {
            zones: (!written.subnets.is_empty()).then(|| {
                let zones: BTreeSet<String> = written.subnets.iter().map(|subnet| subnet.zone.clone()).collect();
                zones.into_iter().collect()
            }),
            zone_ids: written.zone_ids.clone(),
            family: AmiFamily::parse(&written.family).unwrap_or_default(),
            instance_store: if written.instance_store_raid0 { InstanceStorePolicy::Raid0 } else { InstanceStorePolicy::Unused },
            root_volume_bytes: written.root_volume_bytes.unwrap_or(defaults.root_volume_bytes),
            kubelet: Kubelet {
                max_pods: kubelet.max_pods,
                pods_per_core: kubelet.pods_per_core,
                kube_reserved: kubelet.kube_reserved.clone(),
                system_reserved: kubelet.system_reserved.clone(),
                eviction_hard: kubelet.eviction_hard.clone(),
            },
            ..defaults
        };
        let mut catalog = build(&options, &self.sources).map_err(|error| format!("EC2NodeClass {}: {error}", written.class.name))?;
        catalog.reserve(&written.held);
        Ok(Arc::new(catalog))
    }

    /// When there is no EC2NodeClass at all, one for each name that a NodePool or claim gives: who
    /// tries a NodePool rarely has the class at hand. Where some are there, a missing one is a
    /// mistake, and its pools are not ready, as on a cluster.
    ///
    /// # Errors
    /// When the region is not known.
    pub fn assumed(&self, objects: &[&Located<Object>]) -> Result<Vec<(String, ScenarioObject)>, Failure> {
        if objects.iter().any(|located| matches!(located.object, Object::NodeClass(_))) {
            return Ok(Vec::new());
        }
        let mut names = BTreeSet::new();
        for located in objects {
            if let Object::NodePool(pool) = &located.object {
                names.insert(pool.template.node_class.clone());
            } else if let Object::NodeClaim(claim) = &located.object {
                names.insert(claim.node_class.clone());
            }
        }
        let assume = |name: String| {
            let catalog = build(&self.defaults(&name), &self.sources)?;
            let class = NodeClass { name: name.clone(), not_ready: None, ..NodeClass::default() };
            Ok((name, ScenarioObject::NodeClass(class, Arc::new(catalog), ComesTo::default())))
        };
        names.into_iter().map(assume).collect()
    }

    /// What is wrong with a type or zone that a story names as sold out; such a line would do nothing.
    #[must_use]
    pub fn unknown(&self, verb: &Verb) -> Option<String> {
        let Verb::SoldOut { instance_type, zone, .. } = verb else { return None };
        let zones = zones_of(&self.region).unwrap_or_default();
        let hint = |meant: Option<&str>| meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        if let Some(name) = instance_type.as_deref().filter(|name| self.sources.facts.get(name).is_none()) {
            let names = self.sources.facts.iter().map(|facts| facts.name.as_str());
            return Some(format!("there is no instance type {name}{}", hint(closest(name, names))));
        }
        let zone = zone.as_deref().filter(|zone| !zones.contains(zone))?;
        Some(format!("{} has no zone {zone}; its zones are {}", self.region, zones.join(", ")))
    }

    fn defaults(&self, name: &str) -> CatalogOptions {
        CatalogOptions { node_class: name.to_owned(), region: self.region.clone(), ..CatalogOptions::default() }
    }
}
