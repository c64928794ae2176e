//! A document's tree into a typed value through serde, so that every mismatch knows its line and
//! path, and every field that the type does not have is found.
//!
//! Numbers are taken where Kubernetes takes a quantity, with the digits as written.

use std::cell::RefCell;

use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use super::{Data, Entry, Path, Plain, Scalar, Segment, Style, Yaml, closest, resolve};

/// Something written that the type does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where.
    pub path: Path,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, and the value that would be right.
    pub what: String,
}

/// What came of reading a value.
#[derive(Debug)]
pub struct Reading<T> {
    /// The value, or the first mismatch that keeps it from being one.
    pub value: Result<T, Mismatch>,
    /// Fields that the type does not have.
    pub unknown: Vec<Mismatch>,
}

/// Reads `node` as a `T`. Empty fields count as absent, as they do at the API server.
#[must_use]
pub fn read<T: DeserializeOwned>(node: &Yaml) -> Reading<T> {
    let unknown = RefCell::new(Vec::new());
    let reader = Reader { node, at: &Link::Root, unknown: &unknown };
    let value = T::deserialize(reader).map_err(|error| error.place(node.line, &Link::Root).mismatch());
    Reading { value, unknown: unknown.into_inner() }
}

/// The path to a value, as a chain on the stack.
enum Link<'a> {
    Root,
    Key(&'a Link<'a>, &'a str),
    Index(&'a Link<'a>, usize),
}

impl Link<'_> {
    fn path(&self) -> Path {
        match self {
            Self::Root => Path::default(),
            Self::Key(above, key) => above.path().join(Segment::Key((*key).to_owned())),
            Self::Index(above, at) => above.path().join(Segment::Index(*at)),
        }
    }
}

/// Serde's error with a place, which is put on as the error leaves the value it arose in.
#[derive(Debug)]
struct Error {
    what: String,
    place: Option<(usize, Path)>,
}

impl Error {
    fn new(what: String) -> Self {
        Self { what, place: None }
    }

    fn place(mut self, line: usize, at: &Link<'_>) -> Self {
        if self.place.is_none() {
            self.place = Some((line, at.path()));
        }
        self
    }

    fn mismatch(self) -> Mismatch {
        let (line, path) = self.place.unwrap_or_default();
        Mismatch { path, line, what: self.what }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("field {field} is missing"))
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Yaml,
    at: &'a Link<'a>,
    unknown: &'a RefCell<Vec<Mismatch>>,
}

impl<'a> Reader<'a> {
    fn wants(&self, what: &str) -> Error {
        let got = match &self.node.data {
            Data::Scalar(_) if self.node.is_null() => "it is empty".to_owned(),
            Data::Scalar(scalar) => format!("{} is {}", shown(scalar), kind_of(scalar)),
            Data::Sequence(_) => "this is a list".to_owned(),
            Data::Mapping(_) => "this is a mapping".to_owned(),
        };
        Error::new(format!("wants {what}, but {got}"))
    }

    fn scalar(&self, what: &str) -> Result<&'a Scalar, Error> {
        match &self.node.data {
            Data::Scalar(scalar) => Ok(scalar),
            Data::Sequence(_) | Data::Mapping(_) => Err(self.wants(what)),
        }
    }

    /// The text of a scalar that is text; a number or truth value must be quoted to be one.
    fn text(&self) -> Result<&'a str, Error> {
        let scalar = self.scalar("a text")?;
        if scalar.style != Style::Plain {
            return Ok(&scalar.text);
        }
        match resolve(&scalar.text) {
            Plain::Text => Ok(&scalar.text),
            Plain::Null => Ok(""),
            Plain::Bool(_) | Plain::Int(_) | Plain::Float(_) => {
                Err(Error::new(format!("wants a text, but {} is {}: write {:?}", scalar.text, kind_of(scalar), scalar.text)))
            }
        }
    }

    fn integer(&self) -> Result<i64, Error> {
        let scalar = self.scalar("a whole number")?;
        let meaning = resolve(&scalar.text);
        if scalar.style != Style::Plain {
            let fix = if matches!(meaning, Plain::Int(_)) { format!(": write {}", scalar.text) } else { String::new() };
            return Err(Error::new(format!("wants a whole number, but {} is a text{fix}", shown(scalar))));
        }
        match meaning {
            Plain::Int(whole) => Ok(whole),
            Plain::Float(float) if float.fract() == 0.0 && float.abs() < 9e15 =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 is an i64 exactly")]
                Ok(float as i64)
            }
            Plain::Null | Plain::Bool(_) | Plain::Float(_) | Plain::Text => Err(self.wants("a whole number")),
        }
    }

    fn entries(&self, what: &str) -> Result<&'a [Entry], Error> {
        match &self.node.data {
            Data::Mapping(entries) => Ok(entries),
            Data::Sequence(_) => {
                let mut error = self.wants(what);
                error.what.push_str("; take the leading \"- \" away");
                Err(error)
            }
            Data::Scalar(_) => Err(self.wants(what)),
        }
    }

    fn fields<'de, V: Visitor<'de>>(self, fields: Option<&'static [&'static str]>, visitor: V) -> Result<V::Value, Error> {
        let entries = self.entries(if fields.is_some() { "fields below it" } else { "a mapping" })?;
        visitor.visit_map(Fields { reader: self, entries, known: fields, value: None })
    }
}

fn shown(scalar: &Scalar) -> String {
    let text: String = scalar.text.chars().take(60).collect();
    if scalar.style == Style::Plain { text } else { format!("{text:?}") }
}

fn kind_of(scalar: &Scalar) -> &'static str {
    if scalar.style != Style::Plain {
        return "a text";
    }
    match resolve(&scalar.text) {
        Plain::Null => "empty",
        Plain::Bool(_) if matches!(scalar.text.to_lowercase().as_str(), "true" | "false") => "true or false, not text",
        Plain::Bool(_) => "read as true or false by YAML",
        Plain::Int(_) | Plain::Float(_) => "a number",
        Plain::Text => "a text",
    }
}

/// Kinds of values that are read alike.
macro_rules! forward {
    ($to:ident: $($from:ident)*) => {
        $(fn $from<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$to(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.data {
            Data::Mapping(_) => self.fields(None, visitor),
            Data::Sequence(_) => self.deserialize_seq(visitor),
            Data::Scalar(scalar) if scalar.style != Style::Plain => visitor.visit_str(&scalar.text),
            Data::Scalar(scalar) => match resolve(&scalar.text) {
                Plain::Null => visitor.visit_unit(),
                Plain::Bool(truth) => visitor.visit_bool(truth),
                Plain::Int(whole) => visitor.visit_i64(whole),
                Plain::Float(float) => visitor.visit_f64(float),
                Plain::Text => visitor.visit_str(&scalar.text),
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let scalar = self.scalar("true or false")?;
        match resolve(&scalar.text) {
            Plain::Bool(truth) if scalar.style == Style::Plain => visitor.visit_bool(truth),
            Plain::Bool(truth) => Err(Error::new(format!("wants true or false, but {} is a text: write {truth}", shown(scalar)))),
            Plain::Null | Plain::Int(_) | Plain::Float(_) | Plain::Text => Err(self.wants("true or false")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_i64(self.integer()?)
    }

    forward!(deserialize_i64: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);
    forward!(deserialize_f64: deserialize_f32);
    forward!(deserialize_str: deserialize_char deserialize_string deserialize_identifier deserialize_bytes deserialize_byte_buf);
    forward!(deserialize_any: deserialize_unit);

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let scalar = self.scalar("a number")?;
        match resolve(&scalar.text) {
            Plain::Float(float) if scalar.style == Style::Plain => visitor.visit_f64(float),
            Plain::Int(whole) if scalar.style == Style::Plain => visitor.visit_i64(whole),
            Plain::Null | Plain::Bool(_) | Plain::Int(_) | Plain::Float(_) | Plain::Text => Err(self.wants("a number")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match name {
            "Quantity" => {
                let scalar = self.scalar("a quantity such as 500m, 2 or 1.5Gi")?;
                let text: de::value::StrDeserializer<'_, Error> = scalar.text.as_str().into_deserializer();
                visitor.visit_newtype_struct(text)
            }
            "Time" | "MicroTime" => {
                let wrong = self.wants("a time such as 2026-01-31T12:00:00Z");
                visitor.visit_newtype_struct(self).map_err(|_| wrong)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.data {
            Data::Sequence(items) => visitor.visit_seq(Items { reader: self, items, next: 0 }),
            Data::Scalar(_) | Data::Mapping(_) => {
                let mut error = self.wants("a list");
                error.what.push_str("; put \"- \" before each entry");
                Err(error)
            }
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _name: &'static str, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.fields(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.fields(Some(fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.text()?.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}

struct Items<'a> {
    reader: Reader<'a>,
    items: &'a [Yaml],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let at = Link::Index(self.reader.at, self.next);
        self.next += 1;
        below(seed, node, &at, node.line, self.reader.unknown).map(Some)
    }
}

struct Fields<'a> {
    reader: Reader<'a>,
    entries: &'a [Entry],
    known: Option<&'static [&'static str]>,
    value: Option<&'a Entry>,
}

impl<'de> de::MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        while let Some((entry, rest)) = self.entries.split_first() {
            self.entries = rest;
            match self.known {
                Some(known) if !known.contains(&entry.key.as_str()) => self.report(entry, known),
                Some(_) if entry.value.is_null() => {}
                Some(_) | None => {
                    self.value = Some(entry);
                    let key: de::value::StrDeserializer<'_, Error> = entry.key.as_str().into_deserializer();
                    return seed.deserialize(key).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some(entry) = self.value.take() else { return Err(Error::new("a value was read before its key".to_owned())) };
        let at = Link::Key(self.reader.at, &entry.key);
        below(seed, &entry.value, &at, entry.line, self.reader.unknown)
    }
}

impl Fields<'_> {
    fn report(&self, entry: &Entry, known: &[&'static str]) {
        let what = match closest(&entry.key, known.iter().copied()) {
            Some(meant) => format!("unknown field {}; did you mean {meant}?", entry.key),
            None if known.len() <= 12 => format!("unknown field {}; known here: {}", entry.key, known.join(", ")),
            None => format!("unknown field {}; take it away or move it to where it belongs", entry.key),
        };
        let path = Link::Key(self.reader.at, &entry.key).path();
        self.reader.unknown.borrow_mut().push(Mismatch { path, line: entry.line, what });
    }
}

/// Reads a value below another; an error that arose in it gets its place.
fn below<'de, S: DeserializeSeed<'de>>(
    seed: S,
    node: &Yaml,
    at: &Link<'_>,
    line: usize,
    unknown: &RefCell<Vec<Mismatch>>,
) -> Result<S::Value, Error> {
    seed.deserialize(Reader { node, at, unknown }).map_err(|error| error.place(line, at))
}

#[cfg(test)]
#[path = "../../tests_unit/de.rs"]
mod tests;
