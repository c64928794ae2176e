//! What a refusal of EC2 is true of: one pool, a subnet, everything a quota counts.
//!
//! What must not enter: memory of refusals; the engine keeps it.

use whittle_model::{CapacityType, Catalog, OfferingKey};

/// How far a refusal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This type in this zone under this capacity type.
    Pool,
    /// The subnet has no free address; the zone is closed when it has no other.
    Subnet,
    /// The account's quota for this family of types under this capacity type.
    Quota,
    /// Everything of this capacity type.
    CapacityType,
}

/// What kind of capacity is lacking by this code; `None` when the code says nothing about capacity. Throttling never does.
/// Source: EC2 API Reference, "Error codes for the Amazon EC2 API".
pub(crate) fn scope_of(code: &str) -> Option<Scope> {
    match code {
        "InsufficientInstanceCapacity"
        | "InsufficientCapacityOnHost"
        | "InsufficientHostCapacity"
        | "UnfulfillableCapacity"
        | "Unsupported"
        | "ReservationCapacityExceeded" => Some(Scope::Pool),
        "InsufficientFreeAddressesInSubnet" => Some(Scope::Subnet),
        "MaxSpotInstanceCountExceeded" | "VcpuLimitExceeded" => Some(Scope::Quota),
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted" => Some(Scope::CapacityType),
        _ => None,
    }
}

/// All offerings of the catalogue that a refusal of `refused` closes. A subnet's refusal closes its zone: callers ask
/// only when no other subnet is left there.
pub(crate) fn closed(scope: Scope, refused: &OfferingKey, catalog: &Catalog) -> Vec<OfferingKey> {
    let quota = quota_of(&refused.instance_type);
    let hit = |key: &OfferingKey| match scope {
        Scope::Pool => key == refused,
        Scope::Subnet => key.zone == refused.zone,
        Scope::Quota => key.capacity_type == refused.capacity_type && quota_of(&key.instance_type) == quota,
        Scope::CapacityType => key.capacity_type == refused.capacity_type,
    };
    let all = catalog.types.iter().flat_map(|t| {
        let key =
            |zone: &String, capacity_type: CapacityType| OfferingKey { instance_type: t.name.clone(), zone: zone.clone(), capacity_type };
        t.offerings.iter().map(move |o| key(&o.zone, o.capacity_type))
    });
    let mut closed: Vec<OfferingKey> = all.filter(hit).collect();
    if closed.is_empty() {
        closed.push(refused.clone());
    }
    closed
}

/// The families that one vCPU quota counts together, named by one of them.
/// Source: EC2 User Guide, "On-Demand Instance quotas" and "Spot Instance quotas".
fn quota_of(instance_type: &str) -> &str {
    let family = instance_type.split('.').next().unwrap_or_default();
    let letters = family.split(|c: char| c.is_ascii_digit() || c == '-').next().unwrap_or_default();
    match letters {
        "inf" | "trn" | "dl" | "f" | "p" | "x" | "u" | "hpc" => letters,
        "g" | "gr" | "vt" => "g",
        // Every other family begins with one of A, C, D, H, I, M, R, T and Z.
        _ => "standard",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whittle_model::{InstanceType, Micros, Offering, Requirements, Resources};

    #[test]
    fn codes_have_scopes_and_throttling_has_none() {
        for (code, scope) in [
            ("InsufficientInstanceCapacity", Some(Scope::Pool)),
            ("UnfulfillableCapacity", Some(Scope::Pool)),
            ("Unsupported", Some(Scope::Pool)),
            ("InsufficientFreeAddressesInSubnet", Some(Scope::Subnet)),
            ("MaxSpotInstanceCountExceeded", Some(Scope::Quota)),
            ("VcpuLimitExceeded", Some(Scope::Quota)),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", Some(Scope::CapacityType)),
            ("RequestLimitExceeded", None),
            ("UnauthorizedOperation", None),
            ("MaxFleetCountExceeded", None),
            ("InternalError", None),
            ("", None),
        ] {
            assert_eq!(scope_of(code), scope, "{code}");
        }
    }

    #[test]
    fn families_are_counted_together() {
        for (name, quota) in [
            ("m7i.large", "standard"),
            ("im4gn.xlarge", "standard"),
            ("t4g.small", "standard"),
            ("g5.xlarge", "g"),
            ("gr6.4xlarge", "g"),
            ("vt1.3xlarge", "g"),
            ("p5.48xlarge", "p"),
            ("x2gd.large", "x"),
            ("inf2.xlarge", "inf"),
            ("u-6tb1.metal", "u"),
            ("hpc7g.4xlarge", "hpc"),
        ] {
            assert_eq!(quota_of(name), quota, "{name}");
        }
    }

    #[test]
    fn each_scope_closes_what_it_is_true_of() {
        let of = |name: &str| {
            let offering = |zone: &str, capacity_type| Offering {
                zone: zone.to_owned(),
                zone_id: String::new(),
                capacity_type,
                price: Micros(1),
                available: true,
                reservation: None,
            };
            let both = [CapacityType::Spot, CapacityType::OnDemand];
            let offerings = ["a", "b"].iter().flat_map(|zone| both.map(|ct| offering(zone, ct))).collect();
            let none = Resources::default();
            InstanceType {
                name: name.to_owned(),
                labels: whittle_model::Labels::new(),
                requirements: std::sync::Arc::new(Requirements::default()),
                capacity: none.clone(),
                allocatable: none,
                offerings,
            }
        };
        let catalog = Catalog { types: ["c7i.large", "g5.xlarge", "m7i.large"].map(of).into(), ..Catalog::default() };
        let refused = OfferingKey { instance_type: "m7i.large".to_owned(), zone: "a".to_owned(), capacity_type: CapacityType::Spot };
        for (scope, golden) in
            [(Scope::Pool, "spot m7i.large a"), (Scope::Quota, "spot c7i.large a, spot c7i.large b, spot m7i.large a, spot m7i.large b")]
        {
            let closed: Vec<String> = closed(scope, &refused, &catalog).iter().map(ToString::to_string).collect();
            assert_eq!(closed.join(", "), golden);
        }
        assert_eq!(closed(Scope::Subnet, &refused, &catalog).len(), 6, "both capacity types of three types in zone a");
        assert_eq!(closed(Scope::CapacityType, &refused, &catalog).len(), 6, "spot of three types in both zones");
        let unknown = OfferingKey { instance_type: "z9.huge".to_owned(), ..refused };
        assert_eq!(closed(Scope::Pool, &unknown, &catalog), [unknown], "what the catalogue lacks is still remembered");
    }
}
