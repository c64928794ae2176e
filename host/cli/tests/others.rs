//! `whittle types`, `explain` and `convert`, help, and a reader that goes away.

#![expect(dead_code, reason = "each test binary uses its part of the common helpers")]

mod common;

use std::io::Read;
use std::process::{Command, Stdio};

use common::{root, whittle, with_input};
use serde_json::Value;

/// The first column of the rows of a table.
fn names(stdout: &str) -> Vec<&str> {
    let rows = stdout.lines().skip(1).take_while(|line| !line.is_empty());
    rows.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn filters_leave_what_they_say() {
    for (args, wanted) in [
        (&["--family", "c7i", "--cpu", "2..4"][..], &["c7i.large", "c7i.xlarge"][..]),
        (&["--family", "m7i,c7i", "--memory", "8Gi", "--sort", "price"], &["m7i.large", "c7i.xlarge"]),
        (&["--family", "c7i", "--sort", "cpu", "--limit", "1"], &["c7i.large"]),
        (&["--gpu=l4", "--cpu", "4", "--memory", "16Gi"], &["g6.xlarge", "g6f.xlarge"]),
        (&["-r", "instance-family In m7g", "-r", "instance-cpu Lt 3"], &["m7g.medium", "m7g.large"]),
        (&["--family", "m7g", "--arch", "amd64"], &[]),
        (&["--family", "m7i", "--generation", "8.."], &[]),
        (&["--family", "c7i", "--pods-fit", "cpu=3,memory=1Gi", "--limit", "2", "--sort", "name"], &["c7i.large", "c7i.xlarge"]),
    ] {
        let answer = whittle(&[&["types"], args].concat());
        assert_eq!((names(&answer.stdout), answer.exit), (wanted.to_vec(), Some(0)), "{args:?}: {}", answer.stderr);
    }
}

#[test]
fn a_type_by_name_tells_labels_amounts_and_offerings() {
    let answer = whittle(&["types", "c7i.large"]);
    for part in ["karpenter.k8s.aws/instance-cpu=2", "1930m", "3265265664", "us-east-1a  use1-az1  on-demand      $0.0893"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let json: Value = serde_json::from_str(&whittle(&["types", "c7i.large", "--json"]).stdout).unwrap();
    assert_eq!((&json["name"], &json["allocatable"]["cpu"]), (&Value::from("c7i.large"), &Value::from(1930)));
    assert_eq!(json["offerings"][1]["priceMicros"], Value::from(89_250));
}

#[test]
fn types_are_listed_in_lines_that_fit_in_every_region() {
    for region in ["us-east-1", "us-west-2", "eu-west-1"] {
        let answer = whittle(&["types", "--region", region]);
        assert_eq!(answer.stdout.lines().filter(|line| line.chars().count() > 120).collect::<Vec<_>>(), [""; 0], "{region}");
        assert!(names(&answer.stdout).len() > 800, "{region}");
    }
}

#[test]
fn what_is_not_there_is_told_with_what_was_meant() {
    for (args, part) in [
        (&["types", "c7i.lrage"][..], "did you mean c7i.large?"),
        (&["types", "-r", "karpenter.k8s.aws/instance-cpus Gt 2"], "did you mean karpenter.k8s.aws/instance-cpu?"),
        (&["types", "-r", "instance-cpu Above 2"], "operators are In"),
        (&["types", "--cpu", "many"], "whole number"),
        (&["types", "--region", "mars"], "use us-east-1"),
        (&["explain", "examples/inflate", "nobody"], "there is no pod, workload, node or claim named \"nobody\""),
        (&["convert", "no-such-file.yaml"], "cannot read no-such-file.yaml"),
    ] {
        let answer = whittle(args);
        assert!(answer.exit == Some(2) && answer.stderr.contains(part), "{args:?}: {answer:?}");
    }
}

#[test]
fn explain_tells_why_a_node_was_bought_and_why_a_pod_waits() {
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let node = whittle(&["explain", "examples/teams", "ip-10-0-0-4"]);
    assert!(node.exit == Some(0) && node.stdout.contains("runner-up"), "{node:?}");
    let pod = whittle(&["explain", "tests/stories/pending-nearest-miss", "large"]);
    assert!(pod.exit == Some(0) && unwrapped(&pod.stdout).contains("nearest: fits c7i.2xlarge"), "{pod:?}");
    let never = whittle(&["explain", "tests/stories/until-untrue", "web"]);
    assert!(never.exit == Some(0) && never.stdout.contains("pending") && never.stderr.contains("was not true within 5s"), "{never:?}");
}

#[test]
fn convert_writes_v1_and_tells_what_changed() {
    let old = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata:\n  name: old\nspec:\n  template:\n    spec:\n      requirements: []\n      nodeClassRef:\n        name: default\n  disruption:\n    consolidationPolicy: WhenUnderutilized\n";
    let answer = with_input(&["convert", "-"], old);
    assert_eq!(answer.exit, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("karpenter.sh/v1\n") && answer.stdout.contains("WhenEmptyOrUnderutilized"), "{}", answer.stdout);
    assert!(answer.stderr.contains("NodePool old"), "{}", answer.stderr);
    let again = with_input(&["convert", "-"], &answer.stdout);
    assert_eq!((again.stdout, again.exit), (answer.stdout, Some(0)));
}

#[test]
fn help_and_version_are_there() {
    for args in [&["--help"][..], &["simulate", "--help"], &["types", "--help"], &["explain", "--help"], &["convert", "--help"]] {
        let answer = whittle(args);
        assert!(answer.exit == Some(0) && answer.stdout.contains("Usage: whittle"), "{args:?}");
    }
    assert_eq!(whittle(&["--version"]).stdout, format!("whittle {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(whittle(&[]).exit, Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_whittle"))
        .args(["types", "--json"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
