//! Password resets: the request for a message with a reset token, and the use of the token.

use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::api::openapi::{Operation, Tag, json};
use crate::auth::jwt::TokenType;
use crate::db::resets;
use crate::error::Error;
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Message, Response};
use crate::model::hex::hex;
use crate::model::rules;

pub const REQUEST: Operation = Operation {
    id: "request_password_reset",
    tag: Tag::Authentication,
    summary: "Request a mail with a link to reset the password",
    description: "The response is the same, and takes the same time, whether or not an account has the address. The \
                  mail is sent soon afterwards: to one account at most once in two minutes, and after ten in a day at \
                  most once an hour.",
    inputs: &[&ADDRESS],
    answers: &[json::<Message>(200, "The request has been stored.")],
    ..Operation::EMPTY
};

static ADDRESS: Input<String> = Input::json(|body| body.required("email", rules::EMAIL));

/// `POST /api/v1/auth/request-password-reset`: stores the request, which the background thread handles. The response is
/// the same for every address and takes the same work, so that it does not reveal which accounts exist.
pub fn request(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.read(&ADDRESS)?;
    resets::request(&context.app.db, &email)?;
    context.app.wake_background();
    response::message("If the e-mail exists, a reset message has been sent")
}

pub const RESET: Operation = Operation {
    id: "reset_password",
    tag: Tag::Authentication,
    summary: "Set a new password with the token of a reset link",
    description: "A token works once, for a limited time, and only until the password or the e-mail address of the \
                  account changes. All sessions and personal access tokens of the account end.",
    inputs: &[&NEW_PASSWORD],
    answers: &[json::<Message>(200, "The password has been changed.")],
    errors: |_| vec![Error::InvalidResetToken],
    ..Operation::EMPTY
};

/// The token and the new password.
static NEW_PASSWORD: Input<(String, String)> = Input::json(read_new_password);

fn read_new_password(body: &mut Params) -> (String, String) {
    body.about("The token of the reset link.");
    (body.required("token", rules::TOKEN), body.required("new_password", rules::PASSWORD))
}

/// `POST /api/v1/auth/reset-password`: sets a new password, once for each reset token, and ends all sessions.
pub fn reset(context: &mut RequestContext) -> Result<Response, Error> {
    let (token, password) = context.read(&NEW_PASSWORD)?;
    let app = context.app;
    let claims = app.verify_token(&token, TokenType::PasswordReset);
    let claims = claims.map_err(|_| Error::InvalidResetToken)?;
    let used = resets::ResetTokenUse {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: &app.hasher.hash(&password)?,
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: OffsetDateTime::now_utc() + app.config.password_reset_lifetime,
    };
    if !resets::reset_password(&app.db, &used)? {
        return Err(Error::InvalidResetToken);
    }
    response::message("Password has been reset")
}
