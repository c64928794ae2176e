//! Network interfaces of an instance: those its class lists, or one for each EFA card, or one.
//!
//! Rules: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html>. What must not enter: AWS
//! types, subnets.

use serde::Serialize;
use whittle_model::ec2_node_class::{ConnectionTracking, Ec2NodeClassSpec};

use super::volume::narrow;
use super::{ImageError, IpFamily};

/// An interface that has EFA and no addresses.
const EFA_ONLY: &str = "efa-only";

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Interface {
    /// Its card; the first when absent.
    pub card: Option<i32>,
    /// Its device on the card.
    pub device: i32,
    /// `interface`, `efa` or `efa-only`; plain when absent.
    pub kind: Option<String>,
    /// Ids of its security groups, ordered.
    pub groups: Vec<String>,
    /// Whether it gets a public address; the subnet's setting when absent.
    pub public_address: Option<bool>,
    /// How many IPv4 prefixes it gets.
    pub ipv4_prefixes: Option<i32>,
    /// How many IPv6 prefixes it gets.
    pub ipv6_prefixes: Option<i32>,
    /// How many IPv6 addresses it gets; the first becomes primary.
    pub ipv6_addresses: Option<i32>,
    /// Time-outs of tracked connections.
    pub tracking: Option<Tracking>,
}

/// Seconds until an idle connection is forgotten; EC2's default when absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tracking {
    /// Established TCP.
    pub tcp_established: Option<i32>,
    /// UDP that was answered.
    pub udp_stream: Option<i32>,
    /// UDP that was not.
    pub udp: Option<i32>,
}

impl Tracking {
    /// Those of a class; none when it names no time-out.
    fn of(class: Option<&ConnectionTracking>) -> Result<Option<Self>, ImageError> {
        let Some(said) = class else { return Ok(None) };
        let seconds = |field, value: Option<i64>| value.map(|value| narrow(field, value)).transpose();
        let read = Self {
            tcp_established: seconds("connectionTracking.tcpEstablishedTimeout", said.tcp_established_timeout)?,
            udp_stream: seconds("connectionTracking.udpStreamTimeout", said.udp_stream_timeout)?,
            udp: seconds("connectionTracking.udpTimeout", said.udp_timeout)?,
        };
        Ok(Some(read).filter(|read| *read != Self::default()))
    }
}

/// The interfaces of an instance with `efas` EFA cards to use.
pub(super) fn interfaces(class: &Ec2NodeClassSpec, groups: &[String], family: IpFamily, efas: u32) -> Result<Vec<Interface>, ImageError> {
    let v6 = family == IpFamily::V6;
    let base = Interface { groups: groups.to_vec(), ..Interface::default() };
    let addressed = Interface {
        public_address: class.associate_public_ip_address,
        ipv4_prefixes: class.ip_prefix_count.filter(|_| !v6),
        ipv6_prefixes: class.ip_prefix_count.filter(|_| v6),
        ipv6_addresses: v6.then_some(1),
        tracking: Tracking::of(class.connection_tracking.as_ref())?,
        ..base.clone()
    };
    if let Some(listed) = class.network_interfaces.as_ref().filter(|listed| !listed.is_empty()) {
        let mut all: Vec<Interface> = listed
            .iter()
            .map(|nic| {
                // RunInstances refuses addresses on an interface that has none.
                let like = if nic.interface_type == EFA_ONLY { &base } else { &addressed };
                Interface {
                    card: Some(nic.network_card_index),
                    device: nic.device_index,
                    kind: Some(nic.interface_type.clone()),
                    ..like.clone()
                }
            })
            .collect();
        all.sort_by_key(|nic| (nic.card, nic.device));
        return Ok(all);
    }
    if efas == 0 {
        return Ok(vec![addressed]);
    }
    // Only device 0 of card 0 is the primary interface; every further card begins at device 1.
    Ok((0..i32::try_from(efas).unwrap_or(i32::MAX))
        .map(|card| Interface { card: Some(card), device: card.min(1), kind: Some("efa".to_owned()), ..addressed.clone() })
        .collect())
}

#[cfg(test)]
#[path = "../../tests_unit/image_interface.rs"]
mod tests;
