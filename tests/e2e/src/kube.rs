//! The API server as a person sees it: kubectl, and plain HTTP through its proxy where we look often. What must not
//! enter: what any story wants of it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::StatusCode;

pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const PODS: &str = "/api/v1/pods";
pub(crate) const EVENTS: &str = "/api/v1/events";
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
pub(crate) const CLASSES: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses";
pub(crate) const POLICIES: &str = "/apis/whittle.sh/v1alpha1/scoringpolicies";
pub(crate) const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";

/// An administrator at the API server.
#[derive(Debug)]
pub(crate) struct Kube {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    proxy: String,
    agent: Agent,
}

/// An agent that reports refusals as answers.
pub(crate) fn agent() -> Agent {
    let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
    config.build().into()
}

impl Kube {
    /// By kubectl with a kubeconfig, and by the port of a `kubectl proxy`.
    pub(crate) fn new(kubectl: &Path, kubeconfig: &Path, proxy_port: u16) -> Self {
        Self {
            kubectl: kubectl.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            proxy: format!("http://127.0.0.1:{proxy_port}"),
            agent: agent(),
        }
    }

    /// Runs kubectl and answers with what it printed.
    ///
    /// # Errors
    /// When it fails: with what it said.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with("", args)
    }

    fn kubectl_with(&self, input: &str, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot run kubectl")?;
        if let Some(mut to) = child.stdin.take() {
            to.write_all(input.as_bytes())?;
        }
        let out = child.wait_with_output()?;
        ensure!(out.status.success(), "kubectl {} failed: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim());
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// Applies manifests.
    ///
    /// # Errors
    /// When one is refused: with the server's words.
    pub(crate) fn apply(&self, manifests: &str) -> Result<()> {
        self.kubectl_with(manifests, &["apply", "-f", "-"]).map(drop)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.proxy)
    }

    /// An object or a list, if there is one.
    ///
    /// # Errors
    /// When the server cannot be asked or refuses.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Value>> {
        let mut answer = self.agent.get(self.url(path)).call()?;
        let read = answer.body_mut().with_config().limit(256 << 20).read_to_string()?;
        match answer.status() {
            StatusCode::OK => Ok(Some(serde_json::from_str(&read)?)),
            StatusCode::NOT_FOUND => Ok(None),
            status => bail!("GET {path}: {status}: {read}"),
        }
    }

    /// An object that there is.
    ///
    /// # Errors
    /// When there is none, too.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.find(path)?.with_context(|| format!("there is no {path}"))
    }

    /// The objects of a list; none when the kind is not known.
    ///
    /// # Errors
    /// When the server cannot be asked or refuses.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<Value>> {
        match self.find(path)?.map(|mut list| list["items"].take()) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Patches an object by merging.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Result<()> {
        let request = self.agent.patch(self.url(path)).content_type("application/merge-patch+json");
        let mut answer = request.send(patch.to_string())?;
        let read = answer.body_mut().read_to_string()?;
        ensure!(answer.status().is_success(), "PATCH {path}: {}: {read}", answer.status());
        Ok(())
    }

    /// Posts an object and answers with what became of it.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let mut answer = self.agent.post(self.url(path)).content_type("application/json").send(body.to_string())?;
        let read = answer.body_mut().read_to_string()?;
        ensure!(answer.status().is_success(), "POST {path}: {}: {read}", answer.status());
        Ok(serde_json::from_str(&read)?)
    }

    /// Asks for the end of an object; one that is gone is fine.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn delete(&self, path: &str) -> Result<()> {
        let mut answer = self.agent.delete(self.url(path)).call()?;
        let read = answer.body_mut().read_to_string()?;
        ensure!(answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND, "DELETE {path}: {}: {read}", answer.status());
        Ok(())
    }

    /// A token of a service account, as a pod gets it.
    ///
    /// # Errors
    /// When there is no such account.
    pub(crate) fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let asked = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 7200 } });
        let made = self.post(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"), &asked)?;
        Ok(text(&made, "/status/token").to_owned())
    }

    /// Nodes that belong to a NodePool.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) fn nodes(&self) -> Result<Vec<Value>> {
        self.list(&format!("{NODES}?labelSelector=karpenter.sh/nodepool"))
    }

    /// Pods by label, such as `app=inflate`.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) fn pods(&self, selector: &str) -> Result<Vec<Value>> {
        self.list(&format!("{PODS}?labelSelector={selector}"))
    }

    /// Sets the replicas of a Deployment of namespace `default`.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn scale(&self, deployment: &str, replicas: u32) -> Result<()> {
        self.patch(
            &format!("/apis/apps/v1/namespaces/default/deployments/{deployment}/scale"),
            &json!({ "spec": { "replicas": replicas } }),
        )
    }

    /// Says no unless `wanted` pods with this label run, and no others are there.
    ///
    /// # Errors
    /// When other pods are there or do not run yet.
    pub(crate) fn all_run(&self, selector: &str, wanted: usize) -> Result<()> {
        let pods = self.pods(selector)?;
        let running = pods.iter().filter(|pod| text(pod, "/status/phase") == "Running").count();
        ensure!(running == wanted && pods.len() == wanted, "{running} of {} pods {selector} run, {wanted} should", pods.len());
        Ok(())
    }

    /// The events about an object, the oldest first, as `reason: message`.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) fn events(&self, kind: &str, name: &str) -> Result<Vec<String>> {
        let about = format!("{EVENTS}?fieldSelector=involvedObject.kind={kind},involvedObject.name={name}");
        let mut events = self.list(&about)?;
        events.sort_by(|a, b| text(a, "/metadata/creationTimestamp").cmp(text(b, "/metadata/creationTimestamp")));
        Ok(events.iter().map(|event| format!("{}: {}", text(event, "/reason"), text(event, "/message"))).collect())
    }
}

/// A text in an object by JSON pointer; empty when there is none.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// A label of an object; empty when there is none.
pub(crate) fn label<'v>(object: &'v Value, key: &str) -> &'v str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

/// A condition of an object.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Says no unless a condition is true.
///
/// # Errors
/// When it is not, with its reason and message.
pub(crate) fn is_true(object: &Value, kind: &str) -> Result<()> {
    let found = condition(object, kind).with_context(|| format!("{} has no condition {kind}", name(object)))?;
    ensure!(found["status"] == "True", "{}: {kind} is {}: {}: {}", name(object), found["status"], found["reason"], found["message"]);
    Ok(())
}
