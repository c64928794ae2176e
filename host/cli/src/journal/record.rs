//! Writes the journal of a simulation. What must not enter: what happens in it.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use whittle_engine::Engine;
use whittle_journal::{Journal, JournalError, Limits, Policies};
use whittle_model::policy::{Judging, Pricing, RoundFacts, Wants, Words};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, ScorerFailure, Verdict};
use whittle_model::{Action, Event, Scorer, Timestamp};
use whittle_policy::{Chains, Rest};
use whittle_sim::Recorder;

use crate::failure::Failure;

/// The journal of a simulation that runs.
#[derive(Clone)]
pub struct Recording(Rc<RefCell<Inner>>);

struct Inner {
    journal: Option<Journal>,
    policies: Policies,
    chains: Option<Shared>,
    /// How policies were doing after the last poll.
    rests: Vec<(String, Rest)>,
    failure: Option<JournalError>,
}

/// Chains that the simulation asks and the recording looks at.
#[derive(Clone)]
pub struct Shared(Rc<RefCell<Chains>>);

impl Recording {
    /// A journal in an empty folder, of a simulation that asks these chains.
    ///
    /// # Errors
    /// When the folder holds a journal already, or cannot be written.
    pub fn open(
        dir: &Path,
        limits: Limits,
        chains: Option<Chains>,
        policies: (Policies, Vec<Vec<u8>>),
    ) -> Result<(Self, Option<Shared>), Failure> {
        let mut journal = Journal::open(dir, limits)?;
        if !whittle_journal::segments(dir)?.is_empty() {
            let dir = dir.display();
            return Err(Failure::Usage(format!("{dir} holds a journal already; --journal writes into an empty or new folder")));
        }
        for component in &policies.1 {
            journal.module(component)?;
        }
        let chains = chains.map(|chains| Shared(Rc::new(RefCell::new(chains))));
        let inner = Inner { journal: Some(journal), policies: policies.0, chains: chains.clone(), rests: Vec::new(), failure: None };
        Ok((Self(Rc::new(RefCell::new(inner))), chains))
    }

    /// Ends the journal.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub fn close(self) -> Result<(), Failure> {
        let mut inner = self.0.borrow_mut();
        if let Some(error) = inner.failure.take() {
            return Err(error.into());
        }
        Ok(inner.journal.take().map_or(Ok(()), Journal::close)?)
    }

    fn write(&self, write: impl FnOnce(&mut Inner, &mut Journal) -> Result<(), JournalError>) {
        let mut inner = self.0.borrow_mut();
        if let Some(mut journal) = inner.journal.take() {
            match write(&mut inner, &mut journal) {
                Ok(()) => inner.journal = Some(journal),
                Err(error) => inner.failure = Some(error),
            }
        }
    }
}

impl Inner {
    fn rests_now(&self) -> Vec<(String, Rest)> {
        let shared = self.chains.as_ref();
        shared.map(|shared| shared.0.borrow().rests().map(|(name, rest)| (name.to_owned(), rest)).collect()).unwrap_or_default()
    }

    /// The policies with how they are doing.
    fn described(&self) -> Policies {
        let mut policies = self.policies.clone();
        for (name, rest) in self.rests_now() {
            for policy in policies.policies.iter_mut().filter(|policy| policy.name == name) {
                (policy.failures, policy.rests_until) = (rest.failures(), rest.until());
            }
        }
        policies
    }
}

impl Recorder for Recording {
    fn begins(&mut self, at: Timestamp, engine: &Engine) {
        self.write(|inner, journal| {
            inner.rests = inner.rests_now();
            journal.restart(at, &engine.checkpoint(), &inner.described())
        });
    }

    fn told(&mut self, at: Timestamp, event: &Event) {
        self.write(|_, journal| journal.event(at, event));
    }

    fn polls(&mut self, at: Timestamp) {
        // A story asks for plans that nobody acts on, and a policy may fail in one of them too.
        self.write(|inner, journal| if inner.rests_now() == inner.rests { Ok(()) } else { journal.policies(at, &inner.described()) });
    }

    fn polled(&mut self, at: Timestamp, actions: &[Action], engine: &Engine) {
        self.write(|inner, journal| {
            inner.rests = inner.rests_now();
            journal.poll(at, actions)?;
            if journal.wants_checkpoint() { journal.checkpoint(at, &engine.checkpoint(), &inner.described()) } else { Ok(()) }
        });
    }
}

impl Scorer for Shared {
    fn chain(&mut self, chain: &str, now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        self.0.borrow_mut().chain(chain, now)
    }

    fn open(&mut self, chain: &str, words: &Words, facts: &RoundFacts) -> Result<(), ScorerFailure> {
        self.0.borrow_mut().open(chain, words, facts)
    }

    fn price(&mut self, chain: &str, words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        self.0.borrow_mut().price(chain, words, tables)
    }

    fn judge(&mut self, chain: &str, words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        self.0.borrow_mut().judge(chain, words, tables)
    }

    fn reason(&self, number: u32) -> String {
        self.0.borrow().reason(number)
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        self.0.borrow_mut().close()
    }
}
