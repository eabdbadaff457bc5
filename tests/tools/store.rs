//! The commands with contents in a store: check, backup, restore, doctor and move-contents.

use std::fs;
use std::process::Output;
use std::sync::Arc;

use crate::harness::*;

/// A stopped service with contents in a store.
struct World {
    store: StoreServer,
    database: Arc<Database>,
    data: Arc<Directory>,
    ann: Tokens,
    ids: Vec<String>,
}

const TEXTS: [&str; 4] = ["one", "two", "three", ""];

impl World {
    fn create() -> World {
        let store = StoreServer::start();
        let url = store.url();
        let api = Server::start(&store_settings(&url));
        let ann = api.sign_up("ann");
        let ids = TEXTS.map(|text| api.new_file(&ann, "a.txt", text)).to_vec();
        World { store, database: api.database.clone(), data: api.data.clone(), ann, ids }
    }

    /// Runs a command on the database, the data directory and the store.
    fn run(&self, arguments: &[&str]) -> Output {
        run_on(&self.database, &self.data, &self.store.url(), arguments)
    }

    /// Starts a service whose contents are in the store or, without it, in the data directory.
    fn serve(&self, is_in_store: bool) -> Server {
        let url = self.store.url();
        let settings = store_settings(&url);
        Server::start_with(&self.database, &self.data, if is_in_store { &settings } else { &[] })
    }
}

fn run_on(database: &Database, data: &Directory, url: &str, arguments: &[&str]) -> Output {
    run_in(data, &database.url, arguments, &store_settings(url))
}

#[track_caller]
fn has_texts(api: &Server, ann: &Tokens, ids: &[String]) {
    for (id, text) in ids.iter().zip(TEXTS) {
        assert_eq!(api.download(ann, id).expect(200).text(), text);
    }
}

#[test]
fn check_compares_records_with_the_store() {
    let world = World::create();
    let printed = world.run(&["check"]).exits(0).out();
    assert!(printed.contains("records: 4 files compared with their contents; 0"), "{printed}");
    let [one, two, three, _] = &world.ids[..] else { panic!("four") };
    world.store.put_content(one, b"onE");
    world.store.put_content(two, b"tw");
    world.store.remove_object(&format!("room/files/{three}"));
    // The sweep may not have seen the one that is young, and has to have listed the other one.
    for (n, minutes) in [(1, 30), (2, 90), (3, 150)] {
        world.store.put_content(&uuid(n), b"x");
        world.store.make_older_by(&uuid(n), time::Duration::minutes(minutes));
    }
    let faults = world.run(&["check"]).exits(1);
    let printed = findings_of(&faults, "fault");
    one_names(&printed, &[one, "has another SHA-256 than is recorded"]);
    one_names(&printed, &[two, "has 2 bytes, not 3"]);
    one_names(&printed, &[three, "is missing"]);
    one_names(&printed, &["records: 4 files", "3 damaged or missing"]);
    one_names(&printed, &[&uuid(3), "has no record"]);
    one_names(&printed, &["contents: 2 over an hour old", "2 without a record"]);
    assert_eq!(printed.len(), 6, "{printed:?}");
    let printed = findings_of(&faults, "warning");
    one_names(&printed, &[&uuid(2), "has no record: the next sweep lists it for removal"]);
    assert!(!faults.out().contains(&uuid(1)), "{}", faults.out());
    world.run(&["gc"]).exits(1);
    assert!(!world.run(&["check"]).exits(1).out().contains("has no record"));
}

#[test]
fn a_backup_of_a_store_is_restored_into_another_one_or_a_directory() {
    let world = World::create();
    let backups = Backups::create();
    let printed = world.run(&backups.arguments()).exits(0).out();
    assert!(printed.contains("4 copied, 0 linked"), "{printed}");
    let printed = world.run(&backups.arguments()).exits(0).out();
    assert!(printed.contains("0 copied, 4 linked"), "{printed}");
    let [.., backup] = &backups.whole()[..] else { panic!("a backup") };
    let backup = backup.to_str().expect("a path");

    // Not over the contents of an installation.
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let refused = run_on(&database, &data, &world.store.url(), &["restore", backup]).exits(1).err();
    assert!(refused.contains("restore below an empty prefix"), "{refused}");
    assert_eq!(world.store.contents().len(), 4);

    let store = StoreServer::start();
    let printed = run_on(&database, &data, &store.url(), &["restore", backup]).exits(0).out();
    assert!(printed.contains("contents: 4 files, 11 bytes"), "{printed}");
    let url = store.url();
    let api = Server::start_with(&database, &data, &store_settings(&url));
    has_texts(&api, &api.login("ann", PASSWORD).tokens(), &world.ids);
    assert!(!data.join("restore.partial").exists() && !data.join("files").exists());

    let target = Installation::empty();
    target.restore(backup.as_ref()).exits(0);
    let api = target.serve();
    has_texts(&api, &api.login("ann", PASSWORD).tokens(), &world.ids);
}

#[test]
fn a_backup_names_contents_that_the_store_has_lost_or_changed() {
    let world = World::create();
    world.store.remove_object(&format!("room/files/{}", world.ids[0]));
    world.store.put_content(&world.ids[1], b"twx");
    let backups = Backups::create();
    let output = world.run(&backups.arguments()).exits(1);
    assert!(output.err().contains("missing or damaged, 2 in all"), "{}", output.err());
    let printed = output.out();
    assert!(
        printed.contains(&format!("{} (\"a.txt\", owner ann) is missing", world.ids[0])),
        "{printed}"
    );
    assert!(printed.contains("has another SHA-256 than is recorded"), "{printed}");
    assert!(backups.whole().is_empty());
}

#[test]
fn a_store_that_goes_away_is_no_damage_of_contents() {
    let world = World::create();
    let proxy = StoreProxy::start(&world.store);
    let backups = Backups::create();
    let of_backup = backups.arguments();
    let to_directory = ["move-contents", "--to", "directory"];
    for fault in [StoreFault::Answer(503, "SlowDown"), StoreFault::Cut, StoreFault::Drop] {
        proxy.misbehave(fault, "GET /files/room/files/");
        for arguments in [&of_backup[..], &to_directory, &["check"]] {
            let output = run_on(&world.database, &world.data, &proxy.url(), arguments).exits(1);
            let said = output.out() + &output.err();
            assert!(said.contains("the store does not serve contents"), "{fault:?}: {said}");
            assert!(!said.contains("damaged:") && !said.contains("owner ann"), "{fault:?}: {said}");
        }
    }
    assert!(backups.whole().is_empty());
    proxy.behave();
    run_on(&world.database, &world.data, &proxy.url(), &to_directory).exits(0);
}

#[test]
fn a_restoration_that_the_store_breaks_off_restores_nothing() {
    let world = World::create();
    let backups = Backups::create();
    world.run(&backups.arguments()).exits(0);
    let backup = backups.whole()[0].to_str().expect("a path").to_owned();
    let store = StoreServer::start();
    let proxy = StoreProxy::start(&store);
    proxy.misbehave(StoreFault::Answer(500, "InternalError"), "PUT");
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let refused = run_on(&database, &data, &proxy.url(), &["restore", &backup]).exits(1).err();
    assert!(refused.contains("Nothing was restored."), "{refused}");
    assert!(store.keys().is_empty());
    proxy.behave();
    run_on(&database, &data, &proxy.url(), &["restore", &backup]).exits(0);
    assert_eq!(store.contents().len(), 4);
}

#[test]
fn doctor_asks_the_store() {
    let world = World::create();
    let printed = world.run(&["doctor"]).exits(0).out();
    assert!(printed.contains("installation id: "), "{printed}");
    assert!(printed.contains("ok      contents: s3://files/room/ at localhost:"), "{printed}");
    let proxy = StoreProxy::start(&world.store);
    proxy.misbehave(StoreFault::Refuse, "");
    let nowhere = world.store.url().replace("localhost", "nowhere.invalid");
    for (url, cause) in [(&proxy.url(), "Connection refused"), (&nowhere, "nowhere.invalid")] {
        let printed = run_on(&world.database, &world.data, url, &["doctor"]).exits(1).out();
        assert!(printed.contains("fault   contents: the store s3://files/room/"), "{printed}");
        assert!(printed.contains(cause), "{printed}");
    }
    let missing = world.store.url().replace("s3://files/", "s3://others/");
    let printed = run_on(&world.database, &world.data, &missing, &["doctor"]).exits(1).out();
    assert!(printed.contains("404 NoSuchBucket"), "{printed}");
}

#[test]
fn contents_move_to_the_store_and_back_while_the_service_runs() {
    let world = World::create();
    let to = |place: &str| world.run(&["move-contents", "--to", place]);
    let printed = to("directory").exits(0).out();
    assert!(printed.contains("4 contents copied to "), "{printed}");
    assert!(to("directory").exits(0).out().contains("nothing is left to do"), "{printed}");
    let api = world.serve(false);
    has_texts(&api, &world.ann, &world.ids);
    // The service goes on with the directory: one upload more, and one deletion.
    let later = api.new_file(&world.ann, "b.txt", "later");
    api.delete_file(&world.ann, &world.ids[0]).expect(204);
    world.store.remove_object(&format!("room/files/{}", world.ids[1]));
    let printed = to("s3").exits(0).out();
    assert!(printed.contains("2 contents copied to s3://files/room/"), "{printed}");
    assert_eq!(world.store.content(&later).expect("stored"), b"later");
    assert!(to("s3").exits(0).out().contains("0 contents copied"));
    drop(api);
    let api = world.serve(true);
    assert_eq!(api.download(&world.ann, &later).text(), "later");
    assert_eq!(api.download(&world.ann, &world.ids[1]).text(), "two");
    // What was deleted from the directory is known to the sweep, and goes when its days are over.
    assert!(world.store.content(&world.ids[0]).is_some());
    world.database.run("UPDATE deleted_contents SET deleted_at = now() - interval '8 days'");
    world.run(&["gc"]).exits(0);
    assert!(world.store.content(&world.ids[0]).is_none());
}

#[test]
fn nothing_is_moved_to_a_foreign_place_or_without_a_store() {
    let world = World::create();
    let to_store = ["move-contents", "--to", "s3"];
    let error = run_in(&world.data, &world.database.url, &to_store, &[]).exits(2).err();
    assert!(error.contains("CLOAKROOM_STORAGE_URL is not set"), "{error}");
    let other = Server::start(&[]);
    let user = other.sign_up("bob");
    other.new_file(&user, "a.txt", "of others");
    let error = run_on(
        &world.database,
        &other.data,
        &world.store.url(),
        &["move-contents", "--to", "directory"],
    );
    let error = error.exits(1).err();
    assert!(error.contains("nothing was copied"), "{error}");
    assert_eq!(other.data.contents().len(), 1);
    // A damaged content is named, and the others are copied.
    world.store.put_content(&world.ids[0], b"onE");
    let output = world.run(&["move-contents", "--to", "directory"]).exits(1);
    assert!(output.out().contains(&format!("files/{} ", world.ids[0])), "{}", output.out());
    assert!(output.err().contains("1 content missing or damaged"), "{}", output.err());
    assert_eq!(fs::read_dir(world.data.join("files")).expect("contents").count(), 3);
    assert_eq!(fs::read_dir(world.data.join("tmp")).expect("drafts").count(), 0);
}
