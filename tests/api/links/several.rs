//! Links to several files and to folders: what they show, and what nobody learns by them. `archive/zip.rs` has what is
//! in their archives.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::archive::zip::{names, unpacked};
use crate::harness::*;

impl Server {
    /// Makes a link to several files or a folder, and returns its path.
    #[track_caller]
    pub fn new_link_to(&self, sender: impl Credentials, body: Value) -> String {
        let answer = self.post("/links", sender, body).expect(201);
        answer.json()["url"].as_str().expect("a path").to_owned()
    }

    /// The files of a link, with their folders.
    #[track_caller]
    pub fn shared(&self, link: &str) -> Vec<String> {
        let list = self.open_link(&format!("{link}?about=true")).expect(200).json();
        let files = list["files"].as_array().expect("a list").iter();
        let path = |file: &Value| {
            let text = |name: &str| file[name].as_str().expect("a text").to_owned();
            format!("{}:{}", text("folder"), text("filename"))
        };
        files.map(path).collect()
    }
}

#[test]
fn a_link_is_to_exactly_one_target_of_ones_own() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let (own, other) = (api.new_file(&ann, "a.txt", "a"), api.new_file(&bob, "b.txt", "b"));
    let all =
        [("body.files", "missing"), ("body.folder", "missing"), ("body.upload_to", "missing")];
    let many: Vec<String> = (0..101).map(uuid).collect();
    for (body, expected) in [
        (json!({}), &all[..]),
        (json!({"files": null, "folder": null}), &all),
        (
            json!({"files": [own], "folder": "/"}),
            &[("body.files", "value_error"), ("body.folder", "value_error")],
        ),
        (json!({"folder": ""}), &[("body.folder", "value_error")]),
        (json!({"folder": "/a/../b"}), &[("body.folder", "value_error")]),
        (json!({"folder": ["/"]}), &[("body.folder", "string_type")]),
        (json!({"files": []}), &[("body.files", "value_error")]),
        (json!({"files": own}), &[("body.files", "value_error")]),
        (json!({"files": ["x"]}), &[("body.files", "uuid_parsing")]),
        (json!({"files": [own, own]}), &[("body.files", "value_error")]),
        (json!({"files": many}), &[("body.files", "value_error")]),
        (
            json!({"folder": "/", "expires_in_minutes": 0}),
            &[("body.expires_in_minutes", "value_error")],
        ),
        (json!({"folder": "/", "qr": 2}), &[("body.qr", "bool_type")]),
    ] {
        api.post("/links", &ann, body.clone()).case(&body).invalid(expected);
    }
    for missing in [json!([other]), json!([own, other]), json!([uuid(1)])] {
        api.post("/links", &ann, json!({"files": missing})).refused(404, "File not found");
    }
    assert_eq!(api.database.count("file_links"), 0);
    let answer = api.post("/links", &ann, json!({"files": [own], "inline": true})).expect(201);
    assert_eq!(
        answer.member_names(),
        ["created_at", "expires_at", "files", "folder", "id", "inline", "named_url", "url"]
    );
    let made = answer.has(json!({"files": 1, "folder": null, "inline": true})).json();
    assert_eq!(made["named_url"], format!("{}/files.zip", made["url"].as_str().expect("a path")));
    let made = api.post("/links", &ann, json!({"folder": "a b/c?/"})).expect(201);
    let made = made.has(json!({"files": null, "folder": "/a b/c?"})).json();
    assert_eq!(made["named_url"], format!("{}/c%3F.zip", made["url"].as_str().expect("a path")));
    let listed = api.get("/links", &ann).expect(200).json()["links"].clone();
    let shown = |at: usize, member: &str| listed[at][member].clone();
    assert_eq!([shown(0, "folder"), shown(0, "files")], [json!("/a b/c?"), Value::Null]);
    assert_eq!([shown(1, "folder"), shown(1, "files")], [Value::Null, json!(1)]);
    for at in [0, 1] {
        assert_eq!([shown(at, "file_id"), shown(at, "filename")], [Value::Null, Value::Null]);
    }
    // No list of the links to a file has them.
    assert!(api.list_links(&ann, &own).expect(200).list("links").is_empty());
}

/// What whoever has the link learns is in this list, and nothing else: neither other folders nor descriptions.
#[test]
fn a_link_shows_its_files_from_its_folder_on() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let of_folder = |folder: &str, name: &str| api.new_file_in(&ann, folder, name);
    let deep = of_folder("/secret/share/sub", "deep.txt");
    let top = of_folder("/secret/share", "top.txt");
    let outside = of_folder("/secret", "outside.txt");
    of_folder("/secret/share-more", "beside.txt");
    api.update_file(&ann, &top, json!({"description": "hidden"})).expect(200);
    let link = api.new_link_to(&ann, json!({"folder": "/secret/share"}));
    let answer = api.open_link(&format!("{link}?about=true")).expect(200);
    let shown = answer.json();
    assert_eq!(
        answer.member_names(),
        [
            "created_at",
            "expires_at",
            "files",
            "inline",
            "name",
            "next",
            "sender",
            "total_files",
            "total_size"
        ]
    );
    assert_eq!(
        (
            &shown["name"],
            &shown["sender"],
            &shown["total_files"],
            &shown["total_size"],
            &shown["next"]
        ),
        (&json!("share"), &json!("ann"), &json!(2), &json!(15), &Value::Null)
    );
    assert_eq!(
        shown["files"],
        json!([
            {"id": top, "filename": "top.txt", "folder": "/", "file_size": 7, "content_type": "text/plain"},
            {"id": deep, "filename": "deep.txt", "folder": "/sub", "file_size": 8, "content_type": "text/plain"},
        ])
    );
    assert_eq!(names(&api.open_link(&link).expect(200).bytes), ["top.txt", "sub/deep.txt"]);
    let files = api.new_link_to(&ann, json!({"files": [deep, outside]}));
    let shown =
        api.open_link(&format!("{files}?about=true")).expect(200).has(json!({"name": null}));
    assert_eq!(api.shared(&files), ["/:deep.txt", "/:outside.txt"]);
    let after_all = URL_SAFE_NO_PAD.encode(format!("{}zzz", uuid(1).replace('-', "")));
    let rest = api.open_link(&format!("{files}?about=true&after={after_all}")).expect(200);
    rest.has(json!({"total_files": 2, "total_size": 19, "files": []}));
    assert_eq!(names(&api.open_link(&files).expect(200).bytes), ["deep.txt", "outside.txt"]);
    for secret in
        ["secret", "hidden", "is_public", "user_id", link.rsplit('/').next().expect("a token")]
    {
        assert!(!shown.text().contains(secret) && !answer.text().contains(secret), "{secret}");
    }
    let root = api.new_link_to(&ann, json!({"folder": "/"}));
    api.open_link(&format!("{root}?about=true"))
        .expect(200)
        .has(json!({"name": null, "total_files": 4}));
    assert_eq!(api.shared(&root).len(), 4);
}

#[test]
fn one_of_several_is_downloaded_as_by_a_link_to_it_and_nothing_else_is() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let inside = api.new_file_in(&ann, "/f/g", "inside.txt");
    let outside = api.new_file_in(&ann, "/f-g", "outside.txt");
    let foreign = api.new_file_in(&bob, "/f/g", "foreign.txt");
    for target in [json!({"folder": "/f"}), json!({"files": [inside]})] {
        let mut target = target;
        target["inline"] = json!(true);
        let link = api.new_link_to(&ann, target);
        for path in [&format!("{link}/{inside}"), &format!("{link}/{inside}/any name.exe")] {
            let answer = api.open_link(&path.replace(' ', "%20")).case(path).expect(200);
            assert_eq!(answer.text(), "inside.txt");
            assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
            assert!(answer.header("content-disposition").starts_with("inline"));
        }
        let about = api.open_link(&format!("{link}/{inside}?about=true")).expect(200);
        about.has(json!({"filename": "inside.txt", "inline": true, "sender": "ann"}));
        let range =
            api.request_at_root("GET", &format!("{link}/{inside}")).header("Range", "bytes=1-2");
        assert_eq!(range.send().expect(206).text(), "ns");
        for wrong in [&*outside, &*foreign, &uuid(1), "x", "x.zap", "..zip.x"] {
            for query in ["", "?about=true"] {
                let answer = api.open_link(&format!("{link}/{wrong}{query}")).case(wrong);
                answer.refused(404, "Link not found");
            }
        }
        for zip in ["files.zip", "x.zip", ".zip"] {
            let answer = api.open_link(&format!("{link}/{zip}")).case(zip).expect(200);
            assert_eq!(answer.header("content-type"), "application/zip");
            assert!(answer.header("content-disposition").starts_with("attachment"));
            assert_eq!(answer.header("cross-origin-resource-policy"), "cross-origin");
            assert_eq!(unpacked(&answer.bytes)[0].1, b"inside.txt");
        }
    }
    // A link to one file takes any name after it, and nothing tells an archive.
    let one = api.new_link(&ann, &inside);
    assert_eq!(api.open_link(&format!("{one}/files.zip")).expect(200).text(), "inside.txt");
    assert_eq!(api.open_link(&format!("{one}/{outside}")).expect(200).text(), "inside.txt");
}

/// The link is to the folder's text, and so to whatever lies there at the time of a request.
#[test]
fn a_link_to_a_folder_follows_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let link = api.new_link_to(&ann, json!({"folder": "/later"}));
    assert_eq!(api.shared(&link), [""; 0]);
    assert_eq!(unpacked(&api.open_link(&link).expect(200).bytes), []);
    let first = api.new_file_in(&ann, "/later", "1.txt");
    api.new_file_in(&ann, "/later/sub", "2.txt");
    assert_eq!(api.shared(&link), ["/:1.txt", "/sub:2.txt"]);
    api.update_file(&ann, &first, json!({"folder": "/elsewhere"})).expect(200);
    api.open_link(&format!("{link}/{first}")).refused(404, "Link not found");
    assert_eq!(api.shared(&link), ["/sub:2.txt"]);
    api.update_file(&ann, &first, json!({"folder": "/later"})).expect(200);
    api.delete_file(&ann, &first).expect(204);
    assert_eq!(api.shared(&link), ["/sub:2.txt"]);
    api.request("POST", &format!("/uploads/{first}/restore")).by(&ann).send().expect(200);
    assert_eq!(api.shared(&link), ["/:1.txt", "/sub:2.txt"]);
    api.post("/folders/move", &ann, json!({"from": "/later", "to": "/gone"})).expect(200);
    assert_eq!(api.shared(&link), [""; 0]);
}

#[test]
fn a_long_list_has_pages_and_ends_its_totals_at_ten_thousand() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let insert = |folder: &str, count: u32| {
        api.database.run(&format!(
            "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path,
                                file_hash)
             SELECT gen_random_uuid(), '{}', '{folder}' || chr(1), lpad(n::text, 5, '0'), 'x', 'text/plain', 2, 'x', ''
             FROM generate_series(1, {count}) n",
            ann.id()
        ));
    };
    insert("f", 1000);
    let link = api.new_link_to(&ann, json!({"folder": "/f"}));
    let page =
        |after: &str| api.open_link(&format!("{link}?about=true&after={after}")).expect(200).json();
    let whole = page("");
    assert_eq!((&whole["total_files"], &whole["next"]), (&json!(1000), &Value::Null));
    insert("f\u{1}g", 1500);
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let list = page(&next);
        assert_eq!((&list["total_files"], &list["total_size"]), (&json!(2500), &json!(5000)));
        let files = list["files"].as_array().expect("a list").iter();
        seen.extend(files.map(|file| {
            ["folder", "filename"].map(|name| file[name].as_str().expect("a text").to_owned())
        }));
        match list["next"].as_str() {
            Some(place) => next = place.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 2500);
    // "/" is before "/g".
    assert!(seen.is_sorted(), "by folder and name");
    insert("f\u{1}h", 7501);
    let list = page("");
    assert_eq!((&list["total_files"], &list["total_size"]), (&Value::Null, &Value::Null));
    assert_eq!(list["files"].as_array().map(Vec::len), Some(1000));
    api.open_link(&link).refused(413, "Too many files");
    for wrong in ["x", "1", "AAAA", "%00", &"x".repeat(2000)] {
        let answer = api.open_link(&format!("{link}?about=true&after={wrong}")).case(wrong);
        answer.invalid(&[("query.after", "value_error")]);
    }
}

#[test]
fn a_browser_that_opens_the_bare_link_is_shown_the_page() {
    for (console, status) in [("on", 303), ("off", 200)] {
        let (api, [ann]) = Server::with_users(&[("CLOAKROOM_CONSOLE", console)], ["ann"]);
        let file = api.new_file(&ann, "a.txt", "a");
        let link = api.new_link_to(&ann, json!({"files": [file]}));
        let open = |path: &str| {
            api.request_at_root("GET", path)
                .header("Accept", "text/html,application/xhtml+xml")
                .send()
        };
        let answer = open(&link).expect(status);
        if status == 303 {
            let token = link.rsplit('/').next().expect("a token");
            assert_eq!(answer.header("location"), format!("/console/link#{token}"));
            assert_eq!(answer.header("vary"), "Accept");
        }
        open(&format!("{link}/files.zip")).expect(200);
        open(&format!("{link}?about=true")).expect(200);
        open(&format!("{link}/{file}")).expect(200);
        open(&api.new_link(&ann, &file)).expect(200);
        api.open_link(&link).expect(200);
    }
}

#[test]
fn a_qr_code_is_of_the_address_that_people_open() {
    let public = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
    for (settings, has_code) in [(&[public][..], true), (&[], false)] {
        let (api, [ann]) = Server::with_users(settings, ["ann"]);
        let file = api.new_file(&ann, "a.txt", "a");
        for path in ["/links", &format!("/uploads/{file}/links")] {
            let body = if path == "/links" { json!({"files": [file]}) } else { json!({}) };
            let made = api.post(path, &ann, body.clone()).expect(201);
            assert!(made.json().get("qr_svg").is_none(), "{path}");
            let mut body = body;
            body["qr"] = json!(true);
            let made = api.post(path, &ann, body).expect(201).json();
            assert_eq!(
                made["qr_svg"].as_str().is_some_and(|svg| svg.starts_with("<svg ")),
                has_code
            );
            assert!(made.as_object().is_some_and(|made| made.contains_key("qr_svg")));
        }
    }
}

#[test]
fn only_what_is_given_away_counts_as_a_use() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "a");
    let is_used = || {
        let found: bool =
            api.database.value("SELECT bool_or(last_used_at IS NOT NULL) FROM file_links");
        api.database.run("UPDATE file_links SET last_used_at = NULL");
        found
    };
    let link = api.new_link_to(&ann, json!({"folder": "/"}));
    for (method, path, expected) in [
        ("GET", link.clone(), true),
        ("GET", format!("{link}/x.zip"), true),
        ("GET", format!("{link}/{file}"), true),
        ("HEAD", link.clone(), false),
        ("HEAD", format!("{link}/{file}"), false),
        ("GET", format!("{link}?about=true"), false),
        ("GET", format!("{link}/{file}?about=true"), false),
        ("GET", format!("{link}/{}", uuid(1)), false),
    ] {
        api.request_at_root(method, &path).send();
        assert_eq!(is_used(), expected, "{method} {path}");
    }
}
