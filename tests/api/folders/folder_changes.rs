//! What is done with all that lies in a folder, and what comes of two such requests at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::accounts::totals::differences;
use crate::harness::*;

impl Server {
    pub fn move_folder(&self, user: impl Credentials, from: &str, to: &str) -> Answer {
        self.post("/folders/move", user, json!({"from": from, "to": to}))
    }

    pub fn delete_folder(&self, user: impl Credentials, query: &str) -> Answer {
        self.delete(&format!("/folders?folder={query}"), user)
    }

    /// Inserts records of files without contents: so many into a folder, in the form of the column.
    pub fn insert_into_folder(&self, owner: &Tokens, folder: &str, files: usize) {
        self.database.run(&format!(
            "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path,
                                file_hash)
             SELECT gen_random_uuid(), '{}', translate('{folder}', '/', chr(1)), 'f' || i, 'f', 'text/plain', 1, 'f',
                    'h'
             FROM generate_series(1, {files}) i",
            owner.id()
        ));
    }
}

#[test]
fn what_lies_in_a_folder_moves_with_what_lies_below_it() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    for (folder, name) in [
        ("/a", "1"),
        ("/a", "2"),
        ("/a/b/c", "3"),
        ("/a b", "4"),
        ("/a-b", "5"),
        ("/ab", "6"),
        ("/", "7"),
        ("/t", "8"),
    ] {
        api.new_file_in(&ann, folder, name);
    }
    api.new_file_in(&bob, "/a", "of bob");
    let moved = api.move_folder(&ann, "a/", "/t/x").expect(200);
    moved.has(json!({"moved": 3, "left": 0}));
    let expected = ["/:7", "/a b:4", "/a-b:5", "/ab:6", "/t/x/b/c:3", "/t/x:1", "/t/x:2", "/t:8"];
    assert_eq!(api.tree(&ann), expected);
    // The same request again finds nothing.
    api.move_folder(&ann, "/a", "/t/x").refused(404, "Folder not found");
    api.move_folder(&ann, "/t/x/b", "/").expect(200).has(json!({"moved": 1}));
    api.move_folder(&ann, "/t/x", "/t").expect(200).has(json!({"moved": 2}));
    let expected = ["/:7", "/a b:4", "/a-b:5", "/ab:6", "/c:3", "/t:1", "/t:2", "/t:8"];
    assert_eq!(api.tree(&ann), expected);
    assert_eq!(api.tree(&bob), ["/a:of bob"]);
    let events = "SELECT concat_ws(' ', details ->> 'folder', details ->> 'to', details ->> 'count', subject_type)
                  FROM audit_events WHERE action = 'folder.move' ORDER BY at, id";
    let expected = ["/a /t/x 3 user", "/t/x/b / 1 user", "/t/x /t 2 user"];
    assert_eq!(api.database.texts(events), expected);
    assert_eq!(api.database.count("audit_events WHERE action = 'file.update'"), 0);
    assert_eq!(differences(&api.database), []);
}

#[test]
fn each_file_that_moves_is_changed() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file_in(&ann, "/a/b", "f");
    let before = api.show_file(&ann, &file).expect(200);
    let cursor = api.get("/changes?after=now", &ann).expect(200).json()["next"].clone();
    api.move_folder(&ann, "/a", "/t").expect(200);
    let after = api.show_file(&ann, &file).expect(200);
    let after = after.has(json!({"folder": "/t/b", "filename": "f"}));
    assert_ne!(before.header("ETag"), after.header("ETag"));
    assert_ne!(before.json()["updated_at"], after.json()["updated_at"]);
    let path = format!("/changes?after={}", cursor.as_str().expect("a cursor"));
    let changes = api.get(&path, &ann).expect(200).list("changes");
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["file"], after.json());
}

#[test]
fn a_move_that_cannot_be_whole_moves_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let deep = "/a".repeat(16);
    let long = format!("/b/{}", "x".repeat(250)).repeat(3);
    for folder in [&*deep, &*long, "/c", "/c/d"] {
        api.new_file_in(&ann, folder, "f");
    }
    let tree = api.tree(&ann);
    for (from, to, field, kind) in [
        ("/c", "/c", "body.to", "value_error"),
        ("/c", "/c/d", "body.to", "value_error"),
        ("/c", "/c/e/f", "body.to", "value_error"),
        ("/", "/t", "body.from", "value_error"),
        ("", "/t", "body.from", "value_error"),
        ("c//d", "/t", "body.from", "value_error"),
        ("/c", "..", "body.to", "value_error"),
        ("/a", "/t/u", "body.to", "value_error"),
        ("/b", &"/y".repeat(8).replace('y', &"y".repeat(60)), "body.to", "value_error"),
    ] {
        api.move_folder(&ann, from, to).case(format!("{from} to {to}")).invalid(&[(field, kind)]);
    }
    let missing = [("body.from", "missing"), ("body.to", "missing")];
    api.post("/folders/move", &ann, json!({"from": null})).invalid(&missing);
    assert_eq!(api.tree(&ann), tree);
    // One that is as deep as before is fine.
    api.move_folder(&ann, "/a", "/t").expect(200).has(json!({"moved": 1}));
    for root in ["", "/"] {
        api.delete_folder(&ann, root).case(root).invalid(&[("query.folder", "value_error")]);
    }
    api.delete("/folders", &ann).invalid(&[("query.folder", "missing")]);
    api.delete_folder(&ann, "/none").refused(404, "Folder not found");
    let wrong = api.delete_folder(&ann, "/c&permanently=maybe");
    wrong.invalid(&[("query.permanently", "bool_type")]);
}

#[test]
fn a_request_moves_or_deletes_a_thousand_files_and_says_how_many_are_left() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.insert_into_folder(&ann, "a/", 1500);
    api.insert_into_folder(&ann, "a/b/", 700);
    for (moved, left) in [(1000, 1200), (1000, 200), (200, 0)] {
        let answer = api.move_folder(&ann, "/a", "/t/a").expect(200);
        answer.has(json!({"moved": moved, "left": left}));
        assert_eq!(differences(&api.database), []);
    }
    api.move_folder(&ann, "/a", "/t/a").refused(404, "Folder not found");
    // What is moved out of a folder of the same name would be moved again.
    api.insert_into_folder(&ann, "t/a/a/", 1);
    api.move_folder(&ann, "/t/a", "/t").invalid(&[("body.to", "value_error")]);
    assert_eq!(api.list_files(&ann, "folder=/t/a").json()["total"], 1500);
    for (deleted, left) in [(1000, 1201), (1000, 201), (201, 0)] {
        let answer = api.delete_folder(&ann, "/t").expect(200);
        answer.has(json!({"deleted": deleted, "left": left}));
        assert_eq!(differences(&api.database), []);
    }
    api.delete_folder(&ann, "/t").refused(404, "Folder not found");
    assert_eq!(api.database.count("deleted_files"), 2201);
    let since = json!({"deleted_since": "2020-01-01"});
    api.post("/uploads/restore", &ann, since).expect(200).has(json!({"restored": 2201, "left": 0}));
    for (folder, total) in [("/t/a", 1500), ("/t/a/b", 700), ("/t/a/a", 1)] {
        let answer = api.list_files(&ann, &format!("folder={folder}"));
        answer.expect(200).has(json!({ "total": total }));
    }
    let events = "SELECT concat_ws(' ', action, details ->> 'folder', details ->> 'count')
                  FROM audit_events WHERE action IN ('folder.move', 'folder.delete') ORDER BY at, id";
    let expected = [
        "folder.move /a 1000",
        "folder.move /a 1000",
        "folder.move /a 200",
        "folder.delete /t 1000",
        "folder.delete /t 1000",
        "folder.delete /t 201",
    ];
    assert_eq!(api.database.texts(events), expected);
    assert_eq!(differences(&api.database), []);
}

/// A folder that holds one of its own name is moved up by one request as long as that moves all.
#[test]
fn a_folder_in_a_folder_of_the_same_name_moves_up_once() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (folder, name) in [("/a/b", "1"), ("/a/b/b", "2"), ("/a/b/b/b", "3"), ("/a", "4")] {
        api.new_file_in(&ann, folder, name);
    }
    api.move_folder(&ann, "/a/b", "/a").expect(200).has(json!({"moved": 3, "left": 0}));
    assert_eq!(api.tree(&ann), ["/a/b/b:3", "/a/b:2", "/a:1", "/a:4"]);
    api.move_folder(&ann, "/a", "/").expect(200).has(json!({"moved": 4, "left": 0}));
    assert_eq!(api.tree(&ann), ["/:1", "/:4", "/b/b:3", "/b:2"]);
}

#[test]
fn a_folder_goes_for_good_only_where_it_is_asked_for() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [kept, gone] = ["kept", "gone"].map(|name| api.new_file_in(&ann, "/a/b", name));
    api.delete_file(&ann, &kept).expect(204);
    let answer = api.delete_folder(&ann, "/a&permanently=true").expect(200);
    answer.has(json!({"deleted": 1, "left": 0}));
    // What was deleted before stays restorable.
    assert_eq!(api.database.texts("SELECT id::text FROM deleted_files"), [kept]);
    wait_until(|| !api.data.content(&gone).exists());
    assert_eq!(api.file_stats(&ann), (0, 0));
    assert_eq!(differences(&api.database), []);
}

/// Each of two folders moves into the other, while others delete from both and restore: each file is in one of the
/// places.
#[test]
fn movers_and_deleters_lose_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let files: Vec<String> = (0..40)
        .map(|i| api.new_file_in(&ann, ["/a", "/a/x", "/b", "/b/y"][i % 4], &i.to_string()))
        .collect();
    let (moved, deleted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    parallel(64, |i| {
        for round in 0..4 {
            let (from, to) =
                [("/a", "/b/a"), ("/b", "/a/b"), ("/a/b", "/b"), ("/b/a", "/a")][(i + round) % 4];
            let answer = match i % 4 {
                0..=1 => api.move_folder(&ann, from, to),
                2 => api.delete_folder(&ann, from),
                _ => api.post("/uploads/restore", &ann, json!({"deleted_since": "2020-01-01"})),
            };
            match answer.status {
                200 if i % 4 < 2 => drop(moved.fetch_add(1, Ordering::Relaxed)),
                200 if i % 4 == 2 => drop(deleted.fetch_add(1, Ordering::Relaxed)),
                // Nothing lies there, or what lies there became too deep.
                200 | 404 | 422 => {}
                // A queue is full, or the time is over.
                503 => {}
                other => panic!("{other}: {}", answer.text()),
            }
        }
    });
    assert!(moved.into_inner() > 0 && deleted.into_inner() > 0);
    let place = |table: &str| api.database.texts(&format!("SELECT id::text FROM {table}"));
    let mut there = [place("files"), place("deleted_files")].concat();
    let mut files = files;
    there.sort();
    files.sort();
    assert_eq!(there, files);
    let outside = "folder !~ '^[ab]\\x01' OR folder ~ '[^abxy\\x01]'";
    assert_eq!(api.database.count(&format!("files WHERE {outside}")), 0);
    assert_eq!(differences(&api.database), []);
}

/// What a statement waits for may have changed what lies in the folder.
#[test]
fn a_deletion_spares_what_was_moved_away_while_it_waited() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [moved, stays] = ["moved", "stays"].map(|name| api.new_file_in(&ann, "/a", name));
    let change = format!(
        "SELECT FROM users WHERE id = '{}' FOR NO KEY UPDATE;
         UPDATE files SET folder = 'b' || chr(1) WHERE id = '{moved}'",
        ann.id()
    );
    let answer = api.database.commit_during(&change, || api.delete_folder(&ann, "/a"));
    answer.expect(200).has(json!({"deleted": 1, "left": 0}));
    assert_eq!(api.tree(&ann), ["/b:moved"]);
    assert_eq!(api.database.texts("SELECT id::text FROM deleted_files"), [stays]);
}
