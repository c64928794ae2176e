//! InterPodAffinity as a score: what a pod would rather be near or away from, and what those there think of it.
//! Source: <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#an-example-of-a-pod-that-uses-pod-affinity>.

use super::counts::Counts;
use super::crowds::Wish;
use super::identity::Identity;
use super::neighbours::Books;
use super::score::MOST;

/// What required affinity of a pod that is there counts for: the default `hardPodAffinityWeight`.
const REQUIRED: i64 = 1;

/// The scores of one search.
#[derive(Debug, Clone, Default)]
pub(super) struct AffinityScores {
    scores: Vec<i64>,
    /// Sums of weights by domain, for each key.
    weights: Vec<(u32, Vec<i64>)>,
}

impl AffinityScores {
    /// The score of the `at`-th feasible node.
    pub fn at(&self, at: usize) -> i64 {
        self.scores.get(at).copied().unwrap_or(0)
    }

    /// Scores the feasible nodes.
    pub fn measure(&mut self, pod: &Identity, books: &Books<'_>, feasible: &[u32]) {
        self.scores.clear();
        self.weights.clear();
        for (audience, key, weight) in &books.companies.get(pod.company).rather {
            self.add(*key, books.crowds.there(*audience), *weight, books);
        }
        for wished in books.crowds.about(pod) {
            match wished.wish {
                Wish::Away => {}
                Wish::Near => self.add(wished.key, &wished.owners, REQUIRED, books),
                Wish::Rather(weight) => self.add(wished.key, &wished.owners, weight, books),
            }
        }
        if self.weights.is_empty() {
            return;
        }
        let of_node = |slot: &u32| {
            let of_key = |(key, weights): &(u32, Vec<i64>)| books.nodes.topologies.domain(*key, *slot).map_or(0, |at| weights[at]);
            self.weights.iter().map(of_key).sum::<i64>()
        };
        self.scores = feasible.iter().map(of_node).collect();
        let (least, most) = self.scores.iter().fold((i64::MAX, i64::MIN), |(least, most), sum| (least.min(*sum), most.max(*sum)));
        self.scores.iter_mut().for_each(|score| *score = normalized(*score, least, most));
    }

    fn add(&mut self, key: u32, there: &Counts, weight: i64, books: &Books<'_>) {
        if there.is_empty() {
            return;
        }
        let at = self.weights.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.weights.push((key, vec![0; books.nodes.topologies.size(key)]));
            self.weights.len() - 1
        });
        for (slot, pods) in there.iter() {
            if let Some(domain) = books.nodes.topologies.domain(key, slot) {
                self.weights[at].1[domain] += weight * i64::from(pods);
            }
        }
    }
}

/// Between the least and the most of all nodes, in hundredths rounded down; all the same is 0.
fn normalized(sum: i64, least: i64, most: i64) -> i64 {
    if most == least { 0 } else { (MOST as f64 * ((sum - least) as f64 / (most - least) as f64)) as i64 }
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn sums_are_measured_between_the_extremes() {
        for (sum, least, most, score) in [(5, 5, 5, 0), (0, 0, 10, 0), (10, 0, 10, 100), (1, 0, 3, 33), (-2, -5, 1, 50), (-5, -5, 100, 0)] {
            assert_eq!(normalized(sum, least, most), score, "{sum} of {least} to {most}");
        }
    }
}
