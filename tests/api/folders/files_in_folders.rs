//! The folder of a file: how it comes and changes, and who is told of it.

use crate::accounts::totals::differences;
use crate::harness::*;

impl Server {
    /// Uploads a text file into a folder and returns its id.
    #[track_caller]
    pub fn new_file_in(&self, sender: impl Credentials, folder: &str, filename: &str) -> String {
        let form = Form::default().field("folder", folder);
        let form = form.then(file_form(filename, "text/plain", filename.as_bytes()));
        self.upload_form(sender, form).case(folder).expect(201).id()
    }

    /// The folder of each present file of a user, with its name, sorted.
    pub fn tree(&self, user: &Tokens) -> Vec<String> {
        let path = |file: &Value| {
            let text = |name: &str| file[name].as_str().expect("a text").to_owned();
            format!("{}:{}", text("folder"), text("filename"))
        };
        let mut paths: Vec<String> = self.all_files(user).iter().map(path).collect();
        paths.sort();
        paths
    }
}

#[test]
fn a_file_lies_where_its_form_says() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = || file_form("a.txt", "text/plain", b"abc");
    let field = |text: &str| Form::default().field("folder", text);
    for (form, folder) in [
        (file(), "/"),
        (field("").then(file()), "/"),
        (field("/a/b").then(file()), "/a/b"),
        (file().field("folder", "a/b/"), "/a/b"),
        // The first one counts, and others are not looked at.
        (field("/a").then(file()).field("folder", "//"), "/a"),
        (file().field("folder", "/A\u{308} b"), "/\u{c4} b"),
    ] {
        let answer = api.upload_form(&ann, form).expect(201).has(json!({ "folder": folder }));
        let id = answer.id();
        api.show_file(&ann, &id).expect(200).has(json!({ "folder": folder }));
    }
    for wrong in ["//", "/a//b", "..", "a/./b", "a\\b", " a", "a\u{202e}", &"x".repeat(256)] {
        let answer = api.upload_form(&ann, field(wrong).then(file())).case(wrong);
        answer.invalid(&[("body.folder", "value_error")]);
        let answer = api.upload_form(&ann, file().field("folder", wrong)).case(wrong);
        answer.invalid(&[("body.folder", "value_error")]);
    }
    let part = "Content-Disposition: form-data; name=\"folder\"";
    let answer = api.upload_form(&ann, file().part(part, b"\xff"));
    answer.invalid(&[("body.folder", "value_error")]);
    assert_eq!(api.database.count("files"), 6);
    assert_eq!(differences(&api.database), []);
}

/// Whatever changes the folder is a change as any other, and what is as it was before is none.
#[test]
fn another_folder_is_a_change_like_another_name() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (a, b) = (api.new_file(&ann, "a", "a"), api.new_file_in(&ann, "/x", "b"));
    let tag = |file: &str| api.show_file(&ann, file).expect(200).header("ETag").to_owned();
    let cursor = api.get("/changes?after=now", &ann).expect(200).json()["next"].clone();
    let moved = api.update_file(&ann, &a, json!({"folder": "x/y/"})).expect(200);
    moved.has(json!({"folder": "/x/y", "filename": "a"}));
    let patched = api.request("PATCH", &format!("/uploads/{a}")).by(&ann);
    let patched = patched.json(json!({"folder": null, "description": "text"})).send();
    patched.expect(200).has(json!({"folder": "/x/y"}));
    let tags = [tag(&a), tag(&b)];
    let both = json!({"ids": [a, b, uuid(9)], "folder": "/x"});
    let answer = api.post("/uploads/update", &ann, both.clone()).expect(200);
    answer.has(json!({"updated": 2, "missing": [uuid(9)]}));
    assert_eq!([tag(&a) == tags[0], tag(&b) == tags[1]], [false, true]);
    api.post("/uploads/update", &ann, both).expect(200).has(json!({"updated": 2}));
    let path = format!("/changes?after={}", cursor.as_str().expect("a cursor"));
    let changes = api.get(&path, &ann).expect(200).list("changes");
    let told: Vec<_> = changes.iter().map(|change| &change["file"]["folder"]).collect();
    assert_eq!(told, ["/x"]);
    let both = json!({"ids": [a, b], "folder": "", "is_public": true});
    api.post("/uploads/update", &ann, both).expect(200).has(json!({"updated": 2}));
    assert_eq!(api.tree(&ann), ["/:a", "/:b"]);
    let fields = "SELECT details ->> 'fields' FROM audit_events WHERE action = 'file.update' ORDER BY at, id";
    let both = "[\"is_public\", \"folder\"]";
    let single = "[\"folder\"]";
    assert_eq!(api.database.texts(fields), [single, "[\"description\"]", single, both, both]);
    for wrong in [json!("a//b"), json!(7)] {
        let kind = if wrong == json!(7) { "string_type" } else { "value_error" };
        let answer = api.update_file(&ann, &a, json!({ "folder": wrong }));
        answer.invalid(&[("body.folder", kind)]);
        let answer = api.post("/uploads/update", &ann, json!({"ids": [a], "folder": wrong}));
        answer.invalid(&[("body.folder", kind)]);
    }
    assert_eq!(differences(&api.database), []);
}

#[test]
fn a_deleted_file_keeps_its_folder_and_comes_back_to_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let a = api.new_file_in(&ann, "/x/y", "a");
    let b = api.new_file_in(&ann, "/x", "b");
    api.delete_file(&ann, &a).expect(204);
    api.post("/uploads/delete", &ann, json!({ "ids": [b] })).expect(200);
    for (query, total) in [("", 2), ("&folder=/x", 1), ("&below=/x", 2), ("&folder=/", 0)] {
        let answer = api.list_files(&ann, &format!("deleted=true{query}")).case(query);
        answer.expect(200).has(json!({ "total": total }));
    }
    let deleted = api.list_files(&ann, "deleted=true&sort_by=filename&sort_order=asc");
    assert_eq!(names_of(&deleted.expect(200).json()["items"], "folder"), ["/x/y", "/x"]);
    api.get("/folders", &ann).expect(200).has(json!({"folders": [], "next": null}));
    let answer = api.request("POST", &format!("/uploads/{a}/restore")).by(&ann).send();
    answer.expect(200).has(json!({"folder": "/x/y"}));
    let since = json!({"deleted_since": "2020-01-01"});
    api.post("/uploads/restore", &ann, since).expect(200).has(json!({"restored": 1}));
    assert_eq!(api.tree(&ann), ["/x/y:a", "/x:b"]);
    assert_eq!(differences(&api.database), []);
}

#[test]
fn others_do_not_learn_the_folder() {
    let (api, [ann, bob]) = Server::with_users(&[("CLOAKROOM_PUBLIC_LIST", "on")], ["ann", "bob"]);
    let secret = api.new_file_in(&ann, "/secret", "a");
    api.update_file(&ann, &secret, json!({"is_public": true})).expect(200);
    api.database.run("UPDATE users SET created_at = now() - interval '8 days'");
    api.show_file(&bob, &secret).expect(200).has(json!({ "folder": null }));
    for (sender, folder) in [(&ann, json!("/secret")), (&bob, json!(null))] {
        let answer = api.get("/uploads/public", sender).expect(200);
        assert_eq!(answer.list("files")[0]["folder"], folder);
    }
    let denied = api.update_file(&bob, &secret, json!({"folder": "/"})).expect(403);
    assert!(!denied.text().contains("secret"));
    let link = api.new_link(&ann, &secret);
    let about = api.open_link(&format!("{link}?about=true")).expect(200);
    assert!(!about.text().contains("secret"), "{}", about.text());
    // What lies in a folder is what is one's own.
    for path in ["/uploads?folder=/secret", "/uploads?below=/secret"] {
        api.get(path, &bob).expect(200).has(json!({"total": 0, "items": []}));
    }
    api.get("/folders", &bob).expect(200).has(json!({"folders": []}));
    api.delete("/folders?folder=/secret", &bob).refused(404, "Folder not found");
}

#[test]
fn an_upload_with_a_key_is_the_same_only_in_the_same_folder() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let send = |folder: Option<&str>| {
        let form = file_form("a.txt", "text/plain", b"abc");
        let form = folder.into_iter().fold(form, |form, folder| form.field("folder", folder));
        api.upload_request(&ann, form.bytes()).header("Idempotency-Key", "\"key\"").send()
    };
    let first = send(None).expect(201).id();
    for same in [None, Some("/"), Some("")] {
        let answer = send(same).expect(201).has(json!({"id": first, "folder": "/"}));
        assert_eq!(answer.header("Idempotency-Replayed"), "true");
    }
    send(Some("/a")).invalid(&[("header.Idempotency-Key", "value_error")]);
}

/// A token of one scope does with folders what it does with files.
#[test]
fn a_token_that_uploads_may_say_where_to() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let token = |scope: &str| {
        let answer = api.create_token(&ann, json!({"name": scope, "scope": scope})).expect(201);
        answer.json()["token"].as_str().expect("a token").to_owned()
    };
    let [upload, read, all] = ["upload", "read", "all"].map(token);
    api.new_file_in(&upload, "/a", "a");
    for (method, path, statuses) in [
        ("GET", "/folders", [403, 200, 200]),
        ("GET", "/uploads?folder=/a", [403, 200, 200]),
        ("POST", "/folders/move", [403, 403, 422]),
        ("DELETE", "/folders?folder=/a&permanently=true", [403, 403, 403]),
        ("DELETE", "/folders?folder=/a", [403, 403, 200]),
    ] {
        for (token, status) in [&upload, &read, &all].into_iter().zip(statuses) {
            api.request(method, path)
                .by(token)
                .send()
                .case(format!("{method} {path}"))
                .expect(status);
        }
        // What was refused has changed nothing.
        let is_gone = method == "DELETE" && statuses[2] == 200;
        assert_eq!(api.tree(&ann).len(), usize::from(!is_gone), "{method} {path}");
    }
}
