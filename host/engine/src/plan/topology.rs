//! The company pods keep: topology spread, pod affinity and anti-affinity, required and preferred, of
//! pods that wait and of pods that run. A counter counts pods by the domains of a key; a rule of a
//! class is about one counter. What must not enter: room, prices, and where anything is put.

pub(crate) mod admission;
pub(crate) mod asks;
pub(crate) mod class_rules;
pub(crate) mod order;
pub(crate) mod reach;
pub(crate) mod set;
pub(crate) mod tally;
pub(crate) mod who;
pub(crate) mod why;
pub(crate) mod wishes;

use std::collections::BTreeMap;

use whittle_model::{Affinity, LabelSelector, Labels, Node, Owner, PodKey, Requirement, Taint, Toleration, TopologySpread, keys, taint};

use crate::intern::Lookup;
use crate::world::{PodRecord, World};
use asks::Asks;
use reach::Flight;
use set::Set;
use tally::{Count, CounterId, Local, Tally, put};
use who::{Who, WhoId, Whos};

use super::classes::Member;
use super::states::ProfileId;

/// Number of a topology key.
pub(crate) type KeyId = usize;

/// The host name: every node and claim is a domain of its own.
pub(crate) const HOST: KeyId = 0;

/// Number of a node filter.
pub(crate) type FilterId = u32;

/// The filter that every node passes.
pub(crate) const EVERY_NODE: FilterId = 0;

/// Which pods a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Means {
    /// Those that are meant.
    Selected(WhoId),
    /// Those that have a required anti-affinity term which means these.
    Owners(WhoId),
}

/// What is counted, by the domains of which key, on which nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counter {
    pub(crate) key: KeyId,
    pub(crate) means: Means,
    pub(crate) filter: FilterId,
}

/// The nodes that count for a spread constraint: by the affinity and the tolerations of its pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Filter<'w> {
    affinity: Option<&'w Affinity>,
    tolerations: Option<&'w [Toleration]>,
}

/// Everything of a plan that is about company.
#[derive(Debug, Default)]
pub(crate) struct Topology<'w> {
    keys: Vec<String>,
    /// By key: the names of its domains, sorted.
    names: Vec<Vec<String>>,
    /// By key and place among the nodes of the world: the domain that its label names.
    of_nodes: Vec<Vec<Option<u32>>>,
    whos: Whos,
    filters: Vec<Filter<'w>>,
    pub(crate) counters: Vec<Counter>,
    numbers: BTreeMap<Counter, CounterId>,
    /// By who: counters of those pods, and of pods that exclude them.
    selected: Vec<Vec<CounterId>>,
    owners: Vec<Vec<CounterId>>,
    asks: Vec<Asks<'w>>,
    asks_of: Lookup<(u32, u32), u32>,
    /// By identity: who means such pods, as a number into `sets`.
    set_of: Vec<Option<u32>>,
    sets: Vec<Vec<WhoId>>,
    set_numbers: BTreeMap<Vec<WhoId>, u32>,
    /// Whether some pool or node has a taint that only asks pods to stay away.
    soft_taints: bool,
    /// Whether pods that run are the ones to be placed.
    fresh: bool,
    reaches: Vec<Vec<Set>>,
    /// By rows, offerings and what is said of a key: its domains.
    found: Lookup<(usize, usize, KeyId, Option<Requirement>), Set>,
    /// By name: the claims that are not bought yet.
    flights: BTreeMap<&'w str, Flight>,
    pins: Lookup<(KeyId, Set, u32), ProfileId>,
    /// Domains whose counts a spread rule compares, and the counter that they are compared by.
    pub(crate) eligible: Vec<(CounterId, Set)>,
    /// By filter, state and whether single nodes are looked at: whether claims in that state count.
    admitted: Lookup<(FilterId, u32, bool), bool>,
    levels: u32,
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer rules than pods")
}

impl<'w> Topology<'w> {
    /// The rules of these pods and of those that run; `fresh` when the pods are the running ones.
    pub(crate) fn new(world: &'w World, pods: &[Member<'w>], fresh: bool) -> Self {
        let mut topology = Self {
            keys: vec![keys::HOSTNAME.to_owned()],
            filters: vec![Filter::default()],
            soft_taints: soft_taints(world),
            fresh,
            ..Self::default()
        };
        let nothing = topology.nothing();
        topology.asks.push(nothing);
        topology.set_numbers.insert(Vec::new(), 0);
        topology.sets.push(Vec::new());
        let owners = if world.settings.default_spread.is_empty() { BTreeMap::new() } else { common_labels(world) };
        let mut by_shape: Lookup<(u32, String, Option<&Owner>), u32> = Lookup::default();
        for pod in pods {
            topology.learn(world, pod.record, &owners, &mut by_shape);
        }
        if !fresh {
            topology.learn_running(world);
        }
        topology.names = vec![Vec::new(); topology.keys.len()];
        topology
    }

    /// What pods without any wish about company ask for.
    fn nothing(&self) -> Asks<'w> {
        let stage = |lenient| asks::Stage { node: None, rules: Vec::new(), lenient };
        let stages = if self.soft_taints { vec![stage(false), stage(true)] } else { vec![stage(true)] };
        Asks { stages, holds: Vec::new() }
    }

    fn learn<'o>(
        &mut self,
        world: &'w World,
        record: &PodRecord,
        owners: &'o BTreeMap<(&str, &'w Owner), Labels>,
        by_shape: &mut Lookup<(u32, String, Option<&'w Owner>), u32>,
    ) {
        let shape = world.shape_of(record);
        let defaults = shape.spread.is_empty() && !owners.is_empty();
        if !defaults && !asks::asks_anything(shape) || self.asks_of.get(&(record.shape, record.identity)).is_some() {
            return;
        }
        let identity = world.identity_of(record);
        let owner = identity.owner.as_ref().filter(|_| defaults);
        let labels = owner.and_then(|owner| owners.get(&(identity.namespace.as_str(), owner)));
        let owner = owner.filter(|_| labels.is_some());
        if labels.is_none() && !asks::asks_anything(shape) {
            return;
        }
        let key = (record.shape, identity.namespace.clone(), owner);
        let known = by_shape.get(&key).copied();
        let number = known.unwrap_or_else(|| {
            let deduced: Vec<TopologySpread> = labels.map_or_else(Vec::new, |labels| {
                let selector = LabelSelector::of_labels(labels);
                world.settings.default_spread.iter().map(|s| TopologySpread { selector: selector.clone(), ..s.clone() }).collect()
            });
            let spread = if deduced.is_empty() { &shape.spread } else { &deduced };
            let asks = self.read(world, shape, &identity.namespace, spread);
            self.asks.push(asks);
            let number = number(self.asks.len() - 1);
            by_shape.insert(key, number);
            number
        });
        self.asks_of.insert((record.shape, record.identity), number);
    }

    /// The terms by which running pods exclude others.
    fn learn_running(&mut self, world: &'w World) {
        // In the order of their first pods.
        let mut shapes: Vec<(&PodKey, u32)> = world.excluders.iter().filter_map(|(shape, pods)| Some((pods.first()?, *shape))).collect();
        shapes.sort_unstable();
        for (_, shape) in shapes {
            for term in &world.shapes.value(shape).anti_affinity {
                self.owned(&term.topology_key, Who::of_terms(world, [term].into_iter()));
            }
        }
    }

    fn key(&mut self, name: &str) -> KeyId {
        self.keys.iter().position(|key| key == name).unwrap_or_else(|| {
            self.keys.push(name.to_owned());
            self.keys.len() - 1
        })
    }

    fn filter(&mut self, affinity: Option<&'w Affinity>, tolerations: Option<&'w [Toleration]>) -> FilterId {
        let affinity = affinity.filter(|a| !(a.node_selector.is_empty() && a.node_terms.is_empty()));
        let filter = Filter { affinity, tolerations };
        number(self.filters.iter().position(|known| *known == filter).unwrap_or_else(|| {
            self.filters.push(filter);
            self.filters.len() - 1
        }))
    }

    fn selected(&mut self, key: &str, who: Who) -> CounterId {
        let (key, who) = (self.key(keys::normalized(key)), self.whos.number(who));
        self.counter(Counter { key, means: Means::Selected(who), filter: EVERY_NODE })
    }

    fn owned(&mut self, key: &str, who: Who) -> CounterId {
        let (key, who) = (self.key(keys::normalized(key)), self.whos.number(who));
        self.counter(Counter { key, means: Means::Owners(who), filter: EVERY_NODE })
    }

    fn counter(&mut self, counter: Counter) -> CounterId {
        if let Some(known) = self.numbers.get(&counter) {
            return *known;
        }
        let id = number(self.counters.len());
        self.counters.push(counter);
        self.numbers.insert(counter, id);
        self.selected.resize(self.whos.len(), Vec::new());
        self.owners.resize(self.whos.len(), Vec::new());
        match counter.means {
            Means::Selected(who) => self.selected[who as usize].push(id),
            Means::Owners(who) => self.owners[who as usize].push(id),
        }
        id
    }

    /// Whether nobody asks for anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.asks.len() == 1
    }

    /// How many keys there are, the host name among them.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// The name of a key.
    pub(crate) fn key_name(&self, key: KeyId) -> &str {
        &self.keys[key]
    }

    /// The name of a domain.
    pub(crate) fn domain_name(&self, key: KeyId, domain: u32) -> &str {
        &self.names[key][domain as usize]
    }

    /// How many domains a key has.
    pub(crate) fn domains(&self, key: KeyId) -> u32 {
        number(self.names[key].len())
    }

    /// How many levels classes have together.
    pub(crate) fn levels(&self) -> usize {
        self.levels as usize
    }

    /// What tells a pod from others of its shape: what it asks for, and who means it.
    pub(crate) fn stance(&mut self, world: &World, record: &PodRecord) -> (u32, u32) {
        if self.is_empty() {
            return (0, 0);
        }
        (self.asks_of.get(&(record.shape, record.identity)).copied().unwrap_or(0), self.set(world, record.identity))
    }

    fn set(&mut self, world: &World, identity: u32) -> u32 {
        let at = identity as usize;
        if self.set_of.len() <= at {
            self.set_of.resize(at + 1, None);
        }
        if let Some(known) = self.set_of[at] {
            return known;
        }
        let identity = world.identities.value(identity);
        let set = self.whos.meaning(&identity.namespace, &identity.labels);
        let known = self.set_numbers.get(&set).copied();
        let number = known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            let number = number(self.sets.len() - 1);
            self.set_numbers.insert(set, number);
            number
        });
        self.set_of[at] = Some(number);
        number
    }

    /// Counts the pods that run: by domain, and by node, in the order of the world, for those who look at single nodes.
    pub(crate) fn count(&mut self, world: &World) -> (Tally, Vec<Local>) {
        let mut tally = Tally(vec![Count::default(); self.counters.len()]);
        let mut by_node = Vec::new();
        if self.counters.is_empty() || self.fresh {
            return (tally, by_node);
        }
        let mut places: Lookup<&str, usize> = Lookup::default();
        let nodes: Vec<&Node> = world.nodes.values().collect();
        by_node.resize(nodes.len(), Local::new());
        for (sort, on) in &world.sorts {
            let counts = self.counters_of(world, *sort);
            if !counts.is_empty() && places.is_empty() {
                nodes.iter().enumerate().for_each(|(at, node)| places.insert(node.name.as_str(), at));
            }
            for (node, pods) in on.iter().filter(|_| !counts.is_empty()) {
                let Some(at) = places.get(world.node_names.value(*node).as_str()) else { continue };
                counts.iter().for_each(|(counter, each)| {
                    put(&mut by_node[*at], *counter, each * pods);
                });
            }
        }
        let departing = super::refusals::departing(world);
        for (at, local) in by_node.iter_mut().enumerate().filter(|(_, local)| !local.is_empty()) {
            let node = nodes[at];
            // Pods of a node on its way out are placed anew, or end with it.
            if departing.contains(node.name.as_str()) {
                local.clear();
                continue;
            }
            let outside = self.outside(&node.labels, &node.taints);
            local.retain(|(counter, _)| !outside.contains(&self.counters[*counter as usize].filter));
            for (counter, pods) in local {
                let key = self.counters[*counter as usize].key;
                let reach = self.reach_of_node(key, at);
                tally.0[*counter as usize].placed(key == HOST || !reach.is_empty(), &reach, *pods);
            }
        }
        (tally, by_node)
    }

    /// What a pod of this shape and identity counts for.
    fn counters_of(&mut self, world: &World, (shape, identity): (u32, u32)) -> Local {
        let (set, mut counts) = (self.set(world, identity), Local::new());
        for counter in self.sets[set as usize].iter().flat_map(|who| &self.selected[*who as usize]) {
            put(&mut counts, *counter, 1);
        }
        for term in &world.shapes.value(shape).anti_affinity {
            let who = self.whos.known(&Who::of_terms(world, [term].into_iter()));
            let key = self.keys.iter().position(|key| key == keys::normalized(&term.topology_key));
            let (Some(who), Some(key)) = (who, key) else { continue };
            let counter = Counter { key, means: Means::Owners(who), filter: EVERY_NODE };
            self.numbers.get(&counter).into_iter().for_each(|counter| {
                put(&mut counts, *counter, 1);
            });
        }
        counts
    }

    /// The domain of a key that these labels name.
    pub(crate) fn reach_of_labels(&self, key: KeyId, labels: &Labels) -> Set {
        if key == HOST {
            return Set::default();
        }
        self.domains_of(key, labels.get(&self.keys[key]).map(String::as_str).into_iter())
    }

    /// The same of a node, by its place among those of the world.
    pub(crate) fn reach_of_node(&self, key: KeyId, at: usize) -> Set {
        self.of_nodes.get(key).and_then(|of_nodes| *of_nodes.get(at)?).into_iter().collect()
    }

    /// The filters that a node does not pass.
    pub(crate) fn outside(&self, labels: &Labels, taints: &[Taint]) -> Vec<FilterId> {
        (1..self.filters.len()).filter(|filter| !self.filters[*filter].passes(labels, taints)).map(number).collect()
    }
}

impl Filter<'_> {
    fn passes(&self, labels: &Labels, taints: &[Taint]) -> bool {
        let terms = |a: &Affinity| a.node_terms.is_empty() || a.node_terms.iter().any(|term| term.met_by(labels));
        let affinity = self.affinity.is_none_or(|a| a.node_selector.met_by(labels) && terms(a));
        affinity
            // A cordon keeps pods off as a taint that the server adds: kube-scheduler looks at that one only.
            && self.tolerations.is_none_or(|tolerations| taint::untolerated(taints, tolerations).is_none())
    }
}

/// Whether a taint anywhere only asks pods to stay away.
fn soft_taints(world: &World) -> bool {
    let soft = |taints: &[Taint]| taints.iter().any(|t| !t.repels());
    world.pools.values().any(|p| soft(&p.template.taints))
        || world.nodes.values().any(|n| soft(&n.taints))
        || world.claims.values().any(|c| soft(&c.taints))
}

/// Labels that are a pod's own, not its workload's.
const OWN_LABELS: [&str; 4] = [
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "controller-revision-hash",
    "batch.kubernetes.io/job-completion-index",
];

/// The labels that all pods of each controller share: what stands in for the selectors of the
/// controller and of Services, which the world does not hold.
fn common_labels(world: &World) -> BTreeMap<(&str, &Owner), Labels> {
    let mut common: BTreeMap<(&str, &Owner), Labels> = BTreeMap::new();
    let mut seen: Lookup<u32, ()> = Lookup::default();
    for record in world.pods.values() {
        if seen.get(&record.identity).is_some() {
            continue;
        }
        seen.insert(record.identity, ());
        let identity = world.identity_of(record);
        let Some(owner) = &identity.owner else { continue };
        // Only of these does kube-scheduler deduce a selector.
        if !matches!(owner.kind.as_str(), "ReplicaSet" | "StatefulSet" | "ReplicationController") {
            continue;
        }
        match common.entry((&identity.namespace, owner)) {
            std::collections::btree_map::Entry::Occupied(mut known) => {
                known.get_mut().retain(|key, value| identity.labels.get(key) == Some(value));
            }
            std::collections::btree_map::Entry::Vacant(slot) => {
                let own = |key: &str| OWN_LABELS.contains(&key);
                slot.insert(identity.labels.iter().filter(|(k, _)| !own(k)).map(|(k, v)| (k.clone(), v.clone())).collect());
            }
        }
    }
    common.retain(|_, labels| !labels.is_empty());
    common
}
