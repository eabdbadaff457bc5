//! Who a request comes from. The values of this module prove it: they can be made nowhere else.

use crate::app::{App, Call, unix_time};
use crate::error::Error;
use crate::model::user::{Role, User};
use crate::security::jwt::{Claims, Kind};
use crate::store;
use uuid::Uuid;

/// The signed-in user of a request.
pub struct Caller {
    user: User,
    session: Option<Uuid>,
}

impl Caller {
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

impl Caller {
    /// The proof, where the role of the request is `admin`.
    pub fn admin(&self) -> Result<Admin, Error> {
        match self.user.role {
            Role::Admin => Ok(Admin(())),
            Role::User => Err(Error::AdminRequired),
        }
    }
}

/// Authenticates by the access token in `Authorization`, in one round trip to the database.
pub fn authenticate(call: &Call) -> Result<Caller, Error> {
    if !call.app.config.auth_enabled {
        return Ok(Caller { user: store::users::development_admin(&call.app.db)?, session: None });
    }
    let token = bearer(call.request.header("Authorization"))?;
    let claims = claims(call.app, token, Kind::Access)?;
    let user =
        store::sessions::authenticate(&call.app.db, claims.user, claims.session, claims.issued_at)?;
    Ok(Caller { user: User { role: claims.role, ..user }, session: claims.session })
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
