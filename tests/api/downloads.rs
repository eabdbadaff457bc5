//! Downloading: headers, ranges, and what a client already has.

use crate::forms::{file, id};
use crate::harness::{Answer, Server};

#[test]
fn a_download_says_what_it_is() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let uploaded = server
        .upload(&ann.access, file("a.txt", "Text/Plain; charset=x", b"0123456789"))
        .expect(201)
        .json();
    let id = id(&uploaded);
    let tag =
        format!("\"{}\"", uploaded["file_hash"].as_str().unwrap().strip_prefix("sha256:").unwrap());
    for method in ["GET", "HEAD"] {
        let answer = server
            .api(method, &format!("/uploads/{id}/download"))
            .bearer(&ann.access)
            .send()
            .expect(200);
        assert_eq!(answer.bytes, if method == "GET" { b"0123456789".as_slice() } else { b"" });
        for (name, value) in [
            ("Content-Type", "text/plain"),
            ("Content-Length", "10"),
            ("Content-Disposition", "attachment; filename=a.txt"),
            ("ETag", &tag),
            ("Accept-Ranges", "bytes"),
            ("Cache-Control", "private, no-cache"),
            ("X-Content-Type-Options", "nosniff"),
        ] {
            assert_eq!(answer.header(name), value, "{method} {name}");
        }
        let modified = answer.header("Last-Modified");
        assert!(modified.len() == 29 && modified.ends_with(" GMT"), "{modified}");
    }
    // A new display name is not the name of the download.
    let request = server.api("PUT", &format!("/uploads/{id}")).bearer(&ann.access);
    request.json(serde_json::json!({"filename": "b.txt"})).send().expect(200);
    let answer = server.download(&ann.access, &id).send().expect(200);
    assert_eq!(answer.header("Content-Disposition"), "attachment; filename=a.txt");
}

#[test]
fn an_empty_file_downloads_as_nothing() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let id = server.upload_text(&ann.access, "a.txt", "");
    let answer = server.download(&ann.access, &id).send().expect(200);
    assert_eq!((answer.header("Content-Length"), answer.bytes.len()), ("0", 0));
    server
        .download(&ann.access, &id)
        .header("Range", "bytes=0-")
        .send()
        .refused(416, "Range not satisfiable");
    server.download(&ann.access, &id).header("Range", "bytes=-5").send().expect(200);
}

#[test]
fn single_ranges_are_sent_alone() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let id = server.upload_text(&ann.access, "a.txt", "0123456789");
    let get = |range: &str| server.download(&ann.access, &id).header("Range", range).send();
    for (range, content, place) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=3-5", "345", "bytes 3-5/10"),
        ("bytes=8-", "89", "bytes 8-9/10"),
        ("bytes=8-99999999999999999999999", "89", "bytes 8-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=-200", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = get(range).expect(206);
        assert_eq!(answer.header("Content-Range"), place, "{range}");
        assert_eq!(answer.header("Content-Length"), content.len().to_string());
        assert_eq!(answer.bytes, content.as_bytes(), "{range}");
    }
    for range in ["bytes=10-", "bytes=99999999999999999999999-", "bytes=-0"] {
        let answer = get(range).refused(416, "Range not satisfiable");
        assert_eq!(answer.header("Content-Range"), "bytes */10", "{range}");
        assert_eq!(answer.json()["error_code"], "RANGE_NOT_SATISFIABLE");
    }
    for range in ["bytes=0-1,3-4", "bytes=5-3", "bytes=x", "lines=1-2", ""] {
        assert_eq!(get(range).expect(200).bytes, b"0123456789", "{range}");
    }
    let head = server.api("HEAD", &format!("/uploads/{id}/download")).bearer(&ann.access);
    head.header("Range", "bytes=0-0").send().expect(200);
}

#[test]
fn what_a_client_has_is_not_sent_again() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let id = server.upload_text(&ann.access, "a.txt", "0123456789");
    let get = |headers: &[(&str, &str)]| -> Answer {
        let request = server.download(&ann.access, &id);
        headers.iter().fold(request, |r, (name, value)| r.header(name, value)).send()
    };
    let first = get(&[]).expect(200);
    let (tag, modified) = (first.header("ETag"), first.header("Last-Modified"));
    let (long_ago, other) = ("Sun, 06 Nov 1994 08:49:37 GMT", "\"other\"");
    let (weak, list) = (format!("W/{tag}"), format!("{other}, {tag}"));
    let range = ("Range", "bytes=1-2");
    for (headers, status, reason) in [
        (&[("If-None-Match", tag)][..], 304, "the tag"),
        (&[("If-None-Match", &*weak)], 304, "weakly the tag"),
        (&[("If-None-Match", &*list)], 304, "one of them"),
        (&[("If-None-Match", "*")], 304, "any"),
        (&[("If-None-Match", other)], 200, "another"),
        (
            &[("If-None-Match", other), ("If-Modified-Since", modified)],
            200,
            "the tag goes before the time",
        ),
        (&[("If-Modified-Since", modified)], 304, "not since"),
        (&[("If-Modified-Since", long_ago)], 200, "since"),
        (&[("If-Modified-Since", "yesterday")], 200, "no date"),
        (&[("If-None-Match", tag), range], 304, "before the range"),
        (&[range, ("If-Range", tag)], 206, "a part of the same"),
        (&[range, ("If-Range", modified)], 206, "a part of the same, by time"),
        (&[range, ("If-Range", other)], 200, "a part of another"),
        (&[range, ("If-Range", &*weak)], 200, "weak tags do not do"),
        (&[range, ("If-Range", long_ago)], 200, "another time"),
    ] {
        let answer = get(headers);
        assert_eq!(answer.status, status, "{reason}");
        let bytes: &[u8] = match status {
            200 => b"0123456789",
            206 => b"12",
            _ => b"",
        };
        assert_eq!(answer.bytes, bytes, "{reason}");
        assert_eq!(
            (answer.header("ETag"), answer.header("Last-Modified")),
            (tag, modified),
            "{reason}"
        );
        assert_eq!(answer.header("Cache-Control"), "private, no-cache");
    }
}

#[test]
fn no_filename_escapes_from_content_disposition() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let long = "\u{e9}".repeat(255);
    let encoded = "%C3%A9".repeat(255);
    for (name, expected) in [
        ("%41.txt", "attachment; filename=%41.txt".to_owned()),
        ("a b.txt", "attachment; filename=\"a b.txt\"".into()),
        ("a;b.txt", "attachment; filename=\"a;b.txt\"".into()),
        ("a\\\"b.txt", "attachment; filename=\"a\\\"b.txt\"".into()),
        (
            "na\u{ef}ve.txt",
            "attachment; filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt".into(),
        ),
        (
            "\u{1f600}.txt",
            "attachment; filename=\"_.txt\"; filename*=UTF-8''%F0%9F%98%80.txt".into(),
        ),
        (
            "\u{202e}gpj.exe",
            "attachment; filename=\"_gpj.exe\"; filename*=UTF-8''%E2%80%AEgpj.exe".into(),
        ),
        (
            &long,
            format!("attachment; filename=\"{}\"; filename*=UTF-8''{encoded}", "_".repeat(255)),
        ),
    ] {
        let id = server.upload_text(&ann.access, name, "x");
        let answer = server.download(&ann.access, &id).send().expect(200);
        assert_eq!(answer.header("Content-Disposition"), expected);
    }
    // Line ends can only come by an encoded name: they are dropped.
    let form = crate::forms::Form::default().part(
        "Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''a%0D%0AX-Evil%3A%201.txt",
        b"x",
    );
    let id = id(&server.upload(&ann.access, form).expect(201).json());
    let answer = server.download(&ann.access, &id).send().expect(200);
    assert_eq!(answer.header("Content-Disposition"), "attachment; filename=\"aX-Evil: 1.txt\"");
    assert!(answer.headers.get("X-Evil").is_none());
}
