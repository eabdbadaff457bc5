//! The totals of accounts and files that are kept, and the copy of accounts that lists read: they are what the tables
//! say at any moment, and nobody waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::*;

/// The tables that differ from what they are made of, by the query of `cloakroom check`.
pub fn differences(database: &Database) -> Vec<(String, i64)> {
    let query = include_str!("../../../sql/tools/checks/copies.sql");
    let rows = database.client().query(query, &[]).expect("rows");
    rows.iter().map(|row| (row.get("copy"), row.get("faults"))).collect()
}

/// Asserts that the statistics and the lists say what the tables do.
#[track_caller]
fn expect_exact(api: &Server, root: impl Credentials + Copy, change: &str) {
    assert_eq!(differences(&api.database), [], "{change}");
    let live = "users WHERE NOT is_deleted AND NOT is_development_admin";
    let files = "files JOIN users ON users.id = user_id WHERE NOT is_deleted";
    let count = |from: &str| api.database.count(from);
    let (accounts, active) = (count(live), count(&format!("{live} AND is_active")));
    let stats = api.admin_stats(root).case(change).expect(200).json();
    let users = json!({"total": accounts, "active": active, "new_this_month": accounts});
    assert_eq!(stats["users"], users, "{change}");
    let bytes = format!("SELECT coalesce(sum(file_size), 0)::bigint FROM {files}");
    let (files, bytes) = (count(files), api.database.value::<i64>(&bytes));
    let expected = json!({"total": files, "total_size": bytes, "uploads_this_month": files});
    assert_eq!(stats["files"], expected, "{change}");
    for (query, condition) in [
        ("", "true"),
        ("role=admin", "role = 'admin'"),
        ("active=true", "is_active"),
        ("role=user&active=false", "role = 'user' AND NOT is_active"),
    ] {
        let total = count(&format!("{live} AND {condition}"));
        let body = api.list_users(root, query).case(change).expect(200).json();
        assert_eq!(body["total"], total, "{change}: {query}");
    }
}

#[test]
fn totals_are_the_real_counts_after_every_kind_of_change() {
    let (api, [root]) =
        Server::with_users(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")], ["root"]);
    let exact = |change: &str| expect_exact(&api, &root, change);
    exact("an administrator");
    let ann = api.sign_up("ann");
    exact("a registration with a username");
    api.register_with(json!({"email": "bob@example.com", "password": PASSWORD})).expect(201);
    exact("a registration with an address");
    let id = ann.id().to_owned();
    for change in [
        json!({"role": "admin"}),
        json!({"role": "user"}),
        json!({"is_active": false}),
        json!({"is_active": true}),
        json!({"name": "Another", "email": "other@example.com", "username": "other"}),
    ] {
        api.update_user(&root, &id, change.clone()).expect(200);
        exact(&change.to_string());
    }
    let ann = api.sign_in("other");
    let first = api.new_file(&ann, "a.txt", "content");
    api.new_file(&ann, "b.txt", "more content");
    exact("two uploads");
    api.delete_file(&ann, &first).expect(204);
    exact("a deletion of a file");
    api.delete_user(&root, &id).expect(204);
    exact("a deletion of a user with a file");
    wait_until(|| api.database.count("files") == 0);
    exact("the removal of the file");
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash, is_deleted) VALUES
        (gen_random_uuid(), 'x', 'x@example.com', 'x@example.com', '-', false),
        (gen_random_uuid(), NULL, NULL, NULL, NULL, true)",
    );
    exact("SQL");
    api.database.run("DELETE FROM users WHERE username = 'x'");
    exact("the deletion of a row");
    api.request("DELETE", "/users/test-only/delete-all").by(&root).send().expect(200);
    let root = api.sign_up_admin("second");
    expect_exact(&api, &root, "the deletion of all");
}

#[test]
fn sixteen_clients_that_change_accounts_and_files_leave_no_total_wrong_at_any_moment() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    // Rows that say nothing, so that the totals are folded meanwhile.
    let crowd = "INSERT INTO account_totals SELECT '2020-01-01', 'user', true, 0 FROM generate_series(1, 4001);
                 INSERT INTO file_totals SELECT '2020-01-01', 0, 0 FROM generate_series(1, 4001)";
    let fold = include_str!("../../../sql/db/stats/fold.sql");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = api.database.client();
                while !over.load(Ordering::Relaxed) {
                    client.batch_execute(crowd).expect("rows");
                    client.query(fold, &[&500_i64]).expect("a number");
                }
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(differences(&api.database), []);
            }
        });
        let _stop = SetOnDrop(&over);
        parallel(16, |n| {
            let user = api.sign_up(&format!("user{n}"));
            for round in 0..5 {
                let file = api.new_file(&user, "a.txt", "content");
                let is_active = round % 2 == 0;
                api.update_me(&user, json!({"name": format!("Name {round}")})).expect(200);
                api.delete_file(&user, &file).expect(204);
                let role = if is_active { "user" } else { "admin" };
                let sql = format!(
                    "UPDATE users SET role = '{role}', is_active = true WHERE id = '{}'",
                    user.id()
                );
                api.database.run(&sql);
            }
            api.new_file(&user, "b.txt", "content");
            if n % 4 == 0 {
                api.delete_user(&root, user.id()).expect(204);
            }
        });
    });
    wait_until(|| api.database.count("pending_removals") == 0);
    api.database.run("UPDATE users SET role = 'user' WHERE username <> 'root'");
    expect_exact(&api, &root, "all of it");
    assert_eq!((api.database.count("listed_users"), api.database.count("files")), (13, 12));
}

#[test]
fn nobody_waits_for_a_transaction_that_adds_accounts_and_files_and_its_changes_count_when_it_ends()
{
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let id = "11111111-1111-4111-8111-111111111111";
    let open = api.database.begin(&format!(
        "INSERT INTO users (id, username, email, email_key, password_hash)
         VALUES ('{id}', 'late', 'late@example.com', 'late@example.com', '-');
         UPDATE users SET is_active = false WHERE id = '{id}'"
    ));
    // A statement that waited for it would end with its lock timeout.
    api.register("bob").expect(201);
    api.update_user(&root, ann.id(), json!({"is_active": false})).expect(200);
    api.delete_user(&root, ann.id()).expect(204);
    let total = |expected: i64| {
        let stats = api.admin_stats(&root).expect(200).json();
        assert_eq!(stats["users"]["total"], expected);
        api.list_users(&root, "").expect(200).has(json!({"total": expected}));
    };
    total(2);
    open.commit();
    total(3);
    assert_eq!(differences(&api.database), []);
}

#[test]
fn signing_in_and_uploading_change_no_row_that_lists_read() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let rows = || {
        let versions =
            "SELECT string_agg(concat(ctid, xmin, xmax), ' ' ORDER BY user_id) FROM listed_users";
        (api.database.value::<String>(versions), api.database.count("account_totals"))
    };
    let before = rows();
    let tokens = api.sign_in("root");
    api.new_file(&tokens, "a.txt", "content");
    api.change_password(&tokens, PASSWORD, NEW_PASSWORD).expect(200);
    api.update_user(&tokens, root.id(), json!({"permissions": ["x"]})).expect(200);
    assert_eq!(rows(), before);
}
