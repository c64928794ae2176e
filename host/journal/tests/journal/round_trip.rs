//! What is written is what is read, whatever it is.

use std::sync::Arc;

use proptest::prelude::*;
use whittle_engine::Engine;
use whittle_journal::{Entry, Journal, Limits, Policies, Policy, PolicyMode, PolicyStance, PolicyStanding};
use whittle_model::{
    Action, CapacityType, Event, Interruption, LaunchFailure, Micros, Node, NodeClaim, ObjectKind, OfferingKey, Outcome, PodKey, Timestamp,
};

use crate::common::{Folder, catalog, pod, pool, read};

/// What a journal is told, in order.
#[derive(Debug, Clone)]
enum Told {
    Event(i64, Event),
    Poll(i64, Vec<Action>),
    Policies(i64, Policies),
    /// Another segment begins.
    Rotate,
}

/// Any text, also what JSON and lines have to escape.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), Just("line\nbreak \"quote\" \u{0}".to_owned())]
}

fn offering() -> impl Strategy<Value = OfferingKey> {
    let key = |(instance_type, zone)| OfferingKey { instance_type, zone, capacity_type: CapacityType::Spot };
    (text(), text()).prop_map(key)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Synced),
        Just(Event::NodePool(Box::new(pool()))),
        (0usize..50, 1i64..9_000).prop_map(|(number, milli)| Event::Pod(Box::new(pod(number, milli)))),
        (text(), text()).prop_map(|(namespace, name)| Event::PodGone(PodKey::new(&namespace, &name))),
        (1i64..4).prop_map(|price| Event::Catalog(catalog(price))),
        (offering(), any::<i64>()).prop_map(|(key, price)| Event::Price(key, Micros(price))),
        text().prop_map(|name| Event::Node(Box::new(Node { name, ..Node::default() }))),
        text().prop_map(|name| Event::Claim(Box::new(NodeClaim { name, ..NodeClaim::default() }))),
        text().prop_map(Event::ClaimGone),
        (text(), text(), text()).prop_map(|(name, key, value)| Event::Namespace(name, [(key, value)].into())),
        (text(), prop::collection::vec(offering(), 0..3)).prop_map(|(claim, tried)| Event::Outcome(Box::new(Outcome::LaunchFailed {
            claim,
            failure: LaunchFailure::InsufficientCapacity(tried),
        }))),
        text().prop_map(|provider_id| Event::Interrupted { provider_id, what: Interruption::SpotInterrupted }),
        (text(), prop::option::of(text())).prop_map(|(name, node)| Event::SetAside {
            kind: ObjectKind::Pod,
            name,
            node,
            why: String::new()
        }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        text().prop_map(|name| Action::CreateClaim(Box::new(NodeClaim { name, ..NodeClaim::default() }))),
        (text(), any::<bool>()).prop_map(|(claim, adopt)| Action::Launch { claim, adopt }),
        (text(), text()).prop_map(|(pod, node)| Action::Nominate { pod: PodKey::new("default", &pod), node }),
        text().prop_map(|claim| Action::Terminate { claim }),
    ]
}

fn policies() -> impl Strategy<Value = Policies> {
    let policy = (text(), any::<bool>(), any::<i64>(), text()).prop_map(|(name, ready, number, word)| Policy {
        name,
        mode: if ready { PolicyMode::Enforce } else { PolicyMode::Observe },
        candidates: PolicyStance::Ignore,
        moves: PolicyStance::Closed,
        standing: if ready {
            let config = serde_json::json!({ word: [number, null, 0.5] });
            PolicyStanding::Ready { digest: format!("sha256:{number:x}"), config, fuel: 7, memory: u64::MAX }
        } else {
            PolicyStanding::Missing { why: word }
        },
        failures: 3,
        rests_until: ready.then_some(Timestamp(number)),
    });
    (text(), prop::collection::vec(policy, 0..3)).prop_map(|(required, policies)| Policies { required, policies })
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        6 => (any::<i64>(), event()).prop_map(|(at, event)| Told::Event(at, event)),
        3 => (any::<i64>(), prop::collection::vec(action(), 0..4)).prop_map(|(at, actions)| Told::Poll(at, actions)),
        1 => (any::<i64>(), policies()).prop_map(|(at, policies)| Told::Policies(at, policies)),
        1 => Just(Told::Rotate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read(all in prop::collection::vec(told(), 0..60)) {
        let folder = Folder::new();
        let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
        let checkpoint = Engine::new().checkpoint();
        let at = Timestamp(5);
        journal.checkpoint(at, &checkpoint, &Policies::default()).unwrap();
        let opening = |continues| {
            let checkpoint = Box::new(checkpoint.clone());
            [Entry::Checkpoint { at, continues, checkpoint }, Entry::Policies { at, policies: Policies::default() }]
        };
        let mut wanted: Vec<Entry> = opening(false).into();
        for told in &all {
            match told {
                Told::Event(at, event) => {
                    journal.event(Timestamp(*at), event).unwrap();
                    wanted.push(Entry::Event { at: Timestamp(*at), event: event.clone() });
                }
                Told::Poll(at, actions) => {
                    journal.poll(Timestamp(*at), actions).unwrap();
                    wanted.push(Entry::Poll { at: Timestamp(*at), hash: String::new(), actions: actions.clone() });
                }
                Told::Policies(at, policies) => {
                    journal.policies(Timestamp(*at), policies).unwrap();
                    wanted.push(Entry::Policies { at: Timestamp(*at), policies: policies.clone() });
                }
                Told::Rotate => {
                    journal.checkpoint(at, &checkpoint, &Policies::default()).unwrap();
                    wanted.extend(opening(true));
                }
            }
        }
        journal.close().unwrap();
        let mut got = Vec::new();
        for path in folder.segments() {
            let (entries, cut) = read(&path).unwrap();
            prop_assert_eq!(cut, None);
            got.extend(entries);
        }
        for entry in &mut got {
            if let Entry::Poll { hash, .. } = entry {
                prop_assert_eq!(std::mem::take(hash).len(), 32);
            }
        }
        prop_assert_eq!(got, wanted);
    }
}

#[test]
fn a_catalogue_is_kept_once_in_a_segment_and_shared_when_read() {
    let size = |catalogues: &[Event]| {
        let folder = Folder::new();
        let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
        journal.checkpoint(Timestamp(0), &Engine::new().checkpoint(), &Policies::default()).unwrap();
        for event in catalogues {
            journal.event(Timestamp(1), event).unwrap();
        }
        journal.close().unwrap();
        let path = folder.segments().remove(0);
        let shared: Vec<Arc<whittle_model::Catalog>> = read(&path)
            .unwrap()
            .0
            .into_iter()
            .filter_map(|entry| if let Entry::Event { event: Event::Catalog(catalog), .. } = entry { Some(catalog) } else { None })
            .collect();
        assert_eq!(shared.len(), catalogues.len());
        assert!(shared.windows(2).all(|pair| pair[0] != pair[1] || Arc::ptr_eq(&pair[0], &pair[1])));
        std::fs::metadata(path).unwrap().len()
    };
    // Distinct values of equal content, so that it is the content that counts.
    let same: Vec<Event> = (0..100).map(|_| Event::Catalog(catalog(9))).collect();
    assert!(size(&same) < size(&same[..1]) + 600, "{} against {}", size(&same), size(&same[..1]));
}
