//! The folders in a folder, and what is done with all that lies in one.

use serde_json::json;

use super::path;
use super::statements;
use crate::error::{Error, Problem};
use crate::http::response::{self, Response};
use crate::model::file::folder_path;
use crate::model::problems::value_error;
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body, search_turn};
use crate::undo;

/// Folders in an answer if the request does not say how many, and the most that it may ask for.
const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1000;

/// `GET /api/v1/folders`: the folders that are directly in another one, in the order of their names.
pub fn list(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (folder, after, limit) = context.request.query().read(|query| {
        let folder = query.filter("in", path::folder).unwrap_or_default();
        let after = query.filter("after", rules::search).unwrap_or_default();
        (folder, after, query.integer("limit", DEFAULT_LIMIT, 1..=MAX_LIMIT))
    })?;
    // A row, the path that is made of it, and its JSON with the name.
    let memory = limit.min(user.account.stats.total_uploads) as usize * 6 * rules::MAX_FOLDER;
    let db = context.database_with_room(memory);
    // One more than asked for tells whether there are others.
    let mut found = statements::list(&db, user.id(), &folder, &after, limit + 1)?;
    let has_more = found.len() as i64 > limit;
    found.truncate(limit as usize);
    let paths: Vec<String> = found.iter().map(|folder| folder_path(folder)).collect();
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let next = paths.last().filter(|_| has_more).and_then(|path| name(path));
    let folders = paths.iter().map(|path| json!({ "folder": path, "name": name(path) }));
    response::json(200, &json!({ "folders": folders.collect::<Vec<_>>(), "next": next }))
}

/// `POST /api/v1/folders/move`: moves the files that lie in a folder or below it into another one.
pub fn move_files(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (from, to) = json_body(context, user)?.read(|body| {
        let from = body.required("from", not_root);
        let to = body.required("to", path::folder);
        if !from.is_empty() && to.starts_with(&*from) {
            body.add_error("to", value_error("Must not be in the folder that is moved"));
        }
        (from, to)
    })?;
    let _permits = search_turn(context, user, false)?;
    let (moved, left) = statements::move_files(&context.db, user.id(), &from, &to)?;
    response::json(200, &json!({ "moved": moved, "left": left }))
}

/// `DELETE /api/v1/folders`: deletes the files that lie in a folder or below it, which the user may restore for some
/// days, or permanently.
pub fn delete(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let is_restorable = undo::deletion(context, user)?.is_restorable;
    let folder = context.request.query().read(|query| query.required("folder", not_root))?;
    let _permits = search_turn(context, user, false)?;
    let quotas = context.app.file_quotas();
    let (deleted, left) =
        statements::delete(&context.db, user.id(), &folder, is_restorable, &quotas)?;
    response::json(200, &json!({ "deleted": deleted, "left": left }))
}

/// A folder other than the root, so that no mistake changes all files.
fn not_root(text: &str) -> Result<String, Problem> {
    let folder = path::folder(text)?;
    if folder.is_empty() { Err(value_error("Must not be the root")) } else { Ok(folder) }
}
