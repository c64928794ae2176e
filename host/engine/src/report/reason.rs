//! Why a pod has no place, rule by rule and with the numbers, and what small change would give it one. The text a
//! person reads is made here and nowhere else.

use super::topology::TopologyRefusal;
use serde::{Deserialize, Serialize};
use whittle_model::resources::{CPU, format_amount};
use whittle_model::{Duration, HostPort, PodKey, Protocol, Requirement, Requirements, Taint};

/// Why a pod has no place in one pool or on the nodes there are. Its text is a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// The pod has fields that change where it may run and that this version cannot heed, by name or path.
    NotUnderstood(Vec<String>),
    /// The pod asks for a label that nobody may ask for.
    Restricted {
        /// What it asks for.
        wanted: Requirement,
        /// Why nobody may.
        why: String,
    },
    /// The pod asks for devices by resource claims.
    ResourceClaims,
    /// A volume of the pod is broken.
    Volume {
        /// Its PersistentVolumeClaim.
        claim: PodKey,
        /// How.
        fault: VolumeFault,
    },
    /// There is no NodePool at all.
    NoNodePool,
    /// The pool cannot be bought from, whoever asks.
    Closed(String),
    /// A taint is not tolerated.
    Taint(Taint),
    /// The pool's labels are not what is asked for.
    Incompatible {
        /// What is asked for.
        wanted: Requirement,
        /// What the pool has there; `None` when it does not define the label.
        offered: Option<Requirement>,
    },
    /// No instance type will do.
    Types(Box<TypesRefusal>),
    /// What would do is sold out.
    SoldOut {
        /// What is asked for.
        wanted: Requirements,
        /// When it is asked for again, from now.
        again_in: Duration,
    },
    /// A port of the node that the pod takes is taken by daemons on every type that would do.
    Port(HostPort),
    /// The pool's limit leaves no node for it.
    Limit {
        /// The resource.
        resource: String,
        /// What is left of the limit.
        left: i64,
        /// What the smallest node that would do takes of it.
        takes: i64,
        /// That node's type.
        instance_type: String,
    },
    /// Its capacity reservations are used up.
    ReservationsInUse,
    /// Nodes of this plan may reach the limit, and their type is not settled yet.
    LimitPending,
    /// Too few values of a label are left among instance types.
    MinValues {
        /// The label.
        key: String,
        /// How many the pool wants.
        wanted: usize,
        /// How many are left.
        found: usize,
        /// Whether there would be enough but for the pool's limits.
        within_limits: bool,
    },
    /// To keep as many values of labels as the pool wants, more instance types would have to be named than one launch can.
    TooManyTypes {
        /// How many would have to be.
        needed: usize,
        /// How many one launch names at most.
        most: usize,
    },
    /// A constraint on company: spread, affinity, anti-affinity.
    Topology(Box<TopologyRefusal>),
    /// A reason, and offerings that policies veto besides.
    Vetoed {
        /// The reason without them.
        reason: Box<Reason>,
        /// How many offerings, and the policy's reason, for each of its reasons.
        vetoes: Vec<(usize, String)>,
        /// How many offerings the pool has.
        offerings: usize,
    },
    /// The nodes there are: how many fail by which rule first.
    Nodes(Vec<(usize, Obstacle)>),
}

/// What is wrong with a volume of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VolumeFault {
    /// Its claim does not exist.
    NoClaim,
    /// Its claim is being deleted.
    ClaimDeleting,
    /// Its claim has lost its volume.
    Lost,
    /// The claim names a PersistentVolume that does not exist.
    NoVolume(String),
    /// The PersistentVolume of this name is being deleted.
    VolumeDeleting(String),
    /// The claim is bound, but whoever bound it has not finished.
    NotBoundYet,
    /// The claim has no storage class, and there is no default one.
    NoClass,
    /// The claim's storage class does not exist.
    MissingClass(String),
    /// The storage class binds its claims at once, and this one is not bound.
    Immediate(String),
    /// The nodes that one volume allows are not those that another does.
    Apart,
}

/// The rules by which instance types are chosen, and those that together leave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unmet {
    /// None meets the requirements.
    Requirements,
    /// None has room.
    Resources,
    /// None has an offering for sale that meets the requirements.
    Offerings,
    /// None meets the requirements, and none has room.
    RequirementsAndResources,
    /// None meets the requirements, and none has such an offering.
    RequirementsAndOfferings,
    /// None has room, and none has such an offering.
    ResourcesAndOfferings,
    /// None passes any of the three.
    All,
    /// Those that meet the requirements and have room have no such offering.
    OfferingsOfTheRest,
    /// Those that have room and such an offering do not meet the requirements.
    RequirementsOfTheRest,
    /// Those that meet the requirements and have such an offering have no room.
    ResourcesOfTheRest,
    /// Each two of the rules are met by some type, all three by none.
    Together,
}

/// Why no instance type of a pool will do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TypesRefusal {
    /// By which rules.
    pub unmet: Unmet,
    /// What is asked for.
    pub wanted: Requirements,
    /// The resources of which no type alone has enough.
    pub short: Vec<Shortage>,
    /// Zones asked for in which nothing at all is for sale there.
    pub unsold_zones: Vec<String>,
}

/// A resource of which there is not enough.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shortage {
    /// The resource.
    pub resource: String,
    /// What the pod asks for.
    pub asked: i64,
    /// The most that a node has left for pods.
    pub most: i64,
}

/// What keeps a pod from a node that exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Obstacle {
    /// A taint.
    Taint,
    /// Its labels.
    Labels,
    /// Too little of these resources is free.
    Resources(Vec<String>),
    /// A port of the node is taken.
    Port,
    /// The node can hold no more volumes of this driver.
    Volumes(String),
    /// Pods that must not be together, or must.
    Pods,
}

/// One small change that would give pods a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Miss {
    /// To ask for less of one resource.
    Smaller {
        /// The type in which they would fit.
        instance_type: String,
        /// Its pool.
        node_pool: String,
        /// The resource.
        resource: String,
        /// By how much.
        by: i64,
    },
    /// To tolerate a taint.
    Tolerating {
        /// The pool.
        node_pool: String,
        /// The taint.
        taint: Taint,
    },
    /// A higher limit of the pool.
    Limit {
        /// The pool.
        node_pool: String,
        /// The resource.
        resource: String,
        /// By how much.
        by: i64,
    },
    /// An offering in a zone in which nothing is for sale, for want of a subnet or of prices.
    Zone {
        /// A type that would do.
        instance_type: String,
        /// Its pool.
        node_pool: String,
        /// The zone.
        zone: String,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotUnderstood(what) => write!(f, "this version does not understand {}", what.join(", ")),
            Self::Restricted { wanted, why } => write!(f, "it asks for {wanted}: {why}"),
            Self::ResourceClaims => f.write_str("it asks for devices by resource claims, and IGNORE_DRA_REQUESTS leaves such pods alone"),
            Self::Volume { claim, fault } => write!(f, "its PersistentVolumeClaim {} {fault}", claim.name),
            Self::NoNodePool => f.write_str("there is no NodePool"),
            Self::Closed(why) => f.write_str(why),
            Self::Taint(taint) => write!(f, "taint {taint} is not tolerated"),
            Self::Incompatible { wanted, offered: Some(offered) } => write!(f, "asked for {wanted}, but only {offered} is there"),
            Self::Incompatible { wanted, offered: None } => write!(f, "asked for {wanted}, but label {} is not defined", wanted.key()),
            Self::Types(refusal) => refusal.fmt(f),
            Self::SoldOut { wanted, again_in } => {
                write!(f, "everything that meets {wanted} is sold out, it is asked for again in {again_in}")
            }
            Self::Port(port) => write!(f, "host port {} is taken by daemons on every node there that would do", Port(port)),
            Self::Limit { resource, left, takes, instance_type } => {
                let (left, takes) = (format_amount(resource, (*left).max(0)), format_amount(resource, *takes));
                write!(f, "its limit is reached ({resource}: {left} left, {takes} needed for {instance_type})")
            }
            Self::ReservationsInUse => f.write_str("its capacity reservations are in use"),
            Self::LimitPending => {
                let later = "it is tried again once they are bought";
                write!(f, "its limit may be reached by nodes of this plan whose type is not settled yet; {later}")
            }
            Self::MinValues { key, wanted, found, within_limits } => {
                let limits = if *within_limits { " into what is left of its limits" } else { "" };
                write!(f, "minValues: {wanted} {} wanted, {found} fit{limits}", values_of(key))
            }
            Self::TooManyTypes { needed, most } => {
                write!(f, "minValues: {needed} instance types would have to be named, and one launch names {most} at most")
            }
            Self::Topology(refusal) => refusal.fmt(f),
            Self::Vetoed { reason, vetoes, offerings } => {
                let texts: Vec<String> = vetoes.iter().map(|(count, why)| format!("{count} for {why:?}")).collect();
                write!(f, "{reason}; of {offerings} offerings policies veto {}", texts.join(", "))
            }
            Self::Nodes(obstacles) => nodes(obstacles, f),
        }
    }
}

/// Values of a label, as people call them.
fn values_of(key: &str) -> String {
    match key.rsplit('/').next().unwrap_or_default() {
        "instance-family" => "families".to_owned(),
        "instance-category" => "categories".to_owned(),
        "instance-type" => "instance types".to_owned(),
        "capacity-type" => "capacity types".to_owned(),
        "zone" => "zones".to_owned(),
        _ => format!("values of {key}"),
    }
}

fn nodes(obstacles: &[(usize, Obstacle)], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let all: usize = obstacles.iter().map(|(count, _)| count).sum();
    match obstacles {
        [(1, only)] => write!(f, "the one node {}", only.of(1)),
        [(_, only)] => write!(f, "all {all} nodes {}", only.of(all)),
        _ => {
            let parts: Vec<String> = obstacles.iter().map(|(count, obstacle)| format!("{count} {}", obstacle.of(*count))).collect();
            write!(f, "of {all} nodes {}", parts.join(", "))
        }
    }
}

impl Obstacle {
    /// What it is of so many nodes: `has a taint that is not tolerated`.
    fn of(&self, nodes: usize) -> String {
        let has = if nodes == 1 { "has" } else { "have" };
        match self {
            Self::Taint => format!("{has} a taint that is not tolerated"),
            Self::Labels => format!("{has} other labels than those asked for"),
            Self::Resources(names) => format!("{has} too little {} free", names.join(" and ")),
            Self::Port => format!("{has} a host port taken"),
            Self::Volumes(driver) => format!("can hold no more volumes of {driver}"),
            Self::Pods => format!("{has} pods or a place that its pods' affinity does not allow"),
        }
    }
}

impl std::fmt::Display for VolumeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoClaim => f.write_str("does not exist"),
            Self::ClaimDeleting => f.write_str("is being deleted"),
            Self::Lost => f.write_str("has lost its volume"),
            Self::NoVolume(name) => write!(f, "names PersistentVolume {name}, which does not exist"),
            Self::VolumeDeleting(name) => write!(f, "has PersistentVolume {name}, which is being deleted"),
            Self::NotBoundYet => f.write_str("is bound, but whoever binds it has not finished"),
            Self::NoClass => f.write_str("has no storage class, and no class is the default"),
            Self::MissingClass(name) => write!(f, "has storage class {name}, which does not exist"),
            Self::Immediate(name) => write!(f, "is not bound yet, and its storage class {name} binds before pods are placed"),
            Self::Apart => f.write_str("has its volume where no other volume of the pod can be"),
        }
    }
}

impl std::fmt::Display for TypesRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (wanted, short) = (self.wanted.to_string(), self.shortage());
        let wanted = if wanted.is_empty() { "what its pool allows".to_owned() } else { wanted };
        match self.unmet {
            Unmet::Requirements => write!(f, "no instance type there meets {wanted}")?,
            Unmet::Resources => f.write_str(&short)?,
            Unmet::Offerings => write!(f, "no offering for sale there meets {wanted}")?,
            Unmet::RequirementsAndResources => write!(f, "no instance type there meets {wanted}, and none has room: {short}")?,
            Unmet::RequirementsAndOfferings => write!(f, "no instance type and no offering for sale there meets {wanted}")?,
            Unmet::ResourcesAndOfferings => write!(f, "no offering for sale there meets {wanted}, and no type has room: {short}")?,
            Unmet::All => write!(f, "no instance type and no offering for sale there meets {wanted}, and none has room: {short}")?,
            Unmet::OfferingsOfTheRest => write!(f, "no instance type for sale there that is large enough meets {wanted}")?,
            Unmet::RequirementsOfTheRest => {
                write!(f, "what is large enough and for sale there does not meet {wanted}; what does: {short}")?
            }
            Unmet::ResourcesOfTheRest => write!(f, "{short}, of what meets {wanted}")?,
            Unmet::Together => write!(f, "no instance type there meets {wanted}, has room and is for sale, all at once")?,
        }
        if self.unsold_zones.is_empty() { Ok(()) } else { write!(f, "; nothing there is for sale in {}", self.unsold_zones.join(", ")) }
    }
}

/// A CPU request from which on the unit was probably mistaken: a thousand nodes could not hold it.
const IMPLAUSIBLE_CPU: i64 = 1_000_000_000;

impl TypesRefusal {
    fn shortage(&self) -> String {
        if self.short.is_empty() {
            return "no instance type there has room for all that it asks for together".to_owned();
        }
        let of = |s: &Shortage| {
            let (asked, most) = (format_amount(&s.resource, s.asked), format_amount(&s.resource, s.most));
            let unit = if s.resource == CPU && s.asked >= IMPLAUSIBLE_CPU { " (M is a million, m a thousandth)" } else { "" };
            format!("asks for {} {asked}{unit}, the most that a node there has left for pods is {most}", s.resource)
        };
        let texts: Vec<String> = self.short.iter().map(of).collect();
        texts.join("; ")
    }
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Smaller { instance_type, node_pool, resource, by } => {
                let by = format_amount(resource, *by);
                write!(f, "fits {instance_type} in nodepool {node_pool} if its {resource} request were {by} smaller")
            }
            Self::Tolerating { node_pool, taint } => write!(f, "fits nodepool {node_pool} if it tolerated the taint {taint}"),
            Self::Limit { node_pool, resource, by } => {
                write!(f, "fits nodepool {node_pool} if its limit on {resource} were {} higher", format_amount(resource, *by))
            }
            Self::Zone { instance_type, node_pool, zone } => {
                write!(f, "fits {instance_type} in nodepool {node_pool} if there were a subnet and a price in zone {zone}")
            }
        }
    }
}

/// A host port as people write it: `8080`, `53/UDP`, `10.0.0.1:8080`.
struct Port<'p>(&'p HostPort);

impl std::fmt::Display for Port<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.0.ip.is_empty() {
            write!(f, "{}:", self.0.ip)?;
        }
        write!(f, "{}", self.0.port)?;
        match self.0.protocol {
            Protocol::Tcp => Ok(()),
            Protocol::Udp => f.write_str("/UDP"),
            Protocol::Sctp => f.write_str("/SCTP"),
        }
    }
}
