//! What happened, for people: one line for many small things of a kind that follow each other, so
//! that a story of hundreds of pods is read in one look. JSON output tells each thing by itself.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use whittle_model::{Duration, PodKey, Timestamp};
use whittle_sim::{Sale, TimelineEvent, for_whom};

use crate::out::{BAD, GOOD, HEAD, WARN, clock, count};

/// Things of a kind further apart than this are told apart.
const GAP: Duration = Duration::minutes(1);

/// Kinds of claims or purchases up to which each has a line of its own.
const APART: usize = 4;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When it was complete.
    pub at: Timestamp,
    /// How it looks.
    pub style: Style,
    /// What it says.
    pub text: String,
}

/// Small things that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Created,
    SoldOut,
    Failed,
    Launched,
    Registered,
    Initialized,
    Nominated,
    Placed,
    Bound,
    Running,
    Succeeded,
    Gone,
    Removed,
}

#[derive(Debug)]
struct Group {
    kind: Kind,
    first: Timestamp,
    last: Timestamp,
    pods: BTreeSet<PodKey>,
    /// Workloads, nodes or claims.
    subjects: BTreeSet<String>,
    /// Purchases: how many of each.
    sales: BTreeMap<(Sale, i64), usize>,
    /// The only event in it.
    only: Option<TimelineEvent>,
    /// Why, and until when.
    detail: String,
}

/// Gathers events into lines.
#[derive(Debug, Default)]
pub struct Timeline {
    lines: Vec<Line>,
    open: Vec<Group>,
    claims: Vec<(Timestamp, TimelineEvent)>,
    /// Claims that came to nothing: their end is no news.
    failed: BTreeSet<String>,
    /// What is known to fit nowhere: told once.
    unplaced: BTreeSet<(String, usize, Option<String>)>,
}

impl Timeline {
    /// Takes one event in.
    pub fn take(&mut self, at: Timestamp, event: &TimelineEvent) {
        match event {
            // The plan and its claims tell the same, and why.
            TimelineEvent::PodsPending { .. } => {}
            TimelineEvent::PodsCreated { workload, pods } => self.join(at, Kind::Created, workload, pods, event),
            TimelineEvent::PodsBound { node, pods } => self.join(at, Kind::Bound, node, pods, event),
            TimelineEvent::PodsRunning { workload, pods } => self.join(at, Kind::Running, workload, pods, event),
            TimelineEvent::PodsSucceeded { workload, pods } => self.join(at, Kind::Succeeded, workload, pods, event),
            TimelineEvent::PodsGone { workload, pods } => self.join(at, Kind::Gone, workload, pods, event),
            TimelineEvent::Nominated { node, pods } => self.join(at, Kind::Nominated, node, pods, event),
            TimelineEvent::Placed { on, pods } => self.join(at, Kind::Placed, on, pods, event),
            TimelineEvent::Registered { nodes } => nodes.iter().for_each(|node| self.join(at, Kind::Registered, node, &[], event)),
            TimelineEvent::Initialized { nodes } => nodes.iter().for_each(|node| self.join(at, Kind::Initialized, node, &[], event)),
            TimelineEvent::Removed { claim, .. } if self.failed.contains(claim) => {}
            TimelineEvent::Removing { claim, .. } if self.failed.contains(claim) => {}
            // The failed launch tells it too.
            TimelineEvent::Removing { claim, reason, .. } if reason == "InsufficientCapacity" => {
                self.failed.insert(claim.clone());
            }
            TimelineEvent::Removed { claim, .. } => self.join(at, Kind::Removed, claim, &[], event),
            TimelineEvent::LaunchFailed { claims, why } => {
                self.failed.extend(claims.iter().cloned());
                claims.iter().for_each(|claim| self.join(at, Kind::Failed, claim, &[], event));
                self.detail(Kind::Failed, why);
            }
            TimelineEvent::SoldOut { offerings, until_ms } => {
                offerings.iter().for_each(|sale| self.join(at, Kind::SoldOut, &sale.to_string(), &[], event));
                self.detail(Kind::SoldOut, &clock(Timestamp(*until_ms)));
            }
            TimelineEvent::Unplaced { workload, pods, nearest, .. } => {
                if self.unplaced.insert((workload.clone(), pods.len(), nearest.clone())) {
                    self.tell(at, event);
                }
            }
            TimelineEvent::Launched { claims, offering, price } => {
                for claim in claims {
                    self.join(at, Kind::Launched, claim, &[], event);
                }
                if let Some(group) = self.open.iter_mut().find(|group| group.kind == Kind::Launched) {
                    *group.sales.entry((offering.clone(), price.0)).or_default() += claims.len();
                }
            }
            TimelineEvent::Claims { .. } => {
                if self.claims.is_empty() {
                    self.flush();
                }
                self.claims.push((at, event.clone()));
            }
            TimelineEvent::Story { .. }
            | TimelineEvent::Reached { .. }
            | TimelineEvent::Plan { .. }
            | TimelineEvent::Policy { .. }
            | TimelineEvent::PolicyFailed { .. }
            | TimelineEvent::Kept { .. }
            | TimelineEvent::Move { .. }
            | TimelineEvent::Removing { .. }
            | TimelineEvent::Held { .. }
            | TimelineEvent::OutOfTime { .. }
            | TimelineEvent::Inconsistent { .. }
            | TimelineEvent::CollectionStopped { .. }
            | TimelineEvent::Interrupted { .. }
            | TimelineEvent::Advised { .. }
            | TimelineEvent::InstanceLost { .. }
            | TimelineEvent::Crashed {}
            | TimelineEvent::Restarted {}
            | TimelineEvent::Objection { .. } => self.tell(at, event),
        }
    }

    fn tell(&mut self, at: Timestamp, event: &TimelineEvent) {
        self.flush();
        self.lines.push(Line { at, style: style(event), text: event.to_string() });
    }

    fn detail(&mut self, kind: Kind, detail: &str) {
        if let Some(group) = self.open.iter_mut().find(|group| group.kind == kind) {
            detail.clone_into(&mut group.detail);
        }
    }

    /// The story failed here.
    pub fn fail(&mut self, at: Timestamp, why: &str) {
        self.flush();
        self.lines.push(Line { at, style: BAD, text: why.to_owned() });
    }

    /// All lines, in order.
    #[must_use]
    pub fn lines(mut self) -> Vec<Line> {
        self.flush();
        self.lines
    }

    fn join(&mut self, at: Timestamp, kind: Kind, subject: &str, pods: &[PodKey], event: &TimelineEvent) {
        self.flush_claims();
        if self.open.iter().any(|group| at.since(group.last) > GAP) {
            self.flush();
        }
        let place = self.open.iter().position(|group| group.kind == kind).unwrap_or_else(|| {
            self.open.push(Group {
                kind,
                first: at,
                last: at,
                pods: BTreeSet::new(),
                subjects: BTreeSet::new(),
                sales: BTreeMap::new(),
                only: Some(event.clone()),
                detail: String::new(),
            });
            self.open.len() - 1
        });
        let group = &mut self.open[place];
        if group.only.as_ref() != Some(event) {
            group.only = None;
        }
        group.last = at;
        group.subjects.insert(subject.to_owned());
        group.pods.extend(pods.iter().cloned());
    }

    fn flush(&mut self) {
        self.flush_claims();
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|group| (group.last, group.first));
        for group in open {
            let style = match group.kind {
                Kind::Running => GOOD,
                Kind::SoldOut | Kind::Failed => WARN,
                Kind::Created
                | Kind::Launched
                | Kind::Registered
                | Kind::Initialized
                | Kind::Nominated
                | Kind::Placed
                | Kind::Bound
                | Kind::Succeeded
                | Kind::Gone
                | Kind::Removed => Style::new(),
            };
            self.lines.extend(group.texts().into_iter().map(|text| Line { at: group.last, style, text }));
        }
    }

    fn flush_claims(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        let Some((at, _)) = claims.first() else { return };
        let at = *at;
        if claims.len() <= APART {
            self.lines.extend(claims.iter().map(|(at, event)| Line { at: *at, style: Style::new(), text: of_claims(event) }));
            return;
        }
        let mut sales = BTreeMap::new();
        for (_, event) in claims {
            if let TimelineEvent::Claims { claims, choice, price, .. } = event {
                *sales.entry((choice, price.0)).or_default() += claims.len();
            }
        }
        self.lines.push(Line { at, style: Style::new(), text: format!("claims for {}", of_types(&sales)) });
    }
}

impl Group {
    /// Usually one line.
    fn texts(&self) -> Vec<String> {
        let since = if self.last.since(self.first) >= Duration::seconds(1) {
            format!(", the first at {}", clock(self.first))
        } else {
            String::new()
        };
        if self.kind == Kind::Launched {
            return self.purchases();
        }
        let pods = count(self.pods.len(), "pod");
        let of = |what: &str| match (self.subjects.len(), self.subjects.first()) {
            (1, Some(only)) => only.clone(),
            (many, _) => count(many, what),
        };
        if let Some(event) = &self.only {
            return vec![event.to_string()];
        }
        vec![match self.kind {
            Kind::Created => format!("{pods} of {} created{since}", of("workload")),
            Kind::Bound => format!("{pods} bound to {}{since}", of("node")),
            Kind::Running => format!("{pods} of {} running{since}", of("workload")),
            Kind::Succeeded => format!("{pods} of {} succeeded{since}", of("workload")),
            Kind::Gone => format!("{pods} of {} gone{since}", of("workload")),
            Kind::Nominated => format!("{pods} nominated to {}{since}", of("node")),
            Kind::Placed => format!("{pods} fit on {}{since}", of("node")),
            Kind::Registered => format!("{} registered{since}", count(self.subjects.len(), "node")),
            Kind::Initialized => format!("{} initialized{since}", count(self.subjects.len(), "node")),
            Kind::Removed => format!("{} removed{since}", count(self.subjects.len(), "node")),
            Kind::SoldOut => format!("{} sold out, left alone until {}", count(self.subjects.len(), "offering"), self.detail),
            Kind::Failed => format!("launch failed for {}: {}", count(self.subjects.len(), "claim"), self.detail),
            Kind::Launched => String::new(),
        }]
    }

    fn purchases(&self) -> Vec<String> {
        if self.sales.len() > APART {
            return vec![format!("launched {}", of_types(&self.sales))];
        }
        let line = |((sale, price), number): (&(Sale, i64), &usize)| {
            let price = whittle_model::Micros(*price);
            if *number == 1 { format!("launched {sale} {price}/h") } else { format!("launched {number} x {sale} {price}/h") }
        };
        self.sales.iter().map(line).collect()
    }
}

/// Claims that look the same, in few enough words for one line.
fn of_claims(event: &TimelineEvent) -> String {
    let TimelineEvent::Claims { claims, node_pool, pods, room, types, choice, price, list, rank } = event else { return event.to_string() };
    let (names, each) = match claims.as_slice() {
        [only] => (format!("claim {only}"), ""),
        many => (format!("{} claims", many.len()), " each"),
    };
    let (pods, types) = (for_whom(*pods, *room), count(*types, "type"));
    let seen = match (price == list, rank == price) {
        (true, true) => String::new(),
        (false, true) => format!(" (list {list})"),
        (true, false) => format!(" (rank {rank})"),
        (false, false) => format!(" (list {list}, rank {rank})"),
    };
    format!("{names} of nodepool {node_pool} for {pods}{each}: {types} from {choice} {price}/h{seen}")
}

/// `6 c7i.8xlarge, 2 r7i.4xlarge`: the most first.
fn of_types(sales: &BTreeMap<(Sale, i64), usize>) -> String {
    let mut by_type: BTreeMap<&str, usize> = BTreeMap::new();
    for ((sale, _), number) in sales {
        *by_type.entry(&sale.instance_type).or_default() += number;
    }
    let mut ranked: Vec<(&str, usize)> = by_type.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let parts: Vec<String> = ranked.into_iter().map(|(name, number)| format!("{number} {name}")).collect();
    parts.join(", ")
}

fn style(event: &TimelineEvent) -> Style {
    match event {
        TimelineEvent::Story { .. } => HEAD,
        TimelineEvent::Reached { .. } => GOOD,
        TimelineEvent::Unplaced { .. }
        | TimelineEvent::LaunchFailed { .. }
        | TimelineEvent::SoldOut { .. }
        | TimelineEvent::Interrupted { .. }
        | TimelineEvent::Advised { .. }
        | TimelineEvent::InstanceLost { .. }
        | TimelineEvent::Held { .. }
        | TimelineEvent::OutOfTime { .. }
        | TimelineEvent::Inconsistent { .. }
        | TimelineEvent::CollectionStopped { .. }
        | TimelineEvent::PolicyFailed { .. }
        | TimelineEvent::Crashed {} => WARN,
        TimelineEvent::Objection { .. } => BAD,
        TimelineEvent::PodsCreated { .. }
        | TimelineEvent::PodsPending { .. }
        | TimelineEvent::PodsBound { .. }
        | TimelineEvent::PodsRunning { .. }
        | TimelineEvent::PodsSucceeded { .. }
        | TimelineEvent::PodsGone { .. }
        | TimelineEvent::Plan { .. }
        | TimelineEvent::Policy { .. }
        | TimelineEvent::Claims { .. }
        | TimelineEvent::Placed { .. }
        | TimelineEvent::Launched { .. }
        | TimelineEvent::Registered { .. }
        | TimelineEvent::Initialized { .. }
        | TimelineEvent::Nominated { .. }
        | TimelineEvent::Kept { .. }
        | TimelineEvent::Move { .. }
        | TimelineEvent::Removing { .. }
        | TimelineEvent::Removed { .. }
        | TimelineEvent::Restarted {} => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(names: &[&str]) -> Vec<PodKey> {
        names.iter().map(|name| PodKey::new("default", name)).collect()
    }

    fn sale(instance_type: &str) -> Sale {
        Sale { instance_type: instance_type.to_owned(), zone: "us-east-1a".to_owned(), capacity_type: "spot" }
    }

    fn told(events: Vec<(i64, TimelineEvent)>) -> Vec<String> {
        let mut timeline = Timeline::default();
        for (seconds, event) in events {
            timeline.take(Timestamp(seconds * 1000), &event);
        }
        timeline.lines().iter().map(|line| format!("{} {}", clock(line.at), line.text)).collect()
    }

    #[test]
    fn small_things_that_follow_each_other_are_one_line() {
        let bound = |node: &str, names: &[&str]| TimelineEvent::PodsBound { node: node.to_owned(), pods: pods(names) };
        let lines = told(vec![(1, bound("n1", &["a", "b"])), (5, bound("n2", &["c"])), (90, bound("n3", &["d"]))]);
        assert_eq!(lines, ["0m05s 3 pods bound to 2 nodes, the first at 0m01s", "1m30s 1 pod bound to n3"]);
        // Two events that read alike are two.
        let running = |name: &str| TimelineEvent::PodsRunning { workload: "default/web".to_owned(), pods: pods(&[name]) };
        assert_eq!(told(vec![(1, running("a")), (1, running("b"))]), ["0m01s 2 pods of default/web running"]);
    }

    #[test]
    fn claims_and_purchases_of_many_kinds_are_counted_by_type() {
        let claims = |name: &str, kind: &str| TimelineEvent::Claims {
            claims: vec![name.to_owned()],
            node_pool: "p".to_owned(),
            pods: 1,
            room: 0,
            types: 1,
            choice: sale(kind),
            price: whittle_model::Micros(10_000),
            list: whittle_model::Micros(10_000),
            rank: whittle_model::Micros(10_000),
        };
        let few = told(vec![(1, claims("c1", "a.large"))]);
        assert_eq!(few, ["0m01s claim c1 of nodepool p for 1 pod: 1 type from a.large us-east-1a spot $0.0100/h"]);
        let many: Vec<_> = ["a", "b", "c", "d", "a"].iter().enumerate().map(|(n, kind)| (1, claims(&format!("c{n}"), kind))).collect();
        assert_eq!(told(many), ["0m01s claims for 2 a, 1 b, 1 c, 1 d"]);
        let launched = |count: usize, kind: &str| TimelineEvent::Launched {
            claims: (0..count).map(|n| format!("{kind}-{n}")).collect(),
            offering: sale(kind),
            price: whittle_model::Micros(10_000),
        };
        let lines = told(vec![(2, launched(2, "a")), (2, launched(1, "b"))]);
        assert_eq!(lines, ["0m02s launched 2 x a us-east-1a spot $0.0100/h", "0m02s launched b us-east-1a spot $0.0100/h"]);
    }

    #[test]
    fn what_fits_nowhere_and_what_failed_is_told_once() {
        let unplaced = |near: &str| TimelineEvent::Unplaced {
            workload: "default/web".to_owned(),
            pods: pods(&["a"]),
            reasons: vec!["pool p: full".to_owned()],
            nearest: Some(near.to_owned()),
        };
        assert_eq!(told(vec![(1, unplaced("x")), (2, unplaced("x")), (3, unplaced("y"))]).len(), 2);
        let claim = "c1".to_owned();
        let lines = told(vec![
            (1, TimelineEvent::Removing { claim: claim.clone(), node: String::new(), reason: "InsufficientCapacity".to_owned() }),
            (1, TimelineEvent::LaunchFailed { claims: vec![claim.clone()], why: "sold out".to_owned() }),
            (2, TimelineEvent::Removed { claim, node: String::new() }),
        ]);
        assert_eq!(lines, ["0m01s launch failed for claim c1: sold out"]);
    }
}
