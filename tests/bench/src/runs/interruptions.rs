//! B13: how fast messages of the interruption queue are taken in when EC2 takes back a whole cluster at once.
//!
//! Timed are the messages alone, and apart from them the poll that orders what follows from all of them.

use whittle_engine::Engine;
use whittle_model::{Action, Event, Interruption, ListPrice, Timestamp};

use super::moves::cluster;
use super::{BenchError, Line};
use crate::bound::as_float;
use crate::filter::Filter;
use crate::measure::{Millis, timed};

/// Messages, each about another node.
const MESSAGES: usize = 15_000;
/// Pods on each of those nodes.
const PODS: usize = 2;
const ROUNDS: usize = 3;

/// B13: a message for every node of a cluster.
///
/// # Errors
/// When the catalogue cannot be built.
pub fn b13(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    let name = format!("B13/{MESSAGES}");
    if !filter.wants(&name) {
        return Ok(());
    }
    let events = cluster(MESSAGES, PODS, false)?;
    let mut engine = Engine::new();
    events.iter().for_each(|event| engine.handle(event, Timestamp(0)));
    let messages: Vec<Event> = engine
        .world()
        .claims()
        .map(|claim| Event::Interrupted { provider_id: claim.status.provider_id.clone(), what: Interruption::SpotInterrupted })
        .collect();
    let now = Timestamp(3_600_000);
    let (mut taken, mut polled, mut deleted) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut fresh = engine.clone();
        let (time, ()) = timed(|| messages.iter().for_each(|message| fresh.handle(message, now)));
        taken.push(time);
        let (time, actions) = timed(|| fresh.poll(now, &mut ListPrice));
        polled.push(time);
        deleted = actions.iter().filter(|action| matches!(action, Action::DeleteClaim { .. })).count();
    }
    taken.sort_unstable();
    polled.sort_unstable();
    let median = taken[ROUNDS / 2];
    let rate = as_float(i64::try_from(messages.len()).unwrap_or(i64::MAX)) / median.as_secs_f64();
    let (took, poll) = (Millis(median), Millis(polled[ROUNDS / 2]));
    line(format!("{name}: {rate:.0} messages a second ({took}), {deleted} claims deleted by the poll after them, which takes {poll}"));
    Ok(())
}
