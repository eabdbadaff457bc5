//! Changes of a user's files, which clients follow that keep copies of them.

use std::time::Duration;

use serde::Serialize;

use super::statements;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::change::{After, Change};
use crate::request::context::RequestContext;
use crate::request::identity::{self, SignedIn};
use crate::request::waiters::Waiter;

/// Changes in an answer if the request does not say how many, and the most that it may ask for.
const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1000;

/// The longest that a request may wait for changes, in seconds.
const MAX_WAIT: i64 = 30;

/// The value of `Retry-After` if too many wait already.
const RETRY_AFTER: &str = "10";

#[derive(Serialize)]
struct ChangeList {
    changes: Vec<Change>,
    /// The value of `after` for what comes after these.
    next: String,
    /// Whether there are more already.
    more: bool,
}

/// `GET /api/v1/changes`: the latest state of each of the user's files that has changed after the cursor `after`, or of
/// all without one, at once; with `after=now` only the cursor of this moment, at once. If nothing has changed after the
/// cursor, the response comes after `wait` seconds, or as soon as something does. While it waits, the request holds its
/// thread and nothing else.
pub fn list(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    let (after, limit, wait) = context.request.query().read(|query| {
        let after = query.optional("after", After::parse);
        let limit = query.integer("limit", DEFAULT_LIMIT, 1..=MAX_LIMIT);
        (after, limit, query.integer("wait", 0, 0..=MAX_WAIT))
    })?;
    let db = context.database_with_room(statements::most_bytes(limit));
    let read = || statements::list(&db, user.id(), after.as_ref(), limit);
    let mut page = read()?;
    let mut is_refused = false;
    if page.changes.is_empty() && matches!(after, Some(After::Cursor(_))) && wait > 0 {
        let has_personal_token = user.has_personal_token();
        let waiter = Waiter { user: user.id(), has_personal_token, seen: page.latest };
        let timeout = Duration::from_secs(wait.unsigned_abs());
        // While it waits it holds nothing of that either.
        context.request.body.resize_room(0)?;
        is_refused = !context.app.extras.waiters.wait(waiter, timeout);
        if !is_refused {
            let outcome = read();
            // It is not for those whose session or token has ended meanwhile.
            identity::check_again(context, user)?;
            page = outcome?;
        }
    }
    let types = &context.app.config.allowed_upload_types;
    let listed =
        |one: Change| Change { file: one.file.map(|file| file.with_listed_type(types)), ..one };
    let changes = page.changes.into_iter().map(listed).collect();
    let body = ChangeList { changes, next: page.next.to_string(), more: page.has_more };
    let response = response::json(200, &body)?;
    Ok(if is_refused { response.with_header("Retry-After", RETRY_AFTER) } else { response })
}
