//! The hints that stand beside the messages of errors: each of them provoked and compared, in both formats.

use serde_json::{Value, json};

use crate::harness::*;

const KEY: (&str, &str) = ("X-API-Key", "a-key-for-tests-0123456789");

/// The hint of an error, in whichever format it is.
#[track_caller]
fn hint_of(body: &Value) -> Option<String> {
    let hint = if body["error"].is_object() {
        assert_eq!(body.get("hint"), None, "{body}");
        let details = body["error"]["details"].as_array().cloned().unwrap_or_default();
        details.last().map_or(Value::Null, |last| last["hint"].clone())
    } else {
        body["hint"].clone()
    };
    assert!(hint.is_null() || hint.is_string(), "{body}");
    hint.as_str().map(str::to_owned)
}

/// A service with the accounts, files and tokens that provoke all errors.
struct World {
    api: Server,
    root: Tokens,
    ann: Tokens,
    /// A file of another user than `ann`.
    foreign: String,
    /// A file of `ann`, 900 bytes long.
    own: String,
    personal: String,
    read_only: String,
}

impl World {
    fn start(format: &str) -> World {
        let api = Server::start(&[
            ("CLOAKROOM_ERROR_FORMAT", format),
            ("CLOAKROOM_API_KEY_ENABLED", "true"),
            ("CLOAKROOM_API_KEY", KEY.1),
            ("CLOAKROOM_EXPORT_MAX_ROWS", "1"),
            ("CLOAKROOM_MAX_UPLOAD_SIZE", "1000"),
            ("CLOAKROOM_USER_STORAGE_QUOTA", "1000"),
        ]);
        let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
        api.sign_up("carl");
        api.database.run("UPDATE users SET is_active = false WHERE username = 'carl'");
        let foreign = api.new_file(&bob, "b.txt", "bob's");
        let own = api.new_file(&ann, "a.txt", &"a".repeat(900));
        let (personal, read_only) = (api.new_token(&ann, false), api.new_token(&ann, true));
        World { api, root, ann, foreign, own, personal, read_only }
    }

    fn request(&self, method: &str, path: &str) -> Request {
        self.api.request(method, path)
    }

    /// A request with a JSON body.
    fn with_body(
        &self,
        method: &str,
        path: &str,
        sender: impl Credentials,
        body: Value,
    ) -> Request {
        self.request(method, path).by(sender).json(body)
    }

    fn upload(&self, content_type: &str, content: &[u8]) -> Request {
        self.api.upload_request(&self.ann, file_form("a", content_type, content).bytes())
    }

    /// Sends the request and expects an error with this status and hint.
    #[track_caller]
    fn expect(&self, request: Request, status: u16, hint: &str) {
        let answer = request.send().expect(status);
        let expected = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
        assert_eq!(hint_of(&answer.json()), expected, "{answer:?}");
    }
}

/// Runs a test with both formats of errors.
fn in_both_formats(test: impl Fn(&World)) {
    for format in ["detail", "envelope"] {
        test(&World::start(format));
    }
}

#[test]
fn refusals_for_want_of_a_token_say_how_to_get_one() {
    in_both_formats(|world| {
        let World { api, root, ann, .. } = world;
        let by_header =
            |value: &str| world.request("GET", "/auth/me").header("Authorization", value);
        let how = "Send the token as `Authorization: Bearer <token>`.";
        let sign_in =
            "Send a token from POST /api/v1/auth/login as `Authorization: Bearer <token>`.";
        let me = |token: &str| world.request("GET", "/auth/me").by(token);
        let refresh = |token: &str| {
            world.with_body("POST", "/auth/refresh", Anonymous, json!({"refresh_token": token}))
        };
        let claims = claims(&ann.access);
        let expired = sign(with_member(&claims, "exp", now() - 9));
        let ended = sign(with_member(&claims, "sid", UNKNOWN_ID));
        let of_nobody = sign(with_member(&claims, "sub", UNKNOWN_ID));
        let unknown_token = format!("cloak_{}0iqUEf", "0".repeat(34));
        let login = |name: &str, password: &str| {
            let body = json!({"username": name, "password": password});
            world.with_body("POST", "/auth/login", Anonymous, body)
        };
        let check = "Check both. In a password, upper and lower case are different.";
        let export = || world.request("GET", "/users/export").by(root);
        for (request, status, hint) in [
            (world.request("GET", "/auth/me"), 401, sign_in),
            (world.request("POST", "/auth/refresh"), 401, sign_in),
            (by_header("Basic YTpi"), 401, how),
            (by_header("Bearer a b"), 401, how),
            (
                me("nonsense"),
                401,
                "Send the token exactly as the service issued it, or sign in again.",
            ),
            (
                me(&ann.refresh),
                401,
                "Send an access token. Only POST /api/v1/auth/refresh accepts a refresh token.",
            ),
            (refresh(&ann.access), 401, "Send the refresh token that came with the access token."),
            (
                me(&expired),
                401,
                "Send the refresh token to POST /api/v1/auth/refresh, or sign in again.",
            ),
            (me(&ended), 401, "Sign in again."),
            (
                me(&unknown_token),
                401,
                "Sign in and make another personal access token with POST /api/v1/auth/tokens.",
            ),
            (me(&of_nobody), 401, "Sign in with another account, or ask an administrator."),
            // Nothing says which of these accounts exists.
            (login("ann", "wrong horse"), 401, check),
            (login("nobody", "wrong horse"), 401, check),
            (login("carl", "wrong horse"), 401, check),
            (login("carl", PASSWORD), 403, "Ask an administrator to activate the account."),
            (export(), 401, "Send the key as `X-API-Key: <key>`."),
            (
                export().header("X-API-Key", "wrong"),
                401,
                "Ask the operator of the service for a valid key.",
            ),
        ] {
            world.expect(request, status, hint);
        }
        let log = api.log();
        assert!(!log.contains("Sign in") && !log.contains(&ann.access), "{log}");
    });
}

#[test]
fn refusals_for_want_of_a_permission_say_what_is_needed() {
    in_both_formats(|world| {
        let World { ann, personal, read_only, foreign, root, .. } = world;
        let file = |rest: &str| format!("/uploads/{foreign}{rest}");
        let session =
            "A personal access token is not accepted for this. Sign in and send the access token.";
        let change = "Only its owner may change or delete this file.";
        let private =
            "Only its owner may read this file. The owner can make it public with `is_public`.";
        let of_admin = world.api.new_token(root, false);
        let own_account = format!("/users/{}", root.id());
        for (request, hint) in [
            (
                world.request("GET", "/admin/stats").by(ann),
                "Sign in with an account whose role is admin.",
            ),
            (world.request("GET", &file("")).by(ann), private),
            (world.request("GET", &file("/download")).by(ann), private),
            (world.with_body("PUT", &file(""), ann, json!({"filename": "x"})), change),
            (world.request("DELETE", &file("")).by(ann), change),
            (world.request("GET", "/auth/sessions").by(personal), session),
            (world.request("POST", "/auth/logout").by(read_only), session),
            (world.with_body("PUT", &own_account, &of_admin, json!({"name": "x"})), session),
            (
                world.request("DELETE", &file("")).by(read_only),
                "The personal access token is read-only. Send another token.",
            ),
        ] {
            world.expect(request, 403, hint);
        }
    });
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let answer = api.change_password(Anonymous, PASSWORD, NEW_PASSWORD).expect(403);
    let expected = "Authentication is switched off, and the account that all requests have then cannot be changed.";
    answer.has(json!({ "hint": expected }));
}

#[test]
fn refusals_that_depend_on_what_is_stored_say_what_to_do() {
    in_both_formats(|world| {
        let World { api, root, ann, own, .. } = world;
        let at_unknown = |path: &str, sender: &Tokens| {
            world.request("DELETE", &format!("{path}/{UNKNOWN_ID}")).by(sender)
        };
        let register = |username: &str, email: &str| {
            let body = json!({"username": username, "email": email, "password": PASSWORD});
            world.with_body("POST", "/auth/register", Anonymous, body)
        };
        let change = |body: Value| world.with_body("PUT", "/users/me", ann, body);
        let other_name = "Choose another one. Upper and lower case make no difference.";
        let passwords = json!({"current_password": "wrong horse", "new_password": NEW_PASSWORD});
        let reset = json!({"token": "nonsense", "new_password": NEW_PASSWORD});
        api.database.run(
            "INSERT INTO personal_tokens (id, user_id, token_hash, name, read_only, expires_at)
             SELECT gen_random_uuid(), id, sha256(n::text::bytea), 'a', true, now() + interval '1 day'
             FROM users, generate_series(1, 50) n WHERE username = 'bob'",
        );
        let bob = api.sign_in("bob");
        for (request, status, hint) in [
            (at_unknown("/users", root), 404, "GET /api/v1/users lists all accounts."),
            (
                at_unknown("/auth/sessions", ann),
                404,
                "GET /api/v1/auth/sessions lists your sessions.",
            ),
            (
                at_unknown("/auth/tokens", ann),
                404,
                "GET /api/v1/auth/tokens lists your personal access tokens.",
            ),
            (at_unknown("/uploads", ann), 404, "GET /api/v1/uploads lists your files."),
            (register("ANN", "new@example.com"), 400, other_name),
            (
                register("new", "ann@example.com"),
                400,
                "Sign in if the account is yours. Otherwise use another address.",
            ),
            (change(json!({"username": "root"})), 409, other_name),
            (change(json!({"email": "root@example.com"})), 409, "Use another address."),
            (
                world.request("DELETE", &format!("/users/{}", root.id())).by(root),
                409,
                "Make another active account an administrator first.",
            ),
            (
                world.with_body("POST", "/auth/tokens", &bob, json!({"name": "a"})),
                409,
                "End one that is no longer needed with DELETE /api/v1/auth/tokens/{token_id}.",
            ),
            (
                world.with_body("POST", "/users/change-password", ann, passwords),
                400,
                "Send the password that the account has now as `current_password`.",
            ),
            (
                world.with_body("POST", "/auth/reset-password", Anonymous, reset),
                400,
                "A token works once and expires. POST /api/v1/auth/request-password-reset sends another one.",
            ),
            (
                api.download_request("GET", ann, own).header("Range", "bytes=900-"),
                416,
                "The file has 900 bytes, of which the first is number 0.",
            ),
            (
                world.upload("text/plain", &[b'a'; 101]),
                507,
                "Delete files that are no longer needed, or ask the operator of the service for more space.",
            ),
            (
                world.request("GET", "/users/export").by(root).header(KEY.0, KEY.1),
                413,
                "An export has at most 1 rows. Leave some out with a filter.",
            ),
        ] {
            world.expect(request, status, hint);
        }
    });
}

#[test]
fn refusals_of_a_path_a_method_or_a_body_say_what_is_accepted() {
    in_both_formats(|world| {
        let ann = &world.ann;
        let json_object = r#"Send a JSON object in UTF-8, such as {"name": "value"}."#;
        let body = |bytes: &[u8]| world.request("POST", "/auth/login").body(bytes);
        let declared = "x".repeat(150);
        let accepted = "Accepted are image/jpeg, image/png, application/pdf, text/plain.";
        let paths = "The endpoints of the API are below /api/v1; /docs describes them.";
        for (request, status, hint) in [
            (world.api.request_at_root("GET", "/nope"), 404, paths),
            (world.request("GET", "/nope").by(ann), 404, paths),
            (world.request("PUT", "/auth/me"), 405, "This path accepts GET, HEAD."),
            (body(b"{"), 422, json_object),
            (body(b"\xff"), 422, json_object),
            (body(&[b' '; 128 * 1024 + 1]), 413, "The body may have at most 131072 bytes."),
            (
                world.upload("text/plain", &[b'a'; 1001]),
                413,
                "The file may have at most 1000 bytes.",
            ),
            (
                world.upload("text/html", b"<p>"),
                415,
                &format!("The file was declared as `text/html`. {accepted}"),
            ),
            (
                world.upload(&declared, b"a"),
                415,
                &format!("The file was declared as `{}`. {accepted}", "x".repeat(100)),
            ),
            (
                world.upload("Image/JPG; a=b", PNG),
                415,
                "The file was declared as `image/jpg`, but its first bytes are those of `image/png`.",
            ),
            // The messages of these say all there is to say.
            (body(b"{}"), 422, ""),
            (body(b"[]"), 422, ""),
            (world.request("GET", "/uploads?limit=1000").by(ann), 400, ""),
            (world.request("GET", "/uploads?offset=-1").by(ann), 400, ""),
            (world.request("GET", "/uploads/x").by(ann), 422, ""),
            (world.request("GET", "/users/test-only/alive").by(ann), 404, ""),
        ] {
            world.expect(request, status, hint);
        }
    });
    let api = Server::start(&[("CLOAKROOM_DOCS", "off")]);
    let hint = "The endpoints of the API are below /api/v1.";
    for path in ["/nope", "/api/v1/nope"] {
        api.request_at_root("GET", path).send().expect(404).has(json!({ "hint": hint }));
    }
}

#[test]
fn a_hint_is_one_more_detail_of_an_envelope() {
    let api = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let details = |answer: Answer| answer.json()["error"]["details"].clone();
    let missing = json!({"loc": ["body", "password"], "msg": "Field required", "type": "missing"});
    assert_eq!(details(api.login_with(json!({"username": "ann"}))), json!([missing]));
    let answer = api.request("POST", "/auth/login").body("{").send();
    let hint = r#"Send a JSON object in UTF-8, such as {"name": "value"}."#;
    assert_eq!(
        details(answer),
        json!([{"loc": ["body"], "msg": "Invalid JSON", "type": "json_invalid"}, {"hint": hint}])
    );
    let hint = "This path accepts GET, HEAD.";
    assert_eq!(details(api.request("PUT", "/auth/me").send()), json!([{ "hint": hint }]));
    assert_eq!(details(api.request("GET", "/users/test-only/alive").send()), Value::Null);
}

#[test]
fn a_rate_limit_says_in_how_many_seconds_to_try_again() {
    for format in ["detail", "envelope"] {
        let api = Server::start(&[
            ("CLOAKROOM_ERROR_FORMAT", format),
            ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
            ("CLOAKROOM_RATE_LIMIT_AUTH", "1"),
        ]);
        api.login("ann", PASSWORD).expect(401);
        let answer = api.login("ann", PASSWORD).expect(429);
        let seconds = answer.header("Retry-After");
        let hint = format!("Try again in {seconds} seconds.");
        assert_eq!(hint_of(&answer.json()), Some(hint));
    }
}

#[test]
fn what_the_http_server_refuses_has_a_hint() {
    for format in ["detail", "envelope"] {
        let api = Server::start(&[
            ("CLOAKROOM_ERROR_FORMAT", format),
            ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1"),
        ]);
        let head = |rest: &str| format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{rest}\r\n");
        let post = |rest: &str| format!("POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\n{rest}");
        let size = "The request line and the headers may have at most 16384 bytes, \
                    and there may be at most 100 headers.";
        for (bytes, status, hint) in [
            (
                "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
                400,
                "Check the request line and the headers. The rules of HTTP/1.1 are in RFC 9112.",
            ),
            (head(&"A: b\r\n".repeat(100)), 431, size),
            (head(&format!("A: {}\r\n", "a".repeat(16 * 1024))), 431, size),
            (
                head("Expect: tea\r\n"),
                417,
                "The only expectation that is supported is 100-continue.",
            ),
            ("GET / HTTP/3.0\r\n\r\n".to_owned(), 505, "Use HTTP/1.1 or HTTP/1.0."),
            ("GET /".to_owned(), 408, "Send the request line and the headers at once."),
            (
                post("Transfer-Encoding: chunked\r\n\r\nx\r\n"),
                400,
                "Check the chunks of the body. Their rules are in RFC 9112, section 7.1.",
            ),
        ] {
            let (_, answer) = ask(&api.address, &bytes);
            assert_eq!(answer.status, status, "{hint}");
            assert_eq!(hint_of(&answer.json()).as_deref(), Some(hint));
        }
        let mut connection = RawConnection::open(&api.address);
        connection.send(post("Content-Length: 9\r\n\r\n{"));
        connection.socket().shutdown(std::net::Shutdown::Write).expect("shutdown");
        let answer = connection.answer();
        assert_eq!(answer.status, 400);
        let hint = "Keep the connection open until the whole body is sent. Content-Length must be its exact size.";
        assert_eq!(hint_of(&answer.json()).as_deref(), Some(hint));
    }
}
