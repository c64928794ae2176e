//! What can be bought, as dense tables for one plan: pools in order, their instance types as rows,
//! their offerings with rank and cost, and what daemons leave of each type.

use std::ops::Range;

use fixedbitset::FixedBitSet;
use whittle_model::requirements::Requirements;
use whittle_model::scorer::{Candidate, Verdict};
use whittle_model::{
    Catalog, InstanceType, Micros, NodePool, Offering, OfferingKey, Pod, Requirement, Resources, Scorer, Timestamp, keys, taint,
};

use super::amounts::{Amounts, Dimensions, add};
use super::states::{offering_allows, type_allows};
use crate::world::World;

/// A pool from which nodes may be bought.
#[derive(Debug)]
pub(crate) struct PoolTable<'w> {
    pub(crate) pool: &'w NodePool,
    pub(crate) catalog: &'w Catalog,
    /// Pools of equal weight share a tier; tier 0 goes first.
    pub(crate) tier: usize,
    /// What a node of this pool is known to be before its type is chosen.
    pub(crate) template: Requirements,
    /// The types the template allows.
    pub(crate) rows: Vec<Row<'w>>,
    /// The offerings the template allows, those of one row side by side.
    pub(crate) offers: Vec<Offer<'w>>,
    /// Numbers of the offerings in order of preference: rank, capacity type, type name, zone.
    pub(crate) ranked: Vec<u32>,
}

/// An instance type in a pool.
#[derive(Debug)]
pub(crate) struct Row<'w> {
    pub(crate) instance_type: &'w InstanceType,
    /// What is left for pods once the daemons of such a node have their share.
    pub(crate) room: Amounts,
    /// What those daemons ask for.
    pub(crate) daemons: Resources,
    pub(crate) offers: Range<usize>,
}

/// An offering in a pool, as the scorer prices it.
#[derive(Debug)]
pub(crate) struct Offer<'w> {
    pub(crate) row: u32,
    pub(crate) offering: &'w Offering,
    pub(crate) rank: Micros,
    pub(crate) cost: Micros,
}

/// All pools, and why others are left out.
#[derive(Debug)]
pub(crate) struct Tables<'w> {
    pub(crate) dimensions: Dimensions,
    pub(crate) pools: Vec<PoolTable<'w>>,
    /// Pools that cannot be bought from: name and reason.
    pub(crate) closed: Vec<(String, String)>,
    /// What the scorer said when it could not answer; the plan then counts list prices.
    pub(crate) scorer_failure: Option<String>,
    /// Whether every offering counts at its list price.
    pub(crate) at_list: bool,
}

impl<'w> Tables<'w> {
    /// The tables of `world` at `now`.
    pub(crate) fn new(world: &'w World, dimensions: Dimensions, scorer: &mut dyn Scorer, now: Timestamp) -> Self {
        let mut order: Vec<&NodePool> = world.pools.values().collect();
        order.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| b.name.cmp(&a.name)));
        let mut tables = Self { dimensions, pools: Vec::new(), closed: Vec::new(), scorer_failure: None, at_list: true };
        let mut tier = 0;
        for pool in order {
            match open_catalog(world, pool) {
                Err(why) => tables.closed.push((pool.name.clone(), why)),
                Ok(catalog) => {
                    if tables.pools.last().is_some_and(|last| last.pool.weight != pool.weight) {
                        tier += 1;
                    }
                    let table = pool_table(world, pool, catalog, tier, &tables.dimensions, now);
                    if table.rows.is_empty() {
                        let why = format!("no instance type for sale meets its requirements ({})", pool.template.requirements);
                        tables.closed.push((pool.name.clone(), why));
                    } else {
                        tables.pools.push(table);
                    }
                }
            }
        }
        tables.price(scorer);
        let (pools, vetoed) = std::mem::take(&mut tables.pools).into_iter().partition(|pool| !pool.offers.is_empty());
        tables.pools = pools;
        let vetoed: Vec<PoolTable<'_>> = vetoed;
        let why = "every offering that meets its requirements is vetoed";
        tables.closed.extend(vetoed.into_iter().map(|pool| (pool.pool.name.clone(), why.to_owned())));
        for pool in &mut tables.pools {
            pool.rank();
        }
        tables
    }

    /// Asks the scorer what each offering is worth and drops those it vetoes.
    fn price(&mut self, scorer: &mut dyn Scorer) {
        let candidates: Vec<Candidate<'_>> = self
            .pools
            .iter()
            .flat_map(|pool| {
                pool.offers.iter().map(|offer| Candidate {
                    node_pool: &pool.pool.name,
                    offering: pool.key(offer),
                    list: offer.offering.price,
                })
            })
            .collect();
        self.at_list = candidates.iter().all(|c| c.list > Micros(0));
        let verdicts = match scorer.price_candidates(&candidates) {
            Ok(verdicts) if verdicts.len() == candidates.len() => verdicts,
            Ok(verdicts) => {
                self.scorer_failure = Some(format!("{} answers for {} candidates", verdicts.len(), candidates.len()));
                return;
            }
            Err(failure) => {
                self.scorer_failure = Some(failure.to_string());
                return;
            }
        };
        self.at_list &= verdicts.iter().zip(&candidates).all(|(v, c)| *v == Verdict::Priced { rank: c.list, cost: c.list });
        let mut verdicts = verdicts.into_iter();
        for pool in &mut self.pools {
            pool.apply(&mut verdicts);
        }
    }
}

impl PoolTable<'_> {
    /// The public name of an offering.
    pub(crate) fn key(&self, offer: &Offer<'_>) -> OfferingKey {
        OfferingKey {
            instance_type: self.rows[offer.row as usize].instance_type.name.clone(),
            zone: offer.offering.zone.clone(),
            capacity_type: offer.offering.capacity_type,
        }
    }

    /// Orders the offerings by preference; the order is total.
    fn rank(&mut self) {
        let order = |number: &u32| {
            let offer = &self.offers[*number as usize];
            (offer.rank, offer.offering.capacity_type, &self.rows[offer.row as usize].instance_type.name, &offer.offering.zone)
        };
        let mut ranked: Vec<u32> = (0..self.offers.len()).map(|n| u32::try_from(n).expect("fewer offerings than 2^32")).collect();
        ranked.sort_by(|a, b| order(a).cmp(&order(b)));
        self.ranked = ranked;
    }

    fn apply(&mut self, verdicts: &mut impl Iterator<Item = Verdict>) {
        let mut kept = Vec::with_capacity(self.offers.len());
        for mut offer in self.offers.drain(..) {
            match verdicts.next() {
                Some(Verdict::Priced { rank, cost }) => {
                    (offer.rank, offer.cost) = (rank.max(Micros(1)), cost);
                    kept.push(offer);
                }
                Some(Verdict::Vetoed(_)) | None => {}
            }
        }
        self.offers = kept;
        let mut at = 0;
        for (number, row) in self.rows.iter_mut().enumerate() {
            let start = at;
            while self.offers.get(at).is_some_and(|o| o.row as usize == number) {
                at += 1;
            }
            row.offers = start..at;
        }
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

fn pool_table<'w>(
    world: &'w World,
    pool: &'w NodePool,
    catalog: &'w Catalog,
    tier: usize,
    dimensions: &Dimensions,
    now: Timestamp,
) -> PoolTable<'w> {
    let template = template_requirements(pool);
    let mut table = PoolTable { pool, catalog, tier, template, rows: Vec::new(), offers: Vec::new(), ranked: Vec::new() };
    for instance_type in &catalog.types {
        if !type_allows(instance_type, &table.template) {
            continue;
        }
        let (row, start) = (u32::try_from(table.rows.len()).expect("a catalogue has fewer than 2^32 types"), table.offers.len());
        for offering in &instance_type.offerings {
            if for_sale(world, instance_type, offering, now) && offering_allows(offering, &table.template) {
                table.offers.push(Offer { row, offering, rank: offering.price.max(Micros(1)), cost: offering.price });
            }
        }
        if table.offers.len() > start {
            let room = dimensions.dense(&instance_type.allocatable);
            table.rows.push(Row { instance_type, room, daemons: Resources::default(), offers: start..table.offers.len() });
        }
    }
    for daemon_set in world.daemon_sets.values() {
        reserve_for_daemon(&mut table, &daemon_set.template, dimensions);
    }
    drop_full(&mut table);
    table
}

/// Leaves out the types that have no room for their daemons alone.
fn drop_full(table: &mut PoolTable<'_>) {
    let fits = |row: &Row<'_>| row.daemons.fit_in(&row.instance_type.allocatable);
    if table.rows.iter().all(fits) {
        return;
    }
    let (rows, offers) = (std::mem::take(&mut table.rows), std::mem::take(&mut table.offers));
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
            table.rows.push(Row { offers: start..table.offers.len(), ..row });
        }
    }
}

fn for_sale(world: &World, instance_type: &InstanceType, offering: &Offering, now: Timestamp) -> bool {
    if !offering.available {
        return false;
    }
    if world.sold_out.is_empty() {
        return true;
    }
    let key = OfferingKey { instance_type: instance_type.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
    world.sold_out.get(&key).is_none_or(|until| *until <= now)
}

/// Takes a daemon's share from each row it would run on.
fn reserve_for_daemon(table: &mut PoolTable<'_>, daemon: &Pod, dimensions: &Dimensions) {
    if taint::untolerated(&table.pool.template.taints, &daemon.tolerations).is_some() {
        return;
    }
    let share = dimensions.dense(&daemon.requests);
    let mut taken = FixedBitSet::with_capacity(table.rows.len());
    for wanted in alternatives(daemon) {
        if table.template.compatible(&wanted, &keys::well_known).is_err() {
            continue;
        }
        let mut both = table.template.clone();
        both.add_all(&wanted);
        for number in 0..table.rows.len() {
            let row = &table.rows[number];
            // What is sold out now may be what is bought in a minute.
            let sold = row.instance_type.offerings.iter().any(|o| o.available && offering_allows(o, &both));
            if sold && type_allows(row.instance_type, &both) {
                taken.insert(number);
            }
        }
    }
    for number in taken.ones() {
        let row = &mut table.rows[number];
        add(&mut row.room, &share, -1);
        row.daemons.add(&daemon.requests);
    }
}

/// The sets of requirements any one of which lets the pod onto a node: the node selector with each
/// term of the required node affinity, in order.
pub(crate) fn alternatives(pod: &Pod) -> Vec<Requirements> {
    alternatives_of(&pod.affinity)
}

/// [`alternatives`] of an affinity alone.
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
