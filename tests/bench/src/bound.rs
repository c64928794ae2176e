//! A lower bound on cost that shares no code with the engine's: the aggregate linear program. What
//! all pods need together, bought at the best price per amount, in fractions of nodes. No plan for
//! pods that may run on any of the types costs less.

use whittle_model::resources::{CPU, MEMORY, PODS};
use whittle_model::{Pod, Resources};

use crate::reference::Reference;

const RESOURCES: [&str; 3] = [CPU, MEMORY, PODS];

/// The bound in micro-dollars an hour for these pods on the types of the pool of this name, which
/// is the only one. Infinite when no type offers a resource that is asked for.
///
/// `min price·y` with `room·y >= total` and `y >= 0` has the dual `max total·u` with
/// `room·u <= price` and `u >= 0`: three unknowns, and feasible at zero, so that plain simplex needs
/// no first phase.
#[must_use]
pub fn aggregate(reference: &Reference<'_>, pool: &str, pods: &[Pod]) -> f64 {
    let amounts = |of: &Resources| RESOURCES.map(|name| as_float(of.get(name)));
    let mut total = [0.0; 3];
    for pod in pods {
        for (sum, amount) in total.iter_mut().zip(amounts(&pod.requests)) {
            *sum += amount;
        }
    }
    // In shares of the total, so that bytes and pods weigh alike.
    let shares = |room: &Resources| {
        let mut row = amounts(room);
        for (amount, total) in row.iter_mut().zip(total) {
            *amount = if total > 0.0 { *amount / total } else { 0.0 };
        }
        row
    };
    let rows = reference.market(pool).into_iter().map(|(room, price)| (shares(room), as_float(price.0))).collect();
    let gain = total.map(|t| if t > 0.0 { 1.0 } else { 0.0 });
    maximise(rows, gain)
}

/// A float; exact below 2^53, which no sum of a bench reaches by far.
#[must_use]
pub const fn as_float(amount: i64) -> f64 {
    amount as f64
}

/// The maximum of `gain·u` where `row·u <= limit` for every row and `u >= 0`, by the simplex method
/// on the dictionary, with Bland's rule (which never cycles).
fn maximise(rows: Vec<([f64; 3], f64)>, mut gain: [f64; 3]) -> f64 {
    const NOISE: f64 = 1e-12;
    let (mut coefficients, mut room): (Vec<[f64; 3]>, Vec<f64>) = rows.into_iter().unzip();
    let mut basic: Vec<usize> = (3..3 + room.len()).collect();
    let mut free = [0usize, 1, 2];
    let mut best = 0.0;
    loop {
        let entering = (0..3).filter(|column| gain[*column] > NOISE).min_by_key(|column| free[*column]);
        let Some(column) = entering else { return best };
        let ratio = |row: usize| room[row] / coefficients[row][column];
        let binding = (0..room.len()).filter(|row| coefficients[*row][column] > NOISE);
        let leaving = binding.min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(basic[*a].cmp(&basic[*b])));
        let Some(leaving) = leaving else { return f64::INFINITY };

        let pivot = coefficients[leaving][column];
        let mut row = coefficients[leaving].map(|c| c / pivot);
        row[column] = 1.0 / pivot;
        let limit = room[leaving] / pivot;
        for (other, left) in coefficients.iter_mut().zip(&mut room) {
            *left -= other[column] * limit;
            eliminate(other, column, &row);
        }
        best += gain[column] * limit;
        eliminate(&mut gain, column, &row);
        (coefficients[leaving], room[leaving]) = (row, limit);
        std::mem::swap(&mut basic[leaving], &mut free[column]);
    }
}

fn eliminate(other: &mut [f64; 3], column: usize, row: &[f64; 3]) {
    let factor = other[column];
    other[column] = 0.0;
    for (cell, pivot) in other.iter_mut().zip(row) {
        *cell -= factor * pivot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maxima_of_small_programs_are_known() {
        let rows = vec![([1.0, 0.0, 0.0], 4.0), ([0.0, 2.0, 0.0], 12.0), ([3.0, 2.0, 0.0], 18.0)];
        assert!((maximise(rows, [3.0, 5.0, 0.0]) - 36.0).abs() < 1e-9);
        let rows = vec![([1.0, 1.0, 1.0], 10.0), ([1.0, -1.0, 0.0], 2.0), ([0.0, 0.0, 1.0], 4.0)];
        assert!((maximise(rows, [1.0, 2.0, 3.0]) - (4.0 * 3.0 + 6.0 * 2.0)).abs() < 1e-9);
        assert!(maximise(vec![([1.0, 0.0, 0.0], 1.0)], [0.0, 1.0, 0.0]).is_infinite());
    }
}
