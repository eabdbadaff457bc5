//! Probes for load balancers and supervisors.

use crate::api::context::RequestContext;
use crate::api::openapi::{Operation, Tag, json};
use crate::error::Error;
use crate::http::response::{self, Response, StatusText};

pub const ALIVE: Operation = Operation {
    id: "get_health",
    tag: Tag::Service,
    summary: "Check whether the process serves requests",
    answers: &[json::<StatusText>(200, "It serves requests.")],
    ..Operation::EMPTY
};

/// `GET /healthz`: responds with 200 as long as the process serves requests.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::status("ok")
}

pub const READY: Operation = Operation {
    id: "get_readiness",
    tag: Tag::Service,
    summary: "Check whether the database answers",
    description: "For load balancers. The database is asked at most once a second.",
    answers: &[json::<StatusText>(200, "The database answers.")],
    errors: |_| vec![Error::Unavailable],
    ..Operation::EMPTY
};

/// `GET /readyz`: responds with 200 if the database answers, otherwise with 503. The database is asked at most once
/// a second.
pub fn ready(context: &mut RequestContext) -> Result<Response, Error> {
    if !context.app.readiness.check(&context.app.db) {
        return Err(Error::Unavailable);
    }
    response::status("ok")
}
