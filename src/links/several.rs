//! Links to several files or to a folder: the list of the files, and all of them as an archive.

use serde_json::{Value, json};

use super::outcome::{ended, record_use, to_page};
use super::statements::FoundLink;
use crate::archive::{self, ENTRY_MEMORY, Entry, Position, Selection, ZIP};
use crate::error::{Error, FieldError, FieldLocation};
use crate::http::file_response::FileUse;
use crate::http::response::{self, Response};
use crate::model::file::folder_path;
use crate::model::media_type::listed;
use crate::request::context::RequestContext;
use crate::request::link_permits::ListPermits;

/// Most files in a page.
const PAGE: usize = 1000;

/// Whether what follows a token is the name of an archive.
pub fn is_archive_name(segment: &str) -> bool {
    segment.ends_with(ZIP)
}

/// The archive of the files of a link, or, if a list is asked for, a page of it after a place. Browsers that open the
/// bare link, without the name of the archive, are sent to the page of the console that shows the list.
pub fn open(
    context: &RequestContext,
    found: &FoundLink,
    is_bare: bool,
    list_after: Option<Option<String>>,
) -> Result<Response, Error> {
    if let Some(after) = list_after {
        return list(context, found, after.as_deref()).map_err(|error| ended(context, error));
    }
    if let Some(page) = to_page(context, "link").filter(|_| is_bare) {
        return Ok(page);
    }
    let selection = Selection::Link(found.link_id);
    let name = archive::archive_name(found.link_folder.as_deref());
    // The list itself says whether the link is still live.
    let (check, turn) = (|| Ok(()), || turn(context, found));
    let of_archive = (&*name, FileUse::SavedByLink);
    let response = archive::archive_response(context, selection, of_archive, check, turn);
    let response = response.map_err(|error| ended(context, error))?;
    record_use(context, found.is_first_use.then_some(found.link_id));
    Ok(response)
}

/// Waits for the turn of a list of many files.
fn turn(context: &RequestContext, found: &FoundLink) -> Result<ListPermits, Error> {
    let (network, timeout) = (context.limited_network(), context.app.config.database_timeout);
    context.app.extras.link_permits.list(found.link_id, network, timeout)
}

/// A page of the files of a link, with the number and the bytes of all.
fn list(
    context: &RequestContext,
    found: &FoundLink,
    after: Option<&str>,
) -> Result<Response, Error> {
    let invalid = |problem| {
        let (location, field) = (FieldLocation::Query, Some("after"));
        Error::Invalid(vec![FieldError { location, field, problem }])
    };
    let after = after.map(Position::parse).transpose().map_err(invalid)?;
    let selection = Selection::Link(found.link_id);
    let (total, _permits) = archive::count(&context.db, &selection, |_| turn(context, found))?;
    let count = total.files.map_or(usize::MAX, |files| files as usize);
    let db = context.database_with_room(count.min(PAGE + 1) * ENTRY_MEMORY);
    let mut files = archive::list(&db, &selection, &after.unwrap_or_default(), PAGE + 1)?;
    let has_more = files.len() > PAGE;
    files.truncate(PAGE);
    let next = files.last().filter(|_| has_more).map(|last| Position::after(last).cursor());
    let about_file = |file: &Entry| -> Value {
        let types = &context.app.config.allowed_upload_types;
        let Entry { id, filename, file_size, content_type, .. } = file;
        json!({
            "id": id, "filename": filename, "folder": folder_path(&file.place), "file_size": file_size,
            "content_type": listed(content_type, types).unwrap_or_else(|| content_type.clone())
        })
    };
    let name = found.link_folder.as_deref().map(folder_path);
    let name =
        name.as_deref().and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
    let FoundLink { sender, created_at, expires_at, inline, .. } = found;
    let body = json!({
        "name": name, "sender": sender, "created_at": created_at, "expires_at": expires_at, "inline": inline,
        "total_files": total.files, "total_size": total.bytes,
        "files": files.iter().map(about_file).collect::<Vec<_>>(), "next": next
    });
    response::json(200, &body)
}
