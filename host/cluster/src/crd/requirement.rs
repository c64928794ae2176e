//! What holds for requirements on labels in every kind that has them. The keys of the autoscaler's own
//! domains are closed: only those that are known may be asked for.

use whittle_model::keys;

use super::fact::{At, Fact, at, atomic, max_items, max_length, one_of, pattern, range, rule, without};
use super::shapes::{LABEL_VALUE, QUALIFIED_NAME};

/// All operators.
const OPERATORS: [&str; 8] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"];

/// `In` needs a value.
pub(super) fn in_has_values() -> Fact {
    rule("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)", "a requirement with operator 'In' needs at least one value")
}

/// So does `NotIn`.
pub(super) fn not_in_has_values() -> Fact {
    rule("self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)", "a requirement with operator 'NotIn' needs at least one value")
}

/// Comparisons need one number.
pub(super) fn bounds_are_numbers() -> Fact {
    rule(
        "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? \
         (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
        "a requirement with operator 'Gt', 'Lt', 'Gte' or 'Lte' needs exactly one value, a whole number from 0",
    )
}

/// `minValues` is no more than the values there are.
pub(super) fn enough_values() -> Fact {
    rule(
        "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
        "a requirement with operator 'In' and 'minValues' needs at least that many values",
    )
}

/// The list of requirements at `place`, whose keys and lists also obey the given rules.
pub(super) fn requirements(place: &str, lists: impl IntoIterator<Item = Fact>, keys: impl IntoIterator<Item = Fact>) -> Vec<At> {
    vec![
        at(place, [max_items(100), atomic()].into_iter().chain(lists)),
        at(&format!("{place}[].key"), [max_length(316), pattern(QUALIFIED_NAME)].into_iter().chain(keys)),
        at(&format!("{place}[].operator"), [one_of(&OPERATORS)]),
        // On a list the server does not look at these two; they stand as in the definitions that clusters have.
        at(&format!("{place}[].values"), [atomic(), max_length(63), pattern(LABEL_VALUE)]),
    ]
}

/// The `minValues` of the requirements at `place`.
pub(super) fn min_values(place: &str) -> At {
    at(&format!("{place}[].minValues"), [without("format")].into_iter().chain(range(1, 50)))
}

/// What a rule is about: the text itself, or every key of a map.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// A text.
    Key,
    /// A map.
    Keys,
}

impl Subject {
    /// The rule that `test` holds, where the test calls the key `x`.
    fn must(self, test: impl Fn(&str) -> String, message: String) -> Fact {
        match self {
            Self::Key => rule(test("self"), message),
            Self::Keys => rule(format!("self.all(x, {})", test("x")), message),
        }
    }

    /// Keys below `domain` are refused but for `known`.
    fn closed(self, domain: &str, known: &[String]) -> Fact {
        let known = known.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
        let test = |x: &str| format!("{x} in [{known}] || !{x}.find(\"^([^/]+)\").endsWith(\"{domain}\")");
        self.must(test, format!("labels of the domain \"{domain}\" are restricted to those that are known"))
    }

    fn not(self, key: &str, why: &str) -> Fact {
        self.must(|x| format!("{x} != \"{key}\""), format!("label \"{key}\" is restricted: {why}"))
    }

    /// Only known keys of `karpenter.sh`.
    pub(super) fn of_karpenter(self) -> Fact {
        self.closed("karpenter.sh", &[keys::CAPACITY_TYPE.to_owned(), keys::NODE_POOL.to_owned()])
    }

    /// Not the pool's own label.
    pub(super) fn no_pool(self) -> Fact {
        self.not(keys::NODE_POOL, "it is set by the autoscaler")
    }

    /// Not the host name.
    pub(super) fn no_host(self) -> Fact {
        self.not(keys::HOSTNAME, "a node's name is not known before it is there")
    }

    /// Only known keys of `karpenter.k8s.aws`, and of those the ones that `take` takes.
    pub(super) fn of_aws(self, take: impl Fn(&str) -> bool) -> Fact {
        let class = keys::NODE_CLASS.to_owned();
        let labels = keys::AWS_WELL_KNOWN.iter().filter(|label| take(label)).map(|label| format!("{}{label}", keys::AWS_PREFIX));
        self.closed("karpenter.k8s.aws", &std::iter::once(class).chain(labels).collect::<Vec<_>>())
    }
}
