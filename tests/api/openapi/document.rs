//! The OpenAPI document is complete and follows the settings. That any response is as the document says is checked for
//! each that a test gets, in `harness/documented.rs`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::api::access;
use crate::harness::*;
use crate::openapi::request_examples::parameters_of;

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
    for (method, path, _) in access::TABLE {
        let path = path.replace("{user}", "x").replace("{other}", "x");
        let path = path.replace("{file}", "x").replace("{public}", "x");
        let found = operation(&document, method, &path)
            .unwrap_or_else(|| panic!("{method} {path} is missing"));
        in_table.insert(found["operationId"].as_str().expect("an id").to_owned());
    }
    let in_document: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(in_document, in_table);
}

#[test]
fn an_operation_has_a_name_a_summary_and_its_own_answers() {
    let document = everything();
    let mut ids = BTreeSet::new();
    let limits = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(!id.is_empty() && id.chars().all(is_word), "{method} {path}: {id:?}");
        assert!(ids.insert(id), "{id} occurs twice");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{id}");
        let responses = operation["responses"].as_object().expect("responses");
        let is_success = |status: &&String| status.starts_with(['2', '3']);
        assert!(responses.keys().any(|status| is_success(&status)), "{id} has no answer");
        for (status, response) in responses.iter().filter(|(status, _)| is_success(status)) {
            let headers = &follow(&document, response)["headers"];
            let has = limits.map(|name| headers[name].is_object());
            assert_eq!(has, [path.starts_with("/api/v1/"); 3], "{id} {status}");
        }
        // What may happen to any request stands once.
        for status in ["408", "417", "431", "500", "504", "505"] {
            assert!(!responses.contains_key(status), "{id}: {status}");
        }
        assert_eq!(responses["default"], json!({ "$ref": "#/components/responses/Default" }));
    }
}

#[test]
fn an_operation_has_at_most_3000_bytes_of_the_document() {
    let document = document(&[]);
    let (bytes, count) = (document.to_string().len(), operations(&document).len());
    assert!(bytes <= 3000 * count, "{bytes} bytes for {count} operations: {}", bytes / count);
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
fn paths_that_the_settings_switch_off_are_left_out_with_all_that_only_they_use() {
    let paths = |document: &Value| -> BTreeSet<String> {
        document["paths"].as_object().expect("paths").keys().cloned().collect()
    };
    let all = everything();
    for (setting, paths_gone, others_gone) in [
        (("CLOAKROOM_REGISTRATION", "off"), vec!["/api/v1/auth/register"], vec!["RegisterRequest"]),
        (
            ("CLOAKROOM_SMTP_URL", "none"),
            vec!["/api/v1/auth/request-password-reset", "/api/v1/auth/reset-password"],
            vec!["RequestPasswordResetRequest", "ResetPasswordRequest"],
        ),
        (("CLOAKROOM_DOCS", "off"), vec!["/openapi.json"], vec![]),
        (
            ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "false"),
            ["alive", "count", "create", "delete-all"]
                .map(|name| format!("/api/v1/users/test-only/{name}").leak() as &str)
                .into(),
            vec!["TestOnlyCreateUserRequest", "Test only"],
        ),
    ] {
        let settings = [("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"), setting];
        let without = document(&settings);
        let gone: Vec<_> = paths(&all).difference(&paths(&without)).cloned().collect();
        assert_eq!(gone, paths_gone, "{setting:?}");
        for name in others_gone {
            let name = format!("\"{name}\"");
            assert!(
                all.to_string().contains(&name) && !without.to_string().contains(&name),
                "{name}"
            );
        }
    }
}

#[test]
fn the_document_has_the_server_the_types_and_the_keys_of_the_settings() {
    let default = document(&[]);
    assert_eq!(default["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(default["servers"], json!([{ "url": "/" }]));
    let public = document(&[("CLOAKROOM_PUBLIC_URL", "https://files.example.com/")]);
    let servers = json!([{ "url": "https://files.example.com" }, { "url": "/" }]);
    assert_eq!(public["servers"], servers);
    let types = document(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "text/csv,image/png")]);
    let form = &operation_of(&types, "upload_file")["requestBody"]["content"];
    let file = &form["multipart/form-data"]["encoding"]["file"];
    assert_eq!(file["contentType"], "text/csv, image/png");

    let keys = ("CLOAKROOM_API_KEY_ENABLED", "true");
    let for_all = ("CLOAKROOM_API_KEY_SCOPE", "all");
    let admins = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
    let signed_in = json!([{"bearer": []}, {"password": []}]);
    let or_nobody = json!([{}, {"bearer": []}, {"password": []}]);
    let with_key = json!([{"bearer": [], "api_key": []}, {"password": [], "api_key": []}]);
    let (nothing, key) = (json!([]), json!([{"api_key": []}]));
    for (settings, me, export, login) in [
        (&[][..], &signed_in, &or_nobody, &nothing),
        (&[keys], &signed_in, &with_key, &nothing),
        (&[keys, for_all], &with_key, &with_key, &key),
        (&[admins], &signed_in, &signed_in, &nothing),
    ] {
        let document = document(settings);
        let expected =
            [("get_my_profile", me), ("export_users", export), ("login", login)].into_iter();
        let unlimited = [("download_by_link", &nothing), ("get_health", &nothing)];
        for (id, expected) in expected.chain(unlimited) {
            let operation = operation_of(&document, id);
            let security = operation.get("security").unwrap_or(&document["security"]);
            assert_eq!(security, expected, "{id} {settings:?}");
        }
        let has_key = document["components"]["securitySchemes"].get("api_key").is_some();
        assert_eq!(has_key, settings.contains(&keys), "{settings:?}");
    }
}

#[test]
fn both_lists_of_accounts_have_all_parameters() {
    let document = everything();
    for path in ["/api/v1/users", "/api/v1/admin/users"] {
        let query = operation(&document, "GET", path).expect("an operation");
        let names = parameters_of(&document, query).map(|p| p["name"].as_str().expect("a name"));
        assert_eq!(
            names.collect::<Vec<_>>().join(" "),
            "email name search role is_active active created_after created_before sort_by sort_order page size limit \
             offset"
        );
    }
}

/// The methods and paths of one function of the router, as its source has them: each endpoint is a pattern with a
/// method, `=>`, and a call of `at` with the path.
fn routes_of(source: &str, function: &str, prefix: &str) -> BTreeSet<(String, String)> {
    let (_, rest) = source.split_once(&format!("\nfn {function}(")).expect("the function");
    let (body, _) = rest.split_once("\n}\n").expect("its end");
    let parts: Vec<&str> = body.split("=>").collect();
    let route = |pair: &[&str]| {
        let path = pair[1].trim_start().strip_prefix("at(\"")?.split('"').next()?;
        let (_, pattern) = pair[0].rsplit_once("(\"")?;
        Some((pattern.split('"').next()?.to_owned(), format!("{prefix}{path}")))
    };
    parts.windows(2).filter_map(route).collect()
}

#[test]
fn every_endpoint_is_documented() {
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/router.rs"));
    let source = source.expect("the router");
    let mut in_router = routes_of(&source, "root", "");
    in_router.extend(routes_of(&source, "api_v1", "/api/v1"));
    let document = everything();
    let documented = operations(&document).into_iter().map(|(method, path, _)| (method, path));
    assert_eq!(documented.collect::<BTreeSet<_>>(), in_router);
}

#[test]
fn every_documented_method_is_allowed() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let document = everything();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let mut documented: BTreeSet<_> = item
            .as_object()
            .expect("methods")
            .keys()
            .map(|name| name.to_ascii_uppercase())
            .collect();
        if documented.contains("GET") {
            documented.insert("HEAD".to_owned());
        }
        let ids = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN_ID } else { part });
        let path: Vec<_> = ids.collect();
        let answer = api.request_at_root("PATCH", &path.join("/")).send().expect(405);
        let allowed = answer.header("Allow").split(", ").map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), documented, "{answer:?}");
    }
}
