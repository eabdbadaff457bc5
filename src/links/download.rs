//! What whoever has a link can do with it: download the file that it is to, or one of several or all of them, and learn
//! what they are.

use std::cell::Cell;

use serde_json::json;
use uuid::Uuid;

use super::handlers::token_hash;
use super::outcome::{ended, record_use};
use super::statements::{self, FoundLink, LinkHash};
use super::{sending, several};
use crate::error::Error;
use crate::files::handlers::download_response;
use crate::http::file_response::FileUse;
use crate::http::response::{self, Response};
use crate::model::file::File;
use crate::model::rules;
use crate::request::context::RequestContext;

/// `GET /api/v1/links/{token}`, and with what may follow it. A link to a file, also with a name after it: the file's
/// content, or a range of it, for anyone, or with `about` what there is to know of it. A link to several: all of them
/// as an archive, also with a name after it that ends in `.zip`, or with `about` their list; with the id of one of them
/// after it, and perhaps a name after that, that file as by a link to it. A link to send files by: with `about` what it
/// takes. A link that is unknown, has ended or was never one is answered alike.
pub fn open(context: &mut RequestContext) -> Result<Response, Error> {
    let mut params = context.path_params.iter().map(|param| &*param.text);
    let hash = token_hash(params.next().unwrap_or_default());
    let named = params.next();
    let id = named.and_then(|named| rules::uuid(named).ok());
    let is_zip = named.is_some_and(several::is_archive_name);
    let (is_about, after) = context.request.query().read(|query| {
        (query.filter("about", rules::boolean), query.filter("after", rules::search))
    })?;
    // What follows api, v1, links, the token and the id of one of several.
    let has_name = context.request.path().split('/').filter(|part| !part.is_empty()).count() > 5;
    let found = find(context, &hash, id)?;
    if has_name && !(found.is_to_several && id.is_some()) {
        return Err(ended(context, Error::LinkNotFound));
    }
    if found.receives_files {
        return sending::open(context, &hash, is_about == Some(true), named.is_none());
    }
    if found.is_to_several && (named.is_none() || is_zip) {
        let list = (is_about == Some(true)).then_some(after);
        return several::open(context, &found, named.is_none(), list);
    }
    let Some(file) = &found.file else { return Err(ended(context, Error::LinkNotFound)) };
    if is_about == Some(true) {
        return about(&found, file);
    }
    let used = Cell::new(None);
    let first = Cell::new(Some(found));
    let response = download_response(context, || {
        let found = first.take().map_or_else(|| find(context, &hash, id), Ok)?;
        let FoundLink { file, is_utf8, link_id, inline, is_first_use, .. } = found;
        let mut file = file.ok_or_else(|| ended(context, Error::LinkNotFound))?;
        used.set(is_first_use.then_some(link_id));
        // Browsers take a text for windows-1252, unless its first bytes or this say something else.
        if inline && is_utf8 == Some(true) && file.content_type == "text/plain" {
            file.content_type += "; charset=utf-8";
        }
        Ok((file, if inline { FileUse::ShownByLink } else { FileUse::SavedByLink }))
    })?;
    record_use(context, used.get());
    Ok(response)
}

/// Finds a link, and the file that it is to, or that one of several. It is `inline` only if browsers show the file
/// safely.
fn find(context: &RequestContext, hash: &LinkHash, file: Option<Uuid>) -> Result<FoundLink, Error> {
    let found = statements::find(&context.db, hash, file).map_err(|error| ended(context, error))?;
    let types = &context.app.config.allowed_upload_types;
    let file = found.file.map(|file| file.with_listed_type(types));
    let is_safe = file.as_ref().is_none_or(|file| is_shown_safely(&file.content_type));
    Ok(FoundLink { file, inline: found.inline && is_safe, ..found })
}

/// Whether browsers may show a file of this type that anyone may have made: text, and pictures that are not XML, in
/// which scripts can stand, as in SVG.
fn is_shown_safely(name: &str) -> bool {
    name == "text/plain"
        || name
            .strip_prefix("image/")
            .is_some_and(|kind| !kind.starts_with("svg") && !kind.ends_with("+xml"))
}

/// What whoever has a link may know of the file before downloading it.
fn about(found: &FoundLink, file: &File) -> Result<Response, Error> {
    let FoundLink { inline, created_at, expires_at, sender, .. } = found;
    let File { filename, file_size, content_type, .. } = file;
    let body = json!({
        "filename": filename, "file_size": file_size, "content_type": content_type, "created_at": created_at,
        "expires_at": expires_at, "inline": inline, "sender": sender
    });
    response::json(200, &body)
}
