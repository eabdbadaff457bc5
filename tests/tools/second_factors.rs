//! Second factors and the commands of the operator.

use serde_json::json;

use crate::harness::*;

const KEY: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "a-key-for-second-factors-0123456789");
const OTHER: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "b-key-for-second-factors-0123456789");

#[test]
fn the_last_administrator_without_telephone_and_recovery_codes_gets_in_by_create_admin() {
    // Mail waits for a server that does not listen.
    let api = Server::start(&mail_settings("smtp://127.0.0.1:1"));
    let create = |arguments: &[&str]| {
        let arguments = [&["create-admin", "--email", "ROOT@example.com"], arguments].concat();
        let password = [("CLOAKROOM_ADMIN_PASSWORD", NEW_PASSWORD), ("CLOAKROOM_SCRYPT", "4,8,1")];
        run(&api.database.url, &arguments, &password).exits(0).out()
    };
    let root = api.sign_up_admin("root");
    let lost = api.new_second_factor(&root, PASSWORD);
    // Unless it is asked for, the second factor stays.
    assert!(create(&[]).contains("It has a second factor, which stays"));
    api.me(&root).refused(401, "Invalid token");
    let root = api.login_with_code("root", NEW_PASSWORD, &lost.code()).expect(200).tokens();
    assert!(create(&["--reset-second-factor"]).contains("Its second factor is gone"));
    api.me(&root).refused(401, "Invalid token");
    let root = api.login("root", NEW_PASSWORD).expect(200).tokens();
    let events = api.all_events(&root, "action=second_factor.disable");
    let [event] = &events[..] else { panic!("{events:?}") };
    let found = ["actor_id", "address", "request_id", "subject_id"].map(|name| event[name].clone());
    assert_eq!(found, [json!(null), json!(null), json!(null), json!(root.id())]);
    assert_eq!(api.database.count("outbox WHERE kind = 'second_factor_disabled'"), 1);
    // An account that has none needs nothing, and no event says that it had one.
    assert!(!create(&["--reset-second-factor"]).contains("second factor"));
    assert_eq!(api.database.count("audit_events WHERE action = 'second_factor.disable'"), 1);
}

#[test]
fn doctor_counts_the_second_factors_that_no_key_opens() {
    let api = Server::start(&[KEY]);
    let (data, url) = (api.data.clone(), api.database.url.clone());
    for name in ["ann", "bob"] {
        let user = api.sign_up(name);
        api.new_second_factor(&user, PASSWORD);
    }
    // An offer that is over does not count.
    let eve = api.sign_up("eve");
    api.begin_second_factor(&eve, PASSWORD).expect(200);
    api.database.run("UPDATE users SET second_factor_pending_until = now() - interval '1 s'");
    for (key, found) in
        [(KEY, "ok      second factors: "), (OTHER, "fault   second factors: no key opens 2 of 2")]
    {
        run_in(&data, &url, &["doctor"], &[key]).prints(found);
    }
}

#[test]
fn a_restored_second_factor_works_with_its_key_and_is_counted_without() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let factor = api.new_second_factor(&ann, PASSWORD);
    let (backup, _) = backups.make(&api);
    let target = Installation::empty();
    let printed = target.restore(&backup).exits(0).out();
    assert!(!printed.contains("second factors"), "{printed}");
    let restored = target.serve();
    restored.login("ann", PASSWORD).refused(401, "Second factor required");
    restored.login_with_code("ann", PASSWORD, &factor.code()).expect(200);
    // Another secret signs the tokens of this one.
    let target = Installation::empty();
    let other = SECRET.to_uppercase();
    let mut command = target.command(&backup, &[]);
    let output = command.env("CLOAKROOM_JWT_SECRET", &other).output().expect("the binary runs");
    output.exits(0).prints("No key opens 1 of 1 second factors, so only recovery codes serve");
    let settings = [("CLOAKROOM_JWT_SECRET", other.as_str())];
    let restored = Server::start_with(&target.database, &target.data, &settings);
    restored.login_with_code("ann", PASSWORD, &factor.recovery_codes[0]).expect(200);
}
