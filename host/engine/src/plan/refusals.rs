//! Why pods have no place: one reason for each pool, and the nearest miss.

use whittle_model::resources::format_amount;
use whittle_model::{PodKey, Resources, Timestamp, keys};

use super::Seats;
use super::bins::{Bins, repelling};
use super::classes::Class;
use super::finish::{Priced, TYPES_IN_A_CLAIM};
use super::greedy::Bench;
use super::limits::Remaining;
use super::states::{ProfileId, State};
use super::tables::{PoolTable, alternatives_of, resting_until, sold_out_text};
use super::topology::tally::Tally;
use crate::protection;
use crate::report::{Refusal, Unplaced};
use crate::world::World;

/// The pods to plan for, and those that cannot be planned for whatever the cluster offers.
pub(crate) fn sort_out(world: &World, now: Timestamp) -> (Vec<&PodKey>, Vec<Unplaced>) {
    let (mut pods, mut refused): (Vec<&PodKey>, Vec<Unplaced>) = (Vec::new(), Vec::new());
    let homeless = world.usage.iter().filter(|(node, _)| going(world, node)).flat_map(|(_, usage)| usage.pods.iter());
    let moving = homeless.filter(|key| world.pods.get(*key).is_some_and(|r| protection::reschedulable(world, r, now)));
    for key in world.pending.iter().chain(moving) {
        let Some(record) = world.pods.get(key) else { continue };
        let volumes = (!record.volumes.is_empty()).then(|| "this version does not understand volumes".to_owned());
        match objection(world.shape_of(record)).or(volumes) {
            None => pods.push(key),
            Some(why) => {
                let reasons = vec![Refusal { place: "pod".to_owned(), why }];
                match refused.iter_mut().find(|u| u.reasons == reasons) {
                    Some(group) => group.pods.push(key.clone()),
                    None => refused.push(Unplaced { pods: vec![key.clone()], reasons, nearest: None }),
                }
            }
        }
    }
    (pods, refused)
}

/// Whether a node is on its way out, so that its pods need another.
pub(crate) fn going(world: &World, name: &str) -> bool {
    world.nodes.get(name).is_some_and(|node| node.deleting || world.claim_of(node).is_some_and(|c| c.deleting))
}

/// What a shape asks for that plans do not heed yet: planning for it all the same could put it where it may not run.
fn unheeded(shape: &crate::world::Shape) -> Option<&'static str> {
    let asked = [(!shape.host_ports.is_empty(), "hostPort"), (shape.resource_claims, "resourceClaims")];
    asked.into_iter().find_map(|(asks, what)| asks.then_some(what))
}

/// Why pods of this shape are never planned for.
fn objection(shape: &crate::world::Shape) -> Option<String> {
    if let Some(what) = unheeded(shape) {
        return Some(format!("this version does not understand {what}"));
    }
    if !shape.unsupported.is_empty() {
        return Some(format!("this version does not understand {}", shape.unsupported.join(", ")));
    }
    for wanted in alternatives_of(&shape.affinity) {
        for requirement in wanted.iter() {
            if let Some(why) = keys::restricted(requirement.key()) {
                return Some(format!("it asks for {requirement}: {why}"));
            }
        }
    }
    None
}

/// Why the pods that `best` leaves out have no place.
pub(crate) fn explain(
    bench: &mut Bench<'_, '_>,
    bins: &Bins<'_>,
    seats: &Seats<'_>,
    best: &Priced,
    tally: &Tally,
    remaining: &Remaining,
) -> Vec<Unplaced> {
    if best.unplaced.is_empty() {
        return Vec::new();
    }
    let tally = &super::finish::counted(bench, tally, &best.claims);
    let mut left = remaining.clone();
    for claim in &best.claims {
        let table = &bench.tables.pools[claim.pool];
        let mut largest = Resources::default();
        for instance_type in claim.types.iter().filter_map(|name| table.catalog.get(name)) {
            largest.raise_to(&instance_type.capacity);
        }
        left.take(claim.pool, &largest);
    }
    let mut counts: Vec<(usize, usize)> = best.unplaced.clone();
    counts.sort_unstable();
    counts.into_iter().map(|(class, count)| explain_class(bench, bins, seats, (class, count), tally, &left)).collect()
}

fn explain_class(
    bench: &mut Bench<'_, '_>,
    bins: &Bins<'_>,
    seats: &Seats<'_>,
    (number, count): (usize, usize),
    tally: &Tally,
    left: &Remaining,
) -> Unplaced {
    let standing = seats.standing(number);
    let pods = standing[standing.len() - count..].iter().map(|key| (*key).clone()).collect();
    let class = &bench.classes[number];
    let mut reasons: Vec<Refusal> = Vec::new();
    let mut misses: Vec<Miss> = Vec::new();
    for pool in 0..bench.tables.pools.len() {
        let (why, miss) = refusal_of(bench, pool, class, tally, left);
        let why = with_vetoes(bench, pool, class, why);
        let place = format!("nodepool {}", bench.tables.pools[pool].pool.name);
        match reasons.iter_mut().find(|known| known.place == place) {
            // Of the tables that overlays make of a pool that one speaks which the class agrees with.
            Some(known) if agrees(bench, pool, class) => known.why = why,
            Some(_) => {}
            None => reasons.push(Refusal { place, why }),
        }
        misses.extend(miss);
    }
    for (name, why) in &bench.tables.closed {
        reasons.push(Refusal { place: format!("nodepool {name}"), why: why.clone() });
    }
    if reasons.is_empty() {
        reasons.push(Refusal { place: "cluster".to_owned(), why: "there is no NodePool".to_owned() });
    }
    if bins.len() > 0 {
        reasons.push(Refusal { place: "nodes".to_owned(), why: nodes_refuse(bins.len()) });
    }
    misses.sort_by_key(|m| m.distance);
    Unplaced { pods, reasons, nearest: misses.into_iter().next().map(|m| m.text) }
}

/// Whether the class and a table agree, room aside.
fn agrees(bench: &mut Bench<'_, '_>, pool: usize, class: &Class<'_>) -> bool {
    let base = bench.states.base(pool);
    base.is_some_and(|base| class.profiles.iter().any(|p| bench.states.merge(bench.tables, base, *p).is_some()))
}

fn nodes_refuse(nodes: usize) -> String {
    let which = if nodes == 1 { "the one node has no".to_owned() } else { format!("none of the {nodes} nodes has") };
    format!("{which} room that it may use")
}

/// A refusal with what policies have to do with it.
fn with_vetoes(bench: &Bench<'_, '_>, pool: usize, class: &Class<'_>, why: String) -> String {
    let prices = &bench.states.prices[pool];
    let vetoes = prices.groups.get(prices.group(class.asker) as usize).map(|group| &group.vetoes);
    let Some(vetoes) = vetoes.filter(|v| !v.is_empty()) else { return why };
    let texts: Vec<String> = vetoes.iter().map(|(reason, count)| format!("{count} for {:?}", bench.pricer.reason(*reason))).collect();
    format!("{why}; of {} offerings policies veto {}", bench.tables.pools[pool].offers.len(), texts.join(", "))
}

/// One small change that would let the pods in.
struct Miss {
    /// Share of the request, in millionths, that is too much: smaller is nearer.
    distance: i64,
    text: String,
}

/// Why a pool refuses a class, and the change that would make it accept.
fn refusal_of(bench: &mut Bench<'_, '_>, pool: usize, class: &Class<'_>, tally: &Tally, left: &Remaining) -> (String, Option<Miss>) {
    let table = &bench.tables.pools[pool];
    if let Some(taint) = repelling(&table.pool.template.taints, class) {
        let miss = Miss { distance: 2_000_000, text: format!("fits nodepool {} if it tolerated the taint {taint}", table.pool.name) };
        return (format!("taint {taint} is not tolerated"), Some(miss));
    }
    let mut why = None;
    for profile in &class.profiles {
        let merged = bench.states.base(pool).and_then(|base| bench.states.merge(bench.tables, base, *profile));
        let Some(id) = merged else {
            why = why.or_else(|| Some((incompatible(bench, pool, *profile), None)));
            continue;
        };
        let state = bench.states.get(id);
        if state.has_room(table, &vec![0; class.need.len()], &class.need)
            && let Some(text) = bench.topology.why(bench.tables, bench.states, class.required(), id, tally)
        {
            return (text, None);
        }
        return if state.has_room(table, &vec![0; class.need.len()], &class.need) {
            match inflexible(table, state, class, pool, left).filter(|_| !bench.tables.relax) {
                Some(why) => (why, None),
                None => limited(table, state, class, pool, left),
            }
        } else {
            too_large(bench, table, state, class)
        };
    }
    why.unwrap_or_else(|| ("nothing there suits it".to_owned(), None))
}

fn incompatible(bench: &Bench<'_, '_>, pool: usize, profile: ProfileId) -> String {
    let (table, wanted) = (&bench.tables.pools[pool], bench.states.wanted(profile));
    match table.template.compatible(wanted, &keys::well_known) {
        Err(parted) => parted.to_string(),
        Ok(()) => {
            let mut both = table.template.clone();
            both.add_all(wanted);
            let (world, now) = bench.pricer.scene();
            let resting = resting_until(world, table.catalog, &both, now);
            resting.map_or_else(
                || format!("no instance type for sale there meets {wanted}"),
                |until| sold_out_text(&wanted.to_string(), until, now),
            )
        }
    }
}

fn too_large(bench: &Bench<'_, '_>, table: &PoolTable<'_>, state: &State, class: &Class<'_>) -> (String, Option<Miss>) {
    let names = bench.tables.dimensions.names();
    let mut nearest: Option<(i64, usize, i64, &str)> = None;
    for row in state.rows.ones().map(|row| &table.rows[row]) {
        let over: Vec<(usize, i64)> =
            class.need.iter().zip(&row.room).enumerate().filter(|(_, (n, r))| **n > 0 && n > r).map(|(d, (n, r))| (d, n - r)).collect();
        let [(dimension, excess)] = over[..] else { continue };
        let share = i64::try_from(i128::from(excess) * 1_000_000 / i128::from(class.need[dimension].max(1))).unwrap_or(i64::MAX);
        let name = row.instance_type.name.as_str();
        if share < 1_000_000 && nearest.is_none_or(|(s, _, _, n)| (share, name) < (s, n)) {
            nearest = Some((share, dimension, excess, name));
        }
    }
    let largest: Vec<String> = lacking(table, state, class)
        .into_iter()
        .map(|d| {
            let most = state.rows.ones().map(|row| table.rows[row].room[d]).max().unwrap_or(0).max(0);
            let name = &names[d];
            format!(
                "asks for {name} {}, the most that a node there has left for pods is {}",
                format_amount(name, class.need[d]),
                format_amount(name, most)
            )
        })
        .collect();
    let why = if largest.is_empty() {
        "no instance type there has room for all that it asks for together".to_owned()
    } else {
        largest.join("; ")
    };
    let miss = nearest.map(|(distance, d, excess, name)| Miss {
        distance,
        text: format!(
            "fits {name} in nodepool {} if its {} request were {} smaller",
            table.pool.name,
            names[d],
            format_amount(&names[d], excess)
        ),
    });
    (why, miss)
}

/// Dimensions in which no row alone has enough.
fn lacking(table: &PoolTable<'_>, state: &State, class: &Class<'_>) -> Vec<usize> {
    (0..class.need.len()).filter(|d| class.need[*d] > 0 && state.rows.ones().all(|row| table.rows[row].room[*d] < class.need[*d])).collect()
}

/// What `minValues` has against a class that fits and agrees, if that is what is in the way.
fn inflexible(table: &PoolTable<'_>, state: &State, class: &Class<'_>, pool: usize, left: &Remaining) -> Option<String> {
    if table.flexibility.is_empty() {
        return None;
    }
    let fits = |row: &usize| super::amounts::fits(&class.need, &table.rows[*row].room);
    let short = |among: &[usize]| table.flexibility.shortages(&table.rows, state, among.iter().copied()).into_iter().next();
    let fitting: Vec<usize> = state.rows.ones().filter(fits).collect();
    if let Some(short) = short(&fitting) {
        return Some(format!("minValues: {short}"));
    }
    let allowed: Vec<usize> =
        fitting.iter().copied().filter(|row| left.crossed(pool, &table.rows[*row].instance_type.capacity).is_none()).collect();
    if let Some(short) = short(&allowed).filter(|_| !allowed.is_empty()) {
        return Some(format!("minValues: {short} into what is left of its limits"));
    }
    let rows: Vec<u32> = allowed.iter().filter_map(|row| u32::try_from(*row).ok()).collect();
    let kept = table.flexibility.choose(&table.rows, state, &rows, TYPES_IN_A_CLAIM);
    let needed = kept.iter().filter(|kept| **kept).count();
    (needed > TYPES_IN_A_CLAIM)
        .then(|| format!("minValues: {needed} instance types would have to be named, and one launch names {TYPES_IN_A_CLAIM} at most"))
}

fn limited(table: &PoolTable<'_>, state: &State, class: &Class<'_>, pool: usize, left: &Remaining) -> (String, Option<Miss>) {
    let mut least: Option<(i64, String)> = None;
    for row in state.rows.ones().map(|row| &table.rows[row]).filter(|row| super::amounts::fits(&class.need, &row.room)) {
        let Some((name, left, takes)) = left.crossed(pool, &row.instance_type.capacity) else { continue };
        let text = format!(
            "{name}: {} left, {} needed for {}",
            format_amount(name, left.max(0)),
            format_amount(name, takes),
            row.instance_type.name
        );
        if least.as_ref().is_none_or(|(over, known)| (takes - left, &text) < (*over, known)) {
            least = Some((takes - left, text));
        }
    }
    match least {
        Some((over, text)) => {
            let name = text.split(':').next().unwrap_or_default().to_owned();
            let miss = Miss {
                distance: 1_500_000,
                text: format!("fits nodepool {} if its limit on {name} were {} higher", table.pool.name, format_amount(&name, over)),
            };
            (format!("its limit is reached ({text})"), Some(miss))
        }
        None => (
            "its limit may be reached by nodes of this plan whose type is not settled yet; it is tried again once they are bought"
                .to_owned(),
            None,
        ),
    }
}
