//! Uploads in several requests, as tus 1.0.0 says: how they begin, go on, are shown, end, and become files.

use crate::harness::partial::{ALL, BYTES, id_of, metadata};
use crate::harness::*;

#[test]
fn a_file_comes_in_several_requests_and_is_the_same_as_one_that_came_in_one() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = numbers(30_000).into_bytes();
    let pairs = [
        ("filename", "../../etc/n\u{f6}tes.txt"),
        ("filetype", "text/markdown; charset=utf-8"),
        ("folder", "/in/box"),
        ("description", "For you"),
        ("sha256", &sha256(&content)),
        ("relativePath", "null"),
    ];
    let begun = api
        .tus("POST", ALL, &ann)
        .header("Upload-Length", "30000")
        .header("Upload-Metadata", &(metadata(&pairs) + ",is_confidential"))
        .send()
        .expect(201);
    assert_eq!(begun.header("Upload-Offset"), "0");
    assert_eq!(begun.header("Tus-Resumable"), "1.0.0");
    let path = begun.header("Location").to_owned();
    assert!(path.starts_with("/api/v1/uploads/partial/"), "{path}");
    assert_eq!(api.offset(&path, &ann), 0);
    let listed = api.partial_uploads(&ann);
    let expected = json!({
        "id": id_of(&path), "filename": "n\u{f6}tes.txt", "folder": "/in/box", "file_size": 30000, "offset": 0,
        "created_at": listed[0]["created_at"], "expires_at": listed[0]["expires_at"], "received_by": null
    });
    assert_eq!(listed, [expected]);
    for at in [0, 10_000] {
        let answer = api.adding(&path, &ann, at, &content[at..at + 10_000]).send().expect(204);
        assert_eq!(answer.header("Upload-Offset"), (at + 10_000).to_string());
        assert!(!answer.has_header("Content-Location"));
        assert_eq!(api.offset(&path, &ann), at + 10_000);
        assert_eq!(api.partial_uploads(&ann)[0]["offset"], json!(at + 10_000));
    }
    let last = api.adding(&path, &ann, 20_000, &content[20_000..]).send().expect(204);
    assert_eq!(last.header("Upload-Offset"), "30000");
    assert_eq!(last.header("Content-Location"), format!("/api/v1/uploads/{}", id_of(&path)));
    let file = api.show_file(&ann, id_of(&path)).expect(200);
    assert_eq!(file.header("ETag"), last.header("ETag"));
    let file = file.has(json!({
        "filename": "n\u{f6}tes.txt", "content_type": "text/plain", "folder": "/in/box", "description": "For you",
        "file_size": 30000, "file_hash": sha256(&content), "received_by": null
    }));
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, content);
    // As an upload in one request it has a CRC-32 and counts as a text, and its event.
    let form = file_form("a.txt", "text/plain", &content);
    let other = api.upload_form(&ann, form).expect(201).id();
    let twins = format!(
        "SELECT count(DISTINCT (crc32, is_utf8, file_hash)) FROM files WHERE id IN ('{}', '{other}')",
        file.id()
    );
    assert_eq!(api.database.value::<i64>(&twins), 1);
    assert_eq!(api.database.count("audit_events WHERE action = 'file.upload'"), 2);
    // A lost answer makes no second file.
    for _ in 0..2 {
        let again = api.adding(&path, &ann, 30_000, b"").send().expect(204);
        assert_eq!(again.header("ETag"), last.header("ETag"));
        assert_eq!(api.offset(&path, &ann), 30_000);
    }
    api.adding(&path, &ann, 0, &content).send().expect(409);
    assert_eq!(api.file_stats(&ann), (2, 60_000));
    assert!(api.partial_uploads(&ann).is_empty());
    assert!(entries(api.data.join("partial")).is_empty());
    // What is forgotten is the upload alone.
    api.tus("DELETE", &path, &ann).send().expect(204);
    api.tus("HEAD", &path, &ann).send().expect(404);
    api.show_file(&ann, id_of(&path)).expect(200);
}

#[test]
fn an_upload_may_bring_bytes_with_its_beginning_and_be_empty() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let with = |length: usize, bytes: &[u8]| {
        let request = api.beginning(ALL, &ann, length).header("Content-Type", BYTES);
        request.body(bytes).send()
    };
    let some = with(10, b"01234").expect(201);
    assert_eq!(some.header("Upload-Offset"), "5");
    assert!(!some.has_header("Content-Location"));
    let path = some.header("Location").to_owned();
    api.adding(&path, &ann, 5, b"56789").send().expect(204);
    let whole = with(5, b"01234").expect(201);
    assert_eq!(whole.header("Upload-Offset"), "5");
    let path = whole.header("Location").to_owned();
    assert_eq!(whole.header("Content-Location"), format!("/api/v1/uploads/{}", id_of(&path)));
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"01234");
    assert_eq!(api.offset(&path, &ann), 5);
    let empty = api.beginning(ALL, &ann, 0).send().expect(201);
    let path = empty.header("Location").to_owned();
    assert_eq!(empty.header("Content-Location"), format!("/api/v1/uploads/{}", id_of(&path)));
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"");
    api.adding(&path, &ann, 0, b"").send().expect(204);
    // A body that is no part of the file is not taken for one.
    let json = api.beginning(ALL, &ann, 10).json(json!({"a": 1})).send().expect(201);
    assert_eq!(json.header("Upload-Offset"), "0");
    with(4, b"01234").refused(413, "Request body too large");
    assert_eq!(api.file_stats(&ann), (3, 15));
    assert_eq!(api.partial_uploads(&ann).len(), 1);
    assert_eq!(entries(api.data.join("partial")).len(), 1);
}

#[test]
fn requests_that_break_the_protocol_are_refused() {
    let settings = [("CLOAKROOM_MAX_UPLOAD_SIZE", "1000")];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    let begin = |length: &str, metadata: &str| {
        let request = api.tus("POST", ALL, &ann);
        let request = match length {
            "" => request,
            _ => request.header("Upload-Length", length),
        };
        request.header("Upload-Metadata", metadata).send().case(length.to_owned() + metadata)
    };
    let name = metadata(&[("filename", "a.txt")]);
    begin("", &name).invalid(&[("header.Upload-Length", "missing")]);
    for length in ["-1", "+1", "1.0", "0x1", " ", "one", "1, 1"] {
        begin(length, &name).invalid(&[("header.Upload-Length", "value_error")]);
    }
    for length in ["1001", "18446744073709551616", "9999999999999999999999999999"] {
        begin(length, &name).refused(413, "File size exceeds maximum limit (1000 bytes)");
    }
    let wrong = &[("header.Upload-Metadata", "value_error")][..];
    begin("1", "").invalid(&[("header.Upload-Metadata", "missing")]);
    begin("1", "filetype dGV4dA==").invalid(&[("header.Upload-Metadata", "missing")]);
    for metadata in [
        "filename".to_owned(),
        "filename !".to_owned(),
        "filename YQ".to_owned(),
        "filename /w==".to_owned(),
        metadata(&[("filename", "..")]),
        metadata(&[("filename", "a"), ("filename", "b")]),
        metadata(&[("filename", "a"), ("folder", "/a/../b")]),
        metadata(&[("filename", "a"), ("sha256", "x")]),
        metadata(&[("filename", "a"), ("description", "\0")]),
        format!("{name},other !"),
    ] {
        begin("1", &metadata).invalid(wrong);
    }
    let path = begin("10", &name).expect(201).header("Location").to_owned();
    let old = api.request_at_root("HEAD", &path).by(&ann).send().expect(412);
    assert_eq!((old.header("Tus-Version"), old.header("Tus-Resumable")), ("1.0.0", "1.0.0"));
    let other = api.request_at_root("PATCH", &path).by(&ann).header("Tus-Resumable", "0.2.2");
    other.send().refused(412, "Precondition failed");
    let none = api.request_at_root("POST", ALL).by(&ann).send().expect(412);
    none.has(json!({"reason": "TUS_VERSION"}));
    let patch = |offset: &str, kind: &str| {
        let request = api.tus("PATCH", &path, &ann).header("Content-Type", kind);
        request.header("Upload-Offset", offset).body("x").send()
    };
    let other = patch("0", "text/plain").refused(415, "Content type is not supported");
    other.has(json!({"reason": "OFFSET_STREAM_REQUIRED"}));
    for offset in ["-1", "x", ""] {
        patch(offset, BYTES).invalid_in("header", "Upload-Offset value_error");
    }
    let no_offset = api.tus("PATCH", &path, &ann).header("Content-Type", BYTES).body("x").send();
    no_offset.invalid_in("header", "Upload-Offset missing");
    let wrong = patch("5", BYTES).expect(409);
    assert_eq!(wrong.header("Upload-Offset"), "0");
    wrong.has(json!({"reason": "OFFSET_MISMATCH"}));
    api.adding(&path, &ann, 0, b"01234567890").send().refused(413, "Request body too large");
    assert_eq!(api.offset(&path, &ann), 0);
    // Nobody else's, and none that never was.
    for (path, sender) in [(&*path, &bob), (&format!("{ALL}/{UNKNOWN_ID}"), &ann)] {
        for method in ["HEAD", "PATCH", "DELETE"] {
            let request = api.tus(method, path, sender).header("Content-Type", BYTES);
            let answer = request.header("Upload-Offset", "0").send().expect(404);
            if method != "HEAD" {
                let answer = answer.refused(404, "Upload not found");
                answer.has(json!({"reason": "UPLOAD_NOT_FOUND"}));
            }
        }
    }
    for id in ["..%2F..%2Fjwt-secret", "%2e%2e", "a", "restore", "links", "download"] {
        let answer = api.tus("DELETE", &format!("{ALL}/{id}"), &ann).send();
        answer.invalid(&[("path.upload_id", "uuid_parsing")]);
    }
    api.tus("PUT", &path, &ann).send().refused(405, "Method Not Allowed");
    let allowed = api.tus("POST", &path, &ann).send().expect(405);
    assert_eq!(allowed.header("Allow"), "GET, HEAD, PATCH, DELETE");
    assert_eq!(api.tus("PUT", ALL, &ann).send().expect(405).header("Allow"), "GET, HEAD, POST");
}

#[test]
fn a_chunked_body_that_is_too_long_is_kept_up_to_the_end_and_an_empty_request_records_the_file() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 10);
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\n\
         Content-Type: {BYTES}\r\nUpload-Offset: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ann.access
    );
    let (_, answer) = ask(&api.address, head.clone() + "f\r\n0123456789abcde\r\n0\r\n\r\n");
    assert_eq!(answer.status, 413);
    assert_eq!(api.partial_uploads(&ann)[0]["offset"], json!(10));
    assert_eq!(api.file_stats(&ann), (0, 0));
    let last = api.adding(&path, &ann, 10, b"").send().expect(204);
    assert!(last.has_header("Content-Location"));
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"0123456789");
    // So does a question where it stands, after which clients send nothing more; but not with a read-only token.
    let path = api.begin_partial(&ann, 10);
    let head = head.replace(head.split(' ').nth(1).expect("a path"), &path);
    ask(&api.address, head.clone() + "f\r\n0123456789abcde\r\n0\r\n\r\n");
    assert_eq!(api.offset(&path, api.new_token(&ann, true)), 10);
    assert_eq!((api.offset(&path, &ann), api.file_stats(&ann)), (10, (2, 20)));
    // One that fits needs no length either.
    let path = api.begin_partial(&ann, 10);
    let head = head.replace(head.split(' ').nth(1).expect("a path"), &path);
    let (_, answer) = ask(&api.address, head + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
    assert_eq!(answer.status, 204);
    assert_eq!(api.file_stats(&ann), (3, 30));
}

#[test]
fn what_a_file_may_not_be_ends_its_upload() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let begin = |length: usize, pairs: &[(&str, &str)]| {
        let request = api.tus("POST", ALL, &ann).header("Upload-Length", &length.to_string());
        let answer = request.header("Upload-Metadata", &metadata(pairs)).send().expect(201);
        answer.header("Location").to_owned()
    };
    // The type is known with the first bytes, or with the last one.
    let page = begin(100_000, &[("filename", "a.html"), ("filetype", "text/html")]);
    let bytes = [b"<!doctype html>".to_vec(), vec![b'x'; 10_000]].concat();
    api.adding(&page, &ann, 0, &bytes[..100]).send().expect(204);
    api.adding(&page, &ann, 100, &bytes[100..]).send().refused(415, "File type not allowed");
    api.tus("HEAD", &page, &ann).send().expect(404);
    let short = begin(4, &[("filename", "a"), ("filetype", "image/png")]);
    api.adding(&short, &ann, 0, b"some").send().expect(204);
    let zip = begin(8, &[("filename", "a.png"), ("filetype", "image/png")]);
    api.adding(&zip, &ann, 0, b"PK\x03\x04\0\0\0\0").send().refused(415, "File type not allowed");
    api.tus("HEAD", &zip, &ann).send().expect(404);
    let other = begin(2, &[("filename", "a.txt"), ("sha256", &sha256(b"b"))]);
    let refused = api.adding(&other, &ann, 0, b"aa").send();
    refused.invalid_in("header", "Upload-Metadata value_error");
    api.tus("HEAD", &other, &ann).send().expect(404);
    assert_eq!(api.file_stats(&ann), (1, 4));
    assert!(entries(api.data.join("partial")).is_empty());
}

#[test]
fn options_tell_what_is_spoken_and_networks_may_know_no_patch() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 10);
    let link = format!("/api/v1/links/{UNKNOWN_ID}/partial");
    for path in [ALL, &path, &link, &format!("{link}/{UNKNOWN_ID}")] {
        let answer = api.request_at_root("OPTIONS", path).send().expect(204);
        assert_eq!(answer.header("Tus-Version"), "1.0.0");
        assert_eq!(
            answer.header("Tus-Extension"),
            "creation,creation-with-upload,expiration,termination"
        );
        assert_eq!(answer.header("Tus-Max-Size"), "10485760");
        assert!(!answer.has_header("Access-Control-Allow-Origin"));
    }
    api.request("OPTIONS", "/uploads").send().expect(405);
    let over = |path: &str, method: &str| {
        let request = api.tus("POST", path, &ann).header("X-HTTP-Method-Override", method);
        request.header("Content-Type", BYTES).header("Upload-Offset", "0")
    };
    over(&path, "PATCH").body("01234").send().expect(204);
    assert_eq!(api.offset(&path, &ann), 5);
    over(&path, "PUT").send().expect(405);
    over(&path, "DELETE").send().expect(204);
    over(&path, "DELETE").send().expect(404);
    // Nowhere else.
    let file = api.new_file(&ann, "a.txt", "a");
    let request = api.request("POST", &format!("/uploads/{file}")).by(&ann);
    request.header("X-HTTP-Method-Override", "DELETE").send().expect(405);
    api.show_file(&ann, &file).expect(200);
}

#[test]
fn pages_of_other_origins_may_use_the_protocol() {
    let settings = [("CLOAKROOM_CORS_ORIGINS", "https://app.example.com")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let path = api.begin_partial(&ann, 10);
    let asked = "authorization, tus-resumable, upload-offset, content-type";
    let preflight = api
        .request_at_root("OPTIONS", &path)
        .header("Origin", "https://app.example.com")
        .header("Access-Control-Request-Method", "PATCH")
        .header("Access-Control-Request-Headers", asked)
        .send()
        .expect(204);
    assert_eq!(preflight.header("Access-Control-Allow-Headers"), asked);
    assert!(preflight.header("Access-Control-Allow-Methods").contains("PATCH"));
    assert_eq!(preflight.header("Tus-Version"), "1.0.0");
    let request = api.tus("HEAD", &path, &ann).header("Origin", "https://app.example.com");
    let exposed = request.send().expect(200).header("Access-Control-Expose-Headers").to_owned();
    for name in [
        "Upload-Offset",
        "Upload-Length",
        "Upload-Expires",
        "Tus-Resumable",
        "Tus-Version",
        "Tus-Extension",
        "Tus-Max-Size",
        "Location",
        "Content-Location",
    ] {
        assert!(exposed.split(", ").any(|one| one == name), "{name}");
    }
}

#[test]
fn any_session_and_tokens_of_the_right_scope_go_on_with_an_upload() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let token = |scope: &str| {
        let body = json!({"name": scope, "scope": scope});
        api.create_token(&ann, body).expect(201).json()["token"].as_str().unwrap().to_owned()
    };
    let (all, upload, read) = (token("all"), token("upload"), token("read"));
    let path = api.begin_partial(&upload, 10);
    api.beginning(ALL, &read, 10).send().refused(403, "Not enough permissions");
    api.adding(&path, &read, 0, b"x").send().refused(403, "Not enough permissions");
    api.tus("DELETE", &path, &read).send().refused(403, "Not enough permissions");
    api.tus("GET", ALL, &upload).send().refused(403, "Not enough permissions");
    assert_eq!((api.partial_uploads(&read).len(), api.partial_uploads(&all).len()), (1, 1));
    api.adding(&path, &upload, 0, b"01").send().expect(204);
    api.adding(&path, &all, 2, b"23").send().expect(204);
    // A session that ended between two requests keeps nothing from another.
    let first = api.sign_in("ann");
    api.adding(&path, &first, 4, b"45").send().expect(204);
    api.logout_scope(&first, "local").expect(204);
    api.adding(&path, &first, 6, b"67").send().expect(401);
    let second = api.sign_in("ann");
    assert_eq!(api.offset(&path, &second), 6);
    api.adding(&path, &second, 6, b"6789").send().expect(204);
    assert_eq!(api.download(&second, id_of(&path)).expect(200).bytes, b"0123456789");
    let path = api.begin_partial(&upload, 10);
    api.tus("DELETE", &path, &upload).send().expect(204);
    api.adding(&path, Anonymous, 0, b"x").send().expect(401);
}
