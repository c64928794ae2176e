//! Repair: the bins that cost most beyond the worth of their content are emptied, a few at a
//! time, and their items packed anew.

use super::Pattern;
use super::bound::Guide;
use super::columns::rank;
use super::duals;
use super::fill::{Filler, Work};
use super::part::Part;

/// Bins emptied at a time, in turn.
const SIZES: [usize; 5] = [2, 3, 5, 8, 4];
/// Attempts without success, for each bin, after which no more is expected.
const PATIENCE: usize = 6;
/// Operations that one attempt may take.
const ATTEMPT: u64 = 400_000;

/// Bins of one content, and what one costs beyond the worth of its content.
struct Slot {
    excess: f64,
    bin: Pattern,
}

/// A packing of the same items that is not dearer.
pub(super) fn repair(part: &Part, guide: &Guide, patterns: Vec<Pattern>, work: &mut Work) -> Vec<Pattern> {
    let mut filler = Filler::new(part, guide);
    let mut slots: Vec<Slot> = patterns.into_iter().map(|bin| slot(part, guide, bin)).collect();
    sort(&mut slots);
    let (mut failed, mut turn) = (0, 0);
    let mut left = vec![0u32; part.classes.len()];
    while !work.done() && slots.len() > 1 && failed < PATIENCE * slots.len().max(8) {
        let chosen = choose(slots.len(), turn);
        let old: i64 = chosen.iter().map(|&i| part.rank[slots[i].bin.kind as usize]).sum();
        left.fill(0);
        for &i in &chosen {
            slots[i].bin.items.iter().for_each(|&(c, n)| left[c as usize] += n);
        }
        let rules = if turn % 2 == 0 { duals::BY_WORTH } else { duals::BY_SIZE };
        let mut share = Work(work.0.min(ATTEMPT));
        let before = share.0;
        let new = duals::pack(&mut filler, &left, &guide.values, rules, &mut share);
        work.spend((before - share.0).max(1));
        turn += 1;
        failed += 1;
        if rank(part, &new) < old {
            failed = 0;
            chosen.iter().for_each(|&i| slots[i].bin.times -= 1);
            slots.retain(|s| s.bin.times > 0);
            slots.extend(new.into_iter().map(|bin| slot(part, guide, bin)));
            sort(&mut slots);
            work.spend(slots.len() as u64 * 8);
        }
    }
    slots.into_iter().map(|s| s.bin).collect()
}

/// A pattern with its excess.
fn slot(part: &Part, guide: &Guide, bin: Pattern) -> Slot {
    let worth: f64 = bin.items.iter().map(|&(c, n)| guide.values[c as usize] * f64::from(n)).sum();
    Slot { excess: part.rank[bin.kind as usize] as f64 - worth, bin }
}

/// The worst first; equal bins become one slot.
fn sort(slots: &mut Vec<Slot>) {
    slots.sort_by(|a, b| b.excess.total_cmp(&a.excess).then_with(|| (a.bin.kind, &a.bin.items).cmp(&(b.bin.kind, &b.bin.items))));
    slots.dedup_by(|next, kept| {
        let same = next.bin.kind == kept.bin.kind && next.bin.items == kept.bin.items;
        if same {
            kept.bin.times += next.bin.times;
        }
        same
    });
}

/// Distinct places in the order of excess: a bad one and companions, others every turn.
fn choose(bins: usize, turn: usize) -> Vec<usize> {
    let size = SIZES[turn % SIZES.len()].min(bins);
    let round = turn / SIZES.len();
    let half = bins.div_ceil(2);
    let stride = 1 + round / half;
    let mut at = round % half;
    let mut out = vec![at];
    while out.len() < size {
        at = (at + stride) % bins;
        while out.contains(&at) {
            at = (at + 1) % bins;
        }
        out.push(at);
    }
    out
}
