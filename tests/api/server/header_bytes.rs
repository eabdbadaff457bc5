//! Bytes above ASCII in the headers of a request: they are opaque (RFC 9110, 5.5), and no header that has them is as if
//! it were absent.

use crate::harness::*;

/// Sends a request with headers of any bytes.
fn send_with(api: &Server, line: &str, headers: &[u8]) -> RawAnswer {
    let head = format!("{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n");
    ask(&api.address, [head.as_bytes(), headers, b"\r\n\r\n"].concat()).1
}

#[test]
fn bytes_above_ascii_in_a_header_refuse_nothing_by_themselves() {
    let (api, [ann]) =
        Server::with_users(&[("CLOAKROOM_CORS_ORIGINS", "https://app.example")], ["ann"]);
    let token = format!("Authorization: Bearer {}\r\n", ann.access);
    for header in [
        &b"Cookie: name=Andr\xe9s; other=\xff\xfe"[..],
        b"User-Agent: Mozilla/5.0 (caf\xe9)",
        b"Referer: https://example.com/\xe4",
        b"X-Forwarded-For: \xe9, 203.0.113.7",
        b"Forwarded: for=\xe9",
        b"X-Request-ID: \xe9",
        b"X-API-Key: \xe9",
        b"Accept: text/html;\xe9",
        b"Accept-Encoding: \xe9, gzip",
        b"Content-Type: \xe9",
        b"Content-Encoding: \xe9",
        b"Range: bytes=\xe9-",
        b"If-Modified-Since: \xe9",
        b"Origin: https://\xe9",
        b"X-Any: \x80\xbf\xc0\xff",
    ] {
        let headers = [token.as_bytes(), header].concat();
        let name = String::from_utf8_lossy(header);
        assert_eq!(send_with(&api, "GET /api/v1/auth/me", &headers).status, 200, "{name}");
        assert_eq!(send_with(&api, "GET /healthz", header).status, 200, "{name}");
        assert_eq!(send_with(&api, "GET /docs", header).status, 200, "{name}");
    }
    // The target is of ASCII, and so are names of headers.
    let (_, answer) = ask(&api.address, b"GET /\xe9 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(answer.status, 400);
    assert_eq!(send_with(&api, "GET /healthz", b"X-\xe9: a").status, 400);
    let log = api.log();
    assert!(log.lines().all(|line| !line.contains(['\u{e9}', '\u{fffd}'])), "{log}");
}

#[test]
fn a_header_that_is_not_utf_8_is_never_as_if_it_were_absent() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let key = ("CLOAKROOM_API_KEY", "a-key-for-tests-0123456789");
    let with_key = Server::start(&[
        key,
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
    ]);
    let file = api.new_file(&root, "a.txt", "text");
    let by_root = format!("Authorization: Bearer {}\r\n", root.access);
    let detail = |answer: &RawAnswer| answer.json()["detail"].as_str().map(str::to_owned);
    for value in [&b"\xe9"[..], b"Basic \xe9", b"Bearer \xff", b"Bearer a \xff", b"\xff Bearer a"] {
        let header = [b"Authorization: ", value].concat();
        for path in ["/auth/me", "/users/export"] {
            let answer = send_with(&api, &format!("GET /api/v1{path}"), &header);
            assert_eq!((answer.status, detail(&answer).as_deref()), (401, Some("Invalid token")));
        }
    }
    let login = "POST /api/v1/auth/login";
    let answer = send_with(&with_key, login, b"X-API-Key: a-key-for-tests-0123456789\xe9");
    assert_eq!((answer.status, detail(&answer).as_deref()), (401, Some("Invalid API key")));
    // A tag that matches nothing.
    let with_root =
        |line: &str, header: &[u8]| send_with(&api, line, &[by_root.as_bytes(), header].concat());
    let path = format!("/api/v1/uploads/{file}");
    let download = format!("GET {path}/download");
    assert_eq!(with_root(&download, b"If-Match: \"\xe9\"").status, 412);
    assert_eq!(with_root(&download, b"If-None-Match: \"\xe9\"").status, 200);
    assert_eq!(with_root(&format!("DELETE {path}"), b"If-Match: \"\xe9\"").status, 412);
    // White space is of ASCII only: other blanks are a part of the value.
    for key in [&b"Idempotency-Key: a\xe9"[..], b"Idempotency-Key: \xc2\xa0a"] {
        if has_extras() {
            let answer = with_root("POST /api/v1/uploads", key);
            assert_eq!(answer.json()["detail"][0]["loc"], json!(["header", "Idempotency-Key"]));
        }
    }
    let range = with_root(&download, "Range: bytes\u{a0}=0-0".as_bytes());
    assert_eq!(range.status, 200);
    assert_eq!(with_root(&download, b"Range: bytes=\t0-0 ").status, 206);
    let id = "7b0f2f8e-4a51-4a3c-9d1c-1f2e3d4c5b6a";
    let answer = send_with(&api, "GET /healthz", format!("X-Request-ID: {id}\u{a0}").as_bytes());
    assert_ne!(answer.request_id(), id);
    assert_eq!(
        send_with(&api, "GET /healthz", format!("X-Request-ID: \t{id} ").as_bytes()).request_id(),
        id
    );
    // A page that is not listed exports nothing.
    let export = "GET /api/v1/users/export-alive";
    assert_eq!(send_with(&api, export, b"Origin: http://localhost").status, 200);
    assert_eq!(send_with(&api, export, b"Origin: http://localhost\xe9").status, 401);
    assert_eq!(send_with(&api, export, b"X-Forwarded-For: \xe9").status, 401);
    let body = json!({"username": "root", "password": PASSWORD}).to_string();
    let head = format!("{login} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    let agent = b"User-Agent: caf\xe9/1.0\r\n\r\n";
    let (_, answer) = ask(&api.address, [head.as_bytes(), agent, body.as_bytes()].concat());
    let agents = "SELECT user_agent FROM sessions WHERE user_agent IS NOT NULL";
    assert_eq!(answer.status, 200);
    assert!(api.database.texts(agents).contains(&"caf\u{fffd}/1.0".to_owned()));
}

#[test]
fn an_element_of_forwarding_that_is_no_address_ends_the_search_for_the_client() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1,10.0.0.0/8")]);
    for (header, client) in [
        (&b"X-Forwarded-For: \xe9, 203.0.113.7"[..], "203.0.113.7"),
        (b"X-Forwarded-For: 203.0.113.7, \xe9", "127.0.0.1"),
        (b"X-Forwarded-For: 203.0.113.7\xa0, 10.0.0.1", "10.0.0.1"),
        ("X-Forwarded-For: 203.0.113.7\u{a0}, 10.0.0.2".as_bytes(), "10.0.0.2"),
        (b"X-Forwarded-For: \t203.0.113.8 ", "203.0.113.8"),
    ] {
        let answer = send_with(&api, "GET /api/v1/auth/me", header);
        let line = api.logged(&answer.request_id());
        assert!(line.contains(&format!("client={client} ")), "{line}");
    }
}
