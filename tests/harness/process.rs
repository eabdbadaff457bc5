//! Running the binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{Directory, SECRET};

/// The path of the binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_cloakroom");

/// The page of the link in messages about password resets.
pub const RESET_URL: &str = "https://app.example.com/reset?token={token}";

/// The fewest settings with which production starts.
pub const PRODUCTION: [(&str, &str); 4] = [
    ("CLOAKROOM_ENV", "production"),
    ("CLOAKROOM_SMTP_URL", "none"),
    ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ("CLOAKROOM_SCRYPT", "14,8,5"),
];

/// The settings with which mail is sent through the server at `url`.
pub fn mail_settings(url: &str) -> [(&str, &str); 3] {
    [
        ("CLOAKROOM_SMTP_URL", url),
        ("CLOAKROOM_MAIL_FROM", "Cloakroom <noreply@example.org>"),
        ("CLOAKROOM_PASSWORD_RESET_URL", RESET_URL),
    ]
}

/// The binary with no environment but settings that suit tests (cheap password hashes, no rate limits) and the given
/// ones, which win.
pub fn command(database_url: &str, data: &Directory, settings: &[(&str, &str)]) -> Command {
    command_at(Path::new(BINARY), database_url, data, settings)
}

/// The same with a copy of the binary.
pub fn command_at(
    binary: &Path,
    database_url: &str,
    data: &Directory,
    settings: &[(&str, &str)],
) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().stdin(Stdio::null()).current_dir(data.path()).envs([
        ("CLOAKROOM_DATABASE_URL", database_url),
        ("CLOAKROOM_LISTEN", "127.0.0.1:0"),
        ("CLOAKROOM_JWT_SECRET", SECRET),
        ("CLOAKROOM_SCRYPT", "4,8,1"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "false"),
    ]);
    command.env("CLOAKROOM_DATA_DIR", data.path()).envs(settings.iter().copied());
    command
}

/// The same command, executed by a shell after a line of script, which may set limits.
pub fn within_shell(line: &str, command: Command) -> Command {
    let mut shell = Command::new("/bin/bash");
    let script = format!("{line} && exec \"$0\" \"$@\"");
    shell.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
    shell.env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        shell.envs(value.map(|value| (name, value)));
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// Runs a command of the binary to its end, with an empty data directory.
pub fn run(database_url: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    run_in(&Directory::create(), database_url, arguments, settings)
}

/// The same with that data directory.
pub fn run_in(
    data: &Directory,
    database_url: &str,
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> Output {
    command(database_url, data, settings).args(arguments).output().expect("the binary runs")
}

/// The last line of `cloakroom gc`.
pub fn swept(moved: usize, removed: usize) -> String {
    format!(
        "contents without a record moved to the trash: {moved}; unfinished uploads and old trash removed: {removed}.\n"
    )
}

/// What a command printed, and its exit status.
pub trait OutputText {
    fn out(&self) -> String;
    fn err(&self) -> String;
    /// Fails unless the command ended with this exit status.
    fn exits(self, code: i32) -> Self;
    /// Fails unless this is in what it printed to standard output.
    fn prints(self, text: &str) -> Self;
    /// Fails unless this is in what it wrote to standard error.
    fn reports(self, text: &str) -> Self;
}

impl OutputText for Output {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    fn exits(self, code: i32) -> Output {
        assert_eq!(self.status.code(), Some(code), "{}{}", self.out(), self.err());
        self
    }

    #[track_caller]
    fn prints(self, text: &str) -> Output {
        assert!(self.out().contains(text), "no {text}: {}{}", self.out(), self.err());
        self
    }

    #[track_caller]
    fn reports(self, text: &str) -> Output {
        assert!(self.err().contains(text), "no {text}: {}", self.err());
        self
    }
}
