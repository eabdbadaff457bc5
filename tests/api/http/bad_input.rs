//! Bodies that are malformed or break a rule: each is answered with what is wrong, and never with a 500.
//! `openapi/inputs.rs` sends the bounds of each field, values of another type, and NUL, and leaves fields out.

use crate::harness::*;
use crate::openapi::scene::{Everything, Scene};

#[test]
fn a_body_that_is_no_json_object_is_told_so() {
    let all = Everything::start();
    let (document, scene) = (document(&[]), Scene::new(&all, PASSWORD));
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let mut told = 0;
    for operation in Operation::all(&document) {
        let Some((_, content)) = operation.bodies().find(|(kind, _)| *kind == "application/json")
        else {
            continue;
        };
        let (field, _) =
            members(&operation.follow(&content["schema"])["properties"]).next().expect("a field");
        let send = |body: Vec<u8>| scene.request(&operation, "query", &json!({})).body(body).send();
        for (body, kind, reason) in [
            (b"{".to_vec(), "json_invalid", "cut short"),
            (b"nonsense".to_vec(), "json_invalid", "not JSON"),
            (b"{\"a\":1}}".to_vec(), "json_invalid", "more than one value"),
            (b"{'a': 1}".to_vec(), "json_invalid", "single quotes"),
            (b"{\"a\": \"\xff\"}".to_vec(), "json_invalid", "invalid UTF-8"),
            (b"{\"a\": \"\\ud800\"}".to_vec(), "json_invalid", "half a surrogate pair"),
            (b"\xef\xbb\xbf{".to_vec(), "json_invalid", "cut short after a byte order mark"),
            (b"\xef\xbb\xbf\xef\xbb\xbf{}".to_vec(), "json_invalid", "two byte order marks"),
            (b" \xef\xbb\xbf{}".to_vec(), "json_invalid", "a byte order mark that is not first"),
            (b"\xff\xfe{\0}\0".to_vec(), "json_invalid", "UTF-16, the lower byte first"),
            (b"\xfe\xff\0{\0}".to_vec(), "json_invalid", "UTF-16, the higher byte first"),
            (deep(4_000).into(), "json_invalid", "deep nesting"),
            (
                format!("{{\"{field}\": {}}}", deep(200)).into(),
                "json_invalid",
                "deep nesting in a field",
            ),
            (b"[]".to_vec(), "value_error", "a list"),
            (b"\"text\"".to_vec(), "value_error", "a text"),
            (b"null".to_vec(), "value_error", "null"),
            (b"7".to_vec(), "value_error", "a number"),
        ] {
            send(body).case(reason).invalid(&[("body", kind)]);
        }
        send(format!("{{\"{field}\": {}}}", deep(100)).into()).expect(422);
        // What begins with a byte order mark is read as without it.
        for body in [format!("{{\"{field}\": {}}}", deep(1)), String::new()] {
            let answer = send(format!("\u{feff}{body}").into()).case(operation.id());
            match send(body.into()) {
                plain if plain.status < 300 => drop(answer.expect(plain.status)),
                plain => assert_eq!(answer.json(), plain.json()),
            }
        }
        told += 1;
    }
    assert!(told > if has_extras() { 15 } else { 8 }, "{told}");
}

#[test]
fn text_that_is_not_utf_8_is_told_so() {
    let all = Everything::start();
    let (document, scene) = (document(&[]), Scene::new(&all, PASSWORD));
    let mut told = 0;
    for operation in Operation::all(&document) {
        let parameters = operation.parameters().filter(|one| one["in"] == "query");
        let names = parameters.filter_map(|one| one["name"].as_str());
        // Beside `Authorization` a view token is not looked at.
        for parameter in names.filter(|name| *name != "view") {
            // An id in the path is read before the query.
            let path = operation.path.replace("{file_id}", &uuid(1));
            let path = format!("{path}?{parameter}=");
            let send = |value: &str| {
                let request = all.api.request_at_root(&operation.method, &format!("{path}{value}"));
                request.by(&scene.sender).send()
            };
            for (value, reason) in [
                ("a%ff", "a byte that UTF-8 does not have"),
                ("%c3", "half a character"),
                ("%c3&x=%a9", "half a character before another parameter"),
                ("%ed%a0%80", "half a surrogate pair"),
                ("user&%ff=1", "a name of a parameter"),
            ] {
                send(value).case(reason).invalid(&[("query", "value_error")]);
            }
            assert_eq!(send("a%00b").expect(422).problems()[0].0, format!("query.{parameter}"));
            told += 1;
        }
    }
    assert!(told > if has_extras() { 40 } else { 20 }, "{told}");
    all.api.get("/uploads?search=caf%C3%A9", &scene.sender).expect(200);
    let form =
        |body: &[u8]| all.api.request("POST", "/auth/login").form(String::new()).body(body).send();
    form(b"username=sender&password=%ff").invalid(&[("body", "value_error")]);
    form(b"username=sender&password=\xff").expect(422);
    form(b"username=sender&password=a%00b").invalid(&[("body.password", "value_error")]);
    form(format!("username=sender&password={}", PASSWORD.replace(' ', "+")).as_bytes()).expect(200);
    let short_name = ("body.username", "string_too_short");
    form(b"username=&other=1").invalid(&[short_name, ("body.password", "missing")]);
    all.api.login("", "").invalid(&[short_name, ("body.password", "string_too_short")]);
}

/// The unit tests of `model/rules.rs` have the rules of usernames and addresses.
#[test]
fn registration_takes_one_address_and_the_longest_texts_and_ignores_other_fields() {
    let api = Server::start(&[]);
    for email in ["ann@example.com, bob@example.com", "ann@example.com\r\nBcc: bob@example.com"] {
        let answer = api.register_with(json!({"email": email, "password": PASSWORD}));
        answer.invalid(&[("body.email", "value_error")]);
    }
    let nulls = json!({"username": null, "email": null, "password": null, "name": null});
    api.register_with(nulls).invalid(&[("body.email", "missing"), ("body.password", "missing")]);
    let longest = json!({
        "username": "a".repeat(50),
        "password": "\u{1f511}".repeat(1024),
        "name": "\u{1f511}".repeat(255),
        "email": format!("{}@{}.example.com", "a".repeat(64), "b".repeat(63)),
        "is_admin": true,
        "role": "admin",
    });
    api.register_with(longest).expect(201).has(json!({"role": "user"}));
}

#[test]
fn bodies_are_read_whatever_their_type_says() {
    let api = Server::start(&[]);
    let types = ["text/plain", "application/x-www-form-urlencoded", "nonsense", ""];
    for (i, content_type) in types.iter().enumerate() {
        let email = format!("ann{i}@example.com");
        let body = json!({"username": format!("ann{i}"), "email": email, "password": PASSWORD});
        let request = api.request("POST", "/auth/register").header("Content-Type", content_type);
        request.body(body.to_string()).send().expect(201);
    }
}
