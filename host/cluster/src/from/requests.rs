//! What a pod asks for: requests of its containers, defaulted by limits, and what a resize in
//! place has already been given.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{Resources, TemplateRequests, pod::ContainerRequests, resources::format_amount};

use super::{
    Cx,
    amounts::{amounts, check_resource_name, resources_of},
};

/// Effective requests of a pod.
pub(super) fn requests(spec: &core::PodSpec, status: Option<&core::PodStatus>, cx: &mut Cx) -> Resources {
    parts(spec, status, cx).requests(&Resources::default())
}

/// What its containers ask for, one by one.
pub(super) fn parts(spec: &core::PodSpec, status: Option<&core::PodStatus>, cx: &mut Cx) -> TemplateRequests {
    let statuses = |list: Option<&Vec<core::ContainerStatus>>| list.cloned().unwrap_or_default();
    let init_statuses = statuses(status.and_then(|s| s.init_container_statuses.as_ref()));
    let container_statuses = statuses(status.and_then(|s| s.container_statuses.as_ref()));
    let (mut init, mut containers) = (Vec::new(), Vec::new());
    cx.each("initContainers", spec.init_containers.as_deref().unwrap_or_default(), |cx, one| {
        let sidecar = is_sidecar(one);
        if let Some(policy) = one.restart_policy.as_deref()
            && one.restart_policy_rules.is_none()
        {
            cx.one_of("restartPolicy", policy, &["Always", "OnFailure", "Never"]);
        }
        init.push(ContainerRequests { requests: of_container(one, &init_statuses, cx), sidecar });
    });
    cx.each("containers", &spec.containers, |cx, one| containers.push(of_container(one, &container_statuses, cx)));
    let pod = pod_level(spec, &init, &containers, cx);
    let overhead = resources_of("overhead", spec.overhead.as_ref(), cx);
    TemplateRequests { init, containers, pod, overhead }
}

/// Whether this init container keeps running beside the others.
pub(super) fn is_sidecar(init: &core::Container) -> bool {
    init.restart_policy.as_deref() == Some("Always")
}

/// Whether the pod asks for devices by resource claims.
pub(super) fn resource_claims(spec: &core::PodSpec) -> bool {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let of_containers = containers.filter_map(|one| one.resources.as_ref()?.claims.as_ref()).any(|claims| !claims.is_empty());
    of_containers || spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty())
}

fn of_container(container: &core::Container, statuses: &[core::ContainerStatus], cx: &mut Cx) -> Resources {
    let Some(written) = &container.resources else { return Resources::default() };
    let mut requests = cx.key("resources", |cx| requested(written, cx));
    if let Some(status) = statuses.iter().find(|s| s.name == container.name) {
        let mut quiet = Cx::default(); // a status is the server's word and not the user's to mend
        requests.raise_to(&resources_of("allocatedResources", status.allocated_resources.as_ref(), &mut quiet));
        requests.raise_to(&resources_of("requests", status.resources.as_ref().and_then(|r| r.requests.as_ref()), &mut quiet));
    }
    requests
}

/// Requests, with limits standing in for resources that are not requested.
fn requested(written: &core::ResourceRequirements, cx: &mut Cx) -> Resources {
    for (key, list) in [("requests", &written.requests), ("limits", &written.limits)] {
        cx.key(key, |cx| list.iter().flatten().for_each(|(name, _)| check_resource_name(name, cx)));
    }
    let mut all = resources_of("requests", written.requests.as_ref(), cx);
    for (name, limit) in amounts("limits", written.limits.as_ref(), cx) {
        let request = written.requests.as_ref().is_some_and(|r| r.contains_key(&name));
        if !request {
            all.set(&name, limit);
        } else if all.get(&name) > limit {
            let (asked, most) = (format_amount(&name, all.get(&name)), format_amount(&name, limit));
            cx.keys(&["requests", &name], |cx| {
                cx.broken(format!("{asked} is more than its limit {most}; raise the limit or lower the request"))
            });
        }
    }
    all
}

/// Pod-level requests. A pod-level limit stands in for a resource that no container asks for.
fn pod_level(spec: &core::PodSpec, init: &[ContainerRequests], containers: &[Resources], cx: &mut Cx) -> Resources {
    let Some(written) = &spec.resources else { return Resources::default() };
    let mut level = cx.key("resources", |cx| requested(written, cx));
    let asked = |name: &str| containers.iter().chain(init.iter().map(|i| &i.requests)).any(|r| r.get(name) > 0);
    for name in written.limits.iter().flatten().map(|(name, _)| name) {
        if !written.requests.as_ref().is_some_and(|r| r.contains_key(name)) && asked(name) {
            level.set(name, 0);
        }
    }
    level
}
