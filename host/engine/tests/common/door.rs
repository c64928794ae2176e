//! A door that carries out what the engine orders, at once and without fail unless told otherwise.

use std::collections::{BTreeMap, BTreeSet};

use whittle_engine::Engine;
use whittle_model::{
    Action, Catalog, Duration, Event, LaunchFailure, Launched, ListPrice, Node, NodeClaim, Offering, OfferingKey, Outcome, Pod, PodKey,
    PodPhase, Scorer, Taint, Timestamp, keys,
};

use super::{catalog, seconds};

/// What becomes of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launching {
    /// The cheapest offering that is not sold out is bought.
    Works,
    /// No answer ever comes.
    Silent,
    /// It fails for this reason.
    Fails(String),
}

/// The cluster behind the engine.
pub struct Door {
    pub engine: Engine,
    /// Who judges.
    pub scorer: Box<dyn Scorer>,
    /// Another engine that is told the same and has to order the same.
    pub twin: Option<Engine>,
    pub now: Timestamp,
    pub claims: BTreeMap<String, NodeClaim>,
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<PodKey, Pod>,
    pub catalog: Catalog,
    /// Offerings that EC2 does not have.
    pub sold_out: BTreeSet<OfferingKey>,
    pub launching: Launching,
    /// Whether nodes that join become ready.
    pub boots: bool,
    /// Whether evictions are refused without a word.
    pub deaf: bool,
    /// Whether pods that are to leave are there until the test removes them.
    pub slow: bool,
    /// Bytes of memory that nodes turn out to have less than was computed.
    pub less_memory: i64,
    pub actions: Vec<(Timestamp, Action)>,
    bought: u32,
    /// Instances launched into each reservation.
    reserved: BTreeMap<String, u32>,
}

impl Door {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            scorer: Box::new(ListPrice),
            twin: None,
            now: Timestamp(0),
            claims: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            catalog: catalog("default"),
            sold_out: BTreeSet::new(),
            launching: Launching::Works,
            boots: true,
            slow: false,
            deaf: false,
            less_memory: 0,
            actions: Vec::new(),
            bought: 0,
            reserved: BTreeMap::new(),
        }
    }

    pub fn tell(&mut self, event: &Event) {
        self.engine.handle(event, self.now);
        if let Some(twin) = &mut self.twin {
            twin.handle(event, self.now);
        }
    }

    pub fn put_pod(&mut self, pod: Pod) {
        self.tell(&Event::Pod(Box::new(pod.clone())));
        self.pods.insert(pod.key.clone(), pod);
    }

    pub fn remove_pod(&mut self, key: &PodKey) {
        self.pods.remove(key);
        self.tell(&Event::PodGone(key.clone()));
    }

    /// Polls until nothing more is ordered at this time; returns what was.
    pub fn settle(&mut self) -> Vec<Action> {
        let mut all = Vec::new();
        loop {
            let actions = self.engine.poll(self.now, &mut *self.scorer);
            if let Some(twin) = &mut self.twin {
                assert_eq!(twin.poll(self.now, &mut *self.scorer), actions, "the twin orders the same");
                assert_eq!(twin.deadline(self.now), self.engine.deadline(self.now), "the twin wakes at the same time");
            }
            if actions.is_empty() {
                return all;
            }
            assert!(all.len() < 10_000, "the engine never rests: {:?}", &all[all.len() - 5..]);
            for action in actions {
                self.actions.push((self.now, action.clone()));
                self.carry_out(&action);
                all.push(action);
            }
        }
    }

    /// Lets time pass, polling whenever the engine asks for it; returns what was ordered.
    pub fn pass(&mut self, span: Duration) -> Vec<Action> {
        let end = self.now.plus(span);
        let mut all = self.settle();
        while let Some(next) = self.engine.deadline(self.now).filter(|d| d.at <= end) {
            assert!(next.at > self.now, "a deadline that has passed was not acted on: {next:?}");
            self.now = next.at;
            all.extend(self.settle());
        }
        self.now = end;
        all.extend(self.settle());
        all
    }

    /// Every instance without a node joins the cluster.
    pub fn join(&mut self) {
        let missing: Vec<NodeClaim> = self
            .claims
            .values()
            .filter(|c| !c.status.provider_id.is_empty() && self.nodes.values().all(|n| n.provider_id != c.status.provider_id))
            .cloned()
            .collect();
        for claim in missing {
            let unregistered = Taint::new(keys::UNREGISTERED_TAINT, "", whittle_model::Effect::NoExecute);
            let mut allocatable = claim.status.allocatable.clone();
            allocatable.subtract(&whittle_model::Resources::of(&[(whittle_model::resources::MEMORY, self.less_memory)]));
            let node = Node {
                name: format!("node-{}", claim.name),
                provider_id: claim.status.provider_id.clone(),
                labels: super::labels(&[(keys::HOSTNAME, &claim.name)]),
                taints: std::iter::once(unregistered).chain(claim.taints.clone()).chain(claim.startup_taints.clone()).collect(),
                capacity: claim.status.capacity.clone(),
                allocatable,
                ready: self.boots,
                ..Node::default()
            };
            self.put_node(node);
        }
    }

    pub fn put_node(&mut self, node: Node) {
        self.tell(&Event::Node(Box::new(node.clone())));
        self.nodes.insert(node.name.clone(), node);
    }

    /// Binds every pod to the node it is nominated to.
    pub fn bind_nominated(&mut self) -> usize {
        let nominated: Vec<Pod> = self.pods.values().filter(|p| p.node.is_none() && p.nominated.is_some()).cloned().collect();
        let count = nominated.len();
        for pod in nominated {
            let node = pod.nominated.clone().expect("only nominated pods are listed");
            self.put_pod(super::bound(pod, &node));
        }
        count
    }

    /// Takes the startup taints off every node.
    pub fn finish_boot(&mut self) {
        let starting: Vec<Node> = self.nodes.values().cloned().collect();
        for mut node in starting {
            let startup = self.claims.values().filter(|c| c.status.provider_id == node.provider_id).flat_map(|c| &c.startup_taints);
            let startup: Vec<Taint> = startup.cloned().collect();
            node.taints.retain(|t| !startup.contains(t));
            node.ready = true;
            self.put_node(node);
        }
    }

    pub fn put_claim(&mut self, claim: NodeClaim) {
        self.tell(&Event::Claim(Box::new(claim.clone())));
        self.claims.insert(claim.name.clone(), claim);
    }

    fn carry_out(&mut self, action: &Action) {
        match action {
            Action::CreateClaim(claim) => self.put_claim((**claim).clone()),
            Action::Launch { claim, .. } => self.launch(claim),
            Action::UpdateClaim { claim, labels, status } => {
                let Some(mut known) = self.claims.get(claim).cloned() else { return };
                known.labels.clone_from(labels);
                known.status = (**status).clone();
                self.put_claim(known);
            }
            Action::RegisterNode { node, labels, taints, .. } => {
                let mut known = self.nodes[node].clone();
                known.labels.extend(labels.clone());
                known.taints.clone_from(taints);
                self.put_node(known);
            }
            Action::InitializeNode { node } => {
                let mut known = self.nodes[node].clone();
                known.labels.insert(keys::INITIALIZED.to_owned(), "true".to_owned());
                self.put_node(known);
            }
            Action::Nominate { pod, node } => {
                let known = Pod { nominated: Some(node.clone()), ..self.pods[pod].clone() };
                self.put_pod(known);
            }
            Action::DeleteClaim { claim, .. } => {
                let deleted_at = self.claims[claim].deleted_at.or(Some(self.now));
                let known = NodeClaim { deleting: true, deleted_at, ..self.claims[claim].clone() };
                self.put_claim(known);
            }
            Action::AnnotateClaim { claim, annotations } => {
                let mut known = self.claims[claim].clone();
                known.annotations.extend(annotations.clone());
                self.put_claim(known);
            }
            Action::LabelNode { node, labels } => {
                let mut known = self.nodes[node].clone();
                known.labels.extend(labels.clone());
                self.put_node(known);
            }
            Action::UncordonNode { node } => {
                let mut known = self.nodes[node].clone();
                known.taints.retain(|t| t.key != keys::DISRUPTED_TAINT);
                self.put_node(known);
            }
            Action::CordonNode { node } | Action::TaintNode { node } => {
                let mut known = self.nodes[node].clone();
                known.taints.push(Taint::new(keys::DISRUPTED_TAINT, "", whittle_model::Effect::NoSchedule));
                if matches!(action, Action::CordonNode { .. }) {
                    known.labels.insert(keys::EXCLUDED.to_owned(), "karpenter".to_owned());
                }
                self.put_node(known);
            }
            Action::Evict { .. } if self.deaf => {}
            Action::Evict { pod, .. } => self.end_pod(pod, None),
            Action::DeletePod { pod, grace_seconds, .. } => self.end_pod(pod, Some(seconds(*grace_seconds))),
            Action::Terminate { claim } => self.tell(&outcome(Outcome::InstanceGone { claim: claim.clone() })),
            Action::TagInstance { .. } | Action::TerminateStray { .. } => {}
            Action::ReleaseNode { node } => {
                self.nodes.remove(node);
                self.tell(&Event::NodeGone(node.clone()));
            }
            Action::ReleaseClaim { claim } => {
                self.claims.remove(claim);
                self.tell(&Event::ClaimGone(claim.clone()));
            }
        }
    }

    /// A pod stops at once, or when its grace period is over, or when the test says so.
    fn end_pod(&mut self, key: &PodKey, grace: Option<Duration>) {
        if !self.slow {
            return self.remove_pod(key);
        }
        let mut pod = self.pods[key].clone();
        pod.deleting = true;
        pod.ends_at = Some(self.now.plus(grace.unwrap_or(pod.grace)));
        self.put_pod(pod);
    }

    fn launch(&mut self, claim: &str) {
        match self.launching.clone() {
            Launching::Silent => {}
            Launching::Fails(reason) => {
                let failure = LaunchFailure::Other(reason, "it was told to".to_owned());
                self.tell(&outcome(Outcome::LaunchFailed { claim: claim.to_owned(), failure }));
            }
            Launching::Works => {
                let event = self.buy(claim);
                self.tell(&event);
            }
        }
    }

    /// What EC2 answers to a launch now.
    pub fn buy(&mut self, claim: &str) -> Event {
        let claim = &self.claims[claim];
        let allows = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|r| r.allows(value));
        let mut open: Vec<(i64, OfferingKey)> = Vec::new();
        for kind in self.catalog.types.iter().filter(|t| allows(keys::INSTANCE_TYPE, &t.name)) {
            let admitted = |o: &&Offering| {
                // The real door leaves out what the engine believes to be sold out, too.
                let key = OfferingKey { instance_type: kind.name.clone(), zone: o.zone.clone(), capacity_type: o.capacity_type };
                o.available
                    && self.engine.world().sold_out_until(&key).is_none()
                    && o.reservation.as_ref().is_none_or(|r| self.reserved.get(&r.id).is_none_or(|used| *used < r.left))
                    && allows(keys::ZONE, &o.zone)
                    && allows(keys::ZONE_ID, &o.zone_id)
                    && allows(keys::CAPACITY_TYPE, o.capacity_type.name())
            };
            for offering in kind.offerings.iter().filter(admitted) {
                let key =
                    OfferingKey { instance_type: kind.name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
                open.push((offering.price.0, key));
            }
        }
        open.sort();
        let Some((_, key)) = open.iter().find(|(_, key)| !self.sold_out.contains(key)) else {
            let tried = open.into_iter().map(|(_, key)| key).collect();
            let failure = LaunchFailure::InsufficientCapacity(tried);
            return outcome(Outcome::LaunchFailed { claim: claim.name.clone(), failure });
        };
        self.bought += 1;
        let kind = self.catalog.get(&key.instance_type).expect("what is open is in the catalogue");
        let of_key = self.catalog.offering(key).expect("what is open is in the catalogue");
        let named = claim.requirements.get(keys::RESERVATION_ID).and_then(whittle_model::Requirement::single);
        if let Some(reservation) = &of_key.reservation {
            *self.reserved.entry(reservation.id.clone()).or_default() += 1;
        }
        outcome(Outcome::Launched(Launched {
            claim: claim.name.clone(),
            provider_id: format!("aws:///{}/i-{:04}", key.zone, self.bought),
            instance_type: key.instance_type.clone(),
            zone: key.zone.clone(),
            capacity_type: key.capacity_type,
            reservation: of_key.reservation.as_ref().map(|held| named.unwrap_or(&held.id).to_owned()),
            price: of_key.price,
            capacity: kind.capacity.clone(),
            allocatable: kind.allocatable.clone(),
            image: String::new(),
            sold_out: Vec::new(),
        }))
    }
}

pub fn outcome(outcome: Outcome) -> Event {
    Event::Outcome(Box::new(outcome))
}

/// The names of the actions, for comparison with a list.
pub fn names(actions: &[Action]) -> Vec<&'static str> {
    actions
        .iter()
        .map(|action| match action {
            Action::CreateClaim(_) => "create",
            Action::Launch { .. } => "launch",
            Action::UpdateClaim { .. } => "update",
            Action::RegisterNode { .. } => "register",
            Action::InitializeNode { .. } => "initialize",
            Action::Nominate { .. } => "nominate",
            Action::AnnotateClaim { .. } => "annotate",
            Action::LabelNode { .. } => "label node",
            Action::DeletePod { .. } => "delete pod",
            Action::DeleteClaim { .. } => "delete",
            Action::CordonNode { .. } => "cordon",
            Action::TaintNode { .. } => "taint",
            Action::UncordonNode { .. } => "uncordon",
            Action::Evict { .. } => "evict",
            Action::Terminate { .. } => "terminate",
            Action::ReleaseNode { .. } => "release node",
            Action::ReleaseClaim { .. } => "release claim",
            Action::TagInstance { .. } => "tag",
            Action::TerminateStray { .. } => "terminate stray",
        })
        .collect()
}

/// Whether a pod runs.
pub fn running(pod: &Pod) -> bool {
    pod.node.is_some() && pod.phase == PodPhase::Running
}
