//! The one clock of the controller. What must not enter: waiting.

use std::time::{SystemTime, UNIX_EPOCH};

use whittle_model::Timestamp;

/// Milliseconds since the Unix epoch.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time as logs have it, such as `2026-01-02T03:04:05.678Z`.
pub fn now_rfc3339() -> String {
    jiff::Timestamp::from_millisecond(now().0).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}
