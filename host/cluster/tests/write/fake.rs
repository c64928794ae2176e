//! An API server in memory: enough of it for the writes of the door, and answers of one's own in between.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    answers: VecDeque<Option<(u16, Value)>>,
    log: Vec<String>,
}

type Reply = Result<Value, (u16, Value)>;

impl Fake {
    pub fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move { Ok::<_, Infallible>(fake.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Puts an object at `path`, as it is.
    pub fn put(&self, path: &str, object: Value) {
        self.state(|state| {
            state.put(path, object);
        });
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.state(|state| state.objects.get(path).cloned())
    }

    /// Answers a coming request with this, in order; `None` lets one through.
    pub fn answer_next(&self, answer: Option<(u16, Value)>) {
        self.state(|state| state.answers.push_back(answer));
    }

    /// The requests since it was last asked: method, path and body, a line each.
    pub fn log(&self) -> Vec<String> {
        self.state(|state| std::mem::take(&mut state.log))
    }

    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let text = body.collect_bytes().await.map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let reply = self.state(|state| {
            state.log.push(format!("{} {} {text}", parts.method, parts.uri).trim_end().to_owned());
            match state.answers.pop_front().flatten() {
                Some(answer) => Err(answer),
                None => state.carry_out(&parts.method, &path, &body),
            }
        });
        let (code, value) = match reply {
            Ok(value) => (200, value),
            Err(answer) => answer,
        };
        let mut response = Response::new(Body::from(value.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
    }
}

impl State {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn carry_out(&mut self, method: &Method, path: &str, body: &Value) -> Reply {
        let (object, part) = match path.rsplit_once('/') {
            Some((object, "status" | "eviction")) => (object, path.rsplit('/').next().unwrap_or_default()),
            Some(_) | None => (path, ""),
        };
        if *method == Method::POST && part.is_empty() {
            return self.create(path, body.clone());
        }
        let Some(live) = self.objects.get(object).cloned() else {
            return Err(status(404, "NotFound", &format!("{object} not found")));
        };
        match *method {
            Method::GET => Ok(live),
            Method::PATCH => self.patch(object, part, live, body),
            Method::DELETE => self.delete(object, live, &body["preconditions"]["uid"]),
            Method::POST => self.delete(object, live, &body["deleteOptions"]["preconditions"]["uid"]),
            _ => Err(status(405, "MethodNotAllowed", "no such method")),
        }
    }

    fn create(&mut self, path: &str, mut object: Value) -> Reply {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = format!("{path}/{name}");
        if self.objects.contains_key(&path) {
            return Err(status(409, "AlreadyExists", &format!("{name} already exists")));
        }
        object["metadata"]["uid"] = json!(format!("uid-of-{name}"));
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        Ok(self.put(&path, object))
    }

    fn patch(&mut self, path: &str, part: &str, mut live: Value, patch: &Value) -> Reply {
        let differs = |field: &str| !patch["metadata"][field].is_null() && patch["metadata"][field] != live["metadata"][field];
        if differs("resourceVersion") {
            return Err(status(409, "Conflict", "the object has been modified"));
        }
        if differs("uid") {
            let (code, mut answer) = status(422, "Invalid", "metadata.uid: field is immutable");
            answer["details"] =
                json!({ "causes": [{ "field": "metadata.uid", "reason": "FieldValueInvalid", "message": "field is immutable" }] });
            return Err((code, answer));
        }
        let before = live.clone();
        merge(&mut live, patch);
        if part == "status" {
            let status = live["status"].take();
            live = before.clone();
            live["status"] = status;
        } else {
            live["status"] = before["status"].clone();
        }
        let leaves =
            !live["metadata"]["deletionTimestamp"].is_null() && live["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if leaves {
            self.objects.remove(path);
            return Ok(live);
        }
        Ok(if live == before { live } else { self.put(path, live) })
    }

    fn delete(&mut self, path: &str, mut live: Value, uid: &Value) -> Reply {
        if !uid.is_null() && *uid != live["metadata"]["uid"] {
            return Err(status(409, "Conflict", "the uid in the precondition does not match"));
        }
        if live["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            self.objects.remove(path);
            return Ok(json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }));
        }
        live["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
        Ok(self.put(path, live))
    }
}

pub fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    (code, json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message }))
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}
