//! DaemonSets.

use k8s_openapi::api::apps::v1 as apps;
use whittle_model::DaemonSet;

use super::{Cx, names, pod, requests, workload};

/// A DaemonSet.
pub(crate) fn daemon_set(written: &apps::DaemonSet, cx: &mut Cx) -> DaemonSet {
    let key = names::object_key(&written.metadata, cx);
    let spec = &written.spec;
    cx.key("spec", |cx| {
        let template =
            cx.key("template", |cx| pod::template(&key, "DaemonSet", spec.template.metadata.as_ref(), spec.template.spec.as_ref(), cx));
        workload::matching_selector(&spec.selector, &template.labels, cx);
        // Whatever is wrong with them was said when the template was read.
        let containers = spec.template.spec.as_ref().map(|spec| requests::parts(spec, None, &mut Cx::default()));
        DaemonSet { key, template, containers }
    })
}
