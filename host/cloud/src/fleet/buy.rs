//! Buys the instances of claims of one launch shape: looks for those that were bought before, asks EC2 for the rest, and
//! deals them out by the names of the claims. However often it is asked, and whatever answers are lost, no claim gets two.
//!
//! What must not enter: which offerings are asked for, and what a refusal means.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetInputBuilder;
use whittle_model::{Catalog, LaunchFailure, OfferingKey, Outcome, Timestamp};

use super::{
    groups::{Group, Groups},
    instances::{InstanceFacts, Instances},
    order::{LaunchClass, LaunchOrder},
    outcome::{Answer, Bought, Refusal, call_failure, failure, read, sold_out},
    plan::{Plan, hash},
    request::fleet,
    scope::scope_of,
    subnets::Subnets,
    templates::Templates,
};
use crate::{Aws, CloudError, ErrorKind};

/// One of the claims to buy for.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) order: LaunchOrder,
    pub(crate) plan: Arc<Plan>,
    pub(crate) now: Timestamp,
}

/// Buys instances.
#[derive(Debug)]
pub(crate) struct Buyer {
    pub(crate) aws: Arc<Aws>,
    pub(crate) instances: Arc<Instances>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) subnets: Subnets,
    pub(crate) groups: Groups,
    /// EC2 lists a new instance a little after it answered the launch: two readings this far apart do not both miss it.
    pub(crate) pause: Duration,
}

/// The claims of one call, as they are served.
struct Sale<'a> {
    members: &'a [Member],
    plan: &'a Plan,
    now: Timestamp,
    /// Members without an outcome, by the names of their claims.
    open: BTreeMap<&'a str, usize>,
    outcomes: Vec<Option<Outcome>>,
    sold_out: Vec<OfferingKey>,
}

impl<'a> Sale<'a> {
    fn new(members: &'a [Member]) -> Option<Self> {
        let first = members.first()?;
        let open = members.iter().enumerate().map(|(at, member)| (member.order.claim.name.as_str(), at)).collect();
        let outcomes = vec![None; members.len()];
        Some(Self { members, plan: &first.plan, now: first.now, open, outcomes, sold_out: Vec::new() })
    }

    fn class(&self) -> &'a LaunchClass {
        &self.members[0].order.class
    }

    fn catalog(&self) -> &'a Catalog {
        &self.members[0].order.catalog
    }

    /// Deals instances to the claims that `may` have one and that they suit; those that somebody has already are passed over. Answers how
    /// many those were.
    fn deal(&mut self, bought: Vec<Bought>, group: &mut Group, may: impl Fn(&Member) -> bool) -> usize {
        let taken: BTreeSet<&str> = self.members.iter().flat_map(|m| &m.order.taken).map(String::as_str).collect();
        let (mut known, mut free) = (0, Vec::new());
        for instance in bought {
            if taken.contains(instance.provider_id.as_str()) || group.dealt.contains(&instance.provider_id) {
                known += 1;
            } else {
                free.push(instance);
            }
        }
        let members = self.members;
        let takers: Vec<usize> = self.open.values().copied().filter(|at| may(&members[*at])).collect();
        for at in takers {
            let order = &members[at].order;
            let Some(fitting) = free.iter().position(|instance| instance.suits(&order.claim, &order.catalog)) else { continue };
            let instance = free.remove(fitting);
            group.dealt.insert(instance.provider_id.clone());
            self.finish(at, instance.launched(&order.claim, &order.catalog, &self.sold_out));
        }
        known
    }

    fn fail(&mut self, failure: &LaunchFailure, which: impl Fn(&Member) -> bool) {
        let members = self.members;
        let failing: Vec<usize> = self.open.values().copied().filter(|at| which(&members[*at])).collect();
        for at in failing {
            self.finish(at, failed(&members[at].order, failure.clone()));
        }
    }

    fn finish(&mut self, at: usize, outcome: Outcome) {
        self.open.remove(self.members[at].order.claim.name.as_str());
        self.outcomes[at] = Some(outcome);
    }

    fn learn(&mut self, more: Vec<OfferingKey>) {
        self.sold_out.extend(more);
        self.sold_out.sort();
        self.sold_out.dedup();
    }

    fn outcomes(self) -> Vec<Outcome> {
        let nothing = || LaunchFailure::Other("LaunchFailed".to_owned(), "the launch came to nothing; it is tried again".to_owned());
        let outcome = |(member, outcome): (&Member, Option<Outcome>)| outcome.unwrap_or_else(|| failed(&member.order, nothing()));
        self.members.iter().zip(self.outcomes).map(outcome).collect()
    }
}

/// The outcome of an order that came to nothing.
pub(crate) fn failed(order: &LaunchOrder, failure: LaunchFailure) -> Outcome {
    Outcome::LaunchFailed { claim: order.claim.name.clone(), failure }
}

/// A call, ready to be sent.
#[derive(Debug, Clone)]
struct Call {
    request: CreateFleetInputBuilder,
    /// Chosen by zone.
    subnets: BTreeMap<String, String>,
    /// That the instances take in each subnet at most.
    addresses: i64,
}

/// What to do after a call.
enum Next {
    Done,
    /// The same call again, word for word.
    Same,
    /// Another call for those that are left.
    Other,
}

/// What is done once only for a sale.
#[derive(Debug, Default)]
struct Tried {
    /// Templates were made again.
    templates: bool,
    /// Instances of a call whose answer is not known were looked for, or an old answer was passed over.
    looking: bool,
}

impl Buyer {
    /// One outcome for each member. All members have the same launch shape.
    pub(crate) async fn serve(&self, members: Vec<Member>) -> Vec<Outcome> {
        let Some(mut sale) = Sale::new(&members) else { return Vec::new() };
        // Two calls for one group at once could each adopt what the other has bought.
        let group = self.groups.of(&sale.plan.group, sale.now);
        let mut group = group.lock().await;
        if members.iter().any(|member| member.order.adopt) {
            self.adopt(&mut sale, &mut group, |member| member.order.adopt).await;
        }
        self.buy(&mut sale, &mut group).await;
        sale.outcomes()
    }

    /// Looks for instances of the group twice, and deals those that are found. Where it cannot be looked, nothing may
    /// be bought. Answers how many were dealt.
    async fn adopt(&self, sale: &mut Sale<'_>, group: &mut Group, may: impl Fn(&Member) -> bool) -> usize {
        let before = sale.open.len();
        match self.look(sale.plan).await {
            Ok(found) => {
                sale.deal(found, group, may);
                before - sale.open.len()
            }
            Err(error) => {
                sale.fail(&call_failure(&error), may);
                0
            }
        }
    }

    async fn look(&self, plan: &Plan) -> Result<Vec<Bought>, CloudError> {
        let first = self.instances.of_group(&plan.group).await?;
        tokio::time::sleep(self.pause).await;
        let second = self.instances.of_group(&plan.group).await?;
        let bought = |facts: InstanceFacts| (facts.provider_id.clone(), Bought::found(facts, plan.capacity_type));
        let all: BTreeMap<String, Bought> = first.into_iter().chain(second).map(bought).collect();
        Ok(all.into_values().collect())
    }

    /// Asks EC2 until each open claim has an outcome: at most one call more for each thing that is tried once.
    async fn buy(&self, sale: &mut Sale<'_>, group: &mut Group) {
        let mut tried = Tried::default();
        let mut again = None;
        while !sale.open.is_empty() {
            let call = match again.take() {
                Some(call) => call,
                None => match self.prepare(sale, group).await {
                    Ok(call) => call,
                    Err(error) => return self.give_up(sale, &error),
                },
            };
            let next = match self.send(&call, sale).await {
                Ok(answer) => self.answered(answer, sale, group, &mut tried).await,
                Err(error) => self.refused(&error, sale, group, &mut tried).await,
            };
            match next {
                Next::Done => return,
                Next::Same => again = Some(call),
                Next::Other => group.attempt += 1,
            }
        }
    }

    /// The next call for the open claims, in the subnets that are best now.
    async fn prepare(&self, sale: &Sale<'_>, group: &Group) -> Result<Call, CloudError> {
        let plan = sale.plan;
        self.templates.ensure(&plan.templates, sale.now).await?;
        let count = i32::try_from(sale.open.len()).unwrap_or(i32::MAX);
        let addresses = plan.addresses.saturating_mul(i64::from(count));
        let subnets = self.subnets.choose(&sale.class().zones(), &plan.zones(), addresses, sale.now);
        let names: Vec<&str> = sale.open.keys().copied().collect();
        let token = hash(format!("{} {} {}", plan.group, group.attempt, names.join(",")).as_bytes());
        let request = fleet(plan, &subnets, count, &token).ok_or_else(|| CloudError {
            action: "CreateFleet",
            object: format!("for launch group {}", plan.group),
            code: "InsufficientFreeAddressesInSubnet".to_owned(),
            message: "no subnet of the zones that are asked for has a free address".to_owned(),
            kind: ErrorKind::InsufficientCapacity,
        })?;
        Ok(Call { request, subnets, addresses })
    }

    async fn send(&self, call: &Call, sale: &Sale<'_>) -> Result<Answer, CloudError> {
        let object = format!("for launch group {}", sale.plan.group);
        let answer = self.aws.call("CreateFleet", &object, || call.request.clone().send_with(&self.aws.ec2)).await;
        let answer = answer.map(|output| read(&output, sale.plan, &call.subnets));
        let bought = answer.as_ref().map_or(0, |answer| answer.bought.len());
        tracing::debug!(group = sale.plan.group, wanted = sale.open.len(), bought, "a fleet was asked for");
        if answer.as_ref().is_err_and(|error| error.kind == ErrorKind::NoAnswer) {
            // What it took is not known.
            return answer;
        }
        let mut used = BTreeMap::new();
        for instance in answer.iter().flat_map(|answer| &answer.bought) {
            *used.entry(instance.subnet.clone()).or_default() += sale.plan.addresses;
        }
        self.subnets.settle(&call.subnets, call.addresses, &used, sale.now);
        answer
    }

    async fn answered(&self, answer: Answer, sale: &mut Sale<'_>, group: &mut Group, tried: &mut Tried) -> Next {
        let zones = sale.class().zones();
        let emptied = |subnet: &str| self.subnets.emptied(subnet, &zones, sale.now);
        sale.learn(sold_out(&answer.refusals, sale.plan, sale.catalog(), &emptied));
        if answer.bought.is_empty() && !tried.templates && all_are(ErrorKind::LaunchTemplateNotFound, &answer.refusals) {
            tried.templates = true;
            self.templates.vanished(sale.plan.templates.keys()).await;
            return Next::Other;
        }
        if answer.refusals.iter().any(|refusal| ErrorKind::of_code(&refusal.code) == ErrorKind::Throttled) {
            self.aws.slow_down("CreateFleet");
        }
        let old = sale.deal(answer.bought, group, |_| true);
        if old > 0 && !tried.looking {
            // EC2 repeated the answer to a call of an earlier life, whose instances have owners.
            tried.looking = true;
            return Next::Other;
        }
        let why = failure(&answer.refusals, &sale.sold_out);
        sale.fail(&why, |_| true);
        Next::Other
    }

    /// The call was refused as a whole, or its answer was lost.
    async fn refused(&self, error: &CloudError, sale: &mut Sale<'_>, group: &mut Group, tried: &mut Tried) -> Next {
        if error.kind == ErrorKind::LaunchTemplateNotFound && !tried.templates {
            tried.templates = true;
            self.templates.vanished(sale.plan.templates.keys()).await;
            return Next::Other;
        }
        let lost = error.kind == ErrorKind::NoAnswer;
        if (lost || error.kind == ErrorKind::TokenReused) && !tried.looking {
            tried.looking = true;
            let found = self.adopt(sale, group, |_| true).await;
            if !lost {
                // The token was used by an earlier life for this group. What came of that was just looked for.
                return Next::Other;
            }
            if found == 0 {
                // Nothing is to be seen of the lost call. Word for word the same, EC2 carries it out at most once.
                return Next::Same;
            }
            // Others that it bought may still show themselves: the next order looks again before it buys.
        }
        self.give_up(sale, error);
        // The token of a call without an answer stays, so that the next order cannot buy what it bought.
        if lost { Next::Done } else { Next::Other }
    }

    fn give_up(&self, sale: &mut Sale<'_>, error: &CloudError) {
        let refusal = [Refusal::of_call(error)];
        sale.learn(sold_out(&refusal, sale.plan, sale.catalog(), &|_| true));
        let why = if scope_of(&error.code).is_some() { failure(&refusal, &sale.sold_out) } else { call_failure(error) };
        sale.fail(&why, |_| true);
    }
}

fn all_are(kind: ErrorKind, refusals: &[Refusal]) -> bool {
    !refusals.is_empty() && refusals.iter().all(|refusal| ErrorKind::of_code(&refusal.code) == kind)
}
