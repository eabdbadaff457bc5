//! The installation id, by which a database and a data directory know that they belong together.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

/// The ids of the database and of the directory, as far as they have one.
pub fn ids(service: &Installation) -> [Option<String>; 2] {
    let of_database = service.database.texts("SELECT id::text FROM installation").pop();
    let of_directory = fs::read_to_string(service.data.join("installation-id")).ok();
    [of_database, of_directory.map(|id| id.trim().to_owned())]
}

/// A stopped service with one old file, and its id.
pub fn service_with_a_file() -> (Installation, String) {
    let (service, ()) = Installation::after(|api| {
        let id = api.new_file(api.sign_up("ann"), "a.txt", "text");
        make_older(&api.data.content(&id), 2);
    });
    let [id, _] = ids(&service);
    (service, id.expect("an id"))
}

#[test]
fn the_first_start_gives_both_sides_the_same_random_id() {
    let ((one, _), (other, _)) = (service_with_a_file(), service_with_a_file());
    let before = ids(&one);
    assert_eq!(before[0], before[1]);
    assert_ne!(before, ids(&other));
    assert_eq!(mode(&one.data.join("installation-id")), 0o600);
    drop(one.serve());
    assert_eq!(ids(&one), before);
}

#[test]
fn a_start_with_equal_ids_waits_for_no_other_process_that_compares() {
    let (service, _) = service_with_a_file();
    let other = service.database.begin("LOCK TABLE installation IN EXCLUSIVE MODE");
    // Otherwise it would wait for the lock, and time out.
    service.serve().readyz().expect(200);
    other.roll_back();
}

#[test]
fn processes_that_start_at_once_agree_on_one_id() {
    let (database, shared) = (Database::create(), Arc::new(Directory::create()));
    let services = [(); 6].map(|()| Installation::on(&database));
    parallel(6, |i| {
        Server::start_with(&database, if i < 3 { &shared } else { &services[i].data }, &[])
    });
    let all = services[3..].iter().map(ids);
    let shared = Installation { database: database.clone(), data: shared };
    let id = ids(&shared);
    assert!(id[0].is_some() && id[0] == id[1], "{id:?}");
    assert!(all.into_iter().all(|other| other == id));
    let is_id_file = |name: &&String| name.starts_with("installation-id");
    assert_eq!(shared.entries().iter().filter(is_id_file).count(), 1, "{:?}", shared.entries());
}

#[test]
fn a_side_that_lacks_an_id_gets_the_others_if_there_are_neither_records_nor_contents() {
    let (service, ()) = Installation::after(|api| drop(api.sign_up("ann")));
    let (database, data) = (service.database.clone(), service.data.clone());
    for other in [Installation::on(&database), Installation { database: Database::create(), data }]
    {
        drop(other.serve());
        assert_eq!(ids(&other), ids(&service));
    }
}
