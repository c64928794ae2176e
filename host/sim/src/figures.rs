//! What a run comes to, in figures that can be laid beside those of another run.

use serde::Serialize;
use whittle_model::{Duration, Micros, Settings, Timestamp};

use crate::simulation::Simulation;

/// The figures of a run. A contract: names and units stay. Money is micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// All instances over the whole run.
    pub total_micros: i64,
    /// All instances at its end, an hour.
    pub hourly_micros: i64,
    /// Seconds that instances were paid for.
    pub node_seconds: i64,
    /// The most instances at a time.
    pub most_nodes: i64,
    /// Instances at its end.
    pub nodes: i64,
    /// Instances bought.
    pub launches: i64,
    /// Pods that were evicted or deleted to free a node; those of DaemonSets do not count.
    pub evictions: i64,
    /// Seconds that pods waited for a node; those of DaemonSets do not count.
    pub pending_pod_seconds: i64,
}

/// What was paid for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Seconds of the story.
    pub at: i64,
    /// All instances, an hour.
    pub hourly_micros: i64,
    /// How many they are.
    pub nodes: i64,
}

/// Settings under which the engine is a model of Karpenter: its greedy packing, pods left to kube-scheduler, one move
/// after the other, none of one node for several, and no rest after a failure.
#[must_use]
pub fn karpenter(ours: &Settings) -> Settings {
    let mut settings = Settings { packing: whittle_model::Packing::Greedy, nomination: whittle_model::Nomination::Off, ..ours.clone() };
    settings.disruption.reshape = false;
    settings.disruption.one_by_one = true;
    settings.disruption.soak = Duration(0);
    settings
}

impl Simulation {
    /// The figures so far.
    pub fn figures(&mut self) -> Figures {
        self.reality.accrue();
        let ec2 = &self.reality.ec2;
        let mut figures = Figures {
            total_micros: ec2.total().0,
            nodes: whole(ec2.running().count()),
            launches: whole(ec2.instances.iter().filter(|i| !i.given).count()),
            evictions: i64::try_from(self.reality.toll.evictions).unwrap_or(i64::MAX),
            pending_pod_seconds: self.reality.toll.waited(self.reality.now) / 1000,
            hourly_micros: ec2.running().map(|i| self.reality.price(&i.node_class, &i.offering)).sum::<Micros>().0,
            ..Figures::default()
        };
        figures.most_nodes = ec2.course().map(|(_, rate)| whole(rate.instances)).max().unwrap_or(0).max(figures.nodes);
        let ends = ec2.course().skip(1).map(|(at, _)| at).chain([ec2.billed_to()]);
        let spans = ec2.course().zip(ends).map(|((from, rate), to)| whole(rate.instances) * to.since(from).0);
        figures.node_seconds = spans.sum::<i64>() / 1000;
        figures
    }

    /// What was paid for at `count` times, one span of `every` after the other.
    pub fn samples(&mut self, every: Duration, count: i64) -> Vec<Sample> {
        self.reality.accrue();
        let course: Vec<_> = self.reality.ec2.course().collect();
        let at = |nth: i64| {
            let time = Timestamp(every.0 * nth);
            let rate = course.iter().take_while(|(from, _)| *from < time).last().map(|(_, rate)| *rate).unwrap_or_default();
            Sample { at: time.0 / 1000, hourly_micros: rate.hourly.0, nodes: whole(rate.instances) }
        };
        (1..=count).map(at).collect()
    }
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
