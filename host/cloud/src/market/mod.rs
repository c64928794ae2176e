//! What can be bought in the region: instance types, the zones that offer them, and prices, as AWS tells them, and the
//! catalogue that an EC2NodeClass makes of these.
//!
//! What must not enter: timers and tasks (who calls says what time it is), what is sold out, and any choice among types.

mod facts;
mod learned;
mod list_prices;
mod offers;
mod pages;
mod schedule;
mod spot_prices;
mod told;
mod types;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use whittle_catalog::{AmiFamily, CatalogOptions, Facts, Image, Offered, Placement, Prices, Sources, Spot, build, options_of};
use whittle_model::{Catalog, Duration, Held, Timestamp, ec2_node_class::Ec2NodeClassSpec};

use self::{
    learned::Learned,
    list_prices::ListPrices,
    schedule::{Part, Schedule},
    spot_prices::SpotPrices,
};
pub use self::{schedule::INTERVAL, told::Told};
use crate::{
    aws::Aws,
    class::{PlacementStrategy, Resolved},
    error::{CloudError, ErrorKind},
};

/// Settings of the whole cluster that bear on catalogues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketSettings {
    /// The region, such as `us-east-1`.
    pub region: String,
    /// Whether the price list cannot be reached (`ISOLATED_VPC`): the compiled-in prices stay.
    pub isolated_vpc: bool,
    /// The share of memory that the hypervisor keeps, in millionths (`VM_MEMORY_OVERHEAD_PERCENT`).
    pub vm_memory_overhead_ppm: u32,
    /// Network interfaces kept from pods (`RESERVED_ENIS`).
    pub reserved_enis: u32,
}

/// What a refresh came to.
#[derive(Debug)]
pub struct Refresh {
    /// Whether catalogues made from now on may differ from those made before.
    pub changed: bool,
    /// When to refresh again.
    pub next: Duration,
    /// What could not be read; what was known of it before stays, and it is tried again sooner.
    pub failures: Vec<CloudError>,
}

/// What AWS says can be bought. All methods take `&self`; one refresh at a time is enough.
#[derive(Debug)]
pub struct Market {
    settings: MarketSettings,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sources: Arc<Sources>,
    schedule: Schedule,
    learned: Learned,
    /// The last catalogue of each NodeClass, with what it was made of.
    made: BTreeMap<String, Made>,
}

#[derive(Debug)]
struct Made {
    options: CatalogOptions,
    held: Vec<Held>,
    sources: Arc<Sources>,
    catalog: Arc<Catalog>,
}

/// What was read: `None` for what was not due.
struct Readings {
    types: Option<Result<Facts, CloudError>>,
    offers: Option<Result<Offered, CloudError>>,
    list: Option<Result<ListPrices, CloudError>>,
    spot: Option<Result<SpotPrices, CloudError>>,
}

impl Market {
    /// Nothing heard yet: no types, and the compiled-in prices, also for spot.
    #[must_use]
    pub fn new(settings: MarketSettings) -> Self {
        let sources = Sources {
            facts: Facts::default(),
            prices: Prices::builtin(),
            spot: Spot::ListPrice,
            offered: Some(Offered::listed(&BTreeSet::new())),
        };
        let schedule = Schedule::new(!settings.isolated_vpc && list_prices::served(&settings.region));
        let state = State { sources: Arc::new(sources), schedule, learned: Learned::default(), made: BTreeMap::new() };
        Self { settings, state: Mutex::new(state) }
    }

    /// Whether types and the zones that offer them have been read, so that there are catalogues.
    #[cfg(test)]
    pub(crate) fn is_ready(&self) -> bool {
        ready(&self.state().sources)
    }

    /// Reads again what is due: at first everything, later each part every 12 hours, and sooner after a failure.
    pub async fn refresh(&self, aws: &Aws, now: Timestamp) -> Refresh {
        let due = |part| self.state().schedule.is_due(part, now);
        let (types, offers, list, spot) = tokio::join!(
            when(due(Part::Types), types::read(aws)),
            when(due(Part::Offers), offers::read(aws)),
            when(due(Part::ListPrices), list_prices::read(aws, &self.settings.region)),
            when(due(Part::SpotPrices), spot_prices::read(aws, now)),
        );
        self.take(Readings { types, offers, list, spot }, now)
    }

    fn take(&self, read: Readings, now: Timestamp) -> Refresh {
        let mut state = self.state();
        let State { schedule, learned, .. } = &mut *state;
        let mut failures = Vec::new();
        let types = schedule.note(Part::Types, read.types, now, &mut failures);
        let offers = schedule.note(Part::Offers, read.offers, now, &mut failures);
        let list = schedule.note(Part::ListPrices, read.list, now, &mut failures);
        let spot = schedule.note(Part::SpotPrices, read.spot, now, &mut failures);
        let forgotten = learned.forget(now);
        let next = schedule.next(now);
        let before = &state.sources;
        let sources = Sources {
            facts: types.unwrap_or_else(|| before.facts.clone()),
            offered: offers.or_else(|| before.offered.clone()),
            spot: if spot.is_some() { Spot::Listed } else { before.spot },
            prices: self.prices(before.prices.clone(), list, spot),
        };
        let differs = sources != **before;
        if differs {
            state.sources = Arc::new(sources);
        }
        Refresh { changed: differs || forgotten, next, failures }
    }

    /// Prices that are not listed this time stay as they were: the price list is at times published with gaps.
    fn prices(&self, mut prices: Prices, list: Option<ListPrices>, spot: Option<SpotPrices>) -> Prices {
        for (instance_type, price) in list.into_iter().flatten() {
            prices.set_on_demand(&self.settings.region, &instance_type, price);
        }
        for ((zone, instance_type), price) in spot.into_iter().flatten() {
            prices.set_spot(&zone, &instance_type, price);
        }
        prices
    }

    /// What an EC2NodeClass, which wants `spec` and was resolved to `class`, can buy. The same `Arc` as before while nothing
    /// it is made of has changed.
    ///
    /// # Errors
    /// Before types and offerings have been read; when the NodeClass has an image family that is not launched, or a
    /// setting that cannot be read.
    pub fn catalog(&self, spec: &Ec2NodeClassSpec, class: &Resolved) -> Result<Arc<Catalog>, CloudError> {
        let refuse = |kind, why: String| CloudError::local("make", &format!("the catalogue of EC2NodeClass {}", class.name), kind, why);
        let mut options = self.options(spec, class).map_err(|why| refuse(ErrorKind::Configuration, why))?;
        let mut state = self.state();
        let sources = Arc::clone(&state.sources);
        if !ready(&sources) {
            let why = "DescribeInstanceTypes and DescribeInstanceTypeOfferings have not answered yet; they are called again";
            return Err(refuse(ErrorKind::Other, why.to_owned()));
        }
        options.memory_seen = state.learned.of(class.amis.iter().map(|ami| ami.id.as_str()));
        let held = class.held();
        if let Some(made) = state.made.get(&class.name)
            && made.options == options
            && made.held == held
            && Arc::ptr_eq(&made.sources, &sources)
        {
            return Ok(Arc::clone(&made.catalog));
        }
        let mut catalog = build(&options, &sources).map_err(|error| refuse(ErrorKind::Configuration, error.to_string()))?;
        catalog.reserve(&held);
        let catalog = Arc::new(catalog);
        let made = Made { options, held, sources, catalog: Arc::clone(&catalog) };
        state.made.insert(class.name.clone(), made);
        Ok(catalog)
    }

    fn options(&self, spec: &Ec2NodeClassSpec, class: &Resolved) -> Result<CatalogOptions, String> {
        let family = class.family.name();
        let family = AmiFamily::parse(family).ok_or_else(|| format!("nodes of image family {family} are not launched"))?;
        let written = options_of(&class.name, &self.settings.region, family, spec).map_err(|error| error.to_string())?;
        let image = |ami: &crate::class::Ami| Image { id: ami.id.clone(), requirements: ami.requirements.clone() };
        Ok(CatalogOptions {
            vm_memory_overhead_ppm: self.settings.vm_memory_overhead_ppm,
            reserved_enis: self.settings.reserved_enis,
            images: Some(class.amis.iter().map(image).collect()),
            placement: class.placement_group.as_ref().map(|group| placement(group.strategy)),
            ..written.in_subnets(&class.status_subnets())
        })
    }

    /// An EC2NodeClass is gone.
    pub fn forget(&self, node_class: &str) {
        self.state().made.remove(node_class);
    }

    /// A registered node that booted from `image` reports `bytes` of memory. The least that was seen within 60 days
    /// counts in catalogues instead of the computed amount. Whether catalogues may differ for it.
    pub fn learn_memory(&self, image: &str, instance_type: &str, bytes: i64, now: Timestamp) -> bool {
        self.state().learned.learn(image, instance_type, bytes, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done between two statements, so a panic elsewhere leaves a good state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready(sources: &Sources) -> bool {
    sources.facts.iter().next().is_some() && sources.offered.as_ref().is_some_and(|offered| !offered.zones().is_empty())
}

const fn placement(strategy: PlacementStrategy) -> Placement {
    match strategy {
        PlacementStrategy::Cluster => Placement::Cluster,
        PlacementStrategy::Partition => Placement::Partition,
        PlacementStrategy::Spread => Placement::Spread,
    }
}

async fn when<T>(due: bool, reading: impl Future<Output = T>) -> Option<T> {
    if due { Some(reading.await) } else { None }
}

#[cfg(test)]
#[path = "../../tests_unit/market/market.rs"]
mod tests;
