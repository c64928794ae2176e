//! The programs of the bed: real servers, built once into a cache. What must not enter: how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::output;

/// The release of Kubernetes; `bed/k8s/go.mod` says the same.
const KUBERNETES: (u32, u32, u32) = (1, 36, 3);
const KWOK: &str = "sigs.k8s.io/kwok";
const KWOK_VERSION: &str = "v0.8.0";
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.22.0";
/// Stages of kwok's module that make nodes and pods live.
const STAGES: [&str; 4] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
];

/// Why there is no bed: its programs are not there, and cannot be built or fetched.
#[derive(Debug)]
pub(crate) struct NotToBeHad;

impl std::fmt::Display for NotToBeHad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the servers of the bed cannot be had on this machine")
    }
}

/// Where the programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    /// Built programs.
    pub(crate) bin: PathBuf,
    /// The Python that has moto.
    pub(crate) python: PathBuf,
    /// The repository.
    pub(crate) root: PathBuf,
}

impl Programs {
    /// Builds what is missing; minutes the first time.
    ///
    /// # Errors
    /// [`NotToBeHad`] when a tool is missing, what it fetches cannot be reached, or a build fails.
    pub(crate) fn ready(say: &dyn Fn(&str)) -> Result<Self> {
        Self::found(say).context(NotToBeHad)
    }

    fn found(say: &dyn Fn(&str)) -> Result<Self> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let cache = cache()?;
        let here = Self { bin: cache.join("bin"), python: cache.join("venv/bin/python"), root };
        std::fs::create_dir_all(&here.bin)?;
        here.kubernetes(say)?;
        here.build("etcd", say, |bin, bed| {
            go_build(&bed.join("etcd"), bin, "-s -w", &["go.etcd.io/etcd/server/v3".to_owned()], Some("etcd"))
        })?;
        here.build("kwok", say, |bin, bed| go_install(bed, bin, &format!("{KWOK}/cmd/kwok@{KWOK_VERSION}")))?;
        here.build("helm", say, |bin, bed| go_install(bed, bin, HELM))?;
        here.moto(&cache, say)?;
        Ok(here)
    }

    /// A program by name.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A file of `bed/`.
    pub(crate) fn bed(&self, name: &str) -> PathBuf {
        self.root.join("tests/e2e/bed").join(name)
    }

    fn build(&self, name: &str, say: &dyn Fn(&str), make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        if self.bin(name).exists() {
            return Ok(());
        }
        say(&format!("building {name}"));
        make(&self.bin, &self.bed("")).with_context(|| format!("{name} cannot be built"))
    }

    fn kubernetes(&self, say: &dyn Fn(&str)) -> Result<()> {
        const NAMES: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
        let missing: Vec<&str> = NAMES.into_iter().filter(|name| !self.bin(name).exists()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        say(&format!("building {}: some minutes, and 4 GB for Go's cache", missing.join(", ")));
        let (major, minor, patch) = KUBERNETES;
        // Without them /version is empty, and Helm refuses charts that ask for a version.
        let stamp = |package: &str| {
            let said = [
                ("gitVersion", format!("v{major}.{minor}.{patch}")),
                ("gitMajor", major.to_string()),
                ("gitMinor", minor.to_string()),
                ("gitTreeState", "clean".to_owned()),
                ("gitCommit", "0".repeat(40)),
                ("buildDate", "2026-01-01T00:00:00Z".to_owned()),
            ];
            said.map(|(name, value)| format!("-X {package}.{name}={value}")).join(" ")
        };
        let flags = format!("-s -w {} {}", stamp("k8s.io/component-base/version"), stamp("k8s.io/client-go/pkg/version"));
        let packages: Vec<String> = missing.iter().map(|name| format!("k8s.io/kubernetes/cmd/{name}")).collect();
        go_build(&self.bed("k8s"), &self.bin, &flags, &packages, None)
    }

    fn moto(&self, cache: &Path, say: &dyn Fn(&str)) -> Result<()> {
        if cache.join("venv/bin/moto_server").exists() {
            return Ok(());
        }
        say("installing the AWS server");
        output(Command::new("python3").args(["-m", "venv"]).arg(cache.join("venv")))?;
        output(Command::new(&self.python).args(["-m", "pip", "-q", "install", "-r"]).arg(self.bed("requirements.txt")))?;
        Ok(())
    }

    /// What makes nodes and pods live: kwok's stages and ours, in one file.
    ///
    /// # Errors
    /// When kwok's module cannot be had.
    pub(crate) fn stages(&self) -> Result<String> {
        let modules = output(go().args(["env", "GOMODCACHE"]))?;
        let folder = Path::new(modules.trim()).join(format!("{KWOK}@{KWOK_VERSION}/kustomize/stage"));
        if !folder.exists() {
            output(go().args(["mod", "download", &format!("{KWOK}@{KWOK_VERSION}")]).current_dir(std::env::temp_dir()))?;
        }
        let files = STAGES.iter().map(|stage| folder.join(stage)).chain([self.bed("stages.yaml")]);
        let read = |path: PathBuf| std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()));
        Ok(files.map(read).collect::<Result<Vec<_>>>()?.join("\n---\n"))
    }
}

/// `$XDG_CACHE_HOME/whittle/testbed`.
fn cache() -> Result<PathBuf> {
    let of_user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = of_user.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    Ok(cache.context("there is no home folder for the cache; set XDG_CACHE_HOME")?.join("whittle/testbed"))
}

/// Go, which fetches a newer one of itself where a module asks for it.
fn go() -> Command {
    let mut go = Command::new("go");
    go.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "auto");
    go
}

fn go_build(module: &Path, bin: &Path, flags: &str, packages: &[String], name: Option<&str>) -> Result<()> {
    let to = name.map_or_else(|| format!("{}/", bin.display()), |name| bin.join(name).display().to_string());
    let mut go = go();
    go.current_dir(module).args(["build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", flags, "-o", &to]).args(packages);
    output(&mut go).map(drop)
}

fn go_install(dir: &Path, bin: &Path, package: &str) -> Result<()> {
    let mut go = go();
    go.current_dir(dir).env("GOBIN", bin).args(["install", "-ldflags", "-s -w", package]);
    output(&mut go).map(drop)
}
