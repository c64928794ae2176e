//! The kinds that are watched: where they are, whether a cluster may lack them, and what their objects become.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, policy::v1 as policy, storage::v1 as storage};
use kube::{Api, core::ApiResource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use whittle_model::{Event, ObjectKind, PodKey, ScalableKind};

use super::{
    Seen, buffers,
    raw::{Name, Raw},
    read::{faultless, typed},
};
use crate::{
    api,
    from::{self, Cx},
};

/// Whether a cluster may lack a kind, or keep it from us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing is planned without it.
    Required,
    /// Without it there are no objects of it.
    Optional,
}

/// Where objects are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In the whole cluster.
    Everywhere,
    /// In the controller's own namespace.
    Own,
}

/// What an object is told as: the live object, the event, or both.
pub(super) type Told = (Option<Seen>, Option<Event>);

/// A kind.
pub(super) struct Kind {
    pub name: &'static str,
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    pub need: Need,
    pub scope: Scope,
    /// Whether it is of use for capacity buffers alone.
    pub for_buffers: bool,
    /// An object as it is told.
    pub read: fn(&Value, &Name) -> Told,
    /// The end of an object as it is told.
    pub gone: fn(&Name) -> Told,
}

const fn kind(
    (name, group, version, plural): (&'static str, &'static str, &'static str, &'static str),
    read: fn(&Value, &Name) -> Told,
    gone: fn(&Name) -> Told,
) -> Kind {
    Kind { name, group, version, plural, need: Need::Required, scope: Scope::Everywhere, for_buffers: false, read, gone }
}

const fn for_buffers(of: Kind) -> Kind {
    Kind { need: Need::Optional, for_buffers: true, ..of }
}

const STORAGE: &str = "storage.k8s.io";

/// All kinds.
pub(super) static KINDS: [Kind; 22] = [
    kind(("Namespace", "", "v1", "namespaces"), namespace, |n| event(Event::NamespaceGone(n.name.clone()))),
    kind(("DaemonSet", "apps", "v1", "daemonsets"), daemon_set, |n| event(Event::DaemonSetGone(pod_key(n)))),
    kind(("EC2NodeClass", api::AWS_GROUP, "v1", "ec2nodeclasses"), node_class, |n| {
        (Some(Seen::NodeClassGone(n.name.clone())), Some(Event::NodeClassGone(n.name.clone())))
    }),
    kind(("NodePool", "karpenter.sh", "v1", "nodepools"), node_pool, |n| {
        (Some(Seen::NodePoolGone(n.name.clone())), Some(Event::NodePoolGone(n.name.clone())))
    }),
    kind(("NodeClaim", "karpenter.sh", "v1", "nodeclaims"), node_claim, |n| {
        (Some(Seen::NodeClaimGone(n.name.clone())), Some(Event::ClaimGone(n.name.clone())))
    }),
    kind(("Node", "", "v1", "nodes"), node, |n| event(Event::NodeGone(n.name.clone()))),
    kind(("Pod", "", "v1", "pods"), pod, |n| event(Event::PodGone(pod_key(n)))),
    kind(("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"), volume_claim, |n| event(Event::VolumeClaimGone(pod_key(n)))),
    kind(("PersistentVolume", "", "v1", "persistentvolumes"), volume, |n| event(Event::VolumeGone(n.name.clone()))),
    kind(("StorageClass", STORAGE, "v1", "storageclasses"), storage_class, |n| event(Event::StorageClassGone(n.name.clone()))),
    kind(("CSINode", STORAGE, "v1", "csinodes"), volume_limits, |n| event(Event::VolumeLimitsGone(n.name.clone()))),
    kind(("VolumeAttachment", STORAGE, "v1", "volumeattachments"), volume_attachment, |n| {
        event(Event::VolumeAttachmentGone(n.name.clone()))
    }),
    kind(("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets"), disruption_budget, |n| {
        event(Event::PodDisruptionBudgetGone(pod_key(n)))
    }),
    kind(("LimitRange", "", "v1", "limitranges"), limit_range, |n| event(Event::LimitRangeGone(pod_key(n)))),
    Kind {
        need: Need::Optional,
        ..kind(("ScoringPolicy", "whittle.sh", "v1alpha1", "scoringpolicies"), scoring_policy, |n| {
            (Some(Seen::ScoringPolicyGone(n.name.clone())), None)
        })
    },
    Kind {
        need: Need::Optional,
        ..kind(("NodeOverlay", "karpenter.sh", "v1alpha1", "nodeoverlays"), node_overlay, |n| {
            (Some(Seen::NodeOverlayGone(n.name.clone())), Some(Event::NodeOverlayGone(n.name.clone())))
        })
    },
    for_buffers(kind(("CapacityBuffer", "autoscaling.x-k8s.io", "v1beta1", "capacitybuffers"), buffers::buffer, |n| {
        (Some(Seen::CapacityBufferGone(pod_key(n))), None)
    })),
    for_buffers(kind(("PodTemplate", "", "v1", "podtemplates"), buffers::pod_template, buffers::pod_template_gone)),
    for_buffers(kind(("Deployment", "apps", "v1", "deployments"), buffers::deployment, |n| {
        buffers::scalable_gone(ScalableKind::Deployment, n)
    })),
    for_buffers(kind(("StatefulSet", "apps", "v1", "statefulsets"), buffers::stateful_set, |n| {
        buffers::scalable_gone(ScalableKind::StatefulSet, n)
    })),
    for_buffers(kind(("ReplicaSet", "apps", "v1", "replicasets"), buffers::replica_set, |n| {
        buffers::scalable_gone(ScalableKind::ReplicaSet, n)
    })),
    Kind {
        need: Need::Optional,
        scope: Scope::Own,
        ..kind(("ConfigMap", "", "v1", "configmaps"), config_map, |n| (Some(Seen::ConfigMapGone(n.name.clone())), None))
    },
];

impl Kind {
    /// Where its objects are, for a controller in `namespace`.
    pub fn api(&self, client: kube::Client, namespace: &str) -> Api<Raw> {
        let (group, version) = (self.group.to_owned(), self.version.to_owned());
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let resource = ApiResource { group, version, api_version, kind: self.name.to_owned(), plural: self.plural.to_owned() };
        match self.scope {
            Scope::Everywhere => Api::all_with(client, &resource),
            Scope::Own => Api::namespaced_with(client, namespace, &resource),
        }
    }
}

fn event(event: Event) -> Told {
    (None, Some(event))
}

fn pod_key(name: &Name) -> PodKey {
    PodKey::new(name.namespace.as_deref().unwrap_or("default"), &name.name)
}

/// The object as the model's noun, or why not, besides the object if it could be read at all.
pub(super) fn convert<T: DeserializeOwned, M>(value: &Value, conversion: impl FnOnce(&T, &mut Cx) -> M) -> (Option<T>, Result<M, String>) {
    match typed::<T>(value) {
        Err(why) => (None, Err(why)),
        Ok(object) => {
            let mut cx = Cx::new(true);
            let noun = conversion(&object, &mut cx);
            (Some(object), faultless(&cx).map(|()| noun))
        }
    }
}

/// An event, or the object set aside. `node` is where it says which node it is on.
fn or_aside(noun: Result<Event, String>, kind: ObjectKind, name: &Name, value: &Value, node: Option<&str>) -> Option<Event> {
    Some(noun.unwrap_or_else(|why| Event::SetAside {
        kind,
        name: name.to_string(),
        node: node.and_then(|at| value.pointer(at)).and_then(Value::as_str).filter(|n| !n.is_empty()).map(str::to_owned),
        why,
    }))
}

fn pod(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<core::Pod, _>(value, from::pod);
    (None, or_aside(noun.map(|pod| Event::Pod(Box::new(pod))), ObjectKind::Pod, name, value, Some("/spec/nodeName")))
}

fn node(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<core::Node, _>(value, from::node);
    (None, or_aside(noun.map(|node| Event::Node(Box::new(node))), ObjectKind::Node, name, value, None))
}

fn daemon_set(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<apps::DaemonSet, _>(value, from::daemon_set);
    (None, or_aside(noun.map(|set| Event::DaemonSet(Box::new(set))), ObjectKind::DaemonSet, name, value, None))
}

fn node_pool(value: &Value, name: &Name) -> Told {
    let (object, noun) = convert::<api::NodePool, _>(value, from::node_pool);
    let told = or_aside(noun.map(|pool| Event::NodePool(Box::new(pool))), ObjectKind::NodePool, name, value, None);
    (object.map(|object| Seen::NodePool(Box::new(object))), told)
}

fn node_claim(value: &Value, name: &Name) -> Told {
    let (object, noun) = convert::<api::NodeClaim, _>(value, from::node_claim);
    let told = or_aside(noun.map(|claim| Event::Claim(Box::new(claim))), ObjectKind::NodeClaim, name, value, Some("/status/nodeName"));
    (object.map(|object| Seen::NodeClaim(Box::new(object))), told)
}

fn node_class(value: &Value, name: &Name) -> Told {
    // Whoever launches gets the whole object, so what planning does not read of it is not lost.
    let (object, noun) = convert::<api::EC2NodeClass, _>(value, |object, cx| from::node_class(object, cx).class);
    let told = or_aside(noun.map(Event::NodeClass), ObjectKind::NodeClass, name, value, None);
    (object.map(|object| Seen::NodeClass(Box::new(object))), told)
}

fn volume_claim(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<core::PersistentVolumeClaim, _>(value, from::volume_claim);
    (None, or_aside(noun.map(|claim| Event::VolumeClaim(Box::new(claim))), ObjectKind::VolumeClaim, name, value, None))
}

fn volume(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<core::PersistentVolume, _>(value, from::volume);
    (None, or_aside(noun.map(|volume| Event::Volume(Box::new(volume))), ObjectKind::Volume, name, value, None))
}

fn storage_class(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<storage::StorageClass, _>(value, from::storage_class);
    (None, or_aside(noun.map(|class| Event::StorageClass(Box::new(class))), ObjectKind::StorageClass, name, value, None))
}

fn disruption_budget(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<policy::PodDisruptionBudget, _>(value, from::live_disruption_budget);
    let told = noun.map(|budget| Event::PodDisruptionBudget(Box::new(budget)));
    (None, or_aside(told, ObjectKind::PodDisruptionBudget, name, value, None))
}

fn node_overlay(value: &Value, name: &Name) -> Told {
    let (object, noun) = convert::<api::NodeOverlay, _>(value, from::node_overlay);
    let told = or_aside(noun.map(|overlay| Event::NodeOverlay(Box::new(overlay))), ObjectKind::NodeOverlay, name, value, None);
    (object.map(|object| Seen::NodeOverlay(Box::new(object))), told)
}

/// The object, or a line in the log: nothing can be set aside of this kind, and what is known of the object stays.
fn or_log<T: DeserializeOwned, M>(value: &Value, kind: &str, name: &Name, conversion: impl FnOnce(&T, &mut Cx) -> M) -> Option<M> {
    let (_, read) = convert(value, conversion);
    read.inspect_err(|why| tracing::warn!(kind, %name, why, "the object cannot be read; what was known of it stays")).ok()
}

fn namespace(value: &Value, name: &Name) -> Told {
    let labels = |object: &core::Namespace, _: &mut Cx| object.metadata.labels.clone().unwrap_or_default();
    (None, or_log(value, "Namespace", name, labels).map(|labels| Event::Namespace(name.name.clone(), labels)))
}

fn volume_limits(value: &Value, name: &Name) -> Told {
    (None, or_log(value, "CSINode", name, from::volume_limits).map(|limits| Event::VolumeLimits(Box::new(limits))))
}

fn volume_attachment(value: &Value, name: &Name) -> Told {
    (None, or_log(value, "VolumeAttachment", name, from::volume_attachment).map(|held| Event::VolumeAttachment(Box::new(held))))
}

fn limit_range(value: &Value, name: &Name) -> Told {
    (None, or_log(value, "LimitRange", name, from::limit_range).map(|range| Event::LimitRange(Box::new(range))))
}

fn scoring_policy(value: &Value, name: &Name) -> Told {
    let whole = |object: &api::ScoringPolicy, _: &mut Cx| object.clone();
    (or_log(value, "ScoringPolicy", name, whole).map(|object| Seen::ScoringPolicy(Box::new(object))), None)
}

fn config_map(value: &Value, name: &Name) -> Told {
    (or_log(value, "ConfigMap", name, bytes).map(|data| Seen::ConfigMap { name: name.name.clone(), data }), None)
}

fn bytes(object: &core::ConfigMap, _: &mut Cx) -> BTreeMap<String, Vec<u8>> {
    let texts = object.data.iter().flatten().map(|(key, text)| (key.clone(), text.clone().into_bytes()));
    let binary = object.binary_data.iter().flatten().map(|(key, bytes)| (key.clone(), bytes.0.clone()));
    texts.chain(binary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups, resources and verbs of the rules that hold in every mode, with those for capacity buffers if wanted.
    fn granted(buffers: bool) -> Vec<[Vec<String>; 3]> {
        let chart = include_str!("../../../../charts/whittle/templates/clusterrole.yaml");
        let mut blocks = chart.split("{{- if");
        let always = blocks.next().expect("a text has a beginning").to_owned();
        let gated = blocks.next().and_then(|block| block.strip_prefix(" .Values.settings.featureGates.capacityBuffer }}"));
        let rules = always + gated.filter(|_| buffers).unwrap_or_default();
        let list = |rule: &str, key: &str| {
            let line = rule.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key)).expect("a rule has all three");
            line.trim_matches([' ', '[', ']']).split(',').map(|word| word.trim().trim_matches('"').to_owned()).collect()
        };
        let all = rules.split("\n  - ").skip(1);
        all.map(|rule| ["apiGroups:", "resources:", "verbs:"].map(|key| list(rule, key))).collect()
    }

    #[test]
    fn the_chart_lets_every_kind_be_watched() {
        for kind in KINDS.iter().filter(|kind| kind.scope == Scope::Everywhere) {
            let granted = granted(kind.for_buffers);
            let verbs = |rule: &&[Vec<String>; 3]| ["get", "list", "watch"].iter().all(|verb| rule[2].iter().any(|v| v == verb));
            let named = |rule: &[Vec<String>; 3]| rule[0].iter().any(|g| g == kind.group) && rule[1].iter().any(|r| r == kind.plural);
            assert!(granted.iter().filter(verbs).any(named), "{} {}", kind.group, kind.plural);
        }
        let of_buffers = |rule: &[Vec<String>; 3]| rule[1].iter().any(|r| r == "capacitybuffers" || r == "podtemplates");
        assert!(!granted(false).iter().any(of_buffers), "without the gate they are nobody's business");
    }
}
