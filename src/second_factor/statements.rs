//! The second factors of accounts, which are columns of `users`: a sign-in decides in the one statement that locks the
//! row whether a code is taken. Secrets are sealed by keys that the database does not have.

use std::net::IpAddr;
use std::time::Duration;

use postgres::Client;
use postgres::types::Type;
use uuid::Uuid;

use crate::db::{Database, SqlParams, second_factor_from_row, sql};
use crate::error::{Error, TokenProblem};
use crate::model::second_factor::{AcceptedCode, StoredSecondFactor};

/// The second factor of a user, or the one that is offered or was lately, for a client with this address.
pub fn find(
    db: &Database,
    user: Uuid,
    client: IpAddr,
) -> Result<Option<StoredSecondFactor>, Error> {
    let rows = db.read(sql!("second_factor/find"), &[&user, &client])?;
    Ok(rows.first().and_then(|row| {
        let is_pending = row.get::<_, Option<_>>("is_pending").unwrap_or_default();
        Some(StoredSecondFactor { is_pending, ..second_factor_from_row(row)? })
    }))
}

/// Offers a user the second factor with this sealed secret for the given time, in place of one that was offered before.
/// Returns false if the account has one, or if its credentials are no longer at `version`.
pub fn begin(
    db: &Database,
    user: Uuid,
    version: i32,
    sealed: &[u8],
    lifetime: Duration,
) -> Result<bool, Error> {
    let params: SqlParams = &[&user, &version, &sealed, &lifetime.as_secs_f64()];
    Ok(!db.write(sql!("second_factor/begin"), params)?.is_empty())
}

/// Switches the offered second factor with this sealed secret on, of which the code of `step` was right, and ends all
/// sessions but `keep`. `version` is that of the credentials with which the request was authenticated, and `keep` its
/// session. Returns false if the second factor is no longer offered. Fails with [`Error::InvalidToken`] if the account
/// has changed or the session has ended since.
pub fn confirm(
    db: &Database,
    (user, version): (Uuid, Option<i32>),
    sealed: &[u8],
    step: i64,
    recovery_codes: &[[u8; 32]],
    keep: Option<Uuid>,
) -> Result<bool, Error> {
    let recovery_codes: Vec<&[u8]> = recovery_codes.iter().map(|hash| hash.as_slice()).collect();
    let params: SqlParams =
        &[&user, &sealed, &step, &recovery_codes, &keep, &db.address, &db.request_id, &version];
    let rows = db.write(sql!("second_factor/confirm"), params)?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::SessionEnded))?;
    Ok(row.get("is_confirmed"))
}

/// Counts a wrong code from this client. Returns false if no code is taken from there.
pub fn count_wrong_code(db: &Database, user: Uuid, client: IpAddr) -> Result<bool, Error> {
    Ok(!db.write(sql!("second_factor/count_wrong_code"), &[&user, &client])?.is_empty())
}

/// Replaces the recovery codes by those with these hashes. Returns false if the code is not taken, or if the
/// credentials are no longer at `version`.
pub fn renew_recovery_codes(
    db: &Database,
    user: Uuid,
    version: i32,
    code: &AcceptedCode,
    recovery_codes: &[[u8; 32]],
) -> Result<bool, Error> {
    let recovery_codes: Vec<&[u8]> = recovery_codes.iter().map(|hash| hash.as_slice()).collect();
    let (step, hash) = code.params();
    let params: SqlParams =
        &[&user, &version, &db.address, &step, &hash, &recovery_codes, &db.request_id];
    Ok(!db.write(sql!("second_factor/renew_recovery_codes"), params)?.is_empty())
}

/// Takes the second factor of a user away. Returns false if the code is not taken, or if the credentials are no longer
/// at `version`.
pub fn disable(
    db: &Database,
    user: Uuid,
    version: i32,
    code: &AcceptedCode,
) -> Result<bool, Error> {
    let (step, hash) = code.params();
    let params: SqlParams = &[&user, &version, &db.address, &step, &hash, &db.request_id];
    Ok(!db.write(sql!("second_factor/disable"), params)?.is_empty())
}

/// Takes the second factor of a user away, as an administrator asks, and ends the user's sessions. Returns whether
/// there was one. Fails with [`Error::UserNotFound`].
pub fn reset(db: &Database, user: Uuid) -> Result<bool, Error> {
    let rows =
        db.write(sql!("second_factor/reset"), &[&user, &db.actor, &db.address, &db.request_id])?;
    Ok(rows.first().ok_or(Error::UserNotFound)?.get("had_one"))
}

/// Reads up to a thousand sealed secrets that do not begin with `prefix`, each with the id of its account, of accounts
/// with ids after `after`. An empty prefix leaves none out.
pub fn sealed_after(
    client: &mut Client,
    prefix: &[u8],
    after: Uuid,
) -> Result<Vec<(Uuid, Vec<u8>)>, postgres::Error> {
    let params = [(&prefix as _, Type::BYTEA), (&after as _, Type::UUID)];
    let rows = client.query_typed(sql!("second_factor/sealed"), &params)?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("second_factor_sealed"))).collect())
}

/// Sealed secrets that take the place of others: ids of accounts, what each has, and what it gets.
#[derive(Default)]
pub struct Resealed {
    pub accounts: Vec<Uuid>,
    pub before: Vec<Vec<u8>>,
    pub after: Vec<Vec<u8>>,
}

/// Replaces sealed secrets, unless they were changed meanwhile. Returns how many it replaced.
pub fn reseal(client: &mut Client, resealed: &Resealed) -> Result<i64, postgres::Error> {
    let Resealed { accounts, before, after } = resealed;
    let params = [
        (accounts as _, Type::UUID_ARRAY),
        (before as _, Type::BYTEA_ARRAY),
        (after as _, Type::BYTEA_ARRAY),
    ];
    let rows = client.query_typed(sql!("second_factor/reseal"), &params)?;
    Ok(rows.first().map_or(0, |row| row.get("changed")))
}
