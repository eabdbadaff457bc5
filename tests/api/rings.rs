//! Compares the pages for auditors with the code: the rings of `src/README.md` and their sizes, the steps of its ways
//! through the code, and the one number of `README.md`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::pages::chapter;
use crate::structure::files;

/// A row of the table of rings.
struct Ring {
    /// Its row up to the counts.
    beginning: String,
    /// The rest of its row, which has the counts.
    end: String,
    /// Files and folders, relative to `src/`; those of queries begin with `sql/`. A folder ends with a slash.
    paths: Vec<String>,
    rust: usize,
    sql: usize,
}

impl Ring {
    /// Reads a row of five cells; `None` for any other line.
    fn parse(line: &str) -> Option<Ring> {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [number, question, paths, rust, sql] = cells[..] else { return None };
        number.parse::<u8>().ok()?;
        let beginning = format!("| {number} | {question} | {paths} | ");
        let end = format!("{rust} | {sql} |");
        let paths = paths.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some(Ring { beginning, end, paths, rust: 0, sql: 0 })
    }

    /// The end of its row with the lines that were counted.
    fn counted_end(&self) -> String {
        format!("{} | {} |", with_commas(self.rust), with_commas(self.sql))
    }
}

/// A number as people read it, such as `12,345`.
fn with_commas(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", with_commas(number / 1000), number % 1000),
    }
}

/// Counts the lines that are neither blank nor a comment, in Rust above the unit tests.
fn lines_of_code(text: &str, comment: &str) -> usize {
    let lines = text.lines().map(str::trim).take_while(|line| !line.contains("[cfg(test)]"));
    lines.filter(|line| !line.is_empty() && !line.starts_with(comment)).count()
}

/// All files of Rust and SQL, as the table names them, with their lines of code.
fn counted_files() -> Vec<(String, usize)> {
    let rust = files("src", "rs").into_iter().map(|(path, text)| {
        let lines = lines_of_code(&text, "//");
        (path.display().to_string(), lines)
    });
    let sql = files("sql", "sql").into_iter().map(|(path, text)| {
        let lines = lines_of_code(&text, "--");
        (format!("sql/{}", path.display()), lines)
    });
    rust.chain(sql).collect()
}

/// Whether the table's `path` is this file or a folder above it.
fn covers(path: &str, file: &str) -> bool {
    path == file || (path.ends_with('/') && file.starts_with(path))
}

/// The rings of the table with the lines of all files, each of which counts in the ring that names it most closely.
/// Fails if a file is in no ring, or if a path of the table decides about no file.
fn counted_rings() -> Vec<Ring> {
    let table = chapter("src/README.md", "Read it in this order");
    let mut rings: Vec<Ring> = table.lines().filter_map(Ring::parse).collect();
    let paths: Vec<(usize, String)> = (0..rings.len())
        .flat_map(|ring| rings[ring].paths.iter().map(move |path| (ring, path.clone())))
        .collect();
    let mut deciding = BTreeSet::new();
    for (file, lines) in counted_files() {
        let covering = paths.iter().filter(|(_, path)| covers(path, &file));
        let closest = covering.max_by_key(|(_, path)| path.len());
        let (ring, path) = closest.unwrap_or_else(|| panic!("{file} is in no ring"));
        let ring = &mut rings[*ring];
        let count = if file.starts_with("sql/") { &mut ring.sql } else { &mut ring.rust };
        *count += lines;
        deciding.insert(path);
    }
    for (_, path) in &paths {
        assert!(deciding.contains(path), "`{path}` decides about no file");
    }
    let distinct: BTreeSet<_> = paths.iter().map(|(_, path)| path).collect();
    assert_eq!(distinct.len(), paths.len(), "the table names a path twice");
    rings
}

#[test]
fn the_table_of_rings_has_the_lines_of_all_files() {
    let rings = counted_rings();
    assert_eq!(rings.len(), 5);
    let wrong = rings.iter().filter(|ring| ring.end != ring.counted_end());
    let rows: Vec<_> = wrong.map(|ring| ring.beginning.clone() + &ring.counted_end()).collect();
    assert!(rows.is_empty(), "the rows in src/README.md must read:\n{}", rows.join("\n"));
}

#[test]
fn the_first_page_says_how_much_code_runs_because_of_bytes_from_the_network() {
    let lines = counted_rings()[..2].iter().map(|ring| ring.rust).sum();
    let sentence = format!(
        "The code that bytes from the network can reach has {} lines of Rust",
        with_commas(lines)
    );
    let page = include_str!("../../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&sentence), "README.md must say: {sentence}");
}

#[test]
fn every_step_of_the_ways_through_the_code_is_a_function() {
    let sources = files("src", "rs");
    let chapter = chapter("src/README.md", "A request");
    let steps: Vec<_> = chapter
        .split('`')
        .filter_map(|text| text.split_once(".rs:").map(|step| (text, step)))
        .collect();
    assert!(steps.len() > 50, "{steps:?}");
    for (text, (file, function)) in steps {
        let source = sources.get(Path::new(&format!("{file}.rs"))).expect(text);
        let is_there = ["(", "<"].iter().any(|end| source.contains(&format!("fn {function}{end}")));
        assert!(is_there, "{text} is no function");
    }
}
