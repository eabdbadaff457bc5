//! The OpenAPI document is complete and follows the settings. That any response is as the document says is checked for
//! each that a test gets, in `harness/documented.rs`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::access;
use crate::harness::*;

/// Every operation of a document, with its method and its path.
pub fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, item): (&String, &'_ Value)| -> Vec<(String, String)> {
        let methods = item.as_object().expect("a path item").keys();
        methods.map(|method| (method.to_ascii_uppercase(), path.clone())).collect()
    };
    let names: Vec<_> = paths.iter().flat_map(of_path).collect();
    let operation = |(method, path): (String, String)| {
        let operation = &document["paths"][&path][method.to_ascii_lowercase()];
        (method, path, operation)
    };
    names.into_iter().map(operation).collect()
}

/// The operation with this id.
#[track_caller]
pub fn operation_of<'a>(document: &'a Value, id: &str) -> &'a Value {
    let mut all = operations(document).into_iter();
    let found = all.find(|(_, _, operation)| operation["operationId"] == id);
    found.unwrap_or_else(|| panic!("no operation {id}")).2
}

pub fn everything() -> Value {
    document(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")])
}

#[test]
fn the_command_prints_what_the_service_serves() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let answer = api.request_at_root("GET", "/openapi.json").send().expect(200);
    assert_eq!(answer.header("Content-Type"), "application/json");
    assert_eq!(answer.json(), everything());
    assert_eq!(answer.json()["openapi"], "3.1.0");
}

#[test]
fn the_document_and_the_table_of_access_have_the_same_endpoints() {
    let document = everything();
    let mut in_table = BTreeSet::new();
    for (method, path, statuses) in access::TABLE {
        let path = path.replace("{user}", "x").replace("{other}", "x");
        let path = path.replace("{file}", "x").replace("{public}", "x");
        let found = operation(&document, method, &path)
            .unwrap_or_else(|| panic!("{method} {path} is missing"));
        in_table.insert(found["operationId"].as_str().expect("an id").to_owned());
        for status in statuses {
            let response = response(&document, found, *status);
            assert!(response.is_some(), "{method} {path}: {status} is not documented");
        }
    }
    let in_document: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(in_document, in_table);
}

#[test]
fn every_operation_has_a_name_of_its_own_and_a_summary() {
    let document = everything();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(!id.is_empty() && id.chars().all(is_word), "{method} {path}: {id:?}");
        assert!(ids.insert(id), "{id} occurs twice");
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(!summary.is_empty(), "{method} {path} has no summary");
        let responses = operation["responses"].as_object().expect("responses");
        let succeeds = responses.keys().any(|status| status.starts_with(['2', '3']));
        assert!(succeeds, "{method} {path} has no answer");
    }
}

#[test]
fn an_operation_has_at_most_2900_bytes_of_the_document() {
    let document = document(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")]);
    let (bytes, count) = (document.to_string().len(), operations(&document).len());
    assert!(bytes <= 2900 * count, "{bytes} bytes for {count} operations: {}", bytes / count);
}

#[test]
fn what_may_happen_to_any_request_stands_once() {
    let document = everything();
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().expect("responses");
        for status in ["408", "417", "431", "500", "504", "505"] {
            assert!(!responses.contains_key(status), "{method} {path}: {status}");
        }
        assert_eq!(responses["default"], json!({ "$ref": "#/components/responses/Default" }));
    }
}

#[test]
fn names_and_shapes_are_those_that_generated_clients_can_have() {
    let (detail, envelope) = (everything(), document(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]));
    let has = |document: &Value, name: &str| document["components"]["schemas"].get(name).is_some();
    let of_format =
        |document| ["ApiError", "ValidationError", "ErrorEnvelope"].map(|n| has(document, n));
    assert_eq!(of_format(&detail), [true, true, false]);
    assert_eq!(of_format(&envelope), [false, false, true]);
    // Both are built-in types of Python or of browsers.
    assert!(!has(&detail, "File") && !has(&detail, "Error"));
    for words in ["Role", "AuditAction", "ErrorCode", "Reason", "SortOrder"] {
        assert!(detail["components"]["schemas"][words]["enum"].is_array(), "{words}");
    }
    assert!(!detail.to_string().contains("\"format\":\"ip\""));
    // Of several types generators take the first, or tell them apart by the names of their schemas. Where the body is
    // required, openapi-python-client writes code for them that it does not import all names for.
    for (method, path, operation) in operations(&detail) {
        let Some(contents) = operation["requestBody"]["content"].as_object() else { continue };
        let types: Vec<_> = contents.keys().map(String::as_str).collect();
        match operation["operationId"].as_str() {
            Some("refresh_tokens") => {
                assert_eq!(types, ["application/json", "application/x-www-form-urlencoded"]);
                let schemas: BTreeSet<_> =
                    contents.values().map(|content| content["schema"]["$ref"].as_str()).collect();
                assert_eq!(schemas.len(), 2, "{schemas:?}");
            }
            _ => assert_eq!(types.len(), 1, "{method} {path}"),
        }
    }
    let login = detail["paths"]["/api/v1/auth/login"]["post"]["description"].to_string();
    assert!(login.contains("`application/x-www-form-urlencoded`"), "{login}");
}

#[test]
fn successful_responses_name_the_headers_of_limits_and_of_a_probe_none() {
    let names = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    for (setting, is_on) in [("true", true), ("false", false)] {
        let document = document(&[
            ("CLOAKROOM_RATE_LIMIT_ENABLED", setting),
            ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ]);
        for (method, path, operation) in operations(&document) {
            let is_limited = is_on && path.starts_with("/api/v1/");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                if status.starts_with(['2', '3']) {
                    let headers = &follow(&document, response)["headers"];
                    let has = names.map(|name| headers[name].is_object());
                    assert_eq!(has, [is_limited; 3], "{method} {path} {status}");
                }
            }
        }
    }
}

#[test]
fn what_is_refused_without_rate_limits_and_what_may_be_done_twice_is_told() {
    let document = document(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "false")]);
    let text = |tag: &str| {
        let tags = document["tags"].as_array().expect("tags");
        let found = tags.iter().find(|found| found["name"] == tag).expect("a tag");
        found["description"].as_str().expect("a text").replace('\n', " ")
    };
    let limits = text("Limits");
    assert!(limits.contains("no rate limits but one: after ten wrong codes"), "{limits}");
    for id in ["login", "disable_second_factor", "renew_recovery_codes"] {
        assert!(operation_of(&document, id)["responses"]["429"].is_object(), "{id}");
    }
    let errors = text("Errors");
    assert!(errors.contains("exception is the reason `OUTCOME_UNKNOWN`"), "{errors}");
}

#[test]
fn every_component_is_referred_to() {
    let settings = [
        &[][..],
        &[("CLOAKROOM_ERROR_FORMAT", "envelope")],
        &[("CLOAKROOM_AUTH_ENABLED", "false")],
        &[("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY_SCOPE", "all")],
        &[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_ENABLED", "true")],
    ];
    let documents = settings.map(document);
    let all = documents.each_ref().map(Value::to_string).concat();
    for kind in ["schemas", "responses", "headers", "parameters", "examples"] {
        for document in &documents {
            for name in document["components"][kind].as_object().expect("components").keys() {
                assert!(all.contains(&format!("\"#/components/{kind}/{name}\"")), "{kind}/{name}");
            }
        }
    }
}

#[test]
fn the_document_follows_the_settings() {
    let has = |document: &Value, path: &str| document["paths"].get(path).is_some();
    let default = document(&[]);
    assert!(!has(&default, "/api/v1/users/test-only/alive"));
    assert!(has(&default, "/api/v1/auth/reset-password"));
    assert!(default["components"]["securitySchemes"].get("api_key").is_none());
    assert!(has(&everything(), "/api/v1/users/test-only/alive"));

    assert_eq!(default["servers"], json!([{ "url": "/" }]));
    let public = document(&[("CLOAKROOM_PUBLIC_URL", "https://files.example.com/")]);
    let servers = json!([{ "url": "https://files.example.com" }, { "url": "/" }]);
    assert_eq!(public["servers"], servers);

    let without_resets = document(&[("CLOAKROOM_SMTP_URL", "none")]);
    assert!(!has(&without_resets, "/api/v1/auth/reset-password"));
    assert!(!has(&without_resets, "/api/v1/auth/request-password-reset"));

    let security = |settings: &[(&str, &str)], path: &str| {
        let document = document(settings);
        let operation = operation(&document, "GET", path).expect("an operation");
        operation.get("security").unwrap_or(&document["security"]).clone()
    };
    let (me, export) = ("/api/v1/users/me", "/api/v1/users/export");
    let (bearer, password) = (json!({"bearer": []}), json!({"password": []}));
    let keys = ("CLOAKROOM_API_KEY_ENABLED", "true");
    let with_key = json!([{"bearer": [], "api_key": []}, {"password": [], "api_key": []}]);
    assert_eq!(security(&[], me), json!([bearer, password]));
    assert_eq!(security(&[], export), json!([{}, bearer, password]));
    assert_eq!(security(&[keys], me), json!([bearer, password]));
    assert_eq!(security(&[keys], export), with_key);
    assert_eq!(security(&[keys, ("CLOAKROOM_API_KEY_SCOPE", "all")], me), with_key);
    let admins = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
    assert_eq!(security(&[admins], export), json!([bearer, password]));
    assert_eq!(security(&[("CLOAKROOM_AUTH_ENABLED", "false")], me), json!([]));

    let schema = |settings: &[(&str, &str)]| {
        let document = document(settings);
        let operation = operation(&document, "GET", me).expect("an operation");
        let response = follow(&document, &operation["responses"]["401"]);
        response["content"]["application/json"]["schema"]["$ref"].clone()
    };
    assert_eq!(schema(&[]), "#/components/schemas/ApiError");
    let envelope = ("CLOAKROOM_ERROR_FORMAT", "envelope");
    assert_eq!(schema(&[envelope]), "#/components/schemas/ErrorEnvelope");
    let pointer = "/paths/~1api~1v1~1users~1me/get/responses/429";
    let off = ("CLOAKROOM_RATE_LIMIT_ENABLED", "false");
    let on = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
    assert!(document(&[on]).pointer(pointer).is_some());
    assert!(document(&[off]).pointer(pointer).is_none());
}

/// The bodies in all examples of errors, each with the schema of its response.
fn error_examples(document: &Value) -> Vec<(&Value, &Value)> {
    let all = operations(document).into_iter();
    let responses = all.flat_map(|(_, _, operation)| operation["responses"].as_object());
    let contents = responses
        .flat_map(|responses| responses.iter().filter(|(status, _)| !status.starts_with('2')))
        .map(|(_, response)| &follow(document, response)["content"]["application/json"]);
    let examples = contents.filter_map(|content| {
        let examples = content["examples"].as_object()?.values();
        let schema = follow(document, &content["schema"]);
        Some(examples.map(move |example| (&follow(document, example)["value"], schema)))
    });
    examples.flatten().collect()
}

#[test]
fn the_examples_of_errors_have_the_members_of_their_schemas_and_hints() {
    for format in ["detail", "envelope"] {
        let limits = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
        let document = document(&[("CLOAKROOM_ERROR_FORMAT", format), limits]);
        let mut hints = BTreeSet::new();
        for (body, schema) in error_examples(&document) {
            let (body, schema) = match format {
                "envelope" => (&body["error"], &schema["properties"]["error"]),
                _ => (body, schema),
            };
            let names: BTreeSet<_> = body.as_object().expect("an object").keys().collect();
            assert!(names.iter().all(|name| schema["properties"][name].is_object()), "{body}");
            let required = names_in(&schema["required"]);
            assert!(required.iter().all(|name| names.contains(name)), "{body}");
            let details = body["details"].as_array().and_then(|details| details.last());
            let hint = details.unwrap_or(body)["hint"].as_str();
            hints.extend(hint.map(str::to_owned));
        }
        for hint in [
            "Try again in 12 seconds.",
            "The file may have at most 10485760 bytes.",
            "The file was declared as `text/html`. Accepted are image/jpeg, image/png, application/pdf, text/plain.",
        ] {
            assert!(hints.contains(hint), "{format}: {hint}: {hints:?}");
        }
    }
}

/// The words in a list.
fn names_in(list: &Value) -> Vec<String> {
    let words = list.as_array().expect("a list").iter();
    words.map(|word| word.as_str().expect("a word").to_owned()).collect()
}

#[test]
fn what_is_required_and_what_may_be_null_is_what_the_service_reads() {
    let document = everything();
    let schema = |name: &str| document["components"]["schemas"][name].clone();
    let register = schema("RegisterRequest");
    assert_eq!(register["required"], json!(["email", "password"]));
    assert_eq!(register["properties"]["username"]["type"], json!(["string", "null"]));
    assert_eq!(register["properties"]["username"]["maxLength"], 50);
    assert_eq!(register["properties"]["password"]["type"], "string");
    assert_eq!(schema("UploadFileForm")["required"], json!(["file"]));
    for path in ["/api/v1/users", "/api/v1/admin/users"] {
        let query = operation(&document, "GET", path).expect("an operation");
        let parameters = query["parameters"].as_array().expect("parameters").iter();
        let names = parameters.map(|p| follow(&document, p)["name"].as_str().expect("a name"));
        assert_eq!(
            names.collect::<Vec<_>>().join(" "),
            "email name search role is_active active created_after created_before sort_by sort_order page size limit \
             offset"
        );
    }
}
