//! Registration, sign-in, refresh of tokens, and sign-out.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::api::context::{App, CurrentUser, RefreshToken, RequestContext};
use crate::api::middleware::authenticate::REFRESH_TOKEN;
use crate::api::middleware::rate_limit;
use crate::api::openapi::{NO_CONTENT, Operation, Tag, json};
use crate::auth::jwt::{Claims, TokenType};
use crate::auth::password::PasswordCheck;
use crate::db::sessions::{self, LogoutScope, NewSession};
use crate::db::users::{self, AccountFields};
use crate::error::{Error, Unique};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::user::User;

pub const REGISTER: Operation = Operation {
    id: "register",
    tag: Tag::Authentication,
    summary: "Create an account",
    description: "With a `username` the response is the account, and the client signs in separately. Without one the \
                  new account is also signed in, and the response contains its tokens.",
    inputs: &[&REGISTRATION],
    examples: &[
        (
            "With a username",
            r#"{"username": "ann", "email": "ann@example.com", "password": "correct horse battery"}"#,
        ),
        (
            "With an e-mail address only",
            r#"{"email": "ann@example.com", "password": "correct horse battery", "name": "Ann Lee"}"#,
        ),
    ],
    answers: &[json::<Registered>(201, "The account, or the tokens of its first session.")],
    errors: |_| {
        vec![
            Error::TakenAtRegistration(Unique::Username),
            Error::TakenAtRegistration(Unique::Email),
        ]
    },
    ..Operation::EMPTY
};

/// The body of a registration.
struct Registration {
    username: Option<String>,
    email: String,
    password: String,
    name: Option<String>,
}

static REGISTRATION: Input<Registration> = Input::json(read_registration);

fn read_registration(body: &mut Params) -> Registration {
    Registration {
        username: body.optional("username", rules::USERNAME),
        email: body.required("email", rules::EMAIL),
        password: body.required("password", rules::PASSWORD),
        name: body.optional("name", rules::NAME),
    }
}

/// The account, if it was registered with a username, and otherwise the tokens of its first session.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Registered {
    Account(User),
    SignedIn(TokenResponse<'static>),
}

/// `POST /api/v1/auth/register`: creates an account. With a `username` the response is the account. Without one the
/// account is also signed in, and the response holds its tokens.
pub fn register(context: &mut RequestContext) -> Result<Response, Error> {
    let Registration { username, email, password, name } = context.read(&REGISTRATION)?;
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
    let session = new_session(context, Uuid::new_v4());
    let user =
        sessions::open_for_new_user(&app.db, &email, name.as_deref(), &hash, &session, &origin);
    let user = user.map_err(Error::at_registration)?;
    context.account = Some(user.id);
    token_response(app, 201, &user, &session)
}

pub const LOGIN: Operation = Operation {
    id: "login",
    tag: Tag::Authentication,
    summary: "Sign in",
    description: "Takes JSON, or the form of OAuth 2.0's password grant (RFC 6749, 4.3.2). `username` may hold the \
                  e-mail address; neither is case-sensitive. A wrong password, an unknown name and a deleted \
                  account get the same response.",
    inputs: &[&CREDENTIALS],
    examples: &[
        ("By username", r#"{"username": "ann", "password": "correct horse battery"}"#),
        (
            "By e-mail address",
            r#"{"username": "ann@example.com", "password": "correct horse battery"}"#,
        ),
    ],
    answers: &[json::<TokenResponse>(200, "The tokens of a new session.")],
    errors: |_| vec![Error::BadCredentials, Error::InactiveAccount],
    ..Operation::EMPTY
};

/// The login name and the password.
static CREDENTIALS: Input<(String, String)> = Input::json_or_form(read_credentials);

fn read_credentials(body: &mut Params) -> (String, String) {
    body.alias("username", "email");
    body.about("Username or e-mail address. May also be sent as `email`.");
    (
        body.required("username", rules::NON_EMPTY),
        body.required("password", rules::CURRENT_PASSWORD),
    )
}

/// `POST /api/v1/auth/login`: signs in and responds with a pair of tokens. A wrong name takes the same work as a wrong
/// password, so that neither the response nor its time reveals which accounts exist.
pub fn login(context: &mut RequestContext) -> Result<Response, Error> {
    let (login, password) = context.read(&CREDENTIALS)?;
    let outcome = sign_in(context, &login, &password);
    let details = match outcome {
        Err(Error::BadCredentials) => serde_json::json!({}),
        Err(Error::InactiveAccount) => serde_json::json!({ "reason": "inactive_account" }),
        _ => return outcome,
    };
    context.record_failure(RefusedAction::Login, None, context.account, details);
    outcome
}

/// Checks a login name and its password and opens a session.
fn sign_in(context: &mut RequestContext, login: &str, password: &str) -> Result<Response, Error> {
    let app = context.app;
    let (name_hash, account) = users::find_by_login(&app.db, login, context.client)?;
    context.account = account.as_ref().map(|account| account.user.id);
    let knows_network = account.as_ref().is_some_and(|account| account.knows_network);
    let stored = account.as_ref().map(|account| account.password_hash.as_str());
    let check = || app.hasher.check(password, stored);
    let check = rate_limit::limit_failed_sign_ins(context, &name_hash, knows_network, check)?;
    let account = account.filter(|_| check != PasswordCheck::Wrong).ok_or(Error::BadCredentials)?;
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    let renewed = match check {
        PasswordCheck::RightButOutdated => Some(app.hasher.hash(password)?),
        _ => None,
    };
    let session = new_session(context, Uuid::new_v4());
    let user = sessions::open(
        &app.db,
        account.user.id,
        account.version,
        renewed.as_deref(),
        &session,
        &context.origin(),
    )?
    .ok_or(Error::BadCredentials)?;
    token_response(app, 200, &user, &session)
}

pub const REFRESH: Operation = Operation {
    id: "refresh_tokens",
    tag: Tag::Authentication,
    summary: "Exchange a refresh token for the next pair of tokens",
    description: "Takes the refresh token from the body, or else from `Authorization: Bearer`. Each one works once. \
                  For a few seconds after that it still returns the refresh token that replaced it, so that a lost \
                  response does not sign the user out. If it is used again later, its session ends, because somebody \
                  must have copied it.",
    inputs: &[&REFRESH_TOKEN],
    answers: &[json::<TokenResponse>(200, "The next pair of tokens.")],
    ..Operation::EMPTY
};

/// `POST /api/v1/auth/refresh`: exchanges a refresh token for the next pair of tokens.
pub fn refresh(context: &mut RequestContext, token: RefreshToken) -> Result<Response, Error> {
    let (app, config) = (context.app, &context.app.config);
    let (grace, max_age) = (config.refresh_reuse, config.session_max_age);
    let next = new_session(context, token.session);
    let origin = context.origin();
    let (user, session) =
        sessions::rotate(&app.db, token.user, token.id, next, grace, max_age, &origin)?;
    token_response(app, 200, &user, &session)
}

pub const LOGOUT: Operation = Operation {
    id: "logout",
    tag: Tag::Authentication,
    summary: "Sign out",
    description: "Ends all sessions of the user unless `scope` says otherwise. Their access and refresh tokens are \
                  refused from then on; personal access tokens stay valid.",
    inputs: &[&LOGOUT_QUERY],
    answers: &[NO_CONTENT],
    ..Operation::EMPTY
};

static LOGOUT_QUERY: Input<LogoutScope> = Input::query(read_scope);

fn read_scope(query: &mut Params) -> LogoutScope {
    let scopes =
        [("all", LogoutScope::All), ("local", LogoutScope::Local), ("others", LogoutScope::Others)];
    query.about(
        "`local` ends only the session of the access token, `others` all but that. Default `all`.",
    );
    query.choice("scope", &scopes).unwrap_or(LogoutScope::All)
}

/// `POST /api/v1/auth/logout`: ends all sessions of the user, or only those that the query's `scope` names.
pub fn logout(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let scope = context.read(&LOGOUT_QUERY)?;
    sessions::end(&context.app.db, user.id(), user.session(), scope, &context.origin())?;
    Ok(response::no_content())
}

/// A session with this id, opened or refreshed now. It expires together with the longer-lived of the two tokens that
/// are issued for it now, but at most `CLOAKROOM_SESSION_MAX_DAYS` from now.
fn new_session(context: &RequestContext, id: Uuid) -> NewSession {
    let config = &context.app.config;
    let lifetime = config.refresh_token_lifetime.max(config.access_token_lifetime);
    let issued_at = OffsetDateTime::now_utc();
    NewSession {
        id,
        refresh_id: Uuid::new_v4(),
        issued_at,
        expires_at: issued_at + lifetime.min(config.session_max_age),
        user_agent: context.request.header("User-Agent").and_then(rules::user_agent),
    }
}

/// The body of every response that carries tokens (RFC 6749, 5.1), with the account beside them.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TokenResponse")]
struct TokenResponse<'a> {
    access_token: String,
    refresh_token: String,
    /// Always `bearer`.
    token_type: &'static str,
    /// The lifetime of the access token in seconds.
    expires_in: u64,
    user: &'a User,
}

/// Signs an access token and the refresh token of a session, and responds with them. Neither outlives the session.
fn token_response(
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
            role: user.role,
            token_type,
            session: Some(session.id),
            id: Some(id),
            version: None,
            issued_at: Some(now),
        };
        let token = app.signing_keys.sign(claims, expires_at);
        token.map_err(|e| Error::Internal(format!("token: {e}")))
    };
    let access = expiry(app.config.access_token_lifetime);
    let refresh = expiry(app.config.refresh_token_lifetime);
    let tokens = TokenResponse {
        access_token: sign(TokenType::Access, Uuid::new_v4(), access)?,
        refresh_token: sign(TokenType::Refresh, session.refresh_id, refresh)?,
        token_type: "bearer",
        expires_in: access.saturating_sub(now),
        user,
    };
    response::json(status, &tokens)
}
