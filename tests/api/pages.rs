//! The pages for people: the tour works as it is typed, the table of settings has all of them, and links lead
//! somewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::*;

const PAGES: [&str; 7] = [
    "README.md",
    "scripts/README.md",
    "scripts/GROWING.md",
    "scripts/CHANGELOG.md",
    "sql/README.md",
    "src/README.md",
    "tests/bench/README.md",
];

/// A path in the repository.
fn path_of(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a chapter of a page.
fn chapter(page: &str, heading: &str) -> String {
    let text = text_of(&path_of(page));
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).expect("the heading");
    rest.split("\n## ").next().expect("a chapter").to_owned()
}

#[test]
fn the_tour_works_as_typed() {
    let api = Server::start(&[]);
    let tour = chapter("README.md", "A tour");
    let (_, lines) = tour.split_once("```sh\n").expect("the beginning of the lines");
    let (lines, _) = lines.split_once("```").expect("their end");
    let lines = lines
        .replace("127.0.0.1:8000", &api.address)
        .replace("/tmp/", &format!("{}/", api.data.path().display()));
    let mut shell = Command::new("/bin/bash");
    shell.args(["-euo", "pipefail", "-c", &lines]).current_dir(path_of("."));
    let text = shell.output().expect("bash runs").exits(0).out();
    // One line shows what an error looks like.
    assert_eq!(text.matches("\"error_code\"").count(), 1, "{text}");
    api.logged("POST /api/v1/auth/logout 204");
}

#[test]
fn the_table_of_settings_has_all_of_them_with_their_defaults() {
    // What the harness sets has its default again if it is empty.
    let defaults = [
        "CLOAKROOM_LISTEN",
        "CLOAKROOM_DATA_DIR",
        "CLOAKROOM_JWT_SECRET",
        "CLOAKROOM_SCRYPT",
        "CLOAKROOM_RATE_LIMIT_ENABLED",
    ];
    let output = run("postgres://localhost/unused", &["config"], &defaults.map(|name| (name, "")));
    let text = output.exits(0).out();
    let expected: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let chapter = chapter("scripts/README.md", "Settings");
    let table = run("", &["config", "--table"], &[]).exits(0).out();
    assert!(
        chapter.contains(&table),
        "scripts/README.md has not what `cloakroom config --table` prints"
    );
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let rows: Vec<_> =
        rows.filter_map(|(names, row)| Some((names.split('`').next()?, row))).collect();
    let names = |rows: &[(&str, &str)]| rows.iter().map(|row| row.0.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&rows), names(&expected));
    for ((name, row), (_, value)) in rows.iter().zip(&expected) {
        let (default, _) = row.split_once(" | ").expect("a default");
        match default.strip_prefix('`').and_then(|rest| rest.split('`').next()) {
            Some(default) => assert_eq!(default, *value, "{name}"),
            // The machine decides, or there is none.
            None => assert_eq!(default == "none", value.is_empty(), "{name}: {default}, {value}"),
        }
    }
}

/// What a link to a heading has after the `#`.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading.to_lowercase().chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_between_the_pages_leads_to_a_file_and_a_heading() {
    for page in PAGES {
        let (path, text) = (path_of(page), text_of(&path_of(page)));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            assert!(target.exists(), "{page} links to {link}");
            if !heading.is_empty() {
                let text = text_of(&target);
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let is_there =
                    headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
                assert!(is_there, "{page} links to {link}");
            }
        }
    }
}
