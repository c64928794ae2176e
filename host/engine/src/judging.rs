//! Tables of moves for `score-moves`, and the native judge for chains that have none: the move that saves most goes
//! first.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_model::policy::{
    Judging, JudgingWants, MoveColumn, MoveNodeColumn, MovePodColumn, MovePoolColumn, RoundFacts, Table, Wants, Words,
};
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::scorer::{MoveVerdict, ScorerFailure};
use whittle_model::{Labels, NodeClaim, PodKey, Scorer, Timestamp, keys};

use crate::disrupt::churn::Churn;
use crate::disrupt::moves::Move;
use crate::disrupt::reason::Reason;
use crate::disrupt::weights;
use crate::plan::askers::{asker_value, family_label};
use crate::plan::classes::Member;
use crate::plan::mix::Mix;
use crate::plan::pricer::round_value;
use crate::protection::budgets_of;
use crate::world::{PodRecord, World};

/// What is told of the expiry of a node that never expires.
const NEVER: i64 = 1_000_000_000_000;

/// What the chains say of these moves, each by the chain of every pool it touches; `None` where a chain failed: nothing is
/// lost by waiting.
pub(crate) fn judge(
    (world, churn): (&World, &Churn),
    moves: &[Move],
    scorer: &mut dyn Scorer,
    now: Timestamp,
    failures: &mut Vec<ScorerFailure>,
) -> Vec<Option<MoveVerdict>> {
    let mut by_chain: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, what) in moves.iter().enumerate() {
        for pool in &what.pools {
            let chain = world.pools.get(pool).and_then(|pool| pool.annotations.get(keys::POLICY)).map_or("", String::as_str);
            let asked = by_chain.entry(chain).or_default();
            if asked.last() != Some(&number) {
                asked.push(number);
            }
        }
    }
    let mut verdicts: Vec<Option<MoveVerdict>> = moves.iter().map(|what| Some(MoveVerdict::Score(what.score()))).collect();
    for (chain, asked) in by_chain {
        let offered: Vec<&Move> = asked.iter().map(|number| &moves[*number]).collect();
        match judge_chain((world, churn), chain, &offered, scorer, now) {
            Ok(answers) => asked.into_iter().zip(answers).for_each(|(number, answer)| unite(&mut verdicts[number], answer)),
            Err(failure) => {
                failures.push(failure);
                asked.into_iter().for_each(|number| verdicts[number] = None);
            }
        }
    }
    verdicts
}

/// Vetoes are a union; of scores the last stands.
fn unite(verdict: &mut Option<MoveVerdict>, answer: MoveVerdict) {
    if matches!(verdict, Some(MoveVerdict::Score(_))) {
        *verdict = Some(answer);
    }
}

fn judge_chain(
    (world, churn): (&World, &Churn),
    chain: &str,
    moves: &[&Move],
    scorer: &mut dyn Scorer,
    now: Timestamp,
) -> Result<Vec<MoveVerdict>, ScorerFailure> {
    let native = || moves.iter().map(|what| MoveVerdict::Score(what.score())).collect();
    let Some(wants) = scorer.chain(chain, now)? else { return Ok(native()) };
    let Some(judging) = wants.judging.clone() else { return Ok(native()) };
    let mut words = Words::default();
    let facts = wants.round.iter().map(|column| round_value(world, column, world.pending.len(), now, &mut words)).collect();
    scorer.open(chain, &words, &RoundFacts { facts })?;
    let tables = tables((world, churn), moves, (&judging, &wants), now, &mut words);
    let verdicts = scorer.judge(chain, &words, &tables)?;
    if verdicts.len() == moves.len() {
        return Ok(verdicts);
    }
    let why = format!("{} answers for {} moves", verdicts.len(), moves.len());
    Err(ScorerFailure { policy: chain.to_owned(), chain: chain.to_owned(), why, closed: true })
}

fn tables(
    (world, churn): (&World, &Churn),
    moves: &[&Move],
    (wanted, wants): (&JudgingWants, &Arc<Wants>),
    now: Timestamp,
    words: &mut Words,
) -> Judging {
    let mut judging = Judging {
        moves: Table::of(wanted.moves.len()),
        nodes: Table::of(wanted.nodes.len()),
        pods: Table::of(wanted.pods.len()),
        pools: Table::of(wanted.pools.len()),
        askers: Table::of(wanted.askers.len()),
        mix: Table::default(),
    };
    let mut rows = Rows { world, wanted, now, askers: BTreeMap::new() };
    for (number, what) in moves.iter().enumerate() {
        let number = index(number);
        judging.moves.push(wanted.moves.iter().map(|column| move_value(world, what, column, now, words)));
        for claim in what.claims.iter().filter_map(|name| world.claims.get(name)) {
            let node = index(judging.nodes.rows);
            judging.nodes.push(wanted.nodes.iter().map(|column| node_value((world, churn), claim, number, column, now, words)));
            rows.pods(&mut judging, claim, (number, node), words);
        }
        for (pool, claims) in by_pool(world, what) {
            judging.pools.push(wanted.pools.iter().map(|column| pool_value(world, pool, &claims, number, column, words)));
        }
    }
    judging.mix = Mix::of_world(world, &wants.mix_keys, words).table(&wanted.mix, &wants.mix_keys, words);
    judging
}

fn index(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

fn by_pool<'w>(world: &'w World, what: &Move) -> BTreeMap<&'w str, Vec<&'w NodeClaim>> {
    let mut by_pool: BTreeMap<&str, Vec<&NodeClaim>> = BTreeMap::new();
    for claim in what.claims.iter().filter_map(|name| world.claims.get(name)) {
        by_pool.entry(&claim.node_pool).or_default().push(claim);
    }
    by_pool
}

/// Rows of pods and of the classes that they are told by.
struct Rows<'a> {
    world: &'a World,
    wanted: &'a JudgingWants,
    now: Timestamp,
    askers: BTreeMap<(u32, u32), i64>,
}

impl Rows<'_> {
    /// The pods of a node, a row for each class.
    fn pods(&mut self, judging: &mut Judging, claim: &NodeClaim, (number, node): (i64, i64), words: &mut Words) {
        if self.wanted.pods.is_empty() && self.wanted.askers.is_empty() {
            return;
        }
        let world = self.world;
        let mut classes: BTreeMap<(u32, u32), Vec<(&PodKey, &PodRecord)>> = BTreeMap::new();
        for key in world.pods_on(&claim.status.node) {
            if let Some(record) = world.pods.get(key).filter(|record| !world.tied_to_node(record)) {
                classes.entry((record.shape, record.identity)).or_default().push((key, record));
            }
        }
        for (class, pods) in classes {
            let asker = self.asker(judging, class, &pods, words);
            let ages = || pods.iter().map(|(_, record)| self.now.since(record.created).as_seconds().max(0));
            judging.pods.push(self.wanted.pods.iter().map(|column| match column {
                MovePodColumn::Move => number,
                MovePodColumn::Node => node,
                MovePodColumn::Asker => asker,
                MovePodColumn::Count => index(pods.len()),
                MovePodColumn::YoungestSeconds => ages().min().unwrap_or(0),
                MovePodColumn::OldestSeconds => ages().max().unwrap_or(0),
                MovePodColumn::Restarts => pods.iter().map(|(_, record)| i64::from(record.restarts)).sum(),
                MovePodColumn::RestartCost => pods.iter().map(|(_, record)| weights::milli(weights::eviction(world, record))).sum(),
            }));
        }
    }

    fn asker(&mut self, judging: &mut Judging, class: (u32, u32), pods: &[(&PodKey, &PodRecord)], words: &mut Words) -> i64 {
        if let Some(known) = self.askers.get(&class) {
            return *known;
        }
        let number = index(judging.askers.rows);
        let members: Vec<Member<'_>> = pods.iter().map(|(key, record)| Member { key, record }).collect();
        let record = pods[0].1;
        let (world, now) = (self.world, self.now);
        judging.askers.push(self.wanted.askers.iter().map(|column| asker_value(world, record, &members, column, words, now)));
        self.askers.insert(class, number);
        number
    }
}

fn move_value(world: &World, what: &Move, column: &MoveColumn, now: Timestamp, words: &mut Words) -> i64 {
    match column {
        MoveColumn::Kind => words.intern(what.reason.kind().name()),
        MoveColumn::Reason => words.intern(&because(world, what)),
        MoveColumn::Score => what.score(),
        MoveColumn::SavingsListMicros | MoveColumn::SavingsCostMicros | MoveColumn::SavingsRankMicros => what.saves.0,
        MoveColumn::Nodes => index(what.claims.len()),
        MoveColumn::Replacements => index(what.replacements.len()),
        MoveColumn::Pods => index(moving(world, what).count()),
        MoveColumn::DrainSeconds => moving(world, what).map(|(_, record)| record.grace.as_seconds()).max().unwrap_or(0),
        MoveColumn::PdbSlack => slack(world, what),
        MoveColumn::Mix => 0,
        MoveColumn::TargetDigest => words.intern(digest(world, what).map_or("", String::as_str)),
        MoveColumn::TargetNodes => index(alike(world, what).count()),
        MoveColumn::TargetAgeSeconds => alike(world, what).map(|claim| now.since(claim.created).as_seconds()).max().unwrap_or(0),
        MoveColumn::TargetNotReady => index(alike(world, what).filter(|c| !world.node_of(c).is_some_and(|node| node.ready)).count()),
        MoveColumn::TargetFailures => index(alike(world, what).filter(|c| c.status.launch_error.is_some()).count()),
    }
}

fn because(world: &World, what: &Move) -> String {
    match what.reason {
        Reason::Empty => "no pods but those of DaemonSets".to_owned(),
        Reason::Underutilized if what.replacements.is_empty() => "its pods fit elsewhere".to_owned(),
        Reason::Underutilized => "its pods fit on something cheaper".to_owned(),
        Reason::Drifted => {
            let drifted = what.claims.first().and_then(|name| world.claims.get(name)?.status.drifted.clone());
            drifted.map(|(reason, _)| reason).unwrap_or_default()
        }
        Reason::Expired => "its time will soon be over".to_owned(),
        Reason::Rebalance => "EC2 advises to leave it".to_owned(),
    }
}

/// The pods that would have to move.
fn moving<'w>(world: &'w World, what: &'w Move) -> impl Iterator<Item = (&'w PodKey, &'w PodRecord)> {
    let nodes = what.claims.iter().filter_map(|name| world.claims.get(name)).map(|claim| claim.status.node.as_str());
    let pods = nodes.flat_map(|node| world.pods_on(node)).filter_map(|key| Some((key, world.pods.get(key)?)));
    pods.filter(|(_, record)| !record.deleting && !world.tied_to_node(record))
}

/// Evictions that the tightest budget still allows; -1 when none applies.
fn slack(world: &World, what: &Move) -> i64 {
    if world.budgets.is_empty() {
        return -1;
    }
    let of_pod =
        |(_, record): (&PodKey, &PodRecord)| budgets_of(world, record).into_iter().map(|budget| i64::from(budget.allowed.max(0))).min();
    moving(world, what).filter_map(of_pod).min().unwrap_or(-1)
}

/// The configuration that drifted nodes are brought to.
fn digest<'w>(world: &'w World, what: &Move) -> Option<&'w String> {
    if what.reason != Reason::Drifted {
        return None;
    }
    world.pools.get(what.pools.first()?)?.annotations.get(keys::NODE_POOL_HASH)
}

/// Claims that have that configuration already.
fn alike<'w>(world: &'w World, what: &Move) -> impl Iterator<Item = &'w NodeClaim> {
    let (digest, pool) = (digest(world, what), what.pools.first().cloned());
    let same = move |claim: &&NodeClaim| {
        digest.is_some() && Some(&claim.node_pool) == pool.as_ref() && claim.annotations.get(keys::NODE_POOL_HASH) == digest
    };
    world.claims.values().filter(same).filter(|claim| claim.status.drifted.is_none() && !claim.deleting)
}

fn node_value(
    (world, churn): (&World, &Churn),
    claim: &NodeClaim,
    number: i64,
    column: &MoveNodeColumn,
    now: Timestamp,
    words: &mut Words,
) -> i64 {
    let none = Labels::new();
    let labels = world.node_of(claim).map_or(&none, |node| &node.labels);
    let mut word = |text: &str| words.intern(text);
    let label = |key: &str| labels.get(key).map_or("", String::as_str);
    let age = now.since(claim.created);
    match column {
        MoveNodeColumn::Move => number,
        MoveNodeColumn::Name => word(&claim.status.node),
        MoveNodeColumn::NodePool => word(&claim.node_pool),
        MoveNodeColumn::InstanceType => word(&claim.status.instance_type),
        MoveNodeColumn::Family => word(label(&family_label())),
        MoveNodeColumn::Zone => word(&claim.status.zone),
        MoveNodeColumn::CapacityType => word(claim.status.capacity_type.map_or("", |c| c.name())),
        MoveNodeColumn::ListMicros | MoveNodeColumn::CostMicros | MoveNodeColumn::RankMicros => weights::price(world, claim).0,
        MoveNodeColumn::AgeSeconds => age.as_seconds(),
        MoveNodeColumn::ExpiresSeconds => claim.expire_after.map_or(NEVER, |life| life.as_seconds() - age.as_seconds()),
        MoveNodeColumn::CpuUsedPermille => used(world, claim, CPU),
        MoveNodeColumn::MemoryUsedPermille => used(world, claim, MEMORY),
        MoveNodeColumn::LastMovedSeconds => churn.moves(&claim.name, now).0.map_or(-1, |at| now.since(at).as_seconds()),
        MoveNodeColumn::Moves24h => index(churn.moves(&claim.name, now).1),
        MoveNodeColumn::Label(key) => word(label(key)),
    }
}

fn used(world: &World, claim: &NodeClaim, resource: &str) -> i64 {
    let Some(node) = world.node_of(claim) else { return 0 };
    let requested = world.usage.get(&node.name).map_or(0, |usage| usage.total.get(resource));
    let all = node.allocatable.get(resource).max(1);
    i64::try_from(i128::from(requested) * 1000 / i128::from(all)).unwrap_or(0)
}

fn pool_value(world: &World, pool: &str, claims: &[&NodeClaim], number: i64, column: &MovePoolColumn, words: &mut Words) -> i64 {
    let owned = || world.claims.values().filter(|c| c.node_pool == pool);
    let weight = |claim: &NodeClaim| world.node_of(claim).map_or(0, |node| weights::milli(weights::of_node(world, &node.name)));
    match column {
        MovePoolColumn::Move => number,
        MovePoolColumn::NodePool => words.intern(pool),
        MovePoolColumn::Nodes => index(claims.len()),
        MovePoolColumn::CostMicros => claims.iter().map(|c| weights::price(world, c).0).sum(),
        MovePoolColumn::DisruptionCost => claims.iter().map(|c| weight(c)).sum(),
        MovePoolColumn::PoolNodes => index(owned().count()),
        MovePoolColumn::PoolCostMicros => owned().map(|c| weights::price(world, c).0).sum(),
        MovePoolColumn::PoolDisruptionCost => owned().map(weight).sum(),
    }
}
