//! The fixtures are the ones the published figures were made with.

use std::collections::BTreeSet;

use whittle_bench::fixtures::{self, DIVERSE, Draw, FixtureError, MIXES};
use whittle_model::Pod;
use whittle_model::resources::{CPU, MEMORY};

fn sums<'a>(draws: impl Iterator<Item = &'a Draw>) -> (i64, i64) {
    draws.fold((0, 0), |(cpu, memory), d| (cpu + d.cpu_milli, memory + d.memory_mib))
}

#[test]
fn the_draws_have_the_published_sums() {
    for (pods, all, anti) in [
        (50, (39_300, 63_888), (8_100, 13_668)),
        (100, (70_650, 137_892), (13_300, 24_308)),
        (500, (324_400, 676_592), (60_000, 126_316)),
        (1000, (663_350, 1_341_084), (131_950, 267_380)),
        (2000, (1_319_500, 2_769_052), (260_350, 529_688)),
        (5000, (3_309_000, 6_708_012), (660_850, 1_358_752)),
        (10_000, (6_628_950, 13_375_332), (1_326_700, 2_619_956)),
        (20_000, (13_399_850, 26_928_028), (2_630_100, 5_331_496)),
    ] {
        let draws = fixtures::diverse(pods).unwrap();
        assert_eq!(draws.len(), pods);
        assert_eq!(sums(draws.iter()), all, "{pods}");
        assert_eq!(sums(draws.iter().filter(|d| d.kind == "anti")), anti, "{pods}");
        assert_eq!(draws.iter().filter(|d| d.kind == "anti").count(), pods / 5);
    }
    assert_eq!(DIVERSE.map(|n| fixtures::diverse(n).unwrap().len()), DIVERSE);
}

#[test]
fn pods_carry_sizes_names_and_order() {
    let draws = fixtures::diverse(100).unwrap();
    let pods = fixtures::generic(&draws);
    assert_eq!((pods[0].requests.get(CPU), pods[0].requests.get(MEMORY)), (500, 512 << 20));
    assert_eq!((pods[1].uid.as_str(), pods[1].created.0), ("pod-00002", 1));
    assert!(pods.iter().all(|p| p.unschedulable && p.anti_affinity.is_empty() && p.affinity == Pod::default().affinity));
    let anti = fixtures::anti(&draws);
    assert_eq!(anti.iter().filter(|p| !p.anti_affinity.is_empty()).count(), 20);
    assert!(anti.iter().zip(&pods).all(|(a, g)| a.requests == g.requests));
}

#[test]
fn mixes_repeat_their_shapes() {
    for name in MIXES {
        let shapes = fixtures::shapes(name).unwrap();
        let pods = fixtures::mix(name, 100).unwrap();
        assert_eq!(pods.len(), 100);
        for (at, pod) in pods.iter().enumerate() {
            let (cpu, memory) = shapes[at % shapes.len()];
            assert_eq!((pod.requests.get(CPU), pod.requests.get(MEMORY)), (cpu, memory << 20), "{name} {at}");
        }
    }
    let counts = MIXES.map(|name| fixtures::shapes(name).unwrap().len());
    assert_eq!(counts, [4, 24, 60, 80, 4, 30]);
}

#[test]
fn distinct_pods_are_distinct_and_draws_repeat() {
    let pods = fixtures::distinct(5000);
    for resource in [CPU, MEMORY] {
        let all: BTreeSet<i64> = pods.iter().map(|p| p.requests.get(resource)).collect();
        assert_eq!(all.len(), 5000, "{resource}");
    }
    assert_eq!(fixtures::drawn(500), fixtures::drawn(500));
    assert_eq!(fixtures::drawn(500), fixtures::drawn(1000)[..500]);
    let mean = fixtures::drawn(10_000).iter().map(|draw| draw.cpu_milli).sum::<i64>() / 10_000;
    assert!((655..685).contains(&mean), "the mean of the five CPU sizes is 670m, not {mean}m");
}

#[test]
fn a_missing_fixture_is_named() {
    assert_eq!(fixtures::diverse(7), Err(FixtureError::Unknown("diverse-7".to_owned())));
    assert_eq!(fixtures::shapes("none"), Err(FixtureError::Unknown("mix-none".to_owned())));
}
