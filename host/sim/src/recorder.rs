//! Who writes down what the engine is told and what it answers. What must not enter: how it is kept.

use whittle_engine::Engine;
use whittle_model::{Action, Event, Timestamp};

/// Hears everything that passes between the world and the engine, in order.
pub trait Recorder {
    /// An engine begins, or this one is recorded from here on.
    fn begins(&mut self, at: Timestamp, engine: &Engine);

    /// The engine is told something.
    fn told(&mut self, at: Timestamp, event: &Event);

    /// The engine is about to be polled.
    fn polls(&mut self, at: Timestamp);

    /// The engine was polled and gave out these.
    fn polled(&mut self, at: Timestamp, actions: &[Action], engine: &Engine);
}
