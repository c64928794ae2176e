//! The launch templates there are: made when first needed, deleted when long unused or when their class goes.
//!
//! What must not enter: what a template holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use aws_sdk_ec2::types::Filter;
use tokio::sync::Mutex;
use whittle_model::{Duration, Timestamp, keys};

use crate::{Aws, CloudError, ErrorKind, image::TemplateSpec};

/// A template costs nothing, and making it anew costs a call before a launch.
const UNUSED_FOR: Duration = Duration::minutes(10);
/// Values that one filter takes.
const FILTER_VALUES: usize = 200;
const PAGE: i32 = 200;

/// The launch templates that are known to exist, by name.
#[derive(Debug)]
pub(crate) struct Templates {
    aws: Arc<Aws>,
    cluster: String,
    known: std::sync::Mutex<BTreeMap<String, Slot>>,
}

/// When it was last used; `None` while it is not known to exist. The lock is held while it is made.
type Slot = Arc<Mutex<Option<Timestamp>>>;

impl Templates {
    pub(crate) fn new(aws: Arc<Aws>, cluster: &str) -> Self {
        Self { aws, cluster: cluster.to_owned(), known: std::sync::Mutex::default() }
    }

    /// Makes those templates that do not exist.
    pub(crate) async fn ensure(&self, wanted: &BTreeMap<String, TemplateSpec>, now: Timestamp) -> Result<(), CloudError> {
        let slots: Vec<(&String, Slot)> = wanted.keys().map(|name| (name, self.slot(name))).collect();
        let mut missing = Vec::new();
        // In the order of names, so that two launches never wait for each other.
        for (name, slot) in &slots {
            let mut used = slot.lock().await;
            match used.as_mut() {
                Some(used) => *used = now.max(*used),
                None => missing.push((*name, used)),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let found = self.existing(&names).await?;
        for (name, mut used) in missing {
            if !found.contains(name) {
                self.create(name, &wanted[name]).await?;
            }
            *used = Some(now);
        }
        Ok(())
    }

    /// These templates turned out not to exist.
    pub(crate) async fn vanished(&self, names: impl Iterator<Item = &String>) {
        for name in names {
            *self.slot(name).lock().await = None;
        }
    }

    /// Remembers the cluster's templates that exist, so that those of an earlier life are deleted when unused.
    pub(crate) async fn hydrate(&self, now: Timestamp) -> Result<(), CloudError> {
        for name in self.tagged(Vec::new()).await? {
            self.slot(&name).lock().await.get_or_insert(now);
        }
        Ok(())
    }

    /// Deletes what was not used for long. Answers how many were deleted.
    pub(crate) async fn sweep(&self, now: Timestamp) -> Result<usize, CloudError> {
        let slots: Vec<(String, Slot)> = self.with(|known| known.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect());
        let mut deleted = 0;
        for (name, slot) in slots {
            let mut used = slot.lock().await;
            if used.is_some_and(|at| now.since(at) >= UNUSED_FOR) {
                self.delete(&name).await?;
                *used = None;
                deleted += 1;
            }
        }
        // A slot that somebody else holds may be about to be filled.
        self.with(|known| known.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|used| used.is_some())));
        Ok(deleted)
    }

    /// Deletes the templates of a node class.
    pub(crate) async fn delete_of_class(&self, class: &str) -> Result<(), CloudError> {
        let of_class = Filter::builder().name(format!("tag:{}", keys::NODE_CLASS)).values(class).build();
        for name in self.tagged(vec![of_class]).await? {
            let slot = self.slot(&name);
            let mut used = slot.lock().await;
            self.delete(&name).await?;
            *used = None;
        }
        Ok(())
    }

    /// Which of these exist. Asked by filter: a name that does not exist is then no error.
    async fn existing(&self, names: &[&str]) -> Result<BTreeSet<String>, CloudError> {
        let mut found = BTreeSet::new();
        for some in names.chunks(FILTER_VALUES) {
            let values = some.iter().map(|name| (*name).to_owned()).collect();
            let by_name = Filter::builder().name("launch-template-name").set_values(Some(values)).build();
            found.extend(self.read(vec![by_name], &some.join(", ")).await?);
        }
        Ok(found)
    }

    /// The cluster's templates that pass the filters as well. Others may mark theirs as the cluster's too: ours have a
    /// node class, and a name of ours.
    async fn tagged(&self, mut filters: Vec<Filter>) -> Result<Vec<String>, CloudError> {
        filters.push(Filter::builder().name(format!("tag:kubernetes.io/cluster/{}", self.cluster)).values("owned").build());
        filters.push(Filter::builder().name("tag-key").values(keys::NODE_CLASS).build());
        let mut names = self.read(filters, "of the cluster").await?;
        names.retain(|name| name.starts_with(keys::AWS_PREFIX));
        Ok(names)
    }

    async fn read(&self, filters: Vec<Filter>, object: &str) -> Result<Vec<String>, CloudError> {
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let request = self.aws.ec2.describe_launch_templates();
            let request = request.set_filters(Some(filters.clone())).max_results(PAGE).set_next_token(token.take());
            let page = self.aws.call("DescribeLaunchTemplates", object, || request.clone().send()).await?;
            found.extend(page.launch_templates().iter().filter_map(|t| t.launch_template_name()).map(ToOwned::to_owned));
            token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    async fn create(&self, name: &str, spec: &TemplateSpec) -> Result<(), CloudError> {
        let request = self.aws.ec2.create_launch_template().launch_template_name(name);
        let request = request.launch_template_data(spec.data()).tag_specifications(spec.template_tags());
        match self.aws.call("CreateLaunchTemplate", name, || request.clone().send()).await {
            // The name is a hash of the content: who made it made the same.
            Err(error) if error.kind != ErrorKind::AlreadyExists => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn delete(&self, name: &str) -> Result<(), CloudError> {
        let request = self.aws.ec2.delete_launch_template().launch_template_name(name);
        match self.aws.call("DeleteLaunchTemplate", name, || request.clone().send()).await {
            Err(error) if !error.is_not_found() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn slot(&self, name: &str) -> Slot {
        self.with(|known| known.entry(name.to_owned()).or_default().clone())
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Slot>) -> T) -> T {
        // Whoever panicked left whole slots behind.
        change(&mut self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}
