//! Events of EventBridge, as the interruption queue carries them.
//! Source: EC2 User Guide, "Spot Instance interruption notices", "EC2 instance rebalance recommendations", "State change
//! events" and "Monitor interruptible Capacity Reservations"; AWS Health User Guide, "Amazon EventBridge schema".
//!
//! What must not enter: the queue, and which instances are ours.

use serde::Deserialize;
use serde_json::Value;
use whittle_model::{Event, Interruption};

/// An event, as far as it is read.
#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(default)]
    source: String,
    #[serde(rename = "detail-type", default)]
    detail_type: String,
    #[serde(default)]
    detail: Value,
}

/// What a message says: nothing, when it is an event of another kind.
pub(super) fn parse(body: &str) -> Result<Vec<Event>, serde_json::Error> {
    let event: Envelope = serde_json::from_str(body)?;
    let one = |what: Interruption| text(&event.detail, "instance-id").map(|id| interrupted(id, what)).into_iter().collect();
    Ok(match (event.source.as_str(), event.detail_type.as_str()) {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => one(Interruption::SpotInterrupted),
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => one(Interruption::RebalanceRecommendation),
        ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning") => one(Interruption::CapacityReservationInterrupted),
        ("aws.ec2", "EC2 Instance State-change Notification") => match text(&event.detail, "state") {
            Some("stopping" | "stopped") => one(Interruption::InstanceStopped),
            Some("shutting-down" | "terminated") => one(Interruption::InstanceTerminated),
            Some(_) | None => Vec::new(),
        },
        ("aws.health", "AWS Health Event") => scheduled(&event.detail),
        _ => Vec::new(),
    })
}

/// A scheduled change names its instances among the affected entities.
fn scheduled(detail: &Value) -> Vec<Event> {
    if text(detail, "service") != Some("EC2") || text(detail, "eventTypeCategory") != Some("scheduledChange") {
        return Vec::new();
    }
    let entities = detail.get("affectedEntities").and_then(Value::as_array);
    let ids = entities.into_iter().flatten().filter_map(|entity| text(entity, "entityValue"));
    ids.filter(|id| id.starts_with("i-")).map(|id| interrupted(id, Interruption::ScheduledChange)).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// These events do not name the zone.
pub(super) fn interrupted(id: &str, what: Interruption) -> Event {
    Event::Interrupted { provider_id: crate::fleet::provider_id("", id), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(source: &str, detail_type: &str, detail: &str) -> String {
        format!(
            r#"{{"version":"0","id":"1","source":"{source}","detail-type":"{detail_type}","account":"123456789012","time":"2026-01-01T00:00:00Z","region":"us-east-1","resources":"x","detail":{detail}}}"#
        )
    }

    #[test]
    fn each_kind_of_event_is_understood() {
        let state = |state: &str| {
            event("aws.ec2", "EC2 Instance State-change Notification", &format!(r#"{{"instance-id":"i-1","state":"{state}"}}"#))
        };
        let plain = |detail_type: &str| event("aws.ec2", detail_type, r#"{"instance-id":"i-1","instance-action":"terminate"}"#);
        for (body, what) in [
            (plain("EC2 Spot Instance Interruption Warning"), Some(Interruption::SpotInterrupted)),
            (plain("EC2 Instance Rebalance Recommendation"), Some(Interruption::RebalanceRecommendation)),
            (plain("EC2 Capacity Reservation Instance Interruption Warning"), Some(Interruption::CapacityReservationInterrupted)),
            (state("stopping"), Some(Interruption::InstanceStopped)),
            (state("stopped"), Some(Interruption::InstanceStopped)),
            (state("shutting-down"), Some(Interruption::InstanceTerminated)),
            (state("terminated"), Some(Interruption::InstanceTerminated)),
            (state("running"), None),
            (plain("EC2 AMI State Change"), None),
            (plain("EC2 Spot Instance Interruption Warning").replace("aws.ec2", "com.example"), None),
        ] {
            let expected: Vec<Event> =
                what.into_iter().map(|what| Event::Interrupted { provider_id: "aws:////i-1".to_owned(), what }).collect();
            assert_eq!(parse(&body).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn a_scheduled_change_may_name_several_instances() {
        let of = |service: &str, category: &str| {
            let detail = format!(
                r#"{{"service":"{service}","eventTypeCategory":"{category}","affectedEntities":[{{"entityValue":"i-1"}},{{"entityValue":"vol-1"}},{{"entityValue":"i-2"}},{{}}]}}"#
            );
            parse(&event("aws.health", "AWS Health Event", &detail)).unwrap()
        };
        let ids: Vec<Event> = ["i-1", "i-2"].map(|id| interrupted(id, Interruption::ScheduledChange)).into();
        assert_eq!(of("EC2", "scheduledChange"), ids);
        assert_eq!(of("EC2", "accountNotification"), []);
        assert_eq!(of("RDS", "scheduledChange"), []);
    }

    #[test]
    fn garbage_is_an_error_and_strangers_say_nothing() {
        for body in ["abcd", "", "null", "[]", "{\"source\":7}", "\"text\""] {
            assert!(parse(body).map_or(true, |events| events.is_empty()), "{body}");
        }
        assert!(parse("abcd").is_err() && parse("null").is_err());
        for body in ["{}", r#"{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{}}"#] {
            assert_eq!(parse(body).unwrap(), [], "{body}");
        }
    }
}
