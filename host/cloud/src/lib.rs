//! The door to AWS: EC2, SQS, SSM, IAM, EKS and the price list. AWS types stop here.
//!
//! What must not enter: Kubernetes clients, Wasm, the engine, decisions about what to buy.

pub mod aws;
pub mod class;
pub mod cluster;
pub mod error;
pub mod fleet;
pub mod image;
pub mod market;
pub mod queue;
mod throttle;

pub use aws::Aws;
pub use error::{CloudError, ErrorKind};
