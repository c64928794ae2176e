//! Rule `volumes`: pods come where their volumes are or can be made, whichever node it becomes, and a
//! node is not to hold more volumes than its drivers attach.

use std::collections::{BTreeMap, BTreeSet};

use whittle_model::{Affinity, PodKey, PodVolume, Requirements, VolumeClaim, VolumeClaimPhase, keys};

use super::Findings;
use super::claims::implied;
use super::ground::{Face, Ground, Spot};
use crate::plan::Plan;
use crate::world::World;

/// What a volume asks of a node.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wish<'w> {
    /// At least one must hold; empty is anywhere.
    terms: &'w [Requirements],
    /// Of one node, whose host name is no matter for nodes to come.
    local: bool,
    /// The driver that attaches it, and which of its volumes it is.
    disk: Option<(&'w str, String)>,
}

pub(super) fn check(ground: &Ground<'_>, plan: &Plan, found: &mut Findings) {
    let numbers: BTreeMap<&str, usize> = ground.spots.iter().enumerate().map(|(number, spot)| (spot.name, number)).collect();
    let bought = plan.nodes.iter().map(|node| (&node.claim.name, &node.pods));
    let mut known: BTreeMap<(usize, &[Requirements], bool), bool> = BTreeMap::new();
    let mut disks: BTreeMap<usize, BTreeSet<(&str, String)>> = BTreeMap::new();
    for (name, pods) in bought.chain(&plan.placed) {
        let Some(spot) = numbers.get(name.as_str()).copied() else { continue };
        for key in pods {
            let volumes = ground.world.pods.get(key).map_or(&[][..], |record| &record.volumes);
            for volume in volumes {
                match wish(ground.world, key, volume) {
                    Err(why) => found.object("volumes", format!("{name} is for pod {key}, whose volume {} {why}", volume.claim)),
                    Ok(wish) => {
                        let met = known.entry((spot, wish.terms, wish.local)).or_insert_with(|| meets(&ground.spots[spot], &wish));
                        if !*met {
                            found.object(
                                "volumes",
                                format!("{name} is or may come where pod {key} cannot have its volume {}", volume.claim),
                            );
                        }
                        disks.entry(spot).or_default().extend(wish.disk);
                    }
                }
            }
        }
    }
    for (spot, brought) in disks {
        limits(ground.world, &ground.spots[spot], &brought, found);
    }
}

/// What a volume of a pod asks for, or why the pod cannot run anywhere.
fn wish<'w>(world: &'w World, pod: &PodKey, volume: &'w PodVolume) -> Result<Wish<'w>, &'static str> {
    let key = PodKey::new(&pod.namespace, &volume.claim);
    let claim = world.storage.claims.get(&key);
    match (claim, &volume.ephemeral) {
        (Some(claim), _) if claim.deleting => Err("is being deleted"),
        (Some(claim), _) if claim.phase == VolumeClaimPhase::Lost => Err("has lost its disk"),
        (Some(claim), _) if !claim.volume.is_empty() => bound(world, claim),
        (Some(claim), _) => unbound(world, &key, claim.storage_class.as_deref()),
        (None, Some(class)) => unbound(world, &key, class.as_deref()),
        (None, None) => Err("does not exist"),
    }
}

fn bound<'w>(world: &'w World, claim: &VolumeClaim) -> Result<Wish<'w>, &'static str> {
    let volume = world.storage.volumes.get(&claim.volume).filter(|v| !v.deleting).ok_or("names a disk that is not there or goes")?;
    // One that is not bound yet will be bound to the volume that it names.
    if claim.phase == VolumeClaimPhase::Bound && !claim.bind_completed {
        return Err("is not bound yet");
    }
    let disk = (!volume.driver.is_empty()).then(|| (volume.driver.as_str(), volume.handle.clone()));
    Ok(Wish { terms: &volume.node_terms, local: volume.local, disk })
}

fn unbound<'w>(world: &'w World, key: &PodKey, class: Option<&str>) -> Result<Wish<'w>, &'static str> {
    let class = match class {
        Some("") => return Err("has no storage class"),
        Some(name) => world.storage.classes.get(name),
        None => world.storage.classes.values().find(|class| class.default),
    };
    let class = class.ok_or("has a storage class that does not exist")?;
    if class.immediate {
        return Err("waits to be bound at once");
    }
    Ok(Wish { terms: &class.topologies, local: false, disk: Some((driver(&class.provisioner), key.to_string())) })
}

/// The CSI driver that stands in for a provisioner of old.
fn driver(provisioner: &str) -> &str {
    if provisioner == "kubernetes.io/aws-ebs" { "ebs.csi.aws.com" } else { provisioner }
}

fn meets(spot: &Spot<'_>, wish: &Wish<'_>) -> bool {
    let mut terms = wish.terms.to_vec();
    // As documented: what is on the disk of one node is made anew on another.
    if wish.local {
        terms.iter_mut().for_each(|term| drop(term.remove(keys::HOSTNAME)));
    }
    if let Face::Open(claim, _) = &spot.face
        && terms.iter().any(|term| implied(&claim.requirements, term))
    {
        return true;
    }
    spot.accepted_by(&Affinity { node_selector: Requirements::default(), node_terms: terms }, true)
}

/// What a node attaches today, with what pods bring, against its limits.
fn limits(world: &World, spot: &Spot<'_>, brought: &BTreeSet<(&str, String)>, found: &mut Findings) {
    let Some(limits) = world.storage.limits.get(spot.name) else { return };
    let mut today: BTreeSet<(&str, String)> = BTreeSet::new();
    for key in world.pods_on(spot.name) {
        let volumes = world.pods.get(key).map_or(&[][..], |record| &record.volumes);
        today.extend(volumes.iter().filter_map(|volume| wish(world, key, volume).ok()?.disk));
    }
    for (driver, most) in &limits.drivers {
        let of_driver = |disk: &&(&str, String)| disk.0 == driver;
        let new = brought.difference(&today).filter(of_driver).count();
        let all = new + today.iter().filter(of_driver).count();
        if new > 0 && all > usize::try_from(*most).unwrap_or(usize::MAX) {
            found.object("volumes", format!("{} would have {all} volumes of {driver}, of which it attaches {most}", spot.name));
        }
    }
}
