//! `cloakroom check` in the database: totals, quotas, the schema, and damaged indexes.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

#[test]
fn wrong_totals_are_faults() {
    let (service, ann) = StoppedService::after(|api| {
        let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
        api.new_file(&ann, "a.txt", "12345");
        api.new_file(&bob, "b.txt", "123");
        ann.id().to_owned()
    });
    // Without the triggers, as by a restore that disables them.
    service.database.run(&format!(
        "SET session_replication_role = replica;
         INSERT INTO files SELECT gen_random_uuid(), user_id, filename, original_filename, content_type, 7, 'f', 'h'
         FROM files WHERE user_id = '{ann}'"
    ));
    let faults = service.faults(&[]);
    one_names(&faults, &["the total of the service is 8 bytes, its files have 15"]);
    one_names(&faults, &["the totals of user ann are 1 file of 5 bytes, the records are 2 of 12"]);
    one_names(&faults, &["the table file_totals differs from what it is made of in 2 rows"]);
    assert!(!faults.concat().contains("user bob"), "{faults:?}");
    // What scripts/README.md says corrects them, whatever they are.
    let readme = include_str!("../../scripts/README.md");
    let (_, rest) = readme.split_once("```sql\nBEGIN;").expect("statements");
    let (statements, _) = rest.split_once("```").expect("an end");
    for damage in [
        "DELETE FROM files WHERE file_path = 'f'",
        "DELETE FROM storage_shards",
        "UPDATE listed_users SET name = 'x'",
        "DELETE FROM account_totals",
        "INSERT INTO file_totals VALUES ('2020-01-01', 1, 1)",
    ] {
        service.database.run(damage);
        assert_ne!(service.faults(&[]).len(), 0);
        service.database.run(&format!("BEGIN; {statements}"));
        assert!(service.warnings(&[]).is_empty());
    }
    service.database.run("DELETE FROM storage_shards");
    one_names(&service.faults(&[]), &["the table storage_shards has no row"]);
}

#[test]
fn the_records_are_added_up_in_one_pass_however_many_accounts_there_are() {
    let database = Database::create_migrated();
    // Nearly all files are of one user, so statistics advise against a look-up by user in an index.
    database.run(
        "INSERT INTO users (id, email, password_hash, total_uploads)
         SELECT gen_random_uuid(), n || '@example.com', '', 0 FROM generate_series(1, 1000) n;
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), (SELECT id FROM users LIMIT 1), '', '', '', 1, '', '' FROM generate_series(1, 20000);
         ANALYZE users, files",
    );
    let sql = include_str!("../../sql/checks/user_totals.sql");
    let sql = sql.replace("$1", "9").replace("$2", "9").replace("$3", "10");
    let plan = database.client().query(&format!("EXPLAIN (ANALYZE) {sql}"), &[]).expect("a plan");
    let lines: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
    let scans: Vec<_> = lines.iter().filter(|line| line.contains(" on files")).collect();
    assert!(!scans.is_empty() && scans.iter().all(|line| line.contains("loops=1)")), "{lines:#?}");
}

#[test]
fn quotas_that_are_exceeded_are_warnings() {
    let (service, ()) = StoppedService::after(|api| {
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
    assert_eq!(findings_of(&output, "warning").len(), 0);
    let above = [
        ("CLOAKROOM_STORAGE_QUOTA", "6"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "4"),
        ("CLOAKROOM_USER_FILE_QUOTA", "1"),
    ];
    let warnings = findings_of(&service.run(&["check"], &above).exits(0), "warning");
    one_names(&warnings, &["all files have 7 bytes, more than CLOAKROOM_STORAGE_QUOTA=6"]);
    one_names(&warnings, &["user ann stores 5 bytes, more than CLOAKROOM_USER_STORAGE_QUOTA=4"]);
    one_names(&warnings, &["user bob has 2 files, more than CLOAKROOM_USER_FILE_QUOTA=1"]);
    one_names(&warnings, &["totals: "]);
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
}

#[test]
fn parts_of_the_schema_without_effect_are_faults() {
    let (service, ()) = StoppedService::after(|api| drop(api.sign_up("ann")));
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
fn what_is_missing_of_the_schema_is_a_fault() {
    let (service, ()) = StoppedService::after(|api| drop(api.sign_up("ann")));
    service.database.run(
        "DROP INDEX users_email_key;
         DROP TRIGGER files_added ON files;
         ALTER TABLE sessions DROP CONSTRAINT sessions_user_id_fkey",
    );
    let faults = service.faults(&[]);
    one_names(&faults, &["index users_email_key is missing"]);
    one_names(&faults, &["trigger files_added is missing"]);
    one_names(&faults, &["constraint sessions_user_id_fkey is missing"]);
    assert_eq!(faults.len(), 4, "{faults:#?}");
}

/// A new migration that makes one of these needs a change to the query.
#[test]
fn the_check_knows_all_indexes_constraints_and_triggers_of_the_schema() {
    let database = Database::create_migrated();
    let objects = "SELECT indexname::text FROM pg_indexes WHERE schemaname = 'public'
                   UNION SELECT conname FROM pg_constraint
                   WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'p', 'u')
                   UNION SELECT tgname FROM pg_trigger WHERE NOT tgisinternal";
    let query = include_str!("../../sql/checks/schema_faults.sql");
    let rows = database.client().query(objects, &[]).expect("rows");
    assert!(rows.len() > 50);
    for row in rows {
        let name: String = row.get(0);
        let is_optional = name == "listed_users_search";
        assert!(is_optional || query.contains(&format!("'{name}'")), "{name} is not in it");
    }
}

#[test]
fn damaged_indexes_are_named_where_amcheck_is_installed() {
    let (service, ()) = StoppedService::after(|api| {
        let ann = api.sign_up("ann");
        (0..3).for_each(|n| drop(api.new_file(&ann, "a.txt", &format!("{n}"))));
    });
    let hint = "CREATE EXTENSION IF NOT EXISTS amcheck; GRANT EXECUTE";
    one_names(&findings_of(&service.check(&[]).exits(0), "ok"), &["amcheck: ", hint]);
    service.database.run("CREATE EXTENSION amcheck");
    let btrees: i64 = service.database.count(
        "pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am ON pg_am.oid = c.relam
         WHERE amname = 'btree' AND relnamespace = 'public'::regnamespace",
    );
    let output = service.check(&[]).exits(0);
    one_names(&findings_of(&output, "ok"), &[&format!("amcheck: indexes verified: {btrees}")]);
    // The index keeps what the function returned once, as after an upgrade of the system that changed a sort order.
    service.database.run(
        "CREATE FUNCTION sort_key(uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text $$;
         CREATE INDEX files_sort_key ON files (sort_key(id));
         CREATE OR REPLACE FUNCTION sort_key(uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT md5($1::text) $$",
    );
    let faults = service.faults(&[]);
    one_names(&faults, &["index files_sort_key is damaged", "lacks matching index tuple"]);
    one_names(&faults, &[&format!("amcheck: indexes verified: {}", btrees + 1)]);
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
    let service = StoppedService { database: database.clone(), data };
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
fn what_the_role_may_not_do_is_said_and_the_rest_is_checked() {
    let (service, ()) = StoppedService::after(|api| drop(api.sign_up("ann")));
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
    let before = check();
    service.database.run(&format!("{grant} {role}"));
    let after = check();
    service.database.run(&format!("REVOKE SELECT ON storage_shards FROM {role}"));
    let forbidden = check();
    service.database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    one_names(&findings_of(&before.exits(0), "ok"), &["not verified", &format!("{grant} {role}")]);
    one_names(&findings_of(&after.exits(0), "ok"), &["indexes verified"]);
    // A step that fails is a fault, and the others are gone through.
    let faults = findings_of(&forbidden, "fault");
    one_names(&faults, &["totals: ", "permission denied for table storage_shards"]);
    one_names(&faults, &["totals: not finished"]);
    assert_eq!((faults.len(), findings_of(&forbidden.exits(1), "ok").len()), (2, 4));
}

#[test]
fn another_schema_is_a_fault_and_stays_as_it_is() {
    let (service, ()) = StoppedService::after(|api| drop(api.sign_up("ann")));
    let newest: i32 = service.database.value("SELECT max(version) FROM refinery_schema_history");
    let older = Database::create_of_schema_23();
    let faults_on = |database: &Arc<Database>| {
        let service = StoppedService { database: database.clone(), data: service.data.clone() };
        service.faults(&[])
    };
    let versions = format!("schema version 23, this program has version {newest}");
    one_names(&faults_on(&older), &[&versions, "cloakroom migrate"]);
    assert_eq!(older.count("refinery_schema_history"), 23);
    let empty = Database::create();
    one_names(&faults_on(&empty), &["schema version 0", "cloakroom migrate"]);
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0);
    service
        .database
        .run("INSERT INTO refinery_schema_history (version, name) VALUES (999, 'later')");
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
    one_names(&findings_of(&output, "fault"), &["the database cannot be reached"]);
    assert!(!output.err().contains("secret"));
}
