//! Crashes and bad weather: safety always, progress once it is calm.

use whittle_model::{Duration, Settings, Timestamp};
use whittle_sim::{ScenarioObject, Simulation, Story, Weather};

use super::common::{Files, Record, daemon_set, deployment, limited, play_in, pool, scenario};

fn world() -> whittle_sim::Scenario {
    let objects = vec![deployment("web", 5, 900, 900), deployment("api", 4, 1500, 2000), daemon_set("agent", 100)];
    scenario(vec![pool("default", &["spot", "on-demand"])], objects)
}

/// Every moment of a scale-up at which something happens.
fn moments() -> Vec<Timestamp> {
    let mut simulation = Simulation::new(world(), Settings::default(), 3, Weather::calm());
    let mut moments = Vec::new();
    while simulation.step(Timestamp(120_000), &mut ()).expect("no rule is broken") {
        moments.push(simulation.now());
    }
    moments
}

#[test]
fn a_crash_at_any_moment_neither_loses_nor_doubles_an_instance() {
    let moments = moments();
    assert!(moments.len() > 20, "{moments:?}");
    for moment in &moments {
        for after in [0, 1] {
            let wait = Duration(moment.0 + after);
            let story = format!("wait {}ms\ncrash\nwait 1m\nuntil pods running\nuntil settled", wait.0);
            let run = play_in(world(), Settings::default(), 3, Weather::calm(), &story);
            assert!(run.ending.is_ok(), "crash at {moment:?}: {:?}\n{}", run.ending, run.text());
            assert_eq!(run.summary.stray_launches, 0, "crash at {moment:?}\n{}", run.text());
            assert_eq!(run.summary.pods.running, 9);
            assert_eq!(run.simulation.engine().world().claims().count(), run.summary.nodes.len());
        }
    }
}

#[test]
fn an_answer_that_is_lost_leads_to_the_same_instance() {
    let weather = Weather { lasting: Duration::minutes(2), lost_answers: 100, ..Weather::calm() };
    let run = play_in(world(), Settings::default(), 1, weather, "until pods running\nuntil settled");
    assert!(run.ending.is_ok(), "{:?}\n{}", run.ending, run.text());
    assert_eq!(run.summary.stray_launches, 0);
    assert_eq!(run.summary.launches.len(), run.summary.nodes.len(), "{}", run.text());
}

#[test]
fn throttled_launches_are_tried_again() {
    let weather = Weather { lasting: Duration(20_000), throttled: 100, ..Weather::calm() };
    let run = play_in(world(), Settings::default(), 1, weather, "until pods running");
    assert!(run.ending.is_ok(), "{:?}\n{}", run.ending, run.text());
    assert!(run.has("RequestLimitExceeded"), "{}", run.text());
}

#[test]
fn weather_is_safe_and_passes() {
    for seed in 0..60 {
        let weather = Weather { drought: 0, ..Weather::drawn(seed) };
        let story = "wait 3m\nscale deployment/web 9\nwait 3m\nscale deployment/api 1\nwait 4m\nuntil pods running\nuntil settled\n\
            delete deployment/web\ndelete deployment/api\nuntil nodes 0\nuntil settled";
        let run = play_in(world(), Settings::default(), seed, weather, story);
        assert!(run.ending.is_ok(), "seed {seed}, weather {weather}\n{:?}\n{}", run.ending, run.text());
        assert_eq!(run.summary.stray_launches, 0, "seed {seed}, weather {weather}\n{}", run.text());
        assert_eq!(run.simulation.engine().world().claims().count(), 0, "seed {seed}, weather {weather}\n{}", run.text());
    }
}

#[test]
fn limits_hold_in_any_weather() {
    for seed in 0..20 {
        let world = scenario(vec![limited("default", &[("cpu", 12_000), ("nodes", 3)])], vec![deployment("web", 20, 900, 900)]);
        let weather = Weather { drought: 0, ..Weather::drawn(seed) };
        let run = play_in(world, Settings::default(), seed, weather, "wait 12m\nuntil settled");
        assert!(run.ending.is_ok(), "seed {seed}, weather {weather}\n{:?}\n{}", run.ending, run.text());
        assert!(!run.summary.pods.pending.is_empty());
        assert!(run.summary.nodes.len() <= 3 && !run.summary.nodes.is_empty());
    }
}

#[test]
fn bad_weather_is_the_same_to_the_byte_for_the_same_seed() {
    let run = |seed| play_in(world(), Settings::default(), seed, Weather::drawn(seed), "wait 10m\nuntil settled").record.json;
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_plan_over_an_unchanged_world_is_empty() {
    let mut simulation = Simulation::new(world(), Settings::default(), 9, Weather::calm());
    let mut record = Record::default();
    simulation.run(&Story::parse("until settled").unwrap(), &mut Files::default(), &mut record).unwrap();
    let before = record.lines.len();
    simulation.run(&Story::parse("wait 6h").unwrap(), &mut Files::default(), &mut record).unwrap();
    assert_eq!(record.lines.len(), before + 1, "only the line of the story itself: {:?}", &record.lines[before..]);
}

/// Seeds differ in prices, boot times and ties; none of them gives a reason to move anything.
#[test]
fn a_steady_cluster_makes_no_move_in_a_day() {
    for seed in 0..4 {
        let objects = || {
            let mut objects: Vec<ScenarioObject> =
                (0..6).map(|n| deployment(&format!("app-{n}"), 4 + n, 300 + 250 * i64::from(n), 700 + 900 * i64::from(n % 3))).collect();
            objects.push(daemon_set("agent", 100));
            objects
        };
        let world = scenario(vec![pool("mixed", &["spot", "on-demand"]), pool("plain", &["on-demand"])], objects());
        let mut settings = Settings::default();
        settings.features.spot_to_spot = seed % 2 == 1;
        let mut simulation = Simulation::new(world, settings, seed, Weather::calm());
        let mut record = Record::default();
        simulation.run(&Story::parse("until pods running\nuntil settled within 4h").unwrap(), &mut Files::default(), &mut record).unwrap();
        let (before, figures) = (record.lines.len(), simulation.figures());
        simulation.run(&Story::parse("wait 24h").unwrap(), &mut Files::default(), &mut record).unwrap();
        assert_eq!(record.lines.len(), before + 1, "seed {seed}, only the line of the story itself: {:?}", &record.lines[before..]);
        let after = simulation.figures();
        assert_eq!((after.launches, after.evictions, after.nodes), (figures.launches, figures.evictions, figures.nodes));
    }
}
