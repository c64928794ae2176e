//! The same actions come out, from every segment; what does not is named.

use whittle_engine::Engine;
use whittle_journal::{End, Journal, JournalError, Limits, Policies, Replay, segments};
use whittle_model::{Action, Event, ListPrice, Timestamp};

use crate::common::{Count, Folder, Plain, beginning, grown, pod, replay};

const SMALL: Limits = Limits { segment_bytes: 4 << 10, total_bytes: 64 << 20 };

#[test]
fn a_replay_from_every_segment_comes_out_the_same() {
    let (folder, desk) = grown(SMALL, 120);
    let (polls, actions, checkpoint) = (desk.polls, desk.actions, desk.engine.checkpoint());
    desk.journal.close().unwrap();
    let all = segments(&folder.0).unwrap();
    assert!(all.len() > 5, "{}", all.len());
    let whole = replay(&folder.0, None).unwrap();
    assert_eq!((whole.summary.polls, whole.summary.actions), (polls as u64, actions as u64));
    assert!(actions > 100 && whole.summary.plans > 50, "{:?}", whole.summary);
    for (nth, (number, _)) in all.iter().enumerate() {
        let replayed = replay(&folder.0, Some(*number)).unwrap();
        assert!(matches!(replayed.end, End::Same), "from {number}: {:?}", replayed.end);
        assert_eq!(replayed.engine.checkpoint(), checkpoint, "from {number}");
        assert_eq!(replayed.summary.segments, (all.len() - nth) as u64);
        assert_eq!(replayed.summary.digest == whole.summary.digest, nth == 0, "from {number}");
    }
}

#[test]
fn a_witness_hears_everything_in_order() {
    let (folder, desk) = grown(Limits::default(), 20);
    let polls = desk.polls;
    desk.journal.close().unwrap();
    let mut count = Count::default();
    let replayed = Replay::run(&folder.0, None, &mut Plain::default(), &mut count).unwrap();
    assert_eq!((count.restored, count.polled, count.told as u64), (1, polls, replayed.summary.events));
    assert!(count.reports > 0 && count.reports <= polls, "{count:?}");
    assert_eq!((replayed.summary.from, replayed.summary.to), (1_000, 31_000));
    assert_eq!(replayed.summary.versions, [env!("CARGO_PKG_VERSION")]);
}

/// A journal of one poll that planned, with what was recorded of it changed.
fn told_otherwise(change: impl Fn(&mut Vec<Action>)) -> (Folder, End) {
    let folder = Folder::new();
    let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
    let mut engine = Engine::new();
    journal.checkpoint(Timestamp(0), &engine.checkpoint(), &Policies::default()).unwrap();
    for event in beginning().iter().chain([&Event::Pod(Box::new(pod(1, 500)))]) {
        journal.event(Timestamp(0), event).unwrap();
        engine.handle(event, Timestamp(0));
    }
    let mut actions = engine.poll(Timestamp(2_000), &mut ListPrice);
    assert!(matches!(actions[..], [Action::CreateClaim(_)]), "{actions:?}");
    change(&mut actions);
    journal.poll(Timestamp(2_000), &actions).unwrap();
    journal.close().unwrap();
    let end = replay(&folder.0, None).unwrap().end;
    (folder, end)
}

#[test]
fn what_came_out_differently_is_shown_with_what_was_recorded() {
    assert!(matches!(told_otherwise(|_| {}).1, End::Same));
    for (change, place, recorded) in [
        (&(|actions: &mut Vec<Action>| actions.clear()) as &dyn Fn(&mut Vec<Action>), "action 1", "null"),
        (&|actions| actions.push(Action::Terminate { claim: "x".into() }), "action 2", "Terminate"),
        (
            &|actions| {
                if let Some(Action::CreateClaim(claim)) = actions.first_mut() {
                    claim.node_class = "other".into();
                }
            },
            "action 1, CreateClaim.node_class",
            "other",
        ),
    ] {
        let End::Different(difference) = told_otherwise(change).1 else { unreachable!("{place}: a difference") };
        assert_eq!((difference.place.as_str(), difference.poll, difference.at), (place, 1, 2_000));
        assert!(difference.recorded.to_string().contains(recorded), "{difference}");
        assert_ne!(difference.recorded, difference.replayed);
    }
}

#[test]
fn an_engine_that_stands_elsewhere_at_a_rotation_is_a_difference() {
    let folder = Folder::new();
    let mut journal = Journal::open(&folder.0, Limits::default()).unwrap();
    let mut engine = Engine::new();
    journal.checkpoint(Timestamp(0), &engine.checkpoint(), &Policies::default()).unwrap();
    engine.handle(&Event::Synced, Timestamp(0));
    journal.checkpoint(Timestamp(1), &engine.checkpoint(), &Policies::default()).unwrap();
    journal.close().unwrap();
    let End::Different(difference) = replay(&folder.0, None).unwrap().end else { unreachable!("an event is missing") };
    assert_eq!(difference.to_string(), "segment 2, poll 0: checkpoint, objects.synced: recorded true, came out false");
    assert!(matches!(replay(&folder.0, Some(2)).unwrap().end, End::Same));
}

#[test]
fn without_a_journal_there_is_no_replay() {
    let folder = Folder::new();
    assert!(matches!(replay(&folder.0, None), Err(JournalError::Empty(_))));
    assert!(matches!(replay(&folder.0.join("nowhere"), None), Err(JournalError::Io { doing: "list", .. })));
    let (folder, _desk) = grown(Limits::default(), 1);
    let Err(error) = replay(&folder.0, Some(7)) else { unreachable!("there is no segment 7") };
    assert!(error.to_string().ends_with("holds no segment 7; there are 1 to 1"), "{error}");
}
