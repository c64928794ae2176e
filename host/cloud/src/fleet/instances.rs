//! The instances there are: reading them, ending them, tagging them.
//!
//! What must not enter: launches, and which instance should end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_ec2::types::{Filter, Instance as Described, InstanceStateName, Tag};
use whittle_model::{CapacityType, Instance, Provided, Timestamp, keys};

use super::batch::{Batcher, Window};
use crate::{Aws, CloudError, ErrorKind};

/// Tag: the claim an instance belongs to, set once its node is registered.
pub const CLAIM_TAG: &str = "karpenter.sh/nodeclaim";
const NAME_TAG: &str = "Name";
const CLUSTER_NAME_TAG: &str = "eks:eks-cluster-name";
/// Values that one filter takes.
const FILTER_VALUES: usize = 200;
const PAGE: i32 = 1000;
/// As Karpenter: far below what a drain takes, long enough for the nodes that one decision ends.
const WINDOW: Window = Window { idle: Duration::from_millis(100), max: Duration::from_secs(1), items: 500 };

/// What EC2 says of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFacts {
    /// `aws:///<zone>/<instance id>`.
    pub provider_id: String,
    /// Its type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// The machine image it booted from.
    pub image: String,
    /// Its subnet; empty once it has ended.
    pub subnet: String,
    /// Its security groups, in order.
    pub security_groups: BTreeSet<String>,
    /// The capacity reservation it runs in.
    pub reservation: Option<String>,
    /// The placement group it stands in.
    pub placement_group: Option<String>,
    /// When it was launched.
    pub launched: Timestamp,
    /// Whether it runs.
    pub state: InstanceState,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl InstanceFacts {
    /// The instance as the engine is told of it.
    #[must_use]
    pub fn listed(&self) -> Instance {
        Instance {
            launched: self.launched,
            group: self.tags.get(keys::LAUNCH_GROUP).cloned(),
            claim: self.tags.get(CLAIM_TAG).cloned(),
            running: self.state == InstanceState::Running,
            provider_id: self.provider_id.clone(),
        }
    }

    /// What it was given. A reservation counts only where it was `bought` for it: EC2 puts other instances into open ones.
    #[must_use]
    pub fn provided(&self, bought: bool) -> Provided {
        Provided {
            image: self.image.clone(),
            subnet: self.subnet.clone(),
            security_groups: self.security_groups.clone(),
            reservation: self.reservation.clone().filter(|_| bought),
            placement_group: self.placement_group.clone(),
        }
    }
}

/// Whether an instance runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// It runs or is about to.
    Running,
    /// It stops or has stopped, and may run again.
    Stopped,
    /// It is ending.
    Ending,
    /// It has ended.
    Ended,
}

/// What became of an order to end an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is ending; it still runs.
    Going,
    /// It has ended, or never was.
    Gone,
}

/// Reads, ends and tags instances. Requests that come close together share calls.
#[derive(Debug)]
pub(crate) struct Instances {
    aws: Arc<Aws>,
    cluster: String,
    describe: Arc<Batcher<(), String, Result<Option<InstanceFacts>, CloudError>>>,
    terminate: Arc<Batcher<(), String, Result<Ended, CloudError>>>,
    /// Instance ids that were ordered to end and are not known to have ended.
    going: Mutex<BTreeSet<String>>,
}

impl Instances {
    pub(crate) fn new(aws: Arc<Aws>, cluster: &str) -> Self {
        let (reads, ends) = (aws.clone(), aws.clone());
        Self {
            aws,
            cluster: cluster.to_owned(),
            describe: Batcher::new(WINDOW, move |(), ids| describe(reads.clone(), ids)),
            terminate: Batcher::new(WINDOW, move |(), ids| terminate(ends.clone(), ids)),
            going: Mutex::default(),
        }
    }

    pub(crate) async fn describe(&self, provider_id: &str) -> Result<Option<InstanceFacts>, CloudError> {
        let answer = self.describe.ask((), instance_id(provider_id).to_owned()).await;
        answer.unwrap_or_else(|| Err(interrupted("DescribeInstances", provider_id)))
    }

    pub(crate) async fn terminate(&self, provider_id: &str) -> Result<Ended, CloudError> {
        let id = instance_id(provider_id).to_owned();
        if self.going().contains(&id) {
            // Readings are cheaper than orders, and say when it is over.
            match self.describe(provider_id).await?.map(|facts| facts.state) {
                Some(InstanceState::Ending) => return Ok(Ended::Going),
                Some(InstanceState::Running | InstanceState::Stopped) => {}
                Some(InstanceState::Ended) | None => {
                    self.going().remove(&id);
                    return Ok(Ended::Gone);
                }
            }
        }
        let answer = self.terminate.ask((), id.clone()).await;
        let ended = answer.unwrap_or_else(|| Err(interrupted("TerminateInstances", provider_id)))?;
        match ended {
            Ended::Going => self.going().insert(id),
            Ended::Gone => self.going().remove(&id),
        };
        Ok(ended)
    }

    fn going(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // Whoever panicked left a whole set behind.
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All instances of the cluster's NodePools that have not ended.
    pub(crate) async fn list(&self) -> Result<Vec<InstanceFacts>, CloudError> {
        let owned = filter(&format!("tag:kubernetes.io/cluster/{}", self.cluster), &["owned"]);
        let pooled = filter("tag-key", &[keys::NODE_POOL]);
        let mut found = read(&self.aws, "of the cluster", vec![owned, pooled, not_ended()]).await?;
        // Strays among these are ended: whoever borrows one tag of ours does not borrow all.
        found.retain(|facts| facts.tags.contains_key(keys::NODE_CLASS));
        Ok(found)
    }

    /// The instances of a launch group that have not ended, by provider id.
    pub(crate) async fn of_group(&self, group: &str) -> Result<Vec<InstanceFacts>, CloudError> {
        let owned = filter(&format!("tag:kubernetes.io/cluster/{}", self.cluster), &["owned"]);
        let tagged = filter(&format!("tag:{}", keys::LAUNCH_GROUP), &[group]);
        let alive = filter("instance-state-name", &["pending", "running"]);
        let mut found = read(&self.aws, &format!("of launch group {group}"), vec![owned, tagged, alive]).await?;
        found.retain(|facts| facts.state == InstanceState::Running);
        found.sort_by(|a, b| a.provider_id.cmp(&b.provider_id));
        Ok(found)
    }

    /// Names the claim, the node and the cluster on an instance. A name that its owner gave stays.
    pub(crate) async fn tag(&self, provider_id: &str, node: &str, claim: &str) -> Result<(), CloudError> {
        let id = instance_id(provider_id);
        let gone = || CloudError::local("CreateTags", &format!("on {id}"), ErrorKind::NotFound, "the instance does not exist");
        let facts = self.describe(provider_id).await?.filter(|facts| facts.state != InstanceState::Ended).ok_or_else(gone)?;
        let wanted = [(NAME_TAG, node), (CLAIM_TAG, claim), (CLUSTER_NAME_TAG, &self.cluster)];
        let missing = wanted.into_iter().filter(|(key, value)| match facts.tags.get(*key) {
            Some(_) if *key == NAME_TAG => false,
            Some(have) => have != value,
            None => true,
        });
        let tags: Vec<Tag> = missing.map(|(key, value)| Tag::builder().key(key).value(value).build()).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let request = self.aws.ec2.create_tags().resources(id).set_tags(Some(tags));
        self.aws.call("CreateTags", &format!("on {id}"), || request.clone().send()).await?;
        Ok(())
    }
}

/// The instance id at the end of a provider id.
pub(crate) fn instance_id(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or(provider_id)
}

pub(crate) fn provider_id(zone: &str, id: &str) -> String {
    format!("aws:///{zone}/{id}")
}

fn interrupted(action: &'static str, provider_id: &str) -> CloudError {
    CloudError::local(action, &format!("of {}", instance_id(provider_id)), ErrorKind::NoAnswer, "the call was interrupted")
}

fn filter(name: &str, values: &[&str]) -> Filter {
    Filter::builder().name(name).set_values(Some(values.iter().map(|v| (*v).to_owned()).collect())).build()
}

fn not_ended() -> Filter {
    filter("instance-state-name", &["pending", "running", "shutting-down", "stopping", "stopped"])
}

/// All instances that pass the filters.
async fn read(aws: &Aws, object: &str, filters: Vec<Filter>) -> Result<Vec<InstanceFacts>, CloudError> {
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let request = aws.ec2.describe_instances().set_filters(Some(filters.clone())).max_results(PAGE).set_next_token(token.take());
        let page = aws.call("DescribeInstances", object, || request.clone().send()).await?;
        found.extend(page.reservations().iter().flat_map(|r| r.instances()).filter_map(facts));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// Asked by filter, not by id: an id that EC2 does not know is then missing from the answer and spoils it for nobody.
async fn describe(aws: Arc<Aws>, ids: Vec<String>) -> Vec<Result<Option<InstanceFacts>, CloudError>> {
    let distinct: Vec<&str> = ids.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
    let mut found = BTreeMap::new();
    let mut failed = BTreeMap::new();
    for some in distinct.chunks(FILTER_VALUES) {
        let object = format!("of {} instances", some.len());
        match read(&aws, &object, vec![filter("instance-id", some)]).await {
            Ok(all) => found.extend(all.into_iter().map(|facts| (instance_id(&facts.provider_id).to_owned(), facts))),
            Err(error) => failed.extend(some.iter().map(|id| ((*id).to_owned(), error.clone()))),
        }
    }
    let answer = |id: &String| failed.get(id).map_or_else(|| Ok(found.get(id).cloned()), |error| Err(error.clone()));
    ids.iter().map(answer).collect()
}

/// What EC2 says of one instance; `None` when it lacks what every instance has.
pub(crate) fn facts(described: &Described) -> Option<InstanceFacts> {
    let zone = described.placement()?.availability_zone()?;
    let state = match described.state().and_then(|state| state.name()) {
        Some(InstanceStateName::Terminated) => InstanceState::Ended,
        Some(InstanceStateName::ShuttingDown) => InstanceState::Ending,
        Some(InstanceStateName::Stopping | InstanceStateName::Stopped) => InstanceState::Stopped,
        // Pending, running, and what EC2 may add: ended only when it says so.
        Some(_) | None => InstanceState::Running,
    };
    let capacity_type = match described.instance_lifecycle().map(|lifecycle| lifecycle.as_str()) {
        Some("spot") => CapacityType::Spot,
        Some(_) | None if described.capacity_reservation_id().is_some() => CapacityType::Reserved,
        Some(_) | None => CapacityType::OnDemand,
    };
    let tag = |tag: &Tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned()));
    Some(InstanceFacts {
        provider_id: provider_id(zone, described.instance_id()?),
        instance_type: described.instance_type()?.as_str().to_owned(),
        zone: zone.to_owned(),
        capacity_type,
        image: described.image_id().unwrap_or_default().to_owned(),
        subnet: described.subnet_id().unwrap_or_default().to_owned(),
        security_groups: described.security_groups().iter().filter_map(|group| group.group_id()).map(ToOwned::to_owned).collect(),
        reservation: described.capacity_reservation_id().map(ToOwned::to_owned),
        placement_group: described.placement().and_then(|placement| placement.group_id()).map(ToOwned::to_owned),
        launched: Timestamp(described.launch_time().and_then(|time| time.to_millis().ok()).unwrap_or_default()),
        state,
        tags: described.tags().iter().filter_map(tag).collect(),
    })
}

/// Ends instances in one call. When that call is refused because of some of them, those that EC2 does not know are gone
/// and the others are ended one by one: unless it was refused for what is true of all, such as too many calls.
async fn terminate(aws: Arc<Aws>, ids: Vec<String>) -> Vec<Result<Ended, CloudError>> {
    let distinct: Vec<String> = ids.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let mut answers = BTreeMap::new();
    match end(&aws, &distinct).await {
        Ok(states) => {
            let state = |id: &String| states.get(id).copied().unwrap_or(Ended::Going);
            answers.extend(distinct.iter().map(|id| (id.clone(), Ok(state(id)))));
        }
        Err(error) if distinct.len() == 1 || concerns_all(error.kind) => {
            let answer = if error.is_not_found() { Ok(Ended::Gone) } else { Err(error) };
            answers.extend(distinct.iter().map(|id| (id.clone(), answer.clone())));
        }
        Err(error) => {
            let unknown = |id: &&String| error.is_not_found() && error.message.contains(id.as_str());
            let (gone, rest): (Vec<&String>, Vec<&String>) = distinct.iter().partition(unknown);
            answers.extend(gone.into_iter().map(|id| (id.clone(), Ok(Ended::Gone))));
            for id in rest {
                let alone = end(&aws, std::slice::from_ref(id)).await;
                let answer = match alone {
                    Ok(states) => Ok(states.get(id).copied().unwrap_or(Ended::Going)),
                    Err(error) if error.is_not_found() => Ok(Ended::Gone),
                    Err(error) => Err(error),
                };
                answers.insert(id.clone(), answer);
            }
        }
    }
    ids.iter().map(|id| answers.get(id).cloned().unwrap_or(Ok(Ended::Going))).collect()
}

/// Whether a refusal would be the same for each instance alone.
const fn concerns_all(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Throttled | ErrorKind::NoAnswer | ErrorKind::Configuration => true,
        ErrorKind::NotFound
        | ErrorKind::LaunchTemplateNotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::Unauthorized
        | ErrorKind::InsufficientCapacity
        | ErrorKind::SpotRoleMissing
        | ErrorKind::TokenReused
        | ErrorKind::DryRunOk
        | ErrorKind::Other => false,
    }
}

async fn end(aws: &Aws, ids: &[String]) -> Result<BTreeMap<String, Ended>, CloudError> {
    let request = aws.ec2.terminate_instances().set_instance_ids(Some(ids.to_vec()));
    let object = ids.join(", ");
    let answer = aws.call("TerminateInstances", &object, || request.clone().send()).await?;
    let ended = |name: Option<&InstanceStateName>| if name == Some(&InstanceStateName::Terminated) { Ended::Gone } else { Ended::Going };
    let state = |change: &aws_sdk_ec2::types::InstanceStateChange| {
        Some((change.instance_id()?.to_owned(), ended(change.current_state().and_then(|state| state.name()))))
    };
    Ok(answer.terminating_instances().iter().filter_map(state).collect())
}
