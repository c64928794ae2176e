//! Which test or story holds which case of scheduling: public bug reports of other autoscalers, reduced to small inputs.
//! A test is named by its file and function, a story by its directory; one that goes away is missed here.

use std::fs;

/// The case in a few words, and what holds it.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: [Case; 24] = [
    ("S01", "an empty string is no zone", &["host/engine/tests/topology.rs an_empty_label_is_no_zone"]),
    (
        "S02",
        "a mistyped zone of one pool relaxes nobody's spread",
        &["host/engine/tests/topology.rs a_zone_without_an_offering_is_no_domain", "tests/stories/mistyped-zone"],
    ),
    ("S03", "minDomains with fewer zones than replicas", &["host/engine/tests/topology.rs the_least_count_is_zero_while_domains_are_few"]),
    (
        "S04",
        "of a pair the one tied to a volume decides the zone",
        &["host/engine/tests/topology.rs the_tighter_pod_decides_where_both_go"],
    ),
    ("S05", "a claim that names its volume but is not bound", &["host/engine/tests/pods.rs volumes_decide_the_zone"]),
    ("S06", "a volume with several zone terms", &["host/engine/tests/pods.rs a_zone_that_sells_nothing_is_passed_over_for_another_term"]),
    (
        "S07",
        "broken storage is one pod's problem",
        &["host/engine/tests/pods.rs broken_storage_is_one_pods_problem", "tests/stories/broken-storage"],
    ),
    (
        "S08",
        "attach limits, by distinct volume",
        &[
            "host/engine/tests/pods.rs a_node_holds_as_many_volumes_as_its_driver_says",
            "host/engine/tests/pods.rs new_nodes_hold_what_others_of_their_type_were_seen_to",
            "host/engine/tests/pods.rs a_shared_volume_counts_once_on_a_node",
        ],
    ),
    ("S09", "no selector, and one written twice", &["host/engine/tests/topology.rs selectors_that_select_nothing_ask_for_nothing"]),
    (
        "S10",
        "a preference with an odd key",
        &[
            "host/cluster/tests/pods.rs an_odd_preference_never_makes_a_pod_unreadable",
            "host/engine/tests/topology.rs preferences_hold_until_nothing_meets_them",
        ],
    ),
    (
        "S11",
        "NotIn, DoesNotExist, In and Exists of labels that are absent",
        &["host/engine/tests/topology.rs labels_that_are_absent_are_read_as_kubernetes_reads_them"],
    ),
    ("S12", "Exists on a pool is no fence", &["tests/stories/exists-is-no-fence"]),
    (
        "S13",
        "bounds from both sides, empty ranges, odd numbers",
        &[
            "tests/stories/bounds-on-both-sides",
            "host/model/tests_unit/requirement.rs every_operator_reads_as_documented",
            "host/model/tests_unit/requirement.rs values_that_do_not_suit_the_operator_are_refused",
            "host/cluster/tests/faults.rs faults_of_a_node_pool",
        ],
    ),
    ("S14", "a pool that filters out everything stops nobody", &["host/engine/tests/topology.rs a_pool_that_sells_nothing_stops_nobody"]),
    ("S15", "daemons that tolerate everything, on tainted pools", &["tests/stories/daemonset-everywhere"]),
    ("S16", "daemons with limits and no requests", &["tests/stories/daemonset-everywhere"]),
    (
        "S17",
        "daemons whose requests a LimitRange makes",
        &["host/engine/tests/pods.rs daemons_ask_for_what_they_run_with_before_what_their_template_says"],
    ),
    (
        "S18",
        "a daemon of some types only",
        &["tests/stories/daemonset-on-some-types", "host/engine/tests/pods.rs daemons_take_their_share_of_the_types_they_run_on"],
    ),
    (
        "S19",
        "less memory than was thought",
        &["host/engine/tests/pods.rs memory_that_a_node_turned_out_not_to_have_is_not_planned_with_again"],
    ),
    ("S20", "init containers and sidecars", &["tests/stories/init-containers"]),
    (
        "S21",
        "a soft eviction threshold shrinks no node",
        &["tests/stories/soft-eviction", "host/cluster/tests/faults.rs faults_of_a_node_class"],
    ),
    (
        "S45",
        "overlays: who wins, and labels that the pool leaves open",
        &[
            "tests/stories/overlay-prices",
            "host/engine/tests/overlays.rs capacity_is_merged_by_resource_and_the_highest_weight_wins",
            "host/engine/tests/overlays.rs a_price_is_of_its_pool_and_follows_the_list",
            "host/engine/tests/overlays.rs an_overlay_on_a_label_that_the_pool_leaves_open_is_for_those_who_ask_for_it",
        ],
    ),
    (
        "S46",
        "values that are odd but legal",
        &[
            "tests/stories/odd-values",
            "host/model/tests_unit/quantity.rs equal_amounts_are_equal",
            "host/model/tests_unit/quantity.rs amounts_finer_than_the_unit_round_up",
            "host/cluster/tests/faults.rs faults_of_a_node_pool",
        ],
    ),
    (
        "S47",
        "minValues: strict, relaxed, and after the list was cut",
        &[
            "tests/stories/min-values-strict",
            "tests/stories/min-values-best-effort",
            "host/engine/tests/flexible.rs the_list_is_cut_so_that_enough_values_stay_in_it",
        ],
    ),
];

/// Whether a place is there: a story with its answer, or a function of a file that is a test.
fn is_there(place: &str) -> bool {
    let root = whittle_tests::tree::root();
    match place.split_once(' ') {
        None => root.join(place).join("golden").is_file(),
        Some((file, function)) => {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.contains(&format!("#[test]\nfn {function}("))
        }
    }
}

#[test]
fn every_case_of_scheduling_has_its_test() {
    let missing: Vec<String> = CASES
        .iter()
        .flat_map(|(case, about, places)| places.iter().map(move |place| (case, about, place)))
        .filter(|(_, _, place)| !is_there(place))
        .map(|(case, about, place)| format!("{case} ({about}): {place} is not there"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(
        !is_there("host/engine/tests/topology.rs no_such_test") && !is_there("tests/stories/no-such-story"),
        "what is missing is missed"
    );
}
