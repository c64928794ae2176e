//! The exact side of pricing: the most that a bin can hold, by branch and bound. It proves that
//! no better bin was missed, which turns the pattern program's values into a lower bound.

use super::part::{self, Part};

/// The most valuable content of a kind of bin.
#[derive(Debug, Clone)]
pub(super) struct Most {
    /// No content is worth more.
    pub worth: f64,
    /// The best content found that is worth more than the bin's rank, ascending by class.
    pub items: Option<Vec<(u32, u32)>>,
}

/// What the search knows: `sizes` are prices at which no bin holds more than `budget`.
struct Search<'a> {
    part: &'a Part,
    kind: usize,
    values: &'a [f64],
    sizes: &'a [f64],
    order: &'a [u32],
    nodes: &'a mut u64,
    room: Vec<i64>,
    taken: Vec<(u32, u32)>,
    best: f64,
    items: Option<Vec<(u32, u32)>>,
}

/// Classes by worth for size. `None` when something of worth has no size.
pub(super) fn order(values: &[f64], sizes: &[f64]) -> Option<Vec<u32>> {
    let mut order: Vec<u32> = (0..part::index(values.len())).filter(|&c| values[c as usize] > 0.0).collect();
    if order.iter().any(|&c| sizes[c as usize] <= 0.0) {
        return None;
    }
    let ratio = |c: u32| values[c as usize] / sizes[c as usize];
    order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)).then(a.cmp(&b)));
    Some(order)
}

/// The most that a bin of kind `kind` can be worth. Contents are only told apart where they are
/// worth more than its rank. When `nodes` runs out the answer is an upper bound.
pub(super) fn most(part: &Part, kind: usize, budget: f64, values: &[f64], sizes: &[f64], order: &[u32], nodes: &mut u64) -> Most {
    let rank = part.rank[kind] as f64;
    let usable: Vec<u32> = order.iter().copied().filter(|&c| part.fit(kind, c as usize) > 0).collect();
    let Some(&first) = usable.first() else { return Most { worth: rank, items: None } };
    let room = part.capacity(kind).to_vec();
    let mut search =
        Search { part, kind, values, sizes, order: &usable, nodes, room, taken: Vec::new(), best: rank * (1.0 + 1e-7), items: None };
    let whole = search.branch(0, 0.0, budget * (1.0 + 1e-9));
    let (best, items) = (search.best, search.items);
    let loose = budget * (1.0 + 1e-9) * values[first as usize] / sizes[first as usize];
    Most { worth: if whole { best } else { loose.max(best) }, items }
}

impl Search<'_> {
    /// Tries all contents from the `at`th class on. `false` when the nodes ran out.
    fn branch(&mut self, at: usize, worth: f64, budget: f64) -> bool {
        if worth > self.best {
            self.best = worth;
            let mut items = self.taken.clone();
            items.sort_unstable();
            self.items = Some(items);
        }
        let Some(&class) = self.order.get(at) else { return true };
        let c = class as usize;
        if worth + budget.max(0.0) * self.values[c] / self.sizes[c] <= self.best {
            return true;
        }
        if *self.nodes == 0 {
            return false;
        }
        *self.nodes -= 1;
        let apart = self.taken.iter().any(|(other, _)| self.part.conflicts[c].binary_search(other).is_ok());
        let most = if apart { 0 } else { part::fit(self.part.demand(c), &self.room, self.part.fit(self.kind, c)) };
        for n in (0..=most).rev() {
            self.take(c, i64::from(n));
            if n > 0 {
                self.taken.push((class, n));
            }
            let whole = self.branch(at + 1, worth + self.values[c] * f64::from(n), budget - self.sizes[c] * f64::from(n));
            if n > 0 {
                self.taken.pop();
            }
            self.take(c, -i64::from(n));
            if !whole {
                return false;
            }
        }
        true
    }

    fn take(&mut self, c: usize, n: i64) {
        for (room, d) in self.room.iter_mut().zip(self.part.demand(c)) {
            *room -= d * n;
        }
    }
}
