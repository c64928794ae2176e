//! A torn tail ends a segment; a wrong byte is named; nothing is a panic.

use std::fs;

use whittle_journal::{End, Entry, JournalError, Limits};

use crate::common::{Folder, grown, read, replay};

/// A segment of some polls, and its bytes.
fn segment(rounds: usize) -> (Folder, Vec<u8>, Vec<Entry>) {
    let (folder, desk) = grown(Limits::default(), rounds);
    desk.journal.close().unwrap();
    let path = &folder.segments()[0];
    let (entries, cut) = read(path).unwrap();
    assert_eq!(cut, None);
    let bytes = fs::read(path).unwrap();
    (folder, bytes, entries)
}

/// Where frames begin, and the end.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut all = vec![12];
    while let Some(length) = bytes.get(all[all.len() - 1]..all[all.len() - 1] + 4) {
        all.push(all[all.len() - 1] + 16 + u32::from_le_bytes(length.try_into().unwrap()) as usize);
    }
    assert_eq!(all[all.len() - 1], bytes.len());
    all
}

#[test]
fn a_segment_that_is_cut_anywhere_ends_with_its_last_whole_frame() {
    let (folder, bytes, entries) = segment(4);
    let path = folder.segments().remove(0);
    let boundaries = boundaries(&bytes);
    let mut before = 0;
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let (read, cut) = read(&path).unwrap();
        assert_eq!(read[..], entries[..read.len()], "cut to {length}");
        assert!(read.len() >= before, "cut to {length}");
        before = read.len();
        let whole = boundaries.iter().rev().find(|at| **at <= length).copied();
        let expected = match whole {
            Some(at) if at == length => None,
            Some(at) => Some(at as u64),
            None => Some(12),
        };
        assert_eq!(cut, expected, "cut to {length}");
        let replayed = replay(&folder.0, None).unwrap();
        assert!(matches!(replayed.end, End::Same), "cut to {length}: {:?}", replayed.end);
        assert_eq!(replayed.summary.cut, expected.map(|at| (1, at)).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn zeros_in_place_of_the_tail_are_a_torn_tail() {
    let (folder, bytes, entries) = segment(4);
    let path = folder.segments().remove(0);
    let mut torn = bytes.clone();
    torn.resize(bytes.len() + 5_000, 0);
    fs::write(&path, &torn).unwrap();
    assert_eq!(read(&path).unwrap(), (entries, Some(bytes.len() as u64)));
    fs::write(&path, [0; 700]).unwrap();
    assert_eq!(read(&path).unwrap(), (Vec::new(), Some(12)));
}

#[test]
fn a_wrong_byte_anywhere_is_named() {
    let (folder, bytes, entries) = segment(3);
    let path = folder.segments().remove(0);
    let boundaries = boundaries(&bytes);
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        fs::write(&path, &wrong).unwrap();
        let error = read(&path).unwrap_err();
        let begins = boundaries.iter().rev().find(|begins| **begins <= at);
        match (&error, begins) {
            (JournalError::NoSegmentFile(_), None) => assert!(at < 8),
            (JournalError::Format { known: 1, .. }, None) => assert!((8..12).contains(&at)),
            (JournalError::Damaged { offset, .. }, Some(begins)) => assert_eq!(*offset, *begins as u64, "byte {at}"),
            _ => unreachable!("byte {at}: {error}"),
        }
        assert!(error.to_string().contains("segment-00000001.whj"), "{error}");
        let replayed = replay(&folder.0, None).unwrap();
        assert!(matches!(replayed.end, End::Unreadable(_)), "byte {at}: {:?}", replayed.end);
        assert!(replayed.summary.events <= entries.len() as u64);
    }
}

#[test]
fn a_replay_goes_on_behind_a_cut_segment_with_the_next() {
    let limits = Limits { segment_bytes: 4 << 10, total_bytes: 64 << 20 };
    let (folder, desk) = grown(limits, 80);
    desk.journal.close().unwrap();
    let whole = replay(&folder.0, None).unwrap().summary;
    assert!(whole.segments >= 3, "{whole:?}");
    let path = &folder.segments()[1];
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 3]).unwrap();
    let replayed = replay(&folder.0, None).unwrap();
    assert!(matches!(replayed.end, End::Same), "{:?}", replayed.end);
    assert_eq!((replayed.summary.segments, replayed.summary.polls), (whole.segments, whole.polls - 1));
    assert!(matches!(replayed.summary.cut[..], [(2, _)]), "{:?}", replayed.summary.cut);
    fs::remove_file(path).unwrap();
    assert!(matches!(replay(&folder.0, None).unwrap().end, End::Same), "a missing segment is as one that is cut");
}

#[test]
fn what_another_version_wrote_is_said_to_be_so() {
    let (folder, bytes, _) = segment(1);
    let path = folder.segments().remove(0);
    // A whole frame whose lines say what this version does not know: packed as a stream of its own.
    let mut packed = Vec::new();
    let mut encoder = zstd::Encoder::new(&mut packed, 1).unwrap();
    let lines = b"{\"Begin\":{\"version\":\"9.9.9\",\"continues\":false}}\n{\"Weather\":[1,2]}\n";
    std::io::Write::write_all(&mut encoder, lines).unwrap();
    encoder.finish().unwrap();
    let mut frame = bytes[..12].to_vec();
    let mut numbers = Vec::new();
    for number in [packed.len() as u32, lines.len() as u32, crc32fast::hash(&packed)] {
        numbers.extend_from_slice(&number.to_le_bytes());
    }
    let sum = crc32fast::hash(&numbers);
    frame.extend(numbers);
    frame.extend_from_slice(&sum.to_le_bytes());
    frame.extend(packed);
    fs::write(&path, &frame).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("written by whittle 9.9.9") && error.contains("unknown variant `Weather`"), "{error}");
    let mut other = bytes;
    other[8] = 2;
    fs::write(&path, &other).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("has format 2; this version reads format 1"), "{error}");
}
