//! What a watch has told: for each object its name, a hash of its uid, of its version and of what it became. So a list
//! after a gap tells what vanished, and what changed without meaning anything is not told again.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    io,
};

use serde::Serialize;

use super::raw::Name;

#[derive(Debug, Clone, Copy)]
struct Entry {
    list: u32,
    uid: u64,
    version: u64,
    said: Option<u64>,
}

/// What an object is to somebody who knows those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As it was: nothing to read.
    Same,
    /// New, or changed.
    Changed,
    /// Another object under the name of one that is gone.
    Replaced,
}

/// The objects of a kind.
#[derive(Debug, Default)]
pub(super) struct Known {
    objects: HashMap<Name, Entry>,
    list: u32,
}

impl Known {
    /// A list begins.
    pub fn begin(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// The list is through: what it did not show is forgotten and returned, by name.
    pub fn end(&mut self) -> Vec<Name> {
        let list = self.list;
        self.forget(|entry| entry.list != list)
    }

    /// Everything is forgotten and returned, by name.
    pub fn clear(&mut self) -> Vec<Name> {
        self.forget(|_| true)
    }

    fn forget(&mut self, gone: impl Fn(&Entry) -> bool) -> Vec<Name> {
        let mut names: Vec<Name> = self.objects.extract_if(|_, entry| gone(entry)).map(|(name, _)| name).collect();
        names.sort();
        names
    }

    /// An object is shown.
    pub fn look(&mut self, name: &Name, uid: &str, version: &str) -> Look {
        let (list, uid, version) = (self.list, hash(uid), hash(version));
        let before = self.objects.get(name).copied();
        let look = match before {
            Some(entry) if entry.uid != uid => Look::Replaced,
            Some(entry) if entry.version == version => Look::Same,
            Some(_) | None => Look::Changed,
        };
        let said = before.filter(|_| look != Look::Replaced).and_then(|entry| entry.said);
        self.objects.insert(name.clone(), Entry { list, uid, version, said });
        look
    }

    /// Whether `what` says something else of the object than the last that was said. From now on it is the last.
    pub fn news(&mut self, name: &Name, what: &impl Serialize) -> bool {
        let Some(entry) = self.objects.get_mut(name) else { return true };
        let said = fingerprint(what);
        let news = said.is_none() || entry.said != said;
        entry.said = said;
        news
    }

    /// An object is gone. Whether it was known.
    pub fn remove(&mut self, name: &Name) -> bool {
        self.objects.remove(name).is_some()
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A hash of what it is as text; `None` when it cannot be written.
fn fingerprint(what: &impl Serialize) -> Option<u64> {
    struct Sink(DefaultHasher);
    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(DefaultHasher::new());
    serde_json::to_writer(&mut sink, what).ok().map(|()| sink.0.finish())
}

#[cfg(test)]
mod tests {
    use whittle_model::Event;

    use super::*;

    fn name(text: &str) -> Name {
        Name { namespace: None, name: text.to_owned() }
    }

    #[test]
    fn objects_are_told_once_a_version_and_events_once_a_meaning() {
        let mut known = Known::default();
        known.begin();
        let (a, event) = (name("a"), |v: &str| Event::NodeGone(v.to_owned()));
        assert_eq!(known.look(&a, "u", "1"), Look::Changed);
        assert!(known.news(&a, &event("x")));
        assert_eq!(known.look(&a, "u", "1"), Look::Same);
        assert_eq!(known.look(&a, "u", "2"), Look::Changed);
        assert!(!known.news(&a, &event("x")));
        assert!(known.news(&a, &event("y")));
        assert_eq!(known.look(&a, "another", "3"), Look::Replaced);
        assert!(known.news(&a, &event("y")), "another object is told whatever the last one was");
    }

    #[test]
    fn a_list_tells_what_vanished_even_after_one_that_broke_off() {
        let mut known = Known::default();
        known.begin();
        for each in ["c", "a", "b"] {
            known.look(&name(each), "u", "1");
        }
        assert_eq!(known.end(), []);
        known.begin();
        known.look(&name("a"), "u", "1"); // this list breaks off
        known.begin();
        known.look(&name("b"), "u", "1");
        assert_eq!(known.end(), [name("a"), name("c")]);
        assert!(known.remove(&name("b")) && !known.remove(&name("b")));
        assert_eq!(known.clear(), []);
    }
}
