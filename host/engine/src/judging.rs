//! Tables of moves for `score-moves`, and the native judge for chains that have none: the move that
//! saves most goes first.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_model::policy::{Judging, JudgingWants, MoveColumn, MoveKind, MoveNodeColumn, MovePoolColumn, RoundFacts, Table, Wants, Words};
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::scorer::{MoveVerdict, ScorerFailure};
use whittle_model::{Labels, NodeClaim, Scorer, Timestamp, keys};

use crate::plan::askers::family_label;
use crate::plan::mix::Mix;
use crate::plan::pricer::round_value;
use crate::world::World;

/// What is told of the expiry of a node that never expires.
const NEVER: i64 = 1_000_000_000_000;

/// What the chains say of removing these empty nodes. Moves of a chain that fails are not made in
/// this round: nothing is lost by waiting.
pub(crate) fn empty_moves(
    world: &World,
    claims: &[String],
    scorer: &mut dyn Scorer,
    now: Timestamp,
    failures: &mut Vec<ScorerFailure>,
) -> Vec<(String, MoveVerdict)> {
    let mut by_chain: BTreeMap<&str, Vec<&NodeClaim>> = BTreeMap::new();
    for claim in claims.iter().filter_map(|name| world.claims.get(name)) {
        let chain = world.pools.get(&claim.node_pool).and_then(|pool| pool.annotations.get(keys::POLICY));
        by_chain.entry(chain.map_or("", String::as_str)).or_default().push(claim);
    }
    let mut verdicts = Vec::new();
    for (chain, claims) in by_chain {
        match judge_chain(world, chain, &claims, scorer, now) {
            Ok(answers) => verdicts.extend(claims.iter().map(|c| c.name.clone()).zip(answers)),
            Err(failure) => failures.push(failure),
        }
    }
    verdicts
}

fn judge_chain(
    world: &World,
    chain: &str,
    claims: &[&NodeClaim],
    scorer: &mut dyn Scorer,
    now: Timestamp,
) -> Result<Vec<MoveVerdict>, ScorerFailure> {
    let native = || claims.iter().map(|claim| MoveVerdict::Score(claim.status.price.0)).collect();
    let Some(wants) = scorer.chain(chain, now)? else { return Ok(native()) };
    let Some(judging) = wants.judging.clone() else { return Ok(native()) };
    let mut words = Words::default();
    let facts = wants.round.iter().map(|column| round_value(world, column, world.pending.len(), now, &mut words)).collect();
    scorer.open(chain, &words, &RoundFacts { facts })?;
    let tables = tables(world, claims, &judging, &wants, now, &mut words);
    let verdicts = scorer.judge(chain, &words, &tables)?;
    if verdicts.len() == claims.len() {
        return Ok(verdicts);
    }
    let why = format!("{} answers for {} moves", verdicts.len(), claims.len());
    Err(ScorerFailure { policy: chain.to_owned(), chain: chain.to_owned(), why, closed: true })
}

fn tables(world: &World, claims: &[&NodeClaim], wanted: &JudgingWants, wants: &Arc<Wants>, now: Timestamp, words: &mut Words) -> Judging {
    let mut judging = Judging {
        moves: Table::of(wanted.moves.len()),
        nodes: Table::of(wanted.nodes.len()),
        pods: Table::of(wanted.pods.len()),
        pools: Table::of(wanted.pools.len()),
        askers: Table::of(wanted.askers.len()),
        mix: Table::default(),
    };
    for (number, claim) in claims.iter().enumerate() {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        judging.moves.push(wanted.moves.iter().map(|column| move_value(claim, column, words)));
        judging.nodes.push(wanted.nodes.iter().map(|column| node_value(world, claim, number, column, now, words)));
        judging.pools.push(wanted.pools.iter().map(|column| pool_value(world, claim, number, column, words)));
    }
    // An empty node has no part in who asks for what; its own nodes are few against the mix.
    judging.mix = Mix::of_world(world, &wants.mix_keys, words).table(&wanted.mix, &wants.mix_keys, words);
    judging
}

fn move_value(claim: &NodeClaim, column: &MoveColumn, words: &mut Words) -> i64 {
    let price = claim.status.price.0;
    match column {
        MoveColumn::Kind => words.intern(MoveKind::Empty.name()),
        MoveColumn::Reason => words.intern("no pods but those of DaemonSets"),
        MoveColumn::Score | MoveColumn::SavingsListMicros | MoveColumn::SavingsCostMicros | MoveColumn::SavingsRankMicros => price,
        MoveColumn::Nodes => 1,
        MoveColumn::PdbSlack => -1,
        MoveColumn::TargetDigest => words.intern(""),
        MoveColumn::Mix | MoveColumn::Replacements | MoveColumn::Pods | MoveColumn::DrainSeconds => 0,
        MoveColumn::TargetNodes | MoveColumn::TargetAgeSeconds | MoveColumn::TargetNotReady | MoveColumn::TargetFailures => 0,
    }
}

fn node_value(world: &World, claim: &NodeClaim, number: i64, column: &MoveNodeColumn, now: Timestamp, words: &mut Words) -> i64 {
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
        MoveNodeColumn::ListMicros | MoveNodeColumn::CostMicros | MoveNodeColumn::RankMicros => claim.status.price.0,
        MoveNodeColumn::AgeSeconds => age.as_seconds(),
        MoveNodeColumn::ExpiresSeconds => claim.expire_after.map_or(NEVER, |life| life.as_seconds() - age.as_seconds()),
        MoveNodeColumn::CpuUsedPermille => used(world, claim, CPU),
        MoveNodeColumn::MemoryUsedPermille => used(world, claim, MEMORY),
        MoveNodeColumn::LastMovedSeconds => -1, // this version moves no pods
        MoveNodeColumn::Moves24h => 0,
        MoveNodeColumn::Label(key) => word(label(key)),
    }
}

fn used(world: &World, claim: &NodeClaim, resource: &str) -> i64 {
    let Some(node) = world.node_of(claim) else { return 0 };
    let requested = world.usage.get(&node.name).map_or(0, |usage| usage.total.get(resource));
    let all = node.allocatable.get(resource).max(1);
    i64::try_from(i128::from(requested) * 1000 / i128::from(all)).unwrap_or(0)
}

fn pool_value(world: &World, claim: &NodeClaim, number: i64, column: &MovePoolColumn, words: &mut Words) -> i64 {
    let owned = || world.claims.values().filter(|c| c.node_pool == claim.node_pool);
    match column {
        MovePoolColumn::Move => number,
        MovePoolColumn::NodePool => words.intern(&claim.node_pool),
        MovePoolColumn::Nodes => 1,
        MovePoolColumn::CostMicros => claim.status.price.0,
        MovePoolColumn::PoolNodes => i64::try_from(owned().count()).unwrap_or(i64::MAX),
        MovePoolColumn::PoolCostMicros => owned().map(|c| c.status.price.0).sum(),
        // An empty node disrupts nobody, and this version removes no other.
        MovePoolColumn::DisruptionCost | MovePoolColumn::PoolDisruptionCost => 0,
    }
}
