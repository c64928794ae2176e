//! Small integers for what pods have in common, so that nothing is compared or copied by text
//! while nodes are searched.

use std::hash::Hash;

use smallvec::SmallVec;
use whittle_model::{Affinity, HostPort, Labels, Owner, Pod, PodKey, Requirements, Resources, Toleration, resources};

use super::company::Companies;
use super::crowds::Crowds;
use super::nodes::Nodes;
use super::shapes::Shapes;
use super::volumes;
use crate::intern::Lookup;

/// The kinds of controllers whose selectors kube-scheduler spreads pods by; a Deployment stands for
/// its ReplicaSet where a manifest is read without one.
/// Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>.
const SPREADING_OWNERS: [&str; 4] = ["ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"];

/// Amounts by column of [`Columns`]; columns past the end are zero.
pub(super) type Amounts = SmallVec<[i64; 4]>;

/// Column of CPU in [`Amounts`].
pub(super) const CPU: usize = 0;
/// Column of memory in [`Amounts`].
pub(super) const MEMORY: usize = 1;

/// What scheduling knows of a pod.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// Requests, node affinity and tolerations, in [`Shapes`].
    pub shape: u32,
    /// Namespace and labels, in [`Crowds`].
    pub profile: u32,
    /// What it wants of others, in [`Companies`].
    pub company: u32,
    /// The pods of its controller, where the default constraints spread it.
    pub group: Option<u32>,
    /// Its host ports, in [`Identities`]; `None` when it takes none.
    pub ports: Option<u32>,
    /// The claims of its volumes.
    pub claims: Vec<PodKey>,
    /// Its priority.
    pub priority: i32,
}

/// Values as consecutive integers from zero, each counted within a scope.
#[derive(Debug, Clone)]
pub(super) struct Interner<T> {
    scopes: Vec<Lookup<T, u32>>,
    count: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { scopes: Vec::new(), count: 0 }
    }
}

impl<T: Hash + Eq + Clone> Interner<T> {
    /// The integer of `value` in `scope`, and whether it is new. Integers differ between scopes.
    pub fn id(&mut self, scope: u32, value: &T) -> (u32, bool) {
        let scope = scope as usize;
        if self.scopes.len() <= scope {
            self.scopes.resize_with(scope + 1, Lookup::default);
        }
        if let Some(id) = self.scopes[scope].get(value) {
            return (*id, false);
        }
        let id = self.count;
        self.scopes[scope].insert(value.clone(), id);
        self.count += 1;
        (id, true)
    }
}

/// The names of resources, in the order they were first seen; CPU and memory come first. Pods are
/// no column: they are counted.
#[derive(Debug, Clone)]
pub(super) struct Columns(Vec<String>);

impl Default for Columns {
    fn default() -> Self {
        Self(vec![resources::CPU.to_owned(), resources::MEMORY.to_owned()])
    }
}

impl Columns {
    /// `amounts` by column.
    pub fn amounts(&mut self, amounts: &Resources) -> Amounts {
        let mut row = Amounts::from_slice(&[0, 0]);
        for (name, amount) in amounts.iter().filter(|(name, _)| *name != resources::PODS) {
            let column = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
                self.0.push(name.to_owned());
                self.0.len() - 1
            });
            if row.len() <= column {
                row.resize(column + 1, 0);
            }
            row[column] = amount;
        }
        row
    }

    /// The name of a column.
    pub fn name(&self, column: usize) -> &str {
        &self.0[column]
    }
}

/// All interners of pods.
#[derive(Debug, Clone, Default)]
pub(super) struct Identities {
    pub columns: Columns,
    namespaces: Interner<String>,
    labels: Interner<Labels>,
    owners: Interner<Owner>,
    affinities: Interner<Affinity>,
    tolerations: Interner<Vec<Toleration>>,
    requests: Interner<Resources>,
    preferences: Interner<Vec<(i32, Requirements)>>,
    classes: Interner<(u32, u32, u32)>,
    shapes: Interner<(u32, u32)>,
    port_ids: Interner<Vec<HostPort>>,
    ports: Vec<Vec<HostPort>>,
}

/// The rooms that an identity points into.
pub(super) struct Rooms<'r> {
    pub shapes: &'r mut Shapes,
    pub crowds: &'r mut Crowds,
    pub companies: &'r mut Companies,
    pub nodes: &'r mut Nodes,
}

impl Identities {
    /// What scheduling knows of `pod`; what is new of it is entered in the rooms.
    pub fn identify(&mut self, pod: &Pod, rooms: Rooms<'_>) -> Identity {
        let (namespace, _) = self.namespaces.id(0, &pod.key.namespace);
        let (profile, new) = self.labels.id(namespace, &pod.labels);
        if new {
            rooms.crowds.add_profile(&pod.key.namespace, &pod.labels);
        }
        let spreading = pod.owner.as_ref().filter(|owner| SPREADING_OWNERS.contains(&owner.kind.as_str()));
        Identity {
            shape: self.shape(pod, rooms.shapes),
            profile,
            company: rooms.companies.id(pod, namespace, rooms.crowds, rooms.nodes),
            group: spreading.map(|owner| self.owners.id(namespace, owner).0),
            ports: self.ports(pod),
            claims: volumes::claims(pod),
            priority: pod.priority,
        }
    }

    fn ports(&mut self, pod: &Pod) -> Option<u32> {
        if pod.host_ports.is_empty() {
            return None;
        }
        let (id, new) = self.port_ids.id(0, &pod.host_ports);
        if new {
            self.ports.push(pod.host_ports.clone());
        }
        Some(id)
    }

    /// Whether the host ports of two pods cannot be taken on one node.
    pub fn collide(&self, a: u32, b: u32) -> bool {
        self.ports[a as usize].iter().any(|port| self.ports[b as usize].iter().any(|other| port.collides(other)))
    }

    fn shape(&mut self, pod: &Pod, shapes: &mut Shapes) -> u32 {
        let (affinity, _) = self.affinities.id(0, &pod.affinity);
        let (tolerations, _) = self.tolerations.id(0, &pod.tolerations);
        let (preferences, _) = self.preferences.id(0, &pod.preferences.nodes);
        let (class, new) = self.classes.id(0, &(affinity, tolerations, preferences));
        if new {
            shapes.add_class(pod);
        }
        let (requests, _) = self.requests.id(0, &pod.requests);
        let (shape, new) = self.shapes.id(0, &(class, requests));
        if new {
            shapes.add_shape(class, self.columns.amounts(&pod.requests));
        }
        shape
    }
}
