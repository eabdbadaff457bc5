//! Finds out who a request comes from. Handlers for users and administrators take proofs that only this module can
//! make.

use std::ops::Deref;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::app::App;
use super::context::RequestContext;
use super::permits::SearchPermits;
use super::{personal_token, view_token};
use crate::auth::jwt::TokenType;
use crate::config::{AdminSecondFactor, Config, Environment};
use crate::db::{Database, one_row, sql, user_from_row};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::http::params::Params;
use crate::http::request::MAX_REFRESH_BODY;
use crate::model::rules;
use crate::model::user::{Role, SignIn, TokenHash, TokenScope, User};

/// How long ago a user may have been authenticated when a change begins. Bodies may take far longer to arrive.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The user of the access token or personal access token in `Authorization`, or of the view token in the address where
/// the endpoint accepts one, or the development admin if authentication is switched off. As the development admin a
/// foreign web page could do anything, so its requests are refused.
pub fn authenticate(context: &RequestContext) -> Result<SignedIn, Error> {
    let app = context.app;
    if !app.config.auth_enabled {
        return match context.request.is_from_trusted_page(&app.config.cors_origins) {
            true => SignedIn::development_admin(&context.db),
            false => Err(Error::NotPermitted(Forbidden::ForeignPage)),
        };
    }
    if let Some(token) = view_token::of(context) {
        return from_signed_token(context, &token, TokenType::View).map_err(view_token::refusal);
    }
    let token = context.request.bearer_token()?;
    match personal_token::hash_of(token)? {
        Some(hash) => SignedIn::from_personal_token(&context.db, hash, Duration::ZERO),
        None => from_signed_token(context, token, TokenType::Access),
    }
}

/// The user of a token that was signed here, and whose session is live.
fn from_signed_token(
    context: &RequestContext,
    token: &str,
    token_type: TokenType,
) -> Result<SignedIn, Error> {
    let claims = context.app.verify_token(token, token_type)?;
    let sign_in = SignIn { session: claims.session, issued_at: claims.issued_at };
    let (user, role) = (claims.user, claims.role);
    SignedIn::from_access_token(context.app, &context.db, user, role, sign_in, Duration::ZERO)
}

/// The parameters in the JSON body of a user's request, after [`check_again_if_late`].
pub fn json_body(context: &mut RequestContext, user: &SignedIn) -> Result<Params, Error> {
    let body = context.request.json();
    check_again_if_late(context, user)?;
    body
}

/// Looks the user of a request up again if that was done more than a second ago, because the body took that long.
/// Otherwise whoever keeps a request open could finish it after the owner of the account has ended the session. Must
/// come between the last byte of the body and the first change. Fails as [`authenticate`] and
/// [`SignedIn::require_admin`] do, but not because the token or its session has expired.
pub fn check_again_if_late(context: &RequestContext, user: &SignedIn) -> Result<(), Error> {
    match user.authenticated_at.elapsed() > MAX_AGE {
        true => check_again(context, user),
        false => Ok(()),
    }
}

/// Waits for the turn of a search by this user, or of whatever else may take the database as long, and then does as
/// [`check_again_if_late`]; `of_all` if what all users have published is searched.
pub fn search_turn(
    context: &RequestContext,
    user: &SignedIn,
    of_all: bool,
) -> Result<SearchPermits, Error> {
    let (network, timeout) = (context.limited_network(), context.app.config.database_timeout);
    let permits = context.app.permits.search(user.id(), network, of_all, timeout)?;
    check_again_if_late(context, user).map(|()| permits)
}

/// Looks the user of a request up again, see [`check_again_if_late`].
pub fn check_again(context: &RequestContext, user: &SignedIn) -> Result<(), Error> {
    user.check_again(context.app, &context.db, context.needs_admin)
}

/// Returns a function that looks the sender of a request up again, as [`check_again_if_late`] does, and that a response
/// can call while it is being sent. A request without a user has nobody to look up.
pub fn sender_check(
    context: &RequestContext,
    user: Exporter,
) -> impl Fn() -> Result<(), Error> + Send + use<> {
    let (app, user, needs_admin) = (context.app.clone(), user.cloned(), context.needs_admin);
    let (client, id) = (context.client, context.id);
    move || match &user {
        Some(user) => user.check_again(&app, &app.db.for_request(client, id), needs_admin),
        None => Ok(()),
    }
}

/// Who may export users.
#[derive(Clone, Copy, PartialEq)]
pub enum Exporters {
    Anyone,
    Users,
    Admins,
}

/// The user who exports, if there is one.
pub type Exporter<'a> = Option<&'a SignedIn>;

/// Returns who may export. The answer is [`Exporters::Anyone`] if the request has no `Authorization`, the settings ask
/// for neither key nor administrator, authentication is on, and either anonymous exports are allowed or a development
/// service is called from its own host by no foreign page.
pub fn exporters(context: &RequestContext) -> Exporters {
    let (config, request) = (&context.app.config, &context.request);
    if config.export_require_admin {
        return Exporters::Admins;
    }
    let is_development = config.environment == Environment::Development;
    let is_local = || request.is_local() && request.is_from_trusted_page(&config.cors_origins);
    let is_open = config.allow_anonymous_export || is_development && is_local();
    let has_token = request.header("Authorization").is_some();
    match is_open && config.auth_enabled && !config.api_key_enabled && !has_token {
        true => Exporters::Anyone,
        false => Exporters::Users,
    }
}

/// The refresh token in the body, which is JSON or an HTML form and may call it `token`, or else the one in
/// `Authorization`. In the latter case a body that cannot be read is ignored, unless it is too long.
pub fn refresh_token(context: &mut RequestContext) -> Result<RefreshToken, Error> {
    let body = context.request.json_or_form(MAX_REFRESH_BODY);
    let in_body = body.and_then(|mut body| {
        body.alias("refresh_token", "token");
        body.read(|body| body.optional("refresh_token", rules::token))
    });
    let claims = match in_body {
        Ok(Some(token)) => context.app.verify_token(&token, TokenType::Refresh)?,
        // The body was parsed, but its field is not a string.
        Err(Error::Invalid(errors)) if errors.iter().all(|error| error.field.is_some()) => {
            return Err(Error::Invalid(errors));
        }
        Err(error @ Error::BodyTooLarge(_)) => return Err(error),
        no_token => {
            let in_header = context.request.bearer_token().map_err(|error| match error {
                Error::AuthenticationRequired => Error::RefreshTokenRequired,
                other => other,
            });
            let token = in_header.map_err(|missing| no_token.err().unwrap_or(missing))?;
            context.app.verify_token(token, TokenType::Refresh)?
        }
    };
    let ids = claims.session.zip(claims.id);
    let (session, id) = ids.ok_or(Error::InvalidToken(TokenProblem::NotOurs))?;
    Ok(RefreshToken { user: claims.user, session, id })
}

/// The ids in a refresh token whose signature and expiry are valid. Only the database knows whether the token may still
/// be used.
pub struct RefreshToken {
    pub user: Uuid,
    pub session: Uuid,
    /// The id of the token itself.
    pub id: Uuid,
}

/// Proof that a request comes from a signed-in user, by any credential. Only this module can make one.
#[derive(Clone)]
pub struct SignedIn {
    pub account: User,
    pub credential: Credential,
    /// The version of the user's credentials when the request was authenticated. `None` for the development admin, who
    /// has no credentials.
    pub credentials_version: Option<i32>,
    /// Private, so that no other module can make a value of this type.
    authenticated_at: Instant,
}

/// The credential that authenticated a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// A token that comes from this sign-in.
    AccessToken(SignIn),
    PersonalToken(TokenScope, TokenHash),
    /// Authentication is switched off: the user is the development admin.
    Nothing,
}

impl SignedIn {
    fn new(account: User, credential: Credential, credentials_version: Option<i32>) -> SignedIn {
        SignedIn { account, credential, credentials_version, authenticated_at: Instant::now() }
    }

    /// The user of an access token, looked up together with its session in one round trip, and in two if the token is
    /// refused. The role is the one in the token. That is safe, because the sessions of an account end when its role
    /// changes. `age` is how long ago the token was looked up first: what has only expired since is accepted.
    fn from_access_token(
        app: &App,
        db: &Database,
        user: Uuid,
        role: Role,
        sign_in: SignIn,
        age: Duration,
    ) -> Result<SignedIn, Error> {
        let max_age = app.config.session_max_age;
        let (account, version) = app.sessions.authenticate(db, user, sign_in, max_age, age)?;
        let account = User { role, ..account };
        Ok(SignedIn::new(account, Credential::AccessToken(sign_in), Some(version)))
    }

    /// The user of the personal access token with this hash, looked up in one round trip. The role is the one that the
    /// account has now. `age` as above.
    fn from_personal_token(db: &Database, hash: TokenHash, age: Duration) -> Result<Self, Error> {
        let (account, scope, version) = personal_token::authenticate(db, &hash, age)?;
        Ok(SignedIn::new(account, Credential::PersonalToken(scope, hash), Some(version)))
    }

    /// Looks the user up again, see [`check_again_if_late`].
    fn check_again(&self, app: &App, db: &Database, needs_admin: bool) -> Result<(), Error> {
        let (id, role, age) = (self.id(), self.account.role, self.authenticated_at.elapsed());
        let user = match self.credential {
            Credential::AccessToken(sign_in) => {
                SignedIn::from_access_token(app, db, id, role, sign_in, age)?
            }
            Credential::PersonalToken(_, hash) => SignedIn::from_personal_token(db, hash, age)?,
            Credential::Nothing => return Ok(()),
        };
        if needs_admin { user.require_admin(&app.config).map(drop) } else { Ok(()) }
    }

    /// The user of every request while authentication is switched off.
    fn development_admin(db: &Database) -> Result<SignedIn, Error> {
        Ok(SignedIn::new(development_admin(db)?, Credential::Nothing, None))
    }

    pub fn id(&self) -> Uuid {
        self.account.id
    }

    /// The session that the request belongs to, if any.
    pub fn session(&self) -> Option<Uuid> {
        self.sign_in().and_then(|sign_in| sign_in.session)
    }

    /// The sign-in that the access token of the request comes from, for changes that must not happen once it has ended.
    pub fn sign_in(&self) -> Option<SignIn> {
        match self.credential {
            Credential::AccessToken(sign_in) => Some(sign_in),
            Credential::PersonalToken(..) | Credential::Nothing => None,
        }
    }

    /// Proof that the request has no personal access token. Fails with [`Error::NotPermitted`].
    pub fn require_session(&self) -> Result<CurrentUser<'_>, Error> {
        let refusal = Error::NotPermitted(Forbidden::PersonalToken);
        (!self.has_personal_token()).then_some(CurrentUser(self)).ok_or(refusal)
    }

    /// Whether the request has a personal access token.
    pub fn has_personal_token(&self) -> bool {
        matches!(self.credential, Credential::PersonalToken(..))
    }

    /// Fails with [`Error::NotPermitted`] for the development admin, whose account and password cannot be changed.
    pub fn require_changeable(&self) -> Result<(), Error> {
        match self.credential {
            Credential::Nothing => Err(Error::NotPermitted(Forbidden::DevelopmentAdmin)),
            Credential::AccessToken(_) | Credential::PersonalToken(..) => Ok(()),
        }
    }

    /// Proof that this user is an administrator, with a second factor if the settings ask for that. The development
    /// admin needs none. Fails with [`Error::AdminRequired`] or [`Error::AdminSecondFactorRequired`].
    pub fn require_admin(&self, config: &Config) -> Result<SignedInAdmin<'_>, Error> {
        let needs_second_factor = config.admin_second_factor == AdminSecondFactor::Required
            && self.credential != Credential::Nothing;
        match self.account.role {
            Role::User => Err(Error::AdminRequired),
            Role::Admin if needs_second_factor && !self.account.second_factor => {
                Err(Error::AdminSecondFactorRequired)
            }
            Role::Admin => Ok(SignedInAdmin(self)),
        }
    }
}

/// Id of the development admin. Of version 8, which leaves the value to the application (RFC 9562, section 5.8).
const DEVELOPMENT_ADMIN: Uuid = Uuid::from_u128(0x0dea_d000_0000_8000_8000_0000_0000_0001);

/// Returns the development admin, the account of every request while authentication is off. Creates it if it is
/// missing, as after all accounts were deleted for a test.
fn development_admin(db: &Database) -> Result<User, Error> {
    match db.read(sql!("request/find_development_admin"), &[&DEVELOPMENT_ADMIN])?.first() {
        Some(row) => Ok(user_from_row(row)),
        None => {
            let row = one_row(
                db.write(sql!("request/ensure_development_admin"), &[&DEVELOPMENT_ADMIN])?,
            )?;
            Ok(user_from_row(&row))
        }
    }
}

/// Proof that a request comes from a signed-in user, and not by a personal access token. Handlers take this one unless
/// they are for scripts too: whoever steals a token can then neither take over the account nor make another token that
/// outlives this one.
pub struct CurrentUser<'a>(&'a SignedIn);

impl Deref for CurrentUser<'_> {
    type Target = SignedIn;

    fn deref(&self) -> &SignedIn {
        self.0
    }
}

impl<'a> CurrentUser<'a> {
    /// As [`SignedIn::require_admin`].
    pub fn require_admin(self, config: &Config) -> Result<Admin<'a>, Error> {
        self.0.require_admin(config).map(Admin)
    }
}

/// Proof that a request comes from an administrator, by any credential. A handler that takes one cannot be reached by
/// anyone else.
pub struct SignedInAdmin<'a>(&'a SignedIn);

impl SignedInAdmin<'_> {
    pub fn user(&self) -> &SignedIn {
        self.0
    }

    /// Whether the request has a personal access token. With one, no administrator can be made, changed or deleted:
    /// otherwise whoever steals it could make an account for themselves that outlives the token.
    pub fn has_personal_token(&self) -> bool {
        self.0.has_personal_token()
    }

    /// As [`SignedIn::require_session`], with a message for administrators.
    pub fn require_session(&self) -> Result<CurrentUser<'_>, Error> {
        let refusal = |_| Error::NotPermitted(Forbidden::AdminByPersonalToken);
        self.0.require_session().map_err(refusal)
    }
}

/// Proof that a request comes from an administrator, and not only by a personal access token, see [`CurrentUser`].
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "its user is asked by extras"))]
pub struct Admin<'a>(SignedInAdmin<'a>);

#[cfg(feature = "extras")]
impl Admin<'_> {
    pub fn user(&self) -> &SignedIn {
        self.0.user()
    }
}
