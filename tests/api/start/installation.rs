//! The installation id, by which a database and a data directory know that they belong together.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use crate::harness::*;

fn id_of_database(database: &Database) -> String {
    database.value("SELECT id::text FROM installation")
}

fn id_of_directory(data: &Directory) -> String {
    fs::read_to_string(data.join("installation-id")).expect("an id").trim().to_owned()
}

/// Runs a command to its end, on a database and a directory.
fn run_on(database: &Database, data: &Directory, arguments: &[&str]) -> std::process::Output {
    command(&database.url, data, &[]).args(arguments).output().expect("the binary runs")
}

/// A stopped service with one old file.
fn service_with_a_file(name: &str) -> (Arc<Database>, Arc<Directory>) {
    let api = Server::start(&[]);
    let user = api.sign_up(name);
    let id = api.new_file(&user, "a.txt", name);
    make_older(&api.data.content(&id), 2);
    (api.database.clone(), api.data.clone())
}

#[test]
fn the_first_start_gives_both_sides_the_same_random_id() {
    let (one, other) = (Server::start(&[]), Server::start(&[]));
    assert_eq!(id_of_database(&one.database), id_of_directory(&one.data));
    assert_ne!(id_of_database(&one.database), id_of_database(&other.database));
    let mode = fs::metadata(one.data.join("installation-id")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Server::start_with(&one.database, &one.data, &[]);
    assert_eq!(id_of_directory(&again.data), id_of_database(&one.database));
}

#[test]
fn a_start_with_equal_ids_waits_for_no_other_process_that_compares() {
    let (database, data) = service_with_a_file("ann");
    let other = database.begin("LOCK TABLE installation IN EXCLUSIVE MODE");
    // Otherwise it would wait for the lock, and time out.
    let api = Server::start_with(&database, &data, &[]);
    api.readyz().expect(200);
    other.roll_back();
}

#[test]
fn processes_that_start_at_once_agree_on_one_id() {
    let (database, shared) = (Database::create(), Arc::new(Directory::create()));
    let servers = parallel(6, |i| {
        let own = Arc::new(Directory::create());
        Server::start_with(&database, if i < 3 { &shared } else { &own }, &[])
    });
    let id = id_of_database(&database);
    assert!(servers.iter().all(|api| id_of_directory(&api.data) == id));
    let left: Vec<_> = fs::read_dir(shared.path()).expect("a directory").flatten().collect();
    let is_id_file =
        |entry: &&fs::DirEntry| entry.file_name().to_string_lossy().starts_with("installation-id");
    assert_eq!(left.iter().filter(is_id_file).count(), 1, "{left:?}");
}

#[test]
fn a_side_that_lacks_an_id_gets_the_others_if_there_are_neither_records_nor_contents() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let other = Server::start_on(&api.database, &[]);
    assert_eq!(id_of_directory(&other.data), id_of_database(&api.database));
    let other = Server::start_with(&Database::create(), &api.data, &[]);
    assert_eq!(id_of_database(&other.database), id_of_directory(&api.data));
}

#[test]
fn an_empty_directory_beside_records_is_refused_as_a_volume_that_is_not_mounted() {
    let (database, _data) = service_with_a_file("ann");
    let (id, empty, backups) = (id_of_database(&database), Directory::create(), Backups::create());
    for arguments in [&["serve"][..], &["gc"], &backups.arguments()] {
        let error = run_on(&database, &empty, arguments).exits(1).err();
        for text in [&*id, "is none", "not mounted", "`cloakroom adopt-data-dir none`"] {
            assert!(error.contains(text), "{text}: {error}");
        }
        assert!(!empty.join("installation-id").exists());
    }
    assert!(fs::read_dir(backups.path()).expect("a directory").next().is_none());
    let printed = run_on(&database, &empty, &["adopt-data-dir", "none"]).exits(0).out();
    assert!(printed.contains(&id) && printed.contains("not mounted"), "{printed}");
    assert_eq!(id_of_directory(&empty), id);
    drop(Server::start_with(&database, &Arc::new(empty), &[]));
}

#[test]
fn an_empty_database_beside_contents_is_refused_as_a_wrong_url() {
    let (_database, data) = service_with_a_file("ann");
    let (empty, backups) = (Database::create_migrated(), Backups::create());
    let id = id_of_directory(&data);
    for arguments in [&["serve"][..], &["gc"], &backups.arguments()] {
        let error = run_on(&empty, &data, arguments).exits(1).err();
        let advice = format!("`cloakroom adopt-data-dir {id}`");
        for text in ["is none", "no records of files", "CLOAKROOM_DATABASE_URL", &advice] {
            assert!(error.contains(text), "{text}: {error}");
        }
        assert_eq!(empty.count("installation"), 0);
    }
    run_on(&empty, &data, &["adopt-data-dir", &id]).exits(0);
    assert_eq!(id_of_database(&empty), id);
    // A database with an id, but without records, is no better.
    let other = Server::start(&[]);
    fs::remove_file(data.join("installation-id")).expect("removed");
    let error = run_on(&other.database, &data, &["serve"]).exits(1).err();
    assert!(error.contains("no records of files"), "{error}");
    run_on(&empty, &data, &["adopt-data-dir", "none"]).exits(0);
    drop(Server::start_with(&empty, &data, &[]));
}

#[test]
fn a_side_that_lacks_an_id_is_refused_where_there_are_records_and_contents() {
    let (database, data) = service_with_a_file("ann");
    let id = id_of_database(&database);
    fs::remove_file(data.join("installation-id")).expect("removed");
    for arguments in [["serve"], ["gc"]] {
        let error = run_on(&database, &data, &arguments).exits(1).err();
        assert!(error.contains(&id) && error.contains("adopt-data-dir none"), "{error}");
    }
    run_on(&database, &data, &["adopt-data-dir", "none"]).exits(0);
    assert_eq!(id_of_directory(&data), id);
    database.run("DELETE FROM installation");
    for arguments in [["serve"], ["gc"]] {
        let error = run_on(&database, &data, &arguments).exits(1).err();
        let advice = format!("adopt-data-dir {id}");
        assert!(error.contains("is none") && error.contains(&advice), "{error}");
    }
    run_on(&database, &data, &["adopt-data-dir", &id]).exits(0);
    assert_eq!((id_of_database(&database), id_of_directory(&data)), (id.clone(), id));
    drop(Server::start_with(&database, &data, &[]));
}

#[test]
fn the_directory_of_another_database_is_refused_with_both_ids_until_it_is_adopted() {
    let (one, _data) = service_with_a_file("ann");
    let (other, data) = service_with_a_file("bob");
    let (own, found) = (id_of_database(&one), id_of_database(&other));
    let before = data.contents();
    for arguments in [&["serve"][..], &[], &["gc"], &["gc", "--confirm"]] {
        let error = run_on(&one, &data, arguments).exits(1).err();
        assert!(error.contains(&own) && error.contains(&found), "{error}");
        assert!(error.contains(&format!("cloakroom adopt-data-dir {found}")), "{error}");
    }
    assert_eq!((data.contents(), data.trash().len()), (before, 0));
    // The id on the command line says which directory is meant.
    for wrong in ["none", &own, UNKNOWN_ID] {
        let error = run_on(&one, &data, &["adopt-data-dir", wrong]).exits(1).err();
        assert!(error.contains("nothing was changed"), "{error}");
    }
    run_on(&one, &data, &["adopt-data-dir"]).exits(2);
    run_on(&one, &data, &["adopt-data-dir", "nonsense"]).exits(2);
    assert_eq!(id_of_directory(&data), found);
    let printed = run_on(&one, &data, &["adopt-data-dir", &found]).exits(0).out();
    assert!(printed.contains(&own), "{printed}");
    assert_eq!((id_of_directory(&data), id_of_database(&one)), (own.clone(), own));
    drop(Server::start_with(&one, &data, &[]));
    run_on(&other, &data, &["serve"]).exits(1);
}

#[test]
fn a_file_that_holds_no_id_is_refused_and_named() {
    let (database, data) = service_with_a_file("ann");
    fs::write(data.join("installation-id"), "nonsense").expect("written");
    for arguments in [&["serve"][..], &["gc"], &["adopt-data-dir", "none"]] {
        let error = run_on(&database, &data, arguments).exits(1).err();
        assert!(error.contains("installation-id holds no id"), "{error}");
    }
}
