//! The tree of a document: what was written, in order, with lines.

use super::{Path, Plain, Segment, resolve};

/// One value and the line it stands on (from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yaml {
    /// Line of its first character.
    pub line: usize,
    /// What it is.
    pub data: Data,
}

/// The three shapes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Yaml>),
    /// Keys and values, in the order written.
    Mapping(Vec<Entry>),
}

/// A single value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, escapes and folding undone.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a scalar was written. Only a plain one may be anything but text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes, or tagged as text.
    Quoted,
    /// As a block.
    Block,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Line of the key.
    pub line: usize,
    /// The value.
    pub value: Yaml,
}

impl Yaml {
    /// A text that may need quotes.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let style = if resolve(text) == Plain::Text { Style::Plain } else { Style::Quoted };
        Self { line: 0, data: Data::Scalar(Scalar { text: text.to_owned(), style }) }
    }

    /// A value that is written without quotes, such as a number.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self { line: 0, data: Data::Scalar(Scalar { text: text.to_owned(), style: Style::Plain }) }
    }

    /// An empty mapping.
    #[must_use]
    pub const fn mapping() -> Self {
        Self { line: 0, data: Data::Mapping(Vec::new()) }
    }

    /// Whether it is empty: nothing, `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(s) if s.style == Style::Plain && resolve(&s.text) == Plain::Null)
    }

    /// The value under `key` of a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// The value under `key` of a mapping, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.data {
            Data::Mapping(entries) => entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.value),
            Data::Scalar(_) | Data::Sequence(_) => None,
        }
    }

    /// The value at a chain of keys.
    #[must_use]
    pub fn at(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The value at a chain of keys, to be changed.
    pub fn at_mut(&mut self, keys: &[&str]) -> Option<&mut Self> {
        keys.iter().try_fold(self, |node, key| node.get_mut(key))
    }

    /// Takes the entry of `key` out of a mapping.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        let Data::Mapping(entries) = &mut self.data else { return None };
        let at = entries.iter().position(|e| e.key == key)?;
        Some(entries.remove(at).value)
    }

    /// Sets `key` of a mapping, at the end when it is new. Anything but a mapping stays as it is.
    pub fn set(&mut self, key: &str, value: Self) {
        let Data::Mapping(entries) = &mut self.data else { return };
        match entries.iter_mut().find(|e| e.key == key) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { key: key.to_owned(), line: value.line, value }),
        }
    }

    /// The mapping under `key`, made when absent or empty.
    pub fn child(&mut self, key: &str) -> Option<&mut Self> {
        if self.get(key).is_none_or(Self::is_null) {
            self.set(key, Self::mapping());
        }
        self.get_mut(key)
    }

    /// The text of a scalar that is not null.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar(scalar) if !self.is_null() => Some(&scalar.text),
            Data::Scalar(_) | Data::Sequence(_) | Data::Mapping(_) => None,
        }
    }

    /// The text at a chain of keys.
    #[must_use]
    pub fn text_at(&self, keys: &[&str]) -> Option<&str> {
        self.at(keys)?.as_text()
    }

    /// The entries of a mapping, nothing for other shapes.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Mapping(entries) => entries,
            Data::Scalar(_) | Data::Sequence(_) => &[],
        }
    }

    /// The items of a list, nothing for other shapes.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::Sequence(items) => items,
            Data::Scalar(_) | Data::Mapping(_) => &[],
        }
    }

    /// The items of a list to be changed, nothing for other shapes.
    pub fn items_mut(&mut self) -> &mut [Self] {
        match &mut self.data {
            Data::Sequence(items) => items,
            Data::Scalar(_) | Data::Mapping(_) => &mut [],
        }
    }

    /// The line of the value at `path`, or of the nearest thing above it that was written.
    #[must_use]
    pub fn line_of(&self, path: &Path) -> usize {
        let (mut node, mut line) = (self, self.line);
        for segment in path.segments() {
            let next = match segment {
                Segment::Key(key) => node.entries().iter().find(|e| e.key == *key).map(|e| (&e.value, e.line)),
                Segment::Index(at) => node.items().get(*at).map(|item| (item, item.line)),
            };
            let Some((below, its_line)) = next else { break };
            (node, line) = (below, its_line);
        }
        line
    }

    /// How many values the tree holds.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + match &self.data {
            Data::Scalar(_) => 0,
            Data::Sequence(items) => items.iter().map(Self::size).sum(),
            Data::Mapping(entries) => entries.iter().map(|e| e.value.size()).sum(),
        }
    }
}
