//! Nodes and their kubelets: joining, getting ready, going.

use whittle_model::{Duration, Effect, Event, Node, Taint, keys};

use super::{Happening, Instance, Reality};

/// Taint of a node whose kubelet is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What a startup taint waits for is done so long after the node is ready.
const STARTUP: Duration = Duration::seconds(10);

impl Reality {
    /// The kubelet of a claim's instance says hello.
    pub(super) fn join(&mut self, claim: &str) {
        let Some(instance) = self.ec2.of_claim(claim).filter(|i| i.ended.is_none()).cloned() else { return };
        let (capacity, allocatable) = Self::amounts(&instance);
        let node = Node {
            name: instance.node.clone(),
            provider_id: instance.provider_id.clone(),
            labels: self.first_labels(&instance),
            taints: vec![Taint::new(keys::UNREGISTERED_TAINT, "", Effect::NoExecute), Taint::new(NOT_READY, "", Effect::NoSchedule)],
            capacity,
            allocatable,
            created: self.clock(),
            ..Node::default()
        };
        let wait = Duration::seconds(self.seed.of("ready").of(claim).between(3, 6));
        let wait = Duration(wait.0 + self.faults.slow_ready(self.now).0);
        self.later(wait, Happening::Ready(node.name.clone()));
        self.put_node(node);
    }

    pub(super) fn ready(&mut self, name: &str) {
        if !self.alive(name) {
            return;
        }
        self.change_node(name, |node| {
            node.ready = true;
            node.taints.retain(|t| t.key != NOT_READY);
        });
        self.limit_disks(name);
        self.later(STARTUP, Happening::Untaint(name.to_owned()));
    }

    /// Whatever the startup taints of a node waited for is done. A node that is not registered yet
    /// has not been given them: it waits.
    pub(super) fn untaint(&mut self, name: &str) {
        let Some(node) = self.api.nodes.get(name).filter(|_| self.alive(name)) else { return };
        let instance = self.ec2.running().find(|i| i.node == name);
        let startup = instance.and_then(|i| self.api.claims.get(&i.claim)).map(|c| c.startup_taints.clone()).unwrap_or_default();
        if startup.is_empty() {
            return;
        }
        if !node.labels.contains_key(keys::REGISTERED) {
            return self.later(STARTUP, Happening::Untaint(name.to_owned()));
        }
        self.change_node(name, |node| node.taints.retain(|t| !startup.contains(t)));
    }

    /// The machine under a node is gone: its pods with it, the object stays until it is let go.
    pub(super) fn lose(&mut self, name: &str) {
        self.change_node(name, |node| {
            node.ready = false;
            node.taints.push(Taint::new(NOT_READY, "", Effect::NoSchedule));
        });
        self.lose_pods(name);
    }

    /// The cloud's controller deletes the node of an instance that is gone. A registered one has a
    /// finalizer: it stays until the engine lets it go.
    pub(super) fn collect(&mut self, name: &str) {
        if self.api.nodes.get(name).is_some_and(|n| !n.labels.contains_key(keys::REGISTERED)) {
            self.drop_node(name);
        }
    }

    /// All pods of a node vanish, without waiting for anything.
    fn lose_pods(&mut self, name: &str) {
        let pods: Vec<_> = self.on_node.get(name).into_iter().flatten().cloned().collect();
        for key in pods {
            if let Some(uid) = self.api.pods.get(&key).map(|p| p.uid.clone()) {
                self.vanish(&key, &uid);
            }
        }
    }

    pub(super) fn put_node(&mut self, node: Node) {
        let name = node.name.clone();
        let before = self.api.nodes.insert(name.clone(), node);
        self.node_changed(&name, before.as_ref());
    }

    pub(super) fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.api.nodes.get_mut(name) {
            let before = node.clone();
            change(node);
            self.node_changed(name, Some(&before));
        }
    }

    fn node_changed(&mut self, name: &str, before: Option<&Node>) {
        let Some(node) = self.api.nodes.get(name).cloned() else { return };
        self.scheduler.apply_node(&node);
        self.requeue_for(before, &node);
        self.tell(Event::Node(Box::new(node)));
        self.place_daemons(name);
    }

    /// The node object is gone, and the pods that were bound to it.
    pub(super) fn drop_node(&mut self, name: &str) {
        if self.api.nodes.remove(name).is_none() {
            return;
        }
        self.scheduler.remove_node(name);
        self.lose_pods(name);
        self.forget_disks(name);
        self.unpin(name);
        self.tell(Event::NodeGone(name.to_owned()));
    }

    /// Whether the machine under a node runs; nodes that were there before always do.
    fn alive(&self, name: &str) -> bool {
        let of_node: Option<&Instance> = self.ec2.instances.iter().rev().find(|i| i.node == name);
        of_node.is_none_or(|i| i.ended.is_none())
    }
}
