//! What `minValues` asks of claims: strict, best effort, and after every cut of the list.

#![expect(clippy::unwrap_used, reason = "a test that unwraps nothing fails, as it should")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::random::Cluster;
use common::{CATEGORY, GIB, NOW, basics, catalog, objections, pod, pool, settings, told};
use whittle_engine::{Engine, Plan};
use whittle_model::{Catalog, Event, ListPrice, Micros, NodeClaim, NodePool, Requirement, Settings, keys};

/// A pool that wants so many categories.
fn choosy(least: u32) -> NodePool {
    let mut pool = pool("p");
    pool.template.requirements.add(Requirement::exists(CATEGORY).with_min_values(Some(least)));
    pool
}

fn planned(events: &[Event], settings: Settings) -> (Engine, Plan) {
    let mut all = basics();
    all.push(Event::Settings(settings));
    all.extend(events.iter().cloned());
    let engine = told(&all);
    let plan = engine.plan(NOW, &mut ListPrice);
    assert_eq!(objections(&engine, &plan), vec![]);
    (engine, plan)
}

/// Distinct values that a claim's types have of a key, counted on the catalogue.
fn distinct(catalog: &Catalog, claim: &NodeClaim, key: &str) -> usize {
    let mut values: BTreeSet<String> = BTreeSet::new();
    for name in claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values() {
        let of_type = catalog.get(name).unwrap();
        let wanted = |key: &str, value: &str| claim.requirements.get(key).is_none_or(|r| r.allows(value));
        let offers = of_type.offerings.iter().filter(|o| {
            o.available
                && wanted(keys::ZONE, &o.zone)
                && wanted(keys::ZONE_ID, &o.zone_id)
                && wanted(keys::CAPACITY_TYPE, o.capacity_type.name())
        });
        match key {
            keys::ZONE => values.extend(offers.map(|o| o.zone.clone())),
            keys::CAPACITY_TYPE => values.extend(offers.map(|o| o.capacity_type.name().to_owned())),
            key => values.extend(of_type.labels.get(key).cloned()),
        }
    }
    values.len()
}

#[test]
fn enough_families_or_none() {
    // Categories by what fits: 3 cores and 14 GiB leaves m.4, m.8, r.8, c.8; 20 GiB leaves m.8 and r.8.
    for (memory, least, relax, want) in [
        (13, 3, false, Ok(false)),
        (20, 2, false, Ok(false)),
        (20, 3, false, Err("minValues: 3 categories wanted, 2 fit")),
        (20, 3, true, Ok(true)),
        (13, 3, true, Ok(false)),
    ] {
        let least_of = choosy(least);
        let events = [Event::NodePool(Box::new(least_of)), Event::Pod(Box::new(pod("a", 3000, memory * GIB)))];
        let (_, plan) = planned(&events, Settings { relax_min_values: relax, ..settings() });
        let why = plan.unplaced.first().map(|u| u.reasons[0].why.to_string());
        match want {
            Ok(relaxed) => {
                assert_eq!(why, None, "{memory} GiB");
                let claim = &plan.nodes[0].claim;
                assert_eq!(claim.annotations.contains_key(keys::MIN_VALUES_RELAXED), relaxed, "{memory} GiB");
                let asked = claim.requirements.get(CATEGORY).unwrap().min_values().unwrap() as usize;
                assert!(distinct(&catalog("default"), claim, CATEGORY) >= asked);
                assert_eq!(asked, if relaxed { 2 } else { least as usize });
            }
            Err(text) => assert_eq!(why.as_deref(), Some(text)),
        }
    }
}

#[test]
fn a_claim_takes_no_pod_that_would_leave_too_few_values() {
    // Two such pods fit together on m.8 and r.8 alone.
    let mut events = vec![Event::NodePool(Box::new(choosy(3)))];
    events.extend((0..6).map(|n| Event::Pod(Box::new(pod(&format!("a{n}"), 3000, 13 * GIB)))));
    let (_, plan) = planned(&events, settings());
    assert_eq!((plan.nodes.len(), plan.unplaced.len()), (6, 0));
    let (_, plan) = planned(&events, Settings { relax_min_values: true, ..settings() });
    assert_eq!(plan.nodes.len(), 6, "what is not in need of it is not relaxed either");
    assert!(plan.nodes.iter().all(|n| !n.claim.annotations.contains_key(keys::MIN_VALUES_RELAXED)));
}

/// 150 types, the cheapest 100 of two categories.
fn wide() -> Catalog {
    let base = catalog("default").get("m.4").unwrap().clone();
    let mut types = Vec::new();
    for n in 0..150i64 {
        let category = if n >= 100 { "c" } else { ["a", "b"][usize::try_from(n % 2).unwrap()] };
        let mut one = base.clone();
        one.name = format!("{category}{n:03}.4");
        one.labels.insert(keys::INSTANCE_TYPE.to_owned(), one.name.clone());
        one.labels.insert(CATEGORY.to_owned(), category.to_owned());
        one.offerings.iter_mut().for_each(|o| o.price = Micros(o.price.0 + n * 1000));
        types.push(one);
    }
    types.sort_by(|a, b| a.name.cmp(&b.name));
    Catalog { types, ..catalog("default") }
}

#[test]
fn the_list_is_cut_so_that_enough_values_stay_in_it() {
    for (least, key, fits) in [(3, CATEGORY, true), (2, CATEGORY, true), (60, keys::INSTANCE_TYPE, true), (61, keys::INSTANCE_TYPE, false)]
    {
        let mut pool = pool("p");
        pool.template.requirements.add(Requirement::exists(key).with_min_values(Some(least)));
        let events = [Event::Catalog(Arc::new(wide())), Event::NodePool(Box::new(pool)), Event::Pod(Box::new(pod("a", 3000, 4 * GIB)))];
        let (_, plan) = planned(&events, settings());
        if !fits {
            assert!(plan.nodes.is_empty());
            assert!(
                plan.unplaced[0].reasons[0].why.to_string().contains("61 instance types would have to be named"),
                "{:?}",
                plan.unplaced
            );
            continue;
        }
        let claim = &plan.nodes[0].claim;
        assert_eq!(claim.requirements.get(keys::INSTANCE_TYPE).unwrap().values().len(), 60);
        assert!(distinct(&wide(), claim, key) >= least as usize, "{least} of {key}");
        assert_eq!(plan.nodes[0].choice.instance_type, "a000.4", "the cheapest stays");
    }
}

#[test]
fn random_clusters_keep_to_it() {
    let (mut claims, mut refused, mut relaxed) = (0, 0, 0);
    for seed in 7000..7150 {
        let mut cluster = Cluster::of(seed);
        let wishes = [(CATEGORY, 2), (keys::INSTANCE_TYPE, 3), (keys::ZONE, 2), (keys::CAPACITY_TYPE, 2)];
        for (at, pool) in cluster.pools.iter_mut().enumerate() {
            let (key, least) = wishes[(usize::try_from(seed).unwrap() + at) % wishes.len()];
            pool.template.requirements.add(Requirement::exists(key).with_min_values(Some(least)));
        }
        let mut engine = told(&cluster.events());
        if seed % 3 == 0 {
            let relax_min_values = true;
            engine.handle(&Event::Settings(Settings { relax_min_values, ..engine.world().settings().clone() }), NOW);
        }
        for event in cluster.wave(0) {
            engine.handle(&event, NOW);
        }
        let plan = engine.plan(NOW, &mut ListPrice);
        assert_eq!(objections(&engine, &plan), vec![], "seed {seed}");
        for node in &plan.nodes {
            let catalog = engine.world().catalog(&node.claim.node_class).unwrap();
            let pool = engine.world().pool(&node.claim.node_pool).unwrap();
            let lower = node.claim.annotations.contains_key(keys::MIN_VALUES_RELAXED);
            relaxed += usize::from(lower);
            for want in pool.template.requirements.iter().filter(|r| r.min_values().is_some()) {
                let of = if lower { &node.claim.requirements } else { &pool.template.requirements };
                let least = of.get(want.key()).unwrap().min_values().unwrap_or(0) as usize;
                let have = distinct(catalog, &node.claim, want.key());
                assert!(have >= least, "seed {seed}: {} has {have} of {}", node.claim.name, want.key());
            }
            claims += 1;
        }
        refused += plan.unplaced.iter().filter(|u| u.reasons.iter().any(|r| r.why.to_string().contains("minValues"))).count();
    }
    assert!(claims > 100 && refused > 5 && relaxed > 0, "{claims} claims, {refused} refused, {relaxed} relaxed");
}
