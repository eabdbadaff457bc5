//! The pages for people: they are short, the tour works as it is typed, and the links, settings and functions that they
//! name exist. The manual of settings, which the program prints, has all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::*;

/// Most words of a page, and of all pages together.
const MAX_WORDS: usize = 2_500;
const MAX_ALL_WORDS: usize = 19_300;
/// Most lines of the first page that anybody reads.
const MAX_README_LINES: usize = 120;

/// A path in the repository.
fn path_of(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages of the repository: the first one, and those in its directories.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![path_of("README.md")];
    let mut open = ["scripts", "sql", "src", "tests"].map(path_of).to_vec();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 5, "{found:?}");
    found
}

#[test]
fn the_pages_are_short_enough_to_be_read() {
    let mut all = 0;
    for page in pages() {
        let words = text_of(&page).split_whitespace().count();
        assert!(words <= MAX_WORDS, "{} has {words} words", page.display());
        all += words;
    }
    assert!(all <= MAX_ALL_WORDS, "all pages have {all} words");
    let lines = text_of(&path_of("README.md")).lines().count();
    assert!(lines <= MAX_README_LINES, "README.md has {lines} lines");
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
fn the_printed_table_of_settings_has_all_of_them_with_their_defaults() {
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
    let table = run("", &["config", "--table"], &[]).exits(0).out();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    let rows: Vec<_> =
        rows.filter_map(|(names, row)| Some((names.split('`').next()?, row))).collect();
    let names = |rows: &[(&str, &str)]| rows.iter().map(|row| row.0.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&rows), names(&expected));
    for ((name, row), (_, value)) in rows.iter().zip(&expected) {
        let (default, meaning) = row.split_once(" | ").expect("a default");
        match default.strip_prefix('`').and_then(|rest| rest.split('`').next()) {
            Some(default) => assert_eq!(default, *value, "{name}"),
            // The machine decides, or there is none.
            None => assert_eq!(default == "none", value.is_empty(), "{name}: {default}, {value}"),
        }
        // It is read on a terminal, too, where a link leads nowhere.
        assert!(!meaning.contains("]("), "{name}: {meaning}");
    }
}

#[test]
fn every_setting_that_a_page_names_exists() {
    let table = run("", &["config", "--table"], &[]).exits(0).out();
    // Those that only a command reads, and the one of the package.
    let others = ["CLOAKROOM_ADMIN_PASSWORD", "CLOAKROOM_MORE_SETTINGS"];
    let is_letter = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut named = 0;
    // That about changes may name one that is gone.
    for page in pages().into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = text_of(&page);
        for word in text.split(|c| !is_letter(c)).filter(|word| word.starts_with("CLOAKROOM_")) {
            // Lines of shell may name the beginning of several.
            let end = if word.ends_with('_') { "" } else { "`" };
            let exists = table.contains(&format!("`{word}{end}")) || others.contains(&word);
            assert!(exists, "{} names {word}", page.display());
            named += 1;
        }
    }
    assert!(named > 50, "{named}");
}

#[test]
fn every_function_that_the_map_of_the_code_names_exists() {
    let text = text_of(&path_of("src/README.md"));
    let named = text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(".rs:"));
    let mut functions = 0;
    for (file, function) in named {
        let source = text_of(&path_of(&format!("src/{file}.rs")));
        let is_there =
            ["(", "<"].iter().any(|next| source.contains(&format!("fn {function}{next}")));
        assert!(is_there, "{file}.rs has no function {function}");
        functions += 1;
    }
    assert!(functions > 30, "{functions}");
}

/// What a link to a heading has after the `#`.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading.to_lowercase().chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_between_the_pages_leads_to_a_file_and_a_heading() {
    for path in pages() {
        let (page, text) = (path.display(), text_of(&path));
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
