//! A store that refuses, hangs, cuts, drips, damages, fails, is late or lies. Whatever it does, an answer of 201 means
//! that the store has the content, no download that looks whole is not, and all else goes on.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// Bytes of a content that does not fit into what is read before an answer begins.
const LARGE: usize = 1_000_000;

/// A service whose store is behind a proxy.
fn start() -> (StoreServer, StoreProxy, Server) {
    let store = StoreServer::start();
    let proxy = StoreProxy::start(&store);
    let url = proxy.url();
    let api = Server::start(&store_settings(&url));
    (store, proxy, api)
}

/// Expects that the service cannot be used now, and says when it may be.
#[track_caller]
fn expect_unavailable(answer: Answer) {
    let answer = answer.refused(503, "Service temporarily unavailable");
    assert!(answer.has_header("Retry-After"));
    answer.has(json!({"error_code": "SERVICE_UNAVAILABLE"}));
}

#[test]
fn an_upload_is_acknowledged_only_if_the_store_has_it() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    let second = Duration::from_secs(1);
    for (fault, expected) in [
        (StoreFault::Refuse, 503),
        (StoreFault::Hang, 503),
        (StoreFault::Cut, 503),
        (StoreFault::Drip, 201),
        (StoreFault::Flip, 503),
        (StoreFault::Answer(500, "InternalError"), 503),
        (StoreFault::Answer(503, "SlowDown"), 503),
        (StoreFault::Answer(403, "AccessDenied"), 503),
        (StoreFault::Answer(404, "NoSuchBucket"), 503),
        (StoreFault::Answer(307, "TemporaryRedirect"), 503),
        (StoreFault::Late(second), 201),
        (StoreFault::Late(20 * second), 503),
        (StoreFault::Drop, 503),
        (StoreFault::Pretend, 503),
    ] {
        let before = api.all_files(&ann).len();
        proxy.misbehave(fault, if fault == StoreFault::Refuse { "" } else { "PUT" });
        let begin = Instant::now();
        let answer = api.upload(&ann, "a.txt", "y".repeat(100_000)).case(format!("{fault:?}"));
        assert!(begin.elapsed() < 15 * second, "{fault:?}: {:?}", begin.elapsed());
        match expected {
            201 => {
                let id = answer.expect(201).id();
                assert_eq!(store.content(&id).expect("stored").len(), 100_000);
                assert_eq!(api.all_files(&ann).len(), before + 1);
            }
            _ => {
                expect_unavailable(answer);
                assert_eq!(api.all_files(&ann).len(), before, "{fault:?}");
            }
        }
        assert_eq!(fs::read_dir(api.data.join("tmp")).expect("drafts").count(), 0, "{fault:?}");
        proxy.behave();
        let id = api.upload(&ann, "b.txt", "x").case(format!("after {fault:?}")).expect(201).id();
        assert_eq!(api.download(&ann, &id).expect(200).text(), "x");
    }
    // What was stored without an acknowledgement has no record, and is left to the sweep.
    assert!(store.contents().len() > api.all_files(&ann).len());
}

/// The object arrives when nobody waits for it any more.
#[test]
fn an_upload_in_several_requests_that_ends_during_its_transfer_leaves_no_object() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    api.settle();
    for ends_link in [true, false] {
        let link = api.ask_for_files(&ann, json!({}));
        let links = api.get("/links", &ann).expect(200).list("links");
        let id = links[0]["id"].as_str().expect("an id");
        let path = api.begin_by_link(&link, 5);
        proxy.misbehave(StoreFault::Late(Duration::from_secs(2)), "PUT");
        thread::scope(|scope| {
            let sent = scope.spawn(|| api.adding(&path, Anonymous, 0, b"01234").send());
            wait_until(|| store.contents().len() == 1);
            match ends_link {
                true => api.delete(&format!("/links/{id}"), &ann),
                false => api.tus("DELETE", &path, Anonymous).send(),
            }
            .expect(204);
            sent.join().expect("an answer").expect(404);
        });
        proxy.behave();
        assert!(store.contents().is_empty(), "{ends_link}");
        assert!(api.all_files(&ann).is_empty() && entries(api.data.join("partial")).is_empty());
    }
}

#[test]
fn a_store_that_takes_no_bytes_ends_an_upload_after_ten_seconds() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    proxy.misbehave(StoreFault::Stall, "PUT");
    // More than the buffers of the connection take.
    let form = file_form("a.txt", "text/plain", &vec![b'x'; 10_000_000]);
    let begin = Instant::now();
    expect_unavailable(api.upload_form(&ann, form));
    let seconds = begin.elapsed().as_secs();
    assert!((10..15).contains(&seconds), "{seconds}");
    proxy.behave();
    api.new_file(&ann, "b.txt", "x");
    assert_eq!((store.contents().len(), api.all_files(&ann).len()), (1, 1));
}

#[test]
fn a_download_fails_before_its_first_byte_or_breaks_off_but_is_never_short() {
    let (_store, proxy, api) = start();
    let ann = api.sign_up("ann");
    let (small, large) = ("x".repeat(1000), "y".repeat(LARGE));
    let (small_id, large_id) =
        (api.new_file(&ann, "a.txt", &small), api.new_file(&ann, "b.txt", &large));
    for fault in [
        StoreFault::Refuse,
        StoreFault::Hang,
        StoreFault::Cut,
        StoreFault::Answer(500, "InternalError"),
        StoreFault::Answer(403, "AccessDenied"),
        StoreFault::Drop,
        StoreFault::Late(Duration::from_secs(20)),
    ] {
        proxy.misbehave(fault, if fault == StoreFault::Refuse { "" } else { "GET" });
        let answer = api.download(&ann, &small_id).case(format!("{fault:?}"));
        expect_unavailable(answer);
        let range = api.download_request("GET", &ann, &small_id).header("Range", "bytes=1-5");
        if fault != StoreFault::Hang {
            assert_eq!(range.send().status, 503, "{fault:?}");
        }
        proxy.behave();
        assert_eq!(api.download(&ann, &small_id).expect(200).text(), small, "{fault:?}");
    }
    proxy.misbehave(StoreFault::Flip, "GET");
    api.download(&ann, &small_id).refused(500, "Internal server error");
    for fault in [StoreFault::Flip, StoreFault::Cut] {
        proxy.misbehave(fault, "GET");
        let outcome = api.download_request("GET", &ann, &large_id).try_send();
        assert!(outcome.is_err(), "{fault:?}");
    }
    proxy.misbehave(StoreFault::Late(Duration::from_secs(1)), "GET");
    assert_eq!(api.download(&ann, &large_id).expect(200).text(), large);
    proxy.misbehave(StoreFault::Pretend, "GET");
    api.download(&ann, &large_id).refused(500, "Internal server error");
    proxy.behave();
    assert_eq!(api.download(&ann, &large_id).expect(200).text(), large);
}

#[test]
fn all_that_has_no_content_goes_on_while_the_store_is_away() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    let id = api.new_file(&ann, "a.txt", "x");
    assert_eq!(api.metric("cloakroom_storage_up"), Some(1.0));
    proxy.misbehave(StoreFault::Refuse, "");
    for _ in 0..5 {
        expect_unavailable(api.upload(&ann, "b.txt", "x"));
        expect_unavailable(api.download(&ann, &id));
    }
    assert_eq!(api.download_request("HEAD", &ann, &id).send().status, 503);
    let bob = api.sign_up("bob");
    api.me(&bob).expect(200);
    api.show_file(&ann, &id).expect(200);
    assert_eq!(api.all_files(&ann).len(), 1);
    wait_until(|| api.metric("cloakroom_storage_up") == Some(0.0));
    let degraded = json!({"status": "degraded", "reasons": ["STORE_UNAVAILABLE"]});
    api.readyz().expect(200).has(degraded);
    api.delete_file(&ann, &id).expect(204);
    api.delete_me(&bob, PASSWORD).expect(204);
    proxy.behave();
    wait_until(|| api.metric("cloakroom_storage_up") == Some(1.0));
    let other = api.new_file(&ann, "c.txt", "y");
    assert_eq!(api.download(&ann, &other).text(), "y");
    // The object stays for some days. An outage is one line, and its end another one.
    assert!(store.content(&id).is_some());
    api.logged(" is back after ");
    let log = api.log();
    assert_eq!(log.matches("does not serve contents").count(), 1, "{log}");
    assert_eq!(log.matches(" is back after ").count(), 1, "{log}");
    assert!(!log.contains("background task failed"), "{log}");
}

#[test]
fn a_slow_store_keeps_no_other_background_work_waiting() {
    let (_store, proxy, api) = start();
    let ann = api.sign_up("ann");
    for _ in 0..30 {
        let id = api.new_file(&ann, "a.txt", "x");
        api.delete_file(&ann, &id).expect(204);
    }
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    database.run(
        "INSERT INTO deleted_contents SELECT id, '-infinity' FROM deleted_files;
         DELETE FROM deleted_files",
    );
    proxy.misbehave(StoreFault::Late(Duration::from_secs(2)), "DELETE");
    let url = proxy.url();
    let api = Server::start_with(&database, &data, &store_settings(&url));
    thread::sleep(Duration::from_secs(1)); // in which the first removal has begun
    let begin = Instant::now();
    api.request_reset("ann@example.com").expect(200);
    wait_until(|| database.count("password_reset_requests") == 0);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(database.count("deleted_contents"), 30, "they are being removed");
}

#[test]
fn a_content_that_the_store_does_not_delete_keeps_no_other_waiting() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    let ids = [(); 3].map(|()| api.new_file(&ann, "a.txt", "x"));
    let line: &str = format!("DELETE {} ", store.content_path(&ids[0])).leak();
    proxy.misbehave(StoreFault::Answer(403, "AccessDenied"), line);
    for id in &ids {
        api.delete_for_good(&ann, id).expect(204);
    }
    wait_until(|| api.database.count("deleted_contents") == 1);
    assert_eq!(store.contents().len(), 1);
    assert!(store.content(&ids[0]).is_some());
    proxy.behave();
    api.database.run("UPDATE deleted_contents SET deleted_at = deleted_at - interval '1 minute'");
    wait_until(|| api.database.count("deleted_contents") == 0);
    assert_eq!(store.contents().len(), 0);
}

#[test]
fn a_start_while_the_store_is_away_serves_and_tries_again() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    let id = api.new_file(&ann, "a.txt", "x");
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    let url = proxy.url();
    for fault in [StoreFault::Refuse, StoreFault::Answer(503, "SlowDown")] {
        proxy.misbehave(fault, "");
        let api = Server::start_with(&database, &data, &store_settings(&url));
        api.me(&ann).expect(200);
        expect_unavailable(api.download(&ann, &id));
        expect_unavailable(api.upload(&ann, "b.txt", "x"));
        api.readyz().expect(200);
        proxy.behave();
        wait_until(|| api.download(&ann, &id).status == 200);
        api.new_file(&ann, "b.txt", "y");
    }
    // The store that comes may be another one's.
    proxy.misbehave(StoreFault::Refuse, "");
    let api = Server::start_with(&database, &data, &store_settings(&url));
    store.put_object("room/installation-id", uuid(1).as_bytes());
    proxy.behave();
    let line = api.logged("contents cannot be used: ");
    assert!(line.contains("do not belong together"), "{line}");
    expect_unavailable(api.download(&ann, &id));
    expect_unavailable(api.upload(&ann, "c.txt", "z"));
    assert_eq!(api.metric("cloakroom_storage_up"), Some(0.0));
}

#[test]
fn a_connection_that_was_closed_while_it_was_idle_costs_no_request() {
    let (store, proxy, api) = start();
    let ann = api.sign_up("ann");
    proxy.misbehave(StoreFault::CloseIdle, "");
    for n in 0..5 {
        let ids = parallel(4, |_| api.new_file(&ann, "a.txt", &n.to_string()));
        // Long enough for the proxy, and for the service to take the connections up again at the same moment.
        thread::sleep(Duration::from_millis(95));
        let texts = parallel(4, |i| api.download(&ann, &ids[i]).expect(200).text());
        assert_eq!(texts, vec![n.to_string(); 4]);
        thread::sleep(Duration::from_millis(105));
    }
    assert!(!api.log().contains("does not serve contents"), "{}", api.log());
    assert_eq!(store.contents().len(), 20);
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let store = StoreServer::start();
    let url = store.url();
    let (database, data) = (Database::create_migrated(), Arc::new(Directory::create()));
    let api = Server::start_with(&database, &data, &store_settings(&url));
    let ann = api.sign_up("ann");
    let acknowledged = parallel(40, |i| {
        let form = file_form("a.txt", "text/plain", &vec![b'x'; 10_000 * i]);
        let answer = api.upload_request(&ann, form.bytes()).try_send();
        if i == 20 {
            api.signal(rustix::process::Signal::KILL);
        }
        answer.ok().filter(|answer| answer.status == 201).map(|answer| (answer.id(), i))
    });
    let again = Server::start_with(&database, &data, &store_settings(&url));
    let acknowledged: Vec<_> = acknowledged.into_iter().flatten().collect();
    assert!(!acknowledged.is_empty());
    for (id, i) in acknowledged {
        assert_eq!(again.download(&ann, &id).expect(200).bytes.len(), 10_000 * i);
    }
    for file in again.all_files(&ann) {
        let id = file["id"].as_str().expect("an id");
        assert_eq!(sha256(&store.content(id).expect("stored")), file["file_hash"]);
    }
}
