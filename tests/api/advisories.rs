//! The holes that other services had: each row of `tests/advisories/holes.csv` names tests that exist, or says why
//! there is none.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Most words that tell a hole.
const MAX_WORDS: usize = 15;

fn text_of(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The three fields of a line, each of which is quoted, and has no quotation mark in it.
fn fields(line: &str) -> [&str; 3] {
    let inner = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let fields: Vec<_> = inner.unwrap_or_default().split("\",\"").collect();
    let is_good =
        |field: &&str| !field.is_empty() && field.trim() == *field && !field.contains('"');
    match fields[..] {
        [hole, place, answer] if fields.iter().all(is_good) => [hole, place, answer],
        _ => panic!("three fields in quotation marks: {line}"),
    }
}

#[test]
fn each_hole_that_others_had_is_told_once_and_has_tests_that_exist_or_a_reason() {
    let text = text_of("tests/advisories/holes.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("hole,where,answer"));
    let (mut holes, mut known) = (BTreeSet::new(), BTreeSet::new());
    for [hole, place, answer] in lines.map(fields) {
        assert!(hole.ends_with('.') && hole.split_whitespace().count() <= MAX_WORDS, "{hole}");
        assert!(holes.insert(hole), "twice: {hole}");
        for source in place.split("; ").flat_map(|service| service.split(", ")) {
            let id = source.rsplit(' ').next().unwrap_or_default();
            assert!(id.starts_with("CVE-") || id.starts_with("GHSA-") || id.contains('#'), "{id}");
            assert!(known.insert(id), "twice: {id}");
        }
        if let Some(reason) = answer.strip_prefix("Not here: ") {
            assert!(reason.ends_with('.'), "{hole}");
            continue;
        }
        for test in answer.split("; ") {
            let (path, name) = test.split_once("::").unwrap_or_else(|| panic!("{hole}: {test}"));
            let text = text_of(path);
            let exists = ["fn", "def"].iter().any(|word| text.contains(&format!("{word} {name}(")));
            assert!(exists, "{hole}: {test}");
        }
    }
    assert!(holes.len() > 40, "{}", holes.len());
}
