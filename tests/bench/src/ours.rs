//! The engine as a bench sees it: told everything, then asked for a plan. The only file that knows
//! the engine's door.

use std::collections::BTreeSet;
use std::sync::Arc;

use whittle_engine::{Engine, Plan};
use whittle_model::{Duration, Event, ListPrice, Micros, NodeClass, Scorer, Settings, Timestamp};

use crate::{Input, binding};

/// Any time will do: nothing of an input has a date in the future.
const NOW: Timestamp = Timestamp(1_000_000);

/// An engine that knows an input and has planned nothing.
#[derive(Debug, Clone)]
pub struct Ours(Engine);

/// What a plan comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planned {
    /// Nodes to buy.
    pub nodes: usize,
    /// Pods that fit nowhere.
    pub unplaced: usize,
    /// Cost of an hour of the plan.
    pub cost: Micros,
    /// Cost of an hour of the greedy's plan.
    pub greedy: Micros,
    /// The bound that comes with the plan.
    pub bound: Micros,
}

impl Ours {
    /// Tells an engine the input, event by event.
    #[must_use]
    pub fn new(input: &Input, settings: &Settings) -> Self {
        let mut engine = Engine::new();
        let mut tell = |event: &Event| engine.handle(event, Timestamp(0));
        tell(&Event::Settings(settings.clone()));
        for catalog in &input.catalogs {
            tell(&Event::Catalog(Arc::clone(catalog)));
        }
        let classes: BTreeSet<&str> = input.pools.iter().map(|p| p.template.node_class.as_str()).collect();
        for name in classes {
            tell(&Event::NodeClass(NodeClass { name: name.to_owned(), not_ready: None, ..NodeClass::default() }));
        }
        for pool in &input.pools {
            tell(&Event::NodePool(Box::new(pool.clone())));
        }
        for daemon_set in &input.daemon_sets {
            tell(&Event::DaemonSet(Box::new(daemon_set.clone())));
        }
        for pod in &input.pods {
            tell(&Event::Pod(Box::new(pod.clone())));
        }
        tell(&Event::Synced);
        Self(engine)
    }

    /// The plan. This is what is timed.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.plan_at(NOW)
    }

    /// The plan that this scorer has its say in.
    #[must_use]
    pub fn plan_with(&self, scorer: &mut dyn Scorer) -> Plan {
        self.0.plan(NOW, scorer)
    }

    fn plan_at(&self, now: Timestamp) -> Plan {
        self.0.plan(now, &mut ListPrice)
    }

    /// The cost of an hour of what is bought in the end: the plan's nodes, and those of further
    /// plans for pods that kube-scheduler leaves over once it has bound the others.
    #[must_use]
    pub fn cost_when_bound(mut self, input: &Input, settings: &Settings) -> Micros {
        let mut scheduler = binding::scheduler(settings);
        let mut waiting = input.pods.clone();
        let (mut cost, mut now) = (Micros(0), NOW);
        loop {
            let plan = self.plan_at(now);
            let before = waiting.len();
            cost = cost + plan.nodes.iter().map(|node| node.cost).sum();
            let nodes: Vec<_> = plan.nodes.iter().map(|node| binding::node(input, node)).collect();
            for node in &nodes {
                self.0.handle(&Event::Node(Box::new(node.clone())), now);
            }
            waiting = binding::bind(&mut scheduler, &nodes, &plan, waiting, settings, &mut |bound| {
                self.0.handle(&Event::Pod(Box::new(bound)), now);
            });
            if waiting.is_empty() || waiting.len() == before {
                return cost;
            }
            now = now.plus(Duration::minutes(1)); // names of claims differ by the time of their plan
        }
    }
}

impl From<&Plan> for Planned {
    fn from(plan: &Plan) -> Self {
        let choice = plan.choice.as_ref();
        Self {
            nodes: plan.nodes.len(),
            unplaced: plan.unplaced.iter().map(|u| u.pods.len()).sum(),
            cost: plan.nodes.iter().map(|n| n.cost).sum(),
            greedy: choice.map_or(Micros(0), |c| c.greedy),
            bound: choice.map_or(Micros(0), |c| c.bound),
        }
    }
}
