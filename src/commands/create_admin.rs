//! `cloakroom create-admin`: makes the first administrator, or sets the password of one who has lost it.

use std::io::{self, BufRead, IsTerminal};

use crate::auth::password_hasher::PasswordHasher;
use crate::config::Config;
use crate::db;
use crate::error::Problem;
use crate::model::rules;
use crate::telemetry::logging;

/// Creates an account with the role `admin`. If there is an account with this e-mail address, it gets the role and the
/// password instead: it becomes active, keeps its username, and its sessions end.
pub fn create_admin(config: &Config, email: &str, username: Option<&str>) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let refuse =
        |name: &'static str| move |problem: Problem| format!("{name}: {}", problem.message);
    let email = rules::EMAIL.parse(email).map_err(refuse("email"))?;
    let username =
        username.map(|name| rules::USERNAME.parse(name)).transpose().map_err(refuse("username"))?;
    let password = match &config.admin_password {
        Some(password) => password.expose().to_owned(),
        None => ask_for_password(&email)?,
    };
    let password = rules::PASSWORD.parse(&password).map_err(refuse("password"))?;
    let db = db::open_and_migrate(config)?;
    let hash = PasswordHasher::new(config.scrypt, 1).and_then(|hasher| hasher.hash(&password));
    let hash = hash.map_err(|e| e.cause().into_owned())?;
    let (username, is_new) = db::users::upsert_admin(&db, &email, username.as_deref(), &hash)
        .map_err(|e| e.message())?;
    let outcome = if is_new { "created" } else { "is an active admin now, with this password" };
    println!("Admin {email} {outcome}; username: {}.", username.as_deref().unwrap_or("none"));
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
