//! `cloakroom check`: what is damaged is named, and what is whole is left as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use time::OffsetDateTime;

use crate::harness::*;

#[test]
fn a_whole_installation_has_no_faults_and_is_left_as_it_is() {
    let (service, _) = Installation::after(|api| {
        let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
        for n in 0..5 {
            api.new_file(&ann, "a.txt", &format!("{n}"));
        }
        let file = api.new_file(&bob, "b.txt", "two");
        make_older(&api.data.content(&file), 50);
        make_older(&api.data.content(&api.new_file(&bob, "empty.txt", "")), 1);
        let root = api.sign_up_admin("root");
        let cleo = api.sign_up("cleo");
        api.new_file(&cleo, "c.txt", "three");
        api.delete_user(&root, cleo.id()).expect(204);
        wait_until(|| api.database.count("pending_removals") == 0);
    });
    let before = listing(service.data.path());
    // The database refuses every change.
    let url = format!("{}?options=-c%20default_transaction_read_only%3Don", service.database.url);
    for arguments in [&["check"][..], &["check", "--repair"]] {
        let output = service.run(arguments, &[("CLOAKROOM_DATABASE_URL", &url)]).exits(0);
        assert_eq!((findings_of(&output, "warning").len(), output.err()), (0, String::new()));
        let ok = findings_of(&output, "ok");
        assert_eq!(ok.len(), 3, "{ok:?}");
        one_names(&ok, &["records: 7 files", "; 0 damaged"]);
        one_names(&ok, &["contents: 2 over an hour old", "; 0 without a record"]);
        one_names(&ok, &["totals: "]);
        assert!(output.out().ends_with("\nno faults, no warnings.\n"), "{}", output.out());
    }
    assert_eq!(listing(service.data.path()), before);
}

#[test]
fn damaged_contents_are_named_with_their_files_and_owners() {
    let (service, ids) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        // This owner has no username.
        let bob = json!({"email": "bob@example.com", "password": PASSWORD});
        let bob = api.register_with(bob).expect(201).tokens();
        let mut ids: Vec<_> = ["one", "two", "three", "four", "five", "six"]
            .map(|text| api.new_file(&ann, "a.txt", text))
            .into();
        let quoted = api.new_file(&bob, "b.txt", "six");
        api.update_file(&bob, &quoted, json!({"filename": "le \"b\".txt"})).expect(200);
        ids.extend([quoted, bob.id().to_owned()]);
        ids
    });
    let [changed, truncated, longer, missing, whole, linked, quoted, bob] = &ids[..] else {
        panic!("{ids:?}")
    };
    let path = |id: &str| service.data.content(id);
    fs::write(path(changed), "onf").expect("changed");
    fs::write(path(truncated), "tw").expect("truncated");
    fs::write(path(longer), "three!").expect("made longer");
    fs::remove_file(path(missing)).expect("removed");
    fs::remove_file(path(linked)).expect("removed");
    symlink(path(whole), path(linked)).expect("a link");
    fs::remove_file(path(quoted)).expect("removed");
    fs::create_dir(path(quoted)).expect("a directory");
    let before = listing(service.data.path());
    for arguments in [&[][..], &["--repair"]] {
        let faults = service.faults(arguments);
        for (id, fault) in [
            (changed, "another SHA-256"),
            (truncated, "has 2 bytes, not 3"),
            (longer, "has 6 bytes, not 5"),
            (missing, "is missing"),
            (linked, "is not a file"),
        ] {
            one_names(&faults, &[&format!("files/{id} (\"a.txt\", owner ann) "), fault]);
        }
        let name = format!("files/{quoted} (\"le \\\"b\\\".txt\", owner {bob}) ");
        one_names(&faults, &[&name, "is not a file"]);
        one_names(&faults, &["records: 7 files", "; 6 damaged"]);
        assert_eq!(faults.len(), 7, "{faults:#?}");
        assert!(!faults.concat().contains(whole) && !faults.concat().contains("example.com"));
    }
    assert_eq!(listing(service.data.path()), before);
    let output = service.check(&[]);
    assert!(output.out().ends_with("\n6 faults, no warnings.\n"), "{}", output.out());
}

#[test]
fn contents_without_a_record_are_faults_unless_the_sweep_is_to_come() {
    let (service, deleted) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        let file = api.new_file(&ann, "a.txt", "one");
        api.delete_file(&ann, &file).expect(204);
        file
    });
    let place = |name: &str, hours| {
        let path = service.data.join("files").join(name);
        fs::write(&path, "x").expect("a file");
        make_older(&path, hours);
    };
    let [young, swept, old] = [1, 2, 3].map(uuid);
    place(&young, 0);
    place(&swept, 1);
    make_older(&service.data.content(&deleted), 100);
    let sweep = "the next sweep moves it to the trash";
    let warnings = service.warnings(&[]);
    one_names(&warnings, &[&format!("files/{swept} has no record: {sweep}")]);
    let looked_up = "over an hour old looked up in the database";
    one_names(&warnings, &[&format!("contents: 2 {looked_up}; 1 without a record")]);
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    place(&old, 2);
    let faults = service.faults(&[]);
    one_names(&faults, &[&format!("files/{old} has no record")]);
    one_names(&faults, &[&format!("contents: 3 {looked_up}; 2 without a record")]);
    assert_eq!(faults.len(), 2, "{faults:#?}");
    // The sweep makes all of it well.
    service.run(&["gc"], &[]).exits(0);
    assert!(service.warnings(&[]).is_empty());
}

#[test]
fn what_cannot_be_compared_is_named_and_not_made() {
    let empty = Installation::on(&Installation::after(|_| ()).0.database);
    let refuses = |settings: &[(&str, &str)], text: &str| {
        let output = empty.run(&["check"], settings).exits(1);
        one_names(&findings_of(&output, "fault"), &[text]);
        assert_eq!(output.out().lines().count(), 2, "{}", output.out());
        assert!(!(output.out() + &output.err()).contains("s3cret"));
    };
    refuses(&[], "/files: No such file");
    empty.run(&["backup", "backups"], &[]).exits(1).reports("/files: No such file");
    let missing = empty.data.join("missing").display().to_string();
    refuses(&[("CLOAKROOM_DATA_DIR", &missing)], "missing: No such file");
    assert_eq!(listing(empty.data.path()).len(), 1);
    fs::create_dir(empty.data.join("files")).expect("a directory");
    let nowhere =
        [("CLOAKROOM_DATABASE_URL", NOWHERE), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")];
    refuses(&nowhere, "the database cannot be reached");
}

#[test]
fn beside_a_running_service_there_are_no_false_alarms() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let change = |n: usize, round: usize| {
        let ann = api.sign_up(&format!("ann{n}x{round}"));
        for file in 0..10 {
            let id = api.new_file(&ann, "a.txt", &format!("{n} {round} {file}"));
            // Old enough for its record to be looked up, and for a sweep.
            make_older(&api.data.content(&id), 5);
            if file % 3 == 0 {
                api.delete_file(&ann, &id).expect(204);
            }
        }
        if round.is_multiple_of(2) {
            api.delete_user(&root, ann.id()).expect(204);
        }
    };
    repeat_during(4, change, || {
        wait_until(|| api.database.count("files") > 20);
        let deletions = || api.database.count("audit_events WHERE action = 'file.delete'");
        let (mut runs, mut seen) = (0, 0);
        // Until there were many deletions while it ran, at least ten times.
        while runs < 10 || seen <= 50 {
            let before = deletions();
            let output = api.run_beside(&["check", "--repair"]).exits(0);
            assert_eq!(findings_of(&output, "fault"), [""; 0]);
            assert!(!output.out().contains("is back"), "{}", output.out());
            (runs, seen) = (runs + 1, seen + deletions() - before);
        }
    });
}

#[test]
fn ten_thousand_files_and_users_are_compared() {
    let (service, ()) = Installation::after(|api| {
        fill(api, 10_000);
        api.data.contents().iter().for_each(|path| make_older(path, 5));
    });
    let output = service.check(&[]).exits(0);
    let ok = findings_of(&output, "ok");
    one_names(&ok, &["records: 10000 files", "; 0 damaged"]);
    let all = "contents: 10000 over an hour old looked up in the database; 0 without a record";
    one_names(&ok, &[all]);
    // Faults in several batches.
    let ids = service.database.texts("SELECT id::text FROM files ORDER BY id");
    for id in ids.iter().step_by(4) {
        fs::remove_file(service.data.content(id)).expect("removed");
    }
    service.database.run(
        "SET session_replication_role = replica;
         DELETE FROM files WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM files) f
                                        WHERE n % 4 = 2)",
    );
    let faults = service.faults(&["--all"]);
    let named = |line: &str| Some(line.strip_prefix("files/")?.get(..36)?.to_owned());
    let named: BTreeMap<_, _> =
        faults.iter().filter_map(|line| Some((named(line)?, line))).collect();
    assert_eq!(named.len(), 5000);
    for (n, id) in ids.iter().enumerate().filter(|(n, _)| n % 4 < 2) {
        let text = if n % 4 == 0 { "is missing" } else { "has no record" };
        assert!(named[id].contains(text), "{}", named[id]);
    }
    assert_eq!(faults.iter().filter(|line| line.starts_with("the totals of user")).count(), 2500);
}

/// Moves a content to the trash, as the sweep of the day before, and returns its path there.
fn discard(data: &Directory, id: &str) -> PathBuf {
    let yesterday = OffsetDateTime::now_utc().date().previous_day().expect("a date");
    let day = data.join("trash").join(yesterday.to_string());
    fs::create_dir_all(&day).expect("a directory");
    let place = day.join(id);
    fs::rename(data.content(id), &place).expect("moved");
    place
}

#[test]
fn contents_are_brought_back_from_the_trash_only_where_asked_and_if_whole() {
    let (service, ids) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        ["one", "two", "three", "four", "five"].map(|text| api.new_file(&ann, "a.txt", text))
    });
    let [whole, changed, twice, damaged, lost] = &ids;
    let (data, content) = (&service.data, |id: &str| service.data.content(id));
    let place = discard(data, whole);
    fs::write(discard(data, changed), "twx").expect("changed");
    // Of two, the later one is not what was uploaded.
    let earlier = discard(data, twice);
    let later = data.join("trash").join(OffsetDateTime::now_utc().date().to_string());
    fs::create_dir(&later).expect("a directory");
    fs::write(later.join(twice), "").expect("a file");
    let original = earlier.with_file_name(damaged);
    fs::copy(content(damaged), &original).expect("copied");
    fs::write(content(damaged), "fouR").expect("changed");
    fs::remove_file(content(lost)).expect("removed");
    let before = listing(data.path());
    let faults = service.faults(&[]);
    let advice = "has the right bytes: `cloakroom check --repair` brings them back";
    for (id, fault, copy) in [
        (whole, "is missing", &place),
        (twice, "is missing", &earlier),
        (damaged, "has another SHA-256 than is recorded", &original),
    ] {
        one_names(&faults, &[id, &format!("{fault}; {} {advice}", copy.display())]);
    }
    one_names(&faults, &[changed, "is missing; ", "another SHA-256 than is recorded"]);
    one_names(&faults, &[lost, "is missing; neither the trash nor the last backup has a copy"]);
    assert_eq!(listing(data.path()), before);

    let output = service.check(&["--repair"]).exits(1);
    let warnings = findings_of(&output, "warning");
    for (id, was, copy) in
        [(whole, "missing", &place), (twice, "missing", &earlier), (damaged, "damaged", &original)]
    {
        one_names(&warnings, &[id, &format!("was {was} and is back, from {}", copy.display())]);
        assert!(!copy.exists());
    }
    let faults = findings_of(&output, "fault");
    one_names(&faults, &[changed, "is missing; "]);
    for (id, text) in [(whole, "one"), (twice, "three"), (damaged, "four")] {
        assert_eq!(fs::read_to_string(content(id)).expect("a content"), text);
    }
    assert!(!content(changed).exists());
    assert!(later.join(twice).exists());
    // A second run finds nothing more to do, and the sweep leaves what was brought back where it is.
    for id in [whole, twice] {
        make_older(&content(id), 5);
    }
    assert_eq!(service.check(&["--repair"]).exits(1).out().matches("is back").count(), 0);
    service.run(&["gc"], &[]).exits(0);
    assert!(content(whole).exists() && content(twice).exists());
}

#[test]
fn repairs_and_sweeps_at_the_same_time_lose_nothing() {
    let backups = Backups::create();
    let (service, ids) = Installation::after(|api| {
        let ann = api.sign_up("ann");
        let ids = [(); 60].map(|()| api.new_file(&ann, "a.txt", "one"));
        backups.make(api);
        ids
    });
    let (in_trash, in_backup) = ids.split_at(30);
    for id in in_trash {
        make_older(&discard(&service.data, id), 5);
    }
    in_backup.iter().for_each(|id| fs::remove_file(service.data.content(id)).expect("removed"));
    parallel(4, |i| match i {
        0 => drop(service.run(&["gc"], &[]).exits(0)),
        1 => drop(service.run(&["gc", "--confirm"], &[]).exits(0)),
        _ => drop(service.check(&["--repair"]).exits(0)),
    });
    assert!(service.warnings(&[]).is_empty());
    assert_eq!((service.data.contents().len(), service.data.trash().len()), (60, 0));
}

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
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), user_id, filename, original_filename, content_type, 7, 'f', 'h'
         FROM files WHERE user_id = '{ann}'"
    ));
    let faults = service.faults(&[]);
    one_names(&faults, &["the table storage_shards differs from what it is made of"]);
    one_names(&faults, &["the totals of user ann are 1 file of 5 bytes, the records are 2 of 12"]);
    one_names(&faults, &["the table file_totals differs from what it is made of in 2 rows"]);
    assert!(!faults.concat().contains("user bob"), "{faults:?}");
    // What scripts/BACKUP.md says corrects them, whatever they are.
    let page = include_str!("../../scripts/BACKUP.md");
    let (_, rest) = page.split_once("```sql\nBEGIN;").expect("statements");
    let (statements, _) = rest.split_once("```").expect("an end");
    for damage in [
        "DELETE FROM files WHERE file_path = 'f'",
        "DELETE FROM storage_shards",
        "UPDATE listed_users SET name = 'x'",
        "DELETE FROM account_totals",
        "UPDATE users SET deleted_bytes = 1",
        "INSERT INTO file_totals VALUES ('2020-01-01', 1, 1)",
        "UPDATE folder_totals SET files = files + 1",
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
        "INSERT INTO users (id, email, email_key, password_hash, total_uploads)
         SELECT gen_random_uuid(), n || '@example.com', n || '@example.com', '', 0 FROM generate_series(1, 1000) n;
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), (SELECT id FROM users LIMIT 1), '', '', '', 1, '', '' FROM generate_series(1, 20000);
         ANALYZE users, files",
    );
    let sql = include_str!("../../sql/tools/checks/user_totals.sql");
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
