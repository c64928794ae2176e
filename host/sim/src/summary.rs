//! Where a simulation ended, as a contract: names and units stay. Money is micro-dollars.

use serde::Serialize;
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{PolicyRecord, keys};

use crate::simulation::Simulation;
use crate::timeline::Sale;

/// The end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Nodes that have joined, by name.
    pub nodes: Vec<NodeRow>,
    /// Pods that are no daemons'.
    pub pods: Pods,
    /// Room that is kept for pods to come, by buffer; absent where there are no buffers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferRow>,
    /// What it costs.
    pub cost: Cost,
    /// Instances bought, in order.
    pub launches: Vec<Launch>,
    /// Claims that had to go, in order.
    pub disruptions: Vec<Disruption>,
    /// Instances beyond the first of a claim, and instances that run for no claim. More than none
    /// is a bug.
    pub stray_launches: usize,
    /// What policies did; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRow>,
    /// What the result rests on.
    pub assumptions: Assumptions,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its pool; empty when it is not ours.
    pub nodepool: String,
    /// Type, zone, capacity type; empty when not known.
    #[serde(flatten)]
    pub offering: Sale,
    /// Today's price of an hour; zero when it is not ours.
    pub price_micros: i64,
    /// Pods on it, daemons' included.
    pub pods: usize,
    /// Cores, in thousandths.
    pub cpu_milli: Amount,
    /// Memory, in MiB: requests rounded up, room rounded down.
    pub memory_mib: Amount,
}

/// How much is asked for, and how much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Amount {
    /// By pods on the node.
    pub requested: i64,
    /// For pods.
    pub allocatable: i64,
}

/// Pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pods {
    /// How many run.
    pub running: usize,
    /// Those without a node, together with their like.
    pub pending: Vec<PendingPods>,
}

/// Pods without a node, for the same reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingPods {
    /// Their workload, `namespace/name`.
    pub workload: String,
    /// The pods, `namespace/name`.
    pub pods: Vec<String>,
    /// Where, and why not.
    pub reasons: Vec<String>,
    /// What would have to change, when one small change would do.
    pub nearest: Option<String>,
}

/// A capacity buffer, in pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BufferRow {
    /// `namespace/name`.
    pub buffer: String,
    /// For how many there is room on nodes in use.
    pub ready: u32,
    /// For how many nodes are on their way.
    pub coming: u32,
    /// For how many there is no room, and none can be bought.
    pub missing: u32,
}

/// What it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// All instances now, an hour.
    pub hourly_micros: i64,
    /// The running pods packed from nothing by the documented greedy, an hour.
    pub greedy_micros: i64,
    /// No packing of the running pods costs less, an hour.
    pub bound_micros: i64,
    /// All instances over the whole story.
    pub total_micros: i64,
}

/// What a policy did over the story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRow {
    /// Its name.
    pub policy: String,
    /// How often it was called.
    pub calls: u64,
    /// How many rows it judged.
    pub rows: u64,
    /// What its calls used of their fuel.
    pub fuel: u64,
    /// Rows whose rank it changed.
    pub ranked: u64,
    /// Rows whose cost it changed.
    pub priced: u64,
    /// Rows it vetoed, by reason.
    pub vetoes: Vec<(String, u64)>,
    /// How it failed last; absent when it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl From<&PolicyRecord> for PolicyRow {
    fn from(record: &PolicyRecord) -> Self {
        Self {
            policy: record.policy.clone(),
            calls: record.calls,
            rows: record.rows,
            fuel: record.fuel,
            ranked: record.ranked,
            priced: record.priced,
            vetoes: record.vetoes.clone(),
            failure: record.failure.clone(),
        }
    }
}

/// An instance bought.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// When, in seconds of the story.
    pub at: f64,
    /// Its claim.
    pub claim: String,
    /// Its pool.
    pub nodepool: String,
    /// What was bought.
    #[serde(flatten)]
    pub offering: Sale,
    /// Price of an hour.
    pub price_micros: i64,
}

/// A claim that had to go.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// When, in seconds of the story.
    pub at: f64,
    /// The claim.
    pub claim: String,
    /// Its node; empty when none had joined.
    pub node: String,
    /// Why, in one word.
    pub reason: String,
}

/// What a result rests on, one line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assumptions {
    /// Where prices come from.
    pub prices: String,
    /// The region whose price list was used.
    pub price_region: String,
    /// Where spot prices come from, and how spot is bought.
    pub spot: String,
    /// The faults of the run.
    pub weather: String,
    /// How pods find their nodes.
    pub scheduler: String,
    /// How long instances take to join, pods to start and stop.
    pub boot: String,
    /// The seed of all that is drawn.
    pub seed: u64,
}

impl Simulation {
    /// Where it stands now.
    pub fn summary(&mut self) -> Summary {
        self.reality.accrue();
        let yardstick = self.engine.yardstick(self.reality.now);
        let hourly: i64 = self.reality.ec2.running().map(|i| self.reality.price(&i.node_class, &i.offering).0).sum();
        let running = self.reality.api.pods.values().filter(|p| p.phase == whittle_model::PodPhase::Running && !p.tied_to_node());
        Summary {
            nodes: self.node_rows(),
            pods: Pods { running: running.count(), pending: self.pending_pods() },
            buffers: self.buffer_rows(),
            cost: Cost {
                hourly_micros: hourly,
                greedy_micros: yardstick.greedy.0,
                bound_micros: yardstick.bound.0,
                total_micros: self.reality.ec2.total().0,
            },
            launches: self.launches(),
            disruptions: self.disruptions(),
            stray_launches: self.reality.strays().len(),
            policies: self.history.policies.iter().map(PolicyRow::from).collect(),
            assumptions: self.assumptions(),
        }
    }

    fn buffer_rows(&self) -> Vec<BufferRow> {
        let rooms = self.engine.world().buffer_rooms();
        let row = |(key, room): (whittle_model::PodKey, whittle_engine::BufferRoom)| {
            let (ready, coming, missing) = (room.ready, room.coming, room.missing);
            BufferRow { buffer: key.to_string(), ready, coming, missing }
        };
        rooms.into_iter().map(row).collect()
    }

    fn node_rows(&self) -> Vec<NodeRow> {
        let reality = &self.reality;
        let row = |name: &str, allocatable: &whittle_model::Resources| {
            let instance = reality.ec2.running().find(|i| i.node == name);
            let labels = reality.api.nodes.get(name).map(|n| &n.labels);
            let label = |key: &str| labels.and_then(|l| l.get(key)).cloned().unwrap_or_default();
            let capacity = whittle_model::CapacityType::parse(&label(keys::CAPACITY_TYPE)).map_or("", whittle_model::CapacityType::name);
            let labelled = Sale { instance_type: label(keys::INSTANCE_TYPE), zone: label(keys::ZONE), capacity_type: capacity };
            let mut requested = whittle_model::Resources::default();
            let mut pods = 0;
            for pod in reality.pods_on(name) {
                requested.add(&pod.requests);
                pods += 1;
            }
            let mib = 1 << 20;
            NodeRow {
                name: name.to_owned(),
                nodepool: instance.map_or_else(|| label(keys::NODE_POOL), |i| i.node_pool.clone()),
                offering: instance.map_or(labelled, |i| Sale::from(&i.offering)),
                price_micros: instance.map_or(0, |i| reality.price(&i.node_class, &i.offering).0),
                pods,
                cpu_milli: Amount { requested: requested.get(CPU), allocatable: allocatable.get(CPU) },
                memory_mib: Amount {
                    requested: (requested.get(MEMORY) + mib - 1).div_euclid(mib),
                    allocatable: allocatable.get(MEMORY).div_euclid(mib),
                },
            }
        };
        reality.api.nodes.values().map(|node| row(&node.name, &node.allocatable)).collect()
    }

    fn pending_pods(&self) -> Vec<PendingPods> {
        let mut groups: Vec<PendingPods> = Vec::new();
        for pod in self.reality.waiting() {
            let workload = self.reality.workload_of(pod);
            let (reasons, nearest) = self.why_pending(pod);
            let like = |g: &&mut PendingPods| g.workload == workload && g.reasons == reasons && g.nearest == nearest;
            match groups.iter_mut().find(like) {
                Some(group) => group.pods.push(pod.to_string()),
                None => groups.push(PendingPods { workload, pods: vec![pod.to_string()], reasons, nearest }),
            }
        }
        groups
    }

    fn launches(&self) -> Vec<Launch> {
        let bought = self.reality.ec2.instances.iter().filter(|i| !i.given);
        bought
            .map(|i| Launch {
                at: seconds(i.since),
                claim: i.claim.clone(),
                nodepool: i.node_pool.clone(),
                offering: Sale::from(&i.offering),
                price_micros: i.price.0,
            })
            .collect()
    }

    fn disruptions(&self) -> Vec<Disruption> {
        let gone = self.history.gone.iter();
        gone.map(|g| Disruption { at: seconds(g.at), claim: g.claim.clone(), node: g.node.clone(), reason: g.reason.clone() }).collect()
    }
}

/// Seconds of the story, exact to the millisecond.
#[must_use]
pub(crate) fn seconds(at: whittle_model::Timestamp) -> f64 {
    // Stories are shorter than 2^53 milliseconds, so this is exact.
    at.0 as f64 / 1000.0
}
