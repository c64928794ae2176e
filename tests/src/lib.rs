//! What holds the house together: the rules of the house as functions over its files, and the
//! harness that tells stories to the command line and compares the answers.
//!
//! What must not enter: anything the product needs. Rules read files and name breaches; they know
//! no crate of the house but by its manifest.

pub mod rules;
pub mod rust;
pub mod stories;
pub mod tree;

pub use tree::{Breach, File};
