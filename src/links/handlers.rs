//! Links to files, and links to send files by: their owners make, list and end them.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::statements::{self, FileLink, LinkHash, NewFileLink, SentFiles, Target};
use crate::archive::{archive_name, not_empty};
use crate::auth::random_bytes;
use crate::error::{Error, FieldError, FieldLocation};
use crate::files::extras::distinct_ids;
use crate::folders::path;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::folder_path;
use crate::model::qr::qr_svg;
use crate::model::text::nfc;
use crate::model::{problems, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body};

/// What is encoded in a segment of a path: all but the unreserved characters (RFC 3986, 2.3).
pub const PATH_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long a link works, in minutes, up to thirty days, and how long if the request for it does not say.
const MINUTES: RangeInclusive<i64> = 1..=43_200;
const DEFAULT_MINUTES: i64 = 24 * 60;

/// Most files of a link that names them one by one.
const MAX_FILES: usize = 100;

/// Most files that one link takes, and how many if the request for it does not say.
const MAX_SENT_FILES: RangeInclusive<i64> = 1..=1000;
const DEFAULT_SENT_FILES: i64 = 100;

/// Reads the lifetime of a new link, whether browsers show the file, and whether the response has a QR code.
fn read_link(body: &mut Params) -> (NewFileLink, bool) {
    // The range fits 32 bits.
    let minutes = body.integer("expires_in_minutes", DEFAULT_MINUTES, MINUTES) as i32;
    let link = NewFileLink { minutes, inline: body.boolean("inline").unwrap_or(false) };
    (link, body.boolean("qr").unwrap_or(false))
}

/// The names of what a new link may be to.
const TARGETS: [&str; 3] = ["files", "folder", "upload_to"];

/// Reads what a new link is to: files, a folder, or a folder to which files are sent, at most as many bytes as the
/// owner's quota.
fn read_target(body: &mut Params, quota: i64) -> Option<Target> {
    let given: Vec<_> = TARGETS.into_iter().filter(|name| body.has(name)).collect();
    let problem = match *given {
        [] => problems::MISSING,
        [_] => return read_only_target(body, quota),
        _ => problems::value_error("Must not be given together with another target"),
    };
    let names = if given.is_empty() { TARGETS.to_vec() } else { given };
    names.into_iter().for_each(|name| body.add_error(name, problem.clone()));
    None
}

/// Reads the only target that a request names.
fn read_only_target(body: &mut Params, quota: i64) -> Option<Target> {
    let folder = |text: &str| not_empty(text).and_then(path::folder);
    let files = body.list("files", |texts| distinct_ids(texts, MAX_FILES));
    let to_files = files.map(Target::Files).or(body.optional("folder", folder).map(Target::Folder));
    if !body.has("upload_to") {
        return to_files;
    }
    let note = body.optional("note", |text| {
        rules::check_text(&nfc(text), 0..=statements::MAX_NOTE)?;
        rules::description(text)
    });
    let sent = SentFiles {
        max_files: body.integer("max_files", DEFAULT_SENT_FILES, MAX_SENT_FILES) as i32,
        max_bytes: body.integer("max_bytes", quota, 1..=quota),
        note: note.filter(|note| !note.is_empty()),
        notify: body.boolean("notify").unwrap_or(true),
    };
    body.optional("upload_to", folder).map(|folder| Target::SendTo(folder, sent))
}

/// A link with its secret part.
#[derive(Serialize)]
struct CreatedLink {
    #[serde(flatten)]
    stored: FileLink,
    /// The path that downloads the files, or below which they are sent. No later response contains it.
    url: String,
    /// The path, followed by a name under which programs save what they download.
    #[serde(skip_serializing_if = "Option::is_none")]
    named_url: Option<String>,
    /// The address as a QR code, if one was asked for; `None` if the settings do not say what the address is.
    #[serde(skip_serializing_if = "Option::is_none")]
    qr_svg: Option<Option<String>>,
}

/// The token of a new link: 256 random bits, in 43 characters that need no escape in a path.
fn new_token() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?))
}

/// A link that was made, to what is saved under this name, or to send files by.
fn created(
    context: &RequestContext,
    stored: FileLink,
    token: &str,
    name: Option<&str>,
    has_qr: bool,
) -> Result<CreatedLink, Error> {
    let config = &context.app.config;
    let url = format!("/api/v1/links/{token}");
    let page = if name.is_some() { "link" } else { "send" };
    let page = if config.console { format!("/console/{page}#{token}") } else { url.clone() };
    let qr = || config.public_url.as_deref().map(|origin| qr_svg(&format!("{origin}{page}")));
    let qr_svg = has_qr.then(|| qr().transpose()).transpose()?;
    let named_url = name.map(|name| format!("{url}/{}", utf8_percent_encode(name, PATH_SEGMENT)));
    Ok(CreatedLink { stored, url, named_url, qr_svg })
}

/// `POST /api/v1/uploads/{file_id}/links`: makes a link to the user's own file. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let file = context.path_id()?;
    let (wanted, has_qr) = json_body(context, user)?.read(read_link)?;
    let token = new_token()?;
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let (stored, filename) = statements::insert(&context.db, file, owner, &wanted, &hash)?;
    response::json(201, &created(context, stored, &token, Some(&filename), has_qr)?)
}

/// `POST /api/v1/links`: makes a link to several files of the user, to all that lies in a folder at the time of each
/// request, or to send files to a folder by. Only this response holds it.
pub fn create_for(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let body = json_body(context, user)?;
    let (quota, _) = user.account.quotas(&context.app.file_quotas());
    let read = |body: &mut Params| (read_target(body, quota.max(1)), read_link(body));
    let (target, (wanted, has_qr)) = body.read(read)?;
    let target = target.ok_or_else(|| Error::Internal("a link to nothing".into()))?;
    let token = new_token()?;
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let is_open = context.app.config.registers();
    let stored = statements::insert_for(&context.db, &target, owner, &wanted, &hash, is_open)?;
    let name = match &target {
        Target::Files(_) => Some(archive_name(None)),
        Target::Folder(folder) => Some(archive_name(Some(folder))),
        Target::SendTo(..) => None,
    };
    let mut body = json!(created(context, stored, &token, name.as_deref(), has_qr)?);
    (body["files"], body["folder"]) = (Value::Null, Value::Null);
    match &target {
        Target::Files(files) => body["files"] = json!(files.len()),
        Target::Folder(folder) => body["folder"] = json!(folder_path(folder)),
        Target::SendTo(folder, sent) => {
            body["upload_to"] = json!(folder_path(folder));
            (body["max_files"], body["max_bytes"]) = (json!(sent.max_files), json!(sent.max_bytes));
            (body["note"], body["notify"]) = (json!(sent.note), json!(sent.notify));
            (body["received_files"], body["received_bytes"]) = (json!(0), json!(0));
        }
    }
    response::json(201, &body)
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

/// `DELETE /api/v1/links/{link_id}`: ends one link of the user, whatever it is to.
pub fn end(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_params.first().map(|param| rules::uuid(&param.text));
    let invalid = |problem| {
        let (location, field) = (FieldLocation::Path, Some("link_id"));
        Error::Invalid(vec![FieldError { location, field, problem }])
    };
    let id = id.transpose().map_err(invalid)?.ok_or(Error::LinkNotFound)?;
    statements::end(&context.db, user.id(), id)?;
    Ok(Response::empty(204))
}

/// The hash under which the token of a link is stored. It is looked up for every text that stands in its place, so that
/// one which cannot be a token takes the same work. One hash without a salt is enough, because nobody can guess 256
/// random bits.
pub fn token_hash(token: &str) -> LinkHash {
    Sha256::digest(token.as_bytes()).into()
}
