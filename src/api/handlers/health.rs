//! Probes for load balancers and supervisors.

use serde_json::json;

use crate::api::context::RequestContext;
use crate::db::health::DatabaseState;
use crate::error::Error;
use crate::http::response::{self, Response};

/// `GET /healthz`: responds with 200 as long as the process serves requests.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::probe("ok")
}

/// `GET /readyz`: responds with 200 if the database answers, otherwise with 503. The database is asked at most once
/// a second. If no change can be written, or no content stored, the status is still 200, because reads work, and no
/// other process would do better; the body says so.
pub fn ready(context: &mut RequestContext) -> Result<Response, Error> {
    let app = context.app;
    let mut reasons = Vec::new();
    match app.database_state() {
        DatabaseState::Lost => return Err(Error::Unavailable),
        DatabaseState::ReadOnly => reasons.push("DATABASE_REFUSES_CHANGES"),
        DatabaseState::Writable => {}
    }
    if !app.storage.takes_contents() {
        reasons.push("DATA_DIRECTORY_REFUSES_CONTENTS");
    }
    if app.storage.store_is_up() == Some(false) {
        reasons.push("STORE_UNAVAILABLE");
    }
    if reasons.is_empty() {
        return response::probe("ok");
    }
    response::json(200, &json!({ "status": "degraded", "reasons": reasons }))
}
