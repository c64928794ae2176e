//! kube-scheduler's filters, read naively: whether one pod may be bound to one node of a cluster as
//! it stands. Sources: <https://kubernetes.io/docs/concepts/scheduling-eviction/> and the pages on
//! topology spread, pod affinity and storage beside it.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{
    Affinity, Event, Labels, Node, Pod, PodAffinityTerm, PodKey, PodVolume, Requirements, StorageClass, Taint, TopologySpread, Volume,
    VolumeClaim, VolumeClaimPhase, VolumeLimits, keys,
};

/// Nodes, what is bound to them, and what filters read besides.
#[derive(Debug, Clone, Default)]
pub struct Bed {
    pub nodes: BTreeMap<String, Node>,
    /// Bound pods.
    pub pods: BTreeMap<PodKey, Pod>,
    pub namespaces: BTreeMap<String, Labels>,
    pub claims: BTreeMap<PodKey, VolumeClaim>,
    pub volumes: BTreeMap<String, Volume>,
    pub classes: BTreeMap<String, StorageClass>,
    pub limits: BTreeMap<String, VolumeLimits>,
    /// Domains that count for spreading though no node is in them, by topology key. With any, a host
    /// name can always be new, so that the least count over hosts is 0.
    pub domains: Option<BTreeMap<String, BTreeSet<String>>>,
    /// Pods that are not there yet: they hold room and ports and are nobody's company.
    pub ghosts: Vec<Pod>,
}

pub fn accepts(affinity: &Affinity, labels: &Labels) -> bool {
    affinity.node_selector.met_by(labels) && (affinity.node_terms.is_empty() || affinity.node_terms.iter().any(|t| t.met_by(labels)))
}

pub fn tolerates(pod: &Pod, taints: &[Taint]) -> bool {
    taints.iter().all(|t| !t.repels() || t.tolerated_by(&pod.tolerations))
}

/// A term without the host name: only local volumes name one here, and those are taken to be made anew elsewhere.
fn anywhere(term: &Requirements) -> Requirements {
    let mut term = term.clone();
    term.remove(keys::HOSTNAME);
    term
}

impl Bed {
    /// Takes in namespaces and storage.
    pub fn note(&mut self, event: &Event) {
        if let Event::Namespace(name, labels) = event {
            self.namespaces.insert(name.clone(), labels.clone());
        } else if let Event::VolumeClaim(claim) = event {
            self.claims.insert(claim.key.clone(), (**claim).clone());
        } else if let Event::Volume(volume) = event {
            self.volumes.insert(volume.name.clone(), (**volume).clone());
        } else if let Event::StorageClass(class) = event {
            self.classes.insert(class.name.clone(), (**class).clone());
        } else if let Event::VolumeLimits(limits) = event {
            self.limits.insert(limits.node.clone(), (**limits).clone());
        }
    }

    pub fn bind(&mut self, pod: &Pod, node: &str) {
        self.pods.insert(pod.key.clone(), Pod { node: Some(node.to_owned()), ..pod.clone() });
    }

    fn on<'b>(&'b self, node: &'b str) -> impl Iterator<Item = &'b Pod> {
        self.pods.values().filter(move |pod| pod.node.as_deref() == Some(node))
    }

    /// Pods and ghosts on a node.
    fn held<'b>(&'b self, node: &'b str) -> impl Iterator<Item = &'b Pod> {
        self.on(node).chain(self.ghosts.iter().filter(move |pod| pod.node.as_deref() == Some(node)))
    }

    /// Why the pod may not be bound to a node, if so.
    pub fn refusal(&self, pod: &Pod, node: &Node) -> Option<String> {
        let unschedulable = Taint::new("node.kubernetes.io/unschedulable", "", whittle_model::Effect::NoSchedule);
        if node.cordoned && !unschedulable.tolerated_by(&pod.tolerations) {
            return Some("cordoned".to_owned());
        }
        if !tolerates(pod, &node.taints) {
            return Some("taints".to_owned());
        }
        if !accepts(&pod.affinity, &node.labels) {
            return Some("node affinity".to_owned());
        }
        self.room(pod, node)
            .or_else(|| self.ports(pod, node))
            .or_else(|| pod.volumes.iter().find_map(|volume| self.volume(pod, volume, node)))
            .or_else(|| self.attach_limits(pod, node))
            .or_else(|| pod.spread.iter().filter(|c| c.required).find_map(|c| self.spread(pod, c, node)))
            .or_else(|| self.exclusion(pod, node))
            .or_else(|| self.company(pod, node))
    }

    fn room(&self, pod: &Pod, node: &Node) -> Option<String> {
        let short = pod.requests.iter().find(|(name, amount)| {
            let used: i64 = self.held(&node.name).map(|p| p.requests.get(name)).sum();
            *amount > 0 && used + amount > node.allocatable.get(name)
        });
        short.map(|(name, _)| format!("room: {name}"))
    }

    fn ports(&self, pod: &Pod, node: &Node) -> Option<String> {
        let mut taken = self.held(&node.name).flat_map(|p| &p.host_ports);
        let clash = taken.find(|port| pod.host_ports.iter().any(|own| own.collides(port)));
        clash.map(|port| format!("port {}", port.port))
    }

    /// Whether a term names a node that is not there. A local disk that went with its node binds nobody to it.
    fn host_is_gone(&self, term: &Requirements) -> bool {
        let named = |host: &whittle_model::Requirement| {
            self.nodes.values().any(|node| node.labels.get(keys::HOSTNAME).is_some_and(|name| host.allows(name)))
        };
        term.get(keys::HOSTNAME).is_some_and(|host| !named(host))
    }

    /// Terms of the nodes that a volume allows, with the driver and name of its disk.
    fn wish<'b>(&'b self, pod: &Pod, volume: &'b PodVolume) -> Result<(&'b [Requirements], (&'b str, String)), String> {
        let key = PodKey::new(&pod.key.namespace, &volume.claim);
        let class = match (self.claims.get(&key), &volume.ephemeral) {
            (None, None) => return Err("no volume claim".to_owned()),
            (Some(claim), _) if claim.deleting || claim.phase == VolumeClaimPhase::Lost => return Err("volume claim goes".to_owned()),
            (Some(claim), _) if !claim.volume.is_empty() => {
                let volume = self.volumes.get(&claim.volume).filter(|v| !v.deleting && claim.bind_completed);
                let volume = volume.ok_or("volume is not there")?;
                return Ok((&volume.node_terms, (&volume.driver, volume.handle.clone())));
            }
            (Some(claim), _) => &claim.storage_class,
            (None, Some(class)) => class,
        };
        let class = match class {
            Some(name) => self.classes.get(name),
            None => self.classes.values().find(|c| c.default),
        };
        let class = class.filter(|c| !c.immediate).ok_or("storage class cannot help")?;
        Ok((&class.topologies, (&class.provisioner, key.to_string())))
    }

    /// Whether the pod's storage is in order, wherever it may be.
    pub fn storage_works(&self, pod: &Pod) -> bool {
        pod.volumes.iter().all(|volume| self.wish(pod, volume).is_ok())
    }

    fn volume(&self, pod: &Pod, volume: &PodVolume, node: &Node) -> Option<String> {
        match self.wish(pod, volume) {
            Err(why) => Some(why),
            Ok((terms, _)) if terms.is_empty() || terms.iter().any(|t| t.met_by(&node.labels) || self.host_is_gone(t)) => None,
            Ok(_) => Some("volume is elsewhere".to_owned()),
        }
    }

    fn attach_limits(&self, pod: &Pod, node: &Node) -> Option<String> {
        let limits = self.limits.get(&node.name)?;
        let disks = |pod: &Pod| -> Vec<(String, String)> {
            let of = |v| self.wish(pod, v).ok().map(|(_, (driver, disk))| (driver.to_owned(), disk));
            pod.volumes.iter().filter_map(of).collect()
        };
        let there: BTreeSet<(String, String)> = self.on(&node.name).flat_map(disks).collect();
        let all: BTreeSet<(String, String)> = there.iter().cloned().chain(disks(pod)).collect();
        let over = limits.drivers.iter().find(|(driver, most)| {
            let of = |set: &BTreeSet<(String, String)>| set.iter().filter(|(d, _)| d == *driver).count();
            of(&all) > of(&there) && of(&all) > usize::try_from(**most).expect("limits are small")
        });
        over.map(|(driver, _)| format!("volumes of {driver}"))
    }

    fn spread(&self, pod: &Pod, constraint: &TopologySpread, node: &Node) -> Option<String> {
        let key = constraint.topology_key.as_str();
        let Some(own) = node.labels.get(key) else { return Some(format!("no label {key} to spread over")) };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for domain in self.domains.iter().flat_map(|d| d.get(key)).flatten() {
            counts.entry(domain).or_default();
        }
        let keys_wanted = || pod.spread.iter().filter(|c| c.required).map(|c| &c.topology_key);
        for node in self.nodes.values() {
            if keys_wanted().any(|k| !node.labels.contains_key(k))
                || (constraint.honor_affinity && !accepts(&pod.affinity, &node.labels))
                || (constraint.honor_taints && !tolerates(pod, &node.taints))
            {
                continue;
            }
            let selected = |p: &&Pod| p.key.namespace == pod.key.namespace && !p.deleting && constraint.selector.matches(&p.labels);
            *counts.entry(&node.labels[key]).or_default() += self.on(&node.name).filter(selected).count();
        }
        let few = constraint.min_domains.is_some_and(|least| counts.len() < usize::try_from(least).expect("small"));
        let new_host = self.domains.is_some() && key == keys::HOSTNAME;
        let least = if few || new_host { 0 } else { counts.values().copied().min().unwrap_or(usize::MAX / 2) };
        let there = counts.get(own.as_str()).copied().unwrap_or(0) + usize::from(constraint.selector.matches(&pod.labels));
        let most = least + usize::try_from(constraint.max_skew).expect("small");
        (there > most).then(|| format!("spread over {key}: {own} would have {there}, may have {most}"))
    }

    fn meant(&self, term: &PodAffinityTerm, other: &Pod) -> bool {
        let none = Labels::new();
        let labels = self.namespaces.get(&other.key.namespace).unwrap_or(&none);
        let space = term.namespaces.contains(&other.key.namespace) || term.namespace_selector.as_ref().is_some_and(|s| s.matches(labels));
        space && term.selector.matches(&other.labels)
    }

    fn together(&self, term: &PodAffinityTerm, node: &Node, other: &Pod) -> bool {
        let theirs = other.node.as_ref().and_then(|name| self.nodes.get(name)).and_then(|n| n.labels.get(&term.topology_key));
        theirs.is_some() && theirs == node.labels.get(&term.topology_key)
    }

    fn exclusion(&self, pod: &Pod, node: &Node) -> Option<String> {
        for other in self.pods.values() {
            if pod.anti_affinity.iter().any(|t| self.meant(t, other) && self.together(t, node, other)) {
                return Some(format!("it excludes {}", other.key));
            }
            if other.anti_affinity.iter().any(|t| self.meant(t, pod) && self.together(t, node, other)) {
                return Some(format!("{} excludes it", other.key));
            }
        }
        None
    }

    fn company(&self, pod: &Pod, node: &Node) -> Option<String> {
        let terms = &pod.pod_affinity;
        if let Some(term) = terms.iter().find(|t| !node.labels.contains_key(&t.topology_key)) {
            return Some(format!("no label {} for company", term.topology_key));
        }
        // Company that is about to go is none.
        let meant = |other: &&Pod| !other.deleting && terms.iter().all(|term| self.meant(term, other));
        let alone = terms.iter().all(|term| {
            let labelled =
                |p: &&Pod| p.node.as_ref().and_then(|n| self.nodes.get(n)).is_some_and(|n| n.labels.contains_key(&term.topology_key));
            !self.pods.values().filter(meant).any(|p| labelled(&p))
        });
        if alone && terms.iter().all(|term| self.meant(term, pod)) {
            return None;
        }
        let lonely = terms.iter().find(|term| !self.pods.values().filter(meant).any(|other| self.together(term, node, other)));
        lonely.map(|term| format!("no company within {}", term.topology_key))
    }
}
