//! The controller's binary, run as the pods of its Deployment would run it: the chart's environment, the chart's
//! service account, nothing more. What must not enter: the crates it is made of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::Value;
use ureq::Agent;

use crate::bed::{Bed, free_port};
use crate::kube::{agent, text};
use crate::process::{Process, output, stat_field, tail};
use crate::say;
use crate::wait::until;

/// Where the charts are installed.
pub(crate) const NAMESPACE: &str = "kube-system";
/// Name of the chart's release, so also of its objects.
pub(crate) const RELEASE: &str = "whittle";

/// Programs of the repository that stories run.
#[derive(Debug)]
pub(crate) struct Binaries {
    /// The controller.
    pub(crate) controller: PathBuf,
    root: PathBuf,
}

impl Binaries {
    /// The controller: what `WHITTLE_CONTROLLER` names, or built.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn find(bed: &Bed) -> Result<Self> {
        let root = bed.repository("");
        let built = built("WHITTLE_CONTROLLER", &root, "whittle-controller")?;
        // All stories of a run are told of one program, also when it is built anew meanwhile.
        let controller = bed.dir.join("controller");
        std::fs::copy(&built, &controller).with_context(|| format!("cannot copy {}", built.display()))?;
        Ok(Self { controller, root })
    }

    /// The command line: what `WHITTLE` names, or built.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn cli(&self) -> Result<PathBuf> {
        built("WHITTLE", &self.root, "whittle")
    }
}

fn built(variable: &str, root: &Path, package: &str) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return PathBuf::from(&path).canonicalize().with_context(|| format!("{variable} names {}", path.display()));
    }
    say(&format!("building {package} (set {variable} to take one that is there)"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let said = output(Command::new(cargo).current_dir(root).args(["build", "--locked", "-q", "-p", package, "--message-format=json"]))?;
    let of_line = |line: &str| serde_json::from_str::<Value>(line).ok().and_then(|told| told["executable"].as_str().map(PathBuf::from));
    said.lines().filter_map(of_line).next_back().with_context(|| format!("cargo built no program of {package}"))
}

/// A replica that runs.
#[derive(Debug)]
pub(crate) struct Controller {
    /// What it is called; its log and its journal are.
    pub(crate) name: String,
    /// What the audit log knows it by.
    pub(crate) credential: String,
    /// The folder of its journal.
    pub(crate) journal: PathBuf,
    metrics_port: u16,
    health_port: u16,
    process: Process,
    agent: Agent,
}

/// What a replica is started with, beside what the chart says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Start<'s> {
    /// Variables over those of the chart.
    pub(crate) environment: &'s [(&'s str, &'s str)],
}

impl Controller {
    /// Starts a replica; waits for nothing.
    ///
    /// # Errors
    /// When the chart is not installed, or the program does not start.
    pub(crate) fn launch(bed: &Bed, binaries: &Binaries, name: &str, start: &Start<'_>) -> Result<Self> {
        let token = bed.kube.token(NAMESPACE, RELEASE)?;
        let (metrics_port, health_port) = (free_port()?, free_port()?);
        let journal = bed.dir.join("journals").join(name);
        std::fs::create_dir_all(&journal)?;
        let mut environment = chart_environment(bed)?;
        environment.extend(bed.aws_environment());
        let paths = [
            ("KUBECONFIG", bed.kubeconfig_of_token(name, &token)?),
            ("WHITTLE_JOURNAL_DIR", journal.clone()),
            ("WHITTLE_CACHE_DIR", bed.dir.join("compiled")),
        ];
        environment.extend(paths.map(|(key, path)| (key.to_owned(), path.display().to_string())));
        let ports = [("METRICS_PORT", metrics_port), ("HEALTH_PROBE_PORT", health_port)];
        environment.extend(ports.map(|(key, port)| (key.to_owned(), port.to_string())));
        environment.push(("POD_NAME".to_owned(), name.to_owned()));
        environment.extend(start.environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let mut command = Command::new(&binaries.controller);
        command.env_clear().envs(environment);
        let process = Process::spawn(name, &bed.dir, &mut command)?;
        Ok(Self { name: name.to_owned(), credential: credential(&token)?, journal, metrics_port, health_port, process, agent: agent() })
    }

    /// Starts a replica and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start, ends, or does not become ready.
    pub(crate) fn start(bed: &Bed, binaries: &Binaries, name: &str, start: &Start<'_>) -> Result<Self> {
        let mut started = Self::launch(bed, binaries, name, start)?;
        started.becomes_ready(60)?;
        Ok(started)
    }

    /// Waits until it says that it is ready.
    ///
    /// # Errors
    /// When it does not, or ends.
    pub(crate) fn becomes_ready(&mut self, seconds: u64) -> Result<()> {
        let (what, url) = (format!("{} is ready", self.name), format!("http://127.0.0.1:{}/readyz", self.health_port));
        until(&what, seconds, || {
            self.process.is_alive()?;
            let mut answer = self.agent.get(&url).call()?;
            let said = answer.body_mut().read_to_string()?;
            ensure!(answer.status().is_success(), "/readyz: {}: {said}", answer.status());
            Ok(())
        })
    }

    /// Its metrics as text.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn metrics(&self) -> Result<String> {
        Ok(self.agent.get(format!("http://127.0.0.1:{}/metrics", self.metrics_port)).call()?.body_mut().read_to_string()?)
    }

    /// Whether it holds the lease, by its own account.
    ///
    /// # Errors
    /// When it does not, or does not answer.
    pub(crate) fn leads(&self) -> Result<()> {
        ensure!(self.log().contains("this replica acts"), "{} does not say that it acts", self.name);
        Ok(())
    }

    /// Says no when it has ended.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn is_alive(&mut self) -> Result<()> {
        self.process.is_alive()
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        tail(&self.process.log, usize::MAX)
    }

    /// Halts it where it stands, or lets it go on.
    pub(crate) fn halt(&self, halted: bool) {
        self.process.halt(halted);
    }

    /// Ends it as a crash does.
    pub(crate) fn crash(mut self) {
        self.process.kill();
    }

    /// Asks it to end. Says whether it did by itself within the time a pod has.
    pub(crate) fn stop(mut self) -> bool {
        self.process.stop(Duration::from_secs(20))
    }

    /// Seconds of CPU it has used.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        // Clock ticks: a hundred a second on all kernels we run on.
        let ticks = |at| stat_field(self.process.pid(), at).unwrap_or_default();
        (ticks(11) + ticks(12)) as f64 / 100.0
    }

    /// Bytes of memory it held at most.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(peak.with_context(|| format!("{} has ended", self.name))? << 10)
    }
}

/// The environment that the chart gives its container.
///
/// # Errors
/// When the chart is not installed.
pub(crate) fn chart_environment(bed: &Bed) -> Result<Vec<(String, String)>> {
    let deployment =
        bed.kube.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}")).context("the chart is not installed")?;
    let container = deployment.pointer("/spec/template/spec/containers/0").context("the Deployment has a container")?;
    let variables = container["env"].as_array().context("the container has an environment")?;
    let read = |variable: &Value| Some((text(variable, "/name").to_owned(), value(variable, container)?));
    Ok(variables.iter().filter_map(read).collect())
}

/// What kubelet would make of a variable.
fn value(variable: &Value, container: &Value) -> Option<String> {
    if let Some(value) = variable["value"].as_str() {
        return Some(value.to_owned());
    }
    let limit = |pointer: &str| container.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    match text(variable, "/name") {
        "SYSTEM_NAMESPACE" => Some(NAMESPACE.to_owned()),
        "CPU_REQUESTS" => limit("/resources/requests/cpu")
            .map(|cpu| cpu.parse::<u32>().map_or_else(|_| cpu.trim_end_matches('m').to_owned(), |cores| (cores * 1000).to_string())),
        "MEMORY_LIMIT" => limit("/resources/limits/memory").map(|_| (1u64 << 30).to_string()),
        _ => None,
    }
}

/// How the audit log names a token.
fn credential(token: &str) -> Result<String> {
    let claims = token.split('.').nth(1).context("a token has three parts")?;
    let claims: Value = serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims)?)?;
    Ok(format!("JTI={}", text(&claims, "/jti")))
}
