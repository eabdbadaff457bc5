//! Links to files: their owners make, list and end them, and whoever has one downloads the file.

use serde::Serialize;

use super::uploads::content_response;
use crate::api::context::RequestContext;
use crate::api::middleware::identity::{CurrentUser, json_body};
use crate::auth::{link_token, random_bytes};
use crate::db::file_links::{self, NewFileLink};
use crate::error::Error;
use crate::http::file_response::FileUse;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::file::FileLink;
use crate::model::{media_type, rules};

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
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let file = context.path_id()?;
    let wanted = json_body(context, user)?.read(read_link)?;
    let token = link_token::encode(random_bytes()?);
    let (owner, hash) = ((user.id(), user.verified_version()), link_token::hash(&token));
    let stored = file_links::insert(&context.db, file, owner, &wanted, &hash, &context.origin())?;
    response::json(201, &CreatedLink { stored, url: format!("/api/v1/links/{token}") })
}

#[derive(Serialize)]
struct LinkList {
    links: Vec<FileLink>,
}

/// `GET /api/v1/uploads/{file_id}/links`: the live links to the user's own file, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let file = context.path_id()?;
    response::json(200, &LinkList { links: file_links::list(&context.db, file, user.id())? })
}

/// `DELETE /api/v1/uploads/{file_id}/links/{link_id}`: ends one link to the user's own file.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let [file, link] = context.path_ids()?;
    file_links::delete(&context.db, file, user.id(), link, &context.origin())?;
    Ok(response::no_content())
}

/// `GET /api/v1/links/{token}`: the content of the file that a link is to, or a range of it, for anyone. A link that is
/// unknown, has ended or was never one is answered alike.
pub fn download(context: &mut RequestContext) -> Result<Response, Error> {
    let hash = link_token::hash(context.path_text()?);
    content_response(context, || {
        let (file, inline) = file_links::find_file(&context.db, &hash)?;
        let file = file.spelt(&context.app.config.allowed_upload_types);
        let inline = inline && media_type::is_shown_safely(&file.content_type);
        Ok((file, if inline { FileUse::ShownByLink } else { FileUse::SavedByLink }))
    })
}
