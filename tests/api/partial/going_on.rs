//! Uploads that break off: what counts afterwards, who may write, and what is left after a crash.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::partial::{ALL, BYTES, id_of, metadata};
use crate::harness::*;

impl Server {
    /// Begins to add bytes to an upload, from this offset, in a request that announces so many and sends fewer.
    pub fn begin_adding(
        &self,
        path: &str,
        sender: impl Credentials,
        (at, announced): (usize, usize),
        bytes: &[u8],
    ) -> TcpStream {
        let token = sender.access_token().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}Tus-Resumable: 1.0.0\r\n\
             Content-Type: {BYTES}\r\nUpload-Offset: {at}\r\nContent-Length: {announced}\r\n\r\n",
            token.unwrap_or_default()
        );
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
        sent.expect("the beginning is sent");
        stream
    }

    /// The bytes of an upload, as they lie on the disk.
    pub fn partial_file(&self, path: &str) -> std::path::PathBuf {
        self.data.join("partial").join(id_of(path))
    }

    /// Waits until so many bytes of an upload are written.
    pub fn wait_for_bytes(&self, path: &str, length: u64) {
        let file = self.partial_file(path);
        wait_until(|| file.metadata().is_ok_and(|found| found.len() == length));
    }
}

const LARGE: [(&str, &str); 3] = [
    ("CLOAKROOM_MAX_UPLOAD_SIZE", "1000000000"),
    ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any"),
    PATIENT,
];

#[test]
fn what_came_before_a_connection_broke_is_kept() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = numbers(50_000).into_bytes();
    let path = api.begin_partial(&ann, 50_000);
    let stream = api.begin_adding(&path, &ann, (0, 50_000), &content[..30_000]);
    api.wait_for_bytes(&path, 30_000);
    assert_eq!(api.offset(&path, &ann), 30_000);
    drop(stream);
    let note = format!("partial_uploads WHERE id = '{}' AND file_offset = 30000", id_of(&path));
    wait_until(|| api.database.count(&note) == 1);
    api.adding(&path, &ann, 30_000, &content[30_000..]).send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, content);
    // A creation that broke off is found in the list.
    let head = format!(
        "POST {ALL} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\n\
         Content-Type: {BYTES}\r\nUpload-Length: 9\r\nUpload-Metadata: {}\r\nContent-Length: 9\r\n\r\n12345",
        ann.access,
        metadata(&[("filename", "b.txt")])
    );
    let mut broken = TcpStream::connect(&api.address).expect("a connection");
    broken.write_all(head.as_bytes()).expect("a part is sent");
    wait_until(|| api.partial_uploads(&ann).iter().any(|one| one["offset"] == json!(5)));
    drop(broken);
    let listed = api.partial_uploads(&ann);
    let path = format!("{ALL}/{}", listed[0]["id"].as_str().expect("an id"));
    wait_until(|| api.adding(&path, &ann, 5, b"6789").send().status == 204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"123456789");
}

#[test]
fn the_newest_request_writes_and_one_beyond_the_offset_disturbs_nobody() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = numbers(50_000).into_bytes();
    let path = api.begin_partial(&ann, 50_000);
    let first = api.begin_adding(&path, &ann, (0, 50_000), &content[..10_000]);
    api.wait_for_bytes(&path, 10_000);
    let beyond = api.adding(&path, &ann, 10_001, b"x").send().expect(409);
    assert_eq!(beyond.header("Upload-Offset"), "10000");
    // It was not disturbed.
    (&first).write_all(&content[10_000..20_000]).expect("it goes on");
    api.wait_for_bytes(&path, 20_000);
    let began = Instant::now();
    let second = api.begin_adding(&path, &ann, (20_000, 30_000), &content[20_000..25_000]);
    let mut first = RawConnection::over(first).expect("a connection");
    let answer = first.answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (409, &json!("UPLOAD_OVERTAKEN")));
    api.wait_for_bytes(&path, 25_000);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // One that comes with an old offset takes over, too, and is told where it stands.
    let late = api.adding(&path, &ann, 20_000, b"x").send().expect(409);
    assert_eq!(late.header("Upload-Offset"), "25000");
    assert_eq!(status_of(second), 409);
    api.adding(&path, &ann, 25_000, &content[25_000..]).send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, content);
}

#[test]
fn of_many_requests_at_once_none_mixes_its_bytes_with_another_s() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let other = api.beside(&[PATIENT]);
    let content = numbers(400_000).into_bytes();
    let path = api.begin_partial(&ann, 400_000);
    parallel(6, |n| {
        let api = [&api, &other][n % 2];
        loop {
            let head = api.tus("HEAD", &path, &ann).send();
            // Another request is recording the file.
            if head.status == 503 {
                continue;
            }
            let at: usize = head.header("Upload-Offset").parse().expect("a number");
            if at == content.len() {
                break;
            }
            let end = (at + 1 + (n + 1) * 7_000).min(content.len());
            let answer = api.adding(&path, &ann, at, &content[at..end]).send();
            assert!([204, 409].contains(&answer.status), "{answer:?}");
        }
    });
    api.adding(&path, &ann, content.len(), b"").send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, content);
    assert_eq!(api.file_stats(&ann), (1, 400_000));
}

#[test]
fn the_writer_of_another_process_is_waited_for_for_a_second() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let other = api.beside(&[]);
    let path = api.begin_partial(&ann, 10);
    let writer = other.begin_adding(&path, &ann, (0, 10), b"01234");
    api.wait_for_bytes(&path, 5);
    let busy = api.adding(&path, &ann, 5, b"56789").send().expect(409);
    assert_eq!(busy.header("Retry-After"), "1");
    busy.has(json!({"reason": "UPLOAD_BUSY"}));
    // However the other process ends, its lock ends with it.
    other.end(Signal::KILL);
    drop(writer);
    api.adding(&path, &ann, 5, b"56789").send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"0123456789");
}

#[test]
fn nothing_that_was_told_is_lost_when_the_process_is_killed() {
    let (api, [ann]) = Server::with_users(&LARGE, ["ann"]);
    let content: Vec<u8> = (0..70_000_000_u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    let path = api.begin_partial(&ann, content.len());
    let stream = api.begin_adding(&path, &ann, (0, content.len()), &content[..69_000_000]);
    api.wait_for_bytes(&path, 69_000_000);
    assert_eq!(api.offset(&path, &ann), 69_000_000);
    let id = id_of(&path).to_owned();
    let (database, data, _) = api.end(Signal::KILL);
    drop(stream);
    let synced: i64 = database.value("SELECT file_offset FROM partial_uploads");
    assert!((64 << 20..69_000_000).contains(&synced), "{synced}");
    let api = Server::start_with(&database, &data, &LARGE);
    assert_eq!(api.offset(&path, &ann), 69_000_000);
    // What follows from the bytes before is not lost either; but what is of another program is found out anew.
    database.run("UPDATE partial_uploads SET state = 'of another program'");
    let last = api.adding(&path, &ann, 69_000_000, &content[69_000_000..]).send().expect(204);
    assert!(last.has_header("ETag"));
    api.show_file(&ann, &id).expect(200).has(json!({"file_hash": sha256(&content)}));
}

#[test]
fn after_a_loss_of_power_only_what_is_synced_counts() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 10);
    api.adding(&path, &ann, 0, b"01234").send().expect(204);
    let (database, data, _) = api.end(Signal::KILL);
    // What was written after that in a boot that is over may be anything.
    let file = data.join("partial").join(id_of(&path));
    fs::write(&file, b"01234\0\0\0").expect("a file");
    database.run("UPDATE partial_uploads SET boot = 'of before'");
    let api = Server::start_with(&database, &data, &[]);
    assert_eq!(api.offset(&path, &ann), 5);
    api.adding(&path, &ann, 8, b"89").send().expect(409);
    api.adding(&path, &ann, 5, b"56789").send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"0123456789");
    // One whose bytes are gone, as on another host, is none, also before it had any.
    let path = api.begin_partial(&ann, 10);
    fs::remove_file(api.partial_file(&path)).expect("a file");
    api.tus("HEAD", &path, &ann).send().expect(404);
    api.adding(&path, &ann, 0, b"01234").send().refused(404, "Upload not found");
    let path = api.begin_partial(&ann, 10);
    api.adding(&path, &ann, 0, b"01234").send().expect(204);
    fs::write(api.partial_file(&path), b"0123").expect("a file");
    api.tus("HEAD", &path, &ann).send().expect(404);
    api.adding(&path, &ann, 4, b"456789").send().refused(404, "Upload not found");
    fs::remove_file(api.partial_file(&path)).expect("a file");
    api.tus("HEAD", &path, &ann).send().expect(404);
}

#[test]
fn a_crash_between_the_last_byte_and_the_record_makes_no_second_file_and_loses_none() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let path = api.begin_partial(&ann, 10);
    api.adding(&path, &ann, 0, b"01234").send().expect(204);
    // The record waits for the owner's row; by then the content is in its place.
    let (id, token) = (id_of(&path).to_owned(), ann.access.clone());
    let held = api.database.begin("LOCK TABLE files IN EXCLUSIVE MODE");
    thread::scope(|scope| {
        let request = api.adding(&path, &token, 5, b"56789");
        scope.spawn(move || request.try_send().is_ok());
        wait_until(|| api.data.content(&id).exists());
        api.signal(Signal::KILL);
    });
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    database.end_connections("pid <> pg_backend_pid() AND wait_event_type = 'Lock'");
    held.roll_back();
    let api = Server::start_with(&database, &data, &[PATIENT]);
    assert!(api.data.content(&id).exists());
    assert_eq!(
        (&api.partial_uploads(&ann)[0]["offset"], api.file_stats(&ann)),
        (&json!(10), (0, 0))
    );
    // The sweep leaves it alone.
    make_older(&api.data.content(&id), 30);
    assert_eq!(api.collect_garbage(), swept(0, 0));
    // Who has moved it there, and has its lock, may take it back if it cannot be synced.
    let mover = fs::File::open(api.data.content(&id)).expect("a content");
    mover.lock().expect("a lock");
    let busy = api.adding(&path, &ann, 10, b"").send().expect(409);
    assert_eq!(busy.header("Retry-After"), "1");
    fs::rename(api.data.content(&id), api.partial_file(&path)).expect("a draft again");
    drop(mover);
    let last = api.adding(&path, &ann, 10, b"").send().expect(204);
    assert_eq!(last.header("Content-Location"), format!("/api/v1/uploads/{id}"));
    assert_eq!(api.download(&ann, &id).expect(200).bytes, b"0123456789");
    assert_eq!(api.file_stats(&ann), (1, 10));
}

/// The hash does not begin anew with the last byte.
#[test]
fn the_last_request_takes_as_long_for_a_large_file_as_for_a_small_one() {
    let (api, [ann]) = Server::with_users(&LARGE, ["ann"]);
    let time = |size: usize| {
        let path = api.begin_partial(&ann, size);
        let piece = vec![7; 50_000_000.min(size - 1)];
        for at in (0..size - 1).step_by(piece.len()) {
            let end = piece.len().min(size - 1 - at);
            api.adding(&path, &ann, at, &piece[..end]).send().expect(204);
        }
        let began = Instant::now();
        api.adding(&path, &ann, size - 1, b"x").send().expect(204);
        began.elapsed()
    };
    let small = (0..3).map(|_| time(1000)).min().expect("a time");
    let large = time(300_000_001);
    assert!(large < 5 * small + Duration::from_millis(150), "{large:?} and {small:?}");
}

#[test]
fn an_upload_that_ends_while_it_is_written_leaves_nothing() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 100);
    let writer = api.begin_adding(&path, &ann, (0, 100), b"01234");
    api.wait_for_bytes(&path, 5);
    api.tus("DELETE", &path, &ann).send().expect(204);
    assert_eq!(status_of(writer), 404);
    wait_until(|| entries(api.data.join("partial")).is_empty());
    assert!(api.partial_uploads(&ann).is_empty());
}

#[test]
fn a_session_that_ends_while_bytes_come_records_nothing_and_what_came_is_kept() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let path = api.begin_partial(&ann, 10);
    let held = api.sign_in("ann");
    let mut stream = api.begin_adding(&path, &held, (0, 10), b"01234");
    api.wait_for_bytes(&path, 5);
    thread::sleep(Duration::from_millis(1100));
    api.end_session(&ann, &held.session()).expect(204);
    stream.write_all(b"56789").expect("the rest is sent");
    assert_eq!(status_of(stream), 401);
    assert_eq!(api.file_stats(&ann), (0, 0));
    // Another session has it recorded.
    api.adding(&path, &ann, 10, b"").send().expect(204);
    assert_eq!(api.download(&ann, id_of(&path)).expect(200).bytes, b"0123456789");
}

#[test]
fn no_connection_to_the_database_is_kept_while_bytes_come() {
    let settings =
        [("CLOAKROOM_DATABASE_POOL_SIZE", "3"), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "2")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let paths: Vec<_> = (0..8).map(|_| api.begin_partial(&ann, 100)).collect();
    let streams: Vec<_> =
        paths.iter().map(|path| api.begin_adding(path, &ann, (0, 100), b"01234")).collect();
    paths.iter().for_each(|path| api.wait_for_bytes(path, 5));
    assert_eq!(api.partial_uploads(&ann).len(), 8);
    api.upload(&ann, "a.txt", "text").expect(201);
    drop(streams);
}
