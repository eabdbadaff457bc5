//! Changes of a user's files, as clients that follow them see them.

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::file::File;
use super::problems::value_error;
use super::timestamp::Timestamp;
use crate::error::Problem;

/// What happened to a file, by its latest state.
#[derive(Serialize)]
pub struct Change {
    pub file_id: Uuid,
    /// `present` or `deleted`.
    pub change: &'static str,
    /// When the file's record was last changed, or when it was deleted.
    pub at: Timestamp,
    /// `None` if the file is deleted.
    pub file: Option<File>,
}

/// The place in the changes of a user's files up to which a client has seen them. Changes have numbers, which grow with
/// each change of the user, see `change_numbers` in `sql/files/schema.sql`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor {
    /// The number of the last change that the client has seen, and the id of its file: files that were not changed
    /// since numbers were introduced share the number 0.
    pub number: i64,
    pub file: Uuid,
    /// The user's latest change when the client began. Of deletions up to that it need not know.
    pub begin: i64,
    /// Names the installation and the timeline of the database whose numbers these are.
    pub history: String,
}

/// Where a client's list of changes begins.
#[derive(Debug)]
pub enum After {
    /// Behind all changes so far: the client wants a cursor only.
    Now,
    Cursor(ChangeCursor),
}

impl After {
    /// Parses the cursor that the answer before names, or `now`.
    pub fn parse(text: &str) -> Result<After, Problem> {
        let cursor = ChangeCursor::parse(text).map(After::Cursor);
        let after = if text == "now" { Some(After::Now) } else { cursor };
        after.ok_or_else(|| value_error("Invalid cursor"))
    }
}

impl ChangeCursor {
    /// Parses what [`ChangeCursor::fmt`] has written.
    pub fn parse(text: &str) -> Option<ChangeCursor> {
        let mut parts = text.split('-');
        let mut number = || parts.next()?.parse().ok().filter(|number| *number >= 0);
        let (number, begin) = (number()?, number()?);
        let (file, history) = (parts.next()?.parse().ok()?, parts.next()?);
        let is_history = history.len() == 16 && history.bytes().all(|b| b.is_ascii_hexdigit());
        let is_whole = parts.next().is_none() && is_history;
        is_whole.then(|| ChangeCursor { number, file, begin, history: history.to_owned() })
    }
}

/// The form in which clients pass it on. They are not to look into it.
impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChangeCursor { number, file, begin, history } = self;
        write!(f, "{number}-{begin}-{}-{history}", file.simple())
    }
}
