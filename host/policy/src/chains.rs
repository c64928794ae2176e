//! The chains of a cluster behind the engine's port: which policies there are, which of them rest, and
//! what each did in a round. What must not enter: how a policy is loaded or run, and what is bought.

use std::collections::BTreeMap;
use std::sync::Arc;

use whittle_model::policy::{Hook, Judging, Pricing, RoundFacts, Wants, Words};
use whittle_model::scorer::{MoveVerdict, PolicyRecord, Scorer, ScorerFailure, Verdict};
use whittle_model::{Micros, Timestamp};

use crate::chain::{Chain, ChainError, Member, Mode, Named, Outcome, Round, Standing, Step, Veto, names};
use crate::rest::Rest;

/// Reasons of vetoes that a record names.
const REASONS: usize = 5;

/// A policy of the cluster and how it has been doing.
#[derive(Debug, Clone)]
struct Known {
    member: Member,
    rest: Rest,
}

/// A chain in the round under way.
struct Seated {
    chain: Chain,
    wants: Arc<Wants>,
    round: Option<Round>,
}

/// All policies of a cluster, asked chain by chain. Implements [`Scorer`].
#[derive(Default)]
pub struct Chains {
    policies: BTreeMap<String, Known>,
    required: String,
    /// Chains of the round under way, by the text that names them.
    seated: BTreeMap<String, Seated>,
    /// Policies that failed in the round under way.
    failed: BTreeMap<String, String>,
    records: BTreeMap<(String, String), PolicyRecord>,
    /// How many rows each chain's policies vetoed, by number of the reason.
    vetoes: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Reasons of the round, each with its policy, by number.
    reasons: Vec<(Arc<str>, Arc<str>)>,
    numbers: BTreeMap<(Arc<str>, Arc<str>), u32>,
    now: Timestamp,
}

impl Chains {
    /// No policies yet. Those named in `required`, divided by commas, come before every chain.
    #[must_use]
    pub fn new(required: &str) -> Self {
        Self { required: required.to_owned(), ..Self::default() }
    }

    /// Takes a policy in, or a new version of it, which starts with a clean slate.
    pub fn put(&mut self, name: &str, member: Member) {
        self.policies.insert(name.to_owned(), Known { member: Member { name: name.to_owned(), ..member }, rest: Rest::default() });
        self.seated.clear();
    }

    /// Forgets a policy.
    pub fn remove(&mut self, name: &str) {
        self.policies.remove(name);
        self.seated.clear();
    }

    /// Whether a policy of this name is known.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.policies.contains_key(name)
    }

    /// How each policy has been doing, by name: what makes two that are otherwise alike answer
    /// differently.
    pub fn rests(&self) -> impl Iterator<Item = (&str, Rest)> {
        self.policies.iter().map(|(name, known)| (name.as_str(), known.rest))
    }

    /// Takes up how a policy has been doing elsewhere.
    pub fn rest(&mut self, name: &str, rest: Rest) {
        if let Some(known) = self.policies.get_mut(name) {
            known.rest = rest;
            self.seated.clear();
        }
    }

    /// The members of a chain: what it names, in order; what does not exist counts as missing unless it
    /// is optional.
    fn members(&self, text: &str) -> Vec<Member> {
        names(&self.required, text).into_iter().filter_map(|named| self.member(&named)).collect()
    }

    fn member(&self, named: &Named) -> Option<Member> {
        let Some(known) = self.policies.get(&named.name) else {
            let why = "there is no policy of this name".to_owned();
            return (!named.optional).then(|| Member {
                name: named.name.clone(),
                standing: Standing::Missing { why },
                on_failure: crate::OnFailure::default(),
                mode: Mode::Enforce,
            });
        };
        let mut member = known.member.clone();
        if named.optional && matches!(member.standing, Standing::Missing { .. }) {
            return None;
        }
        if let Some(why) = self.failed.get(&named.name) {
            member.standing = Standing::Failed { why: why.clone() };
        } else if let Some(until) = known.rest.rests(self.now) {
            let seconds = until.since(self.now).as_seconds();
            member.standing =
                Standing::Failed { why: format!("it failed {} times in a row and rests for {seconds} s", known.rest.failures()) };
        }
        Some(member)
    }

    fn seat(&mut self, text: &str) -> &mut Seated {
        if !self.seated.contains_key(text) {
            let chain = Chain::new(self.members(text));
            let mut wants = chain.wants().clone();
            if chain.held(Hook::ScoreMoves).is_some() {
                // Moves are held back although nobody who can be asked scores them: they must be asked
                // about to be told so.
                wants.judging.get_or_insert_default();
            }
            let wants = Arc::new(wants);
            self.seated.insert(text.to_owned(), Seated { chain, wants, round: None });
        }
        self.seated.get_mut(text).expect("it was put there when absent")
    }

    /// A judge failed: it is left out of the rest of the round, and its owner's word decides whether the
    /// chain goes on.
    fn fail(&mut self, text: &str, hook: Hook, error: &ChainError) -> ScorerFailure {
        let why = error.failure.to_string();
        if let Some(known) = self.policies.get_mut(&error.policy) {
            known.rest.failed(self.now);
        }
        self.failed.insert(error.policy.clone(), why.clone());
        self.record(text, &error.policy).failure = Some(why.clone());
        self.seated.clear();
        let closed = self.seat(text).chain.held(hook).is_some();
        ScorerFailure { policy: error.policy.clone(), chain: text.to_owned(), why, closed }
    }

    fn held(text: &str, policy: &str, why: &str) -> ScorerFailure {
        ScorerFailure { policy: policy.to_owned(), chain: text.to_owned(), why: why.to_owned(), closed: true }
    }

    fn record(&mut self, chain: &str, policy: &str) -> &mut PolicyRecord {
        self.records.entry((chain.to_owned(), policy.to_owned())).or_insert_with(|| PolicyRecord {
            policy: policy.to_owned(),
            chain: chain.to_owned(),
            ..PolicyRecord::default()
        })
    }

    /// Takes the steps of a call into the records.
    fn note(&mut self, text: &str, rows: usize, steps: &[Step]) {
        for step in steps {
            let record = self.record(text, &step.policy);
            record.calls += 1;
            record.rows += count(rows);
            record.fuel += step.fuel;
            // The order of answers is part of the hash: FNV-1a over the hashes of the calls.
            record.answers = (record.answers ^ step.hash).wrapping_mul(0x0100_0000_01b3);
            record.ranked += count(step.ranked);
            record.priced += count(step.priced);
            if let Some(failure) = &step.failure {
                record.failure = Some(failure.to_string());
            }
        }
    }

    /// The number of a reason of a policy.
    fn reason_number(&mut self, veto: &Veto) -> u32 {
        let reason = (Arc::clone(&veto.policy), Arc::clone(&veto.reason));
        if let Some(known) = self.numbers.get(&reason) {
            return *known;
        }
        let number = u32::try_from(self.reasons.len()).unwrap_or(u32::MAX);
        self.reasons.push(reason.clone());
        self.numbers.insert(reason, number);
        number
    }

    /// Counts the vetoes of a call; the first of each row, by number of its reason.
    fn vetoed(&mut self, text: &str, rows: usize, vetoes: &[Veto]) -> Vec<Option<u32>> {
        let mut first = vec![None; rows];
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let mut last: Option<(&Veto, u32)> = None;
        for veto in vetoes {
            // Neighbours often have one text, which they share.
            let same = last.filter(|(known, _)| Arc::ptr_eq(&known.reason, &veto.reason) && Arc::ptr_eq(&known.policy, &veto.policy));
            let number = same.map_or_else(|| self.reason_number(veto), |(_, number)| number);
            last = Some((veto, number));
            *counts.entry(number).or_default() += 1;
            if let Some(row @ None) = first.get_mut(veto.row) {
                *row = Some(number);
            }
        }
        let of_chain = self.vetoes.entry(text.to_owned()).or_default();
        counts.into_iter().for_each(|(number, rows)| *of_chain.entry(number).or_default() += rows);
        first
    }

    /// The vetoes of a policy in a chain by their texts.
    fn vetoes_of(&self, (chain, policy): &(String, String)) -> BTreeMap<String, u64> {
        let all = self.vetoes.get(chain).into_iter().flatten();
        let own = all.filter_map(|(number, rows)| Some((self.reasons.get(*number as usize)?, *rows)));
        own.filter(|((by, _), _)| **by == **policy).map(|((_, reason), rows)| (reason.to_string(), rows)).collect()
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

/// The most frequent reasons, and how many rows the others have together: a reason that quotes values
/// of its row can have as many texts as there are rows.
fn shortened(vetoes: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut ranked: Vec<(String, u64)> = vetoes.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let others: u64 = ranked.iter().skip(REASONS).map(|(_, rows)| rows).sum();
    ranked.truncate(REASONS);
    if others > 0 {
        ranked.push(("for other reasons".to_owned(), others));
    }
    ranked
}

impl Scorer for Chains {
    fn chain(&mut self, chain: &str, now: Timestamp) -> Result<Option<Arc<Wants>>, ScorerFailure> {
        if now != self.now {
            self.now = now;
            self.seated.clear();
        }
        let seated = self.seat(chain);
        if let Some((policy, why)) = seated.chain.held(Hook::PriceCandidates) {
            return Err(Self::held(chain, policy, why));
        }
        Ok((!seated.chain.members().is_empty()).then(|| Arc::clone(&seated.wants)))
    }

    fn open(&mut self, chain: &str, words: &Words, facts: &RoundFacts) -> Result<(), ScorerFailure> {
        let opened = self.seat(chain).chain.open(words, facts);
        match opened {
            Ok(round) => {
                self.seat(chain).round = Some(round);
                Ok(())
            }
            Err(error) => Err(self.fail(chain, Hook::PriceCandidates, &error)),
        }
    }

    fn price(&mut self, chain: &str, words: &Words, tables: &Pricing) -> Result<Vec<Verdict>, ScorerFailure> {
        let Some(round) = self.seat(chain).round.as_mut() else {
            return Err(Self::held(chain, chain, "it was asked before its round was opened"));
        };
        let priced = match round.price(words, tables) {
            Ok(Outcome::Answered(priced)) => priced,
            Ok(Outcome::Held { policy, why }) => return Err(Self::held(chain, &policy, &why)),
            Err(error) => return Err(self.fail(chain, Hook::PriceCandidates, &error)),
        };
        self.note(chain, tables.candidates.rows, &priced.steps);
        let vetoed = self.vetoed(chain, tables.candidates.rows, &priced.vetoes);
        let rows = priced.ranks.iter().zip(&priced.costs).zip(vetoed);
        Ok(rows
            .map(|((rank, cost), veto)| match veto {
                Some(reason) => Verdict::Vetoed(reason),
                None => Verdict::Priced { rank: Micros(*rank), cost: Micros(*cost) },
            })
            .collect())
    }

    fn judge(&mut self, chain: &str, words: &Words, tables: &Judging) -> Result<Vec<MoveVerdict>, ScorerFailure> {
        let Some(round) = self.seat(chain).round.as_mut() else {
            return Err(Self::held(chain, chain, "it was asked before its round was opened"));
        };
        let scored = match round.score(words, tables) {
            Ok(Outcome::Answered(scored)) => scored,
            Ok(Outcome::Held { policy, why }) => return Err(Self::held(chain, &policy, &why)),
            Err(error) => return Err(self.fail(chain, Hook::ScoreMoves, &error)),
        };
        self.note(chain, tables.moves.rows, &scored.steps);
        let vetoed = self.vetoed(chain, tables.moves.rows, &scored.vetoes);
        let rows = scored.scores.iter().zip(vetoed);
        Ok(rows.map(|(score, veto)| veto.map_or(MoveVerdict::Score(*score), MoveVerdict::Vetoed)).collect())
    }

    fn reason(&self, number: u32) -> String {
        self.reasons.get(number as usize).map_or_else(String::new, |(policy, reason)| format!("{policy}: {reason}"))
    }

    fn close(&mut self) -> Vec<PolicyRecord> {
        for record in self.records.values().filter(|record| record.failure.is_none() && record.calls > 0) {
            if let Some(known) = self.policies.get_mut(&record.policy) {
                known.rest.answered();
            }
        }
        self.seated.clear();
        self.failed.clear();
        let mut records = std::mem::take(&mut self.records);
        for (key, record) in &mut records {
            record.vetoes = shortened(self.vetoes_of(key));
        }
        self.vetoes.clear();
        self.reasons.clear();
        self.numbers.clear();
        records.into_values().collect()
    }
}
