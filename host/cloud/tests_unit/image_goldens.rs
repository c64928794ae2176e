//! User data of every case under `tests/image` against what stands beside it: `NAME.user-data`.
//! The answers were compared, value for value, with what Karpenter makes of the same cases.

use super::case::Case;

#[test]
fn user_data_is_as_it_should_be() {
    let mut checked = 0;
    for entry in std::fs::read_dir(Case::folder()).expect("the cases are part of the sources") {
        let path = entry.expect("the folder can be read").path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.extension().is_none_or(|kind| kind != "user-data") {
            continue;
        }
        let (spec, user_data) = Case::read(name).template().expect("every case is well formed");
        let golden = std::fs::read_to_string(&path).expect("the answer is a text");
        assert_eq!(user_data.text, golden, "{name}");
        assert_eq!(spec.user_data, golden, "{name}");
        assert!(golden.lines().count() <= 60, "{name}");
        checked += 1;
    }
    assert!(checked >= 11, "{checked} answers were found");
}

#[test]
fn settings_that_bottlerocket_does_not_know_are_named() {
    let (_, user_data) = Case::read("bottlerocket-merge").template().expect("the case is well formed");
    let left_out = ["other", "settings.kubernetes.static-pods.probe.unknown", "settings.kubernetes.unknown-setting"];
    assert_eq!(user_data.left_out, left_out);
}
