//! Errors, of which each has a word by which programs recognise it: real requests provoke all in the program's table
//! and all that the OpenAPI document shows, and get what it shows for their operation. And the hints that depend on the
//! request.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::path::Path;

use super::refusals::{BAD_FIELDS, REFUSALS, World, with_part};
use crate::harness::partial::{BYTES, metadata};
use crate::harness::*;
use crate::openapi::document::{ALL_ON, everything};
use crate::openapi::scene::{Everything, Scene};

/// Reasons that take many seconds or a broken database, and the tests that provoke them.
const ELSEWHERE: [(&str, &str); 21] = [
    ("FORM_TOO_LARGE", "files/hostile_uploads.rs"),
    ("BODY_TOO_SLOW", "server/slow_clients.rs"),
    ("INTERNAL_ERROR", "db/outage.rs"),
    ("OUTCOME_UNKNOWN", "files/file_faults.rs"),
    ("TIMED_OUT", "db/database.rs"),
    ("UNAVAILABLE", "db/database.rs"),
    // Those of uploads in several requests.
    ("OFFSET_MISMATCH", "partial/uploads.rs"),
    ("OFFSET_STREAM_REQUIRED", "partial/uploads.rs"),
    ("TUS_VERSION", "partial/uploads.rs"),
    ("UPLOAD_BUSY", "partial/going_on.rs"),
    ("UPLOAD_NOT_FOUND", "partial/uploads.rs"),
    ("UPLOAD_OVERTAKEN", "partial/going_on.rs"),
    // Those that need a provider.
    ("CODE_NOT_FRESH", "provider/identity.rs"),
    ("EMAIL_NOT_VERIFIED", "provider/token.rs"),
    ("FOREIGN_DOMAIN", "provider/company.rs"),
    ("IDENTITY_IN_USE", "provider/identity.rs"),
    ("IDENTITY_PRESENT", "provider/identity.rs"),
    ("NO_ACCOUNT", "provider/token.rs"),
    ("PASSWORD_MISSING", "provider/identity.rs"),
    ("PROVIDER_REQUIRED", "provider/token.rs"),
    ("PROVIDER_UNAVAILABLE", "provider/outage.rs"),
];

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
    let tables = [
        include_str!("../../../src/error/explanation.rs"),
        include_str!("../../../src/error/partial.rs"),
    ];
    let rows = tables.into_iter().flat_map(|table| table.split("=> row(").skip(1));
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
    let (world, document) = (World::start(), document(&ALL_ON[2..]));
    let mut reasons = BTreeSet::from(ELSEWHERE.map(|(reason, file)| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(file);
        let test = std::fs::read_to_string(path).expect("a test");
        assert!(test.contains(&format!("\"{reason}\"")), "{file} does not provoke {reason}");
        reason
    }));
    let of_refusals = errors_of(&document, |status| ["403", "422"].contains(&status));
    reasons.extend(of_refusals.iter().filter_map(|error| error["reason"].as_str()));
    let mut keys = BTreeSet::new();
    for (settings, rows) in REFUSALS {
        let api = world.api.beside(settings);
        for (line, token, with, status, reason) in *rows {
            let request = world.request(&api, line, token, with);
            let answer = request.send().case(format!("{line} {with}")).expect(*status);
            let key = key(&answer.has(json!({ "reason": reason })).json());
            assert_shown(&document, &request, *status, &key);
            reasons.insert(reason);
            keys.insert(key);
        }
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

/// The keys of those of the answers that have the status.
fn given(answers: impl IntoIterator<Item = Answer>, status: u16) -> BTreeSet<String> {
    let answers = answers.into_iter().filter(|answer| answer.status == status);
    answers.map(|answer| key(&answer.json())).collect()
}

/// A path with this id in place of each of its variables.
fn with_ids(path: &str, id: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { id } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Requests of an operation for uploads in several requests that are wrong.
fn bad_parts(all: &Everything, scene: &Scene, operation: &Operation) -> Vec<Request> {
    let request = |path: &str, headers: &[(&str, &str)]| {
        let request = all.api.tus(&operation.method, path, &scene.sender);
        let request = request.header("Content-Type", BYTES).body("text");
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let path = scene.path_of(operation, "");
    let (up, id) = path.rsplit_once('/').expect("a path");
    let named = metadata(&[("filename", "a.txt")]);
    let other = metadata(&[("filename", "a.txt"), ("sha256", &sha256(b"other"))]);
    if !operation.path.contains("{upload_id}") {
        let (length, other) = (("Upload-Length", "4"), ("Upload-Metadata", &*other));
        let no_number = [("Upload-Length", "x"), ("Upload-Metadata", &named)];
        return [&no_number[..], &[length], &[length, other]].map(|it| request(&path, it)).into();
    }
    assert!(id.len() == 36, "{path}");
    let mut requests = vec![request(&format!("{up}/no-id"), &[("Upload-Offset", "0")])];
    if operation.method == "PATCH" {
        let begun = all.api.tus("POST", up, &scene.sender).header("Upload-Length", "4");
        let begun = begun.header("Upload-Metadata", &other).send().expect(201);
        let begun = begun.header("Location");
        requests.extend([request(&path, &[]), request(begun, &[("Upload-Offset", "0")])]);
    }
    requests
}

#[test]
fn each_operation_gives_the_bad_fields_that_it_shows() {
    let document = everything();
    let all = Everything::start();
    let scene = Scene::new(&all, PASSWORD);
    for operation in Operation::all(&document) {
        let id = operation.id();
        let mut requests = Vec::new();
        if operation.path.contains("/partial") && id != "list_partial_uploads" {
            requests = bad_parts(&all, &scene, &operation);
        }
        if operation.path.contains('{') {
            let path = with_ids(operation.path, "no-id");
            requests.push(all.api.request_at_root(&operation.method, &path).by(&scene.sender));
        }
        if operation.bodies().any(|(media_type, _)| media_type == "application/json") {
            requests.push(scene.request(&operation, "query", &json!({})).body("{"));
        }
        for (_, input) in BAD_FIELDS.iter().filter(|(ids, _)| ids.split(' ').any(|one| one == id)) {
            let input = input.replace("{password}", PASSWORD);
            requests.push(match input.starts_with('{') || input.starts_with("field ") {
                true => with_part(scene.request(&operation, "query", &json!({})), &input),
                false => scene.with_query(&operation, &format!("?{input}")),
            });
        }
        if ["upload_file", "send_file_by_link"].contains(&id) {
            requests.extend(["one", "another"].map(|content| {
                let request =
                    scene.request(&operation, "multipart/form-data", &json!({ "file": content }));
                request.header("Idempotency-Key", "a-key")
            }));
        }
        let answers = requests.iter().map(Request::send);
        assert_eq!(given(answers, 422), operation.keys(422), "{id}");
    }
}

#[test]
fn each_operation_gives_the_refusals_that_it_shows() {
    let settings = [
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
        ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required"),
    ];
    let settings = [&settings[..], &ALL_ON[2..]].concat();
    let (document, api) = (document(&settings), Server::start(&settings));
    let (admin, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    api.new_second_factor(&admin, PASSWORD);
    let without = api.sign_up_admin("without");
    let file = api.new_file(&ann, "a.txt", "a");
    let (token, read_only) = (api.new_token(&admin, false), api.new_token(&admin, true));
    let wanted = json!({"name": "a camera", "scope": "upload"});
    let camera = api.create_token(&ann, wanted).expect(201).json()["token"].clone();
    let camera = camera.as_str().expect("a token").to_owned();
    for operation in Operation::all(&document) {
        let (id, shown) = (operation.id(), operation.keys(403));
        if shown.is_empty() || ["login", "sign_in_by_provider"].contains(&id) {
            continue;
        }
        let path = operation.path.replace("{user_id}", admin.id()).replace("{file_id}", &file);
        let path = with_ids(&path, UNKNOWN_ID);
        let mut senders = vec![&token, &read_only];
        if shown.iter().any(|key| key.contains("ADMIN_REQUIRED")) {
            senders.extend([&ann.access, &without.access]);
        }
        if shown.iter().any(|key| key.contains("UPLOAD_TOKEN")) {
            senders = vec![&camera];
        }
        if shown.iter().any(|key| key.contains("OWN_SECOND_FACTOR")) {
            senders.push(&admin.access);
        }
        let body = json!({"role": "admin", "upload_to": "/"});
        let request = api.request_at_root(&operation.method, &path).json(body);
        // What only some values of the query are refused for.
        let query = match id {
            "delete_file" => "permanently=true",
            "delete_folder" => "permanently=true&folder=a",
            _ => "",
        };
        let with_query = api.request_at_root(&operation.method, &format!("{path}?{query}"));
        let answers = senders.into_iter().map(|sender| request.clone().by(sender).send());
        let answers = answers.chain([with_query.by(&token).json(json!({})).send()]);
        assert_eq!(given(answers, 403), shown, "{id}");
    }
}

#[test]
fn hints_name_what_was_sent_and_what_is_accepted() {
    let world = World::start();
    let accepted = "Accepted are image/jpeg, image/png, application/pdf, text/plain.";
    let other = format!("The file is of the type `text/html`. {accepted}");
    let none = format!("The file declares no type, and its content shows none. {accepted}");
    let contradicted =
        "The file was declared as `image/jpg`, but its first bytes are those of `image/gif`.";
    let too_many = "An export has at most 1 rows. Leave some out with a filter.";
    let beyond = "The file has 900 bytes, of which the first is number 0.";
    let unknown = "The endpoints of the API are below /api/v1; /docs describes them.";
    for (line, token, with, hint) in [
        ("GET nope", "", "", unknown),
        ("GET users/export", "{root}", "X-API-Key: {key}", too_many),
        (
            "POST uploads",
            "{ann}",
            "file text/plain {1025 KiB}",
            "The file may have at most 1048576 bytes.",
        ),
        ("POST uploads", "{ann}", "file text/html a", &other),
        ("POST uploads", "{ann}", "file Image/JPG;a=b GIF89a", contradicted),
        ("GET uploads/{own}/download", "{ann}", "Range: bytes=900-", beyond),
    ] {
        world.request(&world.api, line, token, with).send().has(json!({ "hint": hint }));
    }
    let no_type = file_form("a", "", b"\xff").bytes();
    let answer = world.api.upload_request(world.fill_in("{ann}"), no_type).send();
    answer.has(json!({ "hint": none }));
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
