//! What an instance boots with: families of machine images, their user data, and the content of a
//! launch template. All of it is made from values: nothing here calls AWS.
//!
//! What must not enter: clients, retries, caches, which subnet or reservation is chosen, and any
//! AWS type outside `request`.

mod error;
mod family;
mod group;
mod interface;
mod metadata;
mod parameter;
mod request;
mod tags;
mod template;
mod user_data;
mod volume;

pub use error::ImageError;
pub use family::{Alias, Family, FamilyTraits};
pub use group::{Group, Reservation, Wanted, group_by};
pub use interface::{Interface, Tracking};
pub use metadata::Metadata;
pub use parameter::{ImageParameter, Variant};
pub use tags::{Launched, launch_tags, profile_tags, registration_tags};
pub use template::{CapacityChoice, Market, Placement, TemplateInputs, TemplateSpec};
pub use user_data::{
    Boot, ClusterFacts, IpFamily, LIMIT, UserData, bottlerocket_version, kubelet_may_set, render, resolve_kubelet, unapplied_kubelet_fields,
};
pub use volume::Volume;

#[cfg(test)]
#[path = "../../tests_unit/image_case.rs"]
mod case;
#[cfg(test)]
#[path = "../../tests_unit/image_goldens.rs"]
mod goldens;
