//! temp timing
mod common;
use common::guests;
use common::native::Native;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use whittle_guest_kernel::Kernel;
use whittle_model::policy::*;
use whittle_policy::*;

fn best<T>(n: usize, mut f: impl FnMut() -> T) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..n {
        let t = Instant::now();
        std::hint::black_box(f());
        best = best.min(t.elapsed().as_secs_f64() * 1e9);
    }
    best
}

#[test]
fn timing() {
    let bytes = guests::rust("kernel");
    println!("component {} bytes", bytes.len());
    for bytes in [guests::rust("steady"), bytes.clone()] {
        let t = Instant::now();
        let l = Loader::new(None).unwrap();
        let e = t.elapsed();
        let t = Instant::now();
        let m = l.load(&bytes).unwrap();
        println!("engine {e:?} load (compile + manifest) {} {:?}", m.manifest().name, t.elapsed());
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled2");
    for _ in 0..3 {
        let l = Loader::new(Some(&folder)).unwrap();
        let t = Instant::now();
        l.load(&bytes).unwrap();
        println!("load with cache {:?}", t.elapsed());
    }
    let loader = Loader::new(None).unwrap();
    let module = loader.load(&bytes).unwrap();
    let words = Words::default();
    for rows in [1usize, 400, 4000, 60000] {
        let column: Vec<i64> = (0..rows as i64).map(|i| 1000 + i * 7).collect();
        for columns in [false, true] {
            let config = json!({"columns": columns});
            let judge = module.configure("k", &config, Limits::default()).unwrap();
            let wants = judge.setup().wants.pricing.clone().unwrap();
            let view = View { rows, columns: vec![&column[..]; wants.candidates.len()] };
            let views = [view, View::default(), View::default()];
            let open = best(200, || judge.open(&words, &[]).unwrap());
            let mut sitting = judge.open(&words, &[]).unwrap();
            let call = best(if rows > 10000 { 30 } else { 300 }, || sitting.price(&words, &views).unwrap());
            let native = Native::<Kernel>::new(&config);
            let mut n = native.open(&words, &[]).unwrap();
            let ncall = best(if rows > 10000 { 30 } else { 300 }, || n.price(&words, &views).unwrap());
            let chain = Chain::new(vec![Member::ready(Arc::new(judge.clone()))]);
            let u = chain.wants().pricing.clone().unwrap().candidates.len();
            let tables = Pricing { candidates: Table { rows, columns: vec![column.clone(); u] }, ..Pricing::default() };
            let mut round = chain.open(&words, &RoundFacts::default()).unwrap();
            let ccall = best(if rows > 10000 { 30 } else { 300 }, || round.price(&words, &tables).unwrap());
            println!("rows {rows} columns {columns}: open {open:.0} ns, call {:.2} ns/row ({call:.0} ns), chain {:.2} ns/row, native(with copies) {:.2} ns/row", call / rows as f64, ccall / rows as f64, ncall / rows as f64);
        }
    }
    let broken = loader.load(&guests::hostile("trap-in-call")).unwrap().configure("b", &json!({}), Limits::default()).unwrap();
    let one = [1i64];
    let views = [View { rows: 1, columns: vec![&one[..]] }, View::default(), View::default()];
    println!("open+trap {:.0} ns", best(200, || broken.open(&words, &[]).unwrap().price(&words, &views).unwrap_err()));
}
