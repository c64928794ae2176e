//! Faults that strike the whole controller or all of the API at once: restarts of the API server, objects that cannot be
//! read, rounds that break off, days on which nothing can be bought.

use whittle_model::{CapacityType, Duration, Event, ObjectKind, PodKey, Timestamp};

use super::{Happening, Reality, SoldOut};

/// Kinds whose watches break when the API server goes away, as far as a story changes them.
const WATCHED: [&str; 4] = ["pods", "nodes", "claims", "budgets"];

/// The controller crashes in the middle of a round so often at most: it would get nothing done.
const MOST_BROKEN_ROUNDS: u8 = 3;

impl Reality {
    /// The API server goes away. All watches break, and begin anew when it is back.
    pub(super) fn outage(&mut self, end: Timestamp) {
        for kind in WATCHED {
            self.faults.broken.entry(kind).or_default();
            self.queue.put(end, Happening::Reread(kind));
        }
    }

    /// When the API server is there again, if it is away.
    pub(crate) fn back(&self) -> Option<Timestamp> {
        self.faults.away(self.now)
    }

    /// What a controller that starts gets to read.
    pub(crate) fn read_all(&mut self) -> Vec<Event> {
        self.lists().into_iter().map(|event| self.as_read(event)).collect()
    }

    /// The event, or that its object cannot be read for now.
    pub(super) fn as_read(&mut self, event: Event) -> Event {
        let (kind, name, node) = if let Event::Pod(pod) = &event {
            (ObjectKind::Pod, pod.key.to_string(), pod.node.clone())
        } else if let Event::Node(node) = &event {
            (ObjectKind::Node, node.name.clone(), None)
        } else if let Event::Claim(claim) = &event {
            (ObjectKind::NodeClaim, claim.name.clone(), None)
        } else {
            return event;
        };
        if !self.faults.strikes("unreadable", self.faults.weather.unreadable, self.now) {
            return event;
        }
        let span = self.faults.up_to("unreadable for", Duration::minutes(2));
        self.later(span, Happening::Readable(kind, name.clone()));
        Event::SetAside { kind, name, node, why: "it is written in a way that nobody knows".to_owned() }
    }

    /// An object that could not be read can be read, if it is still there.
    pub(super) fn readable(&mut self, kind: ObjectKind, name: &str) {
        let event = match kind {
            ObjectKind::Pod => {
                let key = name.split_once('/').map(|(namespace, name)| PodKey::new(namespace, name));
                key.and_then(|key| self.api.pods.get(&key)).cloned().map(|pod| Event::Pod(Box::new(pod)))
            }
            ObjectKind::Node => self.api.nodes.get(name).cloned().map(|node| Event::Node(Box::new(node))),
            ObjectKind::NodeClaim => self.api.claims.get(name).cloned().map(|claim| Event::Claim(Box::new(claim))),
            ObjectKind::NodePool
            | ObjectKind::NodeClass
            | ObjectKind::DaemonSet
            | ObjectKind::VolumeClaim
            | ObjectKind::Volume
            | ObjectKind::StorageClass
            | ObjectKind::PodDisruptionBudget
            | ObjectKind::NodeOverlay => None,
        };
        if let Some(event) = event {
            self.tell(event);
        }
    }

    /// Nothing at all can be bought until `end`.
    pub(super) fn drought(&mut self, end: Timestamp) {
        for capacity_type in [CapacityType::Spot, CapacityType::OnDemand] {
            let all = SoldOut { capacity_type, instance_type: None, zone: None, until: None };
            self.sell_out(all, Some(end.since(self.now)));
        }
    }

    /// After how many of its orders the controller crashes in this round, if it does.
    pub(crate) fn broken_off(&mut self, orders: usize) -> Option<usize> {
        let percent = self.faults.weather.broken_rounds;
        if orders == 0 || self.faults.broken_rounds >= MOST_BROKEN_ROUNDS || !self.faults.strikes("broken rounds", percent, self.now) {
            return None;
        }
        self.faults.broken_rounds += 1;
        let last = i64::try_from(orders).unwrap_or(i64::MAX) - 1;
        usize::try_from(self.faults.throw("broken rounds after").between(0, last)).ok()
    }
}
