//! The settings under `settings.kubernetes` that every supported release of Bottlerocket knows, and
//! their types.
//!
//! Source: <https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes/>. What must not enter:
//! values, and what is made of them.

use toml::{Table, Value};

/// What a setting holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Integer,
    Flag,
    Texts,
    /// Tables with names of the user's own.
    MapOf(&'static Kind),
    Fields(&'static [(&'static str, Kind)]),
}

use Kind::{Fields, Flag, Integer, MapOf, Text, Texts};

/// `settings.kubernetes`.
pub(super) const KUBERNETES: Kind = Fields(&[
    ("allowed-unsafe-sysctls", Texts),
    ("api-server", Text),
    ("cloud-provider", Text),
    ("cluster-certificate", Text),
    ("cluster-dns-ip", Text),
    ("cluster-domain", Text),
    ("cluster-name", Text),
    ("container-log-max-files", Integer),
    ("container-log-max-size", Text),
    ("container-log-max-workers", Integer),
    ("container-log-monitor-interval", Text),
    ("cpu-cfs-quota-enforced", Flag),
    ("cpu-manager-policy", Text),
    ("cpu-manager-policy-options", Texts),
    ("cpu-manager-reconcile-period", Text),
    ("credential-providers", MapOf(&CREDENTIAL_PROVIDER)),
    ("device-ownership-from-security-context", Flag),
    ("event-burst", Integer),
    ("event-qps", Integer),
    ("eviction-hard", MapOf(&Text)),
    ("eviction-max-pod-grace-period", Integer),
    ("eviction-soft", MapOf(&Text)),
    ("eviction-soft-grace-period", MapOf(&Text)),
    ("hostname-override-source", Text),
    ("ids-per-pod", Integer),
    ("image-gc-high-threshold-percent", Text),
    ("image-gc-low-threshold-percent", Text),
    ("kube-api-burst", Integer),
    ("kube-api-qps", Integer),
    ("kube-reserved", MapOf(&Text)),
    ("log-level", Integer),
    ("max-pods", Integer),
    ("memory-manager-policy", Text),
    ("memory-manager-reserved-memory", MapOf(&RESERVED_MEMORY)),
    ("node-labels", MapOf(&Text)),
    ("node-taints", MapOf(&Texts)),
    ("pod-pids-limit", Integer),
    ("registry-burst", Integer),
    ("registry-qps", Integer),
    ("seccomp-default", Flag),
    ("server-tls-bootstrap", Flag),
    ("shutdown-grace-period", Text),
    ("shutdown-grace-period-for-critical-pods", Text),
    ("single-process-oom-kill", Flag),
    ("static-pods", MapOf(&Fields(&[("enabled", Flag), ("manifest", Text)]))),
    ("system-reserved", MapOf(&Text)),
    ("topology-manager-policy", Text),
    ("topology-manager-policy-options", Fields(&[("max-allowable-numa-nodes", Integer), ("prefer-closest-numa-nodes", Flag)])),
    ("topology-manager-scope", Text),
]);

const CREDENTIAL_PROVIDER: Kind =
    Fields(&[("cache-duration", Text), ("enabled", Flag), ("environment", MapOf(&Text)), ("image-patterns", Texts)]);

const RESERVED_MEMORY: Kind = Fields(&[("enabled", Flag), ("hugepages-1Gi", Text), ("hugepages-2Mi", Text), ("memory", Text)]);

/// A value of another type than its setting has.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub path: Vec<String>,
    pub found: &'static str,
    pub wanted: &'static str,
}

/// Takes away the settings of `value` that `kind` does not have, adding their paths to `left_out`.
pub(super) fn keep_known(kind: Kind, value: &mut Value, path: &[String], left_out: &mut Vec<String>) -> Result<(), Mismatch> {
    match (kind, value) {
        (Text, Value::String(_)) | (Integer, Value::Integer(_)) | (Flag, Value::Boolean(_)) => Ok(()),
        (Texts, Value::Array(items)) if items.iter().all(Value::is_str) => Ok(()),
        (MapOf(of), Value::Table(table)) => {
            table.iter_mut().try_for_each(|(name, inner)| keep_known(*of, inner, &below(path, name), left_out))
        }
        (Fields(fields), Value::Table(table)) => keep_fields(fields, table, path, left_out),
        (kind, value) => Err(Mismatch { path: path.to_vec(), found: value.type_str(), wanted: kind.name() }),
    }
}

fn keep_fields(fields: &[(&str, Kind)], table: &mut Table, path: &[String], left_out: &mut Vec<String>) -> Result<(), Mismatch> {
    for (name, inner) in std::mem::take(table) {
        match fields.iter().find(|(known, _)| *known == name) {
            None => left_out.push(below(path, &name).join(".")),
            Some((_, kind)) => {
                let mut inner = inner;
                keep_known(*kind, &mut inner, &below(path, &name), left_out)?;
                table.insert(name, inner);
            }
        }
    }
    Ok(())
}

fn below(path: &[String], name: &str) -> Vec<String> {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Text => "a string",
            Integer => "an integer",
            Flag => "true or false",
            Texts => "an array of strings",
            MapOf(_) | Fields(_) => "a table",
        }
    }
}
