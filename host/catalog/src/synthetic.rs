//! The made-up instance types of Karpenter's scheduling benchmark, for benchmarks and tests.

use std::sync::Arc;

use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{CapacityType, Catalog, InstanceType, Labels, Micros, Offering, Requirement, Resources, keys};

const MIB: i64 = 1 << 20;
/// The price of one step in size, in 10^-10 dollars: $0.1 for a core and $0.1 for each 10^9 bytes of 2 GiB.
const PRICE_OF_STEP: i64 = 3_147_483_648;

/// `count` types: the n-th, counted from one, has n cores, 2n GiB and room for 10n pods, less 100m
/// and 10 MiB kept by kubelet, and costs n x $0.3147483648 an hour in every offering: spot in two
/// zones, on-demand in three.
#[must_use]
pub fn synthetic(count: u32) -> Catalog {
    let mut types: Vec<InstanceType> = (0..count).map(instance_type).collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    let region = "test-region".to_owned();
    Catalog { node_class: "default".to_owned(), price_region: region.clone(), region, types }
}

fn instance_type(index: u32) -> InstanceType {
    let name = format!("fake-it-{index}");
    let step = i64::from(index) + 1;
    let large = step > 4; // then it also has more than 8 GiB
    let capacity = Resources::of(&[(CPU, 1000 * step), (MEMORY, 2048 * MIB * step), (PODS, 10 * step)]);
    let mut allocatable = capacity.clone();
    allocatable.subtract(&Resources::of(&[(CPU, 100), (MEMORY, 10 * MIB)]));
    let mut labels: Labels = [
        (keys::INSTANCE_TYPE, name.as_str()),
        (keys::ARCH, "amd64"),
        ("integer", &step.to_string()),
        ("size", if large { "large" } else { "small" }),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let mut requirements = vec![Requirement::any_of(keys::OS, &["darwin", "linux", "windows"])];
    if large {
        labels.insert("special".to_owned(), "optional".to_owned());
    } else {
        requirements.push(Requirement::absent("special"));
    }
    let offerings = [1, 2, 3]
        .into_iter()
        .flat_map(|zone| [(zone, CapacityType::Spot), (zone, CapacityType::OnDemand)])
        .filter(|(zone, capacity_type)| *capacity_type == CapacityType::OnDemand || *zone < 3)
        .map(|(zone, capacity_type)| Offering {
            zone: format!("test-zone-{zone}"),
            zone_id: String::new(),
            capacity_type,
            price: price(step),
            available: true,
            reservation: None,
        })
        .collect();
    InstanceType { name, labels, requirements: Arc::new(requirements.into_iter().collect()), capacity, allocatable, offerings }
}

/// Rounded half up to micro-dollars.
fn price(step: i64) -> Micros {
    Micros((step * PRICE_OF_STEP + 5_000) / 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_types_are_as_published() {
        let catalog = synthetic(400);
        assert_eq!(catalog.types.len(), 400);
        let last = catalog.get("fake-it-399").unwrap();
        assert_eq!(last.allocatable, Resources::of(&[(CPU, 399_900), (MEMORY, (2048 * 400 - 10) * MIB), (PODS, 4000)]));
        assert_eq!(last.offerings.len(), 5);
        // 400 x 0.3147483648 = 125.89934592
        assert!(last.offerings.iter().all(|o| o.available && o.price == Micros(125_899_346)));
        assert_eq!(last.labels["special"], "optional");
        let small = catalog.get("fake-it-3").unwrap();
        assert_eq!((small.labels["size"].as_str(), small.labels["integer"].as_str()), ("small", "4"));
        assert!(!small.labels.contains_key("special"));
        assert_eq!(catalog.get("fake-it-0").unwrap().offerings[0].price, Micros(314_748));
    }
}
