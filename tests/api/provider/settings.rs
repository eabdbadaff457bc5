//! The settings of sign-in with OpenID Connect.

use crate::harness::*;

const PUBLIC_URL: (&str, &str) = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
const ISSUER: (&str, &str) = ("CLOAKROOM_OIDC_ISSUER", "https://login.example.com");
const CLIENT_ID: (&str, &str) = ("CLOAKROOM_OIDC_CLIENT_ID", "cloakroom");
const CLIENT_SECRET: (&str, &str) = ("CLOAKROOM_OIDC_CLIENT_SECRET", "s3cret");
const GOOD: [(&str, &str); 4] = [PUBLIC_URL, ISSUER, CLIENT_ID, CLIENT_SECRET];
const PASSWORDS: &str = "CLOAKROOM_PASSWORD_LOGIN";

#[test]
fn what_cannot_work_is_refused() {
    let with = |more: &[(&'static str, &'static str)]| [&GOOD, more].concat();
    let issuer = |text: &'static str| with(&[("CLOAKROOM_OIDC_ISSUER", text)]);
    for (settings, fault) in [
        (with(&[("CLOAKROOM_OIDC_CLIENT_ID", "")]), "CLOAKROOM_OIDC_CLIENT_ID is not set"),
        (with(&[("CLOAKROOM_OIDC_CLIENT_SECRET", "")]), "CLOAKROOM_OIDC_CLIENT_SECRET is not set"),
        (with(&[("CLOAKROOM_OIDC_CA", "/no/such/file")]), "CLOAKROOM_OIDC_CA holds"),
        (with(&[("CLOAKROOM_OIDC_REGISTRATION", "yes")]), "CLOAKROOM_OIDC_REGISTRATION holds"),
        (with(&[("CLOAKROOM_OIDC_SESSION_HOURS", "0")]), "CLOAKROOM_OIDC_SESSION_HOURS holds"),
        (with(&[("CLOAKROOM_OIDC_EMAILS", "some")]), "CLOAKROOM_OIDC_EMAILS holds"),
        (with(&[("CLOAKROOM_OIDC_DOMAINS", "a.example,,b")]), "CLOAKROOM_OIDC_DOMAINS holds"),
        (with(&[("CLOAKROOM_OIDC_DOMAINS", "@a.example")]), "CLOAKROOM_OIDC_DOMAINS holds"),
        (with(&[("CLOAKROOM_OIDC_ADMIN_CLAIM", "groups")]), "CLOAKROOM_OIDC_ADMIN_CLAIM holds"),
        (with(&[("CLOAKROOM_OIDC_SCOPES", "email profile")]), "CLOAKROOM_OIDC_SCOPES holds"),
        (with(&[(PASSWORDS, "off")]), "CLOAKROOM_PASSWORD_LOGIN holds"),
        (with(&[("CLOAKROOM_PUBLIC_URL", "")]), "CLOAKROOM_PUBLIC_URL is no https URL"),
        (with(&[("CLOAKROOM_PUBLIC_URL", "http://127.0.0.1:8000")]), "is no https URL"),
        (with(&[("CLOAKROOM_CONSOLE", "off")]), "CLOAKROOM_CONSOLE is off"),
        (issuer("http://login.example.com"), "CLOAKROOM_OIDC_ISSUER holds"),
        (issuer("https://login.example.com?a"), "CLOAKROOM_OIDC_ISSUER holds"),
        (issuer("https://login.example.com#a"), "CLOAKROOM_OIDC_ISSUER holds"),
        (issuer("https://ann@login.example.com"), "CLOAKROOM_OIDC_ISSUER holds"),
        (vec![(PASSWORDS, "admins")], "CLOAKROOM_PASSWORD_LOGIN is admins"),
    ] {
        let text = run(NOWHERE, &["serve"], &settings).exits(2).reports(fault).err();
        assert!(!text.contains("s3cret"), "{text}");
    }
    // What is safe only on this host is refused in production.
    let local = [("CLOAKROOM_ENV", "production"), ("CLOAKROOM_OIDC_ISSUER", "http://127.0.0.1:1")];
    run(NOWHERE, &["config"], &with(&local)).exits(2).reports("CLOAKROOM_OIDC_ISSUER holds");
    let shown = run(NOWHERE, &["config"], &GOOD).exits(0).out();
    assert!(shown.contains("login.example.com") && !shown.contains("s3cret"), "{shown}");
}
