//! A bed with the charts installed and the walk-through's manifests at hand: where stories take place. What must not
//! enter: a story.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bed::{Bed, CLUSTER};
use crate::controller::{Binaries, Controller, NAMESPACE, RELEASE, Start};
use crate::kube::{self, name};
use crate::wait::{patient, until};

/// The lease by which replicas take turns.
pub(crate) const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";
/// What belongs to the system: stories neither make nor remove it.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
const WORKLOADS: [(&str, &str); 8] = [
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "replicasets"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/apps/v1", "daemonsets"),
    ("apis/batch/v1", "jobs"),
    ("apis/policy/v1", "poddisruptionbudgets"),
    ("api/v1", "pods"),
    ("api/v1", "persistentvolumeclaims"),
];

/// Where stories take place.
#[derive(Debug)]
pub(crate) struct Stage<'b> {
    /// The servers.
    pub(crate) bed: &'b Bed,
    binaries: Binaries,
    story: RefCell<String>,
    started: Cell<u32>,
    /// Whether the chart has other values than at the beginning.
    changed: Cell<bool>,
    /// Journals of all controllers so far.
    journals: RefCell<Vec<PathBuf>>,
}

impl<'b> Stage<'b> {
    /// Installs the charts, as the walk-through does.
    ///
    /// # Errors
    /// When they cannot be installed.
    pub(crate) fn set(bed: &'b Bed, binaries: Binaries) -> Result<Self> {
        let stage = Self {
            bed,
            binaries,
            story: RefCell::default(),
            started: Cell::default(),
            changed: Cell::default(),
            journals: RefCell::default(),
        };
        stage.install_crds()?;
        stage.install(&[])?;
        Ok(stage)
    }

    /// A new story begins.
    pub(crate) fn open(&self, story: &str) {
        story.clone_into(&mut self.story.borrow_mut());
        self.started.set(0);
    }

    /// Installs or upgrades the definitions.
    ///
    /// # Errors
    /// When Helm refuses, or the server does not serve them.
    pub(crate) fn install_crds(&self) -> Result<()> {
        let chart = self.bed.repository("charts/whittle-crd").display().to_string();
        self.bed.helm(&["upgrade", "--install", "whittle-crd", &chart, "--namespace", NAMESPACE, "--wait"])?;
        let kinds = [kube::POOLS, kube::CLAIMS, kube::CLASSES, kube::POLICIES, kube::OVERLAYS];
        until("the definitions are served", 20, || kinds.iter().try_for_each(|kind| self.bed.kube.get(kind).map(drop)))
    }

    /// Installs or upgrades the controller's chart with the flags of the walk-through, and `more`.
    ///
    /// # Errors
    /// When Helm refuses.
    pub(crate) fn install(&self, more: &[&str]) -> Result<()> {
        let chart = self.bed.repository("charts/whittle").display().to_string();
        let endpoint = format!("settings.clusterEndpoint={}", self.bed.endpoint());
        let cluster = format!("settings.clusterName={CLUSTER}");
        let queue = format!("settings.interruptionQueue={CLUSTER}");
        let mut args = vec!["upgrade", "--install", RELEASE, &chart, "--namespace", NAMESPACE, "--create-namespace"];
        for value in [
            cluster.as_str(),
            &queue,
            "settings.enableZonalShift=false",
            "controller.resources.requests.cpu=1",
            "controller.resources.requests.memory=1Gi",
            "controller.resources.limits.cpu=1",
            "controller.resources.limits.memory=1Gi",
            &endpoint,
        ] {
            args.extend(["--set", value]);
        }
        let patience = format!("{}s", patient(60));
        args.extend(["--wait", "--timeout", &patience]);
        args.extend(more);
        self.changed.set(!more.is_empty());
        self.bed.helm(&args).map(drop)
    }

    /// A replica, ready.
    ///
    /// # Errors
    /// When it does not become ready.
    pub(crate) fn controller(&self) -> Result<Controller> {
        self.controller_with(&Start::default())
    }

    /// A replica, ready, with variables of its own.
    ///
    /// # Errors
    /// When it does not become ready.
    pub(crate) fn controller_with(&self, start: &Start<'_>) -> Result<Controller> {
        let controller = Controller::start(self.bed, &self.binaries, &self.next_name(), start)?;
        self.journals.borrow_mut().push(controller.journal.clone());
        Ok(controller)
    }

    fn next_name(&self) -> String {
        self.started.set(self.started.get() + 1);
        format!("{}-{}", self.story.borrow(), self.started.get())
    }

    /// The journals of all controllers so far.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        self.journals.borrow().clone()
    }

    /// The programs stories run.
    pub(crate) fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Applies manifests in which `${CLUSTER_NAME}` is the cluster.
    ///
    /// # Errors
    /// When one is refused.
    pub(crate) fn apply(&self, manifests: &str) -> Result<()> {
        self.bed.kube.apply(&manifests.replace("${CLUSTER_NAME}", CLUSTER).replace("${ALIAS_VERSION}", "latest"))
    }

    /// Applies the walk-through's NodePool and EC2NodeClass, and waits until they are ready.
    ///
    /// # Errors
    /// When they do not become ready.
    pub(crate) fn walk_through(&self) -> Result<()> {
        self.apply(include_str!("../manifests/walk-through.yaml"))?;
        self.pool_is_ready("default")
    }

    /// Waits until a NodePool is ready.
    ///
    /// # Errors
    /// When it does not become so.
    pub(crate) fn pool_is_ready(&self, pool: &str) -> Result<()> {
        until(&format!("NodePool {pool} is ready"), 60, || kube::is_true(&self.bed.kube.get(&format!("{}/{pool}", kube::POOLS))?, "Ready"))
    }

    /// Waits until `wanted` pods `app=APP` run.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn pods_run(&self, app: &str, wanted: usize, seconds: u64) -> Result<()> {
        until(&format!("{wanted} pods of {app} run"), seconds, || self.bed.kube.all_run(&format!("app={app}"), wanted))
    }

    /// The claims.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) fn claims(&self) -> Result<Vec<Value>> {
        self.bed.kube.list(kube::CLAIMS)
    }

    /// Says no unless there are exactly `wanted` claims, each initialized, each with a node and an instance of its own,
    /// and no other nodes and instances.
    ///
    /// # Errors
    /// What is too much or too little.
    pub(crate) fn books_balance(&self, wanted: Option<usize>) -> Result<()> {
        let (claims, nodes, instances) = (self.claims()?, self.bed.kube.nodes()?, self.bed.aws.instances()?);
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        let of_claims = sorted(claims.iter().map(|c| last(kube::text(c, "/status/providerID"))).collect());
        let of_nodes = sorted(nodes.iter().map(|n| last(kube::text(n, "/spec/providerID"))).collect());
        let of_aws = sorted(instances.into_iter().map(|i| i.id).collect());
        ensure!(of_claims == of_aws, "claims have instances {of_claims:?}, AWS has {of_aws:?}");
        ensure!(of_nodes == of_aws, "nodes have instances {of_nodes:?}, AWS has {of_aws:?}");
        claims.iter().try_for_each(|claim| kube::is_true(claim, "Initialized"))?;
        ensure!(wanted.is_none_or(|wanted| claims.len() == wanted), "there are {} claims, {wanted:?} should be", claims.len());
        Ok(())
    }

    /// Says no unless nothing of any node is left.
    ///
    /// # Errors
    /// What is left.
    pub(crate) fn is_empty(&self) -> Result<()> {
        let names = |all: Vec<Value>| all.iter().map(name).collect::<Vec<_>>().join(" ");
        let (claims, nodes) = (names(self.claims()?), names(self.bed.kube.nodes()?));
        let instances: Vec<String> = self.bed.aws.instances()?.into_iter().map(|i| i.id).collect();
        ensure!(
            claims.is_empty() && nodes.is_empty() && instances.is_empty(),
            "left are claims [{claims}], nodes [{nodes}], instances {instances:?}"
        );
        Ok(())
    }

    /// Removes what a story left: no controller runs, so finalizers are taken away.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub(crate) fn clear(&self) -> Result<()> {
        let bed = self.bed;
        for (group, kind) in WORKLOADS {
            bed.kube.delete(&format!("/{group}/namespaces/default/{kind}"))?;
        }
        bed.kube.delete("/api/v1/persistentvolumes")?;
        for namespace in bed.kube.list("/api/v1/namespaces")? {
            if !SYSTEM_NAMESPACES.contains(&name(&namespace)) {
                bed.kube.delete(&format!("/api/v1/namespaces/{}", name(&namespace)))?;
            }
        }
        for kind in [kube::POOLS, kube::CLAIMS, kube::CLASSES, kube::POLICIES, kube::OVERLAYS] {
            self.remove_all(kind, kind)?;
        }
        bed.aws.reset()?;
        until("the nodes of a story are gone", 60, || {
            self.remove_all(&format!("{}?labelSelector=node.kubernetes.io/instance-type", kube::NODES), kube::NODES)?;
            let pods = bed.kube.list("/api/v1/namespaces/default/pods")?;
            ensure!(pods.is_empty(), "{} pods are left", pods.len());
            self.is_empty()
        })?;
        bed.kube.delete(LEASE)?;
        bed.kube.delete("/api/v1/namespaces/default/events")?;
        let gone = bed.kube.find(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}"))?.is_none();
        if gone || self.changed.get() { self.install(&[]).context("the chart as it was") } else { Ok(()) }
    }

    /// Deletes objects and lets go of them.
    fn remove_all(&self, list: &str, kind: &str) -> Result<()> {
        for object in self.bed.kube.list(list)? {
            let path = format!("{kind}/{}", name(&object));
            self.bed.kube.delete(&path)?;
            if self.bed.kube.find(&path)?.is_some() {
                // Between the look and the patch it may have gone.
                let _ = self.bed.kube.patch(&path, &json!({ "metadata": { "finalizers": null } }));
            }
        }
        Ok(())
    }
}

/// What stands behind the last slash: the instance of a provider id.
pub(crate) fn last(provider_id: &str) -> String {
    provider_id.rsplit('/').next().unwrap_or_default().to_owned()
}
