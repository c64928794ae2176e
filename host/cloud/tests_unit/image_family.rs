//! Families and aliases: what they are called, and how they differ.

use whittle_model::ec2_node_class::AmiSelectorTerm;

use super::*;

fn alias(text: &str) -> Result<Alias, ImageError> {
    text.parse()
}

#[test]
fn aliases_are_a_family_and_a_version() {
    for (text, family, version) in [
        ("al2@latest", Family::Al2, "latest"),
        ("al2023@v20250801", Family::Al2023, "v20250801"),
        ("bottlerocket@1.46.0", Family::Bottlerocket, "1.46.0"),
        ("windows2025@latest", Family::Windows2025, "latest"),
    ] {
        let read = alias(text);
        assert_eq!(read, Ok(Alias { family, version: version.to_owned() }));
        assert_eq!(read.map(|alias| alias.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn a_wrong_alias_says_what_would_be_right() {
    for (text, why) in [
        ("al2023", "it must be family@version"),
        ("al2023@", "it must be family@version"),
        ("al2023@a@b", "it must be family@version"),
        ("AL2023@latest", "no images are published for this family"),
        ("custom@latest", "no images are published for this family"),
        ("ubuntu@latest", "no images are published for this family"),
        ("windows2022@v1", "use @latest"),
    ] {
        let error = alias(text).map_err(|error| error.to_string());
        assert!(matches!(&error, Err(said) if said.contains(why) && said.contains(text)), "{text}: {error:?}");
    }
}

#[test]
fn versions_of_kubernetes_without_images_are_refused() {
    for (text, minor, there) in [
        ("al2@latest", 32, true),
        ("al2@latest", 33, false),
        ("al2023@latest", 40, true),
        ("windows2025@latest", 34, false),
        ("windows2025@latest", 35, true),
        ("windows2019@latest", 26, true),
    ] {
        assert_eq!(alias(text).and_then(|alias| alias.check(minor)).is_ok(), there, "{text} on 1.{minor}");
    }
}

#[test]
fn a_class_has_the_family_it_says_or_that_of_its_alias() {
    let of = |name: Option<&str>, alias: Option<&str>| {
        let term = AmiSelectorTerm { alias: alias.map(str::to_owned), ..AmiSelectorTerm::default() };
        let fields = serde_json::json!({
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [term], "amiFamily": name
        });
        Family::of(&serde_json::from_value(fields).expect("a class has these fields"))
    };
    for (name, alias, family) in [
        (None, Some("al2023@latest"), Family::Al2023),
        (Some("Custom"), Some("al2023@latest"), Family::Custom),
        (Some("Bottlerocket"), None, Family::Bottlerocket),
        (None, None, Family::Custom),
    ] {
        assert_eq!(of(name, alias), Ok(family));
    }
    assert!(of(Some("Ubuntu"), None).is_err());
    assert!(of(None, Some("al2023")).is_err());
}

/// Name, its ephemeral device, default disks, and traits: memory by interfaces, pods a core, pods by interfaces, any kubelet field.
#[test]
fn families_differ_as_documented() {
    let page: Vec<String> = Family::ALL
        .into_iter()
        .map(|family| {
            let disks: Vec<String> = family
                .default_block_devices()
                .into_iter()
                .filter_map(|disk| Some(format!("{}={}", disk.device_name?, disk.ebs?.volume_size?)))
                .collect();
            let traits = family.traits();
            let flags =
                [traits.eni_limited_memory_overhead, traits.pods_per_core, traits.eni_limited_pod_density, traits.any_kubelet_field];
            let flags: String = flags.iter().map(|flag| if *flag { 'y' } else { 'n' }).collect();
            format!("{family} {} {} {flags}", family.ephemeral_device().unwrap_or("-"), disks.join(","))
        })
        .collect();
    assert_eq!(
        page,
        [
            "AL2 /dev/xvda /dev/xvda=20Gi yyyn",
            "AL2023 /dev/xvda /dev/xvda=20Gi yyyy",
            "Bottlerocket /dev/xvdb /dev/xvda=4Gi,/dev/xvdb=20Gi nnyn",
            "Custom -  yyyn",
            "Windows2019 /dev/sda1 /dev/sda1=50Gi nynn",
            "Windows2022 /dev/sda1 /dev/sda1=50Gi nynn",
            "Windows2025 /dev/sda1 /dev/sda1=50Gi nynn",
        ]
    );
}
