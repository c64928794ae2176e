//! A policy that uses all of the contract; the host is tested with it. What must not enter: rules that
//! somebody would want in a cluster.

use whittle_sdk::prelude::*;

/// What the policy is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// Percent added to the rank of burstable types.
    #[schemars(range(min = 0, max = 1000))]
    pub percent: i64,
    /// The largest burstable type allowed, in thousandths of a vCPU.
    pub most_milli: i64,
    /// Zones in which nothing is bought.
    #[serde(default)]
    pub closed_zones: Vec<String>,
    /// Percent of the list price that is really paid.
    #[serde(default = "all")]
    pub pay: i64,
}

const fn all() -> i64 {
    100
}

/// Burstable types cost more, some are refused, and young nodes stay.
#[derive(Debug)]
pub struct Steady {
    config: Config,
    too_big: Reason,
    closed: Reason,
    young: Reason,
}

impl Policy for Steady {
    type Config = Config;
    const ABOUT: About = About { name: "steady", version: env!("CARGO_PKG_VERSION"), documentation: "Burstable types cost more." };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        if config.closed_zones.iter().any(String::is_empty) {
            return Err("closedZones: a zone has a name".to_owned());
        }
        setup
            .round([RoundColumn::TimeSeconds])
            .candidates([CandidateColumn::Burstable, CandidateColumn::CpuMilli, CandidateColumn::Zone, CandidateColumn::ListMicros])
            .candidates([CandidateColumn::Asker, CandidateColumn::Mix, CandidateColumn::CapacityType])
            .askers([AskerColumn::Namespace, AskerColumn::Label("team".to_owned())])
            .mix([MixRowColumn::CapacityType, MixRowColumn::Nodes])
            .mix_key("node-pool")
            .moves([MoveColumn::SavingsCostMicros])
            .move_nodes([MoveNodeColumn::AgeSeconds])
            .answers_cost();
        let too_big = setup.reason(format!("burstable with {{cpu-milli}} mCPU, at most {} are allowed", config.most_milli));
        let closed = setup.reason("zone {zone} is closed");
        let young = setup.reason("a node is younger than an hour");
        Ok(Self { config, too_big, closed, young })
    }

    fn price(&self, candidate: Candidate<'_>) -> Price {
        if self.config.closed_zones.iter().any(|zone| zone == candidate.zone()) {
            return Price::veto(self.closed);
        }
        let nodes: i64 = candidate.mix_rows().filter(|row| row.capacity_type() == candidate.capacity_type()).map(|row| row.nodes()).sum();
        let paid = candidate.list_micros() * self.config.pay / 100;
        let rank = candidate.rank_micros() + nodes;
        if !candidate.burstable() || candidate.asker().label("team") == "ci" {
            Price::rank(rank).cost(paid)
        } else if candidate.cpu_milli() > self.config.most_milli {
            Price::veto(self.too_big)
        } else {
            Price::rank(rank * (100 + self.config.percent) / 100).cost(paid)
        }
    }

    fn score(&self, row: Move<'_>) -> Score {
        if row.node_rows().any(|node| node.age_seconds() < 3600) { Score::veto(self.young) } else { Score::of(row.savings_cost_micros()) }
    }
}

whittle_sdk::export!(Steady);
