//! B7: what packing costs, over the lower bound and against the documented greedy: as planned, and
//! once more after the model of kube-scheduler has bound the pods.

use whittle_model::Settings;

use super::{BenchError, Line};
use crate::Input;
use crate::bound::{self, as_float};
use crate::filter::Filter;
use crate::fixtures::{self, MIXES};
use crate::markets::{self, Set};
use crate::measure::{Millis, Times, timed};
use crate::ours::{Ours, Planned};
use crate::reference::Reference;

const COUNTS: [usize; 3] = [100, 1000, 5000];
const ROUNDS: usize = 3;

/// Ratios of one instance.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    /// Planned cost over the bound that came with the plan.
    bound: f64,
    /// Planned cost over the aggregate bound computed here.
    aggregate: f64,
    /// Planned cost over the greedy's.
    greedy: f64,
    /// Cost once the pods are bound, over the bound.
    kept: f64,
}

/// B7: the six mixes on both sets of types, and their means.
///
/// # Errors
/// When a fixture or the catalogue cannot be read.
pub fn b7(filter: &Filter, line: Line<'_>) -> Result<(), BenchError> {
    for set in Set::ALL {
        let market = markets::real(set)?;
        for count in COUNTS {
            let mean = format!("B7/mean/{count}/{}", set.name());
            let mut scores = Vec::new();
            for mix in MIXES {
                let name = format!("B7/{mix}/{count}/{}", set.name());
                if filter.wants(&name) || filter.wants(&mean) {
                    let (score, text) = instance(&name, &market.with_pods(fixtures::mix(mix, count)?));
                    scores.push(score);
                    line(text);
                }
            }
            if filter.wants(&mean) {
                line(format!("{mean}: {}", told(average(&scores))));
            }
        }
    }
    Ok(())
}

fn instance(name: &str, input: &Input) -> (Score, String) {
    let settings = Settings::default();
    let runs: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let ours = Ours::new(input, &settings);
            timed(|| ours.plan())
        })
        .collect();
    let times = Times::new(runs.iter().map(|(time, _)| *time).collect());
    let planned = runs.first().map(|(_, plan)| Planned::from(plan)).unwrap_or_default();
    let kept = Ours::new(input, &settings).cost_when_bound(input, &settings);
    let reference = Reference::new(input);
    let outcome = reference.solve();
    let cost = as_float(planned.cost.0);
    let score = Score {
        bound: cost / as_float(planned.bound.0),
        aggregate: cost / bound::aggregate(&reference, markets::POOL, &input.pods),
        greedy: cost / as_float(planned.greedy.0),
        kept: as_float(kept.0) / as_float(planned.bound.0),
    };
    let wrong = if planned.greedy == outcome.cost() { "" } else { " DISAGREES with the reference on greedy's cost" };
    let text = format!(
        "{name}: {}; {} in {}, {} nodes, {} unplaced, greedy {} ({}){wrong}",
        told(score),
        planned.cost,
        Millis(times.median()),
        planned.nodes,
        planned.unplaced,
        outcome.cost(),
        times.spread(),
    );
    (score, text)
}

fn told(score: Score) -> String {
    let Score { bound, aggregate, greedy, kept } = score;
    format!("{bound:.4} of bound, {greedy:.4} of greedy, {kept:.4} of bound once pods are bound, {aggregate:.4} of the aggregate LP")
}

fn average(scores: &[Score]) -> Score {
    let over = |of: fn(&Score) -> f64| scores.iter().map(of).sum::<f64>() / as_float(i64::try_from(scores.len()).unwrap_or(1));
    Score { bound: over(|s| s.bound), aggregate: over(|s| s.aggregate), greedy: over(|s| s.greedy), kept: over(|s| s.kept) }
}
