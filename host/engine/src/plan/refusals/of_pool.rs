//! Why one pool has no node for a class of pods, and the small change that would make it have one.

use std::collections::BTreeSet;

use whittle_model::{InstanceType, Requirements, keys};

use crate::plan::amounts::{Amounts, fits};
use crate::plan::bins::repelling;
use crate::plan::classes::Class;
use crate::plan::finish::TYPES_IN_A_CLAIM;
use crate::plan::flexible::{Shortage as Shortfall, View};
use crate::plan::greedy::Bench;
use crate::plan::limits::Remaining;
use crate::plan::states::{ProfileId, State, offering_allows, type_allows};
use crate::plan::tables::{PoolTable, for_sale, resting_until};
use crate::plan::topology::tally::Tally;
use crate::report::{Miss, Reason, Shortage, TypesRefusal, Unmet};

/// One small change that would let the pods in.
pub(super) struct Near {
    /// Share of the request, in millionths, that is too much: smaller is nearer. Other changes come after all of those.
    pub(super) distance: i64,
    pub(super) miss: Miss,
}

/// A missing subnet is the owner's to make: farther than a smaller request, nearer than a higher limit.
const ZONE_AWAY: i64 = 1_200_000;
const LIMIT_AWAY: i64 = 1_500_000;
const TOLERATION_AWAY: i64 = 2_000_000;

/// Why a pool refuses a class, and the change that would make it accept.
pub(super) fn refusal(
    bench: &mut Bench<'_, '_>,
    pool: usize,
    class: &Class<'_>,
    tally: &Tally,
    left: &Remaining,
) -> (Reason, Option<Near>) {
    let table = &bench.tables.pools[pool];
    if let Some(taint) = repelling(&table.pool.template.taints, class) {
        let miss = Miss::Tolerating { node_pool: table.pool.name.clone(), taint: taint.clone() };
        return (Reason::Taint(taint.clone()), Some(Near { distance: TOLERATION_AWAY, miss }));
    }
    let mut first = None;
    for profile in &class.profiles {
        let merged = bench.states.base(pool).and_then(|base| bench.states.merge(bench.tables, base, *profile));
        let Some(id) = merged else {
            first = first.or_else(|| Some(unsuitable(bench, pool, *profile, class)));
            continue;
        };
        let state = bench.states.get(id);
        let need = class.need_beside(&[]);
        let fitting = || state.rows.ones().map(|row| &table.rows[row]).filter(|row| fits(&need, &row.room));
        return if fitting().next().is_none() {
            unsuitable(bench, pool, *profile, class)
        } else if fitting().all(|row| class.ports.takes.meets(&row.barred)) {
            (barred_port(bench, class), None)
        } else if let Some(why) = bench.topology.why(bench.tables, bench.states, class.required(), id, tally) {
            (Reason::Topology(Box::new(why)), None)
        } else if let Some(why) =
            inflexible(table, View { state, one_way: bench.states.prices[pool].changed }, class, pool, left).filter(|_| !bench.tables.relax)
        {
            (why, None)
        } else {
            limited(table, state, class, pool, left)
        };
    }
    first.unwrap_or((Reason::NoNodePool, None))
}

/// The first port of a class, for a pool in which daemons take it on every type.
fn barred_port(bench: &Bench<'_, '_>, class: &Class<'_>) -> Reason {
    let (world, _) = bench.pricer.scene();
    let record = class.members.first().map(|member| member.record);
    let ports = record.map_or(&[][..], |record| &world.shape_of(record).host_ports[..]);
    ports.first().map_or(Reason::NoNodePool, |port| Reason::Port(port.clone()))
}

/// What one type is to a class: whether it meets the requirements, has room, and is for sale so.
struct Verdict<'w> {
    instance_type: &'w InstanceType,
    room: Amounts,
    meets: bool,
    fits: bool,
    sold: bool,
}

/// Why no instance type of a pool will do for pods of `profile`.
fn unsuitable(bench: &Bench<'_, '_>, pool: usize, profile: ProfileId, class: &Class<'_>) -> (Reason, Option<Near>) {
    let (table, wanted) = (&bench.tables.pools[pool], bench.states.wanted(profile));
    if let Err(parted) = table.template.compatible(wanted, &keys::well_known) {
        return (Reason::Incompatible { wanted: parted.want, offered: parted.have }, None);
    }
    let mut both = table.template.clone();
    both.add_all(wanted);
    let (world, now) = bench.pricer.scene();
    let verdicts = verdicts(bench, table, &both, class);
    if !verdicts.iter().any(|v| v.meets && v.fits && v.sold)
        && verdicts.iter().any(|v| v.meets && v.fits)
        && let Some(until) = resting_until(world, table.catalog, &both, now)
    {
        return (Reason::SoldOut { wanted: wanted.clone(), again_in: until.since(now) }, None);
    }
    let unsold = unsold_zones(table, wanted, &both);
    let names = bench.tables.dimensions.names();
    let near = smaller(table, names, &verdicts, class).or_else(|| missing_zone(table, &verdicts, &unsold, &both));
    let refusal = TypesRefusal {
        unmet: unmet(&verdicts),
        wanted: wanted.clone(),
        short: shortages(names, &verdicts, class),
        unsold_zones: unsold.into_iter().map(str::to_owned).collect(),
    };
    (Reason::Types(Box::new(refusal)), near)
}

fn verdicts<'w>(bench: &Bench<'_, 'w>, table: &PoolTable<'w>, both: &Requirements, class: &Class<'_>) -> Vec<Verdict<'w>> {
    let (world, now) = bench.pricer.scene();
    let mut rows = table.rows.iter().peekable();
    let mut all = Vec::new();
    for instance_type in table.catalog.types.iter().filter(|t| type_allows(t, &table.template)) {
        let row = rows.next_if(|row| row.instance_type.name == instance_type.name);
        let room = row.map_or_else(|| bench.tables.dimensions.dense(&instance_type.allocatable), |row| row.room.clone());
        let sold = instance_type.offerings.iter().any(|o| offering_allows(o, both) && for_sale(world, instance_type, o, now));
        let (meets, fits) = (type_allows(instance_type, both), fits(&class.need_beside(&[]), &room));
        all.push(Verdict { instance_type, room, meets, fits, sold });
    }
    all
}

/// Which rules leave no type: one that none passes if there is one, else those that part the types.
fn unmet(verdicts: &[Verdict<'_>]) -> Unmet {
    let any = |rule: &dyn Fn(&Verdict<'_>) -> bool| verdicts.iter().any(rule);
    match (any(&|v| v.meets), any(&|v| v.fits), any(&|v| v.sold)) {
        (false, false, false) => Unmet::All,
        (false, false, true) => Unmet::RequirementsAndResources,
        (false, true, false) => Unmet::RequirementsAndOfferings,
        (true, false, false) => Unmet::ResourcesAndOfferings,
        (false, true, true) => Unmet::Requirements,
        (true, false, true) => Unmet::Resources,
        (true, true, false) => Unmet::Offerings,
        // What passes all three is vetoed.
        (true, true, true) if any(&|v| v.meets && v.fits) => Unmet::OfferingsOfTheRest,
        (true, true, true) if any(&|v| v.fits && v.sold) => Unmet::RequirementsOfTheRest,
        (true, true, true) if any(&|v| v.meets && v.sold) => Unmet::ResourcesOfTheRest,
        (true, true, true) => Unmet::Together,
    }
}

/// The types that lack nothing but room; all when there are none.
fn lacking_room<'v, 'w>(verdicts: &'v [Verdict<'w>]) -> Vec<&'v Verdict<'w>> {
    let near: Vec<&Verdict<'w>> = verdicts.iter().filter(|v| v.meets && v.sold).collect();
    if near.is_empty() { verdicts.iter().collect() } else { near }
}

/// The resources of which no type that lacks nothing else has enough.
fn shortages(names: &[String], verdicts: &[Verdict<'_>], class: &Class<'_>) -> Vec<Shortage> {
    let of = lacking_room(verdicts);
    let mut short = Vec::new();
    for (dimension, asked) in class.need_beside(&[]).iter().copied().enumerate().filter(|(_, asked)| *asked > 0) {
        let most = of.iter().map(|v| v.room[dimension]).max().unwrap_or(0).max(0);
        if most < asked {
            short.push(Shortage { resource: names[dimension].clone(), asked, most });
        }
    }
    short
}

/// The type that is too small in one resource only, and by the smallest share.
fn smaller(table: &PoolTable<'_>, names: &[String], verdicts: &[Verdict<'_>], class: &Class<'_>) -> Option<Near> {
    let need = class.need_beside(&[]);
    let mut nearest: Option<(i64, &str, usize, i64)> = None;
    for verdict in verdicts.iter().filter(|v| v.meets && v.sold) {
        let over: Vec<(usize, i64)> = need
            .iter()
            .zip(&verdict.room)
            .enumerate()
            .filter(|(_, (need, room))| **need > 0 && need > room)
            .map(|(dimension, (need, room))| (dimension, need - room))
            .collect();
        let [(dimension, excess)] = over[..] else { continue };
        let share = i64::try_from(i128::from(excess) * 1_000_000 / i128::from(need[dimension].max(1))).unwrap_or(i64::MAX);
        let name = verdict.instance_type.name.as_str();
        if share < 1_000_000 && nearest.is_none_or(|(s, n, _, _)| (share, name) < (s, n)) {
            nearest = Some((share, name, dimension, excess));
        }
    }
    nearest.map(|(distance, name, dimension, by)| {
        let (instance_type, node_pool) = (name.to_owned(), table.pool.name.clone());
        Near { distance, miss: Miss::Smaller { instance_type, node_pool, resource: names[dimension].clone(), by } }
    })
}

/// The zones asked for in which nothing is for sale at all: they have no subnet, or no price.
fn unsold_zones<'w>(table: &PoolTable<'w>, wanted: &Requirements, both: &Requirements) -> BTreeSet<&'w str> {
    if wanted.get(keys::ZONE).is_none() && wanted.get(keys::ZONE_ID).is_none() {
        return BTreeSet::new();
    }
    let offerings = || table.catalog.types.iter().flat_map(|t| &t.offerings);
    let sold: BTreeSet<&str> = offerings().filter(|o| o.available).map(|o| o.zone.as_str()).collect();
    let asked = |o: &&whittle_model::Offering| {
        [keys::ZONE, keys::ZONE_ID].iter().all(|key| {
            let value = if *key == keys::ZONE { &o.zone } else { &o.zone_id };
            both.get(key).is_none_or(|r| r.allows(value))
        })
    };
    offerings().filter(asked).map(|o| o.zone.as_str()).filter(|zone| !sold.contains(zone)).collect()
}

/// A type that would do if its zone were for sale.
fn missing_zone(table: &PoolTable<'_>, verdicts: &[Verdict<'_>], unsold: &BTreeSet<&str>, both: &Requirements) -> Option<Near> {
    let enough = verdicts.iter().filter(|v| v.meets && v.fits);
    let there = enough.filter_map(|v| {
        let zone = v.instance_type.offerings.iter().find(|o| unsold.contains(o.zone.as_str()) && offering_allows(o, both))?;
        Some((v.room.clone(), &v.instance_type.name, &zone.zone))
    });
    let (_, name, zone) = there.min()?;
    let miss = Miss::Zone { instance_type: name.clone(), node_pool: table.pool.name.clone(), zone: zone.clone() };
    Some(Near { distance: ZONE_AWAY, miss })
}

/// What `minValues` has against a class that fits and agrees, if that is what is in the way.
fn inflexible(table: &PoolTable<'_>, view: View<'_>, class: &Class<'_>, pool: usize, left: &Remaining) -> Option<Reason> {
    if table.flexibility.is_empty() {
        return None;
    }
    let room = |row: &usize| fits(&class.need, &table.rows[*row].room);
    let short = |among: &[usize]| table.flexibility.shortages(&table.rows, view, among.iter().copied()).into_iter().next();
    let reason =
        |short: Shortfall, within_limits| Reason::MinValues { key: short.key, wanted: short.wanted, found: short.have, within_limits };
    let fitting: Vec<usize> = view.state.rows.ones().filter(room).collect();
    if let Some(short) = short(&fitting) {
        return Some(reason(short, false));
    }
    let allowed: Vec<usize> = fitting.iter().copied().filter(|row| !left.crosses(pool, *row)).collect();
    if let Some(short) = short(&allowed).filter(|_| !allowed.is_empty()) {
        return Some(reason(short, true));
    }
    let rows: Vec<(u32, Option<u32>)> = allowed.iter().filter_map(|row| Some((u32::try_from(*row).ok()?, None))).collect();
    let kept = table.flexibility.choose(&table.rows, view.state, &rows, TYPES_IN_A_CLAIM);
    let needed = kept.iter().filter(|kept| **kept).count();
    (needed > TYPES_IN_A_CLAIM).then_some(Reason::TooManyTypes { needed, most: TYPES_IN_A_CLAIM })
}

fn limited(table: &PoolTable<'_>, state: &State, class: &Class<'_>, pool: usize, left: &Remaining) -> (Reason, Option<Near>) {
    let mut least: Option<(i64, &str, &str, i64, i64)> = None;
    for row in state.rows.ones().filter(|row| fits(&class.need, &table.rows[*row].room)) {
        let Some((resource, left, takes)) = left.crossed(pool, row) else { continue };
        let this = (takes - left, resource, table.rows[row].instance_type.name.as_str(), left, takes);
        if least.is_none_or(|known| this < known) {
            least = Some(this);
        }
    }
    let Some((by, resource, instance_type, left, takes)) = least else { return (Reason::LimitPending, None) };
    let (resource, instance_type) = (resource.to_owned(), instance_type.to_owned());
    let miss = Miss::Limit { node_pool: table.pool.name.clone(), resource: resource.clone(), by };
    (Reason::Limit { resource, left, takes, instance_type }, Some(Near { distance: LIMIT_AWAY, miss }))
}
