//! What pods want of each other, of ports and of volumes: cases computed by hand.

use whittle_engine::scheduler::Scheduler;
use whittle_model::{
    Event, HostPort, LabelSelector, Node, Pod, PodAffinityTerm, PodKey, PodVolume, Protocol, Requirement, Requirements, StorageClass,
    Taint, TopologySpread, Volume, VolumeClaim, VolumeClaimPhase, VolumeLimits, keys,
};

use crate::make::{GIB, answer, away_from, cluster, labels, node, pod, replica};

const SKEWED: &str = "node(s) didn't match pod topology spread constraints";
const LONELY: &str = "node(s) didn't match pod affinity rules";

fn spread(key: &str, max_skew: u32) -> TopologySpread {
    TopologySpread {
        topology_key: key.to_owned(),
        max_skew,
        min_domains: None,
        required: true,
        selector: LabelSelector::of_labels(&labels(&[("app", "web")])),
        honor_affinity: true,
        honor_taints: false,
    }
}

fn near(key: &str, app: &str) -> PodAffinityTerm {
    PodAffinityTerm { topology_key: key.to_owned(), ..away_from(app) }
}

/// A web pod with a change.
fn web(number: usize, change: impl FnOnce(&mut Pod)) -> Pod {
    let mut made = replica("web", number, 100);
    change(&mut made);
    made
}

/// Binds so many web pods to each node.
fn populate(scheduler: &mut Scheduler, counts: &[(&str, usize)]) {
    for (node, count) in counts {
        (0..*count)
            .for_each(|n| scheduler.bind(&Pod { key: PodKey::new("default", &format!("{node}-{n}")), ..replica("web", n, 100) }, node));
    }
}

fn refused(reasons: &str) -> String {
    format!("0/3 nodes are available: {reasons}.")
}

#[test]
fn skew_is_against_the_least_of_all_eligible_domains() {
    let nodes = [("a", "za"), ("b", "zb"), ("c", "zc")].map(|(name, zone)| node(name, zone));
    type Case = (&'static [(&'static str, usize)], fn(&mut TopologySpread), fn(&mut Pod), &'static str);
    let cases: [Case; 9] = [
        (&[("a", 1), ("b", 1)], |_| {}, |_| {}, "c"),
        (&[("a", 2), ("b", 1), ("c", 1)], |s| s.max_skew = 2, |p| p.affinity.node_selector = host("a"), "a"),
        // Where the pod's own affinity admits one node alone, that is the only domain.
        (&[("a", 5)], |_| {}, |p| p.affinity.node_selector = host("a"), "a"),
        (&[("a", 5)], |s| s.honor_affinity = false, |p| p.affinity.node_selector = host("a"), "1 ×, 2 affinity"),
        // Three domains where four are wanted: the least counts as none.
        (&[("a", 1), ("b", 1), ("c", 1)], |s| s.min_domains = Some(4), |_| {}, "3 ×"),
        (&[("a", 1), ("b", 1), ("c", 1)], |s| s.min_domains = Some(3), |p| p.affinity.node_selector = host("b"), "1 ×, 2 affinity"),
        // A pod that the selector does not mean does not count itself.
        (
            &[("a", 1)],
            |_| {},
            |p| {
                p.labels.clear();
                p.affinity.node_selector = host("a");
            },
            "a",
        ),
        // Pods of other namespaces do not count.
        (
            &[("a", 9)],
            |_| {},
            |p| {
                p.key.namespace = "other".into();
                p.affinity.node_selector = host("a");
            },
            "a",
        ),
        (&[("a", 1)], |s| s.topology_key = "rack".into(), |_| {}, "3 ×-"),
    ];
    for (at, (counts, change, change_pod, expected)) in cases.into_iter().enumerate() {
        let mut scheduler = cluster(0, &nodes);
        populate(&mut scheduler, counts);
        let mut constraint = spread(keys::ZONE, 1);
        change(&mut constraint);
        let asking = web(99, |p| {
            p.spread = vec![constraint];
            change_pod(p);
        });
        let expected = match expected {
            "1 ×, 2 affinity" => refused(&format!("1 {SKEWED}, 2 node(s) didn't match Pod's node affinity/selector")),
            "3 ×" => refused(&format!("3 {SKEWED}")),
            "3 ×-" => refused(&format!("3 {SKEWED} (missing required label)")),
            node => node.to_owned(),
        };
        assert_eq!(answer(&mut scheduler, &asking), expected, "case {at}");
    }
}

fn host(name: &str) -> Requirements {
    [Requirement::any_of(keys::HOSTNAME, &[name])].into_iter().collect()
}

#[test]
fn taints_are_honoured_where_the_constraint_says_so() {
    let mut nodes = [("a", "za"), ("b", "zb"), ("c", "zc")].map(|(name, zone)| node(name, zone));
    nodes[2].taints = vec![Taint::new("team", "", whittle_model::Effect::NoSchedule)];
    for (honor_taints, expected) in [(true, "a"), (false, "")] {
        let mut scheduler = cluster(0, &nodes);
        populate(&mut scheduler, &[("a", 1), ("b", 2)]);
        let asking = web(9, |p| p.spread = vec![TopologySpread { honor_taints, ..spread(keys::ZONE, 1) }]);
        let expected =
            if expected.is_empty() { refused(&format!("1 node(s) had untolerated taint(s), 2 {SKEWED}")) } else { expected.to_owned() };
        assert_eq!(answer(&mut scheduler, &asking), expected, "{honor_taints}");
    }
}

#[test]
fn the_first_of_a_kind_may_go_anywhere_and_the_others_follow() {
    let nodes = [("a", "za"), ("b", "zb"), ("c", "zb")].map(|(name, zone)| node(name, zone));
    for seed in 0..10 {
        let mut scheduler = cluster(seed, &nodes);
        let together = |n| web(n, |p| p.pod_affinity = vec![near(keys::ZONE, "web")]);
        let first = scheduler.schedule_and_bind(&together(0)).unwrap();
        let zone = |name: &str| if name == "a" { "za" } else { "zb" };
        for n in 1..6 {
            assert_eq!(zone(&scheduler.schedule_and_bind(&together(n)).unwrap()), zone(&first), "seed {seed}");
        }
    }
    let mut scheduler = cluster(0, &nodes);
    assert_eq!(answer(&mut scheduler, &web(0, |p| p.pod_affinity = vec![near(keys::ZONE, "api")])), refused(&format!("3 {LONELY}")));
    // Without the label a node is no domain, not even for the first.
    assert_eq!(answer(&mut scheduler, &web(0, |p| p.pod_affinity = vec![near("rack", "web")])), refused(&format!("3 {LONELY}")));
    scheduler.bind(&replica("api", 0, 100), "b");
    let both = |p: &mut Pod| p.pod_affinity = vec![near(keys::ZONE, "api"), near(keys::HOSTNAME, "api")];
    assert_eq!(answer(&mut scheduler, &web(0, both)), "b");
}

#[test]
fn namespaces_are_named_or_selected() {
    let nodes = [("a", ""), ("b", ""), ("c", "")].map(|(name, zone)| node(name, zone));
    let mut scheduler = cluster(0, &nodes);
    ["a", "b"].iter().for_each(|n| scheduler.bind(&Pod { key: PodKey::new("blue", n), ..replica("web", 0, 100) }, n));
    let selecting = PodAffinityTerm {
        namespaces: Vec::new(),
        namespace_selector: Some(LabelSelector::of_labels(&labels(&[("team", "blue")]))),
        ..away_from("web")
    };
    let shy = web(0, |p| {
        p.anti_affinity = vec![selecting];
        p.affinity.node_selector = host("a");
    });
    assert_eq!(answer(&mut scheduler, &shy), "a");
    scheduler.apply_namespace("blue", &labels(&[("team", "blue")]));
    let elsewhere = "2 node(s) didn't match Pod's node affinity/selector";
    assert_eq!(answer(&mut scheduler, &shy), refused(&format!("1 node(s) didn't match pod anti-affinity rules, {elsewhere}")));
    scheduler.remove_namespace("blue");
    assert_eq!(answer(&mut scheduler, &shy), "a");
}

#[test]
fn preferences_weigh_against_each_other() {
    let mut nodes = [("a", "za"), ("b", "zb"), ("c", "zc")].map(|(name, zone)| node(name, zone));
    nodes[2].labels.insert("disk".into(), "ssd".into());
    let mut scheduler = cluster(0, &nodes);
    scheduler.bind(&pod("db", 100, GIB), "a");
    let term = |app: &str| near(keys::ZONE, app);
    scheduler.bind(&Pod { labels: labels(&[("app", "api")]), ..pod("api", 100, GIB) }, "b");
    let ssd: Requirements = [Requirement::any_of("disk", &["ssd"])].into_iter().collect();
    let asking = |near: i32, away: i32, disk: i32| {
        let mut made = Pod { labels: labels(&[("app", "job")]), ..pod("p", 100, GIB) };
        made.preferences.near = vec![(near, term("api"))];
        made.preferences.away = vec![(away, term("api"))];
        made.preferences.nodes = vec![(disk, ssd.clone()), (1, Requirements::default())];
        made
    };
    // c has both the preferred disk and the emptier node; b has the company.
    assert_eq!(answer(&mut scheduler, &asking(9, 1, 1)), "c");
    assert_eq!(
        answer(
            &mut scheduler,
            &Pod { preferences: whittle_model::Preferences { nodes: Vec::new(), ..asking(9, 1, 1).preferences }, ..asking(9, 1, 1) }
        ),
        "b"
    );
    // Required affinity of a pod that is there draws the pods it wants.
    scheduler.bind(&Pod { pod_affinity: vec![term("job")], ..pod("fan", 0, 0) }, "a");
    assert_eq!(answer(&mut scheduler, &Pod { labels: labels(&[("app", "job")]), ..pod("p", 100, GIB) }), "a");
}

#[test]
fn ports_are_taken_by_address_and_protocol() {
    let port = |port, protocol, ip: &str| vec![HostPort { port, protocol, ip: ip.to_owned() }];
    let with = |name: &str, ports: Vec<HostPort>| Pod { host_ports: ports, ..pod(name, 100, GIB) };
    let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
    let taken = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
    for (first, second, fits) in [
        (port(80, tcp, ""), port(80, tcp, ""), false),
        (port(80, tcp, ""), port(81, tcp, ""), true),
        (port(80, tcp, ""), port(80, udp, ""), true),
        (port(80, tcp, "10.0.0.1"), port(80, tcp, "10.0.0.2"), true),
        (port(80, tcp, "10.0.0.1"), port(80, tcp, ""), false),
    ] {
        let mut scheduler = cluster(0, &[node("n", "")]);
        scheduler.bind(&with("first", first.clone()), "n");
        let expected = if fits { "n" } else { taken };
        assert_eq!(answer(&mut scheduler, &with("second", second.clone())), expected, "{first:?} {second:?}");
        scheduler.unbind(&PodKey::new("default", "first"));
        assert_eq!(answer(&mut scheduler, &with("second", second.clone())), "n");
        // Ports of a nominated pod are held too.
        scheduler.nominate(&with("first", first), "n");
        assert_eq!(answer(&mut scheduler, &with("second", second)), expected);
    }
}

/// A claim of a pod `p`, and a pod that uses it.
fn claim(volume: &str, class: Option<&str>) -> VolumeClaim {
    VolumeClaim {
        key: PodKey::new("default", "data"),
        phase: if volume.is_empty() { VolumeClaimPhase::Pending } else { VolumeClaimPhase::Bound },
        volume: volume.to_owned(),
        storage_class: class.map(str::to_owned),
        bind_completed: !volume.is_empty(),
        deleting: false,
    }
}

#[test]
fn volumes_say_where_their_pods_go() {
    let zone = |zone: &str| -> Vec<Requirements> { vec![[Requirement::any_of(keys::ZONE, &[zone])].into_iter().collect()] };
    let class = |name: &str, immediate, topologies, default| StorageClass {
        name: name.to_owned(),
        provisioner: "ebs.csi.aws.com".to_owned(),
        immediate,
        topologies,
        default,
    };
    let nodes: [Node; 3] = [("a", "za"), ("b", "zb"), ("c", "zc")].map(|(name, zone)| node(name, zone));
    let all = |why: &str| format!("0/3 nodes are available: {why}.");
    let cases: [(Option<VolumeClaim>, String); 9] = [
        (Some(claim("vol", None)), "b".to_owned()),
        (Some(claim("gone", None)), all("3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")),
        (Some(claim("", Some("later-in-c"))), "c".to_owned()),
        (Some(claim("", None)), "c".to_owned()),
        (Some(claim("", Some("now"))), all("pod has unbound immediate PersistentVolumeClaims")),
        (Some(claim("", Some(""))), all("pod has unbound immediate PersistentVolumeClaims")),
        (Some(claim("", Some("unknown"))), all("storageclass.storage.k8s.io \"unknown\" not found")),
        (Some(VolumeClaim { deleting: true, ..claim("vol", None) }), all("persistentvolumeclaim \"data\" is being deleted")),
        (None, all("persistentvolumeclaim \"data\" not found")),
    ];
    for (claim, expected) in cases {
        let mut scheduler = cluster(0, &nodes);
        for made in [class("later-in-c", false, zone("zc"), true), class("now", true, Vec::new(), false)] {
            scheduler.apply_storage(&Event::StorageClass(Box::new(made)));
        }
        let volume = Volume {
            name: "vol".into(),
            node_terms: zone("zb"),
            driver: "ebs.csi.aws.com".into(),
            handle: "v".into(),
            ..Volume::default()
        };
        scheduler.apply_storage(&Event::Volume(Box::new(volume)));
        let shown = format!("{claim:?}");
        claim.into_iter().for_each(|claim| scheduler.apply_storage(&Event::VolumeClaim(Box::new(claim))));
        let asking = Pod { volumes: vec![PodVolume { claim: "data".into(), ephemeral: None }], ..pod("p", 100, GIB) };
        assert_eq!(answer(&mut scheduler, &asking), expected, "{shown}");
    }
}

#[test]
fn a_volume_counts_once_however_many_pods_use_it() {
    let mut scheduler = cluster(0, &[node("n", "")]);
    let limits = VolumeLimits { node: "n".into(), drivers: [("disk".to_owned(), 2)].into() };
    scheduler.apply_storage(&Event::VolumeLimits(Box::new(limits)));
    for name in ["one", "two", "three"] {
        let volume = Volume { name: name.into(), driver: "disk".into(), handle: name.into(), ..Volume::default() };
        scheduler.apply_storage(&Event::Volume(Box::new(volume)));
        scheduler.apply_storage(&Event::VolumeClaim(Box::new(VolumeClaim { key: PodKey::new("default", name), ..claim(name, None) })));
    }
    let using = |name: &str, claims: &[&str]| Pod {
        volumes: claims.iter().map(|claim| PodVolume { claim: (*claim).to_owned(), ephemeral: None }).collect(),
        ..pod(name, 100, GIB)
    };
    let full = "0/1 nodes are available: 1 node(s) exceed max volume count.";
    for (name, claims, expected) in
        [("a", &["one"][..], "n"), ("b", &["one"], "n"), ("c", &["one", "two"], "n"), ("d", &["three"], full), ("e", &["two"], "n")]
    {
        assert_eq!(answer(&mut scheduler, &using(name, claims)), expected, "{name}");
        if expected == "n" {
            scheduler.bind(&using(name, claims), "n");
        }
    }
    ["c", "e"].iter().for_each(|name| scheduler.unbind(&PodKey::new("default", name)));
    assert_eq!(answer(&mut scheduler, &using("d", &["three"])), "n", "nobody uses the second any more");
    // What is still attached counts, though no pod uses it.
    let attachment = whittle_model::VolumeAttachment { name: "va".into(), node: "n".into(), volume: "two".into() };
    scheduler.apply_storage(&Event::VolumeAttachment(Box::new(attachment)));
    assert_eq!(answer(&mut scheduler, &using("d", &["three"])), full);
    scheduler.apply_storage(&Event::VolumeAttachmentGone("va".into()));
    assert_eq!(answer(&mut scheduler, &using("d", &["three"])), "n");
}
