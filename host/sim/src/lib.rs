//! Another world around the same engine: what a cluster would do, hours of it in seconds, the same
//! to the byte for the same seed.
//!
//! `Reality` is what is true: API objects, workload controllers, kube-scheduler, kubelets, EC2 with
//! its prices and its sold-out offerings. [`Weather`] is what goes wrong between it and the engine.
//! A [`Story`] says what people do to it, a [`Simulation`] runs it, an [`Observer`] hears of it as
//! it happens, a [`Summary`] says where it ended.
//!
//! What must not enter: Kubernetes and AWS types, files, clocks, true randomness, and any decision
//! that is the engine's.

mod explain;
mod figures;
mod history;
mod names;
mod random;
mod reality;
mod recorder;
mod scenario;
mod simulation;
mod story;
mod summary;
mod timeline;
mod weather;
mod why_not;

pub use explain::{Bought, PodSight, Sight};
pub use figures::{Figures, Sample, karpenter};
pub use history::History;
pub use recorder::Recorder;
pub use scenario::{Budget, Given, Manifests, ObjectKind, ObjectName, Scenario, ScenarioObject, Workload, WorkloadKind};
pub use simulation::{Ending, Expectation, RunError, Simulation};
pub use story::{Condition, Line, Story, StoryError, Target, Verb};
pub use summary::{Amount, Assumptions, BufferRow, Cost, Disruption, Launch, NodeRow, PendingPods, Pods, Summary};
pub use timeline::{Observer, Sale, TimelineEvent, for_whom};
pub use weather::Weather;
/// What EC2 sells, for whoever sets up a world.
pub use whittle_catalog as catalog;
pub use why_not::why_not;
