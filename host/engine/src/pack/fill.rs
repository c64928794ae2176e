//! Filling one bin: what has been put in, what room is left, and rules for what comes next.

use super::bound::Guide;
use super::part::{self, Part};

/// What the packers may still do, in elementary operations. A function of the input only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work(pub u64);

impl Work {
    /// Takes `n` operations off.
    pub fn spend(&mut self, n: u64) {
        self.0 = self.0.saturating_sub(n);
    }

    /// Whether nothing is left.
    pub fn done(&self) -> bool {
        self.0 == 0
    }
}

/// How strongly a rule prefers big items over those that lie in the direction of the room left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taste {
    /// Direction only.
    Aligned,
    /// Both.
    Mixed,
    /// The dot product of demand and room.
    Big,
    /// Worth for the scarcity of what it takes.
    Worth,
}

/// A bin that is being filled.
#[derive(Debug)]
pub(super) struct Filler<'a> {
    part: &'a Part,
    guide: &'a Guide,
    float: Vec<f64>,
    kind: usize,
    room: Vec<i64>,
    blocked: Vec<u32>,
    stamp: u32,
    have: Vec<u32>,
    open: Vec<u32>,
    /// Class and number of items, in the order they were put in.
    pub items: Vec<(u32, u32)>,
    /// Classes looked at so far.
    pub work: u64,
}

impl<'a> Filler<'a> {
    /// A filler for bins of this part.
    pub fn new(part: &'a Part, guide: &'a Guide) -> Self {
        Self {
            part,
            guide,
            float: part.demand.iter().map(|d| *d as f64).collect(),
            kind: 0,
            room: vec![0; part.width],
            blocked: vec![0; part.classes.len()],
            stamp: 0,
            have: vec![0; part.classes.len()],
            open: Vec::new(),
            items: Vec::new(),
            work: 0,
        }
    }

    /// The part that is packed.
    pub fn part(&self) -> &'a Part {
        self.part
    }

    /// The prices that guide the packing.
    pub fn guide(&self) -> &'a Guide {
        self.guide
    }

    /// Starts an empty bin of kind `kind`.
    pub fn start(&mut self, kind: usize) {
        self.kind = kind;
        self.room.clear();
        self.room.extend_from_slice(self.part.capacity(kind));
        for (c, _) in self.items.drain(..) {
            self.have[c as usize] = 0;
        }
        self.stamp += 1;
    }

    /// The rank of the bin.
    pub fn rank(&self) -> i64 {
        self.part.rank[self.kind]
    }

    /// How many items of class `c` can still be put in, at most `most`.
    pub fn fits(&self, c: usize, most: u32) -> u32 {
        if most == 0 || self.blocked[c] == self.stamp || !self.part.allows(self.kind, c) {
            return 0;
        }
        part::fit(self.part.demand(c), &self.room, if self.part.alone[c] { 1 } else { most })
    }

    /// Puts `n` items of class `c` in, which must fit.
    pub fn put(&mut self, c: usize, n: u32) {
        for (room, d) in self.room.iter_mut().zip(self.part.demand(c)) {
            *room -= d * i64::from(n);
        }
        let class = part::index(c);
        if self.have[c] == 0 {
            self.items.push((class, n));
            for &other in &self.part.conflicts[c] {
                self.blocked[other as usize] = self.stamp;
            }
        } else if let Some((_, have)) = self.items.iter_mut().find(|(other, _)| *other == class) {
            *have += n;
        }
        self.have[c] += n;
        if self.part.alone[c] {
            self.blocked[c] = self.stamp;
        }
    }

    /// Puts in as many as fit of each class in this order.
    pub fn in_order(&mut self, order: &[u32], left: &[u32]) {
        self.work += order.len() as u64;
        for &class in order {
            let c = class as usize;
            if left[c] == 0 {
                continue;
            }
            let n = self.fits(c, left[c]);
            if n > 0 {
                let n = n.min(left[c] - self.have[c]);
                if n > 0 {
                    self.put(c, n);
                }
            }
        }
    }

    /// Puts in, again and again, some of the class that suits the room left best.
    pub fn by_direction(&mut self, order: &[u32], left: &[u32], values: &[f64], taste: Taste) {
        let scale: Vec<f64> = self.part.capacity(self.kind).iter().map(|c| if *c > 0 { 1.0 / *c as f64 } else { 0.0 }).collect();
        let mut toward = vec![0.0; self.part.width];
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        open.extend(order.iter().copied().filter(|&c| self.fits(c as usize, left[c as usize]) > 0));
        self.work += order.len() as u64 + 12;
        loop {
            self.work += open.len() as u64 + 2;
            self.toward(&scale, taste, &mut toward);
            let Some(c) = self.best(&mut open, left, values, taste, &scale, &toward) else { break };
            let n = self.fits(c, left[c] - self.have[c]);
            if n > 0 {
                self.put(c, n.div_ceil(4));
            }
        }
        self.open = open;
    }

    /// The class with the highest score; classes that do not fit any more leave `open`.
    fn best(&self, open: &mut Vec<u32>, left: &[u32], values: &[f64], taste: Taste, scale: &[f64], toward: &[f64]) -> Option<usize> {
        let w = self.part.width;
        let mut best = None;
        let mut top = -1.0;
        let mut kept = 0;
        for at in 0..open.len() {
            let class = open[at];
            let c = class as usize;
            let room = self.part.demand(c).iter().zip(&self.room).all(|(d, r)| d <= r);
            if !room || self.have[c] >= left[c] || self.blocked[c] == self.stamp {
                continue;
            }
            open[kept] = class;
            kept += 1;
            let d = &self.float[c * w..(c + 1) * w];
            let dot: f64 = d.iter().zip(toward).map(|(d, t)| d * t).sum();
            let square = || d.iter().zip(scale).map(|(d, s)| d * d * s * s).sum::<f64>().max(1e-30);
            let score = match taste {
                Taste::Big => dot,
                Taste::Mixed => dot * dot / square().sqrt(),
                Taste::Aligned => dot * dot / square(),
                Taste::Worth => values[c] / dot.max(1e-30),
            };
            if score > top {
                (top, best) = (score, Some(c));
            }
        }
        open.truncate(kept);
        best
    }

    /// What a unit of each resource weighs: the room left, or its scarcity.
    fn toward(&self, scale: &[f64], taste: Taste, out: &mut [f64]) {
        let w = self.part.width;
        let set = self.part.set[self.kind] as usize;
        let rank = self.part.rank[self.kind] as f64;
        let prices = self.guide.prices[set * w..(set + 1) * w].iter();
        for (((out, room), s), price) in out.iter_mut().zip(&self.room).zip(scale).zip(prices) {
            *out = match taste {
                Taste::Worth => (price / s.max(1e-30) + 0.01 * rank) / (*room as f64 + 0.02 / s.max(1e-30)).max(1e-30),
                Taste::Big | Taste::Mixed | Taste::Aligned => *room as f64 * s * s,
            };
        }
    }
}
