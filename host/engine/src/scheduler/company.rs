//! What a pod wants of other pods: how it spreads, whom it must or would rather be near, whom it keeps away from.

use whittle_model::{Pod, PodAffinityTerm, TopologySpread, keys};

use super::crowds::{Crowds, Wish};
use super::identity::Interner;
use super::nodes::Nodes;

/// A topology spread constraint.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    pub key: u32,
    pub max_skew: u32,
    pub min_domains: u32,
    /// The pods that count.
    pub audience: u32,
    pub honor_affinity: bool,
    pub honor_taints: bool,
    /// Whether the key is the host name, which scores count apart.
    pub by_host: bool,
}

/// What a pod wants of others.
#[derive(Debug, Clone, Default)]
pub(super) struct Company {
    /// `DoNotSchedule`.
    pub hard: Vec<Constraint>,
    /// `ScheduleAnyway`.
    pub soft: Vec<Constraint>,
    /// The pods that all terms of the required affinity mean, and the keys of the terms.
    pub near: Option<(u32, Vec<u32>)>,
    /// Audience and key of each term of the required anti-affinity.
    pub away: Vec<(u32, u32)>,
    /// Audience, key and weight of each preference, negative for anti-affinity.
    pub rather: Vec<(u32, u32, i64)>,
    /// All terms as wishes, for the pods that come later.
    pub wishes: Vec<u32>,
}

/// The words of a pod that say so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Words {
    spread: Vec<TopologySpread>,
    near: Vec<PodAffinityTerm>,
    away: Vec<PodAffinityTerm>,
    rather: Vec<(i64, PodAffinityTerm)>,
}

/// All kinds of company; the first is that of pods that want nothing.
#[derive(Debug, Clone)]
pub(super) struct Companies {
    ids: Interner<Words>,
    known: Vec<Company>,
}

impl Default for Companies {
    fn default() -> Self {
        Self { ids: Interner::default(), known: vec![Company::default()] }
    }
}

impl Companies {
    /// A kind of company.
    pub fn get(&self, id: u32) -> &Company {
        &self.known[id as usize]
    }

    /// The company that a pod wants; `namespace` is the integer of its namespace.
    pub fn id(&mut self, pod: &Pod, namespace: u32, crowds: &mut Crowds, nodes: &mut Nodes) -> u32 {
        let preferences = &pod.preferences;
        let nothing = pod.spread.is_empty() && pod.pod_affinity.is_empty() && pod.anti_affinity.is_empty();
        if nothing && preferences.near.is_empty() && preferences.away.is_empty() {
            return 0;
        }
        let near = preferences.near.iter().map(|(weight, term)| (i64::from(*weight), term.clone()));
        let away = preferences.away.iter().map(|(weight, term)| (-i64::from(*weight), term.clone()));
        let words = Words {
            spread: pod.spread.clone(),
            near: pod.pod_affinity.clone(),
            away: pod.anti_affinity.clone(),
            rather: near.chain(away).collect(),
        };
        let (id, new) = self.ids.id(namespace, &words);
        if new {
            self.known.push(company(&words, &pod.key.namespace, crowds, nodes));
        }
        id + 1
    }
}

fn company(words: &Words, namespace: &str, crowds: &mut Crowds, nodes: &mut Nodes) -> Company {
    let mut company = Company::default();
    for spread in &words.spread {
        let constraint = Constraint {
            key: nodes.topology(&spread.topology_key),
            max_skew: spread.max_skew,
            min_domains: spread.min_domains.unwrap_or(1),
            audience: crowds.spread_with(namespace, &spread.selector),
            honor_affinity: spread.honor_affinity,
            honor_taints: spread.honor_taints,
            by_host: spread.topology_key == keys::HOSTNAME,
        };
        if spread.required { company.hard.push(constraint) } else { company.soft.push(constraint) }
    }
    if !words.near.is_empty() {
        let all: Vec<&PodAffinityTerm> = words.near.iter().collect();
        let keys = words.near.iter().map(|term| nodes.topology(&term.topology_key)).collect();
        company.near = Some((crowds.meant_by(&all), keys));
    }
    for term in &words.near {
        let (audience, key) = (crowds.meant_by(&[term]), nodes.topology(&term.topology_key));
        company.wishes.push(crowds.wish(audience, key, Wish::Near));
    }
    for term in &words.away {
        let (audience, key) = (crowds.meant_by(&[term]), nodes.topology(&term.topology_key));
        company.away.push((audience, key));
        company.wishes.push(crowds.wish(audience, key, Wish::Away));
    }
    for (weight, term) in &words.rather {
        let (audience, key) = (crowds.meant_by(&[term]), nodes.topology(&term.topology_key));
        company.rather.push((audience, key, *weight));
        company.wishes.push(crowds.wish(audience, key, Wish::Rather(*weight)));
    }
    company
}
