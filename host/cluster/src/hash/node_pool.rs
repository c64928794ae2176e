//! The hash of a NodePool: its template without the requirements.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::structure::{Struct, bytes, int64, map, set, text};
use crate::{api, from::parse_duration};

/// The hash of a NodePool as the API server shows it, in the version [`NODE_POOL_VERSION`](super::NODE_POOL_VERSION).
/// What counts is what is written: an empty list is not an absent one.
#[must_use]
pub fn node_pool_hash(pool: &api::NodePool) -> String {
    let template = &pool.spec.template;
    let meta = &template.metadata;
    let meta = (meta.labels.is_some() || meta.annotations.is_some()).then(|| {
        Struct::new("ObjectMeta")
            .field("Labels", meta.labels.as_ref().map(map))
            .field("Annotations", meta.annotations.as_ref().map(map))
            .hash()
    });
    let hash = Struct::new("NodeClaimTemplate").field("ObjectMeta", meta).field("Spec", Some(spec(&template.spec))).hash();
    hash.to_string()
}

fn spec(spec: &api::TemplateSpec) -> u64 {
    let taints = |all: &Vec<Taint>| set(all.iter().map(taint));
    let expire =
        spec.expire_after.as_deref().and_then(nanos).map(|n| Struct::new("NillableDuration").field("Duration", Some(int64(n))).hash());
    let grace = spec.termination_grace_period.as_deref().and_then(nanos);
    let grace = grace.map(|n| Struct::new("Duration").field("Duration", (n != 0).then(|| int64(n))).hash());
    Struct::new("NodeClaimTemplateSpec")
        .field("Taints", spec.taints.as_ref().map(taints))
        .field("StartupTaints", spec.startup_taints.as_ref().map(taints))
        .field("NodeClassRef", Some(class_ref(&spec.node_class_ref)))
        .field("TerminationGracePeriod", grace)
        .field("ExpireAfter", expire)
        .hash()
}

/// `Never` and what is no duration are nothing.
fn nanos(written: &str) -> Option<i64> {
    parse_duration(written)?.0.checked_mul(1_000_000)
}

fn class_ref(class: &api::NodeClassRef) -> u64 {
    Struct::new("NodeClassReference")
        .field("Kind", word(Some(&class.kind)))
        .field("Name", word(Some(&class.name)))
        .field("Group", word(Some(&class.group)))
        .hash()
}

/// A text whose zero is the empty one.
pub(super) fn word(written: Option<&str>) -> Option<u64> {
    written.filter(|w| !w.is_empty()).map(text)
}

fn taint(taint: &Taint) -> u64 {
    Struct::new("Taint")
        .field("Key", word(Some(&taint.key)))
        .field("Value", word(taint.value.as_deref()))
        .field("Effect", word(Some(&taint.effect)))
        .field("TimeAdded", taint.time_added.as_ref().map(|t| Struct::new("Time").field("Time", Some(time(t))).hash()))
        .hash()
}

/// A time in the binary form of Go's `time` package: version, seconds since the year 1, nanoseconds, and the
/// offset in minutes, which is zero where Karpenter runs.
fn time(time: &Time) -> u64 {
    const UNIX_EPOCH: i64 = 62_135_596_800;
    let mut form = vec![1];
    form.extend((time.0.as_second().saturating_add(UNIX_EPOCH)).to_be_bytes());
    form.extend(time.0.subsec_nanosecond().to_be_bytes());
    form.extend([0, 0]);
    bytes(&form)
}
