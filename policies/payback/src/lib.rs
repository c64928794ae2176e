//! Policy `payback`: a move is made when what it saves while the saving lasts is more than the restarts cost that it
//! takes. What must not enter: moves that save nothing by intent, such as those of drifted nodes.

mod config;

pub use config::{Config, Workload};

use config::Costs;
use whittle_sdk::prelude::*;

/// Seconds of an hour.
const HOUR: i128 = 3600;

/// The highest score there is.
const MOST: i128 = 1_000_000_000_000;

/// The policy.
#[derive(Debug)]
pub struct Payback {
    costs: Costs,
    horizon: i64,
    life_per_age_percent: i64,
    overlap: i64,
    too_dear: Reason,
}

impl Policy for Payback {
    type Config = Config;
    const ABOUT: About = About { name: "payback", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        use MoveColumn as M;
        setup
            .kind("underutilized")
            .moves([M::SavingsCostMicros, M::Pods, M::Replacements, M::DrainSeconds])
            .move_nodes([MoveNodeColumn::CostMicros, MoveNodeColumn::ExpiresSeconds])
            .move_pods([MovePodColumn::OldestSeconds, MovePodColumn::RestartCost]);
        let text = "{savings-cost-micros} micro-dollars an hour would not pay back the restarts of {pods} pods in time";
        Ok(Self {
            costs: Costs::new(&config, setup)?,
            horizon: i64::from(config.horizon_hours) * 3600,
            life_per_age_percent: i64::from(config.life_per_age_percent),
            overlap: i64::from(config.overlap_seconds),
            too_dear: setup.reason(text),
        })
    }

    fn score(&self, candidate: Move<'_>) -> Score {
        let saved = i128::from(candidate.savings_cost_micros().max(0)) * i128::from(self.life(candidate)) / HOUR;
        let left = saved - self.price(candidate);
        if left <= 0 {
            return Score::veto(self.too_dear);
        }
        Score::of(i64::try_from(left.min(MOST)).unwrap_or(i64::MAX))
    }
}

impl Payback {
    /// How long the saving is believed to last, in seconds: no longer than the horizon, than the nodes would have lived, by
    /// what they cost, and than the pods are likely to run on, which is as long as they have run.
    fn life(&self, candidate: Move<'_>) -> i64 {
        let (mut whole, mut weighed) = (0i128, 0i128);
        for node in candidate.node_rows() {
            let cost = i128::from(node.cost_micros().max(1));
            whole += cost;
            weighed += cost * i128::from(node.expires_seconds().clamp(0, self.horizon));
        }
        let nodes = if whole == 0 { i128::from(self.horizon) } else { weighed / whole };
        let life = i64::try_from(nodes).unwrap_or(self.horizon);
        if self.life_per_age_percent == 0 {
            return life;
        }
        let oldest = candidate.pod_rows().map(|pods| pods.oldest_seconds()).max().unwrap_or(0).clamp(0, i64::from(u32::MAX));
        life.min(oldest * self.life_per_age_percent / 100)
    }

    /// What the move costs, in micro-dollars: its restarts, and the time in which old and new nodes are both paid.
    fn price(&self, candidate: Move<'_>) -> i128 {
        let restarts = candidate.pod_rows().map(|pods| i128::from(pods.restart_cost().max(0)) * i128::from(self.costs.of(pods)) / 1000);
        if candidate.replacements() == 0 {
            return restarts.sum();
        }
        let nodes: i128 = candidate.node_rows().map(|node| i128::from(node.cost_micros())).sum();
        let bought = (nodes - i128::from(candidate.savings_cost_micros())).max(0);
        let seconds = i128::from(self.overlap) + i128::from(candidate.drain_seconds().max(0));
        restarts.sum::<i128>() + bought * seconds / HOUR
    }
}

whittle_sdk::export!(Payback);
