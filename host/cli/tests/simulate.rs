//! `whittle simulate`: exit codes, faults told with their place, the JSON contract, same bytes twice.

mod common;

use common::{Folder, POD, POOL, whittle, with_input};
use serde_json::Value;

/// A directory, further arguments, the exit code, and what standard error says.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], i32, &'a str);

#[test]
fn each_end_has_its_exit_code() {
    let spread = POD.replace("spec:\n", "spec:\n  schedulingGates:\n    - name: later\n");
    let cases: [Case<'_>; 15] = [
        (&[("a.yaml", POOL), ("b.yml", POD)], &[], 0, ""),
        (&[("a.yaml", POOL), ("b.yaml", POD), ("story", "apply a.yaml b.yaml\nuntil nodes 7 within 1m\n")], &[], 1, "there are 1 nodes"),
        (&[("a.yaml", POOL), ("story", "apply a.yaml\nexpect no such words\n")], &[], 1, "story line 2: nothing says \"no such words\""),
        (&[("a.yaml", POOL), ("story", "apply a.yaml\nexpect 0 nodes\n")], &[], 0, ""),
        (&[("a.yaml", POOL), ("story", "aply a.yaml\n")], &[], 2, "story:1: cannot read \"aply a.yaml\": \"aply\" is no verb"),
        (&[("a.yaml", POOL), ("story", "apply b.yaml\n")], &[], 2, "there is no file b.yaml; did you mean a.yaml?"),
        (&[("a.yaml", POOL), ("story", "scale deployment/web 3\n")], &[], 2, "there is no deployment/default/web; apply it first"),
        (&[("a.yaml", POOL), ("story", "sold-out spot m7i.lrge *\n")], &[], 2, "did you mean m7i.large?"),
        (&[("a.yaml", POOL), ("story", "sold-out spot * us-east-1z\n")], &[], 2, "its zones are us-east-1a"),
        (&[("a.txt", POOL)], &[], 2, "holds no manifests"),
        (&[("a.yaml", POOL), ("b.yaml", &spread)], &[], 2, "b.yaml:1: Pod work: spec.schedulingGates"),
        (&[("a.yaml", POOL), ("b.yaml", &spread)], &["--allow-unsupported"], 3, ""),
        (&[("a.yaml", POOL)], &["--region", "us-east-9"], 2, "use us-east-1, us-west-2 or eu-west-1"),
        (&[("a.yaml", POOL)], &["--kubernetes", "latest"], 2, "write it like 1.36"),
        (&[("a.yaml", POOL)], &["--prices", "nowhere.csv"], 2, "cannot read nowhere.csv"),
    ];
    for (number, (files, args, exit, says)) in cases.into_iter().enumerate() {
        let folder = Folder::new(&format!("exit-{number}"), files);
        let answer = whittle(&[&["simulate", folder.path()], args].concat());
        assert_eq!(answer.exit, Some(exit), "case {number}: {answer:?}");
        assert!(answer.stderr.contains(says), "case {number}: {}", answer.stderr);
    }
    assert_eq!(whittle(&["simulate", "no/such/directory"]).exit, Some(2));
    assert_eq!(whittle(&["simulate"]).exit, Some(2));
    assert_eq!(whittle(&["simulate", "--no-such-flag", "."]).exit, Some(2));
}

#[test]
fn a_partial_result_says_so_and_names_the_field() {
    let gated = POD.replace("spec:\n", "spec:\n  schedulingGates:\n    - name: later\n");
    let folder = Folder::new("partial", &[("pool.yaml", POOL), ("pod.yaml", &gated)]);
    let answer = whittle(&["simulate", folder.path(), "--allow-unsupported"]);
    assert!(answer.stdout.contains("spec.schedulingGates") && answer.stdout.contains("\nPARTIAL"), "{}", answer.stdout);
    let json = whittle(&["simulate", folder.path(), "--allow-unsupported", "--json"]);
    assert_eq!(last(&json.stdout)["partial"], Value::Bool(true));
    assert_eq!(json.exit, Some(3));
}

#[test]
fn bad_manifests_name_file_document_line_field_and_what_would_be_right() {
    let pool = POOL.replace("values: [\"c7i\"]", "valus: [\"c7i\"]");
    let two = format!("{POD}---\n{}", POD.replace("kind: Pod", "kind: Pood"));
    let folder = Folder::new("bad", &[("pool.yaml", &pool), ("pods.yaml", &two), ("broken.yaml", "a: [\n")]);
    let answer = whittle(&["simulate", folder.path()]);
    assert_eq!((answer.exit, answer.stdout.as_str()), (Some(2), ""));
    for part in [
        "pool.yaml:14: document 1, NodePool default, spec.template.spec.requirements[1].valus",
        "did you mean values?",
        "pods.yaml:14: document 2",
        "did you mean Pod?",
        "broken.yaml:1: document 1",
    ] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
}

fn last(stdout: &str) -> Value {
    let line: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap_or_default();
    line["summary"].clone()
}

#[test]
fn json_is_one_object_a_line_and_ends_in_a_summary_with_every_field_of_the_contract() {
    let answer = whittle(&["simulate", "examples/limits", "--json"]);
    assert_eq!(answer.exit, Some(0), "{}", answer.stderr);
    let lines: Vec<Value> = answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, events) = lines.split_last().unwrap();
    assert!(events.len() > 10 && events.iter().all(|line| line["at"].is_number() && line["event"]["kind"].is_string()));
    assert!(events.windows(2).all(|pair| pair[0]["at"].as_f64() <= pair[1]["at"].as_f64()));
    let summary = &summary["summary"];
    let node = &summary["nodes"][0];
    for key in ["name", "nodepool", "type", "zone", "capacityType"] {
        assert!(node[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {node}");
    }
    assert!(node["priceMicros"].as_i64() > Some(0) && node["pods"].as_i64() > Some(0), "{node}");
    for amounts in ["cpuMilli", "memoryMib"] {
        assert!(node[amounts]["requested"].as_i64() <= node[amounts]["allocatable"].as_i64(), "{node}");
    }
    assert_eq!((&summary["pods"]["running"], &summary["pods"]["pending"]), (&Value::from(10), &Value::Array(Vec::new())));
    let cost = |key: &str| summary["cost"][key].as_i64().unwrap();
    assert!(cost("hourlyMicros") > 0 && cost("totalMicros") > 0 && cost("boundMicros") <= cost("greedyMicros"));
    assert_eq!(summary["launches"].as_array().map(Vec::len), Some(2));
    assert_eq!((&summary["disruptions"], &summary["strayLaunches"]), (&Value::Array(Vec::new()), &Value::from(0)));
    for key in ["prices", "priceRegion", "weather", "scheduler", "boot"] {
        assert!(summary["assumptions"][key].is_string(), "{key}");
    }
    let sum: i64 = summary["nodes"].as_array().unwrap().iter().map(|node| node["priceMicros"].as_i64().unwrap()).sum();
    assert_eq!(sum, cost("hourlyMicros"));
}

#[test]
fn pending_pods_are_in_the_summary_with_reasons_and_nearest_miss() {
    let answer = whittle(&["simulate", "tests/stories/pending-nearest-miss", "--json"]);
    let pending = &last(&answer.stdout)["pods"]["pending"];
    let large = pending.as_array().unwrap().iter().find(|group| group["workload"] == "default/large").unwrap();
    assert_eq!(large["pods"].as_array().map(Vec::len), Some(2));
    assert!(large["reasons"].as_array().is_some_and(|reasons| reasons.len() >= 2), "{large}");
    assert!(large["nearest"].as_str().is_some_and(|text| text.contains("4090m")), "{large}");
}

#[test]
fn two_runs_print_the_same_bytes_and_another_seed_others() {
    for args in [&["simulate", "examples/mixed"][..], &["simulate", "examples/weights", "--json"], &["explain", "examples/mixed", "store"]]
    {
        assert_eq!(whittle(args), whittle(args));
    }
    let seeded = |seed: &str| whittle(&["simulate", "examples/weights", "--seed", seed]).stdout;
    assert_ne!(seeded("1"), seeded("2"));
}

#[test]
fn what_is_not_a_terminal_gets_no_colours_and_no_line_is_too_wide() {
    for dir in ["examples/weights", "examples/mixed", "tests/stories/us-west-2"] {
        let answer = whittle(&["simulate", dir, "--region", "us-west-2"]);
        assert!(!answer.stdout.contains('\u{1b}') && !answer.stderr.contains('\u{1b}'));
        assert_eq!(answer.stdout.lines().filter(|line| line.chars().count() > 120).collect::<Vec<_>>(), [""; 0], "{dir}");
        assert!(answer.stdout.contains("~$") && answer.stdout.contains("us-west-2"), "{dir}");
    }
}

#[test]
fn standard_input_holds_manifests_too() {
    let answer = with_input(&["simulate", "-"], &format!("{POOL}---\n{POD}"));
    assert_eq!(answer.exit, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("1 node, 1 pod running, 0 pending"), "{}", answer.stdout);
    let wrong = with_input(&["simulate", "-"], "kind: Pod\n");
    assert!(wrong.exit == Some(2) && wrong.stderr.contains("standard input:1"), "{}", wrong.stderr);
}

#[test]
fn files_of_prices_and_types_replace_the_built_in_ones() {
    let prices = "region,instance_type,micro_usd_per_hour\nus-east-1,c7i.2xlarge,1000\nus-east-1,c7i.large,2000\n";
    let folder = Folder::new("prices", &[("pool.yaml", POOL), ("pod.yaml", POD), ("prices.csv", prices), ("bad.csv", "region\n")]);
    let path = format!("{}/prices.csv", folder.path());
    let answer = whittle(&["simulate", folder.path(), "--prices", &path]);
    assert!(answer.stdout.contains("c7i.2xlarge") && answer.stdout.contains("$0.0010"), "{}", answer.stdout);
    let bad = whittle(&["simulate", folder.path(), "--prices", &format!("{}/bad.csv", folder.path())]);
    assert!(bad.exit == Some(2) && bad.stderr.contains("bad.csv: cannot read the price list"), "{}", bad.stderr);
}

#[test]
fn a_missing_node_class_is_assumed_only_when_none_is_given() {
    let assumed = Folder::new("assumed", &[("pool.yaml", POOL), ("pod.yaml", POD)]);
    let answer = whittle(&["simulate", assumed.path()]);
    assert!(answer.stdout.contains("no EC2NodeClass is given: default assumed"), "{}", answer.stdout);
    assert!(answer.stdout.contains("1 node, 1 pod running"), "{}", answer.stdout);
    let lost = whittle(&["simulate", "tests/stories/node-class-missing"]);
    assert!(
        lost.stdout.contains("its EC2NodeClass nowhere does not exist") && !lost.stdout.contains("is given: default assumed"),
        "{}",
        lost.stdout
    );
}

#[test]
fn greedy_packing_is_never_cheaper() {
    let hourly = |packing: &str| {
        let answer = whittle(&["simulate", "examples/mixed", "--packing", packing, "--json"]);
        last(&answer.stdout)["cost"]["hourlyMicros"].as_i64().unwrap()
    };
    assert!(hourly("cost") < hourly("greedy"));
}
