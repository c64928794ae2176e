//! The fields of `kubelet.config.k8s.io/v1beta1` KubeletConfiguration with their types, and the check of a document
//! against them. Source: kubernetes/kubelet `config/v1beta1/types.go` and kubernetes/component-base for logging and tracing,
//! of Kubernetes 1.36.
//!
//! What must not enter: what the values mean.

use serde_json::Value;

use whittle_model::go_duration;

/// What a field holds.
#[derive(Debug)]
enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Float,
    Text,
    /// A text such as `1m30s`.
    Span,
    /// Such a text, or nanoseconds.
    SpanOrNumber,
    /// A quantity, as a text or a number.
    Amount,
    List(&'static Kind),
    Map(&'static Kind),
    Object(&'static [Field]),
    /// Checked elsewhere.
    Any,
}

type Field = (&'static str, Kind);

use Kind::{Amount, Any, Bool, Float, Int32, Int64, List, Map, Object, Span, SpanOrNumber, Text, Uint32};

const TEXTS: Kind = List(&Text);
const TEXT_MAP: Kind = Map(&Text);

const AUTHENTICATION: &[Field] = &[
    ("x509", Object(&[("clientCAFile", Text)])),
    ("webhook", Object(&[("enabled", Bool), ("cacheTTL", Span)])),
    ("anonymous", Object(&[("enabled", Bool)])),
];
const AUTHORIZATION: &[Field] = &[("mode", Text), ("webhook", Object(&[("cacheAuthorizedTTL", Span), ("cacheUnauthorizedTTL", Span)]))];
const LOG_STREAMS: &[Field] = &[("splitStream", Bool), ("infoBufferSize", Amount)];
const LOGGING: &[Field] = &[
    ("format", Text),
    ("flushFrequency", SpanOrNumber),
    ("verbosity", Uint32),
    ("vmodule", List(&Object(&[("filePattern", Text), ("verbosity", Uint32)]))),
    ("options", Object(&[("text", Object(LOG_STREAMS)), ("json", Object(LOG_STREAMS))])),
];

const FIELDS: &[Field] = &[
    ("kind", Text),
    ("apiVersion", Text),
    ("enableServer", Bool),
    ("staticPodPath", Text),
    ("podLogsDir", Text),
    ("syncFrequency", Span),
    ("fileCheckFrequency", Span),
    ("httpCheckFrequency", Span),
    ("staticPodURL", Text),
    ("staticPodURLHeader", Map(&TEXTS)),
    ("address", Text),
    ("port", Int32),
    ("readOnlyPort", Int32),
    ("tlsCertFile", Text),
    ("tlsPrivateKeyFile", Text),
    ("tlsCipherSuites", TEXTS),
    ("tlsCurvePreferences", List(&Int32)),
    ("tlsMinVersion", Text),
    ("rotateCertificates", Bool),
    ("serverTLSBootstrap", Bool),
    ("authentication", Object(AUTHENTICATION)),
    ("authorization", Object(AUTHORIZATION)),
    ("registryPullQPS", Int32),
    ("registryBurst", Int32),
    ("imagePullCredentialsVerificationPolicy", Text),
    ("preloadedImagesVerificationAllowlist", TEXTS),
    ("eventRecordQPS", Int32),
    ("eventBurst", Int32),
    ("enableDebuggingHandlers", Bool),
    ("enableContentionProfiling", Bool),
    ("healthzPort", Int32),
    ("healthzBindAddress", Text),
    ("oomScoreAdj", Int32),
    ("clusterDomain", Text),
    ("clusterDNS", TEXTS),
    ("streamingConnectionIdleTimeout", Span),
    ("nodeStatusUpdateFrequency", Span),
    ("nodeStatusReportFrequency", Span),
    ("nodeLeaseDurationSeconds", Int32),
    ("imageMinimumGCAge", Span),
    ("imageMaximumGCAge", Span),
    ("imageGCHighThresholdPercent", Int32),
    ("imageGCLowThresholdPercent", Int32),
    ("volumeStatsAggPeriod", Span),
    ("kubeletCgroups", Text),
    ("systemCgroups", Text),
    ("cgroupRoot", Text),
    ("cgroupsPerQOS", Bool),
    ("cgroupDriver", Text),
    ("cpuManagerPolicy", Text),
    ("singleProcessOOMKill", Bool),
    ("cpuManagerPolicyOptions", TEXT_MAP),
    ("cpuManagerReconcilePeriod", Span),
    ("memoryManagerPolicy", Text),
    ("topologyManagerPolicy", Text),
    ("topologyManagerScope", Text),
    ("topologyManagerPolicyOptions", TEXT_MAP),
    ("qosReserved", TEXT_MAP),
    ("runtimeRequestTimeout", Span),
    ("hairpinMode", Text),
    ("maxPods", Int32),
    ("podCIDR", Text),
    ("podPidsLimit", Int64),
    ("resolvConf", Text),
    ("runOnce", Bool),
    ("cpuCFSQuota", Bool),
    ("cpuCFSQuotaPeriod", Span),
    ("nodeStatusMaxImages", Int32),
    ("maxOpenFiles", Int64),
    ("contentType", Text),
    ("kubeAPIQPS", Int32),
    ("kubeAPIBurst", Int32),
    ("serializeImagePulls", Bool),
    ("maxParallelImagePulls", Int32),
    ("evictionHard", TEXT_MAP),
    ("evictionSoft", TEXT_MAP),
    ("evictionSoftGracePeriod", TEXT_MAP),
    ("evictionPressureTransitionPeriod", Span),
    ("evictionMaxPodGracePeriod", Int32),
    ("evictionMinimumReclaim", TEXT_MAP),
    ("mergeDefaultEvictionSettings", Bool),
    ("podsPerCore", Int32),
    ("enableControllerAttachDetach", Bool),
    ("protectKernelDefaults", Bool),
    ("makeIPTablesUtilChains", Bool),
    ("iptablesMasqueradeBit", Int32),
    ("iptablesDropBit", Int32),
    ("featureGates", Map(&Bool)),
    ("failSwapOn", Bool),
    ("memorySwap", Object(&[("swapBehavior", Text)])),
    ("containerLogMaxSize", Text),
    ("containerLogMaxFiles", Int32),
    ("containerLogMaxWorkers", Int32),
    ("containerLogMonitorInterval", Span),
    ("configMapAndSecretChangeDetectionStrategy", Text),
    ("systemReserved", TEXT_MAP),
    ("kubeReserved", TEXT_MAP),
    ("reservedSystemCPUs", Text),
    ("showHiddenMetricsForVersion", Text),
    ("systemReservedCgroup", Text),
    ("kubeReservedCgroup", Text),
    ("enforceNodeAllocatable", TEXTS),
    ("allowedUnsafeSysctls", TEXTS),
    ("defaultPodSysctls", TEXT_MAP),
    ("volumePluginDir", Text),
    ("providerID", Text),
    ("kernelMemcgNotification", Bool),
    ("logging", Object(LOGGING)),
    ("enableSystemLogHandler", Bool),
    ("enableSystemLogQuery", Bool),
    ("shutdownGracePeriod", Span),
    ("shutdownGracePeriodCriticalPods", Span),
    ("shutdownGracePeriodByPodPriority", List(&Object(&[("priority", Int32), ("shutdownGracePeriodSeconds", Int64)]))),
    ("crashLoopBackOff", Object(&[("maxContainerRestartPeriod", Span)])),
    ("reservedMemory", List(&Object(&[("numaNode", Int32), ("limits", Map(&Amount))]))),
    ("enableProfilingHandler", Bool),
    ("enableDebugFlagsHandler", Bool),
    ("seccompDefault", Bool),
    ("memoryThrottlingFactor", Float),
    ("memoryReservationPolicy", Text),
    ("registerWithTaints", Any),
    ("registerNode", Bool),
    ("tracing", Object(&[("endpoint", Text), ("samplingRatePerMillion", Int32)])),
    ("localStorageCapacityIsolation", Bool),
    ("containerRuntimeEndpoint", Text),
    ("imageServiceEndpoint", Text),
    ("failCgroupV1", Bool),
    ("userNamespaces", Object(&[("idsPerPod", Int64)])),
];

/// What is wrong with `value` as the field `name` of a KubeletConfiguration: keys kubelet does not know, values of
/// another type.
pub(super) fn check(name: &str, value: &Value, wrong: &mut Vec<String>) {
    field(FIELDS, "spec.kubelet", name, value, wrong);
}

fn field(fields: &[Field], path: &str, name: &str, value: &Value, wrong: &mut Vec<String>) {
    match fields.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => kind.check(&format!("{path}.{name}"), value, wrong),
        None => wrong.push(format!("{path}: kubelet knows no field {name:?}{}", nearest(fields, name))),
    }
}

/// `; is imageGCHighThresholdPercent meant?` where a known field is spelt almost so.
fn nearest(fields: &[Field], name: &str) -> String {
    let near = fields.iter().map(|(known, _)| (strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase()), *known)).min();
    match near {
        Some((distance, known)) if distance <= 1 + name.len() / 5 => format!(", is {known} meant?"),
        Some(_) | None => String::new(),
    }
}

impl Kind {
    fn check(&self, path: &str, value: &Value, wrong: &mut Vec<String>) {
        let integer = |from: i64, to: i64| value.as_i64().is_some_and(|n| (from..=to).contains(&n));
        let fits = match self {
            _ if value.is_null() => true,
            Any => true,
            Bool => value.is_boolean(),
            Int32 => integer(i64::from(i32::MIN), i64::from(i32::MAX)),
            Int64 => integer(i64::MIN, i64::MAX),
            Uint32 => integer(0, i64::from(u32::MAX)),
            Float => value.is_number(),
            Text => value.is_string(),
            Span => value.as_str().is_some_and(|text| go_duration::parse(text).is_some()),
            SpanOrNumber => value.is_i64() || value.as_str().is_some_and(|text| go_duration::parse(text).is_some()),
            Amount => value.is_number() || value.as_str().is_some_and(|text| whittle_model::Quantity::parse(text).is_ok()),
            List(kind) => return self.each(path, value, kind, wrong),
            Map(kind) => return self.entries(path, value, wrong, |path, _, value, wrong| kind.check(path, value, wrong)),
            Object(fields) => {
                return self.entries(path, value, wrong, |_, key, value, wrong| field(fields, path, key, value, wrong));
            }
        };
        if !fits {
            wrong.push(format!("{path}: {value} is not {}", self.words()));
        }
    }

    fn each(&self, path: &str, value: &Value, kind: &Self, wrong: &mut Vec<String>) {
        let Some(all) = value.as_array() else {
            wrong.push(format!("{path}: {value} is not {}", self.words()));
            return;
        };
        for (at, value) in all.iter().enumerate() {
            kind.check(&format!("{path}[{at}]"), value, wrong);
        }
    }

    fn entries(&self, path: &str, value: &Value, wrong: &mut Vec<String>, check: impl Fn(&str, &str, &Value, &mut Vec<String>)) {
        let Some(all) = value.as_object() else {
            wrong.push(format!("{path}: {value} is not {}", self.words()));
            return;
        };
        for (key, value) in all {
            check(&format!("{path}[{key}]"), key, value, wrong);
        }
    }

    const fn words(&self) -> &'static str {
        match self {
            Bool => "true or false",
            Int32 | Int64 => "a whole number",
            Uint32 => "a whole number of at least 0",
            Float => "a number",
            Text => "a text",
            Span | SpanOrNumber => "a duration such as 1m30s",
            Amount => "a quantity such as 500Mi",
            List(_) => "a list",
            Map(_) | Object(_) => "a mapping",
            Any => "anything",
        }
    }
}
