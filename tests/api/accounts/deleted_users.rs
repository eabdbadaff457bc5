//! What is left of a deleted user: a row without personal data at once, and no files soon after.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn a_deleted_account_is_gone_whoever_deleted_it_and_leaves_a_row_without_personal_data() {
    let (api, [root, bob]) = Server::with_users(&[], ["root", "bob"]);
    let ways = if has_extras() { &["its owner", "an admin"][..] } else { &["an admin"] };
    for (n, who) in ways.iter().enumerate() {
        // The second time the name and the address of before are free again.
        let ann = api.sign_up("ann");
        let everything = json!({"name": "Ann", "permissions": ["read"]});
        api.update_user(&root, ann.id(), everything).expect(200);
        let file = api.new_file(&ann, "a.txt", "text");
        api.update_file(&ann, &file, json!({"is_public": true})).expect(200);
        // A second factor that is on, with a wrong code, and one that is only offered.
        if *who == "its owner" {
            let factor = api.new_second_factor(&ann, PASSWORD);
            api.login_with_code("ann", PASSWORD, &factor.wrong_code()).expect(401);
        } else if has_extras() {
            api.offer_second_factor(&ann, PASSWORD);
        }
        let answer = match *who {
            "its owner" => api.delete_me(&ann, PASSWORD),
            _ => api.delete_user(&root, ann.id()),
        };
        assert!(answer.case(who).expect(204).bytes.is_empty());
        api.me(&ann).refused(401, "User not found or inactive");
        api.login("ann", PASSWORD).refused(401, "Invalid username or password");
        for answer in [
            api.show_user(&root, ann.id()),
            api.update_user(&root, ann.id(), json!({"name": "x"})),
            api.put(&format!("/admin/users/{}", ann.id()), &root, json!({"role": "admin"})),
            api.delete_user(&root, ann.id()),
        ] {
            answer.case(who).refused(404, "User not found");
        }
        api.show_file(&bob, &file).refused(404, "File not found");
        let row = format!("SELECT u::text FROM users u WHERE id = '{}'", ann.id());
        let row = api.database.value::<String>(&row).to_lowercase();
        assert!(row.contains(ann.id()) && !row.contains("ann") && !row.contains("read"), "{row}");
        let erased = "users WHERE is_deleted AND username IS NULL AND email IS NULL AND name IS NULL
                      AND password_hash IS NULL AND permissions = '{}' AND NOT is_development_admin AND wrong_codes = 0
                      AND num_nonnulls(second_factor_sealed, second_factor_pending_until, second_factor_at,
                          second_factor_step, recovery_codes, wrong_code_times, wrong_code_networks) = 0";
        assert_eq!(api.database.count(erased), n as i64 + 1, "{who}");
        // Tombstones do not conflict, and none is found by an empty name.
        assert_eq!(api.list_users(&root, "").expect(200).json()["total"], 2);
        assert_eq!(api.page_users(&root, "").expect(200).json()["total"], 2);
        assert_eq!(api.export_full(&root).expect(200).text().lines().count(), 3);
        wait_until(|| api.database.count("files") == 0 && api.data.contents().is_empty());
    }
}

#[test]
fn the_files_of_a_deleted_user_are_gone_from_every_answer_in_the_same_moment() {
    let (api, [root, ann, bob]) = Server::with_users(&[], ["root", "ann", "bob"]);
    let kept = api.new_file(&bob, "b.txt", "bob's");
    let files = ["one", "two"].map(|text| api.new_file(&ann, "a.txt", text));
    for id in &files {
        api.update_file(&ann, id, json!({"is_public": true})).expect(200);
        api.download(&bob, id).expect(200);
    }
    // The background cannot remove the records while the rows are locked.
    let lock = api.database.begin("SELECT FROM files FOR UPDATE");
    api.delete_user(&root, ann.id()).expect(204);
    for id in &files {
        for user in [&bob, &root] {
            for answer in [
                api.show_file(user, id),
                api.download(user, id),
                api.update_file(user, id, json!({"filename": "x"})),
                api.delete_file(user, id),
            ] {
                answer.refused(404, "File not found");
            }
        }
    }
    let files = json!({"total": 1, "total_size": 5, "uploads_this_month": 1});
    let stats = api.admin_stats(&root).expect(200).has(json!({"files": files})).json();
    assert_eq!(stats["storage"]["used"], 5);
    assert_eq!(api.database.count("files"), 3, "the records are still there");
    lock.roll_back();
    wait_until(|| api.database.count("files") == 1 && api.database.count("pending_removals") == 0);
    wait_until(|| api.data.contents() == [api.data.content(&kept)]);
    // A content counts until it is known to be gone.
    let used = "SELECT sum(used)::bigint FROM storage_shards";
    wait_until(|| api.database.value::<i64>(used) == 5);
}

#[test]
#[cfg(feature = "tools")]
fn contents_that_wait_for_their_removal_are_neither_missing_nor_without_a_record() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let removed = api.new_file(&ann, "a.txt", "x");
    make_older(&api.data.content(&removed), 2);
    let backup = api
        .database
        .begin("SELECT pg_advisory_xact_lock(hashtext('cloakroom: removal of contents'))");
    api.delete_user(&root, ann.id()).expect(204);
    wait_until(|| api.database.count("files") == 0);
    assert_eq!(api.collect_garbage(), swept(0, 0));
    api.run_beside(&["check"]).exits(0);
    assert!(api.data.content(&removed).exists());
    backup.roll_back();
    wait_until(|| !api.data.content(&removed).exists());
    assert_eq!(api.collect_garbage(), swept(0, 0));
}

#[test]
fn several_processes_remove_the_files_of_deleted_users_without_faults() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    // They wait for each other's locks, for half of this at most.
    let timeout = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60");
    let servers = [0, 1].map(|_| Server::start_with(&database, &data, &[timeout]));
    let root = servers[0].sign_up_admin("root");
    let users = ["ann", "bob", "cid", "dan"].map(|name| {
        let user = servers[0].sign_up(name);
        database.insert_files(user.id(), &[1; 2500]);
        servers[1].new_file(&user, "a.txt", "x");
        user
    });
    // Each deletion wakes the server that made it.
    parallel(4, |i| servers[i % 2].delete_user(&root, users[i].id()).expect(204));
    wait_until(|| database.count("files") == 0 && database.count("pending_removals") == 0);
    wait_until(|| data.contents().is_empty());
    wait_until(|| database.count("deleted_contents") == 0);
    assert_eq!(database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), 0);
    assert_eq!(database.value::<i64>("SELECT sum(total_uploads)::bigint FROM users"), 0);
    for api in &servers {
        assert!(!api.log().contains("WARN"), "{}", api.log());
    }
}

#[test]
fn deleting_all_users_removes_their_files_too_but_not_those_of_the_development_admin() {
    let settings =
        [("CLOAKROOM_AUTH_ENABLED", "false"), ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")];
    let open = Server::start(&settings);
    let strict = open.beside(&[]);
    let kept = open.new_file(Anonymous, "a.txt", "the development admin's");
    let (root, ann) = (strict.sign_up_admin("root"), strict.sign_up("ann"));
    let gone = [strict.new_file(&ann, "a.txt", "ann's"), strict.new_file(&root, "a.txt", "root's")];
    let deleted = open.delete("/users/test-only/delete-all", Anonymous).expect(200);
    assert_eq!(deleted.json(), json!({"deleted": 2}));
    strict.profile(&ann).refused(401, "User not found or inactive");
    for id in &gone {
        open.show_file(Anonymous, id).refused(404, "File not found");
    }
    open.download(Anonymous, &kept).expect(200);
    wait_until(|| open.data.contents() == [open.data.content(&kept)]);
    wait_until(|| open.database.count("files") == 1);
    // The rule of the last admin holds again for what comes after.
    let root = strict.sign_up_admin("root");
    strict.delete_user(&root, root.id()).refused(409, "At least one active admin is required");
}

#[test]
fn deleting_a_user_with_a_million_files_answers_at_once_and_stalls_no_upload() {
    let (api, [root, ann, bob, nobody]) = Server::with_users(&[], ["root", "ann", "bob", "nobody"]);
    // Triggers and foreign keys are left out to save time. ANALYZE is what autovacuum does by itself after a while.
    api.database.run(&format!(
        "SET session_replication_role = replica;
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), '{}', 'f', 'f', 'text/plain', 1, 'f', 'h' FROM generate_series(1, 1000000);
         UPDATE users SET total_uploads = 1000000, total_storage_used = 1000000 WHERE username = 'ann';
         UPDATE storage_shards SET used = 1000000 WHERE shard = 0;
         ANALYZE files, users",
        ann.id()
    ));
    let upload = || {
        let begin = Instant::now();
        api.upload(&bob, "b.txt", "x").expect(201);
        begin.elapsed()
    };
    let delete = |user: &Tokens| {
        let begin = Instant::now();
        api.delete_user(&root, user.id()).expect(204);
        begin.elapsed()
    };
    let before: Vec<_> = (0..50).map(|_| upload()).collect();
    let without_files = delete(&nobody);
    let with_files = delete(&ann);
    let mut during = Vec::new();
    // Until the background has had twenty turns, or a while has passed.
    let begin = Instant::now();
    let uploads = format!("SELECT total_uploads FROM users WHERE id = '{}'", ann.id());
    let left = || api.database.value::<i64>(&uploads);
    while left() > 980_000 && begin.elapsed() < Duration::from_secs(180) {
        during.push(upload());
    }
    let longest = |times: &[Duration]| *times.iter().max().expect("some");
    let bound = |usual: Duration| 20 * usual + Duration::from_secs(2);
    assert!(with_files < bound(without_files), "{with_files:?} {without_files:?}");
    assert!(longest(&during) < bound(longest(&before)), "{during:?} {before:?}");
    assert!(left() <= 980_000, "the background has removed twenty thousand in three minutes");
}
