//! A problem taken apart: classes that share no kind of bin do not know of each other, kinds that
//! another kind beats in every respect are left out, and what remains lies in flat arrays.

use std::collections::BTreeMap;

use super::Problem;
use crate::intern::Lookup;

/// One independent part of a problem. Classes and kinds have indices of their own here.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// Number of resources that anybody in the part asks for.
    pub width: usize,
    /// The problem's index of each class.
    pub classes: Vec<u32>,
    /// Items of each class.
    pub count: Vec<u32>,
    /// Demand of an item, `width` values a class.
    pub demand: Vec<i64>,
    /// Which classes are at most once in a bin.
    pub alone: Vec<bool>,
    /// Classes that never share a bin with each class.
    pub conflicts: Vec<Vec<u32>>,
    /// The group of each class: classes of a group may use the same kinds.
    pub group: Vec<u32>,
    /// The problem's index of each kind; cheapest first.
    pub kinds: Vec<u32>,
    /// Capacity, `width` values a kind.
    pub capacity: Vec<i64>,
    /// Rank of each kind in micros, at least 0.
    pub rank: Vec<i64>,
    /// The set of groups that each kind may hold, as an index into `sets`.
    pub set: Vec<u32>,
    /// Sets of groups, one flag a group.
    pub sets: Vec<Vec<bool>>,
}

impl Part {
    /// Demand of an item of class `c`.
    pub fn demand(&self, c: usize) -> &[i64] {
        &self.demand[c * self.width..(c + 1) * self.width]
    }

    /// Capacity of kind `k`.
    pub fn capacity(&self, k: usize) -> &[i64] {
        &self.capacity[k * self.width..(k + 1) * self.width]
    }

    /// Whether kind `k` may hold class `c`, room aside.
    pub fn allows(&self, k: usize, c: usize) -> bool {
        self.sets[self.set[k] as usize][self.group[c] as usize]
    }

    /// How many items of class `c` an empty bin of kind `k` holds, at most `count`.
    pub fn fit(&self, k: usize, c: usize) -> u32 {
        if !self.allows(k, c) {
            return 0;
        }
        let most = if self.alone[c] { 1 } else { self.count[c] };
        fit(self.demand(c), self.capacity(k), most)
    }

    /// The cheapest kind that may hold these items and has room for them.
    pub fn cheapest(&self, items: &[(u32, u32)]) -> Option<usize> {
        let mut sum = vec![0i64; self.width];
        for &(c, n) in items {
            for (s, d) in sum.iter_mut().zip(self.demand(c as usize)) {
                *s += d * i64::from(n);
            }
        }
        (0..self.kinds.len()).find(|&k| {
            sum.iter().zip(self.capacity(k)).all(|(s, room)| s <= room) && items.iter().all(|&(c, _)| self.allows(k, c as usize))
        })
    }
}

/// How many times `demand` goes into `room`, at most `most`.
pub(super) fn fit(demand: &[i64], room: &[i64], most: u32) -> u32 {
    if demand.iter().zip(room).any(|(d, r)| d > r) {
        return 0;
    }
    let mut n = i64::from(most);
    for (&d, &r) in demand.iter().zip(room) {
        if d > 0 && d.saturating_mul(n) > r {
            n = r / d;
        }
    }
    u32::try_from(n).unwrap_or(0)
}

/// Takes a problem apart. Also answers the classes that no kind has room for, with their counts.
pub(super) fn split(problem: &Problem) -> (Vec<Part>, Vec<(u32, u32)>) {
    let mut unplaced = Vec::new();
    let mut placeable = Vec::new();
    for (c, class) in problem.classes.iter().enumerate().filter(|(_, class)| class.count > 0) {
        if class.kinds.iter().any(|&k| fit(&class.demand, &problem.kinds[k as usize].capacity, 1) > 0) {
            placeable.push(index(c));
        } else {
            unplaced.push((index(c), class.count));
        }
    }
    let groups = grouped(problem, &placeable);
    let parts = joined(problem.kinds.len(), &groups).iter().map(|members| part(problem, &groups, members)).collect();
    (parts, unplaced)
}

/// Classes by the kinds that may hold them.
fn grouped<'p>(problem: &'p Problem, classes: &[u32]) -> Vec<(&'p [u32], Vec<u32>)> {
    // Long lists are compared once for each that is not the same one.
    let mut same: Vec<(&[u32], Vec<u32>)> = Vec::new();
    let mut known: Lookup<*const u32, usize> = Lookup::default();
    for &c in classes {
        let kinds = &problem.classes[c as usize].kinds;
        let at = known.get(&kinds.as_ptr()).copied().filter(|at| same[*at].0.len() == kinds.len()).unwrap_or_else(|| {
            same.push((kinds, Vec::new()));
            known.insert(kinds.as_ptr(), same.len() - 1);
            same.len() - 1
        });
        same[at].1.push(c);
    }
    let mut equal: BTreeMap<&[u32], Vec<u32>> = BTreeMap::new();
    for (kinds, members) in same {
        equal.entry(kinds).or_default().extend(members);
    }
    equal.values_mut().for_each(|members| members.sort_unstable());
    equal.into_iter().collect()
}

/// Sets of groups that are tied to each other by a kind, ascending by their first group.
fn joined(kinds: usize, groups: &[(&[u32], Vec<u32>)]) -> Vec<Vec<usize>> {
    let mut parent: Vec<usize> = (0..groups.len()).collect();
    let mut owner: Vec<Option<usize>> = vec![None; kinds];
    for (g, (list, _)) in groups.iter().enumerate() {
        for &k in *list {
            match owner[k as usize] {
                Some(other) => {
                    let (a, b) = (root(&mut parent, other), root(&mut parent, g));
                    parent[a.max(b)] = a.min(b);
                }
                None => owner[k as usize] = Some(g),
            }
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for g in 0..groups.len() {
        members.entry(root(&mut parent, g)).or_default().push(g);
    }
    members.into_values().collect()
}

/// The root of a set in a forest, shortening the way to it.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

/// Builds the part that consists of the groups `members`.
fn part(problem: &Problem, groups: &[(&[u32], Vec<u32>)], members: &[usize]) -> Part {
    let mut classes: Vec<(u32, u32)> = Vec::new();
    for (g, &m) in members.iter().enumerate() {
        classes.extend(groups[m].1.iter().map(|&c| (c, index(g))));
    }
    classes.sort_unstable();
    let of = |c: u32| &problem.classes[c as usize];
    let used: Vec<usize> = (0..problem.width).filter(|&r| classes.iter().any(|&(c, _)| of(c).demand[r] > 0)).collect();
    let mut local: BTreeMap<u32, u32> = BTreeMap::new();
    for (i, &(c, _)) in classes.iter().enumerate() {
        local.insert(c, index(i));
    }
    let mut part = Part { width: used.len(), ..Part::default() };
    for &(c, group) in &classes {
        let class = of(c);
        part.classes.push(c);
        part.count.push(class.count);
        part.demand.extend(used.iter().map(|&r| class.demand[r]));
        part.alone.push(class.alone);
        part.conflicts.push(class.conflicts.iter().filter_map(|other| local.get(other).copied()).collect());
        part.group.push(group);
    }
    add_kinds(&mut part, problem, groups, members, &used);
    part
}

/// Adds the kinds that hold something and that no kind beats, cheapest first.
fn add_kinds(part: &mut Part, problem: &Problem, groups: &[(&[u32], Vec<u32>)], members: &[usize], used: &[usize]) {
    // Kinds are many, and few sets of groups are distinct.
    let mut holds: Vec<u32> = vec![0; problem.kinds.len()];
    let mut distinct: Vec<Vec<bool>> = vec![vec![false; members.len()]];
    let mut numbers: BTreeMap<(u32, usize), u32> = BTreeMap::new();
    for (g, &m) in members.iter().enumerate() {
        for &k in groups[m].0 {
            let before = holds[k as usize];
            holds[k as usize] = *numbers.entry((before, g)).or_insert_with(|| {
                let mut set = distinct[before as usize].clone();
                set[g] = true;
                distinct.push(set);
                index(distinct.len() - 1)
            });
        }
    }
    let mut order: Vec<(i64, i64, u32)> = Vec::new();
    for k in (0..index(problem.kinds.len())).filter(|k| holds[*k as usize] != 0) {
        let kind = &problem.kinds[k as usize];
        if kind.capacity.iter().any(|room| *room < 0) {
            continue;
        }
        let size = used.iter().fold(0i64, |sum, &r| sum.saturating_add(kind.capacity[r]));
        order.push((kind.rank.0.max(0), size.saturating_neg(), k));
    }
    order.sort_unstable();
    let mut sets: BTreeMap<Vec<bool>, u32> = BTreeMap::new();
    let (mut capacity, mut last) = (Vec::with_capacity(used.len()), 0);
    for (rank, _, k) in order {
        capacity.clear();
        capacity.extend(used.iter().map(|&r| problem.kinds[k as usize].capacity[r]));
        let set = &distinct[holds[k as usize] as usize];
        let beats = |b: &usize| {
            part.capacity(*b).iter().zip(&capacity).all(|(x, y)| x >= y)
                && part.sets[part.set[*b] as usize].iter().zip(set).all(|(x, y)| *x || !*y)
        };
        // What beat the last one beats the same type of another pool too.
        if let Some(b) = (last..part.kinds.len()).chain(0..last.min(part.kinds.len())).find(beats) {
            last = b;
            continue;
        }
        let useful = || (0..part.classes.len()).any(|c| set[part.group[c] as usize] && fit(part.demand(c), &capacity, 1) > 0);
        if !useful() {
            continue;
        }
        let id = *sets.entry(set.clone()).or_insert_with(|| {
            part.sets.push(set.clone());
            index(part.sets.len() - 1)
        });
        part.kinds.push(k);
        part.capacity.extend_from_slice(&capacity);
        part.rank.push(rank);
        part.set.push(id);
    }
}

/// An index as it is stored.
pub(super) fn index(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(u32::MAX)
}
