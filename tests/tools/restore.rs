//! `cloakroom restore`: what is restored, and what is not as it was.

use std::fs;

use serde_json::json;

use crate::harness::*;

#[test]
fn accounts_and_files_are_as_they_were_in_the_backup_under_a_new_installation_id() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let (ann, _) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let file = api.new_file(&ann, "a.txt", "content");
    let (backup, _) = backups.make(&api);
    // What changes later is not in the backup.
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    api.delete_file(&ann, &file).expect(204);
    api.sign_up("carl");
    let target = Installation::empty();
    let printed = target.restore(&backup).exits(0).out();
    let id: String = target.database.value("SELECT id::text FROM installation");
    let time = manifest(&backup)["created_at"].as_str().expect("a time").to_owned();
    let expected = format!(
        "manifest: 2 users, 1 file, 7 bytes\n\
         database: 2 users, 1 file, 7 bytes\n\
         contents: 1 file, 7 bytes\n\
         Restored as installation {id}. Ended: 2 sessions, 0 personal tokens, 0 links. Passwords are those of the \
         backup, made at {time}.\n"
    );
    assert_eq!(printed, expected);
    assert_eq!(target.entries(), ["files", "installation-id"]);
    assert_eq!(fs::read_to_string(target.data.join("installation-id")).expect("an id").trim(), id);
    assert_ne!(manifest(&backup)["installation_id"], json!(id));
    assert_eq!(mode(&target.data.join("files")), 0o700);
    assert_eq!(mode(&target.data.content(&file)), 0o600);
    assert!(target.warnings(&["--repair"]).is_empty());
    // The first start makes the other directories.
    let output = target.run(&["doctor"], &[]).exits(0);
    output.prints("/tmp does not exist").prints("can be read and written").prints(&id);
    let restored = target.serve();
    restored.login("ann", NEW_PASSWORD).expect(401);
    restored.login("carl", PASSWORD).expect(401);
    let ann = restored.sign_in("ann");
    assert_eq!(restored.download(&ann, &file).expect(200).text(), "content");
    assert_eq!(restored.file_stats(&ann), (1, 7));
    restored.admin_stats(restored.sign_in("root")).expect(200);
    // Both go on separately.
    restored.new_file(&ann, "b.txt", "more");
    restored.run_beside(&["check"]).exits(0);
    api.readyz().expect(200);
}

#[test]
fn nothing_that_gave_access_before_the_restoration_gives_it_afterwards() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let personal = api.new_token(&ann, false);
    let link = api.new_link(&ann, &api.new_file(&ann, "a.txt", "content"));
    api.open_link(&link).expect(200);
    let bob = api.sign_up("bob");
    // This session has ended with the user's epoch, and its row says so later.
    let carl = api.sign_up("carl");
    api.database.run(&format!("SELECT end_sessions('{}')", carl.id()));
    let before = api.reset_token("bob@example.com");
    let foreign = sign(json!({"sub": bob.id(), "iat": now() - 5, "exp": FAR_FUTURE}));
    api.me(&foreign).expect(200);
    let (backup, _) = backups.make(&api);
    // Made after the backup, for the version of the credentials that the next change will lead to.
    api.reset_password(&before, NEW_PASSWORD).expect(200);
    let after = api.reset_token("bob@example.com");
    let target = Installation::empty();
    target.restore(&backup).exits(0).prints("Ended: 2 sessions, 1 personal token, 1 link. ");
    let restored = target.serve();
    for token in [&ann.access, &personal, &foreign] {
        restored.me(token).expect(401);
    }
    restored.refresh(&ann.refresh).expect(401);
    restored.open_link(&link).expect(404);
    for token in [&before, &after] {
        restored.reset_password(token, "another password").expect(400);
    }
    let root = restored.sign_up_admin("root");
    let events = restored.all_events(&root, "action=auth.logout");
    assert_eq!(events.len(), 1, "{events:?}");
    let details = json!({"scope": "restore", "sessions": 2, "tokens": 1, "links": 1});
    assert_eq!((&events[0]["details"], &events[0]["actor_id"]), (&details, &json!(null)));
    restored.me(restored.sign_in("ann")).expect(200);
    restored.me(restored.sign_in("bob")).expect(200);
}

#[test]
fn messages_that_waited_are_not_sent_again_and_those_that_failed_stay_as_records() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    api.database.run(&format!(
        "INSERT INTO outbox (kind, user_id, due_at) VALUES ('password_changed', '{0}', 'infinity');
         INSERT INTO outbox (kind, user_id, failed_at, error) VALUES ('password_changed', '{0}', now(), 'refused');
         INSERT INTO password_reset_requests (email_key) SELECT 'x@example.com' FROM generate_series(1, 3)",
        ann.id()
    ));
    let (backup, _) = backups.make(&api);
    let target = Installation::empty();
    target.restore(&backup).exits(0);
    let left = ["outbox", "outbox WHERE failed_at IS NOT NULL", "password_reset_requests"];
    assert_eq!(left.map(|rows| target.database.count(rows)), [1, 1, 0]);
}

#[test]
fn a_target_that_is_not_empty_is_refused_by_name_and_not_changed() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    api.sign_up("ann");
    let (backup, _) = backups.make(&api);
    for name in ["files", "trash", "installation-id"] {
        let target = Installation::empty();
        fs::create_dir(target.data.join(name)).expect("made");
        target.restore(&backup).exits(1).reports(&format!("it holds {name}, "));
        assert_eq!((target.entries(), target.tables()), (vec![name.to_owned()], 0));
    }
    for table in [
        "TABLE t (); ALTER TABLE t",
        "SCHEMA s; CREATE MATERIALIZED VIEW s.t AS SELECT; ALTER SCHEMA s",
    ] {
        let target = Installation::empty();
        target.database.run(&format!("CREATE {table} OWNER TO CURRENT_USER"));
        target.restore(&backup).exits(1).reports("is not empty: it has the table ").reports(".t.");
        assert_eq!(target.entries(), Vec::<String>::new());
    }
    let target = Installation::empty();
    fs::write(target.data.join("data"), "a file").expect("written");
    let mut command = target.command(&backup, &[]);
    command.env("CLOAKROOM_DATA_DIR", "data");
    command.output().expect("it runs").exits(1).reports("Not a directory");
    assert_eq!((target.entries(), target.tables()), (vec!["data".to_owned()], 0));
    // The running service's own place.
    let before = api.data.contents();
    api.run_beside(&["restore", backup.to_str().expect("a path")]).exits(1).reports("is not empty");
    assert_eq!(api.data.contents(), before);
    api.sign_in("ann");
}

#[test]
fn a_data_directory_that_does_not_exist_is_made_and_other_things_in_one_stay() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let file = api.new_file(api.sign_up("ann"), "a.txt", "content");
    let (backup, _) = backups.make(&api);
    let target = Installation::empty();
    let missing = target.data.join("new/data");
    let mut command = target.command(&backup, &[]);
    command.env("CLOAKROOM_DATA_DIR", &missing).output().expect("it runs").exits(0);
    assert_eq!(fs::read_to_string(missing.join("files").join(&file)).expect("a file"), "content");
    assert_eq!(mode(&missing), 0o700);
    let target = Installation::empty();
    fs::write(target.data.join("jwt-secret"), SECRET).expect("written");
    target.restore(&backup).exits(0);
    assert_eq!(target.entries(), ["files", "installation-id", "jwt-secret"]);
}

#[test]
fn a_backup_of_another_schema_or_a_newer_postgresql_is_refused_and_nothing_is_restored() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    api.sign_up("ann");
    let (backup, _) = backups.make(&api);
    let newest = manifest(&backup)["schema_version"].as_i64().expect("a version") as i32;
    let target = Installation::empty();
    let (next, former) = (newest + 1, newest - 1);
    for (version, refusal) in [
        (next, format!("has schema version {next}, this program knows versions up to {newest}")),
        (
            former,
            format!(
                "the backup has schema version {former}, which was never released, and this program upgrades from \
                 {newest} on: use the build that made it"
            ),
        ),
    ] {
        rewrite_manifest(&backup, |header| header["schema_version"] = json!(version));
        target.restore(&backup).exits(1).reports(&refusal);
    }
    adopt_dump(&backup, newest);
    rewrite_manifest(&backup, |header| header["postgresql"] = json!("99.1"));
    let refusal = "the backup is of PostgreSQL 99.1, the server is PostgreSQL ";
    target.restore(&backup).exits(1).reports(refusal);
    target.is_untouched();
}

#[test]
fn a_role_that_only_owns_the_database_can_restore_also_where_a_superuser_made_the_extension() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    api.sign_up("ann");
    // Only a superuser may create this one, which is not the service's.
    api.database.run("CREATE EXTENSION amcheck");
    let (backup, _) = backups.make(&api);
    for (is_owner, prepare, succeeds) in [
        (true, "", true),
        (true, "CREATE EXTENSION pg_trgm", true),
        (false, "CREATE EXTENSION pg_trgm", true),
        (false, "", false),
    ] {
        let target = Installation::empty();
        let (role, database) = (target.database.name(), target.database.name());
        let owner = if is_owner { role } else { "CURRENT_USER" };
        target.database.run(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'p w'; ALTER DATABASE {database} OWNER TO {owner};
             GRANT CREATE ON SCHEMA public TO {role}; {prepare}"
        ));
        let (_, server) = target.database.url.rsplit_once('@').expect("a URL");
        let url = format!("postgres://{role}:p%20w@{server}");
        let mut command = target.command(&backup, &[]);
        let output = command.env("CLOAKROOM_DATABASE_URL", &url).output().expect("it runs");
        if succeeds {
            output.exits(0);
            let count = |from: &str| target.database.count(from);
            let owned = format!("pg_tables WHERE tablename = 'users' AND tableowner = '{role}'");
            assert_eq!(count(&owned), 1);
            assert_eq!(count("pg_indexes WHERE indexname = 'listed_users_search'"), 1);
        } else {
            let output = output.reports("permission denied to create extension \"pg_trgm\"");
            output.exits(1).reports("Nothing was restored.\n");
            target.is_untouched();
        }
        target.database.run(&format!(
            "ALTER DATABASE {database} OWNER TO CURRENT_USER; REASSIGN OWNED BY {role} TO CURRENT_USER;
             DROP OWNED BY {role}; DROP ROLE {role}"
        ));
    }
}

#[test]
fn a_database_may_have_another_locale_but_no_other_encoding() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    api.sign_up("fidan");
    let (backup, _) = backups.make(&api);
    let into = |options: &str| Installation::on(&Database::create_with(options));
    let ascii = into("ENCODING 'SQL_ASCII' LOCALE 'C'");
    ascii.restore(&backup).exits(1).reports("the encoding of the database is SQL_ASCII");
    ascii.is_untouched();
    let turkish =
        into("ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LC_COLLATE 'C' LC_CTYPE 'C'");
    turkish.restore(&backup).exits(0);
    turkish.serve().login("FIDAN", PASSWORD).expect(200);
}
