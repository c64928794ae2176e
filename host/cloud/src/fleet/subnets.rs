//! Which subnet of a zone the next instances stand in: the one with most free addresses, less those that launches of the
//! last minutes have taken or may still take.
//!
//! What must not enter: calls that read subnets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use whittle_model::{Duration, Timestamp};

use super::order::Zones;

/// How old the number of free addresses may be that a class carries (as Karpenter's cache of it).
const COUNTED_AGAIN: Duration = Duration::minutes(5);
/// As for offerings that are sold out.
const EMPTY_FOR: Duration = Duration::minutes(3);

/// Addresses that are taken and not yet counted.
#[derive(Debug, Default)]
pub(crate) struct Subnets {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By subnet: until when each number counts.
    taken: BTreeMap<String, Vec<(Timestamp, i64)>>,
    empty: BTreeMap<String, Timestamp>,
}

impl State {
    fn forget(&mut self, now: Timestamp) {
        self.taken.retain(|_, taken| {
            taken.retain(|(until, _)| *until > now);
            !taken.is_empty()
        });
        self.empty.retain(|_, until| *until > now);
    }

    fn free(&self, subnet: &crate::class::Subnet) -> i64 {
        let taken: i64 = self.taken.get(&subnet.id).into_iter().flatten().map(|(_, n)| *n).sum();
        subnet.free_addresses.saturating_sub(taken)
    }
}

impl Subnets {
    /// The subnet to use in each zone that has one with free addresses; from each, `addresses` count as taken until
    /// they are [settled](Self::settle).
    pub(crate) fn choose(&self, zones: &Zones<'_>, wanted: &BTreeSet<String>, addresses: i64, now: Timestamp) -> BTreeMap<String, String> {
        self.with(now, |state| {
            let mut chosen = BTreeMap::new();
            for (zone, subnets) in zones.iter().filter(|(zone, _)| wanted.contains(**zone)) {
                // What is taken is an estimate: it ranks subnets, but only EC2's own count or refusal closes one.
                let open = subnets.iter().filter(|s| s.free_addresses > 0 && !state.empty.contains_key(&s.id));
                let best = open.max_by(|a, b| state.free(a).cmp(&state.free(b)).then_with(|| b.id.cmp(&a.id)));
                if let Some(subnet) = best {
                    chosen.insert((*zone).to_owned(), subnet.id.clone());
                }
            }
            for subnet in chosen.values() {
                state.taken.entry(subnet.clone()).or_default().push((now.plus(COUNTED_AGAIN), addresses));
            }
            chosen
        })
    }

    /// Gives `addresses` back in each subnet of `chosen`, and takes what instances came to use.
    pub(crate) fn settle(&self, chosen: &BTreeMap<String, String>, addresses: i64, used: &BTreeMap<String, i64>, now: Timestamp) {
        self.with(now, |state| {
            for subnet in chosen.values() {
                let taken = state.taken.entry(subnet.clone()).or_default();
                if let Some(at) = taken.iter().position(|(_, n)| *n == addresses) {
                    taken.remove(at);
                }
            }
            for (subnet, n) in used {
                state.taken.entry(subnet.clone()).or_default().push((now.plus(COUNTED_AGAIN), *n));
            }
        });
    }

    /// EC2 says that the subnet has no free address. Whether its zone has no other.
    pub(crate) fn emptied(&self, subnet: &str, zones: &Zones<'_>, now: Timestamp) -> bool {
        self.with(now, |state| {
            state.empty.insert(subnet.to_owned(), now.plus(EMPTY_FOR));
            let siblings = zones.values().find(|subnets| subnets.iter().any(|s| s.id == subnet));
            siblings.is_none_or(|all| all.iter().all(|s| s.free_addresses <= 0 || state.empty.contains_key(&s.id)))
        })
    }

    fn with<T>(&self, now: Timestamp, change: impl FnOnce(&mut State) -> T) -> T {
        // An estimate survives a panic elsewhere.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(now);
        change(&mut state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Subnet;

    fn subnet(id: &str, zone: &str, free_addresses: i64) -> Subnet {
        Subnet { id: id.to_owned(), zone: zone.to_owned(), zone_id: String::new(), vpc: "vpc-1".to_owned(), free_addresses }
    }

    fn zones(subnets: &[Subnet]) -> Zones<'_> {
        let mut zones = Zones::new();
        for subnet in subnets {
            zones.entry(subnet.zone.as_str()).or_default().push(subnet);
        }
        zones
    }

    #[test]
    fn launches_in_flight_go_to_other_subnets_and_what_they_did_not_use_is_given_back() {
        let all = [subnet("s-1", "a", 100), subnet("s-2", "a", 90), subnet("s-3", "b", 5)];
        let (zones, subnets, now) = (zones(&all), Subnets::default(), Timestamp(0));
        let choose = |wanted: &[&str]| {
            let wanted = wanted.iter().map(|zone| (*zone).to_owned()).collect();
            subnets.choose(&zones, &wanted, 20, now).into_values().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(choose(&["a", "b"]), "s-1 s-3", "one for each zone");
        assert_eq!(choose(&["a"]), "s-2", "20 of s-1 are spoken for");
        assert_eq!(choose(&["a"]), "s-1");
        let first = [("a".to_owned(), "s-1".to_owned()), ("b".to_owned(), "s-3".to_owned())].into();
        subnets.settle(&first, 20, &[("s-1".to_owned(), 5)].into(), now);
        assert_eq!(choose(&["a"]), "s-1", "100 - 25 against 90 - 20");
        assert_eq!(choose(&["b"]), "s-3", "an estimate closes nothing");
        assert_eq!(choose(&["c"]), "");
        let later = now.plus(COUNTED_AGAIN);
        assert_eq!(subnets.choose(&zones, &["a".to_owned()].into(), 1, later)["a"], "s-1", "counted anew by EC2");
    }

    #[test]
    fn an_empty_subnet_closes_its_zone_only_when_it_is_the_last() {
        let all = [subnet("s-1", "a", 100), subnet("s-2", "a", 90), subnet("s-3", "b", 5), subnet("s-4", "b", 0)];
        let (zones, subnets, now) = (zones(&all), Subnets::default(), Timestamp(0));
        assert!(!subnets.emptied("s-1", &zones, now));
        assert_eq!(subnets.choose(&zones, &["a".to_owned()].into(), 1, now)["a"], "s-2");
        assert!(subnets.emptied("s-2", &zones, now));
        assert!(subnets.emptied("s-3", &zones, now), "the other subnet of its zone has no address either");
        assert!(subnets.choose(&zones, &["a".to_owned(), "b".to_owned()].into(), 1, now).is_empty());
        assert_eq!(subnets.choose(&zones, &["a".to_owned()].into(), 1, now.plus(EMPTY_FOR))["a"], "s-1");
    }
}
