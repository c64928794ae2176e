//! The capacity reservations that a class names.
//!
//! What must not enter: launches into them.

use std::collections::BTreeMap;

use aws_sdk_ec2::{
    primitives::{DateTime, DateTimeFormat},
    types,
};
use whittle_model::{Duration, Timestamp, ec2_node_class as api};

use super::{
    lookup::Ask,
    resolved::Reservation,
    selector::{Query, Term, tag_filters, tag_words},
};
use crate::{Aws, CloudError};

const PAGE: i32 = 1000;
/// A capacity block's instances are taken from this long before its end; nothing starts in it then.
/// Source: Amazon EC2 user guide, "Capacity Blocks for ML": termination begins 30 minutes before the end, announced 10 before.
const EXPIRING: Duration = Duration::minutes(40);

/// The questions that `terms` stand for: an id alone, the others by tags, match criteria and owner.
pub(super) fn queries(terms: &[api::CapacityReservationSelectorTerm]) -> Vec<Query> {
    terms.iter().enumerate().filter_map(|(at, term)| query(at, term)).collect()
}

fn query(at: usize, term: &api::CapacityReservationSelectorTerm) -> Option<Query> {
    let named = |words: &str, wants| vec![Term { words: format!("capacityReservationSelectorTerms[{at}] ({words})"), wants }];
    if let Some(id) = &term.id {
        return Some(Query { id: Some(id.clone()), terms: named(&format!("id {id}"), Some(id.clone())), ..Query::default() });
    }
    let tags = term.tags.clone().unwrap_or_default();
    if tags.is_empty() && term.instance_match_criteria.is_none() {
        return None;
    }
    let mut filters = tag_filters(&tags);
    let mut words: Vec<String> = if tags.is_empty() { Vec::new() } else { vec![tag_words(&tags)] };
    for (filter, value) in [("owner-id", &term.owner_id), ("instance-match-criteria", &term.instance_match_criteria)] {
        if let Some(value) = value {
            filters.push((filter.to_owned(), vec![value.clone()]));
            words.push(format!("{filter} {value}"));
        }
    }
    Some(Query { filters, terms: named(&words.join(", "), None), ..Query::default() })
}

impl Ask for Reservation {
    async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Self>, CloudError> {
        ask(aws, query).await
    }

    fn handles(&self) -> [&str; 2] {
        [&self.found.id, ""]
    }
}

/// The answer to one question; an id that does not exist is answered with nothing. Those of kinds that are not known
/// here are left out.
async fn ask(aws: &Aws, query: &Query) -> Result<Vec<Reservation>, CloudError> {
    let active = types::Filter::builder().name("state").values("active").build();
    let filters: Vec<types::Filter> = query.filters().into_iter().chain([active]).collect();
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let mut request = aws.ec2.describe_capacity_reservations().set_filters(Some(filters.clone())).set_next_token(token.take());
        // A page size and an id exclude each other.
        request = match &query.id {
            Some(id) => request.capacity_reservation_ids(id),
            None => request.max_results(PAGE),
        };
        let page = match aws.call("DescribeCapacityReservations", "that the class selects", || request.clone().send()).await {
            Ok(page) => page,
            Err(error) if error.is_not_found() => return Ok(found),
            Err(error) => return Err(error),
        };
        found.extend(page.capacity_reservations().iter().filter_map(reservation));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(found);
        }
    }
}

fn reservation(answer: &types::CapacityReservation) -> Option<Reservation> {
    let criteria = answer.instance_match_criteria()?.as_str();
    let kind = answer.reservation_type().map_or("default", types::CapacityReservationType::as_str);
    if !["open", "targeted"].contains(&criteria) || !["default", "capacity-block"].contains(&kind) {
        return None;
    }
    let ends = answer.end_date();
    Some(Reservation {
        found: api::CapacityReservation {
            id: answer.capacity_reservation_id()?.to_owned(),
            availability_zone: answer.availability_zone()?.to_owned(),
            instance_type: answer.instance_type()?.to_owned(),
            instance_match_criteria: Some(criteria.to_owned()),
            owner_id: answer.owner_id().map(ToOwned::to_owned),
            end_time: ends.and_then(seconds),
            reservation_type: Some(kind.to_owned()),
            interruptible: Some(answer.interruptible().unwrap_or_default()),
            state: None,
        },
        ends: ends.and_then(|ends| ends.to_millis().ok()).map(Timestamp),
        available: i64::from(answer.available_instance_count().unwrap_or_default()),
    })
}

/// RFC 3339 with whole seconds, as the API server keeps times.
fn seconds(time: &DateTime) -> Option<String> {
    DateTime::from_secs(time.secs()).fmt(DateTimeFormat::DateTime).ok()
}

/// Each reservation that has not ended once, by id, with its state of now.
pub(super) fn merge(found: Vec<Reservation>, now: Timestamp) -> Vec<Reservation> {
    let by_id: BTreeMap<String, Reservation> = found
        .into_iter()
        .filter(|reservation| reservation.ends.is_none_or(|ends| ends > now))
        .map(|reservation| (reservation.found.id.clone(), reservation))
        .collect();
    by_id.into_values().map(|reservation| with_state(reservation, now)).collect()
}

fn with_state(mut reservation: Reservation, now: Timestamp) -> Reservation {
    let block = reservation.found.reservation_type.as_deref() == Some("capacity-block");
    let expiring = block && reservation.ends.is_some_and(|ends| now.plus(EXPIRING) >= ends);
    reservation.found.state = Some(if expiring { "expiring" } else { "active" }.to_owned());
    reservation
}

/// When the earliest of them changes its state or ends.
pub(super) fn next_change(found: &[Reservation], now: Timestamp) -> Option<Timestamp> {
    let changes = |r: &Reservation| r.ends.into_iter().flat_map(|ends| [ends, Timestamp(ends.0.saturating_sub(EXPIRING.0))]);
    found.iter().flat_map(changes).filter(|change| *change > now).min()
}
