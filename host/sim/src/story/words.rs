//! The words behind a verb.

use whittle_model::{CapacityType, Duration, Micros, PodKey};

use super::{Condition, Target, Verb};
use crate::scenario::{ObjectKind, ObjectName};

/// The words of a line that have not been read.
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(rest: &'a str) -> Self {
        Self { rest: rest.trim() }
    }

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (word, rest) = self.rest.split_once(char::is_whitespace).unwrap_or((self.rest, ""));
        self.rest = rest.trim_start();
        Some(word)
    }

    fn need(&mut self, what: &str, example: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{what} is missing; write it like: {example}"))
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err(format!("{:?} at the end is not expected; remove it", self.rest)) }
    }

    pub(super) fn files(&mut self) -> Result<Vec<String>, String> {
        let mut files = vec![self.need("a file name", "apply nodepool.yaml inflate.yaml")?.to_owned()];
        while let Some(file) = self.next() {
            files.push(file.to_owned());
        }
        Ok(files)
    }

    pub(super) fn object(&mut self, example: &str) -> Result<ObjectName, String> {
        let word = self.need("KIND/NAME", example)?;
        let wrong = || format!("{word:?} is not KIND/NAME; write it like: {example}");
        let (kind, name) = word.split_once('/').ok_or_else(wrong)?;
        let kind = ObjectKind::parse(kind).ok_or_else(|| {
            format!("{kind:?} is no kind a story knows; use deployment, statefulset, replicaset, job, daemonset, pod, node, nodeclaim, nodepool, ec2nodeclass, capacitybuffer or namespace")
        })?;
        let (namespace, name) = match name.split_once('/') {
            Some(_) if !kind.namespaced() => return Err(format!("a {} has no namespace; write {}/NAME", kind.name(), kind.name())),
            Some(parts) => parts,
            None if kind.namespaced() => ("default", name),
            None => ("", name),
        };
        if name.is_empty() || name.contains('/') || (kind.namespaced() && namespace.is_empty()) {
            return Err(wrong());
        }
        Ok(ObjectName { kind, key: PodKey::new(namespace, name) })
    }

    pub(super) fn count<N: std::str::FromStr>(&mut self, what: &str, example: &str) -> Result<N, String> {
        let word = self.need(what, example)?;
        word.parse().map_err(|_| format!("{word:?} is no count; write it like: {example}"))
    }

    pub(super) fn duration(&mut self, example: &str) -> Result<Duration, String> {
        let word = self.need("a duration", example)?;
        duration(word).ok_or_else(|| format!("{word:?} is no duration; write 500ms, 90s, 1m30s or 2h, as in: {example}"))
    }

    pub(super) fn set(&mut self) -> Result<Verb, String> {
        const EXAMPLE: &str = "set nodepool/default spec.limits.cpu=10";
        let object = self.object(EXAMPLE)?;
        let (path, value) = self.rest.split_once('=').ok_or_else(|| format!("PATH=VALUE is missing; write it like: {EXAMPLE}"))?;
        if path.is_empty() || path.contains(char::is_whitespace) {
            return Err(format!("{path:?} is no path; write it like: {EXAMPLE}"));
        }
        self.rest = "";
        Ok(Verb::Set { object, path: path.to_owned(), value: value.to_owned() })
    }

    pub(super) fn until(&mut self, patience: Duration) -> Result<Verb, String> {
        const CONDITIONS: &str = "pods running, pods pending N, nodes N, settled";
        let wrong = |words: &str| format!("{words:?} is no condition; use one of: {CONDITIONS}");
        let condition = match self.need("a condition", "until pods running")? {
            "settled" => Condition::Settled,
            "nodes" => Condition::Nodes(self.count("how many nodes", "until nodes 0")?),
            "pods" => match self.need("running or pending", "until pods running")? {
                "running" => Condition::PodsRunning,
                "pending" => Condition::PodsPending(self.count("how many pods", "until pods pending 0")?),
                other => return Err(wrong(&format!("pods {other}"))),
            },
            other => return Err(wrong(other)),
        };
        let within = self.option("within", "until pods running within 5m")?.unwrap_or(patience);
        Ok(Verb::Until { condition, within })
    }

    /// `WORD DURATION` at the end, if it is there.
    fn option(&mut self, word: &str, example: &str) -> Result<Option<Duration>, String> {
        match self.next() {
            None => Ok(None),
            Some(found) if found == word => self.duration(example).map(Some),
            Some(other) => Err(format!("{other:?} is not expected here; write it like: {example}")),
        }
    }

    fn capacity_type(&mut self, example: &str) -> Result<CapacityType, String> {
        let word = self.need("a capacity type", example)?;
        CapacityType::parse(word).ok_or_else(|| format!("{word:?} is no capacity type; use spot, on-demand or reserved, as in: {example}"))
    }

    pub(super) fn sold_out(&mut self) -> Result<Verb, String> {
        const EXAMPLE: &str = "sold-out spot m7i.large us-east-1a for 10m";
        let capacity_type = self.capacity_type(EXAMPLE)?;
        let star = |word: &str| (word != "*").then(|| word.to_owned());
        let instance_type = star(self.need("an instance type or *", EXAMPLE)?);
        let zone = star(self.need("a zone or *", EXAMPLE)?);
        let lasting = self.option("for", EXAMPLE)?;
        Ok(Verb::SoldOut { capacity_type, instance_type, zone, lasting })
    }

    pub(super) fn reserve(&mut self) -> Result<Verb, String> {
        const EXAMPLE: &str = "reserve cr-0123456789abcdef0 2";
        let id = self.need("the id of a capacity reservation", EXAMPLE)?.to_owned();
        Ok(Verb::Reserve { id, instances: self.count("how many instances", EXAMPLE)? })
    }

    pub(super) fn target(&mut self, example: &str) -> Result<Target, String> {
        let word = self.need("a node, oldest or a capacity type", example)?;
        Ok(match (word, CapacityType::parse(word)) {
            ("oldest", _) => Target::Oldest,
            (_, Some(capacity_type)) => Target::Capacity(capacity_type),
            (name, None) => Target::Node(name.to_owned()),
        })
    }

    pub(super) fn price(&mut self) -> Result<Verb, String> {
        const EXAMPLE: &str = "price spot m7i.large us-east-1a 0.05";
        let capacity_type = self.capacity_type(EXAMPLE)?;
        let instance_type = self.need("an instance type", EXAMPLE)?.to_owned();
        let zone = self.need("a zone", EXAMPLE)?.to_owned();
        let word = self.need("a price in dollars", EXAMPLE)?;
        let price = Micros::from_dollars(word).ok_or_else(|| format!("{word:?} is no price in dollars; write it like: {EXAMPLE}"))?;
        Ok(Verb::Price { capacity_type, instance_type, zone, price })
    }

    pub(super) fn boot(&mut self) -> Result<Option<Duration>, String> {
        if self.rest == "never" {
            self.rest = "";
            return Ok(None);
        }
        self.duration("boot 2m").map(Some)
    }

    pub(super) fn expect(&mut self) -> Result<Verb, String> {
        if self.rest.is_empty() {
            return Err("the expected text is missing; write it like: expect 5 pods of default/inflate running".to_owned());
        }
        Ok(Verb::Expect(self.rest.to_owned()))
    }
}

/// A duration as people and Go write it: whole numbers with units `h`, `m`, `s`, `ms`, largest
/// first.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: i64 = 0;
    let mut last = i64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().position(|b| !b.is_ascii_digit()).filter(|n| *n > 0)?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let length = rest.bytes().position(|b| b.is_ascii_digit()).unwrap_or(rest.len());
        let millis = match &rest[..length] {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1000,
            "ms" => 1,
            _ => return None,
        };
        if millis >= last {
            return None;
        }
        last = millis;
        total = total.checked_add(number.checked_mul(millis)?)?;
        rest = &rest[length..];
    }
    (last < i64::MAX).then_some(Duration(total))
}
