//! The status checks and scheduled events of instances.
//!
//! What must not enter: timers, and which instances are ours.

use aws_sdk_ec2::types::{EventCode, Filter, InstanceStatus, InstanceStatusSummary, SummaryStatus};
use whittle_model::{Duration, Event, Interruption, Timestamp};

use crate::{Aws, CloudError};

/// A check that fails for less may pass again by itself.
const FAILING_FOR: Duration = Duration::minutes(2);
const PAGE: i32 = 1000;
const SCHEDULED: [EventCode; 5] = [
    EventCode::InstanceReboot,
    EventCode::SystemReboot,
    EventCode::SystemMaintenance,
    EventCode::InstanceRetirement,
    EventCode::InstanceStop,
];

/// An instance that is not well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `aws:///<zone>/<instance id>`.
    pub provider_id: String,
    /// What is wrong; the worst, where several things are.
    pub what: Interruption,
}

impl Problem {
    /// As the engine is told.
    #[must_use]
    pub fn event(&self) -> Event {
        Event::Interrupted { provider_id: self.provider_id.clone(), what: self.what }
    }
}

/// All running instances of the region, ours and others', whose status checks have failed for two minutes or that have
/// a scheduled event before them; ordered by provider id.
///
/// # Errors
/// When EC2 does not answer.
pub async fn instance_problems(aws: &Aws, now: Timestamp) -> Result<Vec<Problem>, CloudError> {
    // EC2 filters, so that the answer is short however many instances the account has.
    let impaired = vec!["impaired".to_owned()];
    let codes = SCHEDULED.iter().map(|code| code.as_str().to_owned()).collect();
    let filters = [("instance-status.status", impaired.clone()), ("system-status.status", impaired), ("event.code", codes)];
    let mut problems = Vec::new();
    for (name, values) in filters {
        problems.extend(read(aws, Filter::builder().name(name).set_values(Some(values)).build(), now).await?);
    }
    problems.sort();
    problems.dedup_by(|later, first| later.provider_id == first.provider_id);
    Ok(problems)
}

async fn read(aws: &Aws, filter: Filter, now: Timestamp) -> Result<Vec<Problem>, CloudError> {
    let mut problems = Vec::new();
    let mut token = None;
    loop {
        let request = aws.ec2.describe_instance_status().filters(filter.clone()).max_results(PAGE).set_next_token(token.take());
        let page = aws.call("DescribeInstanceStatus", "of the region", || request.clone().send()).await?;
        problems.extend(page.instance_statuses().iter().filter_map(|status| problem(status, now)));
        token = page.next_token().filter(|token| !token.is_empty()).map(ToOwned::to_owned);
        if token.is_none() {
            return Ok(problems);
        }
    }
}

fn problem(status: &InstanceStatus, now: Timestamp) -> Option<Problem> {
    let what = if fails(status.instance_status(), now) {
        Interruption::InstanceStatus
    } else if fails(status.system_status(), now) {
        Interruption::SystemStatus
    } else if status.events().iter().any(stands) {
        Interruption::EventStatus
    } else {
        return None;
    };
    let zone = status.availability_zone().unwrap_or_default();
    Some(Problem { provider_id: crate::fleet::provider_id(zone, status.instance_id()?), what })
}

/// Whether a check has failed for long enough.
fn fails(summary: Option<&InstanceStatusSummary>, now: Timestamp) -> bool {
    let Some(summary) = summary.filter(|summary| summary.status() == Some(&SummaryStatus::Impaired)) else { return false };
    let since = summary.details().iter().filter_map(|detail| detail.impaired_since()?.to_millis().ok()).min();
    since.is_some_and(|since| now.since(Timestamp(since)) >= FAILING_FOR)
}

/// Whether a scheduled event is still before the instance: EC2 keeps those that are over for a while, marked in their
/// description.
fn stands(event: &aws_sdk_ec2::types::InstanceStatusEvent) -> bool {
    let over = event.description().is_some_and(|text| text.starts_with("[Completed]") || text.starts_with("[Canceled]"));
    !over && event.code().is_some_and(|code| SCHEDULED.contains(code))
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::{
        primitives::DateTime,
        types::{InstanceStatusDetails, InstanceStatusEvent},
    };

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);

    fn check(status: SummaryStatus, since_seconds: i64) -> InstanceStatusSummary {
        let since = DateTime::from_millis(NOW.0 - since_seconds * 1000);
        InstanceStatusSummary::builder().status(status).details(InstanceStatusDetails::builder().impaired_since(since).build()).build()
    }

    fn event(code: EventCode, description: &str) -> InstanceStatusEvent {
        InstanceStatusEvent::builder().code(code).description(description).build()
    }

    #[test]
    fn only_lasting_failures_and_standing_events_count() {
        let status = || InstanceStatus::builder().instance_id("i-1").availability_zone("us-east-1a");
        let (ok, bad) = (SummaryStatus::Ok, SummaryStatus::Impaired);
        for (status, what) in [
            (status().instance_status(check(bad.clone(), 120)), Some(Interruption::InstanceStatus)),
            (status().instance_status(check(bad.clone(), 119)), None),
            (status().instance_status(check(ok.clone(), 999)), None),
            (status().system_status(check(bad.clone(), 500)), Some(Interruption::SystemStatus)),
            (status().system_status(check(bad.clone(), 500)).instance_status(check(bad, 500)), Some(Interruption::InstanceStatus)),
            (status().instance_status(InstanceStatusSummary::builder().status(SummaryStatus::Impaired).build()), None),
            (status().events(event(EventCode::InstanceRetirement, "hardware")), Some(Interruption::EventStatus)),
            (status().events(event(EventCode::SystemReboot, "[Completed] reboot")), None),
            (status().events(event(EventCode::SystemReboot, "[Canceled] reboot")), None),
            (status(), None),
        ] {
            let status = status.build();
            let expected = what.map(|what| Problem { provider_id: "aws:///us-east-1a/i-1".to_owned(), what });
            assert_eq!(problem(&status, NOW), expected, "{status:?}");
        }
    }
}
