//! The confirmation of e-mail addresses. A token proves the mailbox and not one account: the password says which
//! account gets the address. So a mail that a stranger caused lets the owner of the mailbox confirm their own account,
//! and never the stranger's.

use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::auth::jwt::{Claims, TokenType};
use crate::auth::password::PasswordCheck;
use crate::db::email_confirmations::{self, AskingAccount, ConfirmationToken};
use crate::db::outbox;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;

/// `POST /api/v1/auth/request-email-confirmation`: stores the request, which the background thread handles. The
/// response is the same for every address and takes the same work, as at
/// [`request_password_reset`](super::auth::request_password_reset).
pub fn request(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.request.json()?.read(|body| body.required("email", rules::email))?;
    outbox::request_link(&context.db, &email, true, &context.origin())?;
    context.app.wake_background();
    response::message("If the e-mail waits for its confirmation, a message has been sent")
}

/// `POST /api/v1/auth/confirm-email`: confirms the address of the token for the account that asks for it and has this
/// password.
pub fn confirm(context: &mut RequestContext) -> Result<Response, Error> {
    let (token, password, username) = context.request.json()?.read(|body| {
        let token = body.required("token", rules::token);
        let password = body.required("password", rules::non_empty);
        (token, password, body.filter("username", rules::non_empty))
    })?;
    let claims = context.app.verify_token(&token, TokenType::EmailConfirmation).ok();
    context.audits(RefusedAction::EmailConfirm, claims.as_ref().map(|claims| claims.user));
    let token = claims.and_then(read_token).ok_or(Error::InvalidConfirmationToken)?;
    let asking = email_confirmations::find(&context.db, &token, username.as_deref())?;
    let account = with_password(context, asking, &password)?;
    if !email_confirmations::confirm(&context.db, &account, &token.email, &context.origin())? {
        return Err(Error::InvalidConfirmationToken);
    }
    // Removes the accounts that have waited for the same address.
    context.app.wake_background();
    response::message("E-mail address has been confirmed")
}

/// The token with these claims; `None` if one is missing.
fn read_token(claims: Claims) -> Option<ConfirmationToken> {
    let expires_at = i64::try_from(claims.expires_at).ok()?;
    Some(ConfirmationToken {
        id: claims.id?,
        account: claims.user,
        email: claims.email?,
        expires_at: OffsetDateTime::from_unix_timestamp(expires_at).ok()?,
    })
}

/// The first of the accounts that has this password.
fn with_password(
    context: &RequestContext,
    accounts: Vec<AskingAccount>,
    password: &str,
) -> Result<AskingAccount, Error> {
    for account in accounts {
        let stored = Some(account.password_hash.as_str());
        match context.app.hasher.check(password, stored, context.hash_request())? {
            PasswordCheck::Wrong => {}
            PasswordCheck::Right | PasswordCheck::RightButOutdated => return Ok(account),
        }
    }
    Err(Error::InvalidConfirmationToken)
}
