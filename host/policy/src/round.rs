//! One instance of a component and the calls into it: fuel, memory, and what ends a call. What must not
//! enter: whether an answer makes sense.

use wasmtime::component::InstancePre;
use wasmtime::{Engine, Store};

use whittle_model::policy::Words;

use crate::bindings::{Policy, PolicyPre, scoring};
use crate::limits::{Ceiling, FUEL_PER_ROW, Limits, MOST_COPIED};
use crate::{Call, Failure, View};

/// What a store carries.
pub(crate) struct State {
    ceiling: Ceiling,
}

/// An instance with what is left of its fuel.
pub(crate) struct Instance {
    store: Store<State>,
    policy: Policy,
    limits: Limits,
    /// Fuel granted so far.
    granted: u64,
    /// Words sent so far.
    sent: usize,
    /// The tables of the last call: fresh memory for each call would cost more than the copy.
    cells: Vec<Vec<i64>>,
}

impl Instance {
    /// A fresh instance; its start functions run under `limits`.
    pub(crate) fn new(engine: &Engine, pre: &PolicyPre<State>, limits: Limits) -> Result<Self, Failure> {
        let mut store = Store::new(engine, State { ceiling: Ceiling::new(limits.memory) });
        store.limiter(|state| &mut state.ceiling);
        store.set_hostcall_fuel(MOST_COPIED);
        let failed = |error: &wasmtime::Error| Failure::of(Call::Start, error, limits.fuel, limits.memory);
        store.set_fuel(limits.fuel).map_err(|error| failed(&error))?;
        let policy = pre.instantiate(&mut store).map_err(|error| failed(&error))?;
        Ok(Self { store, policy, limits, granted: limits.fuel, sent: 0, cells: Vec::new() })
    }

    fn failed(&self, call: Call) -> impl Fn(wasmtime::Error) -> Failure + use<> {
        let (fuel, limit) = (self.granted, self.limits.memory);
        move |error| Failure::of(call, &error, fuel, limit)
    }

    /// Fuel used so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.granted.saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    fn grant(&mut self, call: Call, rows: usize) -> Result<(), Failure> {
        let more = FUEL_PER_ROW.saturating_mul(rows as u64);
        let failed = self.failed(call);
        let left = self.store.get_fuel().map_err(&failed)?;
        self.granted = self.granted.saturating_add(more);
        self.store.set_fuel(left.saturating_add(more)).map_err(failed)
    }

    pub(crate) fn manifest(&mut self) -> Result<scoring::About, Failure> {
        let failed = self.failed(Call::Manifest);
        self.policy.whittle_policy_scoring().call_manifest(&mut self.store).map_err(failed)
    }

    pub(crate) fn configure(&mut self, config: &str) -> Result<Result<scoring::Setup, String>, Failure> {
        let host = scoring::HostInfo { name: "whittle", version: env!("CARGO_PKG_VERSION") };
        let failed = self.failed(Call::Configure);
        self.policy.whittle_policy_scoring().call_configure(&mut self.store, config, host).map_err(failed)
    }

    pub(crate) fn open(&mut self, words: &Words, facts: &[i64]) -> Result<(), Failure> {
        let list = self.unsent(words);
        let failed = self.failed(Call::Open);
        let round = scoring::Round { words: &list, facts };
        self.policy.whittle_policy_scoring().call_open(&mut self.store, round).map_err(failed)
    }

    /// The words that the guest does not have yet; they count as sent.
    fn unsent<'w>(&mut self, words: &'w Words) -> Vec<&'w str> {
        let list = words.list().get(self.sent..).unwrap_or_default();
        self.sent = words.list().len();
        list.iter().map(String::as_str).collect()
    }

    /// Calls a hook with the views at `places`, in that order.
    pub(crate) fn call(&mut self, call: Call, words: &Words, views: &[View<'_>], places: &[usize]) -> Result<Vec<i64>, Failure> {
        let sent: Vec<&View<'_>> = places.iter().map(|place| &views[*place]).collect();
        self.grant(call, sent.iter().map(|view| view.rows).sum())?;
        let list = self.unsent(words);
        // One list a table: each list more costs as much as fifteen rows, and small tables are asked about often.
        self.cells.resize_with(sent.len(), Vec::new);
        for (cells, view) in self.cells.iter_mut().zip(&sent) {
            cells.clear();
            view.columns.iter().for_each(|column| cells.extend_from_slice(column));
        }
        let rows = |view: &View<'_>| u32::try_from(view.rows).unwrap_or(u32::MAX);
        let tables: Vec<scoring::Table<'_>> =
            sent.iter().zip(&self.cells).map(|(view, cells)| scoring::Table { rows: rows(view), cells }).collect();
        let failed = self.failed(call);
        let scoring = self.policy.whittle_policy_scoring();
        match call {
            Call::ScoreMoves => scoring.call_score_moves(&mut self.store, &list, &tables),
            Call::PriceCandidates | Call::Start | Call::Manifest | Call::Configure | Call::Open => {
                scoring.call_price_candidates(&mut self.store, &list, &tables)
            }
        }
        .map_err(failed)
    }
}

/// What instances are made of, with the contract's exports looked up once.
pub(crate) fn prepare(pre: InstancePre<State>) -> wasmtime::Result<PolicyPre<State>> {
    PolicyPre::new(pre)
}
