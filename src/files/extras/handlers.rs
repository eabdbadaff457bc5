//! Deletion and change of many files, and the list of published ones.

use std::collections::HashSet;

use serde_json::json;
use uuid::Uuid;

use super::statements::{self, PublicFile};
use crate::error::{Error, Problem};
use crate::folders;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::position::TimePosition;
use crate::model::{problems, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{SignedIn, json_body, search_turn};

/// Most files that one request changes, all of them in one transaction.
const MAX_FILES: usize = 1000;

/// Files in a page of the published ones, unless a request says otherwise.
const DEFAULT_LIMIT: i64 = 20;

/// `POST /api/v1/uploads/delete`: deletes files of the user, who may restore them for some days.
pub fn delete(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let ids = json_body(context, user)?.read(read_ids)?;
    let (quotas, is_restorable) = (context.app.file_quotas(), context.app.config.trash_days > 0);
    let _permits = search_turn(context, user, false)?;
    let deleted = statements::delete(&context.db, user.id(), &ids, is_restorable, &quotas)?;
    outcome("deleted", &ids, deleted)
}

/// `POST /api/v1/uploads/update`: makes files of the user public or private, and moves them into a folder.
pub fn update(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (ids, is_public, folder) = json_body(context, user)?.read(|body| {
        let ids = read_ids(body);
        if !body.has("is_public") && !body.has("folder") {
            body.add_error("is_public", problems::MISSING);
            body.add_error("folder", problems::MISSING);
        }
        (ids, body.boolean("is_public"), folders::field(body))
    })?;
    let _permits = search_turn(context, user, false)?;
    let updated = statements::update(&context.db, user.id(), &ids, is_public, folder.as_deref())?;
    outcome("updated", &ids, updated)
}

fn read_ids(body: &mut Params) -> Vec<Uuid> {
    if !body.has("ids") {
        body.add_error("ids", problems::MISSING);
    }
    body.list("ids", |texts| distinct_ids(texts, MAX_FILES)).unwrap_or_default()
}

/// From one to `max` ids of files, of which no two are the same.
pub fn distinct_ids(texts: &[&str], max: usize) -> Result<Vec<Uuid>, Problem> {
    if texts.len() > max {
        return Err(problems::too_many_items(max));
    }
    let ids = texts.iter().map(|text| rules::uuid(text)).collect::<Result<Vec<_>, _>>()?;
    match ids.iter().collect::<HashSet<_>>().len() {
        0 => Err(problems::value_error("Must have at least 1 item")),
        different if different < ids.len() => {
            Err(problems::value_error("Must not have an id more than once"))
        }
        _ => Ok(ids),
    }
}

/// The response with the number of files that are now as the request asks, and those that the user does not have.
fn outcome(done: &str, ids: &[Uuid], found: Vec<Uuid>) -> Result<Response, Error> {
    let count = found.len();
    let found: HashSet<Uuid> = found.into_iter().collect();
    let missing: Vec<&Uuid> = ids.iter().filter(|id| !found.contains(*id)).collect();
    response::json(200, &json!({ done: count, "missing": missing }))
}

/// `GET /api/v1/uploads/public`: a page of the files that users have published, the user's own among them.
pub fn list_public(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (search, limit, after) = context.request.query().read(|query| {
        let search = query.filter("search", rules::search);
        let limit = query.integer("limit", DEFAULT_LIMIT, 1..=100);
        let after = query.filter("after", TimePosition::cursor);
        (search, limit, after.unwrap_or(TimePosition::END))
    })?;
    let config = &context.app.config;
    let turn = || search_turn(context, user, true);
    let _permits = search.is_some().then(turn).transpose()?;
    let db = context.database_with_room(limit as usize * rules::FILE_MEMORY);
    let hides_young = config.registers();
    let (files, next) =
        statements::list_public(&db, user.id(), search.as_deref(), hides_young, after, limit)?;
    let types = &config.allowed_upload_types;
    let listed = |one: PublicFile| PublicFile { file: one.file.with_listed_type(types), ..one };
    let files: Vec<_> = files.into_iter().map(listed).collect();
    response::json(200, &json!({ "files": files, "next": next.map(|next| next.to_string()) }))
}
