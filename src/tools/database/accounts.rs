//! Accounts in the order of their creation, for a list of all.

use postgres::types::Type;

use crate::db::{Database, sql, users};
use crate::error::Error;
use crate::model::user::User;

/// The next thousand accounts after `last`, or the first ones; with `search` those whose username or e-mail address
/// contains it.
pub fn list_after(
    db: &Database,
    last: Option<&User>,
    search: Option<&str>,
) -> Result<Vec<User>, Error> {
    let (created_at, id) = last.map(|user| (user.created_at.0, user.id)).unzip();
    let rows = db.read_unprepared(
        sql!("users/list_after"),
        &[(&created_at, Type::TIMESTAMPTZ), (&id, Type::UUID), (&search, Type::TEXT)],
        None,
    )?;
    Ok(rows.iter().map(users::from_row).collect())
}
