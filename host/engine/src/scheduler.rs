//! A deterministic model of kube-scheduler's default profile: where pods go once nodes are there.
//! The simulated cluster schedules with it, and a packing is judged by what it becomes once bound.
//!
//! Modelled: queue order; the filters NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts,
//! NodeResourcesFit, NodeVolumeLimits, VolumeBinding, PodTopologySpread and InterPodAffinity; the scores LeastAllocated,
//! BalancedAllocation, TaintToleration, NodeAffinity, InterPodAffinity and PodTopologySpread, its built-in default
//! constraints too, with the default weights; nominated nodes and the room held for them; the sampling of large clusters
//! and the order in which nodes are looked at. Ties, which kube-scheduler breaks by chance, are broken by a seed. Sources:
//! <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins> and
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/>.
//!
//! Not modelled: preemption, image locality, resource claims, scheduling gates, selectors of Services (by default a pod
//! spreads with the pods of its own controller), batching of equal pods, and the parallel search, which makes the sample
//! of a large cluster vary by a few nodes. Which attempt is made when, and that an attempt that fails costs a pod its
//! nomination, is for those who call.
//!
//! What must not enter: plans, claims, prices. A plan reaches this room by nomination only.

mod affinity_scores;
mod company;
mod counts;
mod crowds;
mod filter;
mod identity;
mod neighbours;
mod nodes;
mod nominations;
mod queue;
mod score;
mod shapes;
mod spread_scores;
mod topology;
mod volumes;

use std::collections::BTreeMap;

use whittle_model::{Event, Labels, Node, Pod, PodKey};

use affinity_scores::AffinityScores;
use company::{Companies, Constraint};
use counts::Counts;
use crowds::Crowds;
use filter::{Search, Verdict};
use identity::{Identities, Identity, Rooms};
use neighbours::{Books, Neighbours};
use nodes::Nodes;
use nominations::Nominations;
pub use queue::queue_order;
use shapes::Shapes;
use spread_scores::SpreadScores;
use volumes::Volumes;

use crate::storage::Storage;

/// The Kubernetes minor version that [`Scheduler::new`] models.
pub const NEWEST_MINOR: u32 = 36;

/// From this minor version on BalancedAllocation scores the change of balance that the pod brings,
/// before it the balance that results.
/// Source: Kubernetes changelog 1.36, `NodeResourcesBalancedAllocation`.
const BALANCE_BY_CHANGE: u32 = 36;

/// Nodes, the pods bound to them and the room held on them, and the search for a pod's node. A clone
/// goes its own way from the same point, ties included.
#[derive(Debug, Clone)]
pub struct Scheduler {
    nodes: Nodes,
    identities: Identities,
    shapes: Shapes,
    crowds: Crowds,
    companies: Companies,
    volumes: Volumes,
    /// The pods of each controller.
    groups: Vec<Counts>,
    default_spread: Vec<Constraint>,
    nominations: Nominations,
    bound: BTreeMap<PodKey, Bound>,
    seed: u64,
    ties: u64,
    next_start: usize,
    neighbours: Neighbours,
    feasible: Vec<u32>,
    spread_scores: SpreadScores,
    affinity_scores: AffinityScores,
}

/// What a bound pod counts for.
#[derive(Debug, Clone)]
struct Bound {
    slot: u32,
    identity: Identity,
    /// A pod that is being deleted holds its room but no longer counts for spreading.
    spreads: bool,
}

/// Why a pod found no node, as kube-scheduler says it in the pod's `PodScheduled` condition:
/// `0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unschedulable {
    /// The sentence.
    pub message: String,
}

impl std::fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unschedulable {}

impl Scheduler {
    /// An empty cluster, scheduled as by the newest Kubernetes version known here. `seed` decides
    /// between nodes of equal score and nothing else.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of_version(seed, NEWEST_MINOR)
    }

    /// An empty cluster, scheduled as by Kubernetes 1.`minor`.
    #[must_use]
    pub fn of_version(seed: u64, minor: u32) -> Self {
        let mut nodes = Nodes::default();
        let default_spread = spread_scores::defaults(&mut nodes);
        Self {
            nodes,
            identities: Identities::default(),
            shapes: Shapes::new(minor >= BALANCE_BY_CHANGE),
            crowds: Crowds::default(),
            companies: Companies::default(),
            volumes: Volumes::default(),
            groups: Vec::new(),
            default_spread,
            nominations: Nominations::default(),
            bound: BTreeMap::new(),
            seed,
            ties: 0,
            next_start: 0,
            neighbours: Neighbours::default(),
            feasible: Vec::new(),
            spread_scores: SpreadScores::default(),
            affinity_scores: AffinityScores::default(),
        }
    }

    /// A node is as given: new or changed. A node that is not ready keeps pods away as the taint
    /// `node.kubernetes.io/not-ready` does.
    pub fn apply_node(&mut self, node: &Node) {
        self.nodes.apply(node, &mut self.identities);
    }

    /// A node is gone. Pods bound to it stay on the books until they are unbound, and count again
    /// if a node of the same name comes back.
    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A namespace has these labels, which terms of pod affinity may select.
    pub fn apply_namespace(&mut self, name: &str, labels: &Labels) {
        self.crowds.put_namespace(name, labels.clone());
    }

    /// A namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) {
        self.crowds.put_namespace(name, Labels::new());
    }

    /// A storage object is as given, or gone: claims, volumes, classes, limits of nodes, attachments. Other events are no
    /// matter.
    pub fn apply_storage(&mut self, event: &Event) {
        self.volumes.note(event);
    }

    /// All storage objects at once.
    pub(crate) fn adopt_storage(&mut self, storage: &Storage) {
        self.volumes.adopt(storage);
    }

    /// Accounts a pod on a node, by this scheduler's choice or from outside; the node need not be
    /// known yet. A pod accounted before is moved. A pod that has ended holds no room: it is
    /// unbound. The pod's nomination is used up.
    pub fn bind(&mut self, pod: &Pod, node: &str) {
        self.unbind(&pod.key);
        self.forget_nomination(&pod.key);
        if pod.terminal() {
            return;
        }
        let identity = self.identify(pod);
        let slot = self.nodes.slot(node);
        self.nodes.take(slot, self.shapes.shape(identity.shape));
        let spreads = !pod.deleting;
        self.crowds.place(&identity, &self.companies.get(identity.company).wishes, slot, spreads);
        self.volumes.place(&identity.claims, slot);
        if let Some(ports) = identity.ports {
            self.nodes.take_ports(slot, ports);
        }
        if let Some(group) = identity.group.filter(|_| spreads) {
            if self.groups.len() <= group as usize {
                self.groups.resize_with(group as usize + 1, Counts::default);
            }
            self.groups[group as usize].add(slot, 1);
        }
        self.bound.insert(pod.key.clone(), Bound { slot, identity, spreads });
    }

    /// A bound pod left its node. Pods that were never bound are no matter.
    pub fn unbind(&mut self, pod: &PodKey) {
        let Some(bound) = self.bound.remove(pod) else { return };
        let Bound { slot, identity, spreads } = &bound;
        if let Some(group) = identity.group.filter(|_| *spreads) {
            self.groups[group as usize].take(*slot, 1);
        }
        self.crowds.lift(identity, &self.companies.get(identity.company).wishes, *slot, *spreads);
        self.volumes.lift(&identity.claims, *slot);
        if let Some(ports) = identity.ports {
            self.nodes.give_ports_back(*slot, ports);
        }
        self.nodes.give_back(bound.slot, self.shapes.shape(bound.identity.shape));
    }

    /// The node a pod is accounted on.
    #[must_use]
    pub fn node_of(&self, pod: &PodKey) -> Option<&str> {
        self.bound.get(pod).map(|bound| self.nodes.name(bound.slot))
    }

    /// Holds room for a pod on a node (`status.nominatedNodeName`): pods of equal or lower priority
    /// find it taken, and the pod itself tries that node first. Replaces an earlier nomination.
    pub fn nominate(&mut self, pod: &Pod, node: &str) {
        self.forget_nomination(&pod.key);
        if self.bound.contains_key(&pod.key) {
            return;
        }
        let identity = self.identify(pod);
        let slot = self.nodes.slot(node);
        self.nodes.hold(slot);
        self.nominations.add(&pod.key, slot, identity);
    }

    /// Lets the room go that was held for a pod, if any was.
    pub fn forget_nomination(&mut self, pod: &PodKey) {
        if let Some(slot) = self.nominations.remove(pod) {
            self.nodes.let_go(slot);
        }
    }

    /// Finds the node for a pod that is not bound, and binds nothing. The node of its nomination
    /// (`pod.nominated`, else what [`nominate`](Self::nominate) was told) is taken when it passes
    /// the filters; else the best-scored node among those looked at.
    ///
    /// # Errors
    /// When no node passes the filters.
    pub fn schedule(&mut self, pod: &Pod) -> Result<String, Unschedulable> {
        let identity = self.identify(pod);
        self.nodes.refresh_order();
        if self.nodes.order().is_empty() {
            return Err(Unschedulable { message: "no nodes available to schedule pods".to_owned() });
        }
        let mounts = self.volumes.mounts(pod);
        let mounts =
            mounts.map_err(|why| Unschedulable { message: format!("0/{} nodes are available: {why}.", self.nodes.order().len()) })?;
        let books = Books { nodes: &self.nodes, crowds: &self.crowds, companies: &self.companies };
        self.neighbours.prepare(&identity, &books, &mut self.shapes);
        let asked = pod.node.as_deref().map(|name| self.nodes.find(name));
        let slot = self.search(&Search { pod, identity, asked, mounts })?;
        Ok(self.nodes.name(slot).to_owned())
    }

    /// [`schedule`](Self::schedule), and [`bind`](Self::bind) to the node found.
    ///
    /// # Errors
    /// When no node passes the filters.
    pub fn schedule_and_bind(&mut self, pod: &Pod) -> Result<String, Unschedulable> {
        let node = self.schedule(pod)?;
        self.bind(pod, &node);
        Ok(node)
    }

    fn identify(&mut self, pod: &Pod) -> Identity {
        let (shapes, crowds) = (&mut self.shapes, &mut self.crowds);
        self.identities.identify(pod, Rooms { shapes, crowds, companies: &mut self.companies, nodes: &mut self.nodes })
    }

    fn search(&mut self, search: &Search<'_>) -> Result<u32, Unschedulable> {
        let pod = search.pod;
        let nominated = pod.nominated.as_deref().map_or_else(|| self.nominations.slot(&pod.key), |name| self.nodes.find(name));
        if let Some(slot) = nominated.filter(|slot| self.nodes.info(*slot).is_some())
            && self.verdict(search, slot) == Verdict::Fits
        {
            return Ok(slot);
        }
        self.sample(search);
        match self.feasible.as_slice() {
            [] => Err(self.refusal(search)),
            [only] => Ok(*only),
            _ => Ok(self.best(&search.identity)),
        }
    }

    /// Collects feasible nodes into `self.feasible`, starting behind the nodes of the last search,
    /// until enough are found.
    fn sample(&mut self, search: &Search<'_>) {
        let mut feasible = std::mem::take(&mut self.feasible);
        feasible.clear();
        let all = self.nodes.order().len();
        let enough = nodes_to_find(all);
        let mut looked_at = 0;
        while looked_at < all && feasible.len() < enough {
            let slot = self.nodes.order()[(self.next_start + looked_at) % all];
            looked_at += 1;
            if self.verdict(search, slot) == Verdict::Fits {
                feasible.push(slot);
            }
        }
        self.next_start = (self.next_start + looked_at) % all;
        self.feasible = feasible;
    }

    /// The best-scored of at least two feasible nodes.
    fn best(&mut self, identity: &Identity) -> u32 {
        let tied = self.top_scored(identity);
        if let [only] = tied.as_slice() {
            return *only;
        }
        self.ties += 1;
        let draw = splitmix(self.seed.wrapping_add(self.ties.wrapping_mul(GOLDEN)));
        let pick = draw % tied.len() as u64;
        tied[pick as usize]
    }
}

/// How many feasible nodes end the search: all below 100 nodes, else a share that falls from 50 %
/// by one point every 125 nodes to no less than 5 %, and at least 100 nodes.
/// Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/scheduler-perf-tuning/>.
fn nodes_to_find(all: usize) -> usize {
    let percent = 50usize.saturating_sub(all / 125).max(5);
    (all * percent / 100).max(100.min(all))
}

/// 2^64 divided by the golden ratio: the step of the splitmix64 sequence.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014): a well-mixed word for each counter value.
fn splitmix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::nodes_to_find;

    #[test]
    fn large_clusters_are_sampled_as_documented() {
        // Hand-computed from the documented formula; 5 % is reached at 5625 nodes.
        for (all, enough) in
            [(0, 0), (1, 1), (99, 99), (100, 100), (200, 100), (250, 120), (1000, 420), (5000, 500), (5625, 281), (10_000, 500)]
        {
            assert_eq!(nodes_to_find(all), enough, "{all} nodes");
        }
    }
}
