//! What the release before stored goes on with this one. `upgrade/` has a backup of that release with data of every
//! kind, which `upgrade/make.py` made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::*;

/// The accounts whose addresses are stored with a domain that is not ASCII, or with a control character.
const ODD_ADDRESSES: [(&str, &str); 6] = [
    ("plain", "a@example.com"),
    ("wide", "a@\u{ff45}xample.com"),
    ("first", "b@\u{ff45}xample.com"),
    ("second", "b@ex\u{ff41}mple.com"),
    ("alone", "c@b\u{fc}cher.example"),
    ("odd", "\"d\te\"@example.com"),
];

fn backup() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/start/upgrade/backup")
}

/// Ids, and what tokens of the old release say.
fn facts() -> Value {
    serde_json::from_str(include_str!("upgrade/facts.json")).expect("JSON")
}

/// One of these tokens, signed so that it does not expire.
fn token(name: &str) -> String {
    sign(with_member(&facts()["tokens"][name], "exp", FAR_FUTURE))
}

/// The database and the data directory as the old release left them.
fn old_service() -> Target {
    let target = Target::create();
    let mut restore = Command::new("pg_restore");
    restore.args(["--no-owner", "--exit-on-error", "--dbname", &target.database.url]);
    restore.arg(backup().join("database.dump")).output().expect("pg_restore runs").exits(0);
    let id: String = target.database.value("SELECT id::text FROM installation");
    fs::write(target.data.join("installation-id"), id).expect("an id");
    fs::create_dir(target.data.join("files")).expect("a directory");
    for file in fs::read_dir(backup().join("files")).expect("contents") {
        let file = file.expect("a content");
        fs::copy(file.path(), target.data.join("files").join(file.file_name())).expect("a copy");
    }
    target
}

#[test]
fn sessions_and_tokens_of_the_old_release_go_on() {
    let api = old_service().serve();
    let facts = facts();
    let ann = json!({"id": facts["users"]["ann"]});
    api.me(token("access")).expect(200).has(ann.clone());
    api.me(facts["personal_token"].as_str().expect("a token")).expect(200).has(ann);
    let listed = api.list_tokens(token("access")).expect(200).json();
    assert_eq!(listed["tokens"][0]["name"], "a\tb\u{202e}c");
    let next = api.refresh(&token("refresh")).expect(200).tokens();
    api.me(&next).expect(200);
    api.me(token("ended")).refused(401, "Invalid token");
    // This one was replaced before the dump was made, so whoever sends it has copied it.
    api.refresh(&token("rotated")).refused(401, "Invalid token");
    api.me(&next).refused(401, "Invalid token");
}

#[test]
fn files_of_the_old_release_are_listed_and_downloaded_and_those_of_deleted_users_removed() {
    let api = old_service().serve();
    let (ann, facts) = (token("access"), facts());
    for (name, shown, content_type) in [
        ("a.txt", "a.txt", "text/plain"),
        ("odd.txt", "a\tb\u{202e}gpj.exe", "text/plain"),
        // It was declared as `image/jpg`, and is shown as the list of types spells it.
        ("picture.jpg", "picture.jpg", "image/jpeg"),
    ] {
        let id = facts["files"][name].as_str().expect("an id");
        let record =
            json!({"filename": shown, "original_filename": shown, "content_type": content_type});
        api.show_file(&ann, id).expect(200).has(record);
        assert_eq!(api.download(&ann, id).expect(200).text(), format!("content of {name}"));
    }
    assert_eq!(api.all_files(&ann).len(), 3);
    let pictures = api.list_files(&ann, "content_type=image/jpeg").expect(200).json();
    assert_eq!(names_of(&pictures["items"], "filename"), ["picture.jpg"]);
    wait_until(|| api.database.count("pending_removals") == 0);
    assert_eq!(api.database.count("files"), 3);
}

#[test]
fn a_database_of_version_12_is_upgraded_and_lists_what_it_has() {
    let database = Database::create();
    database.migrate_to(12);
    let ann = UNKNOWN_ID;
    database.run(&format!(
        "INSERT INTO users (id, username, email, name, role, password_hash) VALUES
             ('{ann}', 'ann', 'ann@example.com', NULL, 'admin', '-'),
             (gen_random_uuid(), 'bob', 'bob@example.com', 'zoe', 'user', '-'),
             (gen_random_uuid(), 'cleo', 'cleo@example.com', 'Adam', 'user', '-');
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), '{ann}', name, name, type, 1, 'f', 'h'
             FROM (VALUES ('B', 'image/jpg'), ('a', 'image/jpeg'), ('c', 'image/png')) file (name, type)"
    ));
    let api = Server::start_with(&database, &Arc::new(Directory::create()), &[]);
    assert!(api.log().contains("migration V13__names_descending applied"), "{}", api.log());
    let admin = sign(json!({"sub": ann, "role": "admin", "iat": now(), "exp": now() + 600}));
    for (query, expected) in [("sort_order=asc", "cleo bob ann"), ("", "bob cleo ann")] {
        let body =
            api.list_users(&admin, &format!("name=&sort_by=name&{query}")).expect(200).json();
        assert_eq!(names_of(&body["users"], "username").join(" "), expected);
    }
    let query = "content_type=image/jpeg&sort_by=filename&sort_order=asc";
    let body = api.list_files(&admin, query).expect(200).json();
    assert_eq!(names_of(&body["items"], "filename"), ["a", "B"]);
    assert_eq!(names_of(&body["items"], "content_type"), ["image/jpeg", "image/jpeg"]);
}

#[test]
fn a_database_of_version_14_is_upgraded_and_its_users_make_links_and_are_invited() {
    let database = Database::create();
    database.migrate_to(14);
    database.run(&format!(
        "INSERT INTO users (id, username, email, role, password_hash)
             VALUES ('{UNKNOWN_ID}', 'root', 'root@example.com', 'admin', '-');
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             VALUES ('{UNKNOWN_ID}', '{UNKNOWN_ID}', 'a', 'a', 'text/plain', 7, 'f', 'h');
         INSERT INTO outbox (kind, user_id, due_at) VALUES ('token_created', '{UNKNOWN_ID}', 'infinity')"
    ));
    let data = Arc::new(Directory::create());
    fs::create_dir(data.join("files")).expect("a directory");
    fs::write(data.content(UNKNOWN_ID), "content").expect("a content");
    // Two starts: the second finds nothing to do.
    for _ in 0..2 {
        let api = Server::start_with(&database, &data, &[]);
        let claims = json!({"sub": UNKNOWN_ID, "role": "admin", "iat": now(), "exp": now() + 600});
        let root = sign(claims);
        let link = api.new_link(&root, UNKNOWN_ID);
        assert_eq!(api.open_link(&link).expect(200).text(), "content");
        let count = database.count("users");
        let email = format!("user{count}@example.com");
        let invited = json!({"email": email, "name": "A", "invite": true});
        api.create_user(&root, invited).expect(201);
        api.logged("password reset token of user");
    }
    assert_eq!(database.count("outbox WHERE kind = 'token_created'"), 1);
    assert_eq!(database.count("audit_events WHERE action = 'file.link_create'"), 2);
}

#[test]
fn accounts_whose_addresses_are_one_sign_in_by_what_is_stored() {
    let target = old_service();
    let facts = facts();
    // Later starts find the same.
    for _ in 0..2 {
        let api = target.serve();
        for (name, address) in ODD_ADDRESSES {
            for login in [name.to_owned(), address.to_owned(), address.to_uppercase()] {
                let user = api.login(&login, PASSWORD).case(&login).expect(200).tokens().user;
                assert_eq!(user["id"], facts["users"][name], "{login}");
            }
        }
        // The one account with this address has it in each spelling, and none can be taken a second time.
        assert_eq!(api.sign_in("C@xn--bcher-kva.EXAMPLE").user["username"], "alone");
        for taken in [
            "c@xn--bcher-kva.example",
            "c@\u{ff42}\u{fc}cher.example",
            "A@exam\u{ff50}le.com",
            "b@example.com",
        ] {
            let body = json!({"email": taken, "password": PASSWORD});
            api.register_with(body).refused(400, "Email already exists");
        }
        assert_eq!(target.database.count("users WHERE email_ascii IS NOT NULL"), 2);
        assert!(!api.log().contains(" WARN "), "{}", api.log());
    }
    for (name, address) in [("wide", "A@\u{ff25}XAMPLE.com"), ("plain", "A@example.com")] {
        let arguments = ["create-admin", "--email", address];
        let created =
            run(&target.database.url, &arguments, &[("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)]);
        let printed = created.exits(0).out();
        assert!(printed.contains(&format!("username: {name}")), "{printed}");
    }
    let report = doctor(&target.database.url, &target.data, &[]);
    expect_finding(&report, "warning accounts wide and plain: ", "e-mail addresses are one");
    let pairs = report.lines().filter(|line| line.contains("e-mail addresses are one"));
    assert_eq!(pairs.count(), 2, "{report}");
    assert!(!report.contains("xample.com"), "{report}");
    target.run(&["check"]).exits(0);
}

#[test]
fn a_start_fills_thousands_of_ascii_forms_and_goes_on_if_it_cannot() {
    let target = old_service();
    target.database.run(
        "INSERT INTO users (id, username, email, password_hash)
             SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@b\u{fc}cher.example', '-'
             FROM generate_series(1, 2500) i;
         INSERT INTO users (id, username, email, password_hash)
             SELECT gen_random_uuid(), 't' || i, 'U' || i || '@xn--bcher-kva.example', '-'
             FROM generate_series(1, 30) i",
    );
    run(&target.database.url, &["migrate"], &[]).exits(0);
    assert_eq!(
        target.database.count("users WHERE email_ascii LIKE 'u%@xn--bcher-kva.example'"),
        2470
    );
    let report = doctor(&target.database.url, &target.data, &[]);
    let pairs = report.lines().filter(|line| line.contains("e-mail addresses are one"));
    assert_eq!(pairs.count(), 20, "{report}");
    expect_finding(&report, "warning accounts with one e-mail address: 12 more pairs", "");
    target.database.run(
        "DELETE FROM users WHERE username LIKE 't%';
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
         CREATE TRIGGER refused BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let log = run(&target.database.url, &["migrate"], &[]).exits(0).err();
    assert!(log.contains("WARN") && log.contains("ASCII forms of e-mail addresses: "), "{log}");
    target.database.run("DROP TRIGGER refused ON users");
    run(&target.database.url, &["migrate"], &[]).exits(0);
    assert_eq!(
        target.database.count("users WHERE email_ascii LIKE 'u%@xn--bcher-kva.example'"),
        2500
    );
}

#[test]
fn odd_texts_of_the_old_release_are_shown_and_may_be_sent_back_but_not_changed_for_others() {
    let api = old_service().serve();
    let (ann, root, facts) = (token("access"), api.sign_in("root"), facts());
    let refused = |field: &str| [(format!("body.{field}"), "value_error")];
    let name = "ann\t\u{202e}x\u{7}";
    api.me(&ann).expect(200).has(json!({"name": name}));
    api.update_me(&ann, json!({"name": name, "username": "anna"}))
        .expect(200)
        .has(json!({"name": name}));
    let id = facts["users"]["ann"].as_str().expect("an id");
    api.update_user(&root, id, json!({"name": name, "role": "user"}))
        .expect(200)
        .has(json!({"name": name}));
    let other = json!({"name": format!("{name}x")});
    for (place, kind) in refused("name") {
        api.update_me(&ann, other.clone()).invalid(&[(&place, kind)]);
        api.update_user(&root, id, other.clone()).invalid(&[(&place, kind)]);
        api.update_user(&root, root.id(), json!({"name": name})).invalid(&[(&place, kind)]);
        api.update_user(&root, UNKNOWN_ID, json!({"name": name})).invalid(&[(&place, kind)]);
    }
    for (name, address) in ODD_ADDRESSES {
        let user = api.sign_in(name);
        let stored = json!({"email": address, "name": user.user["name"]});
        api.update_me(&user, stored.clone()).expect(200).has(stored.clone());
        api.update_user(&root, user.id(), stored.clone()).expect(200).has(stored);
        assert_eq!(api.sign_in(address).id(), user.id());
    }
    let file = facts["files"]["odd.txt"].as_str().expect("an id");
    let stored = json!({"filename": "a\tb\u{202e}gpj.exe", "description": "bell \u{7}"});
    let mut public = stored.clone();
    public["is_public"] = json!(true);
    api.update_file(&ann, file, public).expect(200).has(stored.clone());
    // Not the owner's: the answer does not tell what is stored.
    let both = [("body.filename", "value_error"), ("body.description", "value_error")];
    api.update_file(&root, file, stored.clone()).invalid(&both);
    let another = facts["files"]["a.txt"].as_str().expect("an id");
    api.update_file(&ann, another, stored).invalid(&both);
    let rows = api.export_full(&root).expect(200).text();
    assert!(rows.contains("a@\u{ff45}xample.com") && rows.contains(name), "{rows}");
}

#[test]
fn what_waited_in_the_old_release_is_done_by_this_one() {
    let api = old_service().serve();
    let facts = facts();
    // Of two accounts whose addresses are one, the request was for the one that is stored under the address as given.
    wait_until(|| api.database.count("password_reset_requests") == 0);
    wait_until(|| api.database.count("outbox WHERE kind = 'password_reset'") == 0);
    for name in ["wide", "first"] {
        let id = facts["users"][name].as_str().expect("an id");
        api.logged(&format!("password reset token of user {id}: "));
    }
    let root = api.sign_in("root");
    let events = api.all_events(&root, "action=password.reset_request");
    assert_eq!(events[0]["subject_id"], facts["users"]["wide"]);
    assert!(api.all_events(&root, "").len() > 20);
    assert_eq!(api.database.count("outbox WHERE due_at = 'infinity' OR failed_at IS NOT NULL"), 2);
    // Links go to the account that has the address in any spelling.
    let token = api.reset_token("c@xn--bcher-kva.example");
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    api.login("alone", NEW_PASSWORD).expect(200);
}

#[test]
fn a_backup_of_the_old_release_is_restored() {
    let target = Target::create();
    let printed = target.restore(&backup()).exits(0).out();
    assert!(printed.contains("database: 8 users, 3 files, 56 bytes\n"), "{printed}");
    assert_eq!(target.database.count("users WHERE email_ascii IS NOT NULL"), 2);
    let api = target.serve();
    api.me(token("access")).expect(401);
    let (ann, facts) = (api.sign_in("ann"), facts());
    for name in ["a.txt", "odd.txt", "picture.jpg"] {
        let id = facts["files"][name].as_str().expect("an id");
        assert_eq!(api.download(&ann, id).expect(200).text(), format!("content of {name}"));
    }
    for (name, address) in ODD_ADDRESSES {
        assert_eq!(api.sign_in(address).user["username"], name);
    }
}

#[test]
fn a_database_of_version_14_is_upgraded_and_its_accounts_and_files_are_listed_and_counted() {
    let database = Database::create();
    database.migrate_to(14);
    let (ann, gone) = (UNKNOWN_ID, "11111111-1111-4111-8111-111111111111");
    database.run(&format!(
        "INSERT INTO users (id, username, email, email_ascii, name, role, password_hash, created_at, is_active) VALUES
             ('{ann}', 'Ann', 'ann@example.com', NULL, NULL, 'admin', '-', now(), true),
             (gen_random_uuid(), 'bob', 'Bob@b\u{fc}cher.example', 'bob@xn--bcher-kva.example', 'Zoe', 'user', '-',
              '2020-01-31T23:59:59Z', false);
         INSERT INTO users (id, is_deleted) VALUES ('{gone}', true);
         INSERT INTO pending_removals VALUES ('{gone}');
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date)
             SELECT gen_random_uuid(), owner::uuid, 'f', 'f', 'text/plain', size, 'f', 'h', at::timestamptz
             FROM (VALUES ('{ann}', 5, 'now'), ('{ann}', 7, '2020-01-01'), ('{gone}', 9, 'now')) file (owner, size, at)"
    ));
    // The record of the deleted user's file stays.
    let backup =
        database.begin("SELECT pg_advisory_xact_lock(hashtext('cloakroom: removal of contents'))");
    run(&database.url, &["migrate"], &[]).exits(0);
    let query = include_str!("../../../sql/checks/copies.sql");
    assert_eq!(database.client().query(query, &[]).expect("rows").len(), 0);
    let api = Server::start_with(&database, &Arc::new(Directory::create()), &[]);
    let admin = sign(json!({"sub": ann, "role": "admin", "iat": now(), "exp": now() + 600}));
    let stats = api.admin_stats(&admin).expect(200).json();
    assert_eq!(stats["users"], json!({"total": 2, "active": 1, "new_this_month": 1}));
    assert_eq!(stats["files"], json!({"total": 2, "total_size": 12, "uploads_this_month": 1}));
    for (query, expected) in [
        ("sort_by=email&sort_order=asc", "Ann bob"),
        ("search=ANN", "Ann"),
        ("email=b%C3%9Ccher", "bob"),
        ("name=zoe&active=false", "bob"),
    ] {
        let body = api.list_users(&admin, query).case(query).expect(200).json();
        assert_eq!(names_of(&body["users"], "username").join(" "), expected, "{query}");
    }
    backup.roll_back();
}

#[test]
fn of_the_accounts_of_version_23_the_young_ones_that_registered_themselves_are_known() {
    let database = Database::create();
    database.migrate_to(23);
    let accounts = [
        ("registered", "6 days", "auth.register", true),
        ("made", "6 days", "user.create", false),
        ("old", "8 days", "auth.register", false),
    ];
    for (name, age, action, _) in accounts {
        database.run(&format!(
            "WITH account AS (
                 INSERT INTO users (id, username, email, password_hash, is_settled, created_at)
                 VALUES (gen_random_uuid(), '{name}', '{name}@example.com', '-', true, now() - interval '{age}')
                 RETURNING id
             )
             INSERT INTO audit_events (action, actor_id, subject_type, subject_id)
             SELECT '{action}', id, 'user', id FROM account"
        ));
    }
    run(&database.url, &["migrate"], &[]).exits(0);
    for (name, .., expected) in accounts {
        let is_known = format!("SELECT is_self_registered FROM users WHERE username = '{name}'");
        assert_eq!(database.value::<bool>(&is_known), expected, "{name}");
    }
}
