//! What one can ask on the command line. No work is done here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use whittle_model::{Packing, Requirement};

use crate::gates::Gates;
use crate::policy::PolicyFlag;
use crate::types::filter::{Amounts, Span, parse_requirement};

/// A node autoscaler for Kubernetes on AWS that speaks Karpenter's API: try it on your manifests.
#[derive(Debug, Parser)]
#[command(name = "whittle", version, disable_help_subcommand = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print without colours, also on a terminal
    #[arg(long, global = true)]
    pub no_color: bool,
}

const EXAMPLES: &str = "\
Examples:
  whittle simulate examples/inflate                 what these manifests buy, and when
  kubectl get nodes,pods,nodepools,ec2nodeclasses -A -o yaml | whittle simulate -
  whittle explain examples/limits inflate-3         why is this pod pending
  whittle replay DIR                                does a journal come out the same
  whittle types --arch arm64 --cpu 2..8 --sort price --limit 10
  whittle types m7i.large                           every label, capacity and price of one type
  whittle convert old-provisioning.yaml             v1beta1 manifests as v1
  whittle policy new mine && whittle policy build mine && whittle simulate DIR --policy mine=mine/mine.wasm

Exit codes: 0 done; 1 an `until` or `expect` of the story, a case, or a journal did not come true; 2 bad input or usage;
3 done, but PARTIAL: fields that are not acted on yet were set aside by --allow-unsupported.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what happens to the manifests of a directory: nodes, prices, timeline, and why
    #[command(after_help = SIMULATE)]
    Simulate(Simulate),
    /// Say why a pod is where it is, or pending, or why a node was bought
    #[command(after_help = EXPLAIN)]
    Explain(Explain),
    /// Run a journal through the engine again and see whether the same actions come out
    #[command(after_help = REPLAY)]
    Replay(Replay),
    /// List EC2 instance types with what pods can use of them and what they cost
    #[command(after_help = TYPES)]
    Types(Box<Types>),
    /// Rewrite Karpenter v1beta1 manifests as v1
    Convert(Convert),
    /// Write the CustomResourceDefinitions of NodePool, NodeClaim, NodeOverlay, EC2NodeClass and ScoringPolicy
    #[command(after_help = CRDS)]
    Crds(Crds),
    /// Write, build, check and try scoring policies
    #[command(subcommand, after_help = POLICY)]
    Policy(Policy),
}

const SIMULATE: &str = "\
DIR holds the manifests one would `kubectl apply` (every *.yaml and *.yml file) and, if it likes, a
file `story` that says what happens, one verb a line:

  apply FILE...                            until CONDITION [within DURATION]
  delete KIND/[NAMESPACE/]NAME                 pods running | pods pending N | nodes N | settled
  scale KIND/NAME N                        wait DURATION
  set KIND/NAME PATH=VALUE                 sold-out CAPACITY-TYPE TYPE ZONE [for DURATION]
  interrupt NODE|oldest|CAPACITY-TYPE      price CAPACITY-TYPE TYPE ZONE DOLLARS
  boot never|DURATION                      crash
  expect TEXT                              # a comment

Without a story all files are applied and time runs until nothing more happens.

--compare karpenter plays the same story in the same world under a model of Karpenter 1.14: greedy
first fit, pods left to kube-scheduler, empty nodes first, then drift, then one consolidation
after the other (up to 100 nodes for one, else one for one), each looked at again after 15 s. Both
are taken on until nothing more happens, then to the same hour. The model differs from Karpenter
in this: limits are strict inside a batch, planning does not wait for launches under way, searches
have no time limit, ties have a fixed order, a rejected move rests for a minute, several drifted
nodes are exchanged in one look, policies are not asked. A line of the story that does not come
true there is noted, and the story goes on.

A ScoringPolicy (source builtin or file) of a file that is applied counts from the beginning;
NodePools name theirs in order in the annotation whittle.sh/policy: a,b? where ? lets the pool go
on without it.";

const EXPLAIN: &str = "\
Examples:
  whittle explain examples/inflate default/inflate-0
  whittle explain examples/inflate default-1
  whittle explain --journal DIR default-1 --not m7i.large";

const REPLAY: &str = "\
A journal is a folder of segments; each opens with a checkpoint, so that a replay may begin at any of them.
`whittle simulate DIR --journal OUT` writes one, and so does the controller.

Exit codes: 0 the same actions came out at every poll; 1 they did not; 2 the journal cannot be read (further).";

const TYPES: &str = "\
Examples:
  whittle types --category c,m,r --generation 3.. --cpu 2..8 --memory 4Gi..32Gi
  whittle types --gpu=l4 --region us-west-2 --capacity-type spot --sort price
  whittle types -r 'karpenter.k8s.aws/instance-local-nvme Gt 100' -r 'instance-hypervisor In nitro'
  whittle types --pods-fit cpu=500m,memory=1Gi --limit 5
  whittle types m7i.large";

const CRDS: &str = "\
Examples:
  whittle crds | kubectl apply --server-side -f -
  whittle crds crds";

const POLICY: &str = "\
Examples:
  whittle policy new mine                           a folder with a policy, its test, and the SDK
  whittle policy build mine                         leaves mine/mine.wasm
  whittle policy check mine/mine.wasm               what it is, wants, and whether it runs
  whittle policy run mine/mine.wasm cases.yaml      cases with the verdicts that are expected
  whittle policy list spot-share                    how a built-in one is configured
  whittle simulate DIR --policy mine=mine/mine.wasm what it changes

A file of cases is a list; tables are rows by the names of columns, what is not said is 0 or empty:

  - name: a burstable type is dearer
    config: {percent: 10}
    candidates: [{burstable: true, rank-micros: 500}, {rank-micros: 500}, {zone: us-east-1e}]
    prices: [550, unchanged, {veto: closed}]      # or {rank: N, cost: N}; of moves: scores
  - name: a share is at most 100
    config: {percent: 101}
    refused: maximum                              # part of what is said

Tables: round (one row), candidates, askers, mix, moves, move-nodes, move-pods, move-pools.";

/// Where types and prices come from.
#[derive(Debug, Clone, Args)]
pub struct Market {
    /// us-east-1, us-west-2 or eu-west-1
    #[arg(long, value_name = "REGION", default_value = "us-east-1")]
    pub region: String,
    /// Everything left to chance comes from this number: spot prices, ties, boot times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A price list instead of the built-in one (CSV: region,instance_type,micro_usd_per_hour[,zone])
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// A table of instance types instead of the built-in one (CSV with the same columns)
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
}

/// What is simulated, and how.
#[derive(Debug, Clone, Args)]
pub struct World {
    /// Directory of manifests; `-` reads one file of manifests from standard input
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Where types and prices come from.
    #[command(flatten)]
    pub market: Market,
    /// Version of the server; nomination, which keeps a plan, needs 1.35
    #[arg(long, value_name = "VERSION", default_value = "1.36", value_parser = minor_version)]
    pub kubernetes: u32,
    /// How pods are packed: cost searches for the cheapest plan, greedy does what Karpenter documents
    #[arg(long, value_enum, default_value_t = PackingChoice::Cost)]
    pub packing: PackingChoice,
    /// Whether planned pods are nominated to their node
    #[arg(long, value_enum, default_value_t = NominationChoice::Auto)]
    pub nomination: NominationChoice,
    /// What is switched on and off.
    #[command(flatten)]
    pub gates: Gates,
    /// A scoring policy: its component, and its configuration as JSON or YAML; may be repeated. When no
    /// NodePool names it in whittle.sh/policy, it stands at the end of every NodePool's chain
    #[arg(long, value_name = "NAME=FILE.wasm[:CONFIG]")]
    pub policy: Vec<PolicyFlag>,
    /// Go on past fields that are not acted on yet: the result is PARTIAL, exit code 3
    #[arg(long)]
    pub allow_unsupported: bool,
}

/// `--packing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PackingChoice {
    /// The cheapest plan found, never dearer than greedy.
    Cost,
    /// The documented greedy.
    Greedy,
}

impl From<PackingChoice> for Packing {
    fn from(choice: PackingChoice) -> Self {
        match choice {
            PackingChoice::Cost => Self::Cost,
            PackingChoice::Greedy => Self::Greedy,
        }
    }
}

/// `--compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Greedy packing, pods left to kube-scheduler, one move after the other.
    Karpenter,
}

/// `--nomination`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NominationChoice {
    /// Where the server keeps nominations.
    Auto,
    /// Never.
    Off,
}

impl From<NominationChoice> for whittle_model::Nomination {
    fn from(choice: NominationChoice) -> Self {
        match choice {
            NominationChoice::Auto => Self::Auto,
            NominationChoice::Off => Self::Off,
        }
    }
}

/// `whittle simulate`.
#[derive(Debug, Args)]
pub struct Simulate {
    /// What is simulated.
    #[command(flatten)]
    pub world: World,
    /// Print one JSON object a line, the last one a summary
    #[arg(long)]
    pub json: bool,
    /// Play the story a second time with a model of Karpenter, and lay the figures of both side by side
    #[arg(long, value_enum, value_name = "WHOM")]
    pub compare: Option<Peer>,
    /// Play the story with so many seeds, from --seed on, and print p10, p50 and p90 of each figure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// Write everything the engine is told and answers into this empty or new folder, for `whittle replay`
    #[arg(long, value_name = "OUT", conflicts_with_all = ["compare", "seeds"])]
    pub journal: Option<PathBuf>,
    /// A segment of the journal ends after so many bytes
    #[arg(long, value_name = "BYTES", requires = "journal", default_value_t = 16 << 20)]
    pub journal_segment: u64,
}

/// `whittle explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// What is simulated.
    #[command(flatten)]
    pub world: World,
    /// A pod ([NAMESPACE/]NAME), a node or a claim
    #[arg(value_name = "POD|NODE")]
    pub subject: String,
    /// DIR is a journal: nothing is simulated, it is replayed
    #[arg(long, conflicts_with_all = ["region", "seed", "prices", "catalog", "kubernetes", "packing", "nomination", "policy", "allow_unsupported", "feature_gates", "min_values_policy"])]
    pub journal: bool,
    /// Say also why a node or claim was not planned for this instance type
    #[arg(long, value_name = "TYPE")]
    pub not: Option<String>,
}

/// `whittle replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The journal's folder
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Begin at this segment; at the first there is unless told
    #[arg(long, value_name = "SEGMENT")]
    pub from: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `whittle types`.
#[derive(Debug, Args)]
pub struct Types {
    /// Show everything about this type
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Where types and prices come from.
    #[command(flatten)]
    pub market: Market,
    /// amd64 or arm64
    #[arg(long, value_delimiter = ',', value_parser = ["amd64", "arm64"])]
    pub arch: Vec<String>,
    /// Families, such as m7i,c7g
    #[arg(long, value_delimiter = ',')]
    pub family: Vec<String>,
    /// Categories, such as c,m,r
    #[arg(long, value_delimiter = ',')]
    pub category: Vec<String>,
    /// Generations: 7, 5..7 or 5..
    #[arg(long, value_name = "SPAN")]
    pub generation: Option<Span>,
    /// vCPUs: 4, 2..8 or 2..
    #[arg(long, value_name = "SPAN")]
    pub cpu: Option<Span>,
    /// Memory as listed by EC2: 8Gi or 4Gi..32Gi
    #[arg(long, value_name = "SPAN", value_parser = Span::of_memory)]
    pub memory: Option<Span>,
    /// With GPUs; --gpu=NAME with GPUs of this name, such as l4 or t4
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub gpu: Option<String>,
    /// Sold this way
    #[arg(long, value_parser = ["spot", "on-demand"])]
    pub capacity_type: Option<String>,
    /// Sold in one of these zones
    #[arg(long, value_delimiter = ',')]
    pub zone: Vec<String>,
    /// A requirement as in a NodePool: 'KEY In A,B', 'KEY Gt N', 'KEY Exists'; may be repeated
    #[arg(long, short = 'r', value_name = "REQUIREMENT", value_parser = parse_requirement)]
    pub requirement: Vec<Requirement>,
    /// How many pods that ask for this fit on an empty node, and what one then costs
    #[arg(long, value_name = "cpu=N,memory=N")]
    pub pods_fit: Option<Amounts>,
    /// What to sort by (with --pods-fit: the price of a pod, unless told)
    #[arg(long, value_enum)]
    pub sort: Option<Sort>,
    /// Show this many at most; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub limit: usize,
    /// Image family of the node class: what the system keeps differs
    #[arg(long, value_parser = ["AL2023", "AL2", "Bottlerocket", "Custom"], default_value = "AL2023")]
    pub ami_family: String,
    /// kubelet.maxPods of the node class
    #[arg(long, value_name = "N")]
    pub max_pods: Option<u32>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Cheapest first.
    Price,
    /// Fewest vCPUs first.
    Cpu,
    /// Least memory first.
    Memory,
    /// By name.
    Name,
}

/// `whittle convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// File of v1beta1 manifests; `-` reads standard input. The v1 YAML goes to standard output,
    /// what changed to standard error
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `whittle crds`.
#[derive(Debug, Args)]
pub struct Crds {
    /// Directory to write one file each into, made when absent; without it all go to standard output
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `whittle policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Make a folder with a policy to begin with
    New(NewPolicy),
    /// Compile a policy's folder to a component and print its path
    Build(BuildPolicy),
    /// Say what a component is and wants, and try it once
    Check(CheckPolicy),
    /// Run cases and tell which passed
    Run(RunPolicy),
    /// List the built-in policies, or tell everything about one
    List(ListPolicies),
}

/// `whittle policy new`.
#[derive(Debug, Args)]
pub struct NewPolicy {
    /// The folder to make; its last part is the policy's name
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
}

/// `whittle policy build`.
#[derive(Debug, Args)]
pub struct BuildPolicy {
    /// The policy's folder, with its Cargo.toml
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Where cargo keeps what it builds; DIR/target unless told
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
}

/// `whittle policy check`.
#[derive(Debug, Args)]
pub struct CheckPolicy {
    /// A component, or the name of a built-in policy
    #[arg(value_name = "FILE")]
    pub policy: String,
    /// A configuration to try it with, JSON or YAML; empty unless told
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `whittle policy run`.
#[derive(Debug, Args)]
pub struct RunPolicy {
    /// A component, or the name of a built-in policy
    #[arg(value_name = "FILE")]
    pub policy: String,
    /// The cases, YAML or JSON
    #[arg(value_name = "CASES")]
    pub cases: PathBuf,
}

/// `whittle policy list`.
#[derive(Debug, Args)]
pub struct ListPolicies {
    /// Tell everything about this one
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// The minor version of `1.36`, `v1.36` or `1.36.3`.
fn minor_version(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is no Kubernetes version; write it like 1.36");
    let (major, rest) = text.strip_prefix('v').unwrap_or(text).split_once('.').ok_or_else(wrong)?;
    let minor = rest.split_once('.').map_or(rest, |(minor, _)| minor);
    if major != "1" {
        return Err(wrong());
    }
    minor.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn versions_are_read() {
        for (text, minor) in [("1.34", Some(34)), ("v1.36", Some(36)), ("1.35.2", Some(35)), ("2.1", None), ("1", None), ("1.x", None)] {
            assert_eq!(minor_version(text).ok(), minor, "{text}");
        }
    }
}
