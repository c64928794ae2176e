//! What the controller is told at its start: flags and environment variables, Karpenter's names and defaults first,
//! our own after them. What must not enter: what is made of a setting.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::{ArgAction, Parser, ValueEnum};
use whittle_cluster::live::WatchOptions;
use whittle_cluster::scheduler_config;
use whittle_model::{Cluster, DisruptionSettings, Duration, Features, Nomination, Packing, TopologySpread};

/// Whether the controller acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Mode {
    /// It does what it plans.
    #[default]
    #[value(name = "Enforce")]
    Enforce,
    /// It plans and journals, and writes nothing anywhere.
    #[value(name = "Observe")]
    Observe,
}

/// A policy for preferences of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PreferencePolicy {
    /// Preferences are requirements until nothing fits.
    #[value(name = "Respect")]
    Respect,
    /// Preferences are not looked at.
    #[value(name = "Ignore")]
    Ignore,
}

/// A policy for `minValues` that cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MinValuesPolicy {
    /// The claim fails.
    #[value(name = "Strict")]
    Strict,
    /// As many values as there are.
    #[value(name = "BestEffort")]
    BestEffort,
}

/// How pods are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackingChoice {
    /// For cost, never dearer than greedily.
    #[value(name = "Cost")]
    Cost,
    /// As Karpenter packs.
    #[value(name = "Greedy")]
    Greedy,
}

/// Whether planned pods are nominated to their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NominationChoice {
    /// Where the server keeps nominations (Kubernetes 1.35 and later).
    #[value(name = "Auto")]
    Auto,
    /// Never.
    #[value(name = "Off")]
    Off,
}

/// Features that can be switched, as `Name=true,Other=false`; unknown ones are carried and do nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates(BTreeMap<String, bool>);

impl Gates {
    /// Whether a feature is on; `default` when nothing is said of it.
    pub fn on(&self, name: &str, default: bool) -> bool {
        self.0.get(name).copied().unwrap_or(default)
    }
}

impl FromStr for Gates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not Name=true or Name=false"))?;
            let value = value.trim().parse().map_err(|_| format!("{pair:?}: {value:?} is neither true nor false"))?;
            Ok((name.trim().to_owned(), value))
        });
        read.collect::<Result<_, String>>().map(Self)
    }
}

/// Spread constraints of pods that have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedulerConfig(Vec<TopologySpread>);

impl FromStr for SchedulerConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        scheduler_config(text).map(Self)
    }
}

/// A node autoscaler for Kubernetes on AWS.
#[derive(Debug, Clone, Parser)]
#[command(name = "whittle-controller", version, about, max_term_width = 120)]
pub struct Settings {
    /// Whether the controller acts or only plans.
    #[arg(long, env = "WHITTLE_MODE", default_value = "Enforce", ignore_case = true)]
    pub mode: Mode,
    /// Name of the service of an old webhook; kept for charts that set it.
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "")]
    pub karpenter_service: String,
    /// Port of /metrics.
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    pub metrics_port: u16,
    /// Port of /healthz and /readyz.
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    pub health_probe_port: u16,
    /// Requests to the API server a second.
    #[arg(long, env = "KUBE_CLIENT_QPS", default_value_t = 200)]
    pub kube_client_qps: u32,
    /// Requests to the API server at once.
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value_t = 300)]
    pub kube_client_burst: u32,
    /// Profiles on the metrics port; there are none of this program, use perf.
    #[arg(long, env = "ENABLE_PROFILING", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub enable_profiling: bool,
    /// Caches are always warm here; kept for charts that set it.
    #[arg(long, env = "DISABLE_CONTROLLER_WARMUP", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub disable_controller_warmup: bool,
    /// Act without the lease: only for one replica.
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub disable_leader_election: bool,
    /// Name of the lease.
    #[arg(long, env = "LEADER_ELECTION_NAME", default_value = "karpenter-leader-election")]
    pub leader_election_name: String,
    /// Namespace of the lease; the controller's own when empty.
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", default_value = "")]
    pub leader_election_namespace: String,
    /// Leave out the metrics of each pod and node; there are none yet.
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub disable_cluster_state_observability: bool,
    /// Bytes of memory the container has, for charts that set it; nothing is collected here.
    #[arg(long, env = "MEMORY_LIMIT", default_value_t = -1, allow_hyphen_values = true)]
    pub memory_limit: i64,
    /// Thousandths of a CPU the container asks for, for charts that set it; nothing is scaled by it here.
    #[arg(long, env = "CPU_REQUESTS", default_value_t = 1000)]
    pub cpu_requests: u32,
    /// error, warn, info, debug or trace; or directives such as `info,whittle_cloud=debug`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// stdout or stderr.
    #[arg(long, env = "LOG_OUTPUT_PATHS", default_value = "stdout")]
    pub log_output_paths: String,
    /// Kept for charts that set it; errors go where the log goes.
    #[arg(long, env = "LOG_ERROR_OUTPUT_PATHS", default_value = "stderr")]
    pub log_error_output_paths: String,
    /// A batch of pods closes at the latest after this long.
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = duration)]
    pub batch_max_duration: Duration,
    /// A batch of pods closes when no new one came for this long.
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_parser = duration)]
    pub batch_idle_duration: Duration,
    /// Whether preferences of pods count.
    #[arg(long, env = "PREFERENCE_POLICY", default_value = "Respect", ignore_case = true)]
    pub preference_policy: PreferencePolicy,
    /// What becomes of `minValues` that cannot be met.
    #[arg(long, env = "MIN_VALUES_POLICY", default_value = "Strict", ignore_case = true)]
    pub min_values_policy: MinValuesPolicy,
    /// Pods with resource claims are refused; `false` is not supported.
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub ignore_dra_requests: bool,
    /// What kube-scheduler of this cluster does besides, as YAML or JSON: `podTopologySpread.defaultConstraints`.
    #[arg(long, env = "SCHEDULER_CONFIG", default_value = "")]
    pub scheduler_config: SchedulerConfig,
    /// Features, as `Name=true,Other=false`.
    #[arg(long, env = "FEATURE_GATES", default_value = "")]
    pub feature_gates: Gates,
    /// Features of AWS, likewise.
    #[arg(long, env = "AWS_FEATURE_GATES", default_value = "")]
    pub aws_feature_gates: Gates,
    /// Name of the cluster.
    #[arg(long, env = "CLUSTER_NAME")]
    pub cluster_name: String,
    /// Address of the API server as nodes reach it; asked of EKS when empty.
    #[arg(long, env = "CLUSTER_ENDPOINT", default_value = "")]
    pub cluster_endpoint: String,
    /// Certificate authority of the API server, base64; the controller's own when empty.
    #[arg(long, env = "CLUSTER_CA_BUNDLE", default_value = "")]
    pub cluster_ca_bundle: String,
    /// Kept for charts that set it: EKS is always asked for the CIDR.
    #[arg(long, env = "EKS_CONTROL_PLANE", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub eks_control_plane: bool,
    /// Leave out services without an endpoint in the VPC.
    #[arg(long, env = "ISOLATED_VPC", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub isolated_vpc: bool,
    /// Share of memory that the hypervisor keeps.
    #[arg(long, env = "VM_MEMORY_OVERHEAD_PERCENT", default_value_t = 0.075)]
    pub vm_memory_overhead_percent: f64,
    /// Name of the queue of interruptions; none when empty.
    #[arg(long, env = "INTERRUPTION_QUEUE", default_value = "")]
    pub interruption_queue: String,
    /// Network interfaces kept from pods.
    #[arg(long, env = "RESERVED_ENIS", default_value_t = 0)]
    pub reserved_enis: u32,
    /// Leave out trial calls when an EC2NodeClass is validated.
    #[arg(long, env = "DISABLE_DRY_RUN", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub disable_dry_run: bool,
    /// Mind zonal shifts of the account; `true` is not supported.
    #[arg(long, env = "ENABLE_ZONAL_SHIFT", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub enable_zonal_shift: bool,
    /// How often machine images are looked up; a minute at least.
    #[arg(long, env = "AMI_REFRESH_INTERVAL", default_value = "1m", value_parser = duration)]
    pub ami_refresh_interval: Duration,
    /// How often subnets are looked up; a minute at least.
    #[arg(long, env = "SUBNET_REFRESH_INTERVAL", default_value = "1m", value_parser = duration)]
    pub subnet_refresh_interval: Duration,
    /// Namespace the controller runs in.
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = "kube-system")]
    pub system_namespace: String,
    /// Pack for cost, or as Karpenter does.
    #[arg(long, env = "PACKING", default_value = "Cost", ignore_case = true)]
    pub packing: PackingChoice,
    /// Nominate planned pods to their nodes.
    #[arg(long, env = "NOMINATION", default_value = "Auto", ignore_case = true)]
    pub nomination: NominationChoice,
    /// How many nodes of the whole cluster may be on their way out at once, beside the budgets of NodePools: a count or a
    /// percentage; no limit when empty.
    #[arg(long, env = "CLUSTER_DISRUPTION_BUDGET", default_value = "")]
    pub cluster_disruption_budget: String,
    /// How long few nodes move to save money after policies, overlays, list prices or these settings changed; `0s` is not
    /// at all.
    #[arg(long, env = "SLOW_START_DURATION", default_value = "1h", value_parser = duration)]
    pub slow_start_duration: Duration,
    /// How many nodes move within that time.
    #[arg(long, env = "SLOW_START_NODES", default_value_t = 5)]
    pub slow_start_nodes: usize,
    /// Policies that stand before every NodePool's chain, divided by commas.
    #[arg(long, env = "REQUIRED_POLICIES", default_value = "")]
    pub required_policies: String,
    /// Folder of the journal; none when empty.
    #[arg(long, env = "WHITTLE_JOURNAL_DIR", default_value = "")]
    pub journal_dir: String,
    /// Bytes of all segments of the journal together.
    #[arg(long, env = "WHITTLE_JOURNAL_BYTES", default_value_t = 256 << 20)]
    pub journal_bytes: u64,
    /// Folder for compiled policies; they are compiled at each start when empty.
    #[arg(long, env = "WHITTLE_CACHE_DIR", default_value = "")]
    pub cache_dir: String,
}

/// A Go duration, such as `1m30s` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write something like 10s, 500ms or 1m30s");
    let (mut total, mut rest) = (0.0f64, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = &rest[digits..];
        let (milliseconds, length) = match unit {
            _ if unit.starts_with("ms") => (1.0, 2),
            _ if unit.starts_with('s') => (1e3, 1),
            _ if unit.starts_with('m') => (60e3, 1),
            _ if unit.starts_with('h') => (3600e3, 1),
            _ => return Err(wrong()),
        };
        total += number * milliseconds;
        rest = &unit[length..];
    }
    // A day at most: far within what an integer holds.
    if text.is_empty() || total > 86_400e3 { Err(wrong()) } else { Ok(Duration(total as i64)) }
}

impl Settings {
    /// What of the settings contradicts itself or is not supported.
    ///
    /// # Errors
    /// One sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        if self.cluster_name.is_empty() {
            return Err("CLUSTER_NAME is empty; set it to the name of the cluster".to_owned());
        }
        if !self.ignore_dra_requests {
            return Err("IGNORE_DRA_REQUESTS=false is not supported: pods with resource claims are left alone; leave it true".to_owned());
        }
        if self.enable_zonal_shift {
            return Err("ENABLE_ZONAL_SHIFT=true is not supported yet; leave it false".to_owned());
        }
        if self.ami_refresh_interval.min(self.subnet_refresh_interval) < Duration::minutes(1) {
            return Err("AMI_REFRESH_INTERVAL and SUBNET_REFRESH_INTERVAL are a minute at least; make them longer".to_owned());
        }
        if self.batch_idle_duration > self.batch_max_duration {
            let (idle, most) = (self.batch_idle_duration, self.batch_max_duration);
            return Err(format!("BATCH_IDLE_DURATION {idle} is longer than BATCH_MAX_DURATION {most}; make it shorter"));
        }
        if !(0.0..1.0).contains(&self.vm_memory_overhead_percent) {
            return Err("VM_MEMORY_OVERHEAD_PERCENT is a share from 0 to below 1, such as 0.075".to_owned());
        }
        let budget = &self.cluster_disruption_budget;
        let count = |text: &str| text.parse::<u32>().ok();
        let read =
            budget.is_empty() || budget.strip_suffix('%').map_or_else(|| count(budget), |part| count(part).filter(|n| *n <= 100)).is_some();
        if !read {
            return Err(format!("CLUSTER_DISRUPTION_BUDGET {budget:?} is neither a count nor a percentage; write it like 10 or 5%"));
        }
        Ok(())
    }

    /// Settings that ask for something and change nothing yet, by the names of their variables.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let set = |asked: bool, name: &'static str| asked.then_some(name);
        [
            set(self.enable_profiling, "ENABLE_PROFILING"),
            set(self.aws_feature_gates.on("NodeClassCEL", false), "AWS_FEATURE_GATES NodeClassCEL"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// What of the cluster is watched.
    pub fn watches(&self) -> WatchOptions {
        let capacity_buffers = self.features().capacity_buffer;
        WatchOptions { capacity_buffers, ..WatchOptions::new(&self.system_namespace) }
    }

    fn features(&self) -> Features {
        let mut features = Features::default();
        for name in Features::NAMES {
            if let Some(gate) = features.gate(name) {
                *gate = self.feature_gates.on(name, *gate);
            }
        }
        features
    }

    /// Millionths of memory that the hypervisor keeps.
    pub fn vm_memory_overhead_ppm(&self) -> u32 {
        (self.vm_memory_overhead_percent * 1e6).round() as u32
    }

    /// Namespace of the lease.
    pub fn lease_namespace(&self) -> &str {
        if self.leader_election_namespace.is_empty() { &self.system_namespace } else { &self.leader_election_namespace }
    }

    /// What the engine reads of them.
    pub fn for_engine(&self, kubernetes_minor: u32, account: &str) -> whittle_model::Settings {
        whittle_model::Settings {
            batch_idle: self.batch_idle_duration,
            batch_max: self.batch_max_duration,
            packing: match self.packing {
                PackingChoice::Cost => Packing::Cost,
                PackingChoice::Greedy => Packing::Greedy,
            },
            nomination: match self.nomination {
                NominationChoice::Auto => Nomination::Auto,
                NominationChoice::Off => Nomination::Off,
            },
            kubernetes_minor,
            observe: self.mode == Mode::Observe,
            cluster: Cluster { name: self.cluster_name.clone(), account: account.to_owned(), signals: BTreeMap::new() },
            respect_preferences: self.preference_policy == PreferencePolicy::Respect,
            relax_min_values: self.min_values_policy == MinValuesPolicy::BestEffort,
            default_spread: self.scheduler_config.0.clone(),
            features: self.features(),
            disruption: DisruptionSettings {
                cluster_budget: Some(self.cluster_disruption_budget.clone()).filter(|budget| !budget.is_empty()),
                soak: self.slow_start_duration,
                soak_nodes: self.slow_start_nodes,
                ..DisruptionSettings::default()
            },
            ..whittle_model::Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Settings, String> {
        let all = ["whittle-controller", "--cluster-name", "demo"].iter().chain(args);
        Settings::try_parse_from(all).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_the_published_ones() {
        let settings = parse(&[]).expect("nothing else is required");
        assert_eq!(settings.check(), Ok(()));
        assert_eq!((settings.metrics_port, settings.health_probe_port), (8080, 8081));
        assert_eq!((settings.batch_idle_duration, settings.batch_max_duration), (Duration::seconds(1), Duration::seconds(10)));
        assert_eq!(settings.vm_memory_overhead_ppm(), 75_000);
        assert_eq!(settings.lease_namespace(), "kube-system");
        assert_eq!(settings.mode, Mode::Enforce);
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, milliseconds) in [("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("1.5s", 1500), ("2h", 7_200_000), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration(milliseconds)), "{text}");
        }
        for text in ["", "10", "s", "10d", "-1s", "1s2", "9999h", "ten"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_supported_is_refused_in_words() {
        for (args, word) in [
            (vec!["--ignore-dra-requests=false"], "IGNORE_DRA_REQUESTS"),
            (vec!["--batch-idle-duration=20s"], "BATCH_IDLE_DURATION"),
            (vec!["--enable-zonal-shift"], "ENABLE_ZONAL_SHIFT"),
            (vec!["--ami-refresh-interval=30s"], "AMI_REFRESH_INTERVAL"),
            (vec!["--vm-memory-overhead-percent=1.5"], "VM_MEMORY_OVERHEAD_PERCENT"),
            (vec!["--cluster-name="], "CLUSTER_NAME"),
            (vec!["--cluster-disruption-budget=101%"], "CLUSTER_DISRUPTION_BUDGET"),
            (vec!["--cluster-disruption-budget=few"], "CLUSTER_DISRUPTION_BUDGET"),
        ] {
            let wrong = match args[0] {
                "--cluster-name=" => Settings::try_parse_from(["whittle-controller", "--cluster-name="]).map_err(|e| e.to_string()),
                _ => parse(&args),
            };
            let why = wrong.expect("it can be read").check().expect_err("it is refused");
            assert!(why.contains(word), "{why}");
        }
        assert!(parse(&["--feature-gates=NodeRepair"]).is_err_and(|e| e.contains("NodeRepair")));
    }

    #[test]
    fn what_changes_nothing_yet_is_named() {
        assert_eq!(parse(&[]).expect("it can be read").without_effect(), Vec::<&str>::new());
        let asked = parse(&["--enable-profiling=true", "--feature-gates=CapacityBuffer=true,ReservedCapacity=true"]);
        assert_eq!(asked.expect("it can be read").without_effect(), ["ENABLE_PROFILING"]);
    }

    #[test]
    fn the_engine_is_told_what_plans_depend_on() {
        let engine = |args: &[&str]| parse(args).expect("it can be read").for_engine(36, "");
        let plain = engine(&[]);
        let default = whittle_model::Settings::default();
        assert_eq!((plain.respect_preferences, plain.relax_min_values), (default.respect_preferences, default.relax_min_values));
        assert_eq!((plain.default_spread, plain.features), (Vec::new(), Features::default()));
        let gates = "--feature-gates=ReservedCapacity=false,SpotToSpotConsolidation=true,NodeOverlay=true,StaticCapacity=true,NodeRepair=true,CapacityBuffer=true";
        let spread = "podTopologySpread: {defaultConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}";
        let all = engine(&["--preference-policy=Ignore", "--min-values-policy=BestEffort", gates, "--scheduler-config", spread]);
        let features = Features {
            reserved_capacity: false,
            spot_to_spot: true,
            node_overlay: true,
            static_capacity: true,
            node_repair: true,
            capacity_buffer: true,
        };
        assert_eq!((all.respect_preferences, all.relax_min_values, all.features), (false, true, features));
        assert_eq!(all.default_spread.iter().map(|s| (s.max_skew, s.required)).collect::<Vec<_>>(), [(3, false)]);
        assert!(parse(&["--scheduler-config", "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}"]).is_err());
        assert_eq!(plain.disruption, default.disruption);
        let slow = engine(&["--cluster-disruption-budget=5%", "--slow-start-duration=30m", "--slow-start-nodes=2"]).disruption;
        assert_eq!((slow.cluster_budget.as_deref(), slow.soak, slow.soak_nodes), (Some("5%"), Duration::minutes(30), 2));
    }

    #[test]
    fn capacity_buffers_are_watched_behind_their_gate() {
        let watched = |args: &[&str]| parse(args).expect("it can be read").watches();
        assert!(!watched(&[]).capacity_buffers && !watched(&["--feature-gates=CapacityBuffer=false"]).capacity_buffers);
        let on = watched(&["--feature-gates=CapacityBuffer=true", "--system-namespace=ops"]);
        assert!(on.capacity_buffers && on.namespace == "ops");
    }

    #[test]
    fn gates_have_their_own_defaults() {
        let settings = parse(&["--feature-gates=NodeRepair=true, ReservedCapacity=false"]).expect("they can be read");
        let gates = settings.feature_gates;
        assert!(gates.on("NodeRepair", false) && !gates.on("ReservedCapacity", true) && gates.on("Other", true));
    }
}
