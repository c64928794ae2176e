//! A small dense simplex for covering programs: min c·x with A x >= b, x >= 0 and c >= 0.
//!
//! It starts from the surplus variables, which price everything at nothing and are therefore never
//! too dear: the dual simplex takes it from there. Columns may be added and the right-hand side
//! changed at any time; the last basis is the next start.

/// Below this a number counts as zero.
const TINY: f64 = 1e-9;
/// A pivot smaller than this is not trusted.
const PIVOT: f64 = 1e-7;
/// Pivots after which the inverse is computed afresh.
const REFRESH: usize = 100;

/// A covering program and its current basis. Variable `i < rows` is the surplus of row `i`,
/// `rows + j` is column `j`.
#[derive(Debug, Clone)]
pub(super) struct Simplex {
    rows: usize,
    rhs: Vec<f64>,
    cost: Vec<f64>,
    start: Vec<usize>,
    entries: Vec<(u32, f64)>,
    basis: Vec<usize>,
    basic: Vec<bool>,
    inverse: Vec<f64>,
    x: Vec<f64>,
    duals: Vec<f64>,
    age: usize,
    /// Elementary operations done so far.
    pub work: u64,
}

impl Simplex {
    /// A program with these right-hand sides and no column.
    pub fn new(rhs: Vec<f64>) -> Self {
        let rows = rhs.len();
        let mut lp = Self {
            rows,
            rhs,
            cost: Vec::new(),
            start: vec![0],
            entries: Vec::new(),
            basis: Vec::new(),
            basic: vec![false; rows],
            inverse: Vec::new(),
            x: Vec::new(),
            duals: Vec::new(),
            age: 0,
            work: 0,
        };
        lp.restart();
        lp
    }

    /// Adds a column; rows without an entry are zero.
    pub fn add(&mut self, cost: f64, entries: &[(u32, f64)]) {
        self.cost.push(cost.max(0.0));
        self.entries.extend_from_slice(entries);
        self.start.push(self.entries.len());
        self.basic.push(false);
    }

    /// Changes the right-hand side.
    pub fn set_rhs(&mut self, rhs: &[f64]) {
        self.rhs.copy_from_slice(rhs);
        self.values();
    }

    /// The price of each row; not negative.
    pub fn duals(&self) -> Vec<f64> {
        self.duals.iter().map(|y| y.max(0.0)).collect()
    }

    /// The columns that are not zero, with their values; ascending by column.
    pub fn solution(&self) -> Vec<(usize, f64)> {
        let basics = self.basis.iter().zip(&self.x);
        let mut out: Vec<(usize, f64)> = basics.filter(|(v, x)| **v >= self.rows && **x > TINY).map(|(v, x)| (v - self.rows, *x)).collect();
        out.sort_unstable_by_key(|(j, _)| *j);
        out
    }

    /// The value of the current basis.
    #[cfg(test)]
    pub fn objective(&self) -> f64 {
        self.basis.iter().zip(&self.x).map(|(v, x)| self.price(*v) * x).sum()
    }

    /// Optimises with at most `pivots` pivots. `false` when the end was not reached: no column
    /// covers some row, or the pivots were used up.
    pub fn solve(&mut self, pivots: usize) -> bool {
        let mut left = pivots;
        for attempt in 0..3 {
            if attempt > 0 {
                self.restart();
            }
            if !self.covered() {
                if !self.dual_feasible() {
                    self.restart();
                }
                if !self.dual_phase(&mut left) {
                    continue;
                }
            }
            if self.primal_phase(&mut left) && self.covered() {
                return true;
            }
        }
        false
    }

    /// Whether the basis keeps to the right-hand side.
    fn covered(&self) -> bool {
        self.x.iter().all(|x| *x >= -1e-7)
    }

    /// Back to the basis of all surplus variables.
    fn restart(&mut self) {
        self.basis = (0..self.rows).collect();
        self.basic.iter_mut().enumerate().for_each(|(v, b)| *b = v < self.rows);
        self.inverse = vec![0.0; self.rows * self.rows];
        for i in 0..self.rows {
            self.inverse[i * self.rows + i] = -1.0;
        }
        self.age = 0;
        self.values();
    }

    fn column(&self, j: usize) -> &[(u32, f64)] {
        &self.entries[self.start[j]..self.start[j + 1]]
    }

    fn price(&self, v: usize) -> f64 {
        if v < self.rows { 0.0 } else { self.cost[v - self.rows] }
    }

    /// The product of a row vector with the column of variable `v`.
    fn dot(&self, row: &[f64], v: usize) -> f64 {
        if v < self.rows { -row[v] } else { self.column(v - self.rows).iter().map(|(i, a)| row[*i as usize] * a).sum() }
    }

    fn reduced(&self, v: usize) -> f64 {
        self.price(v) - self.dot(&self.duals, v)
    }

    fn dual_feasible(&self) -> bool {
        (0..self.basic.len()).all(|v| self.basic[v] || self.reduced(v) >= -1e-7)
    }

    /// Values and duals of the basis, from its inverse.
    fn values(&mut self) {
        let m = self.rows;
        self.x = (0..m).map(|i| self.inverse[i * m..(i + 1) * m].iter().zip(&self.rhs).map(|(a, b)| a * b).sum()).collect();
        self.duals = vec![0.0; m];
        for i in 0..m {
            let price = self.price(self.basis[i]);
            if price != 0.0 {
                for (y, a) in self.duals.iter_mut().zip(&self.inverse[i * m..(i + 1) * m]) {
                    *y += price * a;
                }
            }
        }
        self.work += (2 * m * m) as u64;
    }

    /// The inverse applied to the column of variable `v`.
    fn direction(&mut self, v: usize) -> Vec<f64> {
        let m = self.rows;
        self.work += (m * 4) as u64;
        (0..m).map(|i| self.dot(&self.inverse[i * m..(i + 1) * m], v)).collect()
    }

    /// Until no basic value is negative. Keeps all reduced costs at zero or above.
    fn dual_phase(&mut self, left: &mut usize) -> bool {
        let m = self.rows;
        let mut flat = 0;
        loop {
            let careful = flat > 2 * m + 20;
            let Some(out) = self.leaving(careful) else { return true };
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let row = self.inverse[out * m..(out + 1) * m].to_vec();
            self.work += self.entries.len() as u64;
            let mut best: Option<(f64, f64, usize)> = None;
            for v in (0..self.basic.len()).filter(|v| !self.basic[*v]) {
                let a = self.dot(&row, v);
                if a < -PIVOT {
                    let ratio = self.reduced(v).max(0.0) / -a;
                    let better = best.is_none_or(|(r, b, _)| ratio < r - TINY || (!careful && ratio < r + TINY && -a > b));
                    if better {
                        best = Some((ratio, -a, v));
                    }
                }
            }
            let Some((ratio, _, enter)) = best else { return false };
            flat = if ratio > TINY { 0 } else { flat + 1 };
            let w = self.direction(enter);
            if !self.pivot(out, enter, &w) {
                return false;
            }
        }
    }

    /// The row with the most negative value; when careful, the negative one of the lowest variable.
    fn leaving(&self, careful: bool) -> Option<usize> {
        let negative = (0..self.rows).filter(|&i| self.x[i] < -1e-8);
        if careful { negative.min_by_key(|&i| self.basis[i]) } else { negative.min_by(|&a, &b| self.x[a].total_cmp(&self.x[b])) }
    }

    /// Until no column is worth entering. Keeps all basic values at zero or above.
    fn primal_phase(&mut self, left: &mut usize) -> bool {
        let mut flat = 0;
        loop {
            let careful = flat > 2 * self.rows + 20;
            self.work += self.entries.len() as u64;
            let Some(enter) = self.entering(careful) else { return true };
            if *left == 0 {
                return false;
            }
            *left -= 1;
            let w = self.direction(enter);
            let mut best: Option<(f64, usize)> = None;
            for (i, a) in w.iter().enumerate().filter(|(_, a)| **a > PIVOT) {
                let ratio = self.x[i].max(0.0) / a;
                let tie = |b: usize| if careful { self.basis[i] < self.basis[b] } else { *a > w[b] };
                if best.is_none_or(|(r, b)| ratio < r - TINY || (ratio < r + TINY && tie(b))) {
                    best = Some((ratio, i));
                }
            }
            let Some((ratio, out)) = best else { return false };
            flat = if ratio > TINY { 0 } else { flat + 1 };
            if !self.pivot(out, enter, &w) {
                return false;
            }
        }
    }

    /// The variable with the lowest reduced cost; when careful, the first below zero.
    fn entering(&self, careful: bool) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for v in (0..self.basic.len()).filter(|v| !self.basic[*v]) {
            let d = self.reduced(v);
            if d < best.map_or(-1e-8, |(b, _)| b) {
                best = Some((d, v));
                if careful {
                    break;
                }
            }
        }
        best.map(|(_, v)| v)
    }

    /// Variable `enter` takes the place of the basic variable of row `out`.
    fn pivot(&mut self, out: usize, enter: usize, w: &[f64]) -> bool {
        let m = self.rows;
        self.basic[self.basis[out]] = false;
        self.basic[enter] = true;
        self.basis[out] = enter;
        self.age += 1;
        if self.age >= REFRESH || (w[out] < PIVOT && w[out] > -PIVOT) {
            return self.refresh();
        }
        let step = self.reduced(enter) / w[out];
        let theta = self.x[out] / w[out];
        let scaled: Vec<f64> = self.inverse[out * m..(out + 1) * m].iter().map(|a| a / w[out]).collect();
        for (y, a) in self.duals.iter_mut().zip(&scaled) {
            *y += step * a * w[out];
        }
        for (i, factor) in w.iter().enumerate() {
            if i != out && *factor != 0.0 {
                self.x[i] -= theta * factor;
                for (a, s) in self.inverse[i * m..(i + 1) * m].iter_mut().zip(&scaled) {
                    *a -= factor * s;
                }
            }
        }
        self.x[out] = theta;
        self.inverse[out * m..(out + 1) * m].copy_from_slice(&scaled);
        self.work += (m * m) as u64;
        true
    }

    /// Computes the inverse of the basis afresh (Gauss-Jordan with row pivoting).
    fn refresh(&mut self) -> bool {
        let m = self.rows;
        let mut matrix = vec![0.0; m * m];
        for (at, v) in self.basis.iter().enumerate() {
            if *v < m {
                matrix[v * m + at] = -1.0;
            } else {
                for (i, a) in self.column(v - m) {
                    matrix[*i as usize * m + at] = *a;
                }
            }
        }
        let Some(inverse) = invert(matrix, m) else { return false };
        self.work += (m * m * m / 2) as u64;
        self.inverse = inverse;
        self.age = 0;
        self.values();
        true
    }
}

/// The inverse of a dense matrix; `None` when it has none.
fn invert(mut a: Vec<f64>, m: usize) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; m * m];
    for i in 0..m {
        inverse[i * m + i] = 1.0;
    }
    for c in 0..m {
        let lead = (c..m).max_by(|&p, &q| a[p * m + c].abs().total_cmp(&a[q * m + c].abs()))?;
        if a[lead * m + c].abs() < 1e-11 {
            return None;
        }
        for i in 0..m {
            a.swap(c * m + i, lead * m + i);
            inverse.swap(c * m + i, lead * m + i);
        }
        let pivot = a[c * m + c];
        let row: Vec<f64> = a[c * m..(c + 1) * m].iter().map(|v| v / pivot).collect();
        let mate: Vec<f64> = inverse[c * m..(c + 1) * m].iter().map(|v| v / pivot).collect();
        for i in (0..m).filter(|i| *i != c) {
            let factor = a[i * m + c];
            if factor != 0.0 {
                a[i * m..(i + 1) * m].iter_mut().zip(&row).for_each(|(v, r)| *v -= factor * r);
                inverse[i * m..(i + 1) * m].iter_mut().zip(&mate).for_each(|(v, r)| *v -= factor * r);
            }
        }
        a[c * m..(c + 1) * m].copy_from_slice(&row);
        inverse[c * m..(c + 1) * m].copy_from_slice(&mate);
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(rhs: &[f64], columns: &[(f64, &[f64])]) -> Simplex {
        let mut lp = Simplex::new(rhs.to_vec());
        for (cost, column) in columns {
            let entries: Vec<(u32, f64)> = column.iter().enumerate().map(|(i, a)| (u32::try_from(i).unwrap(), *a)).collect();
            lp.add(*cost, &entries);
        }
        lp
    }

    #[test]
    fn covers_at_least_cost_and_prices_the_rows() {
        let mut lp = program(&[4.0, 6.0], &[(3.0, &[1.0, 2.0]), (2.0, &[2.0, 1.0])]);
        assert!(lp.solve(100));
        // x = (8/3, 2/3): 3·8/3 + 2·2/3 = 28/3; duals (1/3, 4/3).
        assert!((lp.objective() - 28.0 / 3.0).abs() < 1e-9);
        let duals = lp.duals();
        assert!((duals[0] - 1.0 / 3.0).abs() < 1e-9 && (duals[1] - 4.0 / 3.0).abs() < 1e-9, "{duals:?}");
    }

    #[test]
    fn goes_on_from_the_last_basis_with_new_columns_and_sides() {
        let mut lp = program(&[4.0, 6.0], &[(3.0, &[1.0, 0.0]), (2.0, &[0.0, 1.0])]);
        assert!(lp.solve(100));
        assert!((lp.objective() - 24.0).abs() < 1e-9);
        lp.add(3.5, &[(0, 1.0), (1, 1.0)]);
        assert!(lp.solve(100));
        assert!((lp.objective() - 18.0).abs() < 1e-9, "{}", lp.objective());
        lp.set_rhs(&[1.0, 0.0]);
        assert!(lp.solve(100));
        assert!((lp.objective() - 3.0).abs() < 1e-9);
    }

    proptest::proptest! {
        #[test]
        fn ends_with_a_feasible_solution_and_duals_of_the_same_value(
            rhs in proptest::collection::vec(0u8..5, 1..12),
            columns in proptest::collection::vec((1u8..9, proptest::collection::vec(0u8..4, 12)), 1..40),
        ) {
            let mut lp = Simplex::new(rhs.iter().map(|b| f64::from(*b)).collect());
            let mut dense: Vec<(f64, Vec<f64>)> = Vec::new();
            for (cost, column) in &columns {
                dense.push((f64::from(*cost), column[..rhs.len()].iter().map(|a| f64::from(*a)).collect()));
            }
            // Half of the columns come later, when the first half is solved already.
            let half = dense.len() / 2;
            let mut solved = false;
            for (at, (cost, column)) in dense.iter().enumerate() {
                let entries: Vec<(u32, f64)> = (0u32..).zip(column.iter().copied()).filter(|(_, a)| *a > 0.0).collect();
                lp.add(*cost, &entries);
                if at == half || at + 1 == dense.len() {
                    solved = lp.solve(2000);
                }
            }
            let coverable = (0..rhs.len()).all(|i| rhs[i] == 0 || dense.iter().any(|(_, column)| column[i] > 0.0));
            proptest::prop_assert_eq!(solved, coverable);
            if solved {
                let (x, y) = (lp.solution(), lp.duals());
                for (i, b) in rhs.iter().enumerate() {
                    let covered: f64 = x.iter().map(|(j, v)| dense[*j].1[i] * v).sum();
                    proptest::prop_assert!(covered >= f64::from(*b) - 1e-6);
                }
                for (cost, column) in &dense {
                    proptest::prop_assert!(column.iter().zip(&y).map(|(a, y)| a * y).sum::<f64>() <= cost + 1e-6);
                }
                let worth: f64 = rhs.iter().zip(&y).map(|(b, y)| f64::from(*b) * y).sum();
                proptest::prop_assert!((worth - lp.objective()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn says_when_a_row_cannot_be_covered() {
        assert!(!program(&[1.0, 1.0], &[(1.0, &[1.0, 0.0])]).solve(100));
    }
}
