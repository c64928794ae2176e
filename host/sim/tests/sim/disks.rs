//! Volumes, and budgets that keep pods from going all at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use whittle_engine::Engine;
use whittle_model::{
    Action, Event, LabelSelector, Labels, Node, PodKey, PodVolume, Resources, Settings, StorageClass, Timestamp, VolumeClaimPhase, keys,
};
use whittle_sim::{Budget, Recorder, ScenarioObject, Simulation, Story, Weather, Workload, WorkloadKind};

use super::common::{Files, GIB, Record, deployment, pool, scenario, workload};

/// What the engine was told, in order.
#[derive(Clone, Default)]
struct Told(Rc<RefCell<Vec<Event>>>);

impl Recorder for Told {
    fn begins(&mut self, _: Timestamp, _: &Engine) {}
    fn told(&mut self, _: Timestamp, event: &Event) {
        self.0.borrow_mut().push(event.clone());
    }
    fn polls(&mut self, _: Timestamp) {}
    fn polled(&mut self, _: Timestamp, _: &[Action], _: &Engine) {}
}

fn play(objects: Vec<ScenarioObject>, seed: u64, story: &str) -> Vec<Event> {
    play_with(objects, Files::default(), seed, story)
}

fn play_with(objects: Vec<ScenarioObject>, mut files: Files, seed: u64, story: &str) -> Vec<Event> {
    let told = Told::default();
    let world = scenario(vec![pool("default", &["on-demand"])], objects);
    let mut simulation = Simulation::new(world, Settings::default(), seed, Weather::calm()).with_recorder(Box::new(told.clone()));
    let mut record = Record::default();
    let ending = simulation.run(&Story::parse(story).expect("the story reads"), &mut files, &mut record);
    assert!(ending.is_ok(), "{ending:?}\n{}", record.lines.join("\n"));
    told.0.take()
}

/// A node that was there before the story, with room for a pod or two.
fn node(name: &str, zone: &str) -> ScenarioObject {
    let labels = [(keys::ZONE, zone), (keys::HOSTNAME, name)].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let allocatable = Resources::of(&[("cpu", 4000), ("memory", 8 * GIB), ("pods", 20)]);
    ScenarioObject::Node(Box::new(Node { name: name.into(), labels: Labels::from(labels), allocatable, ready: true, ..Node::default() }))
}

fn class(name: &str, immediate: bool) -> ScenarioObject {
    let provisioner = "ebs.csi.aws.com".to_owned();
    ScenarioObject::StorageClass(Box::new(StorageClass {
        name: name.into(),
        provisioner,
        immediate,
        topologies: Vec::new(),
        default: !immediate,
    }))
}

fn set(replicas: u32, class: Option<&str>) -> ScenarioObject {
    let claims = vec![("data".to_owned(), class.map(str::to_owned))];
    ScenarioObject::Workload(Box::new(Workload { claims, ..workload(WorkloadKind::StatefulSet, "db", replicas, 1000, 512) }))
}

/// The zone that the volume of a claim is in, and the last node that each pod was bound to.
fn places(told: &[Event]) -> (BTreeMap<PodKey, String>, BTreeMap<PodKey, String>) {
    let (mut volumes, mut claims, mut pods) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for event in told {
        if let Event::Volume(volume) = event {
            let zone = volume.node_terms[0].get(keys::ZONE).and_then(|zone| zone.single()).expect("a zone");
            volumes.insert(volume.name.clone(), zone.to_owned());
        } else if let Event::VolumeClaim(claim) = event
            && claim.phase == VolumeClaimPhase::Bound
        {
            claims.insert(claim.key.clone(), volumes[&claim.volume].clone());
        } else if let Event::Pod(pod) = event
            && let Some(node) = &pod.node
        {
            pods.insert(pod.key.clone(), node.clone());
        }
    }
    (claims, pods)
}

#[test]
fn a_volume_is_made_where_its_first_pod_goes_and_holds_the_next_one_there() {
    for seed in 0..10 {
        let objects = vec![class("later", false), node("a", "us-east-1a"), node("b", "us-east-1b"), set(2, None)];
        let story = "until pods running\ndelete pod/default/db-0\nwait 30s\nuntil pods running";
        let told = play(objects, seed, story);
        let (claims, pods) = places(&told);
        for n in 0..2 {
            let zone = &claims[&PodKey::new("default", &format!("data-db-{n}"))];
            let node = &pods[&PodKey::new("default", &format!("db-{n}"))];
            assert_eq!(zone, &format!("us-east-1{node}"), "seed {seed}, db-{n}");
        }
        let made = told.iter().filter(|event| matches!(event, Event::Volume(_))).count();
        assert_eq!(made, 2, "a claim outlives its pod");
    }
}

#[test]
fn a_volume_made_at_once_decides_where_its_pod_goes() {
    for seed in 0..10 {
        let objects = vec![class("now", true), node("a", "us-east-1a"), node("b", "us-east-1b"), set(2, Some("now"))];
        let (claims, pods) = places(&play(objects, seed, "until pods running"));
        for n in 0..2 {
            let zone = &claims[&PodKey::new("default", &format!("data-db-{n}"))];
            assert_eq!(zone, &format!("us-east-1{}", pods[&PodKey::new("default", &format!("db-{n}"))]), "seed {seed}, db-{n}");
        }
    }
}

#[test]
fn disks_are_attached_while_they_are_used_and_ephemeral_ones_go_with_their_pod() {
    let mut template = workload(WorkloadKind::Deployment, "web", 2, 500, 256);
    template.template.volumes = vec![PodVolume { claim: "web-scratch".into(), ephemeral: Some(None) }];
    let objects = vec![class("later", false), node("a", "us-east-1a"), ScenarioObject::Workload(Box::new(template))];
    let told = play(objects, 1, "until pods running\ndelete deployment/default/web\nwait 1m");
    let count = |wanted: fn(&Event) -> bool| told.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|e| matches!(e, Event::VolumeAttachment(_))), 2);
    assert_eq!(count(|e| matches!(e, Event::VolumeAttachmentGone(_))), 2);
    assert_eq!(count(|e| matches!(e, Event::VolumeClaimGone(_))), 2);
    assert_eq!(count(|e| matches!(e, Event::VolumeGone(_))), 2);
    let named = |event: &Event| matches!(event, Event::VolumeClaim(claim) if claim.key.name.ends_with("-scratch"));
    assert!(told.iter().any(named));
}

fn budget(min: Option<&str>, max: Option<&str>) -> ScenarioObject {
    ScenarioObject::Budget(Budget {
        key: PodKey::new("default", "web"),
        selector: Some(LabelSelector::of_labels(&Labels::from([("app".to_owned(), "web".to_owned())]))),
        min_available: min.map(str::to_owned),
        max_unavailable: max.map(str::to_owned),
        always_allow_unready: false,
    })
}

/// What the budget allows once its pods run.
#[test]
fn budgets_count_what_may_go() {
    for (min, max, allowed, never) in [
        (Some("3"), None, 1, false),
        (Some("50%"), None, 2, false),
        (Some("100%"), None, 0, true),
        (Some("9"), None, 0, false),
        (None, Some("1"), 1, false),
        (None, Some("30%"), 2, false),
        (None, Some("0"), 0, true),
        (None, None, 1, false),
    ] {
        let objects = vec![node("a", "us-east-1a"), deployment("web", 4, 500, 256)];
        let files = Files(vec![("budget.yaml", vec![budget(min, max)])]);
        let told = play_with(objects, files, 1, "apply budget.yaml\nuntil pods running\nwait 5s");
        let told_of =
            |event: &Event| if let Event::PodDisruptionBudget(budget) = event { Some((budget.allowed, budget.never)) } else { None };
        let last = told.iter().rev().find_map(told_of);
        assert_eq!(last, Some((allowed, never)), "{min:?} {max:?}");
    }
}

#[test]
fn a_drain_takes_no_more_pods_than_its_budget_allows() {
    let objects = vec![budget(None, Some("1")), deployment("web", 6, 700, 256)];
    let story = "until pods running\nwait 5s\ndelete nodepool/default\nwait 30m";
    let told = play(objects, 1, story);
    let mut pods: BTreeMap<PodKey, bool> = BTreeMap::new();
    let (mut least, mut evicted) = (usize::MAX, 0);
    for event in &told {
        if let Event::Pod(pod) = event {
            let runs = pod.ready && !pod.deleting;
            let ran = pods.insert(pod.key.clone(), runs);
            if ran == Some(true) && !runs {
                evicted += 1;
                least = least.min(pods.values().filter(|runs| **runs).count());
            }
        } else if let Event::PodGone(key) = event {
            pods.remove(key);
        }
    }
    // No pool is left to run the second one: one pod is gone and the others stay for good.
    assert_eq!((evicted, least), (1, 5));
}
