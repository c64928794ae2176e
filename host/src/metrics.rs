//! What is measured, under Karpenter's names where it has one and under `whittle_` where not. Counters follow reports
//! and orders, so that none is computed twice. What must not enter: decisions, and the words of logs.

use std::sync::Mutex;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use whittle_engine::Report;
use whittle_engine::report::{ClaimStep, Step};
use whittle_model::CapacityType;

use crate::claims::Claims;
use crate::process::Process;

/// Labels of counters of claims that were made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Created {
    reason: &'static str,
    nodepool: String,
    min_values_relaxed: &'static str,
}

/// Labels of counters by pool, capacity type and zone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Ended {
    nodepool: String,
    capacity_type: String,
    zone: String,
}

/// Labels of counters of claims that were removed, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Disrupted {
    reason: String,
    nodepool: String,
    capacity_type: String,
}

/// Labels of counters of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Nodes {
    nodepool: String,
    zone: String,
}

/// Labels of what a pool may own and owns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Amount {
    resource_type: String,
    nodepool: String,
}

/// Labels of what a controller of Karpenter would have done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Of {
    controller: &'static str,
}

/// Labels of what the doors were asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Door {
    door: &'static str,
    action: &'static str,
}

/// Labels of a message's kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Message {
    message_type: &'static str,
}

/// Labels of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPolicy {
    policy: String,
}

/// Labels of the build.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Build {
    version: &'static str,
    goarch: &'static str,
    commit: &'static str,
}

const PROVISIONER: Of = Of { controller: "provisioner" };

/// All of it.
pub struct Metrics {
    registry: Mutex<Registry>,
    created: Family<Created, Counter>,
    terminated: Family<Ended, Counter>,
    disrupted: Family<Disrupted, Counter>,
    nodes_created: Family<Nodes, Counter>,
    nodes_terminated: Family<Nodes, Counter>,
    unschedulable: Family<Of, Gauge>,
    /// How long the engine thought about one round.
    pub thinking: Histogram,
    /// Whether the first lists of all kinds are in.
    pub synced: Gauge,
    /// Whether this replica acts.
    pub leading: Gauge,
    /// What pools own.
    pub usage: Family<Amount, Gauge>,
    /// What pools may own.
    pub limits: Family<Amount, Gauge>,
    /// Orders that a door could not carry out.
    pub refused: Family<Door, Counter>,
    /// Messages of the interruption queue.
    pub received: Family<Message, Counter>,
    /// Messages that were deleted from it.
    pub deleted: Counter,
    cost: Gauge,
    greedy: Gauge,
    bound: Gauge,
    objections: Counter,
    policy_calls: Family<OfPolicy, Counter>,
    policy_failures: Family<OfPolicy, Counter>,
}

/// Bounds of durations in seconds: some of those that Karpenter has; a round takes milliseconds.
const SECONDS: [f64; 18] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 150.0, 300.0, 600.0];

impl Metrics {
    /// Everything at nought.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::default()),
            created: Family::default(),
            terminated: Family::default(),
            disrupted: Family::default(),
            nodes_created: Family::default(),
            nodes_terminated: Family::default(),
            unschedulable: Family::default(),
            thinking: Histogram::new(SECONDS),
            synced: Gauge::default(),
            leading: Gauge::default(),
            usage: Family::default(),
            limits: Family::default(),
            refused: Family::default(),
            received: Family::default(),
            deleted: Counter::default(),
            cost: Gauge::default(),
            greedy: Gauge::default(),
            bound: Gauge::default(),
            objections: Counter::default(),
            policy_calls: Family::default(),
            policy_failures: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let build: Family<Build, Gauge> = Family::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION"), goarch: std::env::consts::ARCH, commit: crate::COMMIT }).set(1);
        let karpenter = registry.sub_registry_with_prefix("karpenter");
        karpenter.register("build_info", "Version of the controller", build);
        karpenter.register("nodeclaims_created", "NodeClaims made", self.created.clone());
        karpenter.register("nodeclaims_terminated", "NodeClaims that ended", self.terminated.clone());
        karpenter.register("nodeclaims_disrupted", "NodeClaims removed, by reason", self.disrupted.clone());
        karpenter.register("nodes_created", "Nodes that registered", self.nodes_created.clone());
        karpenter.register("nodes_terminated", "Nodes that ended", self.nodes_terminated.clone());
        karpenter.register("scheduler_unschedulable_pods_count", "Pods that fit nowhere", self.unschedulable.clone());
        karpenter.register("scheduler_scheduling_duration_seconds", "Time of one round of the engine", self.thinking.clone());
        karpenter.register("cluster_state_synced", "Whether the first lists of all kinds are in", self.synced.clone());
        karpenter.register("nodepools_usage", "What NodePools own", self.usage.clone());
        karpenter.register("nodepools_limit", "What NodePools may own", self.limits.clone());
        karpenter.register("interruption_received_messages", "Messages of the interruption queue", self.received.clone());
        karpenter.register("interruption_deleted_messages", "Messages deleted from the interruption queue", self.deleted.clone());
        let whittle = registry.sub_registry_with_prefix("whittle");
        whittle.register("leading", "Whether this replica acts", self.leading.clone());
        whittle.register("orders_refused", "Orders that a door could not carry out", self.refused.clone());
        whittle.register("plan_cost_micros", "Cost of an hour of the last plan's new nodes", self.cost.clone());
        whittle.register("plan_greedy_micros", "The same as Karpenter's first fit would have planned", self.greedy.clone());
        whittle.register("plan_bound_micros", "No plan for the same pods costs less", self.bound.clone());
        whittle.register("audit_objections", "Objections of the second reader of plans", self.objections.clone());
        whittle.register("policy_calls", "Calls of scoring policies", self.policy_calls.clone());
        whittle.register("policy_failures", "Failures of scoring policies", self.policy_failures.clone());
        registry.register_collector(Box::new(Process));
    }

    /// All of it as text that Prometheus reads.
    pub fn text(&self) -> String {
        let registry = self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut text = String::new();
        if encode(&mut text, &registry).is_err() {
            // Writing to a string fails only when a metric names itself badly, which a test would see.
            text = "# EOF\n".to_owned();
        }
        text
    }

    /// Counts what a report says.
    pub fn count(&self, report: &Report, claims: &Claims) {
        let mut unplaced: Option<usize> = None;
        for step in &report.steps {
            match step {
                Step::Planned(planned) => {
                    let labels = Created { reason: "provisioned", nodepool: planned.node_pool.clone(), min_values_relaxed: "false" };
                    self.created.get_or_create(&labels).inc();
                    unplaced.get_or_insert_default();
                }
                Step::Unplaced(those) => *unplaced.get_or_insert_default() += those.pods.len(),
                Step::Placed { .. } => {
                    unplaced.get_or_insert_default();
                }
                Step::Claim { claim, what } => self.claim(claim, what, claims),
                Step::Nominated { .. }
                | Step::SoldOut { .. }
                | Step::CollectionStopped { .. }
                | Step::Move(_)
                | Step::Blocked { .. }
                | Step::Closed { .. } => {}
            }
        }
        if let Some(count) = unplaced {
            self.unschedulable.get_or_create(&PROVISIONER).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        if let Some(choice) = &report.choice {
            self.cost.set(choice.cost.0);
            self.greedy.set(choice.greedy.0);
            self.bound.set(choice.bound.0);
        }
        self.objections.inc_by(report.objections.len() as u64);
        for record in &report.policies {
            self.policy_calls.get_or_create(&OfPolicy { policy: record.policy.clone() }).inc_by(record.calls);
        }
        for failure in &report.failures {
            self.policy_failures.get_or_create(&OfPolicy { policy: failure.policy.clone() }).inc();
        }
    }

    fn claim(&self, name: &str, what: &ClaimStep, claims: &Claims) {
        let about = claims.get(name);
        let (nodepool, zone) = (about.node_pool.clone(), about.zone.clone());
        let capacity_type = about.capacity_type.map(CapacityType::name).unwrap_or_default().to_owned();
        match what {
            ClaimStep::Registered(_) => {
                self.nodes_created.get_or_create(&Nodes { nodepool, zone }).inc();
            }
            ClaimStep::Removing(reason) => {
                let reason = snake_case(reason);
                self.disrupted.get_or_create(&Disrupted { reason, nodepool, capacity_type }).inc();
            }
            ClaimStep::Removed => {
                self.terminated.get_or_create(&Ended { nodepool: nodepool.clone(), capacity_type, zone: zone.clone() }).inc();
                if about.registered {
                    self.nodes_terminated.get_or_create(&Nodes { nodepool, zone }).inc();
                }
            }
            ClaimStep::Launching
            | ClaimStep::Launched { .. }
            | ClaimStep::LaunchFailed(_)
            | ClaimStep::Initialized(_)
            | ClaimStep::Evicting(_)
            | ClaimStep::Deleting(_)
            | ClaimStep::Held(_)
            | ClaimStep::Inconsistent(_)
            | ClaimStep::RebalanceAdvised
            | ClaimStep::Kept(_) => {}
        }
    }

    /// Sets what a pool owns or may own.
    pub fn set(family: &Family<Amount, Gauge>, nodepool: &str, resource: &str, amount: i64) {
        let resource_type = resource.to_owned();
        family.get_or_create(&Amount { resource_type, nodepool: nodepool.to_owned() }).set(amount);
    }

    /// Counts an order that a door could not carry out.
    pub fn refused(&self, door: &'static str, action: &'static str) {
        self.refused.get_or_create(&Door { door, action }).inc();
    }

    /// Counts a message of the interruption queue.
    pub fn message(&self, message_type: &'static str) {
        self.received.get_or_create(&Message { message_type }).inc();
    }
}

/// `InsufficientCapacity` as labels have it: `insufficient_capacity`.
fn snake_case(words: &str) -> String {
    let mut text = String::new();
    for (at, letter) in words.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use whittle_model::{CapacityType, NodeClaim};

    use super::*;

    #[test]
    fn names_are_those_of_karpenter() {
        let metrics = Metrics::new();
        let mut claims = Claims::default();
        let mut claim = NodeClaim { name: "a".to_owned(), node_pool: "general".to_owned(), ..NodeClaim::default() };
        claim.status.zone = "us-east-1a".to_owned();
        claim.status.capacity_type = Some(CapacityType::Spot);
        claims.put(&claim);
        let step = |what| Step::Claim { claim: "a".to_owned(), what };
        let steps = vec![
            step(ClaimStep::Registered("n".to_owned())),
            step(ClaimStep::Removing("InsufficientCapacity".to_owned())),
            step(ClaimStep::Removed),
        ];
        metrics.count(&Report { steps, ..Report::default() }, &claims);
        let text = metrics.text();
        for line in [
            r#"karpenter_nodes_created_total{nodepool="general",zone="us-east-1a"} 1"#,
            r#"karpenter_nodeclaims_disrupted_total{reason="insufficient_capacity",nodepool="general",capacity_type="spot"} 1"#,
            r#"karpenter_nodeclaims_terminated_total{nodepool="general",capacity_type="spot",zone="us-east-1a"} 1"#,
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
            "karpenter_cluster_state_synced 0",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
