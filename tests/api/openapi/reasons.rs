//! Errors, of which each has a word by which programs recognise it: real requests provoke all in the program's table
//! and all that the OpenAPI document shows, and get what it shows for their operation. And the hints that depend on the
//! request. `openapi/refusals.rs` provokes what the operations show for 403 and 422.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::*;

const KEY: (&str, &str) = ("X-API-Key", "a-key-for-tests-0123456789");
/// Reasons that take many seconds or a broken database, and the tests that provoke them.
const ELSEWHERE: [(&str, &str); 6] = [
    ("FORM_TOO_LARGE", "files/hostile_uploads.rs"),
    ("BODY_TOO_SLOW", "server/slow_clients.rs"),
    ("INTERNAL_ERROR", "db/outage.rs"),
    ("OUTCOME_UNKNOWN", "files/file_faults.rs"),
    ("TIMED_OUT", "db/database.rs"),
    ("UNAVAILABLE", "db/database.rs"),
];

/// A request, and the status and reason of its answer.
type Case = (Request, u16, &'static str);

/// A service with the accounts, files and tokens that provoke most errors.
struct World {
    api: Server,
    root: Tokens,
    ann: Tokens,
    /// A user with as many personal access tokens as one may have.
    bob: Tokens,
    /// A user with a second factor.
    fay: Tokens,
    /// A file of `ann`, 900 bytes long, with as many links as one may have.
    own: String,
}

impl World {
    fn start() -> World {
        let api = Server::start(&[
            ("CLOAKROOM_API_KEY_ENABLED", "true"),
            ("CLOAKROOM_API_KEY", KEY.1),
            ("CLOAKROOM_EXPORT_MAX_ROWS", "1"),
            ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1"),
            ("CLOAKROOM_MAX_UPLOAD_SIZE", "1048576"),
        ]);
        let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
        api.sign_up("carl");
        api.database.run("UPDATE users SET is_active = false WHERE username = 'carl'");
        api.database.run(
            "INSERT INTO personal_tokens (id, user_id, token_hash, name, scope, expires_at)
             SELECT gen_random_uuid(), id, sha256(n::text::bytea), 'a', 'read', now() + interval '1 day'
             FROM users, generate_series(1, 50) n WHERE username = 'bob'",
        );
        let fay = api.sign_up("fay");
        for user in [&fay, &api.sign_up("gus")] {
            api.new_second_factor(user, PASSWORD);
        }
        api.database.run("UPDATE users SET wrong_codes = 100 WHERE username = 'gus'");
        let own = api.new_file(&ann, "a.txt", &"a".repeat(900));
        api.database.run(&format!(
            "INSERT INTO file_links (id, file_id, user_id, token_hash, inline, expires_at)
             SELECT gen_random_uuid(), id, user_id, sha256(n::text::bytea), false, now() + interval '1 day'
             FROM files, generate_series(1, 100) n WHERE id = '{own}'"
        ));
        World { api, root, ann, bob, fay, own }
    }

    fn request(&self, method: &str, path: &str) -> Request {
        self.api.request(method, path)
    }

    fn post(&self, path: &str, sender: impl Credentials, body: Value) -> Request {
        self.request("POST", path).by(sender).json(body)
    }

    fn login(&self, name: &str, password: &str) -> Request {
        self.post("/auth/login", Anonymous, json!({"username": name, "password": password}))
    }

    fn login_with_code(&self, name: &str, code: &str) -> Request {
        let body = json!({"username": name, "password": PASSWORD, "code": code});
        self.post("/auth/login", Anonymous, body)
    }

    fn upload(&self, content_type: &str, content: &[u8]) -> Request {
        self.api.upload_request(&self.ann, file_form("a", content_type, content).bytes())
    }
}

fn of_tokens(world: &World) -> Vec<Case> {
    let World { ann, root, .. } = world;
    let me = |token: &str| world.request("GET", "/auth/me").by(token);
    let by_header = |value: &str| world.request("GET", "/auth/me").header("Authorization", value);
    let refresh =
        |token: &str| world.post("/auth/refresh", Anonymous, json!({"refresh_token": token}));
    let changed = |claim: &str, value: Value| sign(with_member(&claims(&ann.access), claim, value));
    let unknown_token = format!("cloak_{}0iqUEf", "0".repeat(34));
    let wanted = json!({"name": "a camera", "scope": "upload"});
    let camera = world.api.create_token(ann, wanted).expect(201).json()["token"].clone();
    let export = || world.request("GET", "/users/export").by(root);
    vec![
        (world.request("GET", "/auth/me"), 401, "AUTHENTICATION_REQUIRED"),
        (world.request("POST", "/auth/refresh"), 401, "REFRESH_TOKEN_REQUIRED"),
        (by_header("Basic YTpi"), 401, "INVALID_AUTHENTICATION_SCHEME"),
        (by_header("Bearer a b"), 401, "INVALID_AUTHORIZATION_HEADER"),
        (me("nonsense"), 401, "INVALID_TOKEN"),
        (me(&ann.refresh), 401, "NOT_AN_ACCESS_TOKEN"),
        (refresh(&ann.access), 401, "NOT_A_REFRESH_TOKEN"),
        (me(&changed("exp", json!(now() - 9))), 401, "TOKEN_EXPIRED"),
        (me(&changed("sid", json!(UNKNOWN_ID))), 401, "SESSION_ENDED"),
        (me(&changed("sub", json!(UNKNOWN_ID))), 401, "ACCOUNT_NOT_USABLE"),
        (me(&unknown_token), 401, "PERSONAL_TOKEN_ENDED"),
        (me(camera.as_str().expect("a token")), 403, "UPLOAD_TOKEN"),
        // Nothing says which of these accounts exists.
        (world.login("ann", "wrong horse"), 401, "BAD_CREDENTIALS"),
        (world.login("nobody", "wrong horse"), 401, "BAD_CREDENTIALS"),
        (world.login("carl", "wrong horse"), 401, "BAD_CREDENTIALS"),
        (world.login("carl", PASSWORD), 403, "ACCOUNT_INACTIVE"),
        (world.login("fay", PASSWORD), 401, "SECOND_FACTOR_REQUIRED"),
        (world.login_with_code("fay", "no code"), 401, "SECOND_FACTOR_INVALID"),
        (world.login("gus", PASSWORD), 401, "TOO_MANY_WRONG_CODES"),
        (export(), 401, "EXPORT_API_KEY_REQUIRED"),
        (export().header(KEY.0, "wrong"), 401, "INVALID_API_KEY"),
        (export().header(KEY.0, KEY.1), 413, "EXPORT_TOO_LARGE"),
    ]
}

fn of_what_is_stored(world: &World) -> Vec<Case> {
    let World { api, ann, bob, root, fay, .. } = world;
    let second_factor =
        |sender| world.post("/auth/second-factor", sender, json!({"current_password": PASSWORD}));
    let confirm = world.post("/auth/second-factor/confirm", ann, json!({"code": "123456"}));
    let proofs = json!({"current_password": PASSWORD, "code": "no code"});
    let disable = world.request("DELETE", "/auth/second-factor").by(fay).json(proofs);
    let at_unknown = |path: &str| world.request("DELETE", &format!("{path}/{UNKNOWN_ID}")).by(root);
    let register = |name: &str, email: &str| {
        let body = json!({"username": name, "email": email, "password": PASSWORD});
        world.post("/auth/register", Anonymous, body)
    };
    let change = |body: Value| world.request("PUT", "/users/me").by(ann).json(body);
    let passwords = json!({"current_password": "wrong horse", "new_password": NEW_PASSWORD});
    let reset = json!({"token": "nonsense", "new_password": NEW_PASSWORD});
    let last_admin = world.request("DELETE", &format!("/users/{}", root.id())).by(root);
    let range = api.download_request("GET", ann, &world.own).header("Range", "bytes=900-");
    let unmet = world.request("DELETE", &format!("/uploads/{}", world.own)).by(ann);
    let unmet = unmet.header("If-Match", "\"99\"");
    let foreign_cursor = format!("/changes?after=0-0-{}-{}", "0".repeat(32), "0".repeat(16));
    vec![
        (at_unknown("/users"), 404, "USER_NOT_FOUND"),
        (at_unknown("/auth/sessions"), 404, "SESSION_NOT_FOUND"),
        (at_unknown("/auth/tokens"), 404, "TOKEN_NOT_FOUND"),
        (at_unknown("/uploads"), 404, "FILE_NOT_FOUND"),
        (register("ANN", "new@example.com"), 400, "USERNAME_TAKEN"),
        (register("new", "ann@example.com"), 400, "EMAIL_TAKEN"),
        (change(json!({"username": "root"})), 409, "USERNAME_TAKEN"),
        (change(json!({"email": "root@example.com"})), 409, "EMAIL_TAKEN"),
        (last_admin, 409, "LAST_ADMIN"),
        (world.post("/auth/tokens", bob, json!({"name": "a"})), 409, "TOO_MANY_TOKENS"),
        (world.post("/users/change-password", ann, passwords), 400, "WRONG_PASSWORD"),
        (world.post("/auth/reset-password", Anonymous, reset), 400, "INVALID_RESET_TOKEN"),
        (world.request("GET", "/links/unknown"), 404, "LINK_NOT_FOUND"),
        (
            world.post(&format!("/uploads/{}/links", world.own), ann, json!({})),
            409,
            "TOO_MANY_LINKS",
        ),
        (second_factor(fay), 409, "SECOND_FACTOR_ENABLED"),
        (confirm, 404, "SECOND_FACTOR_NOT_FOUND"),
        (disable, 400, "SECOND_FACTOR_INVALID"),
        (range, 416, "RANGE_NOT_SATISFIABLE"),
        (unmet, 412, "PRECONDITION_FAILED"),
        (world.request("GET", &foreign_cursor).by(ann), 410, "GONE"),
    ]
}

fn of_requests(world: &World) -> Vec<Case> {
    let long_body = world.request("POST", "/auth/login").body([b' '; 128 * 1024 + 1]);
    let coded = world.request("POST", "/auth/login").header("Content-Encoding", "gzip");
    let coded = coded.body(*b"\x1f\x8b");
    let get = |path: &str| world.request("GET", path).by(&world.ann);
    vec![
        (world.api.request_at_root("GET", "/nope"), 404, "PATH_NOT_FOUND"),
        (get("/nope"), 404, "PATH_NOT_FOUND"),
        (get("/users/test-only/alive"), 404, "FEATURE_OFF"),
        (world.request("PUT", "/auth/me"), 405, "METHOD_NOT_ALLOWED"),
        (get("/uploads?limit=1000"), 400, "LIMIT_OUT_OF_RANGE"),
        (get("/uploads?offset=-1"), 400, "OFFSET_OUT_OF_RANGE"),
        (long_body, 413, "BODY_TOO_LARGE"),
        (coded, 415, "CONTENT_ENCODING"),
        (world.upload("text/plain", &[b'a'; (1 << 20) + 1]), 413, "FILE_TOO_LARGE"),
        (world.upload("text/html", b"<p>"), 415, "TYPE_NOT_ALLOWED"),
        (world.upload("image/jpeg", b"GIF89a\x80"), 415, "TYPE_CONTRADICTED"),
    ]
}

/// Requests to services with other settings, and the services.
fn of_settings() -> ([Server; 5], Vec<Case>) {
    let off = ("CLOAKROOM_AUTH_ENABLED", "false");
    let open = Server::start(&[off, ("CLOAKROOM_SMTP_URL", "none"), ("CLOAKROOM_METRICS", "off")]);
    let invited = json!({"email": "cy@example.com", "name": "Cy", "invite": true});
    let passwords = json!({"current_password": PASSWORD, "new_password": NEW_PASSWORD});
    let keys = ("CLOAKROOM_API_KEY_ENABLED", "true");
    let all = ("CLOAKROOM_API_KEY_SCOPE", "all");
    let with_keys = Server::start(&[keys, all, ("CLOAKROOM_API_KEY", KEY.1)]);
    let without_keys = Server::start(&[keys, ("CLOAKROOM_STORAGE_QUOTA", "10")]);
    let ann = without_keys.sign_up("ann");
    let large = file_form("a.txt", "text/plain", b"more than ten bytes").bytes();
    let limits = [("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_AUTH", "1")];
    let limited = Server::start(&limits);
    limited.login("ann", PASSWORD).expect(401);
    limited.register("ann").expect(201);
    let confirming = Server::start(&[("CLOAKROOM_EMAIL_CONFIRMATION", "required")]);
    let nonsense = json!({"password": PASSWORD, "token": "nonsense"});
    let nonsense = confirming.request("POST", "/auth/confirm-email").json(nonsense);
    let login = |api: &Server| api.request("POST", "/auth/login").json(json!({"username": "ann"}));
    let cases = vec![
        (open.request("POST", "/users").json(invited), 404, "FEATURE_OFF"),
        (open.request_at_root("GET", "/metrics"), 404, "PATH_NOT_FOUND"),
        (open.request("POST", "/users/change-password").json(passwords), 403, "DEVELOPMENT_ADMIN"),
        (open.request("GET", "/auth/me").header("Host", "evil.example"), 403, "FOREIGN_PAGE"),
        (login(&with_keys), 401, "API_KEY_REQUIRED"),
        (login(&with_keys).header(KEY.0, "wrong"), 401, "INVALID_API_KEY"),
        (without_keys.request("GET", "/users/export").by(&ann), 500, "API_KEY_MISCONFIGURED"),
        (without_keys.upload_request(&ann, large), 507, "STORAGE_FULL"),
        (nonsense, 400, "INVALID_CONFIRMATION_TOKEN"),
        (login(&limited), 429, "LOGIN_RATE_LIMITED"),
        (limited.request("POST", "/auth/register").json(json!({})), 429, "RATE_LIMITED"),
    ];
    ([open, with_keys, without_keys, limited, confirming], cases)
}

/// Answers to what is no valid request of HTTP/1.1.
fn of_bytes(address: &str) -> Vec<(RawAnswer, u16, &'static str)> {
    let head = |rest: &str| format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{rest}\r\n");
    let post = |rest: &str| format!("POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\n{rest}");
    let answer = |bytes: &str| ask(address, bytes).1;
    let twice = "Authorization: Bearer a\r\n".repeat(2);
    let mut cut_short = RawConnection::open(address);
    cut_short.send(post("Content-Length: 9\r\n\r\n{"));
    cut_short.socket().shutdown(Shutdown::Write).expect("half a connection");
    vec![
        (answer("GET /healthz HTTP/1.1\r\n\r\n"), 400, "MALFORMED_REQUEST"),
        (answer(&head(&twice)), 400, "SECOND_AUTHORIZATION"),
        (answer(&head(&"A: b\r\n".repeat(100))), 431, "HEADERS_TOO_LARGE"),
        (answer(&head(&format!("A: {}\r\n", "a".repeat(1 << 14)))), 431, "HEADERS_TOO_LARGE"),
        (answer(&head("Expect: tea\r\n")), 417, "EXPECTATION_FAILED"),
        (answer("GET / HTTP/3.0\r\n\r\n"), 505, "VERSION_NOT_SUPPORTED"),
        (answer("GET /"), 408, "HEADERS_TOO_SLOW"),
        (answer(&post("Transfer-Encoding: chunked\r\n\r\nx\r\n")), 400, "MALFORMED_BODY"),
        (cut_short.answer(), 400, "BODY_CUT_SHORT"),
    ]
}

/// All reasons in the table of errors.
fn reasons_of_the_table() -> BTreeSet<&'static str> {
    let rows = include_str!("../../../src/error/explanation.rs").split("=> row(").skip(1);
    rows.map(|row| row.split('"').nth(1).expect("a reason")).collect()
}

/// The errors that the document shows for statuses which `is_wanted` accepts.
fn errors_of(document: &Value, is_wanted: impl Fn(&str) -> bool) -> Vec<&Value> {
    let mut errors = Vec::new();
    for operation in Operation::all(document) {
        for (_, response) in operation.responses().filter(|(status, _)| is_wanted(status)) {
            let examples = operation.examples(&response["content"]["application/json"]);
            errors.extend(examples.map(|(_, error)| error));
        }
    }
    errors
}

/// Fails unless the document shows this error for the operation of its request, if it has that.
#[track_caller]
fn assert_shown(document: &Value, request: &Request, status: u16, key: &str) {
    let Some(operation) = request.operation(document) else { return };
    let (_, default) = operation.responses().find(|(status, _)| *status == "default").expect("it");
    let shown = &operation.keys(status) | &operation.keys_of(default);
    assert!(shown.contains(key), "{}: {key}: {shown:#?}", operation.id());
}

#[test]
fn all_errors_of_the_program_and_of_the_document_are_what_requests_are_told() {
    let (world, document) = (World::start(), document(&[]));
    let mut reasons = BTreeSet::from(ELSEWHERE.map(|(reason, file)| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(file);
        let test = std::fs::read_to_string(path).expect("a test");
        assert!(test.contains(&format!("\"{reason}\"")), "{file} does not provoke {reason}");
        reason
    }));
    let of_refusals = errors_of(&document, |status| ["403", "422"].contains(&status));
    reasons.extend(of_refusals.iter().filter_map(|error| error["reason"].as_str()));
    let mut keys = BTreeSet::new();
    let (_services, settings) = of_settings();
    let of_world = [of_tokens(&world), of_what_is_stored(&world), of_requests(&world)];
    for (request, status, reason) in of_world.into_iter().chain([settings]).flatten() {
        let answer = request.send().case(reason).expect(status).has(json!({ "reason": reason }));
        let key = key(&answer.json());
        assert_shown(&document, &request, status, &key);
        reasons.insert(reason);
        keys.insert(key);
    }
    for (answer, status, reason) in of_bytes(&world.api.address) {
        assert_eq!((answer.status, &answer.json()["reason"]), (status, &json!(reason)));
        reasons.insert(reason);
        keys.insert(key(&answer.json()));
    }
    assert_eq!(reasons, reasons_of_the_table());
    assert_eq!(document["components"]["schemas"]["Reason"]["enum"], json!(reasons));
    let is_elsewhere =
        |key: &&String| ELSEWHERE.iter().any(|(reason, _)| key.contains(&format!("\"{reason}\"")));
    let others =
        |status: &str| !status.starts_with(['2', '3']) && !["403", "422"].contains(&status);
    let documented: BTreeSet<_> = errors_of(&document, others).into_iter().map(key).collect();
    let missing: Vec<_> = documented.difference(&keys).filter(|key| !is_elsewhere(key)).collect();
    assert!(missing.is_empty(), "no request provokes {missing:#?}");
}

#[test]
fn hints_name_what_was_sent_and_what_is_accepted() {
    let world = World::start();
    let export = world.request("GET", "/users/export").by(&world.root).header(KEY.0, KEY.1);
    let range = world.api.download_request("GET", &world.ann, &world.own);
    let accepted = "Accepted are image/jpeg, image/png, application/pdf, text/plain.";
    let other = format!("The file is of the type `text/html`. {accepted}");
    let none = format!("The file declares no type, and its content shows none. {accepted}");
    let size = "The file may have at most 1048576 bytes.";
    let contradicted =
        "The file was declared as `image/jpg`, but its first bytes are those of `image/gif`.";
    let beyond = "The file has 900 bytes, of which the first is number 0.";
    let unknown = "The endpoints of the API are below /api/v1; /docs describes them.";
    for (request, hint) in [
        (world.request("GET", "/nope"), unknown),
        (export, "An export has at most 1 rows. Leave some out with a filter."),
        (world.upload("text/plain", &[b'a'; (1 << 20) + 1]), size),
        (world.upload("text/html", b"a"), &other),
        (world.upload("", b"\xff"), &none),
        (world.upload("Image/JPG; a=b", b"GIF89a\x80"), contradicted),
        (range.header("Range", "bytes=900-"), beyond),
    ] {
        request.send().has(json!({ "hint": hint }));
    }
    let limits = [("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_AUTH", "1")];
    let limited = Server::start(&[&limits[..], &[("CLOAKROOM_DOCS", "off")]].concat());
    let hint = "The endpoints of the API are below /api/v1.";
    limited.request_at_root("GET", "/nope").send().expect(404).has(json!({ "hint": hint }));
    limited.login("ann", PASSWORD).expect(401);
    let answer = limited.login("ann", PASSWORD).expect(429);
    let hint = format!("Try again in {} seconds.", answer.header("Retry-After"));
    answer.has(json!({ "hint": hint }));
}

#[test]
fn a_hint_is_one_more_detail_of_an_envelope() {
    let api = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let details = |request: Request| request.send().json()["error"]["details"].clone();
    let hint = r#"Send a JSON object in UTF-8, such as {"name": "value"}."#;
    assert_eq!(
        details(api.request("POST", "/auth/login").body("{")),
        json!([{"loc": ["body"], "msg": "Invalid JSON", "type": "json_invalid"}, {"hint": hint}])
    );
    let hint = "This path accepts GET, HEAD.";
    assert_eq!(details(api.request("PUT", "/auth/me")), json!([{ "hint": hint }]));
    assert_eq!(details(api.request("GET", "/users/test-only/alive")), Value::Null);
}
