//! What a NodeOverlay says of itself: whether it counts.
//!
//! What must not enter: requests, which overlays conflict.

use serde_json::json;
use whittle_model::Timestamp;

use super::conditions::{Conditions, Standing};
use super::patch::{Fields, ObjectPatch};
use crate::api;

/// The condition that `Ready` depends on.
const VALID: &str = "ValidationSucceeded";

/// How an overlay stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayState {
    /// It counts.
    Applied,
    /// It breaks a rule: why.
    Invalid(String),
    /// Another of the same weight says something of the same things: the other's name.
    Conflict(String),
}

/// What has to change in a NodeOverlay; `None` when nothing has.
#[must_use]
pub fn node_overlay_patch(live: &api::NodeOverlay, state: &OverlayState, now: Timestamp) -> Option<ObjectPatch> {
    let was = live.status.as_ref().and_then(|status| status.conditions.as_ref());
    let meta = &live.metadata;
    let mut conditions = Conditions::new(was, meta.generation, meta.creation_timestamp.as_ref(), now);
    let standing = match state {
        OverlayState::Applied => Standing::holds(VALID),
        OverlayState::Invalid(why) => Standing::fails(VALID, "RuntimeValidation", why),
        OverlayState::Conflict(other) => Standing::fails(
            VALID,
            "Conflict",
            &format!("NodeOverlay {other} of the same weight changes the same; give one of them another weight"),
        ),
    };
    conditions.set(&standing, None);
    conditions.sum_up(&[VALID]);
    let mut status = Fields::default();
    if let Some(changed) = conditions.changed(was) {
        status.set("conditions", json!(changed));
    }
    ObjectPatch { object: None, status: status.under("status") }.unless_empty()
}
