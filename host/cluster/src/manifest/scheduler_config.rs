//! What a cluster's kube-scheduler does that plans have to know: the text of the setting `SCHEDULER_CONFIG`.

use k8s_openapi::api::core::v1 as core;
use serde::Deserialize;
use whittle_model::{Labels, TopologySpread};

use crate::{
    from::{self, Cx},
    yaml::{self, Path},
};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    pod_topology_spread: Option<PodTopologySpread>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Option<Vec<core::TopologySpreadConstraint>>,
}

/// The spread constraints of pods that have none (`podTopologySpread.defaultConstraints`, YAML or JSON), as kube-scheduler takes
/// them: without selectors, which it makes for each pod. They come with the selector of nothing.
///
/// # Errors
/// Everything wrong with the text, each with its field.
pub fn scheduler_config(text: &str) -> Result<Vec<TopologySpread>, String> {
    let (documents, error) = yaml::parse(text);
    if let Some(error) = error {
        return Err(format!("line {}: {}", error.line, error.what));
    }
    let root = match documents.as_slice() {
        [] => return Ok(Vec::new()),
        [one] => &one.root,
        [_, _, ..] => return Err("more than one document; write one".to_owned()),
    };
    let reading = yaml::read::<Written>(root);
    let at = |path: &Path, what: &str| format!("{path}: {what}");
    if let Some(unknown) = reading.unknown.first() {
        return Err(at(&unknown.path, &unknown.what));
    }
    let written = reading.value.map_err(|mismatch| at(&mismatch.path, &mismatch.what))?;
    let constraints = written.pod_topology_spread.and_then(|spread| spread.default_constraints).unwrap_or_default();
    let mut cx = Cx::default();
    let all = cx.key("podTopologySpread", |cx| {
        cx.each("defaultConstraints", &constraints, |cx, one| {
            for (key, given) in [("labelSelector", one.label_selector.is_some()), ("matchLabelKeys", one.match_label_keys.is_some())] {
                if given {
                    cx.broken_at(key, "selectors are made for each pod; take this one away");
                }
            }
        });
        from::spread(&Labels::new(), "defaultConstraints", &constraints, cx)
    });
    let problems: Vec<String> = cx.problems.iter().map(|(path, what)| at(path, what)).collect();
    if problems.is_empty() { Ok(all) } else { Err(problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use whittle_model::keys;

    use super::*;

    fn constraint(more: &str) -> String {
        format!(
            "podTopologySpread: {{defaultConstraints: [{{maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway{more}}}]}}"
        )
    }

    #[test]
    fn constraints_are_read_from_yaml_and_json() {
        for text in ["", "{}", "podTopologySpread:", "podTopologySpread: {defaultConstraints: []}"] {
            assert_eq!(scheduler_config(text), Ok(Vec::new()), "{text}");
        }
        let json = r#"{"podTopologySpread":{"defaultConstraints":[{"maxSkew":2,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}"#;
        for text in [constraint(""), json.to_owned()] {
            let all = scheduler_config(&text).expect("it is as it should be");
            assert_eq!(all.iter().map(|c| (c.topology_key.as_str(), c.max_skew, c.required)).collect::<Vec<_>>(), [(keys::ZONE, 2, false)]);
        }
    }

    #[test]
    fn what_kube_scheduler_would_refuse_is_refused_with_its_field() {
        for (text, part) in [
            (constraint(", labelSelector: {}"), "podTopologySpread.defaultConstraints[0].labelSelector: selectors are made for each pod"),
            (constraint(", matchLabelKeys: [a]"), "matchLabelKeys: selectors are made"),
            (constraint(", colour: red"), "colour"),
            (constraint(", nodeTaintsPolicy: Maybe"), "\"Maybe\" is not known"),
            (constraint("").replace("maxSkew: 2", "maxSkew: 0"), "maxSkew: 0 is out of range"),
            (constraint("").replace("maxSkew: 2", "maxSkew: two"), "maxSkew: wants"),
            (constraint("").replace("topology.kubernetes.io/zone", "\"\""), "topologyKey is missing"),
            ("podSpread: {}".to_owned(), "podSpread"),
            ("a: [".to_owned(), "line 1"),
            ("{}\n---\n{}".to_owned(), "more than one document"),
        ] {
            let said = scheduler_config(&text).expect_err(&text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
