//! `cloakroom create-admin`: makes the first administrator, or sets the password of an administrator who has lost it.

use uuid::Uuid;

use super::{new_password::new_password, print_line};
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
    let password = new_password("CLOAKROOM_ADMIN_PASSWORD", &email)?;
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
    let username = username.unwrap_or("none");
    print_line(format_args!("Admin {email} {outcome}; username: {username}."));
    if row.get("second_factor") {
        print_line(
            "It has a second factor, which stays: signing in needs a code too. If that is lost, run `cloakroom user \
             reset-second-factor`.",
        );
    }
    Ok(())
}
