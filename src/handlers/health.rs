//! Probes for load balancers and supervisors.

use serde_json::json;

use crate::app::Call;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::store;

/// `GET /healthz`: 200 while the process serves.
pub fn alive(_: &Call) -> Result<Response, Error> {
    response::json(200, &json!({ "status": "ok" }))
}

/// `GET /readyz`: 200 when the database answers, else 503.
pub fn ready(call: &Call) -> Result<Response, Error> {
    store::ping(&call.app.db).map_err(|_| Error::Unavailable)?;
    response::json(200, &json!({ "status": "ok" }))
}
