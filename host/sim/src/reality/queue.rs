//! What will happen, and when. Equal times go in the order they were put in.

use std::collections::BTreeMap;

use whittle_model::{Action, Event, ObjectKind, PodKey, Timestamp};

/// Something that will happen.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// The controller hears of something, if it is still the one that was listening.
    Tell {
        /// What.
        event: Box<Event>,
        /// The life of the controller that was listening.
        life: u32,
    },
    /// An order of the engine arrives.
    Order(Box<Action>),
    /// kube-scheduler goes through its queue.
    Cycle,
    /// kube-scheduler looks for pods that it has not tried for long.
    Flush,
    /// A bound pod starts.
    Start(PodKey),
    /// A pod ends well.
    Finish(PodKey),
    /// A deleted pod is gone: name and uid.
    Vanish(PodKey, String),
    /// The kubelet of a claim's instance joins.
    Join(String),
    /// A node becomes ready.
    Ready(String),
    /// What a node's startup taints waited for is done.
    Untaint(String),
    /// The instance of a claim has ended, as ordered.
    Ended(String),
    /// The instance of a claim has been taken back.
    Reclaim(String),
    /// EC2 takes half of all spot instances back, for this time.
    TakeBack(u64),
    /// Somebody deletes a claim, for this time.
    DeleteOne(u64),
    /// A provisioner makes the volume of a claim.
    Provision(PodKey),
    /// A disk is let go, unless it is in use again.
    Detach(String),
    /// The disruption controller counts.
    Count,
    /// Something sold out is for sale again.
    Restock,
    /// Reserved instances are counted again.
    CountHeld,
    /// The API server goes away until then.
    Outage(Timestamp),
    /// An object that could not be read can be read.
    Readable(ObjectKind, String),
    /// Nothing can be bought until then.
    Drought(Timestamp),
    /// A broken watch reads all objects of a kind again.
    Reread(&'static str),
    /// The controller crashes.
    Crash,
    /// The controller is back.
    Restart,
}

impl Happening {
    /// Whether the world is at rest while only such things are to come.
    const fn background(&self) -> bool {
        matches!(
            self,
            Self::Restock
                | Self::Finish(_)
                | Self::Crash
                | Self::TakeBack(_)
                | Self::DeleteOne(_)
                | Self::Flush
                | Self::Outage(_)
                | Self::Drought(_)
        )
    }
}

/// What will happen, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    all: BTreeMap<(Timestamp, u64), Happening>,
    number: u64,
    busy: usize,
    cycle: Option<(Timestamp, u64)>,
}

impl Queue {
    /// Puts something in.
    pub(crate) fn put(&mut self, at: Timestamp, happening: Happening) {
        self.number += 1;
        self.busy += usize::from(!happening.background());
        self.all.insert((at, self.number), happening);
    }

    /// Has kube-scheduler go through its queue at `at`, or earlier if it will anyway.
    pub(crate) fn cycle_at(&mut self, at: Timestamp) {
        match self.cycle {
            Some((planned, _)) if planned <= at => return,
            Some(planned) => {
                self.all.remove(&planned);
                self.busy -= 1;
            }
            None => {}
        }
        self.put(at, Happening::Cycle);
        self.cycle = Some((at, self.number));
    }

    /// When the next thing happens.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.all.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next thing out that is due at `now`.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Happening> {
        let entry = self.all.first_entry().filter(|entry| entry.key().0 <= now)?;
        let (key, happening) = entry.remove_entry();
        self.busy -= usize::from(!happening.background());
        if self.cycle == Some(key) {
            self.cycle = None;
        }
        Some(happening)
    }

    /// Whether anything is under way.
    pub(crate) const fn busy(&self) -> bool {
        self.busy > 0
    }
}
