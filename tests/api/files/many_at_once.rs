//! Many files in one request, and the list of those that users have published.

use std::time::Instant;

use crate::accounts::totals::differences;
use crate::harness::*;

impl Server {
    fn delete_files(&self, sender: impl Credentials, files: &[&str]) -> Answer {
        self.post("/uploads/delete", sender, json!({ "ids": files }))
    }

    fn publish(&self, sender: impl Credentials, files: &[&str], is_public: bool) -> Answer {
        self.post("/uploads/update", sender, json!({"ids": files, "is_public": is_public}))
    }

    fn published(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/uploads/public?{query}"), sender)
    }

    /// The cursor after all changes so far.
    fn now(&self, user: &Tokens) -> String {
        let answer = self.get("/changes?after=now", user).expect(200).json();
        answer["next"].as_str().expect("a cursor").to_owned()
    }

    /// The files that have changed after a cursor, each with what became of it.
    fn changed(&self, user: &Tokens, cursor: &str) -> Vec<(String, String)> {
        let path = format!("/changes?limit=1000&after={cursor}");
        let answer = self.get(&path, user).expect(200);
        let text = |change: &Value, name: &str| change[name].as_str().expect("a text").to_owned();
        let told = answer.list("changes").into_iter();
        told.map(|change| (text(&change, "file_id"), text(&change, "change"))).collect()
    }
}

const OF_FILES: &str = "audit_events WHERE subject_type = 'file' AND action =";

#[test]
fn files_are_deleted_in_the_order_of_the_request_and_each_that_is_not_ones_own_is_missing() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let [a, b, c, d, gone, kept] =
        ["a", "b", "c", "d", "gone", "kept"].map(|name| api.new_file(&ann, name, "abc"));
    let (of_bob, unknown) = (api.new_file(&bob, "b.txt", "b"), uuid(9));
    api.publish(&bob, &[&of_bob], true).expect(200);
    api.delete_file(&ann, &gone).expect(204);
    let before = api.now(&ann);
    let wanted = [&*d, &of_bob, &b, &unknown, &gone, &c, &a];
    let answer = api.delete_files(&ann, &wanted).expect(200);
    answer.has(json!({"deleted": 4, "missing": [of_bob, unknown, gone]}));
    let deleted = |id: &String| (id.clone(), "deleted".to_owned());
    assert_eq!(api.changed(&ann, &before), [&d, &b, &c, &a].map(deleted));
    let left = api.list_files(&ann, "").expect(200).json();
    assert_eq!(names_of(&left["items"], "id"), [kept]);
    api.show_file(&bob, &of_bob).expect(200);
    // Again all are missing, and nothing happens.
    let answer = api.delete_files(&ann, &wanted).expect(200);
    answer.has(json!({"deleted": 0, "missing": wanted}));
    assert_eq!(api.changed(&ann, &before).len(), 4);
    assert_eq!(api.database.count(&format!("{OF_FILES} 'file.delete'")), 5);
    // Each is restorable as after its own deletion.
    for file in [a, b, c, d] {
        api.post(&format!("/uploads/{file}/restore"), &ann, json!({})).expect(200);
    }
    assert_eq!(api.file_stats(&ann), (5, 15));
    assert_eq!(differences(&api.database), []);
}

#[test]
fn files_are_published_in_the_order_of_the_request_and_what_is_so_already_keeps_its_tag() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let [a, b, c] = ["a", "b", "c"].map(|name| api.new_file(&ann, name, name));
    let of_bob = api.new_file(&bob, "b.txt", "b");
    api.update_file(&ann, &b, json!({"is_public": true})).expect(200);
    let tag = |file: &str| api.show_file(&ann, file).expect(200).header("ETag").to_owned();
    let (before, tags) = (api.now(&ann), [&a, &b, &c].map(|file| tag(file)));
    let answer = api.publish(&ann, &[&c, &of_bob, &b, &a], true).expect(200);
    answer.has(json!({"updated": 3, "missing": [of_bob]}));
    let present = |id: &String| (id.clone(), "present".to_owned());
    assert_eq!(api.changed(&ann, &before), [&c, &a].map(present));
    let now = [&a, &b, &c].map(|file| tag(file));
    assert_eq!((now[0] == tags[0], now[1] == tags[1], now[2] == tags[2]), (false, true, false));
    api.download(&bob, &a).expect(200);
    api.show_file(&bob, &of_bob).expect(200).has(json!({"is_public": false}));
    let details = "SELECT string_agg(DISTINCT details::text, ' ') FROM audit_events WHERE action = 'file.update'";
    assert_eq!(api.database.value::<String>(details), "{\"fields\": [\"is_public\"]}");
    assert_eq!(api.database.count(&format!("{OF_FILES} 'file.update'")), 3);
    api.publish(&ann, &[&a], false).expect(200).has(json!({"updated": 1, "missing": []}));
    api.download(&bob, &a).expect(403);
}

#[test]
fn a_request_names_from_one_to_a_thousand_different_files() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a", "a");
    let many: Vec<_> = (0..1001).map(uuid).collect();
    for (ids, kind) in [
        (json!(null), "missing"),
        (json!([]), "value_error"),
        (json!([file, file.to_uppercase()]), "value_error"),
        (json!(many), "value_error"),
        (json!([file, "no id"]), "uuid_parsing"),
        (json!([file, 7]), "value_error"),
        (json!(file), "value_error"),
    ] {
        for path in ["/uploads/delete", "/uploads/update"] {
            let body = json!({"ids": ids, "is_public": true});
            api.post(path, &ann, body).case(&ids).invalid(&[("body.ids", kind)]);
        }
    }
    let neither = api.post("/uploads/update", &ann, json!({ "ids": [file] }));
    neither.invalid(&[("body.is_public", "missing"), ("body.folder", "missing")]);
    let many: Vec<_> = many[..1000].iter().map(String::as_str).collect();
    api.delete_files(&ann, &many).expect(200).has(json!({"deleted": 0, "missing": many}));
    // Preconditions are those of one file, so they mean nothing here.
    let request = api.request("POST", "/uploads/delete").by(&ann).header("If-Match", "\"99\"");
    request.json(json!({ "ids": [file] })).send().expect(200).has(json!({"deleted": 1}));
}

/// What is deleted together makes room as if each was deleted alone, and no statement removes more than a thousand.
#[test]
fn a_thousand_files_that_are_deleted_keep_the_bounds_of_deleted_ones() {
    let settings = [("CLOAKROOM_USER_FILE_QUOTA", "1500"), ("CLOAKROOM_DELETED_QUOTA", "1000000")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let all = || api.database.texts("SELECT id::text FROM files ORDER BY id");
    for deleted in [1000, 1500, 1500] {
        api.database.insert_files(ann.id(), &[1; 1000]);
        let files = all();
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let begin = Instant::now();
        api.delete_files(&ann, &files).expect(200).has(json!({"deleted": 1000, "missing": []}));
        println!("a thousand files in {:?}", begin.elapsed());
        assert_eq!(api.database.count("deleted_files"), deleted);
    }
    assert_eq!(api.file_stats(&ann), (0, 0));
    assert_eq!(api.database.count("file_deletions"), 1500);
    wait_until(|| api.database.count("deleted_contents") == 0);
    assert_eq!(differences(&api.database), []);
    // Most of the events are counted and not written.
    assert!(api.database.count(&format!("{OF_FILES} 'file.delete'")) <= 100);
}

/// An own quota may be the greatest number that there is.
#[test]
fn who_has_no_limit_of_files_deletes_many_and_expires_what_is_old() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    api.update_user(&root, ann.id(), json!({"file_quota": i64::MAX})).expect(200);
    let files = ["a", "b"].map(|name| api.new_file(&ann, name, name));
    api.delete_files(&ann, &[&files[0], &files[1]]).expect(200).has(json!({"deleted": 2}));
    // The second looked at by the list of deleted files is the first that was deleted.
    let listed = api.list_files(&ann, "deleted=true").expect(200).json();
    assert_eq!(names_of(&listed["items"], "filename"), ["b", "a"]);
    api.database.run(
        "UPDATE users SET deleted_bytes = 5000000000 WHERE username = 'ann';
         UPDATE deleted_files SET deleted_at = now() - interval '30 days'",
    );
    wait_until(|| api.database.count("deleted_files") == 0);
}

#[test]
fn without_a_time_for_restoring_many_files_go_for_good() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_TRASH_DAYS", "0")], ["ann"]);
    let files = ["a", "b"].map(|name| api.new_file(&ann, name, name));
    api.delete_files(&ann, &[&files[0], &files[1]]).expect(200).has(json!({"deleted": 2}));
    assert_eq!(api.database.count("deleted_files"), 0);
    wait_until(|| api.data.contents().is_empty());
    assert_eq!(differences(&api.database), []);
}

const PUBLIC: (&str, &str) = ("CLOAKROOM_PUBLIC_LIST", "on");

fn listed(answer: &Answer) -> Vec<String> {
    names_of(&answer.json()["files"], "filename")
}

#[test]
fn what_active_accounts_have_published_is_listed_for_all_the_newest_first() {
    let settings = [PUBLIC, ("CLOAKROOM_REGISTRATION", "off")];
    let (open, [ann, bob, eve]) = Server::with_users(&[], ["ann", "bob", "eve"]);
    let api = open.beside(&settings);
    let own = api.new_file(&ann, "of ann.txt", "a");
    let [x, y] = ["Report.txt", "y"].map(|name| api.new_file(&bob, name, name));
    let of_eve = api.new_file(&eve, "of eve", "e");
    api.new_file(&bob, "private", "p");
    api.publish(&ann, &[&own], true).expect(200);
    api.publish(&bob, &[&y, &x], true).expect(200);
    api.publish(&eve, &[&of_eve], true).expect(200);
    api.update_file(&bob, &x, json!({"description": "The year"})).expect(200);
    api.update_me(&bob, json!({"name": "Bob B."})).expect(200);
    let answer = api.published(&ann, "").expect(200).has(json!({"next": null}));
    assert_eq!(listed(&answer), ["of eve", "y", "Report.txt", "of ann.txt"]);
    let files = answer.json()["files"].clone();
    assert_eq!(files[1]["owner"], json!({"id": bob.id(), "name": "Bob B."}));
    assert_eq!(files[3]["owner"], json!({"id": ann.id(), "name": "ann"}));
    let mut shown = files[1].clone();
    shown.as_object_mut().expect("an object").remove("owner");
    assert_eq!(shown, api.show_file(&ann, &y).expect(200).json());
    assert!(!answer.text().contains('@'), "{}", answer.text());
    for (query, expected) in [
        ("search=REPORT", &["Report.txt"][..]),
        ("search=year", &["Report.txt"]),
        ("search=nothing", &[]),
        ("search=", &["of eve", "y", "Report.txt", "of ann.txt"]),
    ] {
        assert_eq!(listed(&api.published(&ann, query).expect(200)), expected, "{query}");
    }
    // By pages, while the list grows at its beginning.
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.published(&ann, &format!("limit=1&after={cursor}")).expect(200);
        pages.extend(listed(&page));
        let new = api.new_file(&eve, "new", "n");
        api.publish(&eve, &[&new], true).expect(200);
        match page.json()["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, ["of eve", "y", "Report.txt", "of ann.txt"]);
    for query in ["limit=0", "limit=101", "limit=x", "after=x", "search=%00"] {
        api.published(&ann, query).expect(422);
    }
    // What is not public any more, deleted, or of an account that is not active.
    api.publish(&bob, &[&y], false).expect(200);
    api.delete_file(&ann, &own).expect(204);
    api.database.run("UPDATE users SET is_active = false WHERE username = 'eve'");
    assert_eq!(listed(&api.published(&ann, "").expect(200)), ["Report.txt"]);
    api.delete_me(&bob, PASSWORD).expect(204);
    assert_eq!(listed(&api.published(&ann, "").expect(200)).len(), 0);
    open.published(&ann, "limit=0").refused(404, "This feature is not available");
    open.published(Anonymous, "").refused(404, "This feature is not available");
}

/// Strangers who register could fill the list. Whoever was made by an administrator or comes by a provider is none.
#[test]
fn where_anyone_may_register_new_accounts_publish_for_themselves_alone() {
    let (api, [ann, old, new]) = Server::with_users(&[PUBLIC], ["ann", "old", "new"]);
    api.database.run(
        "UPDATE users SET created_at = now() - interval '7 days 1 minute' WHERE username = 'old';
         UPDATE users SET is_self_registered = false WHERE username = 'ann'",
    );
    for (user, name) in [(&ann, "of ann"), (&old, "of old"), (&new, "of new")] {
        let file = api.new_file(user, name, "x");
        api.publish(user, &[&file], true).expect(200);
    }
    assert_eq!(listed(&api.published(&ann, "").expect(200)), ["of old", "of ann"]);
    assert_eq!(listed(&api.published(&new, "").expect(200)), ["of new", "of old", "of ann"]);
    // Somebody vouches for who has an identity at a provider.
    let identity = |it: &str| {
        format!(
            "UPDATE users SET identity_issuer = {it}, identity_subject = {it} WHERE username = 'new'"
        )
    };
    api.database.run(&identity("'x'"));
    assert_eq!(listed(&api.published(&ann, "").expect(200)), ["of new", "of old", "of ann"]);
    api.database.run(&identity("NULL"));
    let invited = api.beside(&[PUBLIC, ("CLOAKROOM_REGISTRATION", "off")]);
    let all = invited.published(&ann, "").expect(200);
    assert_eq!(listed(&all), ["of new", "of old", "of ann"]);
}

/// Many published files of one make the answers of others no longer: it looks at ten thousand and says where it is.
#[test]
fn an_answer_looks_at_ten_thousand_files_and_says_where_to_go_on() {
    let (api, [ann, young]) = Server::with_users(&[PUBLIC], ["ann", "young"]);
    let file = api.new_file(&ann, "of ann", "x");
    api.publish(&ann, &[&file], true).expect(200);
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date, is_public)
         SELECT gen_random_uuid(), '{}', 'f', 'f', 'text/plain', 1, 'f', 'h', now() + i * interval '1 second', true
         FROM generate_series(1, 20001) i",
        young.id()
    ));
    for search in ["", "search=of%20ann&"] {
        let (mut cursor, mut found) = (String::new(), Vec::new());
        loop {
            let page = api.published(&ann, &format!("{search}after={cursor}")).expect(200);
            found.push(listed(&page).len());
            match page.json()["next"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(found, [0, 0, 1], "{search}");
    }
    assert_eq!(listed(&api.published(&young, "limit=3").expect(200)), ["f", "f", "f"]);
}

#[test]
fn one_search_for_published_files_runs_at_a_time() {
    let settings = [PUBLIC, ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60")];
    let (api, users) = Server::with_users(&settings, ["ann", "bob", "cid"]);
    let lock = api.database.begin("LOCK TABLE files IN ACCESS EXCLUSIVE MODE");
    let search = |user| api.begin("GET /api/v1/uploads/public?search=x HTTP/1.1", user);
    let searches: Vec<_> = users.iter().map(search).collect();
    wait_until(|| api.metric("cloakroom_requests_running") == Some(4.0));
    wait_until(|| api.database.blocked_statements() > 0);
    // Others are answered meanwhile, and of the three one has begun to read.
    for _ in 0..20 {
        users.iter().for_each(|user| drop(api.me(user).expect(200)));
        assert_eq!(api.database.blocked_statements(), 1);
    }
    lock.roll_back();
    for mut search in searches {
        assert_eq!(search.answer().status, 200);
    }
}
