//! Parameters of SSM that hold image ids.
//!
//! What must not enter: which parameters an alias stands for (that is `image`'s), and the images themselves.

use std::collections::BTreeSet;

use whittle_model::{Duration, Timestamp};

use super::cache::Cache;
use crate::{Aws, CloudError};

/// How long the value of a parameter is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// It names a release: it never changes.
    Pinned,
    /// It moves with each release; a new one is no urgent matter.
    Latest,
    /// Its owner may change it and wait for the change.
    Owned,
}

const PINNED: Duration = Duration::minutes(365 * 24 * 60);
const LATEST: Duration = Duration::minutes(24 * 60);
const OWNED: Duration = Duration::minutes(5);
/// A parameter that does not exist is looked for again this soon.
const ABSENT: Duration = Duration::minutes(5);
/// A value that names a deprecated image is looked up again when it is this old.
const SUSPECT: Duration = Duration::minutes(30);

/// The values that were read.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    values: Cache<Option<String>>,
}

impl Parameters {
    /// The value of a parameter; `None` when it does not exist. Where AWS does not answer, what was read last is taken.
    pub(super) async fn get(&self, aws: &Aws, path: &str, lifetime: Lifetime, now: Timestamp) -> Result<Option<String>, CloudError> {
        if let Some(value) = self.values.fresh(path, now) {
            return Ok(value);
        }
        let request = aws.ssm.get_parameter().name(path);
        let (value, good) = match aws.call("GetParameter", path, || request.clone().send()).await {
            Ok(answer) => (answer.parameter().and_then(|parameter| parameter.value()).map(ToOwned::to_owned), lifetime.good()),
            Err(error) if error.is_not_found() => (None, ABSENT),
            Err(error) => return self.values.last(path).ok_or(error),
        };
        self.values.put(path, value.clone(), now, good);
        Ok(value)
    }

    /// Forgets values that name deprecated images: their owner may have published others.
    pub(super) fn suspect(&self, deprecated: &BTreeSet<&str>, now: Timestamp) {
        let old = |path: &str| self.values.made(path).is_some_and(|made| now.since(made) >= SUSPECT);
        let suspects = self.values.questions(|value| value.as_deref().is_some_and(|id| deprecated.contains(id)));
        for path in suspects.iter().filter(|path| old(path)) {
            self.values.forget(path);
        }
    }
}

impl Lifetime {
    const fn good(self) -> Duration {
        match self {
            Self::Pinned => PINNED,
            Self::Latest => LATEST,
            Self::Owned => OWNED,
        }
    }
}
