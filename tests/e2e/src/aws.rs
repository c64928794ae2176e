//! The AWS server as its owner sees it: what it holds, and what it is told to do wrong. What must not enter: the API
//! the controller speaks.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use ureq::Agent;

use crate::kube::{agent, text};

/// An instance, as the server holds it.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) spot: bool,
    /// The capacity reservation that it was launched into.
    pub(crate) reservation: Option<String>,
    /// What it costs, in millionths of a dollar an hour.
    pub(crate) price: u64,
    pub(crate) image: String,
    pub(crate) groups: Vec<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) user_data: String,
    pub(crate) volumes: Vec<BTreeMap<String, String>>,
}

/// A launch template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) data: Value,
}

/// The control of the server.
#[derive(Debug)]
pub(crate) struct Aws {
    /// Address of the server.
    pub(crate) url: String,
    agent: Agent,
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn tags(value: &Value) -> BTreeMap<String, String> {
    let each = value.as_object().into_iter().flatten();
    each.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

impl Aws {
    /// At a port of this machine.
    pub(crate) fn new(port: u16) -> Self {
        Self { url: format!("http://127.0.0.1:{port}"), agent: agent() }
    }

    /// Tells the server something; see `bed/aws.py`.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn told(&self, what: &Value) -> Result<Value> {
        let mut answer = self.agent.post(format!("{}/_ctl", self.url)).send(what.to_string()).context("the AWS server does not answer")?;
        let read = answer.body_mut().with_config().limit(256 << 20).read_to_string()?;
        serde_json::from_str(&read).with_context(|| format!("the AWS server answers {}: {read:.300}", answer.status()))
    }

    /// Instances that have not ended.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn instances(&self) -> Result<Vec<Instance>> {
        let shown = self.told(&json!({ "show": true }))?;
        let all = shown["instances"].as_array().into_iter().flatten();
        let live = all.filter(|instance| matches!(text(instance, "/state"), "pending" | "running"));
        let read = |instance: &Value| Instance {
            id: text(instance, "/id").to_owned(),
            instance_type: text(instance, "/type").to_owned(),
            zone: text(instance, "/zone").to_owned(),
            spot: instance["spot"] == true,
            reservation: instance["reservation"].as_str().map(str::to_owned),
            price: instance["price"].as_u64().unwrap_or_default(),
            image: text(instance, "/image").to_owned(),
            groups: strings(&instance["groups"]),
            tags: tags(&instance["tags"]),
            user_data: text(instance, "/user_data").to_owned(),
            volumes: instance["volumes"].as_array().into_iter().flatten().map(tags).collect(),
        };
        Ok(live.map(read).collect())
    }

    /// The launch templates.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn templates(&self) -> Result<Vec<Template>> {
        let shown = self.told(&json!({ "show": true }))?;
        let all = shown["templates"].as_array().into_iter().flatten();
        Ok(all.map(|t| Template { name: text(t, "/name").to_owned(), tags: tags(&t["tags"]), data: t["data"].clone() }).collect())
    }

    /// Fleets that came to something since the calls were last forgotten.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn fleets(&self) -> Result<Vec<Value>> {
        Ok(self.told(&json!({ "show": true }))?["fleets"].as_array().cloned().unwrap_or_default())
    }

    /// Calls by action since they were last forgotten.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn calls(&self) -> Result<BTreeMap<String, u64>> {
        let told = self.told(&json!({}))?;
        Ok(told["calls"].as_object().into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_u64()?))).collect())
    }

    /// The controller's calls since this was last asked, each once.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn records(&self) -> Result<Vec<Value>> {
        Ok(self.told(&json!({ "record": true }))?["records"].as_array().cloned().unwrap_or_default())
    }

    /// Ends all instances, forgets calls, and makes everything work again.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn reset(&self) -> Result<()> {
        let live: Vec<String> = self.instances()?.into_iter().map(|instance| instance.id).collect();
        self.told(&json!({ "ice": [], "faults": [], "reserve": {}, "end": live, "zero": true })).map(drop)
    }
}
