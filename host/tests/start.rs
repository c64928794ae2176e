//! The program as its user starts it, as far as no server is needed: what is wrong with its settings is said in words,
//! on the error output, with an exit code of its own.

use std::process::{Command, Output};

fn start(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whittle-controller"));
    command.env_clear().args(args).envs(variables.iter().copied());
    command.output().expect("it was built with this test")
}

/// Arguments, environment, and what is said.
type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

#[test]
fn wrong_settings_are_refused_in_words() {
    let rows: [Row<'_>; 6] = [
        (&[], &[], "--cluster-name"),
        (&[], &[("CLUSTER_NAME", "")], "CLUSTER_NAME is empty"),
        (&["--cluster-name=demo"], &[("IGNORE_DRA_REQUESTS", "false")], "IGNORE_DRA_REQUESTS=false is not supported"),
        (&["--cluster-name=demo"], &[("BATCH_IDLE_DURATION", "soon")], "\"soon\" is no duration"),
        (&["--cluster-name=demo"], &[("WHITTLE_MODE", "Watch")], "[possible values: Enforce, Observe]"),
        (&["--cluster-name=demo"], &[("LOG_LEVEL", "louder=than=words")], "cannot read LOG_LEVEL"),
    ];
    for (args, variables, words) in rows {
        let output = start(args, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{variables:?}: {said}");
        assert!(said.contains(words), "{variables:?}: {said}");
    }
}

#[test]
fn every_setting_of_the_chart_is_one_of_the_program() {
    let help = String::from_utf8_lossy(&start(&["--help"], &[]).stdout).into_owned();
    let chart = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/whittle/templates/deployment.yaml"));
    let chart = chart.expect("the chart is there");
    let names = chart.lines().filter_map(|line| line.trim().strip_prefix("- name: ")).filter(|name| name.contains('_'));
    // The pod's name is for the lease, where the kernel's host name is not the pod's.
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 20, "the chart sets more than {names:?}");
    let unknown: Vec<&str> = names.into_iter().filter(|name| *name != "POD_NAME" && !help.contains(&format!("[env: {name}="))).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}
