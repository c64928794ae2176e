//! Who leads, decided with a Lease and no clock but one's own: a record is held to be alive for its duration
//! from the moment that *this* candidate saw it change, so clocks that differ do no harm (the algorithm of
//! Kubernetes' own leader election: <https://pkg.go.dev/k8s.io/client-go/tools/leaderelection>).
//!
//! What must not enter: requests, waiting.

use std::time::Duration;

/// The times of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long a record that does not change is respected.
    pub duration: Duration,
    /// How long a leader goes on without having renewed its record.
    pub renew_deadline: Duration,
    /// Pause between tries.
    pub retry: Duration,
}

impl Default for LeaseTimes {
    /// 15 s, 10 s and 2 s, as Karpenter: what the leader gives up early is the margin of what it sent late.
    fn default() -> Self {
        Self { duration: Duration::from_secs(15), renew_deadline: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseRecord {
    /// Who holds it; empty when nobody does.
    pub holder: String,
    /// How long it is respected.
    pub duration: Duration,
    /// How often it went from one holder to another.
    pub transitions: i32,
    /// When it was acquired: RFC 3339, empty when never.
    pub acquired: String,
    /// When it was last renewed: RFC 3339, empty when never.
    pub renewed: String,
}

/// What a candidate has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read the lease and tell with [`Candidate::saw`].
    Read,
    /// Make the lease and tell with [`Candidate::wrote`]. Times are to be filled in: `acquired` when it is
    /// empty, `renewed` always.
    Create(LeaseRecord),
    /// Write this over the lease, if it is still of this version, and tell with [`Candidate::wrote`]. Times are
    /// to be filled in as for a new one.
    Write {
        /// What to write.
        record: LeaseRecord,
        /// The resource version that was seen.
        version: String,
    },
    /// Another holds it: wait.
    Wait,
}

/// One candidate for a lease. Times are of its own clock, which only runs forward.
#[derive(Debug, Clone)]
pub struct Candidate {
    identity: String,
    times: LeaseTimes,
    seen: Seen,
    renewed: Option<Duration>,
}

/// What is known of the lease.
#[derive(Debug, Clone)]
enum Seen {
    /// Nothing, yet.
    Nothing,
    /// That there is none.
    None,
    /// What it says.
    Lease {
        record: LeaseRecord,
        version: String,
        /// When this version was first seen.
        since: Duration,
        /// Whether it may be acted on, or has to be read again first.
        sure: bool,
    },
}

impl Candidate {
    /// A candidate of this identity, which no other has.
    #[must_use]
    pub fn new(identity: &str, times: LeaseTimes) -> Self {
        Self { identity: identity.to_owned(), times, seen: Seen::Nothing, renewed: None }
    }

    /// Whether it leads at `now`: from a write that succeeded until the deadline after that write was *sent*.
    #[must_use]
    pub fn leads(&self, now: Duration) -> bool {
        self.leads_until().is_some_and(|end| now < end)
    }

    /// When it stops to lead unless it renews.
    #[must_use]
    pub fn leads_until(&self) -> Option<Duration> {
        self.renewed.map(|sent| sent + self.times.renew_deadline)
    }

    /// What to do at `now`. Only a leader acts on a sight twice: any other decides on one of this try.
    #[must_use]
    pub fn next(&mut self, now: Duration) -> Next {
        let leads = self.leads(now);
        match &mut self.seen {
            Seen::Nothing | Seen::Lease { sure: false, .. } => Next::Read,
            Seen::None => Next::Create(record(&self.identity, self.times.duration, 0, String::new())),
            Seen::Lease { record: seen, version, since, sure } => {
                let mine = seen.holder == self.identity;
                *sure = mine && leads;
                if !mine && !seen.holder.is_empty() && now < *since + seen.duration {
                    return Next::Wait;
                }
                let (transitions, acquired) =
                    if mine { (seen.transitions, seen.acquired.clone()) } else { (seen.transitions.saturating_add(1), String::new()) };
                Next::Write { record: record(&self.identity, self.times.duration, transitions, acquired), version: version.clone() }
            }
        }
    }

    /// What letting go writes, over which version, when the lease is this candidate's. From now on it does not lead.
    #[must_use]
    pub fn release(&mut self) -> Option<(LeaseRecord, String)> {
        self.renewed = None;
        match std::mem::replace(&mut self.seen, Seen::Nothing) {
            Seen::Lease { record, version, .. } if record.holder == self.identity => {
                Some((LeaseRecord { holder: String::new(), duration: Duration::from_secs(1), ..record }, version))
            }
            Seen::Nothing | Seen::None | Seen::Lease { .. } => None,
        }
    }

    /// The lease as an answer at `now` showed it: what it says and its resource version; `None` when there is none.
    pub fn saw(&mut self, now: Duration, lease: Option<(LeaseRecord, String)>) {
        let Some((record, version)) = lease else {
            self.seen = Seen::None;
            self.renewed = None; // whoever took it away may have made room for another
            return;
        };
        if record.holder != self.identity {
            self.renewed = None;
        }
        let since = match &self.seen {
            Seen::Lease { version: before, since, .. } if *before == version => *since,
            Seen::Nothing | Seen::None | Seen::Lease { .. } => now,
        };
        self.seen = Seen::Lease { record, version, since, sure: true };
    }

    /// That `record` was written by a request sent at `sent`, and the resource version it has now.
    pub fn wrote(&mut self, sent: Duration, record: LeaseRecord, version: String) {
        self.seen = Seen::Lease { record, version, since: sent, sure: true };
        self.renewed = Some(sent);
    }

    /// That a write failed, or is not known to have succeeded: the lease is read before the next.
    pub fn failed(&mut self) {
        match &mut self.seen {
            Seen::None => self.seen = Seen::Nothing,
            // Since when it was seen stays known: a record that does not change grows old meanwhile.
            Seen::Lease { sure, .. } => *sure = false,
            Seen::Nothing => {}
        }
    }
}

fn record(holder: &str, duration: Duration, transitions: i32, acquired: String) -> LeaseRecord {
    LeaseRecord { holder: holder.to_owned(), duration, transitions, acquired, renewed: String::new() }
}
