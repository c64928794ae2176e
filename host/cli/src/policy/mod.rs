//! `whittle policy`: writes, builds, checks and tries policies, and makes the chains that a simulation
//! asks.
//!
//! What must not enter: what a policy decides.

mod build;
mod cases;
mod check;
mod docs;
mod flag;
mod members;
mod scaffold;
mod source;
mod trial;

use std::io::Write;

use crate::args::Policy;
use crate::failure::{End, Failure};

pub use flag::PolicyFlag;
pub use members::{Policies, with_everywhere};
pub use source::Modules;

/// Does what was asked.
///
/// # Errors
/// When something given is not what it must be, or the answer cannot be written.
pub fn run(command: &Policy, out: &mut dyn Write, err: &mut dyn Write) -> Result<End, Failure> {
    match command {
        Policy::New(args) => scaffold::run(&args.folder, out),
        Policy::Build(args) => build::run(args, out, err),
        Policy::Check(args) => check::run(args, out),
        Policy::Run(args) => trial::run(args, out),
        Policy::List(args) => docs::run(args.name.as_deref(), out),
    }
}
