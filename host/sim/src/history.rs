//! What the engine reported, kept for the summary and for `explain`, and said as timeline entries.
//!
//! What must not enter: conclusions that no report holds.

use std::collections::{BTreeMap, BTreeSet};

use whittle_engine::Report;
use whittle_engine::report::{Choice, ClaimStep, MoveStage, MoveStep, PlannedClaim, Step, Unplaced};
use whittle_model::{PodKey, PolicyRecord, Timestamp};

use crate::timeline::{Sale, TimelineEvent};

/// Why a claim was made.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) at: Timestamp,
    pub(crate) planned: PlannedClaim,
    pub(crate) choice: Option<Choice>,
}

/// A claim that had to go.
#[derive(Debug, Clone)]
pub(crate) struct Gone {
    pub(crate) at: Timestamp,
    pub(crate) claim: String,
    pub(crate) node: String,
    pub(crate) reason: String,
}

/// Everything reported so far.
#[derive(Debug, Default)]
pub struct History {
    pub(crate) made: BTreeMap<String, Made>,
    pub(crate) meant: BTreeMap<PodKey, (Timestamp, String)>,
    /// Claims whose launch has been told.
    bought: BTreeSet<String>,
    pub(crate) gone: Vec<Gone>,
    pub(crate) kept: BTreeMap<String, String>,
    /// Pods that fitted nowhere at the last plan.
    pub(crate) unplaced: Vec<Unplaced>,
    pub(crate) objections: Vec<String>,
    /// What policies did in all.
    pub(crate) policies: PolicyTotals,
}

/// What each policy did over a story.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyTotals(BTreeMap<String, PolicyRecord>);

impl PolicyTotals {
    fn take(&mut self, record: &PolicyRecord) {
        let total = self
            .0
            .entry(record.policy.clone())
            .or_insert_with(|| PolicyRecord { policy: record.policy.clone(), ..PolicyRecord::default() });
        total.calls += record.calls;
        total.rows += record.rows;
        total.fuel += record.fuel;
        total.ranked += record.ranked;
        total.priced += record.priced;
        for (reason, rows) in &record.vetoes {
            match total.vetoes.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += rows,
                None => total.vetoes.push((reason.clone(), *rows)),
            }
        }
        total.failure = record.failure.clone().or_else(|| total.failure.take());
    }

    /// One record for each policy, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PolicyRecord> {
        self.0.values()
    }
}

impl History {
    /// Takes a report in and returns what it says for the timeline. `node_of` names the node of a
    /// claim, `workload_of` the workload of a pod.
    pub fn take(
        &mut self,
        report: Report,
        node_of: &dyn Fn(&str) -> String,
        workload_of: &dyn Fn(&PodKey) -> String,
    ) -> Vec<TimelineEvent> {
        let mut said = Vec::new();
        let planned = |step: &Step| matches!(step, Step::Planned(_) | Step::Placed { .. } | Step::Unplaced(_));
        if report.steps.iter().any(planned) {
            self.unplaced.clear();
        }
        if let Some(choice) = &report.choice {
            said.push(TimelineEvent::Plan {
                pods: choice.pods,
                room: choice.room,
                nodes: choice.nodes,
                packer: choice.method.clone(),
                cost: choice.cost,
                greedy: choice.greedy,
                bound: choice.bound,
                without_policies: choice.without_policies,
            });
        }
        said.extend(report.failures.iter().map(|failure| TimelineEvent::PolicyFailed {
            policy: failure.policy.clone(),
            why: failure.why.clone(),
            closed: failure.closed,
        }));
        for record in &report.policies {
            self.policies.take(record);
            if record.vetoes.iter().any(|(_, rows)| *rows > 0) || record.ranked > 0 || record.priced > 0 {
                said.push(TimelineEvent::Policy {
                    policy: record.policy.clone(),
                    rows: record.rows,
                    ranked: record.ranked,
                    priced: record.priced,
                    vetoes: record.vetoes.clone(),
                });
            }
        }
        for objection in report.objections {
            said.push(TimelineEvent::Objection { what: objection.clone() });
            self.objections.push(objection);
        }
        for step in report.steps {
            let event = match step {
                Step::Planned(planned) => self.planned(report.at, *planned, report.choice.as_ref()),
                Step::Placed { on, pods } => {
                    self.meant.extend(pods.iter().map(|pod| (pod.clone(), (report.at, on.clone()))));
                    TimelineEvent::Placed { on, pods }
                }
                Step::Unplaced(unplaced) => self.unplaced(*unplaced, workload_of),
                Step::Claim { claim, what } => match self.claim(report.at, claim, what, node_of) {
                    Some(event) => event,
                    None => continue,
                },
                Step::Move(step) => match moved(*step, node_of) {
                    Some(event) => event,
                    None => continue,
                },
                Step::Blocked { claim, why } => {
                    self.kept.insert(claim.clone(), why.clone());
                    TimelineEvent::Kept { claim, why }
                }
                Step::Closed { .. } => continue,
                Step::Nominated { node, pods } => TimelineEvent::Nominated { node, pods },
                Step::CollectionStopped { left, most } => TimelineEvent::CollectionStopped { left, most },
                Step::SoldOut { offering, until } => TimelineEvent::SoldOut { offerings: vec![Sale::from(&offering)], until_ms: until.0 },
            };
            say(&mut said, event);
        }
        said
    }

    fn planned(&mut self, at: Timestamp, planned: PlannedClaim, choice: Option<&Choice>) -> TimelineEvent {
        self.meant.extend(planned.pods.iter().map(|pod| (pod.clone(), (at, planned.claim.clone()))));
        let event = TimelineEvent::Claims {
            claims: vec![planned.claim.clone()],
            node_pool: planned.node_pool.clone(),
            pods: planned.pods.len(),
            room: planned.room,
            types: planned.types,
            choice: Sale::from(&planned.choice),
            price: planned.price,
            list: planned.list,
            rank: planned.rank,
        };
        self.made.insert(planned.claim.clone(), Made { at, planned, choice: choice.cloned() });
        event
    }

    fn unplaced(&mut self, unplaced: Unplaced, workload_of: &dyn Fn(&PodKey) -> String) -> TimelineEvent {
        let event = TimelineEvent::Unplaced {
            workload: unplaced.pods.first().map(workload_of).unwrap_or_default(),
            pods: unplaced.pods.clone(),
            reasons: unplaced.reasons.iter().map(|r| format!("{}: {}", r.place, r.why)).collect(),
            nearest: unplaced.nearest.as_ref().map(ToString::to_string),
        };
        self.unplaced.push(unplaced);
        event
    }

    fn claim(&mut self, at: Timestamp, claim: String, what: ClaimStep, node_of: &dyn Fn(&str) -> String) -> Option<TimelineEvent> {
        Some(match what {
            ClaimStep::Launching => return None,
            ClaimStep::Launched { offering, price } => {
                if !self.bought.insert(claim.clone()) {
                    return None; // a repeated answer tells of the same instance
                }
                TimelineEvent::Launched { claims: vec![claim], offering: Sale::from(&offering), price }
            }
            // The offerings that were tried are told one by one.
            ClaimStep::LaunchFailed(why) if why.starts_with("sold out:") => {
                TimelineEvent::LaunchFailed { claims: vec![claim], why: "all it allows is sold out".to_owned() }
            }
            ClaimStep::LaunchFailed(why) => TimelineEvent::LaunchFailed { claims: vec![claim], why },
            ClaimStep::Registered(node) => TimelineEvent::Registered { nodes: vec![node] },
            ClaimStep::Initialized(node) => TimelineEvent::Initialized { nodes: vec![node] },
            ClaimStep::Kept(why) => {
                self.kept.insert(claim.clone(), why.clone());
                TimelineEvent::Kept { claim, why }
            }
            ClaimStep::Removing(reason) => {
                let node = node_of(&claim);
                if self.gone.iter().any(|g| g.claim == claim) {
                    return None; // the order was given again
                }
                self.gone.push(Gone { at, claim: claim.clone(), node: node.clone(), reason: reason.clone() });
                TimelineEvent::Removing { claim, node, reason }
            }
            // The world tells of pods that go.
            ClaimStep::Evicting(_) => return None,
            ClaimStep::Deleting(pods) => TimelineEvent::OutOfTime { node: node_of(&claim), pods },
            ClaimStep::Held(why) => TimelineEvent::Held { node: node_of(&claim), claim, why },
            ClaimStep::Inconsistent(why) => TimelineEvent::Inconsistent { node: node_of(&claim), claim, why },
            ClaimStep::RebalanceAdvised => return None,
            ClaimStep::Removed => {
                let node = self.gone.iter().find(|g| g.claim == claim).map(|g| g.node.clone()).unwrap_or_default();
                TimelineEvent::Removed { claim, node }
            }
        })
    }
}

/// A move as the timeline tells it. That empty nodes go is told as they go; that a move was found and is ready is told by
/// what follows.
fn moved(step: MoveStep, node_of: &dyn Fn(&str) -> String) -> Option<TimelineEvent> {
    let (stage, why) = match step.stage {
        MoveStage::Begun if step.reason == "Empty" => return None,
        MoveStage::Found | MoveStage::Ready => return None,
        MoveStage::Begun => ("begun", String::new()),
        MoveStage::Rejected(why) => ("rejected", why),
        MoveStage::RolledBack(why) => ("rolledBack", why),
    };
    let nodes = step.claims.iter().map(|claim| node_of(claim)).collect();
    Some(TimelineEvent::Move { reason: step.reason, nodes, replacements: step.replacements, saves: step.saves, stage, why })
}

/// Adds an entry, together with an equal one before it.
fn say(said: &mut Vec<TimelineEvent>, event: TimelineEvent) {
    if !said.last_mut().is_some_and(|last| merge(last, &event)) {
        said.push(event);
    }
}

fn merge(last: &mut TimelineEvent, event: &TimelineEvent) -> bool {
    use TimelineEvent as E;
    let (names, more) = match (last, event) {
        (
            E::Claims { claims, node_pool, pods, room, types, choice, price, rank, .. },
            E::Claims { claims: c, node_pool: n, pods: p, room: k, types: t, choice: o, price: m, rank: r, .. },
        ) if (&*node_pool, &*pods, &*room, &*types, &*choice, &*price, &*rank) == (n, p, k, t, o, m, r) => (claims, c),
        (E::Launched { claims, offering, price }, E::Launched { claims: c, offering: o, price: p }) if offering == o && price == p => {
            (claims, c)
        }
        (E::LaunchFailed { claims, why }, E::LaunchFailed { claims: c, why: w }) if why == w => (claims, c),
        (E::Registered { nodes }, E::Registered { nodes: n }) | (E::Initialized { nodes }, E::Initialized { nodes: n }) => (nodes, n),
        (E::SoldOut { offerings, until_ms }, E::SoldOut { offerings: o, until_ms: u }) if until_ms == u => {
            offerings.extend(o.iter().cloned());
            return true;
        }
        _ => return false,
    };
    names.extend(more.iter().cloned());
    true
}
