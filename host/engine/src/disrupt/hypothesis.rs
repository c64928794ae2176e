//! The world as it would be without some nodes: their pods wait, and the planner that buys for waiting pods says what
//! comes of it. Slower than a study and exact: a move is decided by the same rules by which its pods are placed later.
//!
//! What must not enter: which nodes may go.

use std::collections::BTreeSet;

use whittle_model::{NodeClaim, OfferingKey, Packing, Pod, PodKey, PodPhase, Scorer, Timestamp};

use super::candidates::Candidate;
use crate::lifecycle::SOLD_OUT_FOR;
use crate::plan::{self, Plan, PlannedNode};
use crate::world::World;

/// A world in which moves are tried.
pub(super) struct Hypothesis {
    world: World,
    /// Steps of improvement that a plan may take at most.
    steps: u64,
}

/// Steps of improvement for each node that goes.
const STEPS_A_NODE: u64 = 2_000;

impl Hypothesis {
    /// The world in which nodes of `closed` take no further pods and claims in flight are not counted on. Pods that wait
    /// take the room they have on what exists; the others are no matter of moves.
    pub(super) fn new(world: &World, closed: &BTreeSet<&str>, scorer: &mut dyn Scorer, now: Timestamp) -> Self {
        let mut world = world.clone();
        let flying: Vec<NodeClaim> = world.claims.values().filter(|c| !c.deleting && world.node_of(c).is_none()).cloned().collect();
        for claim in flying {
            world.put_claim(NodeClaim { deleting: true, ..claim });
        }
        // Room that is kept on a node that goes counts as what is on it: it is not sought anew before the node's turn comes.
        for (node, pod) in rooms_on(&world, closed) {
            settle(&mut world, &pod, &node);
        }
        for name in closed {
            if let Some(node) = world.nodes.get_mut(*name) {
                node.cordoned = true;
            }
        }
        let mut hypothesis = Self { steps: world.settings.improvement_steps, world };
        hypothesis.seat(scorer, now);
        hypothesis
    }

    /// Has nothing bought of these offerings.
    pub(super) fn sell_out(&mut self, offerings: impl Iterator<Item = OfferingKey>, now: Timestamp) {
        self.world.sold_out.extend(offerings.map(|offering| (offering, now.plus(SOLD_OUT_FOR))));
    }

    fn seat(&mut self, scorer: &mut dyn Scorer, now: Timestamp) {
        let (waiting, refused) = plan::waiting(&self.world, now);
        if !waiting.is_empty() {
            let plan = plan::plan(&self.world, scorer, now);
            self.bind(&plan);
            let placed: BTreeSet<&PodKey> = plan.placed.values().flatten().collect();
            waiting.iter().filter(|key| !placed.contains(key)).for_each(|key| self.world.drop_pod(key, true));
        }
        refused.iter().for_each(|key| self.world.drop_pod(key, true));
    }

    /// The plan without these nodes, packed so.
    pub(super) fn without(&mut self, candidates: &[&Candidate], packing: Packing, scorer: &mut dyn Scorer, now: Timestamp) -> (Plan, Undo) {
        let mut undo = Undo::default();
        self.world.settings.packing = packing;
        self.world.settings.improvement_steps = self.steps.min(STEPS_A_NODE * u64::try_from(candidates.len()).unwrap_or(1));
        for candidate in candidates {
            if let Some(node) = self.world.nodes.get(&candidate.node).cloned() {
                self.world.drop_node(&candidate.node);
                undo.nodes.push(node);
            }
            if let Some(claim) = self.world.claims.get(&candidate.claim).cloned() {
                self.world.put_claim(NodeClaim { deleting: true, ..claim.clone() });
                undo.claims.push(claim);
            }
            for key in &candidate.pods {
                let Some(pod) = self.world.pod(key) else { continue };
                self.world.put_pod(&waiting(pod.clone()));
                undo.pods.push(pod);
            }
        }
        (plan::plan(&self.world, scorer, now), undo)
    }

    /// A further node of a pool that keeps its number of them.
    ///
    /// # Errors
    /// Says why there is none.
    pub(super) fn bare(&mut self, pool: &str, scorer: &mut dyn Scorer, now: Timestamp) -> Result<PlannedNode, String> {
        let nodes = plan::bare(&self.world, pool, 1, scorer, now).map_err(|failure| failure.to_string())?;
        let node = nodes.into_iter().next().ok_or_else(|| format!("nodepool {pool} may not grow by one, as an exchange needs"))?;
        self.world.put_claim(NodeClaim { deleting: true, ..node.claim.clone() });
        Ok(node)
    }

    /// Takes a trial back.
    pub(super) fn undo(&mut self, undo: Undo) {
        undo.claims.into_iter().for_each(|claim| self.world.put_claim(claim));
        undo.nodes.into_iter().for_each(|node| self.world.put_node(node));
        undo.pods.iter().for_each(|pod| self.world.put_pod(pod));
    }

    /// Lets a trial stand: pods are where the plan has room for them, and what is bought counts against the limits.
    pub(super) fn keep(&mut self, plan: &Plan, bought: &[&NodeClaim]) {
        self.bind(plan);
        for claim in bought {
            self.world.put_claim(NodeClaim { deleting: true, ..(*claim).clone() });
        }
        for pod in plan.nodes.iter().flat_map(|node| &node.pods) {
            self.world.drop_pod(pod, true);
        }
    }

    fn bind(&mut self, plan: &Plan) {
        for (node, pods) in &plan.placed {
            for key in pods {
                settle(&mut self.world, key, node);
            }
        }
    }
}

fn rooms_on(world: &World, nodes: &BTreeSet<&str>) -> Vec<(String, PodKey)> {
    let going = world.claims.values().filter_map(|claim| Some((claim, world.node_of(claim)?)));
    let going = going.filter(|(_, node)| nodes.contains(node.name.as_str()));
    let rooms = going.flat_map(|(claim, node)| world.assigned.pods(&claim.name).map(move |pod| (node.name.clone(), pod.clone())));
    rooms.filter(|(_, pod)| world.buffers.holds(pod)).collect()
}

/// Puts a pod on a node, if there still is such a pod.
fn settle(world: &mut World, key: &PodKey, node: &str) {
    let Some(pod) = world.pod(key) else { return };
    world.put_pod(&Pod { node: Some(node.to_owned()), nominated: None, unschedulable: false, phase: PodPhase::Running, ..pod });
}

/// What a trial changed, as it was.
#[derive(Default)]
pub(super) struct Undo {
    nodes: Vec<whittle_model::Node>,
    claims: Vec<NodeClaim>,
    pods: Vec<Pod>,
}

/// A pod as it will be when it has been evicted and made anew.
fn waiting(pod: Pod) -> Pod {
    Pod { node: None, nominated: None, unschedulable: true, phase: PodPhase::Pending, ..pod }
}
