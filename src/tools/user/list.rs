//! `cloakroom user list`: prints a table of the accounts.

use std::array;

use crate::db::Database;
use crate::model::timestamp::Timestamp;
use crate::model::user::User;
use crate::serve::print;
use crate::tools::database::accounts;

/// The names of the columns, which are the first line.
const COLUMNS: [&str; 9] =
    ["id", "username", "email", "role", "active", "created", "last_login", "files", "bytes"];

/// Prints all accounts, or those whose username or e-mail address contains `search`, the oldest first. No value has a
/// blank in it, and one that is missing is `-`. A thousand accounts are read at a time, so columns may become wider.
pub fn list(db: &Database, search: Option<&str>) -> Result<(), String> {
    let mut widths = [0; COLUMNS.len()];
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    let mut last: Option<User> = None;
    loop {
        let accounts = accounts::list_after(db, last.as_ref(), search)?;
        lines.extend(accounts.iter().map(cells));
        for line in &lines {
            widths = array::from_fn(|column| widths[column].max(line[column].chars().count()));
        }
        let text: String = lines.drain(..).map(|line| aligned(&line, &widths)).collect();
        if !print(&text)? || accounts.is_empty() {
            return Ok(());
        }
        last = accounts.into_iter().next_back();
    }
}

/// The values of an account, in the order of the columns.
fn cells(user: &User) -> [String; COLUMNS.len()] {
    let missing = || "-".to_owned();
    [
        user.id.to_string(),
        user.username.clone().unwrap_or_else(missing),
        user.email.clone(),
        user.role.name().to_owned(),
        (if user.is_active { "yes" } else { "no" }).to_owned(),
        to_the_second(user.created_at),
        user.last_login.map_or_else(missing, to_the_second),
        user.stats.total_uploads.to_string(),
        user.stats.total_storage_used.to_string(),
    ]
}

/// The time without its microseconds, which nobody reads.
fn to_the_second(at: Timestamp) -> String {
    let text = at.text();
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// A line with its cells below those of other lines, whose widths in characters are given.
fn aligned(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    let line = cells.collect::<Vec<_>>().join("  ");
    // An address may be of an old release, which did not refuse all control characters.
    line.trim_end().replace(char::is_control, "?") + "\n"
}
