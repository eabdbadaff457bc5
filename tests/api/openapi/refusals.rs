//! The examples of refusals (403) and of bad fields (422) are those that each operation gives, no more and no fewer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::*;
use crate::openapi::document::everything;
use crate::openapi::scene::{Everything, Scene};

/// Requests with bad fields: the operations, what has the fields, and the fields.
fn bad_fields() -> [(&'static str, &'static str, Value); 21] {
    let json = "application/json";
    let user = json!({ "email": "ann", "name": "Ann", "password": PASSWORD });
    let new_password = json!({ "current_password": PASSWORD, "new_password": "short" });
    [
        (
            "register request_password_reset update_my_profile create_user update_user admin_update_user",
            json,
            user,
        ),
        (
            "login confirm_email begin_second_factor confirm_second_factor disable_second_factor",
            json,
            json!({}),
        ),
        ("renew_recovery_codes delete_my_account restore_files", json, json!({})),
        ("refresh_tokens refresh_tokens_by_other_path", json, json!({ "refresh_token": 5 })),
        ("logout", "query", json!({ "scope": "mine" })),
        ("reset_password", json, json!({ "token": "x", "new_password": "short" })),
        ("create_personal_token", json, json!({ "expires_in_days": 400 })),
        ("change_password", json, new_password),
        (
            "list_users admin_list_users",
            "query",
            json!({ "role": "owner", "page": 2, "limit": 10 }),
        ),
        (
            "list_audit_events export_audit_events",
            "query",
            json!({ "outcome": "failed", "from": "yesterday" }),
        ),
        ("admin_get_daily_statistics", "query", json!({ "days": 366 })),
        ("export_users export_users_csv", "query", json!({ "format": "pdf" })),
        ("export_all_users", "query", json!({ "bom": "perhaps" })),
        ("list_files", "query", json!({ "sort_by": "size", "page": 2, "limit": 10 })),
        ("upload_file", "query", json!({})),
        ("upload_file", "multipart/form-data", json!({ "description": "a" })),
        ("update_file", json, json!({ "filename": ".." })),
        ("delete_file", "query", json!({ "permanently": "perhaps" })),
        ("list_changes", "query", json!({ "after": "x" })),
        ("create_file_link", json, json!({ "expires_in_minutes": 43_201 })),
        ("test_only_create_user", json, json!({ "role": "owner" })),
    ]
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
    let all = Everything::start();
    let scene = Scene::new(&all, PASSWORD);
    for operation in Operation::all(&document) {
        let id = operation.id();
        let mut requests = Vec::new();
        if operation.path.contains('{') {
            let path = with_ids(operation.path, "no-id");
            requests.push(all.api.request_at_root(&operation.method, &path).by(&scene.sender));
        }
        if operation.bodies().any(|(media_type, _)| media_type == "application/json") {
            requests.push(scene.request(&operation, "query", &json!({})).body("{"));
        }
        for (ids, media_type, fields) in bad_fields() {
            if ids.split(' ').any(|one| one == id) {
                requests.push(scene.request(&operation, media_type, &fields));
            }
        }
        if id == "upload_file" {
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
        if shown.is_empty() || id == "login" {
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
        let request =
            api.request_at_root(&operation.method, &path).json(json!({ "role": "admin" }));
        // What only some values of the query are refused for.
        let query = if id == "delete_file" { "permanently=true" } else { "" };
        let with_query = api.request_at_root(&operation.method, &format!("{path}?{query}"));
        let answers = senders.into_iter().map(|sender| request.clone().by(sender).send());
        let answers = answers.chain([with_query.by(&token).json(json!({})).send()]);
        assert_eq!(given(answers, 403), shown, "{id}");
    }
}
