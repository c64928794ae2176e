//! The rules of the house, each a function from files to breaches. A rule knows nothing of this
//! project's history and takes no exceptions but those written in it.

pub mod code;
pub mod manifests;
pub mod pages;
pub mod rooms;

use crate::{Breach, File};

/// A rule: all files in, what breaks it out.
pub type Rule = fn(&[File]) -> Vec<Breach>;

/// Every rule with its name.
pub const ALL: [(&str, Rule); 20] = [
    ("rooms know only whom they may", rooms::dependency_table),
    ("no room reaches a forbidden crate through others", rooms::forbidden_behind),
    ("house lints are denied", manifests::house_lints),
    ("members take the house lints", manifests::members_take_lints),
    ("deterministic rooms ban clocks and hash order", manifests::deterministic_bans),
    ("the lock file is committed and names one registry", manifests::lock_file),
    ("files are short", code::short_files),
    ("modules say what they are for", code::modules_open_with_purpose),
    ("crates say what must not enter", code::roots_say_what_must_not_enter),
    ("nothing is allowed by attribute", code::no_allow),
    ("unsafe stays in its rooms", code::unsafe_in_its_rooms),
    ("expect says the invariant", code::expect_says_the_invariant),
    ("expected lints have a reason", code::expected_lints_have_reasons),
    ("deterministic rooms name nothing that differs between runs", code::deterministic_rooms),
    ("hash maps are asked, never walked", code::hash_maps_behind_lookup),
    ("no unfinished work is marked in the text", pages::no_marks_of_unfinished_work),
    ("goldens are short", pages::short_goldens),
    ("no path or registry of a machine", pages::no_machine_names),
    ("the pages are there and short", pages::pages),
    ("every public page and manifest ends in a newline", pages::ends_in_newline),
];
