//! Chains of policies as the engine sees them: native scorers that veto, rank, price by the mix,
//! fail, or answer at random. Whatever they say, nothing is bought that a NodePool forbids.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use common::random::{Cluster, Dice};
use common::{NOW, catalog, labels, pod, pool};
use whittle_engine::{Engine, Plan};
use whittle_model::policy::{
    AskerColumn, CandidateColumn, Judging, MixRowColumn, MoveColumn, MovePodColumn, Pricing, PricingWants, RoundFacts, Wants, Words,
};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, ScorerFailure, Verdict};
use whittle_model::{
    CapacityType, Duration, Event, ListPrice, Micros, NodeClass, NodePool, Offering, Packing, Pod, PodKey, PodVolume, Reservation, Scorer,
    Settings, Volume, VolumeClaim, VolumeClaimPhase, keys,
};

/// What a test policy does with the tables it asked for.
type Price = Box<dyn FnMut(&Words, &Pricing) -> Result<Vec<Verdict>, ScorerFailure>>;

/// A chain named `p` with one native policy; every other chain is empty.
struct Native {
    wants: Wants,
    price: Price,
    calls: usize,
    /// The first column of the pods of the moves that it judged.
    moved: Vec<i64>,
}

impl Native {
    fn new(candidates: &[CandidateColumn], askers: &[AskerColumn], price: Price) -> Self {
        let pricing = PricingWants { candidates: candidates.to_vec(), askers: askers.to_vec(), mix: Vec::new() };
        Self { wants: Wants { pricing: Some(pricing), ..Wants::default() }, price, calls: 0, moved: Vec::new() }
    }

    fn by_mix(mut self, columns: &[MixRowColumn], keys: &[&str]) -> Self {
        self.wants.depends_on_mix = true;
        self.wants.mix_keys = keys.iter().map(|k| (*k).to_owned()).collect();
        self.wants.pricing.get_or_insert_default().mix = columns.to_vec();
        self
    }
}

impl Scorer for Native {
    fn chain(&mut self, chain: &str, _now: whittle_model::Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        Ok((chain == "p").then(|| Arc::new(self.wants.clone())))
    }

    fn open(&mut self, _chain: &str, _words: &Words, _facts: &RoundFacts) -> Result<(), ScorerFailure> {
        Ok(())
    }

    fn price(&mut self, _chain: &str, words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        self.calls += 1;
        let wants = self.wants.pricing.clone().unwrap_or_default();
        assert_eq!(tables.candidates.columns.len(), wants.candidates.len());
        assert!(tables.candidates.columns.iter().all(|c| c.len() == tables.candidates.rows), "every column is full");
        assert!(tables.askers.columns.iter().all(|c| c.len() == tables.askers.rows), "every column is full");
        (self.price)(words, tables)
    }

    fn judge(&mut self, _chain: &str, _words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        self.moved.extend(tables.pods.columns.iter().take(1).flatten());
        Ok(vec![MoveVerdict::Vetoed(7); tables.moves.rows])
    }

    fn reason(&self, number: u32) -> String {
        format!("p: reason {number}")
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        vec![PolicyRecord { policy: "p".to_owned(), calls: self.calls as u64, ..PolicyRecord::default() }]
    }
}

fn policed(name: &str) -> NodePool {
    let mut pool = pool(name);
    pool.annotations = labels(&[(keys::POLICY, "p")]);
    pool
}

fn engine(pools: &[NodePool], settings: Settings) -> Engine {
    let mut events = vec![Event::Settings(settings), Event::Catalog(Arc::new(catalog("default")))];
    events.push(Event::NodeClass(NodeClass { name: "default".to_owned(), not_ready: None, ..NodeClass::default() }));
    events.extend(pools.iter().map(|p| Event::NodePool(Box::new(p.clone()))));
    let mut engine = common::told(&events);
    engine.handle(&Event::Synced, NOW);
    engine
}

fn want(engine: &mut Engine, name: &str, namespace: &str, count: usize) {
    for n in 0..count {
        let mut pod = pod(&format!("{name}-{n:03}"), 1000, 2 << 30);
        pod.key.namespace = namespace.to_owned();
        engine.handle(&Event::Pod(Box::new(pod)), NOW);
    }
}

fn silent(engine: &Engine, plan: &Plan) {
    assert_eq!(common::objections(engine, plan), vec![]);
}

fn list(price: i64) -> Verdict {
    Verdict::Priced { rank: Micros(price), cost: Micros(price) }
}

#[test]
fn what_is_vetoed_is_not_bought_and_the_refusal_says_by_whom() {
    let vetoes = |_: &Words, tables: &Pricing| Ok(vec![Verdict::Vetoed(3); tables.candidates.rows]);
    let mut scorer = Native::new(&[CandidateColumn::ListMicros], &[], Box::new(vetoes));
    let mut engine = engine(&[policed("a")], Settings::default());
    want(&mut engine, "web", "default", 3);
    let plan = engine.plan(NOW, &mut scorer);
    silent(&engine, &plan);
    assert!(plan.nodes.is_empty());
    let why = plan.unplaced[0].reasons[0].why.to_string();
    assert!(why.contains("policies veto 48 for \"p: reason 3\""), "{why}");
    let open = engine.plan(NOW, &mut ListPrice);
    assert_eq!(open.nodes.len(), 1, "the pool itself allows it");
}

#[test]
fn ranks_decide_and_the_claim_says_what_to_buy() {
    // On demand at a tenth of its price: then it is preferred, and the claim is of that kind alone.
    let prefer = |words: &Words, tables: &Pricing| {
        let row = |at: usize| {
            let price = tables.candidates.columns[1][at];
            let on_demand = words.text(tables.candidates.columns[0][at]) == "on-demand";
            Verdict::Priced { rank: Micros(if on_demand { price / 10 } else { price }), cost: Micros(price) }
        };
        Ok((0..tables.candidates.rows).map(row).collect())
    };
    let columns = [CandidateColumn::CapacityType, CandidateColumn::ListMicros];
    let mut scorer = Native::new(&columns, &[], Box::new(prefer));
    for packing in [Packing::Greedy, Packing::Cost] {
        let mut engine = engine(&[policed("a")], Settings { packing, ..Settings::default() });
        want(&mut engine, "web", "default", 10);
        let plan = engine.plan(NOW, &mut scorer);
        silent(&engine, &plan);
        assert_eq!(plan.unplaced, vec![]);
        for node in &plan.nodes {
            assert_eq!(node.choice.capacity_type, CapacityType::OnDemand);
            assert_eq!(node.rank.0, node.cost.0 / 10);
            let ways = node.claim.requirements.get(keys::CAPACITY_TYPE).expect("it is fixed");
            assert_eq!(ways.single(), Some("on-demand"));
            let offers = &node.claim.annotations[keys::OFFERS];
            assert!(offers.starts_with(&format!("[[\"{}\",\"{}\",", node.choice.instance_type, node.choice.zone)), "{offers}");
        }
        assert_eq!(engine.plan(NOW, &mut ListPrice).nodes[0].choice.capacity_type, CapacityType::Spot);
    }
}

#[test]
fn an_asker_s_veto_binds_its_own_pods_only() {
    let no_r_for_team_a = |words: &Words, tables: &Pricing| {
        let team_a = words.text(tables.askers.columns[0][0]) == "team-a";
        let row = |at: usize| {
            let small = !words.text(tables.candidates.columns[0][at]).ends_with(".8");
            if team_a && small { Verdict::Vetoed(0) } else { list(tables.candidates.columns[1][at]) }
        };
        Ok((0..tables.candidates.rows).map(row).collect())
    };
    let columns = [CandidateColumn::InstanceType, CandidateColumn::ListMicros];
    let mut scorer = Native::new(&columns, &[AskerColumn::Namespace], Box::new(no_r_for_team_a));
    let mut engine = engine(&[policed("a")], Settings::default());
    want(&mut engine, "x", "team-a", 1);
    want(&mut engine, "y", "team-b", 1);
    let plan = engine.plan(NOW, &mut scorer);
    silent(&engine, &plan);
    assert_eq!(plan.unplaced, vec![]);
    for node in &plan.nodes {
        let of_a = node.pods.iter().any(|p| p.namespace == "team-a");
        let types = node.claim.requirements.get(keys::INSTANCE_TYPE).expect("types are named").values();
        assert!(!of_a || types.iter().all(|t| t.ends_with(".8")), "{types:?}");
    }
    // Alone, team b gets the small type it may have.
    engine.handle(&Event::PodGone(whittle_model::PodKey::new("team-a", "x-000")), NOW);
    let plan = engine.plan(NOW, &mut scorer);
    assert_eq!(plan.nodes[0].choice.instance_type, "c.2");
}

/// Spot while its share of pods is below `share` percent of all but the row's own node, on-demand
/// otherwise.
fn share(share: i64) -> Native {
    let price = move |words: &Words, tables: &Pricing| {
        let (mut spot, mut all) = (0, 0);
        for row in 0..tables.mix.rows {
            let pods = tables.mix.columns[1][row];
            all += pods;
            if words.text(tables.mix.columns[0][row]) == "spot" {
                spot += pods;
            }
        }
        let row = |at: usize| {
            let (kind, price, holds) =
                (tables.candidates.columns[0][at], tables.candidates.columns[1][at], tables.candidates.columns[2][at]);
            let is_spot = words.text(kind) == "spot";
            let holds = holds.max(1);
            let with = if is_spot { (spot + holds) * 100 } else { spot * 100 };
            let off = (with - share * (all + holds)).abs();
            Verdict::Priced { rank: Micros(off * 1000 + price / 1000), cost: Micros(price) }
        };
        Ok((0..tables.candidates.rows).map(row).collect())
    };
    let columns = [CandidateColumn::CapacityType, CandidateColumn::ListMicros, CandidateColumn::HoldsPods];
    Native::new(&columns, &[], Box::new(price)).by_mix(&[MixRowColumn::CapacityType, MixRowColumn::Pods], &["node-pool"])
}

#[test]
fn a_mix_is_reached_within_one_plan() {
    for packing in [Packing::Greedy, Packing::Cost] {
        let mut small = policed("a");
        small.template.requirements.add(common::any_of(keys::INSTANCE_TYPE, &["c.2", "m.2"]));
        let mut engine = engine(&[small], Settings { packing, ..Settings::default() });
        want(&mut engine, "web", "default", 60);
        let plan = engine.plan(NOW, &mut share(70));
        silent(&engine, &plan);
        let mut by_way: BTreeMap<CapacityType, usize> = BTreeMap::new();
        for node in &plan.nodes {
            *by_way.entry(node.choice.capacity_type).or_default() += node.pods.len();
        }
        assert_eq!(by_way[&CapacityType::Spot] + by_way[&CapacityType::OnDemand], 60);
        assert!((41..=43).contains(&by_way[&CapacityType::Spot]), "{packing:?}: {by_way:?}");
    }
}

#[test]
fn a_failure_is_left_out_or_closes_its_pools() {
    for closed in [false, true] {
        let mut failed = false;
        let fail = move |_: &Words, tables: &Pricing| {
            if failed && !closed {
                return Ok((0..tables.candidates.rows).map(|at| list(tables.candidates.columns[0][at])).collect());
            }
            failed = true;
            Err(ScorerFailure { policy: "p".to_owned(), chain: "p".to_owned(), why: "it trapped".to_owned(), closed })
        };
        let mut scorer = Native::new(&[CandidateColumn::ListMicros], &[], Box::new(fail));
        let mut engine = engine(&[policed("a")], Settings::default());
        want(&mut engine, "web", "default", 3);
        let plan = engine.plan(NOW, &mut scorer);
        silent(&engine, &plan);
        assert_eq!(plan.failures.len(), 1);
        if closed {
            assert!(plan.nodes.is_empty());
            assert!(plan.unplaced[0].reasons[0].why.to_string().contains("it trapped"), "{:?}", plan.unplaced[0]);
        } else {
            assert_eq!(
                plan.nodes.iter().map(|n| n.cost).sum::<Micros>(),
                engine.plan(NOW, &mut ListPrice).nodes.iter().map(|n| n.cost).sum()
            );
        }
    }
}

/// Answers anything at all.
fn adversary(seed: u64) -> Native {
    let mut dice = Dice(seed);
    let shape = dice.below(4);
    let price = move |_: &Words, tables: &Pricing| {
        let row = |_: usize| match dice.below(5) {
            0 => Verdict::Vetoed(0),
            1 => Verdict::Priced { rank: Micros(0), cost: Micros(0) },
            2 => Verdict::Priced { rank: Micros(1_000_000_000_000), cost: Micros(1) },
            _ => Verdict::Priced { rank: Micros(dice.amount(1_000_000)), cost: Micros(dice.amount(1_000_000)) },
        };
        Ok((0..tables.candidates.rows).map(row).collect())
    };
    let askers: &[AskerColumn] = if shape.is_multiple_of(2) { &[] } else { &[AskerColumn::Namespace, AskerColumn::CpuMilli] };
    let native = Native::new(&[CandidateColumn::Asker], askers, Box::new(price));
    if shape < 2 { native } else { native.by_mix(&[MixRowColumn::Pods], &["node-pool", "label:app"]) }
}

#[test]
fn no_answer_makes_a_plan_break_a_rule() {
    let mut bought = 0;
    for seed in 0..400 {
        let mut cluster = Cluster::of(seed);
        for pool in &mut cluster.pools {
            pool.annotations.insert(keys::POLICY.to_owned(), "p".to_owned());
        }
        let mut events = cluster.events();
        events.extend(cluster.wave(0));
        let engine = common::told(&events);
        let plan = engine.plan(NOW, &mut adversary(seed));
        assert_eq!(common::objections(&engine, &plan), vec![], "seed {seed}");
        bought += plan.nodes.len();
        assert_eq!(plan, engine.plan(NOW, &mut adversary(seed)), "seed {seed}: the same answers make the same plan");
    }
    assert!(bought > 200, "something is bought: {bought}");
}

#[test]
fn a_vetoed_removal_is_asked_again_later_and_not_at_once() {
    let mut scorer = Native::new(&[CandidateColumn::ListMicros], &[], Box::new(|_, t| Ok(vec![list(1); t.candidates.rows])));
    scorer.wants.judging = Some(whittle_model::policy::JudgingWants { moves: vec![MoveColumn::Kind], ..Default::default() });
    let mut pool = policed("a");
    pool.disruption.consolidate_after = Some(common::seconds(30));
    let mut door = common::door::Door::new(engine(&[pool], Settings::default()));
    door.now = NOW;
    door.put_pod(pod("web-000", 1000, 2 << 30));
    door.pass(common::seconds(2));
    door.join();
    door.settle();
    door.finish_boot();
    door.settle();
    let initialized = door.engine.world().claims().next().and_then(|c| c.status.initialized).expect("the node is in use");
    door.engine.handle(&Event::PodGone(whittle_model::PodKey::new("default", "web-000")), initialized);
    let due = door.engine.deadline(initialized).map(|d| d.at);
    let at = initialized.plus(common::seconds(31));
    let goes = |actions: &[whittle_model::Action]| common::door::names(actions).contains(&"delete");
    assert!(!goes(&door.engine.poll(at, &mut scorer)), "vetoed");
    let next = door.engine.deadline(at).expect("it is asked again").at;
    assert!(next > at, "{due:?} {next:?}");
    assert!(!goes(&door.engine.poll(next, &mut ListPrice)), "it is looked at again before it goes");
    let next = door.engine.deadline(next).expect("it is looked at again").at;
    let actions = door.engine.poll(next, &mut ListPrice);
    assert_eq!(common::door::names(&actions), ["delete"], "without the veto it goes");
}

/// Reservation and what is left of it, whether the asker has volumes, and its grace period.
type Told = (String, i64, i64, i64);

/// The catalogue with two instances left of a capacity reservation.
fn with_reservation() -> Event {
    let mut all = catalog("default");
    let offerings = &mut all.types[0].offerings;
    let reservation = Reservation { id: "cr-7".to_owned(), block: false, interruptible: false, left: 2 };
    let reserved =
        Offering { capacity_type: CapacityType::Reserved, reservation: Some(reservation), price: Micros(0), ..offerings[0].clone() };
    offerings.insert(0, reserved);
    Event::Catalog(Arc::new(all))
}

#[test]
fn policies_are_told_of_reservations_volumes_and_grace() {
    let mut settings = Settings::default();
    settings.features.reserved_capacity = true;
    let mut engine = engine(&[policed("a")], settings);
    engine.handle(&with_reservation(), NOW);
    let (key, phase, volume) = (PodKey::new("default", "data"), VolumeClaimPhase::Bound, "pv".to_owned());
    let data = VolumeClaim { key, phase, volume, bind_completed: true, storage_class: Some("gp3".to_owned()), ..VolumeClaim::default() };
    engine.handle(&Event::VolumeClaim(Box::new(data)), NOW);
    engine.handle(&Event::Volume(Box::new(Volume { name: "pv".to_owned(), ..Volume::default() })), NOW);
    let patient = Pod { grace: Duration::seconds(90), ..pod("patient", 2000, 1 << 30) };
    let stateful = Pod { volumes: vec![PodVolume { claim: "data".to_owned(), ephemeral: None }], ..pod("stateful", 1000, 1 << 30) };
    for pod in [patient, stateful] {
        engine.handle(&Event::Pod(Box::new(pod)), NOW);
    }
    let seen: Arc<Mutex<BTreeSet<Told>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let price = move |words: &Words, tables: &Pricing| {
        let (candidates, askers) = (&tables.candidates, &tables.askers);
        for row in 0..candidates.rows {
            let id = words.text(candidates.columns[1][row]).to_owned();
            notes.lock().unwrap().insert((id, candidates.columns[2][row], askers.columns[0][0], askers.columns[1][0]));
        }
        Ok(candidates.columns[0].iter().map(|price| list(*price)).collect())
    };
    let candidates = [CandidateColumn::ListMicros, CandidateColumn::ReservationId, CandidateColumn::ReservationLeft];
    let askers = [AskerColumn::HasVolume, AskerColumn::TerminationGraceSeconds];
    engine.plan(NOW, &mut Native::new(&candidates, &askers, Box::new(price)));
    let usual = pod("any", 1, 1).grace.as_seconds();
    let told = |id: &str, left, volume, grace| (id.to_owned(), left, volume, grace);
    let expected = [told("", 0, 0, 90), told("", 0, 1, usual), told("cr-7", 2, 0, 90), told("cr-7", 2, 1, usual)];
    assert_eq!(seen.lock().unwrap().iter().cloned().collect::<Vec<_>>(), expected.to_vec());
}

#[test]
fn policies_are_told_how_many_replicas_there_are_and_of_free_addresses() {
    let mut engine = engine(&[policed("a")], Settings::default());
    let free = [("us-east-1a".to_owned(), 240), ("us-east-1b".to_owned(), 0)].into();
    engine.handle(&Event::NodeClass(NodeClass { name: "default".to_owned(), free_addresses: free, ..NodeClass::default() }), NOW);
    // Two controllers with pods of one shape: three and one of them, of which one more ends and one has ended; and a pod of nobody's.
    let of = |name: &str, owner: Option<&str>| {
        let owner = owner.map(|owner| whittle_model::Owner { kind: "ReplicaSet".to_owned(), name: owner.to_owned() });
        Pod { owner, ..pod(name, 1000, 2 << 30) }
    };
    let mut all: Vec<Pod> = ["a-0", "a-1", "a-2"].map(|name| of(name, Some("a"))).into();
    all.extend([of("b-0", Some("b")), of("lone", None)]);
    all.push(common::bound(Pod { deleting: true, ..of("b-1", Some("b")) }, "gone"));
    all.push(Pod { phase: whittle_model::PodPhase::Succeeded, ..common::bound(of("b-2", Some("b")), "gone") });
    for pod in &all {
        engine.handle(&Event::Pod(Box::new(pod.clone())), NOW);
    }
    let seen: Arc<Mutex<BTreeSet<(String, i64, i64)>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let price = move |words: &Words, tables: &Pricing| {
        let (candidates, askers) = (&tables.candidates, &tables.askers);
        for row in 0..candidates.rows {
            let zone = words.text(candidates.columns[1][row]).to_owned();
            notes.lock().unwrap().insert((zone, candidates.columns[2][row], askers.columns[0][0]));
        }
        Ok(candidates.columns[0].iter().map(|price| list(*price)).collect())
    };
    let candidates = [CandidateColumn::ListMicros, CandidateColumn::Zone, CandidateColumn::FreeAddresses];
    engine.plan(NOW, &mut Native::new(&candidates, &[AskerColumn::DesiredReplicas], Box::new(price)));
    let zones = [("us-east-1a", 240), ("us-east-1b", 0), ("us-east-1c", -1)];
    let expected: Vec<(String, i64, i64)> =
        zones.iter().flat_map(|(zone, free)| [0, 1, 3].map(|replicas| ((*zone).to_owned(), *free, replicas))).collect();
    assert_eq!(seen.lock().unwrap().iter().cloned().collect::<Vec<_>>(), expected);
    engine.handle(&Event::PodGone(PodKey::new("default", "a-1")), NOW);
    let left = Arc::new(Mutex::new(BTreeSet::new()));
    let notes = Arc::clone(&left);
    let price = move |_: &Words, tables: &Pricing| {
        notes.lock().unwrap().insert(tables.askers.columns[0][0]);
        Ok(tables.candidates.columns[0].iter().map(|price| list(*price)).collect())
    };
    engine.plan(NOW, &mut Native::new(&candidates[..1], &[AskerColumn::DesiredReplicas], Box::new(price)));
    assert_eq!(left.lock().unwrap().iter().copied().collect::<Vec<i64>>(), [0, 1, 2], "one is gone");
}

#[test]
fn judges_of_moves_are_told_how_often_pods_were_started_again() {
    let mut scorer = Native::new(&[CandidateColumn::ListMicros], &[], Box::new(|_, t| Ok(vec![list(1); t.candidates.rows])));
    let (moves, pods) = (vec![MoveColumn::Kind], vec![MovePodColumn::Restarts]);
    scorer.wants.judging = Some(whittle_model::policy::JudgingWants { moves, pods, ..Default::default() });
    let mut door = common::door::Door::new(engine(&[policed("a")], Settings::default()));
    door.now = NOW;
    door.put_pod(Pod { restarts: 7, ..pod("web-000", 1000, 2 << 30) });
    door.pass(common::seconds(2));
    door.join();
    door.settle();
    door.finish_boot();
    door.settle();
    assert_eq!(door.bind_nominated(), 1);
    let claim = door.engine.world().claims().next().map(|claim| claim.name.clone()).expect("one was bought");
    door.tell(&Event::ProviderDrift { claim, reason: Some("AMIDrift".to_owned()) });
    for second in 1..60 {
        door.engine.poll(door.now.plus(common::seconds(second)), &mut scorer);
    }
    assert_eq!(scorer.moved.first(), Some(&7));
}
