//! What production refuses to start with.

use crate::harness::*;

/// Settings with which production starts.
const GOOD: &[(&str, &str)] = &[
    ("CLOAKROOM_ENV", "production"),
    ("CLOAKROOM_SMTP_URL", "none"),
    ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
];

/// Settings that replace good ones, and the refusals that they cause; none where production starts with them.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn production_refuses_settings_that_are_not_safe_in_public() {
    const MAIL: (&str, &str) = ("CLOAKROOM_SMTP_URL", "smtps://ann:mail-secret@mail.example.com");
    const FROM: (&str, &str) = ("CLOAKROOM_MAIL_FROM", "Cloakroom <noreply@example.com>");
    const LINK: (&str, &str) =
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/reset?token={token}");
    const CLOSED: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "false");
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
        (&[CLOSED], &["CLOAKROOM_EXPORT_REQUIRE_ADMIN is false"]),
        (&[CLOSED, ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true")], &[]),
        // Without a key it starts, and answers 500 where one is needed.
        (&[CLOSED, ("CLOAKROOM_API_KEY_ENABLED", "true")], &[]),
        (
            &[CLOSED, ("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_SMTP_URL", "")],
            &[
                "CLOAKROOM_AUTH_ENABLED is false",
                "CLOAKROOM_SMTP_URL is not set",
                "CLOAKROOM_EXPORT_REQUIRE_ADMIN is false",
            ],
        ),
    ];
    for (settings, refusals) in cases {
        let all = [GOOD, settings].concat();
        let status = if refusals.is_empty() { 0 } else { 2 };
        let text = run("postgres://db.example.com/x", &["config"], &all).exits(status).err();
        for refusal in *refusals {
            assert!(text.contains(refusal), "{settings:?}: {text}");
        }
        let lines = text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(lines, refusals.len(), "{text}");
    }
}
