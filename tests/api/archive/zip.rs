//! Archives: what is in them, that they are the same bytes each time, and what breaks a transfer.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::process::Command;

use crate::harness::*;

/// The files of an archive, in its order, with their contents. The archive must be well-formed in every detail that the
/// reader checks, among them each CRC-32.
pub fn unpacked(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(archive)).expect("an archive");
    let count = archive.len();
    let read = |place| {
        let mut file = archive.by_index(place).expect("a file");
        let mut content = Vec::new();
        file.read_to_end(&mut content).expect("its content");
        assert_eq!((file.unix_mode(), file.compressed_size()), (Some(0o100_644), file.size()));
        (file.name().to_owned(), content)
    };
    (0..count).map(read).collect()
}

/// Their names.
pub fn names(archive: &[u8]) -> Vec<String> {
    unpacked(archive).into_iter().map(|(name, _)| name).collect()
}

impl Server {
    #[track_caller]
    pub fn zip(&self, sender: impl Credentials, query: &str) -> Vec<u8> {
        let answer = self.get(&format!("/uploads/zip?{query}"), sender).case(query).expect(200);
        assert_eq!(answer.header("content-length"), answer.bytes.len().to_string());
        answer.bytes
    }
}

#[test]
fn an_archive_has_what_is_asked_for_in_one_order_under_harmless_names() {
    for server in ["builtin", "rouille"] {
        let (api, [ann, bob]) =
            Server::with_users(&[("CLOAKROOM_HTTP_SERVER", server)], ["ann", "bob"]);
        let mut ids = Vec::new();
        for (folder, name) in [
            ("/", "z.txt"),
            ("/", "nul.txt"),
            ("/a", "B.txt"),
            ("/a", "a.txt"),
            ("/a/b", "x?.txt"),
            ("/a/b", "x_.txt"),
            ("/a b", "end."),
            ("/a-b", "naïve 日本.txt"),
            ("/..hidden./con", ".x"),
        ] {
            ids.push(api.new_file_in(&ann, folder, name));
        }
        api.new_file_in(&bob, "/a", "of bob.txt");
        let all = unpacked(&api.zip(&ann, ""));
        let found: Vec<_> = all.iter().map(|(name, _)| &**name).collect();
        let expected = [
            "nul.txt",
            "z.txt",
            "..hidden_/_con/.x",
            "a/a.txt",
            "a/B.txt",
            "a/b/x?.txt",
            "a/b/x_.txt",
            "a b/end_",
            "a-b/naïve 日本.txt",
        ];
        let is_like = |(found, expected): (&&str, &str)| match expected {
            "nul.txt" => *found == "_nul.txt",
            // Which of the two keeps its name, the order of their ids decides.
            "a/b/x?.txt" | "a/b/x_.txt" => matches!(*found, "a/b/x_.txt" | "a/b/x_ (2).txt"),
            expected => *found == expected,
        };
        assert!(
            found.iter().zip(expected).all(is_like) && found.len() == expected.len(),
            "{found:?}"
        );
        let of_names: Vec<_> =
            all.iter().map(|(_, content)| String::from_utf8_lossy(content)).collect();
        assert_eq!(of_names[5..7].iter().filter(|name| **name == "x?.txt").count(), 1);
        let zip = |query: &str| names(&api.zip(&ann, query));
        assert_eq!(zip("folder=/a%20b"), ["end_"]);
        assert_eq!(zip("folder=a/")[..2], ["a.txt", "B.txt"]);
        assert_eq!(zip("folder=/nothing"), [""; 0]);
        assert_eq!(zip(&format!("ids={},{},{0}", ids[8], ids[2])), [".x", "B.txt"]);
        assert_eq!(zip("folder=/").len(), 9);
        let name = |query: &str| {
            let answer = api.get(&format!("/uploads/zip{query}"), &ann).expect(200);
            assert_eq!(answer.header("content-type"), "application/zip");
            assert!(!answer.has_header("repr-digest") && !answer.has_header("last-modified"));
            answer.header("content-disposition").to_owned()
        };
        assert_eq!(name(""), "attachment; filename=files.zip");
        assert_eq!(name(&format!("?ids={}", ids[0])), "attachment; filename=files.zip");
        assert_eq!(name("?folder=/a%20b"), "attachment; filename=\"a b.zip\"");
        assert_eq!(name("?folder=/a/b"), "attachment; filename=b.zip");
    }
}

#[test]
fn what_does_not_name_files_of_ones_own_is_refused() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let (own, other) = (api.new_file(&ann, "a.txt", "a"), api.new_file(&bob, "b.txt", "b"));
    let ids = |count: usize| vec![uuid(1); count].join(",");
    for (query, expected) in [
        ("folder=", &[("query.folder", "value_error")][..]),
        ("ids=", &[("query.ids", "value_error")]),
        ("folder=..", &[("query.folder", "value_error")]),
        ("ids=x", &[("query.ids", "uuid_parsing")]),
        (&format!("ids={own},"), &[("query.ids", "uuid_parsing")]),
        (&format!("ids={}", ids(101)), &[("query.ids", "value_error")]),
        (&format!("ids={own}&folder=/"), &[("query.ids", "value_error")]),
    ] {
        api.get(&format!("/uploads/zip?{query}"), &ann).case(query).invalid(expected);
    }
    for missing in [&*other, &uuid(1), &format!("{own},{other}")] {
        api.get(&format!("/uploads/zip?ids={missing}"), &ann).refused(404, "File not found");
    }
    api.delete_file(&ann, &own).expect(204);
    api.get(&format!("/uploads/zip?ids={own}"), &ann).refused(404, "File not found");
    api.post("/uploads/zip", &ann, json!({})).refused(405, "Method Not Allowed");
    api.get("/uploads/zip", Anonymous).refused(401, "Authentication required");
}

#[test]
fn tokens_that_may_read_get_archives_and_others_do_not() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.new_file(&ann, "a.txt", "a");
    let view = api.post("/auth/view-token", &ann, json!({})).expect(200).json()["token"].clone();
    let view = view.as_str().expect("a token");
    for (scope, status) in [("all", 200), ("read", 200), ("upload", 403)] {
        let body = json!({"name": scope, "scope": scope});
        let token = api.create_token(&ann, body).expect(201).json()["token"].clone();
        let token = token.as_str().expect("a token").to_owned();
        api.get("/uploads/zip", token).case(scope).expect(status);
    }
    let answer = api.get(&format!("/uploads/zip?view={view}"), Anonymous).expect(200);
    assert_eq!(answer.bytes, api.zip(&ann, ""));
    api.get("/uploads/zip?view=nonsense", Anonymous).refused(401, "Invalid token");
}

/// A download that broke goes on: the bytes of all ranges are those of the whole.
#[test]
fn the_same_files_are_the_same_bytes_in_whatever_ranges() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (folder, name) in [("/", "a"), ("/", "A"), ("/f", "empty"), ("/f", "b.txt")] {
        api.new_file_in(&ann, folder, name);
    }
    let whole = api.get("/uploads/zip", &ann).expect(200);
    let tag = whole.header("etag").to_owned();
    let (bytes, length) = (&whole.bytes, whole.bytes.len());
    let get = |method: &str, headers: &[(&str, &str)]| {
        let request = api.request(method, "/uploads/zip").by(&ann);
        headers.iter().fold(request, |request, (name, value)| request.header(name, value)).send()
    };
    assert_eq!(whole.header("accept-ranges"), "bytes");
    for start in 0..length {
        let end = (start + 1 + start % 17).min(length);
        let answer = get("GET", &[("Range", &format!("bytes={start}-{}", end - 1))]).expect(206);
        assert_eq!(answer.bytes, bytes[start..end], "{start}");
        assert_eq!(answer.header("content-range"), format!("bytes {start}-{}/{length}", end - 1));
    }
    let rest = |known: &str| get("GET", &[("Range", "bytes=50-"), ("If-Range", known)]);
    assert_eq!(rest(&tag).expect(206).bytes, bytes[50..]);
    assert_eq!(rest("\"other\"").expect(200).bytes, *bytes);
    // There is no time of the last change.
    assert_eq!(rest("Sun, 06 Nov 1994 08:49:37 GMT").expect(200).bytes, *bytes);
    assert_eq!(get("GET", &[("Range", "bytes=-22")]).expect(206).bytes, bytes[length - 22..]);
    get("GET", &[("Range", &format!("bytes={length}-"))]).refused(416, "Range not satisfiable");
    get("GET", &[("If-None-Match", &tag)]).expect(304);
    get("GET", &[("If-Match", "\"other\"")]).refused(412, "Precondition failed");
    get("GET", &[("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")]).expect(200);
    let head = get("HEAD", &[]).expect(200);
    assert_eq!((head.header("content-length"), head.header("etag")), (&*length.to_string(), &*tag));
    assert!(head.bytes.is_empty());
}

/// Whatever changes the bytes changes the tag, and nothing else does.
#[test]
fn the_tag_is_that_of_the_bytes() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let ids = ["a.txt", "b.txt"].map(|name| api.new_file_in(&ann, "/f", name));
    let both = |query: &str| {
        let answer = api.get(&format!("/uploads/zip?{query}"), &ann).expect(200);
        (answer.header("etag").to_owned(), answer.bytes)
    };
    let mut seen = vec![both("folder=/f")];
    let one_by_one = format!("ids={},{}", ids[0], ids[1]);
    assert_eq!(both(&one_by_one), seen[0], "the same files are the same archive");
    for (id, change) in [
        (&ids[0], json!({"filename": "c.txt"})),
        (&ids[0], json!({"folder": "/f/g"})),
        (&ids[1], json!({"filename": "B.txt"})),
    ] {
        api.database.run("UPDATE files SET updated_at = updated_at - interval '2 seconds'");
        api.update_file(&ann, id, change).expect(200);
        let found = both("folder=/f");
        assert!(seen.iter().all(|(tag, bytes)| *tag != found.0 && *bytes != found.1));
        seen.push(found);
    }
    api.new_file_in(&ann, "/other", "x");
    assert_eq!(both("folder=/f"), seen[3], "another folder does not count");
    api.delete_file(&ann, &ids[1]).expect(204);
    let less = both("folder=/f");
    assert!(seen.iter().all(|(tag, _)| *tag != less.0));
    api.request("POST", &format!("/uploads/{}/restore", ids[1])).by(&ann).send().expect(200);
    assert_eq!(both("folder=/f"), seen[3], "a restored file is as it was");
}

/// Begins an archive whose first file is larger than what a connection buffers, and reads its head.
fn begin(api: &Server, sender: impl Credentials, path: &str) -> (RawConnection, usize) {
    let mut raw = api.begin(&format!("GET {path} HTTP/1.1"), sender);
    let head = raw.head().expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    (raw, length.and_then(|length| length.parse().ok()).expect("a length"))
}

#[test]
fn a_file_that_goes_or_changes_breaks_the_transfer_and_a_new_one_does_not() {
    check_transfers(&Server::start(&[]));
}

#[test]
#[cfg(feature = "s3")]
fn a_file_that_goes_or_changes_breaks_the_transfer_from_a_store_too() {
    let (_store, api) = crate::files::store::start();
    check_transfers(&api);
}

/// An archive is whole only if nothing of it has changed: a new file is left out, and what went or changed breaks it.
fn check_transfers(api: &Server) {
    type Change = fn(&Server, &Tokens, &[String; 3]);
    let changes: [(&str, bool, Change); 9] = [
        ("nothing", true, |_, _, _| {}),
        ("a new file", true, |api, ann, _| drop(api.new_file_in(ann, "/f", "aa.txt"))),
        ("a file elsewhere", true, |api, ann, _| drop(api.new_file_in(ann, "/g", "x.txt"))),
        // It could be one that was planned for another place.
        ("an older file moved in", false, |api, ann, _| {
            let older = api.all_files(ann).into_iter().find(|file| file["filename"] == "older.txt");
            let id = older.expect("there")["id"].as_str().expect("an id").to_owned();
            api.update_file(ann, &id, json!({"folder": "/f", "filename": "aa.txt"})).expect(200);
        }),
        ("the next one deleted", false, |api, ann, ids| {
            api.delete_file(ann, &ids[1]).expect(204);
        }),
        ("the last one renamed", false, |api, ann, ids| {
            api.update_file(ann, &ids[2], json!({"filename": "d.txt"})).expect(200);
        }),
        ("the last one moved out", false, |api, ann, ids| {
            api.update_file(ann, &ids[2], json!({"folder": "/g"})).expect(200);
        }),
        ("the first one deleted, while it is sent", false, |api, ann, ids| {
            api.delete_file(ann, &ids[0]).expect(204);
        }),
        ("signed out", false, |api, ann, _| drop(api.logout(ann).expect(204))),
    ];
    for (at, (name, is_whole, change)) in changes.into_iter().enumerate() {
        let ann = api.sign_up(&format!("ann{at}"));
        let large = "x".repeat(9 << 20);
        api.new_file_in(&ann, "/g", "older.txt");
        let form = Form::default().field("folder", "/f").then(file_form(
            "a.txt",
            "text/plain",
            large.as_bytes(),
        ));
        let ids = [
            api.upload_form(&ann, form).expect(201).id(),
            api.new_file_in(&ann, "/f", "b.txt"),
            api.new_file_in(&ann, "/f", "c.txt"),
        ];
        let (mut raw, length) = begin(api, &ann, "/api/v1/uploads/zip?folder=/f");
        change(api, &ann, &ids);
        // The first content holds the transfer up until the change is made and the batch is too old.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let rest = raw.rest();
        assert_eq!(rest.len() == length, is_whole, "{name}: {} of {length}", rest.len());
        if is_whole {
            assert_eq!(names(&rest), ["a.txt", "b.txt", "c.txt"], "{name}");
        } else {
            wait_until(|| api.log().contains("an archive broke off"));
        }
    }
}

#[test]
fn ten_thousand_files_are_an_archive_and_one_more_are_too_many() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let insert = |from: u32, to: u32| {
        api.database.run(&format!(
            "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path,
                                file_hash)
             SELECT gen_random_uuid(), '{}', 'f' || n % 100 || chr(1), 'file ' || n / 2, 'x', 'text/plain', 0, 'x', ''
             FROM generate_series({from}, {to}) n",
            ann.id()
        ));
    };
    insert(1, 10_000);
    let archive = api.zip(&ann, "");
    let different: HashSet<String> =
        names(&archive).iter().map(|name| name.to_lowercase()).collect();
    assert_eq!(different.len(), 10_000, "no two are alike");
    assert_eq!(api.zip(&ann, ""), archive);
    assert_eq!(
        api.request("HEAD", "/uploads/zip").by(&ann).send().expect(200).header("content-length"),
        archive.len().to_string()
    );
    insert(10_001, 10_001);
    api.get("/uploads/zip", &ann).refused(413, "Too many files");
    assert_eq!(names(&api.zip(&ann, "folder=/f7")).len(), 100);
}

/// Numbers of 64 bits stand only where they are needed, and other programs read them.
#[test]
fn a_file_beyond_4_gib_is_read_by_others() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let size: u64 = 5 << 30;
    let id = api.new_file(&ann, "sparse.bin", "");
    api.new_file(&ann, "z.txt", "after it");
    let content = File::options().write(true).open(api.data.content(&id)).expect("a content");
    content.set_len(size).expect("a sparse file");
    api.database.run(&format!("UPDATE files SET file_size = {size} WHERE id = '{id}'"));
    let head = api.request("HEAD", "/uploads/zip").by(&ann).send().expect(200);
    let length: u64 = head.header("content-length").parse().expect("a number");
    let range = |range: String| {
        let request =
            api.request("GET", "/uploads/zip").by(&ann).header("Range", &format!("bytes={range}"));
        request.send().expect(206).bytes
    };
    let (first, last) = (range("0-99".into()), range(format!("{}-", length - 400)));
    let path = api.data.join("archive.zip");
    let archive = File::create(&path).expect("a file");
    archive.write_all_at(&first, 0).expect("written");
    archive.write_all_at(&last, length - 400).expect("written");
    let script = "import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
for info in archive.infolist():
    archive.open(info).read(8)
    print(info.filename, info.file_size, info.extract_version, info.header_offset > 2**32)";
    let output = Command::new("python3").args(["-c", script]).arg(&path).output().expect("Python");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text,
        format!("sparse.bin {size} 45 False\nz.txt 8 45 True\n"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::remove_file(&path).expect("removed");
}

/// What checks a content in an archive is kept whatever becomes of its record.
#[test]
fn a_file_that_was_deleted_in_whatever_way_and_restored_is_in_archives_as_before() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let ids: Vec<String> = ["a", "b", "c"].map(|name| api.new_file_in(&ann, "/f", name)).into();
    let before = unpacked(&api.zip(&ann, ""));
    let deletions: [&dyn Fn(); 3] = [
        &|| ids.iter().for_each(|id| drop(api.delete_file(&ann, id).expect(204))),
        &|| drop(api.post("/uploads/delete", &ann, json!({"ids": ids})).expect(200)),
        &|| drop(api.delete("/folders?folder=/f", &ann).expect(200)),
    ];
    for delete in deletions {
        delete();
        assert_eq!(unpacked(&api.zip(&ann, "")), []);
        let since = json!({"deleted_since": "2020-01-01T00:00:00Z"});
        api.post("/uploads/restore", &ann, since).expect(200).has(json!({"restored": 3}));
        assert_eq!(unpacked(&api.zip(&ann, "")), before);
    }
}
