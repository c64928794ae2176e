//! Selector terms as EC2 filters, and as words for people.
//!
//! What must not enter: calls, and what is found.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::Filter;

/// One question to EC2 that one or more terms stand behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    /// Filters by name; all of them must be met.
    pub(super) filters: Vec<(String, Vec<String>)>,
    /// Accounts that may own what is looked for; any when empty.
    pub(super) owners: Vec<String>,
    /// The one id that is asked for by other means than a filter.
    pub(super) id: Option<String>,
    /// The terms behind it.
    pub(super) terms: Vec<Term>,
}

/// One selector term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// Such as `subnetSelectorTerms[0] (tag team=a)`.
    pub(super) words: String,
    /// What the answer must contain for the term to have found something: an id or a name. `None`: any answer.
    pub(super) wants: Option<String>,
}

impl Query {
    /// The key of its answer. Questions of two classes that ask the same share one.
    pub(super) fn key(&self) -> String {
        format!("{:?} {:?} {:?}", self.filters, self.owners, self.id)
    }

    pub(super) fn filters(&self) -> Vec<Filter> {
        self.filters.iter().map(|(name, values)| Filter::builder().name(name).set_values(Some(values.clone())).build()).collect()
    }

    /// The terms that found nothing, given the ids and names that came back.
    pub(super) fn unmet<'a>(&'a self, found: &'a BTreeSet<&str>) -> impl Iterator<Item = &'a str> {
        let unmet = move |term: &&Term| term.wants.as_ref().map_or(found.is_empty(), |wanted| !found.contains(wanted.as_str()));
        self.terms.iter().filter(unmet).map(|term| term.words.as_str())
    }
}

/// Collects terms into as few questions as there can be: all ids in one, all names in one, each set of tags alone.
#[derive(Debug)]
pub(super) struct Queries {
    field: &'static str,
    id_filter: &'static str,
    name_filter: &'static str,
    ids: Query,
    names: Query,
    others: Vec<Query>,
}

impl Queries {
    pub(super) fn new(field: &'static str, id_filter: &'static str, name_filter: &'static str) -> Self {
        Self { field, id_filter, name_filter, ids: Query::default(), names: Query::default(), others: Vec::new() }
    }

    pub(super) fn id(&mut self, at: usize, id: &str) {
        let words = format!("{}[{at}] (id {id})", self.field);
        self.id_for(words, id);
    }

    /// An id that a term stands for without naming it.
    pub(super) fn id_for(&mut self, words: String, id: &str) {
        self.ids.terms.push(Term { words, wants: Some(id.to_owned()) });
    }

    pub(super) fn name(&mut self, at: usize, name: &str) {
        self.names.terms.push(Term { words: format!("{}[{at}] (name {name})", self.field), wants: Some(name.to_owned()) });
    }

    pub(super) fn tags(&mut self, at: usize, tags: &BTreeMap<String, String>) {
        self.other(at, &tag_words(tags), tag_filters(tags), Vec::new());
    }

    /// A term of other filters, put into `words`.
    pub(super) fn other(&mut self, at: usize, words: &str, filters: Vec<(String, Vec<String>)>, owners: Vec<String>) {
        let terms = vec![Term { words: format!("{}[{at}] ({words})", self.field), wants: None }];
        self.others.push(Query { filters, owners, id: None, terms });
    }

    pub(super) fn build(self) -> Vec<Query> {
        let mut all = self.others;
        for (mut query, filter) in [(self.ids, self.id_filter), (self.names, self.name_filter)] {
            let wanted: BTreeSet<String> = query.terms.iter().filter_map(|term| term.wants.clone()).collect();
            if !wanted.is_empty() {
                query.filters = vec![(filter.to_owned(), wanted.into_iter().collect())];
                all.push(query);
            }
        }
        all
    }
}

/// The filters that tags stand for; `*` is any value.
pub(super) fn tag_filters(tags: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
    let filter = |(key, value): (&String, &String)| match value.as_str() {
        "*" => ("tag-key".to_owned(), vec![key.clone()]),
        value => (format!("tag:{key}"), vec![value.to_owned()]),
    };
    tags.iter().map(filter).collect()
}

/// Such as `tags a=b and c=*`.
pub(super) fn tag_words(tags: &BTreeMap<String, String>) -> String {
    let all: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{} {}", if all.len() == 1 { "tag" } else { "tags" }, all.join(" and "))
}

/// Such as `a`, `a and b`, `a, b and c`.
pub(super) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
