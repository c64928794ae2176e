//! Claims as they are written to the cluster.

use whittle_model::{ClaimStatus, Labels, NodeClaim, NodePool, Operator, PodKey, Requirement, Requirements, Timestamp, keys};

use super::classes::Class;
use super::finish::{Finished, Priced};
use super::tables::{PoolTable, Tables};
use super::{PlannedNode, Seats};
use crate::intern::Lookup;
use crate::world::World;

/// The nodes of the plan that was taken, each with its pods: the members of a class go to its
/// claims in order.
pub(crate) fn nodes(
    world: &World,
    tables: &Tables<'_>,
    classes: &[Class<'_>],
    seats: &Seats<'_>,
    best: Priced,
    now: Timestamp,
) -> Vec<PlannedNode> {
    let mut next: Vec<usize> = vec![0; classes.len()];
    let mut names: Lookup<String, ()> = Lookup::default();
    let mut nodes = Vec::with_capacity(best.claims.len());
    for (number, finished) in best.claims.into_iter().enumerate() {
        let mut pods: Vec<PodKey> = Vec::new();
        for (class, count) in &finished.content {
            let standing = seats.standing(*class);
            pods.extend(standing[next[*class]..next[*class] + count].iter().map(|key| (*key).clone()));
            next[*class] += count;
        }
        let name = free_name(world, &names, &tables.pools[finished.pool].pool.name, now, number);
        names.insert(name.clone(), ());
        nodes.push(PlannedNode {
            claim: claim(&tables.pools[finished.pool], name, &finished, now),
            pods,
            choice: finished.choice,
            rank: finished.rank,
            cost: finished.cost,
            list: finished.list,
            runner_up: finished.runner_up,
        });
    }
    nodes
}

fn claim(table: &PoolTable<'_>, name: String, finished: &Finished, now: Timestamp) -> NodeClaim {
    let (pool, menu) = (table.pool, &finished.menu);
    let mut annotations = pool.template.annotations.clone();
    annotations.insert(keys::LAUNCH_GROUP.to_owned(), menu.group.clone());
    let marks = [(menu.short, keys::MIN_VALUES_RELAXED), (menu.overlaid.0, keys::PRICE_OVERLAY), (menu.overlaid.1, keys::CAPACITY_OVERLAY)];
    annotations.extend(marks.into_iter().filter(|(marked, _)| *marked).map(|(_, key)| (key.to_owned(), "true".to_owned())));
    let mut claim = NodeClaim {
        name,
        node_pool: pool.name.clone(),
        node_class: pool.template.node_class.clone(),
        labels: labels(pool, &menu.requirements),
        annotations,
        taints: pool.template.taints.clone(),
        startup_taints: pool.template.startup_taints.clone(),
        requirements: menu.requirements.clone(),
        requests: finished.requests.clone(),
        uid: String::new(),
        expire_after: pool.template.expire_after,
        termination_grace_period: pool.template.termination_grace_period,
        created: now,
        deleting: false,
        deleted_at: None,
        status: ClaimStatus::default(),
    };
    if !finished.listed.is_empty() {
        let listed = finished.listed.iter().map(|(offer, price)| table.listed(*offer, price.rank));
        claim.list_offers(listed);
    }
    claim
}

/// The labels of the template, whose it is, and a value for each custom key that is required.
fn labels(pool: &NodePool, requirements: &Requirements) -> Labels {
    let mut labels = pool.template.labels.clone();
    labels.insert(keys::NODE_POOL.to_owned(), pool.name.clone());
    labels.insert(keys::NODE_CLASS.to_owned(), pool.template.node_class.clone());
    labels.extend(own_labels(requirements));
    labels
}

/// The labels that a claim with these requirements gives itself: a value for each key that is nobody else's.
pub(crate) fn own_labels(requirements: &Requirements) -> Labels {
    let own = requirements.iter().filter(|r| !keys::well_known(r.key()));
    own.filter_map(|r| some_value(r).map(|value| (r.key().to_owned(), value))).collect()
}

/// A value that a requirement admits, where one has to be there: the first that is listed, or else
/// the smallest integer, since pods that ask for the key alone are content with any.
pub(crate) fn some_value(requirement: &Requirement) -> Option<String> {
    match requirement.operator() {
        Operator::In => requirement.values().first().cloned(),
        Operator::Exists => {
            let least = requirement.bounds().0.unwrap_or(0);
            // Among one more integers than are refused, one is free.
            let most = least.saturating_add(i64::try_from(requirement.values().len()).unwrap_or(i64::MAX));
            (least..=most).map(|n| n.to_string()).find(|n| requirement.allows(n))
        }
        Operator::NotIn | Operator::DoesNotExist | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => None,
    }
}

/// Claims of one plan and one launch shape share a group: their instances can be bought together,
/// and found again after a crash.
pub(crate) fn group_of(pool: &str, requirements: &Requirements, now: Timestamp) -> String {
    let shape = format!("{pool}|{requirements}|{}", now.0);
    letters(fnv(shape.as_bytes()), 12)
}

/// Gives a claim whose requirements were narrowed the launch group of its new shape.
pub(crate) fn regroup(claim: &mut NodeClaim, now: Timestamp) {
    let group = group_of(&claim.node_pool, &claim.requirements, now);
    claim.annotations.insert(keys::LAUNCH_GROUP.to_owned(), group);
}

/// A text in a few letters, by which it is told from others.
pub(crate) fn fingerprint(text: &str) -> String {
    letters(fnv(text.as_bytes()), 10)
}

/// A name nobody has: the pool's, and five letters made of pool, time and number.
fn free_name(world: &World, taken: &Lookup<String, ()>, pool: &str, now: Timestamp, number: usize) -> String {
    let mut salt = 0u32;
    loop {
        let text = format!("{pool}|{}|{number}|{salt}", now.0);
        let name = format!("{pool}-{}", letters(fnv(text.as_bytes()), 5));
        if !world.claims.contains_key(&name) && taken.get(&name).is_none() {
            return name;
        }
        salt += 1;
    }
}

/// FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>, with a final mix so that near inputs
/// differ in every letter.
fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// Letters as Kubernetes uses them in generated names: no vowels, so no words.
fn letters(mut number: u64, count: usize) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = String::with_capacity(count);
    for _ in 0..count {
        let index = usize::try_from(number % 27).expect("a remainder of 27 is small");
        text.push(char::from(ALPHABET[index]));
        number /= 27;
    }
    text
}
