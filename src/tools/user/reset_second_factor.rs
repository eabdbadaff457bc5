//! `cloakroom user reset-second-factor`: for somebody who has lost the device and the recovery codes.

use super::{find, shown};
use crate::db::audit::AuditOrigin;
use crate::db::{Database, second_factors};
use crate::tools::print_line;

/// Takes the second factor of the account with this username, e-mail address or id away, and ends its sessions.
pub fn reset_second_factor(db: &Database, name: &str) -> Result<(), String> {
    let user = find(db, name)?;
    let account = shown(&user);
    if !user.second_factor {
        return Err(format!("{account} has no second factor"));
    }
    let origin = AuditOrigin { actor: None, address: None, request_id: None };
    second_factors::reset(db, user.id, &origin)?;
    print_line(format_args!(
        "The second factor of {account} is gone: the password alone is enough. Its sessions have ended."
    ));
    Ok(())
}
