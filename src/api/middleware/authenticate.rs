//! Finds out who a request comes from.

use crate::api::context::{CurrentUser, RefreshToken, RequestContext};
use crate::auth::jwt::TokenType;
use crate::auth::personal_token;
use crate::error::{Error, TokenProblem};
use crate::http::input::Input;
use crate::model::rules;

/// The user of the access token or personal access token in `Authorization`, or the development admin if authentication
/// is switched off.
pub fn authenticate(context: &RequestContext) -> Result<CurrentUser, Error> {
    let app = context.app;
    if !app.config.auth_enabled {
        return CurrentUser::development_admin(&app.db);
    }
    let token = context.request.bearer_token()?;
    if personal_token::is_personal(token) {
        return CurrentUser::from_personal_token(app, token);
    }
    CurrentUser::from_claims(app, &app.verify_token(token, TokenType::Access)?)
}

/// The refresh token in the body, if there is one.
pub static REFRESH_TOKEN: Input<Option<String>> =
    Input::json_or_form(|body| body.optional("refresh_token", rules::TOKEN));

/// The refresh token in the body, which is JSON or an HTML form, or else the one in `Authorization`. In the latter case
/// a body that cannot be parsed is ignored.
pub fn refresh_token(context: &mut RequestContext) -> Result<RefreshToken, Error> {
    let in_body = context.read(&REFRESH_TOKEN);
    let claims = match in_body {
        Ok(Some(token)) => context.app.verify_token(&token, TokenType::Refresh)?,
        // The body was parsed, but its field is not a string.
        Err(Error::Invalid(errors)) if errors.iter().all(|error| error.field.is_some()) => {
            return Err(Error::Invalid(errors));
        }
        no_token => {
            let in_header = context.request.bearer_token();
            let token = in_header.map_err(|missing| no_token.err().unwrap_or(missing))?;
            context.app.verify_token(token, TokenType::Refresh)?
        }
    };
    let ids = claims.session.zip(claims.id);
    let (session, id) = ids.ok_or(Error::InvalidToken(TokenProblem::NotOurs))?;
    Ok(RefreshToken { user: claims.user, session, id })
}
