//! Whether the world agrees with itself: every pod is somewhere, and everybody says the same of
//! where. A difference is a bug of the simulation.

use whittle_model::Pod;

use super::Reality;
use crate::scenario::{ScenarioObject, WorkloadKind};

impl Reality {
    /// The first pod that is lost or stands in two books differently, if any.
    pub(crate) fn lost(&self) -> Option<String> {
        self.api.pods.values().find_map(|pod| self.misplaced(pod)).or_else(|| self.too_few())
    }

    fn misplaced(&self, pod: &Pod) -> Option<String> {
        let key = &pod.key;
        if pod.terminal() {
            return None;
        }
        match &pod.node {
            None if pod.deleting || self.waiting.contains_key(key) => None,
            None => Some(format!("pod {key} has no node and waits for none")),
            Some(node) if !self.api.nodes.contains_key(node) => Some(format!("pod {key} is on node {node}, which does not exist")),
            Some(node) if self.scheduler.node_of(key) != Some(node) => {
                Some(format!("kube-scheduler does not know pod {key} on node {node}"))
            }
            Some(node) if !self.on_node.get(node).is_some_and(|pods| pods.contains(key)) => {
                Some(format!("node {node} does not know pod {key}"))
            }
            Some(_) => None,
        }
    }

    fn too_few(&self) -> Option<String> {
        let counted = self.workloads.iter().filter(|((kind, _), managed)| *kind != WorkloadKind::StatefulSet && !managed.sated());
        counted
            .map(|((kind, key), managed)| (kind, key, managed.wanted() as usize, managed.members().filter(|pod| self.active(pod)).count()))
            .find(|(_, _, wanted, there)| wanted != there)
            .map(|(kind, key, wanted, there)| format!("{} {key} wants {wanted} pods and has {there}", kind.name()))
    }

    /// Why objects cannot be applied: a pod that exists does not change.
    pub(super) fn refused(&self, objects: &[ScenarioObject]) -> Option<String> {
        objects.iter().find_map(|object| match object {
            ScenarioObject::Pod(pod) => {
                let old = self.api.pods.get(&pod.key).filter(|old| !old.deleting)?;
                let same = old.requests == pod.requests
                    && old.affinity == pod.affinity
                    && old.tolerations == pod.tolerations
                    && old.spread == pod.spread
                    && old.pod_affinity == pod.pod_affinity
                    && old.anti_affinity == pod.anti_affinity
                    && old.preferences == pod.preferences
                    && old.host_ports == pod.host_ports
                    && old.volumes == pod.volumes
                    && old.priority == pod.priority;
                (!same).then(|| format!("the specification of pod {} does not change; delete the pod first", pod.key))
            }
            ScenarioObject::NodePool(_)
            | ScenarioObject::NodeClass(..)
            | ScenarioObject::Workload(_)
            | ScenarioObject::DaemonSet(_)
            | ScenarioObject::Node(_)
            | ScenarioObject::Claim(_)
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
            | ScenarioObject::Namespace(..) => None,
        })
    }
}
