//! No change can be written, or no content stored. Reads go on, and the service says so, but not with each request.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

/// Switches whether all transactions of a cluster are read-only, also those of open sessions unless these have a
/// setting of their own.
fn set_read_only(database: &Database, is_on: bool) {
    database.run(&format!("ALTER SYSTEM SET default_transaction_read_only = {is_on}"));
    database.run("SELECT pg_reload_conf()");
}

/// The sessions of the service in the database, each by its process and when that began.
fn sessions(database: &Database) -> Vec<String> {
    database.texts(
        "SELECT pid || ' ' || backend_start FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'cloakroom' ORDER BY 1",
    )
}

/// Starts a service on a database of the cluster, whose server its settings name twice, as two hosts.
fn serve_with_two_hosts(cluster: &Cluster) -> Server {
    let database = Database::create_on(&cluster.url);
    let (credentials, rest) = database.url.rsplit_once('@').expect("a URL with a user");
    let (host, name) = rest.split_once('/').expect("a URL with a database");
    let url = format!("{credentials}@{host},{host}/{name}?target_session_attrs=read-write");
    let data = Arc::new(Directory::create());
    Server::spawn(command(&url, &data, &[]), &database, &data)
}

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
    let set = |is_on| set_read_only(&api.database, is_on);
    expect_degraded(&api, "DATABASE_REFUSES_CHANGES", "cloakroom_database_writable", set, || {
        for _ in 0..50 {
            change().refused(503, "Service temporarily unavailable");
        }
        api.profile(&ann).expect(200);
        assert!(lines_with(&api, "no connection to the database").is_empty(), "{}", api.log());
        // There are more only if this took more than ten seconds.
        let lines = lines_with(&api, "in a read-only transaction (25006)");
        assert!(lines.len() <= 3, "{lines:#?}");
        let lines = lines_with(&api, "background task failed");
        assert!(lines.is_empty(), "{lines:#?}");
    });
    change().expect(200);
}

#[test]
fn a_read_only_database_serves_whoever_reads_and_refuses_whoever_changes_on_the_same_connections() {
    let cluster = Cluster::start("read-only-callers");
    let api = serve_with_two_hosts(&cluster);
    let [ann, root] = [api.sign_up("ann"), api.sign_up_admin("root")];
    let file = api.new_file(&ann, "a.txt", "text");
    parallel(16, |_| api.profile(&ann).expect(200));
    type Reader<'a> = (&'a str, Box<dyn Fn() -> Answer + Sync + 'a>);
    let mut readers: Vec<Reader> = vec![
        ("access token", Box::new(|| api.profile(&ann))),
        ("list", Box::new(|| api.list_files(&ann, ""))),
        ("download", Box::new(|| api.download(&ann, &file))),
    ];
    if has_extras() {
        // Their first use in this hour is after the change of the setting.
        let (token, link) = (api.new_token(&ann, true), api.new_link(&ann, &file));
        let several = api.post("/links", &ann, json!({"files": [file]})).expect(201).json();
        let several = several["url"].as_str().expect("a path").to_owned();
        readers.push((
            "personal token",
            Box::new({
                let api = &api;
                move || api.list_files(&*token, "")
            }),
        ));
        readers.push((
            "link",
            Box::new({
                let api = &api;
                move || api.open_link(&link)
            }),
        ));
        readers.push((
            "link to several",
            Box::new({
                let api = &api;
                move || api.open_link(&several)
            }),
        ));
        readers.push(("archive", Box::new(|| api.get("/uploads/zip", &ann))));
    }
    let changes: [(&str, &(dyn Fn() -> Answer + Sync)); 5] = [
        ("change", &|| api.update_me(&ann, json!({"name": "Ann"}))),
        ("upload", &|| api.upload(&ann, "b.txt", vec![b'x'; 100_000])),
        ("sign-in", &|| api.login("ann", PASSWORD)),
        ("deletion", &|| api.delete_file(&ann, &file)),
        // The audit log has each export before its first byte is sent.
        ("export", &|| api.export_full(&root)),
    ];
    let before = sessions(&api.database);
    set_read_only(&api.database, true);
    wait_until(|| api.update_me(&ann, json!({"name": "Ann"})).status == 503);
    parallel(8, |n| {
        for _ in 0..20 {
            for (name, read) in &readers {
                read().case(name).expect(200);
            }
            if n < 2 {
                for (name, change) in &changes {
                    let answer = change().case(name);
                    answer
                        .refused(503, "Service temporarily unavailable")
                        .has(json!({"reason": "UNAVAILABLE"}));
                }
            }
        }
    });
    assert_eq!(sessions(&api.database), before);
    assert_eq!(api.data.contents(), [api.data.content(&file)]);
    let stored: bool =
        api.database.value("SELECT count(*) = 0 FROM file_links WHERE last_used_at IS NOT NULL");
    assert!(stored, "no use was noted");
    set_read_only(&api.database, false);
    wait_until(|| api.readyz().expect(200).json() == json!({"status": "ok"}));
    api.upload(&ann, "b.txt", "text").expect(201);
    if has_extras() {
        for (name, read) in &readers[3..] {
            read().case(name).expect(200);
        }
        for (table, used) in [("file_links", 2), ("personal_tokens", 1)] {
            wait_until(|| {
                api.database.count(&format!("{table} WHERE last_used_at IS NOT NULL")) == used
            });
        }
    }
}

#[test]
fn a_service_leaves_a_server_that_became_read_only_once_another_one_takes_changes() {
    let cluster = Cluster::start("read-only-host");
    let api = serve_with_two_hosts(&cluster);
    let ann = api.sign_up("ann");
    let before = sessions(&api.database);
    // New sessions take changes, as those of another server would.
    let name = api.database.name();
    let set = format!("ALTER DATABASE \"{name}\" SET default_transaction_read_only = off");
    api.database.run(&set);
    set_read_only(&api.database, true);
    // Nobody but the background threads may have met a refusal.
    wait_until(|| api.update_me(&ann, json!({"name": "Ann"})).status == 200);
    api.logged("takes changes now");
    assert!(sessions(&api.database).iter().all(|session| !before.contains(session)));
}

#[test]
fn what_a_server_refuses_for_its_own_state_is_refused_whole_and_costs_no_connection() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let refuse = |code: &str| {
        api.database.run(&format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$"
        ));
    };
    parallel(8, |_| api.profile(&ann).expect(200));
    refuse("25006");
    api.database
        .run("CREATE TRIGGER refuse BEFORE INSERT ON files FOR EACH ROW EXECUTE FUNCTION refuse()");
    let before = sessions(&api.database);
    // Read-only; no space on the disk; out of memory.
    for code in ["25006", "53100", "53200"] {
        refuse(code);
        // While changes count as refused, no upload gets as far as the database.
        wait_until(|| api.readyz().expect(200).json() == json!({"status": "ok"}));
        for answer in parallel(4, |_| api.upload(&ann, "a.txt", "text")) {
            let answer = answer.case(code).refused(503, "Service temporarily unavailable");
            answer.has(json!({"reason": "UNAVAILABLE"}));
        }
        assert!(api.data.contents().is_empty(), "{code}");
    }
    assert_eq!(sessions(&api.database), before);
}

#[test]
fn an_upload_to_a_database_that_refuses_changes_is_refused_before_its_body() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON files FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    api.upload(&ann, "a.txt", "text").refused(503, "Service temporarily unavailable");
    // Of this body nothing comes.
    assert_eq!(status_of(api.begin_upload(&ann, "Content-Length: 1000000", b"")), 503);
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
