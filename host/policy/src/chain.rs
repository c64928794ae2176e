//! Several judges in order: each sees rank, cost and score of the one before, vetoes are a union. What
//! must not enter: building tables, and making a plan again when a judge fails.

mod names;
mod reasons;
mod record;
mod round;
mod subset;

use std::sync::Arc;

use whittle_model::policy::{
    CandidateColumn, Hook, JudgingWants, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, PricingWants, Wants,
};

use crate::{Failure, Judge};

pub use names::{Named, names};
pub use record::{Outcome, Priced, Scored, Step, Veto};
pub use round::Round;

/// What a hook does without a judge that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stance {
    /// Goes on without it.
    Ignore,
    /// Holds back whatever it would have judged.
    #[default]
    Closed,
}

/// What happens without a judge that failed, by hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnFailure {
    /// For purchases.
    pub candidates: Stance,
    /// For moves.
    pub moves: Stance,
}

impl Default for OnFailure {
    /// A broken policy stops no launch, but no move is made that it might have refused.
    fn default() -> Self {
        Self { candidates: Stance::Ignore, moves: Stance::Closed }
    }
}

/// Whether a judge's answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They do.
    Enforce,
    /// They are recorded beside the real decision.
    Observe,
}

/// Whether a judge can be asked.
#[derive(Clone)]
pub enum Standing {
    /// It can.
    Ready(Arc<dyn Judge>),
    /// It failed, or rests after failures: its `OnFailure` decides.
    Failed {
        /// Why.
        why: String,
    },
    /// It does not exist, or never became ready: counts as closed for both hooks.
    Missing {
        /// Why.
        why: String,
    },
}

/// A judge's place in a chain.
#[derive(Clone)]
pub struct Member {
    /// The policy's name.
    pub name: String,
    /// Whether it can be asked.
    pub standing: Standing,
    /// What happens without it.
    pub on_failure: OnFailure,
    /// Whether its answers count.
    pub mode: Mode,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let standing = match &self.standing {
            Standing::Ready(_) => "ready",
            Standing::Failed { why } | Standing::Missing { why } => why,
        };
        f.debug_struct("Member").field("name", &self.name).field("standing", &standing).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Member {
    /// A judge that is ready and whose answers count.
    #[must_use]
    pub fn ready(judge: Arc<dyn Judge>) -> Self {
        Self { name: judge.name().to_owned(), standing: Standing::Ready(judge), on_failure: OnFailure::default(), mode: Mode::Enforce }
    }

    /// Why a hook is held back for want of this member.
    fn holds(&self, hook: Hook) -> Option<&str> {
        let stance = match hook {
            Hook::PriceCandidates => self.on_failure.candidates,
            Hook::ScoreMoves => self.on_failure.moves,
        };
        match (&self.standing, self.mode, stance) {
            (Standing::Ready(_), _, _) | (_, Mode::Observe, _) | (Standing::Failed { .. }, _, Stance::Ignore) => None,
            (Standing::Missing { why }, Mode::Enforce, _) | (Standing::Failed { why }, Mode::Enforce, Stance::Closed) => Some(why),
        }
    }
}

/// A judge failed: this round's answers are void, and the plan is to be made again without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy} failed: {failure}")]
pub struct ChainError {
    /// Whose failure.
    pub policy: String,
    /// What it was.
    pub failure: Failure,
}

/// Judges in order, with the union of what they want.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    members: Vec<Member>,
    wants: Wants,
}

fn need<T: PartialEq>(columns: &mut Vec<T>, column: T) {
    if !columns.contains(&column) {
        columns.push(column);
    }
}

/// What the chain itself reads, besides its judges.
fn complete(wants: &mut Wants) {
    if let Some(PricingWants { candidates, .. }) = &mut wants.pricing {
        need(candidates, CandidateColumn::RankMicros);
        need(candidates, CandidateColumn::CostMicros);
    }
    if let Some(JudgingWants { moves, nodes, pods, pools, .. }) = &mut wants.judging {
        need(moves, MoveColumn::Kind);
        need(moves, MoveColumn::Score);
        if !nodes.is_empty() {
            need(nodes, MoveNodeColumn::Move);
        }
        if !pods.is_empty() {
            need(pods, MovePodColumn::Move);
            need(pods, MovePodColumn::Node);
        }
        if !pools.is_empty() {
            need(pools, MovePoolColumn::Move);
        }
    }
}

impl Chain {
    /// A chain of these members, the first asked first.
    #[must_use]
    pub fn new(members: Vec<Member>) -> Self {
        let mut wants = Wants::default();
        for member in &members {
            if let Standing::Ready(judge) = &member.standing {
                wants.unite(&judge.setup().wants);
            }
        }
        complete(&mut wants);
        Self { members, wants }
    }

    /// The members in order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What tables are to be built of, in this order of columns.
    #[must_use]
    pub const fn wants(&self) -> &Wants {
        &self.wants
    }

    /// The chain for making a plan again: this member has failed.
    #[must_use]
    pub fn without(&self, policy: &str, why: &str) -> Self {
        let mut members = self.members.clone();
        for member in members.iter_mut().filter(|member| member.name == policy) {
            member.standing = Standing::Failed { why: why.to_owned() };
        }
        Self::new(members)
    }

    /// Whether something this hook decides is held back, by whom and why.
    #[must_use]
    pub fn held(&self, hook: Hook) -> Option<(&str, &str)> {
        self.members.iter().find_map(|member| Some((member.name.as_str(), member.holds(hook)?)))
    }
}
