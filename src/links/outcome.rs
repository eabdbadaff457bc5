//! How a request by a link ends, whatever the link is to.

use uuid::Uuid;

use super::statements;
use crate::error::Error;
use crate::http::response::Response;
use crate::request::context::RequestContext;

/// The error of a request that would open a link, for people if it is a browser's.
pub fn ended(context: &RequestContext, error: Error) -> Error {
    match error {
        Error::LinkNotFound => Error::LinkEnded { takes_html: context.request.takes_html() },
        other => other,
    }
}

/// Sends a browser that opens a link to the page of the console for it, if that is on.
pub fn to_page(context: &RequestContext, page: &str) -> Option<Response> {
    let token = context.path_params.first().map_or("", |param| &*param.text);
    let is_sent = context.app.config.console && context.request.takes_html();
    is_sent.then(|| {
        Response::empty(303)
            .with_header("Location", format!("/console/{page}#{token}"))
            .with_header("Vary", "Accept")
    })
}

/// Stores the use of a link whose content was asked for, if that is the first one in this hour.
pub fn record_use(context: &RequestContext, link: Option<Uuid>) {
    if let Some(link) = link.filter(|_| context.request.method() == "GET") {
        statements::record_use(&context.db, link);
    }
}
