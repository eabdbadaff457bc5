//! Settings: what production refuses, what the service says about them, and API keys everywhere.

use serde_json::json;

use crate::harness::{Database, PASSWORD, SECRET, Server, run};

const SAFE: &[(&str, &str)] = &[
    ("CLOAKROOM_ENV", "production"),
    ("CLOAKROOM_SMTP_URL", "none"),
    ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
];

/// `cloakroom config` with the settings of production and others over them: whether it was accepted,
/// and what it said.
fn config(settings: &[(&str, &str)]) -> (bool, String) {
    let settings = [SAFE, settings].concat();
    let output = run("postgres://ann:db-secret@db.example.com/x", &["config"], &settings);
    let said = [output.stdout, output.stderr].concat();
    assert!([Some(0), Some(2)].contains(&output.status.code()));
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

/// Settings, and what must be said about them.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn production_refuses_what_must_not_face_strangers() {
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
        // With no key: it starts, and answers 500 where one is needed.
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
        let (accepted, said) = config(settings);
        assert_eq!(accepted, refusals.is_empty(), "{settings:?}: {said}");
        for refusal in *refusals {
            assert!(said.contains(refusal), "{settings:?}: {said}");
        }
        let lines = said.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(lines, refusals.len(), "{said}");
    }
}

#[test]
fn settings_that_are_no_settings_are_refused_without_their_secrets() {
    for (name, value) in [
        ("CLOAKROOM_API_KEY_SCOPE", "some"),
        ("CLOAKROOM_EXPORT_MAX_ROWS", "0"),
        ("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "soon"),
        ("CLOAKROOM_STORAGE_QUOTA", "10GB"),
        ("CLOAKROOM_RATE_LIMIT_ADMIN", "-1"),
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "maybe"),
        ("CLOAKROOM_SMTP_URL", "http://ann:mail-secret@mail.example.com"),
        ("CLOAKROOM_MAIL_FROM", "nobody"),
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/reset"),
    ] {
        let (accepted, said) = config(&[(name, value)]);
        assert!(!accepted && said.contains(&format!("{name} holds")), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn config_shows_what_is_in_force_and_no_secret() {
    let (accepted, said) = config(&[
        ("CLOAKROOM_API_KEY", "api-secret-1,api-secret-2"),
        ("CLOAKROOM_SMTP_URL", "smtps://ann:mail-secret@mail.example.com:465"),
        ("CLOAKROOM_MAIL_FROM", "noreply@example.com"),
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/{token}"),
    ]);
    assert!(accepted, "{said}");
    for line in [
        "CLOAKROOM_ENV=production",
        "CLOAKROOM_API_KEY_ENABLED=false",
        "CLOAKROOM_API_KEY=(2 set, not shown)",
        "CLOAKROOM_API_KEY_SCOPE=exports",
        "CLOAKROOM_EXPORT_REQUIRE_ADMIN=true",
        "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT=false",
        "CLOAKROOM_EXPORT_MAX_ROWS=1000000",
        "CLOAKROOM_EXPORT_TIMEOUT_SECONDS=60",
        "CLOAKROOM_STORAGE_QUOTA=10737418240",
        "CLOAKROOM_RATE_LIMIT_ADMIN=200",
        "CLOAKROOM_TEST_ENDPOINTS_ENABLED=false",
        "CLOAKROOM_SMTP_URL=smtps://(not shown)@mail.example.com:465",
        "CLOAKROOM_MAIL_FROM=noreply@example.com",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    for secret in ["api-secret", "mail-secret", "db-secret", SECRET] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}

#[test]
fn without_mail_there_is_no_password_reset() {
    let server = Server::start(&[("CLOAKROOM_SMTP_URL", "none")]);
    for path in ["/auth/request-password-reset", "/auth/reset-password"] {
        for body in
            [json!({}), json!({"email": "a@example.com", "token": "x", "new_password": PASSWORD})]
        {
            server.post(path, body).refused(404, "This feature is not available");
        }
        server.api("GET", path).send().refused(405, "Method Not Allowed");
    }
}

#[test]
fn with_scope_all_every_endpoint_asks_for_the_key() {
    let server = Server::start_on(
        &Database::create(),
        &[
            ("CLOAKROOM_API_KEY_ENABLED", "true"),
            ("CLOAKROOM_API_KEY", "one,two"),
            ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ],
    );
    let register = server
        .api("POST", "/auth/register")
        .json(json!({"email": "ann@example.com", "password": PASSWORD}));
    register.send().refused(401, "API key is required");
    register.clone().header("X-API-Key", "three").send().refused(401, "Invalid API key");
    let ann = register.header("X-API-Key", "two").send().expect(201).tokens();
    let me = server.api("GET", "/users/me");
    me.send().refused(401, "Authentication required");
    let me = me.bearer(&ann.access);
    me.send().refused(401, "API key is required");
    me.clone().header("X-API-Key", "on").send().refused(401, "Invalid API key");
    me.header("X-API-Key", "one").send().expect(200);
    // The key comes before the role.
    server.get("/users", &ann.access).refused(401, "API key is required");
    server.request("GET", "/healthz").send().expect(200);
}

#[test]
fn with_scope_exports_other_endpoints_ask_for_no_key() {
    let server = Server::start(&[("CLOAKROOM_API_KEY_ENABLED", "true")]);
    server.logged("CLOAKROOM_API_KEY holds no key");
    let ann = server.sign_up("ann");
    server.get("/users/me", &ann.access).expect(200);
    server.get("/users/export", &ann.access).refused(500, "API key validation misconfigured");
}

#[test]
fn with_scope_all_and_no_key_configured_nothing_works_and_says_so() {
    let server =
        Server::start(&[("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY_SCOPE", "all")]);
    server.post("/auth/login", json!({})).refused(500, "API key validation misconfigured");
    server.request("GET", "/readyz").send().expect(200);
}

#[test]
fn wrong_keys_use_up_the_bucket() {
    let server = Server::start(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "one"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "2"),
    ]);
    let ann = server.sign_up("ann");
    let export = server.api("GET", "/users/export-alive").bearer(&ann.access);
    for _ in 0..2 {
        export.clone().header("X-API-Key", "x").send().refused(401, "Invalid API key");
    }
    for key in ["x", "one"] {
        export.clone().header("X-API-Key", key).send().refused(429, "Rate limit exceeded");
    }
}
