//! What holds for every endpoint: request ids, methods, paths, headers, error bodies, CORS, probes, logs.

use std::collections::BTreeSet;
use std::thread;

use crate::harness::*;

#[test]
fn a_request_id_is_kept_where_it_is_a_uuid() {
    let api = Server::start(&[("CLOAKROOM_LOG", "debug")]);
    let id = |sent: &str| {
        let request = api.request_at_root("GET", "/healthz").header("X-Request-ID", sent);
        request.send().expect(200).header("X-Request-ID").to_owned()
    };
    let kept = "c0ffee00-1234-4abc-8def-0123456789ab";
    for (sent, reason) in [
        (kept, "the usual form"),
        ("C0FFEE00-1234-4ABC-8DEF-0123456789AB", "upper case becomes lower case"),
        ("c0ffee0012344abc8def0123456789ab", "hyphens are added"),
    ] {
        assert_eq!(id(sent), kept, "{reason}");
    }
    for bad in ["", "7", "c0ffee00-1234-4abc-8def-0123456789ag", "' OR 1=1"] {
        let made = id(bad);
        assert!(made != bad && made.len() == 36 && &made[14..15] == "4", "{made}");
    }
    api.logged(kept);
}

#[test]
fn every_answer_carries_the_common_headers() {
    let api = Server::start(&[]);
    for (method, path, status, no_store) in [
        ("GET", "/healthz", 200, false),
        ("GET", "/api/v1/auth/me", 401, true),
        ("POST", "/api/v1/auth/login", 422, true),
        ("GET", "/api/v1/nope", 404, true),
        ("DELETE", "/api/v1/auth/me", 405, true),
        // No cache may keep an error, wherever it is.
        ("GET", "/nope", 404, true),
        ("GET", "/%61pi/v1/auth/me", 401, true),
        ("GET", "/api/%76%31/uploads/x", 401, true),
        ("PUT", "/%61pi/v1/auth/me", 405, true),
        ("GET", "/%61pi/v1/nope", 404, true),
        ("GET", "/%61pi/v1/%ff", 404, true),
        ("GET", "/api/v1", 404, true),
        ("GET", "/api/v1/", 404, true),
        ("GET", "/api/v10/auth/me", 404, true),
        ("GET", "/api%2Fv1/auth/me", 404, true),
    ] {
        let answer = api.request_at_root(method, path).send().expect(status);
        assert_eq!(answer.header("X-Request-ID").len(), 36);
        assert_eq!(answer.header("X-Content-Type-Options"), "nosniff");
        assert_eq!(answer.header("Referrer-Policy"), "no-referrer");
        let cache = answer.headers.get("Cache-Control");
        assert_eq!(cache.is_some_and(|value| value == "no-store"), no_store, "{path}");
        assert_eq!(answer.header("Content-Type"), "application/json");
    }
}

#[test]
fn a_path_is_known_with_and_without_a_trailing_slash_and_head_like_get() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (method, path, status) in [
        ("GET", "/api/v1/auth/me/", 200),
        ("GET", "/readyz/", 200),
        ("HEAD", "/api/v1/auth/me", 200),
        ("GET", "/api/v1/auth/me//", 404),
        ("GET", "/api/v2/auth/me", 404),
        ("GET", "/", 404),
    ] {
        let answer = api.request_at_root(method, path).by(&ann).send().expect(status);
        assert_eq!(answer.bytes.is_empty(), method == "HEAD", "{method} {path}");
        assert_eq!(answer.text().contains("Not Found"), status == 404, "{answer:?}");
    }
}

/// `openapi/document.rs` tries a wrong method at every path.
#[test]
fn another_method_is_refused_with_those_allowed() {
    let api = Server::start(&[]);
    for (method, path, allow, reason) in [
        ("GET", "/api/v1/auth/login/", "POST", "a trailing slash"),
        ("BREW", "/healthz", "GET, HEAD", "an unknown method"),
        ("OPTIONS", "/api/v1/auth/me", "GET, HEAD", "OPTIONS without CORS"),
        ("DELETE", "/api/v1/users/me", "GET, HEAD, PUT, PATCH", "a literal segment is no id"),
    ] {
        let answer = api.request_at_root(method, path).send().case(reason);
        let answer = answer.refused(405, "Method Not Allowed");
        assert_eq!(answer.header("Allow"), allow, "{method} {path}: {reason}");
    }
}

/// What follows an id follows none of the words that stand in the place of one. `partial` has ids of its own.
#[test]
fn a_word_of_a_path_is_never_read_as_an_id() {
    let api = Server::start(&[]);
    let users: (&[_], &[_]) = (
        &["change-password", "export", "export-full", "exports", "me", "test-only"],
        &[
            "POST password-link",
            "GET sessions",
            "GET tokens",
            "DELETE second-factor",
            "DELETE identity",
        ],
    );
    let uploads: (&[_], &[_]) = (
        &["delete", "public", "restore", "update", "zip"],
        &["GET download", "GET links", "POST links", "DELETE links/x", "POST restore"],
    );
    for (folder, (words, below)) in [("users", users), ("uploads", uploads)] {
        for (word, last) in words.iter().flat_map(|word| below.iter().map(move |last| (word, last)))
        {
            let (method, last) = last.split_once(' ').expect("a method");
            let path = format!("/api/v1/{folder}/{word}/{last}");
            // Some are paths of their own, which know other methods.
            let status = api.request_at_root(method, &path).send().status;
            assert!([404, 405].contains(&status), "{method} {path}: {status}");
        }
    }
}

#[test]
fn errors_have_the_configured_format() {
    let detail = Server::start(&[]);
    let body = json!({"username": "x", "email": "x", "password": "x"});
    let short_name = "Must be at least 3 characters long";
    let bad_address = "Invalid e-mail address";
    let short_password = "Password must be at least 8 characters long";
    assert_eq!(
        detail.register_with(body).expect(422).json(),
        json!({
            "detail": [
                {"loc": ["body", "username"], "msg": short_name, "type": "string_too_short"},
                {"loc": ["body", "email"], "msg": bad_address, "type": "value_error"},
                {"loc": ["body", "password"], "msg": short_password, "type": "string_too_short"},
            ],
            "error_code": "VALIDATION_ERROR",
            "reason": "VALIDATION_FAILED",
            "field_errors": {"username": [short_name], "email": [bad_address], "password": [short_password]},
        })
    );
    let envelope = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let mut body = envelope.login_with(json!({"username": "ann"})).expect(422).json();
    let timestamp = body["error"]["timestamp"].take();
    assert!(
        timestamp.as_str().is_some_and(|text| text.ends_with('Z') && text.len() == 27),
        "{timestamp}"
    );
    let details =
        json!([{"loc": ["body", "password"], "msg": "Field required", "type": "missing"}]);
    assert_eq!(
        body["error"],
        json!({
            "code": "VALIDATION_ERROR",
            "reason": "VALIDATION_FAILED",
            "message": "Validation failed",
            "details": details,
            "timestamp": null,
        })
    );
}

const ALLOW_ORIGIN: &str = "Access-Control-Allow-Origin";

fn preflight(api: &Server, path: &str, origin: &str) -> Answer {
    let request = api.request_at_root("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "PUT").send()
}

/// The value of each header of that name.
fn values<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    answer.headers.get_all(name).iter().map(|value| value.to_str().expect("ASCII")).collect()
}

/// A request of a page of this origin, without a token.
fn cross_origin(api: &Server, origin: &str) -> Answer {
    api.request("GET", "/auth/me").header("Origin", origin).send().expect(401)
}

#[test]
fn cors_allows_the_configured_origins_and_no_others_and_credentials_to_those_that_are_named() {
    let list = "https://app.example, http://localhost:3000";
    let ports = "https://app.example:443,http://App.example:80,https://other.example:8443";
    for (setting, origin, allowed) in [
        ("", "https://app.example", None),
        (list, "https://app.example", Some("https://app.example")),
        (list, "http://localhost:3000", Some("http://localhost:3000")),
        (list, "https://evil.example", None),
        (list, "null", None),
        (list, "https://app.example.evil.example", None),
        ("*", "https://app.example", Some("*")),
        ("*", "null", Some("*")),
        // Browsers do not send the default port.
        (ports, "https://app.example", Some("https://app.example")),
        (ports, "http://app.example", Some("http://app.example")),
        (ports, "https://other.example:8443", Some("https://other.example:8443")),
        (ports, "https://other.example", None),
        (ports, "https://app.example:80", None),
    ] {
        let api = Server::start(&[("CLOAKROOM_CORS_ORIGINS", setting)]);
        let status = if setting.is_empty() { 405 } else { 204 };
        let answer = preflight(&api, "/api/v1/users/me", origin).expect(status);
        for answer in [answer, cross_origin(&api, origin)] {
            let expected: Vec<_> = allowed.into_iter().collect();
            assert_eq!(values(&answer, ALLOW_ORIGIN), expected, "{setting} {origin}");
            let credentials = values(&answer, "Access-Control-Allow-Credentials");
            assert_eq!(credentials == ["true"], allowed.is_some_and(|name| name != "*"));
            let varies = values(&answer, "Vary").contains(&"Origin");
            assert_eq!(varies, !["", "*"].contains(&setting), "{answer:?}");
        }
    }
}

#[test]
fn cors_allows_the_headers_that_are_asked_for_and_exposes_those_that_the_api_has() {
    let api = Server::start(&[("CLOAKROOM_CORS_ORIGINS", "https://app.example")]);
    let preflight = |path: &str| preflight(&api, path, "https://app.example");
    let answer = preflight("/api/v1/users/me").expect(204);
    assert_eq!(answer.header("Access-Control-Allow-Methods"), "GET, HEAD, PUT, PATCH");
    let asked = "Access-Control-Request-Method, Access-Control-Request-Headers";
    assert_eq!(values(&answer, "Vary"), [asked, "Origin"]);
    let has = |answer: &Answer, header: &str, names: &str| {
        let words: BTreeSet<_> = answer.header(header).split(", ").collect();
        let missing: Vec<_> = names.split(' ').filter(|name| !words.contains(name)).collect();
        assert!(missing.is_empty(), "{missing:?}: {answer:?}");
    };
    let names = "X-Request-ID ETag Content-Range Location Repr-Digest Accept-Encoding";
    has(&cross_origin(&api, "https://app.example"), "Access-Control-Expose-Headers", names);
    let long = (0..900).map(|n| format!("x-{n}")).collect::<Vec<_>>().join(",");
    let spaced = long.replace(',', ", ");
    for (asked, allowed) in [
        (&[][..], ""),
        (&["authorization,baggage,sentry-trace"], "authorization, baggage, sentry-trace"),
        (&["X-Requested-With ,\tx-csrf-token"], "X-Requested-With, x-csrf-token"),
        (&["a", "b,c"], "a, b, c"),
        // What is no name of a header is not repeated.
        (&["a b,,c:d,\"e\",f", "*"], "f, *"),
        (&[&*long], &*spaced),
    ] {
        let request = api.request_at_root("OPTIONS", "/api/v1/uploads");
        let request = request.header("Origin", "https://app.example");
        let request = request.header("Access-Control-Request-Method", "POST");
        let request = request.header("Access-Control-Request-Private-Network", "true");
        let name = "Access-Control-Request-Headers";
        let answer =
            asked.iter().fold(request, |r, value| r.header(name, value)).send().expect(204);
        assert_eq!(values(&answer, "Access-Control-Allow-Headers"), [allowed]);
        assert!(!answer.has_header("Access-Control-Allow-Private-Network"), "{answer:?}");
    }
}

#[test]
fn a_page_of_another_origin_sees_what_it_is_refused_with() {
    let origin = ("Origin", "https://app.example");
    let settings = [
        ("CLOAKROOM_CORS_ORIGINS", origin.1),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "2"),
    ];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let link = match has_extras() {
        true => api.new_link(&ann, &file),
        false => "/healthz".to_owned(),
    };
    let long = " ".repeat(128 * 1024 + 1);
    // A path that is unknown, or is so by the settings, is allowed whatever method is asked for.
    for (method, path) in
        [("PATCH", "/api/v1/nope"), ("DELETE", "/nope"), ("POST", "/api/v1/users/test-only/create")]
    {
        let request = api.request_at_root("OPTIONS", path).header(origin.0, origin.1);
        let answer = request.header("Access-Control-Request-Method", method).send().expect(204);
        assert_eq!(values(&answer, "Access-Control-Allow-Methods"), [method]);
        assert_eq!(values(&answer, ALLOW_ORIGIN), [origin.1]);
        api.request_at_root(method, path).header(origin.0, origin.1).send().expect(404);
        // Without a page it is no preflight.
        api.request_at_root("OPTIONS", path).send().expect(404);
        api.request_at_root("OPTIONS", path).header(origin.0, origin.1).send().expect(404);
    }
    let malformed = api.request_at_root("OPTIONS", "/nope").header(origin.0, origin.1);
    let malformed = malformed.header("Access-Control-Request-Method", "a b").send().expect(204);
    assert_eq!(values(&malformed, "Access-Control-Allow-Methods"), [""]);
    for (request, status) in [
        (api.request("GET", "/auth/me"), 401),
        (api.request("GET", "/users").by(&ann), 403),
        (api.request("GET", "/nope"), 404),
        (api.request("PATCH", "/auth/me"), 405),
        (api.request("POST", "/auth/register").body(long.as_str()), 413),
        (api.request("POST", "/auth/login").json(json!({})), 422),
        (api.request("POST", "/auth/login").json(json!({})), 429),
        (api.download_request("GET", &ann, &file), 200),
        (api.request_at_root("GET", &link), 200),
        (api.request_at_root("GET", "/healthz"), 200),
    ] {
        let answer = request.header(origin.0, origin.1).send().expect(status);
        assert_eq!(values(&answer, ALLOW_ORIGIN), [origin.1], "{answer:?}");
        assert_eq!(values(&answer, "Access-Control-Allow-Credentials"), ["true"], "{answer:?}");
    }
}

#[test]
fn each_request_is_one_line_without_secrets() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.login("ann@example.com", "wrong horse").expect(401);
    let answer = api.get("/auth/me?token=s3cret&email=ann@example.com", &ann).expect(200);
    for path in ["/users/ann@example.com/x", "/users/ann%40example.com/x", "/a%0AINFO%20forged"] {
        api.get(path, Anonymous).expect(404);
    }
    api.logged(" /api/v1/a%0A"); // the last request
    let log = api.log();
    assert!(log.contains(" GET (not-logged) 404 "), "{log}");
    for secret in ["s3cret", "example.com", PASSWORD, "wrong horse", &ann.access, &ann.refresh] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert_eq!(log.lines().filter(|line| line.contains("request_id=")).count(), 7, "{log}");
    assert!(!log.contains("\nINFO forged"));
    // Between its beginning and its end a line has only the time that the request took.
    let id = answer.header("X-Request-ID");
    let line = api.logged(id);
    let (start, end) = line.split_once(" ms ").expect("a time");
    let (_, start) = start.split_once(" INFO  ").expect("a level");
    let ms = start.strip_prefix("GET /api/v1/auth/me 200 ").expect("its beginning");
    assert!(ms.split_once('.').is_some_and(|(_, tenth)| tenth.len() == 1), "{line}");
    assert_eq!(end, format!("user={} client=127.0.0.1 request_id={id}", ann.id()));
}

#[test]
fn lines_of_requests_that_are_answered_at_once_are_whole() {
    let api = Server::start(&[("CLOAKROOM_LOG_FORMAT", "json")]);
    // Eight threads of the service write lines that are as long as they can be.
    let path = format!("/{}", "y".repeat(300));
    let requests = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(200);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = RawConnection::open(&api.address);
                connection.send(&requests);
                (0..200).for_each(|_| assert_eq!(connection.answer().status, 404));
            });
        }
    });
    wait_until(|| api.log().matches("request_id").count() == 8 * 200);
    for line in api.log().lines().filter(|line| line.contains("yy") || line.contains("request_id"))
    {
        let line: Value = serde_json::from_str(line).expect("a whole line");
        assert_eq!((&line["path"], &line["status"]), (&json!(path[..200]), &json!(404)), "{line}");
    }
}

#[test]
fn requests_of_monitoring_are_logged_at_debug_unless_they_fail() {
    let probes = ["/healthz", "/readyz", "/metrics", "/healthz/"];
    for (level, is_logged) in [("info", false), ("debug", true)] {
        let api = Server::start(&[("CLOAKROOM_LOG", level)]);
        for path in probes {
            for method in ["GET", "HEAD"] {
                api.request_at_root(method, path).send().expect(200);
            }
            api.request_at_root("POST", path).send().expect(405);
        }
        api.get("/users/export-alive", Anonymous).expect(200);
        api.logged("GET /api/v1/users/export-alive 200 ");
        let count = |text: &str| api.log().matches(text).count();
        for path in probes {
            for method in ["GET", "HEAD"] {
                let line = format!(" DEBUG {method} {path} 200 ");
                assert_eq!(count(&line), usize::from(is_logged), "{line}");
                assert_eq!(count(&format!(" INFO  {method} {path} ")), 0);
            }
            assert_eq!(count(&format!(" INFO  POST {path} 405 ")), 1);
        }
    }
    let api = Server::start(&[("CLOAKROOM_METRICS", "off")]);
    api.request_at_root("GET", "/metrics").send().expect(404);
    api.logged(" INFO  GET /metrics 404 ");
}

/// The unit tests of `telemetry/access_log.rs` show that lines of text have the same parts.
#[test]
fn a_line_has_the_request_its_outcome_and_the_account_as_soon_as_it_is_known() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_LOG_FORMAT", "json")], ["ann"]);
    let line_of = |id: &str| -> Value { serde_json::from_str(&api.logged(id)).expect("JSON") };
    let expect = |id: &str, parts: Value| {
        let mut line = line_of(id);
        assert!(line["timestamp"].take().is_string(), "{line}");
        assert!(line["ms"].take().as_f64().is_some_and(|ms| ms < 60_000.0), "{line}");
        let mut expected = json!({
            "timestamp": null, "level": "INFO", "target": "cloakroom::access", "message": "request", "ms": null,
            "client": "127.0.0.1", "request_id": id,
        });
        let expected_parts = expected.as_object_mut().expect("an object");
        expected_parts.extend(members(&parts).map(|(name, part)| (name.to_owned(), part.clone())));
        expected_parts
            .retain(|name, part| !part.is_null() || ["timestamp", "ms"].contains(&&**name));
        assert_eq!(line, expected);
    };
    let update = api.update_me(&ann, json!({"email": "s3cret"}));
    let upload = api.upload_form(&ann, file_form("a.html", "text/html", b"<p>"));
    let at_root = |method: &str, path: &str| api.request_at_root(method, path).send();
    let (long, path) = ("X".repeat(30), format!("/{}", "y".repeat(300)));
    for (answer, method, path, error, user) in [
        (api.me(&ann), "GET", "/api/v1/auth/me", None, ann.id()),
        (api.me("nonsense"), "GET", "/api/v1/auth/me", Some("Invalid token"), "-"),
        (
            api.admin_stats(&ann),
            "GET",
            "/api/v1/admin/stats",
            Some("Admin privileges required."),
            ann.id(),
        ),
        (update, "PUT", "/api/v1/users/me", Some("Validation failed"), ann.id()),
        (upload, "POST", "/api/v1/uploads", Some("File type not allowed"), ann.id()),
        (at_root("GET", "/a%20b%0A%22c%22"), "GET", "/a%20b%0A%22c%22", Some("Not Found"), "-"),
        (at_root(&long, &path), &long[..20], &path[..200], Some("Not Found"), "-"),
    ] {
        let parts = json!({"method": method, "path": path, "status": answer.status, "error": error, "user": user});
        expect(answer.header("X-Request-ID"), parts);
    }
    // Of a head that is refused there is as much as is known.
    let head = "GET /s3cret HTTP/1.1\r\nHost: x\r\nExpect: s3cret\r\n\r\n";
    let refused = json!({"status": 417, "error": "Expectation failed", "user": "-"});
    expect(&ask(&api.address, head).1.request_id(), refused);

    let by_email = json!({"email": "carl@example.com", "password": PASSWORD});
    let (bob, carl) = (api.register("bob").expect(201), api.register_with(by_email).expect(201));
    let (bob_id, carl_id) =
        (bob.id(), carl.tokens().user["id"].as_str().expect("an id").to_owned());
    let known = [
        (bob, &*bob_id),
        (carl, &carl_id),
        (api.register("ann").expect(400), "-"),
        (api.login("ann", PASSWORD).expect(200), ann.id()),
        (api.login("Ann@example.com", "wrong horse").expect(401), ann.id()),
        (api.login("nobody", PASSWORD).expect(401), "-"),
        (api.refresh(&ann.refresh).expect(200), ann.id()),
        (api.refresh("nonsense").expect(401), "-"),
    ];
    api.logout(&ann).expect(204);
    let ended = (api.refresh(&ann.refresh).expect(401), ann.id());
    api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    let inactive = (api.login("ann", PASSWORD).expect(403), ann.id());
    for (answer, user) in known.into_iter().chain([ended, inactive]) {
        assert_eq!(line_of(answer.header("X-Request-ID"))["user"], user, "{answer:?}");
    }
    for line in api.log().lines() {
        serde_json::from_str::<Value>(line).expect(line);
        assert!(!line.contains("s3cret"), "{line}");
    }
}

/// Libraries log statement parameters at their lower levels.
#[test]
fn no_log_level_shows_e_mail_addresses() {
    for (name, value) in [
        ("CLOAKROOM_LOG", "info"),
        ("RUST_LOG", "cloakroom=info,tokio_postgres=trace"),
        ("RUST_LOG", "info"),
    ] {
        let api = Server::start(&[(name, value)]);
        api.sign_up("ann");
        api.logged(" /api/v1/auth/register ");
        assert!(!api.log().contains("ann@example.com"), "{}", api.log());
    }
}
