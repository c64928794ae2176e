//! ScoringPolicy objects: what is read of them, and what is said of wrong ones.

use whittle_cluster::{ModuleSource, Object, PolicyMode, PolicyStance, ScoringPolicyObject, Strictness, read};

fn policy(spec: &str) -> String {
    format!("apiVersion: whittle.sh/v1alpha1\nkind: ScoringPolicy\nmetadata: {{name: a}}\nspec: {spec}\n")
}

fn object(spec: &str) -> ScoringPolicyObject {
    let mut objects = read(&policy(spec), "f.yaml", Strictness::Strict).expect(spec);
    match objects.pop().map(|located| located.object) {
        Some(Object::ScoringPolicy(policy)) => *policy,
        other => unreachable!("{other:?} is no policy"),
    }
}

#[test]
fn all_that_is_written_is_read_and_the_rest_has_its_default() {
    let least = object("{mode: Enforce, module: {builtin: spot-share}}");
    assert_eq!(least.module, Some(ModuleSource::Builtin("spot-share".into())));
    assert_eq!((least.mode, least.candidates, least.moves), (PolicyMode::Enforce, PolicyStance::Ignore, PolicyStance::Closed));
    assert_eq!((least.config, least.fuel, least.memory), (serde_json::json!({}), None, None));
    let all = object(
        "{mode: Observe, module: {file: {path: a.wasm}}, onFailure: {candidates: Closed, moves: Ignore}, \
         limits: {fuel: 7, memory: 64Mi}, config: {a: [1, x, true, 0.5, null]}}",
    );
    assert_eq!(all.module, Some(ModuleSource::File("a.wasm".into())));
    assert_eq!((all.mode, all.candidates, all.moves), (PolicyMode::Observe, PolicyStance::Closed, PolicyStance::Ignore));
    assert_eq!((all.config, all.fuel, all.memory), (serde_json::json!({"a": [1, "x", true, 0.5, null]}), Some(7), Some(64 << 20)));
    let oci = object("{mode: Enforce, module: {oci: {image: 'reg/x:1.2', digest: 'sha256:1', pullSecret: s}}}");
    assert_eq!(oci.module.map(|module| module.field()), Some("oci"));
}

#[test]
fn what_is_wrong_is_told_with_its_path() {
    for (spec, says) in [
        ("{mode: Enforce}", "spec: field module is missing"),
        ("{mode: Enforce, module: {}}", "spec.module: says no source: write one of builtin, file, configMap, oci"),
        ("{mode: Enforce, module: {builtin: a, oci: {image: b}}}", "spec.module: builtin and oci exclude each other; keep one of them"),
        ("{module: {builtin: a}}", "spec.mode: is missing: write Enforce, or Observe"),
        ("{mode: Observ, module: {builtin: a}}", "spec.mode: \"Observ\" is not known; did you mean Observe?"),
        (
            "{mode: Enforce, module: {builtin: a}, onFailure: {candidates: Open}}",
            "spec.onFailure.candidates: \"Open\" is not known; write one of Ignore, Closed",
        ),
        ("{mode: Enforce, module: {builtin: a}, limits: {fuel: 0}}", "spec.limits.fuel: a policy cannot run without fuel"),
        ("{mode: Enforce, module: {builtin: a}, limits: {memory: 2Gi}}", "spec.limits.memory: 2Gi is out of range; write up to 1Gi"),
        ("{mode: Enforce, module: {builtn: a}}", "spec.module.builtn: unknown field builtn; did you mean builtin?"),
    ] {
        let error = read(&policy(spec), "f.yaml", Strictness::Strict).expect_err(spec).to_string();
        assert!(error.contains(&format!("ScoringPolicy a, {says}")), "{spec}: {error}");
    }
    let other = policy("{}").replace("v1alpha1", "v1");
    let error = read(&other, "f.yaml", Strictness::Strict).expect_err("the version is not read").to_string();
    assert!(error.contains("write apiVersion: whittle.sh/v1alpha1"), "{error}");
}
