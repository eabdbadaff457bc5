//! The keys that seal second factors, and what is found of their secrets in the database and in the log.

use std::fmt::Write;

use crate::harness::*;

const A: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "a-key-for-second-factors-0123456789");
const B_THEN_A: (&str, &str) = (
    "CLOAKROOM_SEAL_KEYS",
    "b-key-for-second-factors-0123456789,a-key-for-second-factors-0123456789",
);
const B: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "b-key-for-second-factors-0123456789");
const C: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "c-key-for-second-factors-0123456789");

/// All rows of all tables as texts, in which bytes are hexadecimal.
fn dump(database: &Database) -> String {
    let mut client = database.client();
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let mut text = String::new();
    for table in client.query(tables, &[]).expect("tables") {
        let table: String = table.get(0);
        for row in client.query(&format!("SELECT t::text FROM {table} t"), &[]).expect("rows") {
            writeln!(text, "{table}: {}", row.get::<_, String>(0)).expect("a line");
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The sealed secrets of all accounts, in the order of their ids.
fn sealed(database: &Database) -> Vec<Vec<u8>> {
    let sql =
        "SELECT second_factor_sealed FROM users WHERE second_factor_sealed IS NOT NULL ORDER BY id";
    database.client().query(sql, &[]).expect("rows").iter().map(|row| row.get(0)).collect()
}

#[test]
fn neither_the_database_nor_the_log_holds_a_secret_or_a_recovery_code() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_LOG", "trace")], ["ann"]);
    let factor = api.new_second_factor(&ann, PASSWORD);
    let [used, unused] = [0, 1].map(|n| factor.recovery_codes[n].clone());
    let (code, wrong) = (factor.code(), factor.wrong_code());
    api.login_with_code("ann", PASSWORD, &wrong).expect(401);
    api.login_with_code("ann", PASSWORD, &used).expect(200);
    api.login_with_code("ann", PASSWORD, &code).expect(200);
    api.renew_recovery_codes(&ann, PASSWORD, &factor.recovery_codes[2]).expect(200);
    let text = format!("{}\n{}", dump(&api.database), api.log());
    assert!(
        text.contains("users: (") && text.contains("sessions: (") && text.contains("/auth/login")
    );
    let mut secrets = vec![factor.secret.clone(), hex(&factor.bytes())];
    for code in [&used, &unused] {
        let plain = code.replace('-', "");
        secrets.extend([code.clone(), hex(code.as_bytes()), hex(plain.as_bytes()), plain]);
    }
    for secret in &secrets {
        assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret}");
    }
    for code in [&code, &wrong] {
        assert!(!api.log().contains(code.as_str()), "{code}");
    }
}

#[test]
fn a_start_seals_all_secrets_with_the_first_key_and_the_old_key_can_go() {
    let (api, [ann, bob]) = Server::with_users(&[A], ["ann", "bob"]);
    let factor = api.new_second_factor(&ann, PASSWORD);
    let offered = api.offer_second_factor(&bob, PASSWORD);
    let by_a = sealed(&api.database);
    assert_eq!(by_a.len(), 2);
    assert_eq!(by_a[0][..9], by_a[1][..9]);
    // Two processes that start at once do not disturb each other.
    let both = parallel(2, |_| api.beside(&[B_THEN_A]));
    let by_b = sealed(&api.database);
    assert!(by_b.iter().all(|secret| secret[..9] != by_a[0][..9]), "{by_b:?}");
    let anew: usize = both.iter().map(|api| api.log().matches("sealed anew").count()).sum();
    assert!((1..=2).contains(&anew), "{anew}");
    let api = api.beside(&[B]);
    assert_eq!(sealed(&api.database), by_b);
    assert!(!api.log().contains("sealed anew"));
    api.login_with_code("ann", PASSWORD, &factor.code()).expect(200);
    api.confirm_second_factor(api.sign_in("bob"), &offered.code()).expect(200);
}

#[test]
fn without_its_key_a_second_factor_takes_recovery_codes_only_and_the_operator_is_told() {
    let (api, [ann]) = Server::with_users(&[A], ["ann"]);
    let factor = api.new_second_factor(&ann, PASSWORD);
    let without = api.beside(&[C]);
    without.logged("1 others are opened by no key of CLOAKROOM_SEAL_KEYS");
    let login = |code: &str| without.login_with_code("ann", PASSWORD, code);
    login(&factor.code()).refused(500, "Internal server error");
    without.logged("no key of CLOAKROOM_SEAL_KEYS opens the second factor of user");
    // Nothing was counted, because nobody knows whether the code was right.
    assert_eq!(api.database.value::<i32>("SELECT max(wrong_codes) FROM users"), 0);
    login(&factor.recovery_codes[0]).expect(200);
    // Where the key is still there, nothing has changed.
    api.login_with_code("ann", PASSWORD, &factor.code()).expect(200);
}

#[test]
fn without_keys_of_its_own_the_secret_that_signs_tokens_seals_also_an_old_one() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let factor = api.new_second_factor(&ann, PASSWORD);
    let new = SECRET.to_uppercase();
    let rotated = [("CLOAKROOM_JWT_SECRET", new.as_str()), ("CLOAKROOM_JWT_OLD_SECRETS", SECRET)];
    let steps: [&[(&str, &str)]; 3] = [&rotated, &rotated[..1], &[rotated[0], A]];
    for (n, settings) in steps.into_iter().enumerate() {
        let api = api.beside(settings);
        api.forget_used_codes();
        api.login_with_code("ann", PASSWORD, &factor.code()).case(n).expect(200);
    }
}

#[test]
fn a_sealed_secret_cannot_be_moved_to_another_account() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let [own, _] = [&ann, &bob].map(|user| api.new_second_factor(user, PASSWORD));
    api.database.run(&format!(
        "UPDATE users SET second_factor_sealed = (SELECT second_factor_sealed FROM users WHERE id = '{}')
         WHERE id = '{}'",
        ann.id(),
        bob.id()
    ));
    api.login_with_code("bob", PASSWORD, &own.code()).expect(500);
    api.login_with_code("ann", PASSWORD, &own.code())
        .expect(200)
        .has(json!({"token_type": "bearer"}));
}
