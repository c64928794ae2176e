//! Pods of every kind on the real scheduler: what was planned for them is what it lets them have.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::kube::{name, text};
use crate::stage::Stage;
use crate::wait::{patient, until};

/// Deployments of each wave; a wave takes what room earlier ones left.
const WAVES: usize = 3;
const EACH: u64 = 6;

/// Where room was left, pods take it when they like, and others find it gone: so often at most a wave is planned again.
const ROUNDS: usize = 2;

pub(super) fn tell(stage: &Stage<'_>) -> Result<()> {
    let controller = stage.controller()?;
    stage.apply(include_str!("../../manifests/class.yaml"))?;
    stage.apply(include_str!("../../manifests/sample.yaml"))?;
    stage.pool_is_ready("default")?;
    stage.pool_is_ready("dedicated")?;
    let kinds = kinds();
    let (mut wanted, mut before) = (0, 0);
    for wave in 0..WAVES {
        let of_wave: Vec<(usize, &Kind)> = kinds.iter().enumerate().filter(|(number, _)| number % WAVES == wave).collect();
        // Together, so that they are planned together.
        let objects: Vec<Value> =
            of_wave.iter().flat_map(|(number, kind)| kind.beside.iter().cloned().chain([deployment(*number, kind)])).collect();
        stage.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string())?;
        wanted += of_wave.iter().map(|(_, kind)| kind.replicas as usize).sum::<usize>();
        until(&format!("{wanted} pods of every kind run"), 180, || stage.bed.kube.all_run("story=sample", wanted))?;
        let (plans, planned) = plans(&controller.log());
        if wave == 0 {
            // There was nothing before: whoever was not taken where it was planned first was planned once more. A pod whose
            // spread wants others bound first may find its room taken when it is tried again. On a machine that needs
            // patience nominations come late.
            let again = planned - wanted as u64;
            ensure!(again * 20 <= wanted as u64 || patient(1) > 1, "{again} of the {wanted} pods of the first wave were planned again");
        }
        ensure!(plans - before <= 1 + ROUNDS, "wave {wave} took {} plans", plans - before);
        before = plans;
    }
    until("the books balance", 60, || stage.books_balance(None))?;
    nodes_are_used(stage)
}

/// How many plans bought something, and for how many pods.
fn plans(log: &str) -> (usize, u64) {
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let said = |what: &'static str| lines.iter().filter(move |line| line["message"] == what);
    (said("computed new NodeClaims to fit pods").count(), said("created nodeclaim").filter_map(|line| line["pods"].as_u64()).sum())
}

/// Room that is left on one node draws pods from the next, but not so many that nodes are bought in vain.
fn nodes_are_used(stage: &Stage<'_>) -> Result<()> {
    let (pods, nodes) = (stage.bed.kube.pods("story=sample")?, stage.bed.kube.nodes()?);
    let used = |node: &&Value| pods.iter().any(|pod| text(pod, "/spec/nodeName") == name(node));
    let unused = nodes.len() - nodes.iter().filter(used).count();
    ensure!(unused * 10 <= nodes.len(), "{unused} of {} nodes were bought for nobody", nodes.len());
    Ok(())
}

/// What one Deployment's pods ask for.
struct Kind {
    what: &'static str,
    replicas: u64,
    cpu: u64,
    memory: u64,
    /// Fields of the pod beside its container.
    spec: Value,
    /// Fields of its container.
    container: Value,
    /// Objects that it needs.
    beside: Vec<Value>,
}

impl Kind {
    /// The name of the Deployment.
    fn app(&self) -> String {
        self.what.to_ascii_lowercase().replace(',', "").replace(' ', "-")
    }
}

fn kind(what: &'static str, (cpu, memory): (u64, u64), spec: Value) -> Kind {
    Kind { what, replicas: EACH, cpu, memory, spec, container: json!({}), beside: Vec::new() }
}

fn deployment(number: usize, kind: &Kind) -> Value {
    let app = kind.app();
    let mut container = json!({
        "name": "work", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
        "resources": { "requests": { "cpu": format!("{}m", kind.cpu), "memory": format!("{}Mi", kind.memory) } },
    });
    lay(&mut container, &kind.container);
    let mut spec = json!({ "terminationGracePeriodSeconds": 0, "containers": [container] });
    lay(&mut spec, &kind.spec);
    // Rules about the pods' own kind name it with this.
    let spec: Value = serde_json::from_str(&spec.to_string().replace("OWN", &app)).unwrap_or_default();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": app },
        "spec": {
            "replicas": kind.replicas, "selector": { "matchLabels": { "app": app } },
            "template": { "metadata": { "labels": { "app": app, "story": "sample", "parity": (number % 2).to_string() } }, "spec": spec },
        },
    })
}

fn lay(over: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().into_iter().flatten() {
        over[key] = value.clone();
    }
}

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const CAPACITY: &str = "karpenter.sh/capacity-type";

fn own() -> Value {
    json!({ "matchLabels": { "app": "OWN" } })
}

fn needs(key: &str, operator: &str, values: &[&str]) -> Value {
    let terms = json!([{ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }]);
    json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } } })
}

fn prefers(key: &str, values: &[&str]) -> Value {
    let term = json!({ "weight": 50, "preference": { "matchExpressions": [{ "key": key, "operator": "In", "values": values }] } });
    json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [term] } } })
}

fn spread(key: &str, skew: u64, unless: &str, more: &Value) -> Value {
    let mut rule = json!({ "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": unless, "labelSelector": own() });
    lay(&mut rule, more);
    json!({ "topologySpreadConstraints": [rule] })
}

fn company(affinity: &str, key: &str, selector: &Value) -> Value {
    let term = json!([{ "topologyKey": key, "labelSelector": selector }]);
    json!({ "affinity": { affinity: { "requiredDuringSchedulingIgnoredDuringExecution": term } } })
}

fn would_like(affinity: &str, key: &str, selector: &Value) -> Value {
    let term = json!([{ "weight": 10, "podAffinityTerm": { "topologyKey": key, "labelSelector": selector } }]);
    json!({ "affinity": { affinity: { "preferredDuringSchedulingIgnoredDuringExecution": term } } })
}

fn tolerates(more: &Value) -> Value {
    let mut spec = json!({ "tolerations": [{ "key": "dedicated", "operator": "Exists" }] });
    lay(&mut spec, more);
    spec
}

fn kinds() -> Vec<Kind> {
    let (hard, soft, none) = ("DoNotSchedule", "ScheduleAnyway", json!({}));
    let (zone_a, parity) = (json!({ "nodeSelector": { ZONE: "us-east-1a" } }), |p: &str| json!({ "matchLabels": { "parity": p } }));
    let mut kinds = vec![
        kind("small", (250, 300), none.clone()),
        kind("much memory", (600, 7000), none.clone()),
        kind("much CPU", (3300, 900), none.clone()),
        kind("one zone", (700, 1500), zone_a),
        kind("one architecture", (900, 1100), json!({ "nodeSelector": { "kubernetes.io/arch": "arm64" } })),
        kind("spot", (500, 2000), json!({ "nodeSelector": { CAPACITY: "spot" } })),
        kind("large nodes", (400, 800), needs("karpenter.k8s.aws/instance-cpu", "Gt", &["7"])),
        kind("not in a zone", (1500, 2500), needs(ZONE, "NotIn", &["us-east-1b", "us-east-1c"])),
        kind("a preferred zone", (800, 600), prefers(ZONE, &["us-east-1c"])),
        kind("a preference that cannot be", (300, 400), prefers(ZONE, &["nowhere"])),
        kind("the tainted pool, if it suits", (450, 900), tolerates(&none)),
        kind("the tainted pool", (650, 1300), tolerates(&json!({ "nodeSelector": { "team": "dedicated" } }))),
        kind("spread over zones", (350, 700), spread(ZONE, 1, hard, &none)),
        kind("spread over three zones at least", (550, 1000), spread(ZONE, 2, hard, &json!({ "minDomains": 3 }))),
        kind("spread over hosts", (200, 250), spread(HOST, 2, hard, &none)),
        kind("spread over capacity types", (750, 1700), spread(CAPACITY, 1, hard, &none)),
        kind("spread if it can be", (950, 1900), spread(ZONE, 1, soft, &none)),
        kind("spread by revision", (320, 640), spread(HOST, 1, hard, &json!({ "matchLabelKeys": ["pod-template-hash"] }))),
        kind("spread, taints honoured", (420, 840), spread(ZONE, 1, hard, &json!({ "nodeTaintsPolicy": "Honor" }))),
        kind("apart", (150, 200), company("podAntiAffinity", HOST, &own())),
        kind("together in a zone", (850, 1600), company("podAffinity", ZONE, &own())),
        kind("together on a host", (380, 760), company("podAffinity", HOST, &own())),
        kind("beside others", (270, 540), company("podAffinity", ZONE, &parity("0"))),
        kind("rather apart", (480, 500), would_like("podAntiAffinity", HOST, &own())),
        kind("rather together", (280, 560), would_like("podAffinity", ZONE, &parity("1"))),
    ];
    let ports = json!({ "ports": [{ "containerPort": 80, "hostPort": 18080 }] });
    kinds.push(Kind { container: ports, ..kind("a port of the host", (220, 330), none.clone()) });
    kinds.push(starting());
    kinds.push(stored());
    kinds
}

/// What starts first needs more than what runs on.
fn starting() -> Kind {
    let init = json!([{ "name": "prepare", "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
        "resources": { "requests": { "cpu": "1700m", "memory": "2Gi" } } }]);
    kind("a large start", (300, 500), json!({ "initContainers": init }))
}

/// One pod with a disk that is in one zone.
fn stored() -> Kind {
    let term = json!([{ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": ["us-east-1b"] }] }]);
    let disk = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "sample" },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Delete", "claimRef": { "namespace": "default", "name": "sample" },
            "local": { "path": "/var" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": term } },
        },
    });
    let asked = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "sample", "namespace": "default" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "sample",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let spec = json!({ "volumes": [{ "name": "disk", "persistentVolumeClaim": { "claimName": "sample" } }] });
    Kind { replicas: 1, beside: vec![disk, asked], ..kind("a disk", (500, 500), spec) }
}
