//! Times of the model as the API writes them: whole seconds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;
use whittle_model::Timestamp;

/// The second that `at` lies in; the epoch for what no calendar has.
pub(super) fn time(at: Timestamp) -> Time {
    Time(jiff::Timestamp::from_second(at.0.div_euclid(1000)).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}
