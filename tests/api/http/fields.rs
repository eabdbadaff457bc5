//! Fields that break a rule, a row each. `openapi/inputs.rs` sends what the document says of each field: its bounds,
//! its words, values of another type, and nothing where one is required.

use crate::harness::*;

const TOKEN: &str = "POST /auth/tokens";
const LINK: &str = "POST /uploads/{file}/links";
const LINKS: &str = "POST /links";
const NEW_USER: &str = "POST /users";
const USER: &str = "POST /users, PUT /users/{user}";
const USERS: &str = "GET /users, GET /admin/users";
const LISTS: &str = "GET /users, GET /admin/users, GET /uploads";
const EVENTS: &str = "GET /admin/audit";

/// Endpoints that have the fields, the query or the fields of a JSON body, and all their problems.
#[rustfmt::skip]
const ROWS: &[(&str, &str, &str)] = &[
    (TOKEN, r#"{"name": null}"#, "name missing"),
    (TOKEN, r#"{"name": " "}"#, "name string_too_short"),
    (TOKEN, r#"{"name": "a\tb"}"#, "name value_error"),
    (TOKEN, r#"{"name": "a\u202eb"}"#, "name value_error"),
    (TOKEN, r#"{"name": "a", "expires_in_days": 0}"#, "expires_in_days value_error"),
    (TOKEN, r#"{"name": "a", "expires_in_days": 366}"#, "expires_in_days value_error"),
    (TOKEN, r#"{"name": "a", "expires_in_days": -1}"#, "expires_in_days value_error"),
    (TOKEN, r#"{"name": "a", "expires_in_days": 1.5}"#, "expires_in_days int_parsing"),
    (TOKEN, r#"{"expires_in_days": 18446744073709551615, "read_only": 2}"#,
        "name missing, expires_in_days int_parsing, read_only bool_type"),
    (TOKEN, r#"{"name": "a", "scope": ""}"#, "scope enum"),
    (TOKEN, r#"{"name": "a", "scope": "all", "read_only": true}"#, "read_only value_error"),
    (TOKEN, r#"{"name": "a", "scope": "upload", "read_only": true}"#, "read_only value_error"),
    (LINK, r#"{"expires_in_minutes": 0}"#, "expires_in_minutes value_error"),
    (LINK, r#"{"expires_in_minutes": 43201}"#, "expires_in_minutes value_error"),
    (LINK, r#"{"expires_in_minutes": -1}"#, "expires_in_minutes value_error"),
    (LINK, r#"{"expires_in_minutes": 1.5}"#, "expires_in_minutes int_parsing"),
    (LINK, r#"{"expires_in_minutes": "5x"}"#, "expires_in_minutes int_parsing"),
    (LINK, r#"{"qr": "perhaps"}"#, "qr bool_type"),
    (LINKS, r#"{"inline": 2, "qr": 2, "expires_in_minutes": 0}"#,
        "files missing, folder missing, upload_to missing, expires_in_minutes value_error, inline bool_type, \
         qr bool_type"),
    (LINKS, r#"{"files": null, "folder": null}"#, "files missing, folder missing, upload_to missing"),
    (LINKS, r#"{"folder": "/a", "upload_to": "/a"}"#, "folder value_error, upload_to value_error"),
    (LINKS, r#"{"upload_to": ""}"#, "upload_to value_error"),
    (LINKS, r#"{"upload_to": "/", "max_files": 1001, "max_bytes": 1073741825, "note": "a\u202eb", "notify": 2}"#,
        "note value_error, max_files value_error, max_bytes value_error, notify bool_type"),
    (LINKS, r#"{"upload_to": "/", "max_files": 0, "max_bytes": 0}"#, "max_files value_error, max_bytes value_error"),
    (LINKS, r#"{"files": ["00000000-0000-4000-8000-000000000000"], "folder": "/a"}"#,
        "files value_error, folder value_error"),
    (LINKS, r#"{"folder": ""}"#, "folder value_error"),
    (LINKS, r#"{"folder": "/a/../b"}"#, "folder value_error"),
    (LINKS, r#"{"files": []}"#, "files value_error"),
    (LINKS, r#"{"files": ["00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000"]}"#,
        "files value_error"),
    (LINKS, r#"{"files": ["no-id"]}"#, "files uuid_parsing"),
    (LINKS, r#"{"files": "00000000-0000-4000-8000-000000000000"}"#, "files value_error"),
    ("GET /uploads/zip", "folder=", "folder value_error"),
    ("GET /uploads/zip", "ids=", "ids value_error"),
    ("GET /uploads/zip", "folder=a//b&ids=00000000-0000-4000-8000-000000000000", "folder value_error, ids value_error"),
    ("GET /uploads/zip", "ids=00000000-0000-4000-8000-000000000000,", "ids uuid_parsing"),
    (USER, r#"{"username": "a b"}"#, "username value_error"),
    (USER, r#"{"email": "nobody"}"#, "email value_error"),
    (USER, r#"{"name": 7}"#, "name string_type"),
    (USER, r#"{"role": "ADMIN"}"#, "role enum"),
    (USER, r#"{"permissions": "read"}"#, "permissions value_error"),
    (USER, r#"{"permissions": {}}"#, "permissions value_error"),
    (USER, r#"{"storage_quota": -1, "file_quota": -1}"#, "storage_quota value_error, file_quota value_error"),
    (USER, r#"{"storage_quota": 1.5, "file_quota": 1.5}"#, "storage_quota int_parsing, file_quota int_parsing"),
    (USER, r#"{"storage_quota": "", "file_quota": "5 5"}"#, "storage_quota int_parsing, file_quota int_parsing"),
    (USER, r#"{"storage_quota": true, "file_quota": true}"#, "storage_quota int_parsing, file_quota int_parsing"),
    (USER, r#"{"storage_quota": 9223372036854775808}"#, "storage_quota int_parsing"),
    (USER, r#"{"file_quota": 9223372036854775808}"#, "file_quota int_parsing"),
    // Without an invitation a password is required, and with one it may be given.
    (NEW_USER, r#"{"password": null, "invite": false}"#, "password missing"),
    (NEW_USER, r#"{"password": null, "invite": null}"#, "password missing"),
    (NEW_USER, r#"{"password": null}"#, "password missing"),
    (NEW_USER, r#"{"password": "", "invite": true}"#, "password string_too_short"),
    (NEW_USER, r#"{"password": null, "invite": true, "is_active": false}"#, "is_active value_error"),
    (USERS, "limit=abc", "limit int_parsing"),
    (USERS, "limit=", "limit int_parsing"),
    (USERS, "offset=1.5", "offset int_parsing"),
    (USERS, "offset=9223372036854775808", "offset int_parsing"),
    (USERS, "sort_by=id;drop", "sort_by enum"),
    (USERS, "text=%00&ids=no-id", "text value_error, ids uuid_parsing"),
    (USERS, "ids=00000000-0000-4000-8000-000000000000,", "ids uuid_parsing"),
    (USERS, "sort_order=up&role=root", "sort_order enum, role enum"),
    (USERS, "is_active=maybe&active=2", "is_active bool_type, active bool_type"),
    (USERS, "is_active=maybe&active=true", "is_active bool_type"),
    (USERS, "is_active=true&active=0", "active value_error"),
    (USERS, "is_active=false&active=true", "active value_error"),
    (USERS, "created_after=yesterday&created_before=%20",
        "created_after datetime_parsing, created_before datetime_parsing"),
    // In UTC this is in the year 10000.
    (USERS, "created_after=9999-12-31T23:59:59-01:00", "created_after datetime_parsing"),
    (USERS, "email=%00&search=%00", "email value_error, search value_error"),
    (LISTS, "page=0&size=101", "page value_error, size value_error"),
    (LISTS, "page=-1", "page value_error"),
    (LISTS, "page=x", "page int_parsing"),
    (LISTS, "page=9223372036854775808", "page int_parsing"),
    (LISTS, "size=0", "size value_error"),
    (LISTS, "size=1000000000000000000", "size value_error"),
    (LISTS, "size=", "size int_parsing"),
    (LISTS, "size=1.5", "size int_parsing"),
    (LISTS, "limit=x", "limit int_parsing"),
    // One of each form of paging.
    (LISTS, "page=1&limit=20", "limit value_error"),
    (LISTS, "page=1&offset=0", "offset value_error"),
    (LISTS, "size=20&offset=0&limit=20", "limit value_error, offset value_error"),
    (LISTS, "size=20&limit=0", "limit value_error"),
    ("GET /uploads", "page=0&sort_by=x&sort_order=up&search=%00",
        "page value_error, sort_by enum, sort_order enum, search value_error"),
    ("GET /admin/audit, GET /admin/audit/export", "actor_id=x&subject_id=%20&action=login&outcome=ok&from=now&to=1",
        "actor_id uuid_parsing, subject_id uuid_parsing, action enum, outcome enum, from datetime_parsing, \
         to datetime_parsing"),
    (EVENTS, "limit=0&before=x", "limit value_error, before value_error"),
    (EVENTS, "limit=101", "limit value_error"),
];

/// Forms and spreadsheets make texts of all values, and some languages have one type of numbers.
#[test]
fn numbers_and_booleans_of_a_body_may_be_texts_and_numbers_of_any_form() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let user = api.profile(&root).expect(200).id();
    for (sent, quota) in [("\"5\"", 5), ("\" 5 \"", 5), ("5.0", 5), ("\"5.00\"", 5), ("5e0", 5)] {
        let request = api.request("PUT", &format!("/users/{user}")).by(&root);
        let body = format!(r#"{{"storage_quota": {sent}}}"#);
        request.body(body).send().case(sent).expect(200).has(json!({"storage_quota": quota}));
    }
    let file = api.new_file(&root, "a.txt", "text");
    for (sent, is_public) in [
        (json!("true"), true),
        (json!("no"), false),
        (json!("ON"), true),
        (json!(0), false),
        (json!(1), true),
        (json!(0.0), false),
    ] {
        let answer = api.update_file(&root, &file, json!({"is_public": sent})).case(&sent);
        answer.expect(200).has(json!({"is_public": is_public}));
    }
    if has_extras() {
        api.create_link(&root, &file, json!({"expires_in_minutes": "60", "inline": "true"}))
            .expect(201)
            .has(json!({"inline": true}));
        api.create_token(&root, json!({"name": "x", "expires_in_days": "30"})).expect(201);
    }
    for query in ["size=20.0", "size=%2020", "page=1.0&size=+20+"] {
        api.list_files(&root, query).case(query).expect(200).has(json!({"size": 20}));
    }
}

/// Keyboards of phones and pasted texts add blanks.
#[test]
fn names_and_addresses_are_trimmed_wherever_they_are_read_and_passwords_never() {
    let (mail, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    let ann =
        json!({"username": " ann ", "email": "\tann@example.com\u{a0}", "password": PASSWORD});
    let stored = json!({"username": "ann", "email": "ann@example.com"});
    api.register_with(ann).expect(201).has(stored.clone());
    let by_email = json!({"email": " bob@example.com ", "password": PASSWORD});
    api.register_with(by_email).expect(201);
    for name in ["ann ", " ann", "ann@example.com ", "\u{a0}ann@example.com\u{2003}", "\tANN\n"] {
        api.login(name, PASSWORD).case(name).expect(200);
        let by_email = json!({"email": name, "password": PASSWORD});
        api.login_with(by_email).case(name).expect(200);
    }
    let form = api.request("POST", "/auth/login");
    form.form(format!("username=+ann@example.com+&password={}", PASSWORD.replace(' ', "+")))
        .send()
        .expect(200);
    api.login("ann", &format!(" {PASSWORD}")).expect(401);
    api.login("ann", &format!("{PASSWORD} ")).expect(401);
    let ann = api.sign_in("ann");
    let change = json!({"username": " anna\n", "email": " anna@example.com ", "name": " Anna "});
    let changed = json!({"username": "anna", "email": "anna@example.com", "name": "Anna"});
    api.update_me(&ann, change).expect(200).has(changed);
    let id = api.profile(&ann).expect(200).id();
    let by_admin = json!({"username": "ann\u{3000}", "email": "ann@example.com ", "name": "\tAnn"});
    let changed = json!({"username": "ann", "email": "ann@example.com", "name": "Ann"});
    api.update_user(&root, &id, by_admin).expect(200).has(changed);
    let new = json!({"username": " eve", "email": "eve@example.com\n", "name": " Eve", "password": PASSWORD});
    let made = json!({"username": "eve", "email": "eve@example.com", "name": "Eve"});
    api.create_user(&root, new).expect(201).has(made);
    // The address is the one of an account, with blanks or without.
    let taken = json!({"username": "other", "email": " ann@example.com", "password": PASSWORD});
    api.register_with(taken).refused(400, "Email already exists");
    api.request_reset(" eve@example.com ").expect(200);
    mail.wait_for_mail_to("eve@example.com");
}

#[test]
fn each_bad_field_is_told_and_harms_no_other_request() {
    let (api, [root]) = Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")], ["root"]);
    let file = api.new_file(&root, "a.txt", "text");
    let document = document(&[]);
    for (endpoints, input, problems) in ROWS {
        for endpoint in endpoints.split(", ") {
            let (method, path) = endpoint.split_once(' ').expect("a method and a path");
            let path = path.replace("{file}", &file).replace("{user}", root.id());
            // The core build lacks some of them, and there the word `zip` is no id.
            let operation = Operation::of_request(&document, method, &format!("/api/v1{path}"));
            if operation.is_none() || path.ends_with("/zip") && !has_extras() {
                assert!(!has_extras(), "{endpoint}");
                continue;
            }
            let case = format!("{endpoint} {input}");
            if method == "GET" {
                let answer = api.get(&format!("{path}?{input}"), &root);
                answer.case(case).invalid_in("query", problems);
            } else {
                let mut body = match endpoint {
                    NEW_USER => {
                        json!({"email": "a@example.com", "name": "A", "password": PASSWORD})
                    }
                    _ => json!({}),
                };
                let fields: Value = serde_json::from_str(input).expect("JSON");
                members(&fields).for_each(|(name, value)| body[name] = value.clone());
                let answer = api.request(method, &path).by(&root).json(body).send();
                answer.case(case).invalid_in("body", problems);
            }
        }
    }
    let too_many = format!("ids={}", [UNKNOWN_ID; 101].join(","));
    for answer in [api.list_users(&root, &too_many), api.page_users(&root, &too_many)] {
        answer.invalid_in("query", "ids value_error");
    }
    if has_extras() {
        api.get(&format!("/uploads/zip?{too_many}"), &root).invalid_in("query", "ids value_error");
    }
    api.me(&root).expect(200);
    assert_eq!(["users", "files"].map(|table| api.database.count(table)), [1, 1]);
    let made = ["personal_tokens", "file_links"].map(|table| api.database.count(table));
    assert_eq!(made, [0, 0]);
    assert!(!api.log().contains("panic"), "{}", api.log());
}
