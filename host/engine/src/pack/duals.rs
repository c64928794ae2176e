//! The dual-guided greedy: with a price on every item, open again and again the bin that costs
//! least for each micro of value packed. Equal bins are opened at once, so the work depends on
//! classes and kinds, not on items.

use super::Pattern;
use super::fill::{Filler, Taste, Work};
use super::part::{self, Part};

/// At most this many classes are weighed against each other by direction.
const SAMPLE: u64 = 160;
/// At least this many, however little work is left.
const LEAST_SAMPLE: u64 = 32;
/// With less work than this for an opening only the first rule is tried.
const SCARCE: u64 = 4_000;
/// At least this many kinds are tried for each opening.
const LEAST_KINDS: usize = 4;

/// Ways to fill a bin that one run of the greedy chooses from; `None` is by worth, dearest first.
pub(super) type Rules = &'static [Option<Taste>];

/// Fills by size and direction: uses up what is hard to place early.
pub(super) const BY_SIZE: Rules = &[None, Some(Taste::Big), Some(Taste::Mixed), Some(Taste::Aligned)];
/// Fills by worth for scarcity: the tightest bins first.
pub(super) const BY_WORTH: Rules = &[None, Some(Taste::Worth)];

/// Packs `left` (items of each class of the part) into new bins, indices of the part. `values`
/// is what an item of each class is worth. All items are packed, however little work is left.
pub(super) fn pack(filler: &mut Filler<'_>, left: &[u32], values: &[f64], rules: Rules, work: &mut Work) -> Vec<Pattern> {
    let part = filler.part();
    let mut left = left.to_vec();
    work.spend(left.len() as u64 / 2);
    let mut order: Vec<u32> = (0..part::index(left.len())).filter(|&c| left[c as usize] > 0).collect();
    order.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]).then(a.cmp(&b)));
    // Kinds not tried yet come before the others, the most promising first.
    let mut tried: Vec<(f64, usize)> = filler.guide().promise.iter().map(|promise| -promise).zip(0..).collect();
    let mut out = Vec::new();
    let total: f64 = order.iter().map(|&c| f64::from(left[c as usize]) * values[c as usize]).sum();
    let mut packed = 0.0;
    while !order.is_empty() {
        let before = filler.work;
        let share = allowance(work.0, out.len(), total, packed);
        let Some(mut pattern) = open(filler, &order, &left, values, &mut tried, rules, share) else { break };
        pattern.times = pattern.items.iter().map(|&(c, n)| left[c as usize] / n).min().unwrap_or(1).max(1);
        for &(c, n) in &pattern.items {
            left[c as usize] -= n * pattern.times;
            packed += values[c as usize] * f64::from(n * pattern.times);
        }
        order.retain(|&c| left[c as usize] > 0);
        // Sorting kinds, looking for the cheapest and closing classes cost too.
        work.spend(filler.work - before + 6 * part.kinds.len() as u64 + order.len() as u64 + 200);
        if let Some(kind) = part.cheapest(&pattern.items) {
            pattern.kind = part::index(kind);
        }
        pattern.items.sort_unstable();
        out.push(pattern);
    }
    out
}

/// Raises the values of the classes whose bins cost more than their content is worth, by `rate`
/// of what is missing: the next packing takes them earlier.
pub(super) fn learn(part: &Part, guide: &[f64], values: &mut [f64], patterns: &[Pattern], rate: f64) {
    for bin in patterns {
        let worth: f64 = bin.items.iter().map(|&(c, n)| guide[c as usize] * f64::from(n)).sum();
        let lack = (part.rank[bin.kind as usize] as f64 / worth.max(1e-9) - 1.0).clamp(0.0, 1.0);
        for &(c, n) in &bin.items {
            let c = c as usize;
            values[c] += rate * lack * guide[c] * f64::from(n * bin.times) / f64::from(part.count[c]);
        }
    }
}

/// The work that the next opening may take: what is left, over the openings to come if they pack
/// as much as those before.
fn allowance(left: u64, openings: usize, total: f64, packed: f64) -> u64 {
    let to_come = if packed > 0.0 { (openings as f64 * (total - packed) / packed).max(4.0) } else { 16.0 };
    (left as f64 / to_come) as u64
}

/// The best bin for what is left, `times` still open.
fn open(
    filler: &mut Filler<'_>,
    order: &[u32],
    left: &[u32],
    values: &[f64],
    tried: &mut [(f64, usize)],
    rules: Rules,
    share: u64,
) -> Option<Pattern> {
    let step = order.len().div_ceil((share / 250).clamp(LEAST_SAMPLE, SAMPLE) as usize);
    let rules = if share < SCARCE { &rules[..1] } else { rules };
    let sample: Vec<u32> = order.iter().copied().step_by(step).collect();
    let limit = filler.work + share;
    let mut best: Option<(f64, Pattern)> = None;
    tried.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (at, slot) in tried.iter_mut().enumerate() {
        if at >= LEAST_KINDS && filler.work > limit && best.is_some() {
            break;
        }
        slot.0 = f64::INFINITY;
        for rule in rules {
            filler.start(slot.1);
            match *rule {
                Some(taste) => filler.by_direction(&sample, left, values, taste),
                None => filler.in_order(&sample, left),
            }
            let value: f64 = filler.items.iter().map(|&(c, n)| values[c as usize] * f64::from(n)).sum();
            if filler.items.is_empty() {
                break;
            }
            let ratio = (filler.rank() as f64 + 1e-6) / value.max(1e-9);
            slot.0 = slot.0.min(ratio);
            if best.as_ref().is_none_or(|(b, _)| ratio < *b) {
                best = Some((ratio, Pattern { kind: part::index(slot.1), items: filler.items.clone(), times: 1 }));
            }
        }
    }
    let (_, mut pattern) = best?;
    if step > 1 {
        filler.start(pattern.kind as usize);
        pattern.items.iter().for_each(|&(c, n)| filler.put(c as usize, n));
        filler.in_order(order, left);
        pattern.items.clone_from(&filler.items);
    }
    Some(pattern)
}
