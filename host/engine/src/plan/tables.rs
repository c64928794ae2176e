//! What can be bought, as dense tables for one plan: pools in order, their instance types as rows,
//! their offerings, and what daemons leave of each type.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use fixedbitset::FixedBitSet;
use whittle_model::requirements::Requirements;
use whittle_model::{
    CapacityType, Catalog, InstanceType, Micros, NodePool, Offering, OfferingKey, Requirement, Resources, Timestamp, keys,
};

use super::amounts::{Amounts, Dimensions, add};
use super::daemons::Daemon;
use super::flexible::Flexibility;
use super::ports::{PortSet, Ports};
use super::premises::Premises;
use super::reserved;
use super::states::{offering_allows, type_allows};
use crate::overlays::Face;
use crate::world::World;

/// A pool from which nodes may be bought.
#[derive(Debug)]
pub(crate) struct PoolTable<'w> {
    pub(crate) pool: &'w NodePool,
    pub(crate) catalog: &'w Catalog,
    /// Its place among the tables.
    pub(crate) number: usize,
    /// The first table of this pool: overlays may make several of one, which share its limits.
    pub(crate) home: usize,
    /// Whether it is of capacity reservations alone; these stand in no other table.
    pub(crate) reserved: bool,
    /// Pools of equal weight share a tier; tier 0 goes first.
    pub(crate) tier: usize,
    /// What a node of this pool is known to be before its type is chosen.
    pub(crate) template: Requirements,
    /// The types the template allows.
    pub(crate) rows: Vec<Row<'w>>,
    /// The offerings the template allows, those of one row side by side.
    pub(crate) offers: Vec<Offer<'w>>,
    /// By row: offerings that are sold out today. A claim that allows them may come to be bought from them.
    pub(crate) resting: Vec<(u32, &'w Offering)>,
    /// The place of each offering among them by capacity type, type and zone: what decides between equal
    /// ranks.
    pub(crate) places: Vec<u32>,
    /// How many distinct values a claim must keep.
    pub(crate) flexibility: Flexibility,
    /// How many capacity types are among them.
    pub(crate) ways: usize,
}

/// An instance type in a pool.
#[derive(Debug)]
pub(crate) struct Row<'w> {
    pub(crate) instance_type: &'w InstanceType,
    /// What is left for pods once the daemons of such a node have their share.
    pub(crate) room: Amounts,
    /// What those daemons ask for.
    pub(crate) daemons: Resources,
    /// The host ports that they bar.
    pub(crate) barred: PortSet,
    pub(crate) offers: Range<usize>,
    /// Whether an overlay added to what it has.
    pub(crate) overlaid: bool,
}

/// An offering in a pool. What it is worth is the pricer's matter.
#[derive(Debug)]
pub(crate) struct Offer<'w> {
    pub(crate) row: u32,
    pub(crate) offering: &'w Offering,
    /// Whether an overlay made its price.
    pub(crate) overlaid: bool,
}

/// All pools, and why others are left out.
#[derive(Debug)]
pub(crate) struct Tables<'w> {
    pub(crate) dimensions: Dimensions,
    pub(crate) pools: Vec<PoolTable<'w>>,
    /// Pools that cannot be bought from: name and reason.
    pub(crate) closed: Vec<(String, String)>,
    /// Whether a claim may have fewer distinct values than its pool asks for when there are no more.
    pub(crate) relax: bool,
}

impl<'w> Tables<'w> {
    /// The tables of `world` at `now`.
    pub(crate) fn new(
        world: &'w World,
        dimensions: Dimensions,
        premises: &Premises<'w>,
        closed: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let mut order: Vec<&NodePool> = world.pools.values().collect();
        order.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| b.name.cmp(&a.name)));
        let mut tables = Self { dimensions, pools: Vec::new(), closed: Vec::new(), relax: world.settings.relax_min_values };
        let mut tier = 0;
        for pool in order {
            let refused = closed.get(&pool.name).cloned();
            match refused.map_or_else(|| planned_catalog(world, pool), Err) {
                Err(why) => tables.closed.push((pool.name.clone(), why)),
                Ok(catalog) => {
                    if tables.pools.last().is_some_and(|last| last.pool.weight != pool.weight) {
                        tier += 1;
                    }
                    tables.open(world, (pool, catalog, tier), premises, now);
                }
            }
        }
        tables
    }

    /// The table of one pool that keeps its number of nodes.
    pub(crate) fn of_static(
        world: &'w World,
        pool: &str,
        premises: &Premises<'w>,
        closed: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let dimensions = premises.dimensions(std::iter::empty());
        let mut tables = Self { dimensions, pools: Vec::new(), closed: Vec::new(), relax: world.settings.relax_min_values };
        let open = world.pools.get(pool).filter(|pool| !closed.contains_key(&pool.name));
        if let Some((pool, catalog)) = open.and_then(|pool| Some((pool, open_catalog(world, pool).ok()?))) {
            tables.open(world, (pool, catalog, 0), premises, now);
        }
        tables
    }

    /// Adds a pool, in as many tables as overlays take it apart.
    fn open(
        &mut self,
        world: &'w World,
        (pool, catalog, tier): (&'w NodePool, &'w Catalog, usize),
        premises: &Premises<'w>,
        now: Timestamp,
    ) {
        let home = self.pools.len();
        let template = template_requirements(pool);
        let faces = world.overlaid.faces.get(&pool.name).map_or(&[][..], Vec::as_slice);
        let all = if faces.is_empty() { vec![None] } else { faces.iter().map(Some).collect() };
        for (face, reserved) in all.into_iter().flat_map(|face| [(face, true), (face, false)]) {
            if reserved && !world.settings.features.reserved_capacity {
                continue;
            }
            let places = (self.pools.len(), home, tier);
            let mut table = PoolTable::empty(pool, face.map_or(catalog, |face| &face.catalog), template.clone(), places);
            face.iter().for_each(|face| table.template.add_all(&face.narrowed));
            if reserved {
                table.template = reserved::template(&table.template);
                table.reserved = true;
            }
            fill(world, &mut table, face, (&self.dimensions, premises), now);
            if !table.rows.is_empty() {
                self.pools.push(table);
            }
        }
        if self.pools.len() == home {
            let wanted = pool.template.requirements.to_string();
            let none = || format!("no instance type for sale meets its requirements ({wanted})");
            let resting = resting_until(world, catalog, &template, now);
            self.closed.push((pool.name.clone(), resting.map_or_else(none, |until| sold_out_text(&wanted, until, now))));
        }
    }
}

impl<'w> PoolTable<'w> {
    fn empty(pool: &'w NodePool, catalog: &'w Catalog, template: Requirements, (number, home, tier): (usize, usize, usize)) -> Self {
        let (rows, offers, resting, places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let flexibility = Flexibility::default();
        Self { pool, catalog, number, home, reserved: false, tier, template, rows, offers, resting, places, flexibility, ways: 0 }
    }
}

impl PoolTable<'_> {
    /// Whether an overlay made a price here.
    pub(crate) fn priced_by_overlay(&self) -> bool {
        self.offers.iter().any(|offer| offer.overlaid)
    }

    /// An offering as a claim lists it.
    pub(crate) fn listed(&self, offer: u32, rank: Micros) -> (&str, &str, i64) {
        let Offer { row, offering, .. } = &self.offers[offer as usize];
        (&self.rows[*row as usize].instance_type.name, &offering.zone, rank.0)
    }

    /// The public name of an offering.
    pub(crate) fn key(&self, offer: &Offer<'_>) -> OfferingKey {
        self.rows[offer.row as usize].instance_type.key(offer.offering)
    }
}

/// The catalogue of a pool that may be bought from for pods, or why it may not.
fn planned_catalog<'w>(world: &'w World, pool: &NodePool) -> Result<&'w Catalog, String> {
    match pool.replicas {
        Some(replicas) => Err(format!("it is static: its replicas are {replicas}, whatever pods ask for")),
        None => open_catalog(world, pool),
    }
}

/// The catalogue of a pool that may be bought from, or why it may not.
fn open_catalog<'w>(world: &'w World, pool: &NodePool) -> Result<&'w Catalog, String> {
    if pool.deleting {
        return Err("it is being deleted".to_owned());
    }
    if let Some(why) = &pool.not_ready {
        return Err(why.clone());
    }
    if world.frozen(&pool.name) {
        return Err("its latest change could not be read".to_owned());
    }
    let counted = pool.replicas.is_some() || !pool.limits.amounts.is_empty();
    if counted && world.unaccounted() {
        return Err("there is a NodeClaim that cannot be read, which may be its own: what it has cannot be counted".to_owned());
    }
    let name = &pool.template.node_class;
    match world.node_classes.get(name) {
        None => return Err(format!("its EC2NodeClass {name} does not exist")),
        Some(class) => {
            if let Some(why) = &class.not_ready {
                return Err(format!("its EC2NodeClass {name} is not ready: {why}"));
            }
        }
    }
    world.catalog(name).ok_or_else(|| format!("the instance types of EC2NodeClass {name} are not known yet"))
}

/// What every node of a pool is known to be: its requirements, its labels, and whose it is.
pub(crate) fn template_requirements(pool: &NodePool) -> Requirements {
    let mut all = pool.template.requirements.clone();
    all.add_all(&Requirements::of_labels(&pool.template.labels));
    all.add(Requirement::any_of(keys::NODE_POOL, &[&pool.name]));
    all.add(Requirement::any_of(keys::NODE_CLASS, &[&pool.template.node_class]));
    all
}

fn fill<'w>(
    world: &'w World,
    table: &mut PoolTable<'w>,
    face: Option<&Face>,
    (dimensions, premises): (&Dimensions, &Premises<'w>),
    now: Timestamp,
) {
    let catalog = table.catalog;
    for (at, instance_type) in catalog.types.iter().enumerate() {
        if !type_allows(instance_type, &table.template) {
            continue;
        }
        let (row, start) = (u32::try_from(table.rows.len()).expect("a catalogue has fewer than 2^32 types"), table.offers.len());
        for (number, offering) in instance_type.offerings.iter().enumerate() {
            let kind = (offering.capacity_type == CapacityType::Reserved) == table.reserved;
            if !kind || !offering.available || !offering_allows(offering, &table.template) {
                continue;
            }
            if for_sale(world, instance_type, offering, now) {
                table.offers.push(Offer { row, offering, overlaid: face.is_some_and(|face| face.priced(at, number)) });
            } else {
                table.resting.push((row, offering));
            }
        }
        if table.offers.len() == start {
            table.resting.retain(|(of, _)| *of != row);
        } else {
            let (mut room, offers) = (dimensions.dense(&instance_type.allocatable), start..table.offers.len());
            premises.volumes.attached().room_of_type(&instance_type.name, &mut room, dimensions.volumes);
            let overlaid = face.is_some_and(|face| face.sized(at));
            let (daemons, barred) = (Resources::default(), PortSet::default());
            table.rows.push(Row { instance_type, room, daemons, barred, offers, overlaid });
        }
    }
    for daemon in &premises.daemons {
        reserve_for_daemon(table, daemon, dimensions, &premises.ports);
    }
    drop_full(table);
    table.places = places(table);
    table.flexibility = Flexibility::new(&table.template, &table.rows, &table.offers);
    table.ways = table.offers.iter().map(|o| o.offering.capacity_type).collect::<BTreeSet<_>>().len();
}

fn places(table: &PoolTable<'_>) -> Vec<u32> {
    let name = |offer: &Offer<'_>| &table.rows[offer.row as usize].instance_type.name;
    let mut order: Vec<usize> = (0..table.offers.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&table.offers[*a], &table.offers[*b]);
        // Offerings of one type stand side by side: most often no name need be compared.
        let types = || if a.row == b.row { std::cmp::Ordering::Equal } else { name(a).cmp(name(b)) };
        let ways = a.offering.capacity_type.cmp(&b.offering.capacity_type);
        // Of reservations those that nobody may take back go first, and blocks after others.
        let part = |offer: &Offer<'_>| offer.offering.reservation.as_ref().map(|r| (r.interruptible, r.block));
        ways.then_with(|| part(a).cmp(&part(b))).then_with(types).then_with(|| a.offering.zone.cmp(&b.offering.zone))
    });
    let mut places = vec![0; order.len()];
    for (place, offer) in order.into_iter().enumerate() {
        places[offer] = u32::try_from(place).expect("a catalogue has fewer than 2^32 offerings");
    }
    places
}

/// Leaves out the types that have no room for their daemons alone.
fn drop_full(table: &mut PoolTable<'_>) {
    let fits = |row: &Row<'_>| row.daemons.fit_in(&row.instance_type.allocatable);
    if table.rows.iter().all(fits) {
        return;
    }
    let (rows, offers) = (std::mem::take(&mut table.rows), std::mem::take(&mut table.offers));
    let resting = std::mem::take(&mut table.resting);
    let mut offers = offers.into_iter().peekable();
    for (number, row) in rows.into_iter().enumerate() {
        let keep = fits(&row);
        let (at, start) = (u32::try_from(table.rows.len()).expect("a catalogue has fewer than 2^32 types"), table.offers.len());
        while let Some(offer) = offers.next_if(|o| o.row as usize == number) {
            if keep {
                table.offers.push(Offer { row: at, ..offer });
            }
        }
        if keep {
            table.resting.extend(resting.iter().filter(|(of, _)| *of as usize == number).map(|(_, offering)| (at, *offering)));
            table.rows.push(Row { offers: start..table.offers.len(), ..row });
        }
    }
}

/// When the first offering that meets the requirements but is sold out is asked for again; `None`
/// when none is.
pub(crate) fn resting_until(world: &World, catalog: &Catalog, wanted: &Requirements, now: Timestamp) -> Option<Timestamp> {
    let resting = world.sold_out.iter().filter(|(_, until)| **until > now);
    let meets = |key: &OfferingKey| {
        let instance_type = catalog.get(&key.instance_type).filter(|t| type_allows(t, wanted));
        instance_type.is_some() && catalog.offering(key).is_some_and(|offering| offering.available && offering_allows(offering, wanted))
    };
    resting.filter(|(key, _)| meets(key)).map(|(_, until)| *until).min()
}

/// The refusal of a pool in which all that would do is sold out.
pub(crate) fn sold_out_text(wanted: &str, until: Timestamp, now: Timestamp) -> String {
    format!("everything that meets {wanted} is sold out, it is asked for again in {}", until.since(now))
}

/// Whether an offering can be bought now.
pub(crate) fn for_sale(world: &World, instance_type: &InstanceType, offering: &Offering, now: Timestamp) -> bool {
    if !offering.available {
        return false;
    }
    if world.sold_out.is_empty() {
        return true;
    }
    world.sold_out.get(&instance_type.key(offering)).is_none_or(|until| *until <= now)
}

/// Takes a daemon's share from each row it would run on.
fn reserve_for_daemon(table: &mut PoolTable<'_>, daemon: &Daemon<'_>, dimensions: &Dimensions, ports: &Ports<'_>) {
    if !daemon.tolerates(&table.pool.template.taints) {
        return;
    }
    let share = dimensions.dense(&daemon.requests);
    let mut taken = FixedBitSet::with_capacity(table.rows.len());
    for wanted in &daemon.wanted_ahead {
        if table.template.compatible(wanted, &keys::well_known).is_err() {
            continue;
        }
        let mut both = table.template.clone();
        both.add_all(wanted);
        for number in 0..table.rows.len() {
            let row = &table.rows[number];
            // What is sold out now may be what is bought in a minute.
            let sold = row.instance_type.offerings.iter().any(|o| o.available && offering_allows(o, &both));
            if sold && type_allows(row.instance_type, &both) {
                taken.insert(number);
            }
        }
    }
    let barred = ports.barred(daemon.ports);
    for number in taken.ones() {
        let row = &mut table.rows[number];
        row.barred.join(&barred);
        add(&mut row.room, &share, -1);
        row.daemons.add(&daemon.requests);
    }
}

/// The sets of requirements any one of which lets a pod onto a node: the node selector with each
/// term of the required node affinity, in order.
pub(crate) fn alternatives_of(affinity: &whittle_model::Affinity) -> Vec<Requirements> {
    if affinity.node_terms.is_empty() {
        return vec![affinity.node_selector.clone()];
    }
    let with_term = |term: &Requirements| {
        let mut both = affinity.node_selector.clone();
        both.add_all(term);
        both
    };
    affinity.node_terms.iter().map(with_term).collect()
}
