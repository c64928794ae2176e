//! What a journal tells of pods, nodes and claims, also of those that are gone, so that it can be asked
//! about them. What must not enter: words for people beyond their names.

use std::collections::BTreeMap;

use whittle_engine::{Engine, Report, World};
use whittle_journal::Witness;
use whittle_model::{Action, Event, NodeClaim, OfferingKey, Outcome, Pod, PodKey, PodPhase, Timestamp};
use whittle_sim::{Bought, History, PodSight, Sight, why_not};

use super::clock;

/// Letters of the hashes that Kubernetes puts behind the names of ReplicaSets.
const HASH: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Everything that was heard in a replay.
#[derive(Debug, Default)]
pub struct Memory {
    /// What the engine reported.
    pub history: History,
    pods: BTreeMap<PodKey, Seen>,
    claims: BTreeMap<String, NodeClaim>,
    bought: BTreeMap<String, Bought>,
    /// The instance type that each claim is asked about, and what speaks against it.
    instance_type: Option<String>,
    against: BTreeMap<String, String>,
    /// The engine at the end of the replay.
    engine: Engine,
}

/// A pod as it was last seen.
#[derive(Debug)]
struct Seen {
    sight: PodSight,
    workload: String,
}

impl Memory {
    /// Notes for each claim why it was not made for this instance type, if one is given.
    #[must_use]
    pub fn asking(instance_type: Option<&str>) -> Self {
        Self { instance_type: instance_type.map(str::to_owned), ..Self::default() }
    }

    /// What speaks against the instance type for this claim.
    #[must_use]
    pub fn against(&self, claim: &str) -> Option<&str> {
        self.against.get(claim).map(String::as_str)
    }

    /// Takes the engine as it stands at the end.
    pub fn end(&mut self, engine: Engine) {
        self.engine = engine;
    }

    /// The node whose host this names without its domain, or what was written.
    #[must_use]
    pub fn host(&self, written: &str) -> String {
        let of_claims = self.bought.values().map(|bought| bought.node.as_str());
        let mut names = self.world().nodes().map(|node| node.name.as_str()).chain(of_claims);
        names.find(|name| name.split_once('.').is_some_and(|(host, _)| host == written)).unwrap_or(written).to_owned()
    }

    fn world(&self) -> &World {
        self.engine.world()
    }

    fn pod_seen(&mut self, pod: &Pod) {
        let sight = PodSight { node: pod.node.clone(), running: pod.phase == PodPhase::Running, gone: None };
        self.pods.insert(pod.key.clone(), Seen { sight, workload: workload(pod) });
    }

    fn claim_seen(&mut self, claim: &NodeClaim) {
        let status = &claim.status;
        if let (Some(since), Some(capacity_type)) = (status.launched, status.capacity_type) {
            let (instance_type, zone) = (status.instance_type.clone(), status.zone.clone());
            let offering = OfferingKey { instance_type, zone, capacity_type };
            // A sight from before it joined does not know the node any more.
            let known = self.bought.get(&claim.name).map(|bought| bought.node.clone()).filter(|_| status.node.is_empty());
            let node = known.unwrap_or_else(|| status.node.clone());
            let bought = Bought { node, node_pool: claim.node_pool.clone(), offering, since, price: status.price };
            self.bought.insert(claim.name.clone(), bought);
        }
        self.claims.insert(claim.name.clone(), claim.clone());
    }
}

impl Witness for Memory {
    fn restored(&mut self, at: Timestamp, engine: &Engine) {
        // An engine that begins is told of all that is there; what it is not told of went meanwhile.
        for seen in self.pods.values_mut().filter(|seen| seen.sight.gone.is_none()) {
            seen.sight.gone = Some(at);
        }
        let world = engine.world();
        let on_nodes = world.nodes().flat_map(|node| world.pods_on(&node.name));
        let pods: Vec<Pod> = world.pending().chain(on_nodes).filter_map(|key| world.pod(key)).collect();
        pods.iter().for_each(|pod| self.pod_seen(pod));
        world.claims().for_each(|claim| self.claim_seen(claim));
    }

    fn told(&mut self, at: Timestamp, event: &Event) {
        if let Event::Pod(pod) = event {
            self.pod_seen(pod);
        } else if let Event::PodGone(key) = event {
            if let Some(seen) = self.pods.get_mut(key) {
                seen.sight.gone = Some(at);
            }
        } else if let Event::Claim(claim) = event {
            self.claim_seen(claim);
        } else if let Event::Outcome(outcome) = event
            && let Outcome::Launched(launched) = &**outcome
        {
            let node_pool = self.claims.get(&launched.claim).map(|claim| claim.node_pool.clone()).unwrap_or_default();
            let offering = OfferingKey {
                instance_type: launched.instance_type.clone(),
                zone: launched.zone.clone(),
                capacity_type: launched.capacity_type,
            };
            let bought = Bought { node: String::new(), node_pool, offering, since: at, price: launched.price };
            self.bought.entry(launched.claim.clone()).or_insert(bought);
        }
    }

    fn polled(&mut self, at: Timestamp, actions: &[Action], reports: Vec<Report>, engine: &Engine) {
        let Self { history, pods, bought, .. } = self;
        for report in reports {
            let node_of = |claim: &str| bought.get(claim).map(|bought| bought.node.clone()).unwrap_or_default();
            let workload_of = |key: &PodKey| pods.get(key).map_or_else(|| key.to_string(), |seen| seen.workload.clone());
            history.take(report, &node_of, &workload_of);
        }
        if let Some(instance_type) = &self.instance_type {
            for action in actions {
                if let Action::CreateClaim(claim) = action {
                    let against = why_not(engine.world(), claim, instance_type, at);
                    self.against.entry(claim.name.clone()).or_insert(against);
                }
            }
        }
    }
}

impl Sight for Memory {
    fn pods(&self) -> Vec<PodKey> {
        self.pods.keys().cloned().collect()
    }

    fn pod(&self, key: &PodKey) -> Option<PodSight> {
        self.pods.get(key).map(|seen| seen.sight.clone())
    }

    fn workload_of(&self, key: &PodKey) -> String {
        self.pods.get(key).map_or_else(|| key.to_string(), |seen| seen.workload.clone())
    }

    fn has_node(&self, name: &str) -> bool {
        self.world().node(name).is_some()
    }

    fn has_claim(&self, name: &str) -> bool {
        self.world().claim(name).is_some()
    }

    fn claim_of_node(&self, node: &str) -> Option<String> {
        let of_node = self.bought.iter().filter(|(_, bought)| bought.node == node && !node.is_empty());
        of_node.max_by_key(|(_, bought)| bought.since).map(|(claim, _)| claim.clone())
    }

    fn bought(&self, claim: &str) -> Option<Bought> {
        self.bought.get(claim).cloned()
    }

    fn pods_on(&self, node: &str) -> Vec<PodKey> {
        self.world().pods_on(node).cloned().collect()
    }

    fn unscheduled(&self, key: &PodKey) -> String {
        if self.world().pod(key).is_some_and(|pod| pod.unschedulable) {
            "kube-scheduler found no node for it, and no plan has looked at it since".to_owned()
        } else {
            "kube-scheduler has not looked at it yet".to_owned()
        }
    }

    fn time(&self, at: Timestamp) -> String {
        clock(at)
    }

    fn before(&self) -> &'static str {
        "before the journal began"
    }
}

/// The workload of a pod: its owner, of a Deployment's ReplicaSet the Deployment; itself when it has
/// none.
fn workload(pod: &Pod) -> String {
    let Some(owner) = &pod.owner else { return pod.key.to_string() };
    let hashed = |name: &str| name.rsplit_once('-').is_some_and(|(_, hash)| hash.len() >= 5 && hash.chars().all(|c| HASH.contains(c)));
    let name = match owner.name.rsplit_once('-') {
        Some((deployment, _)) if owner.kind == "ReplicaSet" && hashed(&owner.name) => deployment,
        _ => &owner.name,
    };
    PodKey::new(&pod.key.namespace, name).to_string()
}

#[cfg(test)]
mod tests {
    use whittle_model::Owner;

    use super::*;

    #[test]
    fn pods_are_named_by_their_deployment() {
        for (kind, owner, name) in [
            ("ReplicaSet", "web-7c5ddbdf54", "default/web"),
            ("ReplicaSet", "web-front", "default/web-front"),
            ("StatefulSet", "db-7c5ddbdf54", "default/db-7c5ddbdf54"),
        ] {
            let owner = Some(Owner { kind: kind.to_owned(), name: owner.to_owned() });
            assert_eq!(workload(&Pod { key: PodKey::new("default", "p"), owner, ..Pod::default() }), name);
        }
        assert_eq!(workload(&Pod { key: PodKey::new("default", "p"), ..Pod::default() }), "default/p");
    }
}
