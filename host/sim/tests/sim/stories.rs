//! What the simulated cluster does, as short stories.

use super::common::{self, Files, Run, daemon_set, deployment, limited, play, play_in, pool, scenario, steady, template, workload};
use whittle_model::{Settings, Timestamp};
use whittle_sim::{RunError, ScenarioObject, Simulation, Story, Weather, WorkloadKind};

const INFLATE: &str = "scale deployment/inflate 5\nuntil pods running\ndelete deployment/inflate\nuntil nodes 0\nuntil settled";

fn inflate() -> Run {
    play(scenario(vec![pool("default", &["on-demand"])], vec![deployment("inflate", 0, 1000, 1024)]), INFLATE)
}

#[test]
fn pods_get_nodes_and_nodes_go_when_the_pods_are_gone() {
    let run = inflate();
    assert!(run.has("5 pods of default/inflate pending"));
    assert!(run.has("5 pods of default/inflate running"));
    assert_eq!(run.summary.nodes, []);
    assert_eq!(run.summary.stray_launches, 0);
    assert_eq!(run.summary.cost.hourly_micros, 0);
    assert!(run.summary.cost.total_micros > 0);
    assert_eq!(run.summary.launches.len(), run.summary.disruptions.len());
    assert!(run.summary.disruptions.iter().all(|d| d.reason == "Empty"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let runs: Vec<Run> = (0..2).map(|_| inflate()).collect();
    assert_eq!(runs[0].record.json, runs[1].record.json);
    let json = |run: &Run| serde_json::to_string(&run.summary).unwrap();
    assert_eq!(json(&runs[0]), json(&runs[1]));
}

#[test]
fn the_bill_is_price_times_time() {
    // A node that may be moved would be exchanged once it is dear.
    let world = scenario(vec![steady("default", &["on-demand"])], vec![deployment("one", 1, 1000, 1024)]);
    let run = play(world, "until pods running\nwait 1h\nprice on-demand c1.large us-east-1a 1.085\nwait 1h");
    // Bought once the batch window closed; then an hour and some at $0.085 and an hour at $1.085.
    let [node] = run.summary.nodes.as_slice() else { panic!("{}", run.text()) };
    assert_eq!((node.offering.instance_type.as_str(), node.price_micros), ("c1.large", 1_085_000));
    let bought = run.summary.launches[0].at;
    let first = run.simulation.now().0 as f64 / 1000.0 - 3600.0 - bought;
    let expected = 85_000.0 * first / 3600.0 + 1_085_000.0;
    assert!((run.summary.cost.total_micros as f64 - expected).abs() < 2.0, "{} {expected}", run.summary.cost.total_micros);
    assert_eq!(run.summary.cost.hourly_micros, 1_085_000);
}

#[test]
fn spot_that_is_sold_out_gives_way_to_on_demand() {
    let world = || scenario(vec![pool("default", &["spot", "on-demand"])], vec![deployment("web", 3, 1000, 1024)]);
    let run = play(world(), "until pods running");
    assert!(run.summary.nodes.iter().all(|n| n.offering.capacity_type == "spot"), "{}", run.text());
    let run = play(world(), "sold-out spot * *\nuntil pods running");
    assert!(run.has("sold out"), "{}", run.text());
    assert!(run.summary.nodes.iter().all(|n| n.offering.capacity_type == "on-demand"));
}

#[test]
fn everything_sold_out_for_a_while_is_bought_when_it_comes_back() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 1, 1000, 1024)]);
    let run = play(world, "sold-out on-demand * * for 10m\nuntil settled");
    assert_eq!(run.summary.pods.running, 1, "{}", run.text());
    assert!(run.simulation.now() > Timestamp(600_000));
}

#[test]
fn everything_sold_out_for_ever_settles_with_pods_pending() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 1, 1000, 1024)]);
    let run = play(world, "sold-out on-demand * *\nuntil settled within 20m");
    assert_eq!(run.summary.pods.pending.len(), 1, "{}", run.text());
    assert_eq!(run.summary.nodes, []);
}

#[test]
fn a_nomination_keeps_the_plan_and_older_servers_have_none() {
    let world = || {
        let objects = vec![deployment("a", 7, 900, 900), deployment("b", 5, 400, 2000), deployment("c", 9, 300, 300)];
        scenario(vec![pool("default", &["on-demand"])], objects)
    };
    let run = play(world(), "until pods running\nuntil settled");
    assert!(run.has("nominated to"));
    let explained: Vec<String> = ["a", "b", "c"].iter().flat_map(|w| run.simulation.explain(w).unwrap()).collect();
    assert!(explained.iter().all(|line| line.contains("bought for it")), "{explained:#?}");
    let old = Settings { kubernetes_minor: 34, ..Settings::default() };
    let run = play_in(world(), old, 1, Weather::calm(), "until pods running\nuntil settled");
    assert_eq!(run.ending.unwrap().unmet, []);
    assert!(!run.record.lines.iter().any(|l| l.contains("nominated")));
    assert_eq!(run.summary.pods.running, 21);
}

#[test]
fn a_limit_is_kept_and_said() {
    let world = scenario(vec![limited("default", &[("cpu", 4000)])], vec![deployment("web", 6, 1500, 1024)]);
    let run = play(world, "until settled");
    assert!(!run.summary.pods.pending.is_empty());
    assert!(run.summary.pods.pending[0].reasons.iter().any(|r| r.contains("limit")), "{:?}", run.summary.pods.pending);
}

#[test]
fn daemons_run_on_every_node_and_hold_no_node() {
    let objects = vec![daemon_set("agent", 200), deployment("web", 4, 1700, 512)];
    let run = play(scenario(vec![pool("default", &["on-demand"])], objects), "until pods running\nwait 10s");
    let pods: usize = run.summary.nodes.iter().map(|n| n.pods).sum();
    assert_eq!(pods, 4 + run.summary.nodes.len(), "{}", run.text());
    assert_eq!(run.summary.pods.running, 4);
}

#[test]
fn stateful_pods_come_one_after_another_and_keep_their_names() {
    let set = || ScenarioObject::Workload(Box::new(workload(WorkloadKind::StatefulSet, "db", 3, 500, 512)));
    let run = play(scenario(vec![pool("default", &["on-demand"])], vec![set()]), "until pods running\ndelete pod/db-1\nuntil pods running");
    let created = run.record.lines.iter().filter(|l| l.contains("created")).count();
    assert_eq!(created, 4, "{}", run.text());
    assert_eq!(run.summary.pods.running, 3);
    assert!(run.simulation.explain("default/db-1").is_ok());
}

#[test]
fn a_job_ends_and_its_node_goes() {
    let mut job = workload(WorkloadKind::Job, "sum", 2, 1000, 512);
    job.completions = Some(3);
    job.template.annotations.insert("whittle.sh/runs-for".into(), "5m".into());
    let world = scenario(vec![pool("default", &["on-demand"])], vec![ScenarioObject::Workload(Box::new(job))]);
    let run = play(world, "until pods running\nwait 20m");
    let succeeded = run.record.lines.iter().filter(|l| l.contains("succeeded")).count();
    assert!(succeeded >= 2, "{}", run.text());
    assert_eq!(run.summary.nodes, [], "{}", run.text());
}

#[test]
fn an_interrupted_instance_is_replaced() {
    let world = scenario(vec![pool("default", &["spot"])], vec![deployment("web", 2, 1000, 1024)]);
    let run = play(world, "until pods running\ninterrupt spot\nwait 3m\nuntil pods running\nuntil settled");
    let lost = run.record.lines.iter().find(|l| l.contains("interruption of")).unwrap();
    assert!(run.summary.nodes.iter().all(|n| !lost.contains(&n.name)), "{}", run.text());
    assert!(run.has("SpotInterrupted") && !run.has("is gone"), "it was drained within its notice\n{}", run.text());
    assert_eq!(run.summary.pods.running, 2);
    assert_eq!(run.simulation.engine().world().claims().count(), run.summary.nodes.len(), "{}", run.text());
}

#[test]
fn an_instance_that_never_joins_is_given_up() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 1, 1000, 1024)]);
    let run = play(world, "boot never\nwait 1m\nboot 40s\nuntil pods running within 30m\nuntil settled");
    assert_eq!(run.summary.disruptions[0].reason, "RegistrationTimeout", "{}", run.text());
    assert_eq!(run.summary.nodes.len(), 1);
}

#[test]
fn an_until_that_never_comes_true_ends_the_run_with_its_reason() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("huge", 1, 64_000, 1024)]);
    let run = play_in(world, Settings::default(), 1, Weather::calm(), "\nuntil pods running within 5m");
    let Err(RunError::Never { number, why, .. }) = run.ending else { panic!("{:?}", run.ending) };
    assert_eq!(number, 2);
    assert!(why.contains("default/huge"), "{why}");
}

#[test]
fn lines_that_cannot_be_done_say_why() {
    for (story, part) in [
        ("scale deployment/nobody 3", "there is no deployment/default/nobody"),
        ("delete nodepool/nobody", "there is no nodepool/nobody"),
        ("apply nothing.yaml", "no file nothing.yaml"),
        ("interrupt oldest", "no such node"),
        ("price spot x9.large us-east-1a 1", "is not sold"),
        ("set nodepool/a spec.weight=3", "has no spec.weight"),
    ] {
        let run = play_in(scenario(Vec::new(), Vec::new()), Settings::default(), 1, Weather::calm(), story);
        let Err(error) = run.ending else { panic!("{story} was done") };
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_live_cluster_is_the_starting_world() {
    let first =
        play(scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 3, 1000, 1024)]), "until pods running\nuntil settled");
    let world = first.simulation.engine().world();
    let far = 1_700_000_000_000;
    let mut objects: Vec<ScenarioObject> = Vec::new();
    for node in world.nodes() {
        for key in world.pods_on(&node.name) {
            let mut pod = world.pod(key).unwrap();
            pod.created = Timestamp(pod.created.0 + far);
            objects.push(ScenarioObject::Pod(Box::new(pod)));
        }
        let mut node = node.clone();
        node.created = Timestamp(node.created.0 + far);
        objects.push(ScenarioObject::Node(Box::new(node)));
    }
    for claim in world.claims() {
        let mut claim = claim.clone();
        claim.created = Timestamp(claim.created.0 + far);
        for time in [&mut claim.status.launched, &mut claim.status.registered, &mut claim.status.initialized] {
            *time = time.map(|t| Timestamp(t.0 + far));
        }
        claim.status.last_pod_event = None;
        objects.push(ScenarioObject::Claim(Box::new(claim)));
    }
    objects.push(deployment("web", 3, 1000, 1024));
    let again =
        play(scenario(vec![pool("default", &["on-demand"])], objects), "until settled\nwait 5m\ndelete deployment/web\nuntil nodes 0");
    assert!(again.summary.launches.is_empty(), "{}", again.text());
    assert_eq!(again.summary.disruptions.len(), first.summary.nodes.len());
}

#[test]
fn deleting_a_node_moves_its_pods() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 3, 1000, 1024)]);
    let mut run = play(world, "until pods running\nuntil settled");
    let node = run.summary.nodes[0].name.clone();
    let story = whittle_sim::Story::parse(&format!("delete node/{node}\nwait 10s\nuntil pods running\nuntil settled")).unwrap();
    run.simulation.run(&story, &mut common::Files::default(), &mut run.record).unwrap();
    let summary = run.simulation.summary();
    assert_eq!(summary.pods.running, 3, "{}", run.text());
    assert!(summary.nodes.iter().all(|n| n.name != node));
    assert_eq!(summary.stray_launches, 0);
}

#[test]
fn explain_tells_of_choice_and_runner_up() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 1, 1000, 1024), deployment("huge", 1, 64_000, 512)]);
    let run = play(world, "until settled");
    let web = run.simulation.explain("default/web").unwrap().join("\n");
    assert!(web.contains("c1.large") && web.contains("runner-up") && web.contains("more"), "{web}");
    let huge = run.simulation.explain("huge").unwrap().join("\n");
    assert!(huge.contains("pending") && huge.contains("nodepool default"), "{huge}");
    let node = run.simulation.explain(&run.summary.nodes[0].name).unwrap().join("\n");
    assert!(node.contains("now on it: default/web-"), "{node}");
    assert_eq!(run.simulation.explain("deployment/huge").unwrap().join("\n"), huge);
    assert!(run.simulation.explain("nobody").is_err());
}

#[test]
fn a_work_queue_is_done_when_one_of_its_pods_is() {
    let mut job = workload(WorkloadKind::Job, "queue", 3, 500, 256);
    job.template.annotations.insert("whittle.sh/runs-for".into(), "1m".into());
    let world = scenario(vec![pool("default", &["on-demand"])], vec![ScenarioObject::Workload(Box::new(job))]);
    let run = play(world, "until pods running\nwait 10m\nuntil pods running");
    assert_eq!(run.record.lines.iter().filter(|l| l.contains("created")).count(), 1, "{}", run.text());
    assert_eq!((run.summary.pods.running, run.summary.nodes.len()), (0, 0));
}

#[test]
fn a_pod_that_exists_does_not_change() {
    let bare = |milli| ScenarioObject::Pod(Box::new(template("default", "one", milli, 128)));
    let mut files = Files(vec![("one", vec![bare(100)]), ("other", vec![bare(200)])]);
    let mut simulation = Simulation::new(scenario(Vec::new(), Vec::new()), Settings::default(), 1, Weather::calm());
    let story = Story::parse("apply one\napply one\napply other").unwrap();
    let error = simulation.run(&story, &mut files, &mut ()).unwrap_err();
    assert!(error.to_string().starts_with("story line 3") && error.to_string().contains("delete the pod first"), "{error}");
}

#[test]
fn expected_text_is_looked_for_in_what_happened_and_not_in_the_story() {
    let world = scenario(vec![pool("default", &["on-demand"])], vec![deployment("web", 1, 1000, 1024)]);
    let run = play(world, "expect 1 pod of default/web running\nexpect until pods\nuntil pods running");
    let unmet: Vec<(usize, String)> = run.ending.unwrap().unmet.into_iter().map(|e| (e.number, e.text)).collect();
    assert_eq!(unmet, [(2, "until pods".to_owned())]);
}
