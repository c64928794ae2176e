//! The plan: which pods need a place, which have one on what exists, and what is bought for the
//! rest. A plan reads the world and changes nothing.

pub(crate) mod amounts;
pub(crate) mod askers;
pub(crate) mod bins;
pub(crate) mod candidates;
pub(crate) mod classes;
pub(crate) mod cost;
pub(crate) mod finish;
pub(crate) mod flexible;
pub(crate) mod greedy;
pub(crate) mod judge;
pub(crate) mod limits;
pub(crate) mod mix;
pub(crate) mod pricer;
pub(crate) mod refusals;
pub(crate) mod states;
pub(crate) mod tables;
pub(crate) mod write;

use std::collections::BTreeMap;

use whittle_model::{ListPrice, Micros, NodeClaim, OfferingKey, Packing, PodKey, PolicyRecord, Scorer, ScorerFailure, Timestamp, keys};

use crate::pack;
use crate::report::{Choice, Unplaced};
use crate::world::World;
use amounts::Dimensions;
use bins::Bins;
use classes::{Class, Terms};
use finish::Priced;
use greedy::{Bench, Draft};
use limits::Remaining;
use pricer::Pricer;
use states::States;
use tables::Tables;

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    let mut scene = Scene::new(world, &pods, &mut pricer, now)?;
    let mut bins = Bins::new(world, &scene.tables.dimensions, &mut scene.terms);
    let seats = seat(world, &scene.classes, &scene.states, &mut bins);
    let remaining = Remaining::new(world, &scene.tables);
    let at_list = scene.at_list();
    let mut bench = Bench { tables: &scene.tables, states: &mut scene.states, pricer: &mut pricer, classes: &scene.classes };
    let (best, choice) = choose(world, &mut bench, &seats, &remaining)?;
    unplaced.extend(refusals::explain(&mut bench, &bins, &seats, &best, &remaining, now));
    let placed = seats.placed(&bins, &scene.classes);
    bins.undo();
    let nodes = write::nodes(world, &scene.tables, &scene.classes, &seats, best, now);
    Ok(Plan { nodes, placed, unplaced, choice, at_list, ..Plan::default() })
}

/// What a plan works with: what can be bought at what price, and for whom.
struct Scene<'w> {
    tables: Tables<'w>,
    states: States,
    terms: Terms<'w>,
    classes: Vec<Class<'w>>,
}

impl<'w> Scene<'w> {
    fn new(world: &'w World, pods: &[&'w PodKey], pricer: &mut Pricer<'w>, now: Timestamp) -> Result<Self, ScorerFailure> {
        let requests = pods.iter().filter_map(|key| world.pods.get(*key)).map(|record| &world.shape_of(record).requests);
        let dimensions = Dimensions::of(requests.chain(daemon_requests(world)));
        let tables = Tables::new(world, dimensions, &pricer.closed, now);
        let (mut states, mut terms) = (States::default(), Terms::new(world));
        let mut sorting = classes::Sorting { world, dimensions: &tables.dimensions, terms: &mut terms, states: &mut states, pricer, now };
        let classes = sorting.classify(pods);
        let askers = classes.iter().map(|class| (class.asker, class.need.to_vec())).collect();
        let prices = pricer.price_all(&tables, &askers)?;
        states.open(&tables, prices);
        Ok(Self { tables, states, terms, classes })
    }

    /// Whether every offering counts at its list price.
    fn at_list(&self) -> bool {
        let listed = |table: &tables::PoolTable<'_>| table.offers.iter().all(|o| o.offering.price > Micros(0));
        self.tables.pools.iter().all(listed) && self.states.prices.iter().all(|p| !p.changed)
    }
}

/// What daemons ask for: a resource that only they name can fill a node too.
fn daemon_requests(world: &World) -> impl Iterator<Item = &whittle_model::Resources> {
    world.daemon_sets.values().map(|set| &set.template.requests)
}

/// What the running pods would cost on new nodes alone, with every pool empty, at list prices.
pub fn yardstick(world: &World, now: Timestamp) -> Yardstick {
    let bound_pods = world.usage.values().flat_map(|usage| usage.pods.iter());
    let pods: Vec<&PodKey> = bound_pods.filter(|key| world.pods.get(*key).is_some_and(|r| !world.tied_to_node(r))).collect();
    // List prices do not fail.
    yardstick_of(world, &pods, &mut ListPrice, now).unwrap_or_default()
}

fn yardstick_of(world: &World, pods: &[&PodKey], scorer: &mut dyn Scorer, now: Timestamp) -> Result<Yardstick, ScorerFailure> {
    let mut pricer = Pricer::new(world, scorer, now, pods.len(), &BTreeMap::new())?;
    let mut scene = Scene::new(world, pods, &mut pricer, now)?;
    let mut left: Vec<usize> = scene.classes.iter().map(|c| c.members.len()).collect();
    let untouched = Remaining::untouched(&scene.tables);
    let runs = classes::runs(&scene.classes, &left);
    let mut bench = Bench { tables: &scene.tables, states: &mut scene.states, pricer: &mut pricer, classes: &scene.classes };
    let mut draft = greedy::pack(&mut bench, &runs, &mut untouched.clone());
    let greedy = finish::finish(&mut bench, draft.clone(), "greedy", untouched.clone())?;
    for (class, count) in &greedy.unplaced {
        left[*class] -= count;
    }
    let translated = cost::translate(&mut bench, &left, &untouched);
    draft.unplaced.clear();
    let start = translated.packing(&bench, &draft);
    // The solver's bound is the tighter one: of few pods it knows every packing.
    let bound = pack::solve(&translated.problem, &start, world.settings.improvement_steps).bound.rank;
    Ok(Yardstick { greedy: greedy.cost, bound: bound.max(Micros(0)).min(greedy.cost) })
}

/// Who sits where on what exists, by class.
#[derive(Debug)]
pub(crate) struct Seats<'w> {
    /// Pods with a bin of their own from an earlier plan or a nomination.
    kept: Vec<(PodKey, usize)>,
    /// Members of each class that were not kept, in order.
    pub(crate) members: Vec<Vec<&'w PodKey>>,
    /// Bin and count for each class, in order.
    filled: Vec<Vec<(usize, usize)>>,
    /// How many pods of each class have no seat.
    pub(crate) left: Vec<usize>,
}

impl Seats<'_> {
    fn placed(&self, bins: &Bins<'_>, classes: &[Class<'_>]) -> BTreeMap<String, Vec<PodKey>> {
        let mut placed: BTreeMap<String, Vec<PodKey>> = BTreeMap::new();
        for (key, bin) in &self.kept {
            placed.entry(bins.get(*bin).name.to_owned()).or_default().push(key.clone());
        }
        for (class, filled) in self.filled.iter().enumerate().take(classes.len()) {
            let mut members = self.members[class].iter();
            for (bin, count) in filled {
                let keys = members.by_ref().take(*count).map(|key| (*key).clone());
                placed.entry(bins.get(*bin).name.to_owned()).or_default().extend(keys);
            }
        }
        placed
    }

    /// The members of a class without a seat, in order.
    pub(crate) fn standing(&self, class: usize) -> &[&PodKey] {
        let members = &self.members[class];
        &members[members.len() - self.left[class]..]
    }
}

/// Gives pods their place on what exists: first those for which it was meant, then by the
/// documented order.
fn seat<'w>(world: &'w World, classes: &[Class<'w>], states: &States, bins: &mut Bins<'w>) -> Seats<'w> {
    let mut seats = Seats { kept: Vec::new(), members: Vec::new(), filled: Vec::new(), left: Vec::new() };
    for class in classes {
        let mut members = Vec::with_capacity(class.members.len());
        for member in &class.members {
            let meant = bins::meant_for(world, member.key).and_then(|name| bins.find(name));
            let fitting = meant.filter(|bin| class.profiles.iter().any(|p| bins.capacity(*bin, class, states.wanted(*p), 1) > 0));
            match fitting {
                Some(bin) => {
                    bins.place(bin, class, 1);
                    seats.kept.push((member.key.clone(), bin));
                }
                None => members.push(member.key),
            }
        }
        seats.members.push(members);
    }
    for (number, class) in classes.iter().enumerate() {
        let count = seats.members[number].len();
        let filled = if bins.len() == 0 { Vec::new() } else { bins.fill(class, states, count) };
        seats.left.push(count - filled.iter().map(|(_, n)| n).sum::<usize>());
        seats.filled.push(filled);
    }
    seats
}

/// Asks every packer and takes the best answer; the greedy's when nothing is better.
fn choose(
    world: &World,
    bench: &mut Bench<'_, '_>,
    seats: &Seats<'_>,
    remaining: &Remaining,
) -> Result<(Priced, Option<Choice>), ScorerFailure> {
    let left = &seats.left;
    let runs = classes::runs(bench.classes, left);
    if runs.is_empty() {
        return Ok((Priced::default(), None));
    }
    let draft = greedy::pack(bench, &runs, &mut remaining.clone());
    let greedy = finish::finish(bench, draft.clone(), "greedy", remaining.clone())?;
    let greedy_cost = greedy.cost;
    let mut placed_left = left.clone();
    for (class, count) in &greedy.unplaced {
        placed_left[*class] -= count;
    }
    let translated = cost::translate(bench, &placed_left, remaining);
    let (mut best, bound) = if world.settings.packing == Packing::Greedy {
        let bound = pack::bound(&translated.problem);
        (greedy, bound.rank)
    } else {
        portfolio(world, bench, seats, &translated, (draft, greedy), remaining)?
    };
    let more = finish::second_helping(bench, &mut best, remaining)?;
    if best.claims.is_empty() {
        return Ok((best, None));
    }
    let choice = choice(&best, greedy_cost + more, bound);
    Ok((best, Some(choice)))
}

/// Solves for cost and returns the better of the answer and the greedy's, with the lower bound.
fn portfolio(
    world: &World,
    bench: &mut Bench<'_, '_>,
    seats: &Seats<'_>,
    translated: &cost::Translated,
    greedy: (Draft, Priced),
    remaining: &Remaining,
) -> Result<(Priced, Micros), ScorerFailure> {
    let (mut draft, greedy) = greedy;
    draft.unplaced.clear();
    let start = translated.packing(bench, &draft);
    let solution = pack::solve(&translated.problem, &start, world.settings.improvement_steps);
    let solved = translated.draft(bench, &solution.packing, remaining);
    let mut solved = finish::finish(bench, solved, solution.method, remaining.clone())?;
    solved.unplaced.extend(greedy.unplaced.iter().copied());
    let best = judge::better(world, bench, seats, greedy, solved, remaining)?;
    Ok((best, solution.bound.rank))
}

fn choice(best: &Priced, greedy: Micros, bound: Micros) -> Choice {
    let mut mix: BTreeMap<whittle_model::CapacityType, usize> = BTreeMap::new();
    for claim in &best.claims {
        *mix.entry(claim.choice.capacity_type).or_default() += 1;
    }
    Choice {
        pods: best.claims.iter().flat_map(|c| &c.content).map(|(_, count)| count).sum(),
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
