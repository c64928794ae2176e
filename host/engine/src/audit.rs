//! A second reader of every plan, sharing no code with the planner: it looks at the world and at
//! the plan alone, and names what is wrong by the rule that is broken.
//!
//! What must not enter: anything of the planner's insides, and mercy. A rule that is hard to state
//! twice is a rule that is not understood.

mod affinity;
mod claims;
mod flexibility;
mod ground;
mod limits;
mod market;
mod money;
mod places;
mod ports;
mod presence;
mod roll;
mod spread;
mod tenants;
mod volumes;

use whittle_model::Timestamp;

use crate::plan::Plan;
use crate::world::World;

/// What the auditor objects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// The rule that is broken, in one word: `once`, `fit`, `taints`, `labels`, `affinity`,
    /// `spread`, `ports`, `volumes`, `limits`, `pool`, `offering`, `min-values`, `reserved`, `price`, `bound`
    /// or `names`.
    pub rule: &'static str,
    /// What breaks it.
    pub what: String,
}

impl std::fmt::Display for Objection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Objection>);

impl Findings {
    fn object(&mut self, rule: &'static str, what: String) {
        self.0.push(Objection { rule, what });
    }
}

/// Everything wrong with `plan`, made for `world` at `now`; empty unless there is a bug.
#[must_use]
pub fn audit(world: &World, plan: &Plan, now: Timestamp) -> Vec<Objection> {
    let mut found = Findings::default();
    let loads = roll::call(world, plan, now, &mut found);
    let mut kinds = presence::Kinds::new(world, now);
    claims::check(world, plan, &loads, &mut kinds, now, &mut found);
    places::check(world, plan, &loads, &mut kinds, &mut found);
    let ground = ground::Ground::new(world, plan, &loads, &mut kinds);
    affinity::check(&ground, &mut found);
    let widest = market::widest(world);
    spread::check(&ground, &mut market::Market::new(&widest, presence::Kinds::new(world, now)), &mut found);
    ports::check(&ground, &mut found);
    volumes::check(&ground, plan, &mut found);
    flexibility::check(world, plan, &mut kinds, &mut found);
    limits::check(world, plan, &mut found);
    money::check(world, plan, &mut kinds, &mut found);
    found.0
}
