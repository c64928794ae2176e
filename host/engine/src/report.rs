//! What a round of the engine did, declined and waits for, with its reasons. Metrics, conditions,
//! events, logs and `explain` are made from it and from nothing else.

mod reason;
mod topology;

use serde::{Deserialize, Serialize};
use whittle_model::{CapacityType, Micros, OfferingKey, PodKey, PolicyRecord, ScorerFailure, Timestamp, keys};

use crate::plan::PlannedNode;

pub use reason::{Miss, Obstacle, Reason, Shortage, TypesRefusal, Unmet, VolumeFault};
pub use topology::TopologyRefusal;

/// One round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Report {
    /// When the round was made.
    pub at: Timestamp,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// How new nodes were chosen, when any were needed.
    pub choice: Option<Choice>,
    /// What each policy did.
    pub policies: Vec<PolicyRecord>,
    /// Policies that failed, and were left out or closed their pools.
    pub failures: Vec<ScorerFailure>,
    /// What the independent auditor objects to; empty unless there is a bug.
    pub objections: Vec<String>,
}

/// One thing done, declined or waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A new claim is wanted.
    Planned(Box<PlannedClaim>),
    /// Pods have room on a node that exists or on a claim in flight.
    Placed {
        /// Name of the node or claim.
        on: String,
        /// The pods, in order.
        pods: Vec<PodKey>,
    },
    /// Pods fit nowhere.
    Unplaced(Box<Unplaced>),
    /// Something happened to a claim.
    Claim {
        /// The claim's name.
        claim: String,
        /// What.
        what: ClaimStep,
    },
    /// Pods were nominated to a node.
    Nominated {
        /// The node's name.
        node: String,
        /// The pods.
        pods: Vec<PodKey>,
    },
    /// Nodes are moved, or might have been.
    Move(Box<MoveStep>),
    /// A node could be moved, and stays for this reason.
    Blocked {
        /// The node's claim.
        claim: String,
        /// Why.
        why: String,
    },
    /// No node of a pool may be moved now.
    Closed {
        /// The pool's name; empty for the whole cluster.
        pool: String,
        /// Why.
        why: String,
    },
    /// So many instances or claims without their counterpart were left alone, because there are too many to believe.
    CollectionStopped {
        /// How many were left.
        left: usize,
        /// How many are collected within an hour.
        most: usize,
    },
    /// An offering answered that it is sold out, and is left alone for a while.
    SoldOut {
        /// The offering.
        offering: OfferingKey,
        /// Until when.
        until: Timestamp,
    },
}

/// A claim the plan wants and why it looks so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedClaim {
    /// The claim's name.
    pub claim: String,
    /// Its pool.
    pub node_pool: String,
    /// The pods it is for, in order.
    pub pods: Vec<PodKey>,
    /// For how many pods of capacity buffers it has room beside them.
    #[serde(default)]
    pub room: usize,
    /// The offering the plan counts on: the best-ranked that fits.
    pub choice: OfferingKey,
    /// Its price of an hour: what the bill will say.
    pub price: Micros,
    /// Its list price of an hour.
    pub list: Micros,
    /// What choice minimised, an hour: the price, unless policies see it otherwise.
    pub rank: Micros,
    /// How many instance types the claim leaves open.
    pub types: usize,
    /// The best offering of another type and its price.
    pub runner_up: Option<(OfferingKey, Micros)>,
}

impl PlannedClaim {
    /// What the plan says of a node.
    pub(crate) fn of(node: &PlannedNode) -> Self {
        Self {
            claim: node.claim.name.clone(),
            node_pool: node.claim.node_pool.clone(),
            pods: node.pods.clone(),
            room: 0,
            choice: node.choice.clone(),
            price: node.cost,
            list: node.list,
            rank: node.rank,
            types: node.claim.requirements.get(keys::INSTANCE_TYPE).map_or(0, |r| r.values().len()),
            runner_up: node.runner_up.clone(),
        }
    }
}

/// Pods of one shape that fit nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unplaced {
    /// The pods, in order.
    pub pods: Vec<PodKey>,
    /// One reason for each pool, and for the nodes there are: where, and why not.
    pub reasons: Vec<Refusal>,
    /// What would have to change for them to fit, when one small change would do.
    pub nearest: Option<Miss>,
}

/// Why a pod has no place in one pool or on the nodes there are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refusal {
    /// `nodepool NAME`, `pod` for a reason that lies in the pod itself.
    pub place: String,
    /// Why.
    pub why: Reason,
}

/// What happened to a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimStep {
    /// The launch was ordered.
    Launching,
    /// An instance was bought.
    Launched {
        /// What.
        offering: OfferingKey,
        /// Price of an hour.
        price: Micros,
    },
    /// Nothing could be bought; the message says why.
    LaunchFailed(String),
    /// Its node joined.
    Registered(String),
    /// Its node may be used.
    Initialized(String),
    /// It stays although it could go, for this reason.
    Kept(String),
    /// It goes, for this reason.
    Removing(String),
    /// Pods of its node were asked to leave.
    Evicting(Vec<PodKey>),
    /// Pods of its node were deleted, because its grace period leaves them no more time.
    Deleting(Vec<PodKey>),
    /// It goes, and that waits for this; said whenever it changes.
    Held(String),
    /// Its node is not what was bought for it, or there are several.
    Inconsistent(String),
    /// EC2 says that its instance is more likely than before to be taken back.
    RebalanceAdvised,
    /// Its instance has ended.
    Removed,
}

/// A move: nodes that go together, and what is bought for them first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveStep {
    /// `Empty`, `Underutilized`, `Drifted`, `Expired` or `Rebalance`.
    pub reason: String,
    /// The claims that go.
    pub claims: Vec<String>,
    /// The claims that are made for them.
    pub replacements: Vec<String>,
    /// What it saves an hour, by list price; below zero for what an exchange costs that is not made to save.
    pub saves: Micros,
    /// How far it is.
    pub stage: MoveStage,
}

/// How far a move is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MoveStage {
    /// It was found, and is looked at again before it is begun.
    Found,
    /// It was given up before it was begun.
    Rejected(String),
    /// It was begun.
    Begun,
    /// What is bought for it is ready: its nodes go.
    Ready,
    /// It was taken back: its nodes stay.
    RolledBack(String),
}

/// How new nodes were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Pods that needed new nodes and got them.
    pub pods: usize,
    /// Pods of capacity buffers that did.
    #[serde(default)]
    pub room: usize,
    /// New nodes.
    pub nodes: usize,
    /// The packer whose plan was taken: `greedy`, `duals`, `columns`.
    pub method: String,
    /// Cost of an hour of the plan that was taken.
    pub cost: Micros,
    /// Cost of an hour of the documented greedy's plan for the same pods.
    pub greedy: Micros,
    /// No plan for these pods costs less.
    pub bound: Micros,
    /// Cost of an hour of the plan for the same pods without policies, when that was asked for.
    pub without_policies: Option<Micros>,
    /// Capacity types of the new nodes, with counts.
    pub mix: Vec<(CapacityType, usize)>,
}
