//! `whittle policy` and policies in simulations, as a new user meets them: outside the workspace, by
//! words alone.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Answer, Folder, POD, POOL, root, whittle};
use serde_json::Value;

/// Runs `whittle` in a folder.
fn whittle_in(folder: &Path, args: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_whittle")).args(args).current_dir(folder).output().expect("cargo has built the binary");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("answers are text");
    Answer { stdout: text(output.stdout), stderr: text(output.stderr), exit: output.status.code() }
}

/// The answer of a run that went well.
fn done(answer: Answer) -> String {
    assert_eq!(answer.exit, Some(0), "{}", answer.stderr);
    answer.stdout
}

fn build(folder: &Path, name: &str) -> Answer {
    // What the SDK is made of is compiled once for all tests and runs.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scaffold");
    whittle_in(folder, &["policy", "build", name, "--target-dir", target.to_str().expect("the path is made of text")])
}

fn policy(name: &str, spec: &str) -> String {
    format!("apiVersion: whittle.sh/v1alpha1\nkind: ScoringPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

fn pool_with(chain: &str) -> String {
    POOL.replace("  name: default\nspec", &format!("  name: default\n  annotations:\n    whittle.sh/policy: \"{chain}\"\nspec"))
        .replace("[\"c7i\"]", "[\"c7i\", \"m7i\"]")
}

fn summary(stdout: &str) -> Value {
    let last: Value = serde_json::from_str(stdout.lines().last().expect("there is a last line")).expect("each line is JSON");
    last["summary"].clone()
}

fn nodes(stdout: &str) -> Vec<Value> {
    summary(stdout)["nodes"].as_array().expect("the summary lists nodes").clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("names are texts").to_owned()
}

/// What the nodes of an answer are.
fn types(stdout: &str) -> Vec<String> {
    nodes(stdout).iter().map(|node| text(&node["type"])).collect()
}

#[test]
fn a_policy_is_written_built_tried_and_one_line_of_it_changes_the_plan() {
    let folder = Folder::new("own", &[("pool.yaml", &pool_with("")), ("pod.yaml", POD)]);
    let here = folder.0.as_path();
    assert!(done(whittle_in(here, &["policy", "new", "x"])).contains("Next: whittle policy build x"));
    assert!(whittle_in(here, &["policy", "new", "x"]).stderr.contains("x is there already"));
    let source = here.join("x/src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("\"m8i\"", "\"c7i\"")).unwrap();
    assert_eq!(done(build(here, "x")), "x/x.wasm\n");

    let checked = done(whittle_in(here, &["policy", "check", "x/x.wasm"]));
    for part in ["x 0.1.0\n", "imports    none", "of candidates: rank-micros, family", "smoke run  passed", "\"maximum\": 99"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let simulate = |more: &[&str]| done(whittle_in(here, &[&["simulate", ".", "--json"], more].concat()));
    let with = ["--policy", "x=x/x.wasm"];
    assert_eq!((types(&simulate(&[])), types(&simulate(&with))), (vec!["c7i.large".to_owned()], vec!["c7i.large".to_owned()]));

    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("vec![\"c7i\".to_owned()]", "vec![\"m7i\".to_owned()]")).unwrap();
    done(build(here, "x"));
    let changed = simulate(&with);
    assert_eq!(types(&changed), ["m7i.large"]);
    assert!(changed.contains("no NodePool names it, so it stands at the end of every NodePool's chain"), "{changed}");
    fs::write(here.join("config.json"), "{\"percent\": 0}").unwrap();
    assert_eq!(types(&simulate(&["--policy", "x=x/x.wasm:config.json"])), ["c7i.large"]);
    fs::write(here.join("config.json"), "{\"percent\": 100}").unwrap();
    let refused = whittle_in(here, &["simulate", ".", "--policy", "x=x/x.wasm:config.json"]);
    assert_eq!(refused.exit, Some(2));
    assert!(refused.stderr.contains("--policy x: policy x: config/percent: 100 is greater than the maximum of 99"), "{}", refused.stderr);
}

#[test]
fn the_example_is_what_the_scaffold_makes() {
    let folder = Folder::new("scaffold", &[]);
    done(whittle_in(&folder.0, &["policy", "new", "my-policy"]));
    let kept = root().join("examples/my-policy/policy");
    for file in [".gitignore", "Cargo.toml", "README.md", "src/lib.rs"] {
        let read = |folder: &Path| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(read(&folder.0.join("my-policy")), read(&kept), "{file}");
    }
    let sdk = folder.0.join("my-policy/sdk");
    assert_eq!(fs::read_to_string(sdk.join("wit/policy.wit")).unwrap(), fs::read_to_string(root().join("sdk/wit/policy.wit")).unwrap());
    assert!(fs::read_to_string(folder.0.join("my-policy/Cargo.lock")).unwrap().contains("name = \"wit-bindgen\""));
    for bad in ["My", "1x", "a_b", "-a", "a/"] {
        let answer = whittle_in(&folder.0, &["policy", "new", "--", bad]);
        assert!(answer.exit == Some(2) || bad == "a/", "{bad}: {answer:?}");
    }
}

#[test]
fn a_module_that_is_no_policy_is_named_with_what_is_wrong() {
    let folder = Folder::new("modules", &[("pool.yaml", &pool_with("")), ("pod.yaml", POD), ("text.wasm", "hello")]);
    let write = |name: &str, wat: &str| fs::write(folder.0.join(name), wat::parse_str(wat).unwrap()).unwrap();
    write("core.wasm", "(module)");
    write("clock.wasm", "(component (import \"wasi:clocks/wall-clock@0.2.0\" (instance)))");
    write("other.wasm", "(component)");
    for (file, says) in [
        ("text.wasm", "text.wasm: this is no WebAssembly"),
        ("core.wasm", "core.wasm: this is a core module, a component is wanted: `whittle policy build` makes one"),
        ("clock.wasm", "clock.wasm: it imports wasi:clocks/wall-clock@0.2.0: a policy is a pure function and imports nothing"),
        ("other.wasm", "other.wasm: it is no policy of contract whittle:policy/scoring@0.1.0"),
        ("none.wasm", "cannot read none.wasm"),
        ("pool.yaml", "`whittle policy build DIR` makes a .wasm"),
    ] {
        for args in [vec!["simulate", ".", "--policy", &format!("a={file}")], vec!["policy", "check", file]] {
            let answer = whittle_in(&folder.0, &args);
            assert_eq!(answer.exit, Some(2), "{args:?}");
            assert!(answer.stderr.contains(says), "{args:?}: {}", answer.stderr);
        }
    }
    let answer = whittle_in(&folder.0, &["policy", "build", "."]);
    assert!(answer.stderr.contains("holds no policy") && answer.stderr.contains("`whittle policy new .` makes one"), "{}", answer.stderr);
}

#[test]
fn policies_among_the_manifests_are_checked_all_at_once() {
    let cases = [
        (
            "{mode: Enforce, module: {builtin: team-rules}, config: {rules: [{name: a, atMost: {cpu: -1}}]}}",
            "p.yaml:1: ScoringPolicy a: policy team-rules: config/rules/0/atMost/cpu: -1 is ",
        ),
        (
            "{mode: Enforce, module: {builtin: spot-shar}}",
            "spec.module.builtin: no policy \"spot-shar\" is built in; did you mean spot-share?",
        ),
        (
            "{mode: Enforce, module: {oci: {image: a}}}",
            "spec.module.oci is not available in a simulation; give the component by --policy a=FILE.wasm",
        ),
        ("{mode: Enforce, module: {configMap: {name: a, key: b}}}", "spec.module.configMap is not available in a simulation"),
        ("{mode: Enforce, module: {file: {path: no.wasm}}}", "spec.module.file.path: cannot read "),
        ("{mode: Enforce, module: {}}", "spec.module: says no source: write one of builtin, file, configMap, oci"),
        ("{mode: Enforce, module: {builtin: a, file: {path: b}}}", "spec.module: builtin and file exclude each other; keep one of them"),
        ("{module: {builtin: spot-share}}", "spec.mode: is missing: write Enforce, or Observe"),
        ("{mode: enforce, module: {builtin: spot-share}}", "spec.mode: \"enforce\" is not known; did you mean Enforce?"),
        ("{mode: Enforce, module: {builtin: spot-share}, onFailure: {moves: Close}}", "spec.onFailure.moves: \"Close\" is not known"),
        ("{mode: Enforce, module: {builtin: spot-share}, limits: {memory: 2Gi}}", "spec.limits.memory: 2Gi is out of range"),
        ("{mode: Enforce, module: {builtin: spot-share}, confg: {}}", "unknown field confg; did you mean config?"),
    ];
    for (number, (spec, says)) in cases.into_iter().enumerate() {
        let folder =
            Folder::new(&format!("objects-{number}"), &[("pool.yaml", &pool_with("a")), ("pod.yaml", POD), ("p.yaml", &policy("a", spec))]);
        let answer = whittle(&["simulate", folder.path()]);
        assert_eq!(answer.exit, Some(2), "{spec}");
        assert!(answer.stderr.contains(says), "{spec}: {}", answer.stderr);
    }
    let two =
        format!("{}---\n{}", policy("a", "{mode: Enforce, module: {builtin: x}}"), policy("b", "{mode: Enforce, module: {builtin: z}}"));
    let folder = Folder::new("objects-all", &[("pool.yaml", &pool_with("a")), ("pod.yaml", POD), ("p.yaml", &two)]);
    let said = whittle(&["simulate", folder.path()]).stderr;
    assert!(said.contains("p.yaml:1: ScoringPolicy a") && said.contains("p.yaml:6: ScoringPolicy b"), "{said}");
}

#[test]
fn a_missing_policy_holds_its_pool_unless_it_is_optional() {
    let folder = |name: &str, chain: &str| Folder::new(name, &[("pool.yaml", &pool_with(chain)), ("pod.yaml", POD)]);
    let held = whittle(&["simulate", folder("missing", "lost").path()]);
    assert!(
        held.stdout.contains("its policy lost exists nowhere, so nothing is bought for the pool; lost? would go on"),
        "{}",
        held.stdout
    );
    assert!(held.stdout.contains("0 nodes, 0 pods running, 1 pending"), "{}", held.stdout);
    let free = whittle(&["simulate", folder("optional", "lost?").path()]);
    assert!(free.stdout.contains("its policy lost exists nowhere; it is optional, so the others decide"), "{}", free.stdout);
    assert!(free.stdout.contains("1 node, 1 pod running, 0 pending"), "{}", free.stdout);
}

#[test]
fn rules_that_nothing_fences_are_named_and_modes_are_told() {
    let rules = "{mode: Enforce, module: {builtin: team-rules}, config: {rules: [{name: no-c, match: {namespaces: [default]}, forbid: {families: [c7i]}}]}}";
    let run = |name: &str, pool: &str, spec: &str| {
        let folder = Folder::new(name, &[("pool.yaml", pool), ("pod.yaml", POD), ("p.yaml", &policy("rules", spec))]);
        done(whittle(&["simulate", folder.path(), "--json"]))
    };
    let open = run("open", &pool_with("rules"), rules);
    assert_eq!(types(&open), ["m7i.large"]);
    assert!(open.contains("no taint fences NodePool default") && open.contains("rule no-c"), "{open}");
    let taint = "spec:\n      taints: [{key: a, effect: NoSchedule}]\n      requirements";
    let fenced = run("fenced", &pool_with("rules").replace("spec:\n      requirements", taint), rules);
    assert!(!fenced.contains("no taint fences"), "{fenced}");
    let observed = run("observed", &pool_with("rules"), &rules.replace("Enforce", "Observe"));
    assert_eq!(types(&observed), ["c7i.large"]);
    assert!(observed.contains("it is observed, its answers do not count"), "{observed}");
    let never = run("never", &pool_with(""), rules);
    assert!(never.contains("no NodePool names it in whittle.sh/policy, so it is never asked"), "{never}");
}

#[test]
fn cases_say_what_passed_and_what_did_not() {
    let folder = Folder::new("cases", &[("cases.yaml", CASES)]);
    let answer = whittle_in(&folder.0, &["policy", "run", "team-rules", "cases.yaml"]);
    let wanted = "\
ok    a small node is allowed, a large one is not
ok    a word that is none
FAIL  wrong
        candidate 0: rank 7; expected {\"rank\":8}
        candidate 1: vetoed: rule small: 8000 mCPU, at most 4000 are allowed; expected unchanged
FAIL  case 4
        candidates[0].familly: there is no such column; did you mean family?
2 passed, 2 failed
";
    assert_eq!((answer.exit, answer.stdout.as_str()), (Some(1), wanted), "{}", answer.stderr);
    fs::write(folder.0.join("cases.yaml"), "- {nme: a}\n").unwrap();
    let answer = whittle_in(&folder.0, &["policy", "run", "team-rules", "cases.yaml"]);
    assert!(answer.exit == Some(2) && answer.stderr.contains("cases.yaml:1: [0].nme: unknown field nme; did you mean name?"), "{answer:?}");
}

const CASES: &str = "\
- name: a small node is allowed, a large one is not
  config: {rules: [{name: small, atMost: {cpu: 4}}]}
  candidates: [{cpu-milli: 4000, rank-micros: 7}, {cpu-milli: 8000, rank-micros: 7}]
  prices: [unchanged, {veto: at most 4000}]
- name: a word that is none
  config: {rules: [{name: small, atMost: {memory: 4G}}]}
  refused: memory
- name: wrong
  config: {rules: [{name: small, atMost: {cpu: 4}}]}
  candidates: [{cpu-milli: 4000, rank-micros: 7}, {cpu-milli: 8000, rank-micros: 7}]
  prices: [{rank: 8}, unchanged]
- config: {rules: [{name: small, atMost: {cpu: 4}}]}
  candidates: [{familly: m7i}]
  prices: [1]
";

#[test]
fn built_in_policies_are_listed_in_their_own_words() {
    let all = done(whittle(&["policy", "list"]));
    for name in ["calendar", "formula", "payback", "price-book", "spot-share", "team-rules", "utilization-floor"] {
        let line = all.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.trim_end().ends_with(|last: char| !last.is_ascii_digit()), "{name} says nothing of itself: {line}");
        let one = done(whittle(&["policy", "list", name]));
        assert!(one.contains("Configuration (JSON schema)") && one.contains("additionalProperties"), "{one}");
    }
    assert!(whittle(&["policy", "list", "spotshare"]).stderr.contains("did you mean spot-share?"));
}

/// Pods on nodes of each capacity type.
fn pods_by_capacity_type(stdout: &str) -> BTreeMap<String, i64> {
    let mut pods = BTreeMap::new();
    for node in nodes(stdout) {
        *pods.entry(text(&node["capacityType"])).or_insert(0) += node["pods"].as_i64().expect("pods are counted");
    }
    pods
}

#[test]
fn the_share_is_held_after_each_scale_up_and_only_because_of_the_policy() {
    let example = root().join("examples/spot-share");
    let read = |name: &str| fs::read_to_string(example.join(name)).unwrap();
    let (pool, story) = (read("nodepool.yaml"), read("story"));
    let told = |name: &str, pool: &str, story: &str| {
        let files = [("nodepool.yaml", pool), ("story", story), ("nodeclass.yaml", &read("nodeclass.yaml"))];
        let more = [("policy.yaml", read("policy.yaml")), ("web.yaml", read("web.yaml"))];
        let folder = Folder::new(name, &files);
        more.iter().for_each(|(file, text)| fs::write(folder.0.join(file), text).unwrap());
        pods_by_capacity_type(&done(whittle(&["simulate", folder.path(), "--json"])))
    };
    let lines: Vec<&str> = story.lines().filter(|line| !line.starts_with('#')).collect();
    let ends: Vec<usize> = lines.iter().enumerate().filter(|(_, line)| **line == "until pods running").map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 2, "a scale-up, and one that follows a scale-down");
    for end in ends {
        let pods = told(&format!("share-{end}"), &pool, &lines[..=end].join("\n"));
        let (all, on_demand) = (pods.values().sum::<i64>(), pods.get("on-demand").copied().unwrap_or(0));
        // Of the pods above the first two 30 % are on demand, within 5 points of all.
        let wanted = 2.0 + (all - 2) as f64 * 0.3;
        assert!((on_demand as f64 - wanted).abs() <= 0.05 * all as f64, "{on_demand} of {all} pods are on demand, {wanted} are wanted");
    }
    let plain = pool.replace("    whittle.sh/policy: spot-share\n", "    a: b\n");
    assert_ne!(plain, pool);
    assert_eq!(told("no-share", &plain, &story).keys().collect::<Vec<_>>(), ["spot"]);
}
