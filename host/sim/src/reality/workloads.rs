//! The controllers of Deployments, ReplicaSets, StatefulSets and Jobs: pods made, replaced and
//! taken away until there are as many as wanted.
//!
//! Simpler than Kubernetes: a changed template replaces all pods at once, a deleted pod that was
//! running needs two seconds to stop, and pods start two seconds after they are bound.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Duration, Event, Owner, Pod, PodKey, PodPhase, PodVolume};

use super::{Happening, Reality};
use crate::names;
use crate::scenario::{Workload, WorkloadKind};
use crate::timeline::TimelineEvent;

/// A workload's name among all.
pub(super) type WorkloadId = (WorkloadKind, PodKey);

/// What a pod takes to stop.
const GRACE: Duration = Duration::seconds(2);

/// Annotation of a Job's template: how long its pods run.
const RUNS_FOR: &str = "whittle.sh/runs-for";

/// Annotation of a pod: how long it takes to stop, if its grace period leaves it so long.
const STOPS_IN: &str = "whittle.sh/stops-in";

/// A workload and its pods.
#[derive(Debug)]
pub(super) struct Managed {
    workload: Workload,
    members: BTreeSet<PodKey>,
    /// How often its template has changed.
    version: u32,
    /// Of a Job: pods that ended well.
    succeeded: u32,
    /// Set while pods of it are deleted one by one: their number is right only at the end.
    trimming: bool,
}

impl Managed {
    /// Pods wanted at a time.
    pub(super) fn wanted(&self) -> u32 {
        let left = self.workload.completions.map(|n| n.saturating_sub(self.succeeded));
        left.map_or(self.workload.replicas, |left| left.min(self.workload.replicas))
    }

    /// What it was made from.
    pub(super) const fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Its pods.
    pub(super) fn members(&self) -> impl Iterator<Item = &PodKey> {
        self.members.iter()
    }

    /// Whether no more pods are made: a work queue is empty once a pod of it has ended well.
    pub(super) fn sated(&self) -> bool {
        self.workload.kind == WorkloadKind::Job && self.workload.completions.is_none() && self.succeeded > 0
    }
}

impl Reality {
    /// A workload is new or changed.
    pub(super) fn put_workload(&mut self, workload: Workload) {
        let id = (workload.kind, workload.key.clone());
        if let Some(managed) = self.workloads.get_mut(&id) {
            let changed = managed.workload.template != workload.template;
            managed.workload = workload;
            if changed {
                managed.version += 1;
                for pod in managed.members.clone() {
                    self.delete_pod(&pod);
                }
            }
        } else {
            let mine = |pod: &Pod| {
                pod.key.namespace == id.1.namespace
                    && pod.owner.as_ref().is_some_and(|o| o.kind == id.0.owner_of_pods())
                    && workload.selector.matches(&pod.labels)
            };
            let members: BTreeSet<PodKey> = self.api.pods.values().filter(|p| mine(p)).map(|p| p.key.clone()).collect();
            self.member_of.extend(members.iter().map(|key| (key.clone(), id.clone())));
            self.workloads.insert(id.clone(), Managed { workload, members, version: 0, succeeded: 0, trimming: false });
        }
        self.reconcile(&id);
    }

    /// Changes how many pods a workload has; false when there is no such workload.
    pub(crate) fn scale(&mut self, kind: WorkloadKind, key: &PodKey, replicas: u32) -> bool {
        let id = (kind, key.clone());
        let Some(managed) = self.workloads.get_mut(&id) else { return false };
        managed.workload.replicas = replicas;
        self.count_later();
        self.reconcile(&id);
        self.look_at_buffers();
        true
    }

    /// Deletes a workload with its pods; false when there is none.
    pub(super) fn drop_workload(&mut self, id: &WorkloadId) -> bool {
        let Some(managed) = self.workloads.remove(id) else { return false };
        for pod in managed.members {
            self.delete_pod(&pod);
        }
        true
    }

    /// The workloads of a namespace.
    pub(super) fn workloads_in(&self, namespace: &str) -> Vec<WorkloadId> {
        self.workloads.keys().filter(|(_, key)| key.namespace == namespace).cloned().collect()
    }

    /// Makes and deletes pods until a workload has what it wants.
    pub(super) fn reconcile(&mut self, id: &WorkloadId) {
        let Some(managed) = self.workloads.get(id).filter(|m| !m.trimming) else { return };
        let wanted = managed.wanted() as usize;
        if id.0 == WorkloadKind::StatefulSet {
            return self.reconcile_numbered(id, wanted);
        }
        let active: Vec<PodKey> = managed.members.iter().filter(|key| self.active(key)).cloned().collect();
        if active.len() < wanted && !managed.sated() {
            let template = managed.workload.template.clone();
            let (owner, prefix) = owner_of(id, managed.version, self.seed);
            for _ in active.len()..wanted {
                let key = self.free_name(&id.1.namespace, &prefix);
                self.make_member(id, key, &template, owner.clone());
            }
        } else if active.len() > wanted {
            let surplus = active.len() - wanted;
            let pods = self.least_needed(active).into_iter().take(surplus).collect();
            self.trim(id, pods);
        }
    }

    fn trim(&mut self, id: &WorkloadId, pods: Vec<PodKey>) {
        let trimming = |reality: &mut Self, on: bool| {
            if let Some(managed) = reality.workloads.get_mut(id) {
                managed.trimming = on;
            }
        };
        trimming(self, true);
        for pod in pods {
            self.delete_pod(&pod);
        }
        trimming(self, false);
    }

    /// A StatefulSet's pods are numbered. A number is free when its pod is gone for good; in an
    /// ordered set it waits for all smaller ones.
    fn reconcile_numbered(&mut self, id: &WorkloadId, wanted: usize) {
        let Some(managed) = self.workloads.get(id) else { return };
        let (ordered, template) = (managed.workload.ordered, managed.workload.template.clone());
        let numbered = |n: usize| PodKey::new(&id.1.namespace, &format!("{}-{n}", id.1.name));
        let keep: BTreeSet<PodKey> = (0..wanted).map(numbered).collect();
        let surplus: Vec<PodKey> = managed.members.iter().filter(|key| !keep.contains(*key) && self.active(key)).cloned().collect();
        let owner = Owner { kind: id.0.name().to_owned(), name: id.1.name.clone() };
        for number in 0..wanted {
            let key = numbered(number);
            if !self.api.pods.contains_key(&key) {
                self.make_member(id, key.clone(), &template, owner.clone());
            }
            if ordered && self.api.pods.get(&key).is_none_or(|p| p.phase != PodPhase::Running || p.deleting) {
                break;
            }
        }
        self.trim(id, surplus);
    }

    pub(super) fn active(&self, key: &PodKey) -> bool {
        self.api.pods.get(key).is_some_and(|p| !p.deleting && !p.terminal())
    }

    /// Pods in the order in which a ReplicaSet deletes them: without a node first, then those that
    /// do not run, then those that share a node with most of their like, then the newest.
    fn least_needed(&self, pods: Vec<PodKey>) -> Vec<PodKey> {
        let mut together: BTreeMap<&str, usize> = BTreeMap::new();
        let node_of = |key: &PodKey| self.api.pods.get(key).and_then(|p| p.node.as_deref());
        for node in pods.iter().filter_map(node_of) {
            *together.entry(node).or_default() += 1;
        }
        let rank = |key: &PodKey| {
            let pod = self.api.pods.get(key);
            let share = node_of(key).and_then(|n| together.get(n)).copied().unwrap_or(0);
            let running = pod.is_some_and(|p| p.phase == PodPhase::Running);
            (node_of(key).is_some(), running, std::cmp::Reverse(share), std::cmp::Reverse(pod.map(|p| p.created)), key.clone())
        };
        let mut ranked: Vec<_> = pods.iter().map(|key| (rank(key), key.clone())).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, key)| key).collect()
    }

    fn free_name(&mut self, namespace: &str, prefix: &str) -> PodKey {
        loop {
            let branch = self.seed.of("pods").of(prefix).nth(self.made);
            let key = PodKey::new(namespace, &format!("{prefix}-{}", names::letters(branch, 5)));
            if !self.api.pods.contains_key(&key) {
                return key;
            }
            self.made += 1;
        }
    }

    fn make_member(&mut self, id: &WorkloadId, key: PodKey, template: &Pod, owner: Owner) {
        let claims = self.workloads.get(id).map(|managed| managed.workload.claims.clone()).unwrap_or_default();
        let mut template = template.clone();
        for (name, class) in claims {
            let claim = format!("{name}-{}", key.name);
            self.make_claim(PodKey::new(&key.namespace, &claim), class);
            template.volumes.push(PodVolume { claim, ephemeral: None });
        }
        self.member_of.insert(key.clone(), id.clone());
        if let Some(managed) = self.workloads.get_mut(id) {
            managed.members.insert(key.clone());
        }
        self.make_pod(key, &template, Some(owner));
    }

    /// Makes a pod from a template.
    pub(super) fn make_pod(&mut self, key: PodKey, template: &Pod, owner: Option<Owner>) {
        self.made += 1;
        let mut pod = Pod { key, owner, created: self.clock(), uid: format!("pod-{}", self.made), ..template.clone() };
        if let Some(owner) = pod.owner.as_ref().filter(|o| o.kind == "ReplicaSet")
            && let Some((_, hash)) = owner.name.rsplit_once('-')
        {
            pod.labels.insert("pod-template-hash".to_owned(), hash.to_owned());
        }
        let own = |volume: &mut PodVolume| {
            // The claim of an ephemeral volume is named after its pod.
            if volume.ephemeral.is_some()
                && let Some(rest) = volume.claim.strip_prefix(&template.key.name)
            {
                volume.claim = format!("{}{rest}", pod.key.name);
            }
        };
        pod.volumes.iter_mut().for_each(own);
        self.put_pod(pod);
    }

    /// A pod is there; from now on kube-scheduler looks after it, unless it is bound already.
    pub(super) fn put_pod(&mut self, pod: Pod) {
        let key = pod.key.clone();
        self.api.pods.insert(key.clone(), pod.clone());
        if !pod.terminal() {
            self.make_claims(&pod);
        }
        let workload = self.workload_of(&key);
        match &pod.node {
            Some(node) if !pod.terminal() => {
                self.scheduler.bind(&pod, node);
                self.on_node.entry(node.clone()).or_default().insert(key.clone());
                self.mount(&pod, node);
                if pod.phase == PodPhase::Pending {
                    self.later(super::scheduling::START, Happening::Start(key));
                }
            }
            Some(_) => {}
            None if pod.terminal() => {}
            None => {
                self.waiting.insert(key.clone(), self.now);
                if !self.pinned.contains_key(&key) {
                    self.toll.waits(&key, self.now);
                    self.note_pods(TimelineEvent::PodsCreated { workload, pods: vec![key.clone()] });
                }
                self.enqueue(key);
            }
        }
        self.tell(Event::Pod(Box::new(pod)));
    }

    /// Deletes a pod: at once if it has no node, else when it has stopped.
    pub(super) fn delete_pod(&mut self, key: &PodKey) {
        self.end_pod(key, None);
    }

    /// Deletes a pod with this grace period, or its own. Deleted again it may get less time, never more.
    pub(super) fn end_pod(&mut self, key: &PodKey, grace: Option<Duration>) {
        let (now, clock) = (self.now, self.clock());
        let Some(pod) = self.api.pods.get_mut(key) else {
            return self.tell(Event::PodGone(key.clone()));
        };
        let span = grace.unwrap_or(pod.grace).max(GRACE);
        let (end, shown) = (now.plus(span), clock.plus(span));
        if pod.deleting && pod.ends_at.is_none_or(|at| at <= shown) {
            return;
        }
        let first = !pod.deleting;
        pod.deleting = true;
        pod.ends_at = Some(shown);
        let pod = pod.clone();
        match pod.node.clone() {
            Some(node) if !pod.terminal() => {
                self.scheduler.bind(&pod, &node);
                let told = pod.annotations.get(STOPS_IN).and_then(|text| crate::story::duration(text));
                let stops = told.or_else(|| self.faults.slow_stop(now)).unwrap_or(GRACE).max(GRACE);
                let gone = if first { now.plus(stops).min(end) } else { end };
                self.queue.put(gone, Happening::Vanish(key.clone(), pod.uid.clone()));
                self.tell(Event::Pod(Box::new(pod)));
                if let Some(id) = self.member_of.get(key).cloned() {
                    self.reconcile(&id);
                }
            }
            Some(_) | None => self.vanish(key, &pod.uid),
        }
    }

    /// A pod is gone; its workload may make another.
    pub(super) fn vanish(&mut self, key: &PodKey, uid: &str) {
        if self.api.pods.get(key).is_none_or(|p| p.uid != uid) {
            return;
        }
        let workload = self.workload_of(key);
        let Some(pod) = self.api.pods.remove(key) else { return };
        self.waiting.remove(key);
        self.queued.remove(key);
        self.toll.waits_no_more(key, self.now);
        self.refusals.remove(key);
        self.scheduler.unbind(key);
        self.scheduler.forget_nomination(key);
        if let Some(node) = &pod.node {
            if let Some(pods) = self.on_node.get_mut(node) {
                pods.remove(key);
            }
            self.reschedule();
        }
        if !self.pinned.contains_key(key) {
            self.note_pods(TimelineEvent::PodsGone { workload, pods: vec![key.clone()] });
        }
        self.tell(Event::PodGone(key.clone()));
        self.unmount(&pod);
        self.daemon_gone(key);
        if let Some(id) = self.member_of.remove(key) {
            if let Some(managed) = self.workloads.get_mut(&id) {
                managed.members.remove(key);
            }
            self.reconcile(&id);
        }
    }

    /// A pod runs: the next of an ordered set may come, and a Job's pod may end.
    pub(super) fn runs(&mut self, key: &PodKey) {
        let Some(id) = self.member_of.get(key).cloned() else { return };
        let runs_for = self.api.pods.get(key).and_then(|p| p.annotations.get(RUNS_FOR)).and_then(|t| crate::story::duration(t));
        match (id.0, runs_for) {
            (WorkloadKind::Job, Some(span)) => self.later(span, Happening::Finish(key.clone())),
            (WorkloadKind::StatefulSet, _) => self.reconcile(&id),
            (WorkloadKind::Job | WorkloadKind::Deployment | WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController, _) => {}
        }
    }

    /// A Job's pod ends well.
    pub(super) fn finish(&mut self, key: &PodKey) {
        let Some(pod) = self.api.pods.get_mut(key).filter(|p| p.phase == PodPhase::Running && !p.deleting) else { return };
        pod.phase = PodPhase::Succeeded;
        let pod = pod.clone();
        self.scheduler.unbind(key);
        if let Some(pods) = pod.node.as_ref().and_then(|node| self.on_node.get_mut(node)) {
            pods.remove(key);
        }
        let workload = self.workload_of(key);
        self.note_pods(TimelineEvent::PodsSucceeded { workload, pods: vec![key.clone()] });
        self.tell(Event::Pod(Box::new(pod)));
        self.reschedule();
        if let Some(id) = self.member_of.get(key).cloned() {
            if let Some(managed) = self.workloads.get_mut(&id) {
                managed.succeeded += 1;
            }
            self.reconcile(&id);
        }
    }

    /// Whether every workload has all its pods, and every pod runs or has ended; daemons aside.
    pub(crate) fn all_run(&self) -> bool {
        let whole = self
            .workloads
            .values()
            .all(|managed| managed.members.iter().filter(|key| self.active(key)).count() >= managed.wanted() as usize || managed.sated());
        whole && self.api.pods.values().all(|p| p.deleting || p.phase != PodPhase::Pending || self.pinned.contains_key(&p.key))
    }

    /// Notes that something befell a pod, together with its like.
    pub(super) fn note_pods(&mut self, event: TimelineEvent) {
        for note in self.notes.iter_mut().rev().take(16) {
            if note.join(&event) {
                return;
            }
        }
        self.notes.push(event);
    }
}

/// The owner of a workload's pods and the beginning of their names.
fn owner_of(id: &WorkloadId, version: u32, seed: crate::random::Seed) -> (Owner, String) {
    let name = match id.0 {
        WorkloadKind::Deployment => {
            let branch = seed.of("templates").of(&id.1.to_string()).nth(u64::from(version));
            format!("{}-{}", id.1.name, names::letters(branch, 9))
        }
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController | WorkloadKind::Job | WorkloadKind::StatefulSet => id.1.name.clone(),
    };
    (Owner { kind: id.0.owner_of_pods().to_owned(), name: name.clone() }, name)
}
