//! Links to files: their owners make, list and end them, and whoever has one downloads the file.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::statements::{self, NewFileLink};
use crate::auth::random_bytes;
use crate::error::Error;
use crate::files::handlers::download_response;
use crate::http::file_response::FileUse;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::FileLink;
use crate::model::{media_type, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body};

/// How long a link works if the request for it does not say, in minutes.
const DEFAULT_MINUTES: i64 = 24 * 60;

/// Reads the lifetime of a new link, and whether browsers show the file.
fn read_link(body: &mut Params) -> NewFileLink {
    // The range fits 32 bits.
    let minutes = body.integer("expires_in_minutes", DEFAULT_MINUTES, rules::LINK_MINUTES) as i32;
    NewFileLink { minutes, inline: body.boolean("inline").unwrap_or(false) }
}

/// A link with its secret part.
#[derive(Serialize)]
struct CreatedLink {
    #[serde(flatten)]
    stored: FileLink,
    /// The path that downloads the file. No later response contains it.
    url: String,
}

/// `POST /api/v1/uploads/{file_id}/links`: makes a link to the user's own file. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let file = context.path_id()?;
    let wanted = json_body(context, user)?.read(read_link)?;
    // 256 random bits: 43 characters that need no escape in a path.
    let token = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let (owner, hash) = ((user.id(), user.credentials_version), token_hash(&token));
    let stored = statements::insert(&context.db, file, owner, &wanted, &hash)?;
    response::json(201, &CreatedLink { stored, url: format!("/api/v1/links/{token}") })
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

/// `GET /api/v1/links/{token}`: the content of the file that a link is to, or a range of it, for anyone. A link that is
/// unknown, has ended or was never one is answered alike.
pub fn download(context: &mut RequestContext) -> Result<Response, Error> {
    let hash = token_hash(context.path_text()?);
    let takes_html = context.request.takes_html();
    download_response(context, || {
        let found = statements::find_file(&context.db, &hash);
        let (file, inline, is_utf8) = found.map_err(|error| match error {
            Error::LinkNotFound => Error::LinkEnded { takes_html },
            other => other,
        })?;
        let mut file = file.with_listed_type(&context.app.config.allowed_upload_types);
        let inline = inline && media_type::is_shown_safely(&file.content_type);
        // Browsers take a text for windows-1252, unless its first bytes or this say something else.
        if inline && is_utf8 && file.content_type == "text/plain" {
            file.content_type += "; charset=utf-8";
        }
        Ok((file, if inline { FileUse::ShownByLink } else { FileUse::SavedByLink }))
    })
}

/// The hash under which the token of a link is stored. It is looked up for every text that stands in its place, so that
/// one which cannot be a token takes the same work. One hash without a salt is enough, because nobody can guess 256
/// random bits.
fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
