//! Repair: the bins that cost most beyond the worth of their content are emptied, a few at a
//! time, and their items packed anew.

use super::Pattern;
use super::bound::Guide;
use super::columns::rank;
use super::duals;
use super::fill::Work;
use super::part::Part;

/// Bins emptied at a time, in turn.
const SIZES: [usize; 5] = [2, 3, 5, 8, 4];
/// Attempts without success, for each bin, after which no more is expected.
const PATIENCE: usize = 6;

/// A packing of the same items that is not dearer.
pub(super) fn repair(part: &Part, guide: &Guide, patterns: Vec<Pattern>, work: &mut Work) -> Vec<Pattern> {
    let mut bins = patterns;
    let mut failed = 0;
    let mut turn = 0usize;
    while !work.done() && bins.len() > 1 && failed < PATIENCE * bins.len().max(8) {
        bins.sort_by(|a, b| excess(part, guide, b).total_cmp(&excess(part, guide, a)).then_with(|| a.items.cmp(&b.items)));
        let chosen = choose(bins.len(), turn);
        let old: i64 = chosen.iter().map(|&i| part.rank[bins[i].kind as usize]).sum();
        let mut left = vec![0u32; part.classes.len()];
        for &i in &chosen {
            bins[i].items.iter().for_each(|&(c, n)| left[c as usize] += n);
        }
        let rules = if turn.is_multiple_of(2) { duals::BY_WORTH } else { duals::BY_SIZE };
        let mut share = Work(work.0.min(400_000));
        let before = share.0;
        let new = duals::pack(part, guide, &left, &guide.values, rules, &mut share);
        work.spend((before - share.0).max(1));
        turn += 1;
        failed += 1;
        if rank(part, &new) < old {
            failed = 0;
            replace(&mut bins, &chosen, new);
        }
    }
    bins
}

/// What a bin costs beyond the worth of its content, by its rank.
fn excess(part: &Part, guide: &Guide, bin: &Pattern) -> f64 {
    let worth: f64 = bin.items.iter().map(|&(c, n)| guide.values[c as usize] * f64::from(n)).sum();
    part.rank[bin.kind as usize] as f64 - worth
}

/// Distinct places in the order of excess: a bad one and companions, others every turn.
fn choose(bins: usize, turn: usize) -> Vec<usize> {
    let size = SIZES[turn % SIZES.len()].min(bins);
    let round = turn / SIZES.len();
    let worst = round % bins.div_ceil(2);
    let stride = 1 + round / bins.div_ceil(2);
    let mut out = vec![worst];
    let mut at = worst;
    while out.len() < size {
        at = (at + stride) % bins;
        while out.contains(&at) {
            at = (at + 1) % bins;
        }
        out.push(at);
    }
    out
}

/// One bin of each chosen pattern makes room for the new ones.
fn replace(bins: &mut Vec<Pattern>, chosen: &[usize], new: Vec<Pattern>) {
    for &i in chosen {
        bins[i].times -= 1;
    }
    bins.retain(|b| b.times > 0);
    for pattern in new {
        match bins.iter_mut().find(|b| b.kind == pattern.kind && b.items == pattern.items) {
            Some(same) => same.times += pattern.times,
            None => bins.push(pattern),
        }
    }
}
