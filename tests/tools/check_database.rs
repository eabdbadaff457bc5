//! `cloakroom check` in the database: totals, and steps that fail.

use crate::harness::*;

#[test]
fn wrong_totals_are_faults() {
    let (service, ann) = Installation::after(|api| {
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
    one_names(&faults, &["the table storage_shards differs from what it is made of"]);
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
    let lines = database.texts(&format!("EXPLAIN (ANALYZE) {sql}"));
    let scans: Vec<_> = lines.iter().filter(|line| line.contains(" on files")).collect();
    assert!(!scans.is_empty() && scans.iter().all(|line| line.contains("loops=1)")), "{lines:#?}");
}

#[test]
fn a_step_that_fails_is_a_fault_and_the_others_are_gone_through() {
    let (service, ()) = Installation::after(|api| drop(api.sign_up("ann")));
    let role = format!("cloakroom_check_{}", std::process::id());
    service.database.run(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'plain';
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    ));
    let (_, address) = service.database.url.split_once('@').expect("an address");
    let url = format!("postgres://{role}:plain@{address}");
    let check = || service.run(&["check"], &[("CLOAKROOM_DATABASE_URL", &url)]);
    let allowed = check();
    service.database.run(&format!("REVOKE SELECT ON storage_shards FROM {role}"));
    let forbidden = check();
    service.database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    assert_eq!(findings_of(&allowed.exits(0), "ok").len(), 3);
    let faults = findings_of(&forbidden, "fault");
    one_names(&faults, &["totals: ", "permission denied for table storage_shards"]);
    one_names(&faults, &["totals: not finished"]);
    assert_eq!((faults.len(), findings_of(&forbidden.exits(1), "ok").len()), (2, 2));
}
