//! Rule `affinity`: nobody comes into a domain with those that either excludes, and everybody comes
//! into a domain with those that it wants to be with, in some order of binding.
//!
//! A place that may come to be in several domains counts as in all of them: it must suit its pods
//! whichever it becomes.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::PodAffinityTerm;

use super::Findings;
use super::ground::{Ground, Seat, Stay};

pub(super) fn check(ground: &Ground<'_>, found: &mut Findings) {
    for (term, owners) in owners(ground) {
        exclusion(ground, term, &owners, found);
    }
    company(ground, found);
}

/// The terms of required anti-affinity, with the pods that have them.
fn owners<'g>(ground: &'g Ground<'_>) -> BTreeMap<&'g PodAffinityTerm, Vec<Seat>> {
    let mut owners: BTreeMap<&PodAffinityTerm, Vec<Seat>> = BTreeMap::new();
    for seat in ground.seats() {
        for term in &ground.world.shapes.value(seat.shape).anti_affinity {
            owners.entry(term).or_default().push(*seat);
        }
    }
    owners
}

/// Pods of a domain: those with a term, those it selects, and those of whom both is true; today and
/// in the end.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    owners: [usize; 2],
    selected: [usize; 2],
    both: [usize; 2],
}

impl Tally {
    /// Ordered pairs of different pods of which the first excludes the second.
    fn pairs(self, when: usize) -> usize {
        self.owners[when] * self.selected[when] - self.both[when]
    }
}

fn exclusion(ground: &Ground<'_>, term: &PodAffinityTerm, owners: &[Seat], found: &mut Findings) {
    let selected = ground.meant(term);
    let key = term.topology_key.as_str();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut count = |seat: &Seat, part: fn(&mut Tally) -> &mut [usize; 2]| {
        // Pods that end soon keep nobody away for long.
        if seat.stay == Stay::Parting {
            return;
        }
        for domain in ground.domains(seat.spot, key) {
            let counts = part(tallies.entry(domain).or_default());
            counts[1] += seat.count;
            counts[0] += if seat.stay == Stay::Arriving { 0 } else { seat.count };
        }
    };
    for seat in owners {
        count(seat, |tally| &mut tally.owners);
        if selected.binary_search(&seat.identity).is_ok() {
            count(seat, |tally| &mut tally.both);
        }
    }
    for seat in selected.iter().flat_map(|identity| ground.seats_of(*identity)) {
        count(seat, |tally| &mut tally.selected);
    }
    for (domain, tally) in tallies.into_iter().filter(|(_, tally)| tally.pairs(1) > tally.pairs(0)) {
        let [owners, selected] = [tally.owners[1], tally.selected[1]];
        let what = format!("{key} {domain} is for {owners} pods and {selected} that they exclude");
        found.object("affinity", what);
    }
}

/// Pods that come to a spot and want company, with their terms.
struct Guest<'g> {
    seat: &'g Seat,
    terms: &'g [PodAffinityTerm],
}

/// Where the pods are that a term selects, so far.
#[derive(Debug, Default)]
struct Hosts {
    identities: Vec<u32>,
    spots: BTreeSet<usize>,
    domains: BTreeSet<String>,
    /// Somebody was there before the plan, or came first and alone.
    begun: bool,
}

/// Binds all that need no company, then those whose company is there, until nobody moves. A pod
/// that its own term selects may be the first of all, once for each term that nobody meets today.
fn company(ground: &Ground<'_>, found: &mut Findings) {
    let mut guests: Vec<Guest<'_>> = Vec::new();
    let mut hosts: BTreeMap<&PodAffinityTerm, Hosts> = BTreeMap::new();
    for seat in ground.seats().filter(|seat| seat.stay == Stay::Arriving) {
        let terms = &ground.world.shapes.value(seat.shape).pod_affinity[..];
        if !terms.is_empty() {
            guests.push(Guest { seat, terms });
        }
        for term in terms {
            hosts.entry(term).or_insert_with(|| Hosts { identities: ground.meant(term), ..Hosts::default() });
        }
    }
    for seat in ground.seats() {
        let waits = seat.stay == Stay::Arriving && !ground.world.shapes.value(seat.shape).pod_affinity.is_empty();
        if !waits && seat.stay != Stay::Parting {
            welcome(ground, &mut hosts, seat);
        }
    }
    loop {
        let before = guests.len();
        guests.retain(|guest| {
            let suits = guest.terms.iter().all(|term| suits(ground, term, &hosts[term], guest.seat));
            if suits {
                welcome(ground, &mut hosts, guest.seat);
            }
            !suits
        });
        if guests.len() == before && !begin(ground, &mut guests, &mut hosts) {
            break;
        }
    }
    for guest in guests {
        let name = ground.spots[guest.seat.spot].name;
        found.object("affinity", format!("{name} is for pods without the pods that they have to be with"));
    }
}

/// Counts a pod for the terms that select it.
fn welcome(ground: &Ground<'_>, hosts: &mut BTreeMap<&PodAffinityTerm, Hosts>, seat: &Seat) {
    for (term, hosts) in hosts {
        if hosts.identities.binary_search(&seat.identity).is_ok() {
            hosts.spots.insert(seat.spot);
            hosts.begun |= seat.stay == Stay::Present && !ground.domains(seat.spot, &term.topology_key).is_empty();
            if let [domain] = ground.domains(seat.spot, &term.topology_key) {
                hosts.domains.insert(domain.clone());
            }
        }
    }
}

/// Whether those that a term selects are in the pod's domain, whichever that comes to be.
fn suits(ground: &Ground<'_>, term: &PodAffinityTerm, hosts: &Hosts, seat: &Seat) -> bool {
    let domains = ground.domains(seat.spot, &term.topology_key);
    !domains.is_empty() && (hosts.spots.contains(&seat.spot) || domains.iter().all(|domain| hosts.domains.contains(domain)))
}

/// Lets one guest be the first that its terms select, where its other terms are met: one for whom nobody else at its place
/// can be the first, if there is such a one.
fn begin(ground: &Ground<'_>, guests: &mut Vec<Guest<'_>>, hosts: &mut BTreeMap<&PodAffinityTerm, Hosts>) -> bool {
    let able = |guest: &Guest<'_>| {
        guest.terms.iter().all(|term| {
            let hosts = &hosts[term];
            let alone = !hosts.begun && hosts.identities.binary_search(&guest.seat.identity).is_ok();
            let labelled = !ground.domains(guest.seat.spot, &term.topology_key).is_empty();
            suits(ground, term, hosts, guest.seat) || (alone && labelled)
        })
    };
    let can_wait = |guest: &Guest<'_>| {
        let others = || guests.iter().filter(|other| other.seat.spot == guest.seat.spot && other.terms != guest.terms);
        guest.terms.iter().all(|term| others().any(|other| hosts[term].identities.binary_search(&other.seat.identity).is_ok()))
    };
    let first = guests.iter().position(|guest| !can_wait(guest) && able(guest)).or_else(|| guests.iter().position(able));
    let Some(first) = first else { return false };
    let guest = guests.remove(first);
    for term in guest.terms {
        if let Some(hosts) = hosts.get_mut(term) {
            hosts.begun = true;
        }
    }
    welcome(ground, hosts, guest.seat);
    true
}
