//! Who is meant by the selectors that pods carry, and where they are; and where the pods are that carry them. All of it
//! is counted by node when pods come and go, so that a search need not look at pods.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use whittle_model::{LabelSelector, Labels, PodAffinityTerm};

use super::counts::Counts;
use super::identity::{Identity, Interner};

/// The pods that one selector means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Part {
    namespaces: Vec<String>,
    namespace_selector: Option<LabelSelector>,
    selector: LabelSelector,
}

/// The pods that every part means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Audience {
    parts: Vec<Part>,
    /// As topology spread counts: pods that are being deleted do not count, and an empty selector counts none that is bound.
    spread: bool,
}

/// What a pod holds against the pods of an audience, or for them, within a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wish {
    /// Required anti-affinity.
    Away,
    /// Required affinity.
    Near,
    /// A preference: its weight, negative for anti-affinity.
    Rather(i64),
}

#[derive(Debug, Clone)]
struct Crowd {
    audience: Audience,
    /// Its pods, by slot.
    there: Counts,
    /// The wishes that are about them.
    wishes: Vec<u32>,
}

/// A wish, and the pods that have it.
#[derive(Debug, Clone)]
pub(super) struct Wished {
    /// The topology key, in [`Topologies`](super::topology::Topologies).
    pub key: u32,
    /// What is wished.
    pub wish: Wish,
    /// The pods that have it, by slot.
    pub owners: Counts,
}

/// Pods of one namespace with equal labels.
#[derive(Debug, Clone)]
struct Profile {
    namespace: String,
    labels: Labels,
    /// The audiences they belong to, ascending.
    of: SmallVec<[u32; 2]>,
    /// Where they are.
    there: Counts,
    /// Where those are that are not being deleted.
    staying: Counts,
}

/// All audiences, wishes and profiles.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowds {
    ids: Interner<Audience>,
    crowds: Vec<Crowd>,
    wish_ids: Interner<(u32, u32, Wish)>,
    wishes: Vec<Wished>,
    profiles: Vec<Profile>,
    namespaces: BTreeMap<String, Labels>,
}

impl Audience {
    fn means(&self, namespace: &str, of_namespace: &Labels, labels: &Labels) -> bool {
        self.parts.iter().all(|part| {
            let named = part.namespaces.iter().any(|name| name == namespace);
            let selected = || part.namespace_selector.as_ref().is_some_and(|selector| selector.matches(of_namespace));
            part.selector.matches(labels) && (named || selected())
        })
    }

    fn counts_bound(&self) -> bool {
        !self.spread || self.parts.iter().any(|part| part.selector != LabelSelector::default())
    }
}

impl Crowds {
    /// The audience of pods that every one of the terms means.
    pub fn meant_by(&mut self, terms: &[&PodAffinityTerm]) -> u32 {
        let part = |term: &&PodAffinityTerm| Part {
            namespaces: term.namespaces.clone(),
            namespace_selector: term.namespace_selector.clone(),
            selector: term.selector.clone(),
        };
        self.audience(Audience { parts: terms.iter().map(part).collect(), spread: false })
    }

    /// The audience that a pod of a namespace spreads with.
    pub fn spread_with(&mut self, namespace: &str, selector: &LabelSelector) -> u32 {
        let part = Part { namespaces: vec![namespace.to_owned()], namespace_selector: None, selector: selector.clone() };
        self.audience(Audience { parts: vec![part], spread: true })
    }

    fn audience(&mut self, audience: Audience) -> u32 {
        let (id, new) = self.ids.id(0, &audience);
        if new {
            let mut there = Counts::default();
            let none = Labels::new();
            for profile in &mut self.profiles {
                if audience.means(&profile.namespace, self.namespaces.get(&profile.namespace).unwrap_or(&none), &profile.labels) {
                    profile.of.push(id);
                    if audience.counts_bound() {
                        let counted = if audience.spread { &profile.staying } else { &profile.there };
                        counted.iter().for_each(|(slot, number)| there.add(slot, number));
                    }
                }
            }
            self.crowds.push(Crowd { audience, there, wishes: Vec::new() });
        }
        id
    }

    /// The integer of a wish about an audience, entered if new.
    pub fn wish(&mut self, audience: u32, key: u32, wish: Wish) -> u32 {
        let (id, new) = self.wish_ids.id(0, &(audience, key, wish));
        if new {
            self.wishes.push(Wished { key, wish, owners: Counts::default() });
            self.crowds[audience as usize].wishes.push(id);
        }
        id
    }

    /// Enters the next profile.
    pub fn add_profile(&mut self, namespace: &str, labels: &Labels) {
        let none = Labels::new();
        let of_namespace = self.namespaces.get(namespace).unwrap_or(&none);
        let of = self.crowds.iter().zip(0..).filter(|(crowd, _)| crowd.audience.means(namespace, of_namespace, labels));
        self.profiles.push(Profile {
            namespace: namespace.to_owned(),
            labels: labels.clone(),
            of: of.map(|(_, at)| at).collect(),
            there: Counts::default(),
            staying: Counts::default(),
        });
    }

    /// A namespace has these labels; one that is gone has none.
    pub fn put_namespace(&mut self, name: &str, labels: Labels) {
        for profile in self.profiles.iter_mut().filter(|profile| profile.namespace == name) {
            for (crowd, id) in self.crowds.iter_mut().zip(0..) {
                let (was, is) = (profile.of.binary_search(&id), crowd.audience.means(name, &labels, &profile.labels));
                match (was, is) {
                    (Ok(at), false) => {
                        profile.of.remove(at);
                        profile.there.iter().for_each(|(slot, number)| crowd.there.take(slot, number));
                    }
                    (Err(at), true) => {
                        profile.of.insert(at, id);
                        profile.there.iter().for_each(|(slot, number)| crowd.there.add(slot, number));
                    }
                    (Ok(_), true) | (Err(_), false) => {}
                }
            }
        }
        self.namespaces.insert(name.to_owned(), labels);
    }

    /// A pod that has these wishes is on the slot; it `stays` unless it is being deleted.
    pub fn place(&mut self, pod: &Identity, wishes: &[u32], slot: u32, stays: bool) {
        let profile = &mut self.profiles[pod.profile as usize];
        profile.there.add(slot, 1);
        if stays {
            profile.staying.add(slot, 1);
        }
        for id in &profile.of {
            let crowd = &mut self.crowds[*id as usize];
            if (stays || !crowd.audience.spread) && crowd.audience.counts_bound() {
                crowd.there.add(slot, 1);
            }
        }
        wishes.iter().for_each(|wish| self.wishes[*wish as usize].owners.add(slot, 1));
    }

    /// A pod left the slot.
    pub fn lift(&mut self, pod: &Identity, wishes: &[u32], slot: u32, stayed: bool) {
        let profile = &mut self.profiles[pod.profile as usize];
        profile.there.take(slot, 1);
        if stayed {
            profile.staying.take(slot, 1);
        }
        for id in &profile.of {
            let crowd = &mut self.crowds[*id as usize];
            if (stayed || !crowd.audience.spread) && crowd.audience.counts_bound() {
                crowd.there.take(slot, 1);
            }
        }
        wishes.iter().for_each(|wish| self.wishes[*wish as usize].owners.take(slot, 1));
    }

    /// Where the pods of an audience are.
    pub fn there(&self, audience: u32) -> &Counts {
        &self.crowds[audience as usize].there
    }

    /// Whether a pod belongs to an audience.
    pub fn belongs(&self, pod: &Identity, audience: u32) -> bool {
        self.profiles[pod.profile as usize].of.binary_search(&audience).is_ok()
    }

    /// The wishes of others about a pod.
    pub fn about(&self, pod: &Identity) -> impl Iterator<Item = &Wished> {
        let crowds = self.profiles[pod.profile as usize].of.iter().map(|id| &self.crowds[*id as usize]);
        crowds.flat_map(|crowd| crowd.wishes.iter().map(|wish| &self.wishes[*wish as usize]))
    }
}
