//! Which pods a term or constraint means: selectors with the namespaces in which they select. Equal
//! meanings are one number, whatever the order in which they were written.

use std::collections::BTreeMap;

use whittle_model::{LabelSelector, Labels, PodAffinityTerm, SelectorOperator};

use crate::intern::Lookup;
use crate::world::World;

/// Number of a [`Who`].
pub(crate) type WhoId = u32;

/// Namespaces in which a selector selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Spaces {
    All,
    /// Sorted, each once.
    Named(Vec<String>),
}

/// Pods that match all of some selectors. Required pod affinity means pods that match all its terms, as
/// kube-scheduler has it: <https://github.com/kubernetes/kubernetes/blob/master/pkg/scheduler/framework/plugins/interpodaffinity/filtering.go>.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who(Vec<(Spaces, LabelSelector)>);

impl Spaces {
    fn of(world: &World, term: &PodAffinityTerm) -> Self {
        let mut named = term.namespaces.clone();
        match &term.namespace_selector {
            Some(all) if all.requirements.is_empty() => return Self::All,
            Some(selector) => {
                named.extend(world.namespaces.iter().filter(|(_, labels)| selector.matches(labels)).map(|(name, _)| name.clone()));
            }
            None => {}
        }
        named.sort_unstable();
        named.dedup();
        Self::Named(named)
    }

    fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.binary_search_by(|name| name.as_str().cmp(namespace)).is_ok(),
        }
    }
}

/// The same selector, its requirements and their values sorted and each once.
fn plain(selector: &LabelSelector) -> LabelSelector {
    let mut requirements = selector.requirements.clone();
    for requirement in &mut requirements {
        requirement.values.sort_unstable();
        requirement.values.dedup();
    }
    requirements.sort_unstable();
    requirements.dedup();
    LabelSelector { requirements }
}

impl Who {
    /// The pods of a namespace that a selector selects.
    pub(crate) fn within(namespace: &str, selector: &LabelSelector) -> Self {
        Self(vec![(Spaces::Named(vec![namespace.to_owned()]), plain(selector))])
    }

    /// The pods that match every one of these terms.
    pub(crate) fn of_terms<'t>(world: &World, terms: impl Iterator<Item = &'t PodAffinityTerm>) -> Self {
        let mut parts: Vec<(Spaces, LabelSelector)> = terms.map(|term| (Spaces::of(world, term), plain(&term.selector))).collect();
        parts.sort_unstable();
        parts.dedup();
        Self(parts)
    }

    fn means(&self, namespace: &str, labels: &Labels) -> bool {
        self.0.iter().all(|(spaces, selector)| spaces.contains(namespace) && selector.matches(labels))
    }

    /// A label every pod that is meant has: key and values.
    fn token(&self) -> Option<(&str, &[String])> {
        let requirements = self.0.iter().flat_map(|(_, selector)| &selector.requirements);
        requirements.filter(|r| r.operator == SelectorOperator::In).map(|r| (r.key.as_str(), r.values.as_slice())).next()
    }
}

/// All of a plan, and a way to those that a pod may match.
#[derive(Debug, Default)]
pub(crate) struct Whos {
    numbers: BTreeMap<Who, WhoId>,
    all: Vec<Who>,
    /// By label value that a pod must have.
    by_label: Lookup<String, Lookup<String, Vec<WhoId>>>,
    /// Those that ask for no particular value.
    others: Vec<WhoId>,
}

impl Whos {
    /// The number of `who`, new or known.
    pub(crate) fn number(&mut self, who: Who) -> WhoId {
        if let Some(known) = self.numbers.get(&who) {
            return *known;
        }
        let number = WhoId::try_from(self.all.len()).expect("fewer terms than pods");
        match who.token() {
            Some((key, values)) => {
                let by_value = self.by_label.at(key.to_owned());
                values.iter().for_each(|value| by_value.at(value.clone()).push(number));
            }
            None => self.others.push(number),
        }
        self.all.push(who.clone());
        self.numbers.insert(who, number);
        number
    }

    /// The number of `who`, if it is known.
    pub(crate) fn known(&self, who: &Who) -> Option<WhoId> {
        self.numbers.get(who).copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The numbers of those that mean a pod with these labels, ascending.
    pub(crate) fn meaning(&self, namespace: &str, labels: &Labels) -> Vec<WhoId> {
        let mut found: Vec<WhoId> = self.others.clone();
        for (key, value) in labels {
            found.extend(self.by_label.get(key.as_str()).and_then(|values| values.get(value.as_str())).into_iter().flatten());
        }
        found.retain(|number| self.all[*number as usize].means(namespace, labels));
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
#[path = "../../../tests_unit/topology_who.rs"]
mod tests;
