//! Required pod anti-affinity within a node, both ways: which bound pods a term selects, and which
//! bound pods have a term that selects the incoming one. The node itself is the domain: the host
//! name label that kubelets set is taken to be there and to be its own.

use smallvec::SmallVec;
use whittle_model::{Labels, PodAffinityTerm};

use super::identity::{Identity, Interner};
use super::spread::Counts;

/// Who conflicts with whom, and where they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Conflicts {
    ids: Interner<PodAffinityTerm>,
    terms: Vec<Term>,
    profiles: Vec<Profile>,
}

#[derive(Debug, Clone)]
struct Term {
    term: PodAffinityTerm,
    /// Pods that the term selects, by slot.
    selected: Counts,
    /// Pods that have the term, by slot.
    owners: Counts,
}

/// Pods of one namespace with equal labels.
#[derive(Debug, Clone)]
struct Profile {
    namespace: String,
    labels: Labels,
    /// The terms that select them, ascending.
    selected_by: SmallVec<[u32; 2]>,
    /// Where they are.
    placed: Counts,
}

/// Why a node is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clash {
    /// A term of the incoming pod selects a pod there.
    Own,
    /// A term of a pod there selects the incoming pod.
    Existing,
}

/// Clashes by slot, for one pod at a time.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    marks: Vec<Option<Clash>>,
    touched: Vec<u32>,
}

impl Marks {
    /// The clash at a slot.
    pub fn get(&self, slot: u32) -> Option<Clash> {
        self.marks.get(slot as usize).copied().flatten()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        for slot in self.touched.drain(..) {
            self.marks[slot as usize] = None;
        }
    }

    /// Marks a slot; what it was marked with first stays.
    fn set(&mut self, slot: u32, clash: Clash) {
        if self.marks.len() <= slot as usize {
            self.marks.resize(slot as usize + 1, None);
        }
        if self.marks[slot as usize].is_none() {
            self.marks[slot as usize] = Some(clash);
            self.touched.push(slot);
        }
    }
}

fn selects(term: &PodAffinityTerm, namespace: &str, labels: &Labels) -> bool {
    term.namespaces.iter().any(|name| name == namespace) && term.selector.matches(labels)
}

impl Conflicts {
    /// Enters the next profile.
    pub fn add_profile(&mut self, namespace: &str, labels: &Labels) {
        let selecting = self.terms.iter().zip(0..).filter(|(known, _)| selects(&known.term, namespace, labels));
        self.profiles.push(Profile {
            namespace: namespace.to_owned(),
            labels: labels.clone(),
            selected_by: selecting.map(|(_, at)| at).collect(),
            placed: Counts::default(),
        });
    }

    /// The integer of a term, entered if new.
    pub fn term(&mut self, term: &PodAffinityTerm) -> u32 {
        let (id, new) = self.ids.id(0, term);
        if new {
            let mut selected = Counts::default();
            for profile in &mut self.profiles {
                if selects(term, &profile.namespace, &profile.labels) {
                    profile.selected_by.push(id);
                    profile.placed.iter().for_each(|(slot, number)| selected.add(slot, number));
                }
            }
            self.terms.push(Term { term: term.clone(), selected, owners: Counts::default() });
        }
        id
    }

    /// A pod is on the slot.
    pub fn place(&mut self, pod: &Identity, slot: u32) {
        let profile = &mut self.profiles[pod.profile as usize];
        profile.placed.add(slot, 1);
        for term in &profile.selected_by {
            self.terms[*term as usize].selected.add(slot, 1);
        }
        for term in &pod.terms {
            self.terms[*term as usize].owners.add(slot, 1);
        }
    }

    /// A pod left the slot.
    pub fn lift(&mut self, pod: &Identity, slot: u32) {
        let profile = &mut self.profiles[pod.profile as usize];
        profile.placed.take(slot);
        for term in &profile.selected_by {
            self.terms[*term as usize].selected.take(slot);
        }
        for term in &pod.terms {
            self.terms[*term as usize].owners.take(slot);
        }
    }

    /// Marks every slot where `pod` may not go. Own terms come first, as in kube-scheduler's filter.
    pub fn mark(&self, pod: &Identity, marks: &mut Marks) {
        for term in &pod.terms {
            self.terms[*term as usize].selected.iter().for_each(|(slot, _)| marks.set(slot, Clash::Own));
        }
        for term in &self.profiles[pod.profile as usize].selected_by {
            self.terms[*term as usize].owners.iter().for_each(|(slot, _)| marks.set(slot, Clash::Existing));
        }
    }

    /// Whether the two may not share a node.
    pub fn clash(&self, incoming: &Identity, other: &Identity) -> Option<Clash> {
        let selects = |a: &Identity, b: &Identity| {
            let selected_by = &self.profiles[b.profile as usize].selected_by;
            a.terms.iter().any(|term| selected_by.binary_search(term).is_ok())
        };
        if selects(incoming, other) {
            return Some(Clash::Own);
        }
        selects(other, incoming).then_some(Clash::Existing)
    }
}
