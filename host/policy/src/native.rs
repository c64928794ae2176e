//! Karpenter's consolidation policies as judges of the same port. What must not enter: which pool has
//! which policy; the chain that a pool gets says so.

use whittle_model::policy::{JudgingWants, MoveColumn, MoveKind, MovePoolColumn, ScoreColumn, Setup, Wants, Words};

use crate::{Failure, Judge, Sitting, View};

/// Balanced: a share of the pool's cost saved for each share of its disruption, in thousandths, must be
/// at least this. The constant k of Karpenter's policy is 2, its threshold 1/k.
const BALANCED_LEAST: i64 = 500;

/// The consolidation policy `WhenEmptyOrUnderutilized`: whatever saves money is done, most savings
/// first. Empty nodes go without being asked about, as they do under every policy.
#[derive(Debug, Clone)]
pub struct WhenEmptyOrUnderutilized(Setup);

/// The consolidation policy `Balanced`: savings must be worth the disruption, in every pool that a move
/// touches: (saved cost / pool cost) / (disruption cost / disruption cost of the pool) >= 1/2.
#[derive(Debug, Clone)]
pub struct Balanced(Setup);

fn setup(moves: Vec<MoveColumn>, pools: Vec<MovePoolColumn>, kinds: Vec<MoveKind>, reason: &str) -> Setup {
    let judging = JudgingWants { kinds: kinds.clone(), moves, pools, ..JudgingWants::default() };
    Setup {
        wants: Wants { judging: Some(judging), ..Wants::default() },
        scores: vec![ScoreColumn::Score],
        kinds,
        reasons: vec![reason.to_owned()],
        ..Setup::default()
    }
}

impl Default for WhenEmptyOrUnderutilized {
    fn default() -> Self {
        let kinds = vec![MoveKind::Underutilized];
        Self(setup(vec![MoveColumn::SavingsCostMicros], Vec::new(), kinds, "saves nothing"))
    }
}

impl Default for Balanced {
    fn default() -> Self {
        let pools = vec![
            MovePoolColumn::Move,
            MovePoolColumn::CostMicros,
            MovePoolColumn::DisruptionCost,
            MovePoolColumn::PoolCostMicros,
            MovePoolColumn::PoolDisruptionCost,
        ];
        let kinds = vec![MoveKind::Underutilized];
        Self(setup(vec![MoveColumn::SavingsListMicros], pools, kinds, "saves less of its pool's cost than half the share it disrupts"))
    }
}

impl Judge for WhenEmptyOrUnderutilized {
    fn name(&self) -> &'static str {
        "WhenEmptyOrUnderutilized"
    }

    fn setup(&self) -> &Setup {
        &self.0
    }

    fn open(&self, _words: &Words, _facts: &[i64]) -> Result<Box<dyn Sitting>, Failure> {
        Ok(Box::new(Native(|views: &[View<'_>; 6]| by_savings(views[0].columns[0]))))
    }
}

impl Judge for Balanced {
    fn name(&self) -> &'static str {
        "Balanced"
    }

    fn setup(&self) -> &Setup {
        &self.0
    }

    fn open(&self, _words: &Words, _facts: &[i64]) -> Result<Box<dyn Sitting>, Failure> {
        Ok(Box::new(Native(|views: &[View<'_>; 6]| balanced(views[0].columns[0], &views[3].columns))))
    }
}

/// A sitting that only scores.
struct Native<F>(F);

impl<F: Fn(&[View<'_>; 6]) -> Vec<i64>> Sitting for Native<F> {
    fn price(&mut self, _words: &Words, _views: &[View<'_>; 3]) -> Result<Vec<i64>, Failure> {
        Ok(Vec::new())
    }

    fn score(&mut self, _words: &Words, views: &[View<'_>; 6]) -> Result<Vec<i64>, Failure> {
        Ok((self.0)(views))
    }

    fn fuel(&self) -> u64 {
        0
    }
}

fn by_savings(savings: &[i64]) -> Vec<i64> {
    savings.iter().map(|saved| if *saved > 0 { *saved } else { -1 }).collect()
}

/// The lowest score over the pools of each move, in thousandths. Savings are split over the pools by
/// their share of the cost of what goes.
fn balanced(savings: &[i64], pools: &[&[i64]]) -> Vec<i64> {
    let [of_move, cost, disruption, pool_cost, pool_disruption] = pools else { return vec![-1; savings.len()] };
    let mut total = vec![0i128; savings.len()];
    let row = |at: usize| usize::try_from(of_move[at]).ok().filter(|row| *row < savings.len());
    for at in 0..of_move.len() {
        if let Some(row) = row(at) {
            total[row] += i128::from(cost[at].max(0));
        }
    }
    let mut lowest: Vec<Option<i64>> = vec![None; savings.len()];
    for at in 0..of_move.len() {
        let Some(row) = row(at) else { continue };
        let saved = i128::from(savings[row].max(0)) * i128::from(cost[at].max(0));
        let over = saved.saturating_mul(i128::from(pool_disruption[at].max(0))).saturating_mul(1000);
        let under = total[row].saturating_mul(i128::from(pool_cost[at].max(0))).saturating_mul(i128::from(disruption[at].max(0)));
        // Without disruption there is nothing to balance: any saving is worth it.
        let share = if under > 0 { over / under } else { i128::from(saved > 0) * i128::from(crate::answers::MOST) };
        let share = i64::try_from(share).unwrap_or(i64::MAX).min(crate::answers::MOST);
        lowest[row] = Some(lowest[row].map_or(share, |least| least.min(share)));
    }
    lowest.into_iter().map(|score| score.filter(|score| *score >= BALANCED_LEAST).unwrap_or(-1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_most_goes_first_and_what_saves_nothing_stays() {
        assert_eq!(by_savings(&[5, 0, 9, -3]), [5, -1, 9, -1]);
    }

    #[test]
    fn savings_are_weighed_against_disruption_in_every_pool() {
        // Moves 0 and 1 in one pool of cost 1000 and disruption 100; move 2 in two pools.
        let (of_move, cost) = (vec![0, 1, 2, 2], vec![100, 100, 100, 300]);
        let (disruption, pool_cost, pool_disruption) = (vec![10, 10, 10, 10], vec![1000, 1000, 1000, 3000], vec![100, 100, 100, 10]);
        let pools: [&[i64]; 5] = [&of_move, &cost, &disruption, &pool_cost, &pool_disruption];
        assert_eq!(balanced(&[50, 49, 400], &pools), [500, -1, -1]);
        assert_eq!(balanced(&[100, 0, 0], &pools), [1000, -1, -1]);
    }
}
