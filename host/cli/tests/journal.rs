//! `whittle simulate --journal`, `replay` and `explain --journal`: what was simulated comes out again,
//! wherever a journal begins or ends, and can be asked about.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::fs;
use std::path::Path;

use common::{Answer, Folder, whittle};
use serde_json::Value;
use whittle_engine::Engine;
use whittle_journal::{Journal, Limits, Policies};
use whittle_model::{Action, Event, Timestamp};

/// Plays a story with a journal in segments of `bytes`.
fn record(story: &str, out: &Folder, bytes: &str) -> Answer {
    whittle(&["simulate", story, "--journal", out.path(), "--journal-segment", bytes])
}

fn replay(dir: &str, more: &[&str]) -> (Value, Option<i32>) {
    let answer = whittle(&[&["replay", dir, "--json"], more].concat());
    (serde_json::from_str(&answer.stdout).unwrap_or_default(), answer.exit)
}

fn segments(folder: &Folder) -> Vec<u64> {
    whittle_journal::segments(&folder.0).unwrap().into_iter().map(|(number, _)| number).collect()
}

#[test]
fn each_story_is_told_as_ever_and_its_journal_comes_out_the_same_from_every_segment() {
    let mut begun = 0;
    for story in [
        "examples/formula",
        "examples/inflate",
        "examples/limits",
        "examples/mixed",
        "examples/price-book",
        "examples/spot-share",
        "examples/team-rules",
        "examples/teams",
        "examples/weights",
        "tests/stories/boot-never",
        "tests/stories/crash",
        "tests/stories/interruption",
        "tests/stories/price-change",
        "tests/stories/running-cluster",
        "tests/stories/sold-out-fallback",
    ] {
        let folder = Folder::new(&format!("journal-{}", story.replace('/', "-")), &[]);
        // The checkpoint of a catalogue of 900 types has some 140 kB; a segment is full soon after it.
        let told = record(story, &folder, "142000");
        assert_eq!(told.exit, Some(0), "{story}: {}", told.stderr);
        if ["examples/spot-share", "tests/stories/crash"].contains(&story) {
            assert_eq!(told, whittle(&["simulate", story]), "{story}: a journal changes nothing");
        }
        let (whole, exit) = replay(folder.path(), &[]);
        assert_eq!((&whole["end"], exit), (&Value::from("same"), Some(0)), "{story}: {whole}");
        assert!(whole["plans"].as_u64() > Some(0) && whole["actions"].as_u64() > Some(0), "{story}: {whole}");
        let numbers = segments(&folder);
        begun += numbers.len();
        for number in [numbers[numbers.len() / 2], numbers[numbers.len() - 1]] {
            let (part, exit) = replay(folder.path(), &["--from", &number.to_string()]);
            assert_eq!((&part["end"], exit), (&Value::from("same"), Some(0)), "{story} from {number}: {part}");
        }
    }
    assert!(begun > 60, "{begun} segments");
}

/// Where frames begin, and the end.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut all = vec![12];
    while let Some(length) = bytes.get(all[all.len() - 1]..all[all.len() - 1] + 4) {
        all.push(all[all.len() - 1] + 16 + u32::from_le_bytes(length.try_into().unwrap()) as usize);
    }
    all
}

#[test]
fn a_journal_that_is_cut_is_replayed_up_to_there_and_says_where() {
    let folder = Folder::new("journal-cut", &[]);
    record("examples/team-rules", &folder, "100000000");
    let path = whittle_journal::segments(&folder.0).unwrap().remove(0).1;
    let bytes = fs::read(&path).unwrap();
    let boundaries = boundaries(&bytes);
    assert!(boundaries.len() > 10 && boundaries.last() == Some(&bytes.len()));
    let mut polls = 0;
    for pair in boundaries.windows(2) {
        for (length, cut) in [(pair[0], None), (usize::midpoint(pair[0], pair[1]), Some(pair[0]))] {
            fs::write(&path, &bytes[..length]).unwrap();
            let (whole, exit) = replay(folder.path(), &[]);
            assert_eq!((&whole["end"], exit), (&Value::from("same"), Some(0)), "cut to {length}: {whole}");
            assert_eq!(whole["cut"], cut.map_or_else(|| serde_json::json!([]), |at| serde_json::json!([[1, at]])), "cut to {length}");
            assert!(whole["polls"].as_u64() >= Some(polls), "cut to {length}");
            polls = whole["polls"].as_u64().unwrap();
        }
    }
    let text = whittle(&["replay", folder.path()]).stdout;
    assert!(text.contains("segment 1 ends at byte") && text.contains("was not written whole"), "{text}");
}

/// A journal of one poll that gave out nothing, of which it is recorded that an instance was ended.
fn wrong(dir: &Path) {
    let mut journal = Journal::open(dir, Limits::default()).unwrap();
    journal.checkpoint(Timestamp(0), &Engine::new().checkpoint(), &Policies::default()).unwrap();
    journal.event(Timestamp(1_796_000_000_000), &Event::Synced).unwrap();
    journal.poll(Timestamp(1_796_000_000_000), &[Action::Terminate { claim: "some".into() }]).unwrap();
    journal.close().unwrap();
}

#[test]
fn each_end_has_its_exit_code_and_its_words() {
    let folder = Folder::new("journal-ends", &[("web.yaml", common::POD), ("pool.yaml", common::POOL)]);
    let other = folder.0.join("other");
    wrong(&other);
    let shown = other.to_str().unwrap();
    let answer = whittle(&["replay", shown]);
    for part in ["poll 1 at 2026-11-30T00:53:20Z: action 1 differs", "recorded  {\"Terminate\":{\"claim\":\"some\"}}", "came out  null"] {
        assert!(answer.exit == Some(1) && answer.stdout.contains(part), "{part}: {answer:?}");
    }
    let (json, exit) = replay(shown, &[]);
    assert_eq!((&json["end"], &json["difference"]["poll"], exit), (&Value::from("different"), &Value::from(1), Some(1)));
    let file = other.join("segment-00000001.whj");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let (nowhere, empty) = (folder.0.join("nowhere"), folder.path());
    for (dir, more, part) in [
        (shown, &[][..], "is damaged in the frame at byte"),
        (shown, &["--from", "9"], "holds no segment 9; there are 1 to 1"),
        (empty, &[], "holds no journal"),
        (nowhere.to_str().unwrap(), &[], "cannot list"),
    ] {
        let answer = whittle(&[&["replay", dir], more].concat());
        assert!(answer.exit == Some(2) && answer.stderr.contains(part), "{part}: {answer:?}");
    }
    let taken = whittle(&["simulate", empty, "--journal", shown]);
    assert!(taken.exit == Some(2) && taken.stderr.contains("holds a journal already"), "{taken:?}");
}

#[test]
fn policies_come_from_the_journal_itself() {
    let folder = Folder::new("journal-policies", &[]);
    record("examples/spot-share", &folder, "100000000");
    let modules: Vec<_> = fs::read_dir(folder.0.join("modules")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let module = modules.iter().find(|path| path.extension().is_some_and(|ending| ending == "wasm")).unwrap();
    fs::rename(module, folder.0.join("away")).unwrap();
    let answer = whittle(&["replay", folder.path()]);
    assert!(answer.exit == Some(2) && answer.stderr.contains("cannot be loaded: spot-share: cannot read the module"), "{answer:?}");
    fs::rename(folder.0.join("away"), module).unwrap();
    assert_eq!(whittle(&["replay", folder.path()]).exit, Some(0));
}

#[test]
fn explain_answers_from_a_journal_as_from_the_simulation() {
    // EC2 knows when it sold an instance, a controller when it was told so; the last news may be under way.
    let unwrapped = |text: &str| {
        let text = text.replace(": bound on", ": running on");
        let words: Vec<&str> = text.split_whitespace().collect();
        let time = |at: usize| at > 1 && words[at - 2..at] == ["bought", "at"];
        words.iter().enumerate().filter(|(at, _)| !time(*at)).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    };
    for (story, subjects) in [
        ("examples/teams", &["ip-10-0-0-4", "work-of-a"][..]),
        ("examples/team-rules", &["ip-10-0-0-4"]),
        ("tests/stories/interruption", &["web"]),
        ("tests/stories/pending-nearest-miss", &["large"]),
    ] {
        let folder = Folder::new(&format!("explain-{}", story.replace('/', "-")), &[]);
        record(story, &folder, "100000000");
        for subject in subjects {
            let (there, here) = (whittle(&["explain", "--journal", folder.path(), subject]), whittle(&["explain", story, subject]));
            assert_eq!((here.exit, there.exit), (Some(0), Some(0)), "{story} {subject}: {there:?}");
            assert_eq!(unwrapped(&there.stdout), unwrapped(&here.stdout), "{story} {subject}");
        }
    }
}

#[test]
fn what_is_gone_can_still_be_asked_about() {
    let folder = Folder::new("explain-gone", &[]);
    record("examples/inflate", &folder, "142000");
    let told = |args: &[&str]| {
        let answer = whittle(&[&["explain", "--journal", folder.path()], args].concat());
        assert_eq!(answer.exit, Some(0), "{args:?}: {}", answer.stderr);
        answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let pods = told(&["inflate"]);
    assert!(pods.contains("gone since") && pods.contains("bought for it. Planned at"), "{pods}");
    let node = told(&["ip-10-0-0-4"]);
    assert!(node.contains("no pods are on it now it is going at") && node.ends_with(": Empty"), "{node}");
    for (instance_type, part) in [
        ("c7i.large", "it is too small: pods and daemons ask for cpu"),
        ("c7i.2xlarge", "it would have done"),
        ("x9.large", "cannot buy a type of this name"),
        ("c1.xlarge", "nodepool default asks for"),
    ] {
        let why = told(&["ip-10-0-0-4", "--not", instance_type]);
        assert!(why.contains(&format!("why not {instance_type}: ")) && why.contains(part), "{why}");
    }
    let nobody = whittle(&["explain", "--journal", folder.path(), "nobody"]);
    assert!(nobody.exit == Some(2) && nobody.stderr.contains("named \"nobody\" in the journal"), "{nobody:?}");
    let both = whittle(&["explain", "--journal", folder.path(), "inflate", "--seed", "3"]);
    assert!(both.exit == Some(2) && both.stderr.contains("cannot be used with"), "{both:?}");
}
