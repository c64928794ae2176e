//! Instances: bought, billed, ended, taken back. A launch is asked for under the claim's name, and
//! asking again answers with the same instance, as client token and tags make EC2 do.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{
    CapacityType, ComesTo, Duration, Event, Interruption, LaunchFailure, Launched, Micros, NodeClaim, OfferingKey, Outcome, Provided,
    Resources, Timestamp, keys,
};

use super::market::{RECOUNT, SoldOut, reserved};
use super::{Boot, Happening, Reality};
use crate::names;
use crate::timeline::TimelineEvent;

/// EC2's notice before it takes a spot instance back.
const NOTICE: Duration = Duration::minutes(2);

/// An instance.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    /// The claim it was bought for.
    pub(crate) claim: String,
    /// Its claim's pool.
    pub(crate) node_pool: String,
    /// Its claim's node class.
    pub(crate) node_class: String,
    /// `aws:///<zone>/<instance id>`.
    pub(crate) provider_id: String,
    /// What was bought.
    pub(crate) offering: OfferingKey,
    /// Price of an hour when it was bought.
    pub(crate) price: Micros,
    /// When it was bought.
    pub(crate) since: Timestamp,
    /// When its end was ordered or it was taken back.
    pub(crate) ended: Option<Timestamp>,
    /// The node's name, also before it has joined.
    pub(crate) node: String,
    /// Whether it was there before the story began.
    pub(crate) given: bool,
    /// Whether it has shut down.
    gone: bool,
    capacity: Resources,
    allocatable: Resources,
    /// What it was given of what its class came to.
    pub(super) provided: Provided,
}

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Ec2 {
    /// All instances ever, in the order they were bought.
    pub(crate) instances: Vec<Instance>,
    /// What cannot be bought.
    pub(crate) sold_out: Vec<SoldOut>,
    /// What the controller asks not to be given, because it believes that it is sold out or taken back soon.
    pub(crate) avoided: BTreeSet<OfferingKey>,
    /// How many instances each capacity reservation holds, by id.
    pub(super) held: BTreeMap<String, u32>,
    /// What node classes come to, by name.
    pub(super) comes_to: BTreeMap<String, ComesTo>,
    /// Micro-dollars an hour times milliseconds, up to the last time accounts were made.
    billed: i128,
    billed_to: Timestamp,
    /// What was paid from each of these times on.
    course: Vec<(Timestamp, Rate)>,
}

/// What is paid for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rate {
    /// All instances, an hour.
    pub(crate) hourly: Micros,
    /// How many they are.
    pub(crate) instances: usize,
}

impl Ec2 {
    /// The instance of a claim, ended or not; the latest if there should ever be two.
    pub(crate) fn of_claim(&self, claim: &str) -> Option<&Instance> {
        self.instances.iter().rev().find(|i| i.claim == claim)
    }

    /// Instances that are paid for.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter().filter(|i| i.ended.is_none())
    }

    /// What was paid for at each time, up to the last time accounts were made.
    pub(crate) fn course(&self) -> impl Iterator<Item = (Timestamp, Rate)> + '_ {
        self.course.iter().copied()
    }

    /// When accounts were made last.
    pub(crate) const fn billed_to(&self) -> Timestamp {
        self.billed_to
    }

    /// The bill so far.
    pub(crate) fn total(&self) -> Micros {
        Micros(i64::try_from(self.billed / 3_600_000).unwrap_or(i64::MAX))
    }
}

impl Reality {
    /// Writes the time since the last accounts on the bill.
    pub(crate) fn accrue(&mut self) {
        let span = i128::from(self.now.since(self.ec2.billed_to).0);
        if span > 0 {
            let hourly: Micros = self.ec2.running().map(|i| self.price(&i.node_class, &i.offering)).sum();
            let rate = Rate { hourly, instances: self.ec2.running().count() };
            if self.ec2.course.last().is_none_or(|(_, last)| *last != rate) {
                self.ec2.course.push((self.ec2.billed_to, rate));
            }
            self.ec2.billed += i128::from(hourly.0) * span;
            self.ec2.billed_to = self.now;
        }
    }

    /// Buys an instance for a claim, or says why not.
    pub(super) fn launch(&mut self, name: &str) {
        if let Some(instance) = self.ec2.of_claim(name) {
            let outcome = if instance.ended.is_some() { gone(name) } else { Outcome::Launched(launched(instance)) };
            return self.tell(Event::Outcome(Box::new(outcome)));
        }
        let Some(claim) = self.api.claims.get(name).filter(|c| !c.deleting).cloned() else {
            return self.tell(Event::Outcome(Box::new(gone(name))));
        };
        let outcome = match self.buy(&claim) {
            Ok(instance) => {
                self.check_limits(&instance);
                let answer = Outcome::Launched(launched(&instance));
                self.accrue();
                self.boot(&instance);
                let reserved = instance.provided.reservation.is_some();
                self.ec2.instances.push(instance);
                if reserved {
                    // Whoever ordered it counts it when it is told.
                    self.recount();
                }
                answer
            }
            Err(failure) => Outcome::LaunchFailed { claim: name.to_owned(), failure },
        };
        let group = claim.annotations.get(keys::LAUNCH_GROUP).unwrap_or(&claim.name);
        let span = Duration(self.seed.of("launches").of(group).between(15, 25) * 100);
        self.tell_after(span, Event::Outcome(Box::new(outcome)));
    }

    /// One request buys one capacity type, that of the cheapest offering allowed; of what is for
    /// sale of it, the cheapest.
    fn buy(&mut self, claim: &NodeClaim) -> Result<Instance, LaunchFailure> {
        let weather = self.faults.launch(self.now);
        if weather == Some("throttled") {
            return Err(LaunchFailure::Other("RequestLimitExceeded".to_owned(), "request limit exceeded".to_owned()));
        }
        if let Some(why) = self.api.node_classes.get(&claim.node_class).and_then(|c| c.not_ready.clone()) {
            return Err(LaunchFailure::NodeClassNotReady(why));
        }
        let mut tried = self.allowed(claim);
        let some = !tried.is_empty();
        tried.retain(|(_, key)| !self.ec2.avoided.contains(key));
        if some && tried.is_empty() {
            return Err(LaunchFailure::InsufficientCapacity(Vec::new()));
        }
        let Some(capacity_type) = tried.first().map(|(_, key)| key.capacity_type) else {
            return Err(LaunchFailure::Other("NoOffering".to_owned(), "no offering suits the claim".to_owned()));
        };
        tried.retain(|(_, key)| key.capacity_type == capacity_type);
        let open = |key: &OfferingKey| self.for_sale(key) && reserved(claim, key).is_none_or(|id| self.left(&id) > 0);
        let found = tried.iter().find(|(_, key)| open(key)).filter(|_| weather.is_none());
        let Some((price, offering)) = found.cloned() else {
            return Err(LaunchFailure::InsufficientCapacity(tried.into_iter().map(|(_, key)| key).collect()));
        };
        Ok(self.instance(claim, offering, price))
    }

    fn instance(&mut self, claim: &NodeClaim, offering: OfferingKey, price: Micros) -> Instance {
        let catalog = self.api.catalogs.get(&claim.node_class);
        let instance_type = catalog.and_then(|c| c.get(&offering.instance_type));
        let id = names::instance_id(self.seed.of("instances").of(&claim.name));
        let region = catalog.map_or("us-east-1", |c| &c.region);
        let node = names::host_name(self.hosts, region);
        let instance = Instance {
            claim: claim.name.clone(),
            node_pool: claim.node_pool.clone(),
            node_class: claim.node_class.clone(),
            provider_id: format!("aws:///{}/{id}", offering.zone),
            price,
            since: self.now,
            ended: None,
            node,
            given: false,
            gone: false,
            capacity: instance_type.map(|t| t.capacity.clone()).unwrap_or_default(),
            allocatable: instance_type.map(|t| t.allocatable.clone()).unwrap_or_default(),
            provided: Provided { reservation: reserved(claim, &offering), ..self.provided(&claim.node_class, &offering) },
            offering,
        };
        self.hosts += 1;
        instance
    }

    /// An instance that was there before the story began.
    pub(super) fn found(&mut self, claim: &NodeClaim, node: &str) {
        let status = &claim.status;
        let Some(offering) = status.offering() else { return };
        self.ec2.instances.push(Instance {
            claim: claim.name.clone(),
            node_pool: claim.node_pool.clone(),
            node_class: claim.node_class.clone(),
            provider_id: status.provider_id.clone(),
            price: self.price(&claim.node_class, &offering),
            since: status.launched.unwrap_or(claim.created),
            ended: None,
            node: node.to_owned(),
            given: true,
            gone: false,
            capacity: status.capacity.clone(),
            allocatable: status.allocatable.clone(),
            provided: Provided {
                image: status.image.clone(),
                reservation: claim.labels.get(keys::RESERVATION_ID).cloned(),
                ..Provided::default()
            },
            offering,
        });
    }

    fn boot(&mut self, instance: &Instance) {
        let usual = Duration::seconds(self.seed.of("boot").of(&instance.claim).between(30, 45));
        let delay = match self.boot {
            Boot::Usual => Some(usual),
            Boot::Told(delay) => delay,
        };
        if let Some(delay) = delay {
            let delay = Duration(delay.0 + self.faults.slow_join(self.now).0);
            self.later(delay, Happening::Join(instance.claim.clone()));
        }
    }

    /// What may be bought is strict: no purchase may take a pool beyond its limits.
    fn check_limits(&mut self, instance: &Instance) {
        let Some(pool) = self.api.pools.get(&instance.node_pool) else { return };
        let mut used = Resources::default();
        for other in self.ec2.running().filter(|i| i.node_pool == instance.node_pool) {
            used.add(&other.capacity);
            used.add(&Resources::of(&[(whittle_model::resources::NODES, 1)]));
        }
        let mut added = instance.capacity.clone();
        added.add(&Resources::of(&[(whittle_model::resources::NODES, 1)]));
        if let Some((name, over)) = pool.limits.crossed_by(&used, &added) {
            self.violations.push(format!("claim {} takes nodepool {} beyond its limit of {name} by {over}", instance.claim, pool.name));
        }
    }

    /// Ends the instance of a claim.
    pub(super) fn terminate(&mut self, claim: &str) {
        self.accrue();
        let now = self.now;
        let span = Duration::seconds(self.seed.of("ends").of(claim).between(20, 40));
        match self.ec2.instances.iter_mut().find(|i| i.claim == claim && !i.gone) {
            Some(instance) if instance.ended.is_none() => {
                instance.ended = Some(now);
                self.later(span, Happening::Ended(claim.to_owned()));
            }
            Some(_) => {} // it is shutting down already
            None => self.tell(Event::Outcome(Box::new(gone(claim)))),
        }
    }

    pub(super) fn ended(&mut self, claim: &str) {
        let node = self.ec2.instances.iter_mut().rev().find(|i| i.claim == claim).map(|instance| {
            instance.gone = true;
            instance.node.clone()
        });
        self.collect(&node.unwrap_or_default());
        self.tell(Event::Outcome(Box::new(gone(claim))));
        if !self.ec2.held.is_empty() {
            self.later(RECOUNT, Happening::CountHeld);
        }
    }

    /// EC2 gives notice that it takes the instance of a node back; false when there is none.
    pub(crate) fn interrupt(&mut self, node: &str) -> bool {
        let found = self.ec2.running().find(|i| i.node == node).cloned();
        let Some(instance) = found else { return false };
        self.notes.push(TimelineEvent::Interrupted { node: node.to_owned() });
        let spot = instance.offering.capacity_type == CapacityType::Spot;
        let what = if spot { Interruption::SpotInterrupted } else { Interruption::ScheduledChange };
        self.tell(Event::Interrupted { provider_id: instance.provider_id, what });
        self.later(NOTICE, Happening::Reclaim(instance.claim));
        true
    }

    /// EC2 recommends to leave the instance of a node, and nothing more comes of it; false when there is none.
    pub(crate) fn advise(&mut self, node: &str) -> bool {
        let found = self.ec2.running().find(|i| i.node == node).map(|i| i.provider_id.clone());
        let Some(provider_id) = found else { return false };
        self.notes.push(TimelineEvent::Advised { node: node.to_owned() });
        self.tell(Event::Interrupted { provider_id, what: Interruption::RebalanceRecommendation });
        true
    }

    /// Half of all spot instances are taken back at once, and EC2 recommends to leave the others.
    pub(super) fn take_back(&mut self, time: u64) {
        let seed = self.seed.of("taken back").nth(time);
        let spot = self.ec2.running().filter(|i| i.offering.capacity_type == CapacityType::Spot && self.api.nodes.contains_key(&i.node));
        let nodes: Vec<(String, bool)> = spot.map(|i| (i.node.clone(), seed.of(&i.claim).percent(50))).collect();
        for (node, taken) in nodes {
            if taken {
                self.interrupt(&node)
            } else {
                self.advise(&node)
            };
        }
    }

    /// Somebody deletes a claim, with no reason that the engine knows of.
    pub(super) fn delete_one(&mut self, time: u64) {
        let names: Vec<String> = self.api.claims.keys().cloned().collect();
        let last = i64::try_from(names.len()).unwrap_or(0) - 1;
        if last >= 0 {
            let at = self.seed.of("deleted").nth(time).between(0, last);
            self.delete_claim(&names[usize::try_from(at).unwrap_or(0)]);
        }
    }

    pub(super) fn reclaimed(&mut self, claim: &str) {
        self.accrue();
        let now = self.now;
        let Some(instance) = self.ec2.instances.iter_mut().find(|i| i.claim == claim && i.ended.is_none()) else { return };
        instance.ended = Some(now);
        instance.gone = true;
        let node = instance.node.clone();
        self.notes.push(TimelineEvent::InstanceLost { node: node.clone(), claim: claim.to_owned() });
        self.lose(&node);
        self.collect(&node);
        self.tell(Event::Outcome(Box::new(gone(claim))));
    }

    /// The oldest node whose instance runs, of one capacity type or of any.
    pub(crate) fn oldest(&self, capacity_type: Option<whittle_model::CapacityType>) -> Option<String> {
        let mut joined = self.ec2.running().filter(|i| self.api.nodes.contains_key(&i.node));
        joined.find(|i| capacity_type.is_none_or(|c| c == i.offering.capacity_type)).map(|i| i.node.clone())
    }

    /// A claim that was ever given more than one instance.
    pub(crate) fn twice(&self) -> Option<&str> {
        // Only the last one bought can be new.
        let last = self.ec2.instances.last()?;
        let before = &self.ec2.instances[..self.ec2.instances.len() - 1];
        before.iter().any(|i| i.claim == last.claim).then_some(last.claim.as_str())
    }

    /// Instances beyond the first of a claim, and instances that run for no claim.
    pub(crate) fn strays(&self) -> Vec<String> {
        let mut seen = std::collections::BTreeSet::new();
        let all = self.ec2.instances.iter();
        all.filter(|i| !seen.insert(i.claim.as_str()) || (i.ended.is_none() && !self.api.claims.contains_key(&i.claim)))
            .map(|i| format!("{} of claim {}", i.provider_id, i.claim))
            .collect()
    }

    /// Labels that kubelet and cloud give the node of an instance.
    pub(super) fn first_labels(&self, instance: &Instance) -> whittle_model::Labels {
        let catalog = self.api.catalogs.get(&instance.node_class);
        let labels = catalog.and_then(|c| c.get(&instance.offering.instance_type)).map(|t| &t.labels);
        let of_type = |key: &str, usual: &str| labels.and_then(|l| l.get(key)).map_or(usual, String::as_str).to_owned();
        [
            (keys::HOSTNAME, instance.node.clone()),
            (keys::INSTANCE_TYPE, instance.offering.instance_type.clone()),
            (keys::ZONE, instance.offering.zone.clone()),
            (keys::REGION, catalog.map(|c| c.region.clone()).unwrap_or_default()),
            (keys::ARCH, of_type(keys::ARCH, "amd64")),
            (keys::OS, of_type(keys::OS, "linux")),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// What an instance has, and what pods can use of it.
    pub(super) fn amounts(instance: &Instance) -> (Resources, Resources) {
        (instance.capacity.clone(), instance.allocatable.clone())
    }
}

fn gone(claim: &str) -> Outcome {
    Outcome::InstanceGone { claim: claim.to_owned() }
}

fn launched(instance: &Instance) -> Launched {
    Launched {
        reservation: instance.provided.reservation.clone(),
        claim: instance.claim.clone(),
        provider_id: instance.provider_id.clone(),
        instance_type: instance.offering.instance_type.clone(),
        zone: instance.offering.zone.clone(),
        capacity_type: instance.offering.capacity_type,
        price: instance.price,
        capacity: instance.capacity.clone(),
        allocatable: instance.allocatable.clone(),
        image: instance.provided.image.clone(),
        sold_out: Vec::new(),
    }
}
