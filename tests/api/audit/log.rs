//! The audit log as a whole: it cannot be changed, expires, and is read in pages and as CSV. Its command has
//! tests of its own.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::harness::*;

const HEADER: &str =
    "id,at,action,outcome,actor_id,subject_type,subject_id,address,request_id,details";
/// Ids of an actor and a subject.
const ACTOR: &str = "00000000-0000-4000-8000-00000000000a";
const SUBJECT: &str = "00000000-0000-4000-8000-00000000000b";

/// Inserts events, each a second older than the one before: every seventh is a failure, every third is the actor's,
/// every fourth is about the subject, every fifth is a deletion.
fn insert_events(database: &Database, count: u32) {
    database.run(&format!(
        "INSERT INTO audit_events (at, action, outcome, actor_id, subject_type, subject_id)
         SELECT date_trunc('second', now()) - make_interval(days => 2, secs => n),
                (CASE WHEN n % 5 = 0 THEN 'user.delete' ELSE 'auth.login' END)::audit_action,
                (CASE WHEN n % 7 = 0 THEN 'failure' ELSE 'success' END)::audit_outcome,
                CASE WHEN n % 3 = 0 THEN '{ACTOR}'::uuid END, CASE WHEN n % 4 = 0 THEN 'user' END,
                CASE WHEN n % 4 = 0 THEN '{SUBJECT}'::uuid END
         FROM generate_series(1, {count}) n"
    ));
}

#[test]
fn events_cannot_be_changed_or_deleted() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let mut client = api.database.client();
    for sql in [
        "UPDATE audit_events SET actor_id = NULL",
        "UPDATE audit_events SET details = details WHERE false",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events",
        "INSERT INTO audit_events (at, id, action) SELECT at, id, action FROM audit_events
         ON CONFLICT (at, id) DO UPDATE SET details = '{}'",
    ] {
        let error = client.batch_execute(sql).expect_err(sql);
        let constraint = error.as_db_error().and_then(|error| error.constraint());
        assert_eq!(constraint, Some("audit_events_are_kept"), "{sql}");
    }
    assert_eq!(api.database.count("audit_events"), 2);
}

#[test]
fn filters_and_their_combinations_show_what_matches_newest_first() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    insert_events(&api.database, 300);
    let time = |secs: u32| -> String {
        api.database.value(&format!(
            "SELECT to_char(max(at) AT TIME ZONE 'UTC' - interval '{secs} s', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
             FROM audit_events WHERE at < now() - interval '1 day'"
        ))
    };
    let (late, early) = (time(50), time(250));
    let filters = [
        ("actor_id", ACTOR, format!("actor_id = '{ACTOR}'")),
        ("subject_id", SUBJECT, format!("subject_id = '{SUBJECT}'")),
        ("action", "user.delete", "action = 'user.delete'".into()),
        ("outcome", "failure", "outcome = 'failure'".into()),
        ("from", &early, format!("at >= '{early}'")),
        ("to", &late, format!("at <= '{late}'")),
    ];
    for chosen in 0..1_u32 << filters.len() {
        // An empty filter is none.
        let (mut query, mut condition) = ("limit=9".to_owned(), "true".to_owned());
        for (i, (name, value, sql)) in filters.iter().enumerate() {
            if chosen >> i & 1 == 0 {
                query += &format!("&{name}=");
                continue;
            }
            query += &format!("&{name}={value}");
            condition += &format!(" AND {sql}");
        }
        let expected: Option<String> = api.database.value(&format!(
            "SELECT string_agg(id::text, ' ' ORDER BY at DESC, id DESC) FROM audit_events WHERE {condition}"
        ));
        let found = names_of(&json!(api.all_events(&root, &query)), "id").join(" ");
        assert_eq!(found, expected.unwrap_or_default(), "{query}");
    }
    let empty = filters.map(|(name, ..)| format!("{name}=")).join("&");
    let exported = |query: &str| api.export_audit(&root, query).expect(200).text();
    assert_eq!(exported(&empty), exported(""));
}

#[test]
fn words_and_pages_are_those_of_the_database() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    // The names of actions and outcomes are those of the database.
    let answer = api.audit(&root, "action=x&outcome=x");
    for (name, place) in [("action", 0), ("outcome", 1)] {
        let words = format!("SELECT array_to_string(enum_range(NULL::audit_{name}), ', ')");
        let told = format!("Must be one of: {}", api.database.value::<String>(&words));
        assert_eq!(answer.json()["detail"][place]["msg"], json!(told));
    }
    let page = api.audit(&root, "limit=100").expect(200);
    assert_eq!(page.member_names(), ["events", "next"]);
    assert_eq!(page.json()["next"], Value::Null);
}

#[test]
fn every_event_is_on_exactly_one_page_while_others_arrive() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    insert_events(&api.database, 200);
    let existing = api.all_events(&root, "limit=100");
    let (done, arrived) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _stop = SetOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                api.login("root", PASSWORD).expect(200);
                api.login("root", "wrong").expect(401);
                arrived.fetch_add(1, Ordering::Relaxed);
            }
        });
        for query in ["limit=7", "limit=7&outcome=success", "limit=1&action=user.delete"] {
            let begin = arrived.load(Ordering::Relaxed);
            let found = api.all_events(&root, query);
            wait_until(|| arrived.load(Ordering::Relaxed) > begin);
            let ids = names_of(&json!(found), "id");
            let unique: HashSet<_> = ids.iter().cloned().collect();
            assert_eq!(unique.len(), ids.len(), "{query}: an event is on two pages");
            let matching = existing.iter().filter(|event| match query {
                "limit=7" => true,
                "limit=7&outcome=success" => event["outcome"] == "success",
                _ => event["action"] == "user.delete",
            });
            for event in matching {
                let id = event["id"].as_str().expect("an id");
                assert!(unique.contains(id), "{query}: {event} is on no page");
            }
        }
    });
}

/// How often the indexes of the audit log were searched, and how many of their entries were read.
fn index_reads(database: &Database) -> (i64, i64) {
    let sum = |column: &str| {
        let from = "FROM pg_stat_user_indexes WHERE relname = 'audit_events'";
        database.value::<i64>(&format!("SELECT sum({column})::bigint {from}"))
    };
    (sum("idx_scan"), sum("idx_tup_read"))
}

#[test]
fn a_page_reads_few_entries_however_rare_or_old_its_events_are() {
    // With one connection, all of a request's reads are reported at the same time.
    let (api, [root]) = Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")], ["root"]);
    insert_events(&api.database, 50_000);
    api.database.run("ANALYZE audit_events");
    let scanned = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'audit_events'";
    let before: i64 = api.database.value(scanned);
    let oldest: String = api.database.value(
        "SELECT to_char((min(at) + interval '90 s') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
         FROM audit_events",
    );
    for query in [
        String::new(),
        format!("to={oldest}"),
        format!("to={oldest}&outcome=failure"),
        format!("to={oldest}&from={oldest}&actor_id={ACTOR}"),
        "action=users.export".into(),
        "action=auth.register&outcome=success".into(),
        format!("actor_id={ACTOR}&action=auth.register"),
        format!("subject_id={SUBJECT}&outcome=failure"),
        format!("actor_id={ACTOR}&subject_id={SUBJECT}"),
        format!("actor_id={}", root.id()),
    ] {
        let (searches, read) = index_reads(&api.database);
        api.audit(&root, &query).expect(200);
        wait_until(|| {
            // Makes the connection report what it has done.
            api.me(&root).expect(200);
            index_reads(&api.database).0 > searches
        });
        let read = index_reads(&api.database).1 - read;
        assert!(read < 2500, "{query}: {read}");
    }
    let scanned = api.database.value::<i64>(scanned) - before;
    assert!(scanned < 1000, "rows read without an index: {scanned}");
}

#[test]
fn the_csv_export_has_the_events_of_the_list() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    api.new_file(&ann, "=1+1.txt", "text");
    api.login("ann", "wrong").expect(401);
    wait_until(|| api.database.count("audit_events WHERE outcome = 'failure'") == 1);
    // More than a batch, so that there are several.
    insert_events(&api.database, 4500);
    let deletions = format!("subject_id={SUBJECT}&action=user.delete");
    for query in ["", "outcome=failure", &deletions] {
        let answer = api.export_audit(&root, query).expect(200);
        assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8");
        assert!(answer.header("Content-Disposition").starts_with("attachment; filename=audit-20"));
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let cells = |event: &Value| HEADER.split(',').map(|name| text(&event[name])).collect();
        let events = api.all_events(&root, &format!("limit=100&{query}"));
        let listed: Vec<Vec<String>> = events.iter().map(cells).collect();
        assert_eq!(csv_rows(HEADER, &answer.bytes), listed, "{query}");
    }
    api.request("HEAD", "/admin/audit/export").by(&root).send().expect(200);
}

#[test]
fn the_export_needs_an_admin_whatever_the_settings_say_about_exports() {
    let (api, [root, ann]) = Server::with_users(
        &[("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true"), ("CLOAKROOM_EXPORT_MAX_ROWS", "1")],
        ["root", "ann"],
    );
    api.export_audit(Anonymous, "").refused(401, "Authentication required");
    api.export_audit(&ann, "").refused(403, "Admin privileges required.");
    assert!(csv_rows(HEADER, &api.export_audit(&root, "").expect(200).bytes).len() >= 4);
    let keyed = [("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY", "key")];
    let api = Server::start_on(&api.database, &keyed);
    api.export_audit(&root, "").expect(200);
}

#[test]
fn old_events_expire_in_batches_and_failures_after_thirty_days() {
    let database = Server::start(&[]).database.clone();
    let insert = |days: u32, outcome: &str, count: u32| {
        database.run(&format!(
            "INSERT INTO audit_events (at, action, outcome)
             SELECT now() - make_interval(days => {days}, mins => 1), 'auth.login', '{outcome}'
             FROM generate_series(1, {count})"
        ));
    };
    insert(99, "success", 7);
    insert(100, "success", 25_000);
    insert(29, "failure", 7);
    insert(30, "failure", 25_000);
    let before = database.count("audit_events");
    let api = Server::start_on(&database, &[("CLOAKROOM_AUDIT_DAYS", "100")]);
    wait_until(|| database.count("audit_events") == before - 50_000);
    drop(api);
    let _api = Server::start_on(&database, &[("CLOAKROOM_AUDIT_DAYS", "29")]);
    wait_until(|| database.count("audit_events") == before - 50_014);
}

#[test]
fn two_processes_write_and_read_one_log() {
    let (first, [root]) = Server::with_users(&[], ["root"]);
    let second = first.beside(&[]);
    let servers = [&first, &second];
    parallel(8, |i| {
        for _ in 0..5 {
            servers[i % 2].login("root", PASSWORD).expect(200);
            servers[i % 2].login("root", "wrong").expect(401);
        }
    });
    wait_until(|| first.all_events(&root, "outcome=failure").len() == 40);
    let list = |api: &Server| api.all_events(&root, "limit=100&action=auth.login");
    assert_eq!(list(&first), list(&second));
    assert_eq!(list(&first).len(), 81);
}

#[test]
fn an_event_names_its_file_as_it_is_called_now_and_as_long_as_the_service_has_it() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let file = api.new_file(&ann, "draft.txt", "x");
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    api.delete_link(&ann, &file, &link).expect(204);
    let stored = || api.database.count("audit_events WHERE details ? 'filename'");
    let names = |count: usize| {
        let path = format!("/admin/audit?subject_id={file}");
        let events = api.get(&path, &root).expect(200).list("events");
        assert_eq!(events.len(), count);
        events
            .iter()
            .map(|event| event["details"]["filename"].clone())
            .map(|name| name.to_string())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(names(3), BTreeSet::from(["\"draft.txt\"".to_owned()]));
    api.update_file(&ann, &file, json!({"filename": "\u{448}\u{430}\u{440}.txt"})).expect(200);
    api.delete_file(&ann, &file).expect(204);
    assert_eq!(names(5), BTreeSet::from(["\"\u{448}\u{430}\u{440}.txt\"".to_owned()]));
    api.delete(&format!("/uploads/{file}?permanently=true"), &ann).expect(204);
    assert_eq!(names(6), BTreeSet::from(["null".to_owned()]));
    assert_eq!(stored(), 0, "texts of users in the log");
}
