//! Every example and every story under `tests/stories` is told twice to the command line: the same
//! bytes each time, and those of its golden. `UPDATE_GOLDENS=1` writes what is said now.

use std::fs;

use whittle_tests::stories::{Story, build_command_line, build_policy, judge, stories, tell};
use whittle_tests::tree;

/// The examples that a person is promised.
const EXAMPLES: [&str; 14] = [
    "calendar",
    "formula",
    "inflate",
    "limits",
    "mixed",
    "my-policy",
    "payback",
    "price-book",
    "spare-room",
    "spot-share",
    "team-rules",
    "teams",
    "utilization-floor",
    "weights",
];

#[test]
fn every_story_gives_its_golden_answer_twice() {
    let root = tree::root();
    let all: Vec<Story> = ["examples", "tests/stories"].iter().flat_map(|folder| stories(&root, folder).unwrap()).collect();
    for name in EXAMPLES {
        let dir = format!("examples/{name}");
        assert!(all.iter().any(|story| story.dir == dir) && root.join(&dir).join("story").is_file(), "{dir} holds no story");
    }
    let binary = build_command_line(&root).unwrap();
    let update = std::env::var_os("UPDATE_GOLDENS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for mut story in all {
        build_policy(&binary, &root, &story).unwrap();
        let (first, second) = (tell(&binary, &root, &story).unwrap(), tell(&binary, &root, &story).unwrap());
        if update {
            fs::write(root.join(&story.dir).join("golden"), &first.stdout).unwrap();
            story.golden = Some(first.stdout.clone());
        }
        wrong.extend(judge(&story, &first, &second));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// They are played in real time by hand, and have no golden answer: what a simulation says of them must not rot meanwhile.
#[test]
fn measured_stories_can_be_played() {
    let root = tree::root();
    let binary = build_command_line(&root).unwrap();
    let all = stories(&root, "tests/measured").unwrap();
    assert_eq!(all.len(), 20);
    for story in all {
        let answer = tell(&binary, &root, &story).unwrap();
        assert_eq!(answer.exit, 0, "{}: {}", story.dir, answer.stderr);
        let text = fs::read_to_string(root.join(&story.dir).join("story")).unwrap();
        let verbs = text.lines().filter_map(|line| line.split_whitespace().next());
        let timed = ["#", "boot", "apply", "scale", "delete", "wait"];
        assert!(verbs.into_iter().all(|verb| timed.contains(&verb)), "{}: real time knows {timed:?}", story.dir);
    }
}
