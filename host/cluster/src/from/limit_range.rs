//! LimitRanges.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{LimitRange, Resources};

use super::{Cx, amounts::amounts, names};

/// A LimitRange, as far as it is about containers that ask for nothing.
pub(crate) fn limit_range(written: &core::LimitRange, cx: &mut Cx) -> LimitRange {
    let key = names::object_key(&written.metadata, cx);
    let mut requests = Resources::default();
    let items = written.spec.as_ref().map(|spec| spec.limits.as_slice()).unwrap_or_default();
    cx.key("spec", |cx| {
        cx.each("limits", items, |cx, item| {
            // The server takes the first that it finds, and writes it into the others when the object is made.
            let [request, limit, least, most] =
                [("defaultRequest", &item.default_request), ("default", &item.default), ("min", &item.min), ("max", &item.max)]
                    .map(|(key, list)| amounts(key, list.as_ref(), cx));
            if item.type_ != "Container" {
                return;
            }
            for (name, amount) in [request, limit, most, least].into_iter().flatten() {
                if requests.get(&name) == 0 {
                    requests.set(&name, amount);
                }
            }
        });
    });
    LimitRange { key, requests }
}
