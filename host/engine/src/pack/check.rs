//! Whether a packing keeps to the rules, found out independently of those who packed.

use super::{Packing, Pattern, Problem};

/// Checks capacity, compatibility, anti-affinity, conflicts and that every item is packed or
/// named as unplaced exactly once.
///
/// # Errors
///
/// The first rule that is broken, as a sentence.
pub fn check(problem: &Problem, packing: &Packing) -> Result<(), String> {
    let mut seen = vec![0u64; problem.classes.len()];
    for (at, pattern) in packing.patterns.iter().enumerate() {
        one(problem, pattern).map_err(|why| format!("check of pattern {at}: {why}"))?;
        for &(c, n) in &pattern.items {
            seen[c as usize] += u64::from(n) * u64::from(pattern.times);
        }
    }
    for &(c, n) in &packing.unplaced {
        let Some(count) = seen.get_mut(c as usize) else { return Err(format!("check of unplaced items: no class {c}")) };
        *count += u64::from(n);
    }
    for (c, class) in problem.classes.iter().enumerate() {
        if seen[c] != u64::from(class.count) {
            return Err(format!("check of class {c}: {} of {} items are accounted for", seen[c], class.count));
        }
    }
    Ok(())
}

fn one(problem: &Problem, pattern: &Pattern) -> Result<(), String> {
    let kind = problem.kinds.get(pattern.kind as usize).ok_or_else(|| format!("no kind {}", pattern.kind))?;
    if pattern.times == 0 || pattern.items.is_empty() || pattern.items.iter().any(|(_, n)| *n == 0) {
        return Err("it is empty".to_owned());
    }
    if !pattern.items.is_sorted_by(|a, b| a.0 < b.0) {
        return Err("its classes do not ascend".to_owned());
    }
    let mut sum = vec![0i128; problem.width];
    for &(c, n) in &pattern.items {
        let class = problem.classes.get(c as usize).ok_or_else(|| format!("no class {c}"))?;
        if class.kinds.binary_search(&pattern.kind).is_err() {
            return Err(format!("class {c} may not be on kind {}", pattern.kind));
        }
        if class.alone && n > 1 {
            return Err(format!("{n} items of class {c}, which keeps to one a bin"));
        }
        if let Some((other, _)) = pattern.items.iter().find(|(other, _)| class.conflicts.binary_search(other).is_ok()) {
            return Err(format!("class {c} shares it with class {other}"));
        }
        for (total, d) in sum.iter_mut().zip(&class.demand) {
            *total += i128::from(*d) * i128::from(n);
        }
    }
    match sum.iter().zip(&kind.capacity).position(|(s, room)| *s > i128::from(*room)) {
        Some(r) => Err(format!("resource {r} takes {} of {}", sum[r], kind.capacity[r])),
        None => Ok(()),
    }
}
