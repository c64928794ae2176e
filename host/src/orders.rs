//! What the engine wants done, with what its door needs to do it. What must not enter: doing it.

use std::collections::BTreeSet;

use whittle_engine::World;
use whittle_model::{Action, NodeClaim, OfferingKey, keys};

/// One thing for a door to do.
#[derive(Debug, Clone)]
pub enum Order {
    /// For the door to Kubernetes.
    Cluster(Action),
    /// Buy an instance.
    Launch {
        /// The claim it is for.
        claim: Box<NodeClaim>,
        /// Whether one may have been bought already.
        adopt: bool,
        /// Provider ids that other claims have.
        taken: BTreeSet<String>,
        /// Offerings that are left alone: they were sold out, or taken back, not long ago.
        sold_out: BTreeSet<OfferingKey>,
    },
    /// End the instance of a claim.
    Terminate {
        /// The claim.
        claim: String,
        /// Its instance; empty when none is known.
        provider_id: String,
    },
    /// Tag the instance of a claim.
    Tag {
        /// The claim.
        claim: String,
        /// Its node.
        node: String,
        /// Its instance.
        provider_id: String,
    },
    /// End an instance that no claim stands for.
    Stray {
        /// The instance.
        provider_id: String,
    },
}

impl Order {
    /// The object that is written; what is written to one object stays in order.
    pub fn object(&self) -> String {
        match self {
            Self::Launch { claim, .. } => claim.name.clone(),
            Self::Terminate { claim, .. } | Self::Tag { claim, .. } => claim.clone(),
            Self::Stray { provider_id } => provider_id.clone(),
            Self::Cluster(action) => match action {
                Action::CreateClaim(claim) => claim.name.clone(),
                Action::Launch { claim, .. }
                | Action::UpdateClaim { claim, .. }
                | Action::AnnotateClaim { claim, .. }
                | Action::DeleteClaim { claim, .. }
                | Action::Terminate { claim }
                | Action::TagInstance { claim }
                | Action::ReleaseClaim { claim } => claim.clone(),
                Action::RegisterNode { node, .. }
                | Action::InitializeNode { node }
                | Action::CordonNode { node }
                | Action::LabelNode { node, .. }
                | Action::TaintNode { node }
                | Action::UncordonNode { node }
                | Action::ReleaseNode { node } => node.clone(),
                Action::Nominate { pod, .. } | Action::Evict { pod, .. } | Action::DeletePod { pod, .. } => pod.to_string(),
                Action::TerminateStray { provider_id } => provider_id.clone(),
            },
        }
    }
}

/// The name of an action in metrics.
pub fn name(action: &Action) -> &'static str {
    match action {
        Action::CreateClaim(_) => "create_claim",
        Action::Launch { .. } => "launch",
        Action::UpdateClaim { .. } => "update_claim",
        Action::RegisterNode { .. } => "register_node",
        Action::InitializeNode { .. } => "initialize_node",
        Action::Nominate { .. } => "nominate",
        Action::DeleteClaim { .. } => "delete_claim",
        Action::CordonNode { .. } => "cordon_node",
        Action::AnnotateClaim { .. } => "annotate_claim",
        Action::LabelNode { .. } => "label_node",
        Action::TaintNode { .. } => "taint_node",
        Action::UncordonNode { .. } => "uncordon_node",
        Action::Evict { .. } => "evict",
        Action::DeletePod { .. } => "delete_pod",
        Action::Terminate { .. } => "terminate",
        Action::TagInstance { .. } => "tag",
        Action::TerminateStray { .. } => "terminate_stray",
        Action::ReleaseNode { .. } => "release_node",
        Action::ReleaseClaim { .. } => "release_claim",
    }
}

/// The order that an action comes to; `None` when what it is about is gone.
pub fn order(action: Action, world: &World) -> Option<Order> {
    Some(match action {
        Action::Launch { claim, adopt } => {
            let claim = world.claim(&claim)?.clone();
            let group = claim.annotations.get(keys::LAUNCH_GROUP);
            let same = |other: &&NodeClaim| other.annotations.get(keys::LAUNCH_GROUP) == group && !other.status.provider_id.is_empty();
            let taken = if adopt { world.claims().filter(same).map(|c| c.status.provider_id.clone()).collect() } else { BTreeSet::new() };
            let sold_out = world.sold_out().cloned().collect();
            Order::Launch { claim: Box::new(claim), adopt, taken, sold_out }
        }
        Action::Terminate { claim } => {
            let provider_id = world.claim(&claim)?.status.provider_id.clone();
            Order::Terminate { claim, provider_id }
        }
        Action::TagInstance { claim } => {
            let status = &world.claim(&claim)?.status;
            Order::Tag { node: status.node.clone(), provider_id: status.provider_id.clone(), claim }
        }
        Action::TerminateStray { provider_id } => Order::Stray { provider_id },
        Action::CreateClaim(_)
        | Action::UpdateClaim { .. }
        | Action::RegisterNode { .. }
        | Action::InitializeNode { .. }
        | Action::Nominate { .. }
        | Action::DeleteClaim { .. }
        | Action::AnnotateClaim { .. }
        | Action::LabelNode { .. }
        | Action::CordonNode { .. }
        | Action::TaintNode { .. }
        | Action::UncordonNode { .. }
        | Action::Evict { .. }
        | Action::DeletePod { .. }
        | Action::ReleaseNode { .. }
        | Action::ReleaseClaim { .. } => Order::Cluster(action),
    })
}

#[cfg(test)]
mod tests {
    use whittle_engine::Engine;
    use whittle_model::{CapacityType, Event, Interruption, Timestamp};

    use super::*;

    fn claim(name: &str, group: &str, provider_id: &str) -> NodeClaim {
        let mut claim = NodeClaim { name: name.to_owned(), ..NodeClaim::default() };
        claim.annotations.insert(keys::LAUNCH_GROUP.to_owned(), group.to_owned());
        claim.status.provider_id = provider_id.to_owned();
        claim.status.node = format!("node-{name}");
        claim
    }

    fn engine() -> Engine {
        let mut engine = Engine::new();
        for claim in [claim("a", "one", ""), claim("b", "one", "aws:///z/i-b"), claim("c", "two", "aws:///z/i-c")] {
            engine.handle(&Event::Claim(Box::new(claim)), Timestamp(0));
        }
        engine
    }

    #[test]
    fn a_launch_that_may_have_happened_knows_whose_the_instances_of_its_group_are() {
        let engine = engine();
        let taken = |adopt| match order(Action::Launch { claim: "a".to_owned(), adopt }, engine.world()) {
            Some(Order::Launch { taken, .. }) => taken.into_iter().collect::<Vec<_>>(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(taken(true), ["aws:///z/i-b"]);
        assert_eq!(taken(false), Vec::<String>::new());
    }

    #[test]
    fn a_launch_leaves_alone_what_was_taken_back() {
        let mut engine = engine();
        let mut bought = claim("spot", "three", "aws:///z/i-spot");
        (bought.status.instance_type, bought.status.zone) = ("c7a.medium".to_owned(), "z".to_owned());
        (bought.status.capacity_type, bought.status.launched) = (Some(CapacityType::Spot), Some(Timestamp(0)));
        engine.handle(&Event::Claim(Box::new(bought)), Timestamp(0));
        let warning = Event::Interrupted { provider_id: "aws:///z/i-spot".to_owned(), what: Interruption::SpotInterrupted };
        engine.handle(&warning, Timestamp(1));
        let Some(Order::Launch { sold_out, .. }) = order(Action::Launch { claim: "a".to_owned(), adopt: false }, engine.world()) else {
            panic!("a launch is ordered");
        };
        assert_eq!(sold_out.iter().map(ToString::to_string).collect::<Vec<_>>(), ["spot c7a.medium z"]);
    }

    #[test]
    fn orders_name_the_instance_and_the_object() {
        let engine = engine();
        let ended = order(Action::Terminate { claim: "b".to_owned() }, engine.world()).expect("it is there");
        assert!(matches!(&ended, Order::Terminate { provider_id, .. } if provider_id == "aws:///z/i-b"));
        assert_eq!(ended.object(), "b");
        let tagged = order(Action::TagInstance { claim: "c".to_owned() }, engine.world()).expect("it is there");
        assert!(matches!(&tagged, Order::Tag { node, .. } if node == "node-c"));
        assert!(order(Action::Terminate { claim: "gone".to_owned() }, engine.world()).is_none());
        let pod = whittle_model::PodKey::new("ns", "p");
        assert_eq!(order(Action::Evict { pod, uid: String::new() }, engine.world()).map(|order| order.object()), Some("ns/p".to_owned()));
    }
}
