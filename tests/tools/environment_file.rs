//! `--env-file`: a file that systemd reads for the service is read by the same rules. `as_systemd_252.txt` is what
//! `env -0` printed below `systemd-run --property=EnvironmentFile=`, which `scripts/test-production` compares again.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::*;

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/environment_file/odd.env");
const AS_SYSTEMD: &str = include_str!("environment_file/as_systemd_252.txt");
/// The user `nobody` of Debian.
const NOBODY: u32 = 65_534;

#[test]
fn a_command_has_the_variables_that_systemd_gives_the_service() {
    let (data, mail) = (Directory::create(), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let url = format!("smtp://{}", mail.local_addr().expect("an address"));
    let mut command = command(NOWHERE, &data, &mail_settings(&url));
    command.env("TWICE", "of the environment");
    command.args(["--env-file", ODD, "send-test-mail", "--to", "a@example.org"]);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let connection = mail.accept().expect("a client");
    let environment = fs::read(format!("/proc/{}/environ", process.id())).expect("an environment");
    drop(connection);
    process.wait().expect("it ends");
    let environment = String::from_utf8(environment).expect("text");
    let of_the_test = ["CLOAKROOM_"];
    let mut length = 0;
    for variable in environment.split_terminator('\0') {
        if of_the_test.iter().any(|beginning| variable.starts_with(beginning)) {
            continue;
        }
        let expected = format!("\n{variable}\n");
        assert!(format!("\n{AS_SYSTEMD}").contains(&expected), "{variable:?}");
        length += variable.len() + 1;
    }
    assert_eq!(length, AS_SYSTEMD.len(), "variables are missing: {environment:?}");
}

/// The lines that `doctor` names in a file of this text, with what it says of them.
fn odd_lines(text: &str) -> Vec<(usize, String)> {
    let directory = Directory::create();
    let path = directory.join("settings");
    fs::write(&path, text).expect("a file");
    let mut command = command(NOWHERE, &directory, &[]);
    command.args(["--env-file", path.to_str().unwrap(), "doctor"]);
    let report = report_of(command.output().expect("it runs"));
    let beginning = format!("settings file: {}, line ", path.display());
    let lines = report.lines().filter_map(|line| {
        let (kind, rest) = line.split_at_checked(8)?;
        let (number, text) = rest.strip_prefix(&beginning)?.split_once(": ")?;
        Some((number.parse().ok()?, kind.to_owned() + text))
    });
    lines.collect()
}

#[test]
fn doctor_names_what_systemd_ignores() {
    for (line, text) in [
        ("export A=b", "fault   ignored: write NAME=value, without `export`"),
        ("A B=c", "fault   ignored, because what stands before = is no name"),
        ("1A=b", "fault   ignored, because what stands before = is no name"),
        ("=b", "fault   ignored, because it has no name"),
        ("A", "fault   ignored, because it has no ="),
        ("A='b", "fault   A: a quote is not closed, so all that follows is its value"),
        ("# a \\\nA=b", "warning a comment that ends in \\ hides the next line"),
        ("A=b\r\nB=c\r", "warning it ends in CR LF"),
    ] {
        let found = odd_lines(&format!("# fine\n\nFINE='a b'\n{line}\n"));
        let text = text.replace("it has no name", "what stands before = is no name");
        assert!(found.len() == 1 && found[0].0 == 4, "{line}: {found:?}");
        assert!(found[0].1.starts_with(&text), "{line}: {found:?}");
    }
    assert_eq!(odd_lines(include_str!("../../scripts/debian/cloakroom.env")), []);
}

/// The value that a shell gives the only variable of a file; `None` if it gives none.
fn value_in_a_shell(path: &Path) -> Option<String> {
    let script = "set -a; . \"$0\" >/dev/null 2>&1; printf '%s' \"$A\"";
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .arg(path)
        .env_clear()
        .env("HOME", "/home/ann")
        .env("B", "expanded");
    let output = command.output().expect("a shell");
    output.status.success().then(|| output.out())
}

#[test]
fn doctor_names_exactly_the_values_that_a_shell_reads_in_another_way() {
    // Each value, and the part of what doctor says of it; nothing for those that both read alike.
    let cases = [
        ("b", ""),
        ("", ""),
        ("b  ", ""),
        ("b#c", ""),
        ("#b", ""),
        ("b=c,d:e/f.g@h%20-i+j?k[l]*m{n}!", ""),
        ("'b & c'", ""),
        ("'b'  ", ""),
        ("'b'\"c\"d", ""),
        ("\"b \\\" \\\\ \\$B \\n\"", ""),
        ("b\\&c\\ d", ""),
        ("b\\\nc", ""),
        ("'b\nc'", ""),
        ("b~", ""),
        ("kä:se", ""),
        ("b c", "a shell ends the value at the blank"),
        (" b", "a shell ends the value at the blank"),
        ("'b' 'c'", "a shell ends the value at the blank"),
        ("b # c", "looks like a comment"),
        ("'b' # c", "looks like a comment"),
        ("b&c", "such as & and $"),
        ("b;c", "such as & and $"),
        ("b<c", "such as & and $"),
        ("b>/dev/null", "such as & and $"),
        ("b|c", "such as & and $"),
        ("b(c", "such as & and $"),
        ("$B", "such as & and $"),
        ("`echo c`", "such as & and $"),
        ("\"$B\"", "in double quotes"),
        ("\"`echo c`\"", "in double quotes"),
        ("~/b", "home directory"),
        ("/b:~/c", "home directory"),
        ("b'c'", "a quote in the middle"),
        ("'b'c\"d\"", "a quote in the middle"),
    ];
    let directory = Directory::create();
    let path = directory.join("settings");
    for (value, text) in cases {
        let file = format!("A={value}\n");
        let found = odd_lines(&file);
        fs::write(&path, &file).expect("a file");
        let in_shell = value_in_a_shell(&path);
        // The setting shows what systemd, and so a command, makes of the value.
        let issuer = directory.join("issuer");
        fs::write(&issuer, format!("CLOAKROOM_JWT_ISSUER={value}\n")).expect("a file");
        let mut command = command(NOWHERE, &directory, &[]);
        let config = command.args(["--env-file", issuer.to_str().unwrap(), "config"]).output();
        let config = config.expect("it runs").exits(0).out();
        let (_, rest) = config.split_once("CLOAKROOM_JWT_ISSUER=").expect("a setting");
        let (as_systemd, _) = rest.split_once("\nCLOAKROOM_").expect("another one");
        let is_alike = in_shell.as_deref() == Some(as_systemd);
        assert_eq!(is_alike, text.is_empty(), "{value}: {in_shell:?}, {as_systemd:?}");
        assert_eq!(found.is_empty(), text.is_empty(), "{value}: {found:?}");
        assert!(found.iter().all(|(line, said)| *line == 1 && said.contains(text)), "{found:?}");
    }
}

#[test]
fn a_file_wins_over_the_environment_and_a_later_file_over_an_earlier_one() {
    let directory = Directory::create();
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("a file");
        directory.join(name).display().to_string()
    };
    let first = write("first", "CLOAKROOM_LOG=warn\nCLOAKROOM_TRASH_DAYS=8\nCLOAKROOM_DOCS=\n");
    let second = write("second", "CLOAKROOM_TRASH_DAYS=9\nCLOAKROOM_LISTN=x\n");
    let settings = [("CLOAKROOM_LOG", "debug"), ("CLOAKROOM_DOCS", "off")];
    let mut command = command(NOWHERE, &directory, &settings);
    command.args(["--env-file", &first, "--env-file", &second, "config"]);
    let text = command.output().expect("it runs").exits(0).out();
    let lines: BTreeSet<_> = text.lines().collect();
    for line in ["CLOAKROOM_LOG=warn", "CLOAKROOM_TRASH_DAYS=9", "CLOAKROOM_DOCS=on"] {
        assert!(lines.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named_and_nothing_is_done() {
    let directory = Directory::create();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("its mode");
    let (secret, binary) = (directory.join("settings"), directory.join("cloakroom"));
    fs::write(&secret, format!("CLOAKROOM_DATABASE_URL={NOWHERE}\n")).expect("a file");
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).expect("its mode");
    fs::copy(BINARY, &binary).expect("a copy");
    let with = |path: &Path| {
        let mut command = command_at(&binary, "", &directory, &[]);
        command.arg("--env-file").arg(path).arg("gc");
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY); // root may read anything
        }
        command.output().expect("it runs").exits(2).err()
    };
    let text = with(&secret);
    let shown = format!("may not read {}, which has the settings", secret.display());
    assert!(
        text.contains(&shown) && text.contains("sudo") && !text.contains("is not set"),
        "{text}"
    );
    let missing = directory.join("missing");
    let text = with(&missing);
    assert!(text.contains(&format!("{}: No such file", missing.display())), "{text}");
    let binary_file = directory.join("binary");
    for bytes in [&b"A=\xff\n"[..], b"A=b\0\n"] {
        fs::write(&binary_file, bytes).expect("a file");
        let text = with(&binary_file);
        assert!(text.contains("is no text in UTF-8"), "{text}");
    }
}
