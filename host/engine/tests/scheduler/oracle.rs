//! The same rules read plainly from the documentation, object by object, with no caches, no integers for names and the
//! library's floats.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{
    Effect, Labels, Node, Pod, PodAffinityTerm, PodKey, Requirements, StorageClass, TopologySpread, Volume, VolumeAttachment, VolumeClaim,
    keys,
};

const SCORED: [(&str, i64); 2] = [("cpu", 100), ("memory", 200 << 20)];

/// The cluster as maps of objects.
#[derive(Default)]
pub struct World {
    pub nodes: BTreeMap<String, Node>,
    pub namespaces: BTreeMap<String, Labels>,
    pub bound: BTreeMap<PodKey, (String, Pod)>,
    pub nominated: BTreeMap<PodKey, (String, Pod)>,
    pub claims: BTreeMap<PodKey, VolumeClaim>,
    pub volumes: BTreeMap<String, Volume>,
    pub classes: BTreeMap<String, StorageClass>,
    /// By node: volumes of the driver `disk`.
    pub limits: BTreeMap<String, u32>,
    pub attachments: BTreeMap<String, VolumeAttachment>,
}

/// A pod with the node it is on.
type On<'w> = (&'w Node, &'w Pod);

fn admitted(pod: &Pod, node: &Node) -> bool {
    let met = |requirements: &Requirements| requirements.met_by(&node.labels);
    met(&pod.affinity.node_selector) && (pod.affinity.node_terms.is_empty() || pod.affinity.node_terms.iter().any(met))
}

fn tolerated(pod: &Pod, node: &Node) -> bool {
    let mut repelling = node.taints.iter().filter(|taint| taint.effect != Effect::PreferNoSchedule);
    node.ready && repelling.all(|taint| taint.tolerated_by(&pod.tolerations))
}

fn soft_taints(pod: &Pod, node: &Node) -> i64 {
    let soft = node.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule && !taint.tolerated_by(&pod.tolerations));
    soft.count() as i64
}

fn or_default(amount: i64, default: i64) -> i64 {
    if amount == 0 { default } else { amount }
}

fn share_domain(key: &str, a: &Node, b: &Node) -> bool {
    a.labels.contains_key(key) && a.labels.get(key) == b.labels.get(key)
}

fn labelled<'s>(node: &Node, mut all: impl Iterator<Item = &'s TopologySpread>) -> bool {
    all.all(|constraint| node.labels.contains_key(&constraint.topology_key))
}

fn included(constraint: &TopologySpread, pod: &Pod, node: &Node) -> bool {
    (!constraint.honor_affinity || admitted(pod, node)) && (!constraint.honor_taints || tolerated(pod, node))
}

impl World {
    fn on<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Pod> {
        self.bound.values().filter(|(at, _)| *at == node.name).map(|(_, pod)| pod)
    }

    /// All pods on nodes, and `held` as if they were on `node`.
    fn everywhere<'w>(&'w self, node: &'w Node, held: &[&'w Pod]) -> Vec<On<'w>> {
        let bound = self.bound.values().filter_map(|(at, pod)| self.nodes.get(at).map(|node| (node, pod)));
        bound.chain(held.iter().map(|pod| (node, *pod))).collect()
    }

    fn selects(&self, term: &PodAffinityTerm, pod: &Pod) -> bool {
        let none = Labels::new();
        let labels = self.namespaces.get(&pod.key.namespace).unwrap_or(&none);
        let namespace = term.namespaces.contains(&pod.key.namespace) || term.namespace_selector.as_ref().is_some_and(|s| s.matches(labels));
        namespace && term.selector.matches(&pod.labels)
    }

    /// Why the pod may not go to the node: what the first filter says that objects.
    pub fn objection(&self, pod: &Pod, node: &Node) -> Vec<String> {
        let before = |(at, other): &&(String, Pod)| *at == node.name && other.key != pod.key && other.priority >= pod.priority;
        let held: Vec<&Pod> = self.nominated.values().filter(before).map(|(_, other)| other).collect();
        let beside = self.objection_beside(pod, node, &held);
        if beside.is_empty() { self.objection_beside(pod, node, &[]) } else { beside }
    }

    fn objection_beside(&self, pod: &Pod, node: &Node, held: &[&Pod]) -> Vec<String> {
        let said = |why: &str| vec![format!("node(s) {why}")];
        if node.cordoned {
            return said("were unschedulable");
        }
        if !tolerated(pod, node) {
            return said("had untolerated taint(s)");
        }
        if !admitted(pod, node) {
            return said("didn't match Pod's node affinity/selector");
        }
        let there: Vec<&Pod> = self.on(node).chain(held.iter().copied()).collect();
        if pod.host_ports.iter().any(|port| there.iter().any(|other| other.host_ports.iter().any(|taken| taken.collides(port)))) {
            return said("didn't have free ports for the requested pod ports");
        }
        let lacking = Self::lacking(pod, node, &there);
        if !lacking.is_empty() {
            return lacking;
        }
        if self.too_many_volumes(pod, node, &there) {
            return said("exceed max volume count");
        }
        let volumes = self.volumes_object(pod, node);
        if !volumes.is_empty() {
            return volumes;
        }
        self.spread_objects(pod, node, held).or_else(|| self.affinity_objects(pod, node, held)).map(said).unwrap_or_default()
    }

    fn lacking(pod: &Pod, node: &Node, there: &[&Pod]) -> Vec<String> {
        let mut lacking = Vec::new();
        for (name, wanted) in pod.requests.iter() {
            let taken: i64 = there.iter().map(|other| other.requests.get(name)).sum();
            if wanted > node.allocatable.get(name) - taken {
                lacking.push(if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") });
            }
        }
        lacking
    }

    /// What the volumes of a pod have that keeps it from all nodes.
    pub fn hopeless(&self, pod: &Pod) -> Option<String> {
        let claim = |name: &String| self.claims.get(&PodKey::new(&pod.key.namespace, name));
        for volume in &pod.volumes {
            let name = &volume.claim;
            match claim(name) {
                None if volume.ephemeral.is_some() => {
                    return Some(format!("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""));
                }
                None => return Some(format!("persistentvolumeclaim \"{name}\" not found")),
                Some(claim) if claim.deleting => return Some(format!("persistentvolumeclaim \"{name}\" is being deleted")),
                Some(_) => {}
            }
        }
        let unbound = pod.volumes.iter().filter_map(|volume| claim(&volume.claim)).filter(|c| !c.bind_completed || c.volume.is_empty());
        let immediate = |claim: &VolumeClaim| self.class(claim).is_none_or(|class| class.immediate) || !claim.volume.is_empty();
        unbound.into_iter().any(immediate).then(|| "pod has unbound immediate PersistentVolumeClaims".to_owned())
    }

    fn class(&self, claim: &VolumeClaim) -> Option<&StorageClass> {
        claim.storage_class.as_ref().map_or_else(|| self.classes.values().find(|c| c.default), |name| self.classes.get(name))
    }

    fn volumes_object(&self, pod: &Pod, node: &Node) -> Vec<String> {
        let mut reasons = BTreeSet::new();
        let met = |terms: &[Requirements]| terms.is_empty() || terms.iter().any(|term| term.met_by(&node.labels));
        for claim in pod.volumes.iter().filter_map(|v| self.claims.get(&PodKey::new(&pod.key.namespace, &v.claim))) {
            let class = self.class(claim);
            if !claim.volume.is_empty() {
                match self.volumes.get(&claim.volume) {
                    None => reasons.insert("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
                    Some(volume) if !met(&volume.node_terms) => reasons.insert("node(s) didn't match PersistentVolume's node affinity"),
                    Some(_) => false,
                };
            } else if class.is_some_and(|c| c.provisioner == "kubernetes.io/no-provisioner" || !met(&c.topologies)) {
                reasons.insert("node(s) didn't find available persistent volumes to bind");
            }
        }
        reasons.into_iter().map(str::to_owned).collect()
    }

    /// What the volumes of a pod count as with the driver `disk`.
    fn disks(&self, pod: &Pod) -> BTreeSet<String> {
        let mut disks = BTreeSet::new();
        for volume in &pod.volumes {
            let key = PodKey::new(&pod.key.namespace, &volume.claim);
            let Some(claim) = self.claims.get(&key) else { continue };
            if !claim.volume.is_empty() {
                disks.extend(self.volumes.get(&claim.volume).filter(|v| v.driver == "disk").map(|v| v.handle.clone()));
            } else if self.class(claim).is_some_and(|class| class.provisioner == "disk") {
                disks.insert(format!("new {key}"));
            }
        }
        disks
    }

    fn too_many_volumes(&self, pod: &Pod, node: &Node, there: &[&Pod]) -> bool {
        let Some(limit) = self.limits.get(&node.name) else { return false };
        let used: BTreeSet<String> = there.iter().flat_map(|other| self.disks(other)).collect();
        let new = self.disks(pod).difference(&used).count();
        let attached = self.attachments.values().filter(|a| a.node == node.name).filter_map(|a| self.volumes.get(&a.volume));
        let attached = attached.filter(|v| v.driver == "disk").map(|v| v.handle.clone());
        let held: BTreeSet<String> = used.iter().cloned().chain(attached).collect();
        new > 0 && held.len() + new > *limit as usize
    }

    fn spread_objects(&self, pod: &Pod, node: &Node, held: &[&Pod]) -> Option<&'static str> {
        let hard = || pod.spread.iter().filter(|constraint| constraint.required);
        for constraint in hard() {
            let key = &constraint.topology_key;
            let Some(domain) = node.labels.get(key) else {
                return Some("didn't match pod topology spread constraints (missing required label)");
            };
            let counts = |other: &Node| labelled(other, hard()) && included(constraint, pod, other);
            let mut domains: BTreeMap<&String, i64> =
                self.nodes.values().filter(|other| counts(other)).map(|other| (&other.labels[key], 0)).collect();
            let matches = |other: &Pod| other.key.namespace == pod.key.namespace && constraint.selector.matches(&other.labels);
            // An empty selector selects no pod that is bound, yet the pods that are nominated.
            let selects_bound = !constraint.selector.requirements.is_empty();
            for (at, other) in self.everywhere(node, &[]) {
                if selects_bound && counts(at) && matches(other) && !other.deleting {
                    *domains.entry(&at.labels[key]).or_default() += 1;
                }
            }
            for other in held {
                if counts(node) && matches(other) {
                    *domains.entry(domain).or_default() += 1;
                }
            }
            let few = domains.len() < constraint.min_domains.unwrap_or(1) as usize;
            let least = if few { 0 } else { domains.values().min().copied().unwrap_or(0) };
            let itself = i64::from(constraint.selector.matches(&pod.labels));
            if domains.get(domain).copied().unwrap_or(0) + itself - least > i64::from(constraint.max_skew) {
                return Some("didn't match pod topology spread constraints");
            }
        }
        None
    }

    fn affinity_objects(&self, pod: &Pod, node: &Node, held: &[&Pod]) -> Option<&'static str> {
        let everywhere = self.everywhere(node, held);
        let meant = |other: &Pod| pod.pod_affinity.iter().all(|term| self.selects(term, other));
        if !pod.pod_affinity.is_empty() {
            let keys = || pod.pod_affinity.iter().map(|term| &term.topology_key);
            let near = |key: &String| everywhere.iter().any(|(at, other)| meant(other) && share_domain(key, at, node));
            let none = !everywhere.iter().any(|(at, other)| meant(other) && keys().any(|key| at.labels.contains_key(key)));
            let labelled = keys().all(|key| node.labels.contains_key(key));
            if !(labelled && (keys().all(near) || (none && meant(pod)))) {
                return Some("didn't match pod affinity rules");
            }
        }
        let clash = |terms: &[PodAffinityTerm], at: &Node, selected: &Pod| {
            terms.iter().any(|term| self.selects(term, selected) && share_domain(&term.topology_key, at, node))
        };
        if everywhere.iter().any(|(at, other)| clash(&pod.anti_affinity, at, other)) {
            return Some("didn't match pod anti-affinity rules");
        }
        let objects = everywhere.iter().any(|(at, other)| clash(&other.anti_affinity, at, pod));
        objects.then_some("didn't satisfy existing pods anti-affinity rules")
    }

    /// What kube-scheduler says of a pod that fits nowhere.
    pub fn refusal(&self, pod: &Pod) -> String {
        if self.nodes.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let all = self.nodes.len();
        if let Some(why) = self.hopeless(pod) {
            return format!("0/{all} nodes are available: {why}.");
        }
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for reason in self.nodes.values().flat_map(|node| self.objection(pod, node)) {
            *reasons.entry(reason).or_default() += 1;
        }
        let mut words: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        words.sort();
        format!("0/{all} nodes are available: {}.", words.join(", "))
    }

    fn least_allocated(&self, pod: &Pod, node: &Node) -> i64 {
        let share = |(name, default): (&str, i64)| {
            let all = self.on(node).chain([pod]).map(|pod| or_default(pod.requests.get(name), default));
            let (wanted, room) = (all.sum::<i64>(), node.allocatable.get(name));
            if wanted > room { 0 } else { (room - wanted) * 100 / room }
        };
        SCORED.into_iter().map(share).sum::<i64>() / 2
    }

    fn balanced(&self, pod: &Pod, node: &Node) -> i64 {
        let asked = SCORED.map(|(name, _)| pod.requests.get(name));
        if asked == [0, 0] {
            return 0;
        }
        let used = SCORED.map(|(name, _)| self.on(node).map(|pod| pod.requests.get(name)).sum::<i64>());
        let even = |used: [i64; 2]| {
            let share = |at: usize| (used[at] as f64 / node.allocatable.get(SCORED[at].0) as f64).min(1.0);
            ((1.0 - (share(0) - share(1)).abs() / 2.0) * 100.0) as i64
        };
        50 + (50 + even([used[0] + asked[0], used[1] + asked[1]]) - even(used)) / 2
    }

    /// The constraints by which a pod is scored, and whether they are its own.
    fn soft_constraints(pod: &Pod) -> (Vec<TopologySpread>, bool) {
        if !pod.spread.is_empty() {
            return (pod.spread.iter().filter(|constraint| !constraint.required).cloned().collect(), true);
        }
        let spreads = pod.owner.as_ref().is_some_and(|owner| owner.kind == "ReplicaSet");
        let default = |(key, max_skew): (&str, u32)| TopologySpread {
            topology_key: key.to_owned(),
            max_skew,
            min_domains: None,
            required: false,
            selector: whittle_model::LabelSelector::nothing(),
            honor_affinity: true,
            honor_taints: false,
        };
        let defaults = [(keys::HOSTNAME, 3), (keys::ZONE, 5)].map(default).to_vec();
        (if spreads { defaults } else { Vec::new() }, false)
    }

    /// Pods on a node that count for a constraint.
    fn kin(&self, pod: &Pod, node: &Node, constraint: &TopologySpread, own: bool) -> i64 {
        let counts = |other: &&Pod| {
            let alike = if own {
                !constraint.selector.requirements.is_empty() && constraint.selector.matches(&other.labels)
            } else {
                other.owner == pod.owner
            };
            alike && !other.deleting && other.key.namespace == pod.key.namespace
        };
        self.on(node).filter(counts).count() as i64
    }

    #[expect(clippy::disallowed_methods, reason = "the library's logarithm is what the model's own is held to")]
    fn raw_spread(&self, pod: &Pod, node: &Node, scored: &[&Node], (soft, own): (&[TopologySpread], bool)) -> i64 {
        let mut sum = 0.0;
        for constraint in soft {
            let key = &constraint.topology_key;
            let Some(domain) = node.labels.get(key) else { continue };
            let by_host = key == keys::HOSTNAME;
            let domains: BTreeSet<Option<&String>> = scored.iter().map(|other| other.labels.get(key)).collect();
            let size = if by_host { scored.len() } else { domains.len() };
            let neighbours = self.nodes.values().filter(|other| {
                other.labels.get(key) == Some(domain) && included(constraint, pod, other) && (!own || labelled(other, soft.iter()))
            });
            let count: i64 = if by_host {
                self.kin(pod, node, constraint, own)
            } else {
                neighbours.map(|other| self.kin(pod, other, constraint, own)).sum()
            };
            sum += count as f64 * ((size + 2) as f64).ln() + f64::from(constraint.max_skew - 1);
        }
        sum.round() as i64
    }

    /// PodTopologySpread of each feasible node.
    fn spread_scores(&self, pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
        let (soft, own) = Self::soft_constraints(pod);
        if soft.is_empty() {
            return vec![0; feasible.len()];
        }
        let scored = |node: &&Node| !own || labelled(node, soft.iter());
        let among: Vec<&Node> = feasible.iter().copied().filter(scored).collect();
        let raws: BTreeMap<&String, i64> =
            among.iter().map(|node| (&node.name, self.raw_spread(pod, node, &among, (&soft, own)))).collect();
        let (least, most) = (raws.values().min().copied().unwrap_or(0), raws.values().max().copied().unwrap_or(0));
        let score = |raw: &i64| if most == 0 { 100 } else { 100 * (most + least - raw) / most };
        feasible.iter().map(|node| raws.get(&node.name).map_or(0, score)).collect()
    }

    /// InterPodAffinity of each feasible node.
    fn affinity_scores(&self, pod: &Pod, feasible: &[&Node]) -> Vec<i64> {
        let sum = |node: &&Node| {
            let mut sum = 0;
            for (at, other) in self.everywhere(node, &[]) {
                let mut add = |weight: i32, term: &PodAffinityTerm, selected: &Pod| {
                    if self.selects(term, selected) && share_domain(&term.topology_key, at, node) {
                        sum += i64::from(weight);
                    }
                };
                pod.preferences.near.iter().for_each(|(weight, term)| add(*weight, term, other));
                pod.preferences.away.iter().for_each(|(weight, term)| add(-weight, term, other));
                other.preferences.near.iter().for_each(|(weight, term)| add(*weight, term, pod));
                other.preferences.away.iter().for_each(|(weight, term)| add(-weight, term, pod));
                other.pod_affinity.iter().for_each(|term| add(1, term, pod));
            }
            sum
        };
        let sums: Vec<i64> = feasible.iter().map(sum).collect();
        let (least, most) = (sums.iter().min().copied().unwrap_or(0), sums.iter().max().copied().unwrap_or(0));
        let score = |sum: &i64| if most == least { 0 } else { (100.0 * ((sum - least) as f64 / (most - least) as f64)) as i64 };
        sums.iter().map(score).collect()
    }

    fn preferred(pod: &Pod, node: &Node) -> i64 {
        let met = pod.preferences.nodes.iter().filter(|(_, term)| !term.is_empty() && term.met_by(&node.labels));
        met.map(|(weight, _)| i64::from(*weight)).sum()
    }

    /// The total score of each feasible node.
    pub fn scores(&self, pod: &Pod) -> BTreeMap<String, i64> {
        if self.hopeless(pod).is_some() {
            return BTreeMap::new();
        }
        let feasible: Vec<&Node> = self.nodes.values().filter(|node| self.objection(pod, node).is_empty()).collect();
        let most_soft = feasible.iter().map(|node| soft_taints(pod, node)).max().unwrap_or(0);
        let most_preferred = feasible.iter().map(|node| Self::preferred(pod, node)).max().unwrap_or(0);
        let (spread, affinity) = (self.spread_scores(pod, &feasible), self.affinity_scores(pod, &feasible));
        let score = |node: &Node, at: usize| {
            let taints = if most_soft == 0 { 100 } else { 100 - 100 * soft_taints(pod, node) / most_soft };
            let preferred = if most_preferred == 0 { 0 } else { 100 * Self::preferred(pod, node) / most_preferred };
            self.least_allocated(pod, node) + self.balanced(pod, node) + 3 * taints + 2 * (preferred + spread[at] + affinity[at])
        };
        feasible.iter().enumerate().map(|(at, node)| (node.name.clone(), score(node, at))).collect()
    }
}
