//! What a user is told about a wrong file: every kind of fault, word for word where it matters.

use whittle_cluster::{Strictness, link, read};

/// The faults of `text`, one line each.
fn told(text: &str) -> Vec<String> {
    let error = read(text, "f.yaml", Strictness::Strict).expect_err(text);
    error.problems.iter().map(ToString::to_string).collect()
}

const POOL: &str = "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  weight: 10
  limits:
    cpu: 10
  disruption:
    consolidateAfter: 1m
    consolidationPolicy: WhenEmpty
    budgets:
    - nodes: 10%
  template:
    metadata:
      labels:
        team: a
    spec:
      expireAfter: 720h
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: default
      taints:
      - key: a.b/c
        effect: NoSchedule
      requirements:
      - key: karpenter.sh/capacity-type
        operator: In
        values: [spot]
";

const CLASS: &str = "\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: nodes
  amiSelectorTerms:
  - alias: al2023@latest
  subnetSelectorTerms:
  - tags: {a: b}
  securityGroupSelectorTerms:
  - tags: {a: b}
  kubelet:
    maxPods: 20
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      priorityClassName: high
      nodeSelector: {a: b}
      tolerations:
      - key: a
        effect: NoSchedule
      containers:
      - name: web
        image: web
        resources:
          requests: {cpu: 100m}
";

/// Text to be replaced, what with, and the faults (line and the rest).
type Row = (&'static str, &'static str, &'static [&'static str]);

fn check(what: &str, text: &str, rows: &[Row]) {
    assert!(read(text, "f.yaml", Strictness::Strict).is_ok(), "{what} is taken as it is");
    for (from, to, faults) in rows {
        assert_eq!(text.matches(from).count(), 1, "{from:?} stands once in {what}");
        let wanted: Vec<String> = faults
            .iter()
            .map(|fault| {
                let (line, rest) = fault.split_once(' ').expect("a line number and a fault");
                format!("f.yaml:{line}: document 1, {what}, {rest}")
            })
            .collect();
        assert_eq!(told(&text.replace(from, to)), wanted, "{from:?} -> {to:?}");
    }
}

const POOL_FAULTS: &[Row] = &[
    (
        "requirements:",
        "requirments:",
        &[
            "18 spec.template.spec: field requirements is missing",
            "27 spec.template.spec.requirments: unknown field requirments; did you mean requirements?",
        ],
    ),
    ("operator: In", "operator: in", &["29 spec.template.spec.requirements[0].operator: \"in\" is not known; did you mean In?"]),
    (
        "operator: In",
        "operator: Equals",
        &[
            "29 spec.template.spec.requirements[0].operator: \"Equals\" is not known; write one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte",
        ],
    ),
    (
        "operator: In",
        "operator: Gt",
        &[
            "30 spec.template.spec.requirements[0].values: operator Gt on key \"karpenter.sh/capacity-type\" takes exactly one non-negative integer, not [\"spot\"]",
        ],
    ),
    ("[spot]", "[on_demand]", &["30 spec.template.spec.requirements[0].values: \"on_demand\" is not known; did you mean on-demand?"]),
    (
        "[spot]",
        "[]",
        &["30 spec.template.spec.requirements[0].values: operator In on key \"karpenter.sh/capacity-type\" needs at least one value"],
    ),
    ("[spot]", "[2]", &["30 spec.template.spec.requirements[0].values[0]: wants a text, but 2 is a number: write \"2\""]),
    (
        "values: [spot]",
        "values: spot",
        &["30 spec.template.spec.requirements[0].values: wants a list, but spot is a text; put \"- \" before each entry"],
    ),
    (
        "values: [spot]",
        "values: [spot]\n        minValues: 2",
        &["31 spec.template.spec.requirements[0].minValues: 2 distinct values are asked for, but only 1 listed; list more or lower it"],
    ),
    (
        "key: karpenter.sh/capacity-type",
        "key: karpenter.k8s.aws/instance-catagory",
        &["28 spec.template.spec.requirements[0].key: key karpenter.k8s.aws/instance-catagory cannot be used: labels of this domain \
                 are set by the autoscaler, and this one is not known; did you mean karpenter.k8s.aws/instance-category?"],
    ),
    (
        "key: karpenter.sh/capacity-type",
        "key: kubernetes.io/hostname",
        &[
            "28 spec.template.spec.requirements[0].key: key kubernetes.io/hostname cannot be used: a node's host name is not known before it exists",
        ],
    ),
    (
        "key: karpenter.sh/capacity-type",
        "key: karpenter.sh/nodepool",
        &[
            "28 spec.template.spec.requirements[0].key: karpenter.sh/nodepool is the pool's own label and cannot be required; take this requirement away",
        ],
    ),
    (
        "consolidationPolicy: WhenEmpty",
        "consolidationPolicy: WhenUnderutilized",
        &["11 spec.disruption.consolidationPolicy: \"WhenUnderutilized\" is the v1beta1 name; write WhenEmptyOrUnderutilized"],
    ),
    (
        "consolidationPolicy: WhenEmpty",
        "consolidationPolicy: whenempty",
        &["11 spec.disruption.consolidationPolicy: \"whenempty\" is not known; did you mean WhenEmpty?"],
    ),
    (
        "consolidateAfter: 1m",
        "consolidateAfter: 1d",
        &["10 spec.disruption.consolidateAfter: \"1d\" is no duration: days are not taken, write 24h"],
    ),
    ("expireAfter: 720h", "expireAfter: never", &["19 spec.template.spec.expireAfter: \"never\" is no duration; did you mean Never?"]),
    ("nodes: 10%", "nodes: 10", &["13 spec.disruption.budgets[0].nodes: wants a text, but 10 is a number: write \"10\""]),
    (
        "nodes: 10%",
        "nodes: 110%",
        &["13 spec.disruption.budgets[0].nodes: \"110%\" is neither a count nor a percentage of nodes; write \"10\" or \"10%\""],
    ),
    (
        "nodes: 10%",
        "schedule: \"@daily\"",
        &["13 spec.disruption.budgets[0]: schedule needs duration beside it: how long the window stays open, such as 8h"],
    ),
    (
        "nodes: 10%",
        "{schedule: 9 o'clock, duration: 8h30s, reasons: [empty]}",
        &[
            "13 spec.disruption.budgets[0].schedule: \"9 o'clock\" is no cron schedule; write five fields (minute hour day month weekday) \
                 such as \"0 9 * * 1-5\", or @daily and the like",
            "13 spec.disruption.budgets[0].reasons: \"empty\" is not known; did you mean Empty?",
            "13 spec.disruption.budgets[0].duration: \"8h30s\" has seconds, but windows take hours and minutes only, such as 8h or 1h30m",
        ],
    ),
    ("weight: 10", "weight: \"5\"", &["6 spec.weight: wants a whole number, but \"5\" is a text: write 5"]),
    ("weight: 10", "weight: 101", &["6 spec.weight: 101 is out of range; write 1 to 100, or leave it out"]),
    (
        "weight: 10",
        "weight: 10\n  replicas: 2",
        &[
            "6 spec.weight: a pool with replicas takes no weight; take one of them away",
            "9 spec.limits.cpu: a pool with replicas may limit nodes only; take this limit away",
        ],
    ),
    (
        "cpu: 10",
        "cpu: 10 cores",
        &[
            "8 spec.limits.cpu: \"10 cores\" is not a quantity: unknown unit \" cores\", use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
        ],
    ),
    ("cpu: 10", "cpu: -1", &["8 spec.limits.cpu: -1 is below zero; write an amount of at least 0"]),
    (
        "group: karpenter.k8s.aws",
        "group: karpenter.k8s.aws/v1",
        &[
            "21 spec.template.spec.nodeClassRef.group: \"karpenter.k8s.aws/v1\" is not a group this version launches from; write karpenter.k8s.aws",
        ],
    ),
    (
        "group: karpenter.k8s.aws",
        "apiVersion: karpenter.k8s.aws/v1beta1",
        &[
            "20 spec.template.spec.nodeClassRef: field group is missing",
            "21 spec.template.spec.nodeClassRef.apiVersion: unknown field apiVersion; known here: group, kind, name",
        ],
    ),
    (
        "effect: NoSchedule",
        "effect: noschedule",
        &["26 spec.template.spec.taints[0].effect: \"noschedule\" is not known; did you mean NoSchedule?"],
    ),
    (
        "effect: NoSchedule",
        "effect: NoSchedule\n      startupTaints: [{key: a.b/c, effect: NoSchedule}]",
        &["27 spec.template.spec.startupTaints: taint a.b/c:NoSchedule is given twice; keep one of them"],
    ),
    (
        "team: a",
        "Team x: a",
        &["17 spec.template.metadata.labels[\"Team x\"]: \"Team x\" is no label key: it takes up to 63 letters, digits, - _ or ., \
                 and a letter or digit at both ends, as in example.com/team"],
    ),
    (
        "team: a",
        "karpenter.sh/team: a",
        &["17 spec.template.metadata.labels[\"karpenter.sh/team\"]: key karpenter.sh/team cannot be used: labels of this domain are \
                 set by the autoscaler, and this one is not known"],
    ),
    (
        "    metadata:\n      labels:\n        team: a\n",
        "    kubelet: {maxPods: 5}\n",
        &["15 spec.template.kubelet: unknown field kubelet; known here: metadata, spec"],
    ),
];

#[test]
fn faults_of_a_node_pool() {
    check("NodePool default", POOL, POOL_FAULTS);
}

const CLASS_FAULTS: &[Row] = &[
    ("  role: nodes\n", "", &["5 spec: role is missing: write the IAM role of the nodes, or an instanceProfile"]),
    (
        "role: nodes",
        "role: nodes\n  instanceProfile: p",
        &["7 spec.instanceProfile: role and instanceProfile exclude each other; keep one of them"],
    ),
    (
        "alias: al2023@latest",
        "alias: al2023",
        &["8 spec.amiSelectorTerms[0].alias: \"al2023\" has no version; write family@version, such as al2023@latest"],
    ),
    (
        "alias: al2023@latest",
        "alias: al2024@latest",
        &["8 spec.amiSelectorTerms[0].alias: image family \"al2024\" is not known; did you mean al2023?"],
    ),
    (
        "alias: al2023@latest",
        "alias: al2023@latest\n  - id: ami-1",
        &["7 spec.amiSelectorTerms: a term with an alias must be the only one; take the others away"],
    ),
    (
        "alias: al2023@latest",
        "id: ami-1",
        &["5 spec: amiFamily is missing: it is needed unless amiSelectorTerms has an alias such as al2023@latest"],
    ),
    (
        "role: nodes",
        "role: nodes\n  amiFamily: AL2",
        &["7 spec.amiFamily: AL2 is not the family of the alias; write AL2023, or leave amiFamily out"],
    ),
    (
        "role: nodes",
        "role: nodes\n  amiFamily: Ubuntu",
        &[
            "7 spec.amiFamily: Ubuntu is no family any more: write amiFamily: AL2023 or Custom and choose the image in amiSelectorTerms",
            "7 spec.amiFamily: Ubuntu is not the family of the alias; write AL2023, or leave amiFamily out",
        ],
    ),
    (
        "subnetSelectorTerms:\n  - tags: {a: b}",
        "subnetSelectorTerms: []",
        &["9 spec.subnetSelectorTerms: needs at least one term, with tags or id"],
    ),
    (
        "subnetSelectorTerms:\n  - tags: {a: b}",
        "subnetSelectorTerms:\n  - id: sn-1",
        &["10 spec.subnetSelectorTerms[0].id: \"sn-1\" is no such id; they look like subnet-0123456789abcdef0"],
    ),
    (
        "subnetSelectorTerms:\n  - tags: {a: b}",
        "subnetSelector:\n    a: b",
        &[
            "5 spec: field subnetSelectorTerms is missing",
            "9 spec.subnetSelector: unknown field subnetSelector; did you mean subnetSelectorTerms?",
        ],
    ),
    ("maxPods: 20", "kubeReserved: {cpus: 1}", &["14 spec.kubelet.kubeReserved.cpus: \"cpus\" is not known; did you mean cpu?"]),
    ("maxPods: 20", "kubeReserved: {cpu: 1}", &["14 spec.kubelet.kubeReserved.cpu: wants a text, but 1 is none: write \"1\""]),
    (
        "maxPods: 20",
        "evictionHard: {memory.available: 120%}",
        &["14 spec.kubelet.evictionHard[\"memory.available\"]: \"120%\" is no percentage from 0% to 100%"],
    ),
    (
        "maxPods: 20",
        "evictionSoft: {memory.available: 5%}",
        &[
            "14 spec.kubelet.evictionSoft[\"memory.available\"]: memory.available stands here but not in evictionSoftGracePeriod; write it in both",
        ],
    ),
    ("maxPods: 20", "maxPods: -1", &["14 spec.kubelet.maxPods: -1 is no count; write a whole number of at least 0"]),
    (
        "role: nodes",
        "role: nodes\n  instanceStorePolicy: Raid0",
        &["7 spec.instanceStorePolicy: \"Raid0\" is not known; did you mean RAID0?"],
    ),
    (
        "role: nodes",
        "role: nodes\n  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20, volumeType: gp4}}]",
        &[
            "7 spec.blockDeviceMappings[0].ebs.volumeSize: \"20\" is no volume size; write a whole number of G, Gi, T or Ti, such as 20Gi",
            "7 spec.blockDeviceMappings[0].ebs.volumeType: \"gp4\" is not known; did you mean gp2?",
        ],
    ),
    (
        "role: nodes",
        "role: nodes\n  metadataOptions: {httpTokens: require, httpPutResponseHopLimit: 65}",
        &[
            "7 spec.metadataOptions.httpTokens: \"require\" is not known; did you mean required?",
            "7 spec.metadataOptions.httpPutResponseHopLimit: 65 is out of range; write 1 to 64",
        ],
    ),
    (
        "role: nodes",
        "role: nodes\n  tags: {karpenter.sh/nodepool: a}",
        &["7 spec.tags[\"karpenter.sh/nodepool\"]: this tag is set by the autoscaler; take it away"],
    ),
];

#[test]
fn faults_of_a_node_class() {
    check("EC2NodeClass default", CLASS, CLASS_FAULTS);
}

const WORKLOAD_FAULTS: &[Row] = &[
    (
        "{cpu: 100m}",
        "{cpus: 100m}",
        &["22 spec.template.spec.containers[0].resources.requests.cpus: unknown resource cpus; did you mean cpu?"],
    ),
    (
        "{cpu: 100m}",
        "{cpu: 100mm}",
        &["22 spec.template.spec.containers[0].resources.requests.cpu: \"100mm\" is not a quantity: unknown unit \"mm\", \
                 use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"],
    ),
    (
        "{cpu: 100m}",
        "{cpu: 2}\n          limits: {cpu: 1500m}",
        &[
            "22 spec.template.spec.containers[0].resources.requests.cpu: 2 is more than its limit 1500m; raise the limit or lower the request",
        ],
    ),
    (
        "labels: {app: web}\n    spec",
        "labels: {app: wbe}\n    spec",
        &[
            "7 spec.selector: does not select the pods of its own template: label app of template.metadata.labels is absent or another; make them agree",
        ],
    ),
    (
        "matchLabels: {app: web}",
        "matchLabel: {app: web}",
        &[
            "7 spec.selector: the selector is missing: write matchLabels with labels of the template",
            "8 spec.selector.matchLabel: unknown field matchLabel; did you mean matchLabels?",
        ],
    ),
    ("replicas: 2", "replicas: two", &["6 spec.replicas: wants a whole number, but two is a text"]),
    ("replicas: 2", "replicas: -2", &["6 spec.replicas: -2 is below zero; write at least 0"]),
    (
        "- name: web\n",
        "- nam: web\n",
        &[
            "19 spec.template.spec.containers[0].nam: unknown field nam; did you mean name?",
            "19 spec.template.spec.containers[0]: the container's name is missing",
        ],
    ),
    (
        "      nodeSelector: {a: b}",
        "      nodeSelector: {a: 5}",
        &["14 spec.template.spec.nodeSelector.a: wants a text, but 5 is a number: write \"5\""],
    ),
    (
        "      nodeSelector: {a: b}",
        "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
              {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gte, values: [\"1\"]}]}]}}}",
        &["14 spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                 .matchExpressions[0].operator: \"Gte\" is not known; did you mean Gt?"],
    ),
    (
        "- key: a\n",
        "- operator: Equal\n",
        &["16 spec.template.spec.tolerations[0]: a toleration without a key tolerates every taint and needs operator Exists"],
    ),
];

#[test]
fn faults_of_a_workload() {
    check("Deployment web", DEPLOYMENT, WORKLOAD_FAULTS);
}

const DOCUMENT_FAULTS: &[(&str, &str)] = &[
    (
        "kind: NodePool\nmetadata: {name: a}\n",
        "f.yaml:1: document 1, NodePool a: apiVersion is missing: for NodePool write apiVersion: karpenter.sh/v1",
    ),
    ("apiversion: v1\nkind: Pod\n", "f.yaml:1: document 1, Pod: apiVersion is missing; apiversion was probably meant so"),
    ("apiVersion: v1\nKind: Pod\n", "f.yaml:1: document 1: kind is missing; Kind was probably meant so"),
    ("apiVersion: v1\nmetadata: {}\n", "f.yaml:1: document 1: kind is missing: write the kind of this object, such as kind: NodePool"),
    ("a: b\n", "f.yaml:1: document 1: this is no Kubernetes object: apiVersion and kind are missing"),
    ("- a\n- b\n", "f.yaml:1: document 1: this is no Kubernetes object: it needs apiVersion, kind and metadata.name"),
    (
        "---\n# nothing\n---\nkind: Deploymnet\napiVersion: apps/v1\nmetadata: {name: a}\n",
        "f.yaml:4: document 2, Deploymnet a, kind: apps/v1 has no kind Deploymnet; did you mean Deployment?",
    ),
    (
        "kind: NodePool\napiVersion: karpenter.sh/v1beta1\nmetadata: {name: a}\n",
        "f.yaml:2: document 1, NodePool a, apiVersion: karpenter.sh/v1beta1 is the version before karpenter.sh/v1; run `whittle convert FILE` and use what it prints",
    ),
    (
        "apiVersion: v1\nkind: Namespace\nmetadata: {}\n",
        "f.yaml:1: document 1, Namespace: metadata.name is missing: give the object a name",
    ),
    (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: My_Space}\n",
        "f.yaml:3: document 1, Namespace My_Space, metadata.name: \"My_Space\" is no object name: it takes lower-case letters, digits, - and ., \
             and a letter or digit at both ends",
    ),
    ("apiVersion: v1\nkind: List\n", "f.yaml:1: document 1, List, items: a list of objects needs items: a list, possibly empty"),
    ("apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n", "f.yaml:4: document 1, Pod: apiVersion is missing: for Pod write apiVersion: v1"),
    (
        "a: b: c\n",
        "f.yaml:1: document 1: this is not YAML: mapping values are not allowed in this context; look at the indentation and quotes of this line and the one before",
    ),
    (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
        "f.yaml:4: document 1, Pod a, spec.containers: a pod needs at least one container",
    ),
    (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec: {containers: [{name: c}]}\n",
        "f.yaml:6: document 1, Job a, spec.template.spec.restartPolicy: a Job's pods may not restart always; write restartPolicy: Never or OnFailure",
    ),
    (
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: half}\n",
        "f.yaml:4: document 1, PodDisruptionBudget a, spec.minAvailable: \"half\" is neither a count nor a percentage; write 1 or 50%",
    ),
];

#[test]
fn faults_of_a_document_as_a_whole() {
    for (text, fault) in DOCUMENT_FAULTS {
        assert_eq!(told(text), [*fault], "{text}");
    }
}

#[test]
fn all_faults_of_a_file_are_told_in_its_order() {
    let text = format!(
        "{}---\n{}---\n{}---\na: [\n",
        POOL.replace("weight: 10", "weight: 0").replace("team: a", "team: a b"),
        CLASS.replace("al2023@latest", "al2023"),
        DEPLOYMENT
    );
    let lines: Vec<String> = told(&text).iter().map(|t| t.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    assert_eq!(
        lines,
        [
            "f.yaml:6: document 1, NodePool default, spec.weight",
            "f.yaml:17: document 1, NodePool default, spec.template.metadata.labels.team",
            "f.yaml:39: document 2, EC2NodeClass default, spec.amiSelectorTerms[0].alias",
            "f.yaml:70: document 4",
        ]
    );
}

#[test]
fn a_priority_class_that_is_not_there_is_told() {
    let objects = read(DEPLOYMENT, "f.yaml", Strictness::Strict).expect("the deployment reads");
    let error = link(objects).expect_err("there is no such class");
    assert_eq!(
        error.to_string(),
        "f.yaml:1: document 1, Deployment web, spec.template.spec.priorityClassName: there is no PriorityClass \"high\"; add it, or take the field away"
    );
    let with = format!("{DEPLOYMENT}---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: high}}\nvalue: 5\n");
    assert!(link(read(&with, "f.yaml", Strictness::Strict).expect("reads")).is_ok());
}
