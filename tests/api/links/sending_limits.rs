//! What bounds strangers who send files by a link: the link's own numbers, its owner's quotas, and their number.

use std::io::Write;
use std::thread;

use crate::files::uploads_under_way::under_way;
use crate::harness::*;

/// The service believes a proxy on this host, which says where clients are.
const PROXIED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");
const FULL: &str = "Storage quota exceeded";

/// Sends a file by a link from the `n`th of many networks, again while all places of the link are taken.
fn send_from(api: &Server, link: &str, n: usize, content: &[u8]) -> Answer {
    let form = || file_form(&format!("{n}.txt"), "text/plain", content);
    eventually(|| {
        let request = api.send_request(link, form());
        let answer = request.header("X-Forwarded-For", &format!("192.0.{n}.1")).send();
        (answer.status != 429).then_some(answer)
    })
}

#[test]
fn thirty_two_strangers_at_once_send_what_the_link_takes_and_no_file_or_byte_more() {
    let (api, ann) = Server::with_settled(&[PROXIED, PATIENT], "ann");
    let beside = api.beside(&[PROXIED, PATIENT]);
    let servers = [&api, &beside];
    for (wanted, sizes, taken) in [
        (json!({"max_files": 10}), [1000; 2], 10),
        (json!({"max_bytes": 10_500}), [1000; 2], 10),
        (json!({"max_bytes": 12_000}), [1000; 2], 12),
        // The last bytes may be those of a small file.
        (json!({"max_bytes": 16_016, "max_files": 32}), [1000, 1], 32),
    ] {
        api.database.run("TRUNCATE file_links CASCADE; DELETE FROM files");
        let link = api.ask_for_files(&ann, wanted.clone());
        let answers = parallel(32, |n| {
            send_from(servers[n / 2 % 2], &link, n, &vec![b'x'; sizes[n % 2]]).status
        });
        let count = tally(answers);
        assert_eq!(count.get(&201), Some(&taken), "{wanted}: {count:?}");
        assert_eq!(count.get(&507).copied().unwrap_or_default(), 32 - taken, "{wanted}");
        let stored: (i64, i64) = (api.database.count("files"), api.file_stats(&ann).1);
        let counted = api
            .database
            .value::<String>("SELECT received_files || ' ' || received_bytes FROM file_links");
        assert_eq!(counted, format!("{} {}", stored.0, stored.1), "{wanted}");
        assert_eq!((stored.0, api.data.contents().len()), (taken as i64, taken), "{wanted}");
        for file in api.all_files(&ann) {
            api.database.run(&format!(
                "DELETE FROM files WHERE id = '{}'",
                file["id"].as_str().expect("an id")
            ));
        }
        for content in api.data.contents() {
            std::fs::remove_file(content).expect("a content");
        }
    }
}

#[test]
fn a_full_link_refuses_before_the_body_and_has_not_ended() {
    let (api, ann) = Server::with_settled(&[], "ann");
    for wanted in [json!({"max_files": 1}), json!({"max_bytes": 5})] {
        let link = api.ask_for_files(&ann, wanted.clone());
        // What certainly does not fit is refused by its length alone.
        if wanted["max_bytes"] == 5 {
            let (late, _rest) = api.begin_send(&link, "", 70_000);
            assert_eq!(status_of(late), 507);
            api.send_file(&link, "a.txt", b"longer").refused(507, FULL);
            assert_eq!(api.about_link(&link)["bytes_left"], 5);
        }
        api.send_file(&link, "a.txt", b"hello").expect(201);
        let file = api.all_files(&ann)[0]["id"].as_str().expect("an id").to_owned();
        for content in [&b"hello"[..], b""] {
            api.send_file(&link, "b.txt", content).case(&wanted).refused(507, FULL);
        }
        let (late, _rest) = api.begin_send(&link, "", 100);
        assert_eq!(status_of(late), 507, "before the body: {wanted}");
        // What the owner does with the file gives nothing back.
        api.delete_file(&ann, &file).expect(204);
        api.send_file(&link, "b.txt", b"").refused(507, FULL);
        let about = api.about_link(&link);
        let left = (about["files_left"].as_i64(), about["bytes_left"].as_i64());
        assert!(left.0 == Some(0) || left.1 == Some(0), "{about}");
    }
}

#[test]
fn the_quotas_of_the_owner_and_of_the_service_hold_for_what_strangers_send() {
    for (setting, change) in [
        (("CLOAKROOM_USER_STORAGE_QUOTA", "1000"), ""),
        (("CLOAKROOM_USER_FILE_QUOTA", "1"), ""),
        (("CLOAKROOM_STORAGE_QUOTA", "1000"), ""),
        (("CLOAKROOM_USER_STORAGE_QUOTA", "5000"), "UPDATE users SET storage_quota = 1000"),
    ] {
        let (api, ann) = Server::with_settled(&[setting, PROXIED, PATIENT], "ann");
        let link = api.ask_for_files(&ann, json!({"max_bytes": 900}));
        let other = api.ask_for_files(&ann, json!({"max_bytes": 900}));
        if !change.is_empty() {
            api.database.run(change);
        }
        let links = [&link, &other];
        let answers = parallel(8, |n| send_from(&api, links[n % 2], n, &[b'x'; 600]).status);
        assert_eq!(tally(answers), [(201, 1), (507, 7)].into(), "{setting:?} {change}");
        assert_eq!(api.file_stats(&ann), (1, 600), "{setting:?} {change}");
        assert_eq!(api.data.contents().len(), 1);
        // Nobody learns what is left by announcing a length: only what has come is compared.
        let (mut late, rest) = api.begin_send(&other, "", 500);
        late.write_all(&rest).expect("the rest is sent");
        assert_eq!(status_of(late), 507, "{setting:?} {change}");
    }
}

#[test]
fn a_link_has_eight_places_and_a_network_four_which_come_free() {
    let unlimited = ("CLOAKROOM_RATE_LIMIT_ENABLED", "false");
    let (api, ann) = Server::with_settled(&[PROXIED, unlimited], "ann");
    let [link, other] = [0; 2].map(|_| api.ask_for_files(&ann, json!({"max_bytes": 1_000_000})));
    let begin = |n: usize, from: &str| {
        let begun = api.begin_send(&link, from, 100_000);
        wait_until(|| entries(api.data.join("tmp")).len() == n);
        begun
    };
    let mut uploads: Vec<_> = (1..=4).map(|n| begin(n, &format!("192.0.2.{n}"))).collect();
    let send = |link: &str, from: &str| {
        let request = api.send_request(link, file_form("a.txt", "text/plain", b"a"));
        request.header("X-Forwarded-For", from).send()
    };
    let refused = send(&link, "192.0.2.200").refused(429, "Rate limit exceeded");
    assert_eq!(refused.header("Retry-After"), "5");
    send(&other, "192.0.2.200").expect(201);
    uploads.extend((5..=8).map(|n| begin(n, &format!("2001:db8:{n}::1"))));
    send(&link, "203.0.113.1").refused(429, "Rate limit exceeded");
    // What is under way counts in what the link says that it has left.
    wait_until(|| under_way(&api) > 700_000);
    let left = api.about_link(&link)["bytes_left"].as_u64().expect("a number");
    assert!(left < 300_000, "{left}");
    for (stream, rest) in uploads {
        let mut stream = stream;
        stream.write_all(&rest).expect("the rest is sent");
        assert_eq!(status_of(stream), 201);
    }
    wait_until(|| send(&link, "192.0.2.200").status == 201);
    assert_eq!(api.about_link(&link)["bytes_left"], 1_000_000 - 800_000 - 1);
}

#[test]
fn requests_count_for_the_link_and_the_network_and_unknown_links_for_the_address() {
    let limits =
        [PROXIED, ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_UPLOAD", "2")];
    let (api, ann) = Server::with_settled(&limits, "ann");
    let [link, other] = [0; 2].map(|_| api.ask_for_files(&ann, json!({})));
    let send = |link: &str, from: &str| {
        let request = api.send_request(link, file_form("a.txt", "text/plain", b"a"));
        request.header("X-Forwarded-For", from).send()
    };
    assert_eq!(send(&link, "192.0.2.1").expect(201).rate_limit(), (2, 1));
    send(&link, "192.0.2.2").expect(201);
    send(&link, "192.0.2.3").refused(429, "Rate limit exceeded");
    send(&link, "198.51.100.1").expect(201);
    send(&other, "192.0.2.1").expect(201);
    api.upload(&ann, "own.txt", "own").expect(201);
    let unknown = send("/api/v1/links/unknown", "192.0.2.9").refused(404, "Link not found");
    assert_eq!(unknown.rate_limit().0, 600);
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_what_is_counted_too() {
    let (api, ann) = Server::with_settled(&[PROXIED, PATIENT], "ann");
    let link = api.ask_for_files(&ann, json!({"max_files": 1000}));
    let seen = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for n in 0..8 {
            let (api, link, seen) = (&api, &link, &seen);
            scope.spawn(move || {
                for file in 0.. {
                    let name = format!("{n}-{file}.txt");
                    let request =
                        api.send_request(link, file_form(&name, "text/plain", name.as_bytes()));
                    match request.header("X-Forwarded-For", &format!("192.0.{n}.1")).try_send() {
                        Ok(answer) if answer.status == 201 => {
                            seen.lock().expect("a list").push(name)
                        }
                        Ok(answer) => {
                            assert!([429, 503].contains(&answer.status), "{}", answer.status)
                        }
                        Err(_) => return,
                    }
                }
            });
        }
        wait_until(|| seen.lock().expect("a list").len() > 40);
        api.signal(Signal::KILL);
    });
    let (database, data, _) = api.end(Signal::KILL);
    let api = Server::start_with(&database, &data, &[PROXIED]);
    let ann = api.sign_in("ann");
    let files = api.all_files(&ann);
    let stored: Vec<&str> = files.iter().filter_map(|file| file["filename"].as_str()).collect();
    for name in seen.into_inner().expect("a list") {
        assert!(stored.contains(&&*name), "{name} was acknowledged");
    }
    let bytes: i64 = files.iter().filter_map(|file| file["file_size"].as_i64()).sum();
    let counted = "SELECT received_files || ' ' || received_bytes FROM file_links";
    assert_eq!(database.value::<String>(counted), format!("{} {bytes}", files.len()));
    for file in &files {
        let content = api.download(&ann, file["id"].as_str().expect("an id")).expect(200).bytes;
        assert_eq!(content, file["filename"].as_str().expect("a name").as_bytes());
    }
}

/// Uploads that one statement records: those of owners, and those by links, some of which have no room.
#[test]
fn what_comes_together_is_decided_by_each_link_and_owner() {
    let api = Server::start(&[PROXIED, PATIENT]);
    let users = ["ann", "bob", "carl"].map(|name| api.sign_up(name));
    api.settle();
    let links: Vec<_> = users
        .iter()
        .map(|user| api.ask_for_files(user, json!({"max_files": 2, "max_bytes": 100})))
        .collect();
    let answers = parallel(30, |n| match n % 3 {
        0 => api.upload(&users[n / 3 % 3], &format!("{n}.txt"), "own").status,
        _ => send_from(&api, &links[n / 3 % 3], n, b"sent").status,
    });
    let own: Vec<_> = answers.iter().step_by(3).copied().collect();
    assert_eq!(tally(own), [(201, 10)].into());
    assert_eq!(tally(answers), [(201, 16), (507, 14)].into());
    for user in &users {
        let of_user = |what: &str| {
            api.database.count(&format!("files WHERE user_id = '{}' {what}", user.id()))
        };
        assert_eq!(of_user("AND received_by IS NOT NULL"), 2);
        assert_eq!(of_user(""), api.file_stats(user).0);
    }
}
