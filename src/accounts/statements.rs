//! Table `users`. Unless a function says otherwise, it leaves out deleted accounts, which are rows without personal
//! data, and the development admin, which stands for no person.

use std::net::IpAddr;

use postgres::types::{Json, Type};
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::db::{Database, SqlParams, TypedParam, from_row, one_row, sql, user_from_row};
use crate::error::{Error, TokenProblem};
use crate::model::identity::Identity;
use crate::model::page::PageRequest;
use crate::model::text::email_key;
use crate::model::timestamp::Timestamp;
use crate::model::user::{Role, SignIn, User};

/// Finds an account by id. Fails with [`Error::UserNotFound`].
pub fn find(db: &Database, id: Uuid) -> Result<User, Error> {
    db.read(sql!("accounts/find"), &[&id])?.first().map(user_from_row).ok_or(Error::UserNotFound)
}

/// What a password or an identity of an account is compared with.
pub struct Credentials {
    /// A PHC string. The development admin has none.
    pub password_hash: Option<String>,
    identity_issuer: Option<String>,
    identity_subject: Option<String>,
    pub version: i32,
    /// The client's network, an IPv4 /24 or an IPv6 /48 as CIDR, if the account has signed in from there within the
    /// last 30 days.
    #[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "confirmations read it"))]
    pub known_network: Option<String>,
}

impl Credentials {
    /// Whether the account has this identity, and its owner has just proven it.
    pub fn is_proven_by(&self, identity: &Identity) -> bool {
        let Identity { issuer, subject, is_fresh, .. } = identity;
        let own = (self.identity_issuer.as_ref(), self.identity_subject.as_ref());
        *is_fresh && own == (Some(issuer), Some(subject))
    }
}

/// Finds the credentials of an account for a client with this address.
pub fn find_credentials(
    db: &Database,
    id: Uuid,
    client: IpAddr,
) -> Result<Option<Credentials>, Error> {
    let rows = db.read(sql!("accounts/find_credentials"), &[&id, &client])?;
    Ok(rows.first().map(|row| {
        from_row!(row => Credentials {
            password_hash, identity_issuer, identity_subject, known_network; version: row.get("credentials_version")
        })
    }))
}

/// Values for the columns of an account, by their names. For `None`, [`insert`] uses the column's default, and
/// [`update_by_admin`] keeps the present value.
#[derive(Debug, Default, Serialize)]
pub struct AccountFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// E-mail address; has no default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Display name; an empty one is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// Whether the account may sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// A PHC string; has no default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    /// Only for a new account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Only for a new account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_login: Option<Timestamp>,
    /// The most bytes that the user may have; `Some(None)` is the default of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_quota: Option<Option<i64>>,
    /// The most files, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_quota: Option<Option<i64>>,
    /// Whether the owner of a new account gets a mail with a link to set its password.
    #[serde(skip)]
    pub is_invited: bool,
    /// The id of a new account whose owner has confirmed its registration. Another one gets a new id.
    #[serde(skip)]
    pub registration: Option<Uuid>,
}

/// Creates an account, which registers itself if the change has no actor. Fails with [`Error::Taken`], with
/// [`Error::InvalidToken`] if `sign_in` of the actor has ended, or with [`Error::InvalidConfirmationToken`] if the
/// registration has been confirmed before, or another account has its address.
pub fn insert(
    db: &Database,
    account: &AccountFields,
    sign_in: Option<SignIn>,
) -> Result<User, Error> {
    let (session, issued_at) = sign_in.map(SignIn::params).unzip();
    let rows = db.write(
        sql!("accounts/insert"),
        &[
            &account.registration.unwrap_or_else(Uuid::new_v4),
            &Json(account),
            &account.email.as_deref().map(email_key),
            &db.actor,
            &db.address,
            &db.request_id,
            &account.is_invited,
            &account.registration.is_some(),
            &issued_at,
            &session.flatten(),
        ],
    )?;
    rows.first().map(user_from_row).ok_or(match account.registration {
        Some(_) => Error::InvalidConfirmationToken,
        None => Error::InvalidToken(TokenProblem::SessionEnded),
    })
}

/// Conditions that an account must still meet when it is changed or deleted.
pub struct ChangeConditions {
    /// The version of its credentials, if a password was checked against them.
    pub version: Option<i32>,
    /// Whether it must not be an administrator's.
    pub spares_admins: bool,
}

/// Changes an account as an administrator asks. Another role, password or `is_active` ends the account's sessions.
/// Returns `None` if there is no such account, if it does not meet the conditions, or if `sign_in` of the administrator
/// has ended. Fails with [`Error::Taken`] or [`Error::LastAdmin`].
pub fn update_by_admin(
    db: &Database,
    id: Uuid,
    changes: &AccountFields,
    conditions: &ChangeConditions,
    sign_in: Option<SignIn>,
) -> Result<Option<User>, Error> {
    let (session, issued_at) = sign_in.map(SignIn::params).unzip();
    let rows = db.write(
        sql!("accounts/update_by_admin"),
        &[
            &id,
            &Json(changes),
            &changes.email.as_deref().map(email_key),
            &conditions.version,
            &conditions.spares_admins,
            &session.flatten(),
            &issued_at,
            &db.actor,
            &db.address,
            &db.request_id,
        ],
    )?;
    Ok(rows.first().map(user_from_row))
}

/// The fields that users may change of their own account; `None` keeps a value.
#[derive(Default)]
pub struct ProfileChange {
    pub username: Option<String>,
    pub email: Option<String>,
    /// If another address must be confirmed before it counts, the sealed token of the mail to it.
    pub sealed_token: Option<Vec<u8>>,
    /// Display name; an empty one is none.
    pub name: Option<String>,
}

/// Changes a user's own account, and returns it with whether another address waits until it is confirmed. Returns
/// `None` if the account was deleted meanwhile, if `sign_in` has ended or, if a `version` is given, its credentials are
/// at another one. Fails with [`Error::Taken`], or with [`Error::RateLimited`] if the account has asked for too many
/// addresses.
pub fn update_profile(
    db: &Database,
    id: Uuid,
    change: &ProfileChange,
    version: Option<i32>,
    sign_in: Option<SignIn>,
) -> Result<Option<(User, bool)>, Error> {
    let ProfileChange { username, email, sealed_token, name } = change;
    let email_key = email.as_deref().map(email_key);
    let (session, issued_at) = sign_in.map(SignIn::params).unzip();
    let rows = db.write(
        sql!("accounts/update_profile"),
        &[
            &id,
            username,
            email,
            name,
            &version,
            &db.address,
            &db.request_id,
            &email_key,
            &session.flatten(),
            &issued_at,
            sealed_token,
        ],
    )?;
    let Some(row) = rows.first() else { return Ok(None) };
    match row.get::<_, Option<i64>>("wait_seconds") {
        Some(wait) => Err(Error::wait(wait)),
        None => Ok(Some((user_from_row(row), row.get("waits")))),
    }
}

/// Sets a password if the credentials are still at `version`, and ends all sessions but `keep`. Returns false if
/// the credentials were changed meanwhile.
pub fn change_password(
    db: &Database,
    id: Uuid,
    version: i32,
    password_hash: &str,
    keep: Option<Uuid>,
) -> Result<bool, Error> {
    let params: SqlParams = &[&id, &version, &password_hash, &keep, &db.address, &db.request_id];
    let rows = db.write(sql!("accounts/change_password"), params)?;
    Ok(!rows.is_empty())
}

/// Deletes an account: erases its personal data, ends its sessions, and hides its files, whose records and contents are
/// removed later, see [`crate::db::contents`]. Returns false if there is no such account, or if it does not meet
/// the conditions. Fails with [`Error::LastAdmin`].
pub fn delete(db: &Database, id: Uuid, conditions: &ChangeConditions) -> Result<bool, Error> {
    let ChangeConditions { version, spares_admins } = conditions;
    let params: SqlParams = &[&id, version, &db.actor, &db.address, &db.request_id, spares_admins];
    Ok(!db.write(sql!("accounts/delete"), params)?.is_empty())
}

/// Deletes every account in the same way, for tests of clients. Returns their number.
pub fn delete_all(db: &Database) -> Result<i64, Error> {
    let rows = db.write(sql!("accounts/delete_all"), &[&db.actor, &db.address, &db.request_id])?;
    Ok(one_row(rows)?.get("accounts"))
}

/// Counts the accounts.
pub fn count(db: &Database) -> Result<i64, Error> {
    Ok(one_row(db.read(sql!("accounts/count"), &[])?)?.get("accounts"))
}

/// The columns by which a list of accounts can be sorted, of which `name` is the display name. Texts are compared
/// without regard to case. Accounts without a name, or that nobody has signed in to, come last in both orders of these.
/// Ties are in the order of ids.
pub const SORT_COLUMNS: [&str; 5] =
    ["created_at", "name", "email", "last_login", "total_storage_used"];

/// A filter for lists and exports of accounts, which must match all that is given. Texts are `LIKE` patterns, without
/// regard to case.
#[derive(Clone, Default, PartialEq)]
pub struct UserFilter {
    pub email: Option<String>,
    /// Of the display name.
    pub name: Option<String>,
    /// Of the username or the e-mail address.
    pub search: Option<String>,
    /// Of the username, the e-mail address or the display name.
    pub text: Option<String>,
    /// Only these accounts.
    pub ids: Option<Vec<Uuid>>,
    /// The name of a role.
    pub role: Option<&'static str>,
    pub is_active: Option<bool>,
    /// Created at this time or later.
    pub created_after: Option<OffsetDateTime>,
    /// Created at this time or earlier.
    pub created_before: Option<OffsetDateTime>,
}

impl UserFilter {
    /// Whether all accounts may be read, because no index helps: one of the texts has no three letters or digits in a
    /// row, so the index of trigrams does not, or there is none of the order.
    pub fn reads_all(&self, sort: &str) -> bool {
        let is_short = |text: &String| {
            !text.split(|c: char| !c.is_alphanumeric()).any(|word| word.chars().nth(2).is_some())
        };
        let mut texts = [&self.email, &self.name, &self.search, &self.text].into_iter().flatten();
        matches!(sort, "last_login" | "total_storage_used") || texts.any(is_short)
    }

    /// The parameters `$1` to `$9` of queries that filter accounts, and `more`.
    pub fn params<'a>(&'a self, more: &[TypedParam<'a>]) -> Vec<TypedParam<'a>> {
        let own: [TypedParam; 9] = [
            (&self.email, Type::TEXT),
            (&self.name, Type::TEXT),
            (&self.search, Type::TEXT),
            (&self.text, Type::TEXT),
            (&self.ids, Type::UUID_ARRAY),
            (&self.role, Type::TEXT),
            (&self.is_active, Type::BOOL),
            (&self.created_after, Type::TIMESTAMPTZ),
            (&self.created_before, Type::TIMESTAMPTZ),
        ];
        own.iter().chain(more).cloned().collect()
    }
}

/// Returns the page of the accounts that match, sorted by one of [`SORT_COLUMNS`], and how many match in all.
pub fn list(
    db: &Database,
    filter: &UserFilter,
    sort: &str,
    descending: bool,
    page: PageRequest,
) -> Result<(Vec<User>, i64), Error> {
    let order = format!("{sort} {}", if descending { "desc" } else { "asc" });
    let page: [TypedParam; 3] =
        [(&order, Type::TEXT), (&page.size, Type::INT8), (&page.offset, Type::INT8)];
    let rows = db.read_unprepared(sql!("accounts/list"), &filter.params(&page), None)?;
    let total = rows.first().map_or(0, |row| row.get("total"));
    // A page past the end is one row that holds only the total.
    let found = rows.iter().filter(|row| row.get::<_, Option<Uuid>>("id").is_some());
    Ok((found.map(user_from_row).collect(), total))
}
