//! Checks of the password hashes of other programs: what of a password counts, how many turns of the queue they take,
//! and what they leave to others. `imported_hashes.rs` has what the core build does too.

use std::thread::available_parallelism;

use super::imported_hashes::{REFUSED, set, stored};
use crate::harness::*;

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
        "takes the memory of 4096 hashes of CLOAKROOM_SCRYPT=4,8,1, because its hash was imported, and {all} may run"
    ));
    assert!(!api.log().contains("ann@example.com") && !api.log().contains("argon2"));
    api.sign_in("bob");
    // A start tells it, unless there is memory enough.
    let told =
        "1 cannot sign in with their imported password hashes, whose checks take up to 65536 KiB";
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
