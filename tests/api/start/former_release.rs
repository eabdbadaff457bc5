//! Processes of the release before, which may still run when this one upgrades the schema: they record files with the
//! statement in `upgrade/`.

use std::sync::Arc;
use std::thread;

use postgres::{Client, SimpleQueryMessage};

use crate::harness::*;

const QUOTA: i64 = 2_400_000;

/// A connection of such a process, which has prepared its statement.
fn connect(database: &Database) -> Client {
    let mut client = database.client();
    let types = "uuid, uuid, text, text, bigint, text, text, bigint, bigint, bigint, inet, uuid";
    let sql = include_str!("upgrade/insert_file_v14.sql");
    client.batch_execute(&format!("PREPARE record ({types}) AS {sql}")).expect("a statement");
    client
}

/// Records a file of a user, and returns whether it fits into the quota of the service.
fn record(client: &mut Client, user: &str, size: i64) -> bool {
    let sql = format!(
        "EXECUTE record (gen_random_uuid(), '{user}', 'a.txt', 'text/plain', {size}, 'h', NULL, 10000000, 1000, {QUOTA},
                         NULL, NULL)"
    );
    let answer = client.simple_query(&sql).expect("the statement runs");
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get("id").is_some()),
        _ => None,
    });
    row.expect("a row of the user")
}

/// The total that is kept, which is that of the records.
#[track_caller]
fn total(database: &Database) -> i64 {
    let total = database.value("SELECT sum(used)::bigint FROM storage_shards");
    assert_eq!(total, database.value::<i64>("SELECT sum(file_size)::bigint FROM files"));
    assert_eq!(total, database.value::<i64>("SELECT sum(total_storage_used)::bigint FROM users"));
    total
}

#[test]
fn what_the_former_release_is_doing_while_the_schema_is_upgraded_is_counted() {
    let database = Database::create();
    database.migrate_to(14);
    let users = [uuid(1), uuid(2), uuid(3)];
    for user in &users {
        database.run(&format!(
            "INSERT INTO users (id, username, email, password_hash)
             VALUES ('{user}', '{user}', '{user}@example.com', '-')"
        ));
    }
    database.insert_files(&users[0], &[5, 6]);
    let [mut ann, mut bob, mut carl] = [(); 3].map(|()| connect(&database));
    // A file is recorded and another one removed, in a transaction that the migration has to wait for.
    ann.batch_execute("BEGIN").expect("BEGIN");
    assert!(record(&mut ann, &users[0], 100));
    thread::scope(|scope| {
        let migration = scope.spawn(|| run(&database.url, &["migrate"], &[]));
        database.wait_for_blocked_statement();
        let blocked =
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let later = scope.spawn(|| record(&mut bob, &users[1], 1000));
        wait_until(|| database.count(blocked) == 2);
        ann.batch_execute("DELETE FROM files WHERE file_size = 5; COMMIT").expect("COMMIT");
        let log = migration.join().expect("no panic").exits(0).err();
        assert!(log.contains("V15__storage_shards applied"), "{log}");
        assert!(later.join().expect("no panic"));
    });
    assert!(record(&mut carl, &users[2], 10_000));
    assert_eq!(total(&database), 11_106);
    let api = Server::start_with(&database, &Arc::new(Directory::create()), &[]);
    let ann = sign(
        serde_json::json!({"sub": users[0], "role": "user", "iat": now(), "exp": now() + 600}),
    );
    api.new_file(&ann, "a.txt", "1234");
    database.run("DELETE FROM files WHERE file_size = 1000");
    assert_eq!(total(&database), 10_110);
}

#[test]
fn processes_of_both_releases_fill_the_quota_exactly_and_never_exceed_it() {
    let api = Server::start(&[("CLOAKROOM_STORAGE_QUOTA", &QUOTA.to_string())]);
    let users: Vec<_> = (0..4).map(|i| api.sign_up(&format!("user{i}"))).collect();
    api.database.insert_files(users[0].id(), &[QUOTA - 12_000]);
    let recorded = parallel(32, |i| match i % 2 {
        0 => api.upload(&users[i / 2 % 4], "a.txt", [b'x'; 1000]).status == 201,
        _ => record(&mut connect(&api.database), users[i / 2 % 4].id(), 1000),
    });
    assert_eq!(recorded.iter().filter(|is_recorded| **is_recorded).count(), 12);
    assert_eq!(total(&api.database), QUOTA);
}

#[test]
fn an_upload_to_the_former_release_that_waits_for_its_user_holds_up_no_other_user() {
    let api = Server::start(&[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    let mut former = connect(&api.database);
    let lock =
        api.database.begin(&format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", ann.id()));
    thread::scope(|scope| {
        let upload = scope.spawn(|| record(&mut former, ann.id(), 1000));
        api.database.wait_for_blocked_statement();
        api.upload(&bob, "b.txt", "12345").expect(201);
        lock.roll_back();
        assert!(upload.join().expect("no panic"));
    });
    assert_eq!(total(&api.database), 1005);
}
