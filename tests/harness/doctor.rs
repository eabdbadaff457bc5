//! What `cloakroom doctor` prints.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use super::{Database, Directory, OutputText, SECRET, Server, command};

/// What each report has, whatever is wrong.
const SUBJECTS: &[&str] = &["setting: ", "database", "data directory: ", "limits: ", "mail: "];

/// Runs it to its end, and checks what holds for all reports: each line is a finding, advice or the sum, which is
/// right; the status is 1 exactly if there are faults; no secret is shown.
#[track_caller]
pub fn doctor(database_url: &str, data: &Directory, settings: &[(&str, &str)]) -> String {
    report_of(
        command(database_url, data, settings).arg("doctor").output().expect("the binary runs"),
    )
}

#[track_caller]
pub fn report_of(output: Output) -> String {
    let report = output.out();
    let count = |kind: &str| report.lines().filter(|line| line.starts_with(kind)).count();
    let (faults, warnings) = (count("fault   "), count("warning "));
    let is_known = |line: &&str| {
        ["ok      ", "warning ", "fault   ", "        "].iter().any(|it| line.starts_with(it))
    };
    assert_eq!(report.lines().filter(|line| !is_known(line)).count(), 1, "{report}");
    let word = |n: usize, noun: &str| match n {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{n} {noun}s"),
    };
    let sum = format!("{}, {}.", word(faults, "fault"), word(warnings, "warning"));
    assert_eq!(report.lines().last(), Some(&*sum), "{report}");
    let error = if faults > 0 {
        format!("cloakroom: {} found\n", word(faults, "fault"))
    } else {
        String::new()
    };
    assert_eq!(output.err(), error, "{report}");
    output.exits(i32::from(faults > 0));
    for subject in SUBJECTS {
        assert!(
            report.lines().any(|line| line.get(8..).is_some_and(|it| it.starts_with(subject))),
            "{subject}: {report}"
        );
    }
    for secret in [SECRET, "s3cret", "cGFzc3dvcmQ"] {
        assert!(!report.contains(secret), "{report}");
    }
    report
}

/// Expects a line that begins with `beginning` and contains `part`.
#[track_caller]
pub fn expect_finding(report: &str, beginning: &str, part: &str) {
    let is_it = |line: &str| line.starts_with(beginning) && line.contains(part);
    assert!(report.lines().any(is_it), "no {beginning} ... {part} in {report}");
}

/// The lines that begin with `kind`, without those that depend on the machine on which the tests run.
pub fn lines_of<'a>(report: &'a str, kind: &str) -> Vec<&'a str> {
    let of_machine = ["disk: ", "inodes: ", "limits: ", "database durability: "];
    let lines = report.lines().filter_map(|line| line.strip_prefix(kind));
    lines.filter(|line| !of_machine.iter().any(|it| line.starts_with(it))).collect()
}

/// A stopped service with a file, whose data directory is private.
pub fn stopped_service(name: &str) -> (Arc<Database>, Arc<Directory>) {
    let api = Server::start(&[]);
    let user = api.sign_up(name);
    api.new_file(&user, "a.txt", name);
    fs::set_permissions(api.data.path(), Permissions::from_mode(0o700)).expect("a mode");
    (api.database.clone(), api.data.clone())
}

/// Every path below a directory, with its mode and its content.
pub fn everything(directory: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let mode = fs::symlink_metadata(&path).expect("metadata").mode();
        let content = if path.is_dir() { Vec::new() } else { fs::read(&path).expect("a file") };
        if path.is_dir() {
            found.extend(everything(&path));
        }
        found.insert(path, (mode, content));
    }
    found
}
