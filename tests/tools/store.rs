//! The commands with contents in a store: check, backup, restore, doctor and move-contents.

use std::fs;
use std::process::Output;

use serde_json::json;

use crate::harness::*;

/// A stopped service with contents in a store.
struct World {
    store: StoreServer,
    service: Installation,
    ann: Tokens,
    ids: [String; 4],
}

const TEXTS: [&str; 4] = ["one", "two", "three", ""];

impl World {
    fn create() -> World {
        let store = StoreServer::start();
        let api = Server::start(&store_settings(&store.url()));
        let ann = api.sign_up("ann");
        let ids = TEXTS.map(|text| api.new_file(&ann, "a.txt", text));
        let service = Installation { database: api.database.clone(), data: api.data.clone() };
        World { store, service, ann, ids }
    }

    /// Runs a command on the database, the data directory and the store.
    fn run(&self, arguments: &[&str]) -> Output {
        run_on(&self.service, &self.store.url(), arguments)
    }

    /// Removes the content of a file from the store.
    fn remove(&self, id: &str) {
        self.store.remove_object(&format!("room/files/{id}"));
    }
}

fn run_on(service: &Installation, url: &str, arguments: &[&str]) -> Output {
    service.run(arguments, &store_settings(url))
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
    world.run(&["check"]).exits(0).prints("records: 4 files compared with their contents; 0");
    let [one, two, three, _] = &world.ids;
    world.store.put_content(one, b"onE");
    world.store.put_content(two, b"tw");
    world.remove(three);
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
    world.run(&["gc"]).exits(0);
    assert!(!world.run(&["check"]).exits(1).out().contains("has no record"));
}

#[test]
fn a_directory_is_imported_into_the_store() {
    let (world, tree) = (World::create(), Directory::create());
    fs::write(tree.join("new"), "new").expect("a file");
    let path = tree.path().to_str().expect("a path of the test");
    let import = ["import-files", path, "--owner", "ann"];
    world.run(&[&import[..], &["--dry-run"]].concat()).exits(0).prints("to be imported: 1 file");
    assert_eq!(world.store.contents().len(), 4);
    world.run(&import).exits(0).prints("imported: 1 file (3 bytes);");
    world.run(&import).exits(0).prints("imported: 0 files (0 bytes); there already: 1;");
    let id: String =
        world.service.database.value("SELECT id::text FROM files WHERE filename = 'new'");
    assert_eq!(world.store.content(&id).expect("stored"), b"new");
    world.run(&["check"]).exits(0).prints("no faults, no warnings.");
    // Where the store is away, nothing is tried in vain.
    let proxy = StoreProxy::start(&world.store);
    proxy.misbehave(StoreFault::Drop, "PUT /");
    fs::write(tree.join("newer"), "newer").expect("a file");
    let output = run_on(&world.service, &proxy.url(), &import).exits(1);
    output.reports("the store does not serve contents: run it again to go on");
    assert_eq!(world.service.database.count("files"), 5);
}

#[test]
fn a_file_that_the_store_has_lost_for_good_is_deleted_where_asked() {
    let (world, backups) = (World::create(), Backups::create());
    let [one, two, ..] = &world.ids;
    world.remove(one);
    let output = world.run(&["check", "--remove-lost", one, two]).exits(1);
    let left = format!("files/{two} is left: s3://files/room/ at ");
    output.prints(&left).prints(&format!("files/{one} (\"a.txt\", owner ann) was deleted"));
    world.run(&backups.arguments()).exits(0).prints("3 files");
    let proxy = StoreProxy::start(&world.store);
    proxy.misbehave(StoreFault::Drop, "GET /");
    run_on(&world.service, &proxy.url(), &["check", "--remove-lost", two]).exits(1);
    world.remove(two);
    run_on(&world.service, &proxy.url(), &["check", "--remove-lost", two]).exits(1);
    assert_eq!(world.service.database.count("files"), 3);
}

#[test]
fn what_the_store_has_lost_or_changed_is_brought_back_from_the_last_backup_or_deleted_where_asked()
{
    let (world, backups) = (World::create(), Backups::create());
    world.run(&backups.arguments()).exits(0);
    let backup = backups.whole().remove(0);
    let [one, two, three, _] = &world.ids;
    world.store.put_content(one, b"onE");
    world.store.put_content(two, b"tw");
    world.remove(three);
    let faults = findings_of(&world.run(&["check"]).exits(1), "fault");
    let output = world.run(&["check", "--repair"]).exits(0);
    for (id, was, text) in
        [(one, "damaged", "one"), (two, "damaged", "two"), (three, "missing", "three")]
    {
        let copy = backup.join("files").join(id);
        let copy = copy.canonicalize().expect("a content").display().to_string();
        one_names(&faults, &[id, &copy, "`cloakroom check --repair` brings them back"]);
        let words = format!("was {was} and is back, from {copy}");
        one_names(&findings_of(&output, "warning"), &[id, &words]);
        assert_eq!(world.store.content(id).expect("stored"), text.as_bytes());
    }
    // The last backup has rotted, too.
    world.store.put_content(one, b"onE");
    fs::write(backup.join("files").join(one), "onE").expect("changed");
    let output = world.run(&["check", "--remove-lost", one, two]).exits(1).reports(two);
    output.prints(&format!("files/{one} (\"a.txt\", owner ann) was deleted for good"));
    // As long as other contents without a record, it can be brought back by hand.
    assert_eq!(world.store.content(one).expect("stored"), b"onE");
    world.run(&["check"]).exits(0).prints("no faults, no warnings.");
    world.run(&backups.arguments()).exits(0).prints("3 files");
}

#[test]
fn a_backup_of_a_store_is_restored_into_another_one_or_a_directory() {
    let (world, backups) = (World::create(), Backups::create());
    world.run(&backups.arguments()).exits(0).prints("4 copied, 0 linked");
    world.run(&backups.arguments()).exits(0).prints("0 copied, 4 linked");
    let backup = backups.whole().remove(1).display().to_string();
    // Not over the contents of an installation.
    let target = Installation::empty();
    let restore = |store: &StoreServer| run_on(&target, &store.url(), &["restore", &backup]);
    restore(&world.store).exits(1).reports("restore below an empty prefix");
    assert_eq!(world.store.contents().len(), 4);

    let store = StoreServer::start();
    restore(&store).exits(0).prints("contents: 4 files, 11 bytes");
    let url = store.url();
    let api = Server::start_with(&target.database, &target.data, &store_settings(&url));
    has_texts(&api, &api.sign_in("ann"), &world.ids);
    assert!(!target.data.join("restore.partial").exists() && !target.data.join("files").exists());

    let target = Installation::empty();
    target.restore(backup.as_ref()).exits(0);
    let api = target.serve();
    has_texts(&api, &api.sign_in("ann"), &world.ids);
}

#[test]
fn a_backup_names_contents_that_the_store_has_lost_or_changed() {
    let (world, backups) = (World::create(), Backups::create());
    world.remove(&world.ids[0]);
    world.store.put_content(&world.ids[1], b"twx");
    let output = world.run(&backups.arguments()).exits(1).reports("missing or damaged, 2 in all");
    output
        .prints(&format!("{} (\"a.txt\", owner ann) is missing", world.ids[0]))
        .prints("has another SHA-256 than is recorded");
    assert!(backups.whole().is_empty());
}

#[test]
fn a_store_that_goes_away_is_no_damage_of_contents() {
    let (world, backups) = (World::create(), Backups::create());
    let proxy = StoreProxy::start(&world.store);
    let of_backup = backups.arguments();
    let to_directory = ["move-contents", "--to", "directory"];
    for fault in [StoreFault::Answer(503, "SlowDown"), StoreFault::Cut, StoreFault::Drop] {
        proxy.misbehave(fault, "GET /files/room/files/");
        for arguments in [&of_backup[..], &to_directory, &["check"]] {
            let output = run_on(&world.service, &proxy.url(), arguments).exits(1);
            let said = output.out() + &output.err();
            assert!(said.contains("the store does not serve contents"), "{fault:?}: {said}");
            assert!(!said.contains("damaged:") && !said.contains("owner ann"), "{fault:?}: {said}");
        }
    }
    assert!(backups.whole().is_empty());
    proxy.behave();
    run_on(&world.service, &proxy.url(), &to_directory).exits(0);
}

#[test]
fn a_restoration_that_the_store_breaks_off_restores_nothing() {
    let (world, backups, target) = (World::create(), Backups::create(), Installation::empty());
    world.run(&backups.arguments()).exits(0);
    let backup = backups.whole().remove(0).display().to_string();
    let store = StoreServer::start();
    let proxy = StoreProxy::start(&store);
    let restore = || run_on(&target, &proxy.url(), &["restore", &backup]);
    for fault in [StoreFault::Answer(500, "InternalError"), StoreFault::Drop] {
        proxy.misbehave(fault, "PUT");
        restore().exits(1).reports("Nothing was restored.");
        assert!(store.keys().is_empty());
    }
    // What one that was killed has copied stays, and so does its mark.
    fs::create_dir(target.data.join("restore.partial")).expect("a directory");
    store.put_content(&uuid(1), b"one");
    restore().exits(1).reports("Nothing was restored.");
    proxy.behave();
    restore().exits(0);
    // The fifth has no record, so it is for the sweep.
    assert_eq!(store.contents().len(), 5);
}

#[test]
fn doctor_asks_the_store() {
    let world = World::create();
    let printed = world.run(&["doctor"]).exits(0).prints("installation id: ");
    printed.prints("ok      contents: s3://files/room/ at localhost:");
    let proxy = StoreProxy::start(&world.store);
    proxy.misbehave(StoreFault::Refuse, "");
    let doctor = |url: &str| run_on(&world.service, url, &["doctor"]).exits(1);
    let nowhere = world.store.url().replace("localhost", "nowhere.invalid");
    for (url, cause) in [(&proxy.url(), "Connection refused"), (&nowhere, "nowhere.invalid")] {
        doctor(url).prints("fault   contents: the store s3://files/room/").prints(cause);
    }
    doctor(&world.store.url().replace("s3://files/", "s3://others/")).prints("404 NoSuchBucket");
}

#[test]
fn contents_move_to_the_store_and_back_while_the_service_runs() {
    let world = World::create();
    let (service, ann) = (&world.service, &world.ann);
    let to = |place: &str| world.run(&["move-contents", "--to", place]).exits(0);
    to("directory").prints("4 contents copied to ");
    to("directory").prints("nothing is left to do");
    let api = service.serve();
    has_texts(&api, ann, &world.ids);
    // The service goes on with the directory: one upload more, and one deletion.
    let later = api.new_file(ann, "b.txt", "later");
    api.delete_file(ann, &world.ids[0]).expect(204);
    world.remove(&world.ids[1]);
    to("s3").prints("2 contents copied to s3://files/room/");
    assert_eq!(world.store.content(&later).expect("stored"), b"later");
    to("s3").prints("0 contents copied");
    drop(api);
    let url = world.store.url();
    let api = Server::start_with(&service.database, &service.data, &store_settings(&url));
    assert_eq!(api.download(ann, &later).text(), "later");
    assert_eq!(api.download(ann, &world.ids[1]).text(), "two");
    // What was deleted from the directory is restored from the store.
    api.post(&format!("/uploads/{}/restore", world.ids[0]), ann, json!({})).expect(200);
    assert_eq!(api.download(ann, &world.ids[0]).text(), "one");
    api.delete_for_good(ann, &world.ids[0]).expect(204);
    wait_until(|| world.store.content(&world.ids[0]).is_none());
}

#[test]
fn a_disk_that_is_full_is_named_and_not_the_store() {
    let (service, _) =
        Installation::after(|api| api.new_file(api.sign_up("ann"), "a.txt", &"x".repeat(5000)));
    let store = StoreServer::start();
    let url = store.url();
    let mut command = command(&service.database.url, &service.data, &store_settings(&url));
    command.args(["move-contents", "--to", "s3"]);
    // Files of this process may have 1 KiB.
    let output = within_shell("ulimit -f 1", command).output().expect("bash runs");
    output
        .exits(1)
        .reports(&format!("{}/", service.data.join("tmp").display()))
        .reports("File too large");
}

#[test]
fn nothing_is_moved_to_a_foreign_place_or_without_a_store() {
    let world = World::create();
    let [to_store, to_directory] =
        ["s3", "directory"].map(|place| ["move-contents", "--to", place]);
    world.service.run(&to_store, &[]).exits(2).reports("CLOAKROOM_STORAGE_URL is not set");
    let (other, _) = Installation::after(|api| api.new_file(api.sign_up("bob"), "a.txt", "x"));
    let other = Installation { database: world.service.database.clone(), data: other.data };
    run_on(&other, &world.store.url(), &to_directory).exits(1).reports("nothing was copied");
    assert_eq!(other.data.contents().len(), 1);
    // A damaged content is named, and the others are copied.
    world.store.put_content(&world.ids[0], b"onE");
    let output = world.run(&to_directory).exits(1).reports("1 content missing or damaged");
    output.prints(&format!("files/{} ", world.ids[0]));
    let found = ["files", "tmp"].map(|name| entries(world.service.data.join(name)).len());
    assert_eq!(found, [3, 0]);
}
