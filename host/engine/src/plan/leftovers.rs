//! Pods that a packing leaves out, tried once more in the world as it leaves it: on what exists, on its claims and on more of
//! them. While claims were open they counted as larger than they became, other packers leave other room than the greedy
//! does, and what pods look at in others has changed since they were asked.

use whittle_model::Requirements;
use whittle_model::scorer::ScorerFailure;

use super::bins::Bins;
use super::classes::runs;
use super::finish::{Finished, Priced, finish};
use super::greedy::{Bench, Ground, Manner, OpenClaim, pack_beside};
use super::limits::Remaining;
use super::reserved;
use super::standing::{Start, places, stands};
use super::states::StateId;
use super::topology::tally::Tally;
use super::write::own_labels;

/// A packing with its leftovers placed as far as that goes.
#[derive(Debug, Default)]
pub(crate) struct Helped {
    pub(crate) priced: Priced,
    /// Class, bin and number of those that found a place on what exists after all.
    pub(crate) seated: Vec<(usize, usize, usize)>,
}

impl Helped {
    /// A packing that leaves nobody out, or is done with.
    pub(crate) fn of(priced: Priced) -> Self {
        Self { priced, seated: Vec::new() }
    }
}

/// Places what `priced` leaves out by the greedy rule, as long as that places any. The bins are as they were in the end.
pub(crate) fn place(bench: &mut Bench<'_, '_>, start: Start<'_>, bins: &mut Bins<'_>, priced: Priced) -> Result<Helped, ScorerFailure> {
    let (mark, mut tally, mut helped) = (bins.mark(), start.tally.clone(), Helped::of(priced));
    while helped.priced.missing() > 0 {
        let Some(more) = once(bench, start, bins, &helped, &tally)? else { break };
        for (class, bin, count) in &more.seated {
            bins.count(*bin, &bench.classes[*class], *count, bench.topology, &mut tally);
        }
        helped.priced = more.priced;
        helped.seated.extend(more.seated);
    }
    bins.undo_to(mark);
    Ok(helped)
}

/// One more round, with those alone that it seats; `None` when it places nobody. `tally` counts all that have a seat.
fn once(
    bench: &mut Bench<'_, '_>,
    start: Start<'_>,
    bins: &mut Bins<'_>,
    so_far: &Helped,
    tally: &Tally,
) -> Result<Option<Helped>, ScorerFailure> {
    let priced = &so_far.priced;
    let mut counts: Vec<usize> = vec![0; bench.classes.len()];
    for (class, count) in &priced.unplaced {
        counts[*class] += count;
    }
    let mut with_claims = tally.clone();
    let claims: Vec<OpenClaim> = priced.claims.iter().map(|claim| opened(bench, claim, &mut with_claims)).collect();
    let mut left = after(start.remaining, &priced.claims);
    let mut ground = Ground { bins: Some(bins), tally: &mut with_claims, remaining: &mut left, manner: Manner::default() };
    let mut draft = pack_beside(bench, &mut ground, &runs(bench.classes, &counts), claims);
    if draft.unplaced.iter().map(|(_, count)| count).sum::<usize>() == priced.missing() {
        return Ok(None);
    }
    let (seated, all) = (std::mem::take(&mut draft.seated), draft.claims.len());
    let more = finish(bench, draft, priced.method, start.remaining.clone())?;
    let mut tally = tally.clone();
    for (class, bin, count) in &seated {
        bins.count(*bin, &bench.classes[*class], *count, bench.topology, &mut tally);
    }
    let places = places(bench, bins, so_far.seated.iter().chain(&seated).copied());
    // A claim that is given up takes pods out of domains that others were placed by.
    let stands = more.claims.len() == all && stands(bench, start, &more.claims, &places, &tally);
    Ok(stands.then_some(Helped { priced: more, seated }))
}

/// A claim that may be filled further, as it will be written, and counted.
pub(crate) fn opened(bench: &mut Bench<'_, '_>, finished: &Finished, tally: &mut Tally) -> OpenClaim {
    let state = written(bench, finished);
    let mut claim = OpenClaim::new(finished.pool, state, bench.tables.dimensions.names().len());
    for (class, count) in &finished.content {
        claim.take(bench, tally, *class, *count, state, &mut |_, _, _| ());
    }
    claim
}

/// The state that a claim is in once it is written: of the types and ways to pay that it was left with, and with the labels
/// that it gives itself.
fn written(bench: &mut Bench<'_, '_>, finished: &Finished) -> StateId {
    if let Some(known) = finished.menu.written.get() {
        return *known;
    }
    let mut wanted = finished.menu.requirements.clone();
    wanted.add_all(&Requirements::of_labels(&own_labels(&wanted)));
    let asker = finished.content.first().map_or(0, |(class, _)| bench.classes[*class].asker);
    let profile = bench.states.profile(&wanted, asker);
    let state = bench.states.merge(bench.tables, finished.state, profile).unwrap_or(finished.state);
    *finished.menu.written.get_or_init(|| state)
}

/// The counts once these claims are there too.
pub(crate) fn counted(bench: &mut Bench<'_, '_>, tally: &Tally, claims: &[Finished]) -> Tally {
    let mut tally = tally.clone();
    claims.iter().for_each(|claim| {
        opened(bench, claim, &mut tally);
    });
    tally
}

/// What is left of limits and reservations once these claims have their part.
pub(crate) fn after(remaining: &Remaining, claims: &[Finished]) -> Remaining {
    let mut left = reserved::after(remaining, claims);
    for claim in claims {
        left.take(claim.pool, &claim.menu.largest);
    }
    left
}
