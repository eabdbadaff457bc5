//! `cloakroom create-admin`: makes the first administrator, or sets the password of an administrator who has lost it.

use std::io::{self, BufRead, IsTerminal};

use uuid::Uuid;

use super::environment::admin_password;
use crate::auth::{password, random_bytes};
use crate::config::Config;
use crate::db::{self, one_row, sql};
use crate::error::Problem;
use crate::model::rules;

/// Creates an account with the role `admin`. If there is an account with this e-mail address, it gets the role and the
/// password instead: it becomes active, keeps its username, and its sessions end.
pub fn create_admin(config: &Config, email: &str, username: Option<&str>) -> Result<(), String> {
    let refuse =
        |name: &'static str| move |problem: Problem| format!("{name}: {}", problem.message);
    let email = rules::email(email).map_err(refuse("email"))?;
    let username = username.map(rules::username).transpose().map_err(refuse("username"))?;
    let password = match admin_password() {
        Some(password) => password,
        None => ask_for_password(&email)?,
    };
    let password = rules::password(&password).map_err(refuse("password"))?;
    let db = db::open_and_migrate(config)?;
    let salt = random_bytes()?;
    let hash = password::hash(&password, salt, config.scrypt)?;
    let (id, email_in_ascii) = (Uuid::new_v4(), rules::email_in_ascii(&email));
    // Fails if the username of a new account is taken.
    let rows =
        db.write(sql!("users/upsert_admin"), &[&id, &username, &email, &hash, &email_in_ascii])?;
    let row = one_row(rows)?;
    let username: Option<&str> = row.get("username");
    let outcome =
        if row.get("is_new") { "created" } else { "is an active admin now, with this password" };
    println!("Admin {email} {outcome}; username: {}.", username.unwrap_or("none"));
    Ok(())
}

/// The password that is typed or piped. On failure: what to tell the operator.
fn ask_for_password(email: &str) -> Result<String, String> {
    let is_typed = io::stdin().is_terminal();
    let password = if is_typed { type_twice(email) } else { read_line() };
    let password = password.map_err(|e| format!("password: {e}"))?;
    if password.is_empty() {
        return Err("no password given: type one, pipe one, or set CLOAKROOM_ADMIN_PASSWORD".into());
    }
    Ok(password)
}

/// Asks twice on the terminal, which does not show what is typed.
fn type_twice(email: &str) -> io::Result<String> {
    let password = rpassword::prompt_password(format!("Password for {email}: "))?;
    if !password.is_empty() && rpassword::prompt_password("The same again: ")? != password {
        return Err(io::Error::other("the two differ, and nothing was changed"));
    }
    Ok(password)
}

/// The first line of standard input without its line end. Blanks stay, because they may be a part of the password.
fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
