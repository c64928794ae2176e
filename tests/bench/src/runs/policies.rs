//! B10, plans: what policies add to a default plan of 5,000 pods on 400 types, and what it costs to make
//! the plan again without one that fails.

use std::sync::Arc;
use std::time::Duration;

use whittle_engine::Plan;
use whittle_model::policy::{Judging, Pricing, RoundFacts, Wants, Words};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, ScorerFailure, Verdict};
use whittle_model::{Pod, PodKey, Scorer, Settings, Timestamp, keys};
use whittle_policy::{Chains, Configured, Limits, Loader, Member};

use super::{BenchError, Line};
use crate::filter::Filter;
use crate::measure::{Millis, alternate, timed};
use crate::ours::Ours;
use crate::{fixtures, guests, markets};

const PODS: usize = 5000;
const TEAMS: [&str; 4] = ["web", "ci", "data", "payments"];

/// A policy to measure, with a configuration as a cluster would have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shipped {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) config: &'static str,
}

const fn shipped(name: &'static str, package: &'static str, config: &'static str) -> Shipped {
    Shipped { name, package, config }
}

/// The policies that are shipped.
pub(super) const SHIPPED: [Shipped; 4] = [
    shipped(
        "team-rules",
        "whittle-policy-team-rules",
        r#"{"rules": [
            {"name": "ci-is-small", "match": {"namespaces": ["ci", "ci-*"]}, "atMost": {"cpu": 64, "pricePerHour": "30"}},
            {"name": "payments-on-demand", "match": {"labels": {"team": "payments"}}, "forbid": {"capacityTypes": ["spot"]}},
            {"name": "data-stays", "match": {"namespaces": ["data"]}, "allow": {"zones": ["test-zone-1", "test-zone-2"]}},
            {"name": "nothing-tiny", "forbid": {"instanceTypes": ["fake-it-0", "fake-it-1"]}}
        ]}"#,
    ),
    shipped(
        "price-book",
        "whittle-policy-price-book",
        r#"{
            "discounts": [
                {"percent": "12.5", "on": {"capacityTypes": ["on-demand"]}},
                {"percent": 3, "on": {"zones": ["test-zone-1"], "instanceTypes": ["fake-it-1*"]}}
            ],
            "fees": [{"perHour": "0.011"}]
        }"#,
    ),
    shipped("spot-share", "whittle-policy-spot-share", r#"{"onDemandBaseCapacity": 100, "onDemandPercentageAboveBaseCapacity": 30}"#),
    shipped(
        "formula",
        "whittle-policy-formula",
        r#"{"rows": [
            {"when": "capacity_type == 'spot' && cpu_milli > 64000", "rank": "double(rank_micros) * 1.25"},
            {"when": "asker.namespace == 'payments'", "veto": "capacity_type == 'spot'", "reason": "{instance_type} may go away"},
            {"cost": "cost_micros + 11000"}
        ]}"#,
    ),
];

/// The price book again, with committed spend: prices then change with the mix.
const COMMITTED: Shipped = shipped(
    "price-book",
    "whittle-policy-price-book",
    r#"{"discounts": [{"percent": "12.5"}], "commitments": [{"perHour": "40", "percent": 27}]}"#,
);

impl Shipped {
    /// Its component.
    pub(super) fn component(&self) -> Result<Vec<u8>, BenchError> {
        Ok(guests::component(self.package)?)
    }

    /// The policy, ready to judge.
    pub(super) fn configured(&self, loader: &Loader) -> Result<Configured, BenchError> {
        let config = serde_json::from_str(self.config).map_err(|error| BenchError::Config { policy: self.name, error })?;
        Ok(loader.load(&self.component()?)?.configure(self.name, &config, Limits::default())?)
    }
}

/// B10/solve and the second part of B10/trap.
///
/// # Errors
/// When a policy cannot be built or configured, or a fixture cannot be read.
pub fn b10(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    let kernel = Shipped { name: "kernel", package: "whittle-guest-kernel", config: r#"{"columns": true}"# };
    for policy in SHIPPED.iter().chain([&kernel]) {
        let name = format!("B10/solve/{}", policy.name);
        if filter.wants(&name) {
            line(solve_line(&name, policy)?);
        }
    }
    if filter.wants("B10/solve/price-book/committed") {
        line(solve_line("B10/solve/price-book/committed", &COMMITTED)?);
    }
    if filter.wants("B10/trap/plan") {
        let failing = Shipped { config: r#"{"fails": true}"#, ..kernel };
        line(solve_line("B10/trap/plan", &failing)?);
    }
    Ok(())
}

/// The pods of B1 shared out over four teams, each with a namespace and a label of its own.
fn pods() -> Result<Vec<Pod>, BenchError> {
    let mut pods = fixtures::generic(&fixtures::diverse(PODS)?);
    for (pod, team) in pods.iter_mut().zip(TEAMS.iter().cycle()) {
        pod.key = PodKey::new(team, &pod.key.name);
        pod.labels.insert("team".to_owned(), (*team).to_owned());
    }
    Ok(pods)
}

fn solve_line(name: &str, policy: &Shipped) -> Result<String, BenchError> {
    let plain = markets::synthetic().with_pods(pods()?);
    let mut judged = plain.clone();
    for pool in &mut judged.pools {
        pool.annotations.insert(keys::POLICY.to_owned(), policy.name.to_owned());
    }
    let judge = Arc::new(policy.configured(&Loader::new(None)?)?);
    let (mut last, mut inside) = ((Plan::default(), Plan::default()), Vec::new());
    let settings = Settings::default();
    let (with, without) = alternate(
        || {
            let mut chains = Chains::new("");
            chains.put(policy.name, Member::ready(judge.clone()));
            let mut scorer = Watched { scorer: chains, spent: Duration::ZERO };
            let ours = Ours::new(&judged, &settings);
            let (time, plan) = timed(|| ours.plan_with(&mut scorer));
            inside.push(scorer.spent);
            last.0 = plan;
            time
        },
        || {
            let ours = Ours::new(&plain, &settings);
            let (time, plan) = timed(|| ours.plan());
            last.1 = plan;
            time
        },
    );
    inside.sort_unstable();
    let share = (with.seconds() / without.seconds() - 1.0) * 100.0;
    let inside = inside.get(inside.len() / 2).copied().unwrap_or_default();
    Ok(format!(
        "{name}: {share:.1} % of a default plan ({} with, {} without), {} in the policy; {} ({}; without {})",
        Millis(with.median()),
        Millis(without.median()),
        Millis(inside),
        outcome(&last.0, &last.1),
        with.spread(),
        without.spread(),
    ))
}

/// What the policy did, and to how many nodes that led.
fn outcome(with: &Plan, without: &Plan) -> String {
    let done = |record: &PolicyRecord| {
        let vetoed: u64 = record.vetoes.iter().map(|(_, rows)| rows).sum();
        format!("{} calls, {} rows, {vetoed} vetoed, {} ranked, fuel {}", record.calls, record.rows, record.ranked, record.fuel)
    };
    let records: Vec<String> = with.policies.iter().map(done).collect();
    let unplaced = |plan: &Plan| plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum::<usize>();
    format!(
        "{}; {} nodes, {} pods unplaced, {} failures, without {} nodes, {} pods unplaced",
        records.join("; "),
        with.nodes.len(),
        unplaced(with),
        with.failures.len(),
        without.nodes.len(),
        unplaced(without)
    )
}

/// A scorer and the time spent in it.
struct Watched {
    scorer: Chains,
    spent: Duration,
}

impl Watched {
    fn watch<T>(&mut self, call: impl FnOnce(&mut Chains) -> T) -> T {
        let (time, answer) = timed(|| call(&mut self.scorer));
        self.spent += time;
        answer
    }
}

impl Scorer for Watched {
    fn chain(&mut self, chain: &str, now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        self.watch(|scorer| scorer.chain(chain, now))
    }

    fn open(&mut self, chain: &str, words: &Words, facts: &RoundFacts) -> Result<(), ScorerFailure> {
        self.watch(|scorer| scorer.open(chain, words, facts))
    }

    fn price(&mut self, chain: &str, words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        self.watch(|scorer| scorer.price(chain, words, tables))
    }

    fn judge(&mut self, chain: &str, words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        self.watch(|scorer| scorer.judge(chain, words, tables))
    }

    fn reason(&self, number: u32) -> String {
        self.scorer.reason(number)
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        self.watch(Chains::close)
    }
}
