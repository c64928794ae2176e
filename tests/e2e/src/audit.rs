//! The audit log of the API server: who wrote what, when. What must not enter: whether that was right.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use crate::kube::text;

/// A request that would change something.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    /// Which token asked: one for each controller that was started.
    pub(crate) credential: String,
    /// create, update, patch or delete.
    pub(crate) verb: String,
    /// Such as `nodeclaims/status`.
    pub(crate) resource: String,
    /// Of the object.
    pub(crate) name: String,
    /// The answer's status.
    pub(crate) code: u64,
    /// When, as the server writes it: in text order.
    pub(crate) at: String,
    /// Who asked.
    pub(crate) user: String,
    /// When it was answered, in text order.
    done: String,
}

impl Write {
    /// Whether the chart's service account asked.
    pub(crate) fn ours(&self) -> bool {
        self.user.starts_with("system:serviceaccount:kube-system:whittle")
    }

    /// In words.
    pub(crate) fn shown(&self) -> String {
        format!("{} {} {} at {}, answered {}", self.verb, self.resource, self.name, self.at, self.code)
    }
}

/// The log from some moment on.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    from: u64,
}

impl Audit {
    /// From now on.
    pub(crate) fn from_now(path: &Path) -> Self {
        Self { path: path.to_owned(), from: std::fs::metadata(path).map_or(0, |file| file.len()) }
    }

    /// Writes of the chart's service account.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn writes(&self) -> Result<Vec<Write>> {
        Ok(self.all()?.into_iter().filter(Write::ours).collect())
    }

    /// What the chart's service account was refused as a conflict, each with the user whose write of the object came
    /// before it; empty when no write is in the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn conflicts(&self) -> Result<Vec<(Write, String)>> {
        let all = self.all()?;
        let ours = all.iter().filter(|write| write.ours() && write.code == 409);
        Ok(ours.map(|write| (write.clone(), before(write, &all))).collect())
    }

    fn all(&self) -> Result<Vec<Write>> {
        let mut file = std::fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut log = String::new();
        file.read_to_string(&mut log)?;
        // The last line may be half written.
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.filter_map(|event| write(&event)).collect())
    }
}

fn before(write: &Write, all: &[Write]) -> String {
    let object = |write: &Write| (write.resource.split('/').next().unwrap_or_default().to_owned(), write.name.clone());
    let mut earlier: Vec<&Write> = all.iter().filter(|other| object(other) == object(write)).collect();
    earlier.retain(|other| other.code < 300 && other.done <= write.done);
    earlier.into_iter().max_by(|a, b| a.done.cmp(&b.done)).map(|last| last.user.clone()).unwrap_or_default()
}

fn write(event: &Value) -> Option<Write> {
    let verb = text(event, "/verb");
    if !matches!(verb, "create" | "update" | "patch" | "delete" | "deletecollection") || text(event, "/stage") != "ResponseComplete" {
        return None;
    }
    let of = |pointer: &str| text(event, pointer).to_owned();
    let sub = text(event, "/objectRef/subresource");
    let resource = text(event, "/objectRef/resource");
    Some(Write {
        credential: of("/user/extra/authentication.kubernetes.io~1credential-id/0"),
        verb: verb.to_owned(),
        resource: if sub.is_empty() { resource.to_owned() } else { format!("{resource}/{sub}") },
        name: of("/objectRef/name"),
        code: event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
        at: of("/requestReceivedTimestamp"),
        user: of("/user/username"),
        done: of("/stageTimestamp"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(user: &str, verb: &str, stage: &str) -> Value {
        json!({
            "stage": stage, "verb": verb, "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z", "responseStatus": { "code": 200 },
            "user": { "username": user, "extra": { "authentication.kubernetes.io/credential-id": ["JTI=a"] } },
            "objectRef": { "resource": "nodeclaims", "subresource": "status", "name": "default-1" },
        })
    }

    const OURS: &str = "system:serviceaccount:kube-system:whittle";

    #[test]
    fn only_finished_writes_of_the_chart_count() {
        let found = write(&event(OURS, "patch", "ResponseComplete"));
        let found = found.expect("it is a write of the chart's account");
        assert_eq!((found.credential.as_str(), found.resource.as_str(), found.code), ("JTI=a", "nodeclaims/status", 200));
        for (user, verb, stage) in [
            (OURS, "get", "ResponseComplete"),
            (OURS, "watch", "ResponseComplete"),
            (OURS, "patch", "ResponseStarted"),
            ("system:kube-scheduler", "patch", "ResponseComplete"),
        ] {
            assert!(write(&event(user, verb, stage)).is_none_or(|write| !write.ours()), "{user} {verb} {stage}");
        }
    }

    #[test]
    fn a_conflict_is_of_the_last_that_wrote_the_object() {
        let write = |user: &str, name: &str, code: u64, done: u32| {
            let mut event = event(user, "patch", "ResponseComplete");
            event["objectRef"]["name"] = json!(name);
            event["responseStatus"]["code"] = json!(code);
            event["stageTimestamp"] = json!(format!("2026-01-01T00:00:00.{done:06}Z"));
            write(&event).expect("it is a write")
        };
        let all = [
            write(OURS, "a", 200, 1),
            write("kubelet", "a", 200, 2),
            write("kubelet", "b", 200, 4),
            write("scheduler", "a", 409, 4),
            write(OURS, "a", 409, 5),
            write("kubelet", "a", 200, 6),
        ];
        assert_eq!(before(&all[4], &all), "kubelet");
        assert_eq!(before(&write(OURS, "b", 409, 3), &all), "");
        assert_eq!(before(&write(OURS, "a", 409, 1), &all), OURS);
    }
}
