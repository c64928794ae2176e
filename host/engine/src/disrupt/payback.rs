//! Whether a move is worth the restarts it takes: what it saves for as long as that is likely to last must be more than what
//! the restarts cost. Policies may ask for more (`payback` does); this is what nobody would want otherwise.
//!
//! What must not enter: moves that are not made to save money.

use whittle_model::{Duration, Micros, NodeClaim, Timestamp};

use super::candidates::Candidate;
use super::churn::Churn;
use super::weights;
use crate::expiry;
use crate::world::World;

/// No saving is believed to last longer.
const HORIZON: Duration = Duration::hours(24);
/// A saving of pods that were moved a moment ago is believed to last so long all the same: a cluster that shrinks is put in
/// order by moves that follow each other.
const AT_LEAST: Duration = Duration::minutes(30);
/// What the restart of an ordinary pod costs: a cent, as policy `payback` has it.
const RESTART: i64 = 10_000;

/// How long what is saved by moving a claim's pods is likely to last: no longer than a day, than its node would have lived,
/// and than its pods have stayed where the last move brought them, or half an hour.
pub(super) fn lasts(world: &World, churn: &Churn, claim: &NodeClaim, now: Timestamp) -> Duration {
    let end = expiry::expires_at(world, claim).map(|at| at.since(now).max(Duration(0)));
    let stayed = churn.moves(&claim.name, now).0.map(|at| now.since(at).max(AT_LEAST));
    end.into_iter().chain(stayed).chain([HORIZON]).min().unwrap_or(HORIZON)
}

/// How long it takes until moving these nodes, which saves so much an hour, has paid its restarts back; `None` when it
/// never does.
fn takes(candidates: &[&Candidate], saves: Micros) -> Option<Duration> {
    let restarts: i128 = candidates.iter().map(|candidate| i128::from(candidate.weight - weights::UNIT)).sum();
    let cost = restarts * i128::from(RESTART) * i128::from(Duration::hours(1).0);
    let gain = i128::from(saves.0) * i128::from(weights::UNIT);
    if gain <= 0 {
        return (cost == 0).then_some(Duration(0));
    }
    i64::try_from((cost + gain - 1) / gain).ok().map(Duration)
}

/// Whether moving these nodes, which saves so much an hour, pays.
pub(super) fn pays(candidates: &[&Candidate], saves: Micros) -> bool {
    let lasts = candidates.iter().map(|candidate| candidate.lasts).min().unwrap_or(HORIZON);
    takes(candidates, saves).is_some_and(|takes| takes <= lasts)
}

/// When such a move pays that does not now, if nothing happens to its pods: they will have stayed for longer.
pub(super) fn pays_from(candidates: &[&Candidate], saves: Micros, now: Timestamp) -> Option<Timestamp> {
    let lasts = candidates.iter().map(|candidate| candidate.lasts).min()?;
    let takes = takes(candidates, saves).filter(|takes| *takes <= HORIZON && *takes > lasts)?;
    Some(now.plus(Duration(takes.0 - lasts.0)))
}

/// Why a move is not made that does not pay.
pub(super) fn why(candidates: &[&Candidate], saves: Micros) -> String {
    let pods: usize = candidates.iter().map(|candidate| candidate.pods.len()).sum();
    format!("{saves} an hour would not pay back the restarts of {pods} pods")
}
