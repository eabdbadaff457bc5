//! Changes of files, by which clients keep copies of them.

use uuid::Uuid;

use crate::db::{Database, SqlParams, sql};
use crate::error::Error;
use crate::files::statements as files;
use crate::model::change::{After, Change, ChangeCursor};
use crate::model::rules::FILE_MEMORY;

/// Changes after a cursor.
pub struct ChangePage {
    /// In the order of the latest change of each file.
    pub changes: Vec<Change>,
    /// The cursor after these.
    pub next: ChangeCursor,
    /// Whether there are more after them.
    pub has_more: bool,
    /// The number of the latest change of the user's files.
    pub latest: i64,
}

/// The most bytes of descriptions and names in a page, but for its last record.
const MAX_TEXTS: i64 = 256 * 1024;

/// The most memory that a page of so many changes takes, in bytes: its rows and its changes, or these and their JSON.
pub fn most_bytes(limit: i64) -> usize {
    let (limit, texts) = (limit as usize, MAX_TEXTS as usize);
    (2 * texts + FILE_MEMORY + 2048 * limit).min(limit * FILE_MEMORY)
}

/// Lists at most `limit` files of `user` that have changed after a cursor, or without one all that are there, or none
/// after [`After::Now`]; fewer if their texts have more than [`MAX_TEXTS`]. Fails with [`Error::ChangesForgotten`] if
/// the cursor is of another history of the database, or if a deletion after it may be forgotten, and with
/// [`Error::Unavailable`] by a standby, whose next history is not known.
pub fn list(
    db: &Database,
    user: Uuid,
    after: Option<&After>,
    limit: i64,
) -> Result<ChangePage, Error> {
    // No change has the largest number, and no file the largest id.
    let (number, file, begin) = match after {
        None => (-1, Uuid::nil(), None),
        Some(After::Now) => (i64::MAX, Uuid::max(), None),
        Some(After::Cursor(cursor)) => (cursor.number, cursor.file, Some(cursor.begin)),
    };
    let params: SqlParams = &[&user, &number, &file, &begin, &limit, &MAX_TEXTS];
    let rows = db.read(sql!("changes/list"), params)?;
    let first = rows.first().ok_or(Error::UserNotUsable)?;
    let (history, latest): (Option<String>, i64) =
        (first.get("history"), first.get("latest_change"));
    let history = history.ok_or(Error::Unavailable)?;
    let is_known = |cursor: &ChangeCursor| {
        let is_past = cursor.number <= latest && cursor.begin <= latest;
        cursor.history == history
            && is_past
            && first.get::<_, i64>("forgotten_change") <= cursor.number.max(cursor.begin)
    };
    if let Some(After::Cursor(cursor)) = after
        && !is_known(cursor)
    {
        return Err(Error::ChangesForgotten);
    }
    let has_more = first.get::<_, i64>("found") > rows.len() as i64;
    let begin = begin.unwrap_or(latest);
    let mut next = ChangeCursor { number: number.clamp(0, latest), file, begin, history };
    let mut changes = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(file_id) = row.get("file_id") else { break };
        (next.number, next.file) = (row.get("change_number"), file_id);
        let change = if row.get("is_deleted") { "deleted" } else { "present" };
        changes.push(Change { file_id, change, at: row.get("at"), file: files::from_row(row) });
    }
    Ok(ChangePage { changes, next, has_more, latest })
}
