//! Password hashes that `cloakroom import-users` stores as other programs made them. The core build cannot check them.

use std::thread::available_parallelism;

use crate::harness::*;

const REFUSED: &str = "Invalid username or password";

/// Gives the account of this name the hash, as an import stores it.
fn set(api: &Server, name: &str, hash: &str) {
    api.database.run(&format!(
        "UPDATE users SET password_hash = 'imported:{hash}' WHERE username = '{name}'"
    ));
}

fn stored(api: &Server, name: &str) -> String {
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

/// What follows is in no core build.
#[cfg(feature = "extras")]
mod checked {
    use super::*;

    #[test]
    fn of_a_password_the_bytes_count_that_the_hash_was_made_of() {
        let (api, [_]) = Server::with_users(&[], ["ann"]);
        let (long, other) = ("0123456789".repeat(8), "0123456789".repeat(7) + "01 and more");
        for (hash, right, wrong) in [
            (BCRYPT_LONG, &*long, &long[..71]),
            (BCRYPT_LONG, &long[..72], &long[1..]),
            (BCRYPT_LONG, &other, ""),
            (BCRYPT_DECOMPOSED, "cafe\u{301} au lait", "cafe au lait"),
            (BCRYPT_COMPOSED, "cafe\u{301} au lait", "cafe au lait"),
            (BCRYPT_COMPOSED, "caf\u{e9} au lait", "cafe au lait"),
        ] {
            set(&api, "ann", hash);
            if !wrong.is_empty() {
                api.login("ann", wrong).refused(401, REFUSED);
            }
            api.login("ann", right).expect(200);
            // All of it is in the new one, in NFC.
            let composed = right.replace("e\u{301}", "\u{e9}");
            api.login("ann", &composed).expect(200);
            api.login("ann", &format!("{right}!")).refused(401, REFUSED);
        }
    }

    #[test]
    fn it_is_the_current_password_and_goes_with_a_change() {
        let (api, [ann]) = Server::with_users(&[], ["ann"]);
        set(&api, "ann", ARGON2ID);
        let wrong = api.change_password(&ann, NEW_PASSWORD, NEW_PASSWORD);
        wrong.refused(400, "Current password is incorrect");
        assert_eq!(stored(&api, "ann"), format!("imported:{ARGON2ID}"));
        api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
        api.login("ann", PASSWORD).refused(401, REFUSED);
        api.login("ann", NEW_PASSWORD).expect(200);
    }

    /// With the settings of tests a hash takes 16 KiB, and at most one runs on each core.
    #[test]
    fn a_check_that_takes_more_memory_than_all_hashes_is_refused_and_no_other_one_is() {
        let (api, [_, _]) = Server::with_users(&[], ["ann", "bob"]);
        set(&api, "ann", ARGON2ID_64_MIB);
        for password in [PASSWORD, NEW_PASSWORD] {
            api.login("ann", password).refused(503, "Service temporarily unavailable");
        }
        let all = available_parallelism().expect("a number of cores").get();
        api.logged(&format!(
            "takes the memory of 4096 hashes of CLOAKROOM_SCRYPT=4,8,1, and {all} may run at once"
        ));
        assert!(!api.log().contains("ann@example.com") && !api.log().contains("argon2"));
        api.sign_in("bob");
        // A start tells it, unless there is memory enough.
        let told = "1 cannot sign in with their imported password hashes, whose checks take up to 65536 KiB";
        api.beside(&[]).logged(told);
        let larger = api.beside(&[("CLOAKROOM_SCRYPT", "16,8,1")]);
        larger.login("ann", PASSWORD).expect(200);
        assert!(!larger.log().contains("imported password hashes"), "{}", larger.log());
        set(&api, "ann", BCRYPT_14);
        assert!(!api.beside(&[]).log().contains("imported password hashes"));
        // A deleted account is none.
        set(&api, "ann", ARGON2ID_64_MIB);
        api.database.run("UPDATE users SET is_deleted = true WHERE username = 'ann'");
        assert!(!api.beside(&[]).log().contains("imported password hashes"));
    }

    #[test]
    fn a_hash_of_two_turns_is_checked_where_there_are_two() {
        if available_parallelism().is_ok_and(|cores| cores.get() < 2) {
            return;
        }
        let (api, [_]) = Server::with_users(&[("CLOAKROOM_SCRYPT", "15,8,1")], ["ann"]);
        set(&api, "ann", ARGON2ID_64_MIB);
        api.login("ann", NEW_PASSWORD).refused(401, REFUSED);
        api.login("ann", PASSWORD).expect(200);
    }

    /// However slow they are, they leave turns to others, where there is more than one.
    #[test]
    fn many_checks_of_slow_hashes_keep_nobody_from_signing_in() {
        if available_parallelism().is_ok_and(|cores| cores.get() < 2) {
            return;
        }
        let (api, [_, _]) = Server::with_users(&[], ["ann", "bob"]);
        set(&api, "ann", BCRYPT_14);
        let waiting = || api.metric("cloakroom_hashes_waiting").expect("the gauge");
        std::thread::scope(|scope| {
            let asked = (0..12).map(|_| scope.spawn(|| api.login("ann", NEW_PASSWORD).status));
            let asked: Vec<_> = asked.collect();
            wait_until(|| waiting() >= 6.0);
            api.sign_in("bob");
            api.login("nobody", PASSWORD).refused(401, REFUSED);
            assert!(waiting() >= 1.0, "those who came before still wait");
            for status in asked {
                // On a slow machine some wait for longer than they may.
                assert!([401, 503].contains(&status.join().expect("no panic")));
            }
        });
    }
}
