//! Registration, sign-in and sign-out, password reset.

use std::time::Duration;

use serde::Serialize;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::api::context::{App, RequestContext};
use crate::api::middleware::authenticate::{CurrentUser, bearer, claims};
use crate::auth::jwt::{Claims, Kind};
use crate::auth::password::Verdict;
use crate::db;
use crate::db::sessions::{LogoutScope, NewSession};
use crate::db::users::AccountFields;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::model::timestamp::unix_time;
use crate::model::user::User;

/// `POST /api/v1/auth/register`: with `username` the answer is the User, without it a full token
/// response.
pub fn register(context: &RequestContext) -> Result<Response, Error> {
    let (username, email, password, name) = context.request.json(|body| {
        (
            body.optional("username", rules::username),
            body.required("email", rules::email),
            body.required("password", rules::password),
            body.optional("name", rules::name),
        )
    })?;
    let hash = context.app.hasher.hash(&password)?;
    let db = &context.app.db;
    if let Some(username) = username {
        let account = AccountFields {
            username: Some(username),
            email: Some(email),
            name,
            password_hash: Some(hash),
            ..AccountFields::default()
        };
        let user = db::users::insert(db, &account).map_err(Error::at_registration)?;
        return response::json(201, &user);
    }
    let session = new_session(context.app, Uuid::new_v4());
    let user = db::sessions::open_for_new_user(db, &email, name.as_deref(), &hash, &session);
    token_response(
        context.app,
        201,
        &user.map_err(Error::at_registration)?,
        session.id,
        session.refresh_id,
    )
}

/// `POST /api/v1/auth/login`: a full token response. A wrong name costs the same work as a wrong
/// password.
pub fn login(context: &RequestContext) -> Result<Response, Error> {
    let (login, password) = context.request.json_or_form(|body| {
        body.alias("username", "email");
        (body.required("username", rules::given), body.required("password", rules::given))
    })?;
    let app = context.app;
    let account = db::users::find_by_login(&app.db, &login)?;
    let verdict =
        app.hasher.verify(&password, account.as_ref().map(|a| a.password_hash.as_str()))?;
    let account = account.filter(|_| verdict != Verdict::Wrong).ok_or(Error::BadCredentials)?;
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    let renewed = match verdict {
        Verdict::RightButOutdated => Some(app.hasher.hash(&password)?),
        _ => None,
    };
    let session = new_session(app, Uuid::new_v4());
    let user = db::sessions::open(
        &app.db,
        account.user.id,
        account.version,
        renewed.as_deref(),
        &session,
    )?
    .ok_or(Error::BadCredentials)?;
    token_response(app, 200, &user, session.id, session.refresh_id)
}

/// `POST /api/v1/auth/refresh`: the refresh token comes in the body or in `Authorization`.
pub fn refresh(context: &RequestContext) -> Result<Response, Error> {
    let in_body = context.request.json(|body| body.optional("refresh_token", rules::token))?;
    let token = match &in_body {
        Some(token) => token,
        None => bearer(context.request.header("Authorization"))?,
    };
    let claims = claims(context.app, token, Kind::Refresh)?;
    let (session, id) = claims.session.zip(claims.id).ok_or(Error::InvalidToken)?;
    let next = new_session(context.app, session);
    let grace = context.app.config.refresh_reuse;
    let (user, refresh_id) = db::sessions::rotate(&context.app.db, claims.user, id, &next, grace)?;
    token_response(context.app, 200, &user, session, refresh_id)
}

/// `POST /api/v1/auth/logout`: ends all sessions of the user, or those that `scope` names.
pub fn logout(context: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let scopes =
        [("all", LogoutScope::All), ("local", LogoutScope::Local), ("others", LogoutScope::Others)];
    let scope = context.request.query(|query| query.choice("scope", &scopes))?;
    let scope = scope.unwrap_or(LogoutScope::All);
    db::sessions::end(&context.app.db, user.user().id, user.session(), scope)?;
    Ok(response::no_content())
}

/// `POST /api/v1/auth/request-password-reset`: the answer is the same for every address.
pub fn request_password_reset(context: &RequestContext) -> Result<Response, Error> {
    let email = context.request.json(|body| body.required("email", rules::email))?;
    db::resets::request(&context.app.db, &email)?;
    let _ = context.app.wake_background.try_send(());
    response::message("If the e-mail exists, a reset message has been sent")
}

/// `POST /api/v1/auth/reset-password`: sets a new password, once a token, and ends all sessions.
pub fn reset_password(context: &RequestContext) -> Result<Response, Error> {
    let (token, password) = context.request.json(|body| {
        (body.required("token", rules::token), body.required("new_password", rules::password))
    })?;
    let claims =
        claims(context.app, &token, Kind::PasswordReset).map_err(|_| Error::InvalidResetToken)?;
    let used = db::resets::ResetTokenUse {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: &context.app.hasher.hash(&password)?,
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: after(context.app.config.password_reset_lifetime),
    };
    if !db::resets::reset_password(&context.app.db, &used)? {
        return Err(Error::InvalidResetToken);
    }
    response::message("Password has been reset")
}

/// A session that lives until the last of the tokens made now has expired.
fn new_session(app: &App, id: Uuid) -> NewSession {
    let lifetime = app.config.refresh_token_lifetime.max(app.config.access_token_lifetime);
    NewSession { id, refresh_id: Uuid::new_v4(), expires_at: after(lifetime) }
}

fn after(duration: Duration) -> OffsetDateTime {
    OffsetDateTime::now_utc() + duration
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// spec.md, Token response.
#[derive(Serialize)]
struct Tokens<'a> {
    access_token: String,
    refresh_token: String,
    token_type: &'static str,
    expires_in: u64,
    user: &'a User,
}

fn token_response(
    app: &App,
    status: u16,
    user: &User,
    session: Uuid,
    refresh_id: Uuid,
) -> Result<Response, Error> {
    let now = unix_time().as_secs();
    let sign = |kind, id, lifetime: Duration| {
        let claims = Claims {
            user: user.id,
            username: user.username.clone(),
            role: user.role,
            kind,
            session: Some(session),
            id: Some(id),
            version: None,
            issued_at: Some(now),
        };
        let token = app.key.sign(claims, now + lifetime.as_secs());
        token.map_err(|e| Error::Internal(format!("token: {e}")))
    };
    let access_lifetime = app.config.access_token_lifetime;
    let tokens = Tokens {
        access_token: sign(Kind::Access, Uuid::new_v4(), access_lifetime)?,
        refresh_token: sign(Kind::Refresh, refresh_id, app.config.refresh_token_lifetime)?,
        token_type: "bearer",
        expires_in: access_lifetime.as_secs(),
        user,
    };
    response::json(status, &tokens)
}
