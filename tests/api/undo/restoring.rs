//! Deleted files: what is left of them, how they come back, and how they make room for each other.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

impl Server {
    fn deleted(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/uploads?deleted=true&{query}"), sender)
    }

    fn restore(&self, sender: impl Credentials, id: &str) -> Answer {
        self.request("POST", &format!("/uploads/{id}/restore")).by(sender).send()
    }

    fn restore_since(&self, sender: impl Credentials, time: &str) -> Answer {
        self.post("/uploads/restore", sender, json!({"deleted_since": time}))
    }

    /// The names of a user's files that can be restored, in the order of their names.
    fn deleted_names(&self, sender: impl Credentials) -> Vec<String> {
        self.deleted(sender, "sort_by=filename&sort_order=asc")
            .expect(200)
            .names("items", "filename")
    }

    /// Uploads a file that is older than a day, unless `is_young`, and deletes it.
    fn delete_new(&self, sender: &Tokens, name: &str, size: usize, is_young: bool) -> String {
        let id = self.new_file(sender, name, &"x".repeat(size));
        if !is_young {
            self.database.run(&format!(
                "UPDATE files SET upload_date = now() - interval '25 hours' WHERE id = '{id}'"
            ));
        }
        self.delete_file(sender, &id).expect(204);
        id
    }
}

/// Before all that a test does.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";

#[test]
fn a_deleted_file_is_nowhere_until_it_is_restored_as_it_was() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let form = file_form("a.txt", "text/plain", b"content").field("description", "Mine");
    let id = api.upload_form(&ann, form).expect(201).id();
    api.update_file(&ann, &id, json!({"is_public": true, "filename": "b.txt"})).expect(200);
    let (before, link) = (api.show_file(&ann, &id).expect(200).json(), api.new_link(&ann, &id));
    api.restore(&ann, &id).expect(200).has(before.clone());
    api.delete_file(&ann, &id).expect(204);
    for sender in [&ann, &bob] {
        api.show_file(sender, &id).refused(404, "File not found");
        api.download(sender, &id).refused(404, "File not found");
    }
    api.open_link(&link).refused(404, "Link not found");
    api.update_file(&ann, &id, json!({"filename": "c.txt"})).refused(404, "File not found");
    api.delete_file(&ann, &id).refused(404, "File not found");
    api.list_files(&ann, "").expect(200).has(json!({"total": 0}));
    assert_eq!(api.file_stats(&ann), (0, 0));
    let listed = api.deleted(&ann, "").expect(200).has(json!({"total": 1, "pages": 1}));
    let item = listed.list("items").remove(0);
    for (name, value) in before.as_object().expect("a file") {
        assert_eq!(&item[name], value, "{name}");
    }
    let time = |name: &str| item[name].as_str().expect("a time").to_owned();
    let (from, until) = (time("deleted_at"), time("restorable_until"));
    let days = format!("SELECT timestamptz '{until}' - timestamptz '{from}' = interval '7 days'");
    assert!(api.database.value::<bool>(&days));
    assert_eq!(api.deleted(&bob, "").expect(200).json()["total"], 0);
    api.restore(&bob, &id).refused(404, "File not found");
    api.restore(&ann, &uuid(7)).refused(404, "File not found");
    api.restore(&ann, "x").invalid(&[("path.file_id", "uuid_parsing")]);
    for _ in 0..2 {
        assert_eq!(api.restore(&ann, &id).expect(200).json(), before);
    }
    assert_eq!(api.show_file(&ann, &id).expect(200).json(), before);
    assert_eq!(api.download(&ann, &id).text(), "content");
    api.restore(&bob, &id).refused(404, "File not found");
    api.open_link(&link).refused(404, "Link not found");
    assert_eq!((api.file_stats(&ann), api.deleted_names(&ann).len()), ((1, 7), 0));
    assert_eq!(api.database.count("audit_events WHERE action = 'file.restore'"), 1);
}

#[test]
fn the_list_of_deleted_files_has_the_filters_orders_and_pages_of_the_other() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (name, size) in [("b.txt", 3), ("A.txt", 2), ("c.txt", 1)] {
        api.delete_new(&ann, name, size, true);
    }
    api.new_file(&ann, "there.txt", "x");
    for (query, expected) in [
        ("", &["c.txt", "A.txt", "b.txt"][..]),
        ("sort_order=asc", &["b.txt", "A.txt", "c.txt"]),
        ("sort_by=deleted_at&sort_order=asc", &["b.txt", "A.txt", "c.txt"]),
        ("sort_by=upload_date", &["c.txt", "A.txt", "b.txt"]),
        ("sort_by=uploaded_at&sort_order=asc", &["b.txt", "A.txt", "c.txt"]),
        ("sort_by=filename&sort_order=asc", &["A.txt", "b.txt", "c.txt"]),
        ("sort_by=filename", &["c.txt", "b.txt", "A.txt"]),
        ("sort_by=file_size", &["b.txt", "A.txt", "c.txt"]),
        ("sort_by=file_size&sort_order=asc", &["c.txt", "A.txt", "b.txt"]),
        ("search=a.t", &["A.txt"]),
        ("search=there", &[]),
        ("content_type=text/plain&size=2&page=2", &["b.txt"]),
        ("content_type=image/png", &[]),
        ("limit=1&offset=1", &["A.txt"]),
        ("page=9", &[]),
    ] {
        let answer = api.deleted(&ann, query).case(query).expect(200);
        assert_eq!(answer.names("items", "filename"), expected, "{query}");
    }
    assert_eq!(api.deleted(&ann, "page=9").expect(200).json()["total"], 3);
    assert_eq!(api.list_files(&ann, "deleted=false").expect(200).json()["total"], 1);
    api.list_files(&ann, "sort_by=deleted_at").invalid(&[("query.sort_by", "enum")]);
    api.list_files(&ann, "deleted=maybe").invalid(&[("query.deleted", "bool_type")]);
    api.deleted(&ann, "limit=0").refused(400, "Limit must be between 1 and 100");
}

#[test]
fn what_is_deleted_for_good_is_gone_within_a_minute() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let token = api.new_token(&ann, false);
    let (there, deleted) =
        (api.new_file(&ann, "a.txt", "a"), api.delete_new(&ann, "b.txt", 1, true));
    for id in [&there, &deleted] {
        api.delete_for_good(token.as_str(), id).refused(403, "Not enough permissions");
        api.delete_for_good(&bob, id).expect(if *id == there { 403 } else { 404 });
        api.delete(&format!("/uploads/{id}?permanently=maybe"), &ann)
            .invalid(&[("query.permanently", "bool_type")]);
    }
    assert_eq!(api.data.contents().len(), 2);
    let path = format!("/uploads/{deleted}?permanently=true");
    let condition = api.request("DELETE", &path).by(&ann).header("If-Match", "\"77\"");
    condition.send().refused(412, "Precondition failed");
    for id in [&there, &deleted] {
        api.delete_for_good(&ann, id).expect(204);
        api.delete_for_good(&ann, id).refused(404, "File not found");
        api.restore(&ann, id).refused(404, "File not found");
    }
    assert_eq!(api.deleted(&ann, "").expect(200).json()["total"], 0);
    wait_until(|| api.data.contents().is_empty());
    assert_eq!(api.database.count("audit_events WHERE action = 'file.purge'"), 2);
    // A script may delete what the owner can bring back.
    let kept = api.new_file(&ann, "c.txt", "c");
    api.delete_file(token.as_str(), &kept).expect(204);
    api.restore(token.as_str(), &kept).expect(200);
}

#[test]
fn what_comes_back_fits_into_the_quotas() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "20"), ("CLOAKROOM_USER_FILE_QUOTA", "4")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let ids: Vec<_> = [4, 5, 1].map(|size| api.delete_new(&ann, "a.txt", size, true)).into();
    let since = api.deleted(&ann, "").expect(200).list("items");
    let since = since[1]["deleted_at"].as_str().expect("a time").to_owned();
    let other = api.new_file(&ann, "b.txt", &"x".repeat(17));
    api.restore(&ann, &ids[0]).refused(507, "Storage quota exceeded");
    // The latest first, and each that fits.
    assert_eq!(
        api.restore_since(&ann, &since).expect(200).json(),
        json!({"restored": 1, "left": 1})
    );
    assert_eq!(
        api.restore_since(&ann, LONG_AGO).expect(200).json(),
        json!({"restored": 0, "left": 2})
    );
    api.delete_for_good(&ann, &other).expect(204);
    assert_eq!(
        api.restore_since(&ann, LONG_AGO).expect(200).json(),
        json!({"restored": 2, "left": 0})
    );
    assert_eq!(api.file_stats(&ann), (3, 10));
    for size in [0, 0] {
        api.delete_new(&ann, "empty.txt", size, true);
    }
    assert_eq!(
        api.restore_since(&ann, LONG_AGO).expect(200).json(),
        json!({"restored": 1, "left": 1})
    );
    for body in [json!({}), json!({"deleted_since": null})] {
        api.post("/uploads/restore", &ann, body).invalid(&[("body.deleted_since", "missing")]);
    }
    let late = json!({"deleted_since": "then"});
    api.post("/uploads/restore", &ann, late).invalid(&[("body.deleted_since", "datetime_parsing")]);
    let counts = api.database.value::<String>(
        "SELECT string_agg(details ->> 'count', ',' ORDER BY at) FROM audit_events WHERE action = 'file.restore'",
    );
    assert_eq!(counts, "1,2,1");
}

#[test]
fn what_comes_back_fits_into_the_quota_of_the_service() {
    let settings = [("CLOAKROOM_STORAGE_QUOTA", "1000"), ("CLOAKROOM_DELETED_QUOTA", "1000")];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    let of_ann = api.delete_new(&ann, "a.txt", 400, true);
    api.new_file(&bob, "b.txt", &"x".repeat(700));
    api.restore(&ann, &of_ann).refused(507, "Storage quota exceeded");
    api.delete_new(&ann, "d.txt", 100, true);
    assert_eq!(
        api.restore_since(&ann, LONG_AGO).expect(200).json(),
        json!({"restored": 1, "left": 1})
    );
    let used = "SELECT sum(used)::bigint FROM storage_shards";
    assert_eq!(api.database.value::<i64>(used), 800);
}

#[test]
fn deleted_files_make_room_for_each_other_junk_first() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "100"), ("CLOAKROOM_USER_FILE_QUOTA", "6")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    api.delete_new(&ann, "old1", 40, false);
    api.delete_new(&ann, "old2", 30, false);
    for n in 0..5 {
        api.delete_new(&ann, &format!("junk{n}"), 20, true);
        assert_eq!(api.deleted_names(&ann), [&format!("junk{n}"), "old1", "old2"], "{n}");
    }
    // Junk that has no room even without other junk goes itself.
    api.delete_new(&ann, "large", 31, true);
    assert_eq!(api.deleted_names(&ann), ["old1", "old2"]);
    for n in 0..6 {
        api.delete_new(&ann, &format!("small{n}"), 1, true);
    }
    assert_eq!(api.deleted_names(&ann), ["old1", "old2", "small2", "small3", "small4", "small5"]);
    // What was there longer pushes junk out, and then what was deleted first.
    api.delete_new(&ann, "old3", 50, false);
    assert_eq!(api.deleted_names(&ann), ["old2", "old3"]);
    wait_until(|| api.data.contents().len() == 2);
    let kept = "SELECT (deleted_files, deleted_bytes)::text FROM users";
    assert_eq!(api.database.value::<String>(kept), "(2,80)");
    // Under a smaller quota, one that is larger than all of it goes at once, and others until they fit.
    let (database, data) = (api.database.clone(), api.data.clone());
    let large = api.new_file(&ann, "larger", &"x".repeat(60));
    drop(api);
    let api = Server::start_with(&database, &data, &[("CLOAKROOM_USER_STORAGE_QUOTA", "50")]);
    api.delete_file(&ann, &large).expect(204);
    assert_eq!(api.deleted_names(&ann), ["old3"]);
}

#[test]
fn many_users_who_have_about_as_much_make_room_in_few_turns() {
    let (api, [root]) = Server::with_users(&[("CLOAKROOM_DELETED_QUOTA", "1000000")], ["root"]);
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash)
             SELECT gen_random_uuid(), 'u' || n, 'u' || n || '@example.com', 'u' || n || '@example.com', '-'
             FROM generate_series(1, 100) n;
         INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, file_hash,
                                    upload_date, updated_at, is_public, version, was_young)
             SELECT gen_random_uuid(), id, 'f', 'f', 'text/plain', 1000, 'h', now(), now(), false, 1, false
             FROM users, generate_series(1, 100) n WHERE password_hash = '-'",
    );
    let deleted =
        || api.get("/admin/stats", &root).expect(200).json()["storage"]["deleted"].as_i64();
    wait_until(|| deleted() <= Some(1_000_000));
    assert!(deleted() >= Some(900_000), "{:?}", deleted());
}

#[test]
fn all_deleted_files_together_have_a_quota_and_the_oldest_of_who_has_most_go_first() {
    let settings = [("CLOAKROOM_DELETED_QUOTA", "100"), ("CLOAKROOM_LOG_LEVEL", "warn")];
    let (api, [root, bob]) = Server::with_users(&settings, ["root", "bob"]);
    api.database.run("UPDATE users SET created_at = now() - interval '7 days'");
    for n in 0..4 {
        api.delete_new(&bob, &format!("b{n}"), 10, false);
    }
    for n in 0..10 {
        api.delete_new(&root, &format!("a{n}"), 20, n > 5);
    }
    let deleted =
        || api.get("/admin/stats", &root).expect(200).json()["storage"]["deleted"].clone();
    wait_until(|| deleted() == 100);
    assert_eq!(api.deleted_names(&root), ["a7", "a8", "a9"]);
    assert_eq!(api.deleted_names(&bob).len(), 4);
    assert_eq!(api.metric("cloakroom_deleted_bytes"), Some(100.0));
    wait_until(|| api.data.contents().len() == 7);
}

#[test]
fn deleted_files_are_given_up_after_some_days_and_with_their_account() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let (old, young) = (api.delete_new(&ann, "a", 1, true), api.delete_new(&ann, "b", 1, true));
    api.delete_new(&bob, "c", 1, true);
    let age = |id: &str, days: u32| {
        let time = format!("now() - interval '{days} days 1 minute'");
        let sql = "UPDATE deleted_files SET deleted_at";
        api.database.run(&format!("{sql} = {time} WHERE id = '{id}'"));
    };
    age(&young, 6);
    age(&old, 7);
    wait_until(|| api.data.contents().len() == 2);
    assert_eq!(api.deleted_names(&ann), ["b"]);
    api.delete_me(&bob, PASSWORD).expect(204);
    wait_until(|| api.data.contents().len() == 1 && api.database.count("pending_removals") == 0);
    let bobs = format!("file_deletions WHERE user_id = '{}'", bob.id());
    assert_eq!((api.database.count("deleted_files"), api.database.count(&bobs)), (1, 0));
}

#[test]
fn without_days_nothing_can_be_restored() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_TRASH_DAYS", "0")], ["ann"]);
    let id = api.delete_new(&ann, "a", 1, true);
    api.restore(&ann, &id).refused(404, "File not found");
    wait_until(|| api.data.contents().is_empty());
}

#[test]
fn deletions_and_restorations_at_once_lose_nothing_and_keep_the_totals() {
    let settings = [("CLOAKROOM_USER_FILE_QUOTA", "20")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let ids: Vec<_> = (0..20).map(|n| api.new_file(&ann, &format!("{n:02}"), "four")).collect();
    let statuses = parallel(8, |i| {
        let mut statuses = Vec::new();
        for id in ids.iter().chain(&ids) {
            statuses.push(match i % 4 {
                0 | 1 => api.delete_file(&ann, id).status,
                2 => api.restore(&ann, id).status,
                _ => api.restore_since(&ann, LONG_AGO).status,
            });
        }
        statuses
    });
    let statuses = tally(statuses.into_iter().flatten());
    assert!(statuses.keys().all(|status| [200, 204, 404].contains(status)), "{statuses:?}");
    api.restore_since(&ann, LONG_AGO).expect(200);
    assert_eq!((api.file_stats(&ann), api.deleted_names(&ann).len()), ((20, 80), 0));
    let kept = "SELECT (deleted_files, deleted_bytes, remembered_deletions)::text FROM users";
    assert_eq!(api.database.value::<String>(kept), "(0,0,0)");
    assert_eq!(api.database.count("file_deletions"), 0);
}

/// Puts records of deleted files in, without contents.
fn insert_deleted_files(database: &Database, owner: &str, count: usize) {
    database.run(&format!(
        "INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, file_hash,
                                    upload_date, updated_at, is_public, version, was_young)
         SELECT gen_random_uuid(), '{owner}', 'f' || n, 'f', 'text/plain', 1, 'h', now(), now(), false, 1, false
         FROM generate_series(1, {count}) n;
         INSERT INTO file_deletions (file_id, user_id)
         SELECT id, user_id FROM deleted_files WHERE user_id = '{owner}';
         UPDATE users SET remembered_deletions = {count} WHERE id = '{owner}'"
    ));
}

#[test]
fn fewer_files_come_back_in_one_request_if_their_descriptions_are_long() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    insert_deleted_files(&api.database, ann.id(), 600);
    // The longest description, 16 KiB, of which 8 MiB hold 512.
    api.database.run("UPDATE deleted_files SET description = repeat('𝄞', 4096)");
    for counts in [json!({"restored": 512, "left": 88}), json!({"restored": 88, "left": 0})] {
        assert_eq!(api.restore_since(&ann, LONG_AGO).expect(200).json(), counts);
    }
    assert_eq!(api.file_stats(&ann), (600, 600));
}

#[test]
fn ten_thousand_files_come_back_in_one_request_all_or_none() {
    let database = Database::create_migrated();
    let data = Arc::new(Directory::create());
    let mut took = Duration::ZERO;
    for attempt in 0..4_u32 {
        let timeout = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "30");
        let api = Server::start_with(&database, &data, &[timeout]);
        let name = format!("user{attempt}");
        let ann = api.sign_up(&name);
        insert_deleted_files(&database, ann.id(), 10_001);
        let begun = Instant::now();
        let restored: Option<Value> = thread::scope(|scope| {
            let request = scope.spawn(|| {
                let request = api.request("POST", "/uploads/restore").by(&ann);
                let sent = request.json(json!({"deleted_since": LONG_AGO})).try_send();
                sent.ok().map(|answer| answer.expect(200).json())
            });
            if attempt > 0 {
                // The first one tells how long it takes; the others are killed on their way.
                thread::sleep(took * attempt / 4);
                api.signal(Signal::KILL);
            }
            request.join().expect("no panic")
        });
        if attempt == 0 {
            took = begun.elapsed();
            assert!(took < Duration::from_secs(20), "{took:?}");
            assert_eq!(restored, Some(json!({"restored": 10_000, "left": 1})));
        }
        let files = || database.count(&format!("files WHERE user_id = '{}'", ann.id()));
        // The database may still be at work for the connections of the process that is gone.
        let connections = || database.connections("application_name = 'cloakroom'");
        wait_until(|| attempt == 0 || connections() == 0);
        assert!([0, 10_000].contains(&files()), "{}", files());
        let deleted = database.count(&format!("deleted_files WHERE user_id = '{}'", ann.id()));
        assert_eq!(files() + deleted, 10_001);
    }
}
