//! `cloakroom check`: what is damaged is named, and what is whole is left as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

use serde_json::json;

use crate::harness::*;

/// A stopped service.
struct Stopped {
    database: Arc<Database>,
    data: Arc<Directory>,
}

impl Stopped {
    /// Lets `prepare` use a service, and stops it.
    fn after<T>(prepare: impl FnOnce(&Server) -> T) -> (Stopped, T) {
        let api = Server::start(&[]);
        let prepared = prepare(&api);
        (Stopped { database: api.database.clone(), data: api.data.clone() }, prepared)
    }

    fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        let mut command = command(&self.database.url, &self.data, settings);
        command.args(arguments).output().expect("the binary runs")
    }

    fn check(&self, arguments: &[&str]) -> Output {
        self.run(&[&["check"], arguments].concat(), &[])
    }

    /// Runs the check, which must find no fault, and returns its warnings.
    #[track_caller]
    fn warnings(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.check(arguments).exits(0);
        assert_eq!(lines(&output, "fault"), [""; 0]);
        assert_eq!(output.err(), "");
        lines(&output, "warning")
    }

    /// Runs the check, which must find faults, and returns them.
    #[track_caller]
    fn faults(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.check(arguments).exits(1);
        assert!(output.err().starts_with("cloakroom: "), "{}", output.err());
        lines(&output, "fault")
    }
}

/// The lines of an output that begin with this word, without it.
fn lines(output: &Output, word: &str) -> Vec<String> {
    let prefix = format!("{word:<8}");
    output.out().lines().filter_map(|line| Some(line.strip_prefix(&prefix)?.to_owned())).collect()
}

/// Fails unless exactly one of the lines contains all these texts.
#[track_caller]
fn one_names(lines: &[String], texts: &[&str]) {
    let count = lines.iter().filter(|line| texts.iter().all(|text| line.contains(text))).count();
    assert_eq!(count, 1, "{texts:?} in {lines:#?}");
}

/// Every file and directory with the time of its last change and its size. The time of a directory shows that a file
/// was made there and removed again.
fn listing(directory: &Path) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs::metadata(&path).expect("an entry");
        if metadata.is_dir() {
            open.extend(
                fs::read_dir(&path).expect("a directory").map(|entry| entry.unwrap().path()),
            );
        }
        found.insert(path, (metadata.modified().expect("a time"), metadata.len()));
    }
    found
}

/// Moves a content to the trash, as the sweep of another day, and returns its path there.
fn discard(data: &Directory, id: &str) -> PathBuf {
    let day = data.join("trash/2026-01-02");
    fs::create_dir_all(&day).expect("a directory");
    let place = day.join(id);
    fs::rename(data.content(id), &place).expect("moved");
    place
}

#[test]
fn a_whole_installation_has_no_faults_and_is_left_as_it_is() {
    let (service, _) = Stopped::after(|api| {
        let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
        for n in 0..5 {
            api.new_file(&ann, "a.txt", &format!("{n}"));
        }
        let file = api.new_file(&bob, "b.txt", "two");
        make_older(&api.data.content(&file), 50);
        make_older(&api.data.content(&api.new_file(&bob, "empty.txt", "")), 1);
        let root = api.sign_up_admin("root");
        let cleo = api.sign_up("cleo");
        api.new_file(&cleo, "c.txt", "three");
        api.delete_user(&root, cleo.id()).expect(204);
        wait_until(|| api.database.count("pending_removals") == 0);
    });
    let before = listing(service.data.path());
    // The database refuses every change.
    let url = format!("{}?options=-c%20default_transaction_read_only%3Don", service.database.url);
    for arguments in [&["check"][..], &["check", "--repair"], &["check", "--sample", "5%"]] {
        let output = service.run(arguments, &[("CLOAKROOM_DATABASE_URL", &url)]).exits(0);
        assert_eq!((lines(&output, "warning").len(), output.err()), (0, String::new()));
        let ok = lines(&output, "ok");
        assert_eq!(ok.len(), 5, "{ok:?}");
        one_names(&ok, &["records: 7 files", "; 0 damaged"]);
        one_names(&ok, &["contents: 2 over an hour old", "; 0 without a record"]);
        one_names(&ok, &["totals: ", " bytes; 4 accounts"]);
        assert!(output.out().ends_with("\nno faults, no warnings.\n"), "{}", output.out());
    }
    let output = service.check(&[]).exits(0);
    one_names(&lines(&output, "ok"), &["7 files", "7 of them by hash"]);
    assert_eq!(listing(service.data.path()), before);
}

#[test]
fn damaged_contents_are_named_with_their_files_and_owners() {
    let (service, ids) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        // This owner has no username.
        let bob = json!({"email": "bob@example.com", "password": PASSWORD});
        let bob = api.register_with(bob).expect(201).tokens();
        let mut ids: Vec<_> = ["one", "two", "three", "four", "five"]
            .map(|text| api.new_file(&ann, "a.txt", text))
            .into();
        let quoted = api.new_file(&bob, "b.txt", "six");
        api.update_file(&bob, &quoted, json!({"filename": "le \"b\".txt"})).expect(200);
        ids.extend([quoted, bob.id().to_owned()]);
        ids
    });
    let [changed, truncated, longer, missing, whole, quoted, bob] = &ids[..] else {
        panic!("{ids:?}")
    };
    let path = |id: &str| service.data.content(id);
    fs::write(path(changed), "onf").expect("changed");
    fs::write(path(truncated), "tw").expect("truncated");
    fs::write(path(longer), "three!").expect("made longer");
    fs::remove_file(path(missing)).expect("removed");
    fs::remove_file(path(quoted)).expect("removed");
    fs::create_dir(path(quoted)).expect("a directory");
    let before = listing(service.data.path());
    for arguments in [&[][..], &["--repair"]] {
        let faults = service.faults(arguments);
        let name = |id: &str| format!("files/{id} (\"a.txt\", owner ann) ");
        one_names(&faults, &[&name(changed), "another SHA-256"]);
        one_names(&faults, &[&name(truncated), "has 2 bytes, not 3"]);
        one_names(&faults, &[&name(longer), "has 6 bytes, not 5"]);
        one_names(&faults, &[&name(missing), "is missing"]);
        one_names(
            &faults,
            &[&format!("files/{quoted} (\"le \\\"b\\\".txt\", owner {bob}) "), "is not a file"],
        );
        one_names(&faults, &["records: 6 files", "; 5 damaged"]);
        assert_eq!(faults.len(), 6, "{faults:#?}");
        assert!(!faults.concat().contains(whole) && !faults.concat().contains("example.com"));
    }
    assert_eq!(listing(service.data.path()), before);
    let output = service.check(&[]);
    assert!(output.out().ends_with("\n5 faults, no warnings.\n"), "{}", output.out());
}

#[test]
fn contents_that_cannot_be_read_are_faults_and_the_check_goes_on() {
    let (service, ids) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        [api.new_file(&ann, "a.txt", "one"), api.new_file(&ann, "b.txt", "two")]
    });
    // A symbolic link to itself cannot be read by anybody, not even by root.
    fs::remove_file(service.data.content(&ids[0])).expect("removed");
    let path = service.data.content(&ids[0]);
    std::os::unix::fs::symlink(&path, &path).expect("a link");
    fs::write(service.data.content(&ids[1]), "tww").expect("changed");
    let faults = service.faults(&[]);
    one_names(&faults, &[&ids[0], "cannot be read"]);
    one_names(&faults, &[&ids[1], "another SHA-256"]);
}

#[test]
fn missing_contents_are_brought_back_from_the_trash_only_where_asked_and_if_whole() {
    let (service, ids) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        ["one", "two", "three", "four"].map(|text| api.new_file(&ann, "a.txt", text))
    });
    let [whole, changed, twice, damaged] = &ids;
    let (data, content) = (&service.data, |id: &str| service.data.content(id));
    let place = discard(data, whole);
    fs::write(discard(data, changed), "twx").expect("changed");
    // Of two, the later one is not what was uploaded.
    let earlier = discard(data, twice);
    let later = data.join("trash/2026-01-03");
    fs::create_dir(&later).expect("a directory");
    fs::write(later.join(twice), "").expect("a file");
    // What is there stays, whatever the trash has.
    fs::copy(content(damaged), discard(data, damaged).with_file_name("copy"))
        .expect_err("it is gone");
    fs::write(content(damaged), "fouR").expect("changed");
    let before = listing(data.path());
    let faults = service.faults(&[]);
    let advice = "`cloakroom check --repair` brings it back";
    one_names(&faults, &[whole, "is missing; it is ", &place.display().to_string(), advice]);
    one_names(&faults, &[twice, "is missing; it is ", &earlier.display().to_string(), advice]);
    one_names(&faults, &[changed, "is missing; ", "is not what was uploaded"]);
    one_names(&faults, &[damaged, "another SHA-256"]);
    assert_eq!(listing(data.path()), before);

    let output = service.check(&["--repair"]).exits(1);
    let warnings = lines(&output, "warning");
    one_names(&warnings, &[whole, "has been brought back from", &place.display().to_string()]);
    one_names(&warnings, &[twice, "has been brought back from", &earlier.display().to_string()]);
    let faults = lines(&output, "fault");
    one_names(&faults, &[changed, "is missing; "]);
    one_names(&faults, &[damaged, "another SHA-256"]);
    assert_eq!(fs::read_to_string(content(whole)).expect("a content"), "one");
    assert_eq!(fs::read_to_string(content(twice)).expect("a content"), "three");
    assert_eq!(fs::read_to_string(content(damaged)).expect("a content"), "fouR");
    assert!(!content(changed).exists() && !place.exists() && !earlier.exists());
    assert!(later.join(twice).exists());
    // A second run finds nothing more to do, and the sweep leaves what was brought back where it is.
    for id in [whole, twice] {
        make_older(&content(id), 5);
    }
    assert_eq!(service.check(&["--repair"]).exits(1).out().matches("brought back").count(), 0);
    service.run(&["gc"], &[]).exits(1);
    assert!(content(whole).exists() && content(twice).exists());
}

#[test]
fn a_repair_that_brings_everything_back_ends_with_status_0() {
    let (service, ids) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        ["one", "two", "three"].map(|text| api.new_file(&ann, "a.txt", text))
    });
    // As after restoring a newer dump: the sweep has moved contents that have a record again.
    ids.iter().for_each(|id| drop(discard(&service.data, id)));
    assert_eq!(service.faults(&[]).len(), 4);
    let warnings = service.warnings(&["--repair"]);
    ids.iter().for_each(|id| one_names(&warnings, &[id, "has been brought back"]));
    assert!(service.warnings(&["--repair"]).is_empty());
    assert_eq!(service.data.trash().len(), 0);
    let api = Server::start_with(&service.database, &service.data, &[]);
    assert_eq!(api.download(api.sign_in("ann"), &ids[2]).expect(200).text(), "three");
}

#[test]
fn contents_without_a_record_are_faults_unless_the_sweep_is_to_come() {
    let (service, deleted) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        let file = api.new_file(&ann, "a.txt", "one");
        let content = api.data.content(&file);
        let kept = api.data.join("kept");
        fs::hard_link(&content, &kept).expect("a link");
        api.delete_file(&ann, &file).expect(204);
        // As a deletion leaves it that could not remove the content.
        fs::rename(kept, content).expect("moved");
        file
    });
    let place = |name: &str, hours| {
        let path = service.data.join("files").join(name);
        fs::write(&path, "x").expect("a file");
        make_older(&path, hours);
    };
    let [young, swept, old] =
        ["1", "2", "3"].map(|n| format!("{n}0000000-1111-4111-8111-111111111111"));
    place(&young, 0);
    place(&swept, 1);
    make_older(&service.data.content(&deleted), 100);
    place("note.txt", 1);
    place("young.txt", 0);
    let sweep = "the next sweep moves it to the trash";
    let warnings = service.warnings(&[]);
    one_names(&warnings, &[&format!("files/{swept} has no record: {sweep}")]);
    one_names(&warnings, &[&format!("files/{deleted} is of a deleted file: {sweep}")]);
    one_names(&warnings, &["\"note.txt\" is no content of this program"]);
    one_names(&warnings, &["contents: 2 over an hour old looked up; 2 without a record"]);
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    place(&old, 3);
    let faults = service.faults(&[]);
    one_names(&faults, &[&format!("files/{old} has no record")]);
    one_names(&faults, &["contents: 3 over an hour old looked up; 3 without a record"]);
    assert_eq!(faults.len(), 2, "{faults:#?}");
    // What the sweep does makes all of it well but what is not the program's.
    service.run(&["gc"], &[]).exits(0);
    assert_eq!(service.warnings(&[]).len(), 2);
}

#[test]
fn wrong_totals_are_faults() {
    let (service, ann) = Stopped::after(|api| {
        let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
        api.new_file(&ann, "a.txt", "12345");
        api.new_file(&bob, "b.txt", "123");
        ann.id().to_owned()
    });
    // A deletion without the triggers, as by a restore that disables them.
    service.database.run(&format!(
        "SET session_replication_role = replica;
         INSERT INTO files SELECT gen_random_uuid(), user_id, filename, original_filename, content_type, 7, 'f', 'h'
         FROM files WHERE user_id = '{ann}'"
    ));
    let faults = service.faults(&[]);
    one_names(&faults, &["the total of the service is 8 bytes, its files have 15"]);
    one_names(&faults, &["the totals of user ann are 1 files of 5 bytes, the records are 2 of 12"]);
    assert!(!faults.concat().contains("user bob"), "{faults:?}");
    service.database.run("DELETE FROM storage");
    one_names(&service.faults(&[]), &["the table storage has no row"]);
}

#[test]
fn quotas_that_are_exceeded_are_warnings() {
    let (service, ()) = Stopped::after(|api| {
        let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
        api.new_file(&ann, "a.txt", "12345");
        api.new_file(&bob, "b.txt", "1");
        api.new_file(&bob, "c.txt", "2");
    });
    let within = [
        ("CLOAKROOM_STORAGE_QUOTA", "7"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "5"),
        ("CLOAKROOM_USER_FILE_QUOTA", "2"),
    ];
    let output = service.run(&["check"], &within).exits(0);
    assert_eq!(lines(&output, "warning").len(), 0);
    let above = [
        ("CLOAKROOM_STORAGE_QUOTA", "6"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "4"),
        ("CLOAKROOM_USER_FILE_QUOTA", "1"),
    ];
    let warnings = lines(&service.run(&["check"], &above).exits(0), "warning");
    one_names(&warnings, &["all files have 7 bytes, more than CLOAKROOM_STORAGE_QUOTA=6"]);
    one_names(&warnings, &["user ann stores 5 bytes, more than CLOAKROOM_USER_STORAGE_QUOTA=4"]);
    one_names(&warnings, &["user bob has 2 files, more than CLOAKROOM_USER_FILE_QUOTA=1"]);
    one_names(&warnings, &["totals: "]);
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
}

#[test]
fn parts_of_the_schema_without_effect_are_faults() {
    let (service, ()) = Stopped::after(|api| drop(api.sign_up("ann")));
    service.database.run(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'users_email_key'::regclass;
         ALTER TABLE files DISABLE TRIGGER files_added;
         ALTER TABLE files ADD CONSTRAINT files_of_today CHECK (upload_date > '2020-01-01') NOT VALID",
    );
    let faults = service.faults(&[]);
    one_names(&faults, &["index users_email_key of table users is not valid"]);
    one_names(&faults, &["trigger files_added of table files is disabled"]);
    one_names(&faults, &["constraint files_of_today of table files was never validated"]);
    assert_eq!(faults.len(), 4, "{faults:#?}");
    // The advice that each line has.
    service.database.run(
        "REINDEX INDEX users_email_key;
         ALTER TABLE files ENABLE TRIGGER files_added;
         ALTER TABLE files VALIDATE CONSTRAINT files_of_today",
    );
    assert!(service.warnings(&[]).is_empty());
}

#[test]
fn damaged_indexes_are_named_where_amcheck_is_installed() {
    let (service, ()) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        (0..3).for_each(|n| drop(api.new_file(&ann, "a.txt", &format!("{n}"))));
    });
    let hint = "CREATE EXTENSION IF NOT EXISTS amcheck; GRANT EXECUTE";
    one_names(&lines(&service.check(&[]).exits(0), "ok"), &["amcheck: ", hint]);
    service.database.run("CREATE EXTENSION amcheck");
    let btrees: i64 = service.database.count(
        "pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = c.relam
         WHERE amname = 'btree' AND relnamespace = 'public'::regnamespace",
    );
    let output = service.check(&[]).exits(0);
    one_names(&lines(&output, "ok"), &[&format!("amcheck: {btrees} indexes verified")]);
    // The index keeps what the function returned once, as after an upgrade of the system that changed a sort order.
    service.database.run(
        "CREATE FUNCTION sort_key(uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
         CREATE INDEX files_sort_key ON files (sort_key(id));
         CREATE OR REPLACE FUNCTION sort_key(uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT md5($1::text) $$",
    );
    let faults = service.faults(&[]);
    one_names(&faults, &["index files_sort_key is damaged", "lacks matching index tuple"]);
    one_names(&faults, &[&format!("amcheck: {} indexes verified", btrees + 1)]);
    assert_eq!(faults.len(), 2, "{faults:#?}");
}

#[test]
fn an_index_with_a_damaged_page_is_named() {
    let cluster = Cluster::start("check");
    let database = Database::create_on(&cluster.url);
    let data = Arc::new(Directory::create());
    {
        let api = Server::start_with(&database, &data, &[]);
        api.new_file(api.sign_up("ann"), "a.txt", "one");
    }
    database.run("CREATE EXTENSION amcheck; CHECKPOINT");
    let service = Stopped { database: database.clone(), data };
    assert!(service.warnings(&[]).is_empty());
    let path: String = database.value(
        "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('users_email_key')",
    );
    cluster.stop();
    // The first page says where the root is, so a wrong one is noticed however few entries there are.
    let mut pages = fs::read(&path).expect("an index");
    pages[24..40].fill(0xff);
    fs::write(&path, pages).expect("a damaged index");
    cluster.start_again();
    let faults = service.faults(&[]);
    one_names(&faults, &["index users_email_key is damaged"]);
}

#[test]
fn amcheck_is_used_only_where_the_role_may() {
    let (service, ()) = Stopped::after(|api| drop(api.sign_up("ann")));
    let role = format!("cloakroom_check_{}", std::process::id());
    service.database.run(&format!(
        "CREATE EXTENSION amcheck;
         CREATE ROLE {role} LOGIN PASSWORD 'plain';
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    ));
    let (_, address) = service.database.url.split_once('@').expect("an address");
    let url = format!("postgres://{role}:plain@{address}");
    let check = || service.run(&["check"], &[("CLOAKROOM_DATABASE_URL", &url)]);
    let grant = "GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean) TO";
    let (before, after) = (check(), {
        service.database.run(&format!("{grant} {role}"));
        check()
    });
    service.database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    one_names(&lines(&before.exits(0), "ok"), &["not verified", &format!("{grant} {role}")]);
    one_names(&lines(&after.exits(0), "ok"), &["indexes verified"]);
}

#[test]
fn a_sample_reads_a_part_of_the_contents_and_compares_the_sizes_of_all() {
    let (service, ()) = Stopped::after(|api| {
        let ann = api.sign_up("ann");
        api.database.insert_files(ann.id(), &[1; 400]);
        for row in api.database.client().query("SELECT id::text FROM files", &[]).expect("rows") {
            fs::write(api.data.content(row.get(0)), "x").expect("a content");
        }
        api.new_file(&ann, "a.txt", "one");
    });
    let size = service.data.content(
        &service.database.value::<String>("SELECT id::text FROM files WHERE file_size = 3"),
    );
    fs::write(size, "on").expect("truncated");
    // Their records have a hash that no content has, so every one that is read is a fault.
    let damaged = |arguments: &[&str]| {
        let faults = service.faults(arguments);
        one_names(&faults, &["has 2 bytes, not 3"]);
        let hashes = faults.iter().filter(|line| line.contains("another SHA-256")).count();
        assert_eq!(faults.len(), hashes + 2);
        hashes
    };
    assert_eq!(damaged(&[]), 400);
    assert_eq!(damaged(&["--sample", "100"]), 400);
    // A fair choice is outside these bounds less than once in a billion runs.
    for (sample, bounds) in [("50%", 130..270), ("5%", 0..60), ("0.001", 0..4)] {
        let hashes = damaged(&["--sample", sample]);
        assert!(bounds.contains(&hashes), "{hashes} for {sample}");
    }
    // Another one in each run.
    let sample = || service.faults(&["--sample=50%"]);
    assert_ne!(sample(), sample());
    for wrong in ["0", "101%", "-5", "half", ""] {
        service.check(&["--sample", wrong]).exits(2);
    }
}

#[test]
fn nothing_is_compared_with_a_wrong_database_or_directory() {
    let (service, _) = Stopped::after(|api| api.new_file(api.sign_up("ann"), "a.txt", "one"));
    let (other, _) = Stopped::after(|api| api.new_file(api.sign_up("bob"), "b.txt", "two"));
    let wrong = Stopped { database: service.database.clone(), data: other.data.clone() };
    let before = listing(other.data.path());
    let refuses = |service: &Stopped, arguments: &[&str], texts: &[&str]| {
        let output = service.check(arguments).exits(1);
        one_names(&lines(&output, "fault"), texts);
        assert_eq!(output.out().lines().count(), 2, "{}", output.out());
    };
    let ids = [&service, &other]
        .map(|service| service.database.value::<String>("SELECT id::text FROM installation"));
    refuses(&wrong, &["--repair"], &["do not belong together", &ids[0], &ids[1]]);
    // A side without an id gets none.
    fs::rename(other.data.join("installation-id"), other.data.join("kept")).expect("renamed");
    refuses(&other, &[], &["is none", "adopt-data-dir none"]);
    assert!(!other.data.join("installation-id").exists());
    fs::rename(other.data.join("kept"), other.data.join("installation-id")).expect("renamed");
    other.database.run("DELETE FROM installation");
    refuses(&other, &[], &["is none"]);
    assert_eq!(other.database.count("installation"), 0);
    assert_eq!(before.len(), listing(other.data.path()).len());
    // A directory that is not there is not made, nor is what it should have.
    let empty = Stopped { database: service.database.clone(), data: Arc::new(Directory::create()) };
    refuses(&empty, &[], &["CLOAKROOM_DATA_DIR=", "/files: No such file"]);
    assert_eq!(listing(empty.data.path()).len(), 1);
    let missing = empty.data.join("missing");
    let settings = [("CLOAKROOM_DATA_DIR", missing.to_str().expect("a path"))];
    let output = empty.run(&["check"], &settings).exits(1);
    one_names(&lines(&output, "fault"), &["missing: No such file"]);
    assert!(!missing.exists());
}

#[test]
fn another_schema_is_a_fault_and_stays_as_it_is() {
    let (service, ()) = Stopped::after(|api| drop(api.sign_up("ann")));
    let newest: i32 = service.database.value("SELECT max(version) FROM refinery_schema_history");
    let older = Database::create();
    older.migrate_to(newest - 1);
    let faults_on = |database: &Arc<Database>| {
        let service = Stopped { database: database.clone(), data: service.data.clone() };
        service.faults(&[])
    };
    let versions = format!("schema version {}, this program has version {newest}", newest - 1);
    one_names(&faults_on(&older), &[&versions, "cloakroom migrate"]);
    assert_eq!(older.count("refinery_schema_history"), i64::from(newest) - 1);
    let empty = Database::create();
    one_names(&faults_on(&empty), &["schema version 0", "cloakroom migrate"]);
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0);
    service.database.run(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         SELECT 999, 'later', applied_on, checksum FROM refinery_schema_history LIMIT 1",
    );
    one_names(&faults_on(&service.database), &["999", &format!("up to {newest}")]);
}

#[test]
fn a_database_that_cannot_be_reached_is_a_fault() {
    let data = Directory::create();
    fs::create_dir(data.join("files")).expect("a directory");
    let url = "postgres://nobody:secret@127.0.0.1:1/none";
    let output = command(url, &data, &[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")])
        .arg("check")
        .output()
        .expect("the binary runs")
        .exits(1);
    one_names(&lines(&output, "fault"), &["the database cannot be reached"]);
    assert!(!output.err().contains("secret"));
}

#[test]
fn beside_a_running_service_there_are_no_false_alarms() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stops = SetOnDrop(&stop);
        for n in 0..4 {
            let (api, stop, root) = (&api, &stop, &root);
            scope.spawn(move || {
                for round in 0.. {
                    let ann = api.sign_up(&format!("ann{n}x{round}"));
                    for file in 0..10 {
                        let id = api.new_file(&ann, "a.txt", &format!("{n} {round} {file}"));
                        // Old enough for its record to be looked up, and for a sweep.
                        make_older(&api.data.content(&id), 5);
                        if file % 3 == 0 {
                            api.delete_file(&ann, &id).expect(204);
                        }
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                    if round % 2 == 0 {
                        api.delete_user(root, ann.id()).expect(204);
                    }
                }
            });
        }
        wait_until(|| api.database.count("files") > 20);
        let mut deletions = 0;
        // Until there were many deletions while it ran, at least ten times.
        for run in 0.. {
            let before: i64 = api.database.count("audit_events WHERE action = 'file.delete'");
            let output = api.run_beside(&["check", "--repair"]).exits(0);
            assert_eq!(lines(&output, "fault"), [""; 0]);
            assert!(!output.out().contains("brought back"), "{}", output.out());
            deletions += api.database.count("audit_events WHERE action = 'file.delete'") - before;
            if run >= 10 && deletions > 50 {
                break;
            }
        }
    });
}

#[test]
fn ten_thousand_files_and_users_are_compared_in_batches() {
    let (service, ()) = Stopped::after(|api| {
        api.database.run(
            "INSERT INTO users (id, username, email, password_hash)
             SELECT gen_random_uuid(), 'user' || n, 'user' || n || '@example.com', 'x' FROM generate_series(1, 10000) n;
             INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT f.id, u.id, 'f', 'f', 'text/plain', 36, 'files/' || f.id,
                    encode(sha256(convert_to(f.id::text, 'UTF8')), 'hex')
             FROM (SELECT id FROM users) u CROSS JOIN LATERAL (SELECT gen_random_uuid() AS id, u.id AS owner) f",
        );
        for row in api.database.client().query("SELECT id::text FROM files", &[]).expect("rows") {
            let id: String = row.get(0);
            fs::write(api.data.content(&id), &id).expect("a content");
            make_older(&api.data.content(&id), 5);
        }
    });
    let output = service.check(&[]).exits(0);
    let ok = lines(&output, "ok");
    one_names(&ok, &["records: 10000 files", "10000 of them by hash; 0 damaged"]);
    one_names(&ok, &["contents: 10000 over an hour old looked up; 0 without a record"]);
    one_names(&ok, &["totals: 360000 bytes; 10000 accounts"]);
    // Faults in several batches.
    let ids: Vec<String> = service
        .database
        .client()
        .query("SELECT id::text FROM files ORDER BY id", &[])
        .expect("rows")
        .iter()
        .map(|row| row.get(0))
        .collect();
    for id in ids.iter().step_by(4) {
        fs::remove_file(service.data.content(id)).expect("removed");
    }
    service.database.run(
        "SET session_replication_role = replica;
         DELETE FROM files WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM files) f
                                        WHERE n % 4 = 2)",
    );
    let faults = service.faults(&[]);
    for (n, id) in ids.iter().enumerate().filter(|(n, _)| n % 4 < 2) {
        let text = if n % 4 == 0 { "is missing" } else { "has no record" };
        one_names(&faults[..], &[id, text]);
    }
    assert_eq!(faults.iter().filter(|line| line.starts_with("the totals of user")).count(), 2500);
}
