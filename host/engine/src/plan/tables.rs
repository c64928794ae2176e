//! What can be bought, as dense tables for one plan: pools in order, their instance types as rows,
//! their offerings, and what daemons leave of each type.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use whittle_model::requirements::Requirements;
use whittle_model::{Catalog, HostPort, InstanceType, Micros, NodePool, Offering, OfferingKey, Requirement, Resources, Timestamp, keys};

use super::amounts::{Amounts, Dimensions, add};
use super::flexible::Flexibility;
use super::ports::PortSet;
use super::premises::Premises;
use super::reserved;
use super::states::{offering_allows, type_allows};
use super::stock::{Guest, PriceList, Sought, Stock, Stocks, of_goods};
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
    /// The types the template allows. Tables of one stock share these lists.
    pub(crate) rows: Rc<[Row<'w>]>,
    /// The offerings the template allows, those of one row side by side.
    pub(crate) offers: Rc<[Offer<'w>]>,
    /// By row: offerings that are sold out today. A claim that allows them may come to be bought from them.
    pub(crate) resting: Rc<[(u32, &'w Offering)]>,
    /// The place of each offering among them by capacity type, type and zone: what decides between equal
    /// ranks.
    pub(crate) places: Arc<[u32]>,
    /// How many distinct values a claim must keep.
    pub(crate) flexibility: Arc<Flexibility>,
    /// How many capacity types are among them.
    pub(crate) ways: usize,
    /// What the offerings cost by the list.
    pub(crate) list: PriceList,
}

/// An instance type in a pool.
#[derive(Debug)]
pub(crate) struct Row<'w> {
    pub(crate) instance_type: &'w InstanceType,
    /// What is left for pods once the daemons of such a node have their share.
    pub(crate) room: Amounts,
    /// What those daemons ask for, and who they are.
    daemons: Arc<(Resources, Vec<usize>)>,
    /// The host ports that they bar.
    pub(crate) barred: PortSet,
    pub(crate) offers: Range<usize>,
    /// Whether an overlay added to what it has.
    pub(crate) overlaid: bool,
}

impl Row<'_> {
    /// What the daemons of such a node ask for.
    pub(crate) fn daemons(&self) -> &Resources {
        &self.daemons.0
    }
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
    /// The tables of `world` at `now`; `fresh` when its claims are thought away.
    pub(crate) fn new(
        world: &'w World,
        dimensions: Dimensions,
        premises: &Premises<'w>,
        closed: &BTreeMap<String, String>,
        (now, fresh): (Timestamp, bool),
    ) -> Self {
        let mut order: Vec<&NodePool> = world.pools.values().collect();
        order.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| b.name.cmp(&a.name)));
        let mut stocks = world.stocks.borrow_mut();
        let mut opening = Opening::new(world, dimensions, premises, &mut stocks, now);
        if fresh {
            opening.free = Arc::new(reserved::taken(world).into_keys().map(str::to_owned).collect());
        }
        let mut tier = 0;
        for pool in order {
            let refused = closed.get(&pool.name).cloned();
            match refused.map_or_else(|| planned_catalog(world, pool), Err) {
                Err(why) => opening.tables.closed.push((pool.name.clone(), why)),
                Ok(catalog) => {
                    if opening.tables.pools.last().is_some_and(|last| last.pool.weight != pool.weight) {
                        tier += 1;
                    }
                    opening.open(pool, catalog, tier);
                }
            }
        }
        opening.tables
    }

    /// The table of one pool that keeps its number of nodes.
    pub(crate) fn of_static(
        world: &'w World,
        pool: &str,
        premises: &Premises<'w>,
        closed: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Self {
        let mut stocks = world.stocks.borrow_mut();
        let mut opening = Opening::new(world, premises.dimensions(std::iter::empty()), premises, &mut stocks, now);
        let open = world.pools.get(pool).filter(|pool| !closed.contains_key(&pool.name));
        if let Some((pool, catalog)) = open.and_then(|pool| Some((pool, open_catalog(world, pool).ok()?))) {
            opening.open(pool, catalog, 0);
        }
        opening.tables
    }
}

/// The lists that tables of one stock share.
type Goods<'w> = (Rc<[Row<'w>]>, Rc<[Offer<'w>]>, Rc<[(u32, &'w Offering)]>);

/// Tables that are being made.
struct Opening<'a, 'w> {
    world: &'w World,
    premises: &'a Premises<'w>,
    stocks: &'a mut Stocks,
    now: Timestamp,
    /// What is sold out today.
    resting: Arc<BTreeSet<OfferingKey>>,
    /// Reservations that count as if instances were left in them.
    free: Arc<BTreeSet<String>>,
    /// By catalogue: what each daemon asks of its types and offerings.
    wanted: Vec<(&'w Arc<Catalog>, Vec<Vec<Requirements>>)>,
    goods: Vec<(Arc<Stock>, Goods<'w>)>,
    tables: Tables<'w>,
}

impl<'a, 'w> Opening<'a, 'w> {
    fn new(world: &'w World, dimensions: Dimensions, premises: &'a Premises<'w>, stocks: &'a mut Stocks, now: Timestamp) -> Self {
        stocks.begin();
        let resting = world.sold_out.iter().filter(|(_, until)| **until > now).map(|(key, _)| key.clone()).collect();
        let tables = Tables { dimensions, pools: Vec::new(), closed: Vec::new(), relax: world.settings.relax_min_values };
        let (resting, free) = (Arc::new(resting), Arc::default());
        Self { world, premises, stocks, now, resting, free, wanted: Vec::new(), goods: Vec::new(), tables }
    }

    /// Adds a pool, in as many tables as overlays take it apart.
    fn open(&mut self, pool: &'w NodePool, catalog: &'w Arc<Catalog>, tier: usize) {
        let home = self.tables.pools.len();
        let template = template_requirements(pool);
        let faces = self.world.overlaid.faces.get(&pool.name).map_or(&[][..], Vec::as_slice);
        let all = if faces.is_empty() { vec![None] } else { faces.iter().map(Some).collect() };
        for (face, reserved) in all.into_iter().flat_map(|face| [(face, true), (face, false)]) {
            if reserved && !self.world.settings.features.reserved_capacity {
                continue;
            }
            let mut template = template.clone();
            face.iter().for_each(|face| template.add_all(&face.narrowed));
            if reserved {
                template = reserved::template(&template);
            }
            let catalog = face.map_or(catalog, |face| &face.catalog);
            let stock = self.stock(pool, catalog, &template, reserved);
            if stock.rows.is_empty() {
                continue;
            }
            let (rows, offers, resting) = self.goods(&stock, catalog, face);
            let (places, flexibility) = (Arc::clone(&stock.places), Arc::clone(&stock.flexibility));
            let (number, ways, list) = (self.tables.pools.len(), stock.ways, stock.list.clone());
            self.tables.pools.push(PoolTable {
                pool,
                catalog,
                number,
                home,
                reserved,
                tier,
                template,
                rows,
                offers,
                resting,
                places,
                flexibility,
                ways,
                list,
            });
        }
        if self.tables.pools.len() == home {
            let wanted = pool.template.requirements.to_string();
            let none = || format!("no instance type for sale meets its requirements ({wanted})");
            let resting = resting_until(self.world, catalog, &template, self.now);
            let why = resting.map_or_else(none, |until| sold_out_text(&wanted, until, self.now));
            self.tables.closed.push((pool.name.clone(), why));
        }
    }

    fn stock(&mut self, pool: &NodePool, catalog: &'w Arc<Catalog>, template: &Requirements, reserved: bool) -> Arc<Stock> {
        let keys = self.stocks.keys(catalog);
        if !self.wanted.iter().any(|(of, _)| Arc::ptr_eq(of, catalog)) {
            let asked = |wanted: &Vec<Requirements>| wanted.iter().map(|wanted| of_goods(wanted, &keys)).collect();
            self.wanted.push((catalog, self.premises.daemons.iter().map(|daemon| asked(&daemon.wanted_ahead)).collect()));
        }
        let of_daemons = self.wanted.iter().find(|(of, _)| Arc::ptr_eq(of, catalog)).map_or(&[][..], |(_, of)| of);
        let mut some: Vec<Vec<Requirements>> = Vec::new();
        let mut runs: Vec<(usize, Option<usize>)> = Vec::new();
        for (number, daemon) in self.premises.daemons.iter().enumerate().filter(|(_, daemon)| daemon.tolerates(&pool.template.taints)) {
            let agrees = |wanted: &&Requirements| template.compatible(wanted, &keys::well_known).is_ok();
            let agreeing = daemon.wanted_ahead.iter().filter(agrees).count();
            if agreeing == daemon.wanted_ahead.len() {
                runs.push((number, None));
            } else if agreeing > 0 {
                let fitting = daemon.wanted_ahead.iter().zip(&of_daemons[number]).filter(|(wanted, _)| agrees(wanted));
                some.push(fitting.map(|(_, goods)| goods.clone()).collect());
                runs.push((number, Some(some.len() - 1)));
            }
        }
        let guest = |(number, part): &(usize, Option<usize>)| {
            let daemon = &self.premises.daemons[*number];
            let wanted = part.map_or(&of_daemons[*number], |part| &some[part]);
            Guest { requests: &daemon.requests, ports: daemon.ports, wanted }
        };
        let guests = runs.iter().map(guest).collect();
        let template = of_goods(template, &keys);
        let sought = Sought { catalog, reserved, template, resting: &self.resting, free: &self.free, guests };
        self.stocks.find(&sought)
    }

    /// The lists of a stock in the dimensions of this plan.
    fn goods(&mut self, stock: &Arc<Stock>, catalog: &'w Catalog, face: Option<&Face>) -> Goods<'w> {
        if let Some((_, known)) = self.goods.iter().find(|(known, _)| Arc::ptr_eq(known, stock)) {
            return known.clone();
        }
        let dimensions = &self.tables.dimensions;
        let of_type = |row: u32| stock.rows[row as usize].of_type as usize;
        let rows = stock.rows.iter().map(|shelf| {
            let instance_type = &catalog.types[shelf.of_type as usize];
            let mut room = dimensions.dense(&instance_type.allocatable);
            self.premises.volumes.attached().room_of_type(&instance_type.name, &mut room, dimensions.volumes);
            add(&mut room, &dimensions.dense(&shelf.daemons.0), -1);
            let mut barred = PortSet::default();
            if !self.premises.ports.is_empty() {
                stock.ports(&shelf.daemons.1).for_each(|ports: &[HostPort]| barred.join(&self.premises.ports.barred(ports)));
            }
            let (daemons, offers) = (Arc::clone(&shelf.daemons), shelf.offers.clone());
            let overlaid = face.is_some_and(|face| face.sized(shelf.of_type as usize));
            Row { instance_type, room, daemons, barred, offers, overlaid }
        });
        let offers = stock.offers.iter().map(|(row, place)| {
            let (at, place) = (of_type(*row), *place as usize);
            let overlaid = face.is_some_and(|face| face.priced(at, place));
            Offer { row: *row, offering: &catalog.types[at].offerings[place], overlaid }
        });
        let resting = stock.resting.iter().map(|(row, place)| (*row, &catalog.types[of_type(*row)].offerings[*place as usize]));
        let goods: Goods<'w> = (rows.collect(), offers.collect(), resting.collect());
        self.goods.push((Arc::clone(stock), goods.clone()));
        goods
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
fn planned_catalog<'w>(world: &'w World, pool: &NodePool) -> Result<&'w Arc<Catalog>, String> {
    match pool.replicas {
        Some(replicas) => Err(format!("it is static: its replicas are {replicas}, whatever pods ask for")),
        None => open_catalog(world, pool),
    }
}

/// The catalogue of a pool that may be bought from, or why it may not.
fn open_catalog<'w>(world: &'w World, pool: &NodePool) -> Result<&'w Arc<Catalog>, String> {
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
    world.catalogs.get(name).ok_or_else(|| format!("the instance types of EC2NodeClass {name} are not known yet"))
}

/// What every node of a pool is known to be: its requirements, its labels, and whose it is.
pub(crate) fn template_requirements(pool: &NodePool) -> Requirements {
    let mut all = pool.template.requirements.clone();
    all.add_all(&Requirements::of_labels(&pool.template.labels));
    all.add(Requirement::any_of(keys::NODE_POOL, &[&pool.name]));
    all.add(Requirement::any_of(keys::NODE_CLASS, &[&pool.template.node_class]));
    all
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
