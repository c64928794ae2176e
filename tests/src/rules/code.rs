//! Rules over Rust source that no compiler lint holds. Text pages and manifests are not read here.

use crate::rust::{Token, closing, lines_without_tests, reads, tokens};
use crate::{Breach, File};

/// The longest a source file may be, without its tests.
pub const MOST_LINES: usize = 500;

/// The only files that may hold `unsafe`: bindings generated from the policy contract.
pub const UNSAFE_ROOMS: [&str; 2] = ["host/policy/src/bindings.rs", "sdk/src/bindings.rs"];

/// Folders whose code gives the same answer on every machine.
pub const DETERMINISTIC: [&str; 2] = ["host/model/src/", "host/engine/src/"];

/// The one file of the engine that names a hash map: there it is wrapped so that it can be asked
/// and told, but not walked.
pub const HASH_MAP_ROOM: &str = "host/engine/src/intern.rs";

/// Hash maps without randomness, whose order would still be the hasher's.
const HASH_MAPS: [&str; 6] = ["FxHashMap", "FxHashSet", "hashbrown", "hash_map", "hash_set", "BuildHasher"];

/// Names whose presence makes an answer depend on the machine, the hour or a hasher.
const UNSTABLE_NAMES: [&str; 13] = [
    "HashMap",
    "HashSet",
    "RandomState",
    "DefaultHasher",
    "Instant",
    "SystemTime",
    "thread",
    "thread_local",
    "async",
    "await",
    "available_parallelism",
    "fastrand",
    "rand",
];

/// Methods of floats that come from the machine's libm.
const LIBM: [&str; 24] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2", "exp_m1", "hypot", "ln", "ln_1p",
    "log", "log10", "log2", "powf", "powi", "sin", "sinh", "tan",
];

fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.is_rust())
}

/// Applies `judge` to the tokens of every Rust file; what cannot be read is a breach itself.
fn each_source(files: &[File], judge: impl Fn(&File, &[Token], &mut Vec<Breach>)) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in rust(files) {
        match tokens(file) {
            Ok(tokens) => judge(file, &tokens, &mut breaches),
            Err(why) => breaches.push(Breach::at(&file.path, 1, why)),
        }
    }
    breaches
}

/// A source file has at most [`MOST_LINES`] lines without its tests.
#[must_use]
pub fn short_files(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        let lines = lines_without_tests(file, tokens);
        if !file.is_test() && lines > MOST_LINES {
            breaches.push(Breach::at(&file.path, MOST_LINES, format!("{lines} lines without tests: split it, {MOST_LINES} is the most")));
        }
    })
}

/// Every Rust file opens with a `//!` comment.
#[must_use]
pub fn modules_open_with_purpose(files: &[File]) -> Vec<Breach> {
    let opens = |file: &&File| file.text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//! "));
    let silent = rust(files).filter(|file| !opens(file));
    silent.map(|file| Breach::at(&file.path, 1, "open with a //! comment: what the room is for, what must not enter")).collect()
}

/// The comment that opens a crate says what must not enter it.
#[must_use]
pub fn roots_say_what_must_not_enter(files: &[File]) -> Vec<Breach> {
    let is_root = |file: &&File| file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    let says = |file: &&File| {
        let opening: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        opening.join(" ").to_lowercase().contains("must not enter")
    };
    // A package with both roots says it once, in its library.
    let has_library =
        |file: &&File| file.path.ends_with("main.rs") && files.iter().any(|f| f.path == file.path.replace("main.rs", "lib.rs"));
    let silent = rust(files).filter(is_root).filter(|file| !says(file) && !has_library(file));
    silent.map(|file| Breach::at(&file.path, 1, "the crate's opening comment does not say what must not enter")).collect()
}

/// No lint is let off: `expect` with a reason is what there is.
#[must_use]
pub fn no_allow(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        for attribute in attributes(tokens) {
            if let Some(allow) = attribute.iter().zip(&attribute[1..]).find(|(name, next)| name.text == "allow" && next.text == "(") {
                breaches.push(Breach::at(&file.path, allow.0.line, "allow: mend the code, or expect(..., reason)"));
            }
        }
    })
}

/// `unsafe` stands only in generated bindings.
#[must_use]
pub fn unsafe_in_its_rooms(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        if UNSAFE_ROOMS.contains(&file.path.as_str()) {
            return;
        }
        let found = tokens.iter().filter(|token| token.text == "unsafe");
        breaches.extend(found.map(|token| Breach::at(&file.path, token.line, "unsafe outside generated bindings")));
    })
}

/// `expect` on an option or result carries the invariant as its text.
#[must_use]
pub fn expect_says_the_invariant(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        for at in 0..tokens.len() {
            if !reads(tokens, at, &[".", "expect", "("]) || tokens[at].in_test {
                continue;
            }
            if let Some(text) = tokens.get(at + 3).and_then(Token::string)
                && text.trim().len() <= 10
            {
                breaches.push(Breach::at(&file.path, tokens[at + 1].line, format!("expect({text:?}) does not say the invariant")));
            }
        }
    })
}

/// An expected lint says why it is expected.
#[must_use]
pub fn expected_lints_have_reasons(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        for attribute in attributes(tokens) {
            for at in 0..attribute.len() {
                if !reads(attribute, at, &["expect", "("]) {
                    continue;
                }
                let inner = &attribute[at + 2..closing(attribute, at + 1)];
                let reason = (0..inner.len()).find(|i| reads(inner, *i, &["reason", "="])).and_then(|i| inner.get(i + 2)?.string());
                if reason.is_none_or(|text| text.trim().len() <= 10) {
                    breaches.push(Breach::at(&file.path, attribute[at].line, "expected lint without a reason that says why"));
                }
            }
        }
    })
}

/// The deterministic rooms name no clock, thread, hasher, async or libm function.
#[must_use]
pub fn deterministic_rooms(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        if !DETERMINISTIC.iter().any(|room| file.path.starts_with(room)) {
            return;
        }
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| !token.in_test) {
            let method = at > 0 && [".", ":"].contains(&tokens[at - 1].text.as_str()) && reads(tokens, at + 1, &["("]);
            if UNSTABLE_NAMES.contains(&token.text.as_str()) || (method && LIBM.contains(&token.text.as_str())) {
                let what = format!("{} would let the machine into a decision", token.text);
                breaches.push(Breach::at(&file.path, token.line, what));
            }
        }
    })
}

/// The deterministic rooms use hash maps only behind the engine's `Lookup`, which nobody can walk.
#[must_use]
pub fn hash_maps_behind_lookup(files: &[File]) -> Vec<Breach> {
    each_source(files, |file, tokens, breaches| {
        if file.path == HASH_MAP_ROOM || !DETERMINISTIC.iter().any(|room| file.path.starts_with(room)) {
            return;
        }
        let found = tokens.iter().filter(|token| !token.in_test && HASH_MAPS.contains(&token.text.as_str()));
        breaches.extend(found.map(|token| Breach::at(&file.path, token.line, format!("{} can be walked: use Lookup", token.text))));
    })
}

/// The inside of every attribute, `#[...]` and `#![...]`; documentation is left out.
fn attributes(tokens: &[Token]) -> Vec<&[Token]> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let open = if reads(tokens, at, &["#", "["]) {
            at + 1
        } else if reads(tokens, at, &["#", "!", "["]) {
            at + 2
        } else {
            continue;
        };
        let inner = &tokens[open + 1..closing(tokens, open)];
        if inner.first().is_some_and(|token| token.text != "doc") {
            found.push(inner);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: super::super::Rule, path: &str, text: &str) -> Vec<usize> {
        rule(&[File::new(path, text)]).iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn a_long_file_is_named_and_its_tests_do_not_count() {
        let body = "fn f() {}\n".repeat(499);
        let tested = format!("//! Doc.\n{body}#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(lines(short_files, "host/a/src/a.rs", &tested), [0; 0]);
        assert_eq!(lines(short_files, "host/a/src/a.rs", &format!("//! Doc.\n{body}fn g() {{}}\n")), [500]);
        assert_eq!(lines(short_files, "host/a/tests/a.rs", &body.repeat(3)), [0; 0]);
    }

    #[test]
    fn a_silent_module_is_named() {
        assert_eq!(lines(modules_open_with_purpose, "a.rs", "\n//! Why.\n"), [0; 0]);
        assert_eq!(lines(modules_open_with_purpose, "a.rs", "// Why.\nfn f() {}\n"), [1]);
        assert_eq!(lines(modules_open_with_purpose, "a.rs", ""), [1]);
        assert_eq!(lines(modules_open_with_purpose, "a.txt", "fn f() {}"), [0; 0]);
    }

    #[test]
    fn a_crate_without_a_border_is_named() {
        let rule = roots_say_what_must_not_enter;
        assert_eq!(lines(rule, "host/a/src/lib.rs", "//! For x.\n//! What must not\n//! enter: y.\n"), [1]);
        assert_eq!(lines(rule, "host/a/src/lib.rs", "//! For x.\n//! What must not enter: y.\n"), [0; 0]);
        assert_eq!(lines(rule, "host/a/src/main.rs", "//! For x.\nfn main() {}"), [1]);
        let both = [File::new("a/src/lib.rs", "//! Must not enter: y.\n"), File::new("a/src/main.rs", "//! For x.\n")];
        assert_eq!(rule(&both), []);
    }

    #[test]
    fn allow_is_named_in_every_form() {
        for text in ["#![allow(dead_code)]", "#[allow(dead_code)] fn f() {}", "#[cfg_attr(test, allow(dead_code))] fn f() {}"] {
            assert_eq!(lines(no_allow, "a.rs", &format!("//! A.\n{text}\n")), [2], "{text}");
        }
        assert_eq!(lines(no_allow, "a.rs", "//! #[allow(x)]\nfn allow() { allow(1); \"#[allow(x)]\"; }\n"), [0; 0]);
    }

    #[test]
    fn unsafe_is_named_outside_its_rooms() {
        let text = "//! A.\nfn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(lines(unsafe_in_its_rooms, "host/engine/src/a.rs", text), [3]);
        assert_eq!(lines(unsafe_in_its_rooms, "host/engine/tests/a.rs", text), [3]);
        assert_eq!(lines(unsafe_in_its_rooms, UNSAFE_ROOMS[0], text), [0; 0]);
        assert_eq!(lines(unsafe_in_its_rooms, "a.rs", "//! unsafe\nfn f() { \"unsafe\"; }\n"), [0; 0]);
    }

    #[test]
    fn an_expect_without_an_invariant_is_named() {
        for (text, breaches) in [("", 1), ("ok", 1), ("          ", 1), ("the row was added above", 0)] {
            let source = format!("fn f() {{ x.expect(\"{text}\"); }}");
            assert_eq!(lines(expect_says_the_invariant, "src/a.rs", &source).len(), breaches, "{text:?}");
            assert_eq!(lines(expect_says_the_invariant, "host/a/tests/a.rs", &source), [0; 0]);
        }
    }

    #[test]
    fn an_expected_lint_without_a_reason_is_named() {
        for (attribute, breaches) in [
            ("#[expect(dead_code)]", 1),
            ("#![expect(dead_code, reason = \"\")]", 1),
            ("#[cfg_attr(test, expect(dead_code))]", 1),
            ("#[expect(dead_code, reason = \"read by the next release only\")]", 0),
        ] {
            let source = format!("//! A.\n{attribute}\nfn f() {{}}\n");
            assert_eq!(lines(expected_lints_have_reasons, "a.rs", &source).len(), breaches, "{attribute}");
        }
    }

    #[test]
    fn a_hash_map_that_can_be_walked_is_named() {
        let source = "//! A.\nuse rustc_hash::FxHashMap;\n";
        assert_eq!(lines(hash_maps_behind_lookup, "host/engine/src/world.rs", source), [2]);
        assert_eq!(lines(hash_maps_behind_lookup, HASH_MAP_ROOM, source), [0; 0]);
        assert_eq!(lines(hash_maps_behind_lookup, "host/sim/src/a.rs", source), [0; 0]);
        assert_eq!(lines(hash_maps_behind_lookup, "host/engine/tests/a.rs", source), [0; 0]);
    }

    #[test]
    fn what_differs_between_machines_is_named_in_deterministic_rooms_only() {
        for code in [
            "use std::collections::HashMap;",
            "fn f() { std::time::Instant::now(); }",
            "async fn f() {}",
            "fn f() { std::thread::spawn(g); }",
            "fn f(x: f64) -> f64 { x.ln() }",
            "fn f(x: f64) -> f64 { f64::powf(x, 2.0) }",
        ] {
            let source = format!("//! A.\n{code}\n");
            assert_eq!(lines(deterministic_rooms, "host/engine/src/a.rs", &source), [2], "{code}");
            assert_eq!(lines(deterministic_rooms, "host/sim/src/a.rs", &source), [0; 0], "{code}");
        }
        assert_eq!(lines(deterministic_rooms, "host/engine/src/a.rs", "//! A.\nfn f(x: f64) -> f64 { x.sqrt() + log(x) }\n"), [0; 0]);
    }
}
