//! The policies of a journal, loaded from its folder. What must not enter: reading events.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_journal::{Judges, Policies, Policy, PolicyMode, PolicyStance, PolicyStanding};
use whittle_model::Scorer;
use whittle_policy::{Chains, Limits, Member, Mode, Module, OnFailure, Rest, Stance, Standing};

use crate::policy::Modules;

/// The policies in force.
#[derive(Default)]
pub struct Loaded {
    /// Compiles modules; there from the first policy on.
    modules: Option<Modules>,
    /// What was compiled, by digest.
    compiled: BTreeMap<String, Module>,
    chains: Chains,
}

impl Loaded {
    fn member(&mut self, policy: &Policy, kept: &whittle_journal::Modules) -> Result<Member, String> {
        let standing = match &policy.standing {
            PolicyStanding::Missing { why } => Standing::Missing { why: why.clone() },
            PolicyStanding::Ready { digest, config, fuel, memory } => {
                let module = self.module(digest, kept)?;
                let limits = Limits { fuel: *fuel, memory: *memory };
                let configured = module.configure(&policy.name, config, limits).map_err(|error| error.to_string())?;
                Standing::Ready(Arc::new(configured))
            }
        };
        let stance = |stance| match stance {
            PolicyStance::Ignore => Stance::Ignore,
            PolicyStance::Closed => Stance::Closed,
        };
        Ok(Member {
            name: policy.name.clone(),
            standing,
            on_failure: OnFailure { candidates: stance(policy.candidates), moves: stance(policy.moves) },
            mode: match policy.mode {
                PolicyMode::Enforce => Mode::Enforce,
                PolicyMode::Observe => Mode::Observe,
            },
        })
    }

    fn module(&mut self, digest: &str, kept: &whittle_journal::Modules) -> Result<Module, String> {
        if let Some(module) = self.compiled.get(digest) {
            return Ok(module.clone());
        }
        let bytes = kept.read(digest).map_err(|error| error.to_string())?;
        if self.modules.is_none() {
            self.modules = Some(Modules::new().map_err(|failure| failure.to_string())?);
        }
        let modules = self.modules.as_ref().ok_or("there is no compiler")?;
        let module = modules.load(&bytes).map_err(|error| error.to_string())?;
        self.compiled.insert(digest.to_owned(), module.clone());
        Ok(module)
    }
}

impl Judges for Loaded {
    fn put(&mut self, policies: &Policies, kept: &whittle_journal::Modules) -> Result<(), String> {
        let mut chains = Chains::new(&policies.required);
        for policy in &policies.policies {
            let member = self.member(policy, kept).map_err(|why| format!("{}: {why}", policy.name))?;
            chains.put(&policy.name, member);
            chains.rest(&policy.name, Rest::of(policy.failures, policy.rests_until));
        }
        self.chains = chains;
        Ok(())
    }

    fn scorer(&mut self) -> &mut dyn Scorer {
        &mut self.chains
    }
}
