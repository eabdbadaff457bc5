//! Folders: a text of each file, which says where it lies. A folder is there while a file is in it or below it.

mod handlers;
pub mod path;
mod statements;

use crate::error::{Error, Problem};
use crate::http::multipart::Multipart;
use crate::http::params::Params;
use crate::model::{problems, rules};
use crate::request::endpoint::Handler::SignedIn;
use crate::request::endpoint::{Endpoint, at};

/// The endpoints of this module.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("GET", ["folders"]) => at("/folders", SignedIn(handlers::list)),
        ("DELETE", ["folders"]) => at("/folders", SignedIn(handlers::delete)),
        ("POST", ["folders", "move"]) => at("/folders/move", SignedIn(handlers::move_files)),
        _ => return None,
    };
    Some(endpoint)
}

/// Reads the folder of a file from a body, in the form of the column `files.folder`.
pub fn field(body: &mut Params) -> Option<String> {
    body.optional("folder", path::folder)
}

/// Reads the folder of an upload from the present part of its form.
pub fn part(parts: &mut Multipart) -> Result<Result<String, Problem>, Error> {
    // Characters in NFC may come as others of up to six times as many bytes, and one more tells what is too long.
    let text = parts.text(6 * rules::MAX_FOLDER + 1)?.ok_or(problems::NOT_UTF8);
    Ok(text.and_then(|text| path::folder(&text)))
}

/// Reads the filters of a list: the folder in which the files lie, the one in or below which they lie, and whether
/// strangers sent them by links.
pub fn filters(query: &mut Params) -> (Option<String>, Option<String>, Option<bool>) {
    let (folder, below) =
        (query.filter("folder", path::folder), query.filter("below", path::folder));
    if folder.is_some() && below.is_some() {
        query.add_error("below", problems::not_beside("folder"));
    }
    (folder, below, query.filter("received", rules::boolean))
}
