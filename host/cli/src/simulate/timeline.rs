//! What happened, for people: one line for many small things of a kind that follow each other, so
//! that a story of hundreds of pods is read in one look. JSON output tells each thing by itself.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use whittle_model::{Duration, PodKey, Timestamp};
use whittle_sim::{Sale, TimelineEvent};

use crate::out::{BAD, GOOD, HEAD, WARN, count};

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
    text: Option<String>,
}

/// Gathers events into lines.
#[derive(Debug, Default)]
pub struct Timeline {
    lines: Vec<Line>,
    open: Vec<Group>,
    claims: Vec<(Timestamp, TimelineEvent)>,
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
            TimelineEvent::Removed { claim, .. } => self.join(at, Kind::Removed, claim, &[], event),
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
            | TimelineEvent::Unplaced { .. }
            | TimelineEvent::LaunchFailed { .. }
            | TimelineEvent::SoldOut { .. }
            | TimelineEvent::Kept { .. }
            | TimelineEvent::Removing { .. }
            | TimelineEvent::Interrupted { .. }
            | TimelineEvent::InstanceLost { .. }
            | TimelineEvent::Crashed {}
            | TimelineEvent::Restarted {}
            | TimelineEvent::Objection { .. } => {
                self.flush();
                self.lines.push(Line { at, style: style(event), text: event.to_string() });
            }
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
            let text = Some(event.to_string());
            self.open.push(Group {
                kind,
                first: at,
                last: at,
                pods: BTreeSet::new(),
                subjects: BTreeSet::new(),
                sales: BTreeMap::new(),
                text,
            });
            self.open.len() - 1
        });
        let group = &mut self.open[place];
        if group.text.as_deref() != Some(event.to_string().as_str()) {
            group.text = None;
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
            let style = if group.kind == Kind::Running { GOOD } else { Style::new() };
            self.lines.extend(group.texts().into_iter().map(|text| Line { at: group.last, style, text }));
        }
    }

    fn flush_claims(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        let Some((at, _)) = claims.first() else { return };
        let at = *at;
        if claims.len() <= APART {
            self.lines.extend(claims.into_iter().map(|(at, event)| Line { at, style: Style::new(), text: event.to_string() }));
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
            format!(", the first at {}", crate::out::clock(self.first))
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
        if let Some(text) = &self.text {
            return vec![text.clone()];
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
        | TimelineEvent::InstanceLost { .. }
        | TimelineEvent::Crashed {} => WARN,
        TimelineEvent::Objection { .. } => BAD,
        TimelineEvent::PodsCreated { .. }
        | TimelineEvent::PodsPending { .. }
        | TimelineEvent::PodsBound { .. }
        | TimelineEvent::PodsRunning { .. }
        | TimelineEvent::PodsSucceeded { .. }
        | TimelineEvent::PodsGone { .. }
        | TimelineEvent::Plan { .. }
        | TimelineEvent::Claims { .. }
        | TimelineEvent::Placed { .. }
        | TimelineEvent::Launched { .. }
        | TimelineEvent::Registered { .. }
        | TimelineEvent::Initialized { .. }
        | TimelineEvent::Nominated { .. }
        | TimelineEvent::Kept { .. }
        | TimelineEvent::Removing { .. }
        | TimelineEvent::Removed { .. }
        | TimelineEvent::Restarted {} => Style::new(),
    }
}
