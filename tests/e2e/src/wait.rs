//! Waiting for something to come true. What must not enter: what that is.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(150);

/// How much longer than on an idle machine things may take.
static PATIENCE: OnceLock<u64> = OnceLock::new();

/// Says by what limits are multiplied.
pub(crate) fn be_patient(times: u64) {
    // Said once, at the start; whoever says it again is not heard.
    let _ = PATIENCE.set(times);
}

/// A limit as it is on this machine.
pub(crate) fn patient(seconds: u64) -> u64 {
    seconds * PATIENCE.get().copied().unwrap_or(1)
}

/// Looks until `look` succeeds.
///
/// # Errors
/// After `seconds`, or as many times that as was said: what was waited for, and what was the matter at the last look.
pub(crate) fn until<T>(what: &str, seconds: u64, look: impl FnMut() -> Result<T>) -> Result<T> {
    within(what, patient(seconds), look)
}

/// Looks until `look` succeeds, where how long that takes is what the story is about.
///
/// # Errors
/// After `seconds`: what was waited for, and what was the matter at the last look.
pub(crate) fn within<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        match look() {
            Ok(seen) => return Ok(seen),
            Err(not_yet) if Instant::now() >= deadline => return Err(not_yet).with_context(|| format!("{what}: not within {seconds} s")),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Looks for as long as `seconds` that something stays true.
///
/// # Errors
/// The first time that it is not.
pub(crate) fn stays(what: &str, seconds: u64, mut look: impl FnMut() -> Result<()>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        look().with_context(|| format!("{what}: not for {seconds} s"))?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
