//! The kinds that are watched: where they are, whether a cluster may lack them, and what their objects become.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use kube::{Api, core::ApiResource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use whittle_model::{Event, ObjectKind, PodKey};

use super::{
    Seen,
    raw::{Name, Raw},
    read::{faultless, typed, whole},
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
    Kind { name, group, version, plural, need: Need::Required, scope: Scope::Everywhere, read, gone }
}

/// All kinds.
pub(super) static KINDS: [Kind; 10] = [
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
    Kind {
        need: Need::Optional,
        ..kind(("ScoringPolicy", "whittle.sh", "v1alpha1", "scoringpolicies"), scoring_policy, |n| {
            (Some(Seen::ScoringPolicyGone(n.name.clone())), None)
        })
    },
    Kind {
        need: Need::Optional,
        ..kind(("NodeOverlay", "karpenter.sh", "v1alpha1", "nodeoverlays"), node_overlay, |n| {
            (Some(Seen::NodeOverlayGone(n.name.clone())), None)
        })
    },
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
fn convert<T: DeserializeOwned, M>(
    value: &Value,
    conversion: impl FnOnce(&T, &mut Cx) -> M,
    check: fn(&Cx) -> Result<(), String>,
) -> (Option<T>, Result<M, String>) {
    match typed::<T>(value) {
        Err(why) => (None, Err(why)),
        Ok(object) => {
            let mut cx = Cx::new(true);
            let noun = conversion(&object, &mut cx);
            (Some(object), check(&cx).map(|()| noun))
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
    let (_, noun) = convert::<core::Pod, _>(value, from::pod, faultless);
    (None, or_aside(noun.map(|pod| Event::Pod(Box::new(pod))), ObjectKind::Pod, name, value, Some("/spec/nodeName")))
}

fn node(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<core::Node, _>(value, from::node, faultless);
    (None, or_aside(noun.map(|node| Event::Node(Box::new(node))), ObjectKind::Node, name, value, None))
}

fn daemon_set(value: &Value, name: &Name) -> Told {
    let (_, noun) = convert::<apps::DaemonSet, _>(value, from::daemon_set, faultless);
    (None, or_aside(noun.map(|set| Event::DaemonSet(Box::new(set))), ObjectKind::DaemonSet, name, value, None))
}

fn node_pool(value: &Value, name: &Name) -> Told {
    let (object, noun) = convert::<api::NodePool, _>(value, from::node_pool, whole);
    let told = or_aside(noun.map(|pool| Event::NodePool(Box::new(pool))), ObjectKind::NodePool, name, value, None);
    (object.map(|object| Seen::NodePool(Box::new(object))), told)
}

fn node_claim(value: &Value, name: &Name) -> Told {
    let (object, noun) = convert::<api::NodeClaim, _>(value, from::node_claim, whole);
    let told = or_aside(noun.map(|claim| Event::Claim(Box::new(claim))), ObjectKind::NodeClaim, name, value, Some("/status/nodeName"));
    (object.map(|object| Seen::NodeClaim(Box::new(object))), told)
}

fn node_class(value: &Value, name: &Name) -> Told {
    // Whoever launches gets the whole object, so what planning does not read of it is not lost.
    let (object, noun) = convert::<api::EC2NodeClass, _>(value, |object, cx| from::node_class(object, cx).class, faultless);
    let told = or_aside(noun.map(Event::NodeClass), ObjectKind::NodeClass, name, value, None);
    (object.map(|object| Seen::NodeClass(Box::new(object))), told)
}

/// The object, or a line in the log: plans do not read this kind, and what is known of it stays.
fn or_log<T: DeserializeOwned>(value: &Value, kind: &str, name: &Name) -> Option<T> {
    let read = typed::<T>(value);
    read.inspect_err(|why| tracing::warn!(kind, %name, why, "the object cannot be read; what was known of it stays")).ok()
}

fn namespace(value: &Value, name: &Name) -> Told {
    let object = or_log::<core::Namespace>(value, "Namespace", name);
    (None, object.map(|object| Event::Namespace(name.name.clone(), object.metadata.labels.unwrap_or_default())))
}

fn scoring_policy(value: &Value, name: &Name) -> Told {
    (or_log::<api::ScoringPolicy>(value, "ScoringPolicy", name).map(|object| Seen::ScoringPolicy(Box::new(object))), None)
}

fn node_overlay(value: &Value, name: &Name) -> Told {
    (or_log::<api::NodeOverlay>(value, "NodeOverlay", name).map(|object| Seen::NodeOverlay(Box::new(object))), None)
}

fn config_map(value: &Value, name: &Name) -> Told {
    let Some(object) = or_log::<core::ConfigMap>(value, "ConfigMap", name) else { return (None, None) };
    let binary = object.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0));
    let data: BTreeMap<String, Vec<u8>> =
        object.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes())).chain(binary).collect();
    (Some(Seen::ConfigMap { name: name.name.clone(), data }), None)
}
