//! Table `provider_sign_ins`: states that browsers have brought back, and the codes that they got for them. And
//! identities, which are columns of the table `users`.

use std::net::IpAddr;

use postgres::types::Json;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::db::{Database, SqlParams, one_row, second_factor_from_row, sql, user_from_row};
use crate::error::Error;
use crate::model::identity::Identity;
use crate::model::user::Role;
use crate::sign_in::statements::LoginAccount;

/// A hash of a state or a code, under which it is stored.
type Hash = [u8; 32];

/// What a code stands for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proven {
    pub identity: Identity,
    /// Display name.
    pub name: Option<String>,
    /// Whether it may be joined to an account: it is fresh, or the provider never tells.
    pub may_join: bool,
    /// Whether the provider says that its owner is an administrator, if it is asked.
    pub is_admin: Option<bool>,
}

/// Uses a state. Returns false if it was used before, and `None` if too many were lately.
pub fn use_state(db: &Database, state: &Hash) -> Result<Option<bool>, Error> {
    let row = one_row(db.write(sql!("provider/use_state"), &[&state.as_slice()])?)?;
    let is_full: bool = row.get("is_full");
    Ok((!is_full).then(|| row.get("is_new")))
}

/// Stores the identity that was proven with a state, under a code and with the hash of the page's secret.
pub fn store_code(
    db: &Database,
    state: &Hash,
    code: &Hash,
    challenge: &str,
    proven: &Proven,
) -> Result<(), Error> {
    let params: SqlParams = &[&state.as_slice(), &code.as_slice(), &challenge, &Json(proven)];
    db.write(sql!("provider/store_code"), params).map(drop)
}

/// Uses a code with the hash of a verifier. Returns `None` if it is not good, or does not belong to this verifier.
pub fn take_code(db: &Database, code: &Hash, challenge: &str) -> Result<Option<Proven>, Error> {
    let rows = db.write(sql!("provider/take_code"), &[&code.as_slice(), &challenge])?;
    let row = rows.first().filter(|row| row.get("is_right"));
    Ok(row.map(|row| row.get::<_, Json<Proven>>("proven").0))
}

/// Lets a code be used again, unless it was tried too often.
pub fn give_code_back(db: &Database, code: &Hash) -> Result<(), Error> {
    db.write(sql!("provider/give_code_back"), &[&code.as_slice()]).map(drop)
}

/// Finds the account of an identity, active or not, for a client with this address.
pub fn find(
    db: &Database,
    issuer: &str,
    subject: &str,
    client: IpAddr,
) -> Result<Option<LoginAccount>, Error> {
    let rows = db.read(sql!("provider/find"), &[&issuer, &subject, &client])?;
    Ok(rows.first().map(|row| LoginAccount {
        user: user_from_row(row),
        password_hash: None,
        version: row.get("credentials_version"),
        second_factor: second_factor_from_row(row).filter(|factor| factor.enabled_at.is_some()),
    }))
}

/// Joins an identity to an account whose credentials are at this version. Returns whether the account has it now, and
/// `None` if there is no such account. Fails with [`Error::IdentityInUse`].
pub fn join(
    db: &Database,
    user: Uuid,
    version: i32,
    identity: &Identity,
) -> Result<Option<bool>, Error> {
    let Identity { issuer, subject, email, .. } = identity;
    let params: SqlParams = &[&user, &version, issuer, subject, email, &db.address, &db.request_id];
    let rows = db.write(sql!("provider/join"), params)?;
    Ok(rows.first().map(|row| row.get("is_joined")))
}

/// Makes an account an administrator or takes that away, as the provider says, and ends its sessions if that changes
/// anything. The last administrator stays one.
pub fn set_role(db: &Database, account: &LoginAccount, is_admin: bool) -> Result<(), Error> {
    let role = if is_admin { Role::Admin } else { Role::User };
    let LoginAccount { user, version, .. } = account;
    let params: SqlParams = &[&user.id, &role.name(), &db.address, &db.request_id, version];
    match db.write(sql!("provider/set_role"), params) {
        Err(Error::LastAdmin) => Ok(()),
        outcome => outcome.map(drop),
    }
}
