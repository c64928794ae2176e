//! A slow start: what moves are worth is judged by policies, overlays, prices and settings. When one of them changes its
//! mind, few nodes move to save money until that has proved itself, so that no mistake moves a whole cluster. Who takes a
//! cluster over does not know what changed meanwhile. Claims tell: each says by what moves were judged when it was made.
//!
//! What must not enter: moves for other reasons; budgets limit those.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whittle_model::{CapacityType, Catalog, Event, InstanceType, Micros, Settings, Timestamp, keys};

use crate::plan::write;
use crate::world::World;

/// What is said while it is not known whether anything changed.
const UNKNOWN: &str = "the controller began anew, and what moves are judged by may have";

/// The last change of mind, and what moved since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Soak {
    /// Modules of policies, by name, as they were told last.
    policies: BTreeMap<String, String>,
    changed: Option<(Timestamp, String)>,
    /// When a cluster was taken over that had nodes already, or since when it is known that moves have been judged as now.
    #[serde(default)]
    taken_over: Option<Timestamp>,
    /// Nodes that began to move since.
    moved: usize,
}

impl Soak {
    /// Notes what changes its mind, before `world` knows of it. What is told before all lists are in is no change.
    pub(super) fn note(&mut self, world: &World, event: &Event, now: Timestamp) {
        let what = self.change(world, event);
        if let Some(what) = what.filter(|_| world.synced) {
            (self.changed, self.moved) = (Some((now, what)), 0);
        }
    }

    /// A cluster with nodes is taken over; so many are known to have moved within the time of a slow start.
    pub(super) fn take_over(&mut self, moved: usize, now: Timestamp) {
        (self.taken_over, self.moved) = (Some(now), moved);
    }

    /// Looks for the oldest claim that was made when moves were judged as they are now: it is the witness that they were.
    pub(super) fn hear(&mut self, world: &World, now: Timestamp) {
        let young = |at: &Timestamp| at.plus(world.settings.disruption.soak) > now;
        let Some(since) = self.taken_over.filter(young) else { return };
        let by = self.fingerprint(world);
        let so = world.claims.values().filter(|claim| claim.annotations.get(keys::JUDGED_BY) == Some(&by));
        self.taken_over = so.map(|claim| claim.created).chain([since]).min();
    }

    /// What moves are judged by, in a few letters.
    pub(super) fn fingerprint(&self, world: &World) -> String {
        let chains: Vec<_> = world.pools.iter().map(|(name, pool)| (name, pool.annotations.get(keys::POLICY))).collect();
        let prices = world.catalogs.values().flat_map(|catalog| &catalog.types).map(|of| (&of.name, on_demand(of)));
        let prices: Vec<_> = prices.collect();
        let judges = (judges(&world.settings), &self.policies, chains, &world.overlays);
        write::fingerprint(&format!("{} {judges:?} {prices:?}", env!("CARGO_PKG_VERSION")))
    }

    fn change(&mut self, world: &World, event: &Event) -> Option<String> {
        if let Event::PolicyLoaded { name, digest } = event {
            // The same module told again has another configuration. One that could not be asked before changes no mind.
            let before = self.policies.insert(name.clone(), digest.clone());
            return before.filter(|before| !before.is_empty()).map(|_| format!("policy {name}"));
        }
        if let Event::NodePool(pool) = event {
            let chain = |annotations: &whittle_model::Labels| annotations.get(keys::POLICY).cloned();
            let known = world.pools.get(&pool.name)?;
            return (chain(&known.annotations) != chain(&pool.annotations)).then(|| format!("the policies of nodepool {}", pool.name));
        }
        if let Event::NodeOverlay(overlay) = event {
            let same = world.overlays.get(&overlay.name).is_some_and(|known| *known == **overlay);
            return (!same).then(|| format!("overlay {}", overlay.name));
        }
        if let Event::NodeOverlayGone(name) = event {
            return world.overlays.contains_key(name).then(|| format!("overlay {name}"));
        }
        if let Event::Catalog(catalog) = event {
            let dearer = world.catalogs.get(&catalog.node_class).is_some_and(|known| other_list_prices(known, catalog));
            return dearer.then(|| "the list prices".to_owned());
        }
        if let Event::Price(offering, price) = event {
            let on_demand = offering.capacity_type == CapacityType::OnDemand;
            let known = |catalog: &Catalog| catalog.offering(offering).is_some_and(|known| known.price != *price);
            return (on_demand && world.catalogs.values().any(|catalog| known(catalog))).then(|| "the list prices".to_owned());
        }
        let Event::Settings(settings) = event else { return None };
        (judges(&world.settings) != judges(settings)).then(|| "the settings".to_owned())
    }

    /// How many more nodes may move to save money now; `None` leaves it to the budgets.
    pub(super) fn left(&self, world: &World, now: Timestamp) -> Option<usize> {
        self.ends(world).filter(|end| *end > now).map(|_| world.settings.disruption.soak_nodes.saturating_sub(self.moved))
    }

    /// When it is over.
    pub(super) fn ends(&self, world: &World) -> Option<Timestamp> {
        let changed = self.changed.as_ref().map(|(at, _)| *at);
        changed.max(self.taken_over).map(|at| at.plus(world.settings.disruption.soak))
    }

    /// So many nodes began to move to save money.
    pub(super) fn moved(&mut self, nodes: usize) {
        self.moved += nodes;
    }

    /// Why no more may move.
    pub(super) fn why(&self, world: &World) -> String {
        let what = self.changed.as_ref().map_or(UNKNOWN, |(_, what)| what);
        let most = world.settings.disruption.soak_nodes;
        format!("{what} changed: {most} nodes move to save money within {}, and no more", world.settings.disruption.soak)
    }
}

/// The settings that moves depend on.
fn judges(settings: &Settings) -> impl PartialEq + std::fmt::Debug + use<'_> {
    (settings.packing, settings.nomination, &settings.features, &settings.disruption)
}

/// The on-demand prices of a type, by zone.
fn on_demand(of: &InstanceType) -> BTreeMap<&str, Micros> {
    let offerings = of.offerings.iter().filter(|offering| offering.capacity_type == CapacityType::OnDemand);
    offerings.map(|offering| (offering.zone.as_str(), offering.price)).collect()
}

/// Whether anything that both sell on demand has another price. Spot prices change all day long.
fn other_list_prices(old: &Catalog, new: &Catalog) -> bool {
    new.types.iter().any(|of| {
        let Some(known) = old.get(&of.name) else { return false };
        let before = on_demand(known);
        on_demand(of).iter().any(|(zone, price)| before.get(zone).is_some_and(|before| before != price))
    })
}
