//! `cloakroom user`: accounts, for an operator who has no administrator's token.

mod list;
mod reset_password;
mod reset_second_factor;

use std::net::{IpAddr, Ipv4Addr};

use super::database::{self, schema::check_schema};
use crate::arguments::tools::UserCommand;
use crate::config::{Config, UsedSettings};
use crate::db::{Database, users};
use crate::error::Error;
use crate::model::user::User;
use crate::serve::{CommandError, start};

/// Runs a command with the settings that it uses.
pub fn run(command: UserCommand) -> Result<(), CommandError> {
    match command {
        UserCommand::List { search } => {
            list::list(&open(&start(UsedSettings::Installation)?)?, search.as_deref())?;
        }
        UserCommand::ResetSecondFactor { user } => {
            let db = open(&start(UsedSettings::Installation)?)?;
            reset_second_factor::reset_second_factor(&db, &user)?;
        }
        UserCommand::ResetPassword { user } => {
            let config = start(UsedSettings::Installation)?;
            reset_password::reset_password(&config, &open(&config)?, &user)?;
        }
    }
    Ok(())
}

/// Opens the database, whose schema must be this program's. Changes nothing.
fn open(config: &Config) -> Result<Database, String> {
    let db = database::open(config)?;
    check_schema(&db)?;
    Ok(db)
}

/// Finds an account by its username, e-mail address or id, active or not. Deleted accounts and the development admin
/// are not found. On failure: what to tell the operator.
fn find(db: &Database, name: &str) -> Result<User, String> {
    // Only an id has hyphens and no "@", so a username of 32 hexadecimal digits is not taken for one.
    let id = name.parse().ok().filter(|_| name.contains('-'));
    let found = match id {
        Some(id) => match users::find(db, id) {
            Err(Error::UserNotFound) => None,
            found => Some(found?),
        },
        None => {
            // The address of the client matters only to sign-ins.
            let lookup = users::find_by_login(db, name, IpAddr::V4(Ipv4Addr::LOCALHOST))?;
            lookup.account.map(|account| account.user)
        }
    };
    found.ok_or_else(|| {
        "there is no account with this username, e-mail address or id; `cloakroom user list` shows all".to_owned()
    })
}

/// Names an account for people: its username, if it has one, and its e-mail address.
fn shown(user: &User) -> String {
    match &user.username {
        Some(username) => format!("{username} ({})", user.email),
        None => user.email.clone(),
    }
}
