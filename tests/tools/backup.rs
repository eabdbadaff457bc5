//! `cloakroom backup`: what a backup consists of, and that it is one moment of a service that goes on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::harness::*;

/// How many names the file of a path has.
fn links(path: &Path) -> u64 {
    fs::metadata(path).expect("it exists").nlink()
}

#[test]
fn a_backup_has_a_dump_the_contents_their_list_and_a_manifest_that_only_this_user_can_read() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let one = api.new_file(&ann, "a.txt", "one");
    let empty = api.new_file(&ann, "b.txt", "");
    // A directory below a missing one.
    let directory = backups.path().join("missing/backups");
    let arguments = ["backup", directory.to_str().expect("a path")];
    let printed = api.run_beside(&arguments).exits(0).out();
    let (path, rest) = printed.split_once(" is whole: ").expect("a backup");
    let expected = "1 user, 2 files (3 bytes), 2 copied, 0 linked to the backup before; 2 of 2 contents read and \
                    right, in ";
    assert!(rest.starts_with(expected) && printed.lines().count() == 1, "{printed}");
    let backup = Path::new(path);
    let manifest = manifest(backup);
    let mut expected = [(one.clone(), digits_of_sha256(b"one")), (empty, digits_of_sha256(b""))];
    expected.sort();
    assert_eq!(listed(backup), expected);
    has_exactly(backup, &expected);
    for (part, name) in [("dump", "database.dump"), ("contents", "contents.sha256")] {
        let bytes = fs::read(backup.join(name)).expect("a file");
        let expected = json!({"size": bytes.len(), "sha256": digits_of_sha256(&bytes)});
        assert_eq!(manifest[part], expected);
    }
    let mut sha256sum = Command::new("sha256sum");
    sha256sum.args(["--check", "--strict", "contents.sha256"]).current_dir(backup);
    let checked = sha256sum.output().expect("sha256sum runs").exits(0).out();
    assert_eq!(checked.matches(": OK\n").count(), 2, "{checked}");
    let id: String = api.database.value("SELECT id::text FROM installation");
    let version: i32 = api.database.value("SELECT max(version) FROM refinery_schema_history");
    let postgresql: String =
        api.database.value("SELECT split_part(current_setting('server_version'), ' ', 1)");
    for (name, value) in [
        ("installation_id", json!(id)),
        ("schema_version", json!(version)),
        ("postgresql", json!(postgresql)),
        ("cloakroom", json!(env!("CARGO_PKG_VERSION"))),
        ("users", json!(1)),
        ("files", json!(2)),
        ("bytes", json!(3)),
    ] {
        assert_eq!(manifest[name], value, "{name}");
    }
    let time = manifest["created_at"].as_str().expect("a time").replace(':', "-");
    let time = directory.join(time).display().to_string();
    assert!(time.starts_with(path.trim_end_matches('Z')), "{time} {path}");
    for path in [&directory, backup, &backup.join("files")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    let copy = backup.join("files").join(&one);
    let others =
        ["database.dump", "contents.sha256", "manifest.json"].map(|name| backup.join(name));
    for path in others.iter().chain([&copy]) {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    // A link to the data directory would share what rots there.
    assert_eq!((links(&api.data.content(&one)), links(&copy)), (1, 1));
}

#[test]
fn a_deletion_beside_a_backup_leaves_the_content_for_it_until_a_later_sweep() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let root = api.sign_up_admin("root");
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    // More than 20, and more than 5 % of all.
    let deleted = [(); 21].map(|()| api.new_file(&ann, "a.txt", "ann's"));
    let of_deleted_user = api.new_file(&bob, "b.txt", "bob's");
    let held = backups.begin(&api);
    let later = api.new_file(&ann, "c.txt", "later");
    for id in &deleted {
        api.delete_for_good(&ann, id).expect(204);
        api.download(&ann, id).refused(404, "File not found");
        make_older(&api.data.content(id), 1);
    }
    let lost = api.data.content(&uuid(1));
    fs::write(&lost, "x").expect("a content");
    make_older(&lost, 1);
    api.delete_user(&root, bob.id()).expect(204);
    let printed = api.collect_garbage();
    let paused = "a backup is running: contents without a record stay until a later sweep\n";
    assert_eq!(printed, paused.to_owned() + &swept(0, 0));
    let printed = held.end().exits(0).out();
    let [backup] = &backups.whole()[..] else { panic!("{printed}") };
    let of_ann = deleted.map(|id| (id, digits_of_sha256(b"ann's")));
    let mut expected = [&of_ann[..], &[(of_deleted_user, digits_of_sha256(b"bob's"))]].concat();
    expected.sort();
    assert_eq!(listed(backup), expected);
    // Now the contents of deleted files and users are removed, however many, and one without a record is moved.
    let printed = api.collect_garbage();
    assert!(printed.ends_with(&swept(1, 0)), "{printed}");
    wait_until(|| api.data.contents() == [api.data.content(&later)]);
    // Contents of deleted users are not missed, and neither are they copied.
    let lock = api.database.begin("SELECT FROM files FOR UPDATE");
    api.delete_user(&root, ann.id()).expect(204);
    let (backup, printed) = backups.make(&api);
    assert!(printed.contains("1 user, 0 files (0 bytes)"), "{printed}");
    assert_eq!(manifest(&backup)["files"], 0);
    lock.roll_back();
}

#[test]
fn a_deletion_that_is_committed_during_a_backup_leaves_it_the_content() {
    // The deletion waits for half of this at most.
    let timeout = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60");
    let (api, backups) = (Server::start(&[timeout]), Backups::create());
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "content");
    // The deletion waits for the lock of the totals before it can commit.
    let totals = api.database.begin("SELECT FROM storage_shards FOR UPDATE");
    thread::scope(|scope| {
        let deletion = scope.spawn(|| api.delete_for_good(&ann, &file));
        api.database.wait_for_blocked_statement();
        let held = backups.begin(&api);
        wait_until(|| api.database.blocked_statements() == 2);
        totals.roll_back();
        deletion.join().expect("no panic").expect(204);
        held.end().exits(0);
    });
    let [backup] = &backups.whole()[..] else { panic!("{:?}", backups.whole()) };
    assert_eq!(listed(backup), [(file, digits_of_sha256(b"content"))]);
    wait_until(|| api.data.contents().is_empty());
}

/// Expects that these are the contents below a directory, given by their ids and hashes, and that there are no others.
#[track_caller]
fn has_exactly(directory: &Path, contents: &[(String, String)]) {
    let found = entries(directory.join("files"));
    let hash = |path: &PathBuf| digits_of_sha256(&fs::read(path).expect("a content"));
    let id = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(found.iter().map(|path| (id(path), hash(path))).collect::<Vec<_>>(), contents);
}

#[test]
fn ten_thousand_files_are_one_moment_of_a_busy_service_and_are_restored_into_a_new_cluster() {
    const COUNT: usize = 10_000;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let users = ["ann", "bob"].map(|name| api.sign_up(name));
    let (changes, files) = (AtomicUsize::new(0), [(); 2].map(|()| Mutex::new(Vec::new())));
    let change = |i: usize, _| {
        let (user, mut files) = (&users[i], files[i].lock().expect("no panic"));
        let n = changes.fetch_add(1, Ordering::Relaxed);
        files.push(api.new_file(user, "a.txt", &format!("content {n}")));
        // The oldest goes first, so the snapshot names some that are deleted while it is copied.
        if files.len() > 20 {
            api.delete_for_good(user, &files.remove(0)).expect(204);
        }
    };
    let (path, printed) = repeat_during(2, change, || {
        wait_until(|| changes.load(Ordering::Relaxed) > 60);
        let begin = changes.load(Ordering::Relaxed);
        let made = backups.make(&api);
        // Each of the two had more files deleted than it has, so every one of them in the snapshot is deleted by now.
        assert!(changes.load(Ordering::Relaxed) > begin + 60, "{begin} {changes:?}");
        made
    });
    let (manifest, contents) = (manifest(&path), listed(&path));
    has_exactly(&path, &contents);
    assert!(contents.len() >= COUNT + 40, "{printed}");
    // The deleted ones go within seconds.
    wait_until(|| api.data.contents().len() == COUNT + 40);
    let linked = entries(api.data.join("files")).into_iter().find(|path| links(path) != 1);
    assert_eq!(linked, None);
    // The next one finds almost all of them.
    let (_, printed) = backups.make(&api);
    assert!(printed.contains(&format!("{} files", COUNT + 40)), "{printed}");
    let cluster = Cluster::start("restore");
    let target = Installation::on(&Database::create_on(&cluster.url));
    target.restore(&path).exits(0);
    assert_eq!(manifest["users"], COUNT + 2);
    let query = "SELECT id::text, file_hash FROM files ORDER BY id";
    let rows = target.database.client().query(query, &[]).expect("rows");
    let records: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(records, contents);
    has_exactly(target.data.path(), &contents);
    let bytes: i64 = target.database.value("SELECT sum(file_size)::bigint FROM recorded_contents");
    assert_eq!(manifest["bytes"], bytes);
    target.serve().run_beside(&["check"]).exits(0);
}

#[test]
fn keep_removes_the_oldest_whole_backups_of_the_same_installation() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let other = Server::start(&[]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "content");
    let (foreign, _) = backups.make(&other);
    let made = [(); 3].map(|()| backups.make(&api).0);
    // One whose manifest is damaged may still be of use, so it is left to its owner.
    let text = fs::read_to_string(made[0].join("manifest.json")).expect("a manifest");
    fs::write(made[0].join("manifest.json"), text.replace("contents", "kontents"))
        .expect("changed");
    let [backup, directory] = backups.arguments();
    let output = api.run_beside(&[backup, "--keep", "2", directory]).exits(0);
    let removed = format!("removed {}\n", made[1].display());
    assert!(output.out().starts_with(&removed), "{}", output.out());
    assert!(output.err().contains(&*made[0].to_string_lossy()), "{}", output.err());
    let whole = backups.whole();
    assert_eq!(whole[..3], [foreign, made[0].clone(), made[2].clone()]);
    assert_eq!(whole.len(), 4);
    // What was linked to the removed one is still there.
    let copy = whole[3].join("files").join(&file);
    assert_eq!(fs::read_to_string(&copy).expect("a copy"), "content");
    for arguments in [&["--keep", "0"][..], &["--keep", "x"], &["--keep", "-1"], &["--keep"]] {
        api.run_beside(&[&[backup, directory], arguments].concat()).exits(2);
    }
    assert_eq!(backups.whole(), whole);
    // Those of another installation are not linked to either.
    let (path, _) = backups.make(&other);
    assert_eq!(manifest(&path)["files"], 0);
}

#[test]
fn keep_goes_by_the_order_in_which_backups_were_made_also_where_the_clock_was_ahead() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let (first, _) = backups.make(&api);
    let (ahead, _) = backups.make(&api);
    let renamed = backups.path().join("2999-01-01T00-00-00Z");
    fs::rename(&ahead, &renamed).expect("renamed");
    let [backup, directory] = backups.arguments();
    let removes = |keep: &str, path: &Path| {
        let printed = api.run_beside(&[backup, "--keep", keep, directory]).exits(0).out();
        assert!(printed.starts_with(&format!("removed {}\n", path.display())), "{printed}");
    };
    removes("2", &first);
    let made = backups.whole().remove(0);
    removes("2", &renamed);
    let whole = backups.whole();
    assert_eq!((whole.len(), &whole[0]), (2, &made));
    let sequence = |path: &Path| manifest(path)["sequence"].as_u64().expect("a number");
    assert_eq!(whole.iter().map(|path| sequence(path)).collect::<Vec<_>>(), [3, 4]);
    // The one that was just made stays, though another one has a later name.
    fs::rename(&whole[1], &renamed).expect("renamed");
    fs::remove_dir_all(&whole[0]).expect("removed");
    removes("1", &renamed);
    assert_eq!(backups.whole().len(), 1);
}
