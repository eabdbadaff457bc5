//! How clients encode the bodies that they send: forms of both encodings at sign-in and refresh, byte order marks, and
//! content codings, of which none is decoded.

use crate::harness::partial::BYTES;
use crate::harness::*;
use crate::openapi::scene::{Everything, Scene};

const FORM_DATA: &str = "multipart/form-data; boundary=a-boundary";
const URL_ENCODED: &str = "application/x-www-form-urlencoded";
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The form of a sign-in.
fn sign_in(password: &str) -> Form {
    Form::default().field("username", "ann").field("password", password)
}

fn login(api: &Server, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = api.request("POST", "/auth/login").header("Content-Type", content_type);
    request.body(body).send().case(content_type)
}

#[test]
fn a_sign_in_may_be_a_form_of_either_encoding() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let plain = || sign_in(PASSWORD);
    let binary = "Content-Disposition: form-data; name=\"password\"; filename=\"a.bin\"";
    let empty_file = "Content-Disposition: form-data; name=\"username\"; filename=\"\"";
    let typed = "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=";
    let quoted = "Multipart/Form-Data; charset=utf-8; Boundary=\"a-boundary\"";
    let address = Form::default().field("email", "Ann@example.com").field("password", PASSWORD);
    let with_preamble = [b"A preamble.\r\n", &plain().bytes()[..], b"An epilogue."].concat();
    for (content_type, body, reason) in [
        (FORM_DATA, plain().bytes(), "two fields"),
        (quoted, plain().bytes(), "a quoted boundary, other case"),
        (FORM_DATA, address.bytes(), "an address in place of the name"),
        (FORM_DATA, plain().field("code", "").bytes(), "an empty code"),
        (FORM_DATA, plain().field("grant_type", "password").bytes(), "another field"),
        (FORM_DATA, sign_in("wrong").then(plain()).bytes(), "the last of a name counts"),
        (FORM_DATA, plain().part(binary, b"\xff\0").bytes(), "a file is ignored, also its bytes"),
        (FORM_DATA, plain().part(empty_file, b"").bytes(), "no file was chosen"),
        (
            FORM_DATA,
            Form::default()
                .part(&format!("{typed}username"), b"ann")
                .part(&format!("{typed}\"password\""), PASSWORD.as_bytes())
                .bytes(),
            "parts with a type, a name without quotes",
        ),
        (FORM_DATA, with_preamble, "text around the parts"),
        (FORM_DATA, [MARK, &plain().bytes()].concat(), "a byte order mark"),
        (URL_ENCODED, [MARK, b"username=ann&password=correct+horse"].concat(), "the same"),
        (FORM_DATA, br#"{"username": "ann", "password": "correct horse"}"#.to_vec(), "JSON"),
    ] {
        login(&api, content_type, body).case(reason).expect(200).tokens();
    }
    // As in the other encoding, the words of OAuth 2.0 say what is wrong.
    let answer = login(&api, FORM_DATA, sign_in("wrong").bytes());
    answer.refused(401, "Invalid username or password").has(json!({"error": "invalid_grant"}));
    let long = "x".repeat(128 * 1024);
    let many = (0..17).fold(Form::default(), |form, _| form.field("a", "b"));
    for (content_type, body, problems) in [
        (FORM_DATA, Form::default().bytes(), "username missing, password missing"),
        (FORM_DATA, Vec::new(), "username missing, password missing"),
        (FORM_DATA, b" \r\n".to_vec(), "username missing, password missing"),
        (FORM_DATA, Form::default().field("username", "ann").bytes(), "password missing"),
        (
            FORM_DATA,
            Form::default().field("username", "a\0").field("password", "").bytes(),
            "username value_error, password string_too_short",
        ),
    ] {
        login(&api, content_type, body).invalid_in("body", problems);
    }
    let not_utf_8 = Form::default().part("Content-Disposition: form-data; name=password", b"\xff");
    for (content_type, body, reason) in [
        (FORM_DATA, plain().bytes()[..60].to_vec(), "cut short"),
        (FORM_DATA, b"username=ann&password=correct+horse".to_vec(), "the other encoding"),
        ("multipart/form-data", plain().bytes(), "no boundary"),
        ("multipart/form-data; boundary=other", plain().bytes(), "another boundary"),
        (FORM_DATA, many.bytes(), "17 parts"),
        (FORM_DATA, not_utf_8.bytes(), "no UTF-8"),
    ] {
        login(&api, content_type, body).case(reason).invalid(&[("body", "value_error")]);
    }
    login(&api, "multipart/mixed; boundary=a-boundary", plain().bytes())
        .invalid(&[("body", "json_invalid")]);
    login(&api, FORM_DATA, plain().field("a", &long).bytes())
        .refused(413, "Request body too large");
}

#[test]
fn a_refresh_may_be_a_form_of_either_encoding_and_its_header_stands_in_for_one_that_cannot_be_read()
{
    let api = Server::start(&[]);
    let refresh = |content_type: &str, body: Vec<u8>| {
        api.request("POST", "/auth/refresh").header("Content-Type", content_type).body(body)
    };
    let field = |name: &str, token: &str| Form::default().field(name, token);
    let ann = || api.sign_in("ann").refresh;
    api.sign_up("ann");
    let (one, other) = (ann(), ann());
    for (body, reason) in [
        (field("refresh_token", &one).bytes(), "the advised name"),
        (field("token", &other).bytes(), "another name"),
        (field("refresh_token", "x").field("refresh_token", &ann()).bytes(), "the last counts"),
        (field("token", "x").field("refresh_token", &ann()).bytes(), "the advised name wins"),
        ([MARK, &field("token", &ann()).bytes()].concat(), "a byte order mark"),
    ] {
        refresh(FORM_DATA, body).send().case(reason).expect(200).tokens();
    }
    let forms = [
        (FORM_DATA, field("token", "x").bytes(), 401),
        (FORM_DATA, field("other", "x").bytes(), 401),
        (FORM_DATA, Vec::new(), 401),
        (FORM_DATA, b"--a-boundary".to_vec(), 422),
        (URL_ENCODED, b"refresh_token=%ff".to_vec(), 422),
    ];
    for (content_type, body, status) in forms {
        let request = refresh(content_type, body);
        request.send().case(content_type).expect(status);
        if request.send().status != 401 || request.send().text().contains("required") {
            request.by(ann().as_str()).send().expect(200).tokens();
        }
    }
}

#[test]
fn a_refresh_of_more_than_8_kib_is_too_large_also_if_its_header_has_a_token() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let long = "x".repeat(8192);
    let (own, field) = (format!("Authorization: Bearer {}\r\n", ann.refresh), "refresh_token");
    let form = Form::default().field(field, &ann.refresh).field("other", &long).bytes();
    for (content_type, body) in [
        ("application/json", json!({field: ann.refresh, "other": long}).to_string()),
        ("application/json", long.clone() + "x"),
        (URL_ENCODED, format!("{field}={}&other={long}", ann.refresh)),
        (FORM_DATA, String::from_utf8(form).unwrap()),
    ] {
        let length = body.len();
        let announced = format!("Content-Length: {length}\r\n\r\n");
        let whole = announced.clone() + &body;
        let chunked =
            format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n");
        for (rest, reason) in [(announced, "announced"), (whole, "sent"), (chunked, "chunked")] {
            for token in ["", &own] {
                let head = format!("Host: x\r\nContent-Type: {content_type}\r\n{token}");
                let request = format!("POST /api/v1/auth/refresh HTTP/1.1\r\n{head}{rest}");
                let (_, answer) = ask(&api.address, request);
                let case = format!("{content_type}, {reason}, {token}");
                assert_eq!(answer.status, 413, "{case}");
                assert_eq!(answer.json()["detail"], "Request body too large", "{case}");
            }
        }
    }
}

#[test]
fn a_body_that_cannot_be_read_is_refused_for_its_content_coding_if_it_has_one() {
    let (all, document) = (Everything::start(), document(&[]));
    let scene = Scene::new(&all, PASSWORD);
    let mut refused = 0;
    for operation in Operation::all(&document) {
        let Some((media_type, _)) = operation.bodies().next() else { continue };
        // These are bytes, whatever they are.
        if media_type == BYTES {
            continue;
        }
        for (coding, body) in [
            ("gzip", &b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..]),
            ("x-gzip", b"\x1f\x8b\x08"),
            ("br", b"\x0b\x02\x80{}\x03"),
            ("zstd", b"\x28\xb5\x2f\xfd\x20"),
            ("Deflate", b"\x78\x9c\xab"),
            ("identity, gzip", b"\x1f\x8b\x08"),
            ("gzip;q=1", b"\x1f\x8b\x08"),
        ] {
            let request = scene.request(&operation, "query", &json!({})).body(body);
            let request = match media_type {
                "multipart/form-data" => request.header("Content-Type", FORM_DATA),
                _ => request,
            };
            let answer = request.clone().header("Content-Encoding", coding).send().case(coding);
            let answer = answer.refused(415, "Content encoding is not supported");
            assert_eq!(answer.header("Accept-Encoding"), "identity");
            answer
                .has(json!({"error_code": "UNSUPPORTED_MEDIA_TYPE", "reason": "CONTENT_ENCODING"}));
            // None is named, or one that changes nothing: the body itself is what is wrong.
            for coding in ["identity", "Identity", "", " , identity"] {
                let answer = request.clone().header("Content-Encoding", coding).send().expect(422);
                assert!(!answer.has_header("Accept-Encoding"), "{answer:?}");
            }
        }
        refused += 1;
    }
    assert!(refused > if has_extras() { 15 } else { 8 }, "{refused}");
}

#[test]
fn a_content_coding_matters_only_for_a_body_that_cannot_be_read() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let coded = |request: Request| request.header("Content-Encoding", "gzip");
    let json = json!({"username": "ann", "password": PASSWORD});
    coded(api.request("POST", "/auth/login").json(json)).send().expect(200);
    let form = "username=ann&password=correct+horse".to_owned();
    coded(api.request("POST", "/auth/login").form(form)).send().expect(200);
    let upload = |body: Vec<u8>| coded(api.upload_request(&ann, body)).send();
    upload(file_form("a.txt", "text/plain", b"text").bytes()).expect(201);
    upload(b"\x1f\x8b\x08".to_vec()).refused(415, "Content encoding is not supported");
    // A field that breaks a rule was read, and what comes before the body decides first.
    coded(api.request("POST", "/auth/login").json(json!({}))).send().expect(422);
    coded(api.request("POST", "/auth/login").json(json!([]))).send().expect(422);
    let long = [0x1f; 128 * 1024 + 1];
    coded(api.request("POST", "/auth/login").body(long)).send().expect(413);
    coded(api.request("PUT", "/users/me").body(*b"\x1f\x8b")).send().expect(401);
    coded(api.request("GET", "/users/me").by(&ann)).send().expect(200);
    coded(api.request("POST", "/auth/refresh").by(ann.refresh.as_str()).body(*b"\x1f\x8b"))
        .send()
        .expect(200);
    coded(api.request("POST", "/auth/refresh").body(*b"\x1f\x8b")).send().expect(415);
    // A framing that breaks off is no reason of its own then.
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n";
    let (_, answer) = ask(&api.address, format!("{head}\r\nx\r\n"));
    assert_eq!(answer.status, 400);
    let (_, answer) = ask(&api.address, format!("{head}Content-Encoding: br\r\n\r\nx\r\n"));
    assert_eq!(answer.status, 415);
    let envelope = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let answer = coded(envelope.request("POST", "/auth/login").body(*b"\x1f\x8b")).send();
    assert_eq!(answer.expect(415).json()["error"]["reason"], "CONTENT_ENCODING");
}
