//! New claims: the first pool that fits, and what a claim takes of its pool's limits.

use fixedbitset::FixedBitSet;

use super::super::amounts::fits;
use super::super::limits::Remaining;
use super::super::reserved;
use super::super::states::StateId;
use super::super::topology::class_rules::Level;
use super::super::topology::wishes::{Asking, Wish};
use super::{Bench, Ground, OpenClaim};

/// A new, empty claim from the first pool that fits a pod of the class, and the state it has to go
/// over to once the pod is in it.
pub(crate) fn open(
    bench: &mut Bench<'_, '_>,
    number: usize,
    level: &Level,
    wishes: &[Wish],
    ground: &Ground<'_, '_>,
) -> Option<(OpenClaim, StateId)> {
    let classes = bench.classes;
    (0..bench.tables.pools.len()).find_map(|pool| {
        let starts = reserved::starts(bench, pool, classes[number].asker, ground.remaining);
        let asking = Asking { class: &classes[number], level, wishes, tally: ground.tally };
        starts.into_iter().find_map(|start| {
            let favoured =
                ground.manner.favoured.and_then(|rows| open_from(bench, pool, start, asking, ground.remaining, Some(&rows[pool])));
            favoured.or_else(|| open_from(bench, pool, start, asking, ground.remaining, None))
        })
    })
}

fn open_from(
    bench: &mut Bench<'_, '_>,
    pool: usize,
    start: StateId,
    asking: Asking<'_, '_>,
    remaining: &Remaining,
    favoured: Option<&FixedBitSet>,
) -> Option<(OpenClaim, StateId)> {
    let mut claim = OpenClaim::new(pool, start, bench.tables.dimensions.names().len());
    if remaining.tight(pool) {
        let within = |row: u32| !remaining.crosses(pool, row as usize);
        claim.state = bench.states.cut(bench.tables, claim.state, &within)?;
    }
    if let Some(favoured) = favoured {
        claim.state = bench.states.cut(bench.tables, claim.state, &|row| favoured.contains(row as usize))?;
    }
    let state = claim.accepts(bench, asking)?;
    Some((claim, state))
}

/// Takes a new claim from what is left of the limits. Pessimistic, as documented: whichever of its
/// types is bought, the limit holds.
pub(crate) fn charge(bench: &mut Bench<'_, '_>, claim: &OpenClaim, ground: &mut Ground<'_, '_>) {
    let (manner, remaining) = (ground.manner, &mut *ground.remaining);
    if bench.tables.pools[claim.pool].reserved {
        reserved::named(&bench.states.get(claim.state).requirements).into_iter().for_each(|reservation| {
            remaining.reserve(reservation);
        });
    }
    if !remaining.limited(claim.pool) {
        return;
    }
    // Types that it does not keep to now it may become in the end.
    let wide = if manner.favoured.is_some() { bench.states.widened(bench.tables, claim.state) } else { claim.state };
    let (table, state) = (&bench.tables.pools[claim.pool], bench.states.get(wide));
    let tight = remaining.tight(claim.pool);
    let mut rows = (*state.rows).clone();
    state.rows.ones().filter(|row| tight && remaining.crosses(claim.pool, *row)).for_each(|row| rows.remove(row));
    let may = |row: usize| rows.contains(row) && fits(&claim.used, &table.rows[row].room);
    remaining.take_most(claim.pool, may);
}
