//! Password hashes that `cloakroom import-users` stores as other programs made them. The core build cannot check them.

use crate::harness::*;

pub const REFUSED: &str = "Invalid username or password";

/// Gives the account of this name the hash, as an import stores it.
pub fn set(api: &Server, name: &str, hash: &str) {
    api.database.run(&format!(
        "UPDATE users SET password_hash = 'imported:{hash}' WHERE username = '{name}'"
    ));
}

pub fn stored(api: &Server, name: &str) -> String {
    api.database.value(&format!("SELECT password_hash FROM users WHERE username = '{name}'"))
}

#[test]
fn the_first_right_sign_in_makes_the_hash_our_own_and_ends_nothing() {
    let (api, [ann]) = Server::with_users(&[ROOMY_SCRYPT], ["ann"]);
    let state =
        "SELECT concat(credentials_version, ' ', session_epoch, ' ', sessions_ended_at) FROM users";
    let (before, mails) = (api.database.value::<String>(state), api.database.count("outbox"));
    for hash in IMPORTED_HASHES {
        set(&api, "ann", hash);
        let own = stored(&api, "ann");
        for wrong in ["Correct horse", "correct hors", "correct horse ", NEW_PASSWORD] {
            api.login("ann", wrong).case(hash).refused(401, REFUSED);
        }
        let signed_in = api.login("ann", PASSWORD).case(hash);
        if !has_extras() {
            signed_in.refused(401, REFUSED);
            assert_eq!(stored(&api, "ann"), own);
            api.logged("this build cannot check the password hash of an account from elsewhere");
            continue;
        }
        signed_in.expect(200);
        let renewed = stored(&api, "ann");
        assert!(renewed.starts_with(ROOMY_HASH), "{hash}: {renewed}");
        api.login("ann", PASSWORD).expect(200);
        assert_eq!(stored(&api, "ann"), renewed, "{hash}");
    }
    // The session from before goes on.
    api.me(&ann).expect(200);
    assert_eq!(api.database.value::<String>(state), before);
    assert_eq!(api.database.count("outbox"), mails);
    let others = "audit_events WHERE action NOT IN ('auth.register', 'auth.login')";
    assert_eq!(api.database.count(others), 0);
}

#[test]
fn what_is_no_hash_is_a_wrong_password_and_no_error() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let damaged = [
        "",
        "x",
        "$2b$04$",
        &BCRYPT_2B[1..],
        &BCRYPT_2B[..59],
        "$argon2id$v=19$m=8,t=1,p=1$$",
        "$argon2id$v=19$m=4294967295,t=1,p=1$qoUhld6BhOA$JlnWkz5onY90yGkLB7Loug",
        "$scrypt$ln=63,r=8,p=1$YQ$YQ",
    ];
    for hash in damaged {
        set(&api, "ann", hash);
        api.login("ann", PASSWORD).case(hash).refused(401, REFUSED);
    }
    for hash in ["", "x", "imported", "imported:imported:x", BCRYPT_2B, ARGON2ID] {
        api.database.run(&format!("UPDATE users SET password_hash = '{hash}'"));
        api.login("ann", PASSWORD).case(hash).refused(401, REFUSED);
    }
}
