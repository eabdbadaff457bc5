//! How a request by a link ends, whatever the link is to.

use uuid::Uuid;

use super::statements;
use crate::error::Error;
use crate::request::context::RequestContext;

/// The error of a request that would open a link, for people if it is a browser's.
pub fn ended(context: &RequestContext, error: Error) -> Error {
    match error {
        Error::LinkNotFound => Error::LinkEnded { takes_html: context.request.takes_html() },
        other => other,
    }
}

/// Stores the use of a link whose content was asked for, if that is the first one in this hour.
pub fn record_use(context: &RequestContext, link: Option<Uuid>) {
    if let Some(link) = link.filter(|_| context.request.method() == "GET") {
        statements::record_use(&context.db, link);
    }
}
