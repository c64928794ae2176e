//! An API server in memory: lists in pages, watches from a version on, bookmarks, versions that are too old, and trouble on
//! demand. It knows nothing of any kind but its path.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use futures::{StreamExt, channel::mpsc};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Trouble for one request.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// The server answers with this code.
    Code(u16),
    /// Nobody answers.
    Refused,
}

#[derive(Default)]
struct Shelf {
    objects: BTreeMap<String, Value>,
    /// What lists of more than one page are read from, by version.
    snapshots: BTreeMap<u64, Vec<Value>>,
    /// Version and line of each change.
    history: Vec<(u64, String)>,
    watchers: Vec<mpsc::UnboundedSender<String>>,
    /// For the next requests, one each.
    trouble: VecDeque<Trouble>,
    /// For all requests.
    closed: Option<u16>,
    /// Lists are forbidden, watches are not.
    unlisted: bool,
    /// Watches are forbidden, lists are not.
    unwatched: bool,
    /// Watches from before this version are too old.
    compacted: u64,
}

#[derive(Default)]
struct State {
    shelves: BTreeMap<String, Shelf>,
    version: u64,
    requests: Vec<String>,
}

/// The server.
#[derive(Clone, Default)]
pub struct Server(Arc<Mutex<State>>);

fn key(object: &Value) -> String {
    let meta = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", meta("namespace"), meta("name"))
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the lock")
    }

    pub fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.answer(&request);
            async move { answer }
        });
        kube::Client::new(service, "default")
    }

    /// Writes an object and tells watchers. Gives it a version, and a uid of its name if it has none.
    pub fn put(&self, shelf: &str, mut object: Value) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let key = key(&object);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(key);
        }
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["managedFields"] = json!([{"manager": "test"}]);
        let shelf = state.shelves.entry(shelf.to_owned()).or_default();
        let what = if shelf.objects.insert(key, object.clone()).is_some() { "MODIFIED" } else { "ADDED" };
        shelf.change(version, what, &object);
    }

    /// Deletes an object and tells watchers.
    pub fn delete(&self, shelf: &str, key: &str) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let shelf = state.shelves.entry(shelf.to_owned()).or_default();
        let mut object = shelf.objects.remove(key).expect("the object is there");
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        shelf.change(version, "DELETED", &object);
    }

    fn shelf<T>(&self, name: &str, f: impl FnOnce(&mut Shelf) -> T) -> T {
        f(self.state().shelves.entry(name.to_owned()).or_default())
    }

    /// Sends a line to the watchers of a shelf.
    pub fn say(&self, shelf: &str, line: &Value) {
        self.shelf(shelf, |s| s.watchers.retain(|w| w.unbounded_send(format!("{line}\n")).is_ok()));
    }

    /// Ends the watches of a shelf.
    pub fn hang_up(&self, shelf: &str) {
        self.shelf(shelf, |s| s.watchers.clear());
    }

    /// Ends the watches of a shelf and forgets its history.
    pub fn compact(&self, shelf: &str) {
        let version = self.state().version;
        self.shelf(shelf, |s| {
            (s.compacted, s.history) = (version, Vec::new());
            s.watchers.clear();
        });
    }

    /// Deletes an object and tells nobody.
    pub fn vanish(&self, shelf: &str, key: &str) {
        self.state().version += 1;
        self.shelf(shelf, |s| s.objects.remove(key)).expect("the object is there");
    }

    /// Trouble for the next requests to a shelf.
    pub fn trouble(&self, shelf: &str, next: &[Trouble]) {
        self.shelf(shelf, |s| s.trouble.extend(next));
    }

    /// A code for all requests to a shelf, or none.
    pub fn close(&self, shelf: &str, code: Option<u16>) {
        self.shelf(shelf, |s| {
            s.closed = code;
            s.watchers.clear();
        });
    }

    /// Forbids lists of a shelf.
    pub fn unlist(&self, shelf: &str) {
        self.shelf(shelf, |s| s.unlisted = true);
    }

    /// Forbids watches of a shelf.
    pub fn unwatch(&self, shelf: &str) {
        self.shelf(shelf, |s| {
            s.unwatched = true;
            s.watchers.clear();
        });
    }

    /// The objects of a shelf.
    pub fn objects(&self, shelf: &str) -> BTreeMap<String, Value> {
        self.shelf(shelf, |s| s.objects.clone())
    }

    /// The requests so far to a shelf: path and query.
    pub fn requests(&self, shelf: &str) -> Vec<String> {
        self.state().requests.iter().filter(|r| r.split('?').next() == Some(shelf)).cloned().collect()
    }

    fn answer(&self, request: &Request<Body>) -> Result<Reply, BoxError> {
        let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
        let mut state = self.state();
        state.requests.push(format!("{path}?{query}"));
        let version = state.version;
        let shelf = state.shelves.entry(path).or_default();
        match shelf.trouble.pop_front().or(shelf.closed.map(Trouble::Code)) {
            Some(Trouble::Refused) => return Err("connection refused".into()),
            Some(Trouble::Code(code)) => return Ok(failure(code)),
            None => {}
        }
        let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        Ok(match query.contains_key("watch") {
            true if shelf.unwatched => failure(403),
            true => shelf.watch(&query, version),
            false if shelf.unlisted => failure(403),
            false => shelf.list(&query, version),
        })
    }
}

impl Shelf {
    fn change(&mut self, version: u64, what: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": what, "object": object}));
        self.history.push((version, line.clone()));
        self.watchers.retain(|w| w.unbounded_send(line.clone()).is_ok());
    }

    /// A page of the objects as they were at the first one; the token is version and position.
    fn list(&mut self, query: &BTreeMap<&str, &str>, version: u64) -> Reply {
        let token = query.get("continue").and_then(|token| token.split_once('.'));
        let (version, from): (u64, usize) = token
            .map_or((version, 0), |(version, from)| (version.parse().expect("it is our token"), from.parse().expect("it is our token")));
        if token.is_some() && version < self.compacted {
            return failure(410);
        }
        let all = self.snapshots.entry(version).or_insert_with(|| self.objects.values().cloned().collect());
        let most = query.get("limit").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
        let items: Vec<&Value> = all.iter().skip(from).take(most).collect();
        let to = from + items.len();
        let token = if to < all.len() { format!("{version}.{to}") } else { String::new() };
        let meta = json!({"resourceVersion": version.to_string(), "continue": token});
        Response::new(whole(&json!({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items})))
    }

    fn watch(&mut self, query: &BTreeMap<&str, &str>, version: u64) -> Reply {
        let from: u64 = query.get("resourceVersion").and_then(|v| v.parse().ok()).unwrap_or(0);
        let (sender, lines) = mpsc::unbounded();
        if query.contains_key("sendInitialEvents") {
            let meta = json!({"resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}});
            let end = json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Any", "metadata": meta}});
            for line in self.objects.values().map(|object| json!({"type": "ADDED", "object": object})).chain([end]) {
                sender.unbounded_send(format!("{line}\n")).expect("the receiver is held");
            }
            self.watchers.push(sender);
        } else if from < self.compacted {
            let gone = json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}});
            sender.unbounded_send(format!("{gone}\n")).expect("the receiver is held");
        } else {
            for (_, line) in self.history.iter().filter(|(version, _)| *version > from) {
                sender.unbounded_send(line.clone()).expect("the receiver is held");
            }
            self.watchers.push(sender);
        }
        let frames = lines.map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line))));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}

fn whole(value: &Value) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::from(value.to_string()).boxed_unsync()
}

fn failure(code: u16) -> Reply {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Trouble", "message": "as ordered"});
    let mut response = Response::new(whole(&status));
    *response.status_mut() = http::StatusCode::from_u16(code).expect("tests order real codes");
    response
}
