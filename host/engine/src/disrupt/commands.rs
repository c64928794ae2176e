//! Moves under way: their nodes are tainted, what is bought for them starts, and once it is ready the nodes go. What
//! fails leaves no trace. A taint without a move, as a crash leaves it, is taken off.
//!
//! What must not enter: which moves are made.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use whittle_model::{Action, Duration, Timestamp, keys};

use super::moves::Move;
use crate::ledger::Order;
use crate::lifecycle;
use crate::report::{MoveStage, PlannedClaim, Step};
use crate::round::Round;

/// As Karpenter: a replacement that is not ready by then will not be.
const PATIENCE: Duration = Duration::minutes(10);

/// A move that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) what: Move,
    pub(crate) since: Timestamp,
    /// Whether its replacements are ready and its nodes go.
    ready: bool,
}

impl Command {
    /// When it is given up.
    pub(super) fn ends(&self) -> Timestamp {
        self.since.plus(PATIENCE)
    }
}

/// Begins a move. Without replacements its nodes go at once; a command is what waits for the others.
pub(super) fn begin(round: &mut Round<'_>, mut what: Move) -> Option<Command> {
    let now = round.now;
    for planned in &mut what.replacements {
        planned.claim.created = now;
    }
    round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::Begun))));
    if what.replacements.is_empty() {
        for claim in &what.claims {
            lifecycle::delete(round, claim, what.reason.name());
        }
        return None;
    }
    for name in &what.claims {
        round.world.leaving.insert(name.clone());
        taint(round, name);
        lifecycle::update(round, name, |status| status.disrupted = Some((what.reason.name().to_owned(), now)));
    }
    for planned in &what.replacements {
        let claim = planned.claim.clone();
        round.report.steps.push(Step::Planned(Box::new(PlannedClaim::of(planned))));
        round.ledger.planned(claim.name.clone());
        round.world.put_claim(claim);
    }
    Some(Command { what, since: now, ready: false })
}

fn taint(round: &mut Round<'_>, name: &str) {
    let Some(node) = round.world.claims.get(name).and_then(|claim| round.world.node_of(claim)) else { return };
    let bare = !node.taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT);
    let node = node.name.clone();
    if bare && round.admit(name, Order::Cordon, &node) {
        round.act(Action::TaintNode { node });
    }
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Waits,
    Done,
    Failed,
}

/// Takes a command one step further.
pub(super) fn advance(round: &mut Round<'_>, command: &mut Command) -> Standing {
    if command.what.claims.iter().all(|name| round.world.claims.get(name).is_none_or(|claim| claim.deleting)) {
        return Standing::Done;
    }
    let standing = if command.ready { Ok(true) } else { readiness(round, command) };
    let what = &command.what;
    match standing {
        Err(why) => {
            roll_back(round, command, &why);
            return Standing::Failed;
        }
        Ok(false) => what.claims.iter().for_each(|name| taint(round, name)),
        Ok(true) => {
            if !command.ready {
                round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::Ready))));
            }
            for name in &what.claims {
                if round.world.claims.get(name).is_some_and(|claim| !claim.deleting) {
                    lifecycle::delete(round, name, what.reason.name());
                }
            }
            command.ready = true;
        }
    }
    Standing::Waits
}

/// Whether everything bought for a command is ready.
///
/// # Errors
/// Says why it never will be.
fn readiness(round: &Round<'_>, command: &Command) -> Result<bool, String> {
    let mut ready = true;
    for planned in &command.what.replacements {
        let name = &planned.claim.name;
        match round.world.claims.get(name) {
            Some(claim) if !gone(round, name) => ready &= claim.status.initialized.is_some(),
            Some(_) | None => return Err(format!("replacement {name} is gone")),
        }
    }
    if !ready && command.ends() <= round.now {
        return Err(format!("its replacement was not ready within {PATIENCE}"));
    }
    Ok(ready)
}

/// Whether a claim is on its way out for good, or gone.
fn gone(round: &Round<'_>, name: &str) -> bool {
    let condemned = round.ledger.condemned.contains_key(name) || round.ledger.outstanding(name, Order::Delete, name);
    condemned || round.world.claims.get(name).is_none_or(|claim| claim.deleting)
}

fn roll_back(round: &mut Round<'_>, command: &Command, why: &str) {
    let what = &command.what;
    round.report.steps.push(Step::Move(Box::new(what.step(MoveStage::RolledBack(why.to_owned())))));
    for name in &what.claims {
        if !gone(round, name) {
            release(round, name);
        }
    }
    for name in what.replacements.iter().map(|planned| &planned.claim.name) {
        let used = round.world.claims.get(name).and_then(|claim| round.world.usage.get(&claim.status.node)).is_some_and(|u| u.workload > 0);
        if !gone(round, name) && !used {
            lifecycle::delete(round, name, "ReplacementFailed");
        }
    }
}

/// Lets a node be as it was.
fn release(round: &mut Round<'_>, name: &str) {
    round.world.leaving.remove(name);
    let Some(claim) = round.world.claims.get(name) else { return };
    let marked = claim.status.disrupted.is_some();
    let node = round.world.node_of(claim);
    let tainted = node.filter(|node| node.taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT)).map(|node| node.name.clone());
    // A taint that was ordered and is not seen yet is taken off once it is.
    if let Some(node) = tainted {
        round.ledger.done(name, Order::Cordon, &node);
        if round.admit(name, Order::Uncordon, &node) {
            round.act(Action::UncordonNode { node });
        }
    }
    if marked {
        lifecycle::update(round, name, |status| status.disrupted = None);
    }
}

/// Takes off what no move stands for any more.
pub(super) fn heal(round: &mut Round<'_>, commands: &[Command], names: &BTreeSet<String>) {
    for name in names {
        let Some(claim) = round.world.claims.get(name).filter(|claim| !claim.deleting) else { continue };
        let Some(node) = round.world.node_of(claim).filter(|node| !node.deleting) else { continue };
        let tainted = node.taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT);
        let node = node.name.clone();
        if !tainted {
            round.ledger.done(name, Order::Uncordon, &node);
        }
        let meant = round.world.leaving.contains(name) || commands.iter().any(|c| c.what.claims.contains(name)) || gone(round, name);
        let marked = round.world.claims.get(name).is_some_and(|claim| claim.status.disrupted.is_some());
        if (tainted || marked) && !meant {
            release(round, name);
        }
    }
}
