//! The cost packer against the rules, a brute force, and a plain greedy.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use proptest::prelude::*;
use whittle_engine::pack::{Class, Kind, Packing, Pattern, Problem, bound, check, solve};
use whittle_model::Micros;

/// Steps that keep the properties quick without optimisation.
const FEW: u64 = 8_000;

/// One at a time, the biggest first, on the open bin with the fewest items that still has a kind;
/// a new bin when none has. Each bin ends in its cheapest kind.
fn greedy(problem: &Problem) -> Packing {
    let mut order: Vec<u32> = (0..).take(problem.classes.len()).collect();
    order.sort_by(|a, b| problem.classes[*b as usize].demand.cmp(&problem.classes[*a as usize].demand));
    let mut open: Vec<(u32, Vec<u32>, BTreeMap<u32, u32>)> = Vec::new();
    let mut unplaced = Vec::new();
    for c in order {
        let mut lost = 0;
        for _ in 0..problem.classes[c as usize].count {
            open.sort_by_key(|(n, _, _)| *n);
            let fresh = (0, problem.classes[c as usize].kinds.to_vec(), BTreeMap::new());
            let at = (0..open.len()).find(|&i| grown(problem, &open[i], c).is_some());
            let grown_bin = grown(problem, at.map_or(&fresh, |i| &open[i]), c);
            match (at, grown_bin) {
                (Some(i), Some(bin)) => open[i] = bin,
                (None, Some(bin)) => open.push(bin),
                (_, None) => lost += 1,
            }
        }
        if lost > 0 {
            unplaced.push((c, lost));
        }
    }
    unplaced.sort_unstable();
    let close = |(_, kinds, items): (u32, Vec<u32>, BTreeMap<u32, u32>)| {
        let kind = kinds.into_iter().min_by_key(|&k| problem.kinds[k as usize].rank).expect("an open bin has a kind");
        Pattern { kind, items: items.into_iter().collect(), times: 1 }
    };
    Packing { patterns: open.into_iter().map(close).collect(), unplaced }
}

/// The bin with one more item of class `c`, when some kind still holds it.
fn grown(problem: &Problem, bin: &(u32, Vec<u32>, BTreeMap<u32, u32>), c: u32) -> Option<(u32, Vec<u32>, BTreeMap<u32, u32>)> {
    let (n, kinds, mut items) = bin.clone();
    let class = &problem.classes[c as usize];
    if (class.alone && items.contains_key(&c)) || items.keys().any(|other| class.conflicts.contains(other)) {
        return None;
    }
    *items.entry(c).or_default() += 1;
    let kinds: Vec<u32> = kinds.into_iter().filter(|k| class.kinds.contains(k) && holds(problem, *k, &items)).collect();
    if kinds.is_empty() { None } else { Some((n + 1, kinds, items)) }
}

fn holds(problem: &Problem, kind: u32, items: &BTreeMap<u32, u32>) -> bool {
    (0..problem.width).all(|r| {
        let sum: i64 = items.iter().map(|(c, n)| problem.classes[*c as usize].demand[r] * i64::from(*n)).sum();
        sum <= problem.kinds[kind as usize].capacity[r]
    })
}

/// The lowest rank that packs every item, found by trying all partitions; `None` when some item
/// fits nowhere.
fn optimum(problem: &Problem) -> Option<i64> {
    let items: Vec<u32> = (0u32..).zip(&problem.classes).flat_map(|(c, class)| (0..class.count).map(move |_| c)).collect();
    let all = (1usize << items.len()) - 1;
    let bin = |set: usize| -> Option<i64> {
        let mut content: BTreeMap<u32, u32> = BTreeMap::new();
        (0..items.len()).filter(|i| set >> i & 1 == 1).for_each(|i| *content.entry(items[i]).or_default() += 1);
        let class = |c: &u32| &problem.classes[*c as usize];
        if content.iter().any(|(c, n)| (class(c).alone && *n > 1) || class(c).conflicts.iter().any(|o| content.contains_key(o))) {
            return None;
        }
        let fits = |k: &u32| content.keys().all(|c| class(c).kinds.contains(k)) && holds(problem, *k, &content);
        (0u32..).take(problem.kinds.len()).filter(fits).map(|k| problem.kinds[k as usize].rank.0).min()
    };
    let one: Vec<Option<i64>> = (0..=all).map(bin).collect();
    let mut best: Vec<Option<i64>> = vec![Some(0); all + 1];
    for set in 1..=all {
        let first = 1 << set.trailing_zeros();
        let mut least: Option<i64> = None;
        let mut sub = set;
        while sub > 0 {
            if sub & first != 0 {
                let sum = one[sub].zip(best[set ^ sub]).map(|(a, b)| a + b);
                least = least.into_iter().chain(sum).min();
            }
            sub = (sub - 1) & set;
        }
        best[set] = least;
    }
    best[all]
}

/// A class before its conflicts are made symmetric.
type RawClass = (Vec<i64>, u32, u8, bool, u8);

/// Random problems; `most` is the highest number of items of a class.
fn problems(classes: RangeInclusive<usize>, kinds: usize, most: u32) -> impl Strategy<Value = Problem> {
    (1usize..=3).prop_flat_map(move |width| {
        let class = (prop::collection::vec(0i64..8, width), 0..=most, any::<u8>(), prop::bool::weighted(0.3), any::<u8>());
        let kind = (prop::collection::vec(0i64..20, width), 0i64..1_000_000);
        (prop::collection::vec(class, classes.clone()), prop::collection::vec(kind, 1..=kinds))
            .prop_map(move |(c, k)| problem(width, &c, k))
    })
}

fn problem(width: usize, raw: &[RawClass], kinds: Vec<(Vec<i64>, i64)>) -> Problem {
    let mut classes: Vec<Class> = Vec::new();
    for (demand, count, mask, alone, _) in raw {
        // Every fourth class may use any kind, the others a random half.
        let allowed = (0u32..).take(kinds.len()).filter(|k| mask % 4 == 0 || mask >> (k % 8) & 1 == 1).collect();
        classes.push(Class { demand: demand.clone(), count: *count, kinds: allowed, alone: *alone, conflicts: Vec::new() });
    }
    for a in 0..raw.len() {
        for b in 0..raw.len() {
            if b != a && raw[a].4 & raw[b].4 & 0b11 == 0b11 {
                classes[a].conflicts.push(u32::try_from(b).expect("few classes"));
            }
        }
    }
    let kinds = kinds.into_iter().map(|(capacity, rank)| Kind { capacity, rank: Micros(rank), cost: Micros(rank) }).collect();
    Problem { width, classes, kinds }
}

fn placed(packing: &Packing) -> u32 {
    packing.patterns.iter().map(|p| p.times * p.items.iter().map(|(_, n)| n).sum::<u32>()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keeps_the_rules_and_is_never_worse_than_the_greedy(mut problem in problems(1..=8, 8, 12), bytes in any::<bool>()) {
        if bytes {
            problem.classes.iter_mut().flat_map(|c| &mut c.demand).for_each(|d| *d <<= 33);
            problem.kinds.iter_mut().flat_map(|k| &mut k.capacity).for_each(|c| *c <<= 33);
        }
        let start = greedy(&problem);
        prop_assert_eq!(check(&problem, &start), Ok(()));
        let solution = solve(&problem, &start, FEW);
        prop_assert_eq!(check(&problem, &solution.packing), Ok(()));
        prop_assert!(placed(&solution.packing) >= placed(&start));
        prop_assert!(solution.packing.rank(&problem) <= start.rank(&problem));
        prop_assert!(solution.bound.rank <= solution.packing.rank(&problem), "{:?}", solution);
        prop_assert_eq!(&solution, &solve(&problem, &start, FEW), "two runs differ");
    }

    #[test]
    fn places_what_fits_alone_somewhere_even_with_one_step(problem in problems(1..=8, 8, 12)) {
        let nothing = Packing { patterns: Vec::new(), unplaced: problem.classes.iter().zip(0..).map(|(c, i)| (i, c.count)).collect() };
        let solution = solve(&problem, &nothing, 1);
        prop_assert_eq!(check(&problem, &solution.packing), Ok(()));
        let fits = |c: &Class| c.kinds.iter().any(|k| problem.kinds[*k as usize].capacity.iter().zip(&c.demand).all(|(room, d)| d <= room));
        let placeable: u32 = problem.classes.iter().filter(|c| fits(c)).map(|c| c.count).sum();
        prop_assert_eq!(placed(&solution.packing), placeable);
    }

    #[test]
    fn few_items_are_packed_at_the_optimum(problem in problems(1..=4, 5, 2)) {
        let bound = bound(&problem).rank.0;
        if let Some(best) = optimum(&problem) {
            prop_assert!(bound <= best, "{bound} above {best}");
            let solution = solve(&problem, &greedy(&problem), FEW);
            prop_assert_eq!(check(&problem, &solution.packing), Ok(()));
            prop_assert_eq!((solution.packing.rank(&problem).0, solution.bound.rank.0), (best, best));
        }
    }

    #[test]
    fn no_bin_holds_items_worth_more_than_its_rank(problem in problems(1..=4, 5, 2)) {
        let start = greedy(&problem);
        let duals = bound(&problem).duals;
        for bin in &start.patterns {
            let value = |c: u32| duals.iter().find_map(|d| d.classes.binary_search(&c).ok().map(|at| d.values[at]));
            let worth: f64 = bin.items.iter().map(|&(c, n)| value(c).unwrap() * f64::from(n)).sum();
            prop_assert!(worth <= problem.kinds[bin.kind as usize].rank.0 as f64 * (1.0 + 1e-9), "{worth} in {bin:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_proved_bound_is_below_the_optimum(mut problem in problems(12..=12, 8, 1)) {
        problem.classes.iter_mut().for_each(|class| class.count = 1);
        let solution = solve(&problem, &greedy(&problem), 20 * FEW);
        prop_assert_eq!(check(&problem, &solution.packing), Ok(()));
        if let Some(best) = optimum(&problem) {
            let (ours, bound) = (solution.packing.rank(&problem).0, solution.bound.rank.0);
            prop_assert!(bound <= best && best <= ours, "{bound} {best} {ours}");
        }
    }
}

/// Three families of one to sixteen sizes, all priced in proportion, as a cloud does.
fn families() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (memory, price) in [(2i64, 42_500i64), (4, 48_000), (8, 60_000)] {
        for cpus in [1i64, 2, 4, 8, 16, 32] {
            let rank = Micros(cpus * price);
            kinds.push(Kind { capacity: vec![cpus * 1000 - 60, cpus * memory * 950 - 400, cpus * 8], rank, cost: rank });
        }
    }
    kinds
}

/// Items of many shapes, `count` of each.
fn shapes(count: u32) -> Problem {
    let kinds = families();
    let mut classes = Vec::new();
    for cpu in [110i64, 270, 530, 1300, 3100] {
        for ratio in [1i64, 3, 7] {
            let all = (0u32..).take(kinds.len()).collect();
            classes.push(Class { demand: vec![cpu, cpu * ratio, 1], count, kinds: all, alone: false, conflicts: Vec::new() });
        }
    }
    Problem { width: 3, classes, kinds }
}

#[test]
fn comes_close_to_the_bound_on_priced_families() {
    for (count, percent) in [(7, 105), (40, 102)] {
        let problem = shapes(count);
        let start = greedy(&problem);
        let solution = solve(&problem, &start, 60_000);
        assert_eq!(check(&problem, &solution.packing), Ok(()));
        let (cost, least) = (solution.packing.rank(&problem).0, solution.bound.rank.0);
        assert!(cost * 100 <= least * percent, "{count} of each: {cost} against the bound {least}");
        assert!(cost < start.rank(&problem).0);
        assert_ne!(solution.method, "greedy");
    }
}

#[test]
fn anti_affinity_raises_the_bound() {
    let mut problem = shapes(4);
    let free = bound(&problem).rank;
    for c in 0..3u32 {
        problem.classes[c as usize].alone = true;
        problem.classes[c as usize].conflicts = (0..3).filter(|other| *other != c).collect();
    }
    problem.classes.truncate(3);
    let solution = solve(&problem, &greedy(&problem), 20_000);
    assert_eq!(check(&problem, &solution.packing), Ok(()));
    assert_eq!(solution.packing.patterns.iter().map(|p| p.times).sum::<u32>(), 12);
    // Twelve of the smallest bins, and nothing less.
    assert_eq!(solution.bound.rank, solution.packing.rank(&problem));
    assert!(solution.bound.rank < free);
}

#[test]
fn classes_that_may_only_use_dear_kinds_raise_the_bound() {
    let mut problem = shapes(4);
    let free = bound(&problem);
    assert_eq!(free.duals.len(), 1);
    let cheap = u32::try_from(problem.kinds.len()).unwrap();
    let dear = |kind: Kind| Kind { rank: Micros(kind.rank.0 * 2), ..kind };
    problem.kinds.extend(families().into_iter().map(dear));
    for class in &mut problem.classes[..7] {
        class.kinds = (cheap..2 * cheap).collect();
    }
    let apart = bound(&problem);
    assert_eq!(apart.duals.len(), 2);
    assert!(apart.rank > free.rank);
    assert_eq!(apart.rank.0, apart.duals.iter().map(|d| d.rank.0).sum::<i64>());
    // One class that may use both joins the two, and still the bound tells them apart.
    problem.classes[14].kinds = (0..2 * cheap).collect();
    let joined = bound(&problem);
    assert_eq!(joined.duals.len(), 1);
    assert!(joined.rank.0 * 100 >= apart.rank.0 * 99 && joined.rank.0 <= apart.rank.0 + 1, "{joined:?} {apart:?}");
    let solution = solve(&problem, &greedy(&problem), 20_000);
    assert_eq!(check(&problem, &solution.packing), Ok(()));
}

#[test]
fn what_fits_nowhere_is_unplaced_and_free() {
    let mut problem = shapes(2);
    problem.classes[0].demand[0] = 1_000_000;
    let solution = solve(&problem, &greedy(&problem), 10_000);
    assert_eq!(check(&problem, &solution.packing), Ok(()));
    assert_eq!(solution.packing.unplaced, [(0, 2)]);
}

#[test]
fn the_check_finds_every_kind_of_breach() {
    let kind = |cpu: i64| Kind { capacity: vec![cpu], rank: Micros(1), cost: Micros(1) };
    let class =
        |alone: bool, conflicts: &[u32]| Class { demand: vec![2], count: 2, kinds: vec![0].into(), alone, conflicts: conflicts.to_vec() };
    let problem = Problem { width: 1, classes: vec![class(false, &[1]), class(true, &[0])], kinds: vec![kind(4), kind(9)] };
    let with = |kind: u32, items: &[(u32, u32)]| Packing {
        patterns: vec![Pattern { kind, items: items.to_vec(), times: 1 }],
        unplaced: Vec::new(),
    };
    for (packing, why) in [
        (with(1, &[(0, 2)]), "may not be on kind 1"),
        (with(0, &[(0, 3)]), "resource 0 takes 6 of 4"),
        (with(0, &[(1, 2)]), "keeps to one a bin"),
        (with(0, &[(0, 1), (1, 1)]), "shares it with class"),
        (with(0, &[(0, 1)]), "1 of 2 items"),
        (with(0, &[]), "is empty"),
        (with(5, &[(0, 1)]), "no kind 5"),
    ] {
        let said = check(&problem, &packing).unwrap_err();
        assert!(said.contains(why), "{said} does not say {why}");
    }
}
