//! The settings and the command that the Debian package installs. `scripts/test-production` tests the package itself.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::*;

const SETTINGS: &str = include_str!("../../../scripts/debian/cloakroom.env");
/// What the units have in common.
const UNITS: &str = include_str!("../../../scripts/debian/common.conf");

/// The lines `NAME=value` of a text, after this beginning.
fn assignments<'a>(text: &'a str, beginning: &str) -> Vec<(&'a str, &'a str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(beginning));
    lines
        .filter(|line| line.starts_with("CLOAKROOM_"))
        .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line}")))
        .collect()
}

/// What the units set for settings that are not in the file.
fn defaults_of_the_units() -> Vec<(&'static str, &'static str)> {
    let line = UNITS.lines().find_map(|line| line.strip_prefix("Environment=")).unwrap();
    line.split(' ').map(|setting| setting.split_once('=').unwrap()).collect()
}

/// Runs `cloakroom config` as a unit would, with these settings beside the defaults of the units.
fn config(settings: &[(&str, &str)]) -> std::process::Output {
    // What the harness sets has its default again where it is empty.
    let harness =
        ["CLOAKROOM_LISTEN", "CLOAKROOM_SCRYPT", "CLOAKROOM_RATE_LIMIT_ENABLED"].map(|n| (n, ""));
    run(NOWHERE, &["config"], &[&harness, &defaults_of_the_units()[..], settings].concat())
}

/// Enough for production to start.
const REQUIRED: &[(&str, &str)] =
    &[("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "false"), ("CLOAKROOM_SMTP_URL", "none")];

#[test]
fn the_settings_of_the_package_end_with_the_defaults_that_the_program_prints() {
    let printed = run("", &["config", "--sample"], &[]).exits(0).out();
    let hint =
        "scripts/debian/cloakroom.env does not end with what `cloakroom config --sample` prints";
    assert!(SETTINGS.ends_with(&printed), "{hint}");
    // With all of them nothing changes, but for those that the units set otherwise.
    let of_units = defaults_of_the_units();
    let mut settings = assignments(SETTINGS, "#");
    settings
        .retain(|(name, value)| !value.is_empty() && of_units.iter().all(|unit| unit.0 != *name));
    assert!(settings.len() > 40, "{settings:?}");
    let with_defaults = config(&[&settings[..], REQUIRED].concat()).exits(0).out();
    assert_eq!(with_defaults, config(REQUIRED).exits(0).out());
}

#[test]
fn the_settings_of_the_package_lack_only_a_database() {
    let settings = assignments(SETTINGS, "");
    let value = |name| settings.iter().find(|(found, _)| *found == name).unwrap().1;
    assert_eq!((value("CLOAKROOM_DATABASE_URL"), value("CLOAKROOM_JWT_SECRET")), ("", ""));
    // The installation makes a secret, of which only the length matters here.
    let secret = ("CLOAKROOM_JWT_SECRET", SECRET);
    let text = config(&[&settings[..], &[secret]].concat()).exits(2).err();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("CLOAKROOM_DATABASE_URL is not set"), "{text}");
    let database = ("CLOAKROOM_DATABASE_URL", NOWHERE);
    config(&[&settings[..], &[secret, database]].concat()).exits(0);
}

/// A shell command that prints the id of the session in which it runs.
const SESSION: &str = "read -r _ _ _ _ _ session _ </proc/$$/stat; echo \"$session\"";

/// The command of the package for root, with another program in the place of the service's, and another user.
fn command_of_the_package(directory: &Directory) -> PathBuf {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("its mode");
        path
    };
    let program = format!(
        "#!/bin/sh\n{SESSION}\nid -un\necho \"$#: $*\"\necho an error >&2\nhead -n 1\nexit 3\n"
    );
    let program = write("program", &program);
    let mut text = include_str!("../../../scripts/debian/cloakroom").to_owned();
    for (old, new) in [
        ("program=/usr/lib/cloakroom/cloakroom", &*format!("program={}", program.display())),
        ("--user cloakroom ", "--user nobody "),
        (" cloakroom \"$program\"", " nobody \"$program\""),
    ] {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text = text.replace(old, new);
    }
    write("cloakroom", &text)
}

/// A program that shares a terminal with root's shell could type commands there (ioctl `TIOCSTI`).
#[test]
fn what_root_types_runs_as_another_user_in_another_session() {
    if !rustix::process::geteuid().is_root() {
        return; // only root becomes another user
    }
    let directory = Directory::create();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("its mode");
    let path = command_of_the_package(&directory);
    let typed = format!("{SESSION}; {} backup --keep 'a b'", path.display());
    let shell = |command: &mut Command, input: &str| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        process.wait_with_output().expect("it ends").exits(3)
    };
    let output = shell(Command::new("/bin/sh").args(["-c", &typed]), "a password\n");
    assert_eq!(output.err(), "an error\n");
    let text = output.out();
    let [outer, inner, rest @ ..] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_ne!(outer, inner);
    let arguments = "5: --env-file /etc/cloakroom/cloakroom.env backup --keep a b";
    assert_eq!(rest, ["nobody", arguments, "a password"]);
    // The same at a terminal.
    let mut at_terminal = Command::new("script");
    at_terminal.args(["--quiet", "--return", "--command", &typed, "/dev/null"]);
    let text = shell(&mut at_terminal, "typed\n").out().replace('\r', "");
    let sessions: Vec<&str> =
        text.lines().filter(|line| line.bytes().all(|b| b.is_ascii_digit())).collect();
    assert!(sessions.len() == 2 && sessions[0] != sessions[1], "{text}");
    for line in ["nobody", arguments, "an error", "typed"] {
        assert!(text.lines().any(|found| found.ends_with(line)), "{line}: {text}");
    }
}
