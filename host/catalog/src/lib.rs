//! The EC2 facts compiled in, and what an EC2NodeClass makes of them: labels, capacity, overhead
//! and offerings of every instance type.
//!
//! What must not enter: files, the network, clocks, randomness, and any decision about which type
//! to buy.

mod assemble;
mod capacity;
mod compatible;
mod error;
mod facts;
mod facts_columns;
mod labels;
mod node_class;
mod options;
mod overhead;
mod prices;
mod sources;
pub mod spot;
mod synthetic;
mod table;
mod zones;

pub use assemble::{build, instance_type};
pub use capacity::{capacity, eni_limited_pods};
pub use compatible::incompatible;
pub use error::CatalogError;
pub use facts::{Architecture, EbsOptimized, Facts, InstanceFacts, PlacementStrategies, UsageClasses};
pub use labels::{Absences, labels};
pub use node_class::options_of;
pub use options::{AmiFamily, CatalogOptions, Image, InstanceStorePolicy, Kubelet, Nic, Placement};
pub use overhead::{Overhead, kube_reserved_cpu};
pub use prices::Prices;
pub use sources::Sources;
pub use spot::{Spot, SpotModel};
pub use synthetic::synthetic;
pub use zones::{Offered, REGIONS, assumed_zone_id, zones_of};
