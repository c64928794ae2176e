//! Segments follow each other, stay below the bound, and take the modules of policies with them.

use whittle_engine::Engine;
use whittle_journal::{
    Entry, Journal, JournalError, Limits, Modules, Policies, Policy, PolicyMode, PolicyStance, PolicyStanding, segments,
};
use whittle_model::{Event, Timestamp};

use crate::common::{Desk, Folder, grown, pod, read, replay};

const SMALL: Limits = Limits { segment_bytes: 4 << 10, total_bytes: 24 << 10 };

fn total(folder: &Folder) -> u64 {
    folder.segments().iter().map(|path| std::fs::metadata(path).unwrap().len()).sum()
}

#[test]
fn the_oldest_segments_go_and_the_rest_stays_below_the_bound() {
    let folder = Folder::new();
    let mut desk = Desk::new(&folder.0, SMALL);
    desk.grow(2);
    let mut most = 0;
    for round in 0..300 {
        desk.tell(&Event::Pod(Box::new(pod(1_000 + round, 100))));
        desk.tell(&Event::PodGone(pod(999 + round, 100).key));
        desk.pass(1_500);
        most = most.max(total(&folder));
    }
    let numbers: Vec<u64> = segments(&folder.0).unwrap().into_iter().map(|(number, _)| number).collect();
    assert!(numbers[0] > 2 && numbers.len() > 2, "{numbers:?}");
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    // A segment ends with the poll that fills it, so one frame may come on top.
    assert!(most <= SMALL.total_bytes + (4 << 10), "{most}");
    drop(desk);
    assert!(matches!(replay(&folder.0, None).unwrap().end, whittle_journal::End::Same));
}

#[test]
fn a_journal_that_is_opened_again_goes_on_behind_what_is_there() {
    let (folder, desk) = grown(Limits::default(), 3);
    desk.journal.close().unwrap();
    let mut again = Desk::new(&folder.0, Limits::default());
    again.grow(2);
    again.journal.close().unwrap();
    let files = folder.segments();
    assert_eq!(files.len(), 2);
    let opens = |at: usize| read(&files[at]).unwrap().0.remove(0);
    assert!(matches!(opens(1), Entry::Checkpoint { continues: false, .. }));
    let replayed = replay(&folder.0, None).unwrap();
    assert!(matches!(replayed.end, whittle_journal::End::Same), "{:?}", replayed.end);
    assert_eq!((replayed.summary.segments, replayed.summary.polls), (2, 5));
}

#[test]
fn nothing_is_written_before_a_checkpoint() {
    let folder = Folder::new();
    let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
    for refused in [journal.event(Timestamp(0), &Event::Synced), journal.poll(Timestamp(0), &[])] {
        assert!(matches!(refused, Err(JournalError::NoCheckpoint(_))), "{refused:?}");
    }
    assert_eq!(folder.segments(), [""; 0].map(std::path::PathBuf::from));
    journal.close().unwrap();
}

#[test]
fn a_journal_whose_segment_is_taken_reports_it_and_goes_on_with_the_next() {
    let folder = Folder::new();
    let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
    std::fs::write(folder.0.join("segment-00000001.whj"), b"another").unwrap();
    let checkpoint = Engine::new().checkpoint();
    let failed = journal.checkpoint(Timestamp(0), &checkpoint, &Policies::default());
    assert!(failed.unwrap_err().to_string().contains("segment-00000001.whj"));
    assert!(journal.wants_checkpoint());
    assert!(matches!(journal.event(Timestamp(0), &Event::Synced), Err(JournalError::NoCheckpoint("an event"))));
    journal.checkpoint(Timestamp(1), &checkpoint, &Policies::default()).unwrap();
    journal.event(Timestamp(1), &Event::Synced).unwrap();
    journal.close().unwrap();
    let (entries, _) = read(&folder.segments()[1]).unwrap();
    assert!(matches!(entries[0], Entry::Checkpoint { continues: false, .. }) && entries.len() == 3, "{entries:?}");
}

fn using(digest: &str) -> Policies {
    let config = serde_json::json!({});
    let standing = PolicyStanding::Ready { digest: digest.to_owned(), config, fuel: 1, memory: 1 };
    let (candidates, moves) = (PolicyStance::Ignore, PolicyStance::Closed);
    let policy = Policy { name: "a".into(), mode: PolicyMode::Enforce, candidates, moves, standing, failures: 0, rests_until: None };
    Policies { required: String::new(), policies: vec![policy] }
}

#[test]
fn modules_are_kept_by_their_hash_as_long_as_a_segment_needs_them() {
    let folder = Folder::new();
    let limits = Limits { segment_bytes: 1, total_bytes: 1_500 };
    let mut journal = Journal::open(&folder.0, limits).unwrap();
    let checkpoint = Engine::new().checkpoint();
    let (old, new) = (journal.module(b"old").unwrap(), journal.module(b"new").unwrap());
    assert_eq!(old, "sha256:cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4");
    assert_eq!(journal.module(b"old").unwrap(), old);
    journal.checkpoint(Timestamp(0), &checkpoint, &using(&old)).unwrap();
    journal.policies(Timestamp(1), &using(&new)).unwrap();
    let modules = Modules::of(&folder.0);
    for number in 0..20 {
        journal.checkpoint(Timestamp(number), &checkpoint, &using(&new)).unwrap();
        assert_eq!(modules.read(&new).unwrap(), b"new");
        let first = segments(&folder.0).unwrap()[0].0;
        assert_eq!(modules.read(&old).is_ok(), first == 1, "segment {first} is the first");
    }
    assert!(modules.read(&old).is_err(), "the segment that needed it is gone by now");
    let path = folder.0.join("modules").join(format!("{}.wasm", new.trim_start_matches("sha256:")));
    std::fs::write(path, b"now").unwrap();
    assert!(matches!(modules.read(&new), Err(JournalError::Module { .. })));
}
