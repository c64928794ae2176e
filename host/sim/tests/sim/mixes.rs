//! Random mixes of workloads: everything comes to run, and nominated pods sit where the plan put
//! them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use whittle_engine::Engine;
use whittle_model::{Action, Event, NodePool, PodKey, Settings, Timestamp};
use whittle_sim::{Recorder, ScenarioObject, Simulation, Story, Weather};

use super::common::{Files, Record, Run, daemon_set, deployment, limited, play_in, pool, scenario, steady};

/// A number below `most` that depends on the seed and the purpose alone.
fn pick(seed: u64, purpose: u64, most: u64) -> u64 {
    let mut word = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    word = (word ^ (word >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (word ^ (word >> 32)) % most
}

fn mix(seed: u64) -> Vec<ScenarioObject> {
    let mut objects = Vec::new();
    for n in 0..=pick(seed, 1, 6) {
        let milli = i64::try_from(100 + 50 * pick(seed, 100 + n, 70)).expect("small");
        let mib = i64::try_from(128 + 64 * pick(seed, 200 + n, 60)).expect("small");
        let replicas = u32::try_from(1 + pick(seed, 300 + n, 20)).expect("small");
        objects.push(deployment(&format!("w{n}"), replicas, milli, mib));
    }
    if pick(seed, 2, 2) == 0 {
        objects.push(daemon_set("agent", 150));
    }
    objects
}

fn run(seed: u64, minor: u32, pool: NodePool) -> Run {
    let settings = Settings { kubernetes_minor: minor, ..Settings::default() };
    let world = scenario(vec![pool], mix(seed));
    let run = play_in(world, settings, seed, Weather::calm(), "until pods running within 15m\nuntil settled");
    assert!(run.ending.is_ok(), "seed {seed}: {:?}\n{}", run.ending, run.text());
    assert_eq!(run.summary.pods.pending, [], "seed {seed}\n{}", run.text());
    run
}

#[test]
fn nominated_pods_sit_where_the_plan_put_them() {
    for seed in 0..80 {
        // What a plan left on the table a move may take later; here the plan alone is looked at.
        let run = run(seed, 36, steady("default", &["on-demand"]));
        let plans = run.record.lines.iter().filter(|l| l.contains("plan:")).count();
        assert_eq!(plans, 1, "seed {seed}\n{}", run.text());
        assert!(run.summary.disruptions.is_empty(), "seed {seed}\n{}", run.text());
        let cost = run.summary.cost;
        assert!(cost.bound_micros <= cost.hourly_micros && cost.hourly_micros <= cost.greedy_micros, "seed {seed}: {cost:?}");
    }
}

/// Remembers where pods were nominated first, and how often in all.
#[derive(Clone, Default)]
struct Nominations(Rc<RefCell<(BTreeMap<PodKey, String>, usize)>>);

impl Recorder for Nominations {
    fn begins(&mut self, _: Timestamp, _: &Engine) {}
    fn told(&mut self, _: Timestamp, _: &Event) {}
    fn polls(&mut self, _: Timestamp) {}
    fn polled(&mut self, _: Timestamp, actions: &[Action], _: &Engine) {
        let (first, all) = &mut *self.0.borrow_mut();
        for action in actions {
            if let Action::Nominate { pod, node } = action {
                first.entry(pod.clone()).or_insert_with(|| node.clone());
                *all += 1;
            }
        }
    }
}

/// Every node that opens has kube-scheduler try all pods that wait, and a try that fails costs a pod its nomination.
#[test]
fn nominated_pods_are_bound_to_the_very_nodes_they_were_planned_on() {
    let (mut elsewhere, mut pods, mut writes) = (0, 0, 0);
    for seed in 0..40 {
        let sizes = vec![deployment("small", 8, 700, 1024), deployment("middle", 8, 1600, 3072), deployment("large", 8, 3100, 6000)];
        let objects = if seed % 2 == 0 { sizes } else { mix(seed) };
        let nominations = Nominations::default();
        let simulation =
            Simulation::new(scenario(vec![pool("default", &["on-demand"])], objects), Settings::default(), seed, Weather::calm());
        let mut simulation = simulation.with_recorder(Box::new(nominations.clone()));
        // Half of the time all nodes of a launch join at once.
        let story = if seed % 4 < 2 { "until pods running within 15m" } else { "boot 30s\nuntil pods running within 15m" };
        let story = Story::parse(story).expect("the story reads");
        let ending = simulation.run(&story, &mut Files::default(), &mut Record::default());
        assert!(ending.is_ok(), "seed {seed}: {ending:?}");
        let (first, all) = &*nominations.0.borrow();
        let world = simulation.engine().world();
        pods += first.len();
        writes += all;
        elsewhere += first.iter().filter(|(pod, node)| world.pod(pod).and_then(|p| p.node).as_ref() != Some(*node)).count();
    }
    assert_eq!((elsewhere, writes), (0, pods), "pods that are elsewhere, and nominations in all");
    assert!(pods > 900);
}

#[test]
fn without_nominations_everything_comes_to_run_all_the_same() {
    for seed in 0..80 {
        run(seed, 34, pool("default", &["on-demand"]));
    }
}

/// Two pools, old and new servers, bad weather in two of three runs.
#[test]
fn mixes_come_and_go_in_any_weather() {
    let story = "wait 70s\nscale deployment/late 6\nwait 20s\nscale deployment/w0 0\nwait 90s\nscale deployment/late 1\nwait 12m\n\
        until pods running within 30m\nuntil settled within 30m\ndelete namespace/default\nuntil nodes 0\nuntil settled within 20m";
    for seed in 0..60 {
        let settings = Settings { kubernetes_minor: if seed % 2 == 0 { 34 } else { 36 }, ..Settings::default() };
        let mut objects = mix(seed);
        objects.push(deployment("late", 0, 700, 700));
        let world = scenario(vec![pool("default", &["on-demand", "spot"]), limited("other", &[("cpu", 16_000)])], objects);
        let weather = if seed % 3 == 0 { Weather::calm() } else { Weather { drought: 0, ..Weather::drawn(seed) } };
        let run = play_in(world, settings, seed, weather, story);
        assert!(run.ending.is_ok(), "seed {seed}, weather {weather}: {:?}\n{}", run.ending, run.text());
        assert_eq!(run.summary.stray_launches, 0, "seed {seed}, weather {weather}\n{}", run.text());
        assert_eq!(run.simulation.engine().world().claims().count(), 0, "seed {seed}, weather {weather}\n{}", run.text());
    }
}
