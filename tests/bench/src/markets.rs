//! What can be bought in a bench: the 400 synthetic types of Karpenter's own benchmark, and real
//! on-demand types at real prices.

use std::sync::Arc;

use whittle_catalog::{CatalogError, CatalogOptions, Sources};
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{Labels, Limits, NodeClass, NodePool, Operator, Requirement, Requirements, Template, keys};

use crate::Input;

/// Name of the only pool, and of its node class.
pub const POOL: &str = "default";

/// Which real types a pool may buy: categories c, m and r, generation above 2, amd64, no bare metal,
/// on-demand in us-east-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Those with at most 32 vCPU.
    UpTo32,
    /// Of every size.
    All,
}

impl Set {
    /// Both sets.
    pub const ALL: [Self; 2] = [Self::UpTo32, Self::All];

    /// Its part of a bench's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UpTo32 => "le32",
            Self::All => "all",
        }
    }
}

/// The node class of the only pool.
#[must_use]
pub fn node_class() -> NodeClass {
    NodeClass { name: POOL.to_owned(), not_ready: None, ..NodeClass::default() }
}

/// The 400 types and the one pool of Karpenter's `BenchmarkScheduling`, without pods.
#[must_use]
pub fn synthetic() -> Input {
    let labels = Labels::from([("testing/cluster".to_owned(), "unspecified".to_owned())]);
    let mut pool = pool(Requirements::default());
    pool.template.labels = labels;
    pool.limits = Limits { amounts: vec![(CPU.to_owned(), 10_000_000_000), (MEMORY.to_owned(), 10_000_000 << 30)] };
    Input { catalogs: vec![Arc::new(whittle_catalog::synthetic(400))], pools: vec![pool], ..Input::default() }
}

/// Real types and one pool, without pods.
///
/// # Errors
/// When the compiled-in catalogue cannot be built.
pub fn real(set: Set) -> Result<Input, CatalogError> {
    let options = CatalogOptions { node_class: POOL.to_owned(), region: "us-east-1".to_owned(), ..CatalogOptions::default() };
    let catalog = whittle_catalog::build(&options, &Sources::builtin(0))?;
    Ok(Input { catalogs: vec![Arc::new(catalog)], pools: vec![pool(requirements(set))], ..Input::default() })
}

fn pool(requirements: Requirements) -> NodePool {
    let template = Template { requirements, node_class: POOL.to_owned(), ..Template::default() };
    NodePool { name: POOL.to_owned(), uid: POOL.to_owned(), template, ..NodePool::default() }
}

fn requirements(set: Set) -> Requirements {
    let aws = |label: &str| format!("{}{label}", keys::AWS_PREFIX);
    let bound = |label: &str, operator, value: &str| {
        Requirement::new(&aws(label), operator, &[value.to_owned()]).expect("a bound with one integer is a requirement")
    };
    let mut all = Requirements::from_iter([
        Requirement::any_of(keys::ARCH, &["amd64"]),
        Requirement::any_of(keys::OS, &["linux"]),
        Requirement::any_of(keys::CAPACITY_TYPE, &["on-demand"]),
        Requirement::any_of(&aws("instance-category"), &["c", "m", "r"]),
        bound("instance-generation", Operator::Gt, "2"),
        Requirement::exists(&aws("instance-hypervisor")), // bare metal has none
    ]);
    if set == Set::UpTo32 {
        all.add(bound("instance-cpu", Operator::Lt, "33"));
    }
    all
}
