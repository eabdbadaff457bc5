//! `cloakroom user reset-password`: sets the password of somebody who has lost it.

use super::{find, shown};
use crate::auth::{password, random_bytes};
use crate::config::Config;
use crate::db::{Database, sql};
use crate::tools::new_password::new_password;
use crate::tools::print_line;

/// Sets the password of the account with this username, e-mail address or id, and ends its sessions and personal access
/// tokens.
pub fn reset_password(config: &Config, db: &Database, name: &str) -> Result<(), String> {
    let user = find(db, name)?;
    let account = shown(&user);
    let password = new_password("CLOAKROOM_USER_PASSWORD", &account)?;
    let hash = password::hash(&password, random_bytes()?, config.scrypt)?;
    if db.write(sql!("users/reset_password_by_operator"), &[&user.id, &hash])?.is_empty() {
        return Err(format!("the account of {account} was deleted meanwhile"));
    }
    print_line(format_args!(
        "The password of {account} is set. Its sessions and personal access tokens have ended."
    ));
    if !user.is_active {
        print_line(
            "The account is not active: it cannot sign in before an administrator activates it.",
        );
    }
    Ok(())
}
