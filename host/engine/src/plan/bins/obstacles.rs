//! What keeps a class from the nodes there are, counted by rule.

use std::collections::BTreeMap;

use super::{Bin, Bins, Face, certain};
use crate::plan::amounts::Dimensions;
use crate::plan::classes::Class;
use crate::plan::states::States;
use crate::report::Obstacle;
use whittle_model::Requirements;

/// The first rule that keeps a class from a bin, in its shortest form: bins are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Taint,
    Labels,
    Port,
    /// The dimensions, as bits.
    Resources(u64),
    Pods,
}

impl Bins<'_> {
    /// What keeps pods of `class` from the bins: how many of them by which rule first, the most frequent first.
    pub(crate) fn obstacles(&self, class: &Class<'_>, states: &States, dimensions: &Dimensions) -> Vec<(usize, Obstacle)> {
        let mut counts: BTreeMap<Block, usize> = BTreeMap::new();
        for bin in &self.all {
            *counts.entry(bin.block(class, states)).or_default() += 1;
        }
        let named = |block| match block {
            Block::Taint => Obstacle::Taint,
            Block::Labels => Obstacle::Labels,
            Block::Port => Obstacle::Port,
            Block::Pods => Obstacle::Pods,
            Block::Resources(bits) => {
                let names = dimensions.names().iter().enumerate().filter(|(at, _)| bits >> (at % 64) & 1 == 1);
                Obstacle::Resources(names.map(|(_, name)| name.clone()).collect())
            }
        };
        let mut all: Vec<(usize, Obstacle)> = counts.into_iter().map(|(block, count)| (count, named(block))).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        all
    }
}

impl Bin<'_> {
    fn block(&self, class: &Class<'_>, states: &States) -> Block {
        if self.taints.iter().any(|t| t.repels() && !t.tolerated_by(class.tolerations)) {
            return Block::Taint;
        }
        if !class.profiles.iter().any(|profile| self.suits(states.wanted(*profile))) {
            return Block::Labels;
        }
        if class.ports.takes.meets(&self.barred) {
            return Block::Port;
        }
        let need = class.need_beside(&self.volumes);
        let short = need.iter().zip(&self.free).enumerate().filter(|(_, (need, free))| **need > 0 && need > free);
        let bits = short.fold(0, |bits, (at, _)| bits | 1 << (at % 64));
        if bits == 0 { Block::Pods } else { Block::Resources(bits) }
    }

    /// Whether its labels are what is asked for.
    pub(super) fn suits(&self, wanted: &Requirements) -> bool {
        match self.face {
            Face::Labels(labels) => wanted.met_by(labels),
            Face::Requirements(have) => certain(have, wanted),
        }
    }
}
