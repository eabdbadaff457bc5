//! The documentation of the API.

use crate::api::context::RequestContext;
use crate::api::openapi::{Answer, Content, Operation, Tag};
use crate::error::Error;
use crate::http::response::Response;

pub const OPENAPI: Operation = Operation {
    id: "get_openapi_document",
    tag: Tag::Service,
    summary: "Show this document",
    answers: &[Answer {
        status: 200,
        description: "OpenAPI 3.1, as JSON.",
        content: Content::Text("application/json"),
        headers: &[],
    }],
    ..Operation::EMPTY
};

/// `GET /openapi.json`: the OpenAPI document of this service.
pub fn openapi(context: &mut RequestContext) -> Result<Response, Error> {
    Ok(Response::from_data("application/json", context.app.document()))
}
