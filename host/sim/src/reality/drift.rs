//! What node classes come to, what instances were given of it, and the news when the two no longer agree.
//!
//! What must not enter: what follows from a difference; the engine decides.

use whittle_model::{ComesTo, Event, Labels, OfferingKey, Provided, provider_drift};

use super::Reality;
use super::ec2::Instance;

impl Reality {
    /// What a class comes to from now on. Instances that were bought before may differ from it.
    pub(super) fn comes_to(&mut self, class: &str, comes_to: ComesTo) {
        let before = self.ec2.comes_to.insert(class.to_owned(), comes_to);
        if before.is_some_and(|before| before != self.ec2.comes_to[class]) {
            let of_class = self.ec2.running().filter(|instance| instance.node_class == class);
            let news: Vec<Event> = of_class.map(|instance| self.drift(instance)).collect();
            news.into_iter().for_each(|event| self.tell(event));
        }
    }

    /// What an instance of a class is given.
    pub(super) fn provided(&self, class: &str, offering: &OfferingKey) -> Provided {
        let Some(comes_to) = self.ec2.comes_to.get(class) else { return Provided::default() };
        let labels = self.labels_of_type(class, &offering.instance_type);
        let boots = comes_to.images.iter().find(|(_, requirements)| labels.is_some_and(|labels| requirements.met_by(labels)));
        let subnet = comes_to.subnets.iter().find(|subnet| subnet.zone == offering.zone);
        Provided {
            image: boots.map(|(image, _)| image.clone()).unwrap_or_default(),
            subnet: subnet.map(|subnet| subnet.id.clone()).unwrap_or_default(),
            security_groups: comes_to.security_groups.clone(),
            ..Provided::default()
        }
    }

    /// Whether an instance differs from what its class comes to, as AWS would answer who asks.
    fn drift(&self, instance: &Instance) -> Event {
        let labels = self.labels_of_type(&instance.node_class, &instance.offering.instance_type);
        let class = self.ec2.comes_to.get(&instance.node_class);
        let reason = class.and_then(|class| provider_drift(class, &instance.provided, labels));
        Event::ProviderDrift { claim: instance.claim.clone(), reason: reason.map(ToOwned::to_owned) }
    }

    /// All differences there are, for a controller that starts.
    pub(super) fn drifts(&self) -> Vec<Event> {
        let all = self.ec2.running().filter(|instance| self.api.claims.contains_key(&instance.claim)).map(|instance| self.drift(instance));
        all.filter(|event| matches!(event, Event::ProviderDrift { reason: Some(_), .. })).collect()
    }

    fn labels_of_type(&self, class: &str, instance_type: &str) -> Option<&Labels> {
        self.api.catalogs.get(class)?.get(instance_type).map(|found| &found.labels)
    }
}
