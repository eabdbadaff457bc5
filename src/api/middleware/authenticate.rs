//! Finds out who a request comes from.

use crate::api::context::{CurrentUser, RequestContext};
use crate::auth::jwt::TokenType;
use crate::error::Error;

/// The user of the access token in `Authorization`, or the development admin if authentication is switched off.
pub fn authenticate(context: &RequestContext) -> Result<CurrentUser, Error> {
    let app = context.app;
    if !app.config.auth_enabled {
        return CurrentUser::development_admin(&app.db);
    }
    let token = context.request.bearer_token()?;
    CurrentUser::from_claims(&app.db, &app.verify_token(token, TokenType::Access)?)
}
