//! What is known before the first pod has a place: which crowds make a difference, the least that is still to come, and
//! who may have to wait for others.

use super::super::amounts::Amounts;
use super::super::classes::{Class, Run};
use super::super::topology::HOST;
use super::super::topology::asks::Aim;

/// How many pods of each counter on one claim make a difference to somebody.
pub(super) fn crowds(counters: usize, classes: &[Class<'_>]) -> Vec<u32> {
    let mut crowds = vec![0; counters];
    for level in classes.iter().flat_map(|class| &class.company.levels) {
        for rule in level.host.iter().chain(&level.keyed) {
            let most = match rule.kind {
                Aim::Spread { skew, .. } if rule.key == HOST => skew + 1,
                Aim::Spread { .. } => 0,
                Aim::Near | Aim::Apart => 1,
            };
            let crowd = &mut crowds[rule.counter as usize];
            *crowd = most.max(*crowd);
        }
    }
    crowds
}

/// For each run the least in each dimension that it and what comes after it ask for.
pub(super) fn least(classes: &[Class<'_>], runs: &[Run]) -> Vec<Amounts> {
    let mut least: Option<Amounts> = None;
    // These may be tried again in the end.
    for class in runs.iter().map(|run| &classes[run.class]).filter(|class| waits(class)) {
        lower(&mut least, &class.need);
    }
    let mut all: Vec<Amounts> = Vec::with_capacity(runs.len());
    for run in runs.iter().rev() {
        lower(&mut least, &classes[run.class].need);
        all.push(least.clone().unwrap_or_default());
    }
    all.reverse();
    all
}

fn lower(least: &mut Option<Amounts>, need: &Amounts) {
    match least {
        None => *least = Some(need.clone()),
        Some(least) => least.iter_mut().zip(need).for_each(|(l, n)| *l = (*l).min(*n)),
    }
}

/// Whether pods of a class that found no place may find one once others have theirs.
pub(super) fn waits(class: &Class<'_>) -> bool {
    class.company.levels.iter().any(|level| level.loosening().next().is_some())
}
