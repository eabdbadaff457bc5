//! Second factors and the commands of the operator.

use serde_json::json;

use crate::harness::*;

const KEY: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "a-key-for-second-factors-0123456789");
const OTHER: (&str, &str) = ("CLOAKROOM_SEAL_KEYS", "b-key-for-second-factors-0123456789");

#[test]
fn the_last_administrator_without_telephone_and_recovery_codes_gets_in_by_the_command() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    api.new_second_factor(&root, PASSWORD);
    let reset = |name: &str| run(&api.database.url, &["user", "reset-second-factor", name], &[]);
    let output = reset("ROOT@example.com").exits(0);
    let expected = "The second factor of root (root@example.com) is gone: the password alone is enough. Its sessions \
                    have ended.\n";
    assert_eq!(output.out(), expected);
    api.me(&root).refused(401, "Invalid token");
    let root = api.sign_in("root");
    let events = api.all_events(&root, "action=second_factor.disable");
    let [event] = &events[..] else { panic!("{events:?}") };
    let expected =
        json!({"actor_id": null, "address": null, "request_id": null, "subject_id": root.id()});
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&event[name], value, "{event}");
    }
    assert_eq!(api.database.count("outbox WHERE kind = 'second_factor_disabled'"), 1);
    for (name, fault) in [
        ("root", "root (root@example.com) has no second factor"),
        ("nobody", "there is no account with this username, e-mail address or id"),
    ] {
        let output = reset(name).exits(1);
        assert!(output.err().contains(fault), "{}", output.err());
    }
}

#[test]
fn create_admin_says_that_the_account_has_a_second_factor() {
    let api = Server::start(&[]);
    let create = || {
        let arguments = ["create-admin", "--email", "ann@example.com"];
        let password = [("CLOAKROOM_ADMIN_PASSWORD", NEW_PASSWORD), ("CLOAKROOM_SCRYPT", "4,8,1")];
        run(&api.database.url, &arguments, &password).exits(0).out()
    };
    let ann = api.sign_up("ann");
    assert!(!create().contains("second factor"));
    api.me(&ann).expect(401);
    let ann = api.login("ann", NEW_PASSWORD).tokens();
    let factor = api.new_second_factor(&ann, NEW_PASSWORD);
    assert!(create().contains("It has a second factor, which stays: signing in needs a code too."));
    api.login_with_code("ann", NEW_PASSWORD, &factor.code()).expect(200);
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
    let report = |key| {
        let output = command(&url, &data, &[key]).arg("doctor").output().expect("the binary runs");
        output.out()
    };
    let text = report(KEY);
    assert!(text.contains("ok      second factors: the keys open all 2\n"), "{text}");
    let text = report(OTHER);
    let fault =
        "fault   second factors: no key opens 2 of 2, so only recovery codes serve their users\n";
    assert!(
        text.contains(fault)
            && text.contains("Add the key that sealed them to CLOAKROOM_SEAL_KEYS"),
        "{text}"
    );
}

#[test]
fn a_restored_second_factor_works_with_its_key_and_is_counted_without() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let factor = api.new_second_factor(&ann, PASSWORD);
    let (backup, _) = backups.make(&api);
    let target = Target::create();
    let printed = target.restore(&backup).exits(0).out();
    assert!(!printed.contains("second factors"), "{printed}");
    let restored = target.serve();
    restored.login("ann", PASSWORD).refused(401, "Second factor required");
    restored.login_with_code("ann", PASSWORD, &factor.code()).expect(200);
    // Another secret signs the tokens of this one.
    let target = Target::create();
    let other = SECRET.to_uppercase();
    let mut command = target.command(&backup, &[]);
    let output = command.env("CLOAKROOM_JWT_SECRET", &other).output().expect("the binary runs");
    let printed = output.exits(0).out();
    assert!(
        printed.contains("No key opens 1 of 1 second factors, so only recovery codes serve"),
        "{printed}"
    );
    let settings = [("CLOAKROOM_JWT_SECRET", other.as_str())];
    let restored = Server::start_with(&target.database, &target.data, &settings);
    restored.login_with_code("ann", PASSWORD, &factor.recovery_codes[0]).expect(200);
}
