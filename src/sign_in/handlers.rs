//! Registration, sign-in, refresh of tokens, sign-out, and password resets.

use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use super::statements::{
    self, CheckedLogin, LoginAccount, LoginLookup, LogoutScope, NewSession, ResetTokenUse,
};
use crate::accounts::statements as accounts;
use crate::accounts::statements::AccountFields;
use crate::auth::jwt::{Claims, TokenType};
use crate::auth::refused_passwords::RefusedPasswords;
use crate::config::{LogoutStatus, PasswordLogin};
use crate::db::outbox;
use crate::error::{Error, Unique};
use crate::http::params::Params;
use crate::http::request::MAX_TEXT_BODY;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::second_factor::AcceptedCode;
use crate::model::user::{Role, User};
use crate::model::{hex, rules};
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::request::identity::{CurrentUser, RefreshToken};
use crate::request::limits::{self, Caller, Limit};
use crate::{confirmation, provider, second_factor};

/// Reads username, e-mail address, password and name.
fn read_registration(
    body: &mut Params,
    refused: &RefusedPasswords,
) -> (Option<String>, String, String, Option<String>) {
    (
        body.optional("username", rules::username),
        body.required("email", rules::email),
        body.required("password", |text| refused.accept(text)),
        body.optional("name", rules::name),
    )
}

/// `POST /api/v1/auth/register`: creates an account. With a `username` the response is the account. Without one the
/// account is also signed in, and the response holds its tokens. If addresses must be confirmed, neither creates one
/// yet.
pub fn register(context: &mut RequestContext) -> Result<Response, Error> {
    let attempt = limits::take(context, Limit::Registrations, Caller::Anonymous)?;
    let refused = &context.app.refused_passwords;
    let (username, email, password, name) =
        context.request.json()?.read(|body| read_registration(body, refused))?;
    let hash = context.app.hasher.hash(&password, context.hash_request())?;
    let response = if context.app.config.confirms_email() {
        confirmation::register(context, username, email, name, hash)?
    } else if username.is_some() {
        let (email, password_hash) = (Some(email), Some(hash));
        let fields = AccountFields { username, email, name, password_hash, ..Default::default() };
        let user = accounts::insert(&context.db, &fields, None).map_err(Error::at_registration)?;
        context.account_in_log = Some(user.id);
        response::json(201, &user)?
    } else {
        let session = new_session(context, Uuid::new_v4(), None);
        let (db, name) = (&context.db, name.as_deref());
        let user = statements::open_for_new_user(db, &email, name, Some(&hash), None, &session)?;
        let user = user.ok_or(Error::TakenAtRegistration(Unique::Email))?;
        context.account_in_log = Some(user.id);
        token_response(context.app, 201, &user, &session)?
    };
    attempt.count();
    Ok(response)
}

/// Reads a username or an e-mail address, the password, and a code of the second factor, or a recovery code.
fn read_login(body: &mut Params) -> (String, String, Option<String>) {
    body.alias("username", "email");
    (
        body.required("username", rules::login_name),
        body.required("password", rules::non_empty),
        // Forms send a field that was left empty, too.
        body.filter("code", rules::code),
    )
}

/// `POST /api/v1/auth/login`: signs in and responds with a pair of tokens. A wrong name takes the same work as a wrong
/// password, so that neither the response nor its time reveals which accounts exist.
pub fn login(context: &mut RequestContext) -> Result<Response, Error> {
    let (name, password, code) = context.request.json_or_form(MAX_TEXT_BODY)?.read(read_login)?;
    let found = statements::find_by_login(&context.db, &name, context.client)?;
    context.account_in_log = found.account.as_ref().map(|account| account.user.id);
    context.audits(RefusedAction::Login, context.account_in_log);
    let (account, renewed_hash) = check_password(context, found, &password)?;
    let code = check_code(context, &account, code.as_deref())?;
    open_session(context, &account, renewed_hash.as_deref(), code.as_ref(), None)
}

/// Checks the code of a sign-in to an account that has a second factor.
pub fn check_code(
    context: &mut RequestContext,
    account: &LoginAccount,
    code: Option<&str>,
) -> Result<Option<AcceptedCode>, Error> {
    let check =
        |factor| second_factor::code::check_at_login(context, account.user.id, factor, code);
    account.second_factor.as_ref().map(check).transpose()
}

/// Signs in to an account whose owner has proven who they are, and responds with a pair of tokens. `ends_at` is when
/// the session ends at the latest, if an OpenID provider opens it.
pub fn open_session(
    context: &mut RequestContext,
    account: &LoginAccount,
    renewed_hash: Option<&str>,
    code: Option<&AcceptedCode>,
    ends_at: Option<OffsetDateTime>,
) -> Result<Response, Error> {
    let (user, version) = (account.user.id, account.version);
    let checked = CheckedLogin { user, version, renewed_hash, code };
    let session = new_session(context, Uuid::new_v4(), ends_at);
    let lifetime = context.app.config.access_token_lifetime;
    match statements::open(&context.db, &checked, &session, lifetime)? {
        Some(user) => token_response(context.app, 200, &user, &session),
        None => Err(match second_factor::code::refused_code(context, user, true) {
            // The second factor was switched on after the password was checked, so no code was asked for.
            Error::InvalidCode { .. } if code.is_none() => {
                Error::SecondFactorRequired { is_password_refused: false }
            }
            refused => refused,
        }),
    }
}

/// Checks the password of the account that was found. Returns the account, and the hash that replaces an outdated one.
fn check_password(
    context: &mut RequestContext,
    found: LoginLookup,
    password: &str,
) -> Result<(LoginAccount, Option<String>), Error> {
    let LoginLookup { counted, known_network, account } = found;
    let stored = account.as_ref().and_then(|account| account.password_hash.as_deref());
    let hash_request = context.hash_request();
    let caller = Caller::SigningIn(&counted, known_network.as_deref());
    let failure = limits::take(context, Limit::FailedSignIns, caller)?;
    let right = context.app.hasher.check(password, stored, hash_request)?;
    let (Some(account), Some(right)) = (account, right) else {
        failure.count();
        return Err(context.bad_credentials());
    };
    drop(failure); // Its token is given back before the waits that follow.
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    let config = &context.app.config;
    if config.password_login == PasswordLogin::Admins && account.user.role != Role::Admin {
        let name = config.provider.as_ref().map(|provider| provider.name.clone());
        return Err(Error::ProviderRequired(name.unwrap_or_default()));
    }
    context.db.changes_are_of(account.user.id);
    Ok((account, right.renewed_hash))
}

/// `POST /api/v1/auth/refresh`, also called `refresh-token`: exchanges a refresh token for the next pair of tokens.
pub fn refresh(context: &mut RequestContext, token: RefreshToken) -> Result<Response, Error> {
    let (app, config) = (context.app, &context.app.config);
    let (grace, max_age) = (config.refresh_reuse, config.session_max_age);
    let next = new_session(context, token.session, None);
    let (user, session) =
        statements::rotate(&context.db, token.user, token.id, next, grace, max_age)?;
    token_response(app, 200, &user, &session)
}

fn read_scope(query: &mut Params) -> LogoutScope {
    let scopes =
        [("all", LogoutScope::All), ("local", LogoutScope::Local), ("others", LogoutScope::Others)];
    query.choice("scope", &scopes).unwrap_or(LogoutScope::All)
}

/// `POST /api/v1/auth/logout`: ends all sessions of the user, or only those that the query's `scope` names.
pub fn logout(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let scope = context.request.query().read(read_scope)?;
    statements::end(&context.db, user.id(), user.session(), scope)?;
    match context.app.config.logout_status {
        LogoutStatus::NoContent => Ok(Response::empty(204)),
        LogoutStatus::Ok => response::message("Logged out successfully"),
    }
}

/// A session with this id, opened or refreshed now. It expires together with the longer-lived of the two tokens that
/// are issued for it now, but at most `CLOAKROOM_SESSION_MAX_DAYS` from now, and not after `ends_at`.
pub fn new_session(
    context: &RequestContext,
    id: Uuid,
    ends_at: Option<OffsetDateTime>,
) -> NewSession {
    let config = &context.app.config;
    let lifetime = config.refresh_token_lifetime.max(config.access_token_lifetime);
    let issued_at = OffsetDateTime::now_utc();
    let expires_at = issued_at + lifetime.min(config.session_max_age);
    NewSession {
        id,
        refresh_id: Uuid::new_v4(),
        issued_at,
        expires_at: ends_at.map_or(expires_at, |end| end.min(expires_at)),
        ends_at,
        user_agent: context.request.header("User-Agent").and_then(rules::user_agent),
    }
}

/// Signs an access token and the refresh token of a session, and responds with them (RFC 6749, 5.1), with the lifetime
/// of the access token in seconds, and with the account. Neither outlives the session.
pub fn token_response(
    app: &App,
    status: u16,
    user: &User,
    session: &NewSession,
) -> Result<Response, Error> {
    let seconds = |at: OffsetDateTime| at.unix_timestamp().max(0).unsigned_abs();
    let (now, end) = (seconds(session.issued_at), seconds(session.expires_at));
    let expiry = |lifetime: Duration| end.min(now + lifetime.as_secs());
    let sign = |token_type, id, expires_at| {
        let claims = Claims {
            user: user.id,
            username: user.username.clone(),
            email: (token_type == TokenType::Access).then(|| user.email.clone()),
            role: user.role,
            token_type,
            session: Some(session.id),
            id: Some(id),
            version: None,
            issued_at: Some(now),
            expires_at,
        };
        app.signing_keys.sign(claims)
    };
    let access = expiry(app.config.access_token_lifetime);
    let refresh = expiry(app.config.refresh_token_lifetime);
    let tokens = json!({
        "access_token": sign(TokenType::Access, Uuid::new_v4(), access)?,
        "refresh_token": sign(TokenType::Refresh, session.refresh_id, refresh)?,
        "token_type": "bearer",
        "expires_in": access.saturating_sub(now),
        "user": user,
    });
    response::json(status, &tokens)
}

/// `POST /api/v1/auth/request-password-reset`: stores the request, which the background thread handles. The response is
/// the same for every address and takes the same work, so that it does not reveal which accounts exist.
pub fn request_password_reset(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.request.json()?.read(|body| body.required("email", rules::email))?;
    outbox::request_reset(&context.db, &email)?;
    context.app.wake_background();
    response::message("If the e-mail exists, a reset message has been sent")
}

/// `POST /api/v1/auth/reset-password`: sets a new password, or joins an identity in its place, once for each reset
/// token, and ends all sessions.
pub fn reset_password(context: &mut RequestContext) -> Result<Response, Error> {
    let refused = &context.app.refused_passwords;
    let (token, chosen) = context.request.json()?.read(|body| {
        let token = body.required("token", rules::token);
        let code = provider::code::read(body, "new_password");
        (token, code.ok_or_else(|| body.required("new_password", |text| refused.accept(text))))
    })?;
    let claims = context.app.verify_token(&token, TokenType::PasswordReset).ok();
    context.audits(RefusedAction::PasswordReset, claims.as_ref().map(|claims| claims.user));
    let chosen = match chosen {
        Ok(code) => Ok(provider::code::take(context, &code)?),
        Err(password) => Err(password),
    };
    let claims = claims.ok_or(Error::InvalidResetToken)?;
    context.db.changes_are_of(claims.user);
    // No token that is signed here expires so late that this fails.
    let expires_at = i64::try_from(claims.expires_at).ok();
    let expires_at = expires_at.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    let hash = |text: &String| context.app.hasher.hash(text, context.hash_request());
    let hash = chosen.as_ref().err().map(hash).transpose()?;
    let used = ResetTokenUse {
        user: claims.user,
        version: claims.version.ok_or(Error::InvalidResetToken)?,
        password_hash: hash.as_deref(),
        identity: chosen.as_ref().ok(),
        token_hash: &hex(&Sha256::digest(token.as_bytes())),
        expires_at: expires_at.ok_or(Error::InvalidResetToken)?,
    };
    match statements::reset_password(&context.db, &used)? {
        true => response::message("Password has been reset"),
        false => Err(Error::InvalidResetToken),
    }
}
