//! View tokens: they open contents of files for some minutes, in the address of a request. Elements of pages and
//! download managers send no `Authorization`.

use super::context::RequestContext;
use crate::error::{Error, TokenProblem};

/// The endpoints that accept one.
const ACCEPTED: [&str; 2] = ["/uploads/{file_id}/download", "/uploads/zip"];

/// The view token of a request, if its endpoint accepts one and the request has no `Authorization`.
pub fn of(context: &RequestContext) -> Option<String> {
    let is_accepted = context.endpoint.is_some_and(|it| ACCEPTED.contains(&it.template));
    let is_needed =
        context.app.config.auth_enabled && context.request.header("Authorization").is_none();
    if !(is_accepted && is_needed) {
        return None;
    }
    context.request.query().sent_text("view").map(str::to_owned)
}

/// The error of a request whose token is refused: it does not tell whoever has a token that is over what it was.
pub fn refusal(error: Error) -> Error {
    if error.status() == 401 { Error::InvalidToken(TokenProblem::NotOurs) } else { error }
}
