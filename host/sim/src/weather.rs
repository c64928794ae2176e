//! What goes wrong between the world and the engine, and how often. Off unless asked for.

use whittle_model::Duration;

use crate::random::Seed;

/// The faults of a run. Shares are percent of the occasions; all end after `lasting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weather {
    /// How long it lasts, from the beginning.
    pub lasting: Duration,
    /// Orders of the engine that never arrive.
    pub lost_orders: u8,
    /// Orders that arrive up to 20 s late; those about one object keep their order.
    pub late_orders: u8,
    /// Orders that arrive twice, launches aside.
    pub doubled_orders: u8,
    /// Answers that never arrive although the deed was done.
    pub lost_answers: u8,
    /// Events that arrive up to 20 s late; those of one kind keep their order.
    pub late_events: u8,
    /// Events and answers that arrive twice.
    pub doubled_events: u8,
    /// Events after which a watch breaks for up to 30 s; then all objects of the kind are read again.
    pub broken_watches: u8,
    /// Launches refused because too many were asked for.
    pub throttled: u8,
    /// Launches that find everything sold out.
    pub no_capacity: u8,
    /// Times at which EC2 takes half of all spot instances back at once.
    pub interruptions: u8,
    /// Pods that need up to three minutes to stop, if their grace period leaves them so long.
    pub slow_stops: u8,
    /// Claims that somebody deletes, at times drawn from the seed.
    pub deletions: u8,
    /// Crashes of the controller, at times drawn from the seed.
    pub crashes: u8,
    /// Rounds in which the controller crashes between two of its orders; three times at most.
    pub broken_rounds: u8,
    /// Times at which the API server restarts, up to a minute each: all watches break, and orders to it are lost.
    pub api_restarts: u8,
    /// Instances whose kubelet joins up to 20 minutes late, or is ready up to five minutes late.
    pub slow_kubelets: u8,
    /// Pods, nodes and claims that cannot be read when they change, for up to two minutes.
    pub unreadable: u8,
    /// Hours for which nothing at all can be bought, from a time drawn from the seed on.
    pub drought: u8,
    /// Seconds that the clock of the API server is ahead of the controller's. It stays so when all else is over.
    pub skew: i8,
}

impl Weather {
    /// No faults.
    #[must_use]
    pub fn calm() -> Self {
        Self::default()
    }

    /// Faults drawn from a seed: each kind is absent in about half of all seeds.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let seed = Seed::new(seed).of("weather");
        let share = |name: &str, most: i64| {
            let branch = seed.of(name);
            if branch.percent(50) { 0 } else { u8::try_from(branch.nth(0).between(1, most)).unwrap_or(0) }
        };
        Self {
            lasting: Duration::minutes(10),
            lost_orders: share("lost orders", 20),
            late_orders: share("late orders", 30),
            doubled_orders: share("doubled orders", 30),
            lost_answers: share("lost answers", 30),
            late_events: share("late events", 20),
            doubled_events: share("doubled events", 40),
            broken_watches: share("broken watches", 5),
            throttled: share("throttled", 40),
            no_capacity: share("no capacity", 40),
            interruptions: share("interruptions", 3),
            slow_stops: share("slow stops", 40),
            deletions: share("deletions", 4),
            crashes: share("crashes", 4),
            broken_rounds: share("broken rounds", 4),
            api_restarts: share("api restarts", 3),
            slow_kubelets: share("slow kubelets", 30),
            unreadable: share("unreadable", 10),
            drought: if seed.of("drought").percent(10) { 24 } else { 0 },
            skew: i8::try_from(seed.of("skew by").between(-45, 45)).ok().filter(|_| seed.of("skew").percent(30)).unwrap_or(0),
        }
    }

    /// Whether nothing goes wrong.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        Self { lasting: Duration(0), ..*self } == Self::default()
    }
}

impl std::fmt::Display for Weather {
    /// `calm`, or the faults with their shares.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_calm() {
            return f.write_str("calm");
        }
        let shares = [
            ("lost orders", self.lost_orders),
            ("late orders", self.late_orders),
            ("doubled orders", self.doubled_orders),
            ("lost answers", self.lost_answers),
            ("late events", self.late_events),
            ("doubled events", self.doubled_events),
            ("broken watches", self.broken_watches),
            ("throttled launches", self.throttled),
            ("sold-out launches", self.no_capacity),
            ("slow stops", self.slow_stops),
            ("broken rounds", self.broken_rounds),
            ("slow kubelets", self.slow_kubelets),
            ("unreadable objects", self.unreadable),
        ];
        write!(f, "for {}:", self.lasting)?;
        for (name, share) in shares.into_iter().filter(|(_, share)| *share > 0) {
            write!(f, " {name} {share} %,")?;
        }
        let times = [
            ("mass interruptions", self.interruptions),
            ("deleted claims", self.deletions),
            ("API restarts", self.api_restarts),
            ("hours without capacity", self.drought),
        ];
        for (name, times) in times.into_iter().filter(|(_, times)| *times > 0) {
            write!(f, " {name} {times},")?;
        }
        if self.skew != 0 {
            write!(f, " clock skew {} s,", self.skew)?;
        }
        write!(f, " crashes {}", self.crashes)
    }
}
