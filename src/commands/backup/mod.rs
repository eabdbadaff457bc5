//! Backups: a directory named after the time of the backup, with a dump of the database, the contents that it names, and
//! a manifest of both.

mod contents;
mod create;
mod directory;
mod dump;
pub mod manifest;
pub mod verify;

pub use create::backup;

/// The dump of the database, in the directory of a backup.
pub const DUMP: &str = "database.dump";
/// The directory of the contents, in the directory of a backup. Each has its id as its name.
pub const CONTENTS: &str = "files";
/// The end of the name of a directory whose backup is not whole.
pub const PARTIAL: &str = ".partial";
