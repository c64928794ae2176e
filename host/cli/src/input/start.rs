//! Which files are the world before the story begins, and when that is.

use std::collections::{BTreeMap, BTreeSet};

use whittle_cluster::{Located, Object};
use whittle_model::{Duration, Timestamp};
use whittle_sim::{ScenarioObject, Story};

use super::files::Files;
use super::objects::is_running;
use crate::failure::Failure;
use crate::out::count;

/// What is done with each file.
#[derive(Debug, Default)]
pub struct Plan {
    /// Files of a running cluster that no line of the story applies: the world before it begins.
    pub before: Vec<String>,
    /// Files to apply when there is no story.
    apply: Vec<String>,
    /// Files that the story does not use, as faults name them.
    pub unused: BTreeSet<String>,
    nodes: usize,
    pods: usize,
}

impl Plan {
    /// `applied` are the files that the story applies; `None` when there is no story.
    #[must_use]
    pub fn of(objects: &[Located<Object>], files: &Files, applied: Option<&[String]>) -> Self {
        let mut by_file: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
        for located in objects {
            by_file.entry(&located.file).or_default().push(&located.object);
        }
        let mut plan = Self::default();
        for file in &files.manifests {
            let objects = by_file.get(file.shown.as_str()).map(Vec::as_slice).unwrap_or_default();
            if applied.is_some_and(|names| names.contains(&file.name)) {
                continue;
            }
            if objects.iter().any(|object| is_running(object)) {
                plan.before.push(file.name.clone());
                plan.nodes += objects.iter().filter(|object| matches!(object, Object::Node(_))).count();
                plan.pods += objects.iter().filter(|object| matches!(object, Object::Pod(_))).count();
            } else if applied.is_some() {
                plan.unused.insert(file.shown.clone());
            } else {
                plan.apply.push(file.name.clone());
            }
        }
        plan
    }

    /// The story of a directory without one.
    ///
    /// # Errors
    /// Never in practice: the words are fixed.
    pub fn story(&self) -> Result<Story, Failure> {
        if self.apply.is_empty() {
            return Story::parse("until settled").map_err(|error| Failure::Usage(error.to_string()));
        }
        Ok(Story::apply_all(&self.apply))
    }
}

/// What stands at the beginning, for people.
#[must_use]
pub fn remark(plan: &Plan) -> Option<String> {
    let (nodes, pods) = (count(plan.nodes, "node"), count(plan.pods, "pod"));
    (!plan.before.is_empty()).then(|| format!("begins with the cluster of {}: {nodes}, {pods}", plan.before.join(", ")))
}

/// Moves the times of a cluster that was read so that the latest of them is when the story begins.
pub fn rebase(objects: &mut [ScenarioObject]) {
    let mut latest = Timestamp(0);
    each_time(objects, &mut |time| latest = latest.max(*time));
    let back = Duration(latest.0.saturating_neg());
    // What has no time is as old as the story.
    each_time(objects, &mut |time| *time = if time.0 > 0 { time.plus(back) } else { *time });
}

fn each_time(objects: &mut [ScenarioObject], f: &mut dyn FnMut(&mut Timestamp)) {
    for object in objects {
        match object {
            ScenarioObject::Pod(pod) => f(&mut pod.created),
            ScenarioObject::Node(node) => f(&mut node.created),
            ScenarioObject::Claim(claim) => {
                f(&mut claim.created);
                let status = &mut claim.status;
                [&mut status.launched, &mut status.registered, &mut status.initialized, &mut status.last_pod_event]
                    .into_iter()
                    .flatten()
                    .for_each(&mut *f);
            }
            ScenarioObject::NodePool(_)
            | ScenarioObject::NodeClass(..)
            | ScenarioObject::Workload(_)
            | ScenarioObject::DaemonSet(_)
            | ScenarioObject::StorageClass(_)
            | ScenarioObject::Volume(_)
            | ScenarioObject::VolumeClaim(_)
            | ScenarioObject::VolumeLimits(_)
            | ScenarioObject::VolumeAttachment(_)
            | ScenarioObject::LimitRange(_)
            | ScenarioObject::NodeOverlay(_)
            | ScenarioObject::CapacityBuffer(_)
            | ScenarioObject::PodTemplate(_)
            | ScenarioObject::Budget(_)
            | ScenarioObject::Namespace(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use whittle_model::{Node, Pod};

    use super::*;

    #[test]
    fn the_latest_time_becomes_the_beginning() {
        let node = |created| ScenarioObject::Node(Box::new(Node { created: Timestamp(created), ..Node::default() }));
        let pod = |created| ScenarioObject::Pod(Box::new(Pod { created: Timestamp(created), ..Pod::default() }));
        let mut objects = vec![node(5_000), pod(9_000), pod(0)];
        rebase(&mut objects);
        assert_eq!(objects, [node(-4_000), pod(0), pod(0)]);
    }
}
