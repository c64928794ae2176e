//! The configuration. What must not enter: rows and columns.

use std::collections::BTreeMap;

use whittle_sdk::Dollars;
use whittle_sdk::prelude::*;
use wildmatch::WildMatch;

/// What restarts cost, and how long a saving is believed to last.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Config {
    /// Dollars that the restart of an ordinary pod costs. Deletion cost and priority of a pod weigh it, as in Karpenter.
    #[serde(default = "cent")]
    pub restart_cost: Dollars,
    /// Restarts that cost more, or less; of those that match a pod the first counts. At most 64.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub workloads: Vec<Workload>,
    /// No saving is believed to last longer than so many hours.
    #[serde(default = "day")]
    #[schemars(range(min = 1, max = 8760))]
    pub horizon_hours: u32,
    /// A saving is believed to last as long as the oldest of the pods has run, times this percentage; 0 does not look at
    /// the age of pods.
    #[serde(default = "all")]
    #[schemars(range(min = 0, max = 10_000))]
    pub life_per_age_percent: u32,
    /// While replacements start both are paid: for so many seconds, and as long as the nodes take to drain.
    #[serde(default = "two_minutes")]
    #[schemars(range(min = 0, max = 86_400))]
    pub overlap_seconds: u32,
}

/// What a restart of some pods costs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", crate = "whittle_sdk::serde")]
#[schemars(crate = "whittle_sdk::schemars")]
pub struct Workload {
    /// Namespaces; `*` and `?` stand for any characters and any character. All when empty.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Labels of the pod with the value each must have; `*` and `?` as above.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Dollars that a restart of one of them costs.
    pub restart_cost: Dollars,
}

fn cent() -> Dollars {
    Dollars::of_units(10_000)
}

const fn day() -> u32 {
    24
}

const fn all() -> u32 {
    100
}

const fn two_minutes() -> u32 {
    120
}

/// What a restart costs, by who the pod is.
#[derive(Debug)]
pub(crate) struct Costs {
    /// Of a pod that nothing is said about, in micro-dollars.
    ordinary: i64,
    said: Vec<Said>,
}

#[derive(Debug)]
struct Said {
    namespaces: Vec<WildMatch>,
    labels: Vec<(String, WildMatch)>,
    micros: i64,
}

impl Costs {
    /// Reads what restarts cost and asks for what is looked at.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(crate) fn new(config: &Config, setup: &mut Setup) -> Result<Self, String> {
        let mut said = Vec::new();
        for (number, workload) in config.workloads.iter().enumerate() {
            let place = format!("workloads[{number}]");
            if workload.namespaces.is_empty() && workload.labels.is_empty() {
                return Err(format!("{place} names no pods: give it namespaces or labels"));
            }
            if workload.namespaces.iter().any(String::is_empty) {
                return Err(format!("{place}: a namespace is empty"));
            }
            setup.move_pods([MovePodColumn::Asker]).askers([AskerColumn::Namespace]);
            setup.askers(workload.labels.keys().map(|key| AskerColumn::Label(key.clone())));
            said.push(Said {
                namespaces: workload.namespaces.iter().map(|pattern| WildMatch::new(pattern)).collect(),
                labels: workload.labels.iter().map(|(key, pattern)| (key.clone(), WildMatch::new(pattern))).collect(),
                micros: micros(workload.restart_cost, &place)?,
            });
        }
        Ok(Self { ordinary: micros(config.restart_cost, "restartCost")?, said })
    }

    /// What one restart of an ordinary pod of these costs, in micro-dollars.
    pub(crate) fn of(&self, pods: MovePod<'_>) -> i64 {
        if self.said.is_empty() {
            return self.ordinary;
        }
        let asker = pods.asker();
        let fits = |said: &&Said| {
            let namespace = said.namespaces.is_empty() || said.namespaces.iter().any(|pattern| pattern.matches(asker.namespace()));
            namespace && said.labels.iter().all(|(key, pattern)| pattern.matches(asker.label(key)))
        };
        self.said.iter().find(fits).map_or(self.ordinary, |said| said.micros)
    }
}

fn micros(cost: Dollars, place: &str) -> Result<i64, String> {
    if cost.units() < 0 { Err(format!("{place}: a restart does not cost less than nothing")) } else { Ok(cost.units()) }
}
