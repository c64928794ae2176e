//! Storms: everything at once, and each only what the world allows. Safety is looked at after every step (no claim with
//! two instances, no purchase beyond limits, no pod beyond a node's room, a silent auditor); once it is calm every pod
//! that fits runs, no instance is without a claim, and nothing is left to do.
//!
//! `STORMS=10000 cargo test -p whittle-sim storms` runs as many seeds; `STORM=1234` one alone, with its timeline.

use whittle_model::{Duration, Settings};
use whittle_sim::{Scenario, ScenarioObject, Weather, WorkloadKind};

use super::common::{Run, daemon_set, limited, play_in, pool, scenario, workload};

/// Seeds of one run of the tests: as many as fit into a coffee break without optimisation.
const SEEDS: u64 = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A small cluster; which pools, workloads and grace periods it has depends on the seed.
fn world(seed: u64) -> Scenario {
    let mut general = pool("general", if seed.is_multiple_of(3) { &["on-demand"] } else { &["spot", "on-demand"] });
    general.template.termination_grace_period = (seed % 4 == 1).then_some(Duration::minutes(4));
    general.template.expire_after = (seed % 5 == 2).then_some(Duration::minutes(25));
    let small = limited("small", &[("cpu", 8_000), ("nodes", 2)]);
    let with = |kind, name: &str, replicas, milli, mib, held: bool| {
        let mut workload = workload(kind, name, replicas, milli, mib);
        workload.template.grace = Duration::minutes(2);
        if held {
            workload.template.annotations.insert("karpenter.sh/do-not-disrupt".into(), "3m".into());
        }
        ScenarioObject::Workload(Box::new(workload))
    };
    let objects = vec![
        with(WorkloadKind::Deployment, "web", 4, 900, 900, false),
        with(WorkloadKind::Deployment, "api", 3, 1500, 2000, seed.is_multiple_of(2)),
        with(WorkloadKind::StatefulSet, "db", 2, 700, 1500, false),
        daemon_set("agent", 100),
    ];
    scenario(if seed % 7 == 3 { vec![general, small] } else { vec![general] }, objects)
}

fn storm(seed: u64) -> (Weather, Run) {
    let weather = Weather::drawn(seed);
    let story = "wait 3m\nscale deployment/web 8\nwait 3m\nscale deployment/api 1\nscale statefulset/db 3\nwait 5m\nuntil pods running\n\
        until settled within 2h\ndelete deployment/web\ndelete deployment/api\ndelete statefulset/db\nuntil nodes 0 within 2h\nuntil settled";
    (weather, play_in(world(seed), Settings::default(), seed, weather, story))
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

#[test]
fn storms() {
    if let Some(seed) = number("STORM") {
        let (weather, run) = storm(seed);
        assert_eq!(breaks(&run), None, "seed {seed}, weather {weather}\n{}", run.text());
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
