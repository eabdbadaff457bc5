//! Writes the manual pages of the command line, one for the program and one for each command, and the completions for
//! bash, zsh and fish, into the directory that is its only argument.
//!
//! It is a program of its own, and not a command of the other one, so that that does not carry the crates that write
//! these files. `scripts/package` builds and runs it.

// Only the definitions are used here; the values that they parse are the program's business.
#[allow(dead_code, missing_docs)]
#[path = "../src/arguments/mod.rs"]
mod arguments;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

/// What only the page of the program itself ends with: section and text.
const FILES: &str = "/etc/cloakroom/cloakroom.env has the settings of the service, each with its default and an \
                     explanation; /usr/share/doc/cloakroom/README.md leads to pages about them. Root runs commands \
                     with them, and as the user cloakroom. CLOAKROOM_MORE_SETTINGS may name a second file of settings, \
                     which wins over the first one.";

fn main() -> io::Result<()> {
    let directory = std::env::args_os()
        .nth(1)
        .ok_or_else(|| io::Error::other("a directory to write to is expected"))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut command = arguments::Arguments::command();
        clap_complete::generate_to(shell, &mut command, "cloakroom", &directory)?;
    }
    let mut command = arguments::Arguments::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, Some(FILES), directory.as_ref())
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, files: Option<&str>, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands() {
        write_pages(subcommand, None, directory)?;
    }
    write_page(command, files, directory)
}

/// Writes the page of one command. The synopsis is that of `--help`, because clap_mangen's names no values; and what
/// clap calls the help after the options is `NOTES`, as in other pages, where clap_mangen has `EXTRA`.
fn write_page(command: &Command, files: Option<&str>, directory: &Path) -> io::Result<()> {
    let source = concat!("cloakroom ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Cloakroom");
    let mut page = File::create(directory.join(man.get_filename()))?;
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let usage = command.clone().render_usage().to_string();
    write_section(&mut page, "SYNOPSIS", usage.trim_start_matches("Usage: "))?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        write_section(&mut page, "NOTES", &notes.to_string())?;
    }
    if let Some(files) = files {
        write_section(&mut page, "FILES", files)?;
    }
    Ok(())
}

/// Writes a section whose text has an empty line between its paragraphs.
fn write_section(page: &mut impl Write, title: &str, text: &str) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for paragraph in text.split("\n\n") {
        roff.control("PP", []).text([roman(paragraph)]);
    }
    roff.to_writer(page)
}
