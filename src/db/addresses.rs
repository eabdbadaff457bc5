//! ASCII forms of e-mail addresses that were stored before such forms were: they are filled in, and accounts are found
//! whose addresses have the same form.

use postgres::types::Type;
use postgres::{Client, Error, Row};
use uuid::Uuid;

use super::sql;
use crate::model::rules::email_in_ascii;

/// Accounts without an ASCII form of their address: ids, addresses, and the forms these should have.
pub type Unfilled = (Vec<Uuid>, Vec<String>, Vec<String>);

/// Fills in the forms that no other account has. The accounts that are left keep their addresses as they are, and are
/// looked at again at the next start.
pub fn fill(client: &mut Client) -> Result<(), Error> {
    let mut after = Uuid::nil();
    while let Some((last, unfilled)) = unfilled_after(client, after)? {
        let (ids, addresses, forms) = unfilled;
        client.execute(sql!("users/fill_addresses"), &[&ids, &addresses, &forms])?;
        after = last;
    }
    Ok(())
}

/// Reads up to a thousand accounts with ids after `after`, and returns the last id beside those that should have a
/// form. `None` if there is no account.
pub fn unfilled_after(client: &mut Client, after: Uuid) -> Result<Option<(Uuid, Unfilled)>, Error> {
    let rows = client.query_typed(sql!("users/unfilled_addresses"), &[(&after, Type::UUID)])?;
    let unfilled = |row: &Row| {
        let address: String = row.get("email");
        let form = email_in_ascii(&address)?;
        Some((row.get("id"), address, form))
    };
    let (mut ids, mut addresses, mut forms) = Unfilled::default();
    for (id, address, form) in rows.iter().filter_map(unfilled) {
        ids.push(id);
        addresses.push(address);
        forms.push(form);
    }
    Ok(rows.last().map(|row| (row.get("id"), (ids, addresses, forms))))
}
