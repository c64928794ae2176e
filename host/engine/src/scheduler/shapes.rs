//! Pods that are alike to filters and scores, and what is known of each kind on each node. What is
//! known carries the node's revision and is worked out again only once the node has changed.

use whittle_model::{Affinity, Pod, Requirements, Toleration, taint};

use super::filter::{self, Verdict};
use super::identity::{Amounts, CPU, MEMORY};
use super::nodes::{Entry, Info};
use super::score;

/// What the resource scores assume of a pod that asks for no CPU, in thousandths of a core. The
/// model knows pods, not containers: a container without a request beside one with a request gets
/// no default here. Source: `DefaultMilliCPURequest` and `DefaultMemoryRequest` of kube-scheduler
/// (`pkg/scheduler/util/pod_resources.go`).
const DEFAULT_CPU: i64 = 100;
/// As [`DEFAULT_CPU`] for memory, in bytes.
const DEFAULT_MEMORY: i64 = 200 << 20;

/// Kept cells (16 bytes each) before all are dropped: 32 MiB, enough for 2,000 shapes on 1,000
/// nodes. They only save time.
const MOST_CELLS: usize = 2 << 20;

/// A kind of pod: node affinity, tolerations and requests.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    class: u32,
    /// What it asks for, without `pods`.
    pub requests: Amounts,
    /// CPU and memory as the resource scores count them.
    pub for_score: [i64; 2],
}

/// Node affinity, required and preferred, and tolerations.
#[derive(Debug, Clone)]
struct Class {
    affinity: Affinity,
    tolerations: Vec<Toleration>,
    preferred: Vec<(i32, Requirements)>,
    cells: Vec<ClassCell>,
}

/// What is known of a class on a node.
#[derive(Debug, Clone, Copy, Default)]
struct ClassCell {
    revision: u64,
    verdict: Verdict,
    affinity_met: bool,
    taints_tolerated: bool,
    soft_taints: u8,
    preferred: u32,
}

/// What is known of a shape on a node, apart from nominations and other pods' terms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    revision: u64,
    /// What the filters say.
    pub verdict: Verdict,
    /// `PreferNoSchedule` taints that are not tolerated.
    pub soft_taints: u8,
    /// LeastAllocated and BalancedAllocation together, 0 to 200.
    pub resources: u8,
    /// Weights of the preferred node affinity that are met.
    pub preferred: u32,
}

/// All kinds of pods.
#[derive(Debug, Clone)]
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    classes: Vec<Class>,
    cells: Vec<Vec<Cell>>,
    kept: usize,
    balance_by_change: bool,
}

impl Shapes {
    /// No shapes yet; `balance_by_change` chooses the formula of BalancedAllocation.
    pub fn new(balance_by_change: bool) -> Self {
        Self { shapes: Vec::new(), classes: Vec::new(), cells: Vec::new(), kept: 0, balance_by_change }
    }

    /// Enters the next class.
    pub fn add_class(&mut self, pod: &Pod) {
        // A preference that asks for nothing is none.
        let preferred = pod.preferences.nodes.iter().filter(|(_, term)| term.iter().next().is_some()).cloned().collect();
        self.classes.push(Class { affinity: pod.affinity.clone(), tolerations: pod.tolerations.clone(), preferred, cells: Vec::new() });
    }

    /// Enters the next shape.
    pub fn add_shape(&mut self, class: u32, requests: Amounts) {
        let or = |amount: i64, default: i64| if amount == 0 { default } else { amount };
        let for_score = [or(requests[CPU], DEFAULT_CPU), or(requests[MEMORY], DEFAULT_MEMORY)];
        self.shapes.push(Shape { class, requests, for_score });
        self.cells.push(Vec::new());
    }

    /// A shape by its integer.
    pub fn shape(&self, shape: u32) -> &Shape {
        &self.shapes[shape as usize]
    }

    /// What is known of a shape on the node at `slot` of `slots`.
    pub fn look(&mut self, shape: u32, slot: u32, slots: usize, entry: &Entry, info: &Info) -> Cell {
        if let Some(cell) = self.cells[shape as usize].get(slot as usize)
            && cell.revision == entry.revision
        {
            return *cell;
        }
        let cell = self.work_out(shape, slot, entry, info);
        self.keep(shape, slot, slots, cell);
        cell
    }

    /// Whether the node meets the node selector and affinity of a shape, and whether the shape tolerates its taints.
    pub fn admits(&mut self, shape: u32, slot: u32, info: &Info) -> (bool, bool) {
        let class = self.shapes[shape as usize].class;
        let cell = self.class_cell(class, slot, info);
        (cell.affinity_met, cell.taints_tolerated)
    }

    fn work_out(&mut self, shape: u32, slot: u32, entry: &Entry, info: &Info) -> Cell {
        let class = self.class_cell(self.shapes[shape as usize].class, slot, info);
        let shape = &self.shapes[shape as usize];
        let mut cell = Cell {
            revision: entry.revision,
            verdict: class.verdict,
            soft_taints: class.soft_taints,
            resources: 0,
            preferred: class.preferred,
        };
        if cell.verdict != Verdict::Fits {
            return cell;
        }
        if filter::lacks_room(shape, entry, info) {
            cell.verdict = Verdict::Resources;
            return cell;
        }
        let room = [info.allocatable[CPU], info.allocatable[MEMORY]];
        let [cpu, memory] = entry.used_for_score;
        let least = score::least_allocated([cpu + shape.for_score[CPU], memory + shape.for_score[MEMORY]], room);
        let before = [CPU, MEMORY].map(|column| entry.used.get(column).copied().unwrap_or(0));
        let after = [before[CPU] + shape.requests[CPU], before[MEMORY] + shape.requests[MEMORY]];
        let balanced = match (after == before, self.balance_by_change) {
            // BalancedAllocation leaves pods out that ask for neither CPU nor memory.
            (true, _) => 0,
            (false, true) => score::balance_change(before, after, room),
            (false, false) => score::balance(after, room),
        };
        cell.resources = u8::try_from(least + balanced).unwrap_or(u8::MAX);
        cell
    }

    fn class_cell(&mut self, class: u32, slot: u32, info: &Info) -> ClassCell {
        let class = &mut self.classes[class as usize];
        if class.cells.len() <= slot as usize {
            class.cells.resize(slot as usize + 1, ClassCell::default());
        }
        let cell = &mut class.cells[slot as usize];
        if cell.revision != info.revision {
            let affinity_met = filter::affinity_met(&class.affinity, &info.labels);
            let preferred = class.preferred.iter().filter(|(_, term)| term.met_by(&info.labels)).map(|(weight, _)| *weight).sum::<i32>();
            *cell = ClassCell {
                revision: info.revision,
                verdict: filter::class_verdict(info, &class.tolerations, affinity_met),
                affinity_met,
                taints_tolerated: taint::untolerated(&info.taints, &class.tolerations).is_none(),
                preferred: u32::try_from(preferred).unwrap_or(0),
                soft_taints: score::soft_taints(&info.taints, &class.tolerations),
            };
        }
        *cell
    }

    fn keep(&mut self, shape: u32, slot: u32, slots: usize, cell: Cell) {
        let shape = shape as usize;
        let missing = slots.saturating_sub(self.cells[shape].len());
        if missing > 0 {
            if self.kept + missing > MOST_CELLS {
                self.cells.iter_mut().for_each(|cells| *cells = Vec::new());
                self.kept = 0;
            }
            self.kept += slots.saturating_sub(self.cells[shape].len());
            self.cells[shape].resize(slots, Cell::default());
        }
        self.cells[shape][slot as usize] = cell;
    }
}
