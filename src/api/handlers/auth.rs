//! Registration, sign-in and sign-out, and password resets.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::api::context::{App, CurrentUser, RefreshToken, RequestContext};
use crate::auth::jwt::{Claims, TokenType};
use crate::auth::password::PasswordCheck;
use crate::db::resets;
use crate::db::sessions::{self, LogoutScope, NewSession};
use crate::db::users::{self, AccountFields};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::hex::hex;
use crate::model::rules;
use crate::model::timestamp::unix_time;
use crate::model::user::User;

/// The body of a registration.
struct Registration {
    username: Option<String>,
    email: String,
    password: String,
    name: Option<String>,
}

fn read_registration(body: &mut Params) -> Registration {
    Registration {
        username: body.optional("username", rules::username),
        email: body.required("email", rules::email),
        password: body.required("password", rules::password),
        name: body.optional("name", rules::name),
    }
}

/// `POST /api/v1/auth/register`: creates an account. With a `username` the response is the account. Without one the
/// account is also signed in, and the response holds its tokens.
pub fn register(context: &mut RequestContext) -> Result<Response, Error> {
    let Registration { username, email, password, name } =
        context.request.json(read_registration)?;
    let (app, origin) = (context.app, context.origin());
    let hash = app.hasher.hash(&password)?;
    if let Some(username) = username {
        let account = AccountFields {
            username: Some(username),
            email: Some(email),
            name,
            password_hash: Some(hash),
            ..AccountFields::default()
        };
        let user = users::insert(&app.db, &account, &origin).map_err(Error::at_registration)?;
        context.account = Some(user.id);
        return response::json(201, &user);
    }
    let session = new_session(app, Uuid::new_v4());
    let user =
        sessions::open_for_new_user(&app.db, &email, name.as_deref(), &hash, &session, &origin);
    let user = user.map_err(Error::at_registration)?;
    context.account = Some(user.id);
    token_response(app, 201, &user, session.id, session.refresh_id)
}

/// `POST /api/v1/auth/login`: signs in and responds with a pair of tokens. A wrong name takes the same work as a wrong
/// password, so that neither the response nor its time reveals which accounts exist.
pub fn login(context: &mut RequestContext) -> Result<Response, Error> {
    let (login, password) = context.request.json_or_form(read_credentials)?;
    let outcome = sign_in(context, &login, &password);
    match outcome {
        Err(Error::BadCredentials) => {
            context.record_failure(RefusedAction::Login, None, context.account, json!({}));
        }
        Err(Error::InactiveAccount) => {
            let details = json!({ "reason": "inactive_account" });
            context.record_failure(RefusedAction::Login, None, context.account, details);
        }
        _ => {}
    }
    outcome
}

/// Checks a login name and its password and opens a session.
fn sign_in(context: &mut RequestContext, login: &str, password: &str) -> Result<Response, Error> {
    let app = context.app;
    let account = users::find_by_login(&app.db, login)?;
    context.account = account.as_ref().map(|account| account.user.id);
    let stored = account.as_ref().map(|account| account.password_hash.as_str());
    let check = app.hasher.check(password, stored)?;
    let account = account.filter(|_| check != PasswordCheck::Wrong).ok_or(Error::BadCredentials)?;
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    let renewed = match check {
        PasswordCheck::RightButOutdated => Some(app.hasher.hash(password)?),
        _ => None,
    };
    let session = new_session(app, Uuid::new_v4());
    let user = sessions::open(
        &app.db,
        account.user.id,
        account.version,
        renewed.as_deref(),
        &session,
        &context.origin(),
    )?
    .ok_or(Error::BadCredentials)?;
    token_response(app, 200, &user, session.id, session.refresh_id)
}

/// Reads the login name, which may be an e-mail address, and the password.
fn read_credentials(body: &mut Params) -> (String, String) {
    body.alias("username", "email");
    (body.required("username", rules::non_empty), body.required("password", rules::non_empty))
}

/// `POST /api/v1/auth/refresh`: exchanges a refresh token for the next pair of tokens.
pub fn refresh(context: &mut RequestContext, token: RefreshToken) -> Result<Response, Error> {
    let app = context.app;
    let next = new_session(app, token.session);
    let (user, refresh_id) = sessions::rotate(
        &app.db,
        token.user,
        token.id,
        &next,
        app.config.refresh_reuse,
        &context.origin(),
    )?;
    token_response(app, 200, &user, token.session, refresh_id)
}

/// `POST /api/v1/auth/logout`: ends all sessions of the user, or only those that the query's `scope` names.
pub fn logout(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let scopes =
        [("all", LogoutScope::All), ("local", LogoutScope::Local), ("others", LogoutScope::Others)];
    let scope = context.request.query(|query| query.choice("scope", &scopes))?;
    let scope = scope.unwrap_or(LogoutScope::All);
    sessions::end(&context.app.db, user.id(), user.session(), scope, &context.origin())?;
    Ok(response::no_content())
}

/// `POST /api/v1/auth/request-password-reset`: stores the request, which the background thread handles. The response is
/// the same for every address and takes the same work, so that it does not reveal which accounts exist.
pub fn request_password_reset(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.request.json(|body| body.required("email", rules::email))?;
    resets::request(&context.app.db, &email, &context.origin())?;
    context.app.wake_background();
    response::message("If the e-mail exists, a reset message has been sent")
}

/// `POST /api/v1/auth/reset-password`: sets a new password, once for each reset token, and ends all sessions.
pub fn reset_password(context: &mut RequestContext) -> Result<Response, Error> {
    let (token, password) = context.request.json(|body| {
        (body.required("token", rules::token), body.required("new_password", rules::password))
    })?;
    let claims = context.app.verify_token(&token, TokenType::PasswordReset).ok();
    let outcome = use_reset_token(context, &token, claims.as_ref(), &password);
    if matches!(outcome, Err(Error::InvalidResetToken)) {
        let user = claims.map(|claims| claims.user);
        context.record_failure(RefusedAction::PasswordReset, None, user, json!({}));
    }
    outcome
}

/// Sets the password of the account that the reset token is for. `claims` are those of the token, if its signature and
/// its time are valid.
fn use_reset_token(
    context: &RequestContext,
    token: &str,
    claims: Option<&Claims>,
    password: &str,
) -> Result<Response, Error> {
    let app = context.app;
    let claims = claims.ok_or(Error::InvalidResetToken)?;
    let used = resets::ResetTokenUse {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: &app.hasher.hash(password)?,
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: after(app.config.password_reset_lifetime),
    };
    if !resets::reset_password(&app.db, &used, &context.origin())? {
        return Err(Error::InvalidResetToken);
    }
    response::message("Password has been reset")
}

/// A session with this id that lasts until both of the tokens that are made for it now have expired.
fn new_session(app: &App, id: Uuid) -> NewSession {
    let config = &app.config;
    let lifetime = config.refresh_token_lifetime.max(config.access_token_lifetime);
    NewSession { id, refresh_id: Uuid::new_v4(), expires_at: after(lifetime) }
}

fn after(duration: Duration) -> OffsetDateTime {
    OffsetDateTime::now_utc() + duration
}

/// The body of every response that carries tokens (RFC 6749, 5.1), with the account beside them.
#[derive(Serialize)]
struct TokenResponse<'a> {
    access_token: String,
    refresh_token: String,
    token_type: &'static str,
    /// The lifetime of the access token in seconds.
    expires_in: u64,
    user: &'a User,
}

/// Signs an access token and the refresh token with the id `refresh_id`, and responds with them.
fn token_response(
    app: &App,
    status: u16,
    user: &User,
    session: Uuid,
    refresh_id: Uuid,
) -> Result<Response, Error> {
    let now = unix_time().as_secs();
    let sign = |token_type, id, lifetime: Duration| {
        let claims = Claims {
            user: user.id,
            username: user.username.clone(),
            role: user.role,
            token_type,
            session: Some(session),
            id: Some(id),
            version: None,
            issued_at: Some(now),
        };
        let token = app.signing_key.sign(claims, now + lifetime.as_secs());
        token.map_err(|e| Error::Internal(format!("token: {e}")))
    };
    let (access, refresh) = (app.config.access_token_lifetime, app.config.refresh_token_lifetime);
    let tokens = TokenResponse {
        access_token: sign(TokenType::Access, Uuid::new_v4(), access)?,
        refresh_token: sign(TokenType::Refresh, refresh_id, refresh)?,
        token_type: "bearer",
        expires_in: access.as_secs(),
        user,
    };
    response::json(status, &tokens)
}
