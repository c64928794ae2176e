//! What is written down twice because two programs read it stays the same: CRDs beside the charts, versions, IAM
//! policies as files and inside the CloudFormation template.

use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the workspace").to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the file is part of the repository")
}

fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn charts_carry_the_generated_crds() {
    for folder in ["charts/whittle/crds", "charts/whittle-crd/files"] {
        assert_eq!(names(folder), names("crds"), "copy crds/*.yaml to {folder}");
        for name in names("crds") {
            assert_eq!(read(&format!("{folder}/{name}")), read(&format!("crds/{name}")), "copy crds/{name} to {folder}");
        }
    }
}

#[test]
fn charts_have_the_version_of_the_workspace() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("the manifest is TOML");
    let version = manifest["workspace"]["package"]["version"].as_str().expect("it has a version").to_owned();
    for chart in ["charts/whittle/Chart.yaml", "charts/whittle-crd/Chart.yaml"] {
        for key in ["version", "appVersion"] {
            assert!(read(chart).contains(&format!("\n{key}: {version}\n")), "{chart}: {key} is not {version}");
        }
    }
}

/// Policy documents that stand as texts in the template: from an opening brace at the start of a block to its end.
fn documents(template: &str) -> Vec<Value> {
    let mut documents = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for line in template.lines() {
        let indent = line.len() - line.trim_start().len();
        match &mut block {
            None if line.trim() == "{" => block = Some((indent, line.to_owned())),
            None => {}
            Some((at, text)) => {
                text.push('\n');
                text.push_str(line);
                if indent == *at && line.trim() == "}" {
                    documents.push(serde_json::from_str(text).expect("a document is JSON"));
                    block = None;
                }
            }
        }
    }
    documents
}

#[test]
fn the_template_has_the_policies_of_the_files() {
    let of_template = documents(&read("examples/aws/cloudformation.yaml"));
    let files = names("examples/aws/policies");
    let of_files: Vec<(String, Value)> = files
        .into_iter()
        .filter(|name| name != "observe.json")
        .map(|name| (name.clone(), serde_json::from_str(&read(&format!("examples/aws/policies/{name}"))).expect("it is JSON")))
        .collect();
    assert_eq!(of_template.len(), of_files.len());
    for (name, document) in of_files {
        assert!(of_template.contains(&document), "cloudformation.yaml has not the document of {name}");
    }
}

#[test]
fn an_observer_may_only_read() {
    let document: Value = serde_json::from_str(&read("examples/aws/policies/observe.json")).expect("it is JSON");
    let statements = document["Statement"].as_array().expect("there are statements");
    for action in statements.iter().flat_map(|statement| statement["Action"].as_array().into_iter().flatten()) {
        let verb = action.as_str().and_then(|action| action.split_once(':')).expect("an action has a service").1;
        assert!(["Describe", "Get", "List"].iter().any(|word| verb.starts_with(word)), "{action}");
    }
    assert!(!statements.is_empty());
}

/// Groups, resources and verbs of the rules of a piece of the ClusterRole.
fn rules(text: &str) -> Vec<[Vec<String>; 3]> {
    let list = |rule: &str, key: &str| {
        let line = rule.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key)).expect("a rule has all three");
        line.trim_matches([' ', '[', ']']).split(',').map(|word| word.trim().trim_matches('"').to_owned()).collect()
    };
    let all = text.split("\n  - ").filter(|rule| rule.starts_with("apiGroups:"));
    all.map(|rule| ["apiGroups:", "resources:", "verbs:"].map(|key| list(rule, key))).collect()
}

#[test]
fn the_cluster_role_reads_always_and_writes_only_where_it_acts() {
    let role = read("charts/whittle/templates/clusterrole.yaml");
    let (reads, rest) = role.split_once("{{- if eq (lower .Values.mode) \"enforce\" }}").expect("what is written stands apart");
    let (writes, _) = rest.split_once("{{- end }}").expect("the condition ends");
    let reads = rules(reads);
    assert!(!reads.is_empty() && reads.iter().all(|[_, _, verbs]| verbs == &["get", "list", "watch"]), "{reads:?}");
    let writes = rules(writes);
    for (group, resource, verb) in [
        ("karpenter.sh", "nodeclaims", "create"),
        ("karpenter.sh", "nodeclaims", "delete"),
        ("karpenter.sh", "nodeclaims/status", "patch"),
        ("karpenter.sh", "nodepools/status", "patch"),
        ("karpenter.sh", "nodeoverlays/status", "patch"),
        ("", "nodes", "patch"),
        ("", "nodes", "delete"),
        ("", "pods/eviction", "create"),
        ("", "pods", "delete"),
        ("", "pods/status", "patch"),
        ("", "events", "create"),
        ("autoscaling.x-k8s.io", "capacitybuffers/status", "patch"),
    ] {
        let has = |list: &[String], word: &str| list.iter().any(|have| have == word);
        let granted = writes.iter().any(|[groups, resources, verbs]| has(groups, group) && has(resources, resource) && has(verbs, verb));
        assert!(granted, "{verb} {group}/{resource}");
    }
}

#[test]
fn the_cluster_role_knows_capacity_buffers_only_behind_their_gate() {
    const GATE: &str = "{{- if .Values.settings.featureGates.capacityBuffer }}";
    let role = read("charts/whittle/templates/clusterrole.yaml");
    let mut gated = role.split(GATE);
    let mut open = gated.next().expect("a text has a beginning").to_owned();
    for block in gated {
        let (inside, after) = block.split_once("{{- end }}").expect("the condition ends");
        assert!(!rules(inside).is_empty());
        open += after;
    }
    let buffers = |[_, resources, _]: &[Vec<String>; 3]| resources.iter().any(|r| r.starts_with("capacitybuffers") || r == "podtemplates");
    assert!(!rules(&open).iter().any(buffers));
    assert_eq!(rules(&role).iter().filter(|rule| buffers(rule)).count(), 3);
}
