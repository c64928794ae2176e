//! Pods as the engine sees them: what they ask for, where they are, what they exclude.

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, Labels, Requirements, Resources, Timestamp, Toleration};

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

/// One required pod anti-affinity term on `kubernetes.io/hostname`: no node may hold both this pod
/// and a pod that the term selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AntiAffinityTerm {
    /// Namespaces whose pods count, sorted.
    pub namespaces: Vec<String>,
    /// The pods meant.
    pub selector: LabelSelector,
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
    /// The pods it does not share a node with.
    pub anti_affinity: Vec<AntiAffinityTerm>,
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
