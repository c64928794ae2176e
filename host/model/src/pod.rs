//! Pods as the engine sees them: what they ask for, where they are, what they exclude.

use serde::{Deserialize, Serialize};

use crate::{Duration, LabelSelector, Labels, Requirements, Resources, Timestamp, Toleration};

/// The name of a pod: namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct PodKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl PodKey {
    /// A key from its parts.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for PodKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.namespace, self.name))
    }
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not started.
    #[default]
    Pending,
    /// Started.
    Running,
    /// Ended well: holds nothing.
    Succeeded,
    /// Ended badly: holds nothing.
    Failed,
}

/// The controller that owns a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Owner {
    /// Kind, such as `ReplicaSet`.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// One term of pod affinity or anti-affinity: the pods it selects, and the node label within whose
/// values it counts. `matchLabelKeys` and `mismatchLabelKeys` are part of the selector already.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodAffinityTerm {
    /// Nodes with one value of this label are one domain.
    pub topology_key: String,
    /// Namespaces whose pods count, sorted.
    pub namespaces: Vec<String>,
    /// Namespaces with such labels count too; `None` adds none, the empty selector adds all.
    pub namespace_selector: Option<LabelSelector>,
    /// The pods meant.
    pub selector: LabelSelector,
}

/// A topology spread constraint. `matchLabelKeys` are part of the selector already.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopologySpread {
    /// Nodes with one value of this label are one domain.
    pub topology_key: String,
    /// By how much the count of a domain may exceed the least of all, at least 1.
    pub max_skew: u32,
    /// With fewer eligible domains than this the least count is taken to be 0.
    pub min_domains: Option<u32>,
    /// `DoNotSchedule`; false is `ScheduleAnyway`.
    pub required: bool,
    /// The pods that count, of the pod's own namespace.
    pub selector: LabelSelector,
    /// `nodeAffinityPolicy: Honor`: only nodes that the pod's node selector and required node affinity accept are domains.
    pub honor_affinity: bool,
    /// `nodeTaintsPolicy: Honor`: only nodes whose taints the pod tolerates are domains.
    pub honor_taints: bool,
}

/// What a pod would rather have. Each entry has its weight, 1 to 100, in the order written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Preferences {
    /// Nodes that meet these.
    pub nodes: Vec<(i32, Requirements)>,
    /// To be in a domain with the pods of the term.
    pub near: Vec<(i32, PodAffinityTerm)>,
    /// To be in a domain without them.
    pub away: Vec<(i32, PodAffinityTerm)>,
}

/// Protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A port of the node that a pod takes for itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPort {
    /// 1 to 65535.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// The address it binds to; empty is all addresses of the node (also written `0.0.0.0` and `::`).
    pub ip: String,
}

impl HostPort {
    /// Whether two ports cannot be taken on one node.
    #[must_use]
    pub fn collides(&self, other: &Self) -> bool {
        self.port == other.port && self.protocol == other.protocol && (self.ip == other.ip || self.ip.is_empty() || other.ip.is_empty())
    }
}

/// A volume of a pod that a PersistentVolumeClaim stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodVolume {
    /// Name of the claim, in the pod's namespace; of an ephemeral volume `<pod>-<volume>`.
    pub claim: String,
    /// Of a generic ephemeral volume, whose claim is made once the pod is: its storage class (`None` is the default class).
    pub ephemeral: Option<Option<String>>,
}

/// Which nodes a pod accepts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Affinity {
    /// `nodeSelector`: always required.
    pub node_selector: Requirements,
    /// Required node affinity: at least one term must hold. Empty means no such demand. (A demand
    /// whose every term is void is one unsatisfiable term.)
    pub node_terms: Vec<Requirements>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Pod {
    /// Its name.
    pub key: PodKey,
    /// Unique for all time; breaks ties of equal creation.
    pub uid: String,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// The controlling owner.
    pub owner: Option<Owner>,
    /// When it was made.
    pub created: Timestamp,
    /// How far it has come.
    pub phase: PodPhase,
    /// Its node, once bound.
    pub node: Option<String>,
    /// The node kube-scheduler holds room on for it (`status.nominatedNodeName`).
    pub nominated: Option<String>,
    /// Whether kube-scheduler has said that it fits nowhere (`PodScheduled` false, reason
    /// `Unschedulable`). Gated pods do not say so.
    pub unschedulable: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Effective requests: the sum that kube-scheduler reserves, with one `pods`.
    pub requests: Resources,
    /// The nodes it accepts.
    pub affinity: Affinity,
    /// The taints it ignores.
    pub tolerations: Vec<Toleration>,
    /// How it spreads with others, required and preferred.
    pub spread: Vec<TopologySpread>,
    /// The pods in whose domains it must be (required pod affinity).
    pub pod_affinity: Vec<PodAffinityTerm>,
    /// The pods in whose domains it must not be (required pod anti-affinity).
    pub anti_affinity: Vec<PodAffinityTerm>,
    /// What it would rather have.
    pub preferences: Preferences,
    /// The node's ports it takes, each once.
    pub host_ports: Vec<HostPort>,
    /// Its volumes that claims stand for.
    pub volumes: Vec<PodVolume>,
    /// Whether it asks for devices by resource claims (dynamic resource allocation).
    pub resource_claims: bool,
    /// Whether its condition `Ready` is true.
    pub ready: bool,
    /// When the kubelet took it up.
    pub started: Option<Timestamp>,
    /// How long it has to end once asked to (`terminationGracePeriodSeconds`).
    pub grace: Duration,
    /// When its time to end is over, while it is being deleted (`deletionTimestamp`).
    pub ends_at: Option<Timestamp>,
    /// How often its containers were started again, all together.
    #[serde(default)]
    pub restarts: u32,
    /// Priority value; higher goes first at kube-scheduler.
    pub priority: i32,
    /// Name of the priority class, empty when none.
    pub priority_class: String,
    /// Fields of the specification that would change where it may run and that this version cannot
    /// read, by path. A pod that has any is never planned for.
    pub unsupported: Vec<String>,
}

impl Pod {
    /// Whether it takes room on its node: bound and not ended.
    #[must_use]
    pub fn holds_room(&self) -> bool {
        self.node.is_some() && !self.terminal()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether a node owns it (static pods) or a DaemonSet does: such pods come and go with nodes
    /// and never call for one.
    #[must_use]
    pub fn tied_to_node(&self) -> bool {
        self.owner.as_ref().is_some_and(|o| o.kind == "DaemonSet" || o.kind == "Node")
    }
}

/// The requests of one container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerRequests {
    /// What it asks for.
    pub requests: Resources,
    /// Whether it is an init container that keeps running (`restartPolicy: Always`).
    pub sidecar: bool,
}

/// What kube-scheduler reserves for a pod: the larger of what its containers need together and what
/// any init container needs at its turn (with the sidecars started before it), with pod-level
/// requests in place of both for the resources they name, plus overhead, plus one `pods`.
///
/// Source: <https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers>
/// and <https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers>.
#[must_use]
pub fn effective_requests(init: &[ContainerRequests], containers: &[Resources], pod_level: &Resources, overhead: &Resources) -> Resources {
    let mut total = Resources::default();
    for container in containers {
        total.add(container);
    }
    let (mut sidecars, mut peak) = (Resources::default(), Resources::default());
    for container in init {
        if container.sidecar {
            total.add(&container.requests);
            sidecars.add(&container.requests);
            peak.raise_to(&sidecars);
        } else {
            let mut turn = sidecars.clone();
            turn.add(&container.requests);
            peak.raise_to(&turn);
        }
    }
    total.raise_to(&peak);
    for (name, amount) in pod_level.iter() {
        total.set(name, amount);
    }
    total.add(overhead);
    total.set(crate::resources::PODS, 1);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{CPU, MEMORY, PODS};

    fn amounts(cpu: i64, memory: i64) -> Resources {
        Resources::of(&[(CPU, cpu), (MEMORY, memory)])
    }

    fn init(cpu: i64, memory: i64, sidecar: bool) -> ContainerRequests {
        ContainerRequests { requests: amounts(cpu, memory), sidecar }
    }

    #[test]
    fn effective_requests_follow_the_published_formula() {
        let none = Resources::default();
        let rows = [
            (vec![], vec![amounts(100, 10), amounts(200, 20)], none.clone(), none.clone(), (300, 30)),
            (vec![init(500, 5, false)], vec![amounts(100, 10)], none.clone(), none.clone(), (500, 10)),
            (vec![init(50, 5, true)], vec![amounts(100, 10)], none.clone(), none.clone(), (150, 15)),
            // A sidecar counts during later init containers, not during earlier ones.
            (vec![init(50, 5, true), init(500, 5, false)], vec![amounts(100, 10)], none.clone(), none.clone(), (550, 15)),
            (vec![init(500, 5, false), init(50, 5, true)], vec![amounts(100, 10)], none.clone(), none.clone(), (500, 15)),
            // Pod-level requests stand in for the sum, resource by resource; overhead comes on top.
            (vec![], vec![amounts(100, 10)], Resources::of(&[(CPU, 1000)]), amounts(10, 1), (1010, 11)),
        ];
        for (init, containers, level, overhead, (cpu, memory)) in rows {
            let got = effective_requests(&init, &containers, &level, &overhead);
            assert_eq!(got, Resources::of(&[(CPU, cpu), (MEMORY, memory), (PODS, 1)]), "{init:?} {containers:?}");
        }
    }
}
