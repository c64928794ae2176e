//! The command line of each server. What must not enter: when it is started.

use std::process::Command;

use super::{Bed, server};

/// Every write is noted, but for those of kubelets.
pub(super) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: [\"system:nodes\"]}
- {level: Metadata}
";

type Server = (&'static str, Command);

fn program(bed: &Bed, name: &str, flags: &[String]) -> Command {
    let mut command = Command::new(bed.programs.bin(name));
    command.args(flags);
    command
}

pub(super) fn etcd(bed: &Bed) -> Server {
    let (clients, peers) = (format!("http://127.0.0.1:{}", bed.ports.etcd), format!("http://127.0.0.1:{}", bed.ports.etcd_peer));
    let flags = [
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        "--unsafe-no-fsync".to_owned(),
    ];
    ("etcd", program(bed, "etcd", &flags))
}

pub(super) fn api_server(bed: &Bed) -> Server {
    let flags = [
        format!("--etcd-servers=http://127.0.0.1:{}", bed.ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", bed.ports.api),
        "--endpoint-reconciler-type=none".to_owned(),
        "--tls-cert-file=pki/server.crt".to_owned(),
        "--tls-private-key-file=pki/server.key".to_owned(),
        "--client-ca-file=pki/ca.crt".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        format!("--service-account-issuer={}/", server(bed.ports)),
        "--service-account-key-file=pki/accounts.pub".to_owned(),
        "--service-account-signing-key-file=pki/accounts.key".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--audit-policy-file=audit.yaml".to_owned(),
        "--audit-log-path=audit.log".to_owned(),
        "--audit-log-mode=blocking".to_owned(),
    ];
    ("api-server", program(bed, "kube-apiserver", &flags))
}

/// Flags that the controller manager and the scheduler share.
fn client_flags(kubeconfig: &str, port: u16) -> Vec<String> {
    let mut flags: Vec<String> = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .iter()
        .map(|flag| format!("--{flag}=pki/{kubeconfig}.conf"))
        .collect();
    flags.push("--bind-address=127.0.0.1".to_owned());
    flags.push(format!("--secure-port={port}"));
    flags.extend(["--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000"].map(str::to_owned));
    flags
}

pub(super) fn controller_manager(bed: &Bed) -> Server {
    let mut flags = client_flags("kcm", bed.ports.kcm);
    let more = [
        "--use-service-account-credentials",
        "--service-account-private-key-file=pki/accounts.key",
        "--root-ca-file=pki/ca.crt",
        "--node-monitor-grace-period=40s",
    ];
    flags.extend(more.map(str::to_owned));
    ("controller-manager", program(bed, "kube-controller-manager", &flags))
}

pub(super) fn scheduler(bed: &Bed) -> Server {
    ("scheduler", program(bed, "kube-scheduler", &client_flags("scheduler", bed.ports.scheduler)))
}

pub(super) fn kwok(bed: &Bed) -> Server {
    let flags = [
        "--kubeconfig=pki/admin.conf".to_owned(),
        "--config=stages.yaml".to_owned(),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
        "--cidr=10.244.0.0/16".to_owned(),
    ];
    ("kwok", program(bed, "kwok", &flags))
}

pub(super) fn proxy(bed: &Bed) -> Server {
    let mut command = Command::new(bed.programs.bin("kubectl"));
    command.args(["--kubeconfig=pki/admin.conf", "proxy", &format!("--port={}", bed.ports.proxy)]);
    ("proxy", command)
}

pub(super) fn aws(bed: &Bed) -> Server {
    let mut command = Command::new(&bed.programs.python);
    command
        .arg(bed.programs.bed("aws.py"))
        .arg(bed.ports.aws.to_string())
        .arg(bed.programs.root.join("host/catalog/data/on-demand-prices.csv"));
    ("aws", command)
}

pub(super) fn joiner(bed: &Bed, boot: u32) -> Server {
    let mut command = Command::new(&bed.programs.python);
    command.arg("-u").arg(bed.programs.bed("joiner.py")).arg(&bed.aws.url).arg(boot.to_string());
    command.env("KUBECONFIG", bed.keys.path("admin.conf"));
    ("joiner", command)
}
