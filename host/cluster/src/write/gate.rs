//! The gate every write passes: open only while this controller leads.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

/// Whether this controller may write. Clones share one gate.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Openings and closings so far: odd while it is open.
    turns: u64,
    /// When it closes by itself. A process that was stopped for a while wakes up to a closed gate.
    until: Option<Instant>,
}

/// One time of leading, from an opening to the closing after it. What was decided in one term is not written
/// in another: between the two somebody else led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term(u64);

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A gate that is closed.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Begins a term without end, unless one lasts: for a controller that has no other beside it.
    pub fn open(&self) {
        self.begin(None);
    }

    /// Begins a term, or goes on with the one that lasts, until `end`.
    pub fn open_until(&self, end: Instant) {
        self.begin(Some(end));
    }

    fn begin(&self, until: Option<Instant>) {
        self.0.send_if_modified(|state| {
            let begins = !state.lasts();
            if begins {
                state.turns += 1 + state.turns % 2;
            }
            state.until = until;
            begins
        });
    }

    /// Ends the term, if one has begun; whether one had. What has not been sent by now will not be.
    pub fn close(&self) -> bool {
        self.0.send_if_modified(|state| {
            let ends = state.turns % 2 == 1;
            state.turns += u64::from(ends);
            ends
        })
    }

    /// The term that lasts.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        let state = *self.0.borrow();
        state.lasts().then_some(Term(state.turns))
    }

    /// Whether `term` still lasts.
    #[must_use]
    pub fn lasts(&self, term: Term) -> bool {
        self.term() == Some(term)
    }

    /// Whether writes pass.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.term().is_some()
    }

    /// Waits until it is open.
    pub async fn opened(&self) -> Term {
        let mut turns = self.0.subscribe();
        let state = turns.wait_for(|state| state.lasts()).await.map_or_else(|_| State::default(), |state| *state);
        Term(state.turns)
    }

    /// Waits until `term` has been ended.
    pub async fn ended(&self, term: Term) {
        let mut turns = self.0.subscribe();
        // An error means that nobody can open the gate any more, and `self` can.
        let _ = turns.wait_for(|state| Term(state.turns) != term).await;
    }
}

impl State {
    fn lasts(&self) -> bool {
        self.turns % 2 == 1 && self.until.is_none_or(|end| Instant::now() < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_ends_with_the_closing_and_does_not_come_back() {
        let gate = Gate::new();
        assert!(!gate.is_open());
        gate.open();
        let first = gate.term().expect("it is open");
        gate.open();
        assert!(gate.lasts(first), "opening an open gate changes nothing");
        gate.clone().close();
        gate.close();
        assert!(!gate.lasts(first) && !gate.is_open());
        gate.open();
        assert!(gate.is_open() && !gate.lasts(first));
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_that_is_not_prolonged_ends_by_itself() {
        let gate = Gate::new();
        let in_seconds = |seconds| Instant::now() + std::time::Duration::from_secs(seconds);
        gate.open_until(in_seconds(10));
        let first = gate.opened().await;
        tokio::time::advance(std::time::Duration::from_secs(9)).await;
        gate.open_until(in_seconds(10));
        tokio::time::advance(std::time::Duration::from_secs(9)).await;
        assert!(gate.lasts(first), "it was prolonged");
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert!(!gate.is_open());
        gate.open_until(in_seconds(10));
        assert!(gate.is_open() && !gate.lasts(first), "another term, whether or not the first was ended by hand");
        gate.ended(first).await;
    }
}
