//! Where commands that set a password read it.

use std::io::{self, BufRead, IsTerminal};

use super::environment;
use crate::model::rules;

/// Returns the password for the account of `owner` that the environment variable holds, or else the one that is typed
/// or piped. A terminal asks twice, but only for a password that is acceptable. On failure: what to tell the operator.
pub fn new_password(variable: &str, owner: &str) -> Result<String, String> {
    if let Some(password) = environment::password(variable) {
        return accept(password, variable);
    }
    let is_typed = io::stdin().is_terminal();
    let first = if is_typed {
        rpassword::prompt_password(format!("New password for {owner}: "))
    } else {
        read_line()
    };
    let password = accept(first.map_err(|e| format!("password: {e}"))?, variable)?;
    if is_typed {
        let second = rpassword::prompt_password("Repeat the password: ");
        if second.map_err(|e| format!("password: {e}"))? != password {
            return Err("the two passwords differ, and nothing was changed".into());
        }
    }
    Ok(password)
}

/// Returns a password that may be set. `variable` could hold another one.
fn accept(password: String, variable: &str) -> Result<String, String> {
    if password.is_empty() {
        return Err(format!("no password given: type one, pipe one, or set {variable}"));
    }
    rules::password(&password).map_err(|problem| format!("password: {}", problem.message))
}

/// The first line of standard input without its line end. Blanks stay, because they may be a part of the password.
fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
