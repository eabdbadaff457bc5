//! Probes for load balancers and supervisors.

use crate::api::context::RequestContext;
use crate::error::Error;
use crate::http::response::{self, Response};

/// `GET /healthz`: responds with 200 as long as the process serves requests.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::probe("ok")
}

/// `GET /readyz`: responds with 200 if the database answers, otherwise with 503. The database is asked at most once
/// a second.
pub fn ready(context: &mut RequestContext) -> Result<Response, Error> {
    if !context.app.readiness.check(&context.app.db) {
        return Err(Error::Unavailable);
    }
    response::probe("ok")
}
