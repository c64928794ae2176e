//! Which images are taken, and what is asked to find them.

use super::*;

fn image(id: &str, arch: &'static str, created: i64, deprecated: Option<i64>) -> Image {
    Image { id: id.to_owned(), name: format!("{id}-name"), arch, created: Some(Timestamp(created)), deprecated: deprecated.map(Timestamp) }
}

fn chosen(found: &[Image], variants: &Variants) -> Vec<String> {
    let told = |ami: &Ami| format!("{}{} {}", ami.id, if ami.deprecated { " deprecated" } else { "" }, ami.requirements);
    choose(found, variants, Timestamp(100)).iter().map(told).collect()
}

#[test]
fn the_newest_of_each_kind_is_taken_and_a_deprecated_one_only_without_another() {
    let arch = "kubernetes.io/arch In";
    for (found, taken) in [
        (vec![image("a", "amd64", 1, None), image("b", "amd64", 2, None)], vec![format!("b {arch} [amd64]")]),
        (vec![image("a", "amd64", 1, None), image("b", "arm64", 2, None)], vec![format!("b {arch} [arm64]"), format!("a {arch} [amd64]")]),
        (vec![image("a", "amd64", 1, None), image("b", "amd64", 2, Some(100))], vec![format!("a {arch} [amd64]")]),
        (vec![image("a", "amd64", 1, None), image("b", "amd64", 2, Some(101))], vec![format!("b {arch} [amd64]")]),
        (vec![image("a", "amd64", 1, Some(5)), image("b", "amd64", 2, Some(5))], vec![format!("b deprecated {arch} [amd64]")]),
        // Of one age: the greater name. Equal in age, the first id stands first.
        (vec![image("b", "amd64", 1, None), image("a", "amd64", 1, None)], vec![format!("b {arch} [amd64]")]),
        (vec![image("b", "amd64", 1, None), image("a", "arm64", 1, None)], vec![format!("a {arch} [arm64]"), format!("b {arch} [amd64]")]),
        (Vec::new(), Vec::new()),
    ] {
        assert_eq!(chosen(&found, &Variants::new()), taken, "{found:?}");
    }
}

#[test]
fn an_image_of_two_variants_is_listed_twice() {
    let variants = Variants::from([("gpu".to_owned(), BTreeSet::from([Variant::Neuron, Variant::Nvidia]))]);
    assert_eq!(
        chosen(&[image("gpu", "amd64", 1, None)], &variants),
        [
            "gpu karpenter.k8s.aws/instance-accelerator-count Exists; kubernetes.io/arch In [amd64]",
            "gpu karpenter.k8s.aws/instance-gpu-count Exists; kubernetes.io/arch In [amd64]",
        ]
    );
}

#[test]
fn terms_become_as_few_questions_as_there_can_be() {
    let terms: Vec<AmiSelectorTerm> = serde_json::from_value(serde_json::json!([
        {"id": "ami-1"}, {"name": "a-*"}, {"name": "b", "owner": "1"}, {"tags": {"x": "*", "y": "z"}}, {"owner": "2"},
        {"ssmParameter": "/p"}, {"id": "ami-2"}, {"ssmParameter": "/q"}, {"alias": "al2023@latest"},
    ]))
    .unwrap();
    let asked: Vec<String> = queries(&terms, &BTreeMap::from([(5, "ami-3".to_owned())])).iter().map(Query::key).collect();
    assert_eq!(
        asked,
        [
            r#"[("name", ["a-*"])] ["self", "amazon"] None"#,
            r#"[("name", ["b"])] ["1"] None"#,
            r#"[("tag-key", ["x"]), ("tag:y", ["z"])] [] None"#,
            r#"[] ["2"] None"#,
            r#"[("image-id", ["ami-1", "ami-2", "ami-3"])] [] None"#,
        ]
    );
}

#[test]
fn what_ec2_says_of_an_image_is_read() {
    let answer =
        |arch: &str| types::Image::builder().image_id("ami-1").architecture(arch.into()).creation_date("1970-01-01T00:00:01.500Z").build();
    let read = image_of(&answer("x86_64"));
    assert_eq!(read.map(|image| (image.arch, image.created, image.deprecated)), Some(("amd64", Some(Timestamp(1500)), None)));
    assert_eq!(image_of(&answer("i386")), None);
}

proptest::proptest! {
    #[test]
    fn what_is_taken_does_not_depend_on_the_order_of_answers(
        made in proptest::collection::vec((0..2_usize, 0..4_i64, proptest::option::of(98..103_i64)), 0..12),
        turn in 0..12_usize,
    ) {
        let found: Vec<Image> = made
            .iter()
            .enumerate()
            .map(|(at, (arch, created, deprecated))| image(&format!("ami-{at}"), ["amd64", "arm64"][*arch], *created, *deprecated))
            .collect();
        let mut turned = found.clone();
        turned.rotate_left(turn.min(found.len()));
        turned.reverse();
        proptest::prop_assert_eq!(chosen(&found, &Variants::new()), chosen(&turned, &Variants::new()));
    }
}
