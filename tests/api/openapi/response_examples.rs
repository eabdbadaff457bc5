//! The examples of successes are what the service answers: each is valid, has the members of a real response, and
//! shows the words, columns and headers that really come.

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::harness::*;
use crate::openapi::document::{everything, operation_of, operations};
use crate::openapi::request_examples::{named_examples, parameters_of};

/// The file of the examples.
const CONTENT: &str = "Keys are at the front desk.\n";

/// The response with a status of an operation.
fn success<'a>(document: &'a Value, operation_id: &str, status: u16) -> &'a Value {
    let operation = operation_of(document, operation_id);
    response(document, operation, status).expect("a response")
}

/// The examples of a response, which has one media type.
fn examples_of<'a>(document: &'a Value, response: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let mut contents = response["content"].as_object().into_iter().flatten();
    contents.next().map(|(_, content)| named_examples(document, content)).unwrap_or_default()
}

/// The JSON pointer to a member of the value at another pointer.
fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[test]
fn every_response_with_a_content_has_an_example_and_all_are_valid() {
    let document = everything();
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.enable_format_assertions();
    compiler.add_resource("file:///openapi.json", document.clone()).expect("a document");
    let mut validated = 0;
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().expect("responses").iter();
        for (status, listed) in responses {
            let at = match listed["$ref"].as_str() {
                Some(reference) => reference[1..].to_owned(),
                None => {
                    let at = member(&member("/paths", &path), &method.to_ascii_lowercase());
                    member(&format!("{at}/responses"), status)
                }
            };
            let contents = follow(&document, listed)["content"].as_object().into_iter().flatten();
            for (media_type, content) in contents {
                let at = member(&format!("{at}/content"), media_type);
                let examples = named_examples(&document, content);
                assert!(!examples.is_empty(), "{method} {path}: {status} has no example");
                let url =
                    format!("file:///openapi.json#{}", at.replace('*', "%2A").replace(' ', "%20"));
                let schema = compiler.compile(&format!("{url}/schema"), &mut schemas);
                let schema = schema.unwrap_or_else(|e| panic!("{e:#}"));
                for (name, value) in examples {
                    let outcome = schemas.validate(value, schema);
                    outcome.unwrap_or_else(|e| panic!("{method} {path}: {status} {name}: {e:#}"));
                    validated += 1;
                }
            }
        }
    }
    assert!(validated > 500, "{validated}");
}

/// The names of all members, and of those of the first item of each list. The details of an event depend on it.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let shape_of = |(name, value): (&String, &Value)| {
                (name.clone(), if name == "details" { Value::Null } else { shape(value) })
            };
            members.iter().map(shape_of).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => {
            items.iter().take(1).filter(|item| item.is_object()).map(shape).collect()
        }
        _ => Value::Null,
    }
}

/// Fails unless an example of the operation has exactly the members of a real response. What says what was done is also
/// the same word for word.
#[track_caller]
fn assert_is_exemplary(document: &Value, operation_id: &str, answer: &Answer) {
    let real = answer.json();
    let response = success(document, operation_id, answer.status);
    let examples = examples_of(document, response);
    let is_like = |example: &Value| {
        let words = ["message", "status"].iter().all(|word| example[word] == real[word]);
        shape(example) == shape(&real) && words
    };
    assert!(examples.iter().any(|(_, example)| is_like(example)), "{examples:#?}: {answer:?}");
}

#[test]
fn examples_have_the_members_of_real_responses() {
    let document = everything();
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let like = |operation_id: &str, answer: Answer| {
        assert_is_exemplary(&document, operation_id, &answer);
        answer
    };
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    like("register", api.register("bob"));
    like("register", api.register_with(json!({"email": "eve@example.com", "password": PASSWORD})));
    like("login", api.login("ann", PASSWORD));
    like("refresh_tokens", api.refresh(&ann.refresh));
    like("request_password_reset", api.request_reset("eve@example.com"));
    like("list_my_sessions", api.list_sessions(&ann));
    like("list_sessions_of_user", api.user_sessions(&root, ann.id()));
    like("create_personal_token", api.create_token(&ann, json!({"name": "a"})));
    like("list_my_personal_tokens", api.list_tokens(&ann));
    like("list_personal_tokens_of_user", api.user_tokens(&root, ann.id()));
    let begin = like("begin_second_factor", api.begin_second_factor(&ann, PASSWORD)).json();
    let secret = begin["secret"].as_str().expect("a secret").to_owned();
    let mut factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let confirmed = api.confirm_second_factor(&ann, &factor.code());
    let codes = like("confirm_second_factor", confirmed).json()["recovery_codes"].clone();
    factor.recovery_codes = serde_json::from_value(codes).expect("codes");
    let renewed = api.renew_recovery_codes(&ann, PASSWORD, &factor.recovery_codes[0]);
    like("renew_recovery_codes", renewed);
    like("get_second_factor", api.second_factor(&ann));
    like("get_my_profile", api.profile(&ann));
    like("update_my_profile", api.update_me(&ann, json!({"name": "Ann"})));
    let file = like("upload_file", api.upload(&ann, "visitors.txt", CONTENT)).id();
    like("list_files", api.list_files(&ann, ""));
    like("get_file", api.show_file(&ann, &file));
    like("create_file_link", api.create_link(&ann, &file, json!({})));
    like("list_file_links", api.list_links(&ann, &file));
    like("update_file", api.update_file(&ann, &file, json!({"is_public": true})));
    let user = json!({"email": "cy@example.com", "name": "Cy", "password": PASSWORD});
    like("create_user", api.create_user(&root, user));
    like("list_users", api.list_users(&root, ""));
    like("get_user", api.show_user(&root, ann.id()));
    like("update_user", api.update_user(&root, ann.id(), json!({"name": "Ann Lee"})));
    like("admin_list_users", api.page_users(&root, ""));
    like("admin_get_statistics", api.admin_stats(&root));
    like("admin_get_daily_statistics", api.get("/admin/stats/daily?days=2", &root));
    like("list_audit_events", api.audit(&root, "limit=1"));
    like("export_alive", api.get("/users/export-alive", &root));
    like("export_simple", api.get("/users/export-simple", &root));
    like("test_only_alive", api.get("/users/test-only/alive", &root));
    like("test_only_count_users", api.get("/users/test-only/count", &root));
    like("test_only_create_user", api.post("/users/test-only/create", &root, json!({})));
    like("get_health", api.healthz());
    like("get_readiness", api.readyz());
    like("change_password", api.change_password(&ann, PASSWORD, NEW_PASSWORD));
    let token = api.reset_token("bob@example.com");
    like("reset_password", api.reset_password(&token, NEW_PASSWORD));
    like("test_only_delete_all_users", api.delete("/users/test-only/delete-all", &root));
}

#[test]
fn examples_of_texts_have_the_columns_and_lines_of_real_ones() {
    let document = everything();
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    let example = |operation_id: &str| {
        let examples = examples_of(&document, success(&document, operation_id, 200));
        examples[0].1.as_str().expect("a text").to_owned()
    };
    for (operation_id, csv) in [
        ("export_users", api.export(&root, "").expect(200)),
        ("export_users_csv", api.get("/users/exports/csv", &root).expect(200)),
        ("export_all_users", api.export_full(&root).expect(200)),
        ("export_audit_events", api.export_audit(&root, "").expect(200)),
    ] {
        let csv = csv.text();
        let (header, _) = csv.split_once("\r\n").expect("a header");
        assert!(!csv_rows(header, example(operation_id).as_bytes()).is_empty(), "{operation_id}");
    }
    let metrics = api.metrics();
    for line in example("get_metrics").lines() {
        assert!(metrics.lines().any(|real| real == line), "{line}: {metrics}");
    }
}

#[test]
fn examples_of_downloads_have_the_content_and_the_headers_of_real_ones() {
    let document = everything();
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "visitors.txt", CONTENT);
    let link = api.new_link(&ann, &file);
    let modified = api.download(&ann, &file).header("Last-Modified").to_owned();
    let answers = |id: &'static str, request: Request| {
        [
            (id, request.clone().send().expect(200)),
            (id, request.clone().header("Range", "bytes=0-3").send().expect(206)),
            (id, request.header("If-Modified-Since", &modified).send().expect(304)),
        ]
    };
    let download = api.download_request("GET", &ann, &file);
    let by_link = api.request_at_root("GET", &link);
    for (id, answer) in [answers("download_file", download), answers("download_by_link", by_link)]
        .into_iter()
        .flatten()
    {
        let documented = success(&document, id, answer.status);
        if answer.status != 304 {
            assert_eq!(
                answer.text(),
                examples_of(&document, documented)[0].1.as_str().expect("a text")
            );
        }
        let headers = documented["headers"].as_object().expect("headers").iter();
        let mut compared = 0;
        for (name, header) in headers.map(|(name, header)| (name, follow(&document, header))) {
            let (Some(example), true) = (header["example"].as_str(), name != "Last-Modified")
            else {
                continue;
            };
            assert_eq!(answer.header(name), example, "{name}");
            compared += 1;
        }
        assert!(compared >= if answer.status == 304 { 1 } else { 2 }, "{answer:?}");
    }
}

#[test]
fn links_lead_from_an_example_to_an_operation() {
    let document = everything();
    let mut links = 0;
    for (_, path, operation) in operations(&document) {
        for listed in operation["responses"].as_object().expect("responses").values() {
            let response = follow(&document, listed);
            for link in response["links"].as_object().into_iter().flat_map(|links| links.values()) {
                let id = link["operationId"].as_str().expect("an id");
                let target = operation_of(&document, id);
                // Generators refuse an object there, and an expression alone is not what an endpoint takes.
                assert!(link["requestBody"].is_null(), "{path}: {link}");
                let parameters = link["parameters"].as_object().into_iter().flatten();
                let names: Vec<_> = parameters_of(&document, target).collect();
                for (name, expression) in parameters {
                    assert!(names.iter().any(|one| one["name"] == **name), "{path}: {link}");
                    let pointer =
                        expression.as_str().and_then(|text| text.strip_prefix("$response.body#"));
                    let pointer = pointer.unwrap_or_else(|| panic!("{path}: {link}"));
                    let examples = examples_of(&document, response);
                    assert!(
                        examples.iter().all(|(_, body)| body.pointer(pointer).is_some()),
                        "{path}: {link}"
                    );
                }
                links += 1;
            }
        }
    }
    assert!(links > 20, "{links}");
}
