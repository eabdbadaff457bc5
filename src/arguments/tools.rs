//! The commands for operators, which are built only with the feature `tools`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use uuid::Uuid;

#[derive(Subcommand)]
pub enum Tool {
    /// Look at the settings, the database, the contents of files, the free space, the mail server and the service, and
    /// say what is wrong and what to do about it; changes nothing.
    ///
    /// Run it with the settings of the service and as its user. To see whether the database and the disk take changes,
    /// it makes some and takes them back. Each line begins with ok, warning or fault. Fails if
    /// there is a fault.
    Doctor,
    /// Move file contents that no record owns, older than an hour, to the trash.
    ///
    /// Unless --confirm is given, it moves none, and fails, if over 5 % of all contents and more than 20 have no record
    /// although no user has deleted the files.
    Gc {
        /// Move contents without a record also where they are over 5 % of all.
        #[arg(long)]
        confirm: bool,
        /// Name all, in place of the first twenty of a kind.
        #[arg(long)]
        all: bool,
    },
    /// Compare every file's record with its content, every content with its record, and totals with the records.
    ///
    /// Prints lines that begin with ok, warning or fault, also beside a running service. Changes nothing, except with
    /// --repair or --remove-lost. Fails if there is a fault.
    Check {
        /// Bring missing and damaged contents back from the trash or the last backup, where it has the right bytes.
        #[arg(long)]
        repair: bool,
        /// Only delete these files for good, whose contents are lost or damaged; their owners are told by mail, and
        /// damaged bytes go to the trash. Leaves and names each whose content is right in its place, in the trash or in
        /// the last backup, and fails then.
        #[arg(long, value_name = "ID", num_args = 1.., value_parser = parse_file_id)]
        #[arg(conflicts_with_all = ["repair", "all"])]
        remove_lost: Vec<Uuid>,
        /// Name all, in place of the first twenty of a kind.
        #[arg(long)]
        all: bool,
    },
    /// Make a backup of the database and of all contents, also beside a running service.
    ///
    /// The backup is a new directory in DIR, named after the UTC time; until it is whole, the name ends in `.partial`.
    /// Contents that the last backup has are hard-linked to it, so they take their space once; each is read, there and
    /// in the data directory, and copied anew if it has rotted in the last backup. Nothing is begun unless the others
    /// and the database fit beside 5 % of the disk.
    Backup {
        /// Directory of the backups, made if it is missing; with --verify the directory of one backup.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Read all of a backup again, and name everything in it that is damaged or missing; uses no database.
        #[arg(long, conflicts_with_all = ["keep", "verify_share"])]
        verify: bool,
        /// Read only this part of the contents that are linked to the last backup, such as 1/14: another part each
        /// time, so all of them within 14 whole backups.
        #[arg(long, value_name = "1/N", default_value = "1/1", value_parser = parse_share)]
        verify_share: u32,
        /// After a whole backup, keep so many of this installation, and remove the older ones.
        #[arg(long, value_name = "N", value_parser = parse_count)]
        keep: Option<usize>,
        /// Name all, in place of the first twenty of a kind.
        #[arg(long)]
        all: bool,
    },
    /// Restore a backup into an empty database and an empty data directory.
    ///
    /// Reads the whole backup first, and changes nothing if anything is damaged. What is restored is an installation of
    /// its own: all sessions and personal access tokens end, and passwords are those of the day of the backup.
    Restore {
        /// Directory of one backup, such as /var/backups/cloakroom/2026-01-02T03-04-05Z.
        backup: PathBuf,
        /// Restore without the files whose contents are damaged or missing in the backup.
        #[arg(long)]
        skip_damaged: bool,
        /// Name all, in place of the first twenty of a kind.
        #[arg(long)]
        all: bool,
    },
    /// Print the audit log, the oldest event first.
    ///
    /// With --follow it prints each later event once it is committed, also after newer ones, and none twice. While the
    /// database is away it waits, and then goes on with what it missed. It may miss a refused action that the service
    /// could write only over ten minutes later. The end of the program that reads its output ends it with status 0.
    Audit {
        /// How far to go back: a number and m, h or d, for minutes, hours or days.
        #[arg(long, default_value = "1d", value_parser = parse_age)]
        since: Duration,
        /// Go on printing what comes, until it is stopped.
        #[arg(long)]
        follow: bool,
        /// How each event is printed.
        #[arg(long, default_value = "text")]
        format: AuditFormat,
    },
    /// Make files of an account of all that lies in a directory, also beside a running service.
    ///
    /// Each regular file below DIR, hidden ones too, becomes a file of the owner in the folder that its directory is,
    /// by the rules and the quotas of uploads. One that is there already is passed over, so the command may be broken
    /// off and run again. Symbolic links, special files and other file systems are passed over and counted. Files that
    /// the rules or quotas refuse, that cannot be read or change meanwhile are named at the end, and it fails then.
    /// Contents belong to the owner of the data directory, also if root runs it.
    ImportFiles {
        /// Directory to read. Nothing in it is changed.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Username or e-mail address of an active account.
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// Folder for what lies in DIR, such as /photos/2026; without it the root.
        #[arg(long, value_name = "/F", default_value = "/", hide_default_value = true)]
        folder: String,
        /// Only say what would be imported and what refused.
        #[arg(long)]
        dry_run: bool,
        /// Name all that is refused, at once, in place of the first twenty of a kind at the end.
        #[arg(long)]
        all: bool,
    },
    /// Make accounts of the rows of a file (CSV), also beside a running service.
    ///
    /// The first line names the columns, in any order: email, username, name, role, is_active, created_at, last_login
    /// and password_hash, of which each may be missing but email; others are ignored. Rows obey the rules of the
    /// service. A row with an address that an account has is passed over. If a row has a fault, all faults are named,
    /// with their lines and columns, nothing is imported, and it fails. A password hash may be one of bcrypt, of
    /// Argon2id, or of scrypt: then the old password goes on being right. Without one, an owner is invited, or chooses
    /// a password by the link for a forgotten one.
    ImportUsers {
        /// File to read; `-` is standard input.
        #[arg(value_name = "FILE.csv")]
        file: PathBuf,
        /// Mail those without a password hash who are active a link to choose a password, good for seven days, one a
        /// second.
        #[arg(long)]
        invite: bool,
        /// Only say what would be imported, or what is wrong.
        #[arg(long)]
        dry_run: bool,
    },
    /// Copy all contents between the data directory and the store, also beside a running service; deletes nothing.
    ///
    /// It copies what the other place lacks, verifies it by hash, and may be broken off and run again. It names what
    /// was uploaded meanwhile: then run it again. When nothing is left to do, change CLOAKROOM_STORAGE_URL of the
    /// service, which this command needs in both directions. Fails if a content is missing or damaged.
    #[cfg(feature = "s3")]
    MoveContents {
        /// Where contents are copied to.
        #[arg(long, value_name = "PLACE")]
        to: ContentPlace,
        /// Name all, in place of the first twenty of a kind.
        #[arg(long)]
        all: bool,
    },
    /// Make the data directory, or the store, the database's, after a refusal that named both ids.
    AdoptDataDir {
        /// Installation id that the data directory or the store holds, or `none`.
        #[arg(value_parser = parse_expected_id)]
        id: ExpectedId,
    },
    /// Send a test message and show the dialogue with the mail server; uses no database.
    ///
    /// Fails if the server cannot be reached or does not take the message. If the settings name no server, or not all
    /// that mail needs, the status is 2.
    SendTestMail {
        /// E-mail address of the recipient.
        #[arg(long)]
        to: String,
    },
}

/// How events are printed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditFormat {
    /// A line of words for people.
    Text,
    /// An object of JSON in a line, as `GET /api/v1/admin/audit` shows it.
    Json,
}

/// A place of contents.
#[cfg(feature = "s3")]
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ContentPlace {
    /// The store of CLOAKROOM_STORAGE_URL.
    S3,
    /// The data directory.
    Directory,
}

/// Longest time that `--since` may go back. No event is older than the service.
const MAX_AGE_DAYS: u64 = 36_500;

/// Parses a number with the unit `m`, `h` or `d`: minutes, hours or days.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let seconds_of = |unit| match unit {
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let unit = text.chars().next_back().and_then(seconds_of);
    let number = text.get(..text.len().saturating_sub(1)).and_then(|digits| digits.parse().ok());
    let seconds = unit.zip(number).and_then(|(unit, number): (u64, u64)| number.checked_mul(unit));
    seconds
        .filter(|seconds| *seconds <= MAX_AGE_DAYS * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(|| "a time such as 30m, 1h or 7d is expected".into())
}

/// Parses a number that is at least 1.
pub fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a number from 1 on is expected".into())
}

/// Parses `1/N`, and returns N, which is at least 1.
pub fn parse_share(text: &str) -> Result<u32, String> {
    let parts = text.strip_prefix("1/").and_then(|parts| parts.parse().ok());
    parts.filter(|n| *n > 0).ok_or_else(|| "a part such as 1/14 is expected".into())
}

/// The installation id that a user expects in the data directory; `None` if it should hold none.
#[derive(Clone, Copy)]
pub struct ExpectedId(pub Option<Uuid>);

fn parse_file_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| "the id of a file is expected".into())
}

/// Parses the argument of `adopt-data-dir`: a UUID or `none`.
pub fn parse_expected_id(text: &str) -> Result<ExpectedId, String> {
    match text {
        "none" => Ok(ExpectedId(None)),
        _ => text
            .parse()
            .map(|id| ExpectedId(Some(id)))
            .map_err(|_| "an installation id or `none` is expected".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_of_minutes_hours_or_days() {
        for (text, seconds) in [("30m", 1800), ("1h", 3600), ("7d", 604_800), ("0m", 0)] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "h", "1", "1s", "-1h", "1.5h", "1 h", "36501d", "99999999999999999999d", "1\u{e9}"]
        {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_one_of_a_number_of_parts() {
        for (text, parts) in [("1/1", 1), ("1/14", 14)] {
            assert_eq!(parse_share(text), Ok(parts), "{text}");
        }
        for text in ["", "1", "1/", "1/0", "1/-1", "2/3", "14", "1/1.5", "1/99999999999"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
