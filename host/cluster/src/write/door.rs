//! One request after another to the API server: each passes the gate right before it is sent, and is tried
//! again with back-off while the server is busy or away.
//!
//! What must not enter: what is written.

use std::time::Duration;

use kube::Client;
use kube::core::Status;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::error::WriteError;
use super::gate::{Gate, Term};

/// How long one try waits for its answer: an API server that is well answers within a second, and one that
/// restarts has dropped the request.
const ANSWER: Duration = Duration::from_secs(10);
/// Tries of one request: with the pauses between them about ten seconds, after which the engine orders anew.
const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A change to ask for.
#[derive(Debug, Clone)]
pub(super) struct Call {
    method: http::Method,
    path: String,
    content: &'static str,
    body: Option<Value>,
}

impl Call {
    /// Creates `body` under `path`.
    pub(super) fn create(path: impl Into<String>, body: Value) -> Self {
        Self { method: http::Method::POST, path: path.into(), content: "application/json", body: Some(body) }
    }

    /// Merges `patch` (RFC 7386) into the object at `path`.
    pub(super) fn merge(path: impl Into<String>, patch: Value) -> Self {
        Self { method: http::Method::PATCH, path: path.into(), content: "application/merge-patch+json", body: Some(patch) }
    }

    /// Deletes the object at `path`, if it has this UID where one is given.
    pub(super) fn delete(path: impl Into<String>, uid: Option<&str>) -> Self {
        let body = uid.map(|uid| json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } }));
        Self { method: http::Method::DELETE, path: path.into(), content: "application/json", body }
    }
}

impl Call {
    /// Deletes the object at `path`, if it has this UID, with so many seconds to end.
    pub(super) fn delete_within(path: impl Into<String>, uid: &str, seconds: i64) -> Self {
        let mut call = Self::delete(path, Some(uid));
        if let Some(body) = &mut call.body {
            body["gracePeriodSeconds"] = json!(seconds);
        }
        call
    }
}

/// What the API server answers: the object, or why not. Errors that pass are not among these.
pub(super) type Answer = Result<Value, Box<Status>>;

/// The way to the API server.
#[derive(Clone)]
pub(super) struct Door {
    client: Client,
    gate: Gate,
    manager: String,
}

impl Door {
    /// Through `client`, as field manager `manager`.
    pub(super) fn new(client: Client, gate: Gate, manager: &str) -> Self {
        Self { client, gate, manager: manager.to_owned() }
    }

    /// The term in which what is decided now may be written.
    pub(super) fn term(&self, what: &str) -> Result<Term, WriteError> {
        self.gate.term().ok_or_else(|| WriteError::NotLeader { what: what.to_owned() })
    }

    /// Sends `call` in `term`.
    pub(super) async fn write(&self, what: &str, term: Term, call: &Call) -> Result<Answer, WriteError> {
        let query = if call.method == http::Method::DELETE { String::new() } else { format!("?fieldManager={}", self.manager) };
        let path = format!("{}{query}", call.path);
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        self.insist(what, Some(term), || self.request(&call.method, &path, call.content, &body)).await
    }

    /// Reads the object at `path`; `None` when there is none. Reading needs no term.
    pub(super) async fn read(&self, what: &str, path: &str) -> Result<Option<Value>, WriteError> {
        match self.insist(what, None, || self.request(&http::Method::GET, path, "application/json", "")).await? {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.is_not_found() => Ok(None),
            Err(status) => Err(WriteError::of(what, &status)),
        }
    }

    /// Sends `call` once, without waiting for the server to recover. No gate: the lease is written to open it.
    pub(super) async fn once(&self, call: &Call) -> Result<Answer, kube::Error> {
        let path = format!("{}?fieldManager={}", call.path, self.manager);
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        match self.request(&call.method, &path, call.content, &body).await {
            Ok(value) => Ok(Ok(value)),
            Err(kube::Error::Api(status)) => Ok(Err(status)),
            Err(error) => Err(error),
        }
    }

    /// Reads once.
    pub(super) async fn read_once(&self, path: &str) -> Result<Answer, kube::Error> {
        match self.request(&http::Method::GET, path, "application/json", "").await {
            Ok(value) => Ok(Ok(value)),
            Err(kube::Error::Api(status)) => Ok(Err(status)),
            Err(error) => Err(error),
        }
    }

    async fn request(&self, method: &http::Method, path: &str, content: &'static str, body: &str) -> Result<Value, kube::Error> {
        let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content);
        let request = request.body(body.as_bytes().to_vec()).map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    async fn insist<F, R>(&self, what: &str, term: Option<Term>, mut request: R) -> Result<Answer, WriteError>
    where
        R: FnMut() -> F,
        F: Future<Output = Result<Value, kube::Error>>,
    {
        let mut tries = 0;
        loop {
            if term.is_some_and(|term| !self.gate.lasts(term)) {
                return Err(WriteError::NotLeader { what: what.to_owned() });
            }
            tries += 1;
            let (pause, error) = match timeout(ANSWER, request()).await {
                Ok(Ok(object)) => return Ok(Ok(object)),
                Ok(Err(kube::Error::Api(status))) if !passes(&status) => return Ok(Err(status)),
                Ok(Err(error)) => (asked_for(&error), Some(error)),
                Err(_) => (None, None),
            };
            if tries == TRIES {
                let what = what.to_owned();
                return Err(match error {
                    Some(last) => WriteError::Unavailable { what, tries, last: Box::new(last) },
                    None => WriteError::Silent { what, tries, seconds: ANSWER.as_secs() },
                });
            }
            sleep(pause.unwrap_or_else(|| backoff(tries))).await;
        }
    }
}

fn backoff(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << (tries - 1)).min(LONGEST_PAUSE)
}

/// How long the server asks to wait.
fn asked_for(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)).min(LONGEST_PAUSE))
}

/// Whether this answer is of the server's state and not of the request. What eviction says of disruption
/// budgets comes with such codes too, but is an answer.
fn passes(status: &Status) -> bool {
    (status.code == 429 || status.code >= 500) && !of_budget(status)
}

/// Whether the object is not the one that was seen: it changed since, or another of its name (another UID, which
/// the server takes for a change of a field that never changes) stands in its place.
pub(super) fn changed(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.is_conflict() || (status.is_invalid() && causes.any(|cause| cause.field == "metadata.uid"))
}

/// Whether a disruption budget keeps a pod from being evicted, or more than one budget covers it.
pub(super) fn of_budget(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let message = status.message.to_ascii_lowercase();
    causes.into_iter().any(|cause| cause.reason == "DisruptionBudget")
        || (status.code == 429 && message.contains("disruption budget"))
        || (status.code == 500 && message.contains("poddisruptionbudget"))
}
