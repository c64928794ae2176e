//! Text into documents. Anchors, aliases and merge keys are resolved here; a key given twice, a
//! key that is no text and endless nesting or expansion are refused here.

use std::collections::{BTreeMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::{Data, Entry, Scalar, Style, Yaml};

/// Deeper nesting than any manifest has; keeps the readers' recursion off the end of the stack.
const DEEPEST: usize = 100;
/// Values that aliases may add to one file; keeps a few lines from filling the memory.
const LARGEST_EXPANSION: usize = 1_000_000;

/// One document of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its number in the file, from 1.
    pub number: usize,
    /// What it holds.
    pub root: Yaml,
}

/// Text that is no YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Number of the document it is in, from 1.
    pub document: usize,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

/// The documents of a text, up to the first syntax error, and that error. Empty documents are
/// counted, not returned.
#[must_use]
pub fn parse(text: &str) -> (Vec<Document>, Option<SyntaxError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::default();
    let mut documents = Vec::new();
    for next in Parser::new_from_str(text) {
        let outcome = match next {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => Err((error.marker().line(), explain(error.info(), text, error.marker().line()))),
        };
        match outcome {
            Ok(Some(document)) if document.root.is_null() => {}
            Ok(Some(document)) => documents.push(document),
            Ok(None) => {}
            Err((line, what)) => {
                // What is missing at the end is missed one line further on.
                let line = line.clamp(1, text.lines().count().max(1));
                return (documents, Some(SyntaxError { document: builder.document.max(1), line, what }));
            }
        }
    }
    (documents, None)
}

/// The parser's words, and the usual cause where the line shows it.
fn explain(info: &str, text: &str, line: usize) -> String {
    let written = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
    let hint = if written.trim_start_matches(' ').starts_with('\t') {
        "; indent with spaces, YAML takes no tabs there"
    } else if written.contains("{{") || written.contains("${") {
        "; fill in the template variables first"
    } else {
        "; look at the indentation and quotes of this line and the one before"
    };
    format!("this is not YAML: {info}{hint}")
}

type Fault = (usize, String);

/// A collection being filled.
enum Open {
    Sequence(Vec<Yaml>),
    Mapping { entries: Vec<Entry>, seen: HashSet<String>, merged: Vec<Yaml>, key: Option<(String, usize)> },
}

struct Frame {
    open: Open,
    line: usize,
    anchor: usize,
}

#[derive(Default)]
struct Builder {
    document: usize,
    stack: Vec<Frame>,
    anchors: BTreeMap<usize, Yaml>,
    expanded: usize,
    root: Option<Yaml>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<Option<Document>, Fault> {
        let line = span.start.line();
        match event {
            Event::DocumentStart(_) => {
                self.document += 1;
                self.anchors.clear();
                self.root = None;
            }
            Event::DocumentEnd => {
                return Ok(self.root.take().map(|root| Document { number: self.document, root }));
            }
            Event::Alias(anchor) => self.alias(anchor, line)?,
            Event::Scalar(text, style, anchor, tag) => {
                let style = style_of(style, tag.as_deref());
                let value = Yaml { line, data: Data::Scalar(Scalar { text: text.into_owned(), style }) };
                self.done(value, anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.open(Open::Sequence(Vec::new()), line, anchor)?,
            Event::MappingStart(anchor, _) => {
                let open = Open::Mapping { entries: Vec::new(), seen: HashSet::new(), merged: Vec::new(), key: None };
                self.open(open, line, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
        Ok(None)
    }

    fn open(&mut self, open: Open, line: usize, anchor: usize) -> Result<(), Fault> {
        if self.stack.len() >= DEEPEST {
            return Err((line, format!("nested more than {DEEPEST} levels deep, which no manifest is")));
        }
        self.stack.push(Frame { open, line, anchor });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), Fault> {
        let Some(mut value) = self.anchors.get(&anchor).cloned() else {
            return Err((line, "this alias stands inside the anchor it names".to_owned()));
        };
        self.expanded = self.expanded.saturating_add(value.size());
        if self.expanded > LARGEST_EXPANSION {
            return Err((line, format!("aliases expand to more than {LARGEST_EXPANSION} values; write fewer of them")));
        }
        if self.stack.len() + depth(&value) > DEEPEST {
            return Err((line, format!("nested more than {DEEPEST} levels deep, which no manifest is")));
        }
        value.line = line;
        self.done(value, 0)
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(Frame { open, line, anchor }) = self.stack.pop() else { return Ok(()) };
        let data = match open {
            Open::Sequence(items) => Data::Sequence(items),
            Open::Mapping { entries, seen, merged, .. } => Data::Mapping(merge(entries, seen, merged)),
        };
        self.done(Yaml { line, data }, anchor)
    }

    /// A value is complete: it goes to the collection it stands in.
    fn done(&mut self, value: Yaml, anchor: usize) -> Result<(), Fault> {
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.stack.last_mut().map(|frame| &mut frame.open) {
            None => self.root = Some(value),
            Some(Open::Sequence(items)) => items.push(value),
            Some(Open::Mapping { entries, seen, merged, key }) => match key.take() {
                None => *key = Some(key_of(value)?),
                Some((name, line)) if name == "<<" => merged.extend(merge_sources(value, line)?),
                Some((name, line)) => {
                    if !seen.insert(name.clone()) {
                        let first = entries.iter().find(|e| e.key == name).map_or(line, |e| e.line);
                        return Err((line, format!("key {name:?} is given twice, first on line {first}; keep one of them")));
                    }
                    entries.push(Entry { key: name, line, value });
                }
            },
        }
        Ok(())
    }
}

fn style_of(style: ScalarStyle, tag: Option<&Tag>) -> Style {
    match style {
        ScalarStyle::Plain if tag.is_some_and(|t| t.is_yaml_core_schema() && t.suffix == "str") => Style::Quoted,
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}

fn key_of(value: Yaml) -> Result<(String, usize), Fault> {
    match value.data {
        Data::Scalar(scalar) => Ok((scalar.text, value.line)),
        Data::Sequence(_) => Err((value.line, "a key must be a text, but this one is a list".to_owned())),
        Data::Mapping(_) => {
            Err((value.line, "a key must be a text, but this one is a mapping; quote it if it is a {{ template }}".to_owned()))
        }
    }
}

fn merge_sources(value: Yaml, line: usize) -> Result<Vec<Yaml>, Fault> {
    match value.data {
        Data::Mapping(_) => Ok(vec![value]),
        Data::Sequence(items) if items.iter().all(|i| matches!(i.data, Data::Mapping(_))) => Ok(items),
        Data::Sequence(_) | Data::Scalar(_) => Err((line, "a merge key << takes a mapping, or a list of mappings".to_owned())),
    }
}

/// The mapping's own entries win over merged ones, an earlier merge over a later one.
fn merge(mut entries: Vec<Entry>, mut seen: HashSet<String>, merged: Vec<Yaml>) -> Vec<Entry> {
    for source in merged {
        let Data::Mapping(more) = source.data else { continue };
        for entry in more {
            if seen.insert(entry.key.clone()) {
                entries.push(entry);
            }
        }
    }
    entries
}

fn depth(value: &Yaml) -> usize {
    1 + match &value.data {
        Data::Scalar(_) => 0,
        Data::Sequence(items) => items.iter().map(depth).max().unwrap_or(0),
        Data::Mapping(entries) => entries.iter().map(|e| depth(&e.value)).max().unwrap_or(0),
    }
}

#[cfg(test)]
#[path = "../../tests_unit/parse.rs"]
mod tests;
