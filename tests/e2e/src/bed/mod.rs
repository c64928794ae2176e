//! The bed: a real control plane without kubelets, an AWS server, and what joins the two, on free ports of this machine.
//! What must not enter: what happens on it.

mod keys;
mod programs;
mod servers;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use serde_json::json;

use crate::audit::Audit;
use crate::aws::Aws;
use crate::kube::{self, Kube};
use crate::process::{Process, output};
use crate::wait::until;
use keys::Keys;
pub(crate) use programs::NotToBeHad;
use programs::Programs;

/// Name of the cluster, of its queue, and of what is tagged for it.
pub(crate) const CLUSTER: &str = "demo";

/// Notes the processes that were left running.
const LEFT: &str = "left.json";

/// Ports of the servers.
#[derive(Debug, Clone, Copy)]
struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api: u16,
    kcm: u16,
    scheduler: u16,
    proxy: u16,
    aws: u16,
}

/// All that runs.
#[derive(Debug)]
pub(crate) struct Bed {
    /// Where it keeps data and logs.
    pub(crate) dir: PathBuf,
    /// The API server.
    pub(crate) kube: Kube,
    /// The AWS server.
    pub(crate) aws: Aws,
    programs: Programs,
    keys: Keys,
    ports: Ports,
    /// Ended in reverse.
    processes: std::cell::RefCell<Vec<Process>>,
}

impl Bed {
    /// Builds what is missing and starts nothing.
    ///
    /// # Errors
    /// [`NotToBeHad`].
    pub(crate) fn build(say: &dyn Fn(&str)) -> Result<()> {
        Programs::ready(say)?.stages().context(NotToBeHad).map(drop)
    }

    /// Builds what is missing and starts everything; an instance takes `boot` seconds to become a Node.
    ///
    /// # Errors
    /// When something cannot be built or does not start; what was started is ended.
    pub(crate) fn start(dir: &Path, boot: u32, say: &dyn Fn(&str)) -> Result<Self> {
        let programs = Programs::ready(say)?;
        std::fs::create_dir_all(dir)?;
        let dir = dir.canonicalize()?;
        let ports = free_ports()?;
        let keys = Keys::make(&dir.join("pki"))?;
        let kubeconfig = keys.kubeconfig(&server(ports), "admin")?;
        let (kube, aws) = (Kube::new(&programs.bin("kubectl"), &kubeconfig, ports.proxy), Aws::new(ports.aws));
        let bed = Self { dir, kube, aws, programs, keys, ports, processes: Vec::new().into() };
        bed.start_all(boot).with_context(|| format!("the bed does not start; its logs are in {}", bed.dir.display()))?;
        Ok(bed)
    }

    fn start_all(&self, boot: u32) -> Result<()> {
        std::fs::write(self.dir.join("audit.yaml"), servers::AUDIT_POLICY)?;
        std::fs::write(self.dir.join("stages.yaml"), self.programs.stages()?)?;
        for client in ["kcm", "scheduler"] {
            self.keys.kubeconfig(&server(self.ports), client)?;
        }
        self.run(servers::aws(self))?;
        self.run(servers::etcd(self))?;
        self.run(servers::api_server(self))?;
        self.run(servers::proxy(self))?;
        self.api_is_ready(60)?;
        self.run(servers::controller_manager(self))?;
        self.run(servers::scheduler(self))?;
        self.run(servers::kwok(self))?;
        until("the AWS server answers", 60, || self.alive("aws").and_then(|()| self.aws.told(&json!({}))))?;
        let seed = self.programs.bed("seed.py");
        output(Command::new(&self.programs.python).arg(seed).args([&self.aws.url, CLUSTER]))?;
        self.run(servers::joiner(self, boot))?;
        self.furnish()
    }

    fn run(&self, (name, mut command): (&str, Command)) -> Result<()> {
        let process = Process::spawn(name, &self.dir, &mut command)?;
        self.processes.borrow_mut().push(process);
        Ok(())
    }

    fn alive(&self, name: &str) -> Result<()> {
        self.processes.borrow_mut().iter_mut().filter(|process| process.name == name).try_for_each(Process::is_alive)
    }

    fn api_is_ready(&self, seconds: u64) -> Result<()> {
        until("the API server is ready", seconds, || {
            self.alive("etcd").and_then(|()| self.alive("api-server"))?;
            self.kube.kubectl(&["get", "--raw", "/readyz"])
        })?;
        // The proxy comes up by itself; one that ended early could not bind its port.
        until("kubectl proxy answers", 20, || self.alive("proxy").and_then(|()| self.kube.get("/version"))).map(drop)
    }

    /// What a cluster has before any autoscaler: nodes for the system, and its DNS service.
    fn furnish(&self) -> Result<()> {
        until("there is a service account", 30, || self.kube.get("/api/v1/namespaces/default/serviceaccounts/default"))?;
        for (node, zone) in [("system-a", "us-east-1a"), ("system-b", "us-east-1b")] {
            let size = json!({ "cpu": "8", "memory": "16Gi", "pods": "50" });
            let labels = json!({
                "kubernetes.io/hostname": node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "us-east-1",
            });
            self.kube.post(
                kube::NODES,
                &json!({
                    "metadata": { "name": node, "labels": labels, "annotations": { "kwok.x-k8s.io/node": "fake" } },
                    "spec": { "taints": [{ "key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule" }] },
                    "status": { "capacity": size, "allocatable": size },
                }),
            )?;
        }
        let ports = json!([{ "name": "dns", "port": 53, "protocol": "UDP" }]);
        let dns = json!({ "metadata": { "name": "kube-dns" }, "spec": { "clusterIP": "10.0.0.10", "ports": ports } });
        self.kube.post("/api/v1/namespaces/kube-system/services", &dns).map(drop)
    }

    /// Ends the API server without ado and starts it again.
    ///
    /// # Errors
    /// When it does not come back.
    pub(crate) fn restart_api_server(&self, pause: Duration) -> Result<()> {
        let found = {
            let mut all = self.processes.borrow_mut();
            let at = all.iter().position(|process| process.name == "api-server").context("it has been started")?;
            all.remove(at)
        };
        found.crash();
        std::thread::sleep(pause);
        self.run(servers::api_server(self))?;
        self.api_is_ready(60)
    }

    /// Runs Helm.
    ///
    /// # Errors
    /// When it fails: with what it said.
    pub(crate) fn helm(&self, args: &[&str]) -> Result<String> {
        let mut helm = Command::new(self.programs.bin("helm"));
        output(helm.env("KUBECONFIG", self.keys.path("admin.conf")).env("HELM_CACHE_HOME", self.dir.join("helm")).args(args))
    }

    /// A file of the repository.
    pub(crate) fn repository(&self, path: &str) -> PathBuf {
        self.programs.root.join(path)
    }

    /// Where the controller finds the API server when its token is `token`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn kubeconfig_of_token(&self, name: &str, token: &str) -> Result<PathBuf> {
        self.keys.kubeconfig_of_token(&self.endpoint(), name, token)
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn admin(&self) -> PathBuf {
        self.keys.path("admin.conf")
    }

    /// The authority that the API server is known by, as user data names it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn ca_bundle(&self) -> Result<String> {
        Ok(base64::engine::general_purpose::STANDARD.encode(std::fs::read(self.keys.path("ca.crt"))?))
    }

    /// Address of the API server.
    pub(crate) fn endpoint(&self) -> String {
        server(self.ports)
    }

    /// The audit log from now on.
    pub(crate) fn audit(&self) -> Audit {
        Audit::from_now(&self.dir.join("audit.log"))
    }

    /// Variables for programs that speak to AWS.
    pub(crate) fn aws_environment(&self) -> Vec<(String, String)> {
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            of("AWS_ENDPOINT_URL", &self.aws.url),
            of("AWS_REGION", "us-east-1"),
            of("AWS_ACCESS_KEY_ID", "x"),
            of("AWS_SECRET_ACCESS_KEY", "x"),
            of("AWS_EC2_METADATA_DISABLED", "true"),
        ]
    }

    /// Leaves everything running. Answers with what to put into the environment, and notes what to end.
    ///
    /// # Errors
    /// When something has ended already.
    pub(crate) fn leave(self) -> Result<Vec<(String, String)>> {
        let mut environment = self.aws_environment();
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            ("KUBECONFIG", self.keys.path("admin.conf").display().to_string()),
            ("CLUSTER_NAME", CLUSTER.to_owned()),
            ("CLUSTER_ENDPOINT", self.endpoint()),
            ("INTERRUPTION_QUEUE", CLUSTER.to_owned()),
            ("PATH", format!("{}:{path}", self.programs.bin.display())),
        ] {
            environment.push((name.to_owned(), value));
        }
        let left = self.processes.take().into_iter().rev().map(Process::leave).collect::<Result<Vec<_>>>()?;
        std::fs::write(self.dir.join(LEFT), json!(left).to_string())?;
        Ok(environment)
    }

    /// Whether [`Bed::leave`] left one there.
    pub(crate) fn is_left(dir: &Path) -> bool {
        dir.join(LEFT).exists()
    }

    /// Ends what [`Bed::leave`] left.
    ///
    /// # Errors
    /// When nothing was left there.
    pub(crate) fn end_left(dir: &Path) -> Result<()> {
        let note = dir.join(LEFT);
        let left = std::fs::read(&note).with_context(|| format!("no bed was left running in {}", dir.display()))?;
        for (pid, started) in serde_json::from_slice::<Vec<(u32, u64)>>(&left)? {
            crate::process::end_left(pid, started);
        }
        Ok(std::fs::remove_file(note)?)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        while let Some(process) = self.processes.borrow_mut().pop() {
            drop(process);
        }
    }
}

fn server(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api)
}

/// Ports that nobody listens on.
fn free_ports() -> Result<Ports> {
    let next = free_port;
    Ok(Ports { etcd: next()?, etcd_peer: next()?, api: next()?, kcm: next()?, scheduler: next()?, proxy: next()?, aws: next()? })
}

/// Below the ports that the system gives to connections: who stops and starts again finds its port as it was.
const PORTS: std::ops::Range<u16> = 12_000..30_000;

/// A port that nobody listens on just now, another one each time.
///
/// # Errors
/// When there is none.
pub(crate) fn free_port() -> Result<u16> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    // Runs beside each other begin at different places.
    let first = std::process::id().wrapping_mul(97);
    let port = |nth: u32| PORTS.start + (first.wrapping_add(nth) % u32::from(PORTS.end - PORTS.start)) as u16;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut candidates = PORTS.map(|_| port(ASKED.fetch_add(1, Ordering::Relaxed)));
    candidates.find(free).with_context(|| format!("no port of {PORTS:?} is free"))
}
