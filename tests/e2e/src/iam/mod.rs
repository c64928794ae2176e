//! Whether the shipped IAM policies allow what the controller was seen to do, and whether it needs all of them. What must
//! not enter: AWS; calls come as the server recorded them.

mod calls;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use calls::requests_of;
use policy::{Policy, Statement};

/// What the policies speak of by name.
const PARAMETERS: [(&str, &str); 6] = [
    ("AWS::Partition", "aws"),
    ("AWS::Region", "us-east-1"),
    ("AWS::AccountId", calls::ACCOUNT),
    ("ClusterName", crate::bed::CLUSTER),
    ("QueueName", crate::bed::CLUSTER),
    ("NodeRole", "KarpenterNodeRole-demo"),
];

/// The policies of the controller's role; the one for Observe is part of them.
const POLICIES: [&str; 5] = ["eks-integration", "iam-integration", "interruption", "node-lifecycle", "resource-discovery"];

/// The judge of a run.
#[derive(Debug)]
pub(crate) struct Judge {
    policy: Policy,
    used: BTreeSet<String>,
    judged: usize,
}

impl Judge {
    /// Reads the policies of `examples/aws/policies`.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let parameters: BTreeMap<&str, &str> = PARAMETERS.into_iter().collect();
        let mut policy = Policy::default();
        for name in POLICIES {
            let file = dir.join(format!("{name}.json"));
            let written = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            policy.add(&written, &parameters).with_context(|| format!("cannot understand {}", file.display()))?;
        }
        Ok(Self { policy, used: BTreeSet::new(), judged: 0 })
    }

    /// Judges calls.
    ///
    /// # Errors
    /// When the policies deny one of them; all that are denied are named.
    pub(crate) fn judge(&mut self, calls: &[Value]) -> Result<()> {
        let mut denied = BTreeSet::new();
        for call in calls {
            for request in requests_of(call)? {
                self.judged += 1;
                match self.policy.allowing(&request) {
                    Some(Statement { sid, .. }) => drop(self.used.insert(sid.clone())),
                    None => drop(denied.insert(request.to_string())),
                }
            }
        }
        let list: Vec<String> = denied.into_iter().collect();
        ensure!(list.is_empty(), "the shipped IAM policies deny: {}", list.join("; "));
        Ok(())
    }

    /// How many questions IAM was asked.
    pub(crate) const fn judged(&self) -> usize {
        self.judged
    }

    /// Statements that nothing so far needed.
    pub(crate) fn unused(&self) -> Vec<&str> {
        self.policy.statements().map(|s| s.sid.as_str()).filter(|sid| !self.used.contains(*sid)).collect()
    }
}
