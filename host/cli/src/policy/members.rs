//! From ScoringPolicy objects and `--policy` to the chains that a simulation asks, and what a person
//! should know of them. What must not enter: reading manifests, running anything.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use whittle_cluster::{Located, ModuleSource, Object, PolicyMode, PolicyStance, ScoringPolicyObject};
use whittle_journal::{Policies as Described, Policy, PolicyStanding};
use whittle_model::policy::{AskerColumn, Setup};
use whittle_model::{NodePool, keys};
use whittle_policy::chain::names;
use whittle_policy::{Chains, Configured, Judge, Limits, Member, Mode, Module, OnFailure, Stance, Standing};

use super::PolicyFlag;
use super::source::{self, Modules};
use crate::failure::Failure;

/// The policies of a simulation.
#[derive(Default)]
pub struct Policies {
    /// The chains; `None` when nobody names or gives a policy.
    pub chains: Option<Chains>,
    /// Policies that stand at the end of every NodePool's chain, divided by commas.
    pub everywhere: String,
    /// What is worth knowing, one line each.
    pub remarks: Vec<String>,
    /// The same policies as a journal describes them.
    pub described: Described,
    /// Their components.
    pub components: Vec<Vec<u8>>,
}

/// A policy that can be asked.
struct Ready {
    name: String,
    policy: Arc<Configured>,
    mode: Mode,
    on_failure: OnFailure,
    /// Its module, configuration and limits.
    standing: PolicyStanding,
    /// Where its component comes from, for people.
    from: String,
}

/// What is given before anything is loaded: an object, a flag, or both, of which the flag says the
/// component.
struct Given<'a> {
    name: &'a str,
    object: Option<(&'a Located<Object>, &'a ScoringPolicyObject)>,
    flag: Option<&'a PolicyFlag>,
}

impl Policies {
    /// Loads and configures all policies that are given, and looks at who names them.
    ///
    /// # Errors
    /// Everything wrong with them, one line each.
    pub fn gather(objects: &[&Located<Object>], flags: &[PolicyFlag]) -> Result<Self, Failure> {
        let pools: Vec<&NodePool> =
            objects.iter().filter_map(|o| if let Object::NodePool(pool) = &o.object { Some(pool.as_ref()) } else { None }).collect();
        let (given, mut faults) = given(objects, flags);
        let named: BTreeSet<String> = pools.iter().flat_map(|pool| names("", chain_of(pool))).map(|named| named.name).collect();
        if given.is_empty() && named.is_empty() && faults.is_empty() {
            return Ok(Self::default());
        }
        let modules = Modules::new()?;
        let mut ready = Vec::new();
        for given in &given {
            match given.ready(&modules) {
                Ok(one) => ready.push(one),
                Err(why) => faults.push(why),
            }
        }
        if !faults.is_empty() {
            return Err(Failure::Usage(faults.join("\n")));
        }
        let unnamed: Vec<&str> = flags.iter().map(|flag| flag.name.as_str()).filter(|name| !named.contains(*name)).collect();
        let everywhere = unnamed.join(",");
        let remarks = remarks(&ready, &pools, &named, &everywhere);
        let mut chains = Chains::new("");
        let described = Described { required: String::new(), policies: ready.iter().map(Ready::described).collect() };
        for one in ready {
            let standing = Standing::Ready(one.policy);
            chains.put(&one.name, Member { name: one.name.clone(), standing, on_failure: one.on_failure, mode: one.mode });
        }
        Ok(Self { chains: Some(chains), everywhere, remarks, described, components: modules.loaded() })
    }
}

/// A NodePool whose chain ends with the policies of `everywhere`.
#[must_use]
pub fn with_everywhere(pool: &NodePool, everywhere: &str) -> NodePool {
    let mut pool = pool.clone();
    if !everywhere.is_empty() {
        let chain = pool.annotations.entry(keys::POLICY.to_owned()).or_default();
        *chain = if chain.is_empty() { everywhere.to_owned() } else { format!("{chain},{everywhere}") };
    }
    pool
}

fn chain_of(pool: &NodePool) -> &str {
    pool.annotations.get(keys::POLICY).map_or("", String::as_str)
}

fn given<'a>(objects: &[&'a Located<Object>], flags: &'a [PolicyFlag]) -> (Vec<Given<'a>>, Vec<String>) {
    let (mut all, mut faults): (Vec<Given<'a>>, Vec<String>) = (Vec::new(), Vec::new());
    for located in objects {
        let Object::ScoringPolicy(object) = &located.object else { continue };
        if all.iter().any(|given| given.name == object.name) {
            faults.push(format!("{}: there is a second object of this name; keep one of them", place(located)));
        } else {
            all.push(Given { name: &object.name, object: Some((located, object)), flag: None });
        }
    }
    for flag in flags {
        match all.iter_mut().find(|given| given.name == flag.name) {
            Some(given) if given.flag.is_some() => faults.push(format!("--policy {}: the name is given twice", flag.name)),
            Some(given) => given.flag = Some(flag),
            None => all.push(Given { name: &flag.name, object: None, flag: Some(flag) }),
        }
    }
    (all, faults)
}

fn place(located: &Located<Object>) -> String {
    format!("{}:{}: {}", located.file, located.line, located.name)
}

impl Given<'_> {
    fn place(&self) -> String {
        match (self.flag, self.object) {
            (Some(flag), _) => format!("--policy {}", flag.name),
            (None, Some((located, _))) => place(located),
            (None, None) => self.name.to_owned(),
        }
    }

    fn ready(&self, modules: &Modules) -> Result<Ready, String> {
        let at = |why: String| format!("{}: {why}", self.place());
        let (module, from) = self.module(modules).map_err(at)?;
        let config = self.config()?;
        let object = self.object.map(|(_, object)| object);
        let limits = Limits {
            fuel: object.and_then(|object| object.fuel).unwrap_or(Limits::default().fuel),
            memory: object.and_then(|object| object.memory).unwrap_or(Limits::default().memory),
        };
        let policy = module.configure(self.name, &config, limits).map_err(|error| at(error.to_string()))?;
        let digest = module.digest().to_owned();
        let standing = PolicyStanding::Ready { digest, config, fuel: limits.fuel, memory: limits.memory };
        let stance = |stance| match stance {
            PolicyStance::Ignore => Stance::Ignore,
            PolicyStance::Closed => Stance::Closed,
        };
        let on_failure = object
            .map_or_else(OnFailure::default, |object| OnFailure { candidates: stance(object.candidates), moves: stance(object.moves) });
        let mode = if object.is_some_and(|object| object.mode == PolicyMode::Observe) { Mode::Observe } else { Mode::Enforce };
        Ok(Ready { name: self.name.to_owned(), policy: Arc::new(policy), mode, on_failure, standing, from })
    }

    /// The component, and where it comes from.
    fn module(&self, modules: &Modules) -> Result<(Module, String), String> {
        if let Some(flag) = self.flag {
            return Ok((modules.file(&flag.file)?, flag.file.display().to_string()));
        }
        let source = self.object.and_then(|(located, object)| Some((located, object.module.as_ref()?)));
        let (located, source) = source.ok_or("says no source of its component")?;
        match source {
            ModuleSource::Builtin(name) => {
                let module = modules.builtin(name).map_err(|why| format!("spec.module.builtin: {why}"))?;
                Ok((module, format!("built-in {name}")))
            }
            ModuleSource::File(path) => {
                let whole = Path::new(&located.file).parent().unwrap_or(Path::new("")).join(path);
                let module = modules.file(&whole).map_err(|why| format!("spec.module.file.path: {why}"))?;
                Ok((module, path.clone()))
            }
            ModuleSource::ConfigMap { .. } | ModuleSource::Oci { .. } => {
                let (field, name) = (source.field(), self.name);
                Err(format!(
                    "spec.module.{field} is not available in a simulation; give the component by --policy {name}=FILE.wasm, \
                     or write builtin or file"
                ))
            }
        }
    }

    /// The flag's configuration, else the object's.
    fn config(&self) -> Result<Value, String> {
        match (self.flag.and_then(|flag| flag.config.as_deref()), self.object) {
            (None, Some((_, object))) => Ok(object.config.clone()),
            (path, _) => source::config(path).map_err(|error| format!("--policy {}: {error}", self.name)),
        }
    }
}

fn remarks(ready: &[Ready], pools: &[&NodePool], named: &BTreeSet<String>, everywhere: &str) -> Vec<String> {
    let mut lines: Vec<String> = ready.iter().map(|one| one.remark(named, everywhere)).collect();
    for pool in pools {
        for name in names("", chain_of(pool)) {
            let known = ready.iter().any(|one| one.name == name.name);
            if !known && name.optional {
                lines
                    .push(format!("NodePool {}: its policy {} exists nowhere; it is optional, so the others decide", pool.name, name.name));
            } else if !known {
                lines.push(format!(
                    "NodePool {}: its policy {} exists nowhere, so nothing is bought for the pool; {}? would go on without it",
                    pool.name, name.name, name.name
                ));
            }
        }
    }
    lines.extend(ready.iter().filter_map(|one| one.fence(pools, everywhere)));
    lines
}

impl Ready {
    fn described(&self) -> Policy {
        let stance = |stance| match stance {
            Stance::Ignore => whittle_journal::PolicyStance::Ignore,
            Stance::Closed => whittle_journal::PolicyStance::Closed,
        };
        Policy {
            name: self.name.clone(),
            mode: match self.mode {
                Mode::Enforce => whittle_journal::PolicyMode::Enforce,
                Mode::Observe => whittle_journal::PolicyMode::Observe,
            },
            candidates: stance(self.on_failure.candidates),
            moves: stance(self.on_failure.moves),
            standing: self.standing.clone(),
            failures: 0,
            rests_until: None,
        }
    }

    fn remark(&self, named: &BTreeSet<String>, everywhere: &str) -> String {
        let (name, manifest) = (&self.name, self.policy.module().manifest());
        let place = if names("", everywhere).iter().any(|one| one.name == *name) {
            "; no NodePool names it, so it stands at the end of every NodePool's chain"
        } else if named.contains(name) {
            ""
        } else {
            "; no NodePool names it in whittle.sh/policy, so it is never asked"
        };
        let observed = if self.mode == Mode::Observe { "; it is observed, its answers do not count" } else { "" };
        format!("policy {name}: {} ({} {}){place}{observed}", self.from, manifest.name, manifest.version)
    }

    /// Rules about who may have a node bind what is bought, not where pods run: said of pools that any
    /// pod can run on.
    fn fence(&self, pools: &[&NodePool], everywhere: &str) -> Option<String> {
        if self.mode == Mode::Observe || !tells_askers_apart(self.policy.setup()) {
            return None;
        }
        let asked = |pool: &&&NodePool| names(everywhere, chain_of(pool)).iter().any(|named| named.name == self.name);
        let open = pools.iter().filter(asked).filter(|pool| !pool.template.taints.iter().any(whittle_model::Taint::repels));
        let open: Vec<&str> = open.map(|pool| pool.name.as_str()).collect();
        if open.is_empty() {
            return None;
        }
        const NAMED: usize = 3;
        let reasons = &self.policy.setup().reasons;
        let mut rules: Vec<String> = reasons.iter().take(NAMED).map(|reason| format!("{reason:?}")).collect();
        if reasons.len() > NAMED {
            rules.push(format!("{} more", reasons.len() - NAMED));
        }
        Some(format!(
            "policy {} vetoes purchases ({}), but no taint fences {} {}: pods still bind to any node that is there; \
             a rule that must hold needs a taint or an affinity",
            self.name,
            rules.join(", "),
            if open.len() == 1 { "NodePool" } else { "NodePools" },
            open.join(", ")
        ))
    }
}

/// Whether its vetoes can depend on whose pods they are.
fn tells_askers_apart(setup: &Setup) -> bool {
    let of_whom = |column: &AskerColumn| {
        let name = whittle_model::policy::Column::name(column);
        let stem = name.split(':').next().unwrap_or_default();
        ["namespace", "namespace-label", "label", "annotation", "owner-kind", "workload"].contains(&stem)
    };
    !setup.reasons.is_empty() && setup.wants.pricing.as_ref().is_some_and(|pricing| pricing.askers.iter().any(of_whom))
}
