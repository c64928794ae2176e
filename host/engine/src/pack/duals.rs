//! The dual-guided greedy: with a price on every item, open again and again the bin that costs
//! least for each micro of value packed. Equal bins are opened at once, so the work depends on
//! classes and kinds, not on items.

use super::Pattern;
use super::bound::Guide;
use super::fill::{Filler, Taste, Work};
use super::part::{self, Part};

/// At most this many classes are weighed against each other by direction.
const SAMPLE: usize = 160;
/// At least this many kinds are tried for each opening.
const LEAST_KINDS: usize = 6;

/// Ways to fill a bin that one run of the greedy chooses from; `None` is by worth, dearest first.
pub(super) type Rules = &'static [Option<Taste>];

/// Fills by size and direction: uses up what is hard to place early.
pub(super) const BY_SIZE: Rules = &[None, Some(Taste::Big), Some(Taste::Mixed), Some(Taste::Aligned)];
/// Fills by worth for scarcity: the tightest bins first.
pub(super) const BY_WORTH: Rules = &[None, Some(Taste::Worth)];

/// Packs `left` (items of each class of the part) into new bins, indices of the part. `values`
/// is what an item of each class is worth. All items are packed, however little work is left.
pub(super) fn pack(part: &Part, guide: &Guide, left: &[u32], values: &[f64], rules: Rules, work: &mut Work) -> Vec<Pattern> {
    let mut left = left.to_vec();
    let mut order: Vec<u32> = (0..part::index(left.len())).filter(|&c| left[c as usize] > 0).collect();
    order.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]).then(a.cmp(&b)));
    let mut tried: Vec<(f64, usize)> = (0..part.kinds.len()).map(|k| (0.0, k)).collect();
    let mut filler = Filler::new(part, guide);
    let mut out = Vec::new();
    let total: f64 = left.iter().zip(values).map(|(n, v)| f64::from(*n) * v).sum();
    let budget = work.0;
    let mut packed = 0.0;
    while !order.is_empty() {
        let before = filler.work;
        let share = allowance(budget, work.0, total, packed);
        let Some(mut pattern) = open(&mut filler, &order, &left, values, &mut tried, rules, share) else { break };
        pattern.times = pattern.items.iter().map(|&(c, n)| left[c as usize] / n).min().unwrap_or(1).max(1);
        for &(c, n) in &pattern.items {
            left[c as usize] -= n * pattern.times;
            packed += values[c as usize] * f64::from(n * pattern.times);
        }
        order.retain(|&c| left[c as usize] > 0);
        work.spend(filler.work - before);
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

/// The work that the next opening may take, from the share of the value that is packed by now.
fn allowance(budget: u64, left: u64, total: f64, packed: f64) -> u64 {
    let rest = if total > 0.0 { (1.0 - packed / total).max(0.0) } else { 1.0 };
    let behind = (budget as f64 * rest).min(left as f64);
    // An opening packs a small share of what is there; when ahead of plan it may cost more.
    ((left as f64 - behind * 0.9).max(0.0) / 4.0) as u64
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
    let step = order.len().div_ceil(SAMPLE);
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
            if let Some(taste) = *rule {
                filler.by_direction(&sample, left, values, taste);
            }
            if rule.is_none() || step > 1 {
                filler.in_order(order, left);
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
    best.map(|(_, pattern)| pattern)
}
