//! Typed reading: values, mismatches with their place, unknown fields.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time, util::intstr::IntOrString};
use serde::Deserialize;

use super::*;
use crate::yaml::parse;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Sample {
    must: Option<String>,
    weight: Option<i32>,
    quiet: Option<bool>,
    names: Option<Vec<String>>,
    limits: Option<BTreeMap<String, Quantity>>,
    port: Option<IntOrString>,
    ratio: Option<f64>,
    since: Option<Time>,
    inner: Option<Inner>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Inner {
    key: String,
}

fn reading(text: &str) -> Reading<Sample> {
    read(&parse(text).0[0].root)
}

#[test]
fn values_are_read_as_their_type_wants_them() {
    let text = "must: \"5\"\nweight: 1e1\nquiet: yes\nnames: [a, '1']\nlimits: {cpu: 0.50, memory: 1Gi, pods: \"3\"}\n\
                port: 10%\nratio: 2\nsince: 2026-01-31T12:00:00Z\ninner: {key: x}\n";
    let Reading { value, unknown } = reading(text);
    assert_eq!(unknown, []);
    let sample = value.expect("the sample reads");
    let limits = sample.limits.clone().unwrap_or_default();
    assert_eq!(limits.values().map(|q| q.0.as_str()).collect::<Vec<_>>(), ["0.50", "1Gi", "3"]);
    assert_eq!((sample.weight, sample.quiet, sample.ratio), (Some(10), Some(true), Some(2.0)));
    assert_eq!(sample.port, Some(IntOrString::String("10%".into())));
    assert_eq!(reading("port: 8080").value.expect("reads").port, Some(IntOrString::Int(8080)));
    assert_eq!(reading("weight:\nmust: ~\n").value.expect("empty fields are absent").weight, None);
}

#[test]
fn every_mismatch_names_line_path_and_remedy() {
    for (text, line, path, what) in [
        ("weight: \"5\"", 1, "weight", "wants a whole number, but \"5\" is a text: write 5"),
        ("weight: high", 1, "weight", "wants a whole number, but high is a text"),
        ("weight: 1.5", 1, "weight", "wants a whole number, but 1.5 is a number"),
        ("must: 5", 1, "must", "wants a text, but 5 is a number: write \"5\""),
        ("must: yes", 1, "must", "wants a text, but yes is read as true or false by YAML: write \"yes\""),
        ("must: [a]", 1, "must", "wants a text, but this is a list"),
        ("quiet: \"true\"", 1, "quiet", "wants true or false, but \"true\" is a text: write true"),
        ("names: a", 1, "names", "wants a list, but a is a text; put \"- \" before each entry"),
        ("names:\n- a\n- b: 1", 3, "names[1]", "wants a text, but this is a mapping"),
        (
            "limits:\n  nvidia.com/gpu: [1]",
            2,
            "limits[\"nvidia.com/gpu\"]",
            "wants a quantity such as 500m, 2 or 1.5Gi, but this is a list",
        ),
        ("since: yesterday", 1, "since", "wants a time such as 2026-01-31T12:00:00Z, but yesterday is a text"),
        ("inner: {}", 1, "inner", "field key is missing"),
        ("inner:\n- key: x", 1, "inner", "wants fields below it, but this is a list; take the leading \"- \" away"),
    ] {
        let error = reading(text).value.expect_err(text);
        assert_eq!((error.line, error.path.to_string().as_str(), error.what.as_str()), (line, path, what), "{text}");
    }
}

#[test]
fn unknown_fields_are_all_found_with_the_word_meant() {
    let unknown = reading("wieght: 5\ninner:\n  key: x\n  colour: red\nMUST: x\n").unknown;
    let got: Vec<String> = unknown.iter().map(|m| format!("{} {}: {}", m.line, m.path, m.what)).collect();
    assert_eq!(
        got,
        [
            "1 wieght: unknown field wieght; did you mean weight?",
            "4 inner.colour: unknown field colour; known here: key",
            "5 MUST: unknown field MUST; did you mean must?",
        ]
    );
}
