//! What the engine was told of catalogues, so that it is told again only what differs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use whittle_model::{Catalog, Event, Micros, OfferingKey};

/// With more prices than this a whole catalogue is less to handle: the engine looks at waiting pods after each event.
const FEW: usize = 50;

/// The catalogue of each NodeClass as the engine was told it.
#[derive(Debug, Default)]
pub struct Told {
    catalogs: BTreeMap<String, Arc<Catalog>>,
}

impl Told {
    /// The events that turn what was told before into these catalogues: none for one that is the same, prices where
    /// nothing but a few prices differ, else the whole catalogue. NodeClasses that are not among them stay as they were.
    pub fn tell(&mut self, made: &[Arc<Catalog>]) -> Vec<Event> {
        let mut events = Vec::new();
        // A price counts in the catalogues of all NodeClasses: it is told once.
        let mut prices = BTreeSet::new();
        for catalog in made {
            let told = self.catalogs.insert(catalog.node_class.clone(), Arc::clone(catalog));
            match told.and_then(|told| moved(&told, catalog)) {
                Some(few) if few.len() <= FEW => prices.extend(few),
                Some(_) | None => events.push(Event::Catalog(Arc::clone(catalog))),
            }
        }
        events.extend(prices.into_iter().map(|(key, price)| Event::Price(key, price)));
        events
    }

    /// A NodeClass is gone.
    pub fn forget(&mut self, node_class: &str) {
        self.catalogs.remove(node_class);
    }
}

/// The prices on which two catalogues differ; `None` when they differ in more than prices.
fn moved(told: &Arc<Catalog>, made: &Arc<Catalog>) -> Option<Vec<(OfferingKey, Micros)>> {
    if Arc::ptr_eq(told, made) {
        return Some(Vec::new());
    }
    let head = |catalog: &Catalog| (catalog.region.clone(), catalog.price_region.clone(), catalog.types.len());
    if head(told) != head(made) {
        return None;
    }
    let mut moved = Vec::new();
    for (before, after) in told.types.iter().zip(&made.types) {
        let same = before.name == after.name
            && before.labels == after.labels
            && before.requirements == after.requirements
            && before.capacity == after.capacity
            && before.allocatable == after.allocatable
            && before.offerings.len() == after.offerings.len();
        if !same {
            return None;
        }
        for (old, new) in before.offerings.iter().zip(&after.offerings) {
            let repriced = whittle_model::Offering { price: new.price, ..old.clone() };
            if repriced != *new {
                return None;
            }
            if old.price != new.price {
                let key = OfferingKey { instance_type: after.name.clone(), zone: new.zone.clone(), capacity_type: new.capacity_type };
                moved.push((key, new.price));
            }
        }
    }
    Some(moved)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use whittle_catalog::{CatalogOptions, Sources, build, synthetic};

    use super::*;

    fn catalog(node_class: &str) -> Catalog {
        Catalog { node_class: node_class.to_owned(), ..synthetic(100) }
    }

    fn repriced(node_class: &str, count: usize) -> Arc<Catalog> {
        let mut catalog = catalog(node_class);
        for made in catalog.types.iter_mut().take(count) {
            made.offerings[0].price = Micros(1);
        }
        Arc::new(catalog)
    }

    /// Class names of whole catalogues, and the number of prices.
    fn told(told: &mut Told, made: &[Arc<Catalog>]) -> (Vec<String>, usize) {
        let events = told.tell(made);
        let whole = events.iter().filter_map(|event| if let Event::Catalog(c) = event { Some(c.node_class.clone()) } else { None });
        (whole.collect(), events.iter().filter(|event| matches!(event, Event::Price(..))).count())
    }

    #[test]
    fn only_what_differs_is_told() {
        let mut engine = Told::default();
        assert_eq!(told(&mut engine, &[repriced("a", 0), repriced("b", 0)]), (vec!["a".into(), "b".into()], 0));
        assert_eq!(told(&mut engine, &[repriced("a", 0), repriced("b", 0)]), (vec![], 0));
        assert_eq!(told(&mut engine, &[repriced("a", 3), repriced("b", 3)]), (vec![], 3), "once for both");
        assert_eq!(told(&mut engine, &[repriced("a", 100)]), (vec!["a".into()], 0), "97 more prices");
        engine.forget("a");
        assert_eq!(told(&mut engine, &[repriced("a", 100)]), (vec!["a".into()], 0));
    }

    #[test]
    fn a_price_event_names_the_offering() {
        let mut engine = Told::default();
        engine.tell(&[repriced("a", 0)]);
        let made = repriced("a", 1);
        let offering = &made.types[0].offerings[0];
        let key =
            OfferingKey { instance_type: made.types[0].name.clone(), zone: offering.zone.clone(), capacity_type: offering.capacity_type };
        assert_eq!(engine.tell(&[made]), [Event::Price(key, Micros(1))]);
    }

    proptest! {
        /// However many prices move: who takes the events has what was made, in every class.
        #[test]
        fn events_make_the_catalogue_that_was_made(moves in vec((0..100usize, 0..5usize, 1..9i64), 0..120)) {
            let mut made = [catalog("a"), catalog("b")];
            let mut held: Vec<Catalog> = made.to_vec();
            let mut engine = Told::default();
            engine.tell(&made.clone().map(Arc::new));
            for (of_type, offering, price) in moves {
                for catalog in &mut made {
                    catalog.types[of_type].offerings[offering].price = Micros(price);
                }
            }
            let events = engine.tell(&made.clone().map(Arc::new));
            for event in &events {
                for catalog in &mut held {
                    apply(catalog, event);
                }
            }
            prop_assert_eq!(held, made);
        }
    }

    fn apply(held: &mut Catalog, event: &Event) {
        if let Event::Catalog(whole) = event
            && whole.node_class == held.node_class
        {
            *held = Catalog::clone(whole);
        } else if let Event::Price(key, price) = event {
            let of_type = held.types.iter_mut().filter(|made| made.name == key.instance_type);
            let of_key =
                of_type.flat_map(|made| &mut made.offerings).filter(|o| o.zone == key.zone && o.capacity_type == key.capacity_type);
            of_key.for_each(|offering| offering.price = *price);
        }
    }

    #[test]
    fn whatever_else_differs_makes_the_whole_catalogue_news() {
        let start = || build(&CatalogOptions::default(), &Sources::builtin(1)).unwrap();
        let changes: [fn(&mut Catalog); 7] = [
            |c| c.types[0].offerings[0].available = false,
            |c| c.types[0].offerings[0].zone_id = "other".into(),
            |c| c.types[5].capacity.set("cpu", 1),
            |c| c.types[5].allocatable.set("cpu", 1),
            |c| drop(c.types[7].labels.insert("k".into(), "v".into())),
            |c| drop(c.types.remove(9)),
            |c| c.price_region = "eu-west-1".into(),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut engine = Told::default();
            engine.tell(&[Arc::new(start())]);
            let mut changed = start();
            change(&mut changed);
            assert_eq!(told(&mut engine, &[Arc::new(changed)]), (vec!["default".into()], 0), "change {at}");
        }
    }
}
