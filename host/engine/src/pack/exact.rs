//! Few items: every way to pack them is tried, by dynamic programming over what is packed so far.

use super::Pattern;
use super::part::{self, Part};

/// At most this many multisets of items, and pairs of one and a part of it.
const MOST_SETS: u64 = 2_048;
const MOST_PAIRS: u64 = 300_000;

/// A packing of lowest rank, when the items are few enough to find it.
pub(super) fn pack(part: &Part) -> Option<Vec<Pattern>> {
    let (mut sets, mut pairs) = (1u64, 1u64);
    for &n in &part.count {
        sets = sets.saturating_mul(u64::from(n) + 1);
        pairs = pairs.saturating_mul((u64::from(n) + 1) * (u64::from(n) + 2) / 2);
        if sets > MOST_SETS || pairs > MOST_PAIRS {
            return None;
        }
    }
    let sets = sets as usize;
    let bins: Vec<Option<usize>> = (0..sets).map(|set| bin(part, &content(part, set))).collect();
    // The cheapest way to pack each multiset, and the bin that comes last in it.
    let mut best: Vec<Option<(i64, usize)>> = vec![None; sets];
    best[0] = Some((0, 0));
    for set in 1..sets {
        let whole = content(part, set);
        let first = whole.first()?.0;
        let mut least: Option<(i64, usize)> = None;
        for_each_part(part, &whole, |taken| {
            let held = number_of(part, taken, first) > 0;
            if let (true, Some(kind), Some((rest, _))) = (held, bins[taken], best[set - taken]) {
                let sum = rest.saturating_add(part.rank[kind]);
                if least.is_none_or(|(rank, _)| sum < rank) {
                    least = Some((sum, taken));
                }
            }
        });
        best[set] = least;
    }
    let mut out: Vec<Pattern> = Vec::new();
    let mut set = sets - 1;
    while set > 0 {
        let (_, taken) = best[set]?;
        let (kind, items) = (part::index(bins[taken]?), content(part, taken));
        match out.iter_mut().find(|p| p.items == items) {
            Some(same) => same.times += 1,
            None => out.push(Pattern { kind, items, times: 1 }),
        }
        set -= taken;
    }
    Some(out)
}

/// The cheapest kind that may hold these items together.
fn bin(part: &Part, items: &[(u32, u32)]) -> Option<usize> {
    let apart = |c: u32| items.iter().any(|(other, _)| part.conflicts[c as usize].binary_search(other).is_ok());
    let breach = items.iter().any(|&(c, n)| (n > 1 && part.alone[c as usize]) || apart(c));
    if items.is_empty() || breach { None } else { part.cheapest(items) }
}

/// What one item of class `c` adds to the number of a multiset.
fn stride(part: &Part, c: u32) -> usize {
    part.count[..c as usize].iter().map(|n| *n as usize + 1).product()
}

/// How many items of class `c` are in a multiset.
fn number_of(part: &Part, set: usize, c: u32) -> usize {
    set / stride(part, c) % (part.count[c as usize] as usize + 1)
}

/// The items of a multiset by its number, ascending by class.
fn content(part: &Part, mut set: usize) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for (c, n) in part.count.iter().enumerate() {
        let radix = *n as usize + 1;
        let items = part::index(set % radix);
        if items > 0 {
            out.push((part::index(c), items));
        }
        set /= radix;
    }
    out
}

/// Calls `see` with the number of every multiset that lies within `whole`, the empty one too.
fn for_each_part(part: &Part, whole: &[(u32, u32)], mut see: impl FnMut(usize)) {
    let strides: Vec<usize> = whole.iter().map(|&(c, _)| stride(part, c)).collect();
    let mut taken = vec![0u32; whole.len()];
    let mut number = 0;
    loop {
        see(number);
        let mut at = 0;
        while at < whole.len() && taken[at] == whole[at].1 {
            number -= strides[at] * taken[at] as usize;
            taken[at] = 0;
            at += 1;
        }
        if at == whole.len() {
            return;
        }
        taken[at] += 1;
        number += strides[at];
    }
}
