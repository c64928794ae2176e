//! Policy `calendar`: windows in which nothing moves for some reasons, or outside which nothing does. What must not enter:
//! how much a move is worth.

mod config;
mod window;

pub use config::{Config, Dates, Day, Kind, Window};

use whittle_sdk::prelude::*;
use wildmatch::WildMatch;
use window::Hours;

/// The policy.
#[derive(Debug)]
pub struct Calendar {
    rules: Vec<Rule>,
    /// No window is open that allows it.
    shut: Reason,
}

/// A window, and whether it is open in this round.
#[derive(Debug)]
struct Rule {
    hours: Hours,
    pools: Vec<WildMatch>,
    forbid: Vec<Kind>,
    allow: Vec<Kind>,
    open: bool,
    reason: Reason,
}

impl Policy for Calendar {
    type Config = Config;
    const ABOUT: About = About { name: "calendar", version: env!("CARGO_PKG_VERSION"), documentation: include_str!("../README.md") };

    fn configure(config: Config, setup: &mut Setup) -> Result<Self, String> {
        setup.round([RoundColumn::TimeSeconds]).moves([MoveColumn::Kind]);
        let mut rules = Vec::new();
        for (number, window) in config.windows.iter().enumerate() {
            let place = if window.name.is_empty() { format!("windows[{number}]") } else { format!("window {:?}", window.name) };
            check(window, &config.windows[..number]).map_err(|why| format!("{place}: {why}"))?;
            for kind in window.forbid.iter().chain(&window.allow) {
                setup.kind(kind.word());
            }
            if !window.node_pools.is_empty() {
                setup.move_pools([MovePoolColumn::NodePool]);
            }
            rules.push(Rule {
                hours: Hours::new(window, &config.time_zone).map_err(|why| format!("{place}: {why}"))?,
                pools: window.node_pools.iter().map(|pattern| WildMatch::new(pattern)).collect(),
                forbid: window.forbid.clone(),
                allow: window.allow.clone(),
                open: false,
                // Braces would be taken for columns.
                reason: setup.reason(format!("window {} is open: nothing {{kind}} moves", window.name.replace(['{', '}'], ""))),
            });
        }
        Ok(Self { rules, shut: setup.reason("no window is open in which what is {kind} may move") })
    }

    fn open(&mut self, round: Round<'_>) {
        self.rules.iter_mut().for_each(|rule| rule.open = rule.hours.open(round.time_seconds()));
    }

    fn score(&self, candidate: Move<'_>) -> Score {
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.word() == candidate.kind()) else { return Score::unchanged() };
        let about = |rule: &&Rule| rule.speaks_of(candidate);
        if let Some(rule) = self.rules.iter().filter(about).find(|rule| rule.open && rule.forbid.contains(&kind)) {
            return Score::veto(rule.reason);
        }
        if !self.allowed_everywhere(candidate, kind) {
            return Score::veto(self.shut);
        }
        // Nobody but a policy asks for such moves; who names them in a window does.
        let named = || self.rules.iter().filter(about).any(|rule| rule.forbid.contains(&kind) || rule.allow.contains(&kind));
        if matches!(kind, Kind::Expired | Kind::Rebalance) && named() { Score::of(candidate.score().max(1)) } else { Score::unchanged() }
    }
}

impl Calendar {
    /// Whether no pool of a move waits for a window that allows it.
    fn allowed_everywhere(&self, candidate: Move<'_>, kind: Kind) -> bool {
        let allowed = |pool: &str| {
            let mut allowing = self.rules.iter().filter(|rule| rule.allow.contains(&kind) && rule.fits(pool)).peekable();
            allowing.peek().is_none() || allowing.any(|rule| rule.open)
        };
        if self.rules.iter().all(|rule| rule.pools.is_empty()) {
            return allowed("");
        }
        candidate.pool_rows().all(|pool| allowed(pool.node_pool()))
    }
}

impl Rule {
    fn fits(&self, pool: &str) -> bool {
        self.pools.is_empty() || self.pools.iter().any(|pattern| pattern.matches(pool))
    }

    /// Whether it speaks of any pool that a move touches.
    fn speaks_of(&self, candidate: Move<'_>) -> bool {
        self.pools.is_empty() || candidate.pool_rows().any(|pool| self.fits(pool.node_pool()))
    }
}

fn check(window: &Window, before: &[Window]) -> Result<(), String> {
    if window.name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if before.iter().any(|other| other.name == window.name) {
        return Err("two windows have this name".to_owned());
    }
    if window.forbid.is_empty() && window.allow.is_empty() {
        return Err("it says nothing: give it forbid or allow".to_owned());
    }
    if window.node_pools.iter().any(String::is_empty) {
        return Err("nodePools: a name is empty".to_owned());
    }
    Ok(())
}

whittle_sdk::export!(Calendar);
