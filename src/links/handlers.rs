//! Links to files: their owners make, list and end them, and whoever has one downloads the file.

use std::cell::Cell;
use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::statements::{self, FileLink, LinkHash, LinkedFile, NewFileLink};
use crate::auth::random_bytes;
use crate::error::Error;
use crate::files::handlers::download_response;
use crate::http::file_response::FileUse;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::File;
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body};

/// What is encoded in a segment of a path: all but the unreserved characters (RFC 3986, 2.3).
const PATH_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long a link works, in minutes, up to thirty days, and how long if the request for it does not say.
const MINUTES: RangeInclusive<i64> = 1..=43_200;
const DEFAULT_MINUTES: i64 = 24 * 60;

/// Reads the lifetime of a new link, and whether browsers show the file.
fn read_link(body: &mut Params) -> NewFileLink {
    // The range fits 32 bits.
    let minutes = body.integer("expires_in_minutes", DEFAULT_MINUTES, MINUTES) as i32;
    NewFileLink { minutes, inline: body.boolean("inline").unwrap_or(false) }
}

/// A link with its secret part.
#[derive(Serialize)]
struct CreatedLink {
    #[serde(flatten)]
    stored: FileLink,
    /// The path that downloads the file. No later response contains it.
    url: String,
    /// The same, followed by the file's name, under which programs save what they download.
    named_url: String,
}

/// `POST /api/v1/uploads/{file_id}/links`: makes a link to the user's own file. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let file = context.path_id()?;
    let wanted = json_body(context, user)?.read(read_link)?;
    // 256 random bits: 43 characters that need no escape in a path.
    let token = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let (stored, filename) = statements::insert(&context.db, file, owner, &wanted, &hash)?;
    let url = format!("/api/v1/links/{token}");
    let named_url = format!("{url}/{}", utf8_percent_encode(&filename, PATH_SEGMENT));
    response::json(201, &CreatedLink { stored, url, named_url })
}

/// `GET /api/v1/uploads/{file_id}/links`: the live links to the user's own file, newest first.
pub fn list(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let file = context.path_id()?;
    let links = statements::list(&context.db, file, user.id())?;
    response::json(200, &json!({ "links": links }))
}

/// `DELETE /api/v1/uploads/{file_id}/links/{link_id}`: ends one link to the user's own file.
pub fn delete(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let [file, link] = context.path_ids()?;
    statements::delete(&context.db, file, user.id(), link)?;
    Ok(Response::empty(204))
}

/// `GET /api/v1/links`: all live links of the user, newest first.
pub fn list_own(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let db = context.database_with_room(statements::OWN_LINKS_MEMORY);
    let links = statements::list_own(&db, user.id())?;
    response::json(200, &json!({ "links": links }))
}

/// `GET /api/v1/links/{token}`, also with a name after it: the content of the file that a link is to, or a range of it,
/// for anyone, or with `about` what there is to know of it. A link that is unknown, has ended or was never one is
/// answered alike.
pub fn download(context: &mut RequestContext) -> Result<Response, Error> {
    let token = context.path_params.first().map(|param| &*param.text);
    let hash = token_hash(token.unwrap_or_default());
    let is_about = context.request.query().read(|query| query.filter("about", rules::boolean))?;
    if is_about == Some(true) {
        return about(&find_file(context, &hash)?);
    }
    let used = Cell::new(None);
    let response = download_response(context, || {
        let LinkedFile { mut file, is_utf8, link_id, inline, is_first_use, .. } =
            find_file(context, &hash)?;
        used.set(is_first_use.then_some(link_id));
        // Browsers take a text for windows-1252, unless its first bytes or this say something else.
        if inline && is_utf8 && file.content_type == "text/plain" {
            file.content_type += "; charset=utf-8";
        }
        Ok((file, if inline { FileUse::ShownByLink } else { FileUse::SavedByLink }))
    })?;
    if let Some(link) = used.get().filter(|_| context.request.method() == "GET") {
        statements::record_use(&context.db, link);
    }
    Ok(response)
}

/// Finds the file of a link. It is `inline` only if browsers show it safely.
fn find_file(context: &RequestContext, hash: &LinkHash) -> Result<LinkedFile, Error> {
    let takes_html = context.request.takes_html();
    let found = statements::find_file(&context.db, hash).map_err(|error| match error {
        Error::LinkNotFound => Error::LinkEnded { takes_html },
        other => other,
    })?;
    let file = found.file.with_listed_type(&context.app.config.allowed_upload_types);
    let inline = found.inline && is_shown_safely(&file.content_type);
    Ok(LinkedFile { file, inline, ..found })
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
fn about(found: &LinkedFile) -> Result<Response, Error> {
    let LinkedFile { file, inline, created_at, expires_at, sender, .. } = found;
    let File { filename, file_size, content_type, .. } = file;
    let body = json!({
        "filename": filename, "file_size": file_size, "content_type": content_type, "created_at": created_at,
        "expires_at": expires_at, "inline": inline, "sender": sender
    });
    response::json(200, &body)
}

/// The hash under which the token of a link is stored. It is looked up for every text that stands in its place, so that
/// one which cannot be a token takes the same work. One hash without a salt is enough, because nobody can guess 256
/// random bits.
fn token_hash(token: &str) -> LinkHash {
    Sha256::digest(token.as_bytes()).into()
}
