//! The files of an archive, in its order, as the database has them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postgres::Row;
use uuid::Uuid;

use crate::db::{Database, from_row, sql};
use crate::error::{Error, Problem};
use crate::model::problems::value_error;
use crate::model::rules;
use crate::model::timestamp::Timestamp;

/// The most memory in bytes that a file of a list takes, see [`rules::FILE_MEMORY`].
pub const ENTRY_MEMORY: usize = 2 * (4 * rules::MAX_FILENAME + rules::MAX_FOLDER) + 1024;

/// Which files are asked for.
#[derive(Clone)]
pub enum Selection {
    /// Those that a link is to, at the time of each look.
    Link(Uuid),
    /// These of a user.
    Files { user: Uuid, ids: Vec<Uuid> },
    /// Those of a user that lie in a folder, in the form of the column `files.folder`, or below it.
    Folder { user: Uuid, folder: String },
}

/// A file of an archive or a list.
pub struct Entry {
    pub id: Uuid,
    /// The folder as from the one that is asked for, in the form of the column. Files that are asked for one by one
    /// have none.
    pub place: String,
    pub filename: String,
    pub content_type: String,
    /// In bytes.
    pub file_size: i64,
    /// SHA-256 in hexadecimal digits.
    pub file_hash: String,
    /// CRC-32, its bits as a signed number.
    pub crc32: i32,
    pub upload_date: Timestamp,
    pub updated_at: Timestamp,
    pub version: i32,
}

/// A place in a list: after the file with these. The default is its beginning.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Position {
    place: String,
    filename: String,
    id: Uuid,
}

impl Position {
    pub fn after(entry: &Entry) -> Position {
        let Entry { id, place, filename, .. } = entry;
        Position { place: place.clone(), filename: filename.clone(), id: *id }
    }

    /// The form in which clients pass it on: Base64 of the id, the folder and the name.
    pub fn cursor(&self) -> String {
        let Position { place, filename, id } = self;
        URL_SAFE_NO_PAD.encode(format!("{}{place}{filename}", id.simple()))
    }

    /// Parses what [`Position::cursor`] has written.
    pub fn parse(cursor: &str) -> Result<Position, Problem> {
        Position::decode(cursor).ok_or_else(|| value_error("Invalid cursor"))
    }

    fn decode(cursor: &str) -> Option<Position> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let (id, path) = text.split_at_checked(32)?;
        // Each name of a folder is followed by this character, which no name contains.
        let (place, filename) = path.split_at(path.rfind('\x01').map_or(0, |end| end + 1));
        let is_name = !filename.is_empty() && !path.contains('\0');
        let position =
            Position { place: place.into(), filename: filename.into(), id: id.parse().ok()? };
        is_name.then_some(position)
    }
}

/// How many of the files are there that are asked for.
pub struct Count {
    /// How many, and their bytes; `None` if they are more than 10,000.
    pub files: Option<i64>,
    pub bytes: Option<i64>,
    /// How many were looked at: a link may not show all of them.
    pub seen: i64,
    /// When they were counted, by the clock of the database.
    pub at: Timestamp,
}

/// The parameters of [`Selection`] in queries.
type Selected<'a> = (Option<&'a Uuid>, Option<&'a Uuid>, Option<&'a Vec<Uuid>>, Option<&'a String>);

impl Selection {
    fn params(&self) -> Selected<'_> {
        match self {
            Selection::Link(link) => (Some(link), None, None, None),
            Selection::Files { user, ids } => (None, Some(user), Some(ids), None),
            Selection::Folder { user, folder } => (None, Some(user), None, Some(folder)),
        }
    }

    /// The first row of a query about the files. Fails with [`Error::LinkNotFound`] if the link is over, and with
    /// [`Error::UserNotUsable`] if the user is deleted.
    fn first<'a>(&self, rows: &'a [Row]) -> Result<&'a Row, Error> {
        let is_link = matches!(self, Selection::Link(_));
        rows.first().ok_or(if is_link { Error::LinkNotFound } else { Error::UserNotUsable })
    }
}

/// Most files whose number and bytes are told, and of an archive.
const MAX_FILES: i64 = 10_000;

/// More files than this are read in turn.
const MANY_FILES: i64 = 1000;

/// Counts the files that are asked for, and calls `turn` if those that must be read are many, whether or not a link
/// shows them. Fails as [`list`] and `turn` do.
pub fn count<P>(
    db: &Database,
    selection: &Selection,
    turn: impl FnOnce(&Count) -> Result<P, Error>,
) -> Result<(Count, Option<P>), Error> {
    let few = look(db, selection, MAX_FILES + 1)?;
    let permits = (few.seen > MANY_FILES).then(|| turn(&few)).transpose()?;
    let has_all = few.seen <= MAX_FILES || few.files.is_none();
    Ok((if has_all { few } else { look(db, selection, i64::MAX)? }, permits))
}

/// Counts the files that are asked for, and looks at so many.
fn look(db: &Database, selection: &Selection, most: i64) -> Result<Count, Error> {
    let (link, user, ids, folder) = selection.params();
    let rows = db.read(sql!("archive/count"), &[&link, &user, &ids, &folder, &most])?;
    let row = selection.first(&rows)?;
    Ok(from_row!(row => Count { files, bytes, seen, at }))
}

/// Up to `limit` of the files that are asked for, after `after`. Fails with [`Error::LinkNotFound`] if the link is
/// over, and with [`Error::UserNotUsable`] if the user is deleted.
pub fn list(
    db: &Database,
    selection: &Selection,
    after: &Position,
    limit: usize,
) -> Result<Vec<Entry>, Error> {
    let (link, user, ids, folder) = selection.params();
    let Position { place, filename, id } = after;
    let rows = db.read(
        sql!("archive/list"),
        &[&link, &user, &ids, &folder, &place, &filename, &id, &(limit as i64)],
    )?;
    if selection.first(&rows)?.get::<_, Option<Uuid>>("id").is_none() {
        return Ok(Vec::new());
    }
    let entry = |row: &Row| {
        from_row!(row => Entry {
            id, place, filename, content_type, file_size, file_hash, crc32, upload_date, updated_at, version
        })
    };
    Ok(rows.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_as_it_was_written_and_nothing_else_is() {
        let id = Uuid::from_u128(7);
        for place in ["", "a\x01", "a\x01b c\x01"] {
            let written = Position { place: place.into(), filename: "ä.txt".into(), id };
            assert_eq!(Position::parse(&written.cursor()).ok(), Some(written));
        }
        let simple = id.simple().to_string();
        for text in
            ["", "x", &simple[..31], &simple, &format!("{simple}a\x01"), &format!("{simple}\0")]
        {
            assert!(Position::parse(&URL_SAFE_NO_PAD.encode(text)).is_err(), "{text:?}");
            assert!(Position::parse(text).is_err(), "{text:?}");
        }
        assert!(Position::parse(&URL_SAFE_NO_PAD.encode([b'0'; 31].map(|_| 0xff))).is_err());
    }
}
