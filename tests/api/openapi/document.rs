//! The OpenAPI document is complete and follows the settings. That any response is as the document says is checked for
//! each that a test gets, in `harness/documented.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::*;
use crate::service::access;

/// All that the document can describe.
pub const ALL_ON: [(&str, &str); 7] = [
    ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
    ("CLOAKROOM_EMAIL_CONFIRMATION", "required"),
    ("CLOAKROOM_PUBLIC_LIST", "on"),
    ("CLOAKROOM_OIDC_ISSUER", "http://127.0.0.1:1"),
    ("CLOAKROOM_OIDC_CLIENT_ID", CLIENT_ID),
    ("CLOAKROOM_OIDC_CLIENT_SECRET", CLIENT_SECRET),
    ("CLOAKROOM_PUBLIC_URL", "http://127.0.0.1:8000"),
];

pub fn everything() -> Value {
    document(&ALL_ON)
}

#[test]
fn the_command_prints_what_the_service_serves() {
    let api = Server::start(&ALL_ON);
    let answer = api.request_at_root("GET", "/openapi.json").send().expect(200);
    assert_eq!(answer.header("Content-Type"), "application/json");
    assert_eq!(answer.json(), everything());
    assert_eq!(answer.json()["openapi"], "3.1.0");
}

/// The methods and paths of one table of endpoints, as its source has them: each endpoint is a pattern with a
/// method, `=>`, and a call of `at` with the path.
fn routes_of(source: &str, function: &str, prefix: &str) -> BTreeSet<(String, String)> {
    let (_, rest) = source.split_once(&format!("fn {function}(")).expect("the function");
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
fn the_document_the_router_and_the_table_of_access_have_the_same_endpoints() {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let read = |path: &str| fs::read_to_string(source.join(path)).unwrap_or_default();
    let mut in_router = routes_of(&read("service/router.rs"), "root", "");
    for folder in source.read_dir().expect("a folder") {
        let name = folder.expect("an entry").file_name();
        for file in ["mod.rs", "extras.rs"] {
            let text = read(&format!("{}/{file}", name.to_string_lossy()));
            if text.contains("\npub fn route(") {
                in_router.extend(routes_of(&text, "route", "/api/v1"));
            }
        }
    }
    let document = everything();
    let endpoint = |operation: Operation| (operation.method, operation.path.to_owned());
    let documented: BTreeSet<_> = Operation::all(&document).into_iter().map(endpoint).collect();
    assert_eq!(documented, in_router);
    let in_table = access::TABLE.iter().map(|(method, path, _)| {
        let found = Operation::of_request(&document, method, &path.replace(['{', '}'], ""));
        endpoint(found.unwrap_or_else(|| panic!("{method} {path} is missing")))
    });
    assert_eq!(in_table.collect::<BTreeSet<_>>(), documented);
}

#[test]
fn every_documented_method_is_allowed() {
    let api = Server::start(&ALL_ON);
    for (path, item) in members(&everything()["paths"]) {
        let mut documented: BTreeSet<_> =
            members(item).map(|(method, _)| method.to_ascii_uppercase()).collect();
        // A link to a file may be followed by any name, such as `files`.
        if path.starts_with("/api/v1/links/{token}/") {
            documented.insert("GET".to_owned());
        }
        if documented.contains("GET") && !path.contains("/oidc/") {
            documented.insert("HEAD".to_owned());
        }
        let ids = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN_ID } else { part });
        let path: Vec<_> = ids.collect();
        let answer = api.request_at_root("LOCK", &path.join("/")).send().expect(405);
        let allowed = answer.header("Allow").split(", ").map(str::to_owned);
        assert_eq!(allowed.collect::<BTreeSet<_>>(), documented, "{answer:?}");
    }
}

#[test]
fn patch_is_there_wherever_put_is_and_the_same() {
    let mut found = 0;
    for (path, item) in members(&everything()["paths"]) {
        let of = |method: &str| item.get(method).map(|it| without_member(it, "operationId"));
        // Only the bytes of an upload are added by `PATCH` alone.
        if path.contains("/partial/") {
            assert!(of("put").is_none() && of("patch").is_some(), "{path}");
            continue;
        }
        assert_eq!(of("put"), of("patch"), "{path}");
        found += usize::from(item.get("patch").is_some());
    }
    assert_eq!(found, 4);
}

#[test]
fn an_operation_has_a_name_a_summary_and_its_own_answers_and_explains_its_parameters() {
    let document = everything();
    let mut ids = BTreeSet::new();
    let limits = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    for operation in Operation::all(&document) {
        let id = operation.id();
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(!id.is_empty() && id.chars().all(is_word), "{id:?}");
        assert!(ids.insert(id), "{id} occurs twice");
        assert!(operation.json["summary"].as_str().is_some_and(|text| !text.is_empty()), "{id}");
        let mut successes =
            operation.responses().filter(|(status, _)| status.starts_with(['2', '3'])).peekable();
        assert!(successes.peek().is_some(), "{id} has no answer");
        for (status, response) in successes {
            let has = limits.map(|name| response["headers"][name].is_object());
            assert_eq!(has, [operation.path.starts_with("/api/v1/"); 3], "{id} {status}");
        }
        // What may happen to any request stands once.
        for status in ["408", "417", "431", "500", "504", "505"] {
            assert!(operation.json["responses"].get(status).is_none(), "{id}: {status}");
        }
        let default = json!({ "$ref": "#/components/responses/Default" });
        assert_eq!(operation.json["responses"]["default"], default);
        // Swagger UI sends an `example` or a `default` of a parameter although nobody typed it. As all filters and both
        // ways to ask for a page together, that would find nothing or be refused.
        for parameter in operation.parameters() {
            assert!(parameter["description"].is_string(), "{id}: {parameter}");
            let names = ["/example", "/examples", "/schema/example", "/schema/default"];
            assert!(
                names.iter().all(|name| parameter.pointer(name).is_none()),
                "{id}: {parameter}"
            );
        }
    }
}

#[test]
fn an_operation_has_at_most_3130_bytes_of_the_document() {
    let document = document(&[]);
    let count: usize = members(&document["paths"]).map(|(_, item)| members(item).count()).sum();
    let bytes = document.to_string().len();
    assert!(bytes <= 3130 * count, "{bytes} bytes for {count} operations: {}", bytes / count);
}

#[test]
fn what_only_repeats_something_is_deprecated() {
    let document = everything();
    let is_deprecated = |value: &Value| value["deprecated"] == true;
    let found = Operation::all(&document).into_iter().filter(|one| is_deprecated(one.json));
    assert_eq!(
        found.map(|operation| operation.id()).collect::<BTreeSet<_>>(),
        BTreeSet::from([
            "admin_update_user",
            "export_all_users",
            "export_simple",
            "export_users_csv",
            "get_current_user",
            "refresh_tokens_by_other_path",
        ])
    );
    // Of the two ways to ask for a page, the one that the response repeats is the advised one.
    for (id, names) in [("list_files", ["limit", "offset"]), ("list_users", ["page", "size"])] {
        let operation = Operation::named(&document, id);
        let has =
            |name| operation.parameters().any(|one| one["name"] == name && is_deprecated(one));
        assert!(names.into_iter().all(has), "{id}");
    }
}

#[test]
fn both_lists_of_accounts_have_all_parameters() {
    let document = everything();
    for id in ["list_users", "admin_list_users"] {
        let operation = Operation::named(&document, id);
        let names = operation.parameters().map(|one| one["name"].as_str().expect("a name"));
        assert_eq!(
            names.collect::<Vec<_>>().join(" "),
            "email name search text ids role is_active active created_after created_before sort_by sort_order page \
             size limit offset"
        );
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
    for operation in Operation::all(&detail) {
        let bodies: Vec<_> = operation.bodies().collect();
        match (operation.id(), &bodies[..]) {
            ("refresh_tokens", [(json, schema), (form, other)]) => {
                assert_eq!(
                    [*json, *form],
                    ["application/json", "application/x-www-form-urlencoded"]
                );
                assert_ne!(schema["schema"]["$ref"], other["schema"]["$ref"]);
            }
            (id, bodies) => assert!(bodies.len() <= 1 && id != "refresh_tokens", "{id}"),
        }
    }
    let login = Operation::named(&detail, "login").json["description"].to_string();
    assert!(login.contains("`application/x-www-form-urlencoded`"), "{login}");
}

#[test]
fn paths_that_the_settings_switch_off_are_left_out_with_all_that_only_they_use() {
    let all = everything();
    let of_resets = ["ResetPasswordRequest"];
    for (setting, parts_of_paths, others_gone) in [
        (("CLOAKROOM_REGISTRATION", "off"), &["/register"][..], &["RegisterRequest"][..]),
        (
            ("CLOAKROOM_SMTP_URL", "none"),
            &["password-reset", "reset-password", "password-link"],
            &of_resets,
        ),
        (("CLOAKROOM_EMAIL_CONFIRMATION", "off"), &["confirm-email"], &["ConfirmEmailRequest"]),
        (("CLOAKROOM_OIDC_ISSUER", ""), &["/oidc"], &["ProviderSignInRequest"]),
        (("CLOAKROOM_DOCS", "off"), &["/openapi.json"], &[]),
        (
            ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "false"),
            &["/test-only/"],
            &["TestOnlyCreateUserRequest", "Test only"],
        ),
    ] {
        let without = document(&[&ALL_ON[..], &[setting]].concat());
        for (path, _) in members(&all["paths"]) {
            let is_gone = parts_of_paths.iter().any(|part| path.contains(part));
            assert_eq!(without["paths"].get(path).is_none(), is_gone, "{setting:?}: {path}");
        }
        for name in others_gone {
            let name = format!("\"{name}\"");
            let has = [&all, &without].map(|document| document.to_string().contains(&name));
            assert_eq!(has, [true, false], "{name}");
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
    let (_, form) = Operation::named(&types, "upload_file").bodies().next().expect("a body");
    assert_eq!(form["encoding"]["file"]["contentType"], "text/csv, image/png");

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
            let operation = Operation::named(&document, id).json;
            let security = operation.get("security").unwrap_or(&document["security"]);
            assert_eq!(security, expected, "{id} {settings:?}");
        }
        let has_key = document["components"]["securitySchemes"].get("api_key").is_some();
        assert_eq!(has_key, settings.contains(&keys), "{settings:?}");
    }
}
