//! The examples of refusals (403) and of bad fields (422) are those that each operation gives, no more and no fewer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::*;
use crate::openapi::document::{everything, operations};

/// Requests with bad fields: the operation, the query, and the body.
fn bad_fields() -> [(&'static str, &'static str, Value); 31] {
    let none = Value::Null;
    let user = json!({ "email": "ann", "name": "Ann", "password": PASSWORD });
    let pages = "role=owner&page=2&limit=10";
    let events = "outcome=failed&from=yesterday";
    let files = "sort_by=size&page=2&limit=10";
    let new_password = json!({ "current_password": PASSWORD, "new_password": "short" });
    [
        ("register", "", user.clone()),
        ("login", "", json!({})),
        ("refresh_tokens", "", json!({ "refresh_token": 5 })),
        ("logout", "scope=mine", none.clone()),
        ("request_password_reset", "", user.clone()),
        ("reset_password", "", json!({ "token": "x", "new_password": "short" })),
        ("create_personal_token", "", json!({ "expires_in_days": 400 })),
        ("begin_second_factor", "", json!({})),
        ("confirm_second_factor", "", json!({})),
        ("disable_second_factor", "", json!({})),
        ("renew_recovery_codes", "", json!({})),
        ("update_my_profile", "", user.clone()),
        ("delete_my_account", "", json!({})),
        ("change_password", "", new_password),
        ("list_users", pages, none.clone()),
        ("create_user", "", user.clone()),
        ("update_user", "", user.clone()),
        ("admin_list_users", pages, none.clone()),
        ("admin_update_user", "", user),
        ("list_audit_events", events, none.clone()),
        ("admin_get_daily_statistics", "days=366", none.clone()),
        ("export_audit_events", events, none.clone()),
        ("export_users", "format=pdf", none.clone()),
        ("export_users_csv", "format=pdf", none.clone()),
        ("list_files", files, none.clone()),
        ("upload_file", "", none.clone()),
        ("upload_file", "form", none.clone()),
        ("upload_file", "key", none),
        ("update_file", "", json!({ "filename": ".." })),
        ("create_file_link", "", json!({ "expires_in_minutes": 43_201 })),
        ("test_only_create_user", "", json!({ "role": "owner" })),
    ]
}

/// The keys of the examples that an operation has for a status.
fn shown(document: &Value, operation: &Value, status: u16) -> BTreeSet<String> {
    let response = response(document, operation, status);
    response.map(|response| keys_of(document, response)).unwrap_or_default()
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

#[test]
fn each_operation_gives_the_bad_fields_that_it_shows() {
    let document = everything();
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let admin = api.sign_up_admin("root");
    let (user, file) = (api.sign_up("ann").id().to_owned(), api.new_file(&admin, "a.txt", "a"));
    for (method, path, operation) in operations(&document) {
        let is_open = operation["security"] == json!([]);
        let send = |path: &str, body: Option<&str>| {
            let request = api.request_at_root(&method, path);
            let request = if is_open { request } else { request.by(&admin) };
            body.map_or(request.clone(), |body| request.body(body)).send()
        };
        let id = operation["operationId"].as_str().expect("an id");
        let found = path.replace("{user_id}", &user).replace("{file_id}", &file);
        let mut answers = Vec::new();
        if path.contains('{') {
            answers.push(send(&with_ids(&path, "no-id"), None));
        }
        if operation["requestBody"]["content"]["application/json"].is_object() {
            answers.push(send(&found, Some("{")));
        }
        for (_, query, body) in bad_fields().into_iter().filter(|(operation, ..)| *operation == id)
        {
            let body = (!body.is_null()).then(|| body.to_string());
            answers.push(match query {
                "form" => api.upload_form(&admin, Form::default().field("description", "a")),
                "key" => {
                    let upload = |content: &[u8]| {
                        let form = file_form("a.txt", "text/plain", content);
                        let request = api.upload_request(&admin, form.bytes());
                        request.header("Idempotency-Key", "a-key").send()
                    };
                    upload(b"one").expect(201);
                    upload(b"another")
                }
                query => send(&format!("{found}?{query}"), body.as_deref()),
            });
        }
        assert_eq!(given(answers, 422), shown(&document, operation, 422), "{id}");
    }
}

#[test]
fn each_operation_gives_the_refusals_that_it_shows() {
    let settings = [
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
        ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required"),
    ];
    let (document, api) = (document(&settings), Server::start(&settings));
    let (admin, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    api.new_second_factor(&admin, PASSWORD);
    let without = api.sign_up_admin("without");
    let file = api.new_file(&ann, "a.txt", "a");
    let (token, read_only) = (api.new_token(&admin, false), api.new_token(&admin, true));
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().expect("an id");
        let shown = shown(&document, operation, 403);
        if shown.is_empty() || id == "login" {
            continue;
        }
        let path = path.replace("{user_id}", admin.id()).replace("{file_id}", &file);
        let path = with_ids(&path, UNKNOWN_ID);
        let mut senders = vec![&token, &read_only];
        if shown.iter().any(|key| key.contains("ADMIN_REQUIRED")) {
            senders.extend([&ann.access, &without.access]);
        }
        if shown.iter().any(|key| key.contains("OWN_SECOND_FACTOR")) {
            senders.push(&admin.access);
        }
        let body = json!({ "role": "admin" });
        let answers = senders
            .into_iter()
            .map(|sender| api.request_at_root(&method, &path).by(sender).json(body.clone()).send());
        assert_eq!(given(answers, 403), shown, "{id}");
    }
}
