//! Notes, claim by claim, why it was not planned for an instance type. What must not enter: choosing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use whittle_engine::Engine;
use whittle_model::{Action, Event, Timestamp};
use whittle_sim::{Recorder, why_not};

/// What speaks against an instance type, by claim.
#[derive(Debug, Clone)]
pub struct Against {
    instance_type: String,
    by_claim: Rc<RefCell<BTreeMap<String, String>>>,
}

impl Against {
    /// Asks about this instance type.
    #[must_use]
    pub fn new(instance_type: &str) -> Self {
        Self { instance_type: instance_type.to_owned(), by_claim: Rc::default() }
    }

    /// What speaks against it for a claim.
    #[must_use]
    pub fn of(&self, claim: &str) -> Option<String> {
        self.by_claim.borrow().get(claim).cloned()
    }
}

impl Recorder for Against {
    fn begins(&mut self, _at: Timestamp, _engine: &Engine) {}

    fn told(&mut self, _at: Timestamp, _event: &Event) {}

    fn polls(&mut self, _at: Timestamp) {}

    fn polled(&mut self, at: Timestamp, actions: &[Action], engine: &Engine) {
        for action in actions {
            if let Action::CreateClaim(claim) = action {
                let why = why_not(engine.world(), claim, &self.instance_type, at);
                self.by_claim.borrow_mut().entry(claim.name.clone()).or_insert(why);
            }
        }
    }
}
