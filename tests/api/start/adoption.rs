//! A database and a data directory that do not belong together are refused by every command that uses both, until one
//! is adopted.

use std::fs;
use std::process::Output;

use super::installation::{ids, service_with_a_file};
use crate::harness::*;

const SERVE: &[&str] = &["serve"];
const GC: &[&str] = &["gc"];
const CHECK: &[&str] = &["check"];
const DOCTOR: &[&str] = &["doctor"];
const BACKUP: &[&str] = &["backup", "backups"];

/// Expects that each of the commands is refused with all these texts, and changes nothing.
#[track_caller]
fn refuses(service: &Installation, commands: &[&[&str]], texts: &[&str]) {
    let before = ids(service);
    for arguments in commands {
        let output = service.run(arguments, &[]).exits(1);
        let said = output.out() + &output.err();
        let missing = texts.iter().find(|text| !said.contains(**text));
        assert_eq!(missing, None, "{arguments:?}: {said}");
    }
    assert_eq!(ids(service), before);
    assert!(!service.data.join("backups").exists(), "nothing was begun");
}

/// Runs `adopt-data-dir`, and expects that both sides have this id then.
#[track_caller]
fn adopts(service: &Installation, argument: &str, id: &str) -> Output {
    let output = service.run(&["adopt-data-dir", argument], &[]).exits(0).prints(id);
    assert_eq!(ids(service), [Some(id.to_owned()), Some(id.to_owned())]);
    output
}

#[test]
fn an_empty_directory_beside_records_is_refused_as_a_volume_that_is_not_mounted() {
    let (full, id) = service_with_a_file();
    let service = Installation::on(&full.database);
    let texts = [&id, "is none", "not mounted", "`cloakroom adopt-data-dir none`"];
    refuses(&service, &[SERVE, GC, BACKUP], &texts);
    adopts(&service, "none", &id).prints("not mounted");
    drop(service.serve());
}

#[test]
fn an_empty_database_beside_contents_is_refused_as_a_wrong_url() {
    let (full, id) = service_with_a_file();
    let service = Installation { database: Database::create_migrated(), data: full.data };
    let advice = format!("`cloakroom adopt-data-dir {id}`");
    let texts = ["is none", "no records of files", "CLOAKROOM_DATABASE_URL", &advice];
    refuses(&service, &[SERVE, GC, BACKUP], &texts);
    adopts(&service, &id, &id);
    // A database with an id, but without records, is no better.
    fs::remove_file(service.data.join("installation-id")).expect("removed");
    let other = Installation { data: service.data.clone(), ..Installation::after(|_| ()).0 };
    refuses(&other, &[SERVE], &["no records of files"]);
    adopts(&service, "none", &id);
    drop(service.serve());
}

#[test]
fn a_side_that_lacks_an_id_is_refused_where_there_are_records_and_contents() {
    let (service, id) = service_with_a_file();
    fs::remove_file(service.data.join("installation-id")).expect("removed");
    let all = [SERVE, GC, CHECK, DOCTOR, BACKUP];
    refuses(&service, &all, &[&id, "is none", "adopt-data-dir none"]);
    adopts(&service, "none", &id);
    service.database.run("DELETE FROM installation");
    refuses(&service, &all, &["is none", &format!("adopt-data-dir {id}")]);
    adopts(&service, &id, &id);
    drop(service.serve());
}

#[test]
fn the_directory_of_another_database_is_refused_with_both_ids_until_it_is_adopted() {
    let ((one, own), (other, found)) = (service_with_a_file(), service_with_a_file());
    let service = Installation { database: one.database, data: other.data.clone() };
    let before = listing(service.data.path());
    let all = [SERVE, &[], GC, &["gc", "--confirm"], &["check", "--repair"], DOCTOR, BACKUP];
    let advice = format!("cloakroom adopt-data-dir {found}");
    refuses(&service, &all, &["do not belong together", &own, &found, &advice]);
    assert_eq!(listing(service.data.path()).len(), before.len());
    // The id on the command line says which directory is meant.
    for wrong in ["none", &own, UNKNOWN_ID] {
        refuses(&service, &[&["adopt-data-dir", wrong]], &["nothing was changed"]);
    }
    adopts(&service, &found, &own);
    drop(service.serve());
    other.run(SERVE, &[]).exits(1);
}

#[test]
fn a_directory_of_contents_that_is_gone_is_an_error_of_the_start_that_makes_it_anew() {
    let (service, _) = service_with_a_file();
    fs::remove_dir_all(service.data.join("files")).expect("removed");
    let server = service.serve();
    assert!(server.log().contains("/files was gone, and is made anew"), "{}", server.log());
    drop(server);
    let log = service.serve().log();
    assert!(!log.contains("was gone"), "{log}");
}

#[test]
fn a_file_that_holds_no_id_is_refused_and_named() {
    let (service, _) = service_with_a_file();
    fs::write(service.data.join("installation-id"), "nonsense").expect("written");
    let all = [SERVE, GC, DOCTOR, &["adopt-data-dir", "none"]];
    refuses(&service, &all, &["installation-id holds no id"]);
}

#[test]
fn a_wrong_database_is_noticed_before_anything_is_made_in_it() {
    let (full, id) = service_with_a_file();
    let (other, _) = service_with_a_file();
    let admin = ["create-admin", "--email", "root@example.com"];
    let accounts = other.database.count("users");
    for database in [&Database::create(), &other.database] {
        let service = Installation { database: database.clone(), data: full.data.clone() };
        let tables = service.tables();
        for arguments in [SERVE, &["migrate"], &admin, GC] {
            let output = service.run(arguments, &[("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)]);
            let refusal = format!("that of {} is {id}", service.data.path().display());
            output.exits(1).reports("do not belong together").reports(&refusal);
            assert_eq!(service.tables(), tables, "{arguments:?}");
        }
    }
    assert_eq!(other.database.count("users"), accounts);
    // Its own is as good as before, and one beside which nothing can be lost.
    full.run(&["migrate"], &[]).exits(0);
    full.run(&admin, &[("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)]).exits(0);
    let (unused, ()) = Installation::after(|_| ());
    let service = Installation { database: Database::create(), data: unused.data };
    service.run(&["migrate"], &[]).exits(0);
}
