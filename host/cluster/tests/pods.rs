//! What a pod asks for, as the engine gets it: tables of what is written and what is meant.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::json;
use whittle_cluster::{Object, Strictness, read};
use whittle_model::{Duration, HostPort, LabelSelector, Pod, PodVolume, Protocol, SelectorOperator, SelectorRequirement, Timestamp, keys};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn text(uid: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop, labels: {{app: web, rev: \"7\"}}{uid}}}\n\
         spec:\n  containers: [{{name: c}}]\n  {more}\n"
    )
}

fn parsed(text: &str) -> Pod {
    let objects = read(text, "f", Strictness::Strict).unwrap();
    let Object::Pod(pod) = objects.into_iter().next().unwrap().object else { unreachable!("{text}") };
    *pod
}

/// A pod as a person writes it.
fn pod(more: &str) -> Pod {
    parsed(&text("", more))
}

/// A pod as a server shows it.
fn live(more: &str) -> Pod {
    parsed(&text(", uid: u", more))
}

fn faults(more: &str) -> String {
    read(&text("", more), "f", Strictness::Strict).expect_err(more).to_string()
}

fn expressions(selector: &LabelSelector) -> Vec<String> {
    selector.requirements.iter().map(|r| format!("{} {:?} {}", r.key, r.operator, r.values.join(","))).collect()
}

fn nothing() -> LabelSelector {
    LabelSelector { requirements: vec![SelectorRequirement { key: String::new(), operator: SelectorOperator::In, values: vec![] }] }
}

#[test]
fn a_spread_constraint_comes_with_the_defaults_of_the_api() {
    let bare =
        &pod("topologySpreadConstraints: [{maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]")
            .spread[0];
    assert_eq!((bare.max_skew, bare.min_domains, bare.required), (2, None, true));
    assert_eq!((bare.honor_affinity, bare.honor_taints), (true, false));
    assert_eq!(bare.selector, nothing(), "an absent selector selects no pod");
    let full = &pod("topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, topologyKey: failure-domain.beta.kubernetes.io/zone, \
         whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, labelSelector: {}}]")
    .spread[0];
    assert_eq!((full.topology_key.as_str(), full.min_domains), (keys::ZONE, Some(3)));
    assert_eq!((full.honor_affinity, full.honor_taints), (false, true));
    assert_eq!(full.selector, LabelSelector::default(), "an empty selector selects every pod");
    let soft = &pod("topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]").spread[0];
    assert!(!soft.required);
}

#[test]
fn label_keys_are_merged_once() {
    let spread = |selector: &str, keys: &str| {
        let more = format!(
            "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, {selector} matchLabelKeys: [{keys}]}}]"
        );
        expressions(&live(&more).spread[0].selector)
    };
    let app = "labelSelector: {matchLabels: {app: web}},";
    let merged = "labelSelector: {matchLabels: {app: web}, matchExpressions: [{key: rev, operator: In, values: [\"7\"]}]},";
    for (selector, keys, wanted) in [
        (app, "rev", vec!["app In web", "rev In 7"]),
        // A newer server has merged it itself.
        (merged, "rev", vec!["app In web", "rev In 7"]),
        (app, "absent", vec!["app In web"]),
        ("labelSelector: {},", "rev", vec!["rev In 7"]),
        ("", "rev", vec![" In "]),
    ] {
        assert_eq!(spread(selector, keys), wanted, "{selector} {keys}");
    }
    let term = "topologyKey: z, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [app], mismatchLabelKeys: [rev, absent]";
    let near = &pod(&format!("affinity: {{podAffinity: {{{REQUIRED}: [{{{term}}}]}}}}")).pod_affinity[0];
    assert_eq!(expressions(&near.selector), ["app In web", "rev NotIn 7"]);
}

#[test]
fn a_term_means_the_namespaces_that_it_says() {
    let term = |more: &str| {
        let more = format!("affinity: {{podAntiAffinity: {{{REQUIRED}: [{{topologyKey: z, labelSelector: {{}}{more}}}]}}}}");
        let term = pod(&more).anti_affinity.remove(0);
        (term.namespaces, term.namespace_selector.map(|s| expressions(&s)))
    };
    let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(term(""), (own(&["shop"]), None));
    assert_eq!(term(", namespaces: [b, a, b]"), (own(&["a", "b"]), None));
    assert_eq!(term(", namespaceSelector: {}"), (own(&[]), Some(vec![])));
    assert_eq!(term(", namespaces: [a], namespaceSelector: {matchLabels: {k: v}}"), (own(&["a"]), Some(own(&["k In v"]))));
}

#[test]
fn a_term_without_a_selector_selects_no_pod() {
    let bare = "topologyKey: kubernetes.io/hostname";
    let weighted = format!("{{weight: 5, podAffinityTerm: {{{bare}}}}}");
    let all = pod(&format!(
        "affinity: {{podAffinity: {{{REQUIRED}: [{{{bare}}}], {PREFERRED}: [{weighted}]}}, podAntiAffinity: {{{REQUIRED}: [{{{bare}}}], {PREFERRED}: [{weighted}]}}}}"
    ));
    assert_eq!(all.pod_affinity[0].selector, nothing(), "it can never be met");
    assert!(all.anti_affinity.is_empty() && all.preferences.near.is_empty() && all.preferences.away.is_empty(), "these bar nothing");
}

#[test]
fn preferences_keep_their_weights_and_their_order() {
    let node = |weight: i32, zone: &str| {
        format!(
            "{{weight: {weight}, preference: {{matchExpressions: [{{key: beta.kubernetes.io/arch, operator: In, values: [{zone}]}}]}}}}"
        )
    };
    let term = |weight: i32| format!("{{weight: {weight}, podAffinityTerm: {{topologyKey: z, labelSelector: {{}}}}}}");
    let all = pod(&format!(
        "affinity: {{nodeAffinity: {{{PREFERRED}: [{}, {}, {{weight: 3, preference: {{}}}}]}}, podAffinity: {{{PREFERRED}: [{}]}}, podAntiAffinity: {{{PREFERRED}: [{}, {}]}}}}",
        node(1, "arm64"), node(100, "amd64"), term(7), term(8), term(9),
    ))
    .preferences;
    let nodes: Vec<(i32, String)> = all.nodes.iter().map(|(weight, wanted)| (*weight, wanted.to_string())).collect();
    assert_eq!(nodes, [(1, "kubernetes.io/arch In [arm64]".to_owned()), (100, "kubernetes.io/arch In [amd64]".to_owned())]);
    assert_eq!(all.near.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), [7]);
    assert_eq!(all.away.iter().map(|(weight, _)| *weight).collect::<Vec<_>>(), [8, 9]);
}

/// S10: only what is required may keep a pod from being seen.
#[test]
fn an_odd_preference_never_makes_a_pod_unreadable() {
    let node = |expression: &str| {
        format!("affinity: {{nodeAffinity: {{{PREFERRED}: [{{weight: 1, preference: {{matchExpressions: [{expression}]}}}}]}}}}")
    };
    for (expression, kept) in [
        ("{key: kubernetes.io/hostname, operator: In, values: [gone-node]}", 1),
        ("{key: karpenter.sh/unheard-of, operator: Exists}", 1),
        ("{key: cpus, operator: Gt, values: [many]}", 1),
        ("{key: \"not a key\", operator: Exists}", 0),
        ("{key: a, operator: Newer}", 0),
        ("{key: a, operator: In, values: []}", 0),
    ] {
        let pod = live(&node(expression));
        assert_eq!(pod.preferences.nodes.len(), kept, "{expression}");
        assert_eq!(pod.unsupported, [""; 0], "{expression}");
    }
    let fields = format!(
        "affinity: {{nodeAffinity: {{{PREFERRED}: [{{weight: 1, preference: {{matchFields: [{{key: metadata.name, operator: In, values: [a-node]}}]}}}}]}}}}"
    );
    let objects = read(&text("", &fields), "f", Strictness::Strict).unwrap();
    assert_eq!((objects[0].refused(), objects[0].not_acted_on.len()), (&[][..], 1));
    let away = format!("affinity: {{podAntiAffinity: {{{PREFERRED}: [{{weight: 1, podAffinityTerm: {{topologyKey: \"\"}}}}]}}}}");
    assert!(live(&away).preferences.away.is_empty());
    assert!(faults(&away).contains("topologyKey is missing"), "a person is told");
}

#[test]
fn what_a_server_took_is_read_even_where_no_node_meets_it() {
    let required = format!(
        "affinity: {{nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: [{{matchExpressions: [{{key: cpus, operator: Gt, values: [many]}}]}}]}}}}}}"
    );
    let terms = live(&required).affinity.node_terms;
    assert!(!terms[0].met_by(&[("cpus".to_owned(), "4".to_owned())].into_iter().collect()));
    assert!(faults(&required).contains("exactly one non-negative integer"));
    let selector =
        format!("affinity: {{podAntiAffinity: {{{REQUIRED}: [{{topologyKey: z, labelSelector: {{matchLabels: {{a: \"b c\"}}}}}}]}}}}");
    assert_eq!(live(&selector).anti_affinity.len(), 1);
    assert!(faults(&selector).contains("is no label value"));
}

#[test]
fn host_ports_are_those_of_containers_that_run_together() {
    let of = |more: &str| pod(more).host_ports;
    let port = |port, protocol, ip: &str| HostPort { port, protocol, ip: ip.to_owned() };
    assert_eq!(of("terminationGracePeriodSeconds: 5"), []);
    let ports = "[{containerPort: 80, hostPort: 8080}, {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}, {containerPort: 9}, \
                 {containerPort: 81, hostPort: 8080, hostIP: \"0.0.0.0\"}, {containerPort: 82, hostPort: 8080, hostIP: \"::\"}]";
    let side = |policy: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers: [{{name: c, ports: {ports}}}]\n  \
             initContainers: [{{name: i, ports: [{{containerPort: 1, hostPort: 7}}]{policy}}}]\n"
        );
        parsed(&text).host_ports
    };
    let own = [port(53, Protocol::Udp, "10.0.0.1"), port(8080, Protocol::Tcp, "")];
    assert_eq!(side(""), own);
    assert_eq!(side(", restartPolicy: Always"), [vec![port(7, Protocol::Tcp, "")], own.to_vec()].concat());
    let on_host = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true, containers: [{name: c, ports: [{containerPort: 9100}]}]}\n";
    assert_eq!(parsed(on_host).host_ports, [port(9100, Protocol::Tcp, "")]);
}

#[test]
fn volumes_are_the_claims_behind_them() {
    let volumes = "volumes: [{name: a, persistentVolumeClaim: {claimName: data}}, {name: b, persistentVolumeClaim: {claimName: data}}, \
                   {name: tmp, emptyDir: {}}, {name: c, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: gp3}}}}, \
                   {name: d, ephemeral: {volumeClaimTemplate: {spec: {}}}}]";
    let claim = |claim: &str, ephemeral| PodVolume { claim: claim.to_owned(), ephemeral };
    let wanted = [claim("data", None), claim("p-c", Some(Some("gp3".to_owned()))), claim("p-d", Some(None))];
    assert_eq!(pod(volumes).volumes, wanted);
    let workload = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  template:\n    \
         metadata: {{labels: {{a: b}}}}\n    spec:\n      containers: [{{name: c}}]\n      {volumes}\n"
    );
    let objects = read(&workload, "f", Strictness::Strict).unwrap();
    let Object::Workload(workload) = &objects[0].object else { panic!("{objects:?}") };
    let claims: Vec<&str> = workload.template.volumes.iter().map(|v| v.claim.as_str()).collect();
    assert_eq!(claims, ["data", "web-c", "web-d"]);
}

#[test]
fn a_pod_says_how_far_it_is_and_when_it_ends() {
    let plain = pod("hostNetwork: false");
    assert_eq!((plain.grace, plain.ready, plain.started, plain.ends_at), (Duration::seconds(30), false, None, None));
    assert!(!plain.resource_claims);
    assert!(pod("resourceClaims: [{name: gpu}]").resource_claims);
    let shown = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2026-03-01T10:00:30Z", "deletionGracePeriodSeconds": 30},
        "spec": {"containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}], "terminationGracePeriodSeconds": 600},
        "status": {"startTime": "2026-03-01T09:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let pod = parsed(&shown.to_string());
    assert_eq!((pod.grace, pod.ready, pod.deleting, pod.resource_claims), (Duration::seconds(600), true, true, true));
    assert_eq!(pod.started, Some(Timestamp(1_772_355_600_000)));
    assert_eq!(pod.ends_at, Some(Timestamp(1_772_359_230_000)));
}

#[test]
fn a_person_is_told_what_the_server_would_refuse() {
    let spread = |more: &str| format!("topologySpreadConstraints: [{{topologyKey: z, {more}}}]");
    for (more, part) in [
        (spread("maxSkew: 0, whenUnsatisfiable: DoNotSchedule"), "maxSkew: 0 is out of range"),
        (spread("maxSkew: 1, whenUnsatisfiable: Maybe"), "whenUnsatisfiable: \"Maybe\" is not known"),
        (spread("maxSkew: 1, minDomains: 2, whenUnsatisfiable: ScheduleAnyway"), "minDomains: goes with"),
        (spread("maxSkew: 1, minDomains: 0, whenUnsatisfiable: DoNotSchedule"), "minDomains: is out of range"),
        (spread("maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: honor"), "did you mean Honor?"),
        (
            spread("maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: z, maxSkew: 2, whenUnsatisfiable: DoNotSchedule"),
            "z with DoNotSchedule is given twice",
        ),
        (format!("affinity: {{nodeAffinity: {{{PREFERRED}: [{{weight: 0, preference: {{}}}}]}}}}"), "weight: 0 is out of range"),
        ("initContainers: [{name: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 70000}]}]".to_owned(), "70000 is no port"),
        (
            "initContainers: [{name: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 7, protocol: TPC}]}]".to_owned(),
            "did you mean TCP?",
        ),
    ] {
        let said = faults(&more);
        assert!(said.contains(part), "{more}\n{said}");
    }
}
