//! The examples of errors are what the service answers.

use std::collections::BTreeSet;
use std::net::Shutdown;

use serde_json::{Value, json};

use crate::harness::*;
use crate::openapi::document::{operation_of, operations};

/// Errors that the test of this file does not provoke, by their reasons, and the tests that do.
const PROVOKED_ELSEWHERE: [(&str, &str); 7] = [
    ("HEADERS_TOO_SLOW", "server/request_heads.rs, in seconds"),
    ("BODY_TOO_SLOW", "server/slow_clients.rs, in seconds"),
    ("INTERNAL_ERROR", "db/outage.rs, with a table that is gone"),
    ("UNAVAILABLE", "db/outage.rs, with a database that is gone"),
    ("OUTCOME_UNKNOWN", "files/file_faults.rs, with a connection that breaks"),
    ("FORM_TOO_LARGE", "files/hostile_uploads.rs, in chunks"),
    ("TIMED_OUT", "db/database.rs, with a database that hangs"),
];

/// What identifies an error: its code, reason, message and fields, and its hint; without figures.
pub fn key(body: &Value) -> String {
    let (code, reason) = (&body["error_code"], &body["reason"]);
    let text = format!("{code} {reason} {} {}", body["detail"], body["hint"]);
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// The keys of the errors that a response of the document has as examples.
pub fn keys_of(document: &Value, response: &Value) -> BTreeSet<String> {
    let content = &follow(document, response)["content"]["application/json"];
    let examples =
        content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
    examples.map(|example| key(&follow(document, example)["value"])).collect()
}

/// The errors that have been provoked, each of which the document must have as an example.
struct Provoked {
    document: Value,
    keys: BTreeSet<String>,
}

impl Provoked {
    /// Notes an error. Fails unless it is an example of this operation in the document of the service.
    #[track_caller]
    fn note(&mut self, operation_id: &str, answer: &Answer) {
        self.note_body(operation_id, answer.status, &answer.json());
    }

    #[track_caller]
    fn note_raw(&mut self, operation_id: &str, answer: &RawAnswer) {
        self.note_body(operation_id, answer.status, &answer.json());
    }

    #[track_caller]
    fn note_body(&mut self, operation_id: &str, status: u16, body: &Value) {
        let key = key(body);
        let operation = operation_of(&self.document, operation_id);
        let listed = response(&self.document, operation, status);
        let mut examples = listed.map(|listed| keys_of(&self.document, listed)).unwrap_or_default();
        examples.extend(keys_of(&self.document, &operation["responses"]["default"]));
        assert!(examples.contains(&key), "{operation_id} has no example {key}, but {examples:#?}");
        self.keys.insert(key);
    }
}

#[test]
fn the_examples_of_errors_are_what_the_service_answers() {
    let document = document(&[
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ]);
    let documented = operations(&document).into_iter().flat_map(|(_, _, operation)| {
        let responses = operation["responses"].as_object().expect("responses").iter();
        // What each operation shows for 403 and 422 is provoked in refusals.rs.
        let errors = responses.filter(|(status, _)| {
            !status.starts_with(['2', '3']) && !["403", "422"].contains(&status.as_str())
        });
        errors.flat_map(|(_, response)| keys_of(&document, response)).collect::<Vec<_>>()
    });
    let documented: BTreeSet<_> = documented.collect();
    let mut provoked = Provoked { document, keys: BTreeSet::new() };
    let api = Server::start(&[
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
        ("CLOAKROOM_EXPORT_MAX_ROWS", "1"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "1048576"),
    ]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    from_the_server(&mut provoked, &api, &ann);
    from_signing_in(&mut provoked, &api, &ann);
    from_accounts(&mut provoked, &api, &ann, &root);
    from_tokens(&mut provoked, &api, &root);
    from_files(&mut provoked, &api, &ann);
    from_limits(&mut provoked);
    from_api_keys(&mut provoked);
    from_a_service_without_authentication(&mut provoked);
    let is_elsewhere =
        |key: &&String| PROVOKED_ELSEWHERE.iter().any(|(reason, _)| key.contains(reason));
    let missing: Vec<_> =
        documented.difference(&provoked.keys).filter(|key| !is_elsewhere(key)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Errors of the HTTP server, which are those of any endpoint.
fn from_the_server(provoked: &mut Provoked, api: &Server, user: &Tokens) {
    let long = "x".repeat(20_000);
    for head in [
        "GET /healthz HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n",
        &format!("GET /healthz HTTP/1.1\r\nHost: x\r\nLong: {long}\r\n\r\n"),
        "GET /healthz HTTP/3.0\r\nHost: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: a b\r\nAuthorization: a b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n",
    ] {
        provoked.note_raw("get_health", &ask(&api.address, head).1);
    }
    let login = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n";
    provoked.note_raw("login", &ask(&api.address, login).1);
    let mut raw = RawConnection::open(&api.address);
    raw.send("POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
    raw.socket().shutdown(Shutdown::Write).expect("half a connection");
    provoked.note_raw("login", &raw.answer());
    let body = json!({"username": "x".repeat(200_000), "password": "x"});
    provoked.note("login", &api.login_with(body));
    provoked.note("list_files", &api.list_files(user, "limit=101"));
    provoked.note("list_files", &api.list_files(user, "offset=-1"));
}

fn from_signing_in(provoked: &mut Provoked, api: &Server, user: &Tokens) {
    let body =
        |name: &str, email: &str| json!({"username": name, "email": email, "password": PASSWORD});
    provoked.note("register", &api.register_with(body("ANN", "other@example.com")));
    provoked.note("register", &api.register_with(body("other", "ann@example.com")));
    provoked.note("login", &api.login("ann", "wrong"));
    let cora = api.sign_up("cora");
    let confirm = || api.confirm_second_factor(&cora, "123456");
    provoked.note("confirm_second_factor", &confirm());
    provoked.note("disable_second_factor", &api.disable_second_factor(&cora, PASSWORD, "x"));
    provoked.note("begin_second_factor", &api.begin_second_factor(&cora, "wrong"));
    let factor = api.new_second_factor(&cora, PASSWORD);
    provoked.note("confirm_second_factor", &confirm());
    provoked.note("begin_second_factor", &api.begin_second_factor(&cora, PASSWORD));
    provoked.note("renew_recovery_codes", &api.renew_recovery_codes(&cora, PASSWORD, "x"));
    provoked.note("login", &api.login("cora", PASSWORD));
    provoked.note("login", &api.login_with_code("cora", PASSWORD, &factor.wrong_code()));
    api.database.run("UPDATE users SET wrong_codes = 100 WHERE username = 'cora'");
    provoked.note("login", &api.login("cora", PASSWORD));
    provoked.note("reset_password", &api.reset_password("no-token", PASSWORD));
    provoked.note("end_my_session", &api.end_session(user, UNKNOWN_ID));
    provoked.note("delete_my_personal_token", &api.delete_token(user, UNKNOWN_ID));
    for _ in 0..200 {
        let answer = api.create_token(user, json!({"name": "a script"}));
        if answer.status != 201 {
            return provoked.note("create_personal_token", &answer);
        }
    }
    panic!("a user may have any number of tokens");
}

fn from_accounts(provoked: &mut Provoked, api: &Server, user: &Tokens, admin: &Tokens) {
    provoked.note("change_password", &api.change_password(user, "wrong", PASSWORD));
    provoked.note("get_user", &api.show_user(admin, UNKNOWN_ID));
    for taken in [json!({"username": "root"}), json!({"email": "root@example.com"})] {
        provoked.note("update_my_profile", &api.update_me(user, taken));
    }
    provoked.note("delete_my_account", &api.delete_me(admin, PASSWORD));
    provoked.note("export_users", &api.export(admin, ""));
}

/// Errors of the tokens that requests carry, and of those that are exchanged for others.
fn from_tokens(provoked: &mut Provoked, api: &Server, admin: &Tokens) {
    let expired = |token: &str| sign(with_member(&claims(token), "exp", now() - 1000));
    let sign_up_and = |name: &str, end: &dyn Fn(&Tokens)| {
        let tokens = api.sign_up(name);
        end(&tokens);
        tokens
    };
    let ended = sign_up_and("bob", &|tokens| drop(api.logout(tokens).expect(204)));
    let inactive = sign_up_and("cyd", &|tokens| {
        api.update_user(admin, tokens.id(), json!({"is_active": false})).expect(200);
    });
    let personal = api.new_token(admin, false);
    let id = api.list_tokens(admin).json()["tokens"][0]["id"].as_str().expect("an id").to_owned();
    api.delete_token(admin, &id).expect(204);
    for header in [
        "Basic YTpi",
        "Bearer",
        "Bearer no-token",
        &format!("Bearer {}", admin.refresh),
        &format!("Bearer {}", expired(&admin.access)),
        &format!("Bearer {}", ended.access),
        &format!("Bearer {personal}"),
        &format!("Bearer {}", inactive.access),
    ] {
        let me = api.request("GET", "/users/me").header("Authorization", header);
        provoked.note("get_my_profile", &me.send());
    }
    provoked.note("get_my_profile", &api.request("GET", "/users/me").send());
    for token in
        ["no-token", &admin.access, &expired(&admin.refresh), &ended.refresh, &inactive.refresh]
    {
        provoked.note("refresh_tokens", &api.refresh(token));
    }
    let refresh = || api.request("POST", "/auth/refresh");
    provoked.note("refresh_tokens", &refresh().send());
    provoked.note("refresh_tokens", &refresh().header("Authorization", "Basic YTpi").send());
    provoked.note("refresh_tokens", &refresh().header("Authorization", "Bearer").send());
}

fn from_files(provoked: &mut Provoked, api: &Server, owner: &Tokens) {
    let file = api.new_file(owner, "a.txt", &numbers(4096));
    provoked.note("download_by_link", &api.open_link("/api/v1/links/unknown"));
    provoked.note("delete_file_link", &api.delete_link(owner, &file, UNKNOWN_ID));
    for _ in 0..100 {
        api.new_link(owner, &file);
    }
    provoked.note("create_file_link", &api.create_link(owner, &file, json!({})));
    provoked.note("get_file", &api.show_file(owner, UNKNOWN_ID));
    let range = api.download_request("GET", owner, &file).header("Range", "bytes=9999-");
    provoked.note("download_file", &range.send());
    provoked.note("upload_file", &api.upload(owner, "a.txt", vec![b'a'; (1 << 20) + 1]));
    let page = file_form("a.html", "text/html", b"<p>");
    provoked.note("upload_file", &api.upload_form(owner, page));
    let picture = file_form("a.jpg", "image/jpeg", PNG);
    provoked.note("upload_file", &api.upload_form(owner, picture));
}

/// Errors of a service with limits that are reached at once.
fn from_limits(provoked: &mut Provoked) {
    let api = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_STORAGE_QUOTA", "10"),
        ("CLOAKROOM_METRICS", "off"),
    ]);
    let ann = api.sign_up("ann");
    provoked.note("upload_file", &api.upload(&ann, "a.txt", "more than ten bytes"));
    provoked.note("get_metrics", &api.request_at_root("GET", "/metrics").send());
    let until_limited = |operation, request: &dyn Fn() -> Answer| {
        let mut answers = (0..20).map(|_| request());
        let limited = answers.find(|answer| answer.status == 429);
        (operation, limited.unwrap_or_else(|| panic!("{operation} has no limit")))
    };
    for (operation, answer) in [
        until_limited("login", &|| api.login("ann", "wrong")),
        until_limited("register", &|| api.register_with(json!({}))),
    ] {
        provoked.note(operation, &answer);
    }
}

fn from_api_keys(provoked: &mut Provoked) {
    let settings = [("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY_SCOPE", "all")];
    let with_key = Server::start(&[&settings[..], &[("CLOAKROOM_API_KEY", "key")]].concat());
    let login = || with_key.request("POST", "/auth/login").json(json!({}));
    provoked.note("login", &login().send());
    provoked.note("login", &login().header("X-API-Key", "wrong").send());
    let ann = json!({"username": "ann", "email": "ann@example.com", "password": PASSWORD});
    let register =
        with_key.request("POST", "/auth/register").header("X-API-Key", "key").json(ann.clone());
    register.send().expect(201);
    let ann = with_key.request("POST", "/auth/login").header("X-API-Key", "key").json(ann).send();
    provoked.note("export_alive", &with_key.get("/users/export-alive", ann.tokens()));
    let without_key = Server::start(&settings);
    provoked.note("login", &without_key.login_with(json!({})));
}

fn from_a_service_without_authentication(provoked: &mut Provoked) {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_SMTP_URL", "none")]);
    let invited = json!({"email": "cy@example.com", "name": "Cy", "invite": true});
    provoked.note("create_user", &api.create_user(Anonymous, invited));
    let foreign = api.request("GET", "/auth/me").header("Host", "evil.example");
    provoked.note("get_current_user", &foreign.send());
    provoked.note("change_password", &api.change_password(Anonymous, PASSWORD, NEW_PASSWORD));
}
