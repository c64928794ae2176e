//! What AWS answers when it does not do what it was asked, sorted into the few kinds that are acted upon.
//!
//! What must not enter: retries, and what a failed launch means for offerings (that is `fleet`'s).

use aws_sdk_ec2::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

/// How an AWS call failed. [`Display`](std::fmt::Display) says what was attempted, on what, why it failed and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {object}: {why}{advice}", why = self.why(), advice = self.kind.advice())]
pub struct CloudError {
    /// The AWS action, such as `CreateFleet`.
    pub action: &'static str,
    /// What it was about: a name, an id, a selector.
    pub object: String,
    /// AWS's code, such as `UnauthorizedOperation`; empty when there was no answer.
    pub code: String,
    /// AWS's message.
    pub message: String,
    /// What kind of failure it is.
    pub kind: ErrorKind,
}

/// Kinds of failures that are acted upon differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// What was asked about does not exist.
    NotFound,
    /// A launch template does not exist; it is made again.
    LaunchTemplateNotFound,
    /// What should be made exists.
    AlreadyExists,
    /// The controller may not do this.
    Unauthorized,
    /// AWS wants fewer calls. Never taken for a lack of capacity.
    Throttled,
    /// AWS has not what was asked for, or the account may not have more of it.
    InsufficientCapacity,
    /// The role that spot needs does not exist and may not be made.
    SpotRoleMissing,
    /// The client token was used with another request.
    TokenReused,
    /// A dry run says that the call would have been allowed.
    DryRunOk,
    /// No answer arrived: it may have been carried out or not.
    NoAnswer,
    /// What the call needs is not configured here.
    Configuration,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// The kind of failure that AWS's code stands for.
    #[must_use]
    pub fn of_code(code: &str) -> Self {
        match code {
            "DryRunOperation" => Self::DryRunOk,
            "IdempotentParameterMismatch" => Self::TokenReused,
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted" => Self::SpotRoleMissing,
            code if THROTTLED.contains(&code) => Self::Throttled,
            code if NO_CAPACITY.contains(&code) => Self::InsufficientCapacity,
            code if code.starts_with("InvalidLaunchTemplate") && code.contains("NotFound") => Self::LaunchTemplateNotFound,
            code if NOT_FOUND.iter().any(|part| code.contains(part)) => Self::NotFound,
            code if code.contains("AlreadyExists") => Self::AlreadyExists,
            code if UNAUTHORIZED.iter().any(|part| code.contains(part)) => Self::Unauthorized,
            _ => Self::Other,
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Unauthorized => "; allow the action to the controller's IAM role",
            Self::Throttled => "; it is tried again later, more slowly",
            Self::SpotRoleMissing => "; create the service-linked role of spot.amazonaws.com once in this account",
            Self::NoAnswer => "; whether it was carried out is looked up before it is tried again",
            Self::NotFound
            | Self::LaunchTemplateNotFound
            | Self::AlreadyExists
            | Self::InsufficientCapacity
            | Self::TokenReused
            | Self::DryRunOk
            | Self::Configuration
            | Self::Other => "",
        }
    }
}

const THROTTLED: [&str; 13] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

const NO_CAPACITY: [&str; 10] = [
    "InsufficientCapacityOnHost",
    "InsufficientFreeAddressesInSubnet",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "MaxFleetCountExceeded",
    "MaxSpotInstanceCountExceeded",
    "ReservationCapacityExceeded",
    "UnfulfillableCapacity",
    "Unsupported",
    "VcpuLimitExceeded",
];

const NOT_FOUND: [&str; 4] = ["NotFound", "NoSuchEntity", "NonExistentQueue", "QueueDoesNotExist"];

const UNAUTHORIZED: [&str; 9] = [
    "AccessDenied",
    "AuthFailure",
    "AuthorizationError",
    "ExpiredToken",
    "InvalidClientTokenId",
    "NotAuthorized",
    "OptInRequired",
    "UnauthorizedOperation",
    "UnrecognizedClient",
];

impl CloudError {
    /// What became of one call.
    pub(crate) fn of<E>(action: &'static str, object: &str, failure: &SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let code = failure.code().unwrap_or_default().to_owned();
        let kind = match failure {
            SdkError::ConstructionFailure(_) => ErrorKind::Configuration,
            SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => ErrorKind::NoAnswer,
            SdkError::ServiceError(answer) => {
                let (kind, status) = (ErrorKind::of_code(&code), answer.raw().status().as_u16());
                if kind != ErrorKind::Other {
                    kind
                } else if status == 429 {
                    ErrorKind::Throttled
                } else if status >= 500 {
                    // A proxy's error page, or a server that broke down midway: nothing is known of the outcome.
                    ErrorKind::NoAnswer
                } else {
                    kind
                }
            }
            // The SDK may add kinds; what they would say of the outcome is not known.
            _ => ErrorKind::NoAnswer,
        };
        let message = failure.message().map_or_else(|| DisplayErrorContext(failure).to_string(), ToOwned::to_owned);
        Self { action, object: object.to_owned(), code, message, kind }
    }

    /// A failure without a call: something is missing here, or an answer lacks what was asked for.
    pub(crate) fn local(action: &'static str, object: &str, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { action, object: object.to_owned(), code: String::new(), message: message.into(), kind }
    }

    /// Whether what was asked about does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ErrorKind::NotFound | ErrorKind::LaunchTemplateNotFound)
    }

    fn why(&self) -> String {
        if self.code.is_empty() { self.message.clone() } else { format!("{}: {}", self.code, self.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_into_kinds() {
        for (code, kind) in [
            ("RequestLimitExceeded", ErrorKind::Throttled),
            ("Throttling", ErrorKind::Throttled),
            ("InsufficientInstanceCapacity", ErrorKind::InsufficientCapacity),
            ("Unsupported", ErrorKind::InsufficientCapacity),
            ("UnsupportedOperation", ErrorKind::Other),
            ("InvalidLaunchTemplateName.NotFoundException", ErrorKind::LaunchTemplateNotFound),
            ("InvalidLaunchTemplateId.NotFound", ErrorKind::LaunchTemplateNotFound),
            ("InvalidLaunchTemplateName.AlreadyExistsException", ErrorKind::AlreadyExists),
            ("InvalidInstanceID.NotFound", ErrorKind::NotFound),
            ("AWS.SimpleQueueService.NonExistentQueue", ErrorKind::NotFound),
            ("NoSuchEntity", ErrorKind::NotFound),
            ("EntityAlreadyExists", ErrorKind::AlreadyExists),
            ("UnauthorizedOperation", ErrorKind::Unauthorized),
            ("AccessDeniedException", ErrorKind::Unauthorized),
            ("AuthFailure", ErrorKind::Unauthorized),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", ErrorKind::SpotRoleMissing),
            ("IdempotentParameterMismatch", ErrorKind::TokenReused),
            ("DryRunOperation", ErrorKind::DryRunOk),
            ("InvalidParameterValue", ErrorKind::Other),
            ("", ErrorKind::Other),
        ] {
            assert_eq!(ErrorKind::of_code(code), kind, "{code}");
        }
    }

    #[test]
    fn an_error_says_what_where_why_and_what_to_do() {
        let error = CloudError {
            action: "CreateFleet",
            object: "for claim general-x2".to_owned(),
            code: "UnauthorizedOperation".to_owned(),
            message: "you are not authorized".to_owned(),
            kind: ErrorKind::Unauthorized,
        };
        assert_eq!(
            error.to_string(),
            "cannot CreateFleet for claim general-x2: UnauthorizedOperation: you are not authorized; allow the action to the controller's IAM role"
        );
    }
}
