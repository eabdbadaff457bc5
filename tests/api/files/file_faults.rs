//! Uploads and downloads while things break: the process is killed, the disk is full, the database stops, the client
//! disconnects. What was answered with 201 survives, and an upload that failed leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::harness::*;

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let acknowledged = Mutex::new(Vec::new());
    let mut ann = None;
    // The process is killed after this many answers, with other uploads under way.
    for kill_after in [3, 30, 80, 140] {
        let api = Server::start_with(&database, &data, &[("CLOAKROOM_WORKERS", "64")]);
        let ann = ann.get_or_insert_with(|| api.sign_up("ann"));
        let answered = AtomicUsize::new(0);
        parallel(200, |i| {
            let content = format!("{kill_after} {i} ").repeat(20_000 + 997 * i).into_bytes();
            let form = file_form("a.txt", "text/plain", &content);
            if let Ok(answer) = api.upload_request(&*ann, form.bytes()).try_send()
                && answer.status == 201
            {
                acknowledged.lock().expect("no panic").push((answer.id(), sha256(&content)));
            }
            if answered.fetch_add(1, Ordering::SeqCst) == kill_after {
                api.signal(Signal::KILL);
            }
        });
    }
    let (api, ann) = (Server::start_with(&database, &data, &[]), ann.expect("tokens"));
    let files = json!(api.all_files(&ann));
    let hashes: BTreeMap<_, _> =
        names_of(&files, "id").into_iter().zip(names_of(&files, "file_hash")).collect();
    let acknowledged = acknowledged.into_inner().expect("no panic");
    assert!(!acknowledged.is_empty());
    for (id, hash) in &acknowledged {
        assert_eq!(hashes.get(id), Some(hash), "{id} is lost");
    }
    for (id, hash) in &hashes {
        assert_eq!(sha256(&api.download(&ann, id).expect(200).bytes), *hash, "{id}");
    }
    if !cfg!(feature = "tools") {
        return;
    }
    // Contents that were stored but not recorded are found by the garbage collection.
    let before = api.data.contents();
    before.iter().for_each(|path| make_older(path, 1));
    let printed = api.run_beside(&["gc", "--confirm", "--all"]).exits(0).out();
    let owned: Vec<_> = hashes.keys().map(|id| data.content(id)).collect();
    assert_eq!(api.data.contents(), owned);
    let is_change = |line: &&str| line.starts_with("moved ") || line.starts_with("removed ");
    let changes = printed.lines().filter(is_change).count();
    assert_eq!(changes, before.len() - owned.len(), "{printed}");
}

#[test]
fn a_full_disk_is_a_507_and_leaves_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let keyed = || {
        let form = file_form("b.txt", "text/plain", &[b'x'; 200_000]);
        api.upload_request(&ann, form.bytes()).header("Idempotency-Key", "k1").send()
    };
    let first = keyed().expect(201);
    // A limit on the size of files makes writes fail as on a full disk.
    let pid = api.pid().to_string();
    let limited = Command::new("prlimit").args(["--pid", &pid, "--fsize=100000:100000"]).status();
    assert!(limited.expect("prlimit runs").success());
    let upload = |size| api.upload(&ann, "a.txt", vec![b'x'; size]);
    let answer = upload(1_000_000).refused(507, "Storage quota exceeded");
    answer.has(json!({"error_code": "STORAGE_QUOTA_EXCEEDED"}));
    api.logged("data directory: File too large");
    // Of one that is known the content is only compared, and not stored.
    if has_extras() {
        keyed().expect(201);
    }
    assert_eq!(api.data.contents(), [api.data.content(&first.id())]);
    upload(100_000).expect(201);
    assert_eq!(api.data.contents().len(), 2);
}

#[test]
fn a_content_that_cannot_be_removed_is_tried_again_and_keeps_no_other_waiting() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [first, second] = ["1", "2"].map(|content| api.new_file(&ann, "a.txt", content));
    let path = api.data.content(&first);
    // A directory in the place of a file cannot be removed like one.
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    for id in [&first, &second] {
        api.delete_for_good(&ann, id).expect(204);
    }
    wait_until(|| !api.data.content(&second).exists());
    api.logged(&format!("content of file {first} was not removed"));
    wait_until(|| api.database.count("deleted_contents") == 1);
    let waits = "deleted_contents WHERE deleted_at > now() - interval '7 days'";
    assert_eq!(api.database.count(waits), 1, "it is not tried all the time");
    fs::remove_dir(&path).expect("removed");
    fs::write(&path, "1").expect("written");
    api.database.run("UPDATE deleted_contents SET deleted_at = deleted_at - interval '1 minute'");
    wait_until(|| api.database.count("deleted_contents") == 0);
    assert_eq!(api.data.contents().len(), 0);
}

#[test]
fn as_many_uploads_as_connections_succeed_within_the_limit_on_open_files() {
    let (database, data) = (Database::create_migrated(), Arc::new(Directory::create()));
    let service = within_shell("ulimit -n 64", command(&database.url, &data, &[]));
    let api = Server::spawn(service, &database, &data);
    let count = api.metric("cloakroom_connections_max").expect("a number") as usize;
    api.logged(&format!("the file limit has room for {count} connections"));
    assert!(count > 1);
    let ann = api.sign_up("ann");
    let (body, length) = megabyte_upload();
    let (first, second) = body.split_at(500_000);
    for round in 1..=10 {
        // A connection that is still being closed counts too: to make room, an upload would be evicted.
        wait_until(|| connection_threads(&api) == 0);
        let begin = |_| api.begin_upload(&ann, &length(body.len()), first);
        let streams: Vec<_> = (0..count).map(begin).collect();
        wait_until(|| api.data.contents().len() == round * count);
        let streams: Vec<_> = streams.into_iter().map(|stream| Mutex::new(Some(stream))).collect();
        let statuses = parallel(count, |i| {
            let mut stream = streams[i].lock().expect("no panic").take().expect("a stream");
            stream.write_all(second).expect("the rest is sent");
            status_of(stream)
        });
        assert_eq!(statuses, vec![201; count], "{}", api.log());
    }
    assert_eq!(api.all_files(&ann).len(), 10 * count);
}

/// How many threads serve a connection: those that have the name of the process, but for the first one.
fn connection_threads(api: &Server) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", api.pid())).expect("the process");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name == "cloakroom\n").count() - 1
}

/// The body of an upload of a megabyte, and the header that announces `length` bytes of body.
fn megabyte_upload() -> (Vec<u8>, impl Fn(usize) -> String) {
    let body = file_form("a.txt", "text/plain", &vec![b'x'; 1_000_000]).bytes();
    (body, |length| format!("Content-Length: {length}"))
}

#[test]
fn a_database_that_stops_in_mid_upload_leaves_nothing() {
    let cluster = Cluster::start("upload");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")]);
    let ann = api.sign_up("ann");
    let (body, length) = megabyte_upload();
    let (first, second) = body.split_at(500_000);
    let mut stream = api.begin_upload(&ann, &length(body.len()), first);
    wait_until(|| api.data.contents().len() == 1);
    cluster.stop();
    stream.write_all(second).expect("the rest is sent");
    assert_eq!(status_of(stream), 503);
    assert_eq!(api.data.contents().len(), 0);
    cluster.start_again();
    wait_until(|| api.readyz().status == 200);
    assert_eq!(api.all_files(&ann).len(), 0);
}

#[test]
fn a_client_that_disconnects_leaves_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (body, length) = megabyte_upload();
    for (sent, announced) in [
        (500_000, body.len()),         // within the file
        (body.len() - 20, body.len()), // before the closing delimiter
        (body.len() - 4, body.len()),  // within the closing delimiter
        (body.len(), body.len() + 1),  // after the closing delimiter, but before the announced end
    ] {
        let stream = api.begin_upload(&ann, &length(announced), &body[..sent]);
        wait_until(|| api.data.contents().len() == 1);
        drop(stream);
        wait_until(|| api.data.contents().is_empty());
    }
    assert_eq!(api.database.count("files"), 0);
}

#[test]
fn a_record_that_cannot_be_made_in_time_leaves_nothing() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")], ["ann"]);
    let lock = api.database.begin("SELECT FROM storage_shards FOR UPDATE");
    api.upload(&ann, "a.txt", "x").refused(504, "Request timed out");
    assert_eq!(api.data.contents().len(), 0);
    lock.roll_back();
    api.new_file(&ann, "a.txt", "x");
}

#[test]
#[cfg(feature = "tools")]
fn a_content_is_kept_while_it_is_unknown_whether_it_was_recorded() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let form = || file_form("a.txt", "text/plain", b"x").bytes();
    let keyed = || api.upload_request(&ann, form()).header("Idempotency-Key", "k1");
    let lock = api.database.begin("SELECT FROM storage_shards FOR UPDATE");
    let answer = std::thread::scope(|scope| {
        let upload = scope.spawn(|| keyed().send());
        api.database.wait_for_blocked_statement();
        api.database.end_connections("wait_event_type = 'Lock'");
        upload.join().expect("no panic")
    });
    let answer = answer.refused(503, "Service temporarily unavailable");
    assert!(answer.has_header("Retry-After"));
    answer.has(json!({"reason": "OUTCOME_UNKNOWN"}));
    lock.roll_back();
    // The connection broke before an answer: the server cannot know whether the record was made, and keeps the content.
    // It was not made, so the garbage collection removes the content once it is old enough.
    assert_eq!(api.all_files(&ann).len(), 0);
    let contents = api.data.contents();
    assert_eq!(contents.len(), 1);
    assert_eq!(api.collect_garbage(), swept(0, 0));
    make_older(&contents[0], 1);
    api.collect_garbage();
    assert_eq!(api.data.contents().len(), 0);
    // The same request with its key settles it.
    let file = keyed().send().expect(201);
    assert!(!file.has_header("Idempotency-Replayed"));
    assert_eq!(keyed().send().expect(201).id(), file.id());
    assert_eq!(api.all_files(&ann).len(), 1);
}

#[test]
fn memory_does_not_grow_with_an_upload_or_a_download() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "300000000")], ["ann"]);
    let small = api.new_file(&ann, "a.txt", "small");
    api.download(&ann, &small).expect(200);
    let before = api.peak_memory();
    let (megabyte, megabytes) = (vec![b'x'; 1_000_000], 200);
    for (form, expected) in [
        (file_form("a.txt", "text/plain", b""), 201), // a file of 200 MB
        (file_form("a.txt", "text/plain", b"").field("description", ""), 422), // a description as long
    ] {
        // The long content goes before the closing delimiter, the two line ends and four hyphens around it.
        let bytes = form.bytes();
        let (head, tail) = bytes.split_at(bytes.len() - BOUNDARY.len() - 8);
        let length = bytes.len() + megabytes * megabyte.len();
        let mut stream = api.begin_upload(&ann, &format!("Content-Length: {length}"), head);
        for _ in 0..megabytes {
            stream.write_all(&megabyte).expect("sent");
        }
        stream.write_all(tail).expect("sent");
        assert_eq!(status_of(stream), expected);
    }
    let files = api.all_files(&ann);
    let large = files.iter().find(|file| file["file_size"] == 200_000_000).expect("listed");
    let answer = api.download(&ann, large["id"].as_str().expect("an id")).expect(200);
    assert_eq!(answer.bytes.len(), 200_000_000);
    let grown = api.peak_growth(before);
    assert!(grown < 8_000_000, "{grown} bytes more");
}

#[test]
fn a_body_of_unknown_length_is_cut_at_the_limit() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "100000")], ["ann"]);
    for (size, expected) in [(100_000, 201), (100_001, 413), (2_000_000, 413)] {
        let body = file_form("a.txt", "text/plain", &vec![b'x'; size]).bytes();
        let mut stream = api.begin_upload(&ann, "Transfer-Encoding: chunked", b"");
        let mut send = |chunk: &[u8]| {
            let head = format!("{:x}\r\n", chunk.len());
            stream.write_all(&[head.as_bytes(), chunk, b"\r\n"].concat())
        };
        // The server may refuse the body and close the connection before all is sent.
        let _ = body.chunks(10_000).try_for_each(&mut send).and_then(|()| send(b""));
        assert_eq!(status_of(stream), expected, "{size}");
    }
    assert_eq!(api.data.contents().len(), 1);
}
