//! The timeline for people, one line an entry.

use whittle_model::{Duration, PodKey};

use super::TimelineEvent;

impl std::fmt::Display for TimelineEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Story { text, .. } => write!(f, "> {text}"),
            Self::Reached { condition, after_ms } => write!(f, "reached {condition} after {}", Duration(*after_ms)),
            Self::PodsCreated { workload, pods } => write!(f, "{} created", of(workload, pods)),
            Self::PodsPending { workload, pods } => write!(f, "{} pending", of(workload, pods)),
            Self::PodsBound { node, pods } => write!(f, "{} bound to {node}", count(pods.len(), "pod")),
            Self::PodsRunning { workload, pods } => write!(f, "{} running", of(workload, pods)),
            Self::PodsSucceeded { workload, pods } => write!(f, "{} succeeded", of(workload, pods)),
            Self::PodsGone { workload, pods } => write!(f, "{} gone", of(workload, pods)),
            Self::Plan { pods, room, nodes, packer, cost, greedy, bound, without_policies } => {
                let what = format!("{} on {}", for_whom(*pods, *room), count(*nodes, "new node"));
                write!(f, "plan: {what}, {cost}/h by {packer}; greedy {greedy}/h, bound {bound}/h")?;
                without_policies.map_or(Ok(()), |without| write!(f, "; without policies {without}/h"))
            }
            Self::Policy { policy, rows, ranked, priced, vetoes } => {
                judged(f, policy, *rows, [("rank", *ranked), ("cost", *priced)], vetoes)
            }
            Self::PolicyFailed { policy, why, closed } => {
                let then = if *closed { "nothing is bought or moved for want of it" } else { "planned again without it" };
                write!(f, "policy {policy} failed: {why}; {then}")
            }
            Self::Claims { claims, node_pool, pods, room, types, choice, price, list, rank } => {
                let each = if claims.len() > 1 { " each" } else { "" };
                let (claims, pods, types) = (named("claim", claims), for_whom(*pods, *room), count(*types, "type"));
                write!(f, "{claims} of nodepool {node_pool} for {pods}{each}: {types}, cheapest {choice} {price}/h")?;
                if price != list {
                    write!(f, " (list {list})")?;
                }
                if rank == price { Ok(()) } else { write!(f, " (rank {rank})") }
            }
            Self::Placed { on, pods } => write!(f, "{} fit on {on}", count(pods.len(), "pod")),
            Self::Unplaced { workload, pods, reasons, nearest } => {
                write!(f, "{} fit nowhere: {}", of(workload, pods), reasons.join("; "))?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; nearest: {nearest}"))
            }
            Self::Launched { claims, offering, price } => write!(f, "launched {offering} {price}/h for {}", named("claim", claims)),
            Self::LaunchFailed { claims, why } => write!(f, "launch failed for {}: {why}", named("claim", claims)),
            Self::SoldOut { offerings, until_ms } => {
                write!(f, "sold out, left alone until {}: ", Duration(*until_ms))?;
                few(f, &offerings.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            Self::Registered { nodes } => write!(f, "registered {}", named("node", nodes)),
            Self::Initialized { nodes } => write!(f, "initialized {}", named("node", nodes)),
            Self::Nominated { node, pods } => write!(f, "{} nominated to {node}", count(pods.len(), "pod")),
            Self::Kept { claim, why } => write!(f, "claim {claim} stays: {why}"),
            Self::Move { reason, nodes, replacements, saves, stage, why } => {
                f.write_str(&moved(&named("node", nodes), replacements, stage, &format!("{reason}, saves {saves}/h"), why))
            }
            Self::Removing { claim, node, reason } => write!(f, "removing {}: {reason}", node_or_claim(node, claim)),
            Self::Held { claim, node, why } => write!(f, "the removal of {} waits: {why}", node_or_claim(node, claim)),
            Self::Inconsistent { claim, node, why } => write!(f, "{} is not what was bought: {why}", node_or_claim(node, claim)),
            Self::CollectionStopped { left, most } => {
                write!(f, "garbage is left alone: {left} more than the {most} that are collected within an hour")
            }
            Self::OutOfTime { node, pods } => {
                write!(f, "{} on {node} deleted: the grace period of the node ends", count(pods.len(), "pod"))
            }
            Self::Removed { claim, node } => write!(f, "removed {}", node_or_claim(node, claim)),
            Self::Interrupted { node } => write!(f, "interruption of {node}: its instance ends in two minutes"),
            Self::Advised { node } => write!(f, "rebalance recommendation for {node}: its instance may be taken back"),
            Self::InstanceLost { node, claim } => write!(f, "the instance of {} is gone", node_or_claim(node, claim)),
            Self::Crashed {} => f.write_str("the controller crashed"),
            Self::Restarted {} => f.write_str("the controller is back, and has read everything again"),
            Self::Objection { what } => write!(f, "the auditor objects: {what}"),
        }
    }
}

/// A move of nodes, and how far it is.
fn moved(what: &str, replacements: &[String], stage: &str, reason: &str, why: &str) -> String {
    match stage {
        "begun" if replacements.is_empty() => format!("moving the pods of {what}: {reason}"),
        "begun" => format!("replacing {what} by {}: {reason}", named("claim", replacements)),
        "rejected" => format!("{what} stays after all: {why}"),
        _ => format!("{what} stays, its replacement was given up: {why}"),
    }
}

fn judged(
    f: &mut std::fmt::Formatter<'_>,
    policy: &str,
    rows: u64,
    changed: [(&str, u64); 2],
    vetoes: &[(String, u64)],
) -> std::fmt::Result {
    write!(f, "policy {policy} judged {}", count(usize::try_from(rows).unwrap_or(usize::MAX), "row"))?;
    for (what, rows) in changed.into_iter().filter(|(_, rows)| *rows > 0) {
        write!(f, ", changed the {what} of {rows}")?;
    }
    vetoes.iter().try_for_each(|(reason, rows)| write!(f, ", vetoed {rows}: {reason}"))
}

/// `2 pods`, `room for 1 pod`, or `2 pods and room for 1 more`: whom a node is bought for.
#[must_use]
pub fn for_whom(pods: usize, room: usize) -> String {
    match (pods, room) {
        (pods, 0) => count(pods, "pod"),
        (0, room) => format!("room for {}", count(room, "pod")),
        (pods, room) => format!("{} and room for {room} more", count(pods, "pod")),
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn of(workload: &str, pods: &[PodKey]) -> String {
    format!("{} of {workload}", count(pods.len(), "pod"))
}

fn named(what: &str, names: &[String]) -> String {
    match names {
        [only] => format!("{what} {only}"),
        [first, .., last] => format!("{} {first} .. {last}", count(names.len(), what)),
        [] => format!("no {what}"),
    }
}

fn node_or_claim(node: &str, claim: &str) -> String {
    if node.is_empty() { format!("claim {claim}") } else { format!("node {node} (claim {claim})") }
}

/// The first three, and how many more.
fn few(f: &mut std::fmt::Formatter<'_>, items: &[String]) -> std::fmt::Result {
    f.write_str(&items.iter().take(3).cloned().collect::<Vec<_>>().join(", "))?;
    if items.len() > 3 { write!(f, " and {} more", items.len() - 3) } else { Ok(()) }
}
