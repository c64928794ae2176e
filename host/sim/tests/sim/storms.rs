//! Storms: everything at once, and each only what the world allows. Safety is looked at after every step (no claim with
//! two instances, none let go while its instance runs, no purchase beyond limits, no move beyond budgets, no eviction
//! against an annotation, no pod lost or beyond a node's room, a silent auditor); once it is calm every pod that fits runs,
//! no instance is without a claim, and nothing is left to do.
//!
//! `STORMS=10000 cargo test -p whittle-sim storms` runs as many seeds; `STORM=1234` one alone, with its timeline.

use whittle_model::{DisruptionBudget, Duration, LabelSelector, Labels, PodKey, Settings, Timestamp, keys};
use whittle_sim::{Budget, Scenario, ScenarioObject, Simulation, Weather, WorkloadKind};

use super::common::{Run, daemon_set, limited, play_on, pool, scenario, workload};
use super::moody::{self, Moody};

/// Seeds of one run of the tests: as many as fit into a coffee break without optimisation.
const SEEDS: u64 = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A PodDisruptionBudget that lets so many pods be away.
fn budget(name: &str, away: &str) -> ScenarioObject {
    let selector = LabelSelector::of_labels(&Labels::from([("app".to_owned(), name.to_owned())]));
    ScenarioObject::Budget(Budget {
        key: PodKey::new("default", name),
        selector: Some(selector),
        min_available: None,
        max_unavailable: Some(away.to_owned()),
        always_allow_unready: false,
    })
}

/// Disruption budgets of a NodePool.
fn allows(nodes: &[&str]) -> Vec<DisruptionBudget> {
    let one = |nodes: &&str| DisruptionBudget { nodes: (*nodes).to_owned(), schedule: None, duration: None, reasons: Vec::new() };
    nodes.iter().map(one).collect()
}

/// A small cluster; which pools, workloads, budgets, annotations and grace periods it has depends on the seed.
fn world(seed: u64) -> Scenario {
    let mut general = pool("general", if seed.is_multiple_of(3) { &["on-demand"] } else { &["spot", "on-demand"] });
    general.template.termination_grace_period = (seed % 4 == 1).then_some(Duration::minutes(4));
    general.template.expire_after = (seed % 5 == 2).then_some(Duration::minutes(25));
    general.disruption.budgets = match seed % 6 {
        0 | 1 => allows(&["1"]),
        2 => allows(&["50%", "2"]),
        _ => Vec::new(),
    };
    if moody(seed) {
        general.annotations.insert(keys::POLICY.to_owned(), moody::CHAIN.to_owned());
    }
    let small = limited("small", &[("cpu", 8_000), ("nodes", 2)]);
    let with = |kind, name: &str, replicas, milli, mib, held: Option<&str>| {
        let mut workload = workload(kind, name, replicas, milli, mib);
        workload.template.grace = Duration::minutes(2);
        if let Some(span) = held {
            workload.template.annotations.insert(keys::DO_NOT_DISRUPT.to_owned(), span.to_owned());
        }
        ScenarioObject::Workload(Box::new(workload))
    };
    let mut objects = vec![
        with(WorkloadKind::Deployment, "web", 4, 900, 900, None),
        with(WorkloadKind::Deployment, "api", 3, 1500, 2000, seed.is_multiple_of(2).then_some("3m")),
        // Where a grace period ends it all, pods may be protected for ever.
        with(WorkloadKind::StatefulSet, "db", 2, 700, 1500, (seed % 8 == 1).then_some("true")),
        daemon_set("agent", 100),
    ];
    if seed % 3 != 1 {
        objects.extend([budget("web", "1"), budget("db", "50%")]);
    }
    scenario(if seed % 7 == 3 { vec![general, small] } else { vec![general] }, objects)
}

/// Whether a policy that changes its mind has a say.
fn moody(seed: u64) -> bool {
    seed % 9 == 4
}

fn storm(seed: u64) -> (Weather, Run) {
    let weather = Weather::drawn(seed);
    let story = "wait 3m\nscale deployment/web 8\nwait 3m\nscale deployment/api 1\nscale statefulset/db 3\nwait 5m\n\
        until pods running within 30h\nuntil settled within 30h\n\
        delete deployment/web\ndelete deployment/api\ndelete statefulset/db\nuntil nodes 0 within 30h\nuntil settled";
    let mut settings = Settings::default();
    settings.features.spot_to_spot = seed.is_multiple_of(4);
    let mut simulation = Simulation::new(world(seed), settings, seed, weather);
    if moody(seed) {
        simulation = simulation.with_scorer(Box::new(Moody::new(seed, Timestamp(0).plus(weather.lasting))));
    }
    (weather, play_on(simulation, story))
}

/// What is wrong at the end of a storm, if anything.
fn breaks(run: &Run) -> Option<String> {
    let claims = run.simulation.engine().world().claims().count();
    match &run.ending {
        Err(error) => Some(error.to_string()),
        Ok(_) if run.summary.stray_launches > 0 => Some(format!("{} stray launches", run.summary.stray_launches)),
        Ok(_) if claims > 0 => Some(format!("{claims} claims are left")),
        Ok(_) => None,
    }
}

/// What the engine believes at the end, for whoever looks into a break.
fn left(run: &Run) -> String {
    let world = run.simulation.engine().world();
    let claim = |claim: &whittle_model::NodeClaim| {
        let pods: Vec<String> = world.pods_on(&claim.status.node).map(ToString::to_string).collect();
        format!("claim {} on {:?}, deleting {}: {}", claim.name, claim.status.node, claim.deleting, pods.join(" "))
    };
    let nodes = run.summary.nodes.iter().map(|node| format!("node {} with {} pods", node.name, node.pods));
    world.claims().map(claim).chain(nodes).collect::<Vec<_>>().join("\n")
}

#[test]
fn storms() {
    if let Some(seed) = number("STORM") {
        let (weather, run) = storm(seed);
        assert_eq!(breaks(&run), None, "seed {seed}, weather {weather}\n{}\n{}", run.text(), left(&run));
        return;
    }
    let seeds = number("STORMS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |n| u64::try_from(n.get()).unwrap_or(1));
    let part = |nth: u64| -> Vec<String> {
        let mine = (0..seeds).filter(|seed| seed % threads == nth);
        mine.filter_map(|seed| {
            let (weather, run) = storm(seed);
            breaks(&run).map(|what| format!("seed {seed}, weather {weather}: {what}"))
        })
        .collect()
    };
    let broken: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|nth| scope.spawn(move || part(nth))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("a storm that panics says so itself")).collect()
    });
    println!("{}", broken.join("\n"));
    println!("{seeds} seeds, {} breaks", broken.len());
    assert!(broken.is_empty(), "replay one with STORM=<seed>:\n{}", broken.join("\n"));
}
