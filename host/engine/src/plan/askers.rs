//! Askers: what policies are told of the pods that want a node. Pods that differ in nothing that
//! any policy asked for are one asker.

use whittle_model::policy::{AskerColumn, CandidateColumn, Wants, Words};
use whittle_model::resources::{CPU, MEMORY};
use whittle_model::{Resources, Timestamp, keys};

use super::classes::Member;
use crate::intern::{Interner, Lookup};
use crate::world::{PodRecord, World};

/// The column of a mix key: by what pods are counted in the mix.
pub(crate) fn mix_column(key: &str) -> Option<AskerColumn> {
    match key.split_once(':') {
        Some(("label", label)) => Some(AskerColumn::Label(label.to_owned())),
        None if key == "namespace" => Some(AskerColumn::Namespace),
        Some(_) | None => None, // by pool: no matter of the pod
    }
}

/// All askers of a plan. Number 0 is the asker of plans in which nobody asks for any.
#[derive(Debug, Default)]
pub(crate) struct Askers {
    /// Every column that any chain wants.
    columns: Vec<AskerColumn>,
    /// Those of them, and of the mix keys, that differ between pods of one shape.
    split: Vec<AskerColumn>,
    /// Whether candidates are priced by how many pods they would hold.
    by_size: bool,
    rows: Interner<Vec<i64>>,
    splits: Lookup<u32, Vec<i64>>,
}

impl Askers {
    /// Askers for chains that want this.
    pub(crate) fn new<'a>(wants: impl Iterator<Item = &'a Wants>) -> Self {
        let mut all = Wants::default();
        for each in wants {
            all.unite(each);
        }
        let pricing = all.pricing.unwrap_or_default();
        let own = pricing.askers.iter().filter(|c| of_identity(c)).cloned();
        let mut split: Vec<AskerColumn> = own.chain(all.mix_keys.iter().filter_map(|key| mix_column(key))).collect();
        split.sort();
        split.dedup();
        let by_size = pricing.candidates.contains(&CandidateColumn::HoldsPods);
        Self { columns: pricing.askers, split, by_size, rows: Interner::default(), splits: Lookup::default() }
    }

    /// What tells pods of one shape apart for the chains, one value for each split column.
    pub(crate) fn split(&mut self, world: &World, record: &PodRecord, words: &mut Words) -> Vec<i64> {
        if self.split.is_empty() {
            return Vec::new();
        }
        if let Some(known) = self.splits.get(&record.identity) {
            return known.clone();
        }
        let values: Vec<i64> = self.split.iter().map(|column| identity_value(world, record, column, words)).collect();
        self.splits.insert(record.identity, values.clone());
        values
    }

    /// The value of a split column among those that [`Askers::split`] gave.
    pub(crate) fn split_value(&self, column: &AskerColumn, values: &[i64]) -> i64 {
        self.split.iter().position(|c| c == column).and_then(|at| values.get(at)).copied().unwrap_or(0)
    }

    /// The number of the asker that these pods of one class are.
    pub(crate) fn number(&mut self, world: &World, members: &[Member<'_>], need: &[i64], words: &mut Words, now: Timestamp) -> u32 {
        if self.columns.is_empty() && !self.by_size {
            return 0;
        }
        let Some(record) = members.first().map(|m| m.record) else { return 0 };
        let mut row: Vec<i64> = self.columns.iter().map(|column| asker_value(world, record, members, column, words, now)).collect();
        if self.by_size {
            row.extend(need);
        }
        self.rows.number(row)
    }

    /// The row of an asker in the order of `wanted`.
    pub(crate) fn row(&self, asker: u32, wanted: &[AskerColumn]) -> Vec<i64> {
        if self.columns.is_empty() {
            return vec![0; wanted.len()];
        }
        let row = self.rows.value(asker);
        let at = |column: &AskerColumn| self.columns.iter().position(|c| c == column);
        wanted.iter().map(|column| at(column).map_or(0, |at| row[at])).collect()
    }
}

/// Whether a column differs between pods of one shape.
fn of_identity(column: &AskerColumn) -> bool {
    match column {
        AskerColumn::Namespace | AskerColumn::OwnerKind | AskerColumn::Workload | AskerColumn::DesiredReplicas => true,
        AskerColumn::Label(_) | AskerColumn::Annotation(_) | AskerColumn::NamespaceLabel(_) => true,
        AskerColumn::CpuMilli | AskerColumn::MemoryMib | AskerColumn::Gpus | AskerColumn::Count => false,
        AskerColumn::Priority | AskerColumn::HasVolume | AskerColumn::TerminationGraceSeconds => false,
        AskerColumn::OldestPendingSeconds | AskerColumn::Request(_) => false,
    }
}

/// The value of a column that belongs to the pod's identity; 0 for others.
pub(crate) fn identity_value(world: &World, record: &PodRecord, column: &AskerColumn, words: &mut Words) -> i64 {
    let identity = world.identity_of(record);
    let mut word = |text: Option<&String>| words.intern(text.map_or("", String::as_str));
    match column {
        AskerColumn::DesiredReplicas => i64::try_from(world.replicas_beside(record)).unwrap_or(i64::MAX),
        AskerColumn::Namespace => word(Some(&identity.namespace)),
        AskerColumn::OwnerKind => word(identity.owner.as_ref().map(|o| &o.kind)),
        AskerColumn::Workload => word(identity.owner.as_ref().map(|o| &o.name)),
        AskerColumn::Label(key) => word(identity.labels.get(key)),
        AskerColumn::Annotation(key) => word(identity.annotations.get(key)),
        AskerColumn::NamespaceLabel(key) => word(world.namespaces.get(&identity.namespace).and_then(|labels| labels.get(key))),
        AskerColumn::CpuMilli | AskerColumn::MemoryMib | AskerColumn::Gpus | AskerColumn::Count => 0,
        AskerColumn::Priority | AskerColumn::HasVolume | AskerColumn::TerminationGraceSeconds => 0,
        AskerColumn::OldestPendingSeconds | AskerColumn::Request(_) => 0,
    }
}

/// The value of a column for these pods of one class.
pub(crate) fn asker_value(
    world: &World,
    record: &PodRecord,
    members: &[Member<'_>],
    column: &AskerColumn,
    words: &mut Words,
    now: Timestamp,
) -> i64 {
    let shape = world.shape_of(record);
    match column {
        AskerColumn::CpuMilli => shape.requests.get(CPU),
        AskerColumn::MemoryMib => mib_ceil(&shape.requests),
        AskerColumn::Gpus => shape.requests.get("nvidia.com/gpu") + shape.requests.get("amd.com/gpu"),
        AskerColumn::Count => i64::try_from(members.len()).unwrap_or(i64::MAX),
        AskerColumn::Priority => i64::from(shape.priority),
        AskerColumn::OldestPendingSeconds => members.iter().map(|m| now.since(m.record.created).as_seconds()).max().unwrap_or(0).max(0),
        AskerColumn::Request(name) => shape.requests.get(name),
        AskerColumn::HasVolume => i64::from(members.iter().any(|m| !m.record.volumes.is_empty())),
        AskerColumn::TerminationGraceSeconds => members.iter().map(|m| m.record.grace.as_seconds()).max().unwrap_or(0),
        AskerColumn::Namespace | AskerColumn::OwnerKind | AskerColumn::Workload | AskerColumn::DesiredReplicas => {
            identity_value(world, record, column, words)
        }
        AskerColumn::Label(_) | AskerColumn::Annotation(_) | AskerColumn::NamespaceLabel(_) => identity_value(world, record, column, words),
    }
}

fn mib_ceil(requests: &Resources) -> i64 {
    requests.get(MEMORY).saturating_add((1 << 20) - 1) >> 20
}

/// The family of an instance type, for the mix.
pub(crate) fn family_label() -> String {
    format!("{}instance-family", keys::AWS_PREFIX)
}
