//! What production refuses to start with.

use crate::harness::*;

/// Settings that replace good ones, and the refusals that they cause; none where production starts with them.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn production_refuses_settings_that_are_not_safe_in_public() {
    const MAIL: (&str, &str) = ("CLOAKROOM_SMTP_URL", "smtps://ann:mail-secret@mail.example.com");
    const FROM: (&str, &str) = ("CLOAKROOM_MAIL_FROM", "Cloakroom <noreply@example.com>");
    const LINK: (&str, &str) =
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/reset?token={token}");
    const UNSAID: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "");
    let cases: &[Case] = &[
        (&[], &[]),
        (&[("CLOAKROOM_JWT_SECRET", "")], &["CLOAKROOM_JWT_SECRET is not set"]),
        (&[("CLOAKROOM_AUTH_ENABLED", "false")], &["CLOAKROOM_AUTH_ENABLED is false"]),
        (
            &[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")],
            &["CLOAKROOM_TEST_ENDPOINTS_ENABLED is true"],
        ),
        (&[("CLOAKROOM_SMTP_URL", "")], &["CLOAKROOM_SMTP_URL is not set"]),
        (&[MAIL], &["CLOAKROOM_MAIL_FROM is not set", "CLOAKROOM_PASSWORD_RESET_URL is not set"]),
        (&[MAIL, LINK], &["CLOAKROOM_MAIL_FROM is not set"]),
        (&[MAIL, FROM], &["CLOAKROOM_PASSWORD_RESET_URL is not set"]),
        (&[MAIL, FROM, LINK], &[]),
        // Somebody must have said who may export; every answer counts.
        (&[UNSAID], &["CLOAKROOM_EXPORT_REQUIRE_ADMIN is not set"]),
        (&[("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "false")], &[]),
        (&[UNSAID, ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true")], &[]),
        (&[UNSAID, ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "false")], &[]),
        (
            &[UNSAID, ("CLOAKROOM_API_KEY_ENABLED", "false")],
            &["CLOAKROOM_EXPORT_REQUIRE_ADMIN is not set"],
        ),
        // Without a key it starts, and answers 500 where one is needed.
        (&[UNSAID, ("CLOAKROOM_API_KEY_ENABLED", "true")], &[]),
        (&[("CLOAKROOM_TRUSTED_PROXIES", "10.0.0.0/8,::1,192.0.2.0/1")], &[]),
        (
            &[("CLOAKROOM_TRUSTED_PROXIES", "10.0.0.0/8,0.0.0.0/0")],
            &["CLOAKROOM_TRUSTED_PROXIES holds 0.0.0.0/0"],
        ),
        (&[("CLOAKROOM_TRUSTED_PROXIES", "::/0")], &["CLOAKROOM_TRUSTED_PROXIES holds ::/0"]),
        // The least costs that OWASP recommends are all the same work.
        (&[("CLOAKROOM_SCRYPT", "17,8,1")], &[]),
        (&[("CLOAKROOM_SCRYPT", "13,8,10")], &[]),
        (&[("CLOAKROOM_SCRYPT", "14,8,4")], &["CLOAKROOM_SCRYPT is 14,8,4"]),
        (&[("CLOAKROOM_SCRYPT", "12,8,20")], &["CLOAKROOM_SCRYPT is 12,8,20"]),
        (&[("CLOAKROOM_API_KEY", "0123456789abcdef,\u{e9}123456789abcdef")], &[]),
        (
            &[("CLOAKROOM_API_KEY", "0123456789abcdef,0123456789abcde")],
            &["CLOAKROOM_API_KEY holds a key of fewer than 16 characters"],
        ),
        (
            &[("CLOAKROOM_JWT_SECRET", "012345678012345678012345678012345678")],
            &["CLOAKROOM_JWT_SECRET holds only 9 different bytes"],
        ),
        (&[("CLOAKROOM_JWT_SECRET", "012345678901234567890123456789012")], &[]),
        (
            &[("CLOAKROOM_JWT_OLD_SECRETS", "012345678012345678012345678012345678")],
            &["CLOAKROOM_JWT_OLD_SECRETS holds only 9 different bytes"],
        ),
        (&[("CLOAKROOM_JWT_OLD_SECRETS", "012345678901234567890123456789012")], &[]),
        (
            &[UNSAID, ("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_SMTP_URL", "")],
            &[
                "CLOAKROOM_AUTH_ENABLED is false",
                "CLOAKROOM_SMTP_URL is not set",
                "CLOAKROOM_EXPORT_REQUIRE_ADMIN is not set",
            ],
        ),
    ];
    for (settings, refusals) in cases {
        let all = [&PRODUCTION[..], settings].concat();
        let status = if refusals.is_empty() { 0 } else { 2 };
        let text = run("postgres://db.example.com/x", &["config"], &all).exits(status).err();
        for refusal in *refusals {
            assert!(text.contains(refusal), "{settings:?}: {text}");
        }
        let lines = text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(lines, refusals.len(), "{settings:?}: {text}");
        for secret in ["123456789abcde", "012345678"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    // Development starts with all of that.
    let weak = [
        ("CLOAKROOM_TRUSTED_PROXIES", "0.0.0.0/0"),
        ("CLOAKROOM_SCRYPT", "4,8,1"),
        ("CLOAKROOM_API_KEY", "short"),
        ("CLOAKROOM_JWT_SECRET", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ];
    run("postgres://db.example.com/x", &["config"], &weak).exits(0);
}

#[test]
fn production_warns_of_limits_that_are_missing() {
    let on = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
    let proxy = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");
    let quiet = [&PRODUCTION[..], &[on, proxy]].concat();
    let log = Server::start(&quiet).log();
    assert!(!log.contains("WARN"), "{log}");
    for (name, value, warning) in [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "false", "guessed at will"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "0", "any number of accounts"),
        ("CLOAKROOM_RATE_LIMIT_ADDRESS", "0", "limits of its own"),
        ("CLOAKROOM_TRUSTED_PROXIES", "", "are not told apart"),
        ("CLOAKROOM_STORAGE_QUOTA", "7G", "fewer than 4 new users can use up the half"),
    ] {
        let log = Server::start(&[&quiet, &[(name, value)][..]].concat()).log();
        let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
        assert_eq!(warnings.len(), 1, "{log}");
        assert!(warnings[0].contains(name) && warnings[0].contains(warning), "{log}");
    }
    for (name, value) in
        [("CLOAKROOM_REGISTRATION", "off"), ("CLOAKROOM_USER_STORAGE_QUOTA", "800M")]
    {
        let small = [("CLOAKROOM_STORAGE_QUOTA", "7G"), (name, value)];
        let log = Server::start(&[&quiet, &small[..]].concat()).log();
        assert!(!log.contains("WARN"), "{log}");
    }
    let development = Server::start(&[on, ("CLOAKROOM_RATE_LIMIT_ADDRESS", "0")]).log();
    assert!(!development.contains("WARN"), "{development}");
}

#[test]
fn export_switches_that_contradict_each_other_are_named_at_the_start() {
    const OPEN: (&str, &str) = ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true");
    const ADMIN: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
    const KEY: (&str, &str) = ("CLOAKROOM_API_KEY_ENABLED", "true");
    const KEYS: (&str, &str) = ("CLOAKROOM_API_KEY", "0123456789abcdef");
    for (settings, named) in [
        (&[OPEN, ADMIN][..], &["CLOAKROOM_EXPORT_REQUIRE_ADMIN"][..]),
        (&[OPEN, KEY, KEYS], &["CLOAKROOM_API_KEY_ENABLED"]),
        (
            &[OPEN, ADMIN, KEY, KEYS],
            &["CLOAKROOM_EXPORT_REQUIRE_ADMIN", "CLOAKROOM_API_KEY_ENABLED"],
        ),
        (&[OPEN], &[]),
        (&[ADMIN, KEY, KEYS], &[]),
    ] {
        let log = Server::start(settings).log();
        let warnings: Vec<_> = log.lines().filter(|line| line.contains("WARN")).collect();
        assert_eq!(warnings.len(), usize::from(!named.is_empty()), "{settings:?}: {log}");
        for name in named {
            let is_named = warnings[0].contains(name) && warnings[0].contains(OPEN.0);
            assert!(is_named, "{settings:?}: {log}");
        }
    }
}
