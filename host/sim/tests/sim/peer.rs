//! A model of Karpenter in the same world, and the figures by which the two are compared.

use whittle_model::{Duration, Settings, Timestamp};
use whittle_sim::{Figures, Observer, Scenario, Simulation, Story, TimelineEvent, Weather, karpenter};

use super::common::{Files, deployment, play, pool, scenario};

/// Moves that were begun: when, how many nodes went, how many came.
#[derive(Default)]
struct Moves(Vec<(Timestamp, usize, usize)>);

impl Observer for Moves {
    fn on(&mut self, at: Timestamp, event: &TimelineEvent) {
        if let TimelineEvent::Move { nodes, replacements, stage: "begun", .. } = event {
            self.0.push((at, nodes.len(), replacements.len()));
        }
    }
}

fn world() -> Scenario {
    scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 24, 900, 900), deployment("api", 9, 700, 3000)])
}

const STORY: &str = "until pods running\nscale deployment/web 5\nscale deployment/api 2\nuntil settled within 4h";

fn moves(settings: Settings) -> (Vec<(Timestamp, usize, usize)>, Figures) {
    let mut simulation = Simulation::new(world(), settings, 1, Weather::calm());
    let mut moves = Moves::default();
    let story = Story::parse(STORY).expect("the story reads");
    simulation.run(&story, &mut Files::default(), &mut moves).expect("the story comes true");
    (moves.0, simulation.figures())
}

#[test]
fn karpenter_begins_one_move_after_the_other_and_buys_one_node_at_most_for_it() {
    let (ours, _) = moves(Settings::default());
    let (theirs, figures) = moves(karpenter(&Settings::default()));
    let apart = |moves: &[(Timestamp, usize, usize)]| moves.windows(2).all(|two| two[1].0.since(two[0].0) >= Duration::seconds(15));
    assert!(theirs.len() > 1 && apart(&theirs), "{theirs:?}");
    assert!(theirs.iter().all(|(_, _, bought)| *bought <= 1), "{theirs:?}");
    assert!(!ours.is_empty() && ours != theirs, "the same world moves otherwise under our settings: {ours:?}");
    assert!(figures.nodes > 0 && figures.evictions > 0);
}

#[test]
fn nobody_nominates_under_the_model() {
    let settings = karpenter(&Settings::default());
    let run = super::common::play_in(world(), settings, 1, Weather::calm(), STORY);
    assert!(run.ending.is_ok() && !run.has("nominated"), "{:?}\n{}", run.ending, run.text());
}

#[test]
fn figures_count_what_the_timeline_shows() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 3, 500, 512)]);
    let mut run = play(world, "until pods running\nuntil settled\nwait 10s");
    let node = run.summary.nodes[0].clone();
    let before = run.simulation.figures();
    let bound = |line: &&String| line.contains("bound to");
    let waited = run.record.lines.iter().filter(bound).map(|line| line[..8].trim().parse::<i64>().unwrap() * 3 / 1000).sum::<i64>();
    assert_eq!((before.nodes, before.launches, before.evictions), (1, 1, 0), "{}", run.text());
    assert!((before.pending_pod_seconds - waited).abs() <= 1, "{before:?}, {waited}\n{}", run.text());
    let story = Story::parse(&format!("delete node/{}\nwait 10s\nuntil pods running\nuntil settled", node.name)).unwrap();
    run.simulation.run(&story, &mut Files::default(), &mut run.record).unwrap();
    let after = run.simulation.figures();
    assert_eq!((after.nodes, after.launches, after.evictions, after.most_nodes), (1, 2, 3, 2), "{}", run.text());
    assert_eq!(after.hourly_micros, node.price_micros);
    assert!(after.node_seconds > before.node_seconds && after.total_micros > before.total_micros);
    assert!(after.pending_pod_seconds > before.pending_pod_seconds + 90, "three pods waited half a minute: {after:?}");
    let samples = run.simulation.samples(Duration::seconds(1), 20);
    assert!(samples.iter().any(|s| s.nodes == 0) && samples[19].nodes == 1, "{samples:?}");
    assert_eq!(samples[19].hourly_micros, node.price_micros);
}
