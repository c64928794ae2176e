//! `v1beta1` manifests into `v1`.

use whittle_cluster::{Object, Strictness, convert::to_v1, read};

fn fixture() -> String {
    let path = format!("{}/tests/fixtures/v1beta1.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the fixture is there")
}

const WANTED: &str = r#"apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    metadata:
      annotations:
        karpenter.sh/do-not-disrupt: "true"
    spec:
      nodeClassRef:
        kind: EC2NodeClass
        name: default
        group: karpenter.k8s.aws
      requirements:
        - key: karpenter.sh/capacity-type
          operator: In
          values:
            - "on-demand"
      expireAfter: 480h
  limits:
    cpu: 1000
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 0s
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: KarpenterNodeRole-demo
  subnetSelectorTerms:
    - tags:
        karpenter.sh/discovery: demo
  securityGroupSelectorTerms:
    - tags:
        karpenter.sh/discovery: demo
  userData: |
    #!/bin/bash
    echo "hello: world"
  amiSelectorTerms:
    - alias: al2023@latest
  metadataOptions:
    httpPutResponseHopLimit: 2
  kubelet:
    maxPods: 20
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: untouched
data:
  flag: "yes"
"#;

#[test]
fn a_file_is_converted_and_the_changes_are_told() {
    let converted = to_v1(&fixture(), "old.yaml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(converted.yaml, WANTED);
    let pool = "NodePool default";
    let class = "EC2NodeClass default";
    assert_eq!(
        converted.changes,
        [
            format!("{pool}: apiVersion: karpenter.sh/v1beta1 is now karpenter.sh/v1"),
            format!(
                "{pool}: spec.template.metadata.annotations: annotation karpenter.sh/do-not-consolidate is now karpenter.sh/do-not-disrupt"
            ),
            format!("{pool}: spec.template.spec.nodeClassRef: apiVersion is now group: karpenter.k8s.aws"),
            format!("{pool}: spec.template.spec.kubelet moved to EC2NodeClass default"),
            format!(
                "{pool}: spec.disruption.expireAfter moved to spec.template.spec.expireAfter; expired nodes now drain at once, without waiting for budgets or a replacement"
            ),
            format!("{pool}: spec.disruption.consolidationPolicy was WhenUnderutilized and is now WhenEmptyOrUnderutilized"),
            format!("{pool}: spec.disruption.consolidateAfter is required and is now 0s, which is what v1beta1 did"),
            format!("{class}: apiVersion: karpenter.k8s.aws/v1beta1 is now karpenter.k8s.aws/v1"),
            format!("{class}: spec.amiFamily: AL2023 is now amiSelectorTerms with alias al2023@latest; pin a version for production"),
            format!(
                "{class}: spec.metadataOptions.httpPutResponseHopLimit is now written as 2, the default of v1beta1; that of v1 is 1, which keeps pods from the instance's credentials: set 1 if no pod needs them"
            ),
            format!("{class}: spec.kubelet is what {pool} had in spec.template.spec.kubelet"),
            "comments are not carried over; copy those you want to keep".to_owned(),
        ]
    );
}

#[test]
fn what_comes_out_is_read_without_fault_and_does_not_change_again() {
    let once = to_v1(&fixture(), "old.yaml").unwrap_or_else(|e| panic!("{e}"));
    let objects = read(&once.yaml, "new.yaml", Strictness::Strict).unwrap_or_else(|e| panic!("{e}"));
    let Object::NodeClass(class) = &objects[1].object else { panic!("{:?}", objects[1]) };
    assert_eq!((class.family.as_str(), class.kubelet.max_pods), ("AL2023", Some(20)));
    let twice = to_v1(&once.yaml, "new.yaml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((twice.yaml, twice.changes), (once.yaml, Vec::new()));
}

#[test]
fn kubelet_settings_that_cannot_be_placed_are_told_in_full() {
    let pool = fixture().split("---\n").next().map(str::to_owned).expect("the pool comes first");
    let alone = to_v1(&pool, "f").unwrap_or_else(|e| panic!("{e}"));
    let tail: Vec<&str> = alone.changes.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(
        tail,
        [
            "to do by hand: kubelet settings of NodePool default belong to spec.kubelet of EC2NodeClass default, which is not in this file:",
            "  NodePool default:   maxPods: 20",
            "comments are not carried over; copy those you want to keep",
        ]
    );
    let other = pool.replace("  name: default\nspec", "  name: other\nspec").replace("maxPods: 20", "maxPods: 30");
    let two = to_v1(&format!("{}---\n{other}", fixture()), "f").unwrap_or_else(|e| panic!("{e}"));
    assert!(two.changes.iter().any(|c| c.contains("and they differ: give each pool a class of its own")), "{:?}", two.changes);
    assert!(!two.yaml.contains("maxPods"));
}

#[test]
fn lists_are_converted_item_by_item() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: karpenter.sh/v1beta1\n  kind: NodeClaim\n  metadata: {name: c}\n  \
                spec: {nodeClassRef: {name: d}, kubelet: {maxPods: 3}, requirements: []}\n";
    let converted = to_v1(text, "f").unwrap_or_else(|e| panic!("{e}"));
    let objects = read(&converted.yaml, "f", Strictness::Strict).unwrap_or_else(|e| panic!("{e}\n{}", converted.yaml));
    let Object::NodeClaim(claim) = &objects[0].object else { panic!("{:?}", objects[0]) };
    assert_eq!(claim.node_class, "d");
}

#[test]
fn what_v1_does_not_have_is_refused_with_advice() {
    let class = |family: &str| {
        format!("apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {{name: c}}\nspec:\n  role: r\n{family}")
    };
    for (text, wanted) in [
        (
            class("  amiFamily: Ubuntu\n"),
            "f:6: document 1, EC2NodeClass c, spec.amiFamily: v1 has no Ubuntu family: write amiFamily: AL2 (the same user data) and choose \
             the images in amiSelectorTerms, by id or by name and owner, then convert again",
        ),
        (
            class("  amiFamily: Custom\n"),
            "f:6: document 1, EC2NodeClass c, spec.amiFamily: family Custom has no images of its own: write amiSelectorTerms, then convert again",
        ),
        (
            class(""),
            "f:4: document 1, EC2NodeClass c, spec: amiFamily is missing, which v1beta1 requires: write the family, such as AL2023, then convert again",
        ),
        (
            "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\n".to_owned(),
            "f:1: document 1, Provisioner p, apiVersion: Provisioner of karpenter.sh/v1alpha5 is from before v1beta1 and is not converted; \
             write NodePool of karpenter.sh/v1 instead",
        ),
        ("a: [\n".to_owned(), "f:1: document 1: this is not YAML"),
    ] {
        let error = to_v1(&text, "f").expect_err(&text).to_string();
        assert!(error.starts_with(wanted), "{text}{error}");
    }
}
