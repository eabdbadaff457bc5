//! No change can be written, or no content stored. Reads go on, and the service says so, but not with each request.

use std::fs;

use crate::harness::*;

/// The lines of the log that have this text.
fn lines_with(api: &Server, text: &str) -> Vec<String> {
    api.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Expects a service to be degraded for this reason, with this metric, from `set(true)` to `set(false)`, and calls
/// `meanwhile` between them.
fn expect_degraded(
    api: &Server,
    reason: &str,
    metric: &str,
    set: impl Fn(bool),
    meanwhile: impl FnOnce(),
) {
    let ok = json!({"status": "ok"});
    api.readyz().expect(200).has(ok.clone());
    assert_eq!(api.metric(metric), Some(1.0));
    set(true);
    let degraded = json!({"status": "degraded", "reasons": [reason]});
    wait_until(|| api.readyz().expect(200).json() == degraded);
    assert_eq!(api.metric(metric), Some(0.0));
    meanwhile();
    set(false);
    wait_until(|| api.readyz().expect(200).json() == ok);
}

#[test]
fn a_database_that_takes_no_changes_is_degraded_and_a_flood_of_them_is_two_lines() {
    let cluster = Cluster::start("read-only");
    let api = cluster.serve(&[]);
    let ann = api.sign_up("ann");
    let change = || api.update_me(&ann, json!({"name": "Ann"}));
    let set = |is_on: bool| {
        api.database.run(&format!("ALTER SYSTEM SET default_transaction_read_only = {is_on}"));
        api.database.run("SELECT pg_reload_conf()");
    };
    expect_degraded(&api, "DATABASE_REFUSES_CHANGES", "cloakroom_database_writable", set, || {
        for _ in 0..50 {
            change().refused(503, "Service temporarily unavailable");
        }
        api.profile(&ann).expect(200);
        // There are more only if this took more than ten seconds.
        assert!(lines_with(&api, "no connection to the database").len() <= 3, "{}", api.log());
        assert!(lines_with(&api, "is back after").len() <= 3, "{}", api.log());
    });
    change().expect(200);
}

#[test]
fn a_database_without_disk_space_is_degraded_and_a_flood_of_refusals_is_one_line() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
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
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (drafts, away) = (api.data.join("tmp"), api.data.join("away"));
    let set = |is_away: bool| match is_away {
        true => fs::rename(&drafts, &away).expect("renamed"),
        false => fs::rename(&away, &drafts).expect("renamed back"),
    };
    let reason = "DATA_DIRECTORY_REFUSES_CONTENTS";
    expect_degraded(&api, reason, "cloakroom_data_directory_writable", set, || {
        api.profile(&ann).expect(200);
    });
    api.new_file(&ann, "a.txt", "x");
}
