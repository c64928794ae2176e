//! Rules compiled to what is compared row by row: for each word the set of rules it breaks, for numbers
//! their bounds. What must not enter: text, but the first time it occurs.

use whittle_sdk::Dollars;
use whittle_sdk::prelude::*;

use crate::config::{Bounds, Config, Lists, MOST_RULES, Match, Patterns, mebibytes};

/// Rules by number.
type Set = u64;

/// What one rule says about one text column.
#[derive(Debug)]
struct Said {
    rule: usize,
    allow: Option<Patterns>,
    forbid: Patterns,
    reason: Reason,
}

/// A text column that rules speak of.
#[derive(Debug)]
struct Texts {
    column: CandidateColumn,
    said: Vec<Said>,
    broken: PerWord<Set>,
}

/// A bound of one rule.
#[derive(Debug)]
struct Bound {
    rule: usize,
    column: CandidateColumn,
    range: std::ops::RangeInclusive<i64>,
    reason: Reason,
}

/// Which pods a rule binds.
#[derive(Debug)]
struct Binding {
    rule: usize,
    namespaces: Option<Patterns>,
    labels: Vec<(String, Patterns)>,
}

/// All rules.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// Rules that bind every pod.
    everybody: Set,
    /// The others.
    some: Vec<Binding>,
    texts: Vec<Texts>,
    bounds: Vec<Bound>,
}

type List = fn(&Lists) -> &Vec<String>;

/// The text columns: where its lists are, what they are called, and the column.
const TEXTS: [(List, &str, &str, CandidateColumn); 6] = [
    (|lists| &lists.instance_types, "instanceTypes", "instance type", CandidateColumn::InstanceType),
    (|lists| &lists.families, "families", "family", CandidateColumn::Family),
    (|lists| &lists.categories, "categories", "category", CandidateColumn::Category),
    (|lists| &lists.zones, "zones", "zone", CandidateColumn::Zone),
    (|lists| &lists.capacity_types, "capacityTypes", "capacity type", CandidateColumn::CapacityType),
    (|lists| &lists.archs, "archs", "architecture", CandidateColumn::Arch),
];

impl Compiled {
    /// Compiles the rules and asks for the columns they speak of.
    pub(crate) fn new(config: &Config, setup: &mut Setup) -> Result<Self, String> {
        check(config)?;
        let mut all = Self { everybody: 0, some: Vec::new(), texts: Vec::new(), bounds: Vec::new() };
        for (number, rule) in config.rules.iter().enumerate() {
            let place = format!("rule {:?}", rule.name);
            if rule.pods.is_everybody() {
                all.everybody |= 1 << number;
            } else {
                all.some.push(pods(number, &rule.pods, &place, setup)?);
            }
            let before = all.texts.iter().map(|texts| texts.said.len()).sum::<usize>() + all.bounds.len();
            for text in TEXTS {
                all.text(number, (&rule.allow, &rule.forbid), text, (&place, &rule.name), setup)?;
            }
            all.bound(number, &rule.at_most, true, (&place, &rule.name), setup)?;
            all.bound(number, &rule.at_least, false, (&place, &rule.name), setup)?;
            if before == all.texts.iter().map(|texts| texts.said.len()).sum::<usize>() + all.bounds.len() {
                return Err(format!("{place} says nothing: give it allow, forbid, atMost or atLeast"));
            }
        }
        Ok(all)
    }

    fn text(
        &mut self,
        rule: usize,
        (allow, forbid): (&Lists, &Lists),
        (list, field, called, column): (List, &str, &str, CandidateColumn),
        (place, name): (&str, &str),
        setup: &mut Setup,
    ) -> Result<(), String> {
        let (allow, forbid) = (list(allow), list(forbid));
        if allow.is_empty() && forbid.is_empty() {
            return Ok(());
        }
        setup.candidates([column.clone()]);
        let said = Said {
            rule,
            allow: if allow.is_empty() { None } else { Some(Patterns::new(allow, &format!("{place}, allow.{field}"))?) },
            forbid: Patterns::new(forbid, &format!("{place}, forbid.{field}"))?,
            reason: setup.reason(format!("rule {}: {called} {{{}}} is not allowed", safe(name), column.name())),
        };
        match self.texts.iter_mut().find(|texts| texts.column == column) {
            Some(texts) => texts.said.push(said),
            None => self.texts.push(Texts { column, said: vec![said], broken: PerWord::default() }),
        }
        Ok(())
    }

    fn bound(&mut self, rule: usize, bounds: &Bounds, most: bool, (place, name): (&str, &str), setup: &mut Setup) -> Result<(), String> {
        let (word, field) = if most { ("most", "atMost") } else { ("least", "atLeast") };
        let memory = bounds.memory.as_deref().map(|text| {
            mebibytes(text).ok_or_else(|| format!("{place}, {field}.memory: {text:?} is no amount of memory; write it like \"64Gi\""))
        });
        let memory = memory.transpose()?;
        let price = bounds.price_per_hour;
        if price.is_some_and(|price| price.units() < 0) {
            return Err(format!("{place}, {field}.pricePerHour: a price is not negative"));
        }
        let cpu = bounds.cpu.map(|cpu| i64::from(cpu) * 1000);
        let all = [
            (cpu, CandidateColumn::CpuMilli, "mCPU"),
            (memory, CandidateColumn::MemoryMib, "MiB"),
            (price.map(Dollars::units), CandidateColumn::ListMicros, "micro-dollars an hour"),
        ];
        for (limit, column, unit) in all {
            let Some(limit) = limit else { continue };
            setup.candidates([column.clone()]);
            let text = format!("rule {}: {{{}}} {unit}, at {word} {limit} are allowed", safe(name), column.name());
            let range = if most { i64::MIN..=limit } else { limit..=i64::MAX };
            self.bounds.push(Bound { rule, column, range, reason: setup.reason(text) });
        }
        Ok(())
    }

    /// Words of another round have other numbers.
    pub(crate) fn forget_words(&mut self) {
        self.texts.iter_mut().for_each(|texts| texts.broken.clear());
    }

    /// Vetoes the rows that break a rule which binds their pods.
    pub(crate) fn veto(&mut self, tables: &Tables, prices: &mut Prices) {
        let broken = self.broken(tables);
        let binding = self.binding(tables);
        let asker_of = if self.some.is_empty() { &[][..] } else { tables.column(&CandidateColumn::Asker) };
        let columns = self.columns(tables);
        for (row, candidate) in tables.candidates().enumerate() {
            if broken[row] == 0 {
                continue;
            }
            let asker = asker_of.get(row).and_then(|asker| usize::try_from(*asker).ok());
            let binds = asker.and_then(|asker| binding.get(asker)).copied().unwrap_or(self.everybody);
            let rule = (broken[row] & binds).trailing_zeros() as usize;
            if rule < MOST_RULES {
                prices.set(candidate, Price::veto(self.reason(rule, row, &columns, tables)));
            }
        }
    }

    /// The rules that each row breaks, whomever they bind.
    fn broken(&mut self, tables: &Tables) -> Vec<Set> {
        let mut broken: Vec<Set> = vec![0; tables.candidates().count()];
        for Texts { column, said, broken: known } in &mut self.texts {
            for (set, word) in broken.iter_mut().zip(tables.column(column)) {
                *set |= known.get(tables, *word, |text| rules_broken(said, text));
            }
        }
        for Bound { rule, column, range, .. } in &self.bounds {
            for (set, value) in broken.iter_mut().zip(tables.column(column)) {
                *set |= Set::from(!range.contains(value)) << rule;
            }
        }
        broken
    }

    /// The columns of texts and bounds.
    fn columns<'t>(&self, tables: &'t Tables) -> (Vec<&'t [i64]>, Vec<&'t [i64]>) {
        let texts = self.texts.iter().map(|texts| tables.column(&texts.column)).collect();
        (texts, self.bounds.iter().map(|bound| tables.column(&bound.column)).collect())
    }

    /// The rules that bind each asker.
    fn binding(&self, tables: &Tables) -> Vec<Set> {
        if self.some.is_empty() {
            return Vec::new();
        }
        let binds = |asker: Asker<'_>, rule: &Binding| {
            rule.namespaces.as_ref().is_none_or(|patterns| patterns.fit(asker.namespace()))
                && rule.labels.iter().all(|(key, patterns)| patterns.fit(asker.label(key)))
        };
        let set =
            |asker: Asker<'_>| self.some.iter().filter(|rule| binds(asker, rule)).fold(self.everybody, |set, rule| set | 1 << rule.rule);
        tables.askers().map(set).collect()
    }

    /// Why `row` breaks `rule`: the first of what the rule says that it breaks.
    fn reason(&mut self, rule: usize, row: usize, (texts, bounds): &(Vec<&[i64]>, Vec<&[i64]>), tables: &Tables) -> Reason {
        for (Texts { said, broken, .. }, column) in self.texts.iter_mut().zip(texts) {
            let set = broken.get(tables, column[row], |text| rules_broken(said, text));
            if set & (1 << rule) != 0
                && let Some(said) = said.iter().find(|said| said.rule == rule)
            {
                return said.reason;
            }
        }
        let broken = self.bounds.iter().zip(bounds).find(|(bound, column)| bound.rule == rule && !bound.range.contains(&column[row]));
        broken.map(|(bound, _)| bound.reason).expect("a rule is broken by one of its texts or bounds")
    }
}

impl Said {
    fn breaks(&self, text: &str) -> bool {
        self.forbid.fit(text) || self.allow.as_ref().is_some_and(|allow| !allow.fit(text))
    }
}

fn rules_broken(said: &[Said], text: &str) -> Set {
    said.iter().filter(|said| said.breaks(text)).fold(0, |set, said| set | 1 << said.rule)
}

fn check(config: &Config) -> Result<(), String> {
    if config.rules.len() > MOST_RULES {
        return Err(format!("{} rules, at most {MOST_RULES} are possible: join rules that bind the same pods", config.rules.len()));
    }
    for (number, rule) in config.rules.iter().enumerate() {
        if rule.name.is_empty() {
            return Err(format!("rules[{number}] has no name"));
        }
        if config.rules[..number].iter().any(|other| other.name == rule.name) {
            return Err(format!("two rules are named {:?}", rule.name));
        }
    }
    Ok(())
}

fn pods(rule: usize, pods: &Match, place: &str, setup: &mut Setup) -> Result<Binding, String> {
    setup.candidates([CandidateColumn::Asker]);
    let mut namespaces = None;
    if !pods.namespaces.is_empty() {
        setup.askers([AskerColumn::Namespace]);
        namespaces = Some(Patterns::new(&pods.namespaces, &format!("{place}, match.namespaces"))?);
    }
    let label = |(key, value): (&String, &String)| {
        setup.askers([AskerColumn::Label(key.clone())]);
        Ok((key.clone(), Patterns::new(std::slice::from_ref(value), &format!("{place}, match.labels.{key}"))?))
    };
    let labels = pods.labels.iter().map(label).collect::<Result<_, String>>()?;
    Ok(Binding { rule, namespaces, labels })
}

/// A name in a reason: braces would be taken for columns.
fn safe(name: &str) -> String {
    name.replace(['{', '}'], "")
}
