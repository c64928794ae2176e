//! Why a pod is where it is, or is nowhere; why a node looks as it does, and why it went. Made of
//! the engine's reports alone.

use whittle_engine::report::Unplaced;
use whittle_model::{Duration, Micros, OfferingKey, PodKey, PodPhase, Timestamp};

use crate::history::{History, Made};
use crate::simulation::Simulation;
use crate::summary::Assumptions;
use crate::timeline::for_whom;

/// What is known of a cluster besides the engine's reports.
pub trait Sight {
    /// All pods it knows, in order.
    fn pods(&self) -> Vec<PodKey>;

    /// A pod.
    fn pod(&self, key: &PodKey) -> Option<PodSight>;

    /// The workload of a pod, `NAMESPACE/NAME`; the pod itself when it has none.
    fn workload_of(&self, key: &PodKey) -> String;

    /// Whether there is a node of this name.
    fn has_node(&self, name: &str) -> bool;

    /// Whether there is a claim of this name now.
    fn has_claim(&self, name: &str) -> bool;

    /// The claim whose node has this name, the latest if there were several.
    fn claim_of_node(&self, node: &str) -> Option<String>;

    /// What was bought for a claim.
    fn bought(&self, claim: &str) -> Option<Bought>;

    /// Pods that hold room on a node, in order.
    fn pods_on(&self, node: &str) -> Vec<PodKey>;

    /// Why kube-scheduler found no node for a pod.
    fn unscheduled(&self, key: &PodKey) -> String;

    /// A time as people read it.
    fn time(&self, at: Timestamp) -> String;

    /// When what no report tells of came to be: `before the story began`.
    fn before(&self) -> &'static str;
}

/// A pod as far as it is explained.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSight {
    /// Its node.
    pub node: Option<String>,
    /// Whether it has started.
    pub running: bool,
    /// Since when it is gone.
    pub gone: Option<Timestamp>,
}

/// An instance that was bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    /// Its node; empty before it joined.
    pub node: String,
    /// Its pool.
    pub node_pool: String,
    /// What was bought.
    pub offering: OfferingKey,
    /// When.
    pub since: Timestamp,
    /// For how much an hour.
    pub price: Micros,
}

impl History {
    /// Why a pod is where it is or is pending, or why a node looks as it does or went. `what` is a
    /// pod (`NAMESPACE/NAME`, or its name), a workload (`NAMESPACE/NAME`, or its name), a node or a
    /// claim; `KIND/` may stand before it.
    ///
    /// # Errors
    /// When nothing has this name.
    pub fn explain(&self, sight: &dyn Sight, what: &str) -> Result<Vec<String>, String> {
        let bare = what.split_once('/').filter(|(kind, _)| crate::scenario::ObjectKind::parse(kind).is_some()).map(|(_, name)| name);
        match (self.explain_bare(sight, what), bare) {
            (Err(_), Some(name)) => self.explain_bare(sight, name),
            (told, _) => told,
        }
    }

    fn explain_bare(&self, sight: &dyn Sight, what: &str) -> Result<Vec<String>, String> {
        if let Some(claim) = self.claim_named(sight, what) {
            return Ok(self.explain_claim(sight, &claim));
        }
        if sight.has_node(what) {
            return Ok(explain_foreign(sight, what));
        }
        let named = |key: &&PodKey| {
            let workload = sight.workload_of(key);
            key.to_string() == what || key.name == what || workload == what || workload.rsplit_once('/').is_some_and(|(_, n)| n == what)
        };
        let mut pods: Vec<PodKey> = sight.pods().into_iter().filter(|key| named(&key)).collect();
        // Of a workload those are told that are there, unless none is; a pod by its own name is told in any case.
        let there = |key: &PodKey| sight.pod(key).is_some_and(|pod| pod.gone.is_none());
        if pods.iter().any(there) {
            pods.retain(there);
        }
        let mut told: Vec<(String, Vec<PodKey>)> = Vec::new();
        for pod in pods {
            let text = self.explain_pod(sight, &pod);
            match told.iter_mut().find(|(t, _)| *t == text) {
                Some((_, pods)) => pods.push(pod),
                None => told.push((text, vec![pod])),
            }
        }
        if told.is_empty() {
            return Err(format!("there is no pod, workload, node or claim named {what:?}"));
        }
        Ok(told.into_iter().map(|(text, pods)| format!("{}: {text}", names(&pods))).collect())
    }

    /// The claim that a text names, itself or by its node.
    fn claim_named(&self, sight: &dyn Sight, what: &str) -> Option<String> {
        if self.made.contains_key(what) || sight.has_claim(what) || sight.bought(what).is_some() {
            return Some(what.to_owned());
        }
        sight.claim_of_node(what)
    }

    /// The claim that a text names, itself, by its node, or by a pod that has or is meant for its node.
    #[must_use]
    pub fn claim_behind(&self, sight: &dyn Sight, what: &str) -> Option<String> {
        let of_pod = || {
            let key = sight.pods().into_iter().find(|key| key.to_string() == what || key.name == what)?;
            let node = sight.pod(&key).and_then(|pod| pod.node);
            let claim = node.and_then(|node| sight.claim_of_node(&node));
            claim.or_else(|| self.meant.get(&key).map(|(_, on)| on.clone()))
        };
        self.claim_named(sight, what).or_else(of_pod)
    }

    /// The offering that the plan counted on for a claim, and its price of an hour.
    #[must_use]
    pub fn choice(&self, claim: &str) -> Option<(&OfferingKey, Micros)> {
        self.made.get(claim).map(|made| (&made.planned.choice, made.planned.price))
    }

    fn explain_pod(&self, sight: &dyn Sight, key: &PodKey) -> String {
        let Some(pod) = sight.pod(key) else { return String::new() };
        let gone = pod.gone.map(|at| format!("gone since {}; it was ", sight.time(at)));
        let Some(node) = &pod.node else {
            let planned = self.meant.get(key).filter(|(_, on)| sight.has_claim(on));
            let told = match planned {
                Some((at, on)) => format!("pending; planned at {} onto {on}, which has not come up yet", sight.time(*at)),
                None => {
                    let (reasons, nearest) = self.why_pending(sight, key);
                    let nearest = nearest.map(|n| format!("; nearest: {n}")).unwrap_or_default();
                    format!("pending: {}{nearest}", reasons.join("; "))
                }
            };
            return gone.map_or(told.clone(), |gone| format!("{gone}{told}"));
        };
        let state = gone.unwrap_or_else(|| if pod.running { "running " } else { "bound " }.to_owned());
        let claim = sight.claim_of_node(node);
        let time = |at: &Timestamp| sight.time(*at);
        match (self.meant.get(key), claim) {
            (Some((at, on)), Some(claim)) if *on == claim => match self.made.get(&claim) {
                Some(made) if made.planned.pods.contains(key) => {
                    format!("{state}on node {node}, bought for it. {}", why_made(sight, made))
                }
                _ => format!("{state}on node {node}: at {} it had room there", time(at)),
            },
            (Some((at, on)), _) if on == node => format!("{state}on node {node}: at {} it had room there", time(at)),
            (Some((at, on)), _) => {
                format!("{state}on node {node}, where kube-scheduler put it; the plan of {} meant it for {on}", time(at))
            }
            (None, _) => format!("{state}on node {node}, where kube-scheduler put it without any plan"),
        }
    }

    fn explain_claim(&self, sight: &dyn Sight, claim: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let bought = sight.bought(claim);
        match &bought {
            Some(b) => lines.push(format!(
                "node {} (claim {claim}) of nodepool {}: {} {} {}, bought at {} for {}/h",
                b.node,
                b.node_pool,
                b.offering.instance_type,
                b.offering.zone,
                b.offering.capacity_type,
                sight.time(b.since),
                b.price
            )),
            None => lines.push(format!("claim {claim}: no instance was bought for it")),
        }
        match self.made.get(claim) {
            Some(made) => {
                lines.push(why_made(sight, made));
                if let Some(b) = bought.as_ref().filter(|b| b.offering != made.planned.choice) {
                    let (planned, price) = (&made.planned.choice, made.planned.price);
                    lines.push(format!("EC2 gave {} at {} where {planned} at {price} was counted on", b.offering, b.price));
                }
                lines.push(format!("planned for {}", names(&made.planned.pods)));
            }
            None => lines.push(format!("it was there {}", sight.before())),
        }
        if let Some(b) = &bought {
            let pods = sight.pods_on(&b.node);
            lines.push(if pods.is_empty() { "no pods are on it now".to_owned() } else { format!("now on it: {}", names(&pods)) });
        }
        if let Some(why) = self.kept.get(claim) {
            lines.push(format!("it stays: {why}"));
        }
        if let Some(gone) = self.gone.iter().find(|g| g.claim == claim) {
            let still = if sight.has_claim(claim) { "is going" } else { "went" };
            lines.push(format!("it {still} at {}: {}", sight.time(gone.at), gone.reason));
        }
        lines
    }

    /// Why a pod has no node: the last plan's reasons, or kube-scheduler's.
    fn why_pending(&self, sight: &dyn Sight, pod: &PodKey) -> (Vec<String>, Option<String>) {
        if let Some(Unplaced { reasons, nearest, .. }) = self.unplaced.iter().find(|u| u.pods.contains(pod)) {
            return (reasons.iter().map(|r| format!("{}: {}", r.place, r.why)).collect(), nearest.as_ref().map(ToString::to_string));
        }
        (vec![sight.unscheduled(pod)], None)
    }
}

impl Sight for Simulation {
    fn pods(&self) -> Vec<PodKey> {
        self.reality.api.pods.keys().cloned().collect()
    }

    fn pod(&self, key: &PodKey) -> Option<PodSight> {
        let pod = self.reality.api.pods.get(key)?;
        Some(PodSight { node: pod.node.clone(), running: pod.phase == PodPhase::Running, gone: None })
    }

    fn workload_of(&self, key: &PodKey) -> String {
        self.reality.workload_of(key)
    }

    fn has_node(&self, name: &str) -> bool {
        self.reality.api.nodes.contains_key(name)
    }

    fn has_claim(&self, name: &str) -> bool {
        self.reality.api.claims.contains_key(name)
    }

    fn claim_of_node(&self, node: &str) -> Option<String> {
        self.reality.ec2.instances.iter().rev().find(|i| i.node == node).map(|i| i.claim.clone())
    }

    fn bought(&self, claim: &str) -> Option<Bought> {
        self.reality.ec2.of_claim(claim).map(|i| Bought {
            node: i.node.clone(),
            node_pool: i.node_pool.clone(),
            offering: i.offering.clone(),
            since: i.since,
            price: i.price,
        })
    }

    fn pods_on(&self, node: &str) -> Vec<PodKey> {
        self.reality.pods_on(node).map(|p| p.key.clone()).collect()
    }

    fn unscheduled(&self, key: &PodKey) -> String {
        let workload = self.reality.workload_of(key);
        let refusals = &self.reality.refusals;
        let said = refusals.get(key).or_else(|| refusals.iter().find(|(key, _)| self.reality.workload_of(key) == workload).map(|(_, m)| m));
        said.cloned().unwrap_or_else(|| "kube-scheduler has not looked at it yet".to_owned())
    }

    fn time(&self, at: Timestamp) -> String {
        since(at).to_string()
    }

    fn before(&self) -> &'static str {
        "before the story began"
    }
}

impl Simulation {
    /// Why something is as it is; see [`History::explain`].
    ///
    /// # Errors
    /// When nothing has this name.
    pub fn explain(&self, what: &str) -> Result<Vec<String>, String> {
        self.history.explain(self, what)
    }

    /// Why a pod has no node, and what would have to change.
    pub(crate) fn why_pending(&self, pod: &PodKey) -> (Vec<String>, Option<String>) {
        self.history.why_pending(self, pod)
    }

    /// What the result rests on.
    pub(crate) fn assumptions(&self) -> Assumptions {
        let nominates = self.reality.nominates();
        let minor = self.reality.minor();
        Assumptions {
            prices: self.given.prices.clone(),
            price_region: self.given.price_region.clone(),
            spot: format!("{}; the cheapest that is for sale is bought", self.given.spot),
            weather: self.weather.to_string(),
            scheduler: format!(
                "kube-scheduler of Kubernetes 1.{minor}, default profile, ties by seed; pods are {} to planned nodes",
                if nominates { "nominated" } else { "not nominated" }
            ),
            boot: "nodes join 30-45 s after launch and are ready 3-6 s later; pods start in 2 s and stop in 2 s; instances end in 20-40 s"
                .to_owned(),
            seed: self.seed,
        }
    }
}

fn explain_foreign(sight: &dyn Sight, node: &str) -> Vec<String> {
    let pods = sight.pods_on(node);
    vec![format!("node {node} is not ours: no claim owns it, and it is left alone"), format!("now on it: {}", names(&pods))]
}

fn why_made(sight: &dyn Sight, made: &Made) -> String {
    let planned = &made.planned;
    let runner_up = match &planned.runner_up {
        Some((offering, rank)) => {
            let more = Micros(rank.0 - planned.rank.0);
            let by = if planned.rank == planned.price { "" } else { "rank " };
            format!("; runner-up {offering} at {by}{rank}/h, {more}/h more")
        }
        None => "; nothing else would have done".to_owned(),
    };
    let policies = if planned.rank == planned.price && planned.price == planned.list {
        String::new()
    } else {
        format!(", which policies rank at {}/h and cost at {}/h, list price {}/h", planned.rank, planned.price, planned.list)
    };
    let packer = made.choice.as_ref().map_or_else(String::new, |c| {
        format!(", packed by {} ({} at {}/h, greedy {}/h, bound {}/h)", c.method, counted(c.nodes, "node"), c.cost, c.greedy, c.bound)
    });
    format!(
        "Planned at {} for {}{packer}: cheapest of {} is {} at {}/h{policies}{runner_up}",
        sight.time(made.at),
        for_whom(planned.pods.len(), planned.room),
        counted(planned.types, "type"),
        planned.choice,
        planned.price
    )
}

fn since(at: Timestamp) -> Duration {
    at.since(Timestamp(0))
}

/// Up to three names, and how many more.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn names(pods: &[PodKey]) -> String {
    let shown: Vec<String> = pods.iter().take(3).map(ToString::to_string).collect();
    let more = pods.len().saturating_sub(3);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}
