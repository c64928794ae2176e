//! Policy `utilization-floor`: nodes that are well used stay, and the emptiest go first if so asked. What must not enter:
//! money, but to tell equals apart.

mod config;

pub use config::{Config, Of, Order, Pool};

use whittle_sdk::prelude::*;
use wildmatch::WildMatch;

/// Scores of one thousandth of use: the savings of equals, at most a hundred dollars an hour, stay below it.
const STEP: i64 = 100_000_000;

/// The policy.
#[derive(Debug)]
pub struct UtilizationFloor {
    of: Of,
    order: Order,
    /// Floors by NodePool, tried in this order.
    pools: Vec<(Vec<WildMatch>, Floor)>,
    /// The floor of all others.
    other: Floor,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    permille: i64,
    reason: Reason,
}

impl Floor {
    fn new(percent: u8, setup: &mut Setup) -> Self {
        let text = format!("a node of it is used to {percent} % or more");
        Self { permille: i64::from(percent) * 10, reason: setup.reason(text) }
    }
}

impl Policy for UtilizationFloor {
    type Config = Config;
    const ABOUT: About =
        About { name: "utilization-floor", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        setup.kind("underutilized").moves([]);
        if config.of != Of::Memory {
            setup.move_nodes([MoveNodeColumn::CpuUsedPermille]);
        }
        if config.of != Of::Cpu {
            setup.move_nodes([MoveNodeColumn::MemoryUsedPermille]);
        }
        let mut pools = Vec::new();
        for (number, pool) in config.node_pools.iter().enumerate() {
            if pool.names.is_empty() || pool.names.iter().any(String::is_empty) {
                return Err(format!("nodePools[{number}]: a name is empty"));
            }
            setup.move_nodes([MoveNodeColumn::NodePool]);
            pools.push((pool.names.iter().map(|name| WildMatch::new(name)).collect(), Floor::new(pool.floor_percent, setup)));
        }
        Ok(Self { of: config.of, order: config.order, pools, other: Floor::new(config.floor_percent, setup) })
    }

    fn score(&self, candidate: Move<'_>) -> Score {
        let mut fullest = 0;
        for node in candidate.node_rows() {
            let (used, floor) = (self.used(node), self.floor(node));
            if used >= floor.permille {
                return Score::veto(floor.reason);
            }
            fullest = fullest.max(used);
        }
        match self.order {
            Order::Savings => Score::unchanged(),
            Order::Emptiest => {
                let empty = 1000 - fullest.clamp(0, 1000);
                Score::of((empty * STEP) + candidate.score().clamp(0, STEP - 1))
            }
        }
    }
}

impl UtilizationFloor {
    fn used(&self, node: MoveNode<'_>) -> i64 {
        match self.of {
            Of::Larger => node.cpu_used_permille().max(node.memory_used_permille()),
            Of::Smaller => node.cpu_used_permille().min(node.memory_used_permille()),
            Of::Cpu => node.cpu_used_permille(),
            Of::Memory => node.memory_used_permille(),
        }
    }

    fn floor(&self, node: MoveNode<'_>) -> Floor {
        let fits = |(names, _): &&(Vec<WildMatch>, Floor)| names.iter().any(|name| name.matches(node.node_pool()));
        self.pools.iter().find(fits).map_or(self.other, |(_, floor)| *floor)
    }
}

whittle_sdk::export!(UtilizationFloor);
