//! What people do to the cluster: apply, scale, delete.

use whittle_model::{Duration, Event, NodeClaim, NodePool, Pod, PodKey, Timestamp};

use super::{Happening, Reality};
use crate::scenario::{ObjectKind, ObjectName, ScenarioObject};

impl Reality {
    /// Creates or replaces objects, in an order that makes sense to those who watch.
    ///
    /// # Errors
    /// When a pod that exists would have to change. Then nothing is applied.
    pub(crate) fn apply(&mut self, objects: Vec<ScenarioObject>) -> Result<(), String> {
        if let Some(why) = self.refused(&objects) {
            return Err(why);
        }
        let shift = self.shift(&objects);
        let mut objects = objects;
        objects.sort_by_key(order);
        for object in objects {
            match object {
                ScenarioObject::NodeClass(class, catalog, comes_to) => {
                    let name = class.name.clone();
                    self.api.node_classes.insert(name.clone(), class.clone());
                    self.api.catalogs.insert(name.clone(), std::sync::Arc::clone(&catalog));
                    self.tell(Event::NodeClass(class));
                    self.tell(Event::Catalog(catalog));
                    self.comes_to(&name, comes_to);
                    self.count_held();
                }
                ScenarioObject::Namespace(name, labels) => {
                    self.scheduler.apply_namespace(&name, &labels);
                    self.api.namespaces.insert(name.clone(), labels.clone());
                    self.tell(Event::Namespace(name, labels));
                }
                ScenarioObject::StorageClass(class) => self.put_storage(Event::StorageClass(class)),
                ScenarioObject::Volume(volume) => self.put_storage(Event::Volume(volume)),
                ScenarioObject::VolumeClaim(claim) => self.put_storage(Event::VolumeClaim(claim)),
                ScenarioObject::VolumeLimits(limits) => self.put_storage(Event::VolumeLimits(limits)),
                ScenarioObject::VolumeAttachment(attachment) => self.put_storage(Event::VolumeAttachment(attachment)),
                ScenarioObject::LimitRange(range) => {
                    self.api.limit_ranges.insert(range.key.clone(), (*range).clone());
                    self.tell(Event::LimitRange(range));
                }
                ScenarioObject::NodeOverlay(overlay) => {
                    self.api.overlays.insert(overlay.name.clone(), (*overlay).clone());
                    self.tell(Event::NodeOverlay(overlay));
                }
                ScenarioObject::CapacityBuffer(spec) => self.buffers.put(*spec),
                ScenarioObject::PodTemplate(template) => self.buffers.put_template(*template),
                ScenarioObject::Budget(budget) => self.put_budget(budget),
                ScenarioObject::NodePool(pool) => self.put_pool(*pool),
                ScenarioObject::Claim(claim) => self.find_claim(*claim, shift),
                ScenarioObject::Node(mut node) => {
                    node.created = moved(node.created, shift);
                    self.find_node(&node.name, &node.provider_id);
                    self.put_node(*node);
                }
                ScenarioObject::DaemonSet(set) => self.put_daemon_set(*set),
                ScenarioObject::Pod(pod) => self.find_pod(*pod, shift),
                ScenarioObject::Workload(workload) => self.put_workload(*workload),
            }
        }
        self.look_at_buffers();
        Ok(())
    }

    /// Objects of a live cluster carry its time: the latest becomes the story's now.
    fn shift(&self, objects: &[ScenarioObject]) -> Duration {
        let latest = objects.iter().filter_map(|object| match object {
            ScenarioObject::Pod(pod) => Some(pod.created),
            ScenarioObject::Node(node) => Some(node.created),
            ScenarioObject::Claim(claim) => {
                let s = &claim.status;
                [Some(claim.created), s.launched, s.registered, s.initialized, s.last_pod_event].into_iter().flatten().max()
            }
            ScenarioObject::NodePool(_)
            | ScenarioObject::NodeClass(..)
            | ScenarioObject::Workload(_)
            | ScenarioObject::DaemonSet(_)
            | ScenarioObject::StorageClass(_)
            | ScenarioObject::Volume(_)
            | ScenarioObject::VolumeClaim(_)
            | ScenarioObject::VolumeLimits(_)
            | ScenarioObject::VolumeAttachment(_)
            | ScenarioObject::LimitRange(_)
            | ScenarioObject::NodeOverlay(_)
            | ScenarioObject::CapacityBuffer(_)
            | ScenarioObject::PodTemplate(_)
            | ScenarioObject::Budget(_)
            | ScenarioObject::Namespace(..) => None,
        });
        latest.max().filter(|latest| *latest > self.now).map_or(Duration(0), |latest| latest.since(self.now))
    }

    fn put_pool(&mut self, mut pool: NodePool) {
        if let Some(old) = self.api.pools.get(&pool.name) {
            pool.uid.clone_from(&old.uid);
        } else if pool.uid.is_empty() {
            pool.uid = format!("pool-{}", pool.name);
        }
        self.tell(Event::NodePool(Box::new(pool.clone())));
        self.api.pools.insert(pool.name.clone(), pool);
    }

    fn find_claim(&mut self, mut claim: NodeClaim, shift: Duration) {
        claim.created = moved(claim.created, shift);
        let status = &mut claim.status;
        for time in [&mut status.launched, &mut status.registered, &mut status.initialized, &mut status.last_pod_event] {
            *time = time.map(|t| moved(t, shift));
        }
        if !claim.status.provider_id.is_empty() && self.ec2.of_claim(&claim.name).is_none() {
            let node = claim.status.node.clone();
            if node.is_empty() {
                let region = self.api.catalogs.get(&claim.node_class).map_or_else(String::new, |c| c.region.clone());
                let node = crate::names::host_name(self.hosts, &region);
                self.hosts += 1;
                self.found(&claim, &node);
                self.later(Duration::seconds(self.seed.of("boot").of(&claim.name).between(30, 45)), Happening::Join(claim.name.clone()));
            } else {
                self.found(&claim, &node);
            }
        }
        let name = claim.name.clone();
        self.tell(Event::Claim(Box::new(claim.clone())));
        self.api.claims.insert(name.clone(), claim);
        let drifted = self.drifts().into_iter().filter(|event| matches!(event, Event::ProviderDrift { claim, .. } if *claim == name));
        drifted.collect::<Vec<_>>().into_iter().for_each(|event| self.tell(event));
    }

    /// A node that was there before the story began is that of its instance, whatever its name.
    fn find_node(&mut self, name: &str, provider_id: &str) {
        if let Some(instance) = self.ec2.instances.iter_mut().find(|i| !provider_id.is_empty() && i.provider_id == provider_id) {
            name.clone_into(&mut instance.node);
        }
    }

    fn find_pod(&mut self, mut pod: Pod, shift: Duration) {
        if self.api.pods.get(&pod.key).is_some_and(|old| !old.deleting) {
            return; // it is there already, just so
        }
        pod.created = if pod.uid.is_empty() { self.now } else { moved(pod.created, shift) };
        if pod.uid.is_empty() {
            self.made += 1;
            pod.uid = format!("pod-{}", self.made);
        }
        self.adopt_daemon(&pod);
        self.put_pod(pod);
    }

    /// Deletes an object with all that belongs to it.
    ///
    /// # Errors
    /// When there is no such object.
    pub(crate) fn delete(&mut self, object: &ObjectName) -> Result<(), String> {
        let (key, name) = (&object.key, &object.key.name);
        let found = match object.kind {
            ObjectKind::Workload(kind) => self.drop_workload(&(kind, key.clone())),
            ObjectKind::DaemonSet => self.drop_daemon_set(key),
            ObjectKind::Pod => {
                self.api.pods.contains_key(key) && {
                    self.delete_pod(key);
                    true
                }
            }
            ObjectKind::Node => self.delete_node(name),
            ObjectKind::NodeClaim => {
                self.api.claims.contains_key(name) && {
                    self.delete_claim(name);
                    true
                }
            }
            ObjectKind::NodePool => self.drop_pool(name),
            ObjectKind::NodeClass => {
                self.api.node_classes.remove(name).is_some() && {
                    self.tell(Event::NodeClassGone(name.clone()));
                    true
                }
            }
            ObjectKind::CapacityBuffer => self.buffers.drop(key),
            ObjectKind::Namespace => self.drop_namespace(name),
        };
        self.look_at_buffers();
        if found { Ok(()) } else { Err(format!("there is no {object} to delete")) }
    }

    /// A node of a claim goes by its claim; another one goes at once.
    fn delete_node(&mut self, name: &str) -> bool {
        let claim = self.ec2.instances.iter().rev().find(|i| i.node == name).map(|i| i.claim.clone());
        match claim.filter(|claim| self.api.claims.contains_key(claim)) {
            Some(claim) => self.delete_claim(&claim),
            None if self.api.nodes.contains_key(name) => self.drop_node(name),
            None => return false,
        }
        true
    }

    /// The claims of a pool go with it.
    fn drop_pool(&mut self, name: &str) -> bool {
        if self.api.pools.remove(name).is_none() {
            return false;
        }
        self.tell(Event::NodePoolGone(name.to_owned()));
        let claims: Vec<String> = self.api.claims.values().filter(|c| c.node_pool == name).map(|c| c.name.clone()).collect();
        for claim in claims {
            self.delete_claim(&claim);
        }
        true
    }

    fn drop_namespace(&mut self, name: &str) -> bool {
        for id in self.workloads_in(name) {
            self.drop_workload(&id);
        }
        let sets: Vec<PodKey> = self.api.daemon_sets.keys().filter(|k| k.namespace == name).cloned().collect();
        for set in sets {
            self.drop_daemon_set(&set);
        }
        let pods: Vec<PodKey> = self.api.pods.keys().filter(|k| k.namespace == name).cloned().collect();
        for pod in pods {
            self.delete_pod(&pod);
        }
        self.buffers.drop_namespace(name);
        if self.api.namespaces.remove(name).is_some() {
            self.scheduler.remove_namespace(name);
            self.tell(Event::NamespaceGone(name.to_owned()));
        }
        true
    }
}

fn moved(time: Timestamp, shift: Duration) -> Timestamp {
    Timestamp(time.0.saturating_sub(shift.0))
}

fn order(object: &ScenarioObject) -> u8 {
    match object {
        ScenarioObject::NodeClass(..)
        | ScenarioObject::Namespace(..)
        | ScenarioObject::StorageClass(_)
        | ScenarioObject::LimitRange(_)
        | ScenarioObject::NodeOverlay(_)
        | ScenarioObject::CapacityBuffer(_)
        | ScenarioObject::PodTemplate(_)
        | ScenarioObject::Budget(_) => 0,
        ScenarioObject::NodePool(_) | ScenarioObject::Volume(_) => 1,
        ScenarioObject::Claim(_) | ScenarioObject::VolumeClaim(_) => 2,
        ScenarioObject::Node(_) | ScenarioObject::VolumeLimits(_) | ScenarioObject::VolumeAttachment(_) => 3,
        ScenarioObject::Pod(_) => 4,
        ScenarioObject::DaemonSet(_) => 5,
        ScenarioObject::Workload(_) => 6,
    }
}
