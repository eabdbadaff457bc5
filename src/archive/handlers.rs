//! Responses with an archive.

use uuid::Uuid;

use super::body::{self, Body};
use super::plan::{self, Plan};
use super::statements::{Count, ENTRY_MEMORY, Position, Selection, count, list};
use crate::error::{Error, Problem};
use crate::folders::path;
use crate::http::file_response::{FileUse, Representation, content_response};
use crate::http::params::Params;
use crate::http::response::{Response, ResponseBody};
use crate::model::problems::{not_beside, value_error};
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, search_turn, sender_check};

/// What the name of an archive ends in.
pub const ZIP: &str = ".zip";

/// `GET /api/v1/uploads/zip`: files of the user as one archive: those with the ids in `ids`, those in `folder` or below
/// it, or all.
pub fn download(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (folder, ids) = context.request.query().read(read_selection)?;
    let (name, owner) = (archive_name(folder.as_deref()), user.id());
    let selection = match ids {
        Some(ids) => Selection::Files { user: owner, ids },
        None => Selection::Folder { user: owner, folder: folder.unwrap_or_default() },
    };
    let check = sender_check(context, Some(user));
    let turn = || search_turn(context, user, false);
    archive_response(context, selection, (&name, FileUse::Download), check, turn)
}

fn read_selection(query: &mut Params) -> (Option<String>, Option<Vec<Uuid>>) {
    let folder = query.optional("folder", |text| not_empty(text).and_then(path::folder));
    let mut ids = query.optional("ids", |text| not_empty(text).and_then(rules::ids));
    if query.has("folder") && query.has("ids") {
        query.add_error("ids", not_beside("folder"));
    }
    if let Some(ids) = &mut ids {
        ids.sort_unstable();
        ids.dedup();
    }
    (folder, ids)
}

/// Refuses an empty text, which a mistake may send in place of a folder, and which would be the root.
pub fn not_empty(text: &str) -> Result<&str, Problem> {
    if text.is_empty() { Err(value_error("Must not be empty")) } else { Ok(text) }
}

/// The name of the archive of a folder, in the form of the column `files.folder`, or of other files.
pub fn archive_name(folder: Option<&str>) -> String {
    let last = folder.and_then(|folder| folder.split_terminator('\x01').next_back());
    format!("{}{ZIP}", last.unwrap_or("files"))
}

/// Responds with the archive of `selection`, or a range of it, with a name and what browsers may do with it. `check` is
/// called before each batch of files that is read while the archive is sent, and fails if whoever is sent it may not
/// have it any more. `turn` waits for the turn of an archive of many files, whose list takes the database longer. Fails
/// with [`Error::TooManyFiles`], and with [`Error::FileNotFound`] if one of the files that are asked for is none of the
/// user's.
pub fn archive_response<P>(
    context: &RequestContext,
    selection: Selection,
    (name, file_use): (&str, FileUse),
    check: impl Fn() -> Result<(), Error> + Send + 'static,
    turn: impl FnOnce() -> Result<P, Error>,
) -> Result<Response, Error> {
    let number = |count: &Count| count.files.ok_or(Error::TooManyFiles);
    let (count, permits) =
        count(&context.db, &selection, |count| number(count).and_then(|_| turn()))?;
    let files = number(&count)? as usize;
    let db = context.database_with_room(files.min(plan::BATCH) * ENTRY_MEMORY);
    let plan = Plan::make(&|after| list(&db, &selection, after, plan::BATCH), count.at)?;
    drop(permits);
    if matches!(&selection, Selection::Files { ids, .. } if ids.len() != plan.files.len()) {
        return Err(Error::FileNotFound);
    }
    let (tag, length) = (plan.tag.clone(), plan.length);
    let archive = Representation {
        tag: &tag,
        modified: None,
        length,
        content_type: "application/zip",
        name,
        sha256: None,
    };
    let (app, client, id) = (context.app.clone(), context.client, context.id);
    content_response(&context.request, &archive, file_use, |range| {
        let of_list = app.clone();
        let list = move |after: &Position, limit: usize| {
            check()?;
            list(&of_list.db.for_request(client, id), &selection, after, limit)
        };
        let length = Some(range.end - range.start);
        let memory = plan.memory() + files.min(body::BATCH) * ENTRY_MEMORY;
        let parts = Box::new(Body::new(app, plan, Box::new(list), range));
        Ok(ResponseBody::Parts { parts, length, memory })
    })
}
