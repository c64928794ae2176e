//! The stories, in the order in which they are told. What must not enter: how anything is started or asked.

mod crash;
mod crds;
mod drain;
mod helm;
mod inflate;
mod interruption;
mod journal;
mod moves;
mod nomination;
mod observe;
mod policy;
mod replicas;
mod reserved;
mod sample;
mod server;
mod sold_out;
mod teams;
mod unauthorized;
mod wrong_subnet;

use anyhow::Result;

use crate::stage::Stage;

/// A story.
#[derive(Debug)]
pub(crate) struct Story {
    /// By which it is asked for.
    pub(crate) name: &'static str,
    /// What it tells.
    pub(crate) tells: &'static str,
    /// Tells it.
    pub(crate) run: fn(&Stage<'_>) -> Result<()>,
}

const fn story(name: &'static str, tells: &'static str, run: fn(&Stage<'_>) -> Result<()>) -> Story {
    Story { name, tells, run }
}

/// All of them.
pub(crate) const STORIES: [Story; 26] = [
    story("inflate", "the walk-through: five pods come and go, and a node with them", inflate::tell),
    story("helm", "the chart goes and comes again, the nodes stay", helm::tell),
    story("crds", "good manifests are taken, wrong ones refused in words", crds::tell),
    story("teams", "two teams with taints", teams::tell),
    story("sold-out", "no capacity: gone around, remembered, and waited for", sold_out::no_capacity),
    story("reserved", "two of three nodes are in a capacity reservation that holds two", reserved::tell),
    story("throttled", "EC2 refuses calls, and nodes come all the same", sold_out::throttled),
    story("crash", "the controller is killed at ten moments", crash::tell),
    story("replicas", "two replicas, and a change of leader", replicas::tell),
    story("server", "the API server restarts during a scale-up", server::restart),
    story("expired", "watches whose place the API server has forgotten", server::expired),
    story("wrong-subnet", "an EC2NodeClass that names no subnet says so", wrong_subnet::tell),
    story("unauthorized", "a role that may not do enough shows in the EC2NodeClass", unauthorized::tell),
    story("policy", "a shipped policy changes what is bought", policy::shipped),
    story("own-policy", "policies in ConfigMaps: one serves, one is broken", policy::of_a_user),
    story("nomination", "pods are bound where they were planned", nomination::tell),
    story("sample", "pods of every kind are taken where they were planned", sample::tell),
    story("observe", "mode Observe plans and writes nothing", observe::tell),
    story("interruption", "a spot node is drained and replaced in time", interruption::tell),
    story("consolidation", "nodes too large are replaced, nodes too many go", moves::consolidation),
    story("drift", "a changed NodePool exchanges its nodes, one at a time", moves::drift),
    story("image", "nodes of another image are exchanged, one at a time", moves::image),
    story("expiry", "nodes that are too old go", moves::expiry),
    story("kept", "pods and nodes that must not be disrupted are not", moves::kept),
    story("drain", "a drain waits for PodDisruptionBudgets, until there is a deadline", drain::tell),
    // Last: it reads what all the others wrote down.
    story("journal", "every journal of the run replays to the same actions", journal::tell),
];
