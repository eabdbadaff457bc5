//! `cloakroom create-admin`: makes the first administrator, or lets one in who has lost the password or the telephone.

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};

use postgres::Row;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use uuid::Uuid;

use super::installation::open_database;
use super::print;
use crate::auth::refused_passwords::RefusedPasswords;
use crate::auth::{password, random_bytes};
use crate::config::Config;
use crate::db::{Database, one_row, sql};
use crate::error::{Error, Problem};
use crate::model::rules;
use crate::model::text::{email_key, nfc};
use crate::storage::Storage;

/// Creates an account with the role `admin`. If there is an account with this e-mail address, it gets the role and the
/// password instead: it becomes active, keeps its username, and its sessions end. `resets_second_factor` takes its
/// second factor away as well.
pub fn create_admin(
    config: &Config,
    refused: &RefusedPasswords,
    email: &str,
    username: Option<&str>,
    resets_second_factor: bool,
) -> Result<(), String> {
    let refuse =
        |name: &'static str| move |problem: Problem| format!("{name}: {}", problem.message);
    let email = rules::email(email).map_err(refuse("email"))?;
    let username = username.map(rules::username).transpose().map_err(refuse("username"))?;
    let password = new_password(&email, refused)?;
    let db = open_database(config, &Storage::at(config)?)?;
    let salt = random_bytes()?;
    let hash = password::hash(&password, salt, config.scrypt)?;
    let (id, key) = (Uuid::new_v4(), email_key(&email));
    // Fails if the username of a new account is taken.
    let rows = db.write(sql!("accounts/upsert_admin"), &[&id, &username, &email, &hash, &key])?;
    let row = one_row(rows)?;
    let username: Option<&str> = row.get("username");
    let outcome =
        if row.get("is_new") { "created" } else { "is an active admin now, with this password" };
    let username = username.unwrap_or("none");
    let next = next_step(config, &db, &row, resets_second_factor).map_err(String::from)?;
    print(&format!("Admin {email} {outcome}; username: {username}.\n{next}")).map(drop)
}

/// Resets the second factor of the account if that is asked for, and returns what its owner should know of it.
fn next_step(config: &Config, db: &Database, account: &Row, resets: bool) -> Result<String, Error> {
    if !account.get::<_, bool>("second_factor") {
        let site = config.public_url.as_ref().filter(|_| config.console);
        let next = |site| {
            format!(
                "Next, sign in and set up a second factor: {site}/console/account/second-factor\n"
            )
        };
        return Ok(site.map(next).unwrap_or_default());
    }
    if resets {
        let id: Uuid = account.get("id");
        db.write(sql!("second_factor/reset"), &[&id, &db.actor, &db.address, &db.request_id])?;
        return Ok("Its second factor is gone: the password alone is enough.\n".into());
    }
    let stays = match cfg!(feature = "extras") {
        true => {
            "It has a second factor, which stays: signing in needs a code too. If that is lost,"
        }
        false => {
            "It has a second factor, which stays, and this build takes no codes. To sign in here,"
        }
    };
    Ok(format!("{stays} add --reset-second-factor.\n"))
}

/// The variable that holds the password, if it is neither typed nor piped.
const PASSWORD: &str = "CLOAKROOM_ADMIN_PASSWORD";

/// Returns the password for the account of `owner` that the environment holds, or else the one that is typed or piped.
/// A terminal asks twice, but only for a password that is acceptable. On failure: what to tell the operator.
fn new_password(owner: &str, refused: &RefusedPasswords) -> Result<String, String> {
    let held = env::var_os(PASSWORD).filter(|password| !password.is_empty());
    if let Some(password) = held {
        return accept(password.to_string_lossy().into_owned(), refused);
    }
    let password = accept(ask(&format!("New password for {owner}: "))?, refused)?;
    if io::stdin().is_terminal() && nfc(&ask("Repeat the password: ")?) != password {
        return Err("the two passwords differ, and nothing was changed".into());
    }
    Ok(password)
}

/// Returns a password that may be set.
fn accept(password: String, refused: &RefusedPasswords) -> Result<String, String> {
    if password.is_empty() {
        return Err(format!("no password given: type one, pipe one, or set {PASSWORD}"));
    }
    refused.accept(&password).map_err(|problem| format!("password: {}", problem.message))
}

/// Asks for a line on a terminal, which does not show it. Without one, returns the first line of standard input. Blanks
/// stay, because they may be a part of the password.
fn ask(prompt: &str) -> Result<String, String> {
    let input = io::stdin();
    let mut line = String::new();
    let read = match tcgetattr(&input) {
        Err(_) => input.lock().read_line(&mut line),
        Ok(modes) => {
            let mut hidden = modes.clone();
            hidden.local_modes.remove(LocalModes::ECHO);
            hidden.local_modes.insert(LocalModes::ECHONL);
            drop(write!(io::stderr(), "{prompt}"));
            let set = |modes| tcsetattr(&input, OptionalActions::Now, modes);
            let read = set(&hidden).map_err(io::Error::from);
            let read = read.and_then(|()| input.lock().read_line(&mut line));
            set(&modes).map_err(io::Error::from).and(read)
        }
    };
    read.map_err(|e| format!("password: {e}"))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
