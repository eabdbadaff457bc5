//! Password resets: the request for a message with a reset token, and the use of the token.

use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::auth::jwt::TokenType;
use crate::db::outbox::{self, ResetTokenUse};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::hex;
use crate::model::rules;

/// `POST /api/v1/auth/request-password-reset`: stores the request, which the background thread handles. The response is
/// the same for every address and takes the same work, so that it does not reveal which accounts exist.
pub fn request(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.request.json()?.read(|body| body.required("email", rules::email))?;
    outbox::request_reset(&context.db, &email, &context.origin())?;
    context.app.wake_background();
    response::message("If the e-mail exists, a reset message has been sent")
}

fn read_new_password(body: &mut Params) -> (String, String) {
    (body.required("token", rules::token), body.required("new_password", rules::password))
}

/// `POST /api/v1/auth/reset-password`: sets a new password, once for each reset token, and ends all sessions.
pub fn reset(context: &mut RequestContext) -> Result<Response, Error> {
    let (token, password) = context.request.json()?.read(read_new_password)?;
    let claims = context.app.verify_token(&token, TokenType::PasswordReset).ok();
    context.audits(RefusedAction::PasswordReset, claims.as_ref().map(|claims| claims.user));
    let claims = claims.ok_or(Error::InvalidResetToken)?;
    // No token that is signed here expires so late that this fails.
    let expires_at = i64::try_from(claims.expires_at).ok();
    let expires_at = expires_at.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    let used = ResetTokenUse {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: &context.app.hasher.hash(&password, context.hash_request())?,
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: expires_at.ok_or(Error::InvalidResetToken)?,
    };
    match outbox::reset_password(&context.db, &used, &context.origin())? {
        true => response::message("Password has been reset"),
        false => Err(Error::InvalidResetToken),
    }
}
