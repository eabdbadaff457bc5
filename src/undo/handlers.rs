//! The restoration of deleted files.

use serde_json::json;

use super::statements::{self, DeletedFile, Restorable};
use crate::error::{Error, Forbidden};
use crate::files::statements as files;
use crate::files::statements::{Deletion, FileQuery};
use crate::http::file_response::metadata_response;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::page::{Page, PageRequest};
use crate::model::rules;
use crate::model::timestamp::Timestamp;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body, search_turn};

/// Whether the query of a list asks for deleted files.
pub fn is_asked_for(query: &mut Params) -> bool {
    query.filter("deleted", rules::boolean).unwrap_or(false)
}

/// Responds with a page of the user's deleted files.
pub fn list(
    context: &RequestContext,
    user: &SignedIn,
    query: &FileQuery,
    page: PageRequest,
) -> Result<Response, Error> {
    let config = &context.app.config;
    let db = context.database_with_room(page.size as usize * rules::FILE_MEMORY);
    let (files, total) = statements::list(&db, user.id(), query, page, config.trash_days)?;
    let listed = |one: DeletedFile| DeletedFile {
        file: one.file.with_listed_type(&config.allowed_upload_types),
        ..one
    };
    response::json(200, &Page::new(files.into_iter().map(listed).collect(), total, page))
}

/// What a request to delete a file makes of it: the user may restore it for some days, unless the settings or the
/// request say otherwise.
pub fn deletion(context: &RequestContext, user: &SignedIn) -> Result<Deletion, Error> {
    let query = context.request.query();
    let is_permanent =
        query.read(|query| query.optional("permanently", rules::boolean))?.unwrap_or(false);
    if is_permanent && user.has_personal_token() {
        return Err(Error::NotPermitted(Forbidden::PersonalToken));
    }
    let is_restorable = !is_permanent && context.app.config.trash_days > 0;
    Ok(Deletion { is_restorable, is_permanent })
}

/// `POST /api/v1/uploads/{file_id}/restore`: brings a deleted file back. One that is there stays as it is.
pub fn restore(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    let (_, remaining) = restore_deleted(context, user, &Restorable::One(id))?;
    if remaining > 0 {
        return Err(Error::StorageFull);
    }
    let file = files::find(&context.db, id)?;
    if file.user_id != user.id() {
        return Err(Error::FileNotFound);
    }
    metadata_response(200, &file.with_listed_type(&context.app.config.allowed_upload_types))
}

/// `POST /api/v1/uploads/restore`: brings back what was deleted since a moment, as far as it fits into the quotas.
pub fn restore_since(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let since = json_body(context, user)?
        .read(|body| body.required("deleted_since", |text| rules::timestamp(text).map(Some)))?;
    // A time that is missing is an error by now.
    let files = Restorable::Since(since.unwrap_or_else(Timestamp::now));
    let (restored, left) = restore_deleted(context, user, &files)?;
    response::json(200, &json!({ "restored": restored, "left": left }))
}

fn restore_deleted(
    context: &RequestContext,
    user: &SignedIn,
    files: &Restorable,
) -> Result<(i64, i64), Error> {
    let (db, quotas) = (&context.db, context.app.file_quotas());
    // It reads all files that the user has deleted since.
    let _permits = search_turn(context, user, false)?;
    let outcome = statements::restore(db, user.id(), files, &quotas);
    // What all files take is another number now.
    context.app.stored_bytes.forget();
    outcome
}
