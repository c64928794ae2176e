//! The auditor on constraints: a plan that was good stays so, or is named, when those that it is for
//! turn out to ask for more. What they ask for later cannot have been heeded, so each of these rules
//! is shown what breaks it, beside something like it that does not.

mod common;

use common::{GIB, NOW, any_of, basics, bound, daemon_set, labels, node, pod, pool, told};
use whittle_engine::{Engine, Plan};
use whittle_model::{
    CapacityType, Catalog, DaemonSet, Event, HostPort, LabelSelector, ListPrice, Pod, PodAffinityTerm, PodKey, PodVolume, Protocol,
    Requirement, Reservation, StorageClass, TopologySpread, Volume, VolumeClaim, VolumeClaimPhase, VolumeLimits, keys,
};

const DRIVER: &str = "ebs.csi.aws.com";

/// Pods that go to node `one` in zone a, to node `two` in zone b, to a new node in zone c, and to one
/// that may be in any zone; running pods on `three` in zone a.
fn engine() -> Engine {
    let mut events = basics();
    let mut wide = pool("wide");
    wide.template.labels = labels(&[("spot", "wide")]);
    events.push(Event::NodePool(Box::new(wide)));
    let mut daemon = daemon_set("logs", 50, GIB / 8);
    daemon.template.affinity.node_selector.add(any_of("spot", &["wide"]));
    events.push(Event::DaemonSet(Box::new(daemon)));
    for (name, zone) in [("one", "us-east-1a"), ("two", "us-east-1b"), ("three", "us-east-1a")] {
        let mut node = node(name, "m.8", zone);
        node.labels.extend(labels(&[("spot", name), (keys::HOSTNAME, name)]));
        events.push(Event::Node(Box::new(node)));
    }
    events.push(Event::Namespace("default".to_owned(), labels(&[("kind", "own")])));
    events.push(Event::Namespace("other".to_owned(), labels(&[("kind", "guest")])));
    events.extend([on("one", "a-0"), on("one", "a-1"), on("two", "b-0")].map(event));
    let mut fixed = on("wide", "c-0");
    fixed.affinity.node_selector.add(any_of(keys::ZONE, &["us-east-1c"]));
    // Too large to share a node with the ones that may be anywhere.
    fixed.requests.set("cpu", 7000);
    let away = [on("wide", "open-0"), on("wide", "open-1")].map(|mut pod| {
        pod.affinity.node_selector.add(any_of(keys::CAPACITY_TYPE, &["on-demand"]));
        pod
    });
    events.extend(away.map(event));
    events.push(event(fixed));
    let there = Pod { labels: labels(&[("app", "there")]), ..pod("there", 100, GIB / 8) };
    let guest = Pod { key: PodKey::new("other", "guest"), labels: labels(&[("app", "guest")]), ..pod("guest", 100, GIB / 8) };
    events.push(event(bound(there, "three")));
    events.push(event(bound(guest, "three")));
    told(&events)
}

fn event(pod: Pod) -> Event {
    Event::Pod(Box::new(pod))
}

/// A pod for a node with this label, which is its own app.
fn on(spot: &str, name: &str) -> Pod {
    let mut pod = Pod { labels: labels(&[("app", name), ("all", "yes")]), ..pod(name, 300, GIB / 8) };
    pod.affinity.node_selector.add(any_of("spot", &[spot]));
    pod
}

fn selector(key: &str, value: &str) -> LabelSelector {
    LabelSelector::of_labels(&labels(&[(key, value)]))
}

fn term(key: &str, selector: LabelSelector) -> PodAffinityTerm {
    PodAffinityTerm { topology_key: key.to_owned(), namespaces: vec!["default".to_owned()], namespace_selector: None, selector }
}

fn spread(key: &str, max_skew: u32, value: &str) -> TopologySpread {
    TopologySpread {
        topology_key: key.to_owned(),
        max_skew,
        min_domains: None,
        required: true,
        selector: selector("group", value),
        honor_affinity: false,
        honor_taints: false,
    }
}

fn port(number: u16, protocol: Protocol, ip: &str) -> HostPort {
    HostPort { port: number, protocol, ip: ip.to_owned() }
}

/// A cluster that changes after the plan was made.
struct Later(Engine);

impl Later {
    fn pods(&mut self, names: &[&str], change: impl Fn(&mut Pod)) -> &mut Self {
        for name in names {
            let namespace = if *name == "guest" { "other" } else { "default" };
            let mut pod = self.0.world().pod(&PodKey::new(namespace, name)).expect("the pod is there");
            change(&mut pod);
            self.tell(event(pod));
        }
        self
    }

    fn tell(&mut self, event: Event) -> &mut Self {
        self.0.handle(&event, NOW);
        self
    }

    /// Pods are counted together, and spread.
    fn spread(&mut self, names: &[&str], constraint: &TopologySpread) -> &mut Self {
        self.pods(names, |pod| {
            pod.labels.insert("group".to_owned(), "g".to_owned());
            pod.spread.push(constraint.clone());
        })
    }

    fn near(&mut self, names: &[&str], term: &PodAffinityTerm) -> &mut Self {
        self.pods(names, |pod| pod.pod_affinity.push(term.clone()))
    }

    /// Pods that want to be with each other.
    fn grouped(&mut self, names: &[&str], key: &str) -> &mut Self {
        self.pods(names, |pod| _ = pod.labels.insert("group".to_owned(), "g".to_owned()));
        self.near(names, &term(key, selector("group", "g")))
    }

    fn away(&mut self, names: &[&str], term: &PodAffinityTerm) -> &mut Self {
        self.pods(names, |pod| pod.anti_affinity.push(term.clone()))
    }

    fn ports(&mut self, name: &str, port: HostPort) -> &mut Self {
        self.pods(&[name], |pod| pod.host_ports.push(port.clone()))
    }

    fn volumes(&mut self, names: &[&str], claim: &str) -> &mut Self {
        self.pods(names, |pod| pod.volumes.push(PodVolume { claim: claim.to_owned(), ephemeral: None }))
    }

    /// A claim that is bound to a disk in some zones.
    fn disk(&mut self, claim: &str, zones: &[&str]) -> &mut Self {
        let node_terms = zones.iter().map(|zone| [any_of(keys::ZONE, &[zone])].into_iter().collect()).collect();
        let volume = Volume {
            name: format!("pv-{claim}"),
            node_terms,
            driver: DRIVER.to_owned(),
            handle: format!("vol-{claim}"),
            ..Volume::default()
        };
        self.tell(Event::Volume(Box::new(volume)));
        self.claim(claim, |c| {
            c.phase = VolumeClaimPhase::Bound;
            c.bind_completed = true;
        })
    }

    fn claim(&mut self, name: &str, change: impl Fn(&mut VolumeClaim)) -> &mut Self {
        let key = PodKey::new("default", name);
        let mut claim = VolumeClaim { key, volume: format!("pv-{name}"), ..VolumeClaim::default() };
        change(&mut claim);
        self.tell(Event::VolumeClaim(Box::new(claim)))
    }

    fn class(&mut self, immediate: bool, zones: &[&str]) -> &mut Self {
        let topologies = zones.iter().map(|zone| [any_of(keys::ZONE, &[zone])].into_iter().collect()).collect();
        let class = StorageClass { name: "disk".to_owned(), provisioner: DRIVER.to_owned(), immediate, topologies, default: true };
        self.tell(Event::StorageClass(Box::new(class)))
    }

    fn limit(&mut self, node: &str, most: u32) -> &mut Self {
        let drivers = [(DRIVER.to_owned(), most)].into();
        self.tell(Event::VolumeLimits(Box::new(VolumeLimits { node: node.to_owned(), drivers })))
    }

    fn min_values(&mut self, count: u32) -> &mut Self {
        let mut pool = self.0.world().pool("wide").expect("the pool is there").clone();
        let names: Vec<&str> = common::TYPES.iter().map(|t| t.0).collect();
        pool.template.requirements.add(any_of(keys::INSTANCE_TYPE, &names).with_min_values(Some(count)));
        self.tell(Event::NodePool(Box::new(pool)))
    }

    fn daemon(&mut self, change: impl Fn(&mut DaemonSet)) -> &mut Self {
        let mut set = self.0.world().daemon_sets().next().expect("there is one").clone();
        change(&mut set);
        self.tell(Event::DaemonSet(Box::new(set)))
    }
}

/// The rule that is broken, or none; what happens; how.
type Row = (&'static str, &'static str, fn(&mut Later));

fn check(rows: &[Row]) {
    let engine = engine();
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(common::objections(&engine, &plan), vec![], "{plan:#?}");
    assert_eq!((plan.placed["one"].len(), plan.placed["two"].len(), plan.nodes.len()), (2, 1, 2), "{plan:#?}");
    for (rule, how, change) in rows {
        let mut later = Later(engine.clone());
        change(&mut later);
        expect(&later.0, &plan, rule, how);
    }
}

fn expect(engine: &Engine, plan: &Plan, rule: &str, how: &str) {
    let heard = common::objections(engine, plan);
    let wanted: Vec<&str> = Some(rule).filter(|r| !r.is_empty()).into_iter().collect();
    let mut rules: Vec<&str> = heard.iter().map(|o| o.rule).collect();
    rules.dedup();
    assert_eq!(rules, wanted, "{how}: {heard:?}");
}

#[test]
fn spreading() {
    check(&[
        ("spread", "two of them in one zone, none in others", |l| _ = l.spread(&["a-0", "a-1"], &spread(keys::ZONE, 1, "g"))),
        ("", "as many as the skew allows", |l| _ = l.spread(&["a-0", "a-1"], &spread(keys::ZONE, 2, "g"))),
        ("", "only one zone will do for them", |l| {
            l.spread(&["a-0", "a-1"], &TopologySpread { honor_affinity: true, ..spread(keys::ZONE, 1, "g") });
        }),
        ("spread", "only one zone will do for them, and there are too few", |l| {
            l.spread(&["a-0", "a-1"], &TopologySpread { honor_affinity: true, min_domains: Some(2), ..spread(keys::ZONE, 1, "g") });
        }),
        ("", "they do not count themselves", |l| _ = l.spread(&["a-0", "a-1"], &spread(keys::ZONE, 1, "nobody"))),
        ("spread", "they do not count themselves, but others", |l| {
            l.pods(&["there"], |pod| pod.labels.insert("group".to_owned(), "h".to_owned()).map_or((), drop));
            l.pods(&["guest"], |pod| pod.labels.insert("group".to_owned(), "h".to_owned()).map_or((), drop));
            l.tell(event(bound(Pod { labels: labels(&[("group", "h")]), ..pod("more", 10, 1) }, "one")));
            l.spread(&["a-0"], &spread(keys::ZONE, 1, "h"));
        }),
        ("", "one zone each, and one that may be in any", |l| _ = l.spread(&["a-0", "b-0", "open-0"], &spread(keys::ZONE, 1, "g"))),
        ("spread", "two that may be in one zone", |l| _ = l.spread(&["open-0", "open-1"], &spread(keys::ZONE, 1, "g"))),
        ("spread", "two on one host", |l| _ = l.spread(&["a-0", "a-1", "b-0"], &spread(keys::HOSTNAME, 1, "g"))),
        ("spread", "over a label that nodes do not have", |l| _ = l.spread(&["a-0"], &spread("rack", 1, "g"))),
        ("", "it would rather", |l| {
            l.spread(&["a-0", "a-1"], &TopologySpread { required: false, ..spread(keys::ZONE, 1, "g") });
        }),
        ("spread", "one that runs already counts", |l| {
            l.pods(&["there"], |pod| _ = pod.labels.insert("group".to_owned(), "g".to_owned()));
            l.spread(&["a-0"], &spread(keys::ZONE, 1, "g"));
        }),
        ("", "one that ends does not", |l| {
            l.pods(&["there"], |pod| {
                pod.labels.insert("group".to_owned(), "g".to_owned());
                pod.deleting = true;
            });
            l.spread(&["a-0"], &spread(keys::ZONE, 1, "g"));
        }),
        ("", "one of another namespace does not", |l| {
            l.pods(&["guest"], |pod| _ = pod.labels.insert("group".to_owned(), "g".to_owned()));
            l.spread(&["a-0"], &spread(keys::ZONE, 1, "g"));
        }),
    ]);
}

#[test]
fn company() {
    let elsewhere = |kind: &str| PodAffinityTerm {
        namespaces: Vec::new(),
        namespace_selector: Some(selector("kind", kind)),
        ..term(keys::ZONE, selector("app", "guest"))
    };
    let (guest, own) = (elsewhere("guest"), elsewhere("own"));
    let engine = engine();
    let plan = engine.plan(NOW, &mut ListPrice);
    for (rule, term) in [("", guest), ("affinity", own)] {
        let mut later = Later(engine.clone());
        later.near(&["a-0"], &term);
        expect(&later.0, &plan, rule, "company in other namespaces");
    }
    check(&[
        ("affinity", "with nobody who is there", |l| _ = l.near(&["a-0"], &term(keys::ZONE, selector("app", "nobody")))),
        ("", "with one who runs in the zone", |l| _ = l.near(&["a-0"], &term(keys::ZONE, selector("app", "there")))),
        ("affinity", "with one who runs on another host", |l| _ = l.near(&["a-0"], &term(keys::HOSTNAME, selector("app", "there")))),
        ("affinity", "with one who runs in another zone", |l| _ = l.near(&["b-0"], &term(keys::ZONE, selector("app", "there")))),
        ("affinity", "with one who ends", |l| {
            l.pods(&["there"], |pod| pod.deleting = true);
            l.near(&["a-0"], &term(keys::ZONE, selector("app", "there")));
        }),
        ("", "with one who comes too", |l| _ = l.near(&["a-0"], &term(keys::HOSTNAME, selector("app", "a-1")))),
        ("", "with themselves, in one place", |l| _ = l.near(&["a-0", "a-1"], &term(keys::HOSTNAME, selector("all", "yes")))),
        ("affinity", "with themselves, in two zones", |l| _ = l.grouped(&["a-0", "b-0"], keys::ZONE)),
        ("", "with themselves, in one region", |l| _ = l.grouped(&["a-0", "b-0"], keys::REGION)),
        ("", "with themselves, in two zones, where each may be first or finds another", |l| {
            l.near(&["a-0", "b-0"], &term(keys::ZONE, selector("all", "yes")));
        }),
        ("affinity", "each with the other, so that neither comes first", |l| {
            l.near(&["a-0"], &term(keys::ZONE, selector("app", "a-1")));
            l.near(&["a-1"], &term(keys::ZONE, selector("app", "a-0")));
        }),
        ("", "each with the next, so that one comes first", |l| {
            l.near(&["a-0"], &term(keys::ZONE, selector("app", "a-1")));
            l.near(&["a-1"], &term(keys::ZONE, selector("app", "there")));
        }),
        ("affinity", "in a zone that is not settled", |l| _ = l.near(&["open-0"], &term(keys::ZONE, selector("app", "there")))),
        ("", "with one on the same node, in a zone that is not settled", |l| {
            l.near(&["open-0"], &term(keys::ZONE, selector("app", "open-1")));
        }),
        ("affinity", "within a label that the node does not have", |l| _ = l.near(&["a-0"], &term("rack", selector("all", "yes")))),
    ]);
}

#[test]
fn exclusion() {
    check(&[
        ("affinity", "one on the same node", |l| _ = l.away(&["a-0"], &term(keys::HOSTNAME, selector("app", "a-1")))),
        ("affinity", "one in the same zone", |l| _ = l.away(&["a-0"], &term(keys::ZONE, selector("app", "there")))),
        ("", "one in another zone", |l| _ = l.away(&["b-0"], &term(keys::ZONE, selector("app", "there")))),
        ("affinity", "by one that runs", |l| _ = l.away(&["there"], &term(keys::ZONE, selector("app", "a-0")))),
        ("", "between two that run already", |l| {
            l.pods(&["guest"], |pod| _ = pod.labels.insert("app".to_owned(), "there".to_owned()));
            let all = PodAffinityTerm { namespace_selector: Some(LabelSelector::default()), ..term(keys::ZONE, selector("app", "there")) };
            l.away(&["there"], &all);
        }),
        ("affinity", "in other namespaces", |l| {
            let all = PodAffinityTerm { namespace_selector: Some(LabelSelector::default()), ..term(keys::ZONE, selector("app", "guest")) };
            l.away(&["a-0"], &all);
        }),
        ("", "not in other namespaces", |l| _ = l.away(&["a-0"], &term(keys::ZONE, selector("app", "guest")))),
        ("", "itself alone", |l| _ = l.away(&["a-0"], &term(keys::ZONE, selector("app", "a-0")))),
        ("affinity", "one that may come into the zone", |l| _ = l.away(&["open-0"], &term(keys::ZONE, selector("app", "b-0")))),
        ("", "over a label that nobody has", |l| _ = l.away(&["a-0"], &term("rack", selector("all", "yes")))),
        ("", "one that ends, on the same node", |l| {
            l.tell(event(bound(Pod { deleting: true, labels: labels(&[("app", "late")]), ..pod("late", 10, 1) }, "one")));
            l.away(&["a-0"], &term(keys::HOSTNAME, selector("app", "late")));
        }),
    ]);
}

#[test]
fn ports() {
    check(&[
        ("ports", "one port, two pods", |l| _ = l.ports("a-0", port(80, Protocol::Tcp, "")).ports("a-1", port(80, Protocol::Tcp, ""))),
        ("ports", "one port, on one address and on all", |l| {
            l.ports("a-0", port(80, Protocol::Tcp, "")).ports("a-1", port(80, Protocol::Tcp, "10.0.0.1"));
        }),
        ("", "one port, on two addresses", |l| {
            l.ports("a-0", port(80, Protocol::Tcp, "10.0.0.2")).ports("a-1", port(80, Protocol::Tcp, "10.0.0.1"));
        }),
        ("", "one port, two protocols", |l| _ = l.ports("a-0", port(80, Protocol::Tcp, "")).ports("a-1", port(80, Protocol::Udp, ""))),
        ("", "one port, two nodes", |l| _ = l.ports("a-0", port(80, Protocol::Tcp, "")).ports("b-0", port(80, Protocol::Tcp, ""))),
        ("ports", "one that runs has it", |l| {
            l.tell(event(bound(Pod { host_ports: vec![port(80, Protocol::Tcp, "")], ..pod("late", 10, 1) }, "one")));
            l.ports("a-0", port(80, Protocol::Tcp, ""));
        }),
        ("ports", "a daemon will have it", |l| {
            l.daemon(|set| set.template.host_ports.push(port(80, Protocol::Tcp, "")));
            l.ports("c-0", port(80, Protocol::Tcp, ""));
        }),
        ("", "a daemon that does not run there would", |l| {
            l.daemon(|set| set.template.host_ports.push(port(80, Protocol::Tcp, "")));
            l.ports("a-0", port(80, Protocol::Tcp, ""));
        }),
    ]);
}

#[test]
fn volumes() {
    check(&[
        ("volumes", "a claim that is not there", |l| _ = l.volumes(&["a-0"], "v")),
        ("", "a disk in the zone", |l| _ = l.disk("v", &["us-east-1a"]).volumes(&["a-0"], "v")),
        ("", "a disk in one zone or another", |l| _ = l.disk("v", &["us-east-1b", "us-east-1a"]).volumes(&["a-0"], "v")),
        ("volumes", "a disk elsewhere", |l| _ = l.disk("v", &["us-east-1b"]).volumes(&["a-0"], "v")),
        ("volumes", "a disk in a zone that is not settled", |l| _ = l.disk("v", &["us-east-1b"]).volumes(&["open-0"], "v")),
        ("", "a disk in any zone that it may be", |l| {
            l.disk("v", &["us-east-1a", "us-east-1b", "us-east-1c"]).volumes(&["open-0"], "v");
        }),
        ("volumes", "a claim that goes", |l| {
            _ = l.disk("v", &[]).claim("v", |c| (c.deleting, c.bind_completed) = (true, true)).volumes(&["a-0"], "v")
        }),
        ("volumes", "a claim that lost its disk", |l| _ = l.claim("v", |c| c.phase = VolumeClaimPhase::Lost).volumes(&["a-0"], "v")),
        ("volumes", "a claim that is not bound through", |l| {
            _ = l.disk("v", &[]).claim("v", |c| c.phase = VolumeClaimPhase::Bound).volumes(&["a-0"], "v")
        }),
        ("", "a claim that names its disk", |l| _ = l.disk("v", &[]).claim("v", |_| {}).volumes(&["a-0"], "v")),
        ("volumes", "a disk that is gone", |l| _ = l.claim("v", |c| c.bind_completed = true).volumes(&["a-0"], "v")),
        ("", "a disk that is made where the pod comes", |l| {
            _ = l.class(false, &[]).claim("v", |c| c.volume.clear()).volumes(&["a-0"], "v")
        }),
        ("volumes", "a disk that cannot be made there", |l| {
            l.class(false, &["us-east-1c"]).claim("v", |c| c.volume.clear()).volumes(&["a-0"], "v");
        }),
        ("volumes", "a disk that should have been made at once", |l| {
            l.class(true, &[]).claim("v", |c| c.volume.clear()).volumes(&["a-0"], "v");
        }),
        ("volumes", "no class to make a disk", |l| {
            l.class(false, &[]).claim("v", |c| (c.volume, c.storage_class) = (String::new(), Some(String::new()))).volumes(&["a-0"], "v");
        }),
        ("volumes", "one disk more than the node attaches", |l| {
            l.disk("v", &[]).disk("w", &[]).volumes(&["a-0"], "v").volumes(&["a-1"], "w").limit("one", 1);
        }),
        ("", "one disk that two pods share", |l| _ = l.disk("v", &[]).volumes(&["a-0", "a-1"], "v").limit("one", 1)),
        ("", "a node that is overfull already, for a pod without disks", |l| {
            l.disk("v", &[]).limit("one", 0);
            let volumes = vec![PodVolume { claim: "v".to_owned(), ephemeral: None }];
            l.tell(event(bound(Pod { volumes, ..pod("late", 10, 1) }, "one")));
        }),
        ("volumes", "an ephemeral disk that cannot be made there", |l| {
            l.class(false, &["us-east-1c"]);
            l.pods(&["a-0"], |pod| pod.volumes.push(PodVolume { claim: "a-0-tmp".to_owned(), ephemeral: Some(None) }));
        }),
    ]);
}

#[test]
fn pools_and_devices() {
    check(&[
        ("min-values", "the pool asks for more types than there are", |l| _ = l.min_values(9)),
        ("pool", "the pool keeps a number of nodes of its own", |l| {
            let mut pool = l.0.world().pool("wide").expect("the pool is there").clone();
            pool.replicas = Some(2);
            l.tell(Event::NodePool(Box::new(pool)));
        }),
        ("once", "devices by resource claims", |l| _ = l.pods(&["a-0"], |pod| pod.resource_claims = true)),
    ]);
}

/// The catalogue with `left` places in a reservation of each of two types.
fn reserved(left: u32) -> Catalog {
    let mut catalog = common::catalog("default");
    for kind in catalog.types.iter_mut().filter(|t| t.name.starts_with("m.")) {
        let mut offering = kind.offerings[0].clone();
        offering.capacity_type = CapacityType::Reserved;
        offering.reservation = Some(Reservation { id: "cr-1".to_owned(), block: false, interruptible: false, left });
        kind.offerings.insert(0, offering);
    }
    catalog
}

#[test]
fn reservations() {
    let mut engine = engine();
    let mut plan = engine.plan(NOW, &mut ListPrice);
    for node in &mut plan.nodes {
        for (key, values) in [(keys::CAPACITY_TYPE, vec!["reserved"]), (keys::INSTANCE_TYPE, vec!["m.8"]), (keys::ZONE, vec!["us-east-1a"])]
        {
            node.claim.requirements.remove(key);
            node.claim.requirements.add(Requirement::any_of(key, &values));
        }
    }
    for (left, broken) in [(0, true), (1, true), (2, false), (3, false)] {
        engine.handle(&Event::Catalog(reserved(left).into()), NOW);
        let heard = common::objections(&engine, &plan);
        assert_eq!(heard.iter().any(|o| o.rule == "reserved"), broken, "{left} left: {heard:?}");
    }
}
