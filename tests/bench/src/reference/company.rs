//! What pods ask of the company they keep, read anew from the pods on all claims whenever it is asked:
//! nothing is counted ahead, so that nothing can be counted wrong. Terms select by the namespaces they
//! list; namespace selectors are not known here.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Pod, PodAffinityTerm, Requirements, TopologySpread, keys};

use super::{Claim, alternatives};

/// One form in which a pod may ask for a place.
#[derive(Debug, Clone)]
pub(super) struct Form<'a> {
    pub wanted: Requirements,
    /// Whether taints that only ask pods to stay away are ignored.
    pub lenient: bool,
    spread: Vec<&'a TopologySpread>,
    /// Pods that match all terms of a list are sought, under the keys of each.
    near: Vec<Vec<&'a PodAffinityTerm>>,
    away: Vec<&'a PodAffinityTerm>,
}

/// What a form wants of one key.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub key: String,
    /// Values that will do, the best first.
    pub values: Vec<String>,
    /// Whether a node must have the label, and whether a claim must settle on one value.
    pub must: bool,
    pub single: bool,
    /// Only claims with pods that are sought, which have not settled on a value yet.
    pub follow: bool,
    /// Selectors of spread constraints, with what each value has and the most that it may have already.
    caps: Vec<(String, whittle_model::LabelSelector, BTreeMap<String, u32>, u32)>,
}

impl Choice {
    /// Whether a claim with these pods may settle on a value: they come along.
    pub fn bears(&self, pods: &[&Pod], value: &str) -> bool {
        self.caps.iter().all(|(namespace, selector, sure, most)| {
            let along = pods.iter().filter(|p| p.key.namespace == *namespace && selector.matches(&p.labels)).count();
            sure.get(value).copied().unwrap_or(0) + u32::try_from(along).unwrap_or(u32::MAX) <= *most
        })
    }
}

/// How many pods are under each value of a key.
#[derive(Debug, Default)]
struct Count {
    sure: BTreeMap<String, u32>,
    /// Values under which some are, or may come to be.
    feared: BTreeSet<String>,
    total: u32,
}

/// The forms of a pod, the strictest first; `soft` when some pool has a taint that asks pods to stay away.
pub(super) fn forms(pod: &Pod, soft: bool) -> Vec<Form<'_>> {
    let sorted = |terms: &'_ [(i32, PodAffinityTerm)]| {
        let mut order: Vec<usize> = (0..terms.len()).collect();
        order.sort_by_key(|at| -terms[*at].0);
        order
    };
    let mut near: Vec<&PodAffinityTerm> = sorted(&pod.preferences.near).iter().map(|at| &pod.preferences.near[*at].1).collect();
    let mut away: Vec<&PodAffinityTerm> = sorted(&pod.preferences.away).iter().map(|at| &pod.preferences.away[*at].1).collect();
    let mut nodes: Vec<&(i32, Requirements)> = pod.preferences.nodes.iter().collect();
    nodes.sort_by_key(|(weight, _)| -weight);
    let mut anyway: Vec<&TopologySpread> = pod.spread.iter().filter(|s| !s.required).collect();
    let mut lenient = !soft;
    let mut alternatives: Vec<Requirements> = alternatives(pod);
    let all = alternatives.clone();
    let mut forms = Vec::new();
    loop {
        let mut form = Form { wanted: alternatives[0].clone(), lenient, spread: Vec::new(), near: Vec::new(), away: Vec::new() };
        nodes.first().iter().for_each(|(_, more)| form.wanted.add_all(more));
        form.spread = pod.spread.iter().filter(|s| s.required).chain(anyway.iter().copied()).collect();
        if !pod.pod_affinity.is_empty() {
            form.near.push(pod.pod_affinity.iter().collect());
        }
        form.near.extend(near.iter().map(|term| vec![*term]));
        form.away = pod.anti_affinity.iter().chain(away.iter().copied()).collect();
        forms.push(form);
        if alternatives.len() > 1 {
            alternatives.remove(0);
        } else if !near.is_empty() {
            near.remove(0);
        } else if !away.is_empty() {
            away.remove(0);
        } else if !nodes.is_empty() {
            nodes.remove(0);
        } else if !anyway.is_empty() {
            anyway.remove(0);
        } else if !lenient {
            lenient = true;
        } else {
            break;
        }
    }
    // What was given up first is tried once more when there is nothing else to give up.
    if forms.len() > all.len() {
        let last = forms[forms.len() - 1].clone();
        forms.extend(all[..all.len() - 1].iter().map(|wanted| Form { wanted: wanted.clone(), ..last.clone() }));
    }
    forms
}

fn selects(term: &PodAffinityTerm, pod: &Pod) -> bool {
    term.namespaces.contains(&pod.key.namespace) && term.selector.matches(&pod.labels)
}

fn counts(of: &Pod, spread: &TopologySpread, pod: &Pod) -> bool {
    of.key.namespace == pod.key.namespace && spread.selector.matches(&pod.labels)
}

impl Form<'_> {
    /// Whether the pods of one claim leave the form's demands on the host name met.
    pub fn beside(&self, pod: &Pod, claim: &[&Pod], everywhere: &[Claim<'_>]) -> bool {
        let host = |key: &String| key == keys::HOSTNAME;
        let spread = self.spread.iter().filter(|s| host(&s.topology_key)).all(|s| {
            let there = claim.iter().filter(|other| counts(pod, s, other)).count() + usize::from(counts(pod, s, pod));
            u32::try_from(there).is_ok_and(|there| there <= s.max_skew)
        });
        let near = self.near.iter().filter(|terms| terms.iter().any(|t| host(&t.topology_key))).all(|terms| {
            let sought = |other: &Pod| terms.iter().all(|t| selects(t, other));
            let first = || sought(pod) && !everywhere.iter().any(|c| c.pods.iter().any(|p| sought(p)));
            claim.iter().any(|other| sought(other)) || first()
        });
        let away = claim.iter().all(|other| {
            let avoided = self.away.iter().filter(|t| host(&t.topology_key)).any(|t| selects(t, other));
            !avoided && !avoids(other, pod, keys::HOSTNAME)
        });
        spread && near && away
    }

    /// Whether one of these pods is sought under a key.
    pub fn seeks_one_of(&self, pods: &[&Pod], key: &str) -> bool {
        let under = self.near.iter().filter(|terms| terms.iter().any(|t| t.topology_key == key));
        under.clone().count() > 0 && under.into_iter().all(|terms| pods.iter().any(|pod| terms.iter().all(|t| selects(t, pod))))
    }

    /// What the form wants of each key but the host name; `None` when no value will do. `known` are the
    /// values of a key, `compared` those that a spread constraint of the pod compares.
    pub fn choices(
        &self,
        pod: &Pod,
        claims: &[Claim<'_>],
        known: &BTreeMap<String, BTreeSet<String>>,
        compared: &dyn Fn(&str) -> BTreeSet<String>,
    ) -> Option<Vec<Choice>> {
        let mut choices = Vec::new();
        for (key, values) in known {
            let mut choice = Choice { key: key.clone(), ..Choice::default() };
            let mut load: Vec<(u32, String)> = values.iter().map(|value| (0, value.clone())).collect();
            let mut asked = self.spread_over(pod, claims, key, compared, (&mut load, &mut choice));
            choice.must = asked;
            choice.single = asked;
            for terms in self.near.iter().filter(|terms| terms.iter().any(|t| t.topology_key == *key)) {
                let sought = |other: &Pod| terms.iter().all(|t| selects(t, other));
                let count = count(claims, key, &sought);
                (asked, choice.must, choice.single) = (true, true, true);
                if !count.sure.is_empty() {
                    load.retain(|(_, value)| count.sure.contains_key(value));
                } else if count.total > 0 {
                    choice.follow = true;
                } else if !sought(pod) {
                    load.clear();
                }
            }
            for term in self.away.iter().filter(|t| t.topology_key == *key) {
                let count = count(claims, key, &|other| selects(term, other));
                load.retain(|(_, value)| !count.feared.contains(value));
                asked = true;
                choice.single |= selects(term, pod);
            }
            let excluding = |other: &Pod| avoids(other, pod, key);
            if claims.iter().any(|c| c.pods.iter().any(|p| excluding(p))) {
                let count = count(claims, key, &excluding);
                load.retain(|(_, value)| !count.feared.contains(value));
                asked = true;
            }
            load.sort();
            choice.values = load.into_iter().map(|(_, value)| value).collect();
            if choice.must && choice.values.is_empty() {
                return None;
            }
            choices.extend(asked.then_some(choice));
        }
        Some(choices)
    }

    /// Leaves the values that the spread constraints on a key admit, with what is there already.
    fn spread_over(
        &self,
        pod: &Pod,
        claims: &[Claim<'_>],
        key: &str,
        compared: &dyn Fn(&str) -> BTreeSet<String>,
        (load, choice): (&mut Vec<(u32, String)>, &mut Choice),
    ) -> bool {
        let mut asked = false;
        for spread in self.spread.iter().filter(|s| s.topology_key == key) {
            let (eligible, count) = (compared(key), count(claims, key, &|other| counts(pod, spread, other)));
            let at = |value: &String| count.sure.get(value).copied().unwrap_or(0);
            let few = spread.min_domains.is_some_and(|least| eligible.len() < least as usize);
            let least = if few { 0 } else { eligible.iter().map(at).min().unwrap_or(0) };
            let me = u32::from(counts(pod, spread, pod));
            load.retain(|(_, value)| eligible.contains(value) && at(value) + me <= least + spread.max_skew);
            load.iter_mut().for_each(|(sum, value)| *sum += at(value));
            let most = (least + spread.max_skew).saturating_sub(me);
            choice.caps.push((pod.key.namespace.clone(), spread.selector.clone(), count.sure.clone(), most));
            asked = true;
        }
        asked
    }
}

/// Whether a required term of `a` keeps `b` away under this key.
fn avoids(a: &Pod, b: &Pod, key: &str) -> bool {
    a.anti_affinity.iter().any(|term| term.topology_key == key && selects(term, b))
}

fn count(claims: &[Claim<'_>], key: &str, counts: &dyn Fn(&Pod) -> bool) -> Count {
    let mut found = Count::default();
    for claim in claims {
        let pods = u32::try_from(claim.pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(u32::MAX);
        let values = claim.values.get(key).filter(|values| pods > 0 && !values.is_empty());
        let Some(values) = values else { continue };
        found.total += pods;
        found.feared.extend(values.iter().cloned());
        if values.len() == 1 {
            values.iter().for_each(|value| *found.sure.entry(value.clone()).or_default() += pods);
        }
    }
    found
}

/// The keys but the host name under which any pod looks for company.
pub(super) fn keys_of(pods: &[&Pod]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pod in pods {
        found.extend(pod.spread.iter().map(|s| s.topology_key.clone()));
        let preferred = pod.preferences.near.iter().chain(&pod.preferences.away).map(|(_, term)| term);
        found.extend(pod.pod_affinity.iter().chain(&pod.anti_affinity).chain(preferred).map(|t| t.topology_key.clone()));
    }
    found.remove(keys::HOSTNAME);
    found
}
