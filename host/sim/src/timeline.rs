//! What happened, as it happens: for people as text, for programs as JSON.
//!
//! What must not enter: judgement. An entry repeats what the world did or the engine reported.

mod display;

pub use display::for_whom;
use serde::{Serialize, Serializer};
use whittle_model::{Micros, OfferingKey, PodKey, Timestamp};

/// Hears of everything that happens, in order.
pub trait Observer {
    /// `event` happened `at`, counted from the beginning of the story.
    fn on(&mut self, at: Timestamp, event: &TimelineEvent);

    /// The story has come to `line`, the `nth` of `lines`, at `now`; for progress bars.
    fn progress(&mut self, _now: Timestamp, _nth: usize, _lines: usize) {}
}

/// An observer that does not listen.
impl Observer for () {
    fn on(&mut self, _at: Timestamp, _event: &TimelineEvent) {}
}

/// An offering as results name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sale {
    /// Instance type.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Availability zone.
    pub zone: String,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: &'static str,
}

impl From<&OfferingKey> for Sale {
    fn from(key: &OfferingKey) -> Self {
        Self { instance_type: key.instance_type.clone(), zone: key.zone.clone(), capacity_type: key.capacity_type.name() }
    }
}

impl std::fmt::Display for Sale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{} {} {}", self.instance_type, self.zone, self.capacity_type))
    }
}

/// One thing that happened. In JSON `kind` names it, and names of fields that hold money end in
/// `Micros`: micro-dollars an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TimelineEvent {
    /// The story says something.
    Story {
        /// The line's number.
        line: usize,
        /// Its text.
        text: String,
    },
    /// What the story waited for is true.
    Reached {
        /// What.
        condition: String,
        /// How long it took, in milliseconds.
        after_ms: i64,
    },
    /// Pods were made.
    PodsCreated {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// kube-scheduler found no node for pods.
    PodsPending {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// kube-scheduler gave pods a node.
    PodsBound {
        /// The node.
        node: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// Pods started.
    PodsRunning {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// Pods ended well.
    PodsSucceeded {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// Pods are gone.
    PodsGone {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// The engine made a plan for new nodes.
    Plan {
        /// Pods that get a new node.
        pods: usize,
        /// Pods of capacity buffers that get room on one.
        #[serde(skip_serializing_if = "is_zero")]
        room: usize,
        /// New nodes.
        nodes: usize,
        /// The packer whose plan was taken.
        packer: String,
        /// What the new nodes cost.
        #[serde(rename = "costMicros", serialize_with = "micros")]
        cost: Micros,
        /// What the documented greedy's plan would cost.
        #[serde(rename = "greedyMicros", serialize_with = "micros")]
        greedy: Micros,
        /// No plan costs less.
        #[serde(rename = "boundMicros", serialize_with = "micros")]
        bound: Micros,
        /// What a plan for the same pods would cost without policies; absent where there are none.
        #[serde(rename = "withoutPoliciesMicros", serialize_with = "some_micros", skip_serializing_if = "Option::is_none")]
        without_policies: Option<Micros>,
    },
    /// A policy had a say in a plan or a removal.
    Policy {
        /// Its name.
        policy: String,
        /// Rows it judged.
        rows: u64,
        /// Rows whose rank it changed.
        ranked: u64,
        /// Rows whose cost it changed.
        priced: u64,
        /// Rows it vetoed, by reason.
        vetoes: Vec<(String, u64)>,
    },
    /// A policy could not be asked, or failed.
    PolicyFailed {
        /// Its name.
        policy: String,
        /// Why.
        why: String,
        /// Whether nothing is bought or moved for want of it; otherwise the plan was made without it.
        closed: bool,
    },
    /// Claims that look the same were made.
    Claims {
        /// Their names.
        claims: Vec<String>,
        /// Their pool.
        node_pool: String,
        /// Pods on each.
        pods: usize,
        /// Pods of capacity buffers that have room on each.
        #[serde(skip_serializing_if = "is_zero")]
        room: usize,
        /// Instance types that each leaves open.
        types: usize,
        /// The offering that the plan counts on.
        choice: Sale,
        /// Its price.
        #[serde(rename = "priceMicros", serialize_with = "micros")]
        price: Micros,
        /// Its list price.
        #[serde(rename = "listMicros", serialize_with = "micros")]
        list: Micros,
        /// What choice minimised.
        #[serde(rename = "rankMicros", serialize_with = "micros")]
        rank: Micros,
    },
    /// Pods have room on what exists or is on its way.
    Placed {
        /// Node or claim.
        on: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// Pods fit nowhere.
    Unplaced {
        /// Their workload.
        workload: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
        /// Where, and why not.
        reasons: Vec<String>,
        /// What would have to change.
        nearest: Option<String>,
    },
    /// Instances of one kind were bought.
    Launched {
        /// Their claims.
        claims: Vec<String>,
        /// What was bought.
        offering: Sale,
        /// Price of each.
        #[serde(rename = "priceMicros", serialize_with = "micros")]
        price: Micros,
    },
    /// Nothing could be bought for claims.
    LaunchFailed {
        /// The claims.
        claims: Vec<String>,
        /// Why.
        why: String,
    },
    /// Offerings are left alone for a while.
    SoldOut {
        /// The offerings.
        offerings: Vec<Sale>,
        /// Until when, in milliseconds of the story.
        until_ms: i64,
    },
    /// Nodes joined.
    Registered {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Nodes may be used.
    Initialized {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Pods were nominated to a node.
    Nominated {
        /// The node.
        node: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// A claim stays although it could go.
    Kept {
        /// The claim.
        claim: String,
        /// Why.
        why: String,
    },
    /// Nodes are exchanged for cheaper or newer ones, or might have been.
    Move {
        /// Why they go: `Underutilized` or `Drifted`.
        reason: String,
        /// Their nodes.
        nodes: Vec<String>,
        /// The claims that are made for them.
        replacements: Vec<String>,
        /// What it saves an hour.
        #[serde(rename = "savesMicros", serialize_with = "micros")]
        saves: Micros,
        /// `begun`, `rejected` or `rolledBack`.
        stage: &'static str,
        /// Why it was given up; empty when it was not.
        why: String,
    },
    /// A claim goes.
    Removing {
        /// The claim.
        claim: String,
        /// Its node; empty when none joined.
        node: String,
        /// Why.
        reason: String,
    },
    /// A claim goes, and that waits for something.
    Held {
        /// The claim.
        claim: String,
        /// Its node; empty when none joined.
        node: String,
        /// For what.
        why: String,
    },
    /// A node is not what was bought.
    Inconsistent {
        /// The claim.
        claim: String,
        /// Its node; empty when none joined.
        node: String,
        /// Why not.
        why: String,
    },
    /// Instances or claims without their counterpart were left alone: there are too many to believe.
    CollectionStopped {
        /// How many were left.
        left: usize,
        /// How many are collected within an hour.
        most: usize,
    },
    /// Pods were deleted because the grace period of their node's claim leaves them no more time.
    OutOfTime {
        /// The node.
        node: String,
        /// The pods.
        #[serde(serialize_with = "names")]
        pods: Vec<PodKey>,
    },
    /// A claim and its node are gone.
    Removed {
        /// The claim.
        claim: String,
        /// Its node; empty when none joined.
        node: String,
    },
    /// EC2 takes an instance back in two minutes.
    Interrupted {
        /// The node.
        node: String,
    },
    /// EC2 recommends to leave an instance.
    Advised {
        /// The node.
        node: String,
    },
    /// An instance ended that nobody ended.
    InstanceLost {
        /// The node; empty when none joined.
        node: String,
        /// Its claim.
        claim: String,
    },
    /// The controller crashed.
    Crashed {},
    /// The controller is back, and has read everything again.
    Restarted {},
    /// The engine's auditor objects to a plan.
    Objection {
        /// What it says.
        what: String,
    },
}

impl TimelineEvent {
    /// Takes `other` in if it says the same of other pods; false if it does not.
    pub(crate) fn join(&mut self, other: &Self) -> bool {
        let mine = match (self, other) {
            (Self::PodsCreated { workload, pods }, Self::PodsCreated { workload: with, pods: more })
            | (Self::PodsPending { workload, pods }, Self::PodsPending { workload: with, pods: more })
            | (Self::PodsBound { node: workload, pods }, Self::PodsBound { node: with, pods: more })
            | (Self::PodsRunning { workload, pods }, Self::PodsRunning { workload: with, pods: more })
            | (Self::PodsSucceeded { workload, pods }, Self::PodsSucceeded { workload: with, pods: more })
            | (Self::PodsGone { workload, pods }, Self::PodsGone { workload: with, pods: more })
                if workload == with =>
            {
                (pods, more)
            }
            _ => return false,
        };
        mine.0.extend(mine.1.iter().cloned());
        true
    }
}

fn some_micros<S: Serializer>(amount: &Option<Micros>, to: S) -> Result<S::Ok, S::Error> {
    match amount {
        Some(amount) => micros(amount, to),
        None => to.serialize_none(),
    }
}

// As serde asks for it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn micros<S: Serializer>(amount: &Micros, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_i64(amount.0)
}

fn names<S: Serializer>(pods: &[PodKey], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(pods.iter().map(ToString::to_string))
}
