//! Which instance types are meant: spans, amounts and requirements as people write them, and the
//! question whether a type meets them.

use std::str::FromStr;

use whittle_cluster::yaml::closest;
use whittle_model::resources::MEMORY;
use whittle_model::{CapacityType, InstanceType, Offering, Operator, Quantity, Requirement, Requirements, Resources, keys};

use crate::args::Types;
use crate::failure::Failure;

/// A span of whole numbers, both ends included. Memory is counted in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    least: i64,
    most: i64,
}

impl Span {
    /// A span of memory: `8Gi`, `4Gi..32Gi`, `..512Mi`.
    ///
    /// # Errors
    /// When an end is no quantity.
    pub fn of_memory(text: &str) -> Result<Self, String> {
        Self::read(text, |end| {
            let bytes = Quantity::parse(end).map_err(|e| e.to_string())?.units_ceil();
            Ok(bytes / (1 << 20))
        })
    }

    fn read(text: &str, number: impl Fn(&str) -> Result<i64, String>) -> Result<Self, String> {
        let (least, most) = match text.split_once("..") {
            Some((least, most)) => (least, most.strip_prefix('=').unwrap_or(most)),
            None => (text, text),
        };
        let end = |text: &str, open: i64| if text.is_empty() { Ok(open) } else { number(text) };
        let span = Self { least: end(least, 0)?, most: end(most, i64::MAX)? };
        if span.least > span.most { Err(format!("{text} is empty: write the smaller number first")) } else { Ok(span) }
    }

    /// Whether a number lies in it.
    #[must_use]
    pub const fn holds(self, number: i64) -> bool {
        self.least <= number && number <= self.most
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text, |end| end.parse().map_err(|_| format!("{end:?} is no whole number; write 4, 2..8 or 2..")))
    }
}

/// What one pod asks for, written `cpu=500m,memory=1Gi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amounts(pub Resources);

impl FromStr for Amounts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut amounts = Resources::default();
        for part in text.split(',') {
            let (name, amount) = part.split_once('=').ok_or_else(|| format!("{part:?} is no NAME=AMOUNT; write cpu=500m,memory=1Gi"))?;
            let amount = Resources::parse_amount(name.trim(), amount.trim()).map_err(|e| e.to_string())?;
            if amount <= 0 {
                return Err(format!("{part}: a pod asks for more than nothing"));
            }
            amounts.set(name.trim(), amount);
        }
        Ok(Self(amounts))
    }
}

/// A requirement written `KEY OPERATOR [VALUE,VALUE...]`. The keys of AWS labels may leave their
/// domain out: `instance-cpu Gt 4`.
///
/// # Errors
/// When there is no such operator, or it does not take these values.
pub fn parse_requirement(text: &str) -> Result<Requirement, String> {
    let mut words = text.split_whitespace();
    let (Some(key), Some(operator)) = (words.next(), words.next()) else {
        return Err("write KEY OPERATOR VALUES, such as 'karpenter.k8s.aws/instance-cpu Gt 4'".to_owned());
    };
    let values: Vec<String> = words.flat_map(|word| word.split(',')).filter(|value| !value.is_empty()).map(str::to_owned).collect();
    let operator = Operator::parse(operator).ok_or_else(|| {
        let names: Vec<&str> = Operator::ALL.iter().map(|operator| operator.name()).collect();
        format!("{operator:?} is no operator; the operators are {}", names.join(", "))
    })?;
    let key = if keys::AWS_WELL_KNOWN.contains(&key) { format!("{}{key}", keys::AWS_PREFIX) } else { keys::normalized(key).to_owned() };
    Requirement::new(&key, operator, &values).map_err(|e| e.to_string())
}

/// Everything a type and its offerings are asked.
#[derive(Debug)]
pub struct Filter<'a> {
    args: &'a Types,
    requirements: Requirements,
}

impl<'a> Filter<'a> {
    /// The filter of these arguments.
    ///
    /// # Errors
    /// When a requirement names a label that no instance type has.
    pub fn new(args: &'a Types) -> Result<Self, Failure> {
        let mut requirements = Requirements::default();
        for requirement in &args.requirement {
            known(requirement.key())?;
            requirements.add(requirement.clone());
        }
        for (key, values) in [
            (keys::ARCH, &args.arch),
            ("karpenter.k8s.aws/instance-family", &args.family),
            ("karpenter.k8s.aws/instance-category", &args.category),
            (keys::ZONE, &args.zone),
        ] {
            if !values.is_empty() {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                requirements.add(Requirement::any_of(key, &values));
            }
        }
        if let Some(capacity_type) = &args.capacity_type {
            requirements.add(Requirement::any_of(keys::CAPACITY_TYPE, &[capacity_type]));
        }
        Ok(Self { args, requirements })
    }

    /// Whether the type itself will do.
    #[must_use]
    pub fn takes(&self, candidate: &InstanceType) -> bool {
        let number = |name: &str| candidate.labels.get(&format!("{}{name}", keys::AWS_PREFIX)).and_then(|text| text.parse::<i64>().ok());
        let within = |span: Option<Span>, name: &str| span.is_none_or(|span| number(name).is_some_and(|n| span.holds(n)));
        let gpu = self.args.gpu.as_ref().is_none_or(|wanted| {
            let name = candidate.labels.get("karpenter.k8s.aws/instance-gpu-name");
            name.is_some_and(|name| wanted.is_empty() || name.eq_ignore_ascii_case(wanted))
        });
        gpu && within(self.args.cpu, "instance-cpu")
            && within(self.args.generation, "instance-generation")
            && self.args.memory.is_none_or(|span| span.holds(listed_memory_mib(candidate)))
            && self.requirements.iter().all(|requirement| meets(candidate, requirement))
    }

    /// Whether an offering is for sale and will do.
    #[must_use]
    pub fn sells(&self, offering: &Offering) -> bool {
        let allows = |key: &str, value: &str| self.requirements.get(key).is_none_or(|requirement| requirement.allows(value));
        offering.available
            && allows(keys::ZONE, &offering.zone)
            && allows(keys::ZONE_ID, &offering.zone_id)
            && allows(keys::CAPACITY_TYPE, offering.capacity_type.name())
    }

    /// Whether on-demand or spot was asked for alone.
    #[must_use]
    pub fn only(&self) -> Option<CapacityType> {
        self.args.capacity_type.as_deref().and_then(CapacityType::parse)
    }
}

/// Memory as EC2 lists it, in MiB.
#[must_use]
pub fn listed_memory_mib(candidate: &InstanceType) -> i64 {
    let label = candidate.labels.get("karpenter.k8s.aws/instance-memory").and_then(|text| text.parse().ok());
    label.unwrap_or_else(|| candidate.capacity.get(MEMORY) / (1 << 20))
}

/// Whether a node of the type can have the label that is asked for. Labels of offerings are asked
/// of the offerings.
fn meets(candidate: &InstanceType, requirement: &Requirement) -> bool {
    let key = requirement.key();
    if [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE].contains(&key) {
        return true;
    }
    match (candidate.labels.get(key), candidate.requirements.get(key)) {
        (Some(value), _) => requirement.allows(value),
        (None, Some(has)) => requirement.intersects(has) || (requirement.admits_absence() && has.admits_absence()),
        (None, None) => requirement.admits_absence(),
    }
}

fn known(key: &str) -> Result<(), Failure> {
    if keys::well_known(key) {
        return Ok(());
    }
    let aws: Vec<String> = keys::AWS_WELL_KNOWN.iter().map(|name| format!("{}{name}", keys::AWS_PREFIX)).collect();
    let all =
        aws.iter().map(String::as_str).chain([keys::ZONE, keys::ZONE_ID, keys::ARCH, keys::OS, keys::CAPACITY_TYPE, keys::INSTANCE_TYPE]);
    let hint = closest(key, all).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    Err(Failure::Usage(format!("no instance type has a label {key}{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, inside, outside) in [("4", 4, 5), ("2..8", 8, 9), ("2..", 1_000, 1), ("..8", 0, 9), ("2..=8", 8, 9)] {
            let span: Span = text.parse().unwrap();
            assert!(span.holds(inside) && !span.holds(outside), "{text}");
        }
        let memory = Span::of_memory("4Gi..32Gi").unwrap();
        assert!(memory.holds(4096) && memory.holds(32_768) && !memory.holds(4095));
        for bad in ["8..2", "a", "2..b"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn requirements_read_as_in_a_manifest() {
        for (text, told) in [
            ("instance-cpu Gt 4", "karpenter.k8s.aws/instance-cpu >= 5"),
            ("topology.kubernetes.io/zone In us-east-1a,us-east-1b", "topology.kubernetes.io/zone In [us-east-1a, us-east-1b]"),
            ("beta.kubernetes.io/arch NotIn arm64", "kubernetes.io/arch NotIn [arm64]"),
            ("instance-gpu-count Exists", "karpenter.k8s.aws/instance-gpu-count Exists"),
        ] {
            assert_eq!(parse_requirement(text).unwrap().to_string(), told);
        }
        for (bad, part) in [("a", "KEY OPERATOR"), ("a is b", "operators are In, NotIn"), ("a Gt x", "integer"), ("a In", "at least one")] {
            assert!(parse_requirement(bad).unwrap_err().contains(part), "{bad}");
        }
    }

    #[test]
    fn amounts_name_what_is_wrong() {
        assert_eq!("cpu=500m,memory=1Gi".parse::<Amounts>().unwrap().0, Resources::of(&[("cpu", 500), (MEMORY, 1 << 30)]));
        for (bad, part) in [("cpu", "NAME=AMOUNT"), ("cpu=x", "quantity"), ("cpu=0", "more than nothing")] {
            assert!(bad.parse::<Amounts>().unwrap_err().contains(part), "{bad}");
        }
    }
}
