//! The plan: which pods need a place, which have one on what exists, and what is bought for the
//! rest. A plan reads the world and changes nothing.

pub(crate) mod amounts;
pub(crate) mod askers;
pub(crate) mod bins;
pub(crate) mod candidates;
pub(crate) mod classes;
pub(crate) mod cost;
pub(crate) mod daemons;
pub(crate) mod field;
pub(crate) mod finish;
pub(crate) mod flexible;
pub(crate) mod greedy;
pub(crate) mod guided;
pub(crate) mod judge;
pub(crate) mod leftovers;
pub(crate) mod limits;
pub(crate) mod menu;
pub(crate) mod mix;
pub(crate) mod ports;
pub(crate) mod premises;
pub(crate) mod pricer;
pub(crate) mod refusals;
pub(crate) mod reserved;
pub(crate) mod seats;
pub(crate) mod standing;
pub(crate) mod states;
pub(crate) mod stock;
pub(crate) mod study;
pub(crate) mod tables;
pub(crate) mod topology;
pub(crate) mod volumes;
pub(crate) mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use whittle_model::{ListPrice, Micros, NodeClaim, OfferingKey, Packing, PodKey, PolicyRecord, Scorer, ScorerFailure, Timestamp, keys};

use crate::pack;
use crate::report::{Choice, Unplaced};
use crate::world::World;
use bins::Bins;
use classes::{Class, Member};
use finish::Priced;
use greedy::{Bench, Draft, Ground, Manner};
use leftovers::Helped;
use limits::Remaining;
use menu::Menus;
use premises::Premises;
use pricer::Pricer;
use seats::Seats;
use standing::Start;
use states::States;
use tables::Tables;
use topology::Topology;

/// What is to be done about pods without a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Nodes to be bought.
    pub nodes: Vec<PlannedNode>,
    /// Pods with room on a node or claim that exists, by its name.
    pub placed: BTreeMap<String, Vec<PodKey>>,
    /// Pods that fit nowhere.
    pub unplaced: Vec<Unplaced>,
    /// How the new nodes were chosen.
    pub choice: Option<Choice>,
    /// What each policy did.
    pub policies: Vec<PolicyRecord>,
    /// Policies that failed while the plan was made; it was made again without them.
    pub failures: Vec<ScorerFailure>,
    /// Whether every offering counted at its list price, none raised and none vetoed.
    pub at_list: bool,
}

/// A node to be bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedNode {
    /// The claim to be written.
    pub claim: NodeClaim,
    /// The pods it is for.
    pub pods: Vec<PodKey>,
    /// The offering the plan counts on.
    pub choice: OfferingKey,
    /// What choice minimised, an hour.
    pub rank: Micros,
    /// What the bill will say, an hour.
    pub cost: Micros,
    /// List price of the choice.
    pub list: Micros,
    /// The best offering of another type, and its rank.
    pub runner_up: Option<(OfferingKey, Micros)>,
}

/// What the running pods would cost packed from nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Yardstick {
    /// The documented greedy's plan, an hour.
    pub greedy: Micros,
    /// No plan costs less, an hour.
    pub bound: Micros,
}

/// A plan is made again at most so often because a policy failed: each time one is left out.
const TRIES: usize = 64;

/// Plans for every pod of `world` that needs a place. When a policy fails, what was planned with it
/// is discarded and the plan is made again without it.
pub fn plan(world: &World, scorer: &mut dyn Scorer, now: Timestamp) -> Plan {
    let mut failures: Vec<ScorerFailure> = Vec::new();
    let mut closed: BTreeMap<String, String> = BTreeMap::new();
    let mut plan = loop {
        match attempt(world, scorer, now, &closed) {
            Ok(plan) => break plan,
            Err(failure) => {
                // A chain whose owner would rather wait closes its pools; so does one that fails for
                // ever.
                if failure.closed || failures.len() >= TRIES {
                    closed.extend(pools_of(world, &failure.chain).map(|pool| (pool, failure.to_string())));
                }
                failures.push(failure);
            }
        }
        if failures.len() > 2 * TRIES {
            break Plan::default();
        }
    };
    plan.policies = scorer.close();
    plan.failures = failures;
    plan
}

/// The pods that a plan is made for, and those that none can be made for.
pub(crate) fn waiting(world: &World, now: Timestamp) -> (Vec<PodKey>, Vec<PodKey>) {
    let (pods, refused) = refusals::sort_out(world, now);
    (pods.into_iter().map(|pod| pod.key.clone()).collect(), refused.into_iter().flat_map(|unplaced| unplaced.pods).collect())
}

/// The pools that name a chain.
fn pools_of<'w>(world: &'w World, chain: &'w str) -> impl Iterator<Item = String> + 'w {
    let names = move |pool: &&whittle_model::NodePool| pool.annotations.get(keys::POLICY).map_or("", String::as_str) == chain;
    world.pools.values().filter(names).map(|pool| pool.name.clone())
}

fn attempt(world: &World, scorer: &mut dyn Scorer, now: Timestamp, closed: &BTreeMap<String, String>) -> Result<Plan, ScorerFailure> {
    let (pods, mut unplaced) = refusals::sort_out(world, now);
    if pods.is_empty() {
        return Ok(Plan { unplaced, ..Plan::default() });
    }
    let mut pricer = Pricer::new(world, scorer, now, pods.len(), closed)?;
    let mut scene = Scene::new(world, &pods, &mut pricer, false, now)?;
    let (tally, running) = scene.topology.count(world);
    let mut bins = Bins::new(world, &scene.tables.dimensions, &scene.premises, &scene.topology, running);
    let remaining = Remaining::new(world, &scene.tables);
    let at_list = scene.at_list();
    let mut bench = scene.bench(&mut pricer);
    let running = tally;
    let (mut seats, draft, mut tally) = seats::place(world, &mut bench, &mut bins, &running, &remaining);
    let places = standing::places(&bench, &bins, seats.all());
    let start = Start { world, seats: &seats, places: &places, running: &running, tally: &tally, remaining: &remaining };
    let (Helped { priced: best, seated }, choice) = choose(&mut bench, start, &mut bins, draft)?;
    seats.seat(&seated);
    for (class, bin, count) in seated {
        bins.place(bin, &bench.classes[class], count, bench.topology, &mut tally);
    }
    unplaced.extend(refusals::explain(&mut bench, &bins, &seats, &best, &tally, &remaining));
    let placed = seats.placed(&bins, &scene.classes);
    bins.undo();
    let nodes = write::nodes(world, &scene.tables, &scene.classes, &seats, best, now);
    Ok(Plan { nodes, placed, unplaced, choice, at_list, ..Plan::default() })
}

/// Nodes for a pool that keeps its number of them, without pods: `count`, or as many as its limits and what is for
/// sale allow.
///
/// # Errors
/// When a policy of the pool fails.
pub(crate) fn bare(
    world: &World,
    pool: &str,
    count: usize,
    scorer: &mut dyn Scorer,
    now: Timestamp,
) -> Result<Vec<PlannedNode>, ScorerFailure> {
    let mut pricer = Pricer::new(world, scorer, now, 0, &BTreeMap::new())?;
    let premises = Premises::new(world, &[]);
    let tables = Tables::of_static(world, pool, &premises, &pricer.closed, now);
    let (mut states, mut topology) = (States::default(), Topology::new(world, &[], true));
    let prices = pricer.price_all(&tables, &BTreeMap::new())?;
    states.open(&tables, prices);
    let mut menus = Menus::default();
    let mut bench =
        Bench { tables: &tables, states: &mut states, pricer: &mut pricer, topology: &mut topology, classes: &[], menus: &mut menus };
    let remaining = Remaining::new(world, &tables);
    let draft = Draft { claims: reserved::bare(&mut bench, count, &remaining), ..Draft::default() };
    let priced = finish::finish(&mut bench, draft, "static", remaining)?;
    let nobody = Seats::default();
    Ok(write::nodes(world, &tables, &[], &nobody, priced, now))
}

/// What a plan works with: what can be bought at what price, and for whom.
struct Scene<'w> {
    premises: Premises<'w>,
    tables: Tables<'w>,
    states: States,
    topology: Topology<'w>,
    classes: Vec<Class<'w>>,
    menus: Menus,
}

impl<'w> Scene<'w> {
    fn new(world: &'w World, pods: &[Member<'w>], pricer: &mut Pricer<'w>, fresh: bool, now: Timestamp) -> Result<Self, ScorerFailure> {
        let shapes: BTreeSet<u32> = pods.iter().map(|pod| pod.record.shape).collect();
        let requests = shapes.iter().map(|shape| &world.shapes.value(*shape).requests);
        let premises = Premises::new(world, pods);
        let dimensions = premises.dimensions(requests);
        let tables = Tables::new(world, dimensions, &premises, &pricer.closed, (now, fresh));
        let (mut states, mut topology) = (States::default(), Topology::new(world, pods, fresh));
        let (dimensions, company) = (&tables.dimensions, &mut topology);
        let mut sorting = classes::Sorting { world, dimensions, premises: &premises, topology: company, states: &mut states, pricer, now };
        let mut classes = sorting.classify(pods);
        let askers = classes.iter().map(|class| (class.asker, class.need.to_vec())).collect();
        let prices = pricer.price_all(&tables, &askers)?;
        states.open(&tables, prices);
        topology.prepare(world, (&premises.holders, &tables), &mut states, &mut classes);
        Ok(Self { premises, tables, states, topology, classes, menus: Menus::default() })
    }

    fn bench<'a>(&'a mut self, pricer: &'a mut Pricer<'w>) -> Bench<'a, 'w> {
        let Self { tables, states, topology, classes, menus, .. } = self;
        Bench { tables, states, pricer, topology, classes, menus }
    }

    /// Whether every offering counts at its list price.
    fn at_list(&self) -> bool {
        // What is reserved costs nothing more, whatever its price says.
        let listed = |table: &tables::PoolTable<'_>| table.reserved || table.offers.iter().all(|o| o.offering.price > Micros(0));
        self.tables.pools.iter().all(listed) && self.states.prices.iter().all(|p| !p.changed)
    }
}

/// What the running pods would cost on new nodes alone, with every pool and reservation empty, at list prices.
pub fn yardstick(world: &World, now: Timestamp) -> Yardstick {
    let bound_pods = world.usage.values().flat_map(|usage| usage.pods.iter());
    let known = bound_pods.filter_map(|key| Member::known(world, key));
    let pods: Vec<Member<'_>> = known.filter(|pod| !world.tied_to_node(pod.record)).collect();
    // List prices do not fail.
    yardstick_of(world, &pods, &mut ListPrice, now).unwrap_or_default()
}

fn yardstick_of(world: &World, pods: &[Member<'_>], scorer: &mut dyn Scorer, now: Timestamp) -> Result<Yardstick, ScorerFailure> {
    let mut pricer = Pricer::new(world, scorer, now, pods.len(), &BTreeMap::new())?;
    let mut scene = Scene::new(world, pods, &mut pricer, true, now)?;
    let (mut tally, _) = scene.topology.count(world);
    let mut left: Vec<usize> = scene.classes.iter().map(|c| c.members.len()).collect();
    let untouched = Remaining::untouched(world, &scene.tables);
    let runs = classes::runs(&scene.classes, &left);
    let mut bench = scene.bench(&mut pricer);
    let mut ground = Ground { bins: None, tally: &mut tally, remaining: &mut untouched.clone(), manner: Manner::default() };
    let mut draft = greedy::pack(&mut bench, &mut ground, &runs);
    reserved::tighten(&mut bench, &mut draft, &untouched);
    let greedy = finish::finish(&mut bench, draft.clone(), "greedy", untouched.clone())?;
    for (class, count) in &greedy.unplaced {
        left[*class] -= count;
    }
    let translated = cost::translate(&mut bench, &left, &untouched);
    draft.unplaced.clear();
    let start = translated.packing(&bench, &draft);
    // The solver's bound is the tighter one: of few pods it knows every packing.
    let bound = pack::solve(&translated.problem, &start, world.settings.improvement_steps).bound.rank;
    let bound = reserved::less(&bench, bound, left.iter().sum(), &untouched);
    Ok(Yardstick { greedy: greedy.cost, bound: bound.max(Micros(0)).min(greedy.cost) })
}

/// Asks every packer and takes the best answer; the greedy's when nothing is better.
fn choose(
    bench: &mut Bench<'_, '_>,
    start: Start<'_>,
    bins: &mut Bins<'_>,
    mut draft: Draft,
) -> Result<(Helped, Option<Choice>), ScorerFailure> {
    let Start { world, remaining, .. } = start;
    let left = &start.seats.left;
    if left.iter().all(|count| *count == 0) {
        return Ok((Helped::default(), None));
    }
    reserved::tighten(bench, &mut draft, remaining);
    let greedy = finish::finish(bench, draft.clone(), "greedy", remaining.clone())?;
    let mut placed_left = left.clone();
    for (class, count) in &greedy.unplaced {
        placed_left[*class] -= count;
    }
    let translated = cost::translate(bench, &placed_left, remaining);
    let documented = if greedy.missing() > 0 { Some(leftovers::place(bench, start, bins, greedy.clone())?) } else { None };
    let mut measure = documented.as_ref().map_or(greedy.cost, |helped| helped.priced.cost);
    let (best, bound) = if world.settings.packing == Packing::Greedy {
        (documented.unwrap_or_else(|| Helped::of(greedy)), pack::bound(&translated.problem).rank)
    } else {
        let (best, bound) = portfolio(bench, start, &translated, (draft, greedy))?;
        let Some(documented) = documented else { return Ok(chosen(bench, Helped::of(best), measure, (bound, left), remaining)) };
        let best = leftovers::place(bench, start, bins, best)?;
        if best.priced.missing() < documented.priced.missing() {
            // What fewer pods cost is no measure.
            measure = measure.max(best.priced.cost);
        }
        // What is left to those that were left over may be less than it is beside the greedy's claims.
        let ours = judge::is_better(bench, start, &documented.priced, &best.priced)?;
        (if ours { best } else { documented }, bound)
    };
    Ok(chosen(bench, best, measure, (bound, left), remaining))
}

/// The answer that is taken, with how it was chosen if it buys anything.
fn chosen(
    bench: &Bench<'_, '_>,
    best: Helped,
    greedy: Micros,
    (bound, left): (Micros, &[usize]),
    remaining: &Remaining,
) -> (Helped, Option<Choice>) {
    let bought = !best.priced.claims.is_empty();
    let choice = bought.then(|| choice(&best.priced, greedy, reserved::less(bench, bound, left.iter().sum(), remaining)));
    (best, choice)
}

/// Solves for cost and returns the better of the answer and the greedy's, with the lower bound. Claims with pods that look
/// at company beyond their node are what the best of some greedies makes of them.
fn portfolio(
    bench: &mut Bench<'_, '_>,
    start: Start<'_>,
    translated: &cost::Translated,
    (draft, greedy): (Draft, Priced),
) -> Result<(Priced, Micros), ScorerFailure> {
    let Start { world, tally, remaining, .. } = start;
    if draft.claims.iter().any(|claim| claim.stays(bench)) {
        let (bound, promises) = translated.prospects(bench);
        let social = world.settings.improvement_steps > 0 && draft.claims.iter().any(|claim| claim.sociable(bench));
        let guided = if social { guided::guided(bench, start, &promises, &greedy)? } else { None };
        let Some(guided) = guided else {
            return Ok((beside(bench, start, (draft, greedy))?, bound));
        };
        let best = beside(bench, start, guided)?;
        return Ok((judge::better(bench, start, greedy, best)?, bound));
    }
    let first = translated.packing(bench, &draft);
    let solution = pack::solve(&translated.problem, &first, world.settings.improvement_steps);
    let solved = translated.draft(bench, &solution.packing, &mut tally.clone(), remaining);
    let best = the_better(bench, start, greedy, solved, solution.method)?;
    Ok((best, solution.bound.rank))
}

/// Solves for the pods of those claims alone that the solver knows, beside the others, which stay as they are.
fn beside(bench: &mut Bench<'_, '_>, start: Start<'_>, (draft, greedy): (Draft, Priced)) -> Result<Priced, ScorerFailure> {
    let Start { world, tally, remaining, .. } = start;
    let (fixed, free): (Vec<_>, Vec<_>) = draft.claims.into_iter().partition(|claim| claim.stays(bench));
    if free.is_empty() {
        return Ok(greedy);
    }
    let mut left = vec![0; bench.classes.len()];
    for (class, count) in free.iter().flat_map(|claim| &claim.content) {
        left[*class] += count;
    }
    let translated = cost::translate(bench, &left, remaining);
    let first = translated.packing(bench, &Draft { claims: free, ..Draft::default() });
    let solution = pack::solve(&translated.problem, &first, world.settings.improvement_steps);
    let mut solved = translated.draft(bench, &solution.packing, &mut tally.clone(), remaining);
    solved.claims.splice(0..0, fixed);
    the_better(bench, start, greedy, solved, solution.method)
}

/// What was solved for the pods that the greedy's claims hold, if it is better than these and breaks nothing.
fn the_better(
    bench: &mut Bench<'_, '_>,
    start: Start<'_>,
    greedy: Priced,
    solved: Draft,
    method: &'static str,
) -> Result<Priced, ScorerFailure> {
    let mut solved = finish::finish(bench, solved, method, start.remaining.clone())?;
    solved.unplaced.extend(greedy.unplaced.iter().copied());
    if !standing::stands(bench, start, &solved.claims, &[], start.tally) {
        return Ok(greedy);
    }
    judge::better(bench, start, greedy, solved)
}

fn choice(best: &Priced, greedy: Micros, bound: Micros) -> Choice {
    let mut mix: BTreeMap<whittle_model::CapacityType, usize> = BTreeMap::new();
    for claim in &best.claims {
        *mix.entry(claim.choice.capacity_type).or_default() += 1;
    }
    Choice {
        pods: best.claims.iter().flat_map(|c| &c.content).map(|(_, count)| count).sum(),
        room: 0,
        nodes: best.claims.len(),
        method: best.method.to_owned(),
        cost: best.cost,
        greedy,
        // A pod that finds room on a node of a pool below its tier can cost less than the bound for
        // plans that keep to tiers.
        bound: bound.max(Micros(0)).min(best.cost),
        without_policies: None,
        mix: mix.into_iter().collect(),
    }
}
