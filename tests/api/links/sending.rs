//! Links by which anyone sends files to a folder: how they are made, what whoever has one can do, and what is told.

use std::io::Write;

use crate::files::uploads_under_way::under_way;
use crate::harness::*;

#[test]
fn a_link_to_send_files_by_is_made_shown_and_ended() {
    let quota = ("CLOAKROOM_USER_STORAGE_QUOTA", "5000");
    let (api, ann) = Server::with_settled(&[quota], "ann");
    for (body, expected) in [
        (
            json!({}),
            &[("body.files", "missing"), ("body.folder", "missing"), ("body.upload_to", "missing")]
                [..],
        ),
        (
            json!({"upload_to": "/", "folder": "/"}),
            &[("body.folder", "value_error"), ("body.upload_to", "value_error")],
        ),
        (json!({"upload_to": ""}), &[("body.upload_to", "value_error")]),
        (json!({"upload_to": "/a/.."}), &[("body.upload_to", "value_error")]),
        (json!({"upload_to": "/", "max_files": 0}), &[("body.max_files", "value_error")]),
        (json!({"upload_to": "/", "max_files": 1001}), &[("body.max_files", "value_error")]),
        (json!({"upload_to": "/", "max_bytes": 5001}), &[("body.max_bytes", "value_error")]),
        (json!({"upload_to": "/", "max_bytes": 0}), &[("body.max_bytes", "value_error")]),
        (json!({"upload_to": "/", "note": "x".repeat(1001)}), &[("body.note", "string_too_long")]),
        (json!({"upload_to": "/", "note": "a\u{202e}b"}), &[("body.note", "value_error")]),
        (json!({"upload_to": "/", "notify": "perhaps"}), &[("body.notify", "bool_type")]),
    ] {
        api.post("/links", &ann, body.clone()).case(&body).invalid(expected);
    }
    let note = "Your photos,\nplease";
    let wanted = json!({"upload_to": "a b/", "note": note, "max_files": 3, "max_bytes": 4000, "notify": false});
    let made = api.post("/links", &ann, wanted).expect(201);
    let shown = json!({
        "upload_to": "/a b", "note": note, "max_files": 3, "max_bytes": 4000, "notify": false, "files": null,
        "folder": null, "received_files": 0, "received_bytes": 0, "inline": false
    });
    let made = made.has(shown.clone()).json();
    assert_eq!(made.get("named_url"), None);
    let link = made["url"].as_str().expect("a path");
    assert_eq!(
        api.about_link(link),
        json!({
            "upload": true, "note": note, "sender": "ann", "expires_at": made["expires_at"], "files_left": 3,
            "bytes_left": 4000, "max_file_size": 10485760, "allowed_types": api.about_link(link)["allowed_types"]
        })
    );
    let usual = api.post("/links", &ann, json!({"upload_to": "/", "note": " \n"})).expect(201);
    usual.has(json!({"upload_to": "/", "note": null, "max_files": 100, "max_bytes": 5000, "notify": true}));
    api.send_file(link, "a.txt", b"hello").expect(201);
    let listed = api.get("/links", &ann).expect(200).json()["links"].clone();
    for (name, value) in shown.as_object().expect("an object") {
        let expected = match name.as_str() {
            "received_files" => json!(1),
            "received_bytes" => json!(5),
            _ => value.clone(),
        };
        assert_eq!(listed[1][name], expected, "{name}");
    }
    assert!(listed[1]["last_used_at"].is_string());
    let file = api.new_file(&ann, "b.txt", "b");
    api.create_link(&ann, &file, json!({})).expect(201);
    let other = api.get("/links", &ann).expect(200).json()["links"][0].clone();
    for name in [
        "upload_to",
        "max_files",
        "max_bytes",
        "note",
        "notify",
        "received_files",
        "received_bytes",
    ] {
        assert_eq!(other[name], Value::Null, "{name}");
    }
    let id = made["id"].as_str().expect("an id");
    api.delete(&format!("/links/{id}"), &ann).expect(204);
    api.open_link(&format!("{link}?about=true")).refused(404, "Link not found");
    api.send_file(link, "a.txt", b"hello").refused(404, "Link not found");
    let details =
        "SELECT string_agg(action || ' ' || subject_type || ' ' || (details ->> 'upload_to'), ', '
                                     ORDER BY at)
                   FROM audit_events WHERE subject_id = '";
    let events: String = api.database.value(&format!("{details}{id}'"));
    assert_eq!(events, "file.link_create link /a b, file.link_delete link /a b");
}

/// Whoever has the link learns what became of the own file, and of nothing else.
#[test]
fn what_is_sent_is_the_owners_and_tells_the_sender_nothing_else() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.ask_for_files(&ann, json!({"upload_to": "/in/box"}));
    // Whoever has a link has no API key.
    let guarded = api.beside(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "a-key-for-tests-0123456789abcdef"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
    ]);
    guarded.get("/links", &ann).expect(401);
    let form =
        file_form("../b\u{202e}ill.txt", "text/plain", b"hello").field("description", "from me");
    let form = form.field("folder", "/else/../where").field("sha256", &sha256(b"hello"));
    let request = guarded.send_request(&link, form).header("Authorization", "Bearer nobody's");
    let answer = request.send().expect(201);
    assert_eq!(
        answer.json(),
        json!({"filename": "bill.txt", "file_size": 5, "file_hash": sha256(b"hello")})
    );
    for header in ["Location", "ETag", "Last-Modified"] {
        assert!(!answer.has_header(header), "{header}");
    }
    let files = api.all_files(&ann);
    let [file] = &files[..] else { panic!("{files:?}") };
    let id: String = api.database.value("SELECT id::text FROM file_links");
    for (name, value) in [
        ("filename", "bill.txt"),
        ("folder", "/in/box"),
        ("description", "from me"),
        ("user_id", ann.id()),
        ("received_by", &id),
    ] {
        assert_eq!(file[name], value, "{name}");
    }
    let id = file["id"].as_str().expect("an id");
    assert_eq!(api.download(&ann, id).expect(200).bytes, b"hello");
    assert_eq!(api.file_stats(&ann), (1, 5));
    // The link opens nothing, and no other link receives anything.
    let bare = api.request_at_root("GET", &link).header("Accept", "text/html").send();
    let page = format!("/console/send#{}", link.rsplit('/').next().expect("a token"));
    assert_eq!(
        (bare.expect(303).header("Location"), bare_vary(&api, &link)),
        (&*page, "Accept".to_owned())
    );
    api.open_link(&link).refused(404, "Link not found");
    for below in [id, "files", "in.zip", "bill.txt", &format!("{id}/bill.txt")] {
        for query in ["", "?about=true"] {
            let path = format!("{link}/{below}{query}");
            let answer = api.open_link(&path).case(&path);
            assert!([404, 405].contains(&answer.status), "{path}: {}", answer.status);
        }
    }
    let to_folder = api.new_link_to(&ann, json!({"folder": "/in"}));
    let to_file = api.new_link(&ann, id);
    for other in [&*to_folder, &to_file, "/api/v1/links/x", "/api/v1/links/a%2Fb"] {
        api.send_file(other, "a.txt", b"a").case(other).refused(404, "Link not found");
    }
    assert_eq!(api.file_stats(&ann), (1, 5));
}

fn bare_vary(api: &Server, link: &str) -> String {
    api.request_at_root("GET", link).header("Accept", "text/html").send().header("Vary").to_owned()
}

#[test]
fn a_form_is_refused_as_that_of_an_upload() {
    let (api, ann) = Server::with_settled(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "1048576")], "ann");
    let link = api.ask_for_files(&ann, json!({}));
    let send = |form: Form| api.send_request(&link, form).send();
    send(Form::default()).invalid(&[("body.file", "missing")]);
    send(file_form("..", "text/plain", b"a")).invalid(&[("body.file", "value_error")]);
    let two = file_form("a.txt", "text/plain", b"a").file("b.txt", "text/plain", b"b");
    send(two).invalid(&[("body.file", "value_error")]);
    let long = file_form("a.txt", "text/plain", b"a").field("description", &"x".repeat(4097));
    send(long).invalid(&[("body.description", "string_too_long")]);
    let other = file_form("a.txt", "text/plain", b"a").field("sha256", &sha256(b"b"));
    send(other).invalid(&[("body.file", "value_error")]);
    send(file_form("a.png", "image/png", b"<!DOCTYPE html><html></html>"))
        .refused(415, "File type not allowed");
    let large = vec![b'x'; 1048577];
    send(file_form("a.txt", "text/plain", &large))
        .refused(413, "File size exceeds maximum limit (1MB)");
    let request = api.send_request(&link, file_form("a.txt", "text/plain", b"a"));
    request
        .header("Idempotency-Key", "a key")
        .send()
        .invalid(&[("header.Idempotency-Key", "value_error")]);
    assert_eq!(
        (api.about_link(&link)["files_left"].clone(), api.file_stats(&ann)),
        (json!(100), (0, 0))
    );
    assert!(api.data.contents().is_empty());
}

#[test]
fn a_link_ends_as_all_links_do() {
    type End = fn(&Server, &Tokens);
    let ends: [(&str, End); 4] = [
        ("expiry", |api, _| api.database.run("UPDATE file_links SET expires_at = now()")),
        ("password", |api, ann| drop(api.change_password(ann, PASSWORD, NEW_PASSWORD).expect(200))),
        ("inactive", |api, _| api.database.run("UPDATE users SET is_active = false")),
        ("deleted", |api, ann| drop(api.delete_me(ann, PASSWORD).expect(204))),
    ];
    for (name, end) in ends {
        let (api, ann) = Server::with_settled(&[], "ann");
        let link = api.ask_for_files(&ann, json!({}));
        api.send_file(&link, "a.txt", b"a").expect(201);
        // A body that is on its way when the link ends comes in vain.
        let (mut late, rest) = api.begin_send(&link, "", 100_000);
        wait_until(|| under_way(&api) > 0);
        end(&api, &ann);
        late.write_all(&rest).expect("the rest is sent");
        assert_eq!(status_of(late), 404, "{name}");
        api.send_file(&link, "c.txt", b"c").case(name).refused(404, "Link not found");
        assert_eq!(api.database.count("files WHERE filename <> 'a.txt'"), 0, "{name}");
    }
}

#[test]
fn a_young_account_asks_nobody_for_files_while_anyone_may_register() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let ask = |sender: &Tokens| api.post("/links", sender, json!({"upload_to": "/"}));
    ask(&ann).refused(403, "Not enough permissions").has(json!({"reason": "YOUNG_ACCOUNT"}));
    api.post("/links", &ann, json!({"folder": "/"})).expect(201);
    api.database.run("UPDATE users SET is_self_registered = false");
    ask(&ann).expect(201);
    api.database.run("UPDATE users SET is_self_registered = true");
    let closed = api.beside(&[("CLOAKROOM_REGISTRATION", "off")]);
    closed.post("/links", &ann, json!({"upload_to": "/"})).expect(201);
    api.settle();
    ask(&ann).expect(201);
}

#[test]
fn a_file_that_is_sent_again_with_its_key_is_answered_as_at_first() {
    let proxied = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");
    let (api, ann) = Server::with_settled(&[proxied], "ann");
    let link = api.ask_for_files(&ann, json!({"max_files": 2}));
    let send = |from: &str, name: &str, content: &[u8]| {
        let request = api.send_request(&link, file_form(name, "text/plain", content));
        request.header("Idempotency-Key", "k").header("X-Forwarded-For", from).send()
    };
    let first = send("192.0.2.1", "a.txt", b"hello").expect(201);
    let again = send("192.0.2.77", "a.txt", b"hello").expect(201);
    assert_eq!((again.json(), again.header("Idempotency-Replayed")), (first.json(), "true"));
    send("192.0.2.1", "b.txt", b"hello").invalid(&[("header.Idempotency-Key", "value_error")]);
    // Another network has keys of its own, and so have another link and the owner.
    let other = api.ask_for_files(&ann, json!({}));
    let request = api.send_request(&other, file_form("b.txt", "text/plain", b"by another"));
    request
        .header("Idempotency-Key", "k")
        .header("X-Forwarded-For", "192.0.2.1")
        .send()
        .expect(201);
    send("198.51.100.1", "b.txt", b"other").expect(201);
    let own = api.upload_request(&ann, file_form("c.txt", "text/plain", b"own").bytes());
    own.header("Idempotency-Key", "k").header("X-Forwarded-For", "192.0.2.1").send().expect(201);
    // The link is full, and a known key is still known.
    send("203.0.113.1", "c.txt", b"more").refused(507, "Storage quota exceeded");
    assert_eq!(send("192.0.2.1", "a.txt", b"hello").expect(201).json(), first.json());
    assert_eq!(api.database.count("files WHERE received_by IS NOT NULL"), 3);
    // A link has ten thousand keys, which are none of its owner's.
    api.database.run(
        "INSERT INTO idempotency_keys SELECT id, 'x' || n, id, '', 0, now()
         FROM file_links, generate_series(1, 10000 - received_files) n",
    );
    let refused = send("203.0.113.1", "d.txt", b"more").refused(429, "Rate limit exceeded");
    assert!(refused.header("Retry-After").parse::<u64>().is_ok_and(|seconds| seconds > 80_000));
}
