//! Registration, sign-in and sign-out, password reset.

use std::time::Duration;

use serde::Serialize;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::app::{App, Call, unix_time};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::middleware::authenticate::{Caller, bearer, claims};
use crate::model::fields;
use crate::model::user::User;
use crate::security::jwt::{Claims, Kind};
use crate::security::password::Verdict;
use crate::store;
use crate::store::sessions::{Opening, Scope};

/// `POST /api/v1/auth/register`: with `username` the answer is the User, without it a full token
/// response.
pub fn register(call: &Call) -> Result<Response, Error> {
    let (username, email, password, name) = call.request.json(|body| {
        (
            body.optional("username", fields::username),
            body.required("email", fields::email),
            body.required("password", fields::password),
            body.optional("name", fields::name),
        )
    })?;
    let hash = call.app.hashing.hash(&password)?;
    let db = &call.app.db;
    if let Some(username) = username {
        let user = store::users::insert(db, &username, &email, name.as_deref(), &hash);
        return response::json(201, &user.map_err(Error::at_registration)?);
    }
    let session = new_session(call.app, Uuid::new_v4());
    let user = store::users::insert_with_session(db, &email, name.as_deref(), &hash, &session);
    token_response(
        call.app,
        201,
        &user.map_err(Error::at_registration)?,
        session.id,
        session.refresh_id,
    )
}

/// `POST /api/v1/auth/login`: a full token response. A wrong name costs the same work as a wrong
/// password.
pub fn login(call: &Call) -> Result<Response, Error> {
    let (login, password) = call.request.json_or_form(|body| {
        body.alias("username", "email");
        (body.required("username", fields::given), body.required("password", fields::given))
    })?;
    let app = call.app;
    let account = store::users::find_by_login(&app.db, &login)?;
    let verdict =
        app.hashing.verify(&password, account.as_ref().map(|a| a.password_hash.as_str()))?;
    let account = account.filter(|_| verdict != Verdict::Wrong).ok_or(Error::BadCredentials)?;
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    let renewed = match verdict {
        Verdict::RightButOutdated => Some(app.hashing.hash(&password)?),
        _ => None,
    };
    let session = new_session(app, Uuid::new_v4());
    let user = store::sessions::open(
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
pub fn refresh(call: &Call) -> Result<Response, Error> {
    let in_body = call.request.json(|body| body.optional("refresh_token", fields::token))?;
    let token = match &in_body {
        Some(token) => token,
        None => bearer(call.request.header("Authorization"))?,
    };
    let claims = claims(call.app, token, Kind::Refresh)?;
    let (session, id) = claims.session.zip(claims.id).ok_or(Error::InvalidToken)?;
    let next = new_session(call.app, session);
    let grace = call.app.config.refresh_reuse;
    let (user, refresh_id) = store::sessions::rotate(&call.app.db, claims.user, id, &next, grace)?;
    token_response(call.app, 200, &user, session, refresh_id)
}

/// `POST /api/v1/auth/logout`: ends all sessions of the user, or those that `scope` names.
pub fn logout(call: &Call, caller: &Caller) -> Result<Response, Error> {
    let scopes = [("all", Scope::All), ("local", Scope::Local), ("others", Scope::Others)];
    let scope = call.request.query(|query| query.choice("scope", &scopes))?;
    let scope = scope.unwrap_or(Scope::All);
    store::sessions::end(&call.app.db, caller.user().id, caller.session(), scope)?;
    Ok(response::no_content())
}

/// `POST /api/v1/auth/request-password-reset`: the answer is the same for every address.
pub fn request_password_reset(call: &Call) -> Result<Response, Error> {
    let email = call.request.json(|body| body.required("email", fields::email))?;
    store::resets::request(&call.app.db, &email)?;
    call.app.bell.ring();
    response::message("If the e-mail exists, a reset message has been sent")
}

/// `POST /api/v1/auth/reset-password`: sets a new password, once a token, and ends all sessions.
pub fn reset_password(call: &Call) -> Result<Response, Error> {
    let (token, password) = call.request.json(|body| {
        (body.required("token", fields::token), body.required("new_password", fields::password))
    })?;
    let claims =
        claims(call.app, &token, Kind::PasswordReset).map_err(|_| Error::InvalidResetToken)?;
    let used = store::resets::Use {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: &call.app.hashing.hash(&password)?,
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: after(call.app.config.password_reset_lifetime),
    };
    if !store::resets::reset_password(&call.app.db, &used)? {
        return Err(Error::InvalidResetToken);
    }
    response::message("Password has been reset")
}

/// A session that lives until the last of the tokens made now has expired.
fn new_session(app: &App, id: Uuid) -> Opening {
    let lifetime = app.config.refresh_token_lifetime.max(app.config.access_token_lifetime);
    Opening { id, refresh_id: Uuid::new_v4(), expires_at: after(lifetime) }
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
