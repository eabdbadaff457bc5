//! No change can be written, or no content stored. Reads go on, and the service says so, but not with each request.

use std::fs;

use serde_json::json;

use crate::harness::*;

/// The lines of the log that have this text.
fn lines_with(api: &Server, text: &str) -> Vec<String> {
    api.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

#[test]
fn a_database_that_takes_no_changes_is_degraded_and_a_flood_of_them_is_two_lines() {
    let cluster = Cluster::start("read-only");
    let api = cluster.serve(&[]);
    let ann = api.sign_up("ann");
    let set_read_only = |value: &str| {
        api.database.run(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        api.database.run("SELECT pg_reload_conf()");
    };
    api.readyz().expect(200).has(json!({"status": "ok"}));
    assert_eq!(api.metric("cloakroom_database_writable"), Some(1.0));
    set_read_only("on");
    let degraded = json!({"status": "degraded", "reasons": ["DATABASE_REFUSES_CHANGES"]});
    wait_until(|| api.readyz().expect(200).json() == degraded);
    assert_eq!(api.metric("cloakroom_database_writable"), Some(0.0));
    for _ in 0..50 {
        api.update_me(&ann, json!({"name": "Ann"})).refused(503, "Service temporarily unavailable");
    }
    api.profile(&ann).expect(200);
    // There are more only if this took more than ten seconds.
    assert!(lines_with(&api, "no connection to the database").len() <= 3, "{}", api.log());
    assert!(lines_with(&api, "is back after").len() <= 3, "{}", api.log());
    set_read_only("off");
    wait_until(|| api.readyz().expect(200).json() == json!({"status": "ok"}));
    api.update_me(&ann, json!({"name": "Ann"})).expect(200);
}

#[test]
fn a_database_without_disk_space_is_degraded_and_a_flood_of_refusals_is_one_line() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    api.database.run(
        "CREATE SEQUENCE blocks;
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no space for block %', nextval('blocks') USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER fail BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    for _ in 0..50 {
        api.update_me(&ann, json!({"name": "Ann"})).refused(503, "Service temporarily unavailable");
    }
    wait_until(|| api.readyz().expect(200).json()["status"] == "degraded");
    assert!(lines_with(&api, "no space for block").len() <= 2, "{}", api.log());
    api.profile(&ann).expect(200);
}

#[test]
fn a_data_directory_that_takes_no_files_is_degraded() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    api.readyz().expect(200).has(json!({"status": "ok"}));
    assert_eq!(api.metric("cloakroom_data_directory_writable"), Some(1.0));
    let (drafts, away) = (api.data.join("tmp"), api.data.join("away"));
    fs::rename(&drafts, &away).expect("renamed");
    let degraded = json!({"status": "degraded", "reasons": ["DATA_DIRECTORY_REFUSES_CONTENTS"]});
    wait_until(|| api.readyz().expect(200).json() == degraded);
    assert_eq!(api.metric("cloakroom_data_directory_writable"), Some(0.0));
    api.profile(&ann).expect(200);
    fs::rename(&away, &drafts).expect("renamed back");
    wait_until(|| api.readyz().expect(200).json() == json!({"status": "ok"}));
    api.new_file(&ann, "a.txt", "x");
}
