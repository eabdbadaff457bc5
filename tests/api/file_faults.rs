//! Uploads while things break: the process is killed, the disk is full, the database stops, the client
//! hangs up. What was answered 201 is there, and what failed left nothing behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::database::Cluster;
use crate::forms::{self, file, id, status};
use crate::harness::{Database, Directory, Server, command, eventually, parallel};

/// Makes a content look as if it was written that long ago.
fn age(path: &Path, hours: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours * 3600 + 1);
    let content = File::options().write(true).open(path).expect("a content");
    content.set_modified(time).expect("a time is set");
}

/// Runs `cloakroom gc` beside a server and gives what it prints.
fn gc(server: &Server) -> String {
    let output = command(&server.database.url, &server.data.0, &[])
        .arg("gc")
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// All of a user's files, page by page.
fn listed(server: &Server, token: &str) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    for page in 1.. {
        let body = server.get(&format!("/uploads?size=100&page={page}"), token).expect(200).json();
        let items = body["items"].as_array().expect("items").clone();
        if items.is_empty() {
            assert_eq!(body["total"], serde_json::json!(found.len()));
            break;
        }
        found.extend(items);
    }
    found
}

fn hash(content: &[u8]) -> String {
    let digits: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{digits}")
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let (database, data) = (Database::create(), std::sync::Arc::new(Directory::create()));
    let acknowledged = Mutex::new(Vec::new());
    let content =
        |round: usize, i: usize| format!("{round} {i} ").repeat(20_000 + 997 * i).into_bytes();
    let mut token = None;
    for round in 0..4 {
        let server = Server::start_with(&database, &data, &[("CLOAKROOM_WORKERS", "64")]);
        let token = token.get_or_insert_with(|| server.sign_up("ann").access);
        // The kill comes after a number of answers that no two runs share.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let moment = now.expect("a time").subsec_nanos() as usize / 1000 % 150;
        let answered = AtomicUsize::new(0);
        parallel(200, |i| {
            let content = content(round, i);
            let form = file("a.txt", "text/plain", &content);
            let outcome = server.upload_request(token, form.bytes()).try_send();
            if let Ok(answer) = outcome
                && answer.status == 201
            {
                let pair = (id(&answer.json()), hash(&content));
                acknowledged.lock().expect("no panic").push(pair);
            }
            if answered.fetch_add(1, Ordering::SeqCst) == moment {
                let killed = Command::new("kill").args(["-9", &server.pid().to_string()]).status();
                assert!(killed.expect("kill runs").success());
            }
        });
    }
    let (server, token) = (Server::start_with(&database, &data, &[]), token.expect("a token"));
    let acknowledged = acknowledged.into_inner().expect("no panic");
    assert!(!acknowledged.is_empty());
    let files = listed(&server, &token);
    let listed_ids: BTreeSet<_> = files.iter().map(id).collect();
    for (id, _) in &acknowledged {
        assert!(listed_ids.contains(id), "{id} is lost");
    }
    for file in &files {
        let content = server.download(&token, &id(file)).send().expect(200).bytes;
        assert_eq!(hash(&content), file["file_hash"], "{}", id(file));
    }
    for (id, hash) in &acknowledged {
        let file = files.iter().find(|file| forms::id(file) == *id);
        assert_eq!(file.expect("listed")["file_hash"], **hash);
    }
    let before = server.contents();
    before.iter().for_each(|path| age(path, 1));
    let printed = gc(&server);
    let owned: Vec<PathBuf> = listed_ids.iter().map(|id| data.0.join("files").join(id)).collect();
    assert_eq!(server.contents(), owned);
    let removed = printed.lines().filter(|line| line.starts_with("removed ")).count();
    assert_eq!(removed, before.len() - owned.len(), "{printed}");
}

#[test]
fn a_full_disk_is_a_507_and_leaves_nothing() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    // No file of this process may grow beyond this, as on a disk that is full.
    let limited = Command::new("prlimit")
        .args(["--pid", &server.pid().to_string(), "--fsize=100000:100000"])
        .status();
    assert!(limited.expect("prlimit runs").success());
    let upload = |size| server.upload(&ann.access, file("a.txt", "text/plain", &vec![b'x'; size]));
    let answer = upload(1_000_000).refused(507, "Storage quota exceeded");
    assert_eq!(answer.json()["error_code"], "STORAGE_QUOTA_EXCEEDED");
    server.logged("data directory: File too large");
    assert_eq!(server.contents().len(), 0);
    upload(100_000).expect(201);
    assert_eq!(server.contents().len(), 1);
}

#[test]
fn a_database_that_stops_in_mid_upload_leaves_nothing() {
    let cluster = Cluster::start("upload", "");
    let settings = [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")];
    let server = Server::start_on(&Database::create_on(&cluster.url), &settings);
    let ann = server.sign_up("ann");
    let body = file("a.txt", "text/plain", &vec![b'x'; 1_000_000]).bytes();
    let (first, second) = body.split_at(500_000);
    let mut stream = server.begin_upload(&ann.access, body.len(), first);
    eventually(|| (server.contents().len() == 1).then_some(()));
    cluster.stop();
    stream.write_all(second).expect("the rest is sent");
    assert_eq!(status(stream), 503);
    assert_eq!(server.contents().len(), 0);
    cluster.start_again();
    eventually(|| (server.request("GET", "/readyz").send().status == 200).then_some(()));
    assert_eq!(listed(&server, &ann.access).len(), 0);
}

#[test]
fn a_client_that_hangs_up_leaves_nothing() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let body = file("a.txt", "text/plain", &vec![b'x'; 1_000_000]).bytes();
    // In mid-file; and before, within and after the last delimiter of a body announced longer.
    for (sent, announced) in [
        (500_000, body.len()),
        (body.len() - 20, body.len()),
        (body.len() - 4, body.len()),
        (body.len(), body.len() + 1),
    ] {
        let stream = server.begin_upload(&ann.access, announced, &body[..sent]);
        eventually(|| (server.contents().len() == 1).then_some(()));
        drop(stream);
        eventually(|| server.contents().is_empty().then_some(()));
    }
    let records = server.database.value::<i64>("SELECT count(*) FROM files");
    assert_eq!(records, 0);
}

/// Waits until an upload of the server waits for a lock.
fn waits(server: &Server) {
    let blocked = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually(|| (server.database.value::<i64>(blocked) == 1).then_some(()));
}

#[test]
fn a_record_that_cannot_be_made_in_time_leaves_nothing() {
    let server = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let ann = server.sign_up("ann");
    let mut other = server.database.client();
    let mut transaction = other.transaction().expect("a transaction");
    transaction.batch_execute("SELECT FROM storage FOR UPDATE").expect("a lock");
    let answer = server.upload(&ann.access, file("a.txt", "text/plain", b"x"));
    answer.refused(504, "Request timed out");
    assert_eq!(server.contents().len(), 0);
    drop(transaction);
    server.upload_text(&ann.access, "a.txt", "x");
}

#[test]
fn a_content_stays_where_nobody_knows_whether_it_is_recorded() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let mut other = server.database.client();
    let mut transaction = other.transaction().expect("a transaction");
    transaction.batch_execute("SELECT FROM storage FOR UPDATE").expect("a lock");
    let answer = std::thread::scope(|scope| {
        let upload = scope.spawn(|| server.upload(&ann.access, file("a.txt", "text/plain", b"x")));
        waits(&server);
        server.database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        upload.join().expect("no panic")
    });
    let answer = answer.refused(503, "Service temporarily unavailable");
    answer.header("Retry-After");
    drop(transaction);
    // The connection broke under the change. This one was not made, and the sweep finds that out.
    assert_eq!(listed(&server, &ann.access).len(), 0);
    let contents = server.contents();
    assert_eq!(contents.len(), 1);
    assert_eq!(gc(&server), "0 removed, 0 missing.\n");
    age(&contents[0], 1);
    gc(&server);
    assert_eq!(server.contents().len(), 0);
}

#[test]
fn gc_removes_what_is_old_and_nobodys() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let kept = server.upload_text(&ann.access, "a.txt", "one");
    let place = |room: &str, name: &str| {
        let path = server.data.0.join(room).join(name);
        fs::write(&path, "x").expect("a file");
        path
    };
    let (old, young) =
        ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222");
    let gone = [place("files", old), place("tmp", old)];
    let stays = [
        place("files", young),
        place("tmp", young),
        place("files", "note.txt"),
        place("files", "11111111111141118111111111111112"),
    ];
    let recorded = server.data.0.join("files").join(&kept);
    let aged = [&gone[0], &gone[1], &stays[2], &stays[3], &recorded];
    aged.into_iter().for_each(|path| age(path, 1));
    let printed = gc(&server);
    for path in &gone {
        assert!(!path.exists());
        assert!(printed.contains(&format!("removed {}\n", path.display())), "{printed}");
    }
    assert!(stays.iter().all(|path| path.exists()) && recorded.exists());
    assert!(printed.ends_with("\n2 removed, 0 missing.\n"), "{printed}");
}

#[test]
fn gc_looks_at_more_than_it_holds_at_once() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let kept = server.upload_text(&ann.access, "a.txt", "one");
    for n in 0..2500 {
        let path = server.data.0.join("files").join(format!("{n:08x}-1111-4111-8111-111111111111"));
        fs::write(&path, "").expect("a file");
        age(&path, 1);
    }
    let user = ann.id();
    server.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), '{user}', 'a', 'a', 'text/plain', 1, '', '' FROM generate_series(1, 2500)"
    ));
    let printed = gc(&server);
    assert!(printed.ends_with("\n2500 removed, 2500 missing.\n"));
    assert_eq!(server.contents(), [server.data.0.join("files").join(kept)]);
}

#[test]
fn a_start_sweeps_too() {
    let (database, data) = (Database::create(), std::sync::Arc::new(Directory::create()));
    drop(Server::start_with(&database, &data, &[]));
    let path = data.0.join("tmp/11111111-1111-4111-8111-111111111111");
    fs::write(&path, "x").expect("a file");
    age(&path, 1);
    let server = Server::start_with(&database, &data, &[]);
    server.logged(&format!("removed {}", path.display()));
    assert!(!path.exists());
}

#[test]
fn a_content_that_is_missing_or_cut_is_a_500_and_reported() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let missing = server.upload_text(&ann.access, "a.txt", "one");
    let cut = server.upload_text(&ann.access, "b.txt", "two");
    let whole = server.upload_text(&ann.access, "c.txt", "three");
    fs::remove_file(server.data.0.join("files").join(&missing)).expect("removed");
    fs::write(server.data.0.join("files").join(&cut), "tw").expect("cut");
    for id in [&missing, &cut] {
        let answer = server.download(&ann.access, id).send();
        answer.refused(500, "Internal server error");
        server.logged(&format!("content of file {id}"));
        server.get(&format!("/uploads/{id}"), &ann.access).expect(200);
    }
    server.download(&ann.access, &whole).send().expect(200);
    assert!(!server.log().contains("panic"), "{}", server.log());
    let printed = gc(&server);
    assert_eq!(
        printed,
        format!("the content of file {missing} is missing\n0 removed, 1 missing.\n")
    );
    server.api("DELETE", &format!("/uploads/{missing}")).bearer(&ann.access).send().expect(204);
}

/// The most memory the process ever held, bytes.
fn memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("kB");
    kilobytes * 1024
}

#[test]
fn memory_does_not_grow_with_an_upload_or_a_download() {
    let server = Server::start(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "300000000")]);
    let ann = server.sign_up("ann");
    let small = server.upload_text(&ann.access, "a.txt", "small");
    server.download(&ann.access, &small).send().expect(200);
    let before = memory(&server);
    // A file of 200 MB, then a description as long.
    let (megabyte, megabytes) = (vec![b'x'; 1_000_000], 200);
    for (head, expected) in [
        (file("a.txt", "text/plain", b""), 201),
        (file("a.txt", "text/plain", b"").field("description", ""), 422),
    ] {
        let (head, tail) = {
            let bytes = head.bytes();
            let end = bytes.len() - forms::BOUNDARY.len() - 8;
            (bytes[..end].to_vec(), bytes[end..].to_vec())
        };
        let length = head.len() + tail.len() + megabytes * megabyte.len();
        let mut stream = server.begin_upload(&ann.access, length, &head);
        for _ in 0..megabytes {
            stream.write_all(&megabyte).expect("sent");
        }
        stream.write_all(&tail).expect("sent");
        assert_eq!(status(stream), expected);
    }
    let large = listed(&server, &ann.access)
        .into_iter()
        .find(|file| file["file_size"] == 200_000_000)
        .expect("listed");
    let answer = server.download(&ann.access, &id(&large)).send().expect(200);
    assert_eq!(answer.bytes.len(), 200_000_000);
    let grown = memory(&server) - before;
    assert!(grown < 8_000_000, "{grown} bytes more");
}

#[test]
fn a_body_of_unknown_length_is_cut_at_the_limit() {
    let server = Server::start(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "100000")]);
    let ann = server.sign_up("ann");
    for (size, expected) in [(100_000, 201), (100_001, 413), (2_000_000, 413)] {
        let body = file("a.txt", "text/plain", &vec![b'x'; size]).bytes();
        let mut stream = std::net::TcpStream::connect(&server.address).expect("a connection");
        let head = format!(
            "POST /api/v1/uploads HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: multipart/form-data; boundary={}\r\nTransfer-Encoding: chunked\r\n\r\n",
            ann.access,
            forms::BOUNDARY
        );
        stream.write_all(head.as_bytes()).expect("sent");
        for chunk in body.chunks(10_000) {
            let sent = stream
                .write_all(format!("{:x}\r\n", chunk.len()).as_bytes())
                .and_then(|()| stream.write_all(chunk))
                .and_then(|()| stream.write_all(b"\r\n"));
            // The server may have answered by now.
            if sent.is_err() {
                break;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *format!("HTTP/1.1 {expected}").as_bytes(), "{size}");
    }
    assert_eq!(server.contents().len(), 1);
}
