//! The restoration of deleted files.

use serde_json::json;

use super::statements::{self, Restorable};
use crate::error::Error;
use crate::files;
use crate::files::metadata_response;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::model::timestamp::Timestamp;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body};

/// `POST /api/v1/uploads/{file_id}/restore`: brings a deleted file back. One that is there stays as it is.
pub fn restore(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let id = context.path_id()?;
    let (_, remaining) = restore_deleted(context, user, &Restorable::One(id))?;
    if remaining > 0 {
        return Err(Error::StorageFull);
    }
    let file = files::statements::find(&context.db, id)?;
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
    let (network, timeout) = (context.limited_network(), context.app.config.database_timeout);
    let _turn = context.app.turns.search(user.id(), network, timeout)?;
    let outcome = statements::restore(db, user.id(), files, &quotas);
    // What all files take is another number now.
    context.app.stored_bytes.forget();
    outcome
}
