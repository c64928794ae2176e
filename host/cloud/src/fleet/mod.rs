//! Instances: bought, found, tagged and ended. Calls of many claims are gathered into few.
//!
//! What must not enter: which claims there should be, timers other than the windows of batches.

mod batch;
mod buy;
mod groups;
mod instances;
mod order;
mod outcome;
mod plan;
mod request;
mod scope;
mod select;
mod shapes;
mod subnets;
mod templates;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use whittle_model::{LaunchFailure, Outcome, Timestamp};

use batch::{Batcher, Window};
use buy::{Buyer, Member, failed};
use groups::Groups;
use instances::Instances;
use shapes::Shapes;
use subnets::Subnets;
use templates::Templates;

pub(crate) use instances::provider_id;
pub use instances::{CLAIM_TAG, Ended, InstanceFacts, InstanceState};
pub use order::{LaunchClass, LaunchOrder, LaunchSettings};

use crate::{Aws, CloudError};

/// As Karpenter: claims of one plan are seen within milliseconds of each other.
const WINDOW: Window = Window { idle: Duration::from_millis(35), max: Duration::from_secs(1), items: 1000 };
/// EC2 shows a new instance to readers within seconds.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a repeated order is answered from memory: longer than any claim waits for its launch to be written down.
const REMEMBERED: whittle_model::Duration = whittle_model::Duration::minutes(60);

/// The instances of one cluster.
#[derive(Debug)]
pub struct Fleet {
    instances: Arc<Instances>,
    templates: Arc<Templates>,
    shapes: Arc<Shapes>,
    launches: Arc<Batcher<Arc<str>, Member, Outcome>>,
    /// By the identity of the claim.
    claims: Arc<Mutex<BTreeMap<String, Known>>>,
}

/// What is known of a claim's launch.
#[derive(Debug, Clone)]
enum Known {
    UnderWay(watch::Receiver<Option<Outcome>>),
    Launched(Timestamp, Box<Outcome>),
}

impl Fleet {
    /// The instances of this cluster.
    #[must_use]
    pub fn new(aws: Arc<Aws>, cluster: &str) -> Self {
        Self::with_pause(aws, cluster, PAUSE)
    }

    /// With another pause between the two readings that look for lost instances.
    #[must_use]
    pub fn with_pause(aws: Arc<Aws>, cluster: &str, pause: Duration) -> Self {
        let instances = Arc::new(Instances::new(aws.clone(), cluster));
        let templates = Arc::new(Templates::new(aws.clone(), cluster));
        let (subnets, groups) = (Subnets::default(), Groups::default());
        let buyer = Arc::new(Buyer { aws, instances: instances.clone(), templates: templates.clone(), subnets, groups, pause });
        let launches = Batcher::new(WINDOW, move |_, members| {
            let buyer = buyer.clone();
            async move { buyer.serve(members).await }
        });
        Self { instances, templates, shapes: Arc::default(), launches, claims: Arc::default() }
    }

    /// Buys an instance for a claim, together with other claims of its shape that are ordered at the same time. An order
    /// that is repeated while the first is under way, or within an hour of its success, gets the same instance. The
    /// launch goes on when the caller no longer waits.
    pub async fn launch(&self, order: LaunchOrder, now: Timestamp) -> Outcome {
        let mut waiting = match self.begin(&order, now) {
            Ok(outcome) => return outcome,
            Err(waiting) => waiting,
        };
        let outcome = waiting.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| failed(&order, interrupted()))
    }

    /// The outcome, where it is known, or where to wait for it.
    fn begin(&self, order: &LaunchOrder, now: Timestamp) -> Result<Outcome, watch::Receiver<Option<Outcome>>> {
        let identity = order.identity().to_owned();
        let mut claims = lock(&self.claims);
        claims.retain(|_, known| match known {
            // A launch whose task died is no longer under way.
            Known::UnderWay(waiting) => waiting.has_changed().is_ok(),
            Known::Launched(at, _) => now.since(*at) < REMEMBERED,
        });
        match claims.get(&identity) {
            Some(Known::UnderWay(waiting)) => return Err(waiting.clone()),
            Some(Known::Launched(_, outcome)) => return Ok((**outcome).clone()),
            None => {}
        }
        let (tell, waiting) = watch::channel(None);
        claims.insert(identity.clone(), Known::UnderWay(waiting.clone()));
        drop(claims);
        let (claims, shapes, launches, order) = (self.claims.clone(), self.shapes.clone(), self.launches.clone(), order.clone());
        tokio::spawn(async move {
            let outcome = launch(&shapes, &launches, order, now).await;
            match outcome {
                Outcome::Launched(_) => lock(&claims).insert(identity, Known::Launched(now, Box::new(outcome.clone()))),
                Outcome::LaunchFailed { .. } | Outcome::InstanceGone { .. } => lock(&claims).remove(&identity),
            };
            // Nobody may be waiting any more; the outcome is remembered.
            let _ = tell.send(Some(outcome));
        });
        Err(waiting)
    }

    /// All instances of the cluster's NodePools that have not ended.
    ///
    /// # Errors
    /// When EC2 does not answer.
    pub async fn list(&self) -> Result<Vec<InstanceFacts>, CloudError> {
        self.instances.list().await
    }

    /// What EC2 says of an instance; `None` when it does not know it.
    ///
    /// # Errors
    /// When EC2 does not answer.
    pub async fn describe(&self, provider_id: &str) -> Result<Option<InstanceFacts>, CloudError> {
        self.instances.describe(provider_id).await
    }

    /// Ends an instance. Asked again, it says whether the instance has ended.
    ///
    /// # Errors
    /// When EC2 refuses or does not answer.
    pub async fn terminate(&self, provider_id: &str) -> Result<Ended, CloudError> {
        self.instances.terminate(provider_id).await
    }

    /// Tags an instance with the names of its node and claim and of the cluster.
    ///
    /// # Errors
    /// When the instance does not exist, or EC2 refuses or does not answer.
    pub async fn tag(&self, provider_id: &str, node: &str, claim: &str) -> Result<(), CloudError> {
        self.instances.tag(provider_id, node, claim).await
    }

    /// Remembers the launch templates that exist: once, when this becomes the leader.
    ///
    /// # Errors
    /// When EC2 does not answer.
    pub async fn hydrate(&self, now: Timestamp) -> Result<(), CloudError> {
        self.templates.hydrate(now).await
    }

    /// Deletes launch templates that were not used for ten minutes; answers how many.
    ///
    /// # Errors
    /// When EC2 refuses or does not answer.
    pub async fn sweep_templates(&self, now: Timestamp) -> Result<usize, CloudError> {
        self.templates.sweep(now).await
    }

    /// Deletes the launch templates of a node class that goes.
    ///
    /// # Errors
    /// When EC2 refuses or does not answer.
    pub async fn delete_templates(&self, class: &str) -> Result<(), CloudError> {
        self.templates.delete_of_class(class).await
    }
}

async fn launch(shapes: &Shapes, launches: &Arc<Batcher<Arc<str>, Member, Outcome>>, order: LaunchOrder, now: Timestamp) -> Outcome {
    let (plan, shape) = match shapes.plan(&order) {
        Ok(shaped) => shaped,
        Err(failure) => return failed(&order, failure),
    };
    let member = Member { order: order.clone(), plan, now };
    launches.ask(shape, member).await.unwrap_or_else(|| failed(&order, interrupted()))
}

fn interrupted() -> LaunchFailure {
    LaunchFailure::Other("LaunchFailed".to_owned(), "the launch was interrupted; it is looked up before it is tried again".to_owned())
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Whoever panicked left a whole map behind.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
