//! What the engine's orders do to the world.

use whittle_model::{Action, Duration, Effect, Event, Node, NodeClaim, PodKey, Taint, keys};

use super::Reality;

impl Reality {
    /// Carries out an order that has arrived. "Already so" is success.
    pub(super) fn carry(&mut self, action: &Action) {
        self.judge(action);
        match action {
            Action::CreateClaim(claim) => self.create_claim(claim),
            Action::Launch { claim, .. } => self.launch(claim),
            Action::UpdateClaim { claim, labels, status } => self.change_claim(claim, |c| {
                c.labels.clone_from(labels);
                c.status = (**status).clone();
            }),
            Action::RegisterNode { node, claim, labels, taints } => {
                let annotations = self.api.claims.get(claim).map(|c| c.annotations.clone()).unwrap_or_default();
                self.change_node(node, |node| register(node, labels, &annotations, taints));
            }
            Action::InitializeNode { node } => self.change_node(node, |node| {
                node.labels.insert(keys::INITIALIZED.to_owned(), "true".to_owned());
            }),
            Action::Nominate { pod, node } => self.nominate(pod, node),
            Action::DeleteClaim { claim, .. } => self.delete_claim(claim),
            Action::CordonNode { node } | Action::TaintNode { node } => self.change_node(node, |node| {
                if !node.taints.iter().any(|t| t.key == keys::DISRUPTED_TAINT) {
                    node.taints.push(Taint::new(keys::DISRUPTED_TAINT, "", Effect::NoSchedule));
                }
                if matches!(action, Action::CordonNode { .. }) {
                    node.labels.insert(keys::EXCLUDED.to_owned(), "karpenter".to_owned());
                }
            }),
            Action::AnnotateClaim { claim, annotations } => self.change_claim(claim, |c| c.annotations.extend(annotations.clone())),
            Action::LabelNode { node, labels } => self.change_node(node, |node| node.labels.extend(labels.clone())),
            Action::Evict { pod, uid } => self.evict(pod, uid),
            Action::DeletePod { pod, uid, grace_seconds } => {
                if self.is_there(pod, uid) {
                    self.count_eviction(pod);
                    self.end_pod(pod, Some(Duration::seconds(*grace_seconds)));
                }
            }
            Action::UncordonNode { node } => self.change_node(node, |node| node.taints.retain(|t| t.key != keys::DISRUPTED_TAINT)),
            Action::Terminate { claim } => self.terminate(claim),
            Action::TagInstance { .. } | Action::TerminateStray { .. } => {}
            Action::ReleaseNode { node } => self.drop_node(node),
            Action::ReleaseClaim { claim } => self.drop_claim(claim),
        }
    }

    /// The eviction API. It refuses where a budget is used up: who asked hears nothing, and asks again.
    fn evict(&mut self, pod: &PodKey, uid: &str) {
        if self.is_there(pod, uid) && self.may_evict(pod) {
            self.count_eviction(pod);
            self.delete_pod(pod);
        }
    }

    /// A pod is about to go from its node because the engine asked for it, for the first time.
    fn count_eviction(&mut self, pod: &PodKey) {
        let moved = |pod: &whittle_model::Pod| pod.node.is_some() && !pod.deleting && !pod.terminal() && !pod.tied_to_node();
        self.toll.evictions += u64::from(self.api.pods.get(pod).is_some_and(moved));
    }

    /// Whether the pod of this name is the one that is meant; who asked hears that it is gone otherwise.
    fn is_there(&mut self, pod: &PodKey, uid: &str) -> bool {
        let known = self.api.pods.get(pod).map(|known| known.uid == uid);
        if known.is_none() {
            self.tell(Event::PodGone(pod.clone()));
        }
        known == Some(true)
    }

    fn create_claim(&mut self, claim: &NodeClaim) {
        // A claim that is gone again must not come back by an order that comes late or twice.
        if self.api.claims.contains_key(&claim.name) || self.ec2.of_claim(&claim.name).is_some() {
            return;
        }
        let mut claim = claim.clone();
        claim.created = claim.created.plus(self.faults.skew());
        self.stamp(&mut claim);
        self.api.claims.insert(claim.name.clone(), claim.clone());
        self.tell(Event::Claim(Box::new(claim)));
    }

    /// A claim remembers what its pool and class were like when it was made.
    fn stamp(&self, claim: &mut NodeClaim) {
        let pool = self.api.pools.get(&claim.node_pool).map(|pool| &pool.annotations);
        let class = self.api.node_classes.get(&claim.node_class).map(|class| &class.annotations);
        for (owner, keys) in
            [(pool, [keys::NODE_POOL_HASH, keys::NODE_POOL_HASH_VERSION]), (class, [keys::NODE_CLASS_HASH, keys::NODE_CLASS_HASH_VERSION])]
        {
            for key in keys {
                if let Some(value) = owner.and_then(|annotations| annotations.get(key)) {
                    claim.annotations.insert(key.to_owned(), value.clone());
                }
            }
        }
    }

    fn change_claim(&mut self, name: &str, change: impl FnOnce(&mut NodeClaim)) {
        if let Some(claim) = self.api.claims.get_mut(name) {
            change(claim);
            let event = Event::Claim(Box::new(claim.clone()));
            self.tell(event);
        }
    }

    pub(super) fn delete_claim(&mut self, name: &str) {
        if self.api.claims.contains_key(name) {
            let now = self.clock();
            self.change_claim(name, |claim| {
                claim.deleting = true;
                claim.deleted_at = claim.deleted_at.or(Some(now));
            });
        } else {
            self.tell(Event::ClaimGone(name.to_owned()));
        }
    }

    fn drop_claim(&mut self, name: &str) {
        self.api.claims.remove(name);
        self.tell(Event::ClaimGone(name.to_owned()));
    }
}

/// Labels, annotations and taints of a claim come to its node. The taints of the node's own
/// life stay as they are: the order was given on an older sight of them.
fn register(node: &mut Node, labels: &whittle_model::Labels, annotations: &whittle_model::Labels, taints: &[Taint]) {
    if node.labels.contains_key(keys::REGISTERED) {
        return;
    }
    let own: Vec<Taint> = node.taints.iter().filter(|t| t.key != keys::UNREGISTERED_TAINT).cloned().collect();
    let given = taints.iter().filter(|t| !keys::ephemeral_taint(&t.key) && !own.contains(t)).cloned();
    node.taints = own.iter().cloned().chain(given).collect();
    node.labels.extend(labels.iter().map(|(k, v)| (k.clone(), v.clone())));
    node.annotations.extend(annotations.iter().map(|(k, v)| (k.clone(), v.clone())));
}
