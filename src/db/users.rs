//! Table `users`.

use postgres::Row;
use uuid::Uuid;

use super::{Database, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;
use crate::model::user::{Role, Stats, User};

/// An account with what a login checks.
pub struct Credentials {
    /// The account.
    pub user: User,
    /// PHC string.
    pub password_hash: String,
    /// Changes with the password and the e-mail address.
    pub version: i32,
}

/// The first twelve columns of every query that gives users.
pub(super) fn from_row(row: &Row) -> User {
    User {
        id: row.get(0),
        username: row.get(1),
        email: row.get(2),
        name: row.get(3),
        // The table's check constraint admits no other word.
        role: Role::named(row.get(4)).unwrap_or_default(),
        permissions: row.get(5),
        is_active: row.get(6),
        created_at: Timestamp(row.get(7)),
        updated_at: Timestamp(row.get(8)),
        last_login: row.get::<_, Option<_>>(9).map(Timestamp),
        stats: Stats { total_uploads: row.get(10), total_storage_used: row.get(11) },
    }
}

/// The account with that username or e-mail address.
pub fn find_by_login(db: &Database, login: &str) -> Result<Option<Credentials>, Error> {
    let rows = db.read(sql!("users/find_by_login"), &[&login])?;
    Ok(rows.first().map(|row| Credentials {
        user: from_row(row),
        password_hash: row.get(12),
        version: row.get(13),
    }))
}

/// Id and credentials version of the active account with that e-mail address.
pub fn find_by_email(db: &Database, email: &str) -> Result<Option<(Uuid, i32)>, Error> {
    let rows = db.read(sql!("users/find_by_email"), &[&email])?;
    Ok(rows.first().map(|row| (row.get(0), row.get(1))))
}

/// Password hash, absent for the development admin, and credentials version.
pub fn find_credentials(db: &Database, id: Uuid) -> Result<Option<(Option<String>, i32)>, Error> {
    let rows = db.read(sql!("users/find_credentials"), &[&id])?;
    Ok(rows.first().map(|row| (row.get(0), row.get(1))))
}

/// Registers an account. Fails with [`Error::Taken`].
pub fn insert(
    db: &Database,
    username: &str,
    email: &str,
    name: Option<&str>,
    password_hash: &str,
) -> Result<User, Error> {
    let params: super::pool::Params = &[&Uuid::new_v4(), &username, &email, &name, &password_hash];
    one(db.write(sql!("users/insert"), params)?)
}

/// Registers an account without a username and opens a session. Fails with [`Error::Taken`].
pub fn insert_with_session(
    db: &Database,
    email: &str,
    name: Option<&str>,
    password_hash: &str,
    session: &super::sessions::Opening,
) -> Result<User, Error> {
    one(db.write(
        sql!("users/insert_with_session"),
        &[
            &Uuid::new_v4(),
            &email,
            &name,
            &password_hash,
            &session.id,
            &session.refresh_id,
            &session.expires_at,
        ],
    )?)
}

/// Changes what is given. Fails with [`Error::Taken`].
pub fn update_profile(
    db: &Database,
    id: Uuid,
    username: Option<&str>,
    email: Option<&str>,
    name: Option<&str>,
) -> Result<User, Error> {
    let rows = db.write(sql!("users/update_profile"), &[&id, &username, &email, &name])?;
    rows.first().map(from_row).ok_or(Error::UserNotUsable)
}

/// Sets a password where the credentials are still at `version`, and ends all sessions but `keep`.
/// False: they were changed meanwhile.
pub fn change_password(
    db: &Database,
    id: Uuid,
    version: i32,
    password_hash: &str,
    keep: Option<Uuid>,
) -> Result<bool, Error> {
    let rows = db.write(sql!("users/change_password"), &[&id, &version, &password_hash, &keep])?;
    Ok(!rows.is_empty())
}

/// Makes an admin, or makes the account with that e-mail address one. Gives its username and whether
/// it is new. Fails with [`Error::Taken`] where a new one's username is taken.
pub fn upsert_admin(
    db: &Database,
    email: &str,
    username: Option<&str>,
    password_hash: &str,
) -> Result<(Option<String>, bool), Error> {
    let rows = db
        .write(sql!("users/upsert_admin"), &[&Uuid::new_v4(), &username, &email, &password_hash])?;
    rows.first()
        .map(|row| (row.get(0), row.get(1)))
        .ok_or_else(|| Error::Internal("the admin was not stored".into()))
}

/// Id of the development admin. Version 8: a UUID made by rules of its own (RFC 9562, 5.8).
const DEVELOPMENT_ADMIN: Uuid = Uuid::from_u128(0x0dea_d000_0000_8000_8000_0000_0000_0001);

/// The development admin, made again where it is missing.
pub fn development_admin(db: &Database) -> Result<User, Error> {
    let rows = db.read(sql!("users/find_development_admin"), &[&DEVELOPMENT_ADMIN])?;
    match rows.first() {
        Some(row) => Ok(from_row(row)),
        None => one(db.write(sql!("users/ensure_development_admin"), &[&DEVELOPMENT_ADMIN])?),
    }
}

/// The user of a query that always gives one row.
fn one(rows: Vec<Row>) -> Result<User, Error> {
    rows.first().map(from_row).ok_or_else(|| Error::Internal("a query gave no row".into()))
}
