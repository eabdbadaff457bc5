//! What strangers who have a link to send files by, or several, could cost or learn beyond that.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use crate::files::uploads_under_way::under_way;
use crate::harness::*;

const PROXIED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");

/// Whether the response to an upload has begun.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a mode");
    let is_answered = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).expect("a mode");
    is_answered
}

/// Begins to send a form of this length by a link.
fn begin(api: &Server, link: &str, length: usize, beginning: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&api.address).expect("a connection");
    let head = format!(
        "POST {link}/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {length}\r\n\r\n"
    );
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(beginning));
    sent.expect("the beginning is sent");
    stream
}

/// Only what has come is compared with what the owner's quota leaves, so an announced length tells nothing of that.
#[test]
fn nobody_learns_what_a_quota_leaves_by_announcing_a_length() {
    for setting in ["CLOAKROOM_USER_STORAGE_QUOTA", "CLOAKROOM_STORAGE_QUOTA"] {
        let (api, ann) = Server::with_settled(&[(setting, "600000")], "ann");
        let link = api.ask_for_files(&ann, json!({"max_bytes": 500_000}));
        api.upload(&ann, "own.txt", vec![b'x'; 400_000]).expect(201);
        // 200,000 bytes are left, and the form is far longer.
        let form = file_form("a.txt", "text/plain", &vec![b'x'; 450_000]).bytes();
        let mut stream = begin(&api, &link, form.len(), &form[..150_000]);
        wait_until(|| under_way(&api) > 100_000);
        assert!(!is_answered(&stream), "{setting}");
        // The server may have closed the connection before all of it is sent.
        let _ = stream.write_all(&form[150_000..]);
        assert_eq!(status_of(stream), 507, "{setting}");
    }
}

#[test]
fn what_comes_by_a_link_that_has_ended_is_given_up_while_it_comes() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.ask_for_files(&ann, json!({}));
    let form = file_form("a.txt", "text/plain", &vec![b'x'; 100_000]).bytes();
    let mut stream = begin(&api, &link, 9_000_000, &form[..90_000]);
    wait_until(|| under_way(&api) > 0);
    api.database.run("UPDATE file_links SET expires_at = now()");
    wait_until(|| {
        // Faster than what is given up as too slow.
        let _ = stream.write_all(&[b'x'; 5_000]);
        is_answered(&stream)
    });
    assert_eq!(status_of(stream), 404);
    wait_until(|| under_way(&api) == 0);
}

#[test]
fn a_look_up_costs_the_address_a_token_and_a_send_costs_it_none() {
    let limited =
        [PROXIED, ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_ADDRESS", "0")];
    let (api, ann) = Server::with_settled(&limited, "ann");
    let link = api.ask_for_files(&ann, json!({}));
    let send = |link: &str, from: &str| {
        let request = api.send_request(link, file_form("a.txt", "text/plain", b"a"));
        request.header("X-Forwarded-For", from).send()
    };
    let upload = send(&link, "192.0.2.1").expect(201).rate_limit();
    assert_eq!(upload, (10, 9), "the class of uploads");
    let about = api.request_at_root("GET", &format!("{link}?about=true"));
    let about = about.header("X-Forwarded-For", "192.0.2.1").send().expect(200);
    assert!(about.rate_limit().1 >= 598, "{:?}", about.rate_limit());
    let looked_up = || {
        api.database.value::<i64>(
            "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
             WHERE indexrelname = 'file_links_token_hash_key'",
        )
    };
    let answers =
        parallel(900, |n| send(&format!("/api/v1/links/unknown{n}"), "198.51.100.7").status);
    let refused = tally(answers)[&429];
    assert!(refused > 200, "{refused}");
    // The statistics of the database come late, and never tell of more than there was.
    eventually(|| (looked_up() >= 500).then_some(()));
    assert!(looked_up() < 900 - refused as i64 / 2, "{} of 900 were looked up", looked_up());
}

#[test]
fn all_links_of_an_owner_together_fill_no_audit_log() {
    let (api, ann) = Server::with_settled(&[], "ann");
    api.database.wait_unless_hour_lasts();
    let links: Vec<_> = (0..3).map(|_| api.ask_for_files(&ann, json!({}))).collect();
    let send = |n: usize| api.send_file(&links[n], "a.txt", b"a").expect(201);
    let events = || api.database.count("audit_events WHERE action = 'file.receive'");
    send(0);
    // What all links of the owner have in this hour is one short of what they may have.
    api.database.run(
        "UPDATE own_changes SET in_hour = 999
         WHERE user_id NOT IN (SELECT id FROM users UNION SELECT id FROM file_links)",
    );
    send(1);
    assert_eq!(events(), 2);
    send(2);
    send(0);
    assert_eq!(events(), 2);
    assert_eq!(api.database.count("skipped_changes WHERE action = 'file.receive'"), 2);
    api.new_file(&ann, "own.txt", "own");
    assert_eq!(api.database.count("audit_events WHERE action = 'file.upload'"), 1);
    let told = format!("audit_events WHERE details ->> 'owner_id' = '{}'", ann.id());
    assert_eq!(api.database.count(&told), 2, "they say whose the files are");
}

/// However many files strangers have sent, a link to a folder shows those of its owner, in their number.
#[test]
fn hidden_files_take_nothing_from_what_a_link_to_a_folder_shows() {
    let (api, ann) = Server::with_settled(&[], "ann");
    let link = api.new_link_to(&ann, json!({"folder": "/in"}));
    let file = api.new_file_in(&ann, "/in", "zz.txt");
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size,
                            file_path, file_hash, received_by, is_as_received)
         SELECT gen_random_uuid(), user_id, folder, n || '.txt', n || '.txt', content_type, 0, 'files/-',
                file_hash, id, true
         FROM files, generate_series(1, 10500) n WHERE id = '{file}'"
    ));
    let about = api.open_link(&format!("{link}?about=true")).expect(200);
    let about = about.has(json!({"total_files": 1, "next": null})).json();
    assert_eq!(about["files"].as_array().map(Vec::len), Some(1));
    assert!(String::from_utf8_lossy(&api.open_link(&link).expect(200).bytes).contains("zz.txt"));
    // Its owner has too many for an archive.
    api.get("/uploads/zip?folder=/in", &ann).refused(413, "Too many files");
}

/// Of the owner's changes two run at once, and beside them one of what strangers send.
#[test]
fn records_of_strangers_run_one_at_a_time_beside_the_owners_changes() {
    let (api, ann) =
        Server::with_settled(&[PROXIED, PATIENT, ("CLOAKROOM_DATABASE_POOL_SIZE", "10")], "ann");
    let links: Vec<_> = (0..3).map(|_| api.ask_for_files(&ann, json!({}))).collect();
    let lock =
        api.database.begin(&format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", ann.id()));
    thread::scope(|scope| {
        let (api, ann, links) = (&api, &ann, &links);
        let sent: Vec<_> = (0..3)
            .map(|n| scope.spawn(move || api.send_file(&links[n], "a.txt", b"a").status))
            .collect();
        wait_until(|| api.data.contents().len() == 3 && api.database.blocked_statements() == 1);
        let own: Vec<_> = (0..3)
            .map(|n| {
                scope.spawn(move || api.update_me(ann, json!({"name": format!("Ann {n}")})).status)
            })
            .collect();
        wait_until(|| api.database.blocked_statements() == 3);
        thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(api.database.blocked_statements(), 3);
        // What is refused waits for nobody.
        let bad = file_form("a.png", "image/png", b"<!DOCTYPE html><html></html>");
        api.send_request(&links[0], bad).send().refused(415, "File type not allowed");
        lock.roll_back();
        for one in sent {
            assert_eq!(one.join().expect("no panic"), 201);
        }
        for one in own {
            assert_eq!(one.join().expect("no panic"), 200);
        }
    });
}

#[test]
fn links_to_send_files_by_count_among_all_and_take_at_most_the_owners_own_quota() {
    let (api, ann) = Server::with_settled(&[], "ann");
    api.database.run("UPDATE users SET storage_quota = 7000");
    let ask = |body: Value| api.post("/links", &ann, body);
    ask(json!({"upload_to": "/", "max_bytes": 7001})).invalid(&[("body.max_bytes", "value_error")]);
    ask(json!({"upload_to": "/"})).expect(201).has(json!({"max_bytes": 7000}));
    api.database.run(
        "INSERT INTO file_links (id, folder, user_id, token_hash, inline, expires_at)
         SELECT gen_random_uuid(), '', user_id, sha256(n::text::bytea), false, expires_at
         FROM file_links, generate_series(1, 999) n",
    );
    ask(json!({"upload_to": "/"})).refused(409, "Too many links");
}

/// A link that was made while nobody could register goes on once anybody can.
#[test]
fn what_a_young_owner_receives_counts_for_the_half_of_young_accounts() {
    let settings =
        [("CLOAKROOM_STORAGE_QUOTA", "200000"), ("CLOAKROOM_REGISTRATIONS_PER_DAY", "50"), PROXIED];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let closed = api.beside(&[("CLOAKROOM_REGISTRATION", "off")]);
    let link = closed.ask_for_files(&ann, json!({}));
    api.send_file(&link, "a.txt", &[b'x'; 90_000]).expect(201);
    api.send_file(&link, "b.txt", &[b'x'; 30_000]).refused(507, "Storage quota exceeded");
    api.database.run("UPDATE users SET is_self_registered = false");
    api.send_file(&link, "b.txt", &[b'x'; 30_000]).expect(201);
}
