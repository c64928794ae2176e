//! Claims whose domain is open, and pods that wait for those on them to be somewhere.

use super::super::amounts::Amounts;
use super::super::classes::Run;
use super::super::states::StateId;
use super::super::topology::tally::{Tally, there};
use super::{Bench, Packer};

impl Packer {
    /// Settles a claim whose domain is open on one, when pods that wait seek those on it.
    pub(super) fn settle(&mut self, bench: &mut Bench<'_, '_>, tally: &mut Tally, waiting: &[Run]) -> bool {
        let classes = bench.classes;
        for (run, level) in waiting.iter().flat_map(|run| classes[run.class].company.levels.iter().map(move |l| (run, l))) {
            let able = bench.topology.wishes(level, tally, &mut self.wishes);
            let sought = self.wishes.iter().find_map(|wish| wish.follow.map(|counter| (wish.key, counter))).filter(|_| able);
            let Some((key, counter)) = sought else { continue };
            for at in 0..self.field.claims.len() {
                let (state, here) = (self.field.claims[at].state, there(&self.field.claims[at].local, counter));
                let reach = bench.topology.reach(bench.tables, bench.states, state, key).clone();
                let asker = classes[run.class].asker;
                let mut domains = reach.iter().filter(|_| here > 0 && reach.len() > 1);
                let next = domains.find_map(|domain| {
                    let profile = bench.topology.pin(bench.states, key, &std::iter::once(domain).collect(), asker);
                    bench.states.merge(bench.tables, state, profile)
                });
                let Some(next) = next else { continue };
                let claim = &self.field.claims[at];
                let none = Amounts::from_elem(0, claim.used.len());
                if bench.states.get(next).has_room(&bench.tables.pools[claim.pool], &claim.used, &none) {
                    self.go_over(bench, tally, at, next);
                    return true;
                }
            }
        }
        false
    }

    /// A claim goes over to a narrower state with the pods it has.
    fn go_over(&mut self, bench: &mut Bench<'_, '_>, tally: &mut Tally, at: usize, next: StateId) {
        let claim = &mut self.field.claims[at];
        let before = std::mem::replace(&mut claim.state, next);
        let pods = (&mut claim.local, &[][..]);
        bench.topology.join(bench.tables, bench.states, tally, pods, 0, (before, next), &mut |_, _, _| ());
        self.relocate(bench, at, before);
    }
}
