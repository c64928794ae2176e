//! The arithmetic of the share. What must not enter: prices.

/// How much shall be on demand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Units that are on demand before any is spot.
    pub(crate) base: i64,
    /// Percent of the others.
    pub(crate) percent: i64,
    /// Percentage points of all units that it may be off.
    pub(crate) tolerance: i64,
}

/// How far out of tolerance the share is with a node of either kind, in hundredths of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds {
    spot: i64,
    on_demand: i64,
}

impl Kinds {
    pub(crate) const fn of(self, is_spot: bool) -> i64 {
        if is_spot { self.spot } else { self.on_demand }
    }

    pub(crate) fn least(self) -> i64 {
        self.spot.min(self.on_demand)
    }
}

impl Target {
    /// Units on demand that `total` units should have; a fraction is rounded up, in favour of on-demand,
    /// as an Auto Scaling group does.
    pub(crate) fn on_demand(self, total: i64) -> i64 {
        let above = (total - self.base).max(0);
        total.min(self.base) + (above * self.percent + 99) / 100
    }

    /// How far `on_demand` of `total` units is out of tolerance, in hundredths of a unit.
    pub(crate) fn excess(self, on_demand: i64, total: i64) -> i64 {
        let off = (on_demand - self.on_demand(total)).abs();
        (off * 100 - self.tolerance * total).max(0)
    }

    /// The same with a node of `units` more, of either kind.
    pub(crate) fn kinds(self, spot: i64, on_demand: i64, units: i64) -> Kinds {
        let total = spot + on_demand + units;
        Kinds { spot: self.excess(on_demand, total), on_demand: self.excess(on_demand + units, total) }
    }

    /// Whether both kinds are wanted in the long run.
    pub(crate) const fn is_mixed(self) -> bool {
        self.percent > 0 && self.percent < 100
    }

    /// The largest node, in units, with which a group of `total` can always be brought within tolerance:
    /// whatever is chosen, the share can be brought to half a node of it. At least one unit.
    pub(crate) fn largest(self, total: i64) -> i64 {
        (2 * self.tolerance * total / 100).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_target_is_what_an_auto_scaling_group_makes_of_it() {
        let target = |base, percent, total| Target { base, percent, tolerance: 0 }.on_demand(total);
        assert_eq!([target(0, 100, 7), target(0, 0, 7), target(0, 50, 7), target(2, 25, 1), target(2, 25, 10)], [7, 0, 4, 1, 4]);
    }

    #[test]
    fn the_tolerance_is_in_points_of_all_units() {
        let target = Target { base: 0, percent: 30, tolerance: 5 };
        assert_eq!([25, 35, 24, 37].map(|on_demand| target.excess(on_demand, 100)), [0, 0, 100, 200]);
    }

    proptest! {
        #[test]
        fn either_kind_differs_by_no_more_than_the_node(
            base in 0i64..100, percent in 0i64..=100, tolerance in 0i64..20,
            spot in 0i64..10_000, on_demand in 0i64..10_000, units in 1i64..1000,
        ) {
            let kinds = Target { base, percent, tolerance }.kinds(spot, on_demand, units);
            prop_assert!((kinds.spot - kinds.on_demand).abs() <= 100 * units);
        }
    }
}
