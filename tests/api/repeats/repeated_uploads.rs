//! Uploads that are sent again with an `Idempotency-Key`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::files::parallel_uploads::{request, sent_together};
use crate::harness::*;

/// An upload with a key.
fn keyed(api: &Server, user: &Tokens, key: &str, form: Form) -> Answer {
    api.upload_request(user, form.bytes()).header("Idempotency-Key", key).send()
}

fn form(content: &str) -> Form {
    file_form("a.txt", "text/plain", content.as_bytes()).field("description", "An upload")
}

#[test]
fn an_upload_that_is_sent_again_is_answered_as_the_first_one() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let first = keyed(&api, &ann, "k1", form("content")).expect(201);
    assert!(!first.has_header("Idempotency-Replayed"));
    for key in ["k1", "\"k1\"", " k1 "] {
        let again = keyed(&api, &ann, key, form("content")).expect(201);
        assert_eq!(again.json(), first.json());
        assert_eq!(again.header("Idempotency-Replayed"), "true");
        for name in ["ETag", "Last-Modified", "Location"] {
            assert_eq!(again.header(name), first.header(name));
        }
    }
    assert_eq!(api.file_stats(&ann), (1, 7));
    assert_eq!(api.data.contents().len(), 1);
    assert_eq!(api.database.count("audit_events WHERE action = 'file.upload'"), 1);
    // What happened to the file since makes no difference, nor that it is gone.
    api.update_file(&ann, &first.id(), json!({"filename": "b.txt", "is_public": true})).expect(200);
    assert_eq!(keyed(&api, &ann, "k1", form("content")).expect(201).json(), first.json());
    api.delete_file(&ann, &first.id()).expect(204);
    assert_eq!(keyed(&api, &ann, "k1", form("content")).expect(201).json(), first.json());
    assert_eq!((api.file_stats(&ann), api.data.contents().len()), ((0, 0), 1));
    // Others have keys of their own.
    let of_bob = keyed(&api, &bob, "k1", form("content")).expect(201);
    assert_ne!(of_bob.id(), first.id());
    // A key is good for a day.
    api.database.run("UPDATE idempotency_keys SET created_at = now() - interval '1 day'");
    let next = keyed(&api, &ann, "k1", form("other content")).expect(201);
    assert_ne!(next.id(), first.id());
    assert!(!next.has_header("Idempotency-Replayed"));
    assert_eq!(keyed(&api, &ann, "k1", form("other content")).expect(201).json(), next.json());
}

#[test]
fn a_key_belongs_to_one_request() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    keyed(&api, &ann, "k1", form("content")).expect(201);
    let file = |name, kind, text: &str| file_form(name, kind, text.as_bytes());
    for (reason, other) in [
        ("another content", form("CONTENT")),
        ("a longer content", form(&numbers(100_000))),
        ("a shorter content", form("conten")),
        ("another name", file("b.txt", "text/plain", "content").field("description", "An upload")),
        ("no description", file("a.txt", "text/plain", "content")),
        ("another description", file("a.txt", "text/plain", "content").field("description", "An")),
    ] {
        let answer = keyed(&api, &ann, "k1", other).case(reason);
        let answer = answer.invalid(&[("header.Idempotency-Key", "value_error")]);
        let body = answer.has(json!({"reason": "KEY_REUSED"})).json();
        assert_eq!(body["detail"][0]["msg"], "Idempotency-Key was used for another request");
    }
    assert_eq!((api.file_stats(&ann), api.data.contents().len()), ((1, 7), 1));
    // The name is compared as it is recorded, and a directory is none of it.
    let same = file("dir/a.txt", "text/plain", "content").field("description", "An upload");
    keyed(&api, &ann, "k1", same).expect(201);
}

#[test]
fn a_malformed_key_is_refused_before_the_body() {
    let is_documented = validator("/components/parameters/Idempotency-Key/schema");
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let long = "k".repeat(256);
    let quoted = format!("\"{long}\"");
    for key in [
        "", "a b", "\"", "\"a", "a\u{e9}", "\"a\" b", "\"\"", "\"a\\b\"", "\"a b\"", &*long,
        &*quoted,
    ] {
        let answer = keyed(&api, &ann, key, Form::default()).case(format!("{key:?}"));
        answer.invalid(&[("header.Idempotency-Key", "value_error")]);
        assert!(!is_documented(&json!(key)), "{key:?}");
    }
    let twice = api.upload_request(&ann, form("content").bytes()).header("Idempotency-Key", "a");
    twice
        .header("Idempotency-Key", "a")
        .send()
        .invalid(&[("header.Idempotency-Key", "value_error")]);
    let longest = format!("\"{}\"", "\\\\".repeat(255));
    for key in [&long[..255], &longest, "\"a\\\"b\"", "a\"b", "a\\", "0"] {
        keyed(&api, &ann, key, form("content")).case(key).expect(201);
        assert!(is_documented(&json!(key)), "{key}");
    }
}

#[test]
fn a_first_upload_that_failed_leaves_no_trace() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_USER_STORAGE_QUOTA", "20")], ["ann"]);
    keyed(&api, &ann, "k1", file_form("a.gif", "image/gif", b"GIF89a")).expect(415);
    keyed(&api, &ann, "k1", form(&numbers(30))).expect(507);
    keyed(&api, &ann, "k1", Form::default()).expect(422);
    assert_eq!(api.database.count("idempotency_keys"), 0);
    // It fills the quota, and an upload that is sent again is answered all the same, but no other one.
    let first = keyed(&api, &ann, "k1", form(&numbers(20))).expect(201);
    keyed(&api, &ann, "k2", form("x")).refused(507, "Storage quota exceeded");
    assert_eq!(keyed(&api, &ann, "k1", form(&numbers(20))).expect(201).json(), first.json());
    assert_eq!(api.file_stats(&ann), (1, 20));
}

#[test]
fn of_twenty_uploads_with_one_key_at_one_moment_one_is_recorded() {
    let database = Database::create_migrated();
    let data = Arc::new(Directory::create());
    let servers = [(); 2].map(|()| Server::start_with(&database, &data, &[]));
    let ann = servers[0].sign_up("ann");
    for round in 0..3 {
        let key = format!("k{round}");
        let answers = parallel(20, |n| {
            keyed(&servers[n % 2], &ann, &key, form("content")).expect(201).json()
        });
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(servers[0].file_stats(&ann), (round + 1, 7 * (round + 1)));
    }
    assert_eq!(data.contents().len(), 3);
}

#[test]
fn a_user_has_at_most_ten_thousand_keys() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let first = keyed(&api, &ann, "k0", form("content")).expect(201);
    api.database.run(&format!(
        "INSERT INTO idempotency_keys (sender_id, key, file_id, request_hash, file_size, created_at)
         SELECT '{}', 'k' || n, gen_random_uuid(), '', 0, now() - interval '23 hours'
         FROM generate_series(1, 9998) n",
        ann.id()
    ));
    // Of several at one moment, the statement lets one in.
    let statuses = parallel(8, |n| keyed(&api, &ann, &format!("new{n}"), form("new")).status);
    assert_eq!(tally(statuses), [(201, 1), (429, 7)].into());
    let refused = keyed(&api, &ann, "another", Form::default()).refused(429, "Rate limit exceeded");
    let seconds: u64 = refused.header("Retry-After").parse().expect("seconds");
    assert!((3500..=3600).contains(&seconds), "{seconds}");
    assert_eq!(keyed(&api, &ann, "k0", form("content")).expect(201).json(), first.json());
    api.upload(&ann, "b.txt", "without a key").expect(201);
    assert_eq!(api.file_stats(&ann).0, 3);
}

/// A proxy before several servers that takes the first answer to each upload away: once the server has begun it, the
/// client's connection ends without a byte of it.
struct CuttingProxy {
    address: String,
    /// The addresses of the servers, which take turns.
    targets: Arc<Mutex<Vec<String>>>,
    cut: Arc<AtomicUsize>,
}

impl CuttingProxy {
    fn start(targets: Vec<String>) -> CuttingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (targets, cut) = (Arc::new(Mutex::new(targets)), Arc::new(AtomicUsize::new(0)));
        let proxy = CuttingProxy { address, targets: targets.clone(), cut: cut.clone() };
        thread::spawn(move || {
            for (n, client) in listener.incoming().enumerate() {
                let target = {
                    let targets = targets.lock().expect("targets");
                    targets[n % targets.len()].clone()
                };
                let cut = cut.clone();
                let client = client.expect("a connection");
                thread::spawn(move || drop(CuttingProxy::pass(client, &target, &cut)));
            }
        });
        proxy
    }

    /// Passes one request on, and its answer unless it is the first one to this upload.
    fn pass(mut client: TcpStream, target: &str, cut: &AtomicUsize) -> std::io::Result<()> {
        let mut server = TcpStream::connect(target)?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        let mut buffer = [0; 16384];
        let length = from_client.read(&mut buffer)?;
        let is_first = String::from_utf8_lossy(&buffer[..length]).contains("attempt: 1\r\n");
        to_server.write_all(&buffer[..length])?;
        thread::spawn(move || drop(std::io::copy(&mut from_client, &mut to_server)));
        let length = server.read(&mut buffer)?;
        if is_first {
            cut.fetch_add(1, Ordering::Relaxed);
        } else {
            client.write_all(&buffer[..length])?;
            std::io::copy(&mut server, &mut client)?;
        }
        client.shutdown(Shutdown::Both)
    }
}

#[test]
fn uploads_whose_answers_are_lost_are_made_once_also_if_a_process_is_killed() {
    const UPLOADS: usize = 200;
    let database = Database::create_migrated();
    let data = Arc::new(Directory::create());
    let start = || Server::start_with(&database, &data, &[]);
    let (steady, mut killed) = (start(), start());
    let ann = steady.sign_up("ann");
    let proxy = CuttingProxy::start(vec![steady.address.clone(), killed.address.clone()]);
    let upload = |n: usize| {
        let (key, content) = (format!("key-{n}"), numbers(1000 + n));
        let body = file_form(&format!("{n}.txt"), "text/plain", content.as_bytes()).bytes();
        for attempt in 1.. {
            let url = format!("http://{}/api/v1/uploads", proxy.address);
            let form_type = format!("multipart/form-data; boundary={BOUNDARY}");
            let request = Request::new("POST", url).by(&ann).header("Content-Type", &form_type);
            let request = request
                .body(body.clone())
                .header("Idempotency-Key", &key)
                .header("attempt", &attempt.to_string());
            match request.try_send() {
                Ok(answer) if answer.status == 201 => return answer.id(),
                Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
                Err(_) => {}
            }
        }
        unreachable!("the attempts have no end")
    };
    let next = AtomicUsize::new(0);
    let ids = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= UPLOADS {
                        return;
                    }
                    let id = upload(n);
                    ids.lock().expect("ids").push(id);
                }
            });
        }
        for round in 1..4 {
            wait_until(|| ids.lock().expect("ids").len() >= round * UPLOADS / 5);
            killed.signal(Signal::KILL);
            killed = start();
            proxy.targets.lock().expect("targets")[1] = killed.address.clone();
        }
    });
    let mut ids = ids.into_inner().expect("ids");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), UPLOADS);
    assert!(proxy.cut.load(Ordering::Relaxed) >= UPLOADS / 2, "answers were lost");
    let bytes: usize = (0..UPLOADS).map(|n| 1000 + n).sum();
    assert_eq!(steady.file_stats(&ann), (UPLOADS as i64, bytes as i64));
    assert_eq!(database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), bytes as i64);
}

#[test]
fn a_content_stays_if_a_pooler_tells_that_the_connection_broke_under_its_record() {
    let database = Database::create_migrated();
    let proxy = DatabaseProxy::start(&database.url);
    let data = Arc::new(Directory::create());
    let api = Server::spawn(command(&proxy.url, &data, &[]), &database, &data);
    let ann = api.sign_up("ann");
    let send = |content: &str| {
        let form = file_form("a.txt", "text/plain", content.as_bytes());
        api.upload_request(&ann, form.bytes()).header("Idempotency-Key", content).send()
    };
    for content in ["first", "second"] {
        // The record is made, but its answer is lost.
        proxy.lose_answer(digits_of_sha256(content.as_bytes()).as_bytes());
        let answer = send(content).refused(503, "Service temporarily unavailable");
        answer.has(json!({"reason": "OUTCOME_UNKNOWN"}));
        let again = send(content).expect(201);
        assert!(again.has_header("Idempotency-Replayed"));
        assert_eq!(api.download(&ann, &again.id()).expect(200).bytes, content.as_bytes());
    }
}

#[test]
fn a_key_that_comes_twice_in_a_batch_is_recorded_once_and_stops_none_of_the_others() {
    let (api, [ann, bob]) = Server::with_users(&[PATIENT], ["ann", "bob"]);
    let senders = [&ann, &bob, &ann, &bob, &ann];
    let keyed = |n: usize, content: usize, key: &str| {
        request(&api, senders[n], content).header("Idempotency-Key", key)
    };
    let requests = vec![
        keyed(0, 7, "k1"),
        keyed(1, 7, "k1"), // another user's
        keyed(2, 7, "k1"), // the first one once more
        request(&api, &bob, 3),
        keyed(4, 8, "k2"),
    ];
    let answers = sent_together(&api, &senders, requests, || ());
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect(201)).collect();
    assert_eq!(answers[0].json(), answers[2].json());
    let replayed: Vec<_> =
        answers.iter().map(|answer| answer.has_header("Idempotency-Replayed")).collect();
    assert_ne!(replayed[0], replayed[2]);
    assert_eq!([replayed[1], replayed[3], replayed[4]], [false; 3]);
    assert_eq!((api.file_stats(&ann), api.file_stats(&bob)), ((2, 8 + 9), (2, 8 + 4)));
    assert_eq!(api.data.contents().len(), 1 + 4);
    assert_eq!(api.database.count("idempotency_keys"), 3);
}
