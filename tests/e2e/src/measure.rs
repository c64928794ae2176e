//! A story of the simulation played in real time by a controller on the bed, and what it came to beside the simulation's
//! model of Karpenter: how far the model can be believed. What must not enter: whether that is far enough.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::kube::text;
use crate::process::{Process, output};
use crate::stage::Stage;
use crate::wait::until;

/// Figures by the names that `whittle simulate --json` gives them, each with what makes the unit that people read.
const FIGURES: [(&str, &str, f64); 7] = [
    ("totalMicros", "cost, $", 1e6),
    ("hourlyMicros", "$/h at the end", 1e6),
    ("nodeSeconds", "node hours", 3600.0),
    ("mostNodes", "most nodes", 1.0),
    ("nodes", "nodes at the end", 1.0),
    ("launches", "launches", 1.0),
    ("pendingPodSeconds", "pending pod-s", 1.0),
];

/// What a story came to; as many as [`FIGURES`], in their order.
type Figures = [f64; FIGURES.len()];

/// Plays stories and tells of each as it ends: each figure as it was and as the model has it; at last by how much it is off.
///
/// # Errors
/// When a story holds what cannot be done in real time, or the bed fails.
pub(crate) fn all(stage: &Stage<'_>, stories: &[PathBuf], program: &Path, tell: &dyn Fn(&str)) -> Result<()> {
    let head = FIGURES.map(|(_, unit, _)| format!("{unit:>22}")).concat();
    tell(&format!("{:24}{head}", "real / model"));
    let mut errors: Vec<Figures> = Vec::new();
    for dir in stories {
        let called = dir.file_name().context("a story is a folder")?.to_string_lossy().into_owned();
        let (seconds, real) = played(stage, dir, &called, program).with_context(|| format!("story {called}"))?;
        let model = model(stage, dir, seconds)?;
        let cell = |at: usize| {
            let unit = FIGURES[at].2;
            format!("{:>22}", format!("{} / {}", short(real[at] / unit), short(model[at] / unit)))
        };
        tell(&format!("{called:24}{}", (0..FIGURES.len()).map(cell).collect::<String>()));
        errors.push(std::array::from_fn(|at| difference(real[at], model[at])));
        stage.clear()?;
    }
    let mean = |at: usize| errors.iter().map(|one| one[at]).sum::<f64>() / errors.len().max(1) as f64;
    let means = (0..FIGURES.len()).map(|at| format!("{:>20.1} %", 100.0 * mean(at))).collect::<String>();
    tell(&format!("{:24}{means}", "mean difference"));
    Ok(())
}

/// By how much the model is off, of what it was; where that was nothing, each thing counts whole.
fn difference(real: f64, model: f64) -> f64 {
    if real == model { 0.0 } else { (model - real).abs() / real.abs().max(1.0) }
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.4}") }
}

/// What a run costs while it goes on.
struct Meter<'s> {
    stage: &'s Stage<'s>,
    last: Instant,
    seen: BTreeSet<String>,
    figures: Figures,
}

impl<'s> Meter<'s> {
    fn new(stage: &'s Stage<'s>) -> Self {
        Self { stage, last: Instant::now(), seen: BTreeSet::new(), figures: Figures::default() }
    }

    fn look(&mut self) -> Result<()> {
        let instances = self.stage.bed.aws.instances()?;
        let pods = self.stage.bed.kube.list("/api/v1/namespaces/default/pods")?;
        let waits = |pod: &&Value| {
            let of_daemon_set = text(pod, "/metadata/ownerReferences/0/kind") == "DaemonSet";
            text(pod, "/spec/nodeName").is_empty() && text(pod, "/metadata/deletionTimestamp").is_empty() && !of_daemon_set
        };
        let (now, nodes) = (Instant::now(), instances.len() as f64);
        let span = now.duration_since(self.last).as_secs_f64();
        self.last = now;
        let hourly = instances.iter().map(|instance| instance.price).sum::<u64>() as f64;
        self.seen.extend(instances.into_iter().map(|instance| instance.id));
        let [total, at_the_end, seconds, most, left, launches, pending] = &mut self.figures;
        *total += hourly * span / 3600.0;
        *seconds += nodes * span;
        *pending += pods.iter().filter(waits).count() as f64 * span;
        *most = most.max(nodes);
        (*at_the_end, *left, *launches) = (hourly, nodes, self.seen.len() as f64);
        Ok(())
    }

    fn pass(&mut self, span: Duration) -> Result<()> {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.look()?;
            std::thread::sleep(Duration::from_millis(500));
        }
        self.look()
    }
}

/// How many seconds a story took, and what it came to.
fn played(stage: &Stage<'_>, dir: &Path, called: &str, program: &Path) -> Result<(f64, Figures)> {
    let story = std::fs::read_to_string(dir.join("story")).with_context(|| format!("there is no story in {}", dir.display()))?;
    stage.open(called);
    let mut controller = started(stage, called, program)?;
    let mut meter = Meter::new(stage);
    let began = Instant::now();
    for line in story.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        controller.is_alive()?;
        match words.as_slice() {
            ["apply", files @ ..] => {
                for file in files {
                    stage.apply(&std::fs::read_to_string(dir.join(file)).with_context(|| format!("cannot read {file}"))?)?;
                }
            }
            ["scale", object, replicas] => {
                let deployment = object.strip_prefix("deployment/").with_context(|| format!("only Deployments can be scaled: {line}"))?;
                stage.bed.kube.scale(deployment, replicas.parse()?)?;
            }
            ["delete", object] => drop(stage.bed.kube.kubectl(&["delete", object, "--wait=false"])?),
            ["wait", span] => meter.pass(seconds(span).with_context(|| format!("{line}: whole seconds or minutes"))?)?,
            // What the bed does anyway.
            ["boot", _] => {}
            _ => bail!("this cannot be done in real time: {line}"),
        }
        meter.look()?;
    }
    Ok((began.elapsed().as_secs_f64(), meter.figures))
}

fn seconds(span: &str) -> Option<Duration> {
    let whole = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    let seconds = whole(span.strip_suffix('s')).or_else(|| whole(span.strip_suffix('m')).map(|minutes| 60 * minutes));
    seconds.map(Duration::from_secs)
}

/// A controller as an administrator: what another one may do is not for our chart to say.
fn started(stage: &Stage<'_>, called: &str, program: &Path) -> Result<Process> {
    let (metrics, health) = (crate::bed::free_port()?, crate::bed::free_port()?);
    let mut environment = crate::controller::chart_environment(stage.bed)?;
    environment.extend(stage.bed.aws_environment());
    let of = |name: &str, value: String| (name.to_owned(), value);
    environment.extend([
        of("KUBECONFIG", stage.bed.admin().display().to_string()),
        of("DISABLE_LEADER_ELECTION", "true".to_owned()),
        of("METRICS_PORT", metrics.to_string()),
        of("HEALTH_PROBE_PORT", health.to_string()),
        of("CLUSTER_CA_BUNDLE", stage.bed.ca_bundle()?),
    ]);
    let mut command = Command::new(program);
    command.env_clear().envs(environment);
    let mut process = Process::spawn(&format!("measured-{called}"), &stage.bed.dir, &mut command)?;
    until("the controller is ready", 90, || {
        process.is_alive()?;
        let answer = crate::kube::agent().get(format!("http://127.0.0.1:{health}/readyz")).call()?;
        ensure!(answer.status().is_success(), "/readyz: {}", answer.status());
        Ok(())
    })?;
    Ok(process)
}

/// What the model says of the same story, as far as `seconds`.
fn model(stage: &Stage<'_>, dir: &Path, seconds: f64) -> Result<Figures> {
    let cli = stage.binaries().cli()?;
    let told = output(Command::new(&cli).arg("simulate").arg(dir).args(["--compare", "karpenter", "--json"]))?;
    let first = told.lines().next().context("whittle simulate says nothing")?;
    let seed: Value = serde_json::from_str(first)?;
    let of = |figure: &str| seed.pointer(&format!("/karpenter/{figure}")).and_then(Value::as_f64).unwrap_or_default();
    let mut figures: Figures = FIGURES.map(|(figure, _, _)| of(figure));
    // The simulation goes on until nothing more happens: for that time it pays for what is there at the end.
    let after = seed["endMs"].as_f64().unwrap_or_default() / 1000.0 - seconds;
    figures[0] -= of("hourlyMicros") * after / 3600.0;
    figures[2] -= of("nodes") * after;
    Ok(figures)
}
