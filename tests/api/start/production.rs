//! What production refuses to start with.

use crate::harness::*;

/// Expects that production is refused with these settings, for exactly these reasons; that it starts if there are none.
#[track_caller]
fn expect_refusals(settings: &[(&str, &str)], refusals: &[&str]) {
    let all = [&PRODUCTION[..], settings].concat();
    let status = if refusals.is_empty() { 0 } else { 2 };
    let text = run("postgres://db.example.com/x", &["config"], &all).exits(status).err();
    for refusal in refusals {
        assert!(text.contains(refusal), "{settings:?}: {text}");
    }
    let lines = text.lines().filter(|line| line.starts_with("  ")).count();
    assert_eq!(lines, refusals.len(), "{settings:?}: {text}");
    assert!(!text.contains("123456789abcde") && !text.contains("012345678"), "{text}");
}

#[test]
fn production_refuses_settings_that_are_not_safe_in_public() {
    const KEYS: &str = "CLOAKROOM_API_KEY";
    const PROXIES: &str = "CLOAKROOM_TRUSTED_PROXIES";
    const SECRET: &str = "CLOAKROOM_JWT_SECRET";
    const OLD_SECRETS: &str = "CLOAKROOM_JWT_OLD_SECRETS";
    let (short_key, nine) =
        ("holds a key of fewer than 16 characters", "holds only 9 different bytes");
    // A setting that replaces a good one, and why it is refused; nothing where production starts with it.
    for (name, value, refusal) in [
        (SECRET, "", "is not set"),
        (SECRET, "012345678012345678012345678012345678", nine),
        (SECRET, "012345678901234567890123456789012", ""),
        (OLD_SECRETS, "012345678012345678012345678012345678", nine),
        (OLD_SECRETS, "012345678901234567890123456789012", ""),
        ("CLOAKROOM_AUTH_ENABLED", "false", "is false"),
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true", "is true"),
        ("CLOAKROOM_SMTP_URL", "", "is not set"),
        // Somebody must have said who may export; every answer counts.
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "", "is not set"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "false", ""),
        (PROXIES, "10.0.0.0/8,::1,192.0.2.0/1", ""),
        (PROXIES, "10.0.0.0/8,0.0.0.0/0", "holds 0.0.0.0/0"),
        (PROXIES, "::/0", "holds ::/0"),
        // The least costs that OWASP recommends are all the same work.
        ("CLOAKROOM_SCRYPT", "17,8,1", ""),
        ("CLOAKROOM_SCRYPT", "13,8,10", ""),
        ("CLOAKROOM_SCRYPT", "14,8,4", "is 14,8,4"),
        ("CLOAKROOM_SCRYPT", "12,8,20", "is 12,8,20"),
        (KEYS, "0123456789abcdef,\u{e9}123456789abcdef", ""),
        (KEYS, "0123456789abcdef,0123456789abcde", short_key),
    ] {
        let refusal = (!refusal.is_empty()).then(|| format!("{name} {refusal}"));
        expect_refusals(&[(name, value)], refusal.as_deref().as_slice());
    }
    // Development starts with all of that.
    let weak = [
        (PROXIES, "0.0.0.0/0"),
        ("CLOAKROOM_SCRYPT", "4,8,1"),
        (KEYS, "short"),
        (SECRET, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ];
    run("postgres://db.example.com/x", &["config"], &weak).exits(0);
}

#[test]
fn production_refuses_combinations_of_settings() {
    const MAIL: (&str, &str) = ("CLOAKROOM_SMTP_URL", "smtps://ann:mail-secret@mail.example.com");
    const FROM: (&str, &str) = ("CLOAKROOM_MAIL_FROM", "Cloakroom <noreply@example.com>");
    const LINK: (&str, &str) =
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/reset?token={token}");
    const UNSAID: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "");
    const REQUIRED: (&str, &str) = ("CLOAKROOM_EMAIL_CONFIRMATION", "required");
    const PAGE: (&str, &str) =
        ("CLOAKROOM_EMAIL_CONFIRMATION_URL", "https://example.com/confirm#{token}");
    let (no_page, no_mail) = (
        "CLOAKROOM_EMAIL_CONFIRMATION_URL is not set",
        "CLOAKROOM_EMAIL_CONFIRMATION is required, and no mail is sent",
    );
    let (no_sender, no_link) =
        ("CLOAKROOM_MAIL_FROM is not set", "CLOAKROOM_PASSWORD_RESET_URL is not set");
    let unsaid = "CLOAKROOM_EXPORT_REQUIRE_ADMIN is not set";
    let several = ["CLOAKROOM_AUTH_ENABLED is false", "CLOAKROOM_SMTP_URL is not set", unsaid];
    for (settings, refusals) in [
        (&[][..], &[][..]),
        (&[MAIL], &[no_sender, no_link]),
        (&[MAIL, LINK], &[no_sender]),
        (&[MAIL, FROM], &[no_link]),
        (&[MAIL, FROM, LINK], &[]),
        (&[MAIL, FROM, LINK, REQUIRED], &[no_page]),
        (&[MAIL, FROM, LINK, REQUIRED, PAGE], &[]),
        (&[REQUIRED, PAGE], &[no_mail]),
        (&[UNSAID, ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true")], &[]),
        (&[UNSAID, ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "false")], &[]),
        (&[UNSAID, ("CLOAKROOM_API_KEY_ENABLED", "false")], &[unsaid]),
        // Without a key it starts, and answers 500 where one is needed.
        (&[UNSAID, ("CLOAKROOM_API_KEY_ENABLED", "true")], &[]),
        (&[UNSAID, ("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_SMTP_URL", "")], &several),
    ] {
        if has_extras() || !settings.contains(&REQUIRED) {
            expect_refusals(settings, refusals);
        }
    }
}

/// The warnings of a start with these settings.
fn warnings(settings: &[(&str, &str)]) -> Vec<String> {
    let log = Server::start(settings).log();
    log.lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

#[test]
fn production_warns_of_limits_that_are_missing() {
    let on = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
    let proxy = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");
    let quiet = [&PRODUCTION[..], &[on, proxy]].concat();
    assert_eq!(warnings(&quiet), [""; 0]);
    for (name, value, warning) in [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "false", "guessed at will"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "0", "any number of accounts"),
        ("CLOAKROOM_RATE_LIMIT_ADDRESS", "0", "limits of its own"),
        ("CLOAKROOM_TRUSTED_PROXIES", "", "are not told apart"),
        ("CLOAKROOM_STORAGE_QUOTA", "7G", "fewer than 4 new users can use up the half"),
    ] {
        let warnings = warnings(&[&quiet, &[(name, value)][..]].concat());
        let [line] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(line.contains(name) && line.contains(warning), "{line}");
    }
    let small = ("CLOAKROOM_STORAGE_QUOTA", "7G");
    for other in [("CLOAKROOM_REGISTRATION", "off"), ("CLOAKROOM_USER_STORAGE_QUOTA", "800M")] {
        assert_eq!(warnings(&[&quiet, &[small, other][..]].concat()), [""; 0]);
    }
    assert_eq!(warnings(&[on, ("CLOAKROOM_RATE_LIMIT_ADDRESS", "0")]), [""; 0], "in development");
}

#[test]
fn export_switches_that_contradict_each_other_are_named_at_the_start() {
    const OPEN: (&str, &str) = ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true");
    const ADMIN: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
    const KEY: (&str, &str) = ("CLOAKROOM_API_KEY_ENABLED", "true");
    const KEYS: (&str, &str) = ("CLOAKROOM_API_KEY", "0123456789abcdef");
    for (settings, named) in [
        (&[OPEN, ADMIN][..], &[ADMIN.0][..]),
        (&[OPEN, KEY, KEYS], &[KEY.0]),
        (&[OPEN, ADMIN, KEY, KEYS], &[ADMIN.0, KEY.0]),
        (&[OPEN], &[]),
        (&[ADMIN, KEY, KEYS], &[]),
    ] {
        let warnings = warnings(settings);
        assert_eq!(warnings.len(), usize::from(!named.is_empty()), "{settings:?}: {warnings:?}");
        for name in named {
            let is_named = warnings[0].contains(name) && warnings[0].contains(OPEN.0);
            assert!(is_named, "{settings:?}: {warnings:?}");
        }
    }
}
