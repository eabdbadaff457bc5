//! Rules of the code's structure that the compiler does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Database, run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a directory of the project with that extension: path below the directory, and text.
fn files(directory: &str, extension: &str) -> BTreeMap<PathBuf, String> {
    let base = root().join(directory);
    let mut found = BTreeMap::new();
    let mut open = vec![base.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(&base).unwrap().to_owned(), text);
            }
        }
    }
    assert!(!found.is_empty(), "{directory}");
    found
}

/// Whether a file is a part of the schema, and no query.
fn is_schema(path: &Path) -> bool {
    path.ends_with("schema.sql") || path.ends_with("accounts/ends.sql")
}

#[test]
fn every_query_fits_the_schema_and_is_used() {
    let database = Database::create();
    assert!(run(&database.url, &["migrate"], &[]).status.success());
    let mut client = database.client();
    let source: String = files("src", "rs").into_values().collect();
    for (path, sql) in files("sql", "sql").into_iter().filter(|(path, _)| !is_schema(path)) {
        let name = path.with_extension("");
        if let Err(error) = client.prepare(&sql) {
            panic!("{}: {error:?}", name.display());
        }
        let is_used = source.contains(&format!("sql!(\"{}\")", name.display()));
        assert!(is_used, "nothing uses {}", name.display());
    }
}

/// A read is repeated if its connection dies, and goes on where the database takes no changes.
#[test]
fn no_query_that_is_run_as_a_read_writes_or_locks_anything() {
    let (queries, source) = (files("sql", "sql"), files("src", "rs"));
    let mut reads = 0;
    for text in source.values() {
        for (at, call) in text.match_indices("sql!(\"") {
            let statement = text[..at].rsplit(';').next().unwrap();
            let is_read =
                statement.rsplit_once('.').is_some_and(|(_, call)| call.starts_with("read"));
            let name = text[at + call.len()..].split('"').next().unwrap();
            let Some(sql) = queries.get(Path::new(&format!("{name}.sql"))).filter(|_| is_read)
            else {
                continue;
            };
            reads += 1;
            let code = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
            for word in code.flat_map(|line| line.split(|c: char| !c.is_alphabetic())) {
                let writes = ["INSERT", "UPDATE", "DELETE", "MERGE", "SHARE", "nextval", "setval"];
                assert!(!writes.contains(&word), "{name} has {word}");
            }
        }
    }
    assert!(reads > 30, "{reads} reads were found");
}

/// Databases differ in what these make of a text.
#[test]
fn no_query_asks_the_locale_of_the_database() {
    for (path, sql) in files("sql", "sql") {
        for word in ["lower(", "upper(", "initcap(", "ILIKE", "~*"] {
            let is_asked =
                |line: &&str| line.contains(word) && !line.contains("COLLATE by_character");
            let line = sql.lines().filter(|line| !line.trim().starts_with("--")).find(is_asked);
            assert_eq!(line, None, "{}", path.display());
        }
    }
}

/// The layers of `src/README.md`, from top to bottom. A module names only itself and modules of layers below its own.
const LAYERS: &[&[&str]] = &[
    &["main"],
    &["tools"],
    &["serve"],
    &["arguments"],
    &["service", "background"],
    FEATURES,
    &["request"],
    &["server", "docs"],
    &["http", "auth", "db", "storage", "mail", "openid"],
    &["body_memory", "outgoing", "probe", "telemetry"],
    &["model", "semaphore", "supervisor"],
    &["config", "error"],
];

/// The modules with the endpoints of a feature each: first those of the specification, then those that a build can
/// leave out, and what is in the place of these then.
#[rustfmt::skip]
const FEATURES: &[&str] = &[
    "sign_in", "accounts", "files", "exports",
    "second_factor", "personal_tokens", "sessions", "folders", "archive", "links", "partial", "undo", "changes",
    "confirmation", "audit", "repeats",
    "provider", "without_extras", "without_provider",
];

/// The features that one may name beside itself, and why.
const NAMED_FEATURES: &[(&str, &[&str])] = &[
    // A sign-in takes a code, makes accounts at a registration, and does not if an address must be confirmed first.
    // And an identity may take the place of a password.
    ("sign_in", &["accounts", "confirmation", "provider", "second_factor"]),
    // Another address of one's own must be confirmed.
    ("accounts", &["confirmation", "provider"]),
    // Uploads may be repeated and lie in folders, and deleted files be restored.
    ("files", &["folders", "repeats", "undo"]),
    // A deletion is as that of one file.
    ("folders", &["undo"]),
    // It takes the current password.
    ("second_factor", &["accounts"]),
    // A confirmed registration makes an account.
    ("confirmation", &["accounts", "provider"]),
    // It signs in, and takes the current password.
    ("provider", &["accounts", "sign_in"]),
    ("undo", &["files"]),
    // It has the contents of files, and the folders that they lie in.
    ("archive", &["files", "folders"]),
    // A link to a folder, or to several files, is to an archive of them. What is sent by a link is sent again as an
    // upload is.
    ("links", &["archive", "files", "folders", "repeats"]),
    // It records files, in folders, and comes by links to send files by.
    ("partial", &["files", "folders", "links"]),
    ("changes", &["files"]),
    // The log is exported as accounts are.
    ("audit", &["exports"]),
    ("exports", &["accounts"]),
    ("without_extras", &["files"]),
];

#[test]
fn modules_name_only_layers_below_their_own() {
    for (path, text) in files("src", "rs") {
        let own = segments(&path);
        for other in named_paths(&own, &text).iter().filter(|other| other[0] != own[0]) {
            let (above, below) = (layer(&own[0]), layer(&other[0]));
            let named = NAMED_FEATURES.iter().find(|(feature, _)| *feature == own[0]);
            let is_listed = named.is_some_and(|(_, others)| others.contains(&&*other[0]));
            let (own, other) = (own.join("::"), other.join("::"));
            assert!(above < below || is_listed, "{own} names {other}, which is not below it");
        }
    }
}

/// The number of the layer of a module.
fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|modules| modules.contains(&module));
    found.unwrap_or_else(|| panic!("{module} has no layer"))
}

/// `mod.rs` gathers the files of a directory, so it does not count. What it re-exports counts as the file that has it.
#[test]
fn no_two_files_name_each_other_even_through_others() {
    let texts = files("src", "rs");
    let modules: BTreeSet<_> = texts.keys().map(|path| segments(path)).collect();
    let exports: BTreeMap<_, _> =
        texts.iter().flat_map(|(path, text)| exports(segments(path), text)).collect();
    let names: BTreeMap<_, BTreeSet<_>> = texts
        .iter()
        .filter(|(path, _)| !path.ends_with("mod.rs"))
        .map(|(path, text)| {
            let own = segments(path);
            let paths = named_paths(&own, text).into_iter();
            let others = paths.filter_map(|path| file_of(&path, &modules, &exports));
            (own.clone(), others.filter(|other| *other != own).collect())
        })
        .collect();
    for start in names.keys() {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            for other in names.get(file).into_iter().flatten() {
                assert!(other != start, "a circle of files through {start:?} and {file:?}");
                if seen.insert(other) {
                    open.push(other);
                }
            }
        }
    }
}

/// The file of a named item: the longest beginning of its path that is a module, or the file from which this exports
/// it.
fn file_of(
    path: &[String],
    modules: &BTreeSet<Vec<String>>,
    exports: &BTreeMap<Vec<String>, Vec<String>>,
) -> Option<Vec<String>> {
    let module = (1..=path.len()).rev().map(|n| &path[..n]).find(|path| modules.contains(*path))?;
    match path.get(..=module.len()).and_then(|item| exports.get(item)) {
        Some(origin) => file_of(origin, modules, exports),
        None => Some(module.to_vec()),
    }
}

/// What the module `own` exports from modules below itself: the path by which others name it, and its own.
fn exports(own: Vec<String>, text: &str) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    for rest in text.split("\npub use ").skip(1) {
        expand(rest, &mut own.clone(), &mut found);
    }
    found.into_iter().map(move |path| ([&own[..], &path[path.len() - 1..]].concat(), path))
}

/// The module path of a file: `db/pool.rs` is `db::pool`, `db/mod.rs` is `db`.
fn segments(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let all = path.iter().map(|part| part.to_string_lossy().into_owned());
    all.filter(|part| part != "mod").collect()
}

/// Every path that begins with `crate::` or `super::` in the text of the module `own`, from the crate's root.
fn named_paths(own: &[String], text: &str) -> Vec<Vec<String>> {
    // Unit tests may name what they need.
    if text.contains("#![cfg(test)]") {
        return Vec::new();
    }
    let lines = text.split("#[cfg(test)]\nmod tests").next().unwrap().lines();
    let code =
        lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        expand(rest, &mut Vec::new(), &mut found);
    }
    // In a file of a directory `super` is the module.
    for rest in code.split("super::").skip(1) {
        expand(rest, &mut own[..own.len() - 1].to_vec(), &mut found);
    }
    found.retain(|path| !path.is_empty());
    // A module that is named as a whole is the beginning of other paths, such as `confirmation::register`.
    for module in found.clone() {
        let is_inside =
            |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
        let name = format!("{}::", module[module.len() - 1]);
        for (at, _) in code.match_indices(&name).filter(|(at, _)| !is_inside(&code[..*at])) {
            expand(&code[at + name.len()..], &mut module.clone(), &mut found);
        }
    }
    found
}

/// Adds the paths of `rest`, such as `a::b` or `a::{b, c::d}`, below `prefix`; returns what follows them.
fn expand<'a>(rest: &'a str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    if let Some(mut rest) = rest.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches([' ', '\n', ',']);
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None => rest = expand(rest, prefix, found),
            }
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    // An alias or a glob has no name of its own here.
    if end == 0 {
        return &rest[1..];
    }
    prefix.push(rest[..end].to_owned());
    let after = match rest[end..].strip_prefix("::") {
        Some(below) => expand(below, prefix, found),
        None => {
            found.push(prefix.clone());
            rest[end..].trim_start_matches(|c: char| !",}\n;".contains(c))
        }
    };
    prefix.pop();
    after
}

/// First parts of other words with a slash, such as media types.
const NO_FOLDERS: [&str; 7] = ["a", "application", "image", "key", "multipart", "text", "type"];

/// A comment names a query as `sql!` does, or a path below `src`, `sql` or the project.
#[test]
fn each_file_that_a_comment_names_is_there() {
    let mut missing = Vec::new();
    for (path, text) in [files("src", "rs"), files("sql", "sql")].into_iter().flatten() {
        let comments = text.lines().map(str::trim_start);
        let comments = comments.filter(|line| line.starts_with("//") || line.starts_with("--"));
        let words = comments.flat_map(|line| {
            line.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c))
        });
        let names = words.map(|word| word.trim_end_matches(['.', '/']));
        let names = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
        let names = names.filter(|name| {
            name.split_once('/').is_some_and(|(first, _)| !NO_FOLDERS.contains(&first))
        });
        missing.extend(
            names.filter(|name| !is_there(name)).map(|name| (path.clone(), name.to_owned())),
        );
    }
    assert_eq!(missing, []);
}

/// Whether there is a file or a folder of this name, which may lack the extension.
fn is_there(name: &str) -> bool {
    let places = ["", "src/", "sql/"].map(|folder| root().join(folder).join(name));
    let mut files = places.iter().flat_map(|place| {
        ["", "rs", "sql"].map(|e| match e {
            "" => place.clone(),
            extension => place.with_extension(extension),
        })
    });
    files.any(|file| file.exists())
}

/// The table tells a reader who waits for whom, so it has the ranks of the code in their order.
#[test]
fn the_table_of_waits_has_all_ranks_in_their_order() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (code, page) = (read("src/semaphore.rs"), read("src/README.md"));
    let (_, ranks) = code.split_once("pub enum Rank {").unwrap();
    let ranks = ranks.split('}').next().unwrap().lines().map(str::trim);
    let ranks: Vec<_> = ranks.filter_map(|line| line.strip_suffix(',')).collect();
    let (_, table) = page.split_once("| `Rank` |").unwrap();
    let rows = table.split("\n\n").next().unwrap().lines();
    let rows: Vec<_> = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    assert!(ranks.len() > 10);
    assert_eq!(rows, ranks);
}

/// Unit tests may name what they need.
#[test]
fn each_library_is_named_in_its_module_only() {
    for (library, modules) in [
        ("rouille::", &["http/", "server/", "service/pipeline.rs"][..]),
        (
            "postgres::",
            &[
                "db/",
                "tools/database.rs",
                "tools/postgres_programs.rs",
                "request/",
                "serve/create_admin.rs",
            ],
        ),
        ("std::env::", &["config/", "serve/create_admin.rs", "tools/postgres_programs.rs"]),
    ] {
        for (path, text) in files("src", "rs") {
            let path = path.to_string_lossy();
            let has_statements = path.ends_with("/statements.rs")
                || path.ends_with("/record.rs")
                || path == "accounts/extras.rs";
            let is_statement = library == "postgres::" && has_statements;
            let is_allowed = is_statement || modules.iter().any(|module| path.starts_with(module));
            let code = text.split("\nmod tests {").next().expect("one part at least");
            assert!(!code.contains(library) || is_allowed, "{path} names {library}");
        }
    }
}
