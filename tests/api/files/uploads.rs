//! Uploading: forms, names, types, sizes and quotas.

use std::collections::BTreeMap;

use crate::harness::*;

#[test]
fn an_upload_is_answered_with_all_about_it_and_downloads_the_same() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = [PNG, &[0, 255, b'\r', b'\n', b'-', b'-'].repeat(50_000)].concat();
    let form = file_form("cat.png", "image/png", &content).field("description", "A cat");
    let uploaded = api.upload_form(&ann, form).expect(201).has(json!({
        "content_type": "image/png",
        "description": "A cat",
        "file_hash": sha256(&content),
        "file_size": content.len(),
        "filename": "cat.png",
        "folder": "/",
        "original_filename": "cat.png",
        "is_public": false,
        "received_by": null,
        "user_id": ann.id(),
    }));
    assert_eq!(
        uploaded.member_names().join(" "),
        "content_type description file_hash file_size filename folder id is_public original_filename \
         received_by updated_at upload_date uploaded_at user_id"
    );
    let id = uploaded.id();
    assert_eq!(api.get(&format!("/uploads/{id}/"), &ann).expect(200).json(), uploaded.json());
    assert!(api.download(&ann, &id).expect(200).bytes == content);
    assert_eq!(api.file_stats(&ann), (1, content.len() as i64));
    assert_eq!(api.data.contents(), [api.data.content(&id)]);
    // Only the user of the service can read what is stored.
    assert_eq!(mode(&api.data.join("files")), 0o700);
    assert_eq!(mode(&api.data.join("tmp")), 0o700);
    assert_eq!(mode(&api.data.contents()[0]), 0o600);
}

#[test]
fn parts_come_in_any_order_and_the_first_description_counts() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let form = Form::default;
    let file = || file_form("a.txt", "text/plain", b"one");
    for (form, reason) in [
        (file().field("description", "d"), "the usual order"),
        (form().field("description", "d").file("a.txt", "text/plain", b"one"), "the file last"),
        (
            form()
                .field("x", &"y".repeat(50_000))
                .field("description", "d")
                .file("a.txt", "text/plain", b"one")
                .field("y", ""),
            "unknown parts",
        ),
        (file().field("description", "d").field("description", "e"), "two descriptions"),
        (
            form().field("description", "d").part(
                "X-1: a\r\nX-2: b\r\nX-3: c\r\nX-4: d\r\ncontent-type: TEXT/plain; charset=x\r\n\
                 CONTENT-DISPOSITION: form-data; filename=\"a.txt\"; name=\"file\"",
                b"one",
            ),
            "many headers, and the filename before the name",
        ),
        (
            form()
                .part("Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\"", b"one")
                .field("description", "d"),
            "no type: text/plain is the default (RFC 7578, 4.4)",
        ),
    ] {
        let expected = json!({"filename": "a.txt", "description": "d", "content_type": "text/plain", "file_size": 3});
        api.upload_form(&ann, form).case(reason).expect(201).has(expected);
    }
    for text in [&*"d".repeat(4096), &"\u{1f600}".repeat(4096), " as given "] {
        let form = file().field("description", text);
        api.upload_form(&ann, form).expect(201).has(json!({ "description": text }));
    }
}

#[test]
fn bodies_that_are_no_upload_are_refused_and_leave_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let good = || file_form("a.txt", "text/plain", b"one");
    let described = |text: &str| good().field("description", text).bytes();
    let truncated = |left: usize| {
        let bytes = good().bytes();
        bytes[..bytes.len() - left].to_vec()
    };
    let part = |headers: &str| Form::default().part(headers, b"one");
    let unnamed = "Content-Disposition: form-data; name=\"file\"";
    let (no_file, bad_name) = (("body.file", "missing"), ("body.file", "value_error"));
    let (malformed, too_long) = (("body", "value_error"), ("body.description", "string_too_long"));
    for (body, expected, reason) in [
        (Form::default().bytes(), no_file, "no part"),
        (Form::default().field("description", "d").bytes(), no_file, "no file"),
        (part(unnamed).bytes(), no_file, "no filename"),
        (file_form("", "text/plain", b"one").bytes(), bad_name, "an empty filename"),
        (file_form("..", "text/plain", b"one").bytes(), bad_name, "the parent directory"),
        (file_form("a/", "text/plain", b"one").bytes(), bad_name, "a directory"),
        (described(&"d".repeat(4097)), too_long, "a long description"),
        (described(&"\u{1f600}".repeat(4097)), too_long, "a long description of long characters"),
        (described(&"d".repeat(5_000_000)), too_long, "a description of 5 MB"),
        (described("a\0b"), ("body.description", "value_error"), "NUL"),
        (described("a\u{7}b"), ("body.description", "value_error"), "a control character"),
        (described("a\u{202e}b"), ("body.description", "value_error"), "text in the other direction"),
        (
            good().part("Content-Disposition: form-data; name=\"description\"", b"caf\xe9").bytes(),
            ("body.description", "value_error"),
            "a description that is not UTF-8",
        ),
        (
            [b"--a-boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"caf\xe9.txt\"\r\n\r\n\
               one\r\n--a-boundary--\r\n".as_slice()]
            .concat(),
            malformed,
            "a filename that is not UTF-8",
        ),
        (Vec::new(), malformed, "empty"),
        (b"{}".to_vec(), malformed, "JSON"),
        (truncated(4), malformed, "half a last delimiter"),
        (truncated(18), malformed, "no last delimiter"),
        (truncated(30), malformed, "no delimiter"),
        (b"--other\r\n\r\n\r\n--other--\r\n".to_vec(), malformed, "another boundary"),
        (part("no header").bytes(), malformed, "a part whose head is no header"),
        (part(&format!("X: {}", "x".repeat(9000))).bytes(), malformed, "a part with a long head"),
    ] {
        api.upload_request(&ann, body).send().case(reason).invalid(&[expected]);
        assert!(api.data.contents().is_empty(), "{reason}");
    }
    for content_type in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=a-boundary",
        "application/json",
    ] {
        let request = api.request("POST", "/uploads").by(&ann).header("Content-Type", content_type);
        request.body(good().bytes()).send().invalid(&[malformed]);
    }
    // A second file is refused, whatever it is and wherever it stands.
    for second in [good(), part(unnamed), file_form("", "image/gif", b"GIF89a")] {
        for (first, last) in [(good(), second.clone()), (second.clone(), good())] {
            let form = first.then(Form::default().field("x", "y")).then(last);
            let answer = api.upload_form(&ann, form);
            assert_eq!(answer.status, 422, "{answer:?}");
            let told = answer.json()["field_errors"]["file"].to_string();
            assert!(told.contains("Must be sent only once"), "{answer:?}");
        }
    }
    // All problems of a form are reported together.
    let form = file_form("", "text/plain", b"one").field("description", &"d".repeat(4097));
    api.upload_form(&ann, form).invalid(&[bad_name, too_long]);
    assert_eq!((api.database.count("files"), api.data.contents().len()), (0, 0));
}

#[test]
fn a_filename_is_cleaned_and_never_reaches_the_file_system() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let long = "x".repeat(300);
    for (sent, kept) in [
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\ann\\a.txt", "a.txt"),
        ("a;b=c.txt", "a;b=c.txt"),
        ("say \\\"hi\\\".txt", "say \"hi\".txt"),
        ("%41.txt", "%41.txt"),
        ("a\tb\u{7}c\u{7f}\0.txt", "abc.txt"),
        (
            "a\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}b\u{2066}\u{2067}\u{2068}\u{2069}\u{85}.txt",
            "ab.txt",
        ),
        ("\u{202e}gpj.\u{1f600}", "gpj.\u{1f600}"),
        ("  .hidden  ", ".hidden"),
        (&format!("{long}.tar.gz"), &format!("{}.gz", "x".repeat(252))),
        (&long, &"x".repeat(255)),
    ] {
        let answer = api.upload(&ann, sent, "x").case(sent).expect(201);
        let id = answer.has(json!({"filename": kept, "original_filename": kept})).id();
        assert!(api.data.content(&id).is_file());
    }
    for nothing_left in ["\u{202e}", "a/\u{7}", "\u{2066}..\u{2069}"] {
        api.upload(&ann, nothing_left, "x").invalid(&[("body.file", "value_error")]);
    }
    let entries = std::fs::read_dir(api.data.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["files", "installation-id", "tmp", "trash"]);
}

#[test]
fn a_type_must_be_in_the_list_and_fit_the_content() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let html = b"<!DOCTYPE html><script>alert(1)</script>".as_slice();
    let long_picture = [PNG, &vec![0; 1_000_000]].concat();
    for (content_type, content, status, reason) in [
        ("image/png", PNG, 201, "what it says"),
        ("IMAGE/Png; q=1", PNG, 201, "case and parameters do not matter"),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF", 201, "another type of the list"),
        ("application/pdf", b"%PDF-1.7\n", 201, "another type of the list"),
        ("image/png", b"", 201, "nothing to recognise"),
        ("image/png", b"unknown", 201, "not recognised"),
        ("text/plain", html, 201, "text may be anything"),
        ("text/plain", b"BMW sales", 201, "text may begin like a picture"),
        ("image/png", html, 415, "a page that claims to be a picture"),
        ("image/jpeg", PNG, 201, "another picture, which the list has"),
        ("text/plain", PNG, 201, "a picture that claims to be text"),
        ("text/plain", &long_picture, 201, "a long picture that claims to be text"),
        ("image/png", b"GIF89a\x01\0\x01\0\x80", 415, "another picture, which the list has not"),
        ("text/html", html, 415, "not in the list"),
        ("image/svg+xml", b"<svg/>", 415, "not in the list"),
        ("image/*", PNG, 201, "a pattern is no type"),
        ("", b"x", 201, "empty"),
        (&"x".repeat(200), b"x", 201, "nonsense"),
    ] {
        let answer = api.upload_form(&ann, file_form("a", content_type, content));
        let answer = answer.case(format_args!("{content_type:.20}: {reason}")).expect(status);
        if status == 415 {
            answer.refused(415, "File type not allowed");
        }
    }
    assert_eq!(api.data.contents().len(), 14);
    let own = Server::start(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", " Text/CSV ,image/png")]);
    let bob = own.sign_up("bob");
    own.upload_form(&bob, file_form("a", "text/csv", b"a,b")).expect(201);
    own.upload(&bob, "a", "a,b").refused(415, "File type not allowed");
}

#[test]
fn other_spellings_of_a_type_and_the_containers_of_documents_are_accepted() {
    const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    const ODT: &str = "application/vnd.oasis.opendocument.text";
    let types = format!(
        "image/jpeg,image/png,audio/wav,application/zip,application/xml,image/svg+xml,application/java-archive,\
         application/epub+zip,application/msword,application/vnd.ms-excel,image/gif,{DOCX},{ODT}"
    );
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", &types)], ["ann"]);
    let zip = |first_entry: &str| {
        let name = first_entry.len() as u8;
        let head = [b"PK\x03\x04\x14\0\0\0\0\0".as_slice(), &[0; 16], &[name, 0, 0, 0]].concat();
        [head, first_entry.as_bytes().to_vec()].concat()
    };
    let ole = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 600]].concat();
    let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF".as_slice();
    let wave = b"RIFF\x24\0\0\0WAVEfmt ".as_slice();
    let xml = b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>".as_slice();
    let odt = zip("mimetypeapplication/vnd.oasis.opendocument.text");
    let listed = BTreeMap::from([
        ("image/jpg", "image/jpeg"),
        ("audio/x-wav", "audio/wav"),
        ("application/x-zip-compressed", "application/zip"),
        ("text/xml", "application/xml"),
    ]);
    let corrected = BTreeMap::from([
        ("another picture", "image/png"),
        ("a picture", "image/png"),
        ("a picture of another kind", "image/png"),
        ("SVG that claims to be another picture", "image/svg+xml"),
        ("not packed in ZIP", "application/zip"),
        ("not packed in OLE", "application/msword"),
        ("an archive that claims to be a picture", "application/zip"),
    ]);
    for (content_type, content, status, reason) in [
        ("image/jpg", jpeg, 201, "another spelling of what the list has"),
        ("image/jpg", PNG, 201, "another picture"),
        ("audio/wav", wave, 201, "recognised by another spelling"),
        ("audio/x-wav", wave, 201, "another spelling of what the list has"),
        ("audio/wav", PNG, 201, "a picture"),
        ("application/x-zip-compressed", &*zip("a.txt"), 201, "another spelling"),
        ("text/xml", xml, 201, "another spelling of what the list has"),
        ("application/xml", xml, 201, "recognised by another spelling"),
        ("image/svg+xml", xml, 201, "SVG is XML"),
        ("image/svg+xml", b"<svg/>", 201, "not recognised"),
        ("image/svg+xml", PNG, 201, "a picture of another kind"),
        ("image/png", xml, 201, "SVG that claims to be another picture"),
        (DOCX, &zip("word/document.xml"), 201, "recognised"),
        (DOCX, &zip("[Content_Types].xml"), 201, "recognised as its container"),
        (DOCX, PNG, 201, "a picture"),
        (ODT, &odt, 201, "recognised"),
        (ODT, &zip("content.xml"), 201, "recognised as its container"),
        ("application/epub+zip", &zip("mimetype"), 201, "recognised as its container"),
        (
            "application/java-archive",
            &zip("META-INF/MANIFEST.MF"),
            201,
            "recognised as its container",
        ),
        ("application/msword", &ole, 201, "recognised, or only its container"),
        ("application/vnd.ms-excel", &ole, 201, "recognised as its container"),
        ("application/vnd.ms-excel", &zip("a.txt"), 201, "not packed in ZIP"),
        ("application/java-archive", &ole, 201, "not packed in OLE"),
        ("image/png", &zip("a.txt"), 201, "an archive that claims to be a picture"),
        ("image/gif", b"\0\x01\x02", 201, "not recognised"),
        ("text/plain", b"x", 415, "not in the list"),
    ] {
        let answer = api.upload_form(&ann, file_form("a", content_type, content));
        let answer = answer.case(format_args!("{content_type}: {reason}")).expect(status);
        if status == 201 {
            let stored = corrected.get(reason).or_else(|| listed.get(content_type));
            answer.has(json!({ "content_type": stored.unwrap_or(&content_type) }));
        }
    }
    // A list may have several spellings of a type; then each is kept.
    let both = Server::start(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "image/jpeg,image/jpg")]);
    let bob = both.sign_up("bob");
    for (declared, stored) in
        [("image/jpg", "image/jpg"), ("image/jpeg", "image/jpeg"), ("image/pjpeg", "image/jpeg")]
    {
        let answer = both.upload_form(&bob, file_form("a", declared, jpeg)).expect(201);
        answer.has(json!({ "content_type": stored }));
    }
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
        let (api, [ann]) = Server::with_users(settings, ["ann"]);
        let upload = |size| {
            api.upload(&ann, "a.txt", vec![b'x'; size]).case(format_args!("{size} of {limit}"))
        };
        for size in [0, limit - 1, limit] {
            upload(size).expect(201);
        }
        for size in [limit + 1, limit + 100_000] {
            upload(size).refused(413, message).has(json!({"error_code": "PAYLOAD_TOO_LARGE"}));
        }
        assert_eq!(api.data.contents().len(), 3);
    }
}

#[test]
fn the_quotas_of_a_user_are_exact_under_parallel_uploads() {
    for (setting, value, size) in
        [("CLOAKROOM_USER_STORAGE_QUOTA", "7000", 1000), ("CLOAKROOM_USER_FILE_QUOTA", "7", 0)]
    {
        let (api, [ann, bob]) = Server::with_users(&[(setting, value)], ["ann", "bob"]);
        let upload = |user| api.upload(user, "a.txt", vec![b'x'; size]).case(setting);
        let statuses = parallel(20, |_| upload(&ann).status);
        assert_eq!(tally(statuses), [(201, 7), (507, 13)].into(), "{setting}");
        let answer = upload(&ann).refused(507, "Storage quota exceeded");
        answer.has(json!({"error_code": "STORAGE_QUOTA_EXCEEDED"}));
        assert_eq!(api.data.contents().len(), 7, "{setting}: a refused upload leaves no content");
        upload(&bob).expect(201);
        // What is used up has no room for an empty file either.
        api.upload(&ann, "a.txt", "").case(setting).expect(507);
        let files = json!(api.all_files(&ann));
        api.delete_file(&ann, &names_of(&files, "id")[0]).expect(204);
        upload(&ann).expect(201);
        upload(&ann).expect(507);
    }
}

#[test]
fn uploads_have_a_rate_limit_of_their_own() {
    let (api, [ann, bob]) =
        Server::with_users(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")], ["ann", "bob"]);
    for left in (0..10).rev() {
        assert_eq!(api.upload(&ann, "a.txt", "x").expect(201).rate_limit(), (10, left));
    }
    api.upload(&ann, "a.txt", "x").refused(429, "Rate limit exceeded");
    api.upload(&bob, "a.txt", "x").expect(201);
    assert_eq!(api.list_files(&ann, "").expect(200).rate_limit().0, 100);
}

#[test]
fn an_upload_without_a_token_is_refused_first() {
    let api = Server::start(&[]);
    let form = file_form("a", "x/y", b"");
    api.upload_form(Anonymous, form).refused(401, "Authentication required");
    let open = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    open.upload(Anonymous, "a.txt", "x").expect(201);
    open.list_files(Anonymous, "").expect(200).has(json!({"total": 1}));
}
