//! A conjunction of requirements, one for each key, and the question whether two of them agree.

use serde::{Deserialize, Serialize};

use crate::{Labels, Requirement};

/// Requirements by key. Adding a second requirement on a key intersects the two.
// Ordered by key. A catalogue holds thousands of these: a list takes a third of a map's memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Requirements(Vec<Requirement>);

/// Why two sets of requirements do not agree: the first key, in order, on which they part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatible {
    /// The key.
    pub key: String,
    /// What is offered on it; `None` when the key is not defined there at all.
    pub have: Option<Requirement>,
    /// What is asked for.
    pub want: Requirement,
}

impl std::fmt::Display for Incompatible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.have {
            Some(have) => write!(f, "asked for {}, but only {have} is there", self.want),
            None => write!(f, "asked for {}, but label {} is not defined", self.want, self.key),
        }
    }
}

impl Requirements {
    /// The requirements that exactly these labels meet.
    #[must_use]
    pub fn of_labels(labels: &Labels) -> Self {
        labels.iter().map(|(key, value)| Requirement::any_of(key, &[value])).collect()
    }

    /// Adds one more, intersecting it with what is there on its key.
    pub fn add(&mut self, requirement: Requirement) {
        match self.place(requirement.key()) {
            Ok(at) => self.0[at] = self.0[at].intersect(&requirement),
            Err(at) => self.0.insert(at, requirement),
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for requirement in other.iter() {
            self.add(requirement.clone());
        }
    }

    /// The requirement on `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.place(key).ok().map(|at| &self.0[at])
    }

    /// Where the requirement on `key` stands, or where it would.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|requirement| requirement.key().cmp(key))
    }

    /// Takes the requirement on `key` away.
    pub fn remove(&mut self, key: &str) -> Option<Requirement> {
        self.place(key).ok().map(|at| self.0.remove(at))
    }

    /// All of them, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.0.iter()
    }

    /// Whether nothing is required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether what `wanted` asks can be had here. A key that is not defined here may be asked for
    /// only when `open` says so (well-known labels that an instance type will bring), or when the
    /// wish is satisfied by absence.
    ///
    /// # Errors
    /// The first key on which they part.
    pub fn compatible(&self, wanted: &Self, open: &dyn Fn(&str) -> bool) -> Result<(), Box<Incompatible>> {
        for want in wanted.iter() {
            let have = self.get(want.key());
            let agrees = match have {
                None => want.admits_absence() || open(want.key()),
                Some(have) => have.intersects(want) || (have.admits_absence() && want.admits_absence()),
            };
            if !agrees {
                return Err(Box::new(Incompatible { key: want.key().to_owned(), have: have.cloned(), want: want.clone() }));
            }
        }
        Ok(())
    }

    /// Whether the keys that both define agree; keys that only one of them has are no matter.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let (small, large) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        small.iter().all(|a| large.get(a.key()).is_none_or(|b| a.intersects(b) || (a.admits_absence() && b.admits_absence())))
    }

    /// Whether an object with exactly these labels meets every requirement.
    #[must_use]
    pub fn met_by(&self, labels: &Labels) -> bool {
        self.iter().all(|r| labels.get(r.key()).map_or_else(|| r.admits_absence(), |v| r.allows(v)))
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut all = Self::default();
        for requirement in requirements {
            all.add(requirement);
        }
        all
    }
}

impl std::fmt::Display for Requirements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

#[cfg(test)]
#[path = "../tests_unit/requirements.rs"]
mod tests;
