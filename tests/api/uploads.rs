//! Uploading, listing, changing and deleting files.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::forms::{BOUNDARY, Form, PNG, file, id};
use crate::harness::{Server, parallel};

/// Members of an object, sorted.
fn members(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn an_upload_is_answered_with_all_about_it_and_downloads_the_same() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let content = [PNG, &[0, 255, b'\r', b'\n', b'-', b'-'].repeat(50_000)].concat();
    let form = file("cat.png", "image/png", &content).field("description", "A cat");
    let uploaded = server.upload(&ann.access, form).expect(201).json();
    assert_eq!(
        members(&uploaded),
        [
            "content_type",
            "description",
            "file_hash",
            "file_size",
            "filename",
            "id",
            "is_public",
            "original_filename",
            "updated_at",
            "upload_date",
            "user_id"
        ]
    );
    let hash: String = Sha256::digest(&content).iter().map(|b| format!("{b:02x}")).collect();
    for (member, expected) in [
        ("content_type", json!("image/png")),
        ("description", json!("A cat")),
        ("file_hash", json!(format!("sha256:{hash}"))),
        ("file_size", json!(content.len())),
        ("filename", json!("cat.png")),
        ("original_filename", json!("cat.png")),
        ("is_public", json!(false)),
        ("user_id", json!(ann.id())),
    ] {
        assert_eq!(uploaded[member], expected, "{member}");
    }
    let id = id(&uploaded);
    assert_eq!(server.get(&format!("/uploads/{id}/"), &ann.access).expect(200).json(), uploaded);
    let downloaded = server.download(&ann.access, &id).send().expect(200);
    assert!(downloaded.bytes == content);
    let stats = &server.get("/users/me", &ann.access).expect(200).json()["stats"];
    assert_eq!(*stats, json!({"total_uploads": 1, "total_storage_used": content.len()}));
    assert_eq!(server.contents(), [server.data.0.join("files").join(&id)]);
}

#[test]
fn parts_come_in_any_order_and_the_first_of_a_name_counts() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    for (form, reason) in [
        (file("a.txt", "text/plain", b"one").field("description", "d"), "as usual"),
        (
            Form::default().field("description", "d").file("a.txt", "text/plain", b"one"),
            "the file last",
        ),
        (
            Form::default()
                .field("x", &"y".repeat(50_000))
                .field("description", "d")
                .file("a.txt", "text/plain", b"one")
                .field("y", ""),
            "unknown parts",
        ),
        (
            file("a.txt", "text/plain", b"one")
                .file("b.txt", "text/plain", b"two")
                .field("description", "d")
                .field("description", "e"),
            "parts twice",
        ),
        (
            Form::default().field("description", "d").part(
                "X-1: a\r\nX-2: b\r\nX-3: c\r\nX-4: d\r\ncontent-type: TEXT/plain; charset=x\r\n\
                 CONTENT-DISPOSITION: form-data; filename=\"a.txt\"; name=\"file\"",
                b"one",
            ),
            "many headers, the filename first",
        ),
        (
            Form::default()
                .part("Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"", b"one")
                .field("description", "d"),
            "no type",
        ),
    ] {
        let file = server.upload(&ann.access, form).expect(201).json();
        let facts =
            (&file["filename"], &file["description"], &file["content_type"], &file["file_size"]);
        assert_eq!(
            facts,
            (&json!("a.txt"), &json!("d"), &json!("text/plain"), &json!(3)),
            "{reason}"
        );
    }
}

#[test]
fn bodies_that_are_no_upload_are_refused_and_leave_nothing() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let good = file("a.txt", "text/plain", b"one");
    let truncated = |left: usize| {
        let bytes = good.clone().bytes();
        bytes[..bytes.len() - left].to_vec()
    };
    let unnamed = "Content-Disposition: form-data; name=\"file\"";
    for (body, expected, reason) in [
        (Form::default().bytes(), ("body.file", "missing"), "no part"),
        (Form::default().field("description", "d").bytes(), ("body.file", "missing"), "no file"),
        (Form::default().part(unnamed, b"one").bytes(), ("body.file", "missing"), "no filename"),
        (
            Form::default().part(unnamed, b"one").file("a", "text/plain", b"").bytes(),
            ("body.file", "missing"),
            "the first file counts, and it has no name",
        ),
        (file("", "text/plain", b"one").bytes(), ("body.file", "value_error"), "an empty filename"),
        (
            file("..", "text/plain", b"one").bytes(),
            ("body.file", "value_error"),
            "no name of a file",
        ),
        (file("a/", "text/plain", b"one").bytes(), ("body.file", "value_error"), "a directory"),
        (
            good.clone().field("description", &"d".repeat(4097)).bytes(),
            ("body.description", "string_too_long"),
            "a long description",
        ),
        (
            good.clone().field("description", &"\u{1f600}".repeat(4097)).bytes(),
            ("body.description", "string_too_long"),
            "a long description of long characters",
        ),
        (
            good.clone().field("description", &"d".repeat(5_000_000)).bytes(),
            ("body.description", "string_too_long"),
            "a description of 5 MB",
        ),
        (
            good.clone().field("description", "a\0b").bytes(),
            ("body.description", "value_error"),
            "NUL",
        ),
        (Vec::new(), ("body", "value_error"), "empty"),
        (b"{}".to_vec(), ("body", "value_error"), "JSON"),
        (truncated(4), ("body", "value_error"), "half a last delimiter"),
        (truncated(18), ("body", "value_error"), "no last delimiter"),
        (truncated(30), ("body", "value_error"), "no delimiter"),
        (b"--other\r\n\r\n\r\n--other--\r\n".to_vec(), ("body", "value_error"), "another boundary"),
        (
            Form::default().part("no header", b"").bytes(),
            ("body", "value_error"),
            "a head that is none",
        ),
        (
            Form::default().part(&format!("X: {}", "x".repeat(9000)), b"").bytes(),
            ("body", "value_error"),
            "a long head",
        ),
    ] {
        let answer = server.upload_request(&ann.access, body).send();
        assert_eq!(answer.status, 422, "{reason}");
        answer.invalid(&[expected]);
        assert_eq!(server.contents(), <[std::path::PathBuf; 0]>::default(), "{reason}");
    }
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=a-boundary",
        "application/json",
    ] {
        let request =
            server.api("POST", "/uploads").bearer(&ann.access).header("Content-Type", content_type);
        request.body(good.clone().bytes()).send().invalid(&[("body", "value_error")]);
    }
    // All faults of a form together.
    let form = file("", "text/plain", b"one").field("description", &"d".repeat(4097));
    server
        .upload(&ann.access, form)
        .invalid(&[("body.file", "value_error"), ("body.description", "string_too_long")]);
    let records = server.database.value::<i64>("SELECT count(*) FROM files");
    assert_eq!((records, server.contents().len()), (0, 0));
}

#[test]
fn a_description_has_room_for_4096_characters() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    for text in ["d".repeat(4096), "\u{1f600}".repeat(4096), String::new(), " as given ".into()] {
        let form = file("a.txt", "text/plain", b"one").field("description", &text);
        assert_eq!(server.upload(&ann.access, form).expect(201).json()["description"], json!(text));
    }
}

#[test]
fn nobody_elses_name_reaches_the_file_system() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let long = "x".repeat(300);
    for (sent, kept) in [
        ("../../etc/passwd", "passwd".to_owned()),
        ("/etc/passwd", "passwd".into()),
        ("C:\\Users\\ann\\a.txt", "a.txt".into()),
        ("a;b=c.txt", "a;b=c.txt".into()),
        ("say \\\"hi\\\".txt", "say \"hi\".txt".into()),
        ("%41.txt", "%41.txt".into()),
        ("a\tb\u{7}.txt", "ab.txt".into()),
        ("\u{202e}gpj.\u{1f600}", "\u{202e}gpj.\u{1f600}".into()),
        ("  .hidden  ", ".hidden".into()),
        (&format!("{long}.tar.gz"), format!("{}.gz", "x".repeat(252))),
        (&long, "x".repeat(255)),
    ] {
        let answer = server.upload(&ann.access, file(sent, "text/plain", b"x"));
        // Control characters other than the tab cannot stand in a part's head.
        if sent.contains('\u{7}') {
            answer.invalid(&[("body", "value_error")]);
            continue;
        }
        let uploaded = answer.expect(201).json();
        assert_eq!(
            (&uploaded["filename"], &uploaded["original_filename"]),
            (&json!(kept), &json!(kept)),
            "{sent}"
        );
        assert!(server.data.0.join("files").join(id(&uploaded)).is_file());
    }
    let names: Vec<_> =
        std::fs::read_dir(&server.data.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn contents_are_for_the_eyes_of_the_service_only() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    server.upload_text(&ann.access, "a.txt", "one");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.data.0.join("files")), 0o700);
    assert_eq!(mode(&server.data.0.join("tmp")), 0o700);
    assert_eq!(mode(&server.contents()[0]), 0o600);
}

#[test]
fn types_are_those_of_the_list_and_what_they_say() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let html = b"<!DOCTYPE html><script>alert(1)</script>".as_slice();
    for (content_type, content, status, reason) in [
        ("image/png", PNG, 201, "what it says"),
        ("IMAGE/Png; q=1", PNG, 201, "case and parameters"),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF", 201, "another one"),
        ("application/pdf", b"%PDF-1.7\n", 201, "another one"),
        ("image/png", b"", 201, "nothing to recognise"),
        ("image/png", b"unknown", 201, "not recognised"),
        ("text/plain", html, 201, "text may be anything"),
        ("text/plain", b"BMW sales", 201, "text may begin like a picture"),
        ("image/png", html, 415, "a page"),
        ("image/jpeg", PNG, 415, "another picture"),
        ("text/plain", PNG, 415, "no text"),
        ("text/html", html, 415, "not in the list"),
        ("image/svg+xml", b"<svg/>", 415, "not in the list"),
        ("image/*", PNG, 415, "no type"),
        ("", b"x", 415, "empty"),
        (&"x".repeat(200), b"x", 415, "nonsense"),
    ] {
        let answer = server.upload(&ann.access, file("a", content_type, content));
        assert_eq!(answer.status, status, "{content_type}: {reason}");
        if status == 415 {
            answer.refused(415, "File type not allowed");
        }
    }
    assert_eq!(server.contents().len(), 8);
    let long = [PNG, &vec![0; 1_000_000]].concat();
    server
        .upload(&ann.access, file("a", "text/plain", &long))
        .refused(415, "File type not allowed");
    let own = Server::start(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", " Text/CSV ,image/png")]);
    let bo = own.sign_up("bob");
    own.upload(&bo.access, file("a", "text/csv", b"a,b")).expect(201);
    own.upload(&bo.access, file("a", "text/plain", b"a,b")).refused(415, "File type not allowed");
}

#[test]
fn a_file_may_have_the_limit_and_no_byte_more() {
    for (settings, limit, message) in [
        (&[][..], 10_485_760, "File size exceeds maximum limit (10MB)"),
        (
            &[("CLOAKROOM_MAX_UPLOAD_SIZE", "1000")],
            1000,
            "File size exceeds maximum limit (1000 bytes)",
        ),
        (&[("MAX_UPLOAD_SIZE", "2097152")], 2_097_152, "File size exceeds maximum limit (2MB)"),
    ] {
        let server = Server::start(settings);
        let ann = server.sign_up("ann");
        for (size, status) in
            [(0, 201), (limit - 1, 201), (limit, 201), (limit + 1, 413), (limit + 100_000, 413)]
        {
            let answer = server.upload(&ann.access, file("a.txt", "text/plain", &vec![b'x'; size]));
            assert_eq!(answer.status, status, "{size} of {limit}");
            if status == 413 {
                let body = answer.refused(413, message).json();
                assert_eq!(body["error_code"], "PAYLOAD_TOO_LARGE");
            }
        }
        assert_eq!(server.contents().len(), 3);
    }
}

#[test]
fn a_body_announced_too_large_is_refused_before_it_is_sent() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let stream = server.begin_upload(&ann.access, 10_485_760 + 1_000_000, b"");
    assert_eq!(crate::forms::status(stream), 413);
}

#[test]
fn quotas_are_exact_under_parallel_uploads() {
    let thousand = vec![b'x'; 1000];
    let upload =
        |server: &Server, token: &str| server.upload(token, file("a.txt", "text/plain", &thousand));
    // A user's.
    let server = Server::start(&[("CLOAKROOM_USER_STORAGE_QUOTA", "7000")]);
    let (ann, bo) = (server.sign_up("ann"), server.sign_up("bob"));
    let statuses = parallel(20, |_| upload(&server, &ann.access).status);
    let of = |status| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((of(201), of(507)), (7, 13), "{statuses:?}");
    let answer = upload(&server, &ann.access).refused(507, "Storage quota exceeded");
    assert_eq!(answer.json()["error_code"], "STORAGE_QUOTA_EXCEEDED");
    assert_eq!(server.contents().len(), 7, "a refused upload leaves no bytes");
    upload(&server, &bo.access).expect(201);
    server.upload(&ann.access, file("a.txt", "text/plain", b"")).expect(201);
    // The service's, over several users.
    let server = Server::start(&[("CLOAKROOM_STORAGE_QUOTA", "7999")]);
    let users: Vec<_> = (0..4).map(|i| server.sign_up(&format!("user{i}")).access).collect();
    let statuses = parallel(24, |i| upload(&server, &users[i % 4]).status);
    let of = |status| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((of(201), of(507)), (7, 17), "{statuses:?}");
    assert_eq!(server.contents().len(), 7);
    assert_eq!(server.database.value::<i64>("SELECT used FROM storage"), 7000);
    assert_eq!(
        server.database.value::<i64>("SELECT sum(total_storage_used)::bigint FROM users"),
        7000
    );
}

#[test]
fn uploads_and_deletions_at_once_keep_the_totals_right() {
    let server = Server::start(&[]);
    let users: Vec<_> = (0..3).map(|i| server.sign_up(&format!("user{i}")).access).collect();
    parallel(12, |i| {
        let token = &users[i % 3];
        for _ in 0..10 {
            let id = server.upload_text(token, "a.txt", "four");
            if i % 2 == 0 {
                server.api("DELETE", &format!("/uploads/{id}")).bearer(token).send().expect(204);
            }
        }
    });
    assert_eq!(server.database.value::<i64>("SELECT used FROM storage"), 60 * 4);
    for token in &users {
        let stats = &server.get("/users/me", token).json()["stats"];
        assert_eq!(*stats, json!({"total_uploads": 20, "total_storage_used": 80}));
    }
    assert_eq!(server.contents().len(), 60);
}

#[test]
fn the_list_pages_searches_filters_and_sorts() {
    let server = Server::start(&[]);
    let (ann, bo) = (server.sign_up("ann"), server.sign_up("bob"));
    for (name, content_type, size, description) in [
        ("b.txt", "text/plain", 30, "Holiday 100%"),
        ("C.png", "image/png", 10, "a_b"),
        ("a.txt", "text/plain", 20, ""),
        ("d.pdf", "application/pdf", 20, "HOLIDAY"),
    ] {
        let form = file(name, content_type, &vec![b'x'; size]);
        let form =
            if description.is_empty() { form } else { form.field("description", description) };
        server.upload(&ann.access, form).expect(201);
    }
    server.upload_text(&bo.access, "bo.txt", "holiday");
    let list = |query: &str| {
        let body = server.get(&format!("/uploads{query}"), &ann.access).expect(200).json();
        let names: Vec<_> = body["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["filename"].as_str().unwrap().to_owned())
            .collect();
        (names.join(" "), body["total"].as_i64().unwrap(), body["pages"].as_i64().unwrap())
    };
    for (query, names, total, pages) in [
        ("", "d.pdf a.txt C.png b.txt", 4, 1),
        ("?size=3", "d.pdf a.txt C.png", 4, 2),
        ("?size=3&page=2", "b.txt", 4, 2),
        ("?size=3&page=3", "", 4, 2),
        ("?size=100&page=9223372036854775807", "", 4, 1),
        ("?sort_order=asc", "b.txt C.png a.txt d.pdf", 4, 1),
        ("?sort_by=uploaded_at&sort_order=desc&size=1", "d.pdf", 4, 4),
        ("?sort_by=filename&sort_order=asc", "C.png a.txt b.txt d.pdf", 4, 1),
        ("?sort_by=filename", "d.pdf b.txt a.txt C.png", 4, 1),
        ("?search=HOLI", "d.pdf b.txt", 2, 1),
        ("?search=.TXT&size=1", "a.txt", 2, 2),
        ("?search=.TXT&size=1&page=9223372036854775807", "", 2, 2),
        ("?search=%25", "b.txt", 1, 1),
        ("?search=_", "C.png", 1, 1),
        ("?search=none", "", 0, 0),
        ("?search=", "d.pdf a.txt C.png b.txt", 4, 1),
        ("?content_type=text/plain", "a.txt b.txt", 2, 1),
        ("?content_type=Text/Plain", "a.txt b.txt", 2, 1),
        ("?content_type=text/plain&search=holiday", "b.txt", 1, 1),
        ("?content_type=text", "", 0, 0),
        ("?content_type=", "d.pdf a.txt C.png b.txt", 4, 1),
    ] {
        assert_eq!(list(query), (names.to_owned(), total, pages), "{query}");
    }
    // Two have 20 bytes: ties are in the order of ids.
    let by_size = |order: &str| {
        let body = server
            .get(&format!("/uploads?sort_by=file_size&sort_order={order}"), &ann.access)
            .expect(200)
            .json();
        let items = body["items"].as_array().unwrap().clone();
        items.iter().map(|f| (f["file_size"].as_i64().unwrap(), id(f))).collect::<Vec<_>>()
    };
    let mut ascending = by_size("asc");
    assert!(ascending.is_sorted(), "{ascending:?}");
    ascending.sort_by_key(|(size, id)| (-size, id.clone()));
    assert_eq!(by_size("desc"), ascending);
    let body = server.get("/uploads/?size=2", &ann.access).expect(200).json();
    assert_eq!(members(&body), ["items", "page", "pages", "size", "total"]);
    assert_eq!((&body["page"], &body["size"]), (&json!(1), &json!(2)));
    server.get("/uploads?page=0&size=101&sort_by=x&sort_order=up&search=%00", &ann.access).invalid(
        &[
            ("query.page", "value_error"),
            ("query.size", "value_error"),
            ("query.sort_by", "enum"),
            ("query.sort_order", "enum"),
            ("query.search", "value_error"),
        ],
    );
    for query in ["page=x", "size=", "page=9223372036854775808", "size=1.5"] {
        let name = query.split('=').next().unwrap();
        let answer = server.get(&format!("/uploads?{query}"), &ann.access);
        answer.invalid(&[(&format!("query.{name}"), "int_parsing")]);
    }
}

#[test]
fn a_file_is_its_owners_and_a_public_one_everybodys_to_read() {
    let server = Server::start(&[]);
    let (ann, bo, root) =
        (server.sign_up("ann"), server.sign_up("bob"), server.sign_up_admin("root"));
    let secret = server.upload_text(&ann.access, "a.txt", "secret");
    let public = server.upload_text(&ann.access, "b.txt", "public");
    let answer = server
        .api("PUT", &format!("/uploads/{public}"))
        .bearer(&ann.access)
        .json(json!({"is_public": true}))
        .send();
    assert_eq!(answer.expect(200).json()["is_public"], json!(true));
    let unknown = "00000000-0000-4000-8000-000000000000".to_owned();
    for (who, token) in [("another user", &bo.access), ("an admin", &root.access)] {
        for (method, path, of_secret, of_public) in [
            ("GET", "", 403, 200),
            ("GET", "/download", 403, 200),
            ("PUT", "", 403, 403),
            ("DELETE", "", 403, 403),
        ] {
            for (id, status) in [(&secret, of_secret), (&public, of_public), (&unknown, 404)] {
                let answer = server
                    .api(method, &format!("/uploads/{id}{path}"))
                    .bearer(token)
                    .json(json!({"filename": "x"}))
                    .send();
                assert_eq!(answer.status, status, "{who}: {method} {path}");
                match status {
                    403 => drop(answer.refused(403, "Not enough permissions")),
                    404 => drop(answer.refused(404, "File not found")),
                    _ => {}
                }
            }
        }
    }
    for path in ["/uploads/x", "/uploads/x/download", "/uploads/1"] {
        server.get(path, &ann.access).invalid(&[("path.file_id", "uuid_parsing")]);
        server.api("GET", path).send().refused(401, "Authentication required");
    }
    assert_eq!(server.get("/uploads", &bo.access).json()["total"], json!(0));
    assert_eq!(
        server.api("PATCH", "/uploads").send().expect(405).header("Allow"),
        "GET, HEAD, POST"
    );
}

#[test]
fn a_change_is_of_what_is_given() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let form = file("a.txt", "text/plain", b"one").field("description", "d");
    let before = server.upload(&ann.access, form).expect(201).json();
    let path = format!("/uploads/{}", id(&before));
    let put = |body: Value| server.api("PUT", &path).bearer(&ann.access).json(body).send();
    let after = put(json!({"filename": "dir/b.txt"})).expect(200).json();
    assert_eq!(
        (&after["filename"], &after["original_filename"], &after["description"]),
        (&json!("b.txt"), &json!("a.txt"), &json!("d"))
    );
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(after["upload_date"], before["upload_date"]);
    for (body, filename, description) in [
        (json!({}), "b.txt", "d"),
        (
            json!({"filename": null, "description": null, "is_public": null, "file_size": 0}),
            "b.txt",
            "d",
        ),
        (json!({"description": "e"}), "b.txt", "e"),
        (json!({"description": ""}), "b.txt", ""),
        (json!({"filename": "c".repeat(255)}), &"c".repeat(255), ""),
    ] {
        let after = put(body).expect(200).json();
        assert_eq!(
            (&after["filename"], &after["description"]),
            (&json!(filename), &json!(description))
        );
        assert_eq!((&after["file_size"], &after["is_public"]), (&json!(3), &json!(false)));
    }
    put(json!({"filename": "x".repeat(256), "description": "x".repeat(4097), "is_public": "yes"}))
        .invalid(&[
            ("body.filename", "string_too_long"),
            ("body.description", "string_too_long"),
            ("body.is_public", "bool_type"),
        ]);
    put(json!({"filename": "..", "description": 1, "is_public": 1})).invalid(&[
        ("body.filename", "value_error"),
        ("body.description", "string_type"),
        ("body.is_public", "bool_type"),
    ]);
}

#[test]
fn a_deleted_file_is_gone_and_makes_room() {
    let server = Server::start(&[("CLOAKROOM_USER_STORAGE_QUOTA", "10")]);
    let ann = server.sign_up("ann");
    let id = server.upload_text(&ann.access, "a.txt", "0123456789");
    server.upload(&ann.access, file("b.txt", "text/plain", b"1")).expect(507);
    let delete = || server.api("DELETE", &format!("/uploads/{id}")).bearer(&ann.access).send();
    let statuses = parallel(4, |_| delete().status);
    assert_eq!(statuses.iter().filter(|s| **s == 204).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|s| **s == 404).count(), 3, "{statuses:?}");
    assert_eq!(server.contents().len(), 0);
    server.get(&format!("/uploads/{id}"), &ann.access).refused(404, "File not found");
    server.download(&ann.access, &id).send().refused(404, "File not found");
    server.upload_text(&ann.access, "b.txt", "0123456789");
}

#[test]
fn a_file_that_is_deleted_while_others_read_it_is_there_or_not() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let ids: Vec<_> = (0..40).map(|_| server.upload_text(&ann.access, "a.txt", "one")).collect();
    parallel(4, |i| {
        for id in &ids {
            if i == 0 {
                server
                    .api("DELETE", &format!("/uploads/{id}"))
                    .bearer(&ann.access)
                    .send()
                    .expect(204);
            } else {
                let answer = server.download(&ann.access, id).send();
                assert!(
                    (answer.status, answer.bytes.as_slice()) == (200, b"one")
                        || answer.status == 404,
                    "{answer:?}"
                );
            }
        }
    });
    assert_eq!(server.contents().len(), 0);
}

#[test]
fn uploads_have_a_rate_of_their_own() {
    let server = Server::start(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")]);
    let (ann, bo) = (server.sign_up("ann"), server.sign_up("bob"));
    for left in (0..10).rev() {
        let answer = server.upload(&ann.access, file("a.txt", "text/plain", b"x")).expect(201);
        let limits = (answer.header("X-RateLimit-Limit"), answer.header("X-RateLimit-Remaining"));
        assert_eq!(limits, ("10", &*left.to_string()));
    }
    let answer = server.upload(&ann.access, file("a.txt", "text/plain", b"x"));
    answer.refused(429, "Rate limit exceeded");
    server.upload(&bo.access, file("a.txt", "text/plain", b"x")).expect(201);
    assert_eq!(server.get("/uploads", &ann.access).expect(200).header("X-RateLimit-Limit"), "100");
}

#[test]
fn an_upload_without_a_token_is_refused_first() {
    let server = Server::start(&[]);
    let request = server
        .api("POST", "/uploads")
        .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"));
    request.body(file("a", "x/y", b"").bytes()).send().refused(401, "Authentication required");
    let open = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    open.upload_request("", file("a.txt", "text/plain", b"x").bytes()).send().expect(201);
    assert_eq!(open.get("/uploads", "").expect(200).json()["total"], json!(1));
}
