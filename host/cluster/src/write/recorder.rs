//! Events: what a person reads under `kubectl describe`. Nobody waits for them, so too many are dropped.
//!
//! What must not enter: which events there are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff;
use kube::Client;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::door::{Call, Door};
use super::gate::Gate;

/// As Karpenter: the same is not said again for so long.
const SAME_FOR: Duration = Duration::from_secs(120);
/// How many notes wait to be sent; more are dropped.
const WAITING: usize = 512;
/// Notes that are remembered as said; the memory of a busy cluster is bounded.
const REMEMBERED: usize = 8192;
/// One note each 100 ms on average: below what the API server grants a client for things that do not matter.
const PAUSE: Duration = Duration::from_millis(100);
/// Of news that is as it should be, so many are taken at once, and after them one each [`SAMPLE_EVERY`]: who looks at one
/// object among few finds them all, and a thousand nodes are not told of one by one.
const SAMPLE: u32 = 10;
/// As Karpenter's pace of nominations.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// The longest message that the API server takes.
const LONGEST: usize = 1024;

/// Whether an event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// As it should be.
    Normal,
    /// Somebody may have to do something.
    Warning,
}

/// The object an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Subject {
    /// Group and version, such as `karpenter.sh/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for objects outside of namespaces.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID; of a Node its name, as the kubelet's events have it.
    pub uid: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Note {
    /// What it is about.
    pub subject: Subject,
    /// Good or bad news.
    pub kind: EventKind,
    /// In one word of capitals, such as `FailedScheduling`.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// Takes events. Clones share one queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Note>,
    said: Arc<Mutex<HashMap<Note, Instant>>>,
    /// Of each reason of sampled notes, until when those that were taken use up its pace.
    samples: Arc<Mutex<HashMap<String, Instant>>>,
    dropped: Arc<AtomicU64>,
    gate: Gate,
}

impl Recorder {
    /// A recorder, and the work of sending what it takes, which ends with the last clone. Events come from
    /// `component`, and pass `gate` like any write.
    pub fn new(client: Client, gate: Gate, component: &str) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let recorder = Self { queue, said: Arc::default(), samples: Arc::default(), dropped: Arc::default(), gate: gate.clone() };
        let work = send(Door::new(client, gate, component), component.to_owned(), waiting);
        (recorder, work)
    }

    /// Takes an event. Never waits: what was said within two minutes, and what is too much, is dropped; and while
    /// another leads, nothing is taken, nor held for said.
    pub fn note(&self, note: Note) {
        if !self.gate.is_open() || self.said_lately(&note) {
            return;
        }
        if self.queue.try_send(note).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As [`Self::note`], of what happens to every pod or node there is: when that is many at once, some stand for all.
    pub fn sample(&self, note: Note) {
        if self.in_pace(&note.reason) {
            self.note(note);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn in_pace(&self, reason: &str) -> bool {
        let now = Instant::now();
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = samples.entry(reason.to_owned()).or_insert(now);
        let next = (*spent).max(now) + SAMPLE_EVERY;
        let fits = next <= now + SAMPLE_EVERY * SAMPLE;
        if fits {
            *spent = next;
        }
        fits
    }

    /// How many events were too many.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn said_lately(&self, note: &Note) -> bool {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(note).is_some_and(|at| now.duration_since(*at) < SAME_FOR) {
            return true;
        }
        if said.len() >= REMEMBERED {
            said.retain(|_, at| now.duration_since(*at) < SAME_FOR);
        }
        if said.len() >= REMEMBERED {
            said.clear();
        }
        said.insert(note.clone(), now);
        false
    }
}

async fn send(door: Door, component: String, mut waiting: mpsc::Receiver<Note>) {
    let mut number = 0u64;
    while let Some(note) = waiting.recv().await {
        number += 1;
        let what = format!("record {} of {} {}", note.reason, note.subject.kind, note.subject.name);
        let Ok(term) = door.term(&what) else { continue };
        let namespace = if note.subject.namespace.is_empty() { "default" } else { &note.subject.namespace };
        let call = Call::create(format!("/api/v1/namespaces/{namespace}/events"), json!(event(&note, namespace, &component, number)));
        match door.write(&what, term, &call).await {
            Ok(Ok(_)) => {}
            Ok(Err(status)) => tracing::debug!("{what}: {}", status.message),
            Err(error) => tracing::debug!("{error}"),
        }
        sleep(PAUSE).await;
    }
}

fn event(note: &Note, namespace: &str, component: &str, number: u64) -> Event {
    let now = jiff::Timestamp::now();
    let subject = &note.subject;
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    // As client-go names them: the subject and the time, made unique.
    let unique = u64::try_from(now.as_nanosecond()).unwrap_or(0).wrapping_add(number);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{unique:x}", subject.name)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: text(&subject.api_version),
            kind: text(&subject.kind),
            namespace: text(&subject.namespace),
            name: text(&subject.name),
            uid: text(&subject.uid),
            ..ObjectReference::default()
        },
        type_: Some(match note.kind {
            EventKind::Normal => "Normal".to_owned(),
            EventKind::Warning => "Warning".to_owned(),
        }),
        reason: Some(note.reason.clone()),
        message: Some(short(&note.message)),
        source: Some(EventSource { component: Some(component.to_owned()), host: None }),
        reporting_component: Some(component.to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        ..Event::default()
    }
}

fn short(message: &str) -> String {
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    let end = (0..=LONGEST - 3).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &message[..end])
}
