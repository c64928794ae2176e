//! PodTopologySpread and InterPodAffinity as filters: what a pod wants of others, and others of it, worked out once for a
//! search as numbers by domain, and asked node by node.
//! Sources: <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/> and
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity>.

use super::company::{Companies, Company, Constraint};
use super::crowds::{Crowds, Wish};
use super::identity::Identity;
use super::nodes::Nodes;
use super::shapes::Shapes;

/// Stands for a domain without eligible nodes.
const NONE: u32 = u32::MAX;

/// Why a node is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// The node lacks the label of a spread constraint.
    Unlabelled,
    /// The domain has too many pods already.
    Skew,
    /// The pods are not there that the pod must be near.
    Affinity,
    /// A term of the incoming pod selects a pod there.
    Own,
    /// A term of a pod there selects the incoming pod.
    Existing,
}

/// What others mean for one pod, during one search.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours {
    spread: Vec<Skew>,
    near: Option<Near>,
    /// Keys with the domains that are closed: by terms of the pod's own, then by those of others.
    own: Vec<(u32, Vec<bool>)>,
    existing: Vec<(u32, Vec<bool>)>,
}

/// A spread constraint at work.
#[derive(Debug, Clone)]
struct Skew {
    constraint: Constraint,
    /// Whether the pod counts for itself.
    itself: bool,
    /// Matching pods by domain, [`NONE`] where no node is eligible.
    counts: Vec<u32>,
    domains: u32,
    least: u32,
    /// How many domains have the least.
    with_least: u32,
    /// The least of those that have more.
    next: u32,
}

/// Required affinity at work.
#[derive(Debug, Clone)]
struct Near {
    audience: u32,
    /// Keys with the domains in which pods of the audience are.
    keys: Vec<(u32, Vec<bool>)>,
    /// Whether there are any at all, in any domain.
    any: bool,
    /// Whether the pod belongs to the audience: the first of its kind may go anywhere.
    itself: bool,
}

/// The books that are asked.
pub(super) struct Books<'b> {
    pub nodes: &'b Nodes,
    pub crowds: &'b Crowds,
    pub companies: &'b Companies,
}

/// Whether a node is one of those among which a constraint counts.
pub(super) fn eligible(constraint: &Constraint, shape: u32, slot: u32, nodes: &Nodes, shapes: &mut Shapes) -> bool {
    let Some(info) = nodes.info(slot) else { return false };
    if !constraint.honor_affinity && !constraint.honor_taints {
        return true;
    }
    let (affinity, taints) = shapes.admits(shape, slot, info);
    (affinity || !constraint.honor_affinity) && (taints || !constraint.honor_taints)
}

/// Whether a node has the labels of all constraints.
pub(super) fn labelled(constraints: &[Constraint], slot: u32, nodes: &Nodes) -> bool {
    constraints.iter().all(|constraint| nodes.topologies.domain(constraint.key, slot).is_some())
}

impl Neighbours {
    /// Works out what others mean for `pod`.
    pub fn prepare(&mut self, pod: &Identity, books: &Books<'_>, shapes: &mut Shapes) {
        let company = books.companies.get(pod.company);
        self.spread.clear();
        for constraint in &company.hard {
            self.spread.push(Skew::of(constraint, &company.hard, pod, books, shapes));
        }
        self.near = company.near.as_ref().map(|(audience, keys)| Near::of(*audience, keys, pod, books));
        self.own.clear();
        self.existing.clear();
        for (audience, key) in &company.away {
            close(&mut self.own, *key, books.crowds.there(*audience).iter(), books.nodes);
        }
        for wished in books.crowds.about(pod).filter(|wished| wished.wish == Wish::Away && !wished.owners.is_empty()) {
            close(&mut self.existing, wished.key, wished.owners.iter(), books.nodes);
        }
    }

    /// Whether anything is to be asked of a node where no other pod is nominated.
    pub fn indifferent(&self) -> bool {
        self.spread.is_empty() && self.near.is_none() && self.own.is_empty() && self.existing.is_empty()
    }

    /// PodTopologySpread: why a node will not do, where `held` are as if they were bound there.
    pub fn skewed(&self, pod: &Identity, slot: u32, held: &[&Identity], books: &Books<'_>, shapes: &mut Shapes) -> Option<Clash> {
        let company = books.companies.get(pod.company);
        for skew in &self.spread {
            let Some(domain) = books.nodes.topologies.domain(skew.constraint.key, slot) else { return Some(Clash::Unlabelled) };
            let here = held.iter().filter(|other| books.crowds.belongs(other, skew.constraint.audience)).count() as u32;
            let counts =
                here > 0 && labelled(&company.hard, slot, books.nodes) && eligible(&skew.constraint, pod.shape, slot, books.nodes, shapes);
            if skew.exceeded(domain, if counts { here } else { 0 }) {
                return Some(Clash::Skew);
            }
        }
        None
    }

    /// InterPodAffinity: why a node will not do, where `held` are as if they were bound there.
    pub fn clash(&self, pod: &Identity, slot: u32, held: &[&Identity], books: &Books<'_>) -> Option<Clash> {
        let domain = |key: u32| books.nodes.topologies.domain(key, slot);
        if let Some(near) = &self.near
            && !near.met(slot, held, books)
        {
            return Some(Clash::Affinity);
        }
        let closed = |keys: &[(u32, Vec<bool>)]| keys.iter().any(|(key, closed)| domain(*key).is_some_and(|at| closed[at]));
        let company = books.companies.get(pod.company);
        let against =
            |other: &&Identity| company.away.iter().any(|(audience, key)| domain(*key).is_some() && books.crowds.belongs(other, *audience));
        if closed(&self.own) || held.iter().any(against) {
            return Some(Clash::Own);
        }
        let against_it = |other: &&Identity| objects(books.companies.get(other.company), pod, books, &domain);
        (closed(&self.existing) || held.iter().any(against_it)).then_some(Clash::Existing)
    }
}

/// Whether a pod that wants this company keeps away from `pod` at a node with these domains.
fn objects(company: &Company, pod: &Identity, books: &Books<'_>, domain: &dyn Fn(u32) -> Option<usize>) -> bool {
    company.away.iter().any(|(audience, key)| domain(*key).is_some() && books.crowds.belongs(pod, *audience))
}

/// Closes the domains of a key in which the slots are.
fn close(all: &mut Vec<(u32, Vec<bool>)>, key: u32, slots: impl Iterator<Item = (u32, u32)>, nodes: &Nodes) {
    let at = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        all.push((key, vec![false; nodes.topologies.size(key)]));
        all.len() - 1
    });
    for (slot, _) in slots {
        if let Some(domain) = nodes.topologies.domain(key, slot) {
            all[at].1[domain] = true;
        }
    }
}

impl Skew {
    fn of(constraint: &Constraint, all: &[Constraint], pod: &Identity, books: &Books<'_>, shapes: &mut Shapes) -> Self {
        let (nodes, key) = (books.nodes, constraint.key);
        let mut counts = vec![NONE; nodes.topologies.size(key)];
        for slot in nodes.order() {
            if let Some(domain) = nodes.topologies.domain(key, *slot)
                && labelled(all, *slot, nodes)
                && eligible(constraint, pod.shape, *slot, nodes, shapes)
            {
                let here = books.crowds.there(constraint.audience).at(*slot);
                counts[domain] = if counts[domain] == NONE { here } else { counts[domain] + here };
            }
        }
        let itself = books.crowds.belongs(pod, constraint.audience);
        let mut skew = Self { constraint: constraint.clone(), itself, counts, domains: 0, least: NONE, with_least: 0, next: NONE };
        for count in skew.counts.iter().filter(|count| **count != NONE) {
            skew.domains += 1;
            match count.cmp(&skew.least) {
                std::cmp::Ordering::Less => (skew.next, skew.least, skew.with_least) = (skew.least, *count, 1),
                std::cmp::Ordering::Equal => skew.with_least += 1,
                std::cmp::Ordering::Greater => skew.next = skew.next.min(*count),
            }
        }
        skew
    }

    /// Whether one more pod in a domain, where `more` are as if they were bound, would be too many.
    fn exceeded(&self, domain: usize, more: u32) -> bool {
        let count = Some(self.counts[domain]).filter(|count| *count != NONE).unwrap_or(0);
        let least = if self.domains < self.constraint.min_domains {
            0
        } else if count == self.least && self.with_least == 1 {
            (self.least + more).min(self.next)
        } else {
            self.least
        };
        i64::from(count) + i64::from(more) + i64::from(self.itself) - i64::from(least) > i64::from(self.constraint.max_skew)
    }
}

impl Near {
    fn of(audience: u32, keys: &[u32], pod: &Identity, books: &Books<'_>) -> Self {
        let there = books.crowds.there(audience);
        let mut open = Vec::new();
        keys.iter().for_each(|key| close(&mut open, *key, there.iter(), books.nodes));
        let any = open.iter().any(|(_, domains)| domains.contains(&true));
        Self { audience, keys: open, any, itself: books.crowds.belongs(pod, audience) }
    }

    fn met(&self, slot: u32, held: &[&Identity], books: &Books<'_>) -> bool {
        let domain = |key: u32| books.nodes.topologies.domain(key, slot);
        if self.keys.iter().any(|(key, _)| domain(*key).is_none()) {
            return false;
        }
        let held = held.iter().any(|other| books.crowds.belongs(other, self.audience));
        let there = held || self.keys.iter().all(|(key, open)| domain(*key).is_some_and(|at| open[at]));
        there || (!self.any && self.itself)
    }
}
