//! Exports are read in batches, before each of which the sender is looked up.

use std::sync::Arc;
use std::thread;

use uuid::Uuid;

use super::users::{HEADER, insert_users};
use crate::harness::*;

/// Most bytes of a batch.
const MAX_BATCH: usize = 256 << 10;

/// The batches of an export: the chunks of its response.
fn batches(api: &Server, path: &str, sender: impl Credentials) -> Vec<Vec<u8>> {
    let mut export = api.begin_reading(&format!("GET /api/v1{path} HTTP/1.1"), sender);
    let (body, mut batches) = (export.rest(), Vec::new());
    let mut rest = &body[..];
    loop {
        let end = rest.windows(2).position(|bytes| bytes == b"\r\n").expect("a line");
        let size = std::str::from_utf8(&rest[..end]).expect("text");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return batches;
        }
        batches.push(rest[end + 2..][..size].to_vec());
        rest = &rest[end + 2 + size + 2..];
    }
}

#[test]
fn a_batch_costs_a_look_at_the_sender_and_a_prepared_query_and_holds_as_many_rows_as_fit() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let proxy = DatabaseProxy::start(&database.url);
    // All statements come on one connection.
    let settings = [("CLOAKROOM_DATABASE_POOL_SIZE", "1")];
    let api = Server::spawn(command(&proxy.url, &data, &settings), &database, &data);
    let root = api.sign_up_admin("root");
    insert_users(&api, 20_000, 10);
    let session: Uuid = root.session().parse().expect("an id");
    let sent = |text: &[u8]| proxy.count_sent(|piece| contains(piece, text));
    let counts = || {
        [sent(session.as_bytes()), sent(b"The next rows of an export"), sent(b"statement_timeout")]
    };
    for path in ["/users/export-full", "/users/export?email=@"] {
        let export = |_| {
            let (before, batches, after) = (counts(), batches(&api, path, &root), counts());
            (batches, [0, 1, 2].map(|n| after[n] - before[n]))
        };
        // A statement whose request has waited for long has less time, as may happen on a slow machine.
        let has_one_limit =
            |(batches, [_, _, limits]): &(Vec<_>, [usize; 3])| *limits < batches.len() / 2;
        let found = (0..10).map(export).find(has_one_limit);
        let (batches, [looks, queries, _]) = found.expect("look-ups and batches have one limit");
        let count = batches.len();
        let rows = csv_rows(HEADER, &batches.concat()).len();
        assert_eq!(rows, 20_001, "{path}");
        let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
        assert!((10..20).contains(&count), "{path}: {sizes:?}");
        let full = &sizes[1..count - 1];
        assert!(full.iter().all(|size| (250_000..=MAX_BATCH).contains(size)), "{path}: {sizes:?}");
        // Beside one for each batch: that of the request, and one at the end.
        assert_eq!(looks, count + 2, "{path}");
        // A prepared statement is sent once, and one that is planned for its parameters each time.
        let is_prepared = !path.contains("email");
        assert!(if is_prepared { queries <= 1 } else { queries == count }, "{path}: {queries}");
    }
}

#[test]
fn every_user_appears_once_though_many_have_the_same_time_and_others_are_added() {
    let api = Server::start(&[]);
    insert_users(&api, 9000, 10);
    api.database.run("UPDATE users SET created_at = '2026-01-01' WHERE username LIKE 'u1%'");
    let answer = thread::scope(|scope| {
        let export = scope.spawn(|| api.export_full(Anonymous));
        for i in 0..50 {
            let email = format!("new{i}@example.com");
            api.database.run(&format!(
                "INSERT INTO users (id, email, email_key, password_hash)
                 VALUES (gen_random_uuid(), '{email}', '{email}', '-')"
            ));
        }
        export.join().expect("no panic").expect(200)
    });
    let rows = csv_rows(HEADER, &answer.bytes);
    // Only those that were there before have a username.
    let mut old: Vec<_> = rows.iter().filter(|row| !row[7].is_empty()).map(|row| &row[0]).collect();
    assert_eq!(old.len(), 9000);
    old.sort();
    old.dedup();
    assert_eq!(old.len(), 9000);
    assert!(rows.is_sorted_by_key(|row| (row[3].clone(), row[0].clone())));
}

#[test]
fn an_export_of_no_user_and_one_of_whole_batches_are_complete() {
    let api = Server::start(&[]);
    insert_users(&api, 5000, 1);
    let batches = batches(&api, "/users/export-full", Anonymous);
    let [first, second] = [1, 2].map(|n| csv_rows(HEADER, &batches[..n].concat()).len() as u32);
    let around = |accounts: u32| accounts - 1..=accounts + 1;
    for accounts in (0..2).chain(around(first)).chain(around(second)) {
        api.database.run("DELETE FROM users");
        insert_users(&api, accounts, 1);
        let answer = api.export_full(Anonymous).expect(200);
        assert_eq!(csv_rows(HEADER, &answer.bytes).len(), accounts as usize);
    }
}

/// No sender is looked up within a batch.
#[test]
fn no_batch_is_longer_than_256_kib_however_long_names_and_events_are() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let name = "\u{1f600}".repeat(255);
    let email = |n: &str| format!("u{n}@{}.example", ["x"; 3].map(|x| x.repeat(60)).join("."));
    let body = json!({"email": email(""), "name": name, "password": PASSWORD, "role": "user"});
    let user = api.create_user(&root, body).expect(201);
    // An event with as many details as there are.
    let change = json!({
        "name": "Ann", "email": "ann@example.com", "username": "ann", "role": "admin", "is_active": false,
        "password": PASSWORD, "permissions": ["x"], "storage_quota": 1, "file_quota": 1,
    });
    api.update_user(&root, &user.id(), change).expect(200);
    api.database.run(&format!(
        "INSERT INTO audit_events (action, actor_id, subject_type, subject_id, address, request_id, details)
         SELECT action, actor_id, subject_type, subject_id, '2001:db8:1111:2222:3333:4444:5555:6666', request_id,
                details
         FROM audit_events, generate_series(1, 2000) WHERE action = 'user.update';
         INSERT INTO users (id, email, email_key, name, password_hash)
         SELECT gen_random_uuid(), '{0}' || i, '{0}' || i, '{name}', '-' FROM generate_series(1, 2000) i",
        email("")
    ));
    for path in ["/users/export-full", "/users/export?email=@", "/admin/audit/export"] {
        if path.contains("audit") && !has_extras() {
            continue;
        }
        let batches = batches(&api, path, &root);
        let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
        assert!(sizes.iter().sum::<usize>() > 800_000, "{path}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size <= MAX_BATCH), "{path}: {sizes:?}");
        // Those before the last one are no shorter than they must be.
        let full = &sizes[..sizes.len() - 2];
        assert!(full.iter().all(|size| *size > 160 << 10), "{path}: {sizes:?}");
        if !path.contains("audit") {
            assert_eq!(csv_rows(HEADER, &batches.concat()).len(), 2_002, "{path}");
        }
    }
}
