//! Why something could not be written.

use kube::core::Status;

/// Why something could not be written. `what` names the attempt and the object, such as `create NodeClaim
/// default-x7k2p`.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another controller leads, or led in between.
    #[error("{what}: not sent, because this controller does not lead; the leader will decide anew")]
    NotLeader {
        /// The attempt.
        what: String,
    },
    /// The API server refuses the object itself.
    #[error("{what}: the API server refuses it: {why}{fields}; check that the installed CRDs are of this version")]
    Invalid {
        /// The attempt.
        what: String,
        /// Its message.
        why: String,
        /// The fields it names, each with its cause; begins with `: ` unless empty.
        fields: String,
    },
    /// The controller may not do this.
    #[error("{what}: forbidden: {why}; grant this verb to the controller's service account, or install the chart's ClusterRole")]
    Forbidden {
        /// The attempt.
        what: String,
        /// The API server's message.
        why: String,
    },
    /// Somebody else changed the object each time between reading and writing it.
    #[error("{what}: the object changed between reading and writing {tries} times; something else writes it all the time")]
    Conflict {
        /// The attempt.
        what: String,
        /// How often it was tried.
        tries: u32,
    },
    /// No answer, or none but errors.
    #[error("{what}: no success in {tries} tries; it is tried again when it is ordered again, check the API server")]
    Unavailable {
        /// The attempt.
        what: String,
        /// How often it was tried.
        tries: u32,
        /// The last failure.
        #[source]
        last: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("{what}: no answer within {seconds} s in {tries} tries; check the API server and the network to it")]
    Silent {
        /// The attempt.
        what: String,
        /// How often it was tried.
        tries: u32,
        /// How long each try waited.
        seconds: u64,
    },
    /// An answer that is not known here.
    #[error("{what}: the API server answers {code}: {why}")]
    Unexpected {
        /// The attempt.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The API server's message.
        why: String,
    },
    /// An answer that is not the object that was written.
    #[error("{what}: the answer cannot be read; check that nothing stands between this controller and the API server")]
    Unreadable {
        /// The attempt.
        what: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The caller did not say what the object must carry.
    #[error("{what}: {missing} is not known yet; it is ordered again once the watch has shown it")]
    Missing {
        /// The attempt.
        what: String,
        /// What is missing, such as `the uid of NodePool default`.
        missing: String,
    },
}

impl WriteError {
    /// The error that an answer other than success is, where nothing better is made of it.
    pub(super) fn of(what: &str, status: &Status) -> Self {
        let (what, why) = (what.to_owned(), status.message.clone());
        match status.code {
            403 => Self::Forbidden { what, why },
            400 | 422 => Self::Invalid { what, why, fields: fields(status) },
            code => Self::Unexpected { what, code, why },
        }
    }
}

/// The causes that the message does not already tell.
fn fields(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let named: Vec<String> = causes
        .filter(|cause| !cause.field.is_empty() && !status.message.contains(&cause.field))
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    if named.is_empty() { String::new() } else { format!(": {}", named.join("; ")) }
}
