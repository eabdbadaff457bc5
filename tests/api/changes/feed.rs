//! `GET /changes`: clients that follow it have the server's files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

impl Server {
    fn changes(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/changes?{query}"), sender)
    }

    /// The cursor after all that is there now.
    fn cursor(&self, sender: impl Credentials) -> String {
        next(&self.changes(sender, "limit=1000").expect(200))
    }
}

fn next(answer: &Answer) -> String {
    answer.json()["next"].as_str().expect("a cursor").to_owned()
}

/// The kind of each change and the name or, if it is deleted, the id of its file.
fn told(answer: &Answer) -> Vec<String> {
    let tell = |change: Value| match change["file"]["filename"].as_str() {
        Some(name) => format!("{} {name}", change["change"].as_str().expect("a word")),
        None => format!(
            "{} {}",
            change["change"].as_str().expect("a word"),
            change["file_id"].as_str().expect("an id")
        ),
    };
    answer.list("changes").into_iter().map(tell).collect()
}

#[test]
fn each_file_is_told_once_with_its_latest_state_in_the_order_of_the_latest_changes() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let empty = api.changes(&ann, "").expect(200).has(json!({"changes": [], "more": false}));
    let [a, b, c] = ["a", "b", "c"].map(|name| api.new_file(&ann, name, name));
    api.new_file(&bob, "of bob", "x");
    assert_eq!(told(&api.changes(&ann, "").expect(200)), ["present a", "present b", "present c"]);
    let begun = api.cursor(&ann);
    assert_eq!(told(&api.changes(&ann, &format!("after={}", next(&empty))).expect(200)).len(), 3);
    api.update_file(&ann, &a, json!({"filename": "A"})).expect(200);
    api.update_file(&ann, &a, json!({"filename": "AA"})).expect(200);
    api.delete_file(&ann, &b).expect(204);
    api.new_file(&ann, "d", "d");
    let answer = api.changes(&ann, &format!("after={begun}")).expect(200);
    assert_eq!(told(&answer), ["present AA", &format!("deleted {b}"), "present d"]);
    let change = answer.list("changes").remove(0);
    assert_eq!(change["file"], api.show_file(&ann, &a).expect(200).json());
    assert_eq!(change["at"], change["file"]["updated_at"]);
    let quiet = api.changes(&ann, &format!("after={}", next(&answer))).expect(200);
    assert_eq!((told(&quiet).len(), next(&quiet)), (0, next(&answer)));
    // One who begins now is not told of what was deleted before.
    assert_eq!(told(&api.changes(&ann, "").expect(200)), ["present c", "present AA", "present d"]);
    api.post(&format!("/uploads/{b}/restore"), &ann, json!({})).expect(200);
    assert_eq!(
        told(&api.changes(&ann, &format!("after={begun}")).expect(200)).last(),
        Some(&"present b".to_owned())
    );
    // That a deleted file goes for good is no change; that one goes that is there is.
    api.delete_file(&ann, &c).expect(204);
    let cursor = api.cursor(&ann);
    for id in [&c, &b] {
        api.delete(&format!("/uploads/{id}?permanently=true"), &ann).expect(204);
    }
    let answer = api.changes(&ann, &format!("after={cursor}")).expect(200);
    assert_eq!(told(&answer), [format!("deleted {b}")]);
    let token = api.new_token(&ann, true);
    assert_eq!(told(&api.changes(token.as_str(), &format!("after={cursor}")).expect(200)).len(), 1);
}

#[test]
fn who_begins_now_is_told_nothing_of_what_was_and_all_that_comes() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let now = || {
        let begun = Instant::now();
        let answer = api.changes(&ann, "after=now&wait=30&limit=1").expect(200);
        assert!(begun.elapsed() < Duration::from_secs(30), "it waited");
        next(&answer.has(json!({"changes": [], "more": false})))
    };
    let first = now();
    let [a, b, c] = ["a", "b", "c"].map(|name| api.new_file(&ann, name, name));
    api.delete_file(&ann, &c).expect(204);
    let second = now();
    let since = |cursor: &str| told(&api.changes(&ann, &format!("after={cursor}")).expect(200));
    assert_eq!(since(&first), ["present a", "present b", &format!("deleted {c}")]);
    assert_eq!(since(&second).len(), 0);
    assert_eq!(now(), second);
    api.update_file(&ann, &a, json!({"filename": "A"})).expect(200);
    api.delete_file(&ann, &b).expect(204);
    api.new_file(&ann, "d", "d");
    let deleted = format!("deleted {b}");
    assert_eq!(since(&second), ["present A", &deleted, "present d"]);
    for word in ["NOW", "now%20", "0"] {
        api.changes(&ann, &format!("after={word}")).invalid(&[("query.after", "value_error")]);
    }
}

#[test]
fn pages_of_a_beginning_miss_nothing_that_happens_meanwhile() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let ids: Vec<_> = (0..7).map(|n| api.new_file(&ann, &format!("f{n}"), "x")).collect();
    // Files that were there before changes were numbered.
    api.database.run(&format!(
        "ALTER TABLE files DISABLE TRIGGER USER;
         UPDATE files SET change_number = 0 WHERE id IN ('{}', '{}', '{}');
         ALTER TABLE files ENABLE TRIGGER USER",
        ids[0], ids[1], ids[2]
    ));
    let (mut mirror, mut query, mut pages) = (BTreeMap::new(), "limit=2".to_owned(), 0);
    loop {
        let answer = api.changes(&ann, &query).expect(200);
        pages += 1;
        for change in answer.list("changes") {
            let id = change["file_id"].as_str().expect("an id").to_owned();
            match change["file"]["filename"].as_str() {
                Some(name) => mirror.insert(id, name.to_owned()),
                None => mirror.remove(&id),
            };
        }
        match pages {
            1 => {
                let first = mirror.keys().next().expect("a file").clone();
                api.delete_file(&ann, &first).expect(204);
            }
            2 => drop(api.update_file(&ann, &ids[6], json!({"filename": "new"})).expect(200)),
            _ => {}
        }
        query = format!("limit=2&after={}", next(&answer));
        if answer.json()["more"] == false && pages > 4 {
            break;
        }
    }
    let files = api.all_files(&ann);
    let there = files.iter().map(|file| {
        let text = |name: &str| file[name].as_str().expect("a text").to_owned();
        (text("id"), text("filename"))
    });
    assert_eq!(mirror, there.collect());
}

#[test]
fn a_page_has_fewer_changes_if_their_descriptions_are_long() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.insert_files(ann.id(), &[1; 100]);
    // The longest description: 16 KiB.
    api.database.run("UPDATE files SET description = repeat('𝄞', 4096)");
    let (mut query, mut told) = ("limit=1000".to_owned(), BTreeSet::new());
    let mut pages = 0;
    loop {
        let answer = api.changes(&ann, &query).expect(200);
        assert!(answer.bytes.len() < 400_000, "{}", answer.bytes.len());
        let body = answer.json();
        for change in body["changes"].as_array().expect("changes") {
            assert!(told.insert(change["file_id"].to_string()), "told twice");
        }
        query = format!("limit=1000&after={}", next(&answer));
        pages += 1;
        if body["more"] == false {
            break;
        }
    }
    assert_eq!((told.len(), pages), (100, 7));
    assert_eq!(api.changes(&ann, &query).expect(200).json()["changes"], json!([]));
}

#[test]
fn a_cursor_of_a_database_that_a_dump_was_restored_to_is_gone() {
    let database = Database::create_migrated();
    let data = Arc::new(Directory::create());
    let serve = |database| Server::start_with(database, &data, &[]);
    let api = serve(&database);
    let ann = api.sign_up("ann");
    api.new_file(&ann, "a.txt", "x");
    let cursor = api.cursor(&ann);
    drop(api);
    wait_until(|| database.connections("application_name = 'cloakroom'") == 0);
    let restored = database.copy();
    let api = serve(&restored);
    api.changes(&ann, &format!("after={cursor}")).refused(410, "Changes are no longer known");
    serve(&database).changes(&ann, &format!("after={cursor}")).expect(200);
}

#[test]
fn a_cursor_after_which_something_may_be_forgotten_is_gone() {
    let settings = [("CLOAKROOM_USER_FILE_QUOTA", "3")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let gone = |cursor: &str| {
        let answer = api.changes(&ann, &format!("after={cursor}"));
        answer
            .refused(410, "Changes are no longer known")
            .has(json!({"error_code": "GONE", "reason": "GONE"}));
    };
    let mut cursors = Vec::new();
    for n in 0..5 {
        cursors.push(api.cursor(&ann));
        let id = api.new_file(&ann, &format!("{n}"), "x");
        api.delete_file(&ann, &id).expect(204);
    }
    assert_eq!(api.database.count("file_deletions"), 3);
    gone(&cursors[0]);
    gone(&cursors[1]);
    for (n, cursor) in cursors.iter().enumerate().skip(2) {
        let answer = api.changes(&ann, &format!("after={cursor}")).expect(200);
        assert_eq!(told(&answer).len(), 5 - n);
    }
    // Deletions are forgotten with time too. A sweep runs at a start.
    let (database, data) = (api.database.clone(), api.data.clone());
    database.run("UPDATE file_deletions SET deleted_at = now() - interval '8 days'");
    let now = api.cursor(&ann);
    let late = Server::start_with(&database, &data, &settings);
    wait_until(|| database.count("file_deletions") == 0);
    gone(&cursors[4]);
    late.changes(&ann, &format!("after={now}")).expect(200).has(json!({"changes": []}));
    // A database that has gone back knows less than its clients.
    let (number, rest) = now.split_once('-').expect("a number");
    gone(&format!("{}-{rest}", number.parse::<u64>().expect("a number") + 1000));
    // Numbers of another installation mean nothing here.
    database.run("UPDATE installation SET id = gen_random_uuid()");
    gone(&now);
    late.changes(&ann, "").expect(200);
    for (query, field, kind) in [
        ("after=x", "query.after", "value_error"),
        ("after=", "query.after", "value_error"),
        (&format!("after={now}0"), "query.after", "value_error"),
        ("limit=0", "query.limit", "value_error"),
        ("limit=1001", "query.limit", "value_error"),
        ("wait=31", "query.wait", "value_error"),
        ("wait=-1", "query.wait", "value_error"),
        ("wait=x", "query.wait", "int_parsing"),
    ] {
        api.changes(&ann, query).case(query).invalid(&[(field, kind)]);
    }
    api.changes(Anonymous, "").expect(401);
}

#[test]
fn a_waiting_request_is_answered_by_a_change_in_vain_or_because_its_sender_is_signed_out() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let cursor = api.cursor(&ann);
    let wait = |sender: &Tokens, seconds: u32| {
        let begun = Instant::now();
        (api.changes(sender, &format!("after={cursor}&wait={seconds}")), begun.elapsed())
    };
    let (answer, took) = wait(&ann, 1);
    answer.expect(200).has(json!({"changes": [], "next": cursor}));
    assert!(took >= Duration::from_secs(1), "{took:?}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&ann, 30));
        wait_until(|| api.metric("cloakroom_changes_waiting") == Some(1.0));
        // It holds no connection to the database, of which the background threads take one now and then, and what
        // others do is nothing to it.
        wait_until(|| api.metric("cloakroom_pool_in_use") == Some(0.0));
        api.new_file(&bob, "b", "b");
        thread::sleep(Duration::from_millis(1500));
        assert!(!waiting.is_finished());
        // Another process records the change.
        let other = Server::start_with(&api.database, &api.data, &[]);
        other.new_file(&ann, "a", "a");
        let (answer, took) = waiting.join().expect("no panic");
        assert_eq!(told(&answer.expect(200)), ["present a"]);
        assert!(took < Duration::from_secs(20), "{took:?}");
    });
    let cursor = api.cursor(&ann);
    let thief = api.sign_in("ann");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| api.changes(&thief, &format!("after={cursor}&wait=30")));
        wait_until(|| api.metric("cloakroom_changes_waiting") == Some(1.0));
        api.logout_scope(&ann, "others").expect(204);
        api.new_file(&ann, "secret", "s");
        waiting.join().expect("no panic").refused(401, "Invalid token");
    });
}

#[test]
fn only_so_many_wait_and_all_are_answered_at_a_stop() {
    let settings = [("CLOAKROOM_MAX_CONNECTIONS", "24")];
    let (api, [ann, bob, eve]) = Server::with_users(&settings, ["ann", "bob", "eve"]);
    let token = api.new_token(&ann, true);
    let senders = [ann.access.clone(), token, bob.access.clone(), eve.access.clone()];
    let query = |sender: &String| format!("after={}&wait=30", api.cursor(sender.as_str()));
    let queries: Vec<String> = senders.iter().map(query).collect();
    thread::scope(|scope| {
        let mut waiting = Vec::new();
        for (sender, query) in senders.iter().zip(&queries).take(3) {
            for _ in 0..4 {
                let before = api.metric("cloakroom_changes_waiting");
                waiting.push(scope.spawn(|| api.changes(sender.as_str(), query).expect(200)));
                wait_until(|| api.metric("cloakroom_changes_waiting") > before);
            }
            let refused =
                api.changes(sender.as_str(), query).expect(200).has(json!({"changes": []}));
            assert!(refused.header("Retry-After").parse::<u32>().is_ok());
        }
        // Half of the connections wait now, so nobody else may.
        let refused = api.changes(senders[3].as_str(), &queries[3]).expect(200);
        assert!(refused.has_header("Retry-After"));
        assert!(waiting.iter().all(|request| !request.is_finished()));
        let stopped = Instant::now();
        api.signal(Signal::TERM);
        for request in waiting {
            let answer = request.join().expect("no panic").has(json!({"changes": []}));
            assert!(!answer.has_header("Retry-After"));
        }
        assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    });
    assert_eq!(api.exit_code(), Some(0));
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_HTTP_SERVER", "rouille")], ["ann"]);
    let query = format!("after={}&wait=30", api.cursor(&ann));
    assert!(api.changes(&ann, &query).expect(200).has_header("Retry-After"));
    assert!(!api.changes(&ann, "wait=30").expect(200).has_header("Retry-After"));
}

/// A copy of a user's files that follows changes, and how often it was told of each file.
#[derive(Default)]
struct Mirror {
    files: BTreeMap<String, Value>,
    told: HashMap<String, usize>,
}

impl Mirror {
    /// Follows until `is_over` and then until nothing is left to tell. Asks one server after the other.
    fn follow(servers: &[&Server], sender: &Tokens, is_over: &AtomicBool, limit: usize) -> Mirror {
        let (mut mirror, mut after) = (Mirror::default(), String::new());
        for n in 0.. {
            let is_last = is_over.load(Ordering::SeqCst);
            let answer = servers[n % servers.len()]
                .changes(sender, &format!("limit={limit}&wait={}{after}", u32::from(!is_last)))
                .expect(200);
            for change in answer.list("changes") {
                let id = change["file_id"].as_str().expect("an id").to_owned();
                *mirror.told.entry(id.clone()).or_default() += 1;
                match change["change"].as_str() {
                    Some("present") => mirror.files.insert(id, change["file"].clone()),
                    _ => mirror.files.remove(&id),
                };
            }
            after = format!("&after={}", next(&answer));
            if is_last && answer.list("changes").is_empty() {
                return mirror;
            }
        }
        unreachable!("the loop has no end")
    }
}

#[test]
fn mirrors_have_the_servers_files_whatever_is_changed_at_once_by_several_processes() {
    let database = Database::create_migrated();
    let data = Arc::new(Directory::create());
    let settings = [("CLOAKROOM_USER_FILE_QUOTA", "10000")];
    let [one, two] = [(); 2].map(|()| Server::start_with(&database, &data, &settings));
    let ann = one.sign_up("ann");
    let (servers, is_over) = ([&one, &two], AtomicBool::new(false));
    let mirrors = thread::scope(|scope| {
        let (servers, ann, is_over) = (&servers, &ann, &is_over);
        let mirrors: Vec<_> = [1, 3, 100]
            .map(|limit| scope.spawn(move || Mirror::follow(servers, ann, is_over, limit)))
            .into();
        // How often each file was changed.
        let writers: Vec<_> = (0..8)
            .map(|i| {
                scope.spawn(move || {
                    let mut changes = HashMap::new();
                    for n in 0..30 {
                        let api = servers[(i + n) % 2];
                        let id = api.new_file(ann, &format!("{i}-{n}"), "x");
                        let count = changes.entry(id.clone()).or_insert(1_usize);
                        if n % 2 == 0 {
                            api.update_file(ann, &id, json!({"description": "d"})).expect(200);
                            *count += 1;
                        }
                        if n % 3 == 0 {
                            api.delete_file(ann, &id).expect(204);
                            *count += 1;
                        }
                        if n % 6 == 0 {
                            api.post(&format!("/uploads/{id}/restore"), ann, json!({})).expect(200);
                            *count += 1;
                        }
                    }
                    changes
                })
            })
            .collect();
        let changes: Vec<_> =
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
        is_over.store(true, Ordering::SeqCst);
        let changes: HashMap<String, usize> = changes.into_iter().flatten().collect();
        let mirrors = mirrors.into_iter().map(|mirror| mirror.join().expect("no panic"));
        mirrors.map(|mirror| (mirror, changes.clone())).collect::<Vec<_>>()
    });
    let files = one.all_files(&ann);
    let files: BTreeMap<String, Value> = files
        .into_iter()
        .map(|file| (file["id"].as_str().expect("an id").to_owned(), file))
        .collect();
    for (mirror, changes) in mirrors {
        assert!(mirror.files == files, "{} of {}", mirror.files.len(), files.len());
        for (id, told) in &mirror.told {
            assert!(told <= &changes[id], "{id}: told {told} times, changed {} times", changes[id]);
        }
    }
}
