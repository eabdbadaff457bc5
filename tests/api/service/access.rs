//! Who may use which endpoint: each is requested anonymously, by a user, by another user, by an admin, and with an
//! admin's personal access tokens.

use crate::harness::*;
use crate::openapi::document::ALL_ON;

pub type Row = (&'static str, &'static str, [u16; 6]);

/// Method, path, and the status for nobody, for the user whom `{user}` names, for another user, for an admin, and for
/// the same admin with a personal access token and with a read-only one. `{file}` is the user's; `{published}` is a
/// public file of a third user, whom `{other}` names; nothing has the id `{unknown}`. Bodies are empty, so whoever has
/// access gets a 422 where a body is needed. What the core build lacks is 404 there for everyone.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    ("GET",    "/healthz",                                 [200, 200, 200, 200, 200, 200]),
    ("GET",    "/readyz",                                  [200, 200, 200, 200, 200, 200]),
    ("POST",   "/api/v1/auth/register",                    [422, 422, 422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/login",                       [422, 422, 422, 422, 422, 422]),
    // The access token in the header is not accepted as a refresh token.
    ("POST",   "/api/v1/auth/refresh",                     [401, 401, 401, 401, 401, 401]),
    ("POST",   "/api/v1/auth/refresh-token",               [401, 401, 401, 401, 401, 401]),
    ("POST",   "/api/v1/auth/logout",                      [401, 204, 204, 204, 403, 403]),
    ("POST",   "/api/v1/auth/request-password-reset",      [422, 422, 422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/reset-password",              [422, 422, 422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/confirm-email",               [422, 422, 422, 422, 422, 422]),
    ("GET",    "/api/v1/auth/me",                          [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/auth/sessions",                    [401, 200, 200, 200, 403, 403]),
    ("DELETE", "/api/v1/auth/sessions/{unknown}",          [401, 404, 404, 404, 403, 403]),
    ("DELETE", "/api/v1/auth/sessions/no-id",              [401, 422, 422, 422, 403, 403]),
    ("POST",   "/api/v1/auth/tokens",                      [401, 422, 422, 422, 403, 403]),
    ("GET",    "/api/v1/auth/tokens",                      [401, 200, 200, 200, 403, 403]),
    ("DELETE", "/api/v1/auth/tokens/{unknown}",            [401, 404, 404, 404, 403, 403]),
    ("POST",   "/api/v1/auth/view-token",                  [401, 200, 200, 200, 403, 403]),
    ("GET",    "/api/v1/auth/second-factor",               [401, 200, 200, 200, 403, 403]),
    ("POST",   "/api/v1/auth/second-factor",               [401, 422, 422, 422, 403, 403]),
    ("DELETE", "/api/v1/auth/second-factor",               [401, 422, 422, 422, 403, 403]),
    ("POST",   "/api/v1/auth/second-factor/confirm",       [401, 422, 422, 422, 403, 403]),
    ("POST",   "/api/v1/auth/second-factor/recovery-codes",[401, 422, 422, 422, 403, 403]),
    // Each is for anybody who comes with what a start or the provider has given.
    ("GET",    "/api/v1/auth/oidc/start",                  [422, 422, 422, 422, 422, 422]),
    ("GET",    "/api/v1/auth/oidc/callback",               [303, 303, 303, 303, 303, 303]),
    ("POST",   "/api/v1/auth/oidc/token",                  [422, 422, 422, 422, 422, 422]),
    ("POST",   "/api/v1/auth/oidc/join",                   [401, 422, 422, 422, 403, 403]),
    ("DELETE", "/api/v1/auth/oidc",                        [401, 422, 422, 422, 403, 403]),
    ("GET",    "/api/v1/users/me",                         [401, 200, 200, 200, 200, 200]),
    ("PUT",    "/api/v1/users/me",                         [401, 200, 200, 200, 403, 403]),
    ("POST",   "/api/v1/users/change-password",            [401, 422, 422, 422, 403, 403]),
    ("POST",   "/api/v1/users/me/delete",                  [401, 422, 422, 422, 403, 403]),
    ("POST",   "/api/v1/users",                            [401, 403, 403, 422, 422, 403]),
    ("GET",    "/api/v1/users",                            [401, 403, 403, 200, 200, 200]),
    ("GET",    "/api/v1/users/{user}",                     [401, 403, 403, 200, 200, 200]),
    ("PUT",    "/api/v1/users/{user}",                     [401, 403, 403, 200, 200, 403]),
    ("GET",    "/api/v1/users/no-id",                      [401, 403, 403, 422, 422, 422]),
    ("GET",    "/api/v1/users/{user}/sessions",            [401, 403, 403, 200, 403, 403]),
    ("DELETE", "/api/v1/users/{user}/sessions",            [401, 403, 403, 204, 403, 403]),
    ("GET",    "/api/v1/users/{user}/tokens",              [401, 403, 403, 200, 403, 403]),
    ("DELETE", "/api/v1/users/{user}/tokens",              [401, 403, 403, 204, 403, 403]),
    ("DELETE", "/api/v1/users/{user}/second-factor",       [401, 403, 403, 204, 403, 403]),
    ("DELETE", "/api/v1/users/{user}/identity",            [401, 403, 403, 204, 403, 403]),
    ("POST",   "/api/v1/users/{user}/password-link",       [401, 403, 403, 204, 403, 403]),
    ("GET",    "/api/v1/admin/users",                      [401, 403, 403, 200, 200, 200]),
    ("PUT",    "/api/v1/admin/users/{user}",               [401, 403, 403, 200, 200, 403]),
    ("GET",    "/api/v1/admin/stats",                      [401, 403, 403, 200, 200, 200]),
    ("GET",    "/api/v1/admin/stats/daily",                [401, 403, 403, 200, 200, 200]),
    ("GET",    "/api/v1/admin/audit",                      [401, 403, 403, 200, 200, 200]),
    ("GET",    "/api/v1/admin/audit/export",               [401, 403, 403, 200, 200, 200]),
    // In development a client on the same host needs no token; `exports/users.rs` has the other cases.
    ("GET",    "/api/v1/users/export",                     [200, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/users/exports/csv",                [200, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-full",                [200, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-alive",               [200, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/users/export-simple",              [200, 200, 200, 200, 200, 200]),
    ("POST",   "/api/v1/uploads",                          [401, 422, 422, 422, 422, 403]),
    ("GET",    "/api/v1/uploads",                          [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/uploads/{file}",                   [401, 200, 403, 403, 403, 403]),
    ("GET",    "/api/v1/uploads/{file}/download",          [401, 200, 403, 403, 403, 403]),
    ("PUT",    "/api/v1/uploads/{file}",                   [401, 200, 403, 403, 403, 403]),
    ("POST",   "/api/v1/uploads/{file}/restore",           [401, 200, 404, 404, 404, 403]),
    ("POST",   "/api/v1/uploads/restore",                  [401, 422, 422, 422, 422, 403]),
    ("POST",   "/api/v1/uploads/delete",                   [401, 422, 422, 422, 422, 403]),
    ("POST",   "/api/v1/uploads/update",                   [401, 422, 422, 422, 422, 403]),
    ("GET",    "/api/v1/uploads/public",                   [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/uploads/zip",                      [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/folders",                          [401, 200, 200, 200, 200, 200]),
    ("POST",   "/api/v1/folders/move",                     [401, 422, 422, 422, 422, 403]),
    ("DELETE", "/api/v1/folders",                          [401, 422, 422, 422, 422, 403]),
    ("GET",    "/api/v1/changes",                          [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/links",                            [401, 200, 200, 200, 200, 200]),
    ("POST",   "/api/v1/links",                            [401, 422, 422, 422, 422, 403]),
    ("DELETE", "/api/v1/links/{unknown}",                  [401, 404, 404, 404, 404, 403]),
    ("POST",   "/api/v1/uploads/{file}/links",             [401, 201, 403, 403, 403, 403]),
    ("GET",    "/api/v1/uploads/{file}/links",             [401, 200, 403, 403, 403, 403]),
    ("DELETE", "/api/v1/uploads/{file}/links/{unknown}",   [401, 404, 403, 403, 403, 403]),
    // Public or not, only the owner has to do with the links.
    ("POST",   "/api/v1/uploads/{published}/links",           [401, 403, 403, 403, 403, 403]),
    ("GET",    "/api/v1/uploads/{published}/links",           [401, 403, 403, 403, 403, 403]),
    // None of these names the version of the protocol.
    ("GET",    "/api/v1/uploads/partial",                  [401, 412, 412, 412, 412, 412]),
    ("POST",   "/api/v1/uploads/partial",                  [401, 412, 412, 412, 412, 403]),
    ("GET",    "/api/v1/uploads/partial/{unknown}",        [401, 412, 412, 412, 412, 412]),
    ("PATCH",  "/api/v1/uploads/partial/{unknown}",        [401, 412, 412, 412, 412, 403]),
    ("DELETE", "/api/v1/uploads/partial/{unknown}",        [401, 412, 412, 412, 412, 403]),
    ("POST",   "/api/v1/links/unknown/partial",            [404, 404, 404, 404, 404, 404]),
    ("GET",    "/api/v1/links/unknown/partial/{unknown}",  [412, 412, 412, 412, 412, 412]),
    ("PATCH",  "/api/v1/links/unknown/partial/{unknown}",  [412, 412, 412, 412, 412, 412]),
    ("DELETE", "/api/v1/links/unknown/partial/{unknown}",  [412, 412, 412, 412, 412, 412]),
    ("GET",    "/api/v1/links/unknown",                    [404, 404, 404, 404, 404, 404]),
    ("GET",    "/api/v1/links/unknown/{file}",             [404, 404, 404, 404, 404, 404]),
    ("POST",   "/api/v1/links/unknown/files",              [404, 404, 404, 404, 404, 404]),
    ("GET",    "/api/v1/uploads/{published}",                 [401, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/uploads/{published}/download",        [401, 200, 200, 200, 200, 200]),
    ("PUT",    "/api/v1/uploads/{published}",                 [401, 403, 403, 403, 403, 403]),
    ("DELETE", "/api/v1/uploads/{published}",                 [401, 403, 403, 403, 403, 403]),
    ("GET",    "/api/v1/uploads/no-id",                    [401, 422, 422, 422, 422, 422]),
    ("GET",    "/metrics",                                 [200, 200, 200, 200, 200, 200]),
    ("GET",    "/openapi.json",                            [200, 200, 200, 200, 200, 200]),
    ("GET",    "/api/v1/users/test-only/alive",            [401, 403, 403, 200, 200, 200]),
    ("POST",   "/api/v1/users/test-only/create",           [401, 403, 403, 201, 201, 403]),
    ("GET",    "/api/v1/users/test-only/count",            [401, 403, 403, 200, 200, 200]),
    // These two delete accounts, so they come last. The account of the first is deleted when the token comes, and the
    // second ends the tokens with their account.
    ("DELETE", "/api/v1/users/{other}",                    [401, 403, 403, 204, 404, 403]),
    ("DELETE", "/api/v1/users/test-only/delete-all",       [401, 403, 403, 200, 401, 401]),
];

/// Those endpoints of the table that this build has.
pub fn endpoints() -> Vec<&'static Row> {
    let document = document(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let is_documented = |(method, path, _): &&Row| {
        // These are no ids, in no build.
        let is_id = !["/public", "/zip", "/partial"].iter().any(|word| path.ends_with(word));
        is_id && Operation::of_request(&document, method, &path.replace(['{', '}'], "")).is_some()
    };
    TABLE.iter().filter(|row| has_extras() || is_documented(row)).collect()
}

/// Replaces the variables of a path of the table.
fn fill_in(path: &str, user: &str, other: &str, file: &str, public: &str) -> String {
    let path = path.replace("{user}", user).replace("{other}", other).replace("{file}", file);
    path.replace("{published}", public).replace("{unknown}", UNKNOWN_ID)
}

/// The settings with which all endpoints of the table are there.
pub fn settings() -> &'static [(&'static str, &'static str)] {
    if has_extras() { &ALL_ON } else { &ALL_ON[..1] }
}

fn new_public_file(api: &Server, owner: &Tokens) -> String {
    let id = api.new_file(owner, "a.txt", "text");
    api.update_file(owner, &id, json!({"is_public": true})).expect(200);
    id
}

#[test]
fn everyone_gets_what_the_table_says() {
    let (api, [user, _, third, root]) = Server::with_users(
        &[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")],
        ["user", "other", "third", "root"],
    );
    let (file, public) = (api.new_file(&user, "a.txt", "text"), new_public_file(&api, &third));
    let mut senders: Vec<_> = [None, Some("user"), Some("other"), Some("root")]
        .map(|name| name.map(str::to_owned))
        .into();
    if has_extras() {
        senders.extend([false, true].map(|read_only| Some(api.new_token(&root, read_only))));
    }
    let api = api.beside(settings());
    let endpoints = endpoints();
    for row in TABLE {
        let (method, path, expected) = row;
        let path = fill_in(path, user.id(), third.id(), &file, &public);
        let found = senders.iter().map(|name| {
            let request = api.request_at_root(method, &path);
            let answer = match name {
                Some(token) if token.starts_with("cloak_") => request.by(token).send(),
                // Each request has a new session, because some endpoints end sessions.
                Some(name) => request.by(api.sign_in(name)).send(),
                None => request.send(),
            };
            assert_eq!(answer.status == 401, answer.has_header("WWW-Authenticate"), "{answer:?}");
            answer.status
        });
        let found: Vec<_> = found.collect();
        match endpoints.contains(&row) {
            true => assert_eq!(found, expected[..senders.len()], "{method} {path}"),
            false => assert_eq!(found, [404; 4], "{method} {path}"),
        }
    }
}

#[test]
fn with_authentication_off_everyone_is_the_development_admin() {
    let others = [
        ("CLOAKROOM_AUTH_ENABLED", "false"),
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "key"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ];
    let api = Server::start(&[settings(), &others].concat());
    let body = json!({"email": "ann@example.com", "name": "Ann", "password": PASSWORD});
    let id = api.create_user(Anonymous, body).expect(201).id();
    let strict = Server::start_with(&api.database, &api.data, &[]);
    let ann = strict.login("ann@example.com", PASSWORD).expect(200).tokens();
    let (file, public) = (strict.new_file(&ann, "a.txt", "text"), new_public_file(&strict, &ann));
    for (method, path, [_, _, _, admin, ..]) in endpoints() {
        let changes_itself = [
            ("PUT", "/api/v1/users/me"),
            ("POST", "/api/v1/users/me/delete"),
            ("POST", "/api/v1/users/change-password"),
            ("POST", "/api/v1/auth/tokens"),
            ("POST", "/api/v1/auth/oidc/join"),
            ("DELETE", "/api/v1/auth/oidc"),
            ("POST", "/api/v1/auth/second-factor"),
            ("DELETE", "/api/v1/auth/second-factor"),
            ("POST", "/api/v1/auth/second-factor/confirm"),
            ("POST", "/api/v1/auth/second-factor/recovery-codes"),
        ]
        .contains(&(method, path));
        let expected = if changes_itself { 403 } else { *admin };
        let path = fill_in(path, &id, &id, &file, &public);
        api.request_at_root(method, &path).send().expect(expected);
    }
    api.profile(Anonymous).expect(200).has(json!({"username": "dev_admin"}));
}

#[test]
fn the_role_is_the_tokens_until_it_ends() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let promote = || api.update_user(&root, ann.id(), json!({"role": "admin"})).expect(200);
    promote();
    api.list_users(&ann, "").refused(401, "Invalid token");
    let again = api.sign_in("ann");
    api.list_users(&again, "").expect(200);
    // The same role again is no change, and ends no session.
    promote();
    api.list_users(&again, "").expect(200);
}
