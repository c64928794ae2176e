//! Host ports: which of the ports that pods to be placed ask for are taken on a node. Only those ports have numbers;
//! what runs already and what daemons bring is known by the numbers it bars.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use whittle_model::HostPort;

use super::classes::Member;
use crate::world::World;

/// A set of numbered ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PortSet(SmallVec<[u64; 1]>);

impl PortSet {
    /// Whether it holds none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the two share a port.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Takes all of `other` in.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }
}

/// The ports of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortUse {
    /// What it takes.
    pub(crate) takes: PortSet,
    /// What nobody else can take beside it.
    pub(crate) bars: PortSet,
}

impl PortUse {
    /// Whether the class asks for no port.
    pub(crate) fn is_empty(&self) -> bool {
        self.takes.is_empty()
    }

    /// Whether pods of the two cannot share a node.
    pub(crate) fn collides(&self, other: &Self) -> bool {
        self.takes.meets(&other.bars)
    }
}

/// The ports that pods to be placed ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports<'w>(Vec<&'w HostPort>);

impl<'w> Ports<'w> {
    /// The ports of these pods.
    pub(crate) fn new(world: &'w World, pods: &[Member<'w>]) -> Self {
        if world.shapes.values().all(|shape| shape.host_ports.is_empty()) {
            return Self::default();
        }
        let shapes: BTreeSet<u32> = pods.iter().map(|pod| pod.record.shape).collect();
        let all: BTreeSet<&HostPort> = shapes.iter().flat_map(|shape| &world.shapes.value(*shape).host_ports).collect();
        Self(all.into_iter().collect())
    }

    /// Whether nobody asks for any.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What pods with these ports take and bar.
    pub(crate) fn used(&self, ports: &[HostPort]) -> PortUse {
        let mut takes = PortSet::default();
        for port in ports {
            if let Ok(number) = self.0.binary_search(&port) {
                takes.insert(number);
            }
        }
        PortUse { takes, bars: self.barred(ports) }
    }

    /// The ports in play that cannot be taken where these are.
    pub(crate) fn barred(&self, ports: &[HostPort]) -> PortSet {
        let mut bars = PortSet::default();
        for (number, known) in self.0.iter().enumerate() {
            if ports.iter().any(|port| port.collides(known)) {
                bars.insert(number);
            }
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whittle_model::Protocol;

    fn port(port: u16, protocol: Protocol, ip: &str) -> HostPort {
        HostPort { port, protocol, ip: ip.to_owned() }
    }

    #[test]
    fn ports_collide_by_number_protocol_and_address() {
        let all = [
            port(80, Protocol::Tcp, ""),
            port(80, Protocol::Tcp, "10.0.0.1"),
            port(80, Protocol::Tcp, "10.0.0.2"),
            port(80, Protocol::Udp, ""),
            port(81, Protocol::Tcp, ""),
        ];
        let mut known: Vec<&HostPort> = all.iter().collect();
        known.sort();
        let ports = Ports(known);
        for a in &all {
            for b in &all {
                let (one, other) = (ports.used(std::slice::from_ref(a)), ports.used(std::slice::from_ref(b)));
                assert_eq!(one.collides(&other), a.collides(b), "{a:?} {b:?}");
                assert_eq!(other.collides(&one), a.collides(b), "{a:?} {b:?}");
                // What is not in play bars all the same.
                let stranger = HostPort { ip: "10.0.0.9".to_owned(), ..b.clone() };
                let barred = ports.barred(std::slice::from_ref(&stranger));
                assert_eq!(one.takes.meets(&barred), a.collides(&stranger), "{a:?} {stranger:?}");
            }
        }
    }

    #[test]
    fn sets_grow_past_a_word() {
        let (mut low, mut high) = (PortSet::default(), PortSet::default());
        low.insert(3);
        high.insert(130);
        assert!(!low.meets(&high) && !high.meets(&low) && PortSet::default().is_empty());
        low.join(&high);
        assert!(low.meets(&high) && high.meets(&low));
    }
}
