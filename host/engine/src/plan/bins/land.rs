//! How bins come to be: nodes as their kubelets tell, claims in flight as the least they may become, each less what
//! daemons will still ask for.

use std::collections::BTreeMap;

use whittle_model::{Effect, Labels, Node, NodeClaim, Requirement, Requirements, Resources, Taint, keys};

use super::{Bin, Face};
use crate::plan::amounts::{Amounts, Dimensions, add};
use crate::plan::daemons::Daemon;
use crate::plan::ports::PortSet;
use crate::plan::premises::Premises;
use crate::plan::states::{offering_allows, type_allows};
use crate::plan::topology::tally::Local;
use crate::world::{Usage, World};

/// What bins are made from.
pub(super) struct Land<'a, 'w> {
    pub(super) world: &'w World,
    pub(super) dimensions: &'a Dimensions,
    pub(super) premises: &'a Premises<'w>,
}

/// As documented: a taint that a node's start brings is no obstacle while it starts; a node that has gone silent evicts.
fn ephemeral(taint: &Taint) -> bool {
    keys::ephemeral_taint(&taint.key) && !(taint.key == keys::UNREACHABLE_TAINT && taint.effect == Effect::NoExecute)
}

fn bin<'w>(name: &'w str, initialized: bool, face: Face<'w>, taints: Vec<&'w Taint>, free: Amounts) -> Bin<'w> {
    let (local, barred, volumes) = (Local::new(), PortSet::default(), Vec::new());
    Bin {
        name,
        initialized,
        node: None,
        face,
        taints,
        free,
        local,
        reach: Vec::new(),
        outside: Vec::new(),
        unsure: Vec::new(),
        barred,
        volumes,
    }
}

impl<'w> Land<'_, 'w> {
    pub(super) fn node_bin(&self, node: &'w Node, claim: Option<&'w NodeClaim>, usage: Option<&'w Usage>) -> Bin<'w> {
        let initialized = claim.is_none_or(|c| c.status.initialized.is_some());
        // Until a node is initialized its kubelet may not have told all it has: the claim knows.
        let allocatable = match claim {
            Some(claim) if !initialized => &claim.status.allocatable,
            _ => &node.allocatable,
        };
        let startup = claim.map_or(&[][..], |c| &c.startup_taints[..]);
        let passing = |t: &&Taint| !initialized && (ephemeral(t) || startup.contains(t));
        // Until it is registered it does not bear what its claim will give it.
        let (labels, taints) = match claim.filter(|c| c.status.registered.is_none()) {
            Some(claim) => (&claim.labels, &claim.taints),
            None => (&node.labels, &node.taints),
        };
        let taints: Vec<&Taint> = taints.iter().filter(|t| !passing(t)).collect();
        let mut bin = bin(&node.name, initialized, Face::Labels(labels), taints, self.dimensions.dense(allocatable));
        bin.volumes = self.premises.volumes.attached().room_of_node(self.world, node, &mut bin.free, self.dimensions.volumes);
        if let Some(usage) = usage {
            add(&mut bin.free, &self.dimensions.dense(&usage.total), -1);
        }
        self.reserve_for_daemons(&mut bin, labels, usage.map(|u| &u.daemons));
        if !self.premises.ports.is_empty() {
            for record in usage.iter().flat_map(|u| &u.pods).filter_map(|key| self.world.pods.get(key)) {
                bin.barred.join(&self.premises.ports.barred(&self.world.shape_of(record).host_ports));
            }
        }
        bin
    }

    /// A claim whose node has not joined. Until it is bought, it counts as the smallest of the types it
    /// may become: what is planned on it must fit whichever is bought.
    pub(super) fn claim_bin(&self, claim: &'w NodeClaim) -> Bin<'w> {
        let taints: Vec<&Taint> = claim.taints.iter().collect();
        let free = self.dimensions.dense(&claim.status.allocatable);
        if claim.status.launched.is_none() {
            let mut bin = bin(&claim.name, false, Face::Requirements(&claim.requirements), taints, free);
            self.shrink_to_smallest(&mut bin, claim);
            return bin;
        }
        let mut bin = bin(&claim.name, false, Face::Labels(&claim.labels), taints, free);
        self.premises.volumes.attached().room_of_type(&claim.status.instance_type, &mut bin.free, self.dimensions.volumes);
        self.reserve_for_daemons(&mut bin, &claim.labels, None);
        bin
    }

    fn shrink_to_smallest(&self, bin: &mut Bin<'_>, claim: &NodeClaim) {
        let names = claim.requirements.get(keys::INSTANCE_TYPE).map(|r| r.values().clone()).unwrap_or_default();
        let catalog = self.world.catalog_of(claim);
        let daemons = self.possible_daemons(claim, &bin.taints);
        let mut least: Option<Amounts> = None;
        for instance_type in names.iter().filter_map(|name| catalog?.get(name)) {
            let mut room = self.dimensions.dense(&instance_type.allocatable);
            self.premises.volumes.attached().room_of_type(&instance_type.name, &mut room, self.dimensions.volumes);
            for (daemon, alternatives) in &daemons {
                let there = |a: &Requirements| {
                    type_allows(instance_type, a) && instance_type.offerings.iter().any(|o| o.available && offering_allows(o, a))
                };
                if alternatives.iter().any(there) {
                    add(&mut room, &self.dimensions.dense(&daemon.requests), -1);
                    bin.barred.join(&self.premises.ports.barred(daemon.ports));
                }
            }
            match &mut least {
                None => least = Some(room),
                Some(least) => least.iter_mut().zip(&room).for_each(|(l, r)| *l = (*l).min(*r)),
            }
        }
        bin.free = least.unwrap_or_else(|| self.dimensions.dense(&Resources::default()));
    }

    /// Daemons that may come to run on what the claim becomes, and the requirements of which one has to be met.
    fn possible_daemons(&self, claim: &NodeClaim, taints: &[&Taint]) -> Vec<(&Daemon<'w>, Vec<Requirements>)> {
        let mut daemons = Vec::new();
        for daemon in self.premises.daemons.iter().filter(|daemon| daemon.tolerates(taints.iter().copied())) {
            let agrees = |wanted: &&Requirements| {
                wanted.iter().all(|w| settled(claim, w)) && claim.requirements.compatible(wanted, &keys::well_known).is_ok()
            };
            let together = daemon.wanted_ahead.iter().filter(agrees).map(|wanted| {
                let mut both = claim.requirements.clone();
                both.add_all(wanted);
                both
            });
            daemons.push((daemon, together.collect()));
        }
        daemons
    }

    /// Takes what daemons will still ask for on a node with these labels; those of `present` have their pod there already.
    fn reserve_for_daemons(&self, bin: &mut Bin<'_>, labels: &Labels, present: Option<&BTreeMap<u32, usize>>) {
        for daemon in &self.premises.daemons {
            let there = daemon.number.is_some_and(|number| present.is_some_and(|present| present.contains_key(&number)));
            let missing = !there && daemon.tolerates(bin.taints.iter().copied());
            let wanted = if bin.initialized { &daemon.wanted } else { &daemon.wanted_ahead };
            if missing && wanted.iter().any(|wanted| wanted.met_by(labels)) {
                add(&mut bin.free, &self.dimensions.dense(&daemon.requests), -1);
                bin.barred.join(&self.premises.ports.barred(daemon.ports));
            }
        }
    }
}

/// Whether the claim's own labels, where no type or offering has a say, meet what is wanted.
fn settled(claim: &NodeClaim, wanted: &Requirement) -> bool {
    keys::well_known(wanted.key()) || claim.labels.get(wanted.key()).map_or_else(|| wanted.admits_absence(), |v| wanted.allows(v))
}
