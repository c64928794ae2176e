//! tmp
mod clusters;
use whittle_bench::markets::{self, Set};
use whittle_bench::ours::{Ours};
use whittle_bench::reference::Reference;
use whittle_model::{Packing, Settings};
#[test]
fn dbg() {
    let market = clusters::few_types(&markets::real(Set::All).unwrap());
    for seed in [91u64, 146, 205] {
        let input = clusters::random(&market, seed);
        println!("=== {seed}");
        for p in &input.pools { println!("{} w{} {} taints {:?} labels {:?} limits {:?}", p.name, p.weight, p.template.requirements, p.template.taints, p.template.labels, p.limits.amounts); }
        for d in &input.daemon_sets { println!("ds {:?} {:?} {:?}", d.template.requests, d.template.affinity.node_terms, d.template.tolerations.len()); }
        let o = Reference::new(&input).solve();
        let pod = |k: &whittle_model::PodKey| input.pods.iter().find(|p| p.key == *k).unwrap();
        let show = |k: &whittle_model::PodKey| { let p = pod(k); format!("{}[{}/{} app{} or{}]", p.key.name, p.requests.get("cpu"), p.requests.get("memory")>>20, p.labels["app"], p.affinity.node_terms.len()) };
        for n in &o.nodes { println!("R {} {} {} {}: {:?}", n.pool, n.offering, n.price, n.types, n.pods.iter().map(show).collect::<Vec<_>>()); }
        let plan = Ours::new(&input, &Settings { packing: Packing::Greedy, ..Settings::default() }).plan();
        for n in &plan.nodes { println!("E {} {} {}: {:?}", n.claim.node_pool, n.choice, n.cost, n.pods.iter().map(show).collect::<Vec<_>>()); }
        for u in &plan.unplaced { println!("U {:?} {:?} {:?}", u.pods.iter().map(show).collect::<Vec<_>>(), u.reasons, u.nearest); }
        let mut seen = std::collections::BTreeSet::new();
        for p in &input.pods { if seen.insert(p.labels["app"].clone()) { println!("app{} sel {} terms {:?} anti {:?} tol {}", p.labels["app"], p.affinity.node_selector, p.affinity.node_terms.iter().map(|t| t.to_string()).collect::<Vec<_>>(), p.anti_affinity.iter().map(|a| &a.selector.requirements[0].values).collect::<Vec<_>>(), p.tolerations.len()); } }
    }
}
#[test]
fn small() {
    let market = clusters::few_types(&markets::real(Set::All).unwrap());
    let full = clusters::random(&market, 205);
    for keep in 1..16 {
        let mut input = full.clone();
        input.pods.retain(|p| { let l = p.labels["app"].as_str(); (keep & 1 == 1 && p.key.name == "pod-005") || (keep & 2 == 2 && l == "3") || (keep & 4 == 4 && l == "2") || (keep & 8 == 8 && l == "0") });
        let o = Reference::new(&input).solve();
        let plan = Ours::new(&input, &Settings { packing: Packing::Greedy, ..Settings::default() }).plan();
        println!("S keep {keep} R {} {} E {} {}", o.nodes.len(), o.unplaced.len(), plan.nodes.len(), plan.unplaced.iter().map(|u| u.pods.len()).sum::<usize>());
    }
}
#[test]
fn shrink() {
    let market = clusters::few_types(&markets::real(Set::All).unwrap());
    let mut input = clusters::random(&market, 205);
    let bad = |input: &whittle_bench::Input| {
        let o = Reference::new(input).solve();
        let plan = Ours::new(input, &Settings { packing: Packing::Greedy, ..Settings::default() }).plan();
        o.unplaced.len() != plan.unplaced.iter().map(|u| u.pods.len()).sum::<usize>()
    };
    let mut at = 0;
    while at < input.pods.len() { let mut t = input.clone(); t.pods.remove(at); if bad(&t) { input = t } else { at += 1 } }
    let mut t = input.clone(); t.daemon_sets.clear(); if bad(&t) { input = t }
    for p in (0..input.pools.len()).rev() { let mut t = input.clone(); t.pools.remove(p); if bad(&t) { input = t } }
    for p in &input.pods { println!("Q {} {:?}/{} app{} {} {:?} anti{}", p.key.name, p.requests.get("cpu"), p.requests.get("memory")>>20, p.labels["app"], p.affinity.node_selector, p.affinity.node_terms.iter().map(|t| t.to_string()).collect::<Vec<_>>(), p.anti_affinity.len()); }
    for p in &input.pools { println!("Q {} w{} {} taints {:?} labels {:?} limits {:?}", p.name, p.weight, p.template.requirements, p.template.taints, p.template.labels, p.limits.amounts); }
    println!("Q ds {}", input.daemon_sets.len());
    let o = Reference::new(&input).solve();
    for n in &o.nodes { println!("Q R {} {} {} {}: {:?}", n.pool, n.offering, n.price, n.types, n.pods.iter().map(|p| &p.name).collect::<Vec<_>>()); }
    let plan = Ours::new(&input, &Settings { packing: Packing::Greedy, ..Settings::default() }).plan();
    for n in &plan.nodes { println!("Q E {} {} {}: {:?}", n.claim.node_pool, n.choice, n.cost, n.pods.iter().map(|p| &p.name).collect::<Vec<_>>()); }
    for n in &plan.unplaced { println!("Q U {:?}", n.pods.iter().map(|p| &p.name).collect::<Vec<_>>()); }
}
