//! Says what happened: logs, Kubernetes events and metrics, all made from the engine's reports and from what the doors
//! answered. What must not enter: what is done about it.

use std::sync::Arc;

use tokio::sync::mpsc;
use whittle_cluster::write::{EventKind, Note, Recorder, Subject};
use whittle_engine::Report;
use whittle_engine::report::{ClaimStep, MoveStage, Step, Unplaced};
use whittle_model::PodKey;

use crate::metrics::Metrics;
use crate::settings::Mode;
use crate::shelf::Shelf;

/// An error with all its causes, each once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(why) = cause {
        let words = why.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = why.source();
    }
    text
}

fn note(subject: Subject, kind: EventKind, reason: &str, message: &str) -> Note {
    Note { subject, kind, reason: reason.to_owned(), message: message.to_owned() }
}

fn subject(api_version: &str, kind: &str, name: &str, uid: &str) -> Subject {
    let (api_version, kind, name, uid) = (api_version.to_owned(), kind.to_owned(), name.to_owned(), uid.to_owned());
    Subject { api_version, kind, namespace: String::new(), name, uid }
}

/// Bad news of an EC2NodeClass.
pub fn about_class(name: &str, uid: &str, reason: &str, message: &str) -> Note {
    note(subject("karpenter.k8s.aws/v1", "EC2NodeClass", name, uid), EventKind::Warning, reason, message)
}

/// News of a pod.
pub fn about_pod(shelf: &Shelf, pod: &PodKey, kind: EventKind, reason: &str, message: &str) -> Note {
    let uid = shelf.open().pods.get(pod).cloned().unwrap_or_default();
    let about = Subject { namespace: pod.namespace.clone(), ..subject("v1", "Pod", &pod.name, &uid) };
    note(about, kind, reason, message)
}

/// News of a claim.
pub fn about_claim(shelf: &Shelf, claim: &str, kind: EventKind, reason: &str, message: &str) -> Note {
    let uid = shelf.open().claims.get(claim).uid.clone();
    note(subject("karpenter.sh/v1", "NodeClaim", claim, &uid), kind, reason, message)
}

/// Speaks for the engine.
pub struct Voice {
    /// Kubernetes events.
    pub recorder: Recorder,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is known of claims.
    pub shelf: Shelf,
    /// Whether what is planned is done.
    pub mode: Mode,
}

impl Voice {
    /// Speaks until there is nothing more to say.
    pub async fn run(self, mut reports: mpsc::Receiver<Vec<Report>>) {
        while let Some(reports) = reports.recv().await {
            for report in reports {
                self.say(&report);
            }
        }
    }

    fn say(&self, report: &Report) {
        self.metrics.count(report, &self.shelf.open().claims);
        self.count(report);
        if let Some(choice) = &report.choice {
            tracing::info!(
                pods = choice.pods,
                nodes = choice.nodes,
                method = choice.method,
                cost = %choice.cost,
                greedy = %choice.greedy,
                bound = %choice.bound,
                "computed new NodeClaims to fit pods"
            );
        }
        for objection in &report.objections {
            tracing::error!(
                objection = objection,
                "the auditor objects to a plan, and nothing of it is done; this is a bug, please report it"
            );
        }
        for failure in &report.failures {
            tracing::warn!(
                ScoringPolicy = failure.policy,
                chain = failure.chain,
                reason = failure.why,
                closed = failure.closed,
                "a policy failed"
            );
        }
        for step in &report.steps {
            self.step(step);
        }
    }

    /// Counts what policies did, for their status.
    fn count(&self, report: &Report) {
        let mut known = self.shelf.open();
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for record in &report.policies {
            let counts = known.counts.entry(record.policy.clone()).or_default();
            counts.calls = counts.calls.saturating_add(whole(record.calls));
            counts.fuel = counts.fuel.saturating_add(whole(record.fuel));
        }
        for failure in &report.failures {
            known.counts.entry(failure.policy.clone()).or_default().failures += 1;
        }
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Planned(planned) => {
                let (pool, types) = (&planned.node_pool, planned.types);
                tracing::info!(
                    NodeClaim = planned.claim,
                    NodePool = pool,
                    pods = planned.pods.len(),
                    choice = %planned.choice,
                    price = %planned.price,
                    types = types,
                    "{}",
                    if self.mode == Mode::Enforce { "created nodeclaim" } else { "would create nodeclaim" }
                );
                self.nominated(&planned.pods, &format!("nodeclaim/{}", planned.claim));
            }
            Step::Placed { on, pods } => self.nominated(pods, &format!("node/{on}")),
            Step::Nominated { .. } => {}
            Step::Unplaced(unplaced) => self.unplaced(unplaced),
            Step::Claim { claim, what } => self.claim(claim, what),
            Step::Move(step) => {
                let stage = match &step.stage {
                    MoveStage::Found => "found, and looked at again before it is begun".to_owned(),
                    MoveStage::Rejected(why) => format!("given up: {why}"),
                    MoveStage::Begun => "begun".to_owned(),
                    MoveStage::Ready => "ready: the nodes go".to_owned(),
                    MoveStage::RolledBack(why) => format!("taken back: {why}"),
                };
                let (claims, replacements) = (step.claims.join(","), step.replacements.join(","));
                tracing::info!(reason = step.reason, NodeClaims = claims, replacements, saves = %step.saves, "disruption {stage}");
                if let MoveStage::Rejected(why) = &step.stage {
                    for claim in &step.claims {
                        self.recorder.note(about_claim(&self.shelf, claim, EventKind::Normal, "ConsolidationRejected", why));
                    }
                }
            }
            Step::Blocked { claim, why } => {
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Normal, "DisruptionBlocked", why));
            }
            Step::Closed { pool, why } => tracing::debug!(NodePool = pool, reason = why, "no node of the pool may be moved now"),
            Step::CollectionStopped { left, most } => {
                tracing::error!(left, most, "garbage is not collected: there is more than can be believed");
            }
            Step::SoldOut { offering, .. } => tracing::info!(offering = %offering, "sold out; it is left alone for three minutes"),
        }
    }

    fn nominated(&self, pods: &[PodKey], on: &str) {
        for pod in pods {
            self.recorder.sample(about_pod(&self.shelf, pod, EventKind::Normal, "Nominated", &format!("Pod should schedule on: {on}")));
        }
    }

    fn unplaced(&self, unplaced: &Unplaced) {
        let reasons: Vec<String> = unplaced.reasons.iter().map(|r| format!("{}: {}", r.place, r.why)).collect();
        let mut message = format!("Failed to schedule pod, {}", reasons.join("; "));
        if let Some(nearest) = &unplaced.nearest {
            message = format!("{message}; it would fit if {nearest}");
        }
        for pod in &unplaced.pods {
            self.recorder.note(about_pod(&self.shelf, pod, EventKind::Warning, "FailedScheduling", &message));
        }
        let first = unplaced.pods.first().map(ToString::to_string).unwrap_or_default();
        tracing::warn!(Pod = first, pods = unplaced.pods.len(), reason = message, "pods fit nowhere");
    }

    /// Remembers whether launches of the claim's pool come to nodes.
    fn remember(&self, claim: &str, what: &ClaimStep) {
        let mut known = self.shelf.open();
        let pool = known.claims.get(claim).node_pool.clone();
        match what {
            ClaimStep::Registered(_) => known.health.entry(pool).or_default().came(),
            ClaimStep::Removing(why) => known.health.entry(pool).or_default().went(why),
            ClaimStep::Launching
            | ClaimStep::Launched { .. }
            | ClaimStep::LaunchFailed(_)
            | ClaimStep::Initialized(_)
            | ClaimStep::Kept(_)
            | ClaimStep::Evicting(_)
            | ClaimStep::Deleting(_)
            | ClaimStep::Held(_)
            | ClaimStep::Inconsistent(_)
            | ClaimStep::RebalanceAdvised
            | ClaimStep::Removed => {}
        }
    }

    /// A milestone, under the name of its condition.
    fn reached(&self, claim: &str, condition: &str, message: &str) {
        self.recorder.sample(about_claim(&self.shelf, claim, EventKind::Normal, condition, message));
    }

    fn claim(&self, claim: &str, what: &ClaimStep) {
        self.remember(claim, what);
        match what {
            ClaimStep::Launching => tracing::debug!(NodeClaim = claim, "launching"),
            ClaimStep::Launched { offering, price } => {
                tracing::info!(NodeClaim = claim, offering = %offering, price = %price, "launched nodeclaim");
                self.reached(claim, "Launched", &format!("Launched {offering} at {price} an hour"));
            }
            ClaimStep::LaunchFailed(why) => {
                tracing::warn!(NodeClaim = claim, reason = why, "launching nodeclaim failed");
                let sold_out = why.starts_with("sold out");
                let reason = if sold_out { "InsufficientCapacityError" } else { "LaunchFailed" };
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Warning, reason, why));
            }
            ClaimStep::Registered(node) => {
                tracing::info!(NodeClaim = claim, Node = node, "registered nodeclaim");
                self.reached(claim, "Registered", &format!("Node {node} has joined"));
            }
            ClaimStep::Initialized(node) => {
                tracing::info!(NodeClaim = claim, Node = node, "initialized nodeclaim");
                self.reached(claim, "Initialized", &format!("Node {node} is ready for its pods"));
            }
            ClaimStep::Kept(why) => tracing::debug!(NodeClaim = claim, reason = why, "kept although it could go"),
            ClaimStep::Removing(why) => {
                tracing::info!(NodeClaim = claim, reason = why, "deleting nodeclaim");
                let message = format!("Disrupting NodeClaim: {why}");
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Normal, "DisruptionTerminating", &message));
            }
            ClaimStep::Evicting(pods) => {
                for pod in pods {
                    self.recorder.note(about_pod(&self.shelf, pod, EventKind::Normal, "Evicted", "Evicted pod: Forceful Termination"));
                }
            }
            ClaimStep::Deleting(pods) => {
                for pod in pods {
                    let message = "Deleting the pod to accommodate the terminationGracePeriod of its node";
                    self.recorder.note(about_pod(&self.shelf, pod, EventKind::Normal, "Disrupted", message));
                }
            }
            ClaimStep::Held(why) => {
                tracing::info!(NodeClaim = claim, reason = why, "the removal waits");
                let volumes = why.starts_with("volumes");
                let reason = if volumes { "AwaitingVolumeDetachment" } else { "FailedDraining" };
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Warning, reason, why));
            }
            ClaimStep::Inconsistent(why) => {
                tracing::error!(NodeClaim = claim, reason = why, "the node is not what was bought");
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Warning, "FailedConsistencyCheck", why));
            }
            ClaimStep::RebalanceAdvised => {
                let message = "Spot rebalance recommendation was received";
                self.recorder.note(about_claim(&self.shelf, claim, EventKind::Normal, "SpotRebalanceRecommendation", message));
            }
            ClaimStep::Removed => tracing::info!(NodeClaim = claim, "deleted nodeclaim"),
        }
    }
}
