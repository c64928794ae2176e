//! What offerings are worth in a plan: the list price, or what a pool's chain of policies answers.
//! Policies are asked in whole tables, once for each asker; a chain that prices by the mix is asked
//! again as nodes are settled.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use whittle_model::policy::{PricingWants, RoundColumn, RoundFacts, Table, Wants, Words};
use whittle_model::scorer::{ScorerFailure, Verdict};
use whittle_model::{Micros, Scorer, Timestamp, keys};

use super::askers::Askers;
use super::candidates;
use super::classes::Member;
use super::mix::Mix;
use super::tables::{PoolTable, Tables};
use crate::world::World;

/// A chain that prices by the mix is asked again about at most so many offerings of a node.
pub(crate) const ASKED_AGAIN: usize = 64;

/// What an offering is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) rank: Micros,
    pub(crate) cost: Micros,
}

/// What one asker may buy in a pool, and at what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// By offering; `None` where it is vetoed.
    pub(crate) prices: Arc<[Option<Price>]>,
    /// Vetoes by reason.
    pub(crate) vetoes: BTreeMap<u32, usize>,
}

/// Prices of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct PoolPrices {
    /// By group; group 0 is everybody's where the chain does not look at askers.
    pub(crate) groups: Vec<Group>,
    /// Group of each asker.
    group_of: BTreeMap<u32, u32>,
    /// Whether the chain changed anything: then a claim says what to buy, offering by offering.
    pub(crate) changed: bool,
    /// Whether prices depend on the mix.
    pub(crate) by_mix: bool,
}

impl PoolPrices {
    /// The group of an asker.
    pub(crate) fn group(&self, asker: u32) -> u32 {
        self.group_of.get(&asker).copied().unwrap_or(0)
    }
}

/// What is asked, and of whom.
pub(crate) struct Pricer<'p> {
    world: &'p World,
    scorer: &'p mut dyn Scorer,
    now: Timestamp,
    pub(crate) words: Words,
    pub(crate) askers: Askers,
    /// Name and wants of the chain of each pool of the world that has one, by pool.
    chains: BTreeMap<String, (Arc<str>, Arc<Wants>)>,
    /// The candidates of each table that was asked about, whoever asks.
    candidates: BTreeMap<usize, Table>,
    /// Pools whose chain refuses to be left out, with the reason.
    pub(crate) closed: BTreeMap<String, String>,
    /// By what the mix is counted.
    pub(crate) mix_keys: Vec<String>,
}

impl<'p> Pricer<'p> {
    /// A pricer for the pools of `world`.
    ///
    /// # Errors
    /// When a policy fails and the plan is to be made again without it.
    pub(crate) fn new(
        world: &'p World,
        scorer: &'p mut dyn Scorer,
        now: Timestamp,
        pending: usize,
        closed: &BTreeMap<String, String>,
    ) -> Result<Self, ScorerFailure> {
        let (mut chains, mut closed) = (BTreeMap::new(), closed.clone());
        for pool in world.pools.values().filter(|pool| !closed.contains_key(&pool.name)).collect::<Vec<_>>() {
            let chain = pool.annotations.get(keys::POLICY).map_or("", String::as_str);
            match scorer.chain(chain, now) {
                Ok(None) => {}
                Ok(Some(wants)) => {
                    chains.insert(pool.name.clone(), (chain.into(), wants));
                }
                Err(failure) if failure.closed => {
                    closed.insert(pool.name.clone(), failure.to_string());
                }
                Err(failure) => return Err(failure),
            }
        }
        let askers = Askers::new(chains.values().map(|(_, wants)| &**wants));
        let mut mix_keys: Vec<String> = Vec::new();
        for key in chains.values().flat_map(|(_, wants)| &wants.mix_keys) {
            if !mix_keys.contains(key) {
                mix_keys.push(key.clone());
            }
        }
        let mut pricer =
            Self { world, scorer, now, words: Words::default(), askers, chains, candidates: BTreeMap::new(), closed, mix_keys };
        pricer.open(pending)?;
        Ok(pricer)
    }

    /// Begins the round with every chain.
    fn open(&mut self, pending: usize) -> Result<(), ScorerFailure> {
        let chains: BTreeMap<Arc<str>, Arc<Wants>> = self.chains.values().cloned().collect();
        for (chain, wants) in chains {
            let facts = wants.round.iter().map(|column| round_value(self.world, column, pending, self.now, &mut self.words)).collect();
            match self.scorer.open(&chain, &self.words, &RoundFacts { facts }) {
                Ok(()) => {}
                Err(failure) if failure.closed => self.close(&chain, &failure),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Closes every pool of a chain.
    fn close(&mut self, chain: &str, failure: &ScorerFailure) {
        let pools: Vec<String> = self.chains.iter().filter(|(_, (name, _))| **name == *chain).map(|(pool, _)| pool.clone()).collect();
        for pool in pools {
            self.chains.remove(&pool);
            self.closed.insert(pool, failure.to_string());
        }
    }

    /// The number of the asker that these pods of one class are.
    pub(crate) fn asker(&mut self, members: &[Member<'_>], need: &[i64], now: Timestamp) -> u32 {
        self.askers.number(self.world, members, need, &mut self.words, now)
    }

    /// The world that is priced, and when.
    pub(crate) const fn scene(&self) -> (&'p World, Timestamp) {
        (self.world, self.now)
    }

    /// The text of a veto's reason.
    pub(crate) fn reason(&self, number: u32) -> String {
        self.scorer.reason(number)
    }

    /// The mix of what exists; empty when no chain looks at it.
    pub(crate) fn mix(&mut self) -> Mix {
        if self.mix_keys.is_empty() { Mix::default() } else { Mix::of_world(self.world, &self.mix_keys, &mut self.words) }
    }

    /// Prices of all offerings of all pools, for each asker: those with number and what one pod
    /// takes.
    ///
    /// # Errors
    /// When a policy fails and the plan is to be made again without it.
    pub(crate) fn price_all(&mut self, tables: &Tables<'_>, askers: &BTreeMap<u32, Vec<i64>>) -> Result<Vec<PoolPrices>, ScorerFailure> {
        let mix = self.mix();
        let mut all = Vec::with_capacity(tables.pools.len());
        for table in &tables.pools {
            all.push(self.price_pool(table, askers, &mix)?);
        }
        Ok(all)
    }

    fn price_pool(&mut self, table: &PoolTable<'_>, askers: &BTreeMap<u32, Vec<i64>>, mix: &Mix) -> Result<PoolPrices, ScorerFailure> {
        let list = || Arc::clone(&table.list.prices);
        // The cloud does not know of overlays: such claims say what to buy, as under policies.
        let changed = table.priced_by_overlay();
        let Some((_, wants)) = self.chains.get(&table.pool.name).cloned() else {
            let none = self.closed.contains_key(&table.pool.name);
            let prices = if none { vec![None; table.offers.len()].into() } else { list() };
            return Ok(PoolPrices { groups: vec![Group { prices, vetoes: BTreeMap::new() }], changed, ..PoolPrices::default() });
        };
        let Some(pricing) = &wants.pricing else {
            return Ok(PoolPrices { groups: vec![Group { prices: list(), vetoes: BTreeMap::new() }], changed, ..PoolPrices::default() });
        };
        let by_asker = looks_at_askers(pricing);
        let asked: Vec<(u32, &[i64])> =
            if by_asker { askers.iter().map(|(n, need)| (*n, &need[..])).collect() } else { vec![(0, &[][..])] };
        let mut prices = PoolPrices { by_mix: wants.depends_on_mix, changed: changed || wants.depends_on_mix, ..PoolPrices::default() };
        let offers: Vec<u32> = (0..table.offers.len()).filter_map(|n| u32::try_from(n).ok()).collect();
        for (asker, need) in asked {
            let verdicts = self.ask(table, pricing, (asker, need, None), &offers, mix)?;
            let group = prices.take(table, verdicts);
            // Askers who are answered alike are one group: their pods can share what is known of a node.
            let known = prices.groups.iter().position(|known| *known == group);
            let number = known.unwrap_or(prices.groups.len());
            prices.group_of.insert(asker, u32::try_from(number).unwrap_or(u32::MAX));
            if known.is_none() {
                prices.groups.push(group);
            }
        }
        if prices.groups.is_empty() {
            prices.groups.push(Group { prices: list(), vetoes: BTreeMap::new() });
        }
        Ok(prices)
    }

    /// What the chain of a pool says of some offerings. A failure of a chain that must not be left
    /// out vetoes them all.
    fn ask(
        &mut self,
        table: &PoolTable<'_>,
        wants: &PricingWants,
        asker: (u32, &[i64], Option<i64>),
        offers: &[u32],
        mix: &Mix,
    ) -> Result<Vec<Verdict>, ScorerFailure> {
        let Some((chain, _)) = self.chains.get(&table.pool.name).cloned() else { return Ok(Vec::new()) };
        let (asker, need, holds) = asker;
        let all = match self.candidates.entry(table.number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(none) => none.insert(candidates::all(self.world, table, &wants.candidates, &mut self.words, self.now)),
        };
        let mut askers = Table::of(wants.askers.len());
        askers.push(self.askers.row(asker, &wants.askers));
        let tables = whittle_model::policy::Pricing {
            candidates: candidates::some(all, table, &wants.candidates, offers, (need, holds)),
            askers,
            mix: mix.table(&wants.mix, &self.mix_keys, &mut self.words),
        };
        match self.scorer.price(&chain, &self.words, &tables) {
            Ok(verdicts) if verdicts.len() == offers.len() => Ok(verdicts),
            Ok(verdicts) => Err(ScorerFailure {
                policy: chain.to_string(),
                chain: chain.to_string(),
                why: format!("{} answers for {} rows", verdicts.len(), offers.len()),
                closed: true,
            }),
            Err(failure) => Err(failure),
        }
    }

    /// Prices of a node's offerings against this mix, when the pool's chain prices by it: for the
    /// askers on the node, the dearest of them. Of more than [`ASKED_AGAIN`] only the first are
    /// asked about, and only they are answered.
    ///
    /// # Errors
    /// When a policy fails and the plan is to be made again without it.
    pub(crate) fn again(
        &mut self,
        table: &PoolTable<'_>,
        askers: &[u32],
        holds: usize,
        offers: &[u32],
        mix: &Mix,
    ) -> Result<Vec<(u32, Option<Price>)>, ScorerFailure> {
        let Some((_, wants)) = self.chains.get(&table.pool.name).cloned() else { return Ok(Vec::new()) };
        let Some(pricing) = &wants.pricing else { return Ok(Vec::new()) };
        let offers = &offers[..offers.len().min(ASKED_AGAIN)];
        let holds = i64::try_from(holds).ok();
        let mut worst: Vec<(u32, Option<Price>)> = Vec::new();
        for asker in askers {
            let verdicts = self.ask(table, pricing, (*asker, &[], holds), offers, mix)?;
            for (at, verdict) in verdicts.into_iter().enumerate() {
                let price = match verdict {
                    Verdict::Priced { rank, cost } => Some(Price { rank: rank.max(Micros(1)), cost }),
                    Verdict::Vetoed(_) => None,
                };
                match worst.get_mut(at) {
                    None => worst.push((offers[at], price)),
                    Some((_, known)) => *known = dearest(*known, price),
                }
            }
        }
        Ok(worst)
    }
}

/// The price of a node that holds two askers: vetoed by either, else the dearer one's.
pub(crate) fn dearest(a: Option<Price>, b: Option<Price>) -> Option<Price> {
    let (a, b) = (a?, b?);
    Some(if b.rank > a.rank { b } else { a })
}

/// Whether a chain prices one asker's nodes differently from another's.
fn looks_at_askers(wants: &PricingWants) -> bool {
    !wants.askers.is_empty() || wants.candidates.contains(&whittle_model::policy::CandidateColumn::HoldsPods)
}

impl PoolPrices {
    /// Takes answers for all offerings in. A chain that prices by the mix has its say on vetoes
    /// later, node by node: what is too much of today may be welcome once other nodes are settled.
    fn take(&mut self, table: &PoolTable<'_>, verdicts: Vec<Verdict>) -> Group {
        let (mut group, mut prices) = (Group::default(), Vec::with_capacity(verdicts.len()));
        for (offer, verdict) in table.offers.iter().zip(verdicts) {
            let list = Price { rank: offer.offering.price.max(Micros(1)), cost: offer.offering.price };
            let price = match verdict {
                Verdict::Priced { rank, cost } => Some(Price { rank: rank.max(Micros(1)), cost }),
                Verdict::Vetoed(_) if self.by_mix => Some(list),
                Verdict::Vetoed(reason) => {
                    *group.vetoes.entry(reason).or_default() += 1;
                    None
                }
            };
            self.changed |= price != Some(list);
            prices.push(price);
        }
        group.prices = prices.into();
        group
    }
}

/// The value of a column of table `round`.
pub(crate) fn round_value(world: &World, column: &RoundColumn, pending: usize, now: Timestamp, words: &mut Words) -> i64 {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match column {
        RoundColumn::Cluster => words.intern(&world.settings.cluster.name),
        RoundColumn::Region => words.intern(world.catalogs.values().next().map_or("", |c| &c.region)),
        RoundColumn::Account => words.intern(&world.settings.cluster.account),
        RoundColumn::TimeSeconds => now.0.div_euclid(1000),
        RoundColumn::Nodes => count(world.nodes.len()),
        RoundColumn::Pods => count(world.usage.values().map(|u| u.pods.len()).sum()),
        RoundColumn::PendingPods => count(pending),
        RoundColumn::Signal(name) => world.settings.cluster.signals.get(name).copied().unwrap_or(0),
    }
}
