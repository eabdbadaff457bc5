//! What other services got wrong about folders, tried here: `tests/advisories/holes.csv` says who.

use std::time::Instant;

use crate::accounts::totals::differences;
use crate::harness::*;

fn encoded(folder: &str) -> String {
    form_urlencoded::byte_serialize(folder.as_bytes()).collect()
}

impl Server {
    /// The answer to each request that can name a folder, with the field in which it does.
    fn ways_to_name(&self, user: &Tokens, file: &str, folder: &str) -> Vec<(Answer, &'static str)> {
        let form = Form::default().field("folder", folder);
        let form = form.then(file_form("f", "text/plain", b"f"));
        let query = encoded(folder);
        vec![
            (self.upload_form(user, form), "body.folder"),
            (self.update_file(user, file, json!({ "folder": folder })), "body.folder"),
            (
                self.post("/uploads/update", user, json!({"ids": [file], "folder": folder})),
                "body.folder",
            ),
            (self.move_folder(user, folder, "/t"), "body.from"),
            (self.move_folder(user, "/a", folder), "body.to"),
            (self.delete_folder(user, &query), "query.folder"),
            (self.list_files(user, &format!("folder={query}")), "query.folder"),
            (self.list_files(user, &format!("below={query}")), "query.below"),
            (self.get(&format!("/folders?in={query}"), user), "query.in"),
        ]
    }
}

/// Nothing that a file system, a browser or a terminal could take for something else is a folder, however it comes.
#[test]
fn a_name_that_leads_elsewhere_or_lies_is_refused_everywhere() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file_in(&ann, "/a", "f");
    let tree = api.tree(&ann);
    let long = [&*"x".repeat(256), &"/\u{e9}".repeat(16).repeat(40), &"\u{1f600}".repeat(250)];
    let deep = ["/a".repeat(17), "a/".repeat(400)];
    let fixed = [
        "..",
        "/..",
        "../etc",
        "/a/../b",
        "/a/..",
        "/a/.",
        "./a",
        "a\\b",
        "..\\..\\a",
        "C:\\a",
        "//a",
        "//host/share",
        "/a//b",
        "a//",
        "///",
        " ",
        " a",
        "a ",
        "/a /b",
        "/a/\u{3000}b",
        "/a\u{a0}",
        "a\r\n2026-01-01 ERROR all is lost",
    ];
    let controls = CONTROL_CHARACTERS.map(|control| format!("/a/b{control}c"));
    let owned = controls.iter().chain(&deep).map(String::as_str);
    for folder in fixed.into_iter().chain(long).chain(owned) {
        for (answer, field) in api.ways_to_name(&ann, &file, folder) {
            answer.case(format!("{folder:?}")).invalid(&[(field, "value_error")]);
        }
    }
    for query in ["%2e%2e", "%2Fa%2F..%2Fb", "%00", "a%5Cb", "a%0Ab", "%E2%80%AEa"] {
        api.delete_folder(&ann, query).case(query).invalid(&[("query.folder", "value_error")]);
    }
    // Bytes that are no text are not read as the nearest one.
    for query in ["%FF", "a%C0%AFb", "%C0%AE%C0%AE"] {
        api.delete_folder(&ann, query).case(query).invalid(&[("query", "value_error")]);
    }
    // An encoded slash divides no path, and an empty name is none.
    for path in ["/folders%2Fmove", "/folders//move", "/folders/%2e%2e/folders/move"] {
        let body = json!({"from": "/a", "to": "/b"});
        api.post(path, &ann, body).case(path).refused(404, "Not Found");
    }
    let vast = json!({"from": "/a".repeat(30_000), "to": "/b"});
    api.post("/folders/move", &ann, vast).invalid(&[("body.from", "value_error")]);
    assert_eq!(api.tree(&ann), tree);
    assert_eq!(api.database.count("audit_events WHERE action::text LIKE 'folder.%'"), 0);
    // No line of the log is one that a client has written, and none says how a folder is called.
    assert!(!api.log().contains("is lost"), "{}", api.log());
}

/// What means something to a pattern, a shell, a page or an address: each is the name of one folder, and of no other.
const ODD_NAMES: [&str; 32] = [
    "%",
    "_",
    "%25",
    "%2e%2e",
    "%2F",
    "a%2Fb",
    "a",
    "a%",
    "a_",
    "a+b",
    "a b",
    "a-b",
    "a*",
    "a?",
    "a#b",
    "a&b=c",
    "a;b",
    "[ab]",
    "a|b",
    "^a$",
    "a'b",
    "a''; DROP TABLE files; --",
    "...",
    "a.",
    "~",
    "$(id)",
    "CON",
    "move",
    "folders",
    "=1+1",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
];

#[test]
fn a_name_is_itself_and_no_pattern_encoding_or_script() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for name in ODD_NAMES {
        api.new_file_in(&ann, &format!("/{name}/below"), "f");
    }
    let mut names = ODD_NAMES;
    names.sort_unstable();
    let listed = api.get("/folders?limit=1000", &ann).expect(200);
    assert_eq!(names_of(&Value::from(listed.list("folders")), "name"), names);
    assert_eq!(listed.header("Content-Type"), "application/json");
    assert_eq!(listed.header("X-Content-Type-Options"), "nosniff");
    for (done, name) in names.into_iter().enumerate() {
        let (folder, query) = (format!("/{name}"), encoded(&format!("/{name}")));
        let below = api.list_files(&ann, &format!("below={query}")).case(name).expect(200);
        assert_eq!(below.json()["total"], 1, "{name}");
        assert_eq!(below.list("items")[0]["folder"], format!("/{name}/below"));
        let after =
            api.get(&format!("/folders?after={query}&limit=1", query = encoded(name)), &ann);
        let next = names.get(done + 1).map_or(json!([]), |name| json!([name]));
        assert_eq!(json!(names_of(&Value::from(after.list("folders")), "name")), next, "{name}");
        let moved = api.move_folder(&ann, &folder, &format!("/moved/{name}")).case(name);
        moved.expect(200).has(json!({"moved": 1, "left": 0}));
        let query = encoded(&format!("/moved/{name}"));
        let deleted = api.delete_folder(&ann, &query).case(name).expect(200);
        deleted.has(json!({"deleted": 1, "left": 0}));
        let left = api.list_files(&ann, "").json()["total"].clone();
        assert_eq!(left, names.len() - done - 1, "{name}");
    }
    api.get("/folders", &ann).expect(200).has(json!({"folders": [], "next": null}));
    assert_eq!(differences(&api.database), []);
}

#[test]
fn spellings_of_one_text_are_one_folder_and_others_are_others() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (folder, name) in [
        ("/\u{c5}/b", "1"),
        ("/A\u{30a}/b", "2"),
        ("/\u{212b}/b/", "3"),
        ("\u{c5}/b", "4"),
        // Another case, another width, another kind of the same letter.
        ("/\u{e5}/b", "5"),
        ("/\u{c5}/B", "6"),
        ("/\u{c5}/\u{ff42}", "7"),
        ("/\u{c5}/b.", "8"),
        ("/\u{c5}/.b", "9"),
    ] {
        api.new_file_in(&ann, folder, name);
    }
    let same = api.list_files(&ann, &format!("folder={}", encoded("/A\u{30a}/b"))).expect(200);
    assert_eq!(same.json()["total"], 4);
    // Only the case is another, so this is another folder, in which nothing is lost.
    let moved = api.move_folder(&ann, "/A\u{30a}/b", "/\u{c5}/B").expect(200);
    moved.has(json!({"moved": 4, "left": 0}));
    let expected = ["B:1", "B:2", "B:3", "B:4", "B:6", "b.:8", ".b:9", "\u{ff42}:7"]
        .map(|one| format!("/\u{c5}/{one}"));
    let mut expected = [&expected[..], &["/\u{e5}/b:5".to_owned()]].concat();
    expected.sort();
    assert_eq!(api.tree(&ann), expected);
    // So a repetition with a key is one in each spelling.
    let send = |folder: &str| {
        let form = Form::default().field("folder", folder).file("k", "text/plain", b"k");
        api.upload_request(&ann, form.bytes()).header("Idempotency-Key", "key").send()
    };
    let first = send("/\u{c5}").expect(201).id();
    send("A\u{30a}/").expect(201).has(json!({"id": first, "folder": "/\u{c5}"}));
    send("/\u{e5}").invalid(&[("header.Idempotency-Key", "value_error")]);
}

/// A move into a folder that has files and folders of the same names joins them: it replaces, doubles and counts
/// nothing.
#[test]
fn a_move_onto_what_is_there_joins_both_within_a_full_quota() {
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "8"), ("CLOAKROOM_USER_FILE_QUOTA", "4")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let new_file = |folder: &str, content: &str| {
        let form = Form::default().field("folder", folder);
        let form = form.file("f", "text/plain", content.as_bytes());
        api.upload_form(&ann, form).expect(201).id()
    };
    let contents = [("/a", "11"), ("/a/x", "22"), ("/b", "33"), ("/b/x", "44")];
    let files = contents.map(|(folder, content)| (new_file(folder, content), content));
    api.move_folder(&ann, "/a", "/b").expect(200).has(json!({"moved": 2, "left": 0}));
    assert_eq!(api.tree(&ann), ["/b/x:f", "/b/x:f", "/b:f", "/b:f"]);
    assert_eq!(api.file_stats(&ann), (4, 8));
    api.move_folder(&ann, "/b/x", "/").expect(200).has(json!({"moved": 2, "left": 0}));
    for (file, content) in &files {
        assert_eq!(api.download(&ann, file).expect(200).text(), *content);
    }
    assert_eq!(api.file_stats(&ann), (4, 8));
    // A deleted one waits outside of the quota, and comes back into its folder, which has gone meanwhile.
    let [(first, _), .., (last, _)] = &files;
    api.delete_file(&ann, first).expect(204);
    api.move_folder(&ann, "/b", "/c").expect(200).has(json!({"moved": 1}));
    api.delete_folder(&ann, "/c&permanently=true").expect(200).has(json!({"deleted": 1}));
    let restored = api.request("POST", &format!("/uploads/{first}/restore")).by(&ann).send();
    restored.expect(200).has(json!({"folder": "/b"}));
    assert_eq!(api.show_file(&ann, last).json()["folder"], "/");
    assert_eq!(api.tree(&ann), ["/:f", "/:f", "/b:f"]);
    assert_eq!(api.file_stats(&ann), (3, 6));
    assert_eq!(differences(&api.database), []);
}

/// The longest folder and the longest names of files, of texts that do not get shorter by compression.
#[test]
fn the_longest_texts_fit_into_each_index() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let mut seed = 1_u32;
    let mut random = |length: usize, first: u32, count: u32| -> String {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from_u32(first + (seed >> 8) % count).expect("a character")
        };
        (0..length).map(|_| next()).collect()
    };
    let names = [255, 255, 255, 231].map(|length| random(length, 0x61, 26));
    let folder = format!("/{}", names.join("/"));
    assert_eq!(folder.len(), 1000);
    // Letters of four bytes; some that the lower case makes longer; and the usual ones.
    for (first, count) in [(0x10400, 0x28), (0x23a, 1), (0x1f600, 0x40), (0x41, 26)] {
        let name = random(255, first, count);
        let file = api.new_file_in(&ann, "/", "f");
        let change =
            json!({"filename": name, "folder": folder, "description": random(999, 0x4e00, 5000)});
        api.update_file(&ann, &file, change).expect(200).has(json!({"filename": name}));
    }
    for sort in ["filename", "file_size", "uploaded_at"] {
        let query = format!("folder={folder}&sort_by={sort}");
        assert_eq!(api.list_files(&ann, &query).expect(200).json()["total"], 4);
    }
    // Page by page by names of 255 characters.
    api.new_file_in(&ann, &format!("/{}", "\u{10ffff}".repeat(249)), "f");
    let next = api.get("/folders?limit=1", &ann).expect(200).json()["next"].clone();
    assert_eq!(next, names[0]);
    let after = format!("/folders?limit=1&after={}", names[0]);
    assert_eq!(api.get(&after, &ann).expect(200).list("folders").len(), 1);
    let moved = api.move_folder(&ann, &format!("/{}", names[0]), &format!("/{}", names[3]));
    moved.expect(200).has(json!({"moved": 4, "left": 0}));
    let too_long = api.move_folder(&ann, &format!("/{}", names[3]), &format!("/{}x", names[0]));
    too_long.invalid(&[("body.to", "value_error")]);
    assert_eq!(api.delete_folder(&ann, &names[3]).expect(200).json()["deleted"], 4);
    assert_eq!(differences(&api.database), []);
}

/// Whoever asks for a folder of somebody else gets what they get for one that never was.
#[test]
fn whether_another_has_a_folder_is_not_told() {
    let settings = [("CLOAKROOM_PUBLIC_LIST", "on")];
    let (api, [root, ann, bob]) = Server::with_users(&settings, ["root", "ann", "bob"]);
    let file = api.new_file_in(&ann, "/secret", "a");
    api.update_file(&ann, &file, json!({"is_public": true})).expect(200);
    api.database.run("UPDATE users SET created_at = now() - interval '8 days'");
    for other in [&bob, &root] {
        let answers = ["/secret", "/none"].map(|folder| {
            let answers = [
                api.move_folder(other, folder, "/t"),
                api.delete_folder(other, folder),
                api.delete_folder(other, &format!("{folder}&permanently=true")),
                api.list_files(other, &format!("folder={folder}")),
                api.list_files(other, &format!("below={folder}&deleted=true")),
                api.get(&format!("/folders?in={folder}"), other),
            ];
            answers.map(|answer| (answer.status, answer.json()["detail"].clone()))
        });
        assert_eq!(answers[0], answers[1]);
        for query in ["search=secret", "folder=/secret", "folder=/none"] {
            let public = api.get(&format!("/uploads/public?{query}"), other).expect(200);
            assert!(!public.text().contains("/secret"), "{query}");
            let found = usize::from(!query.starts_with("search"));
            assert_eq!(public.list("files").len(), found, "{query}");
        }
        // Their own folder of that name is another one.
        api.new_file_in(other, "/secret", "own");
        api.move_folder(other, "/secret", "/t").expect(200).has(json!({"moved": 1}));
    }
    for change in [json!({"folder": "/t"}), json!({"folder": "/secret"})] {
        api.update_file(&bob, &file, change.clone()).expect(403);
        let many = json!({"ids": [file], "folder": change["folder"]});
        let none = api.post("/uploads/update", &bob, many).expect(200);
        none.has(json!({"updated": 0, "missing": [file]}));
    }
    assert_eq!(api.tree(&ann), ["/secret:a"]);
}

/// A client that keeps a copy by the feed of changes, and reads it in the midst of moves, deletions and restorings.
#[test]
fn a_copy_by_the_feed_is_the_same_after_moves() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let mut copy = std::collections::BTreeMap::new();
    let mut cursor = String::new();
    let mut read = |limit: usize, pages: usize| {
        for _ in 0..pages {
            let answer = api.get(&format!("/changes?limit={limit}{cursor}"), &ann).expect(200);
            for change in answer.list("changes") {
                let id = change["file"]["id"].as_str().or(change["file_id"].as_str());
                let id = id.expect("an id").to_owned();
                match &change["file"] {
                    Value::Null => copy.remove(&id),
                    file => copy.insert(id, format!("{}:{}", file["folder"], file["filename"])),
                };
            }
            cursor = format!("&after={}", answer.json()["next"].as_str().expect("a cursor"));
        }
        let mut files: Vec<String> = copy.values().map(|file| file.replace('"', "")).collect();
        files.sort();
        files
    };
    for i in 0..12 {
        api.new_file_in(&ann, ["/a", "/a/b", "/a-b", "/c"][i % 4], &i.to_string());
    }
    read(5, 1);
    api.move_folder(&ann, "/a", "/t").expect(200);
    read(4, 1);
    api.move_folder(&ann, "/t/b", "/a").expect(200);
    api.delete_folder(&ann, "/c").expect(200);
    read(3, 1);
    api.move_folder(&ann, "/a", "/t/b").expect(200);
    api.post("/uploads/restore", &ann, json!({"deleted_since": "2020-01-01"})).expect(200);
    read(2, 2);
    api.move_folder(&ann, "/c", "/a-b/c").expect(200);
    assert_eq!(read(1000, 2), api.tree(&ann));
}

/// What comes into the folder, or leaves it, while a request waits for another change of the same files.
#[test]
fn a_move_takes_what_came_while_it_waited_and_spares_what_left() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [comes, leaves] = [("/x", "comes"), ("/a/b", "leaves")]
        .map(|(folder, name)| api.new_file_in(&ann, folder, name));
    api.new_file_in(&ann, "/a", "stays");
    let change = format!(
        "SELECT FROM users WHERE id = '{}' FOR NO KEY UPDATE;
         UPDATE files SET folder = 'a' || chr(1) WHERE id = '{comes}';
         UPDATE files SET folder = 'y' || chr(1) WHERE id = '{leaves}'",
        ann.id()
    );
    let answer = api.database.commit_during(&change, || api.move_folder(&ann, "/a", "/t"));
    answer.expect(200).has(json!({"moved": 2, "left": 0}));
    assert_eq!(api.tree(&ann), ["/t:comes", "/t:stays", "/y:leaves"]);
    assert_eq!(differences(&api.database), []);
}

/// While folders come and go, those that stay are told once, page by page.
#[test]
fn pages_of_folders_neither_skip_nor_repeat_while_others_come_and_go() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let mut staying: Vec<String> = (10..40).map(|i| i.to_string()).collect();
    for name in &staying {
        api.new_file_in(&ann, &format!("/p/{name}/x"), "f");
    }
    let (mut told, mut after) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("/folders?in=/p&limit=4&after={after}"), &ann).expect(200);
        told.extend(names_of(&Value::from(page.list("folders")), "name"));
        let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
        // The last one that was told, the one before it, and one of those to come; and a new one before them all.
        let place = staying.iter().position(|name| *name == next).expect("one that stays");
        api.move_folder(&ann, &format!("/p/{next}"), &format!("/q/{next}")).expect(200);
        api.delete_folder(&ann, &format!("/p/{}", staying[place - 1])).expect(200);
        if place + 2 < staying.len() {
            api.delete_folder(&ann, &format!("/p/{}", staying.remove(place + 2))).expect(200);
        }
        api.new_file_in(&ann, &format!("/p/!{next}"), "f");
        after = next;
    }
    assert_eq!(told, staying);
}

#[test]
fn a_list_of_folders_reads_what_it_tells_however_many_there_are() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path,
                            file_hash)
         SELECT gen_random_uuid(), '{}', concat_ws(chr(1), 'p', i % 1000, i, ''), 'f', 'f', 'text/plain', 1, 'f', 'h'
         FROM generate_series(1, 20000) i;
         ANALYZE folder_totals",
        ann.id()
    ));
    let read = || {
        let index = "pg_stat_user_indexes WHERE indexrelname = 'folder_totals_pkey'";
        api.database.value::<i64>(&format!("SELECT idx_tup_read FROM {index}"))
    };
    let before = read();
    let answer = api.get("/folders?in=/p&limit=50&after=5", &ann).expect(200);
    assert_eq!(answer.list("folders").len(), 50);
    // A connection tells what it has read some time later, and of a statement all at once.
    wait_until(|| read() > before);
    let cost = read() - before;
    assert!((50..=200).contains(&cost), "{cost} rows were read");
}

/// The depth and the length of each are looked at, which must not be what a move takes its time for.
#[test]
fn a_move_of_many_deep_folders_takes_about_as_long_as_their_deletion() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path,
                            file_hash)
         SELECT gen_random_uuid(), '{}', concat_ws(chr(1), 'p', i, repeat(repeat('x', 200) || chr(1), 4)), 'f', 'f',
                'text/plain', 1, 'f', 'h'
         FROM generate_series(1, 10000) i;
         ANALYZE files, folder_totals",
        ann.id()
    ));
    let begin = Instant::now();
    api.move_folder(&ann, "/p", "/t").expect(200).has(json!({"moved": 1000, "left": 9000}));
    let moved = begin.elapsed();
    api.delete_folder(&ann, "/p").expect(200).has(json!({"deleted": 1000, "left": 8000}));
    let deleted = begin.elapsed() - moved;
    assert!(moved < 8 * deleted, "{moved:?}, and the deletion {deleted:?}");
}
