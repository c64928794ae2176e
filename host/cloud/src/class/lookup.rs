//! Looking up what selector terms name: from memory while that is good, else from AWS, and from memory again, however
//! old, when AWS does not answer.
//!
//! What must not enter: what is looked up, and what becomes of it.

use std::{collections::BTreeSet, future::Future};

use whittle_model::{Duration, Timestamp};

use super::{cache::Cache, selector::Query};
use crate::{Aws, CloudError};

/// What found nothing is looked for again this soon.
const EMPTY: Duration = Duration::minutes(1);
/// What could not be asked is asked again this soon; calls that are refused as too fast wait longer by themselves.
pub(super) const RETRY: Duration = Duration::seconds(15);

/// Something that selector terms name.
pub(super) trait Ask: Clone + Sized {
    /// The answer to one question.
    fn ask(aws: &Aws, query: &Query) -> impl Future<Output = Result<Vec<Self>, CloudError>> + Send;

    /// The id and name by which a term may ask for it; empty where it has none.
    fn handles(&self) -> [&str; 2];
}

/// What was found.
#[derive(Debug)]
pub(super) struct Looked<T> {
    /// `None` when AWS did not answer and nothing is remembered. May name a thing twice.
    pub(super) found: Option<Vec<T>>,
    /// The terms that found nothing.
    pub(super) unmet: Vec<String>,
    /// Why AWS did not answer.
    pub(super) trouble: Option<CloudError>,
    /// When to look again.
    pub(super) next: Timestamp,
}

/// Looks up `queries`. What is found is good for `good`.
pub(super) async fn look<T: Ask>(cache: &Cache<Vec<T>>, aws: &Aws, queries: &[Query], good: Duration, now: Timestamp) -> Looked<T> {
    let mut looked = Looked { found: Some(Vec::new()), unmet: Vec::new(), trouble: None, next: now.plus(good) };
    for query in queries {
        let (answer, next) = match one(cache, aws, query, good, now).await {
            Ok((answer, next)) => (Some(answer), next),
            Err(error) => {
                looked.trouble = Some(error);
                (cache.last(&query.key()), now.plus(RETRY))
            }
        };
        looked.next = looked.next.min(next);
        if let Some(answer) = &answer {
            let handles: BTreeSet<&str> = answer.iter().flat_map(Ask::handles).filter(|handle| !handle.is_empty()).collect();
            looked.unmet.extend(query.unmet(&handles).map(ToOwned::to_owned));
        }
        looked.found = looked.found.zip(answer).map(|(mut all, answer)| {
            all.extend(answer);
            all
        });
    }
    looked
}

async fn one<T: Ask>(
    cache: &Cache<Vec<T>>,
    aws: &Aws,
    query: &Query,
    good: Duration,
    now: Timestamp,
) -> Result<(Vec<T>, Timestamp), CloudError> {
    let key = query.key();
    if let (Some(answer), Some(until)) = (cache.fresh(&key, now), cache.until(&key)) {
        return Ok((answer, until));
    }
    let answer = T::ask(aws, query).await?;
    let good = if answer.is_empty() { good.min(EMPTY) } else { good };
    cache.put(&key, answer.clone(), now, good);
    Ok((answer, now.plus(good)))
}
