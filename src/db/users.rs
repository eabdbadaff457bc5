//! Table `users`.

use postgres::Row;
use postgres::types::Type;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Database, pattern, sql};
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

/// What an admin says about an account; in a change, what is absent stays.
#[derive(Default)]
pub struct Description {
    /// Username.
    pub username: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Role.
    pub role: Option<Role>,
    /// Permissions.
    pub permissions: Option<Vec<String>>,
    /// Whether it may sign in.
    pub is_active: Option<bool>,
    /// PHC string.
    pub password_hash: Option<String>,
    /// Creation; only for a new account.
    pub created_at: Option<Timestamp>,
    /// Last login; only for a new account.
    pub last_login: Option<Timestamp>,
}

/// Makes an account. Fails with [`Error::Taken`].
pub fn insert_by_admin(db: &Database, account: &Description) -> Result<User, Error> {
    let rows = db.write(
        sql!("users/insert_by_admin"),
        &[
            &Uuid::new_v4(),
            &account.username,
            &account.email,
            &account.name,
            &account.password_hash,
            &account.role.map(Role::name),
            &account.permissions,
            &account.is_active,
            &account.created_at.map(|at| at.0),
            &account.last_login.map(|at| at.0),
        ],
    )?;
    rows.first().map(from_row).ok_or_else(|| Error::Internal("the account was not stored".into()))
}

/// The account. Fails with [`Error::UserNotFound`].
pub fn find(db: &Database, id: Uuid) -> Result<User, Error> {
    let rows = db.read(sql!("users/find"), &[&id])?;
    rows.first().map(from_row).ok_or(Error::UserNotFound)
}

/// Changes what is described. Another role, activity or password ends the account's sessions. Fails
/// with [`Error::UserNotFound`], [`Error::Taken`] or [`Error::LastAdmin`].
pub fn update_by_admin(db: &Database, id: Uuid, change: &Description) -> Result<User, Error> {
    let rows = db.write(
        sql!("users/update_by_admin"),
        &[
            &id,
            &change.username,
            &change.email,
            &change.name,
            &change.role.map(Role::name),
            &change.permissions,
            &change.is_active,
            &change.password_hash,
        ],
    )?;
    rows.first().map(from_row).ok_or(Error::UserNotFound)
}

/// Deletes the account, its sessions and the records of its files. Gives the ids of the files. Fails with [`Error::UserNotFound`] or [`Error::LastAdmin`].
pub fn delete(db: &Database, id: Uuid) -> Result<Vec<Uuid>, Error> {
    let rows = db.write(sql!("users/delete"), &[&id])?;
    rows.first().map(|row| row.get(0)).ok_or(Error::UserNotFound)
}

/// The number of accounts.
pub fn count(db: &Database) -> Result<i64, Error> {
    let rows = db.read(sql!("users/count"), &[])?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| Error::Internal("count gave no row".into()))
}

/// Removes every account, for tests. Gives their number, and the ids of their files.
pub fn delete_all(db: &Database) -> Result<(i64, Vec<Uuid>), Error> {
    let rows = db.write(sql!("users/delete_all"), &[])?;
    rows.first()
        .map(|row| (row.get(0), row.get(1)))
        .ok_or_else(|| Error::Internal("nothing was deleted".into()))
}

/// An order of the list; ties are in the order of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// Creation.
    CreatedAt,
    /// Display name, without regard to case.
    Name,
    /// E-mail address, without regard to case.
    Email,
}

/// Which accounts are listed. Texts are parts to look for, without regard to case.
#[derive(Default)]
pub struct Filter {
    /// In the e-mail address.
    pub email: Option<String>,
    /// In the display name.
    pub name: Option<String>,
    /// In the username or the e-mail address.
    pub search: Option<String>,
    /// Of that role.
    pub role: Option<Role>,
    /// Active or not.
    pub is_active: Option<bool>,
    /// Made then or later.
    pub created_after: Option<Timestamp>,
    /// Made then or before.
    pub created_before: Option<Timestamp>,
}

/// At most `limit` accounts that match after the first `offset` of them, and how many match in all.
pub fn list(
    db: &Database,
    filter: &Filter,
    sort_by: SortBy,
    descending: bool,
    limit: i64,
    offset: i64,
) -> Result<(Vec<User>, i64), Error> {
    let contains = |part: &Option<String>| part.as_ref().map(|part| pattern(part, None));
    let time = |at: Option<Timestamp>| -> Option<OffsetDateTime> { at.map(|at| at.0) };
    let order = match (sort_by, descending) {
        (SortBy::CreatedAt, false) => "created_at asc",
        (SortBy::CreatedAt, true) => "created_at desc",
        (SortBy::Name, false) => "name asc",
        (SortBy::Name, true) => "name desc",
        (SortBy::Email, false) => "email asc",
        (SortBy::Email, true) => "email desc",
    };
    let rows = db.read_planned(
        sql!("users/list"),
        &[
            (&contains(&filter.email), Type::TEXT),
            (&contains(&filter.name), Type::TEXT),
            (&contains(&filter.search), Type::TEXT),
            (&filter.role.map(Role::name), Type::TEXT),
            (&filter.is_active, Type::BOOL),
            (&time(filter.created_after), Type::TIMESTAMPTZ),
            (&time(filter.created_before), Type::TIMESTAMPTZ),
            (&order, Type::TEXT),
            (&limit, Type::INT8),
            (&offset, Type::INT8),
        ],
        None,
    )?;
    let total = rows.first().map_or(0, |row| row.get(12));
    // A page past the end is one row with the total alone.
    let found = rows.iter().filter(|row| row.get::<_, Option<Uuid>>(0).is_some());
    Ok((found.map(from_row).collect(), total))
}
