//! Launches, ends and messages against an EC2 and SQS of our own on the local machine, which has token buckets, loses
//! answers, is late to show instances, and honours client tokens.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ec2;
mod ends;
mod launch;
mod lost;
mod orders;
mod queue;
mod random;
mod reservations;
mod server;
mod templates;
