//! Rules of the house that a compiler does not check.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Database, run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a directory of the project with that extension.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{directory}");
    found
}

#[test]
fn every_query_fits_the_schema_and_is_used() {
    let database = Database::create();
    assert!(run(&database.url, &["migrate"], &[]).status.success());
    let mut client = database.client();
    let source: String =
        files("src", "rs").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for path in
        files("sql", "sql").iter().filter(|path| !path.to_string_lossy().contains("migrations"))
    {
        let sql = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root().join("sql")).unwrap().with_extension("");
        if let Err(error) = client.prepare(&sql) {
            panic!("{}: {error:?}", name.display());
        }
        assert!(
            source.contains(&format!("sql!(\"{}\")", name.display())),
            "nothing uses {}",
            name.display()
        );
    }
}

/// The floors of the house, from top to bottom. A file may name only modules of its own room and of floors below.
const FLOORS: [&[&str]; 12] = [
    &["main"],
    &["commands"],
    &["background"],
    &["api"],
    &["server"],
    &["db", "storage"],
    &["auth"],
    &["http"],
    &["telemetry", "semaphore"],
    &["model"],
    &["error"],
    &["config"],
];

#[test]
fn modules_name_only_floors_below_their_own() {
    let floor = |room: &str| FLOORS.iter().position(|rooms| rooms.contains(&room));
    for path in files("src", "rs") {
        let relative = path.strip_prefix(root().join("src")).unwrap();
        let room =
            relative.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
        let own = floor(&room).unwrap_or_else(|| panic!("{room} has no floor"));
        let text = fs::read_to_string(&path).unwrap();
        let named: BTreeSet<String> = text
            .split("crate::")
            .skip(1)
            .flat_map(|rest| match rest.strip_prefix('{') {
                Some(group) => {
                    group.split('}').next().unwrap().split(',').map(str::trim).map(head).collect()
                }
                None => vec![head(rest)],
            })
            .collect();
        for other in named.iter().filter(|other| **other != room) {
            let below = floor(other).is_some_and(|floor| floor > own);
            assert!(below, "{} names {other}, which is not below it", relative.display());
        }
    }
}

/// The first word of a path such as `store::users`.
fn head(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn each_library_is_named_in_its_room_only() {
    for (library, rooms) in [
        ("rouille::", &["http/", "server/", "api/pipeline.rs", "commands/"][..]),
        ("postgres::", &["db/"]),
        ("std::env::", &["config/"]),
    ] {
        for path in files("src", "rs") {
            let relative =
                path.strip_prefix(root().join("src")).unwrap().to_string_lossy().into_owned();
            let names = fs::read_to_string(&path).unwrap().contains(library);
            let allowed = rooms.iter().any(|room| relative.starts_with(room));
            assert!(!names || allowed, "{relative} names {library}");
        }
    }
}
