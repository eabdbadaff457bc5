//! Finds accounts for sign-ins, sets passwords by reset tokens, and keeps the table `sessions`: one row for each
//! sign-in. Tokens name their session, so ending it revokes them. All sessions of a user end at once by raising the
//! user's epoch, because only sessions of that epoch are live. The row of an ended session remains until the last of
//! its tokens has expired.

use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Database, SqlParams, one_row, second_factor_from_row, sql, user_from_row};
use crate::error::{Error, TokenProblem};
use crate::model::identity::Identity;
use crate::model::rules::MAX_SESSIONS;
use crate::model::second_factor::{AcceptedCode, StoredSecondFactor};
use crate::model::text::email_key;
use crate::model::user::{LoginName, User};

/// A session to be stored, or the next state of one whose refresh token is used.
pub struct NewSession {
    pub id: Uuid,
    /// The id of the refresh token that is valid from now on.
    pub refresh_id: Uuid,
    /// The time at which its tokens are issued, which is now.
    pub issued_at: OffsetDateTime,
    /// When the last of its tokens expires.
    pub expires_at: OffsetDateTime,
    /// When it ends however often it is refreshed, if an OpenID provider has opened it.
    pub ends_at: Option<OffsetDateTime>,
    /// The cleaned value of the `User-Agent` header.
    pub user_agent: Option<String>,
}

/// An account with the values that a login checks.
pub struct LoginAccount {
    /// The account.
    pub user: User,
    /// The password hash, a PHC string. `None` if the owner has not chosen a password yet.
    pub password_hash: Option<String>,
    /// Incremented when the password, the e-mail address or `is_active` changes.
    pub version: i32,
    pub second_factor: Option<StoredSecondFactor>,
}

/// The answer to a search for the account of a login name.
pub struct LoginLookup {
    /// What a failure counts for.
    pub counted: LoginName,
    /// The client's network, an IPv4 /24 or an IPv6 /48 as CIDR, if the account has signed in from there within the
    /// last 30 days.
    pub known_network: Option<String>,
    pub account: Option<LoginAccount>,
}

/// Finds an account by its username or e-mail address, active or not, for a client with this address.
pub fn find_by_login(db: &Database, login: &str, client: IpAddr) -> Result<LoginLookup, Error> {
    let key = email_key(login);
    let row = one_row(db.read(sql!("sign_in/find_by_login"), &[&login, &client, &key])?)?;
    let account = row.get::<_, Option<Uuid>>("id").map(|_| LoginAccount {
        user: user_from_row(&row),
        password_hash: row.get("password_hash"),
        version: row.get("credentials_version"),
        second_factor: second_factor_from_row(&row).filter(|factor| factor.enabled_at.is_some()),
    });
    let counted = match &account {
        Some(account) => LoginName::OfAccount(account.user.id),
        None => LoginName::Unknown(Sha256::digest(key).to_vec()),
    };
    Ok(LoginLookup { counted, known_network: row.get("known_network"), account })
}

/// What a sign-in has checked of an account.
pub struct CheckedLogin<'a> {
    pub user: Uuid,
    /// The version of the credentials that were checked.
    pub version: i32,
    /// Replaces the stored password hash.
    pub renewed_hash: Option<&'a str>,
    /// The code of the second factor, if the account has one.
    pub code: Option<&'a AcceptedCode>,
}

/// Signs in if the account is active and its credentials are still those that were checked. A user who has a thousand
/// live sessions loses one: the first choice is one that was never refreshed and is older than `access_lifetime`, that
/// of an access token. The network of the client is remembered for [`find_by_login`]. Returns `None` if the account has
/// changed since, or if the code is not taken, for instance because it was already.
pub fn open(
    db: &Database,
    checked: &CheckedLogin,
    session: &NewSession,
    access_lifetime: Duration,
) -> Result<Option<User>, Error> {
    let (step, hash) = checked.code.map(AcceptedCode::params).unzip();
    let rows = db.write(
        sql!("sign_in/open"),
        &[
            &checked.user,
            &checked.version,
            &checked.renewed_hash,
            &session.id,
            &session.refresh_id,
            &session.expires_at,
            &db.address,
            &session.user_agent,
            &db.request_id,
            &MAX_SESSIONS,
            &access_lifetime.as_secs_f64(),
            &step.flatten(),
            &hash.flatten(),
            &session.ends_at,
        ],
    )?;
    Ok(rows.first().map(user_from_row))
}

/// Creates an account without a username and signs it in, as [`open`] does. It has a password or an identity, of which
/// the provider has confirmed the address, and with which it is told whether it may be a stranger's. Returns `None` if
/// another account has the address or the identity.
pub fn open_for_new_user(
    db: &Database,
    email: &str,
    name: Option<&str>,
    password_hash: Option<&str>,
    identity: Option<(&Identity, bool)>,
    session: &NewSession,
) -> Result<Option<User>, Error> {
    let rows = db.write(
        sql!("sign_in/insert_with_session"),
        &[
            &Uuid::new_v4(),
            &email,
            &name,
            &password_hash,
            &session.id,
            &session.refresh_id,
            &session.expires_at,
            &db.address,
            &session.user_agent,
            &db.request_id,
            &email_key(email),
            &identity.map(|(identity, _)| &identity.issuer),
            &identity.map(|(identity, _)| &identity.subject),
            &session.ends_at,
            &identity.is_none_or(|(_, is_stranger)| is_stranger),
        ],
    )?;
    Ok(rows.first().map(user_from_row))
}

/// Uses refresh token `refresh_id` of the session `next.id`, in one statement. Returns the user and the session's state
/// now: it is `next`, or, if the token was replaced less than `grace` ago, it has the refresh token that replaced
/// it, and it never expires later than `max_age` after the sign-in. A later use ends the session, because somebody has
/// copied the token. Fails with [`Error::UserNotUsable`], else with [`Error::InvalidToken`].
pub fn rotate(
    db: &Database,
    user: Uuid,
    refresh_id: Uuid,
    next: NewSession,
    grace: Duration,
    max_age: Duration,
) -> Result<(User, NewSession), Error> {
    let rows = db.write(
        sql!("sign_in/rotate"),
        &[
            &user,
            &next.id,
            &refresh_id,
            &next.refresh_id,
            &next.expires_at,
            &grace.as_secs_f64(),
            &max_age.as_secs_f64(),
            &db.address,
            &next.user_agent,
            &db.request_id,
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    if row.get("was_reused") {
        log::warn!("a refresh token of user {user} was used again: session {} ended", next.id);
    }
    let refresh_id: Option<Uuid> = row.get("refresh_id");
    let refresh_id = refresh_id.ok_or(Error::InvalidToken(TokenProblem::SessionEnded))?;
    Ok((user_from_row(row), NewSession { refresh_id, expires_at: row.get("expires_at"), ..next }))
}

/// The sessions of a user that a logout ends, seen from the session of the request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutScope {
    All,
    /// Only the request's.
    Local,
    /// All but the request's.
    Others,
}

/// Ends sessions of `user`. `current` is the session of the request's token.
pub fn end(
    db: &Database,
    user: Uuid,
    current: Option<Uuid>,
    scope: LogoutScope,
) -> Result<(), Error> {
    let (keep, name) = match scope {
        LogoutScope::All => (None, "all"),
        LogoutScope::Others => (current, "others"),
        LogoutScope::Local => {
            let params: SqlParams = &[&user, &current, &db.address, &db.request_id];
            return db.write(sql!("sign_in/end_one"), params).map(drop);
        }
    };
    // Tokens without a session cannot be told apart, so they stay if the request's is one of them, and may stay.
    let ends_others = scope == LogoutScope::All || current.is_some();
    let params: SqlParams = &[&user, &keep, &ends_others, &db.address, &db.request_id, &name];
    db.write(sql!("sign_in/end_all"), params).map(drop)
}

/// Marks up to `limit` sessions that ended with others as ended, so that their rows keep no personal data. Returns 0 if
/// nothing is left.
pub fn end_epoch(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("sign_in/end_epoch"), &[&limit])?)?.get("changed"))
}

/// The use of a reset token for a new password, or for an identity.
pub struct ResetTokenUse<'a> {
    pub user: Uuid,
    /// The credentials version the token was made for.
    pub version: i32,
    /// The hash of the new password, a PHC string.
    pub password_hash: Option<&'a str>,
    /// The identity that the account has from now on, in place of a password.
    pub identity: Option<&'a Identity>,
    /// SHA-256 of the token, hexadecimal.
    pub token_hash: &'a str,
    /// When the token expires. From then on the record of its use may be removed.
    pub expires_at: OffsetDateTime,
}

/// Sets the password or the identity, which ends the other one, and ends all sessions. Fails with
/// [`Error::IdentityInUse`]. Returns false if the token was used before, if the password, the e-mail address or
/// `is_active` has changed since it was made, or if the account is not active.
pub fn reset_password(db: &Database, used: &ResetTokenUse) -> Result<bool, Error> {
    let outcome = db.write(
        sql!("sign_in/reset_password"),
        &[
            &used.user,
            &used.version,
            &used.password_hash,
            &Uuid::new_v4(),
            &used.token_hash,
            &used.expires_at,
            &db.address,
            &db.request_id,
            &used.identity.map(|identity| &identity.issuer),
            &used.identity.map(|identity| &identity.subject),
            &used.identity.and_then(|identity| identity.email.as_ref()),
        ],
    );
    match outcome {
        Err(Error::Taken(_)) => Ok(false),
        outcome => Ok(!outcome?.is_empty()),
    }
}
