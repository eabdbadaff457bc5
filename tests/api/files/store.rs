//! Contents in a store: where they go, what clients see of it, and when they are removed.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::harness::*;

/// A service whose contents are in a store of its own, and which has listed them for its first sweep.
pub fn start() -> (StoreServer, Server) {
    let (store, data) = (StoreServer::start(), Arc::new(Directory::create()));
    // A sweep removes old drafts after it has listed the contents.
    let draft = data.join("tmp").join(uuid(1));
    fs::create_dir(data.join("tmp")).expect("a directory");
    fs::write(&draft, "x").expect("a draft");
    make_older(&draft, 1);
    let (database, url) = (Database::create_migrated(), store.url());
    let api = Server::start_with(&database, &data, &store_settings(&url));
    wait_until(|| !draft.exists());
    (store, api)
}

/// Runs a command on the database of a service, its data directory and the store.
fn run_beside(api: &Server, store: &StoreServer, arguments: &[&str]) -> std::process::Output {
    let url = store.url();
    let mut command = command(&api.database.url, &api.data, &store_settings(&url));
    command.args(arguments).output().expect("the binary runs")
}

#[test]
fn a_content_is_in_the_store_and_nowhere_else() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    for size in [0, 1, 4096, 300_000] {
        let content = "x".repeat(size);
        let id = api.new_file(&ann, "a.txt", &content);
        assert_eq!(store.content(&id).expect("stored"), content.as_bytes());
        assert_eq!(api.download(&ann, &id).expect(200).bytes, content.as_bytes());
        let path = api.new_link(&ann, &id);
        let answer = api.request_at_root("GET", &path).send();
        assert_eq!(answer.expect(200).bytes, content.as_bytes());
    }
    assert!(!api.data.join("files").exists() && !api.data.join("trash").exists());
    assert_eq!(fs::read_dir(api.data.join("tmp")).expect("drafts").count(), 0);
    assert!(api.log().contains("contents in s3://files/room/ at localhost:"), "{}", api.log());
    assert_eq!(api.metric("cloakroom_storage_up"), Some(1.0));
    api.readyz().expect(200).has(json!({"status": "ok"}));
    let id: String = api.database.value("SELECT id::text FROM installation");
    assert_eq!(store.keys().first(), Some(&format!("room/files/{}", &store.contents()[0][11..])));
    assert!(store.keys().contains(&"room/installation-id".to_owned()), "{id}");
    // One request an upload and a download, if the store names the checksum of what it has stored.
    assert_eq!((store.count("PUT"), store.count("HEAD")), (5, 2));
}

#[test]
fn ranges_and_conditions_are_answered_as_from_a_directory() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    let content: String = (0..100_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let id = api.new_file(&ann, "a.txt", &content);
    let get = |range: &str| {
        let request = api.download_request("GET", &ann, &id);
        if range.is_empty() { request } else { request.header("Range", range) }
    };
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=99990-", 99_990, 100_000),
        ("bytes=-7", 99_993, 100_000),
        ("bytes=0-", 0, 100_000),
        ("bytes=1-70000", 1, 70_001),
    ] {
        let answer = get(range).send().expect(206);
        let expected = format!("bytes {from}-{}/100000", to - 1);
        assert_eq!(answer.headers["content-range"], expected, "{range}");
        assert_eq!(answer.text(), content[from..to], "{range}");
    }
    get("bytes=100000-").send().refused(416, "Range not satisfiable");
    let (gets, heads) = (store.count("GET"), store.count("HEAD"));
    let tag = format!("\"{}\"", &sha256(content.as_bytes())["sha256:".len()..]);
    get("").header("If-None-Match", &tag).send().expect(304);
    assert_eq!((store.count("GET"), store.count("HEAD")), (gets, heads), "nothing was asked for");
    let head = api.download_request("HEAD", &ann, &id).send().expect(200);
    assert_eq!(head.headers["content-length"], "100000");
    assert_eq!(head.bytes.len(), 0);
    assert_eq!((store.count("GET"), store.count("HEAD")), (gets, heads + 1));
}

#[test]
fn a_content_that_is_not_what_was_uploaded_is_never_sent_as_a_whole() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    let content = "x".repeat(200_000);
    let id = api.new_file(&ann, "a.txt", &content);
    let small = api.new_file(&ann, "b.txt", "small");
    let mut other = content.clone().into_bytes();
    other[150_000] ^= 1;
    store.put_content(&id, &other);
    store.put_content(&small, b"smalL");
    assert!(api.download_request("GET", &ann, &id).try_send().is_err(), "the transfer breaks off");
    api.logged("the store has another SHA-256 than is recorded");
    api.download(&ann, &small).refused(500, "Internal server error");
    for bytes in [&other[1..], b""] {
        store.put_content(&id, bytes);
        api.download(&ann, &id).refused(500, "Internal server error");
        api.download_request("HEAD", &ann, &id).send().expect(500);
        let part = api.download_request("GET", &ann, &id).header("Range", "bytes=5-9");
        assert!(!part.send().status.eq(&206));
    }
    store.remove_object(&format!("room/files/{id}"));
    for method in ["GET", "HEAD"] {
        api.download_request(method, &ann, &id).send().expect(500);
    }
    api.logged(&format!("content of file {id}: the store does not have it"));
    api.show_file(&ann, &id).expect(200);
    api.delete_file(&ann, &id).expect(204);
    api.download(&ann, &id).refused(404, "File not found");
}

#[test]
fn what_is_deleted_stays_for_the_days_of_the_trash() {
    let (store, api) = start();
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    let kept = api.new_file(&ann, "a.txt", "kept");
    let deleted = api.new_file(&ann, "b.txt", "deleted");
    let of_bob = api.new_file(&bob, "c.txt", "of bob");
    // They were uploaded long ago, which does not matter.
    for id in [&kept, &deleted, &of_bob] {
        store.make_older(id, 100);
    }
    // A backup may need them.
    let lock = "SELECT pg_advisory_xact_lock(hashtext('cloakroom: removal of contents'))";
    let backup = api.database.begin(lock);
    api.delete_file(&ann, &deleted).expect(204);
    api.delete_me(&bob, PASSWORD).expect(204);
    wait_until(|| api.database.count("deleted_contents") == 1);
    let printed = run_beside(&api, &store, &["gc"]).exits(0).out();
    assert!(printed.starts_with("contents without a record listed for removal: 0;"), "{printed}");
    assert_eq!(store.contents().len(), 3);
    backup.roll_back();
    // Those of a deleted account go at once, and those that can be restored once nobody may any more.
    wait_until(|| store.content(&of_bob).is_none());
    let age = |days: u32| {
        api.database
            .run(&format!("UPDATE deleted_files SET deleted_at = now() - interval '{days} days'"));
    };
    age(6);
    run_beside(&api, &store, &["gc"]).exits(0);
    assert_eq!(store.contents().len(), 2);
    age(8);
    wait_until(|| store.content(&deleted).is_none());
    wait_until(|| api.database.count("deleted_contents") == 0);
    assert_eq!(store.contents(), [format!("room/files/{kept}")]);
}

#[test]
fn what_has_no_record_goes_some_days_after_it_was_first_seen_unless_it_is_much() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    let recorded = api.new_file(&ann, "a.txt", "recorded");
    store.make_older(&recorded, 100);
    let (old, young) = (uuid(1), uuid(2));
    store.put_content(&old, b"x");
    store.make_older(&old, 100);
    store.put_content(&young, b"x");
    store.put_object("room/files/of-others", b"x");
    store.put_object("elsewhere/files/11111111-1111-4111-8111-111111111111", b"x");
    let line = format!("files/{old} of s3://files/room/");
    let printed = run_beside(&api, &store, &["gc"]).exits(0).out();
    assert!(printed.contains(&line) && printed.contains("listed for removal: 1;"), "{printed}");
    let left = store.keys();
    // It is listed once, and stays until that was long enough ago.
    let age = |days: u32| {
        let age = format!("deleted_at = now() - interval '{days} days'");
        api.database.run(&format!("UPDATE deleted_contents SET {age}"));
        run_beside(&api, &store, &["gc"]).exits(0).out()
    };
    let printed = age(6);
    assert!(printed.contains("listed for removal: 0;"), "{printed}");
    assert_eq!(store.keys(), left);
    age(8);
    assert_eq!(store.content(&old), None);
    assert_eq!(store.keys().len(), left.len() - 1);
    assert!(store.content(&young).is_some() && store.content(&recorded).is_some());
    let left = store.keys();
    // More than a page of a listing.
    for n in 10..1500 {
        store.put_content(&uuid(n), b"x");
        store.make_older(&uuid(n), 7);
    }
    let refused = run_beside(&api, &store, &["gc"]).exits(1).err();
    assert!(refused.starts_with("cloakroom: at least "), "{refused}");
    assert!(refused.contains(" of 1492 contents have no record in the database"), "{refused}");
    assert_eq!(api.database.count("deleted_contents"), 0);
    run_beside(&api, &store, &["gc", "--confirm"]).exits(0);
    assert_eq!((store.contents().len(), api.database.count("deleted_contents")), (1494, 1490));
    age(8);
    assert_eq!(store.keys(), left);
}

#[test]
fn contents_of_a_recovered_database_stay_and_are_kept_if_their_records_come_back() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    let id = api.new_file(&ann, "a.txt", "x");
    store.make_older(&id, 100);
    let count = |table: &str| api.database.count(table);
    // As after a recovery to a time before the upload, and later to one after it.
    api.database.run(
        "CREATE TABLE aside AS SELECT * FROM files;
         ALTER TABLE aside DROP COLUMN disk_usage;
         DELETE FROM files",
    );
    run_beside(&api, &store, &["gc"]).exits(0);
    assert_eq!((store.contents().len(), count("deleted_contents")), (1, 1));
    api.database.run("INSERT INTO files SELECT * FROM aside");
    api.database.run("UPDATE deleted_contents SET deleted_at = now() - interval '8 days'");
    run_beside(&api, &store, &["gc"]).exits(0);
    assert_eq!(api.download(&ann, &id).expect(200).text(), "x");
}

#[test]
fn a_store_belongs_to_one_database() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    api.new_file(&ann, "a.txt", "x");
    let url = store.url();
    let settings = store_settings(&url);
    let other = Database::create_migrated();
    let refused = run(&other.url, &["serve"], &settings).exits(1).err();
    let expected = "the database and the store do not belong together: the installation id of the database is none";
    assert!(refused.contains(expected), "{refused}");
    assert!(
        refused.contains("Check CLOAKROOM_DATABASE_URL and CLOAKROOM_STORAGE_URL"),
        "{refused}"
    );
    let id: String = api.database.value("SELECT id::text FROM installation");
    let adopted = run(&other.url, &["adopt-data-dir", &id], &settings).exits(0).out();
    assert!(adopted.contains(&format!("installation id: {id}")), "{adopted}");
    // Another data directory is as good, and several processes share the store.
    let again = Server::start_with(&api.database, &Arc::new(Directory::create()), &settings);
    again.all_files(&ann);
    assert_eq!(again.download(&ann, api.all_files(&ann)[0]["id"].as_str().unwrap()).text(), "x");
    store.put_object("room/installation-id", b"nonsense");
    let refused = run(&api.database.url, &["serve"], &settings).exits(1).err();
    assert!(refused.contains("installation-id holds no id"), "{refused}");
    store.remove_object("room/installation-id");
    let refused = run(&api.database.url, &["serve"], &settings).exits(1).err();
    assert!(refused.contains("is none."), "{refused}");
}

#[test]
fn an_installation_id_that_another_process_has_made_meanwhile_stays() {
    let store = StoreServer::start();
    let proxy = StoreProxy::start(&store);
    let url = proxy.url();
    // The answer to the second look, after which it makes one, is late, and the other database's id is there by then.
    let database = Database::create_migrated();
    proxy.misbehave(StoreFault::Late(Duration::from_secs(2)), "GET /files/room/installation-id");
    let output = thread::scope(|scope| {
        let start = scope.spawn(|| run(&database.url, &["gc"], &store_settings(&url)));
        wait_until(|| store.count("GET /files/room/installation-id") > 1);
        thread::sleep(Duration::from_millis(500));
        store.put_object("room/installation-id", uuid(7).as_bytes());
        start.join().expect("no panic")
    });
    let refused = output.exits(1).err();
    assert!(refused.contains("was made by another process meanwhile"), "{refused}");
    assert_eq!(store.object("room/installation-id"), Some(uuid(7).into_bytes()));
    // A store that does not know the condition gets the id without it.
    let store = StoreServer::start();
    store.know_no_conditions();
    let url = store.url();
    let database = Database::create_migrated();
    run(&database.url, &["gc"], &store_settings(&url)).exits(0);
    let id: String = database.value("SELECT id::text FROM installation");
    assert_eq!(store.object("room/installation-id"), Some(format!("{id}\n").into_bytes()));
}

#[test]
fn an_upload_that_cannot_be_recorded_leaves_nothing() {
    let store = StoreServer::start();
    let url = store.url();
    let [one, two, three] = store_settings(&url);
    let timeout = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3");
    let (api, [ann]) = Server::with_users(&[one, two, three, timeout], ["ann"]);
    let lock = api.database.begin("SELECT FROM storage_shards FOR UPDATE");
    api.upload(&ann, "a.txt", "x").refused(504, "Request timed out");
    assert_eq!((store.count("PUT"), store.contents().len()), (2, 0));
    lock.roll_back();
    api.new_file(&ann, "a.txt", "x");
    assert_eq!(fs::read_dir(api.data.join("tmp")).expect("drafts").count(), 0);
}

#[test]
fn a_store_that_names_no_checksum_is_asked_for_what_it_acknowledged() {
    let (store, api) = start();
    let ann = api.sign_up("ann");
    store.name_no_checksums();
    let id = api.new_file(&ann, "a.txt", "x");
    assert_eq!(store.count("HEAD"), 1);
    assert_eq!(api.download(&ann, &id).text(), "x");
}

#[test]
fn memory_does_not_grow_with_an_upload_or_a_download() {
    let store = StoreServer::start();
    let url = store.url();
    let [one, two, three] = store_settings(&url);
    let (api, [ann]) =
        Server::with_users(&[one, two, three, ("CLOAKROOM_MAX_UPLOAD_SIZE", "100M")], ["ann"]);
    let small = api.new_file(&ann, "a.txt", "small");
    api.download(&ann, &small).expect(200);
    let before = api.peak_memory();
    let content = "x".repeat(60_000_000);
    let id = api.new_file(&ann, "a.txt", &content);
    assert_eq!(api.download(&ann, &id).expect(200).bytes, content.as_bytes());
    let grown = api.peak_growth(before);
    assert!(grown < 8_000_000, "{grown} bytes more");
}

#[test]
fn the_certificate_of_the_store_is_verified() {
    let (good, bad) = (CertificateAuthority::create(), CertificateAuthority::create());
    let store = StoreServer::start_with_tls(good.certify("localhost"));
    let url = store.url();
    let (good, bad) = (good.file(), bad.file());
    let [one, two, three] = store_settings(&url);
    let (api, [ann]) =
        Server::with_users(&[one, two, three, ("CLOAKROOM_STORAGE_CA", &good)], ["ann"]);
    let id = api.new_file(&ann, "a.txt", &"x".repeat(500_000));
    assert_eq!(api.download(&ann, &id).expect(200).bytes.len(), 500_000);
    let of_others = Server::start_with(
        &api.database,
        &api.data,
        &[one, two, three, ("CLOAKROOM_STORAGE_CA", &bad)],
    );
    of_others.download(&ann, &id).refused(503, "Service temporarily unavailable");
    let line = of_others.logged("does not serve contents");
    assert!(line.contains("certificate"), "{line}");
}

#[test]
fn settings_of_a_store_are_checked_before_anything_is_served() {
    let refused = |settings: &[(&str, &str)], expected: &str| {
        let error = run(NOWHERE, &["serve"], settings).exits(2).err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    };
    let key = [("CLOAKROOM_STORAGE_ACCESS_KEY", "k"), ("CLOAKROOM_STORAGE_SECRET_KEY", "s3cret")];
    for url in [
        "s3://files",
        "https://files.example.com",
        "s3://key:s3cret@files?endpoint=https://h&region=r",
        "s3://files?endpoint=https://key:s3cret@h&region=r",
    ] {
        let expected =
            "CLOAKROOM_STORAGE_URL holds \"(not shown)\"; allowed: s3://BUCKET/PREFIX?endpoint=";
        refused(&[("CLOAKROOM_STORAGE_URL", url), key[0], key[1]], expected);
    }
    let url = ("CLOAKROOM_STORAGE_URL", "s3://files?endpoint=http://192.0.2.1:1&region=r");
    refused(
        &[url, key[1]],
        "CLOAKROOM_STORAGE_ACCESS_KEY is not set; CLOAKROOM_STORAGE_URL needs it",
    );
    refused(
        &[url, key[0]],
        "CLOAKROOM_STORAGE_SECRET_KEY is not set; CLOAKROOM_STORAGE_URL needs it",
    );
    for key in
        [("CLOAKROOM_STORAGE_ACCESS_KEY", "k\u{e9}y"), ("CLOAKROOM_STORAGE_ACCESS_KEY", "a k")]
    {
        let expected =
            "CLOAKROOM_STORAGE_ACCESS_KEY holds \"(not shown)\"; allowed: printable ASCII";
        refused(&[url, key, ("CLOAKROOM_STORAGE_SECRET_KEY", "s3cret")], expected);
    }
    refused(
        &[url, key[0], ("CLOAKROOM_STORAGE_SECRET_KEY", "s3cret\u{7f}")],
        "CLOAKROOM_STORAGE_SECRET_KEY holds",
    );
    let production = ("CLOAKROOM_ENV", "production");
    refused(&[url, key[0], key[1], production], "in production use https");
    let server = ("CLOAKROOM_HTTP_SERVER", "rouille");
    refused(&[url, key[0], key[1], server], "CLOAKROOM_HTTP_SERVER is rouille");
    let ca = ("CLOAKROOM_STORAGE_CA", "/dev/null");
    refused(
        &[url, key[0], key[1], ca],
        "CLOAKROOM_STORAGE_CA holds \"/dev/null\"; allowed: a PEM file",
    );
    let shown = run(NOWHERE, &["config"], &[url, key[0], key[1]]).exits(0).out();
    assert!(shown.contains("CLOAKROOM_STORAGE_SECRET_KEY=(set, not shown)\n"), "{shown}");
    assert!(shown.contains(&format!("CLOAKROOM_STORAGE_URL={}\n", url.1)), "{shown}");
}

#[test]
fn a_bucket_that_is_missing_or_a_key_that_is_refused_ends_the_start() {
    let store = StoreServer::start();
    let (url, database) = (store.url(), Database::create_migrated());
    let [_, access, secret] = store_settings(&url);
    let missing = url.replace("s3://files/", "s3://others/");
    for (settings, expected) in [
        ([("CLOAKROOM_STORAGE_URL", &*missing), access, secret], "GET answers 404 NoSuchBucket"),
        (
            [("CLOAKROOM_STORAGE_URL", &*url), ("CLOAKROOM_STORAGE_ACCESS_KEY", "x"), secret],
            "GET answers 403 InvalidAccessKeyId",
        ),
        (
            [("CLOAKROOM_STORAGE_URL", &*url), access, ("CLOAKROOM_STORAGE_SECRET_KEY", "x")],
            "GET answers 403 SignatureDoesNotMatch",
        ),
    ] {
        let error = run(&database.url, &["serve"], &settings).exits(1).err();
        assert!(error.contains(expected), "{error}");
    }
}
