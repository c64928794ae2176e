//! What a CapacityBuffer says of itself: what it is for, its size, and whether there is room for it.
//!
//! What must not enter: requests, how size and room are found.

use serde_json::json;
use whittle_model::Timestamp;

use super::conditions::{Conditions, Standing};
use super::patch::{Fields, ObjectPatch};
use crate::api;

/// Whether it is known for which pods room is wanted, and for how many.
const RESOLVED: &str = "ReadyForProvisioning";
/// Whether there is room for all of them.
const ROOM: &str = "Provisioning";

/// What was found of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferFound {
    /// Its template and size are known.
    Resolved {
        /// The PodTemplate; `None` when it is for a workload.
        base: Option<FoundBase>,
        /// How many pods it stands for.
        count: u32,
        /// Whether there is room; `None` while no plan has looked.
        standing: Option<BufferStanding>,
    },
    /// The workload is not there: what is missing.
    NoScalable(String),
    /// The PodTemplate is not there: what is missing.
    NoPodTemplate(String),
    /// It breaks a rule, or what it is for cannot be read: why.
    Failed(String),
}

/// The PodTemplate of a buffer as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBase {
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
}

/// For how many of its pods there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferStanding {
    /// On nodes in use.
    pub ready: u32,
    /// On nodes that are on their way.
    pub coming: u32,
    /// Nowhere.
    pub missing: u32,
}

/// What has to change in a CapacityBuffer; `None` when nothing has.
#[must_use]
pub fn capacity_buffer_patch(live: &api::CapacityBuffer, found: &BufferFound, now: Timestamp) -> Option<ObjectPatch> {
    let none = api::CapacityBufferStatus::default();
    let was = live.status.as_ref().unwrap_or(&none);
    let mut status = Fields::default();
    let strategy = live.spec.provisioning_strategy.as_deref().unwrap_or_default();
    status.text("provisioningStrategy", strategy, was.provisioning_strategy.as_ref());
    // What is said of a buffer that was understood stays when it is not understood any more.
    if let BufferFound::Resolved { base, count, .. } = found {
        let count = i32::try_from(*count).unwrap_or(i32::MAX);
        if was.replicas != Some(count) {
            status.set("replicas", json!(count));
        }
        let template = base.as_ref().map(|base| api::PodTemplateRef { name: base.name.clone() });
        if was.pod_template_ref != template {
            status.set("podTemplateRef", json!(template));
        }
        let generation = base.as_ref().map(|base| base.generation);
        if was.pod_template_generation != generation {
            status.set("podTemplateGeneration", json!(generation));
        }
    }
    let meta = &live.metadata;
    let mut conditions = Conditions::new(was.conditions.as_ref(), meta.generation, meta.creation_timestamp.as_ref(), now);
    conditions.set(&resolved(found), None);
    if let Some(standing) = room(found) {
        conditions.set(&standing, None);
    }
    if let Some(changed) = conditions.changed(was.conditions.as_ref()) {
        status.set("conditions", json!(changed));
    }
    ObjectPatch { object: None, status: status.under("status") }.unless_empty()
}

fn resolved(found: &BufferFound) -> Standing {
    match found {
        BufferFound::Resolved { .. } => Standing::holds_for(RESOLVED, "Resolved"),
        BufferFound::NoScalable(what) => Standing::fails(RESOLVED, "ScalableRefNotFound", &format!("there is no {what} in its namespace")),
        BufferFound::NoPodTemplate(what) => {
            Standing::fails(RESOLVED, "PodTemplateNotFound", &format!("there is no {what} in its namespace"))
        }
        BufferFound::Failed(why) => Standing::fails(RESOLVED, "ResolutionFailed", why),
    }
}

/// How it stands about room; `None` leaves what was said.
fn room(found: &BufferFound) -> Option<Standing> {
    let BufferFound::Resolved { count, standing, .. } = found else {
        return Some(Standing::fails(ROOM, "NotReadyForProvisioning", "it is not known for which pods room is wanted"));
    };
    if *count == 0 {
        return Some(Standing::fails(ROOM, "BufferEmpty", "it stands for no pods"));
    }
    let BufferStanding { ready, coming, missing } = (*standing)?;
    if ready + coming + missing != *count {
        return None;
    }
    Some(if coming + missing == 0 {
        let message = format!("there is room for {count} of {count} pods");
        Standing { message, ..Standing::holds_for(ROOM, "FitsExistingCapacity") }
    } else {
        let told = |number: u32, what: &str| if number == 0 { String::new() } else { format!(", {what} {number}") };
        let (coming, missing) = (told(coming, "nodes are on their way for"), told(missing, "nothing can be bought for"));
        let message = format!("there is room for {ready} of {count} pods{coming}{missing}");
        Standing::fails(ROOM, "RequiresNewCapacity", &message)
    })
}
