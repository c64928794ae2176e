//! Open claims in the order in which they are asked: fewest pods first, then by age, or by age alone. Sets of claims
//! are bit masks, so that a pod passes over those that are known to refuse it sixty-four at a time.

use super::greedy::OpenClaim;
use super::topology::asks::Aim;
use super::topology::class_rules::Level;
use super::topology::set::Set;
use super::topology::tally::{CounterId, Tally};
use super::topology::wishes::Wish;
use super::topology::{HOST, KeyId};

/// A set of claims or bins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask(Vec<u64>);

impl Mask {
    /// Sixty-four of them.
    pub(crate) fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// Takes one in.
    pub(crate) fn insert(&mut self, at: usize) {
        if self.0.len() <= at / 64 {
            self.0.resize(at / 64 + 1, 0);
        }
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Whether it is in it.
    pub(crate) fn holds(&self, at: usize) -> bool {
        self.word(at / 64) >> (at % 64) & 1 == 1
    }

    /// Leaves one out.
    fn remove(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }
}

/// A mask whose empty words are passed over.
#[derive(Debug, Clone, Default)]
struct Sparse {
    words: Mask,
    filled: Mask,
}

impl Sparse {
    fn insert(&mut self, at: usize) {
        self.words.insert(at);
        self.filled.insert(at / 64);
    }

    fn remove(&mut self, at: usize) {
        self.words.remove(at);
        if self.words.word(at / 64) == 0 {
            self.filled.remove(at / 64);
        }
    }

    /// The first word from this one on that holds any.
    fn next_word(&self, from: usize) -> Option<usize> {
        next(&self.filled, from)
    }

    /// The first member from this one on.
    fn next(&self, from: usize) -> Option<usize> {
        let here = self.words.word(from / 64) & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(from / 64 * 64 + here.trailing_zeros() as usize);
        }
        let word = self.next_word(from / 64 + 1)?;
        Some(word * 64 + self.words.word(word).trailing_zeros() as usize)
    }
}

fn next(mask: &Mask, from: usize) -> Option<usize> {
    let mut word = from / 64;
    let mut here = mask.word(word) & (u64::MAX << (from % 64));
    while here == 0 {
        word += 1;
        if word >= mask.0.len() {
            return None;
        }
        here = mask.0[word];
    }
    Some(word * 64 + here.trailing_zeros() as usize)
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    pods: usize,
    word: usize,
    rest: u64,
    started: bool,
}

/// The open claims.
#[derive(Debug, Default)]
pub(crate) struct Field {
    pub(crate) claims: Vec<OpenClaim>,
    /// Claims by number of pods, and the numbers that occur.
    by_pods: Vec<Sparse>,
    occupied: Sparse,
    /// By key and domain: claims that may come to be there; by key: claims that never have it.
    reach: Vec<Vec<Mask>>,
    without: Vec<Mask>,
    /// By counter: claims with more pods than the index; no more levels than somebody asks for.
    crowds: Vec<Vec<Mask>>,
    /// By level: claims that refuse it for good.
    refused: Vec<Mask>,
    /// Claims that have no room for anything that is still to come.
    closed: Mask,
    /// Whether they are asked by age alone.
    oldest_first: bool,
}

impl Field {
    /// An empty field for so many keys, counters with so many crowds each, and levels.
    pub(crate) fn new(domains: &[u32], crowds: &[u32], levels: usize, oldest_first: bool) -> Self {
        Self {
            oldest_first,
            reach: domains.iter().map(|count| vec![Mask::default(); *count as usize]).collect(),
            without: vec![Mask::default(); domains.len()],
            crowds: crowds.iter().map(|count| vec![Mask::default(); *count as usize]).collect(),
            refused: vec![Mask::default(); levels],
            ..Self::default()
        }
    }

    /// Adds a claim that has pods already.
    pub(crate) fn push(&mut self, claim: OpenClaim) -> usize {
        let (at, pods) = (self.claims.len(), claim.pods);
        self.claims.push(claim);
        self.enter(at, pods);
        at
    }

    fn enter(&mut self, at: usize, pods: usize) {
        let pods = if self.oldest_first { 0 } else { pods };
        if self.by_pods.len() <= pods {
            self.by_pods.resize_with(pods + 1, Sparse::default);
        }
        self.by_pods[pods].insert(at);
        self.occupied.insert(pods);
    }

    fn leave(&mut self, at: usize, pods: usize) {
        let pods = if self.oldest_first { 0 } else { pods };
        self.by_pods[pods].remove(at);
        if self.by_pods[pods].next_word(0).is_none() {
            self.occupied.remove(pods);
        }
    }

    /// A claim has more pods than `before`.
    pub(crate) fn moved(&mut self, at: usize, before: usize) {
        if !self.oldest_first && self.closed.word(at / 64) >> (at % 64) & 1 == 0 {
            self.leave(at, before);
            self.enter(at, self.claims[at].pods);
        }
    }

    /// Nothing that is still to come fits a claim.
    pub(crate) fn close(&mut self, at: usize) {
        self.leave(at, self.claims[at].pods);
        self.closed.insert(at);
    }

    /// A claim may come to be in these domains of a key, and no longer in others.
    pub(crate) fn reaches(&mut self, at: usize, key: KeyId, before: Option<&Set>, after: &Set) {
        if key == HOST {
            return;
        }
        for domain in before.iter().flat_map(|before| before.iter()) {
            self.reach[key][domain as usize].remove(at);
        }
        after.iter().for_each(|domain| self.reach[key][domain as usize].insert(at));
        if after.is_empty() {
            self.without[key].insert(at);
        }
    }

    /// A claim has so many pods of a counter.
    pub(crate) fn crowd(&mut self, at: usize, counter: CounterId, before: u32, after: u32) {
        let crowds = &mut self.crowds[counter as usize];
        crowds.iter_mut().take(after as usize).skip(before as usize).for_each(|crowd| crowd.insert(at));
    }

    /// A claim will never take pods of a level.
    pub(crate) fn refuse(&mut self, at: usize, level: &Level) {
        self.refused[level.id as usize].insert(at);
    }

    /// The next claim that may take a pod of a level.
    pub(crate) fn next(&self, cursor: &mut Cursor, level: &Level, wishes: &[Wish], tally: &Tally) -> Option<usize> {
        loop {
            if cursor.rest != 0 {
                let at = cursor.word * 64 + cursor.rest.trailing_zeros() as usize;
                cursor.rest &= cursor.rest - 1;
                return Some(at);
            }
            let from = if cursor.started { cursor.word + 1 } else { 0 };
            cursor.started = true;
            let word = self.by_pods.get(cursor.pods).and_then(|bucket| bucket.next_word(from));
            if let Some(word) = word {
                cursor.word = word;
                cursor.rest = self.by_pods[cursor.pods].words.word(word) & self.willing(word, level, wishes, tally);
            } else {
                cursor.pods = self.occupied.next(cursor.pods + 1)?;
                cursor.started = false;
            }
        }
    }

    /// Which of sixty-four claims are not known to refuse.
    fn willing(&self, word: usize, level: &Level, wishes: &[Wish], tally: &Tally) -> u64 {
        let mut mask = !self.refused[level.id as usize].word(word);
        for rule in &level.host {
            let crowd = |least: u32| self.crowds[rule.counter as usize].get(least as usize).map_or(0, |mask| mask.word(word));
            match rule.kind {
                Aim::Apart => mask &= !crowd(0),
                Aim::Spread { skew, .. } => mask &= !crowd(skew - u32::from(rule.me)),
                Aim::Near if tally.0[rule.counter as usize].total > 0 => mask &= crowd(0),
                Aim::Near => {}
            }
        }
        for wish in wishes {
            let mut there = if wish.must { 0 } else { self.without[wish.key].word(word) };
            for domain in &wish.order {
                there |= self.reach[wish.key][*domain as usize].word(word);
            }
            mask &= there;
            if let Some(counter) = wish.follow {
                mask &= self.crowds[counter as usize].first().map_or(0, |crowd| crowd.word(word));
            }
        }
        mask
    }
}
