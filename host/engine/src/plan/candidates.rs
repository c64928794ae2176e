//! Table `candidates`: offerings as policies see them. Every column of the contract has its arm
//! here, so a new one cannot be forgotten.

use whittle_model::policy::{CandidateColumn, Table, Words};
use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{CapacityType, InstanceType, Micros, Timestamp, keys};

use super::amounts::times;
use super::tables::{Offer, PoolTable};
use crate::world::World;

/// All offerings of a pool with the columns wanted. What is not the offering's alone is 0: who asks, and
/// how many pods it would hold.
pub(crate) fn all(world: &World, pool: &PoolTable<'_>, wanted: &[CandidateColumn], words: &mut Words, now: Timestamp) -> Table {
    let columns = wanted
        .iter()
        .map(|column| {
            // A text of the type is the same for all its offerings: it is looked up once a type.
            let mut last: Option<(u32, i64)> = None;
            let per_type = of_type_alone(column);
            let of_offer = |offer: &Offer<'_>| {
                if per_type && let Some((_, value)) = last.filter(|(known, _)| *known == offer.row) {
                    return value;
                }
                let value = value(world, pool, offer, column, words, now);
                last = Some((offer.row, value));
                value
            };
            pool.offers.iter().map(of_offer).collect()
        })
        .collect();
    Table { rows: pool.offers.len(), columns }
}

/// Some of those rows for one asker. They hold so many pods when that is settled, else as many as have
/// room of which each takes `need`.
pub(crate) fn some(
    all: &Table,
    pool: &PoolTable<'_>,
    wanted: &[CandidateColumn],
    offers: &[u32],
    (need, holds): (&[i64], Option<i64>),
) -> Table {
    let room = |offer: u32| &pool.rows[pool.offers[offer as usize].row as usize].room;
    let most = |offer: u32| i64::try_from(times(need, room(offer), 1_000_000)).unwrap_or(0);
    let columns = wanted.iter().zip(&all.columns).map(|(column, values)| {
        if *column == CandidateColumn::HoldsPods {
            offers.iter().map(|offer| holds.unwrap_or_else(|| most(*offer))).collect()
        } else {
            offers.iter().map(|offer| values[*offer as usize]).collect()
        }
    });
    Table { rows: offers.len(), columns: columns.collect() }
}

/// Whether a column has one value for all offerings and askers of a type in a pool.
fn of_type_alone(column: &CandidateColumn) -> bool {
    use CandidateColumn as C;
    match column {
        C::NodePool | C::Weight | C::InstanceType | C::Family | C::Category | C::Generation | C::Size | C::Arch => true,
        C::CpuManufacturer | C::CpuMilli | C::MemoryMib | C::Gpus | C::GpuName | C::GpuMemoryMib | C::Accelerators => true,
        C::AcceleratorName | C::NetworkMbps | C::LocalNvmeGib | C::Burstable | C::Flex | C::BareMetal | C::Exists | C::Mix => true,
        C::AllocatableCpuMilli | C::AllocatableMemoryMib | C::AllocatablePods | C::DaemonCpuMilli | C::DaemonMemoryMib => true,
        C::Label(_) | C::OnDemandMicros => true,
        C::Asker | C::Zone | C::ZoneId | C::CapacityType | C::ListMicros | C::RankMicros | C::CostMicros | C::HoldsPods => false,
        C::ReservationId | C::ReservationLeft | C::Interruptions | C::ExposureHours | C::SoldOutSeconds => false,
        C::SpotMax24hMicros | C::FreeAddresses => false,
    }
}

fn value(world: &World, pool: &PoolTable<'_>, offer: &Offer<'_>, column: &CandidateColumn, words: &mut Words, now: Timestamp) -> i64 {
    use CandidateColumn as C;
    let of = &pool.rows[offer.row as usize];
    let instance_type = of.instance_type;
    let mut word = |text: &str| words.intern(text);
    match column {
        // One asker and one mix a call; nodes that exist are not priced by plans; pods are the asker's matter.
        C::Asker | C::Mix | C::Exists | C::HoldsPods => 0,
        C::NodePool => word(&pool.pool.name),
        C::Weight => i64::from(pool.pool.weight),
        C::InstanceType => word(&instance_type.name),
        C::Family => word(label(instance_type, "instance-family")),
        C::Category => word(label(instance_type, "instance-category")),
        C::Generation => number(instance_type, "instance-generation"),
        C::Size => word(label(instance_type, "instance-size")),
        C::Arch => word(instance_type.labels.get(keys::ARCH).map_or("", String::as_str)),
        C::CpuManufacturer => word(label(instance_type, "instance-cpu-manufacturer")),
        C::Zone => word(&offer.offering.zone),
        C::ZoneId => word(&offer.offering.zone_id),
        C::CapacityType => word(offer.offering.capacity_type.name()),
        C::ListMicros | C::RankMicros | C::CostMicros | C::SpotMax24hMicros => offer.offering.price.0,
        C::OnDemandMicros => on_demand(instance_type).0,
        C::CpuMilli => instance_type.capacity.get(CPU),
        C::MemoryMib => number(instance_type, "instance-memory"),
        C::Gpus => number(instance_type, "instance-gpu-count"),
        C::GpuName => word(label(instance_type, "instance-gpu-name")),
        C::GpuMemoryMib => number(instance_type, "instance-gpu-memory"),
        C::Accelerators => number(instance_type, "instance-accelerator-count"),
        C::AcceleratorName => word(label(instance_type, "instance-accelerator-name")),
        C::NetworkMbps => number(instance_type, "instance-network-bandwidth"),
        C::LocalNvmeGib => number(instance_type, "instance-local-nvme"),
        C::Burstable => i64::from(label(instance_type, "instance-category") == "t"),
        C::Flex => i64::from(label(instance_type, "instance-capability-flex") == "true"),
        C::BareMetal => i64::from(label(instance_type, "instance-size").starts_with("metal")),
        C::ReservationId => word(offer.offering.reservation.as_ref().map_or("", |reservation| &reservation.id)),
        C::ReservationLeft => offer.offering.reservation.as_ref().map_or(0, |reservation| i64::from(reservation.left)),
        C::Interruptions => world.interruptions(&pool.key(offer), now).0,
        C::ExposureHours => world.interruptions(&pool.key(offer), now).1,
        C::FreeAddresses => {
            let class = world.node_classes.get(&pool.pool.template.node_class);
            class.and_then(|class| class.free_addresses.get(&offer.offering.zone)).copied().unwrap_or(-1)
        }
        C::SoldOutSeconds => world.sold_out_ago(&pool.key(offer), now),
        C::AllocatableCpuMilli => instance_type.allocatable.get(CPU),
        C::AllocatableMemoryMib => instance_type.allocatable.get(MEMORY) >> 20,
        C::AllocatablePods => instance_type.allocatable.get(PODS),
        C::DaemonCpuMilli => of.daemons().get(CPU),
        C::DaemonMemoryMib => of.daemons().get(MEMORY) >> 20,
        C::Label(key) => word(instance_type.labels.get(key).or_else(|| pool.pool.template.labels.get(key)).map_or("", String::as_str)),
    }
}

/// The value of one of the labels that AWS types carry.
fn label<'a>(instance_type: &'a InstanceType, name: &str) -> &'a str {
    let mut key = String::with_capacity(keys::AWS_PREFIX.len() + name.len());
    key.push_str(keys::AWS_PREFIX);
    key.push_str(name);
    instance_type.labels.get(&key).map_or("", String::as_str)
}

fn number(instance_type: &InstanceType, name: &str) -> i64 {
    label(instance_type, name).parse().unwrap_or(0)
}

fn on_demand(instance_type: &InstanceType) -> Micros {
    let prices = instance_type.offerings.iter().filter(|o| o.capacity_type == CapacityType::OnDemand).map(|o| o.price);
    prices.min().unwrap_or(Micros(0))
}
