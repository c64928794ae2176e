//! The log: one JSON object a line, with the keys that users of Karpenter look for: `level`, `time`, `logger`,
//! `message`, `commit`. What must not enter: what is worth saying.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes an event as one line of JSON.
struct Lines;

/// The fields of an event by name; `message` among them.
#[derive(Default)]
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().trim_start_matches("r#").to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::String(value.to_owned()));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        Level::DEBUG => "DEBUG",
        _ => "TRACE",
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>, N: for<'w> FormatFields<'w> + 'static> FormatEvent<S, N> for Lines {
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut line = Map::new();
        line.insert("level".to_owned(), level(*meta.level()).into());
        line.insert("time".to_owned(), crate::clock::now_rfc3339().into());
        line.insert("logger".to_owned(), "controller".into());
        if *meta.level() >= Level::DEBUG {
            line.insert("caller".to_owned(), meta.target().into());
        }
        line.insert("message".to_owned(), fields.0.remove("message").unwrap_or_default());
        line.insert("commit".to_owned(), crate::COMMIT.into());
        line.extend(fields.0);
        writeln!(to, "{}", Value::Object(line))
    }
}

/// Starts the log.
///
/// # Errors
/// When the level cannot be read.
pub fn start(directives: &str, to_stderr: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{},{}", directives.to_lowercase(), whittle_cluster::live::QUIET))
        .map_err(|error| anyhow::anyhow!("cannot read LOG_LEVEL {directives:?}: {error}; write error, warn, info, debug or trace"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).event_format(Lines);
    if to_stderr { builder.with_writer(std::io::stderr).try_init() } else { builder.try_init() }
        .map_err(|error| anyhow::anyhow!("cannot start the log: {error}"))
}
