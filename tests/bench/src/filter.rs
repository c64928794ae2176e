//! Which benches to run: a filter names consecutive parts of a bench's name.

/// The filters of one run; none of them means everything.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Vec<String>>);

impl Filter {
    /// From the arguments of the command: `B1`, `B1/5000`, `5000/full`, `le32`.
    #[must_use]
    pub fn new(arguments: impl IntoIterator<Item = String>) -> Self {
        Self(arguments.into_iter().map(|a| a.split('/').map(str::to_owned).collect()).collect())
    }

    /// Whether the bench of this name is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split('/').collect();
        self.0.is_empty() || self.0.iter().any(|wanted| parts.windows(wanted.len()).any(|window| window == wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_whole_parts() {
        for (filters, name, wanted) in [
            (vec![], "B1/500", true),
            (vec!["B1"], "B1/500/full", true),
            (vec!["B1/500"], "B1/500/full", true),
            (vec!["B1/500"], "B1/5000", false),
            (vec!["full"], "B1/500", false),
            (vec!["B2", "le32"], "B7/wide/100/le32", true),
        ] {
            let filter = Filter::new(filters.iter().map(|f| (*f).to_owned()));
            assert_eq!(filter.wants(name), wanted, "{filters:?} {name}");
        }
    }
}
