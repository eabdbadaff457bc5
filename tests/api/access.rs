//! Who may call what: every endpoint, called by nobody, by a user, by another user and by an admin.

use serde_json::json;

use crate::forms::file;
use crate::harness::{PASSWORD, Server, Tokens};

/// `{file}` is the user's; `{public}` is a public file of somebody else.
/// Method, path, and the status for nobody, for the user whom `{user}` names, for another user and
/// for an admin. Bodies are empty, so whoever may enter gets a 422 where one is needed.
#[rustfmt::skip]
const TABLE: &[(&str, &str, [u16; 4])] = &[
    ("GET",    "/healthz",                                 [200, 200, 200, 200]),
    ("GET",    "/readyz",                                  [200, 200, 200, 200]),
    ("POST",   "/api/v1/auth/register",                    [422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/login",                       [422, 422, 422, 422]),
    // An access token is no refresh token.
    ("POST",   "/api/v1/auth/refresh",                     [401, 401, 401, 401]),
    ("POST",   "/api/v1/auth/logout",                      [401, 204, 204, 204]),
    ("POST",   "/api/v1/auth/request-password-reset",      [422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/reset-password",              [422, 422, 422, 422]),
    ("GET",    "/api/v1/auth/me",                          [401, 200, 200, 200]),
    ("GET",    "/api/v1/users/me",                         [401, 200, 200, 200]),
    ("PUT",    "/api/v1/users/me",                         [401, 200, 200, 200]),
    ("POST",   "/api/v1/users/change-password",            [401, 422, 422, 422]),
    ("POST",   "/api/v1/users",                            [401, 403, 403, 422]),
    ("GET",    "/api/v1/users",                            [401, 403, 403, 200]),
    ("GET",    "/api/v1/users/{user}",                     [401, 403, 403, 200]),
    ("PUT",    "/api/v1/users/{user}",                     [401, 403, 403, 200]),
    ("GET",    "/api/v1/users/no-id",                      [401, 403, 403, 422]),
    ("GET",    "/api/v1/admin/users",                      [401, 403, 403, 200]),
    ("PUT",    "/api/v1/admin/users/{user}",               [401, 403, 403, 200]),
    ("GET",    "/api/v1/admin/stats",                      [401, 403, 403, 200]),
    // In development, to a client on the same host; the other cases are in exports.rs.
    ("GET",    "/api/v1/users/export",                     [200, 200, 200, 200]),
    ("GET",    "/api/v1/users/exports/csv",                [200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-full",                [200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-alive",               [200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-simple",              [200, 200, 200, 200]),
    ("POST",   "/api/v1/uploads",                          [401, 422, 422, 422]),
    ("GET",    "/api/v1/uploads",                          [401, 200, 200, 200]),
    ("GET",    "/api/v1/uploads/{file}",                   [401, 200, 403, 403]),
    ("GET",    "/api/v1/uploads/{file}/download",          [401, 200, 403, 403]),
    ("PUT",    "/api/v1/uploads/{file}",                   [401, 200, 403, 403]),
    ("GET",    "/api/v1/uploads/{public}",                 [401, 200, 200, 200]),
    ("GET",    "/api/v1/uploads/{public}/download",        [401, 200, 200, 200]),
    ("PUT",    "/api/v1/uploads/{public}",                 [401, 403, 403, 403]),
    ("DELETE", "/api/v1/uploads/{public}",                 [401, 403, 403, 403]),
    ("GET",    "/api/v1/uploads/no-id",                    [401, 422, 422, 422]),
    ("GET",    "/metrics",                                 [200, 200, 200, 200]),
    ("GET",    "/api/v1/users/test-only/alive",            [401, 403, 403, 200]),
    ("POST",   "/api/v1/users/test-only/create",           [401, 403, 403, 201]),
    ("GET",    "/api/v1/users/test-only/count",            [401, 403, 403, 200]),
    // Nobody is left after these two.
    ("DELETE", "/api/v1/users/{other}",                    [401, 403, 403, 204]),
    ("DELETE", "/api/v1/users/test-only/delete-all",       [401, 403, 403, 200]),
];

/// Uploads a file and gives its id.
fn upload(server: &Server, owner: &Tokens, is_public: bool) -> String {
    let answer = server.upload(&owner.access, file("a.txt", "text/plain", b"text")).expect(201);
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    let change = server.api("PUT", &format!("/uploads/{id}")).bearer(&owner.access);
    change.json(json!({ "is_public": is_public })).send().expect(200);
    id
}

#[test]
fn everyone_gets_what_the_table_says() {
    let server = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let user = server.sign_up("user");
    server.sign_up("other");
    let third = server.sign_up("third");
    server.sign_up_admin("root");
    let (file, public) = (upload(&server, &user, false), upload(&server, &third, true));
    for (method, path, expected) in TABLE {
        let path = path
            .replace("{user}", user.id())
            .replace("{other}", third.id())
            .replace("{file}", &file)
            .replace("{public}", &public);
        let found = [None, Some("user"), Some("other"), Some("root")].map(|name| {
            let request = server.request(method, &path);
            let request = match name {
                // A new session each time: some endpoints end them.
                Some(name) => request.bearer(&server.sign_in(name).access),
                None => request,
            };
            let answer = request.send();
            assert!(
                (answer.status == 401) == answer.headers.contains_key("WWW-Authenticate"),
                "{method} {path}: {answer:?}"
            );
            answer.status
        });
        assert_eq!(found, *expected, "{method} {path}");
    }
}

#[test]
fn with_authentication_off_everyone_is_the_development_admin() {
    let server = Server::start(&[
        ("CLOAKROOM_AUTH_ENABLED", "false"),
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "key"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ]);
    let user = server
        .post("/users", json!({"email": "ann@example.com", "name": "Ann", "password": PASSWORD}))
        .expect(201)
        .json();
    let id = user["id"].as_str().expect("an id");
    let strict = Server::start_with(&server.database, &server.data, &[]);
    let ann = strict.post("/auth/login", json!({"email": "ann@example.com", "password": PASSWORD}));
    let ann = ann.expect(200).tokens();
    let (file, public) = (upload(&strict, &ann, false), upload(&strict, &ann, true));
    for (method, path, [.., admin]) in TABLE {
        let path = path
            .replace("{user}", id)
            .replace("{other}", id)
            .replace("{file}", &file)
            .replace("{public}", &public);
        assert_eq!(server.request(method, &path).send().status, *admin, "{method} {path}");
    }
    assert_eq!(
        server.api("GET", "/users/me").send().expect(200).json()["username"],
        json!("dev_admin")
    );
}

#[test]
fn the_role_is_the_tokens_until_it_ends() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let ann = server.sign_up("ann");
    let promote = json!({"role": "admin"});
    let path = format!("/users/{}", ann.id());
    server.api("PUT", &path).bearer(&root.access).json(promote.clone()).send().expect(200);
    server.get("/users", &ann.access).refused(401, "Invalid token");
    let ann = server.sign_in("ann");
    server.get("/users", &ann.access).expect(200);
    // The same role again is no change.
    server.api("PUT", &path).bearer(&root.access).json(promote).send().expect(200);
    server.get("/users", &ann.access).expect(200);
}

#[test]
fn a_refused_admin_request_counts_and_says_403_even_when_the_bucket_is_empty() {
    let server = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_ADMIN", "2"),
    ]);
    let ann = server.sign_up("ann");
    for remaining in ["1", "0", "0"] {
        let answer =
            server.get("/admin/stats", &ann.access).refused(403, "Admin privileges required.");
        assert_eq!(answer.header("X-RateLimit-Limit"), "2");
        assert_eq!(answer.header("X-RateLimit-Remaining"), remaining);
    }
    // Another class, another bucket.
    server.get("/users/me", &ann.access).expect(200);
}

#[test]
fn the_admin_class_is_200_a_minute_for_each_admin() {
    let server = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "100"),
    ]);
    let (root, other) = (server.sign_up_admin("root"), server.sign_up_admin("other"));
    for path in ["/admin/stats", "/users", "/admin/users", "/users/no-id"] {
        let answer = server.get(path, &root.access);
        assert_eq!(answer.header("X-RateLimit-Limit"), "200", "{path}");
    }
    let last = (0..400)
        .map(|_| server.get("/users/no-id", &root.access))
        .find(|answer| answer.status == 429)
        .expect("an empty bucket");
    last.refused(429, "Rate limit exceeded");
    server.get("/users/no-id", &other.access).expect(422);
}
