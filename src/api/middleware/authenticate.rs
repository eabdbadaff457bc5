//! Who a request comes from. The values of this module prove it: they can be made nowhere else.

use crate::api::context::{App, RequestContext};
use crate::auth::jwt::{Claims, Kind};
use crate::db;
use crate::error::Error;
use crate::model::timestamp::unix_time;
use crate::model::user::{Role, User};
use uuid::Uuid;

/// The signed-in user of a request.
pub struct CurrentUser {
    user: User,
    session: Option<Uuid>,
}

impl CurrentUser {
    /// The account. Its role is the token's (contract, 6).
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The session of the presented token; tokens made elsewhere may have none.
    pub fn session(&self) -> Option<Uuid> {
        self.session
    }
}

/// Proof that a request comes from an administrator.
pub struct Admin(());

impl CurrentUser {
    /// The proof, where the role of the request is `admin`.
    pub fn admin(&self) -> Result<Admin, Error> {
        match self.user.role {
            Role::Admin => Ok(Admin(())),
            Role::User => Err(Error::AdminRequired),
        }
    }
}

/// Authenticates by the access token in `Authorization`, in one round trip to the database.
pub fn authenticate(context: &RequestContext) -> Result<CurrentUser, Error> {
    if !context.app.config.auth_enabled {
        return Ok(CurrentUser {
            user: db::users::development_admin(&context.app.db)?,
            session: None,
        });
    }
    let token = bearer(context.request.header("Authorization"))?;
    let claims = claims(context.app, token, Kind::Access)?;
    let user =
        db::sessions::authenticate(&context.app.db, claims.user, claims.session, claims.issued_at)?;
    Ok(CurrentUser { user: User { role: claims.role, ..user }, session: claims.session })
}

/// The token of an `Authorization` header (RFC 6750, 2.1).
pub fn bearer(header: Option<&str>) -> Result<&str, Error> {
    let mut words = header.unwrap_or_default().split_whitespace();
    let scheme = words.next().ok_or(Error::AuthenticationRequired)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Error::InvalidScheme);
    }
    match (words.next(), words.next()) {
        (Some(token), None) => Ok(token),
        _ => Err(Error::InvalidAuthorization),
    }
}

/// The claims of a good token of that kind.
pub fn claims(app: &App, token: &str, kind: Kind) -> Result<Claims, Error> {
    let claims = app.key.verify(token, unix_time().as_secs());
    claims.filter(|claims| claims.kind == kind).ok_or(Error::InvalidToken)
}
