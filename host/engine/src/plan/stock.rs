//! What a pool can buy, kept from one plan to the next: which types and offerings of a catalogue its template leaves, what
//! daemons take of each type, list prices and their order. Finding that out is most of a small plan's work, and it seldom
//! changes. Pools that ask the same of types share one stock.
//!
//! A stock is kept with all that it was found from and is taken only for the same again, so nobody has to remember to throw
//! it away. A catalogue is told by where it lies: whoever changes one that is kept here changes a copy, elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use whittle_model::{CapacityType, Catalog, HostPort, InstanceType, Micros, Offering, OfferingKey, Requirement, Requirements, Resources};

use super::flexible::Flexibility;
use super::pricer::Price;
use super::states::{of_offerings, offering_allows, type_allows, worst};

/// A stock that none of so many plans asked for is forgotten: while offerings sell out, each plan makes new ones.
const PLANS: u64 = 3;

/// A daemon that may run on nodes of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guest<'a> {
    pub(crate) requests: &'a Resources,
    pub(crate) ports: &'a [HostPort],
    /// What it asks of types and offerings: the sets of requirements any one of which lets it onto a node.
    pub(crate) wanted: &'a [Requirements],
}

/// What a stock is found from.
#[derive(Debug)]
pub(crate) struct Sought<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    /// Whether it is of capacity reservations alone; these are in no other.
    pub(crate) reserved: bool,
    /// What the template asks, as far as types and offerings differ in it.
    pub(crate) template: Requirements,
    /// What is sold out today.
    pub(crate) resting: &'a Arc<BTreeSet<OfferingKey>>,
    /// Reservations that count as if instances were left in them.
    pub(crate) free: &'a Arc<BTreeSet<String>>,
    pub(crate) guests: Vec<Guest<'a>>,
}

/// The same, to be kept.
#[derive(Debug)]
struct Origin {
    catalog: Arc<Catalog>,
    reserved: bool,
    template: Requirements,
    resting: Arc<BTreeSet<OfferingKey>>,
    free: Arc<BTreeSet<String>>,
    guests: Vec<(Resources, Vec<HostPort>, Vec<Requirements>)>,
}

/// What a pool can buy.
#[derive(Debug)]
pub(crate) struct Stock {
    origin: Origin,
    /// The types that the template allows and that have room for their daemons.
    pub(crate) rows: Vec<Shelf>,
    /// The offerings that it allows, those of one type side by side: row and place in the catalogue.
    pub(crate) offers: Vec<(u32, u32)>,
    /// By row: offerings that are sold out today. A claim that allows them may come to be bought from them.
    pub(crate) resting: Vec<(u32, u32)>,
    /// The place of each offering among them by capacity type, type and zone: what decides between equal ranks.
    pub(crate) places: Arc<[u32]>,
    /// How many distinct values a claim must keep.
    pub(crate) flexibility: Arc<Flexibility>,
    /// How many capacity types are among them.
    pub(crate) ways: usize,
    pub(crate) list: PriceList,
}

/// A type in a stock.
#[derive(Debug)]
pub(crate) struct Shelf {
    /// Its place in the catalogue.
    pub(crate) of_type: u32,
    pub(crate) offers: Range<usize>,
    /// What the daemons of such a node ask for, and which of the guests they are.
    pub(crate) daemons: Arc<(Resources, Vec<usize>)>,
}

/// List prices.
#[derive(Debug, Clone)]
pub(crate) struct PriceList {
    /// By offering.
    pub(crate) prices: Arc<[Option<Price>]>,
    /// By offering, as a claim counts them.
    pub(crate) counted: Arc<[Option<Price>]>,
    /// The offerings in order of preference: rank, capacity type, type, zone.
    pub(crate) ranked: Arc<[u32]>,
}

/// All stocks of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stocks {
    kept: Vec<(u64, Arc<Stock>)>,
    /// The keys in which the types of a catalogue differ.
    keys: Vec<(u64, Arc<Catalog>, Arc<BTreeSet<String>>)>,
    plans: u64,
}

impl Stocks {
    /// Begins a plan, and forgets what none has asked for in a while.
    pub(crate) fn begin(&mut self) {
        self.plans += 1;
        let since = self.plans.saturating_sub(PLANS);
        self.kept.retain(|(last, _)| *last >= since);
        self.keys.retain(|(last, ..)| *last >= since);
    }

    /// Forgets everything made from catalogues, so that these can be changed where they lie.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.keys.clear();
    }

    /// The stock found from this.
    pub(crate) fn find(&mut self, sought: &Sought<'_>) -> Arc<Stock> {
        if let Some((last, known)) = self.kept.iter_mut().find(|(_, stock)| stock.origin.is(sought)) {
            *last = self.plans;
            return Arc::clone(known);
        }
        let stock = Arc::new(Stock::new(sought));
        self.kept.push((self.plans, Arc::clone(&stock)));
        stock
    }

    /// The keys in which types of a catalogue differ, each of which some of them define.
    pub(crate) fn keys(&mut self, catalog: &Arc<Catalog>) -> Arc<BTreeSet<String>> {
        if let Some((last, _, known)) = self.keys.iter_mut().find(|(_, of, _)| Arc::ptr_eq(of, catalog)) {
            *last = self.plans;
            return Arc::clone(known);
        }
        let mut all: BTreeSet<String> = BTreeSet::new();
        for of_type in &catalog.types {
            let defined = of_type.labels.keys().map(String::as_str).chain(of_type.requirements.iter().map(Requirement::key));
            for key in defined {
                if !all.contains(key) {
                    all.insert(key.to_owned());
                }
            }
        }
        let all = Arc::new(all);
        self.keys.push((self.plans, Arc::clone(catalog), Arc::clone(&all)));
        all
    }
}

/// What is asked of types and offerings alone: `keys` are those in which types differ.
pub(crate) fn of_goods(wanted: &Requirements, keys: &BTreeSet<String>) -> Requirements {
    let matters = |r: &&Requirement| of_offerings(r.key()) || keys.contains(r.key()) || r.min_values().is_some();
    wanted.iter().filter(matters).cloned().collect()
}

impl Origin {
    fn is(&self, sought: &Sought<'_>) -> bool {
        let same = |(own, guest): (&(Resources, Vec<HostPort>, Vec<Requirements>), &Guest<'_>)| {
            own.0 == *guest.requests && own.1 == guest.ports && own.2 == guest.wanted
        };
        Arc::ptr_eq(&self.catalog, sought.catalog)
            && self.reserved == sought.reserved
            && self.template == sought.template
            && self.resting == *sought.resting
            && self.free == *sought.free
            && self.guests.len() == sought.guests.len()
            && self.guests.iter().zip(&sought.guests).all(same)
    }
}

impl From<&Sought<'_>> for Origin {
    fn from(sought: &Sought<'_>) -> Self {
        let guests = sought.guests.iter().map(|guest| (guest.requests.clone(), guest.ports.to_vec(), guest.wanted.to_vec()));
        Self {
            catalog: Arc::clone(sought.catalog),
            reserved: sought.reserved,
            template: sought.template.clone(),
            resting: Arc::clone(sought.resting),
            free: Arc::clone(sought.free),
            guests: guests.collect(),
        }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).expect("a catalogue has fewer than 2^32 types and offerings")
}

impl Stock {
    fn new(sought: &Sought<'_>) -> Self {
        let types = &sought.catalog.types;
        let daemons = Daemons::new(sought);
        let (mut rows, mut offers, mut resting) = (Vec::new(), Vec::new(), Vec::new());
        for (at, of_type) in types.iter().enumerate().filter(|(_, of_type)| type_allows(of_type, &sought.template)) {
            let (row, start) = (number(rows.len()), offers.len());
            let mut asleep = Vec::new();
            for (place, offering) in of_type.offerings.iter().enumerate() {
                let kind = (offering.capacity_type == CapacityType::Reserved) == sought.reserved;
                let free = sought.frees(offering);
                if !kind || !(offering.available || free) || !offering_allows(offering, &sought.template) {
                    continue;
                }
                let to = if free || sought.sells(of_type, offering) { &mut offers } else { &mut asleep };
                to.push((row, number(place)));
            }
            if offers.len() == start {
                continue;
            }
            let daemons = daemons.of(at);
            // A type that has no room for its daemons alone has none for pods.
            if !daemons.0.fit_in(&of_type.allocatable) {
                offers.truncate(start);
                continue;
            }
            rows.push(Shelf { of_type: number(at), offers: start..offers.len(), daemons });
            resting.append(&mut asleep);
        }
        let of_row = |row: u32| &types[rows[row as usize].of_type as usize];
        let sold: Vec<(&InstanceType, &Offering)> =
            offers.iter().map(|(row, place)| (of_row(*row), &of_row(*row).offerings[*place as usize])).collect();
        let of_types: Vec<&InstanceType> = (0..rows.len()).map(|row| of_row(number(row))).collect();
        let of_offers: Vec<&Offering> = sold.iter().map(|(_, offering)| *offering).collect();
        let places = places(&sold);
        let flexibility = Arc::new(Flexibility::new(&sought.template, &of_types, &of_offers));
        let ways = of_offers.iter().map(|offering| offering.capacity_type).collect::<BTreeSet<_>>().len();
        let list = PriceList::new(&of_offers, &places);
        Self { origin: Origin::from(sought), rows, offers, resting, places, flexibility, ways, list }
    }
}

impl Stock {
    /// The host ports of these guests.
    pub(crate) fn ports<'s>(&'s self, guests: &'s [usize]) -> impl Iterator<Item = &'s [HostPort]> {
        guests.iter().map(|guest| &self.origin.guests[*guest].1[..])
    }
}

impl Sought<'_> {
    fn frees(&self, offering: &Offering) -> bool {
        !self.free.is_empty() && offering.reservation.as_ref().is_some_and(|reservation| self.free.contains(&reservation.id))
    }

    fn sells(&self, of_type: &InstanceType, offering: &Offering) -> bool {
        self.resting.is_empty() || !self.resting.contains(&of_type.key(offering))
    }
}

/// Which guests run on which types.
struct Daemons {
    /// By type: a number into `sets`.
    of_type: Vec<usize>,
    sets: Vec<Arc<(Resources, Vec<usize>)>>,
}

impl Daemons {
    fn new(sought: &Sought<'_>) -> Self {
        let types = &sought.catalog.types;
        // Most daemons ask for nothing.
        let mut masks: BTreeMap<&Requirements, FixedBitSet> = BTreeMap::new();
        let mut runs: Vec<Vec<usize>> = vec![Vec::new(); types.len()];
        for (number, guest) in sought.guests.iter().enumerate() {
            let mut taken = FixedBitSet::with_capacity(types.len());
            for wanted in guest.wanted {
                taken.union_with(masks.entry(wanted).or_insert_with(|| on_types(sought, wanted)));
            }
            taken.ones().for_each(|of_type| runs[of_type].push(number));
        }
        let mut numbers: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut sets = Vec::new();
        let mut of_type = Vec::with_capacity(types.len());
        for guests in runs {
            let known = numbers.get(&guests).copied();
            of_type.push(known.unwrap_or_else(|| {
                let mut sum = Resources::default();
                guests.iter().for_each(|guest| sum.add(sought.guests[*guest].requests));
                sets.push(Arc::new((sum, guests.clone())));
                numbers.insert(guests, sets.len() - 1);
                sets.len() - 1
            }));
        }
        Self { of_type, sets }
    }

    fn of(&self, of_type: usize) -> Arc<(Resources, Vec<usize>)> {
        Arc::clone(&self.sets[self.of_type[of_type]])
    }
}

/// The types on which a node of the pool may meet what a daemon wants.
fn on_types(sought: &Sought<'_>, wanted: &Requirements) -> FixedBitSet {
    let mut both = sought.template.clone();
    both.add_all(wanted);
    // What is sold out now may be what is bought in a minute.
    let runs = |of_type: &InstanceType| {
        type_allows(of_type, &both) && of_type.offerings.iter().any(|offering| offering.available && offering_allows(offering, &both))
    };
    let types = &sought.catalog.types;
    let mut all = FixedBitSet::with_capacity(types.len());
    types.iter().enumerate().filter(|(_, of_type)| runs(of_type)).for_each(|(at, _)| all.insert(at));
    all
}

fn places(sold: &[(&InstanceType, &Offering)]) -> Arc<[u32]> {
    let mut order: Vec<usize> = (0..sold.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&sold[*a], &sold[*b]);
        // Offerings of one type stand side by side: most often no name need be compared.
        let types = || if std::ptr::eq(a.0, b.0) { std::cmp::Ordering::Equal } else { a.0.name.cmp(&b.0.name) };
        let ways = a.1.capacity_type.cmp(&b.1.capacity_type);
        let kind = |offering: &Offering| offering.reservation.as_ref().map(whittle_model::Reservation::kind);
        ways.then_with(|| kind(a.1).cmp(&kind(b.1))).then_with(types).then_with(|| a.1.zone.cmp(&b.1.zone))
    });
    let mut places = vec![0; order.len()];
    for (place, offer) in order.into_iter().enumerate() {
        places[offer] = number(place);
    }
    places.into()
}

impl PriceList {
    fn new(offers: &[&Offering], places: &[u32]) -> Self {
        let list = |offering: &&Offering| Some(Price { rank: offering.price.max(Micros(1)), cost: offering.price });
        let prices: Arc<[Option<Price>]> = offers.iter().map(list).collect();
        let (counted, ranked) = worst(&[&prices], places);
        // They differ only where something costs next to nothing.
        let counted = if counted == prices { Arc::clone(&prices) } else { counted };
        Self { prices, counted, ranked }
    }
}
