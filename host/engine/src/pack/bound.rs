//! What no packing can cost less than: the aggregate linear program over whole resources, with a
//! row for bins that anti-affinity forces, made safe against rounding. Its duals price the items.

use whittle_model::Micros;

use super::Problem;
use super::part::{self, Part};
use super::simplex::Simplex;

/// Groups and sets of groups are told apart up to this many rows; beyond, all count as one.
const MOST_ROWS: usize = 120;
/// At most this many rows for mutually exclusive classes.
const MOST_CLIQUES: usize = 4;
/// At most this many classes are looked at for them.
const CLIQUE_CLASSES: usize = 512;

/// A lower bound and where it comes from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bound {
    /// No packing of all placeable items has a lower rank.
    pub rank: Micros,
    /// The duals, one entry for each set of classes that shares kinds with no other.
    pub duals: Vec<Duals>,
}

/// Prices of the items of one component: no bin can hold items worth more than its rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Duals {
    /// The component's share of the bound.
    pub rank: Micros,
    /// Indices of its classes, ascending.
    pub classes: Vec<u32>,
    /// Micros that one item of each of these classes is worth.
    pub values: Vec<f64>,
}

/// Prices that guide the packers in a part.
#[derive(Debug, Clone, Default)]
pub(super) struct Guide {
    /// Micros that an item of each class is worth.
    pub values: Vec<f64>,
    /// Micros that a unit of each resource is worth, `width` values a set of groups.
    pub prices: Vec<f64>,
    /// What a bin of each kind can be worth at most, by its rank; 1 where it just pays.
    pub promise: Vec<f64>,
}

/// The lower bound on the rank of any packing of the problem. Ranks below zero count as zero;
/// items that no kind has room for are left out.
#[must_use]
pub fn bound(problem: &Problem) -> Bound {
    of_parts(&part::split(problem).0).0
}

/// The bound, and what a bin of each kind can be worth at most in its duals, by its rank: 1 where it just pays, 0 where
/// another kind is better in every respect or nothing goes into it.
#[must_use]
pub fn prospects(problem: &Problem) -> (Bound, Vec<f64>) {
    let (parts, _) = part::split(problem);
    let (bound, guides) = of_parts(&parts);
    let mut promises = vec![0.0f64; problem.kinds.len()];
    for (part, guide) in parts.iter().zip(guides) {
        for (kind, promise) in part.kinds.iter().zip(guide.promise) {
            promises[*kind as usize] = promise;
        }
    }
    (bound, promises)
}

/// The bound of all parts together, and the guide of each.
pub(super) fn of_parts(parts: &[Part]) -> (Bound, Vec<Guide>) {
    let (duals, guides): (Vec<Duals>, Vec<Guide>) = parts.iter().map(of_part).unzip();
    (Bound { rank: duals.iter().map(|d| d.rank).sum(), duals }, guides)
}

/// Classes of which no two items share a bin, unless they are of the same class.
struct Clique {
    /// Bins that the members need.
    need: u64,
    /// Members, and how many items of each a bin holds at most.
    members: Vec<(usize, u32)>,
    /// Kinds that hold a member.
    holds: Vec<bool>,
}

/// The bound of one part.
fn of_part(part: &Part) -> (Duals, Guide) {
    let cliques = cliques(part);
    let prices = prices(part, &cliques);
    let (w, groups) = (part.width, part.sets.first().map_or(0, Vec::len));
    let scale = safe_scale(part, &cliques, &prices);
    let mut total = 0.0;
    let mut values = Vec::with_capacity(part.classes.len());
    for c in 0..part.classes.len() {
        let at = part.group[c] as usize * w;
        let value: f64 = part.demand(c).iter().zip(&prices[at..at + w]).map(|(d, p)| *d as f64 * p).sum::<f64>() * scale;
        total += value * f64::from(part.count[c]);
        values.push(value);
    }
    for (clique, theta) in cliques.iter().zip(&prices[groups * w..]) {
        total += theta * scale * clique.need as f64;
        for &(c, most) in &clique.members {
            values[c] += theta * scale / f64::from(most);
        }
    }
    let rank = ((total * (1.0 - 1e-9)) as i64).max(whole_bins(part, &cliques));
    let promise = (0..part.kinds.len()).map(|k| worth(part, &cliques, &prices, k) * scale / (part.rank[k] as f64).max(1e-3)).collect();
    let prices = part.sets.iter().flat_map(|set| dearest(set, &prices, w)).collect();
    let guide = Guide { values: floored(part, &values), prices, promise };
    (Duals { rank: Micros(rank), classes: part.classes.clone(), values }, guide)
}

/// The values, but nothing is worth less than a small share of what it costs at best to hold it
/// in a bin of its own class: an item that lives on slack today may be all that is left tomorrow.
fn floored(part: &Part, values: &[f64]) -> Vec<f64> {
    let share = |k: usize, c: usize| match part.fit(k, c) {
        0 => f64::INFINITY,
        n => part.rank[k] as f64 / f64::from(n),
    };
    let least = |c: usize| (0..part.kinds.len()).map(|k| share(k, c)).fold(f64::INFINITY, f64::min);
    values.iter().enumerate().map(|(c, v)| if *v > 0.0 { *v } else { 0.02 * least(c) }).collect()
}

/// Greedy cliques of classes that exclude each other, the one that needs most bins first.
fn cliques(part: &Part) -> Vec<Clique> {
    let kinds = part.kinds.len();
    let mut order: Vec<(u32, usize, u32)> = Vec::new();
    for c in (0..part.classes.len()).filter(|&c| part.alone[c] || !part.conflicts[c].is_empty()) {
        let most = (0..kinds).map(|k| part.fit(k, c)).max().unwrap_or(1).max(1);
        order.push((part.count[c].div_ceil(most), c, most));
    }
    order.sort_unstable_by_key(|&(need, c, _)| (std::cmp::Reverse(need), c));
    order.truncate(CLIQUE_CLASSES);
    let mut seen = vec![false; part.classes.len()];
    let mut out = Vec::new();
    for &(need, seed, most) in &order {
        if seen[seed] || out.len() == MOST_CLIQUES {
            continue;
        }
        let mut clique = Clique { need: u64::from(need), members: vec![(seed, most)], holds: Vec::new() };
        for &(need, c, most) in &order {
            let apart = |m: usize| part.conflicts[c].binary_search(&part::index(m)).is_ok();
            if c != seed && clique.members.iter().all(|&(m, _)| apart(m)) {
                clique.need += u64::from(need);
                clique.members.push((c, most));
            }
        }
        clique.members.iter().for_each(|&(c, _)| seen[c] = true);
        if clique.need > 1 {
            clique.holds = (0..kinds).map(|k| clique.members.iter().any(|&(c, _)| part.fit(k, c) > 0)).collect();
            out.push(clique);
        }
    }
    out
}

/// The optimal duals: a price for each group and resource, then one for each clique. All zero
/// when the program could not be solved.
fn prices(part: &Part, cliques: &[Clique]) -> Vec<f64> {
    let (w, sets, groups) = (part.width, part.sets.len(), part.sets.first().map_or(0, Vec::len));
    let apart = sets > 1 && (sets + groups) * w <= MOST_ROWS;
    let demand = demands(part, if apart { groups } else { 1 });
    let total: Vec<f64> = (0..w).map(|r| demand.iter().skip(r).step_by(w.max(1)).sum::<f64>().max(1.0)).collect();
    let unit = part.rank.iter().max().map_or(1.0, |r| (*r as f64).max(1.0));
    let own = if apart { groups * w } else { 0 };
    let pools = if apart { sets } else { 1 };
    let mut rhs: Vec<f64> = vec![0.0; own + pools * w];
    for (side, d) in rhs.iter_mut().zip(&demand) {
        *side = if *d > 0.0 { 1.0 } else { 0.0 };
    }
    rhs.extend(cliques.iter().map(|_| 1.0));
    let mut lp = Simplex::new(rhs);
    for k in 0..part.kinds.len() {
        let pool = if apart { part.set[k] as usize } else { 0 };
        let mut column: Vec<(u32, f64)> = Vec::with_capacity(w + 1);
        column.extend((0..w).map(|r| (part::index(own + pool * w + r), part.capacity(k)[r] as f64 / total[r])));
        for (q, clique) in cliques.iter().enumerate().filter(|(_, clique)| clique.holds[k]) {
            column.push((part::index(own + pools * w + q), 1.0 / clique.need as f64));
        }
        lp.add(part.rank[k] as f64 / unit, &column);
    }
    for (at, d) in demand.iter().enumerate().take(own) {
        let (g, r) = (at / w, at % w);
        for s in (0..sets).filter(|&s| part.sets[s][g] && *d > 0.0) {
            lp.add(0.0, &[(part::index(at), 1.0), (part::index(own + s * w + r), -d / total[r])]);
        }
    }
    if !lp.solve(5000) {
        return vec![0.0; groups * w + cliques.len()];
    }
    let duals = lp.duals();
    let resource = |at: usize| match (apart, demand.get(at)) {
        (true, Some(d)) if *d > 0.0 => duals[at] * unit / d,
        (true, _) => 0.0,
        (false, _) => duals[at % w] * unit / total[at % w],
    };
    let mut out: Vec<f64> = (0..groups * w).map(resource).collect();
    out.extend(cliques.iter().enumerate().map(|(q, clique)| duals[own + pools * w + q] * unit / clique.need as f64));
    out
}

/// Total demand of each group and resource, all groups as one when `groups` is 1.
fn demands(part: &Part, groups: usize) -> Vec<f64> {
    let mut out = vec![0.0; groups * part.width];
    for c in 0..part.classes.len() {
        let g = if groups == 1 { 0 } else { part.group[c] as usize };
        for (sum, d) in out[g * part.width..].iter_mut().zip(part.demand(c)) {
            *sum += *d as f64 * f64::from(part.count[c]);
        }
    }
    out
}

/// What the prices are multiplied with so that no bin's capacity is worth more than its rank.
fn safe_scale(part: &Part, cliques: &[Clique], prices: &[f64]) -> f64 {
    let of = |k: usize| match worth(part, cliques, prices, k) {
        worth if worth > 0.0 => part.rank[k] as f64 / (worth * (1.0 + 1e-12)),
        _ => 1.0,
    };
    (0..part.kinds.len()).map(of).fold(1.0, f64::min)
}

/// The most that a bin of kind `k` can hold, in the prices of the program.
fn worth(part: &Part, cliques: &[Clique], prices: &[f64], k: usize) -> f64 {
    let set = &part.sets[part.set[k] as usize];
    let capacity: f64 = part.capacity(k).iter().zip(dearest(set, prices, part.width)).map(|(c, p)| *c as f64 * p).sum();
    let thetas = &prices[set.len() * part.width..];
    capacity + cliques.iter().zip(thetas).filter(|(clique, _)| clique.holds[k]).map(|(_, theta)| theta).sum::<f64>()
}

/// The highest price of each resource among the groups of a set.
fn dearest(set: &[bool], prices: &[f64], w: usize) -> Vec<f64> {
    let mut out = vec![0.0f64; w];
    for (g, _) in set.iter().enumerate().filter(|(_, in_set)| **in_set) {
        for (max, price) in out.iter_mut().zip(&prices[g * w..]) {
            *max = max.max(*price);
        }
    }
    out
}

/// A bound for few items: every item needs a whole bin, items of a clique each their own.
fn whole_bins(part: &Part, cliques: &[Clique]) -> i64 {
    let least = |c: usize| (0..part.kinds.len()).find(|&k| part.fit(k, c) > 0).map_or(0, |k| part.rank[k]);
    let single = (0..part.classes.len()).map(least).max().unwrap_or(0);
    let together = |clique: &Clique| {
        clique
            .members
            .iter()
            .fold(0i64, |sum, &(c, most)| sum.saturating_add(least(c).saturating_mul(i64::from(part.count[c].div_ceil(most)))))
    };
    cliques.iter().map(together).fold(single, i64::max)
}
