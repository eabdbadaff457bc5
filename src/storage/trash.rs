//! The trash, which keeps contents without a record for some days: `trash/<UTC date>/<id>`.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::Storage;
use super::file_system::{log_not_removed, sync_directory, translate};
use crate::error::Error;

impl Storage {
    /// Moves contents to today's directory of the trash, and passes the old and the new path of each to `moved`. A
    /// failure with one of them is only logged: the next sweep tries again.
    pub fn move_to_trash(
        &self,
        ids: &[Uuid],
        mut moved: impl FnMut(&Path, &Path),
    ) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let today = self.trash.join(OffsetDateTime::now_utc().date().to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&today).map_err(translate)?;
        for id in ids {
            let (from, to) = (self.path(*id), today.join(id.to_string()));
            match fs::rename(&from, &to) {
                Ok(()) => moved(&from, &to),
                // Another process has moved it already.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => log::warn!("{} was not moved to the trash: {e}", from.display()),
            }
        }
        // The directory of the new names comes first: a loss of power in between then leaves both names, and not none.
        for directory in [&today, &self.trash, &self.contents] {
            sync_directory(directory).map_err(translate)?;
        }
        Ok(())
    }

    /// Removes the directories of the trash that are more than `days` days old. Returns their paths.
    pub fn empty_trash(&self, days: u32) -> Result<Vec<PathBuf>, Error> {
        let today = OffsetDateTime::now_utc().date();
        let mut removed = Vec::new();
        for entry in fs::read_dir(&self.trash).map_err(translate)? {
            let entry = entry.map_err(translate)?;
            let date = entry.file_name().to_str().and_then(parse_date);
            if date.is_some_and(|date| (today - date).whole_days() > i64::from(days)) {
                let path = entry.path();
                match fs::remove_dir_all(&path) {
                    Ok(()) => removed.push(path),
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => log_not_removed(&path, &e),
                }
            }
        }
        Ok(removed)
    }
}

fn parse_date(name: &str) -> Option<Date> {
    Date::parse(name, format_description!("[year]-[month]-[day]")).ok()
}
