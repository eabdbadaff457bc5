//! `--env-file`: settings from a file that systemd reads for the service (systemd.exec(5), `EnvironmentFile=`), read by
//! the same rules, so that a command works with the settings of the service.

pub mod parser;
mod shell;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::environment;
use crate::config::allocator::execute_again;
use crate::storage::directory;
use parser::{EntryKind, parse};

/// Executes this program again, as the same process, with the variables of the files in its environment, where each
/// wins over what it finds there, as systemd's rules are: the last file counts most, and all of them more than the
/// environment. Returns if that has been done already, or there are no files. On failure: what to tell the operator.
pub fn apply(files: &[PathBuf]) -> Result<(), String> {
    if files.is_empty() || environment::has_variables_of_files() {
        return Ok(());
    }
    let mut variables = vec![environment::variables_of_files_are_set()];
    for file in files {
        let text = read(file)?;
        for entry in parse(&text) {
            variables.extend(entry.variable().map(|(name, value)| (name.into(), value.into())));
        }
    }
    Err(format!("the program cannot execute itself again: {}", execute_again(variables)))
}

/// Reads a file. On failure: what to tell the operator, who may not know that commands read it.
pub fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "user {} may not read {shown}, which has the settings of the service: run the command as root (sudo), for \
             whom it becomes the service's user; that user reads the file by its group (chgrp, chmod 640)",
            directory::user()
        ),
        _ => format!("{shown}: {error}"),
    })?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        format!("{shown} is no text in UTF-8: systemd does not start a service with it")
    })
}

/// What is wrong with a line of a file.
pub struct LineFinding {
    /// Counts from 1.
    pub line: usize,
    pub text: String,
    /// Whether the line has no effect on the service, rather than another effect than its writer may expect.
    pub is_fault: bool,
}

/// Finds the lines that systemd ignores, and those that a shell would read in another way. Shows no values, which may
/// be secret.
pub fn examine(text: &str) -> Vec<LineFinding> {
    let mut findings = Vec::new();
    for entry in parse(text) {
        let line = 1 + text[..entry.start].matches('\n').count();
        let fault = match entry.kind {
            EntryKind::OpenQuote => Some("a quote is not closed, so all that follows is its value"),
            _ => entry.refusal(),
        };
        let what = fault.or_else(|| shell::difference(&entry));
        let name = entry.variable().map_or(String::new(), |(name, _)| format!("{name}: "));
        let finding = |what| LineFinding { line, text: name + what, is_fault: fault.is_some() };
        findings.extend(what.map(finding));
    }
    if let Some(position) = text.find('\r') {
        let line = 1 + text[..position].matches('\n').count();
        let text = "it ends in CR LF, and a shell takes CR for a part of the value".to_owned();
        findings.push(LineFinding { line, text, is_fault: false });
    }
    findings
}
