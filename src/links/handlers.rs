//! Links to files: their owners make, list and end them.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::statements::{self, FileLink, LinkHash, NewFileLink, Several};
use crate::archive::{archive_name, not_empty};
use crate::auth::random_bytes;
use crate::error::{Error, FieldError, FieldLocation};
use crate::files::extras::distinct_ids;
use crate::folders::path;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::folder_path;
use crate::model::qr::qr_svg;
use crate::model::{problems, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body};

/// What is encoded in a segment of a path: all but the unreserved characters (RFC 3986, 2.3).
const PATH_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long a link works, in minutes, up to thirty days, and how long if the request for it does not say.
const MINUTES: RangeInclusive<i64> = 1..=43_200;
const DEFAULT_MINUTES: i64 = 24 * 60;

/// Most files of a link that names them one by one.
const MAX_FILES: usize = 100;

/// Reads the lifetime of a new link, whether browsers show the file, and whether the response has a QR code.
fn read_link(body: &mut Params) -> (NewFileLink, bool) {
    // The range fits 32 bits.
    let minutes = body.integer("expires_in_minutes", DEFAULT_MINUTES, MINUTES) as i32;
    let link = NewFileLink { minutes, inline: body.boolean("inline").unwrap_or(false) };
    (link, body.boolean("qr").unwrap_or(false))
}

/// Reads what a new link is to: files, or a folder.
fn read_several(body: &mut Params) -> Option<Several> {
    let folder = body.optional("folder", |text| not_empty(text).and_then(path::folder));
    let files = body.list("files", |texts| distinct_ids(texts, MAX_FILES));
    let problem = match (body.has("files"), body.has("folder")) {
        (false, false) => problems::MISSING,
        (true, true) => problems::value_error("Must not be given together with another target"),
        _ => return folder.map(Several::Folder).or(files.map(Several::Files)),
    };
    for name in ["files", "folder"] {
        body.add_error(name, problem.clone());
    }
    None
}

/// A link with its secret part.
#[derive(Serialize)]
struct CreatedLink {
    #[serde(flatten)]
    stored: FileLink,
    /// The path that downloads the file. No later response contains it.
    url: String,
    /// The same, followed by a name under which programs save what they download.
    named_url: String,
    /// The address as a QR code, if one was asked for; `None` if the settings do not say what the address is.
    #[serde(skip_serializing_if = "Option::is_none")]
    qr_svg: Option<Option<String>>,
}

/// The token of a new link: 256 random bits, in 43 characters that need no escape in a path.
fn new_token() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes::<32>()?))
}

/// A link that was made, to what is saved under this name.
fn created(
    context: &RequestContext,
    stored: FileLink,
    token: &str,
    name: &str,
    has_qr: bool,
) -> Result<CreatedLink, Error> {
    let config = &context.app.config;
    let url = format!("/api/v1/links/{token}");
    let page = if config.console { format!("/console/link#{token}") } else { url.clone() };
    let qr = || config.public_url.as_deref().map(|origin| qr_svg(&format!("{origin}{page}")));
    let qr_svg = has_qr.then(|| qr().transpose()).transpose()?;
    let named_url = format!("{url}/{}", utf8_percent_encode(name, PATH_SEGMENT));
    Ok(CreatedLink { stored, url, named_url, qr_svg })
}

/// `POST /api/v1/uploads/{file_id}/links`: makes a link to the user's own file. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let file = context.path_id()?;
    let (wanted, has_qr) = json_body(context, user)?.read(read_link)?;
    let token = new_token()?;
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let (stored, filename) = statements::insert(&context.db, file, owner, &wanted, &hash)?;
    response::json(201, &created(context, stored, &token, &filename, has_qr)?)
}

/// `POST /api/v1/links`: makes a link to several files of the user, or to all that lies in a folder at the time of each
/// request. Only this response holds it.
pub fn create_to_several(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let body = json_body(context, user)?;
    let (several, (wanted, has_qr)) = body.read(|body| (read_several(body), read_link(body)))?;
    let several = several.ok_or_else(|| Error::Internal("a link to nothing".into()))?;
    let token = new_token()?;
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let stored = statements::insert_to_several(&context.db, &several, owner, &wanted, &hash)?;
    let (folder, files) = match &several {
        Several::Folder(folder) => (Some(&**folder), None),
        Several::Files(files) => (None, Some(files.len())),
    };
    let link = created(context, stored, &token, &archive_name(folder), has_qr)?;
    let mut body = json!(link);
    body["files"] = json!(files);
    body["folder"] = json!(folder.map(folder_path));
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
