//! Downloading: headers, ranges, conditional requests (RFC 9110), and names in `Content-Disposition`.

use std::fs::OpenOptions;
use std::io::{self, Read};

use crate::harness::*;

#[test]
fn a_download_says_what_it_is() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let form = file_form("a.txt", "Text/Plain; charset=x", b"0123456789");
    let id = api.upload_form(&ann, form).expect(201).id();
    let tag = format!("\"{}\"", sha256(b"0123456789").strip_prefix("sha256:").unwrap());
    for (method, content) in [("GET", b"0123456789".as_slice()), ("HEAD", b"")] {
        let answer = api.download_request(method, &ann, &id).send().expect(200);
        assert_eq!(answer.bytes, content);
        for (name, value) in [
            ("Content-Type", "text/plain"),
            ("Content-Length", "10"),
            ("Content-Disposition", "attachment; filename=a.txt"),
            ("ETag", &tag),
            ("Accept-Ranges", "bytes"),
            ("Cache-Control", "private, no-cache"),
            ("X-Content-Type-Options", "nosniff"),
            // A browser that is made to show the file runs none of it, and other sites cannot embed it.
            ("Content-Security-Policy", "sandbox; default-src 'none'"),
            ("Cross-Origin-Resource-Policy", "same-site"),
        ] {
            assert_eq!(answer.header(name), value, "{method} {name}");
        }
        let modified = answer.header("Last-Modified");
        assert!(modified.len() == 29 && modified.ends_with(" GMT"), "{modified}");
    }
    // A new display name is not the name of the download.
    api.update_file(&ann, &id, json!({"filename": "b.txt"})).expect(200);
    let answer = api.download(&ann, &id).expect(200);
    assert_eq!(answer.header("Content-Disposition"), "attachment; filename=a.txt");
}

#[test]
fn single_ranges_are_sent_alone() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let id = api.new_file(&ann, "a.txt", "0123456789");
    let get = |range: &str| api.download_request("GET", &ann, &id).header("Range", range).send();
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
        let answer = answer.has(json!({"error_code": "RANGE_NOT_SATISFIABLE"}));
        assert_eq!(answer.header("Content-Range"), "bytes */10", "{range}");
    }
    for range in ["bytes=0-1,3-4", "bytes=5-3", "bytes=x", "lines=1-2", ""] {
        assert_eq!(get(range).expect(200).bytes, b"0123456789", "{range}");
    }
    // A range has a meaning for GET only (RFC 9110, 14.2).
    api.download_request("HEAD", &ann, &id).header("Range", "bytes=0-0").send().expect(200);
    let empty = api.new_file(&ann, "a.txt", "");
    let answer = api.download(&ann, &empty).expect(200);
    assert_eq!((answer.header("Content-Length"), answer.bytes.len()), ("0", 0));
    let part = |range| api.download_request("GET", &ann, &empty).header("Range", range).send();
    for range in ["bytes=0-", "bytes=0-0", "bytes=5-9", "bytes=-0"] {
        let answer = part(range).case(range).expect(200);
        assert_eq!((answer.header("Content-Length"), &answer.bytes[..]), ("0", &b""[..]));
        assert!(!answer.has_header("Content-Range"), "{answer:?}");
    }
    part("bytes=-5").expect(200);
}

#[test]
fn a_large_file_arrives_whole_and_in_ranges_from_both_servers() {
    // More than a server reads at once.
    let content = numbers(3_000_000);
    for server in ["builtin", "rouille"] {
        let (api, [ann]) = Server::with_users(&[("CLOAKROOM_HTTP_SERVER", server)], ["ann"]);
        let id = api.new_file(&ann, "a.txt", &content);
        assert!(api.download(&ann, &id).expect(200).bytes == content.as_bytes(), "{server}");
        for (from, to) in [(0, 2_999_999), (1, 3_000_000), (65_000, 2_000_001), (70_000, 70_001)] {
            let range = format!("bytes={from}-{}", to - 1);
            let answer = api.download_request("GET", &ann, &id).header("Range", &range).send();
            let is_equal = answer.expect(206).bytes == content.as_bytes()[from..to];
            assert!(is_equal, "{server} {range}");
        }
    }
}

#[test]
fn files_of_any_length_come_back_as_they_were_sent() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    // Contents are written in pieces of 256 KiB, each a multiple of a disk's block.
    let piece = 256 << 10;
    let content = numbers(2 * piece + 5000);
    let block = 4096;
    for length in [
        1,
        block - 1,
        block,
        piece - 1,
        piece,
        piece + 1,
        piece + block,
        2 * piece - 1,
        2 * piece,
        2 * piece + 1,
        2 * piece + 5000,
    ] {
        let sent = &content[..length];
        let file = api.upload(&ann, "a.txt", sent).expect(201);
        let id = file.id();
        file.has(json!({"file_size": length, "file_hash": sha256(sent.as_bytes())}));
        let answer = api.download(&ann, &id).expect(200);
        assert!(answer.bytes == sent.as_bytes(), "{length}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_never_looks_complete() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let length = 4 << 20;
    let id = api.new_file(&ann, "a.txt", &numbers(length));
    let mut stream = api.begin_download(&ann, &id);
    stream.read_exact(&mut [0; 1000]).expect("the first bytes");
    let content = OpenOptions::new().write(true).open(api.data.content(&id));
    content.and_then(|file| file.set_len(100_000)).expect("truncated");
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest).expect_err("the connection breaks");
    assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    assert!(rest.len() < length / 2, "{} bytes", rest.len());
    api.logged("the body of an answer broke off");
}

#[test]
fn what_a_client_already_has_is_not_sent_again() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let id = api.new_file(&ann, "a.txt", "0123456789");
    let get = |headers: &[(&str, &str)]| {
        let request = api.download_request("GET", &ann, &id);
        headers.iter().fold(request, |r, (name, value)| r.header(name, value)).send()
    };
    let first = get(&[]).expect(200);
    let (tag, modified) = (first.header("ETag"), first.header("Last-Modified"));
    let (long_ago, other) = ("Sun, 06 Nov 1994 08:49:37 GMT", "\"other\"");
    let (weak, list) = (format!("W/{tag}"), format!("{other}, {tag}"));
    let range = ("Range", "bytes=1-2");
    for (headers, status, reason) in [
        (&[("If-None-Match", tag)][..], 304, "the same tag"),
        (&[("If-None-Match", &*weak)], 304, "a weak comparison suffices"),
        (&[("If-None-Match", &*list)], 304, "one tag of a list"),
        (&[("If-None-Match", "*")], 304, "any tag"),
        (&[("If-None-Match", other)], 200, "another tag"),
        (
            &[("If-None-Match", other), ("If-Modified-Since", modified)],
            200,
            "the tag has precedence over the time",
        ),
        (&[("If-Modified-Since", modified)], 304, "not modified since"),
        (&[("If-Modified-Since", long_ago)], 200, "modified since"),
        (&[("If-Modified-Since", "yesterday")], 200, "not a date"),
        (&[("If-None-Match", tag), range], 304, "evaluated before the range"),
        (&[range, ("If-Range", tag)], 206, "the same tag"),
        (&[range, ("If-Range", modified)], 206, "the same time"),
        (&[range, ("If-Range", other)], 200, "another tag"),
        (&[range, ("If-Range", &*weak)], 200, "If-Range needs a strong comparison"),
        (&[range, ("If-Range", long_ago)], 200, "another time"),
    ] {
        let answer = get(headers).case(reason).expect(status);
        let content = match status {
            200 => "0123456789",
            206 => "12",
            _ => "",
        };
        assert_eq!(answer.text(), content, "{reason}");
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
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (long, underscores, encoded) =
        ("\u{e9}".repeat(127), "_".repeat(127), "%C3%A9".repeat(127));
    for (name, parameters) in [
        ("%41.txt", "filename=\"%41.txt\"; filename*=UTF-8''%2541.txt"),
        ("a b.txt", "filename=\"a b.txt\""),
        ("a;b.txt", "filename=\"a;b.txt\""),
        ("a\\\"b.txt", "filename=\"a\\\"b.txt\""),
        ("na\u{ef}ve.txt", "filename=\"na_ve.txt\"; filename*=UTF-8''na%C3%AFve.txt"),
        ("\u{1f600}.txt", "filename=\"_.txt\"; filename*=UTF-8''%F0%9F%98%80.txt"),
        ("\u{202e}gpj.exe", "filename=gpj.exe"),
        (&long, &format!("filename=\"{underscores}\"; filename*=UTF-8''{encoded}")),
    ] {
        let id = api.new_file(&ann, name, "x");
        let answer = api.download(&ann, &id).expect(200);
        assert_eq!(answer.header("Content-Disposition"), format!("attachment; {parameters}"));
    }
    // An encoded name is the only one that can contain line ends. They are removed.
    let form = Form::default().part(
        "Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''a%0D%0AX-Evil%3A%201.txt",
        b"x",
    );
    let id = api.upload_form(&ann, form).expect(201).id();
    let answer = api.download(&ann, &id).expect(200);
    assert_eq!(answer.header("Content-Disposition"), "attachment; filename=\"aX-Evil: 1.txt\"");
    assert!(!answer.has_header("X-Evil"));
}
