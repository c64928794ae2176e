//! User data at its edges: what is broken is named, what is missing is filled in, what is too long is refused.

use serde_json::json;

use super::*;

fn boot_with<T>(user_data: &str, kubelet: serde_json::Value, use_it: impl FnOnce(&Boot<'_>) -> T) -> T {
    let cluster = ClusterFacts {
        name: "shop".to_owned(),
        endpoint: "https://api".to_owned(),
        service_cidr: Some("10.0.0.0/16".to_owned()),
        ..ClusterFacts::default()
    };
    let kubelet = serde_json::from_value(kubelet).expect("a kubelet is a map");
    use_it(&Boot {
        cluster: &cluster,
        kubelet: &kubelet,
        labels: &Labels::new(),
        taints: &[],
        startup_taints: &[],
        raid0: false,
        user_data: Some(user_data),
        image_version: None,
    })
}

fn refusal(family: Family, user_data: &str) -> String {
    boot_with(user_data, json!({}), |boot| render(family, boot).map_or_else(|error| error.to_string(), |made| made.text))
}

#[test]
fn labels_of_kubernetes_domains_are_left_to_registration() {
    for (label, own) in [
        ("team", true),
        ("example.com/team", true),
        ("karpenter.sh/nodepool", true),
        ("karpenter.k8s.aws/ec2nodeclass", true),
        ("topology.k8s.aws/zone-id", true),
        ("notkubernetes.io/x", true),
        ("notk8s.io/x", true),
        ("kubernetes.io/arch", false),
        ("node.kubernetes.io/instance-type", false),
        ("topology.kubernetes.io/zone", false),
        ("node-restriction.kubernetes.io/x", false),
        ("a.node-restriction.kubernetes.io/x", false),
        ("k8s.io/x", false),
        ("scheduling.k8s.io/x", false),
    ] {
        assert_eq!(kubelet_may_set(label), own, "{label}");
    }
}

#[test]
fn a_broken_archive_names_its_line() {
    for (text, said) in [
        ("MIME-Version: 1.0\n\nbody", "line 1: an archive begins with a Content-Type header"),
        ("MIME-Version: 1.0\nContent-Type: text/plain\n\nbody", "line 2: \"text/plain\" is no archive"),
        ("Content-Type: multipart/mixed\n\nbody", "line 1: the content type names no boundary"),
        ("Content-Type: multipart/mixed; boundary=\"B\"\nno header\n\n", "line 2: \"no header\" is no header"),
        ("Content-Type: multipart/mixed; boundary=\"B\"", "line 1: the text ends before the blank line"),
        (
            "Content-Type: multipart/mixed; boundary=\"B\"\n\n--B\n\n#!/bin/sh\n",
            "line 5: the archive is not closed, it must end with --B--",
        ),
        ("Content-Type: multipart/mixed; boundary=B\n\n--B\n#!/bin/sh\n\n--B--", "line 4: \"#!/bin/sh\" is no header"),
        ("\n\nContent-Type: multipart/mixed; boundary=B\n\n--B\noh no\n--B--", "line 6: \"oh no\" is no header"),
    ] {
        for family in [Family::Al2, Family::Al2023] {
            let refusal = refusal(family, text);
            assert!(refusal.starts_with(&format!("reading userData as a MIME archive, {said}")), "{text:?}: {refusal}");
        }
    }
}

#[test]
fn an_archive_may_hold_any_boundary() {
    let text = "Content-Type: multipart/mixed; boundary=\"A B\"\r\n\r\n--A B\r\nContent-Type: text/x-shellscript\r\n\r\necho\r\n--//\r\n--//+\r\n--A B--\r\n";
    let made = refusal(Family::Al2, text);
    assert!(made.starts_with("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//++\"\n\n--//++\n"), "{made}");
    assert!(made.contains("\n\necho\n--//\n--//+\n--//++\nContent-Type: text/x-shellscript; charset"), "{made}");
    assert!(!made.contains('\r'));
}

#[test]
fn broken_settings_name_their_key_and_line() {
    for (text, said) in [
        ("[settings]\nbroken", "reading userData as TOML, line 2: "),
        ("#!/bin/sh\necho", "reading userData as TOML, line 2: "),
        ("settings = 1", "reading userData, line 1: settings is of type integer, it must be a table"),
        ("[settings]\n\nkubernetes = []", "reading userData, line 3: settings.kubernetes is of type array, it must be a table"),
        (
            "[settings.kubernetes]\n\n\"max-pods\" = \"10\"",
            "reading userData, line 3: settings.kubernetes.max-pods is of type string, it must be an integer",
        ),
        (
            "[settings.kubernetes.node-labels]\na = 'b'\nc = 1",
            "reading userData, line 3: settings.kubernetes.node-labels.c is of type integer, it must be a string",
        ),
        (
            "settings.kubernetes.static-pods.probe.enabled = 'yes'",
            "reading userData, line 1: settings.kubernetes.static-pods.probe.enabled is of type string, it must be true or false",
        ),
        (
            "[settings.kubernetes]\nallowed-unsafe-sysctls = ['a', 1]",
            "reading userData, line 2: settings.kubernetes.allowed-unsafe-sysctls is of type array, it must be an array of strings",
        ),
    ] {
        let refusal = refusal(Family::Bottlerocket, text);
        assert!(refusal.starts_with(said), "{text:?}: {refusal}");
    }
}

#[test]
fn a_node_config_that_is_no_yaml_is_not_run_as_a_script() {
    let refusal = refusal(Family::Al2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [\n");
    assert!(refusal.starts_with("reading userData as a NodeConfig, line "), "{refusal}");
}

#[test]
fn text_that_is_no_archive_gets_the_type_it_has() {
    for (text, kind) in [
        ("#!/bin/bash\necho hello", "text/x-shellscript"),
        ("just words", "text/x-shellscript"),
        ("- a list", "text/x-shellscript"),
        ("spec:\n  kubelet: {}\n", "application/node.eks.aws"),
        ("# only a comment", "application/node.eks.aws"),
        ("a: 1\na: 2", "application/node.eks.aws"),
        ("a: 1\n---\nb: 2", "application/node.eks.aws"),
    ] {
        let made = refusal(Family::Al2023, text);
        assert!(made.contains(&format!("\n--//\nContent-Type: {kind}")) && made.find(kind) < made.find(text), "{text:?}: {made}");
    }
}

#[test]
fn wrong_kubelet_fields_are_named() {
    for (kubelet, said) in [
        (json!({"maxPods": "vcpus * 10"}), "reading kubelet.maxPods: "),
        (json!({"systemReserved": {"cpu": 1}}), "reading kubelet.systemReserved: "),
        (json!({"clusterDNS": "10.0.0.10"}), "reading kubelet.clusterDNS: "),
        (json!({"imageGCHighThresholdPercent": 9_999_999_999_u64}), "reading kubelet.imageGCHighThresholdPercent: "),
    ] {
        for family in [Family::Al2, Family::Bottlerocket, Family::Windows2022] {
            let refusal = boot_with("", kubelet.clone(), |boot| render(family, boot).map_err(|error| error.to_string()));
            assert!(refusal.is_err_and(|error| error.starts_with(said)), "{kubelet}");
        }
    }
}

#[test]
fn what_the_family_cannot_apply_is_named() {
    let fields =
        serde_json::from_value(json!({"maxPods": 1, "podsPerCore": 2, "serializeImagePulls": false})).expect("the fields are a map");
    for (family, left) in [
        (Family::Al2, &["serializeImagePulls"][..]),
        (Family::Windows2022, &["serializeImagePulls"]),
        (Family::Bottlerocket, &["podsPerCore", "serializeImagePulls"]),
        (Family::Al2023, &[]),
        (Family::Custom, &[]),
    ] {
        assert_eq!(unapplied_kubelet_fields(family, &fields), left, "{family}");
    }
}

#[test]
fn max_pods_and_dns_are_filled_in() {
    let dns = "10.0.0.10".parse().ok();
    for (class, resolved) in [
        (json!(null), json!({"maxPods": 29, "clusterDNS": ["10.0.0.10"]})),
        (json!({"maxPods": 5, "clusterDNS": []}), json!({"maxPods": 5, "clusterDNS": ["10.0.0.10"]})),
        (json!({"maxPods": "vcpus", "clusterDNS": ["1.1.1.1"]}), json!({"maxPods": 29, "clusterDNS": ["1.1.1.1"]})),
    ] {
        let class: Option<BTreeMap<String, serde_json::Value>> = serde_json::from_value(class).expect("a map or nothing");
        assert_eq!(json!(resolve_kubelet(class.as_ref(), 29, dns)), resolved);
    }
}

#[test]
fn there_is_a_limit_and_a_warning_before_it() {
    for (bytes, near) in [(100, false), (14_741, false), (14_742, true), (16_384, true)] {
        let made = boot_with(&"x".repeat(bytes), json!({}), |boot| render(Family::Custom, boot));
        assert_eq!(made.as_ref().map(UserData::near_limit), Ok(near), "{bytes}");
        assert_eq!(made.map(|made| made.base64().len()), Ok(bytes.div_ceil(3) * 4));
    }
    let refused = boot_with(&"x".repeat(16_385), json!({}), |boot| render(Family::Custom, boot));
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err("making user data: 16385 bytes are more than the 16384 that EC2 takes, shorten userData by 1 bytes".to_owned())
    );
}

#[test]
fn facts_that_are_missing_or_wrong_are_named() {
    let kubelet = BTreeMap::new();
    let labels = Labels::new();
    let cluster = |cidr: Option<&str>, ca: Option<&str>| ClusterFacts {
        name: "shop".to_owned(),
        service_cidr: cidr.map(str::to_owned),
        ca_bundle: ca.map(str::to_owned),
        ..ClusterFacts::default()
    };
    let render = |cluster: &ClusterFacts| {
        let boot = Boot {
            cluster,
            kubelet: &kubelet,
            labels: &labels,
            taints: &[],
            startup_taints: &[],
            raid0: false,
            user_data: None,
            image_version: None,
        };
        render(Family::Al2023, &boot)
    };
    assert_eq!(render(&cluster(None, None)), Err(ImageError::NoClusterCidr("shop".to_owned())));
    assert_eq!(render(&cluster(Some(""), None)), Err(ImageError::NoClusterCidr("shop".to_owned())));
    let wrong = render(&cluster(Some("10.0.0.0/16"), Some("not base64!")));
    assert!(matches!(wrong, Err(ImageError::CaBundle { .. })), "{wrong:?}");
}

#[test]
fn the_release_of_bottlerocket_is_found_where_it_is_said() {
    use whittle_model::ec2_node_class::{Ami, AmiSelectorTerm};
    let name = "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a";
    let image = |id: &str, name: &str| Ami { id: id.to_owned(), name: Some(name.to_owned()), deprecated: None, requirements: Vec::new() };
    let images = [image("ami-1", "other-v9.9"), image("ami-2", name), image("ami-3", "bottlerocket-v1.50.0")];
    let term = |alias: &str, id: &str, name: &str| {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        AmiSelectorTerm { alias: some(alias), id: some(id), name: some(name), ..AmiSelectorTerm::default() }
    };
    for (term, version) in [
        (term("bottlerocket@latest", "", ""), "latest"),
        (term("", "", "bottlerocket-*-v1.40.0-*"), "v1.40.0"),
        (term("", "ami-3", ""), "v1.50.0"),
        (term("", "ami-1", ""), "v1.46.0"),
    ] {
        assert_eq!(bottlerocket_version(&[term], &images).as_deref(), Some(version));
    }
    assert_eq!(bottlerocket_version(&[term("", "ami-1", "")], &images[..1]), None);
}
