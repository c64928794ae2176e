//! Pricing: bins whose content is worth more than they cost, found by filling every kind by
//! several rules and by exchanging items of the best.

use super::fill::{Filler, Taste};
use super::part::{self, Part};

/// A bin that may be bought: its kind, its content, and what the content is worth for its rank.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    /// Index of the kind.
    pub kind: usize,
    /// Classes and numbers, ascending by class.
    pub items: Vec<(u32, u32)>,
    /// Worth of the content by rank.
    pub gain: f64,
}

/// The best bin of every kind in `kinds` for items worth `values`, highest gain first. `guide`
/// is what the items would be worth by size alone.
pub(super) fn price(part: &Part, filler: &mut Filler<'_>, kinds: &[usize], left: &[u32], values: &[f64], guide: &[f64]) -> Vec<Offer> {
    let orders = orders(left, values, guide);
    let mut out: Vec<Offer> = Vec::new();
    for &k in kinds {
        let mut best: Option<Offer> = None;
        for rule in 0..4 {
            filler.start(k);
            match rule {
                0 | 1 => filler.in_order(&orders[rule], left),
                2 => filler.by_direction(&orders[0], left, values, Taste::Worth),
                _ => filler.by_direction(&orders[0], left, values, Taste::Mixed),
            }
            keep(part, filler, k, values, &mut best);
        }
        out.extend(best);
    }
    out.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.kind.cmp(&b.kind)));
    out
}

/// Good bins around class `c`, by the guide alone: it goes in first, what suits the room follows.
pub(super) fn around(filler: &mut Filler<'_>, part: &Part, kinds: &[usize], c: usize, left: &[u32], guide: &[f64]) -> Vec<Offer> {
    let order: Vec<u32> = (0..part::index(left.len())).filter(|&c| left[c as usize] > 0).collect();
    let mut out: Vec<Offer> = Vec::new();
    for &k in kinds {
        let mut best = None;
        filler.start(k);
        let most = filler.fits(c, left[c]);
        for first in [1, most.div_ceil(3)] {
            if most == 0 || (first == 1 && best.is_some()) {
                continue;
            }
            filler.start(k);
            filler.put(c, first);
            filler.by_direction(&order, left, guide, Taste::Worth);
            keep(part, filler, k, guide, &mut best);
        }
        out.extend(best);
    }
    out.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.kind.cmp(&b.kind)));
    out
}

/// Exchanges items of an offer: every class in turn gives up some items, and what is best by
/// density and by scarcity takes their room.
pub(super) fn exchange(part: &Part, filler: &mut Filler<'_>, offer: &Offer, left: &[u32], values: &[f64], guide: &[f64]) -> Offer {
    let orders = orders(left, values, guide);
    let mut best = Some(offer.clone());
    for (at, &(out, n)) in offer.items.iter().enumerate() {
        for less in [1, n] {
            let mut kept = left.to_vec();
            kept[out as usize] = n - less;
            for rule in 0..3 {
                filler.start(offer.kind);
                for (other, &(c, have)) in offer.items.iter().enumerate() {
                    let have = if other == at { have - less } else { have };
                    if have > 0 {
                        filler.put(c as usize, have);
                    }
                }
                match rule {
                    0 | 1 => filler.in_order(&orders[rule], &kept),
                    _ => filler.by_direction(&orders[0], &kept, values, Taste::Worth),
                }
                keep(part, filler, offer.kind, values, &mut best);
            }
            if n == 1 {
                break;
            }
        }
    }
    best.unwrap_or_else(|| offer.clone())
}

/// The open classes by worth for size, and by worth.
fn orders(left: &[u32], values: &[f64], guide: &[f64]) -> [Vec<u32>; 2] {
    let open: Vec<u32> = (0..part::index(left.len())).filter(|&c| left[c as usize] > 0).collect();
    let density = |c: u32| values[c as usize] / guide[c as usize].max(1e-9);
    let (mut first, mut second) = (open.clone(), open);
    second.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize]).then(a.cmp(&b)));
    first.sort_by(|&a, &b| density(b).total_cmp(&density(a)).then(values[b as usize].total_cmp(&values[a as usize])).then(a.cmp(&b)));
    [first, second]
}

/// Takes what is in the filler when it is the best so far.
fn keep(part: &Part, filler: &Filler<'_>, kind: usize, values: &[f64], best: &mut Option<Offer>) {
    let worth: f64 = filler.items.iter().map(|&(c, n)| values[c as usize] * f64::from(n)).sum();
    let gain = worth / (part.rank[kind] as f64).max(1e-3);
    if !filler.items.is_empty() && best.as_ref().is_none_or(|b| gain > b.gain * (1.0 + 1e-9)) {
        let mut items = filler.items.clone();
        items.sort_unstable();
        *best = Some(Offer { kind, items, gain });
    }
}
