//! Why a pod is where it is, or is nowhere; why a node looks as it does, and why it went. Made of
//! the engine's reports alone.

use whittle_engine::report::Unplaced;
use whittle_model::{Duration, Micros, PodKey, PodPhase, Timestamp};

use crate::history::Made;
use crate::simulation::Simulation;
use crate::summary::Assumptions;

impl Simulation {
    /// Why a pod is where it is or is pending, or why a node looks as it does or went. `what` is a
    /// pod (`NAMESPACE/NAME`, or its name), a workload (`NAMESPACE/NAME`, or its name), a node or a
    /// claim; `KIND/` may stand before it.
    ///
    /// # Errors
    /// When nothing has this name.
    pub fn explain(&self, what: &str) -> Result<Vec<String>, String> {
        let bare = what.split_once('/').filter(|(kind, _)| crate::scenario::ObjectKind::parse(kind).is_some()).map(|(_, name)| name);
        match (self.explain_bare(what), bare) {
            (Err(_), Some(name)) => self.explain_bare(name),
            (told, _) => told,
        }
    }

    fn explain_bare(&self, what: &str) -> Result<Vec<String>, String> {
        if let Some(claim) = self.claim_named(what) {
            return Ok(self.explain_claim(&claim));
        }
        if self.reality.api.nodes.contains_key(what) {
            return Ok(self.explain_foreign(what));
        }
        let pods = self.pods_named(what);
        if pods.is_empty() {
            return Err(format!("there is no pod, workload, node or claim named {what:?}"));
        }
        let mut told: Vec<(String, Vec<PodKey>)> = Vec::new();
        for pod in pods {
            let text = self.explain_pod(&pod);
            match told.iter_mut().find(|(t, _)| *t == text) {
                Some((_, pods)) => pods.push(pod),
                None => told.push((text, vec![pod])),
            }
        }
        Ok(told.into_iter().map(|(text, pods)| format!("{}: {text}", names(&pods))).collect())
    }

    fn claim_named(&self, what: &str) -> Option<String> {
        if self.history.made.contains_key(what) || self.reality.api.claims.contains_key(what) {
            return Some(what.to_owned());
        }
        self.reality.ec2.instances.iter().rev().find(|i| i.node == what).map(|i| i.claim.clone())
    }

    fn pods_named(&self, what: &str) -> Vec<PodKey> {
        let named = |key: &&PodKey| {
            let workload = self.reality.workload_of(key);
            key.to_string() == what || key.name == what || workload == what || workload.rsplit_once('/').is_some_and(|(_, n)| n == what)
        };
        self.reality.api.pods.keys().filter(named).cloned().collect()
    }

    fn explain_pod(&self, key: &PodKey) -> String {
        let Some(pod) = self.reality.api.pods.get(key) else { return String::new() };
        let Some(node) = &pod.node else {
            let (reasons, nearest) = self.why_pending(key);
            let nearest = nearest.map(|n| format!("; nearest: {n}")).unwrap_or_default();
            let planned = self.history.meant.get(key).filter(|(_, on)| self.reality.api.claims.contains_key(on));
            return match planned {
                Some((at, on)) => format!("pending; planned at {} onto {on}, which has not come up yet", time(*at)),
                None => format!("pending: {}{nearest}", reasons.join("; ")),
            };
        };
        let state = if pod.phase == PodPhase::Running { "running" } else { "bound" };
        let claim = self.reality.ec2.instances.iter().rev().find(|i| i.node == *node).map(|i| i.claim.clone());
        match (self.history.meant.get(key), claim) {
            (Some((at, on)), Some(claim)) if *on == claim => match self.history.made.get(&claim) {
                Some(made) if made.planned.pods.contains(key) => format!("{state} on node {node}, bought for it. {}", why_made(made)),
                _ => format!("{state} on node {node}: at {} it had room there", time(*at)),
            },
            (Some((at, on)), _) if on == node => format!("{state} on node {node}: at {} it had room there", time(*at)),
            (Some((at, on)), _) => {
                format!("{state} on node {node}, where kube-scheduler put it; the plan of {} meant it for {on}", time(*at))
            }
            (None, _) => format!("{state} on node {node}, where kube-scheduler put it without any plan"),
        }
    }

    fn explain_claim(&self, claim: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let instance = self.reality.ec2.of_claim(claim);
        match instance {
            Some(i) => lines.push(format!(
                "node {} (claim {claim}) of nodepool {}: {} {} {}, bought at {} for {}/h",
                i.node,
                i.node_pool,
                i.offering.instance_type,
                i.offering.zone,
                i.offering.capacity_type,
                time(i.since),
                i.price
            )),
            None => lines.push(format!("claim {claim}: no instance was bought for it")),
        }
        match self.history.made.get(claim) {
            Some(made) => {
                lines.push(why_made(made));
                if let Some(i) = instance.filter(|i| i.offering != made.planned.choice) {
                    let (planned, price) = (&made.planned.choice, made.planned.price);
                    lines.push(format!("EC2 gave {} at {} where {planned} at {price} was counted on", i.offering, i.price));
                }
                lines.push(format!("planned for {}", names(&made.planned.pods)));
            }
            None => lines.push("it was there before the story began".to_owned()),
        }
        if let Some(i) = instance {
            let pods: Vec<PodKey> = self.reality.pods_on(&i.node).map(|p| p.key.clone()).collect();
            lines.push(if pods.is_empty() { "no pods are on it now".to_owned() } else { format!("now on it: {}", names(&pods)) });
        }
        if let Some(why) = self.history.kept.get(claim) {
            lines.push(format!("it stays: {why}"));
        }
        if let Some(gone) = self.history.gone.iter().find(|g| g.claim == claim) {
            let still = if self.reality.api.claims.contains_key(claim) { "is going" } else { "went" };
            lines.push(format!("it {still} at {}: {}", time(gone.at), gone.reason));
        }
        lines
    }

    fn explain_foreign(&self, node: &str) -> Vec<String> {
        let pods: Vec<PodKey> = self.reality.pods_on(node).map(|p| p.key.clone()).collect();
        vec![format!("node {node} is not ours: no claim owns it, and it is left alone"), format!("now on it: {}", names(&pods))]
    }

    /// Why a pod has no node: the last plan's reasons, or kube-scheduler's.
    pub(crate) fn why_pending(&self, pod: &PodKey) -> (Vec<String>, Option<String>) {
        if let Some(Unplaced { reasons, nearest, .. }) = self.history.unplaced.iter().find(|u| u.pods.contains(pod)) {
            return (reasons.iter().map(|r| format!("{}: {}", r.place, r.why)).collect(), nearest.clone());
        }
        let workload = self.reality.workload_of(pod);
        let refusals = &self.reality.refusals;
        let said = refusals.get(pod).or_else(|| refusals.iter().find(|(key, _)| self.reality.workload_of(key) == workload).map(|(_, m)| m));
        (vec![said.cloned().unwrap_or_else(|| "kube-scheduler has not looked at it yet".to_owned())], None)
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

fn why_made(made: &Made) -> String {
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
        time(made.at),
        counted(planned.pods.len(), "pod"),
        counted(planned.types, "type"),
        planned.choice,
        planned.price
    )
}

fn time(at: Timestamp) -> Duration {
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
