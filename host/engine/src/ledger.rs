//! What was ordered and has not shown its effect yet. An order is not given twice while its answer
//! may be under way, and is given again when none came.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{Duration, Interruption, PodKey, Timestamp};

use crate::turns::Turns;

/// Doors answer within seconds; an order without effect after this long was lost.
const LOST_AFTER: Duration = Duration::seconds(30);

/// A removal is thought over when it shows no effect, and then leaves its budget to others. A watch may be silent for as
/// long as an API server takes to come back.
const DELETE_LOST_AFTER: Duration = Duration::seconds(90);

/// A launch may wait for a batch and for EC2; asking again early would only be adopted.
const LAUNCH_LOST_AFTER: Duration = Duration::seconds(120);

/// As Karpenter's longest wait between two tries of an eviction: the answer to one that was refused does not come here.
const EVICTION_AGAIN_AFTER: Duration = Duration::seconds(10);

/// The first wait after a launch that failed for another reason than capacity; it doubles.
const FIRST_BACK_OFF: Duration = Duration::seconds(1);

/// The first wait after a nomination was seen until it may be given again; it doubles. kube-scheduler takes a nomination
/// back each time a pod does not fit, and tries the pod again for each that is given.
const FIRST_NOMINATION_AGAIN: Duration = Duration(100);

/// The span over which garbage is counted.
const COLLECTED_WITHIN: Duration = Duration::hours(1);

/// Kinds of orders, one at a time for each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Order {
    Create,
    Launch,
    Register,
    Initialize,
    Tag,
    Nominate,
    Delete,
    Annotate,
    Cordon,
    Uncordon,
    Evict,
    DeletePod,
    Terminate,
    ReleaseNode,
    ReleaseClaim,
}

/// One order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Given {
    /// From when it may be given again.
    again: Timestamp,
    /// False once it was answered without being done with: a launch that failed, a nomination that is seen.
    outstanding: bool,
    /// How often it was given before.
    repeats: u32,
}

impl Given {
    /// The order was answered and may be given again after a wait that doubles each time.
    fn back_off(self, first: Duration, now: Timestamp) -> Self {
        Self { again: now.plus(Duration(first.0 << self.repeats.min(6))), outstanding: false, ..self }
    }
}

/// Orders by the claim they serve, kind and object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    #[serde(with = "as_list")]
    orders: BTreeMap<(String, Order, String), Given>,
    /// Pods that were asked to leave within a budget, which may not show it before that time.
    #[serde(with = "as_list")]
    spending: BTreeMap<PodKey, (PodKey, Timestamp)>,
    /// What was said of the instances of claims that will not stay: messages come more than once.
    pub(crate) interrupted: BTreeSet<(String, Interruption)>,
    /// What was collected as garbage within the last hour.
    collected: Vec<(Timestamp, String)>,
    /// How much garbage was left because there was too much, as it was said last.
    pub(crate) left: usize,
    /// What removals wait for, as it was said last.
    pub(crate) held: BTreeMap<String, String>,
    times: BTreeSet<(Timestamp, String)>,
    /// Claims that were ordered and that the watch has not shown.
    pub(crate) unseen: BTreeSet<String>,
    /// Claims of our own for which no launch was ever ordered: no instance can exist for them.
    fresh: BTreeSet<String>,
    /// Claims that failed and go, with the reason.
    pub(crate) condemned: BTreeMap<String, String>,
    /// Claims whose instance has ended.
    pub(crate) ended: BTreeSet<String>,
    /// Whose node is opened next.
    pub(crate) turns: Turns,
}

impl Ledger {
    /// Whether the order may be given now; if so it counts as given.
    pub(crate) fn admit(&mut self, claim: &str, order: Order, object: &str, now: Timestamp) -> bool {
        let key = (claim.to_owned(), order, object.to_owned());
        if self.orders.get(&key).is_some_and(|given| given.again > now) {
            return false;
        }
        let wait = match order {
            Order::Launch => LAUNCH_LOST_AFTER,
            Order::Evict => EVICTION_AGAIN_AFTER,
            Order::Delete => DELETE_LOST_AFTER,
            Order::Create
            | Order::Register
            | Order::Initialize
            | Order::Tag
            | Order::Nominate
            | Order::Annotate
            | Order::Cordon
            | Order::Uncordon
            | Order::DeletePod
            | Order::Terminate
            | Order::ReleaseNode
            | Order::ReleaseClaim => LOST_AFTER,
        };
        let repeats = self.orders.get(&key).map_or(0, |given| given.repeats.saturating_add(1));
        self.put(key, Given { again: now.plus(wait), outstanding: true, repeats });
        true
    }

    /// A pod was asked to leave within a budget.
    pub(crate) fn spend(&mut self, budget: PodKey, pod: PodKey, now: Timestamp) {
        self.spending.retain(|_, (_, until)| *until > now);
        self.spending.insert(pod, (budget, now.plus(EVICTION_AGAIN_AFTER)));
    }

    /// How many pods were asked to leave within a budget that does not count them yet.
    pub(crate) fn spent(&self, budget: &PodKey, now: Timestamp) -> i32 {
        let under_way = self.spending.values().filter(|(of, until)| of == budget && *until > now).count();
        i32::try_from(under_way).unwrap_or(i32::MAX)
    }

    /// Whether a pod was asked to leave within a budget and does not show it yet.
    pub(crate) fn spends(&self, pod: &PodKey, now: Timestamp) -> bool {
        self.spending.get(pod).is_some_and(|(_, until)| *until > now)
    }

    /// When the first pod that was asked to leave within a budget counts no longer although nothing shows it.
    pub(crate) fn spending_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.spending.values().map(|(_, until)| *until).filter(|until| *until > now).min()
    }

    /// A budget was told anew: pods that are seen to go are in its count by now.
    pub(crate) fn recount(&mut self, budget: &PodKey, stays: impl Fn(&PodKey) -> bool) {
        self.spending.retain(|pod, (of, _)| of != budget || stays(pod));
    }

    /// A pod that was asked to leave is gone or ending.
    pub(crate) fn evicted(&mut self, claim: &str, pod: &PodKey) {
        for order in [Order::Evict, Order::DeletePod] {
            self.done(claim, order, &pod.to_string());
        }
    }

    /// A claim is wanted that did not exist before.
    pub(crate) fn planned(&mut self, claim: String) {
        self.fresh.insert(claim.clone());
        self.unseen.insert(claim);
    }

    /// Whether an instance may exist for the claim although nobody said so. Asking counts as the order to launch.
    pub(crate) fn may_be_launched(&mut self, claim: &str) -> bool {
        !self.fresh.remove(claim)
    }

    /// Whether the order was given and not answered.
    pub(crate) fn outstanding(&self, claim: &str, order: Order, object: &str) -> bool {
        self.orders.get(&(claim.to_owned(), order, object.to_owned())).is_some_and(|given| given.outstanding)
    }

    /// Whether the order was given, not answered, and may still be answered.
    pub(crate) fn under_way(&self, claim: &str, order: Order, object: &str, now: Timestamp) -> bool {
        let given = self.orders.get(&(claim.to_owned(), order, object.to_owned()));
        given.is_some_and(|given| given.outstanding && given.again > now)
    }

    /// Whether the order was given and may be given again.
    pub(crate) fn lapsed(&self, claim: &str, order: Order, object: &str, now: Timestamp) -> bool {
        self.orders.get(&(claim.to_owned(), order, object.to_owned())).is_some_and(|given| given.again <= now)
    }

    /// Whether something that nobody claims may be collected as garbage: not more than so many in an hour.
    pub(crate) fn collect(&mut self, object: &str, most: usize, now: Timestamp) -> bool {
        self.collected.retain(|(at, _)| now.since(*at) < COLLECTED_WITHIN);
        if self.collected.iter().any(|(_, known)| known == object) {
            return true; // it is on its way out
        }
        if self.collected.len() >= most {
            return false;
        }
        self.collected.push((now, object.to_owned()));
        true
    }

    /// Whether the last launch for the claim was answered with a failure: it has no instance. A
    /// claim whose launch nobody answered may have one, bought on an order of an earlier life.
    pub(crate) fn refused(&self, claim: &str) -> bool {
        self.orders.get(&(claim.to_owned(), Order::Launch, claim.to_owned())).is_some_and(|given| !given.outstanding)
    }

    /// Claims whose removal was ordered.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = &str> {
        self.orders.keys().filter(|(_, order, _)| *order == Order::Delete).map(|(claim, _, _)| claim.as_str())
    }

    /// The order has shown its effect.
    pub(crate) fn done(&mut self, claim: &str, order: Order, object: &str) {
        if let Some(given) = self.orders.remove(&(claim.to_owned(), order, object.to_owned())) {
            self.drop_time(claim, given.again);
        }
    }

    /// The launch failed: it may be ordered again after a wait that doubles each time.
    pub(crate) fn launch_failed(&mut self, claim: &str, now: Timestamp) {
        let key = (claim.to_owned(), Order::Launch, claim.to_owned());
        let given = self.orders.get(&key).copied().unwrap_or(Given { again: now, outstanding: true, repeats: 0 });
        self.put(key, given.back_off(FIRST_BACK_OFF, now));
    }

    /// A pod is seen to be nominated. Should it lose that, it may be nominated again after a wait that doubles each time.
    pub(crate) fn nominated(&mut self, claim: &str, pod: &PodKey, now: Timestamp) {
        let key = (claim.to_owned(), Order::Nominate, pod.to_string());
        if let Some(given) = self.orders.get(&key).filter(|given| given.outstanding) {
            self.put(key, given.back_off(FIRST_NOMINATION_AGAIN, now));
        }
    }

    /// Forgets every order that serves a claim that is gone.
    pub(crate) fn forget(&mut self, claim: &str) {
        let keys: Vec<_> = self
            .orders
            .range((claim.to_owned(), Order::Create, String::new())..)
            .map(|(k, _)| k)
            .take_while(|k| k.0 == claim)
            .cloned()
            .collect();
        for (claim, order, object) in keys {
            self.done(&claim, order, &object);
        }
        self.unseen.remove(claim);
        self.fresh.remove(claim);
        self.condemned.remove(claim);
        self.ended.remove(claim);
        self.held.remove(claim);
        self.turns.forget(claim);
        self.interrupted.retain(|(of, _)| of != claim);
    }

    /// When the next order may be given again.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.times.first().map(|(at, _)| *at)
    }

    /// Claims of orders that may be given again; their waits count as over.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<String> {
        let later = self.times.split_off(&(now.plus(Duration(1)), String::new()));
        std::mem::replace(&mut self.times, later).into_iter().map(|(_, claim)| claim).collect()
    }

    fn put(&mut self, key: (String, Order, String), given: Given) {
        let claim = key.0.clone();
        if let Some(before) = self.orders.insert(key, given) {
            self.drop_time(&claim, before.again);
        }
        self.times.insert((given.again, claim));
    }

    /// Lets a time go unless another order of the claim waits for it too.
    fn drop_time(&mut self, claim: &str, at: Timestamp) {
        let range = (claim.to_owned(), Order::Create, String::new())..;
        let shared = self.orders.range(range).take_while(|(k, _)| k.0 == claim).any(|(_, given)| given.again == at);
        if !shared {
            self.times.remove(&(at, claim.to_owned()));
        }
    }
}

/// JSON has no keys of more than one part, so maps are written as lists.
mod as_list {
    use super::{BTreeMap, Deserialize, Serialize};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: serde::Serializer>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: serde::Deserializer<'de>,
    {
        Vec::deserialize(from).map(|list: Vec<(K, V)>| list.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_given_once_until_it_is_lost_or_done() {
        let mut ledger = Ledger::default();
        assert!(ledger.admit("a", Order::Delete, "a", Timestamp(0)));
        assert!(!ledger.admit("a", Order::Delete, "a", Timestamp(89_999)));
        assert!(ledger.admit("a", Order::Cordon, "n", Timestamp(0)), "another kind of order");
        assert_eq!(ledger.take_due(Timestamp(29_999)), Vec::<String>::new());
        assert_eq!(ledger.take_due(Timestamp(30_000)), vec!["a".to_owned()], "the cordon was lost");
        assert!(ledger.admit("a", Order::Delete, "a", Timestamp(90_000)), "the first was lost");
        ledger.done("a", Order::Delete, "a");
        assert!(ledger.admit("a", Order::Delete, "a", Timestamp(90_001)));
        ledger.forget("a");
        assert_eq!(ledger, Ledger::default());
    }

    #[test]
    fn failed_launches_back_off() {
        let mut ledger = Ledger::default();
        let mut now = Timestamp(0);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(ledger.admit("a", Order::Launch, "a", now));
            assert!(ledger.outstanding("a", Order::Launch, "a"));
            ledger.launch_failed("a", now);
            assert!(!ledger.outstanding("a", Order::Launch, "a"));
            assert_eq!(ledger.next(), Some(now.plus(Duration::seconds(seconds))));
            now = now.plus(Duration::seconds(seconds));
        }
    }

    #[test]
    fn nominations_that_are_lost_again_and_again_back_off() {
        let (mut ledger, pod) = (Ledger::default(), PodKey::new("default", "p"));
        let mut now = Timestamp(0);
        for wait in [100, 200, 400, 800, 1600, 3200, 6400, 6400] {
            assert!(ledger.admit("a", Order::Nominate, "default/p", now));
            now = now.plus(Duration(20));
            ledger.nominated("a", &pod, now);
            ledger.nominated("a", &pod, now.plus(Duration(5))); // told again as it was
            assert!(!ledger.admit("a", Order::Nominate, "default/p", now.plus(Duration(wait - 1))));
            assert_eq!(ledger.next(), Some(now.plus(Duration(wait))));
            now = now.plus(Duration(wait));
        }
        ledger.done("a", Order::Nominate, "default/p");
        assert_eq!(ledger, Ledger::default(), "bound");
    }
}
