//! An engine rebuilt from its checkpoint goes on as if nothing had happened: the same plan, the same
//! orders, the same timers, whatever came before and in whatever order.

mod common;

use common::door::{Door, Launching};
use common::random::{Cluster, Dice};
use common::seconds;
use whittle_engine::{Checkpoint, Engine};
use whittle_model::{Event, ListPrice, NodeClaim, Pod, Settings};

/// Through JSON and back.
fn rebuilt(engine: &Engine) -> Engine {
    let text = serde_json::to_string(&engine.checkpoint()).expect("a checkpoint can be written");
    let checkpoint: Checkpoint = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(checkpoint, engine.checkpoint());
    Engine::restore(checkpoint)
}

/// Something happens to the cluster.
fn happen(door: &mut Door, d: &mut Dice, waiting: &mut Vec<Pod>) {
    match d.below(12) {
        0..=2 => {
            for _ in 0..1 + d.below(6) {
                if let Some(pod) = waiting.pop() {
                    door.put_pod(pod);
                }
            }
        }
        3 => door.join(),
        4 => drop(door.bind_nominated()),
        5 => door.finish_boot(),
        6 => {
            let keys: Vec<_> = door.pods.keys().cloned().collect();
            if !keys.is_empty() {
                door.remove_pod(&keys[d.below(keys.len())]);
            }
        }
        7 => door.launching = [Launching::Works, Launching::Silent, Launching::Fails("Throttled".to_owned())][d.below(3)].clone(),
        8 => {
            door.sold_out.clear();
            for kind in &door.catalog.types {
                for offering in &kind.offerings {
                    if d.one_in(2) {
                        door.sold_out.insert(whittle_model::OfferingKey {
                            instance_type: kind.name.clone(),
                            zone: offering.zone.clone(),
                            capacity_type: offering.capacity_type,
                        });
                    }
                }
            }
        }
        9 => {
            let names: Vec<String> = door.claims.keys().cloned().collect();
            if !names.is_empty() {
                let claim = door.claims[&names[d.below(names.len())]].clone();
                door.put_claim(NodeClaim { deleting: true, ..claim });
            }
        }
        10 => {
            // A sight of a claim from before it was launched.
            if let Some(claim) = door.claims.values().next().cloned() {
                door.tell(&Event::Claim(Box::new(NodeClaim { status: whittle_model::ClaimStatus::default(), ..claim })));
            }
        }
        _ => {
            let settings = Settings { batch_idle: seconds(1 + i64::from(d.one_in(2))), ..door.engine.world().settings().clone() };
            door.tell(&Event::Settings(settings));
        }
    }
}

#[test]
fn an_engine_goes_on_from_its_checkpoint() {
    let mut orders = 0;
    for seed in 0..150 {
        let cluster = Cluster::of(seed);
        let mut dice = Dice(seed ^ 0xc0ffee);
        let mut events = cluster.events();
        let last = events.pop().unwrap();
        dice.shuffle(&mut events);
        events.push(last);
        let mut door = Door::new(common::told(&events));
        door.nodes = cluster.nodes.iter().map(|n| (n.name.clone(), n.clone())).collect();
        door.pods = cluster.bound.iter().map(|p| (p.key.clone(), p.clone())).collect();
        let mut waiting: Vec<Pod> = cluster.waves.iter().flatten().cloned().collect();
        dice.shuffle(&mut waiting);
        for step in 0..25 {
            happen(&mut door, &mut dice, &mut waiting);
            if dice.one_in(3) {
                let again = rebuilt(&door.engine);
                let now = door.now.plus(seconds(20));
                assert_eq!(again.plan(now, &mut ListPrice), door.engine.plan(now, &mut ListPrice), "seed {seed}, step {step}");
                door.twin = Some(again);
            }
            let span = [0, 1, 3, 40, 200][dice.below(5)];
            orders += door.pass(seconds(span)).len();
        }
        for report in door.engine.take_reports() {
            assert_eq!(report.objections, Vec::<String>::new(), "seed {seed}");
        }
    }
    assert!(orders > 5_000, "something happened: {orders} orders");
}
