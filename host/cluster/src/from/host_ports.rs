//! The ports of its node that a pod takes.

use k8s_openapi::api::core::v1 as core;
use whittle_model::{HostPort, Protocol};

use super::{Cx, requests::is_sidecar};

const PROTOCOLS: [(&str, Protocol); 3] = [("TCP", Protocol::Tcp), ("UDP", Protocol::Udp), ("SCTP", Protocol::Sctp)];
/// How all addresses of a node are written.
const ALL_ADDRESSES: [&str; 3] = ["", "0.0.0.0", "::"];

/// Host ports, each once, in order. Init containers that end have let go of theirs before the others start.
pub(super) fn host_ports(spec: &core::PodSpec, cx: &mut Cx) -> Vec<HostPort> {
    let on_host = spec.host_network == Some(true);
    let mut all = Vec::new();
    cx.each("containers", &spec.containers, |cx, one| of_container(one, on_host, &mut all, cx));
    cx.each("initContainers", spec.init_containers.as_deref().unwrap_or_default(), |cx, one| {
        if is_sidecar(one) {
            of_container(one, on_host, &mut all, cx);
        }
    });
    all.sort_unstable_by(|a: &HostPort, b| (a.port, a.protocol, &a.ip).cmp(&(b.port, b.protocol, &b.ip)));
    all.dedup();
    all
}

fn of_container(container: &core::Container, on_host: bool, all: &mut Vec<HostPort>, cx: &mut Cx) {
    cx.each("ports", container.ports.as_deref().unwrap_or_default(), |cx, one| {
        let written = one.host_port.unwrap_or(0);
        // On the host's network every port is the host's.
        let number = if written == 0 && on_host { one.container_port } else { written };
        if number == 0 {
            return;
        }
        let Some(port) = u16::try_from(number).ok().filter(|port| *port > 0) else {
            return cx.broken_at("hostPort", format!("{number} is no port; write 1 to 65535"));
        };
        let protocol = one.protocol.as_deref().unwrap_or("TCP");
        let Some((_, protocol)) = PROTOCOLS.into_iter().find(|(name, _)| *name == protocol) else {
            let words: Vec<&str> = PROTOCOLS.iter().map(|(word, _)| *word).collect();
            cx.one_of("protocol", protocol, &words);
            return;
        };
        let ip = one.host_ip.as_deref().filter(|ip| !ALL_ADDRESSES.contains(ip)).unwrap_or_default().to_owned();
        all.push(HostPort { port, protocol, ip });
    });
}
