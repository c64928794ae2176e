//! Rule `spread`: required topology spread constraints can hold in some order of binding.
//!
//! What is checked, for the pods of a plan that share a constraint, and each domain D they come to:
//! those that are counted in D today and stay, with all of these pods that come to D and are counted
//! themselves, are at most `maxSkew` more than the least count that any domain has in the end.
//! It is necessary: when the last of these pods is bound to D the others are there already, and no
//! domain has more than it has in the end. A place that may come to be in several domains counts
//! in each of them, and towards the least count in none.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Affinity, Toleration, TopologySpread, keys};

use super::Findings;
use super::ground::{Ground, Spot, Stay};
use super::market::Market;
use super::roll::Group;

/// Pods that ask the same about spreading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ask<'w> {
    namespace: &'w str,
    constraint: &'w TopologySpread,
    affinity: &'w Affinity,
    tolerations: &'w [Toleration],
}

pub(super) fn check<'w>(ground: &Ground<'w>, market: &mut Market<'w>, found: &mut Findings) {
    let mut asks: BTreeMap<Ask<'_>, Vec<(usize, Group)>> = BTreeMap::new();
    for (number, spot) in ground.spots.iter().enumerate() {
        for group in &spot.arriving {
            let (shape, identity) = (ground.world.shapes.value(group.shape), ground.world.identities.value(group.identity));
            for constraint in shape.spread.iter().filter(|c| c.required) {
                let (affinity, tolerations) = (&shape.affinity, &shape.tolerations[..]);
                let ask = Ask { namespace: &identity.namespace, constraint, affinity, tolerations };
                asks.entry(ask).or_default().push((number, *group));
            }
        }
    }
    for (ask, who) in asks {
        check_one(ground, market, ask, &who, found);
    }
}

fn check_one<'w>(ground: &Ground<'w>, market: &mut Market<'w>, ask: Ask<'_>, who: &[(usize, Group)], found: &mut Findings) {
    let (key, constraint) = (ask.constraint.topology_key.as_str(), ask.constraint);
    let selected = ground.selected(ask.namespace, &constraint.selector);
    let own = |group: &Group| selected.binary_search(&group.identity).is_ok();
    let least = least(ground, market, ask, &selected);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seat in selected.iter().flat_map(|identity| ground.seats_of(*identity)).filter(|seat| seat.stay == Stay::Present) {
        if counted(&ground.spots[seat.spot], ask, false) {
            for domain in ground.domains(seat.spot, key) {
                *counts.entry(domain).or_default() += seat.count;
            }
        }
    }
    for (spot, group) in who.iter().filter(|(_, group)| own(group)) {
        for domain in ground.domains(*spot, key) {
            *counts.entry(domain).or_default() += group.count;
        }
    }
    let most = usize::try_from(constraint.max_skew).unwrap_or(usize::MAX).saturating_add(least);
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (spot, _) in who {
        let (name, domains) = (ground.spots[*spot].name, ground.domains(*spot, key));
        if domains.is_empty() {
            found.object("spread", format!("{name} has no label {key}, over which pods planned for it spread"));
        }
        for domain in domains {
            let count = counts.get(domain.as_str()).copied().unwrap_or(0);
            if count > most && named.insert(domain) {
                let namespace = ask.namespace;
                let what = format!("{key} {domain} comes to have {count} of pods of {namespace} that spread, and may have {most}");
                found.object("spread", what);
            }
        }
    }
}

/// The least count that any domain has in the end. Domains are those that places show for certain,
/// and those that such a pod could have a node bought in. A host name can always be new.
fn least<'w>(ground: &Ground<'w>, market: &mut Market<'w>, ask: Ask<'_>, selected: &[u32]) -> usize {
    let key = ask.constraint.topology_key.as_str();
    if key == keys::HOSTNAME {
        return 0;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, spot) in ground.spots.iter().enumerate() {
        if let [domain] = ground.domains(number, key)
            && counted(spot, ask, true)
        {
            counts.entry(domain).or_default();
        }
    }
    let bought = market.domains(ask.affinity, ask.tolerations, key);
    for domain in &bought {
        counts.entry(domain).or_default();
    }
    for seat in selected.iter().flat_map(|identity| ground.seats_of(*identity)).filter(|seat| seat.stay != Stay::Parting) {
        if let [domain] = ground.domains(seat.spot, key)
            && counted(&ground.spots[seat.spot], ask, true)
        {
            *counts.entry(domain).or_default() += seat.count;
        }
    }
    let few = ask.constraint.min_domains.is_some_and(|wanted| counts.len() < usize::try_from(wanted).unwrap_or(usize::MAX));
    if few { 0 } else { counts.into_values().min().unwrap_or(0) }
}

/// Whether a place is one whose pods count, by the constraint's policies.
fn counted(spot: &Spot<'_>, ask: Ask<'_>, surely: bool) -> bool {
    let tolerated = || spot.taints().iter().all(|t| !t.repels() || t.tolerated_by(ask.tolerations));
    (!ask.constraint.honor_affinity || spot.accepted_by(ask.affinity, surely)) && (!ask.constraint.honor_taints || tolerated())
}
