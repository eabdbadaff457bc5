//! How much deleted files of one user can be: no statement grows with it, and it pushes out nothing of others.

use crate::accounts::totals::differences;
use crate::files::uploads_under_way::AS_OF_A_BACKUP;
use crate::harness::*;

/// Has the database note how many rows of a table each statement removes.
fn note_removals(database: &Database) {
    database.run(
        "CREATE TABLE removals (of text, files bigint);
         CREATE FUNCTION note_removal() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO removals SELECT TG_TABLE_NAME, count(*) FROM gone; RETURN NULL; END $$;
         CREATE TRIGGER note AFTER DELETE ON files REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
         CREATE TRIGGER note AFTER DELETE ON deleted_files REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION note_removal();
         CREATE TRIGGER note AFTER DELETE ON file_deletions REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION note_removal()",
    );
}

/// The most rows that one statement has removed.
fn most_removed(database: &Database) -> i64 {
    database.value("SELECT max(files) FROM removals")
}

/// Puts deleted files in, without contents: each a second after the one before, the last one just now.
fn insert_deleted(database: &Database, owner: &str, count: usize, size: usize, young: bool) {
    database.run(&format!(
        "INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, file_hash,
                                    description, upload_date, updated_at, is_public, version, deleted_at, was_young)
         SELECT gen_random_uuid(), '{owner}', 'f' || n, 'f', 'text/plain', {size}, 'h', repeat('x', 4096), now(), now(),
                false, 1, now() - make_interval(secs => {count} - n), {young}
         FROM generate_series(1, {count}) n"
    ));
}

fn of_user(database: &Database, user: &str) -> (i64, i64) {
    let total = |column| database.value(&format!("SELECT {column} FROM users WHERE id = '{user}'"));
    (total("deleted_files"), total("deleted_bytes"))
}

#[test]
fn no_statement_removes_more_than_a_thousand_files_however_many_one_has_deleted() {
    let settings =
        [("CLOAKROOM_USER_STORAGE_QUOTA", "5000"), ("CLOAKROOM_USER_FILE_QUOTA", "4000")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let (database, id) = (&api.database, ann.id());
    insert_deleted(database, id, 3000, 1, true);
    note_removals(database);
    let large = api.new_file(&ann, "large.txt", &"x".repeat(4500));
    api.delete_file(&ann, &large).expect(204);
    wait_until(|| of_user(database, id).1 <= 5000);
    assert_eq!(of_user(database, id), (501, 5000), "no more went than had to");
    let oldest = "SELECT min(filename) FROM deleted_files WHERE filename LIKE 'f%'";
    assert_eq!(database.value::<String>(oldest), "f2501");
    assert!(most_removed(database) <= 1000);

    // Under smaller quotas, both of files and of bytes, and for an account that is deleted with all that it has.
    insert_deleted(database, id, 3000, 1, true);
    database.run("UPDATE users SET remembered_deletions = 3000");
    database.run(&format!(
        "INSERT INTO file_deletions (file_id, user_id) SELECT gen_random_uuid(), '{id}' FROM generate_series(1, 3000)"
    ));
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    let settings = [("CLOAKROOM_USER_STORAGE_QUOTA", "2500"), ("CLOAKROOM_USER_FILE_QUOTA", "500")];
    let api = Server::start_with(&database, &data, &settings);
    wait_until(|| of_user(&database, id).1 <= 2500);
    let file = api.new_file(&ann, "a.txt", "");
    api.delete_file(&ann, &file).expect(204);
    database.insert_files(id, &[0; 1500]);
    api.delete_me(&ann, PASSWORD).expect(204);
    wait_until(|| database.count("pending_removals") == 0);
    assert!(most_removed(&database) <= 1000);
    let left = ["files", "deleted_files", "file_deletions"].map(|table| database.count(table));
    assert_eq!(left, [0, 0, 0]);
    wait_until(|| database.count("deleted_contents") == 0);
    assert_eq!(differences(&database), []);
}

#[test]
fn deleted_files_of_young_accounts_make_room_first_the_oldest_deletion_first() {
    let quota = ("CLOAKROOM_DELETED_QUOTA", "1000");
    let (api, [victim, made, ann, bob]) =
        Server::with_users(&[quota], ["victim", "made", "ann", "bob"]);
    let database = &api.database;
    database.run(
        "UPDATE users SET created_at = now() - interval '7 days' WHERE username = 'victim';
         UPDATE users SET is_self_registered = false WHERE username = 'made'",
    );
    insert_deleted(database, victim.id(), 4, 100, false);
    insert_deleted(database, made.id(), 1, 100, true);
    database.run("UPDATE deleted_files SET deleted_at = deleted_at - interval '5 days'");
    note_removals(database);
    // Of both kinds, in turns.
    for (user, young) in [(&ann, true), (&ann, false), (&bob, true), (&bob, false)] {
        insert_deleted(database, user.id(), 300, 1, young);
    }
    wait_until(|| database.value::<i64>("SELECT sum(deleted_bytes)::bigint FROM users") <= 1000);
    assert_eq!(
        (of_user(database, victim.id()), of_user(database, made.id())),
        ((4, 400), (1, 100))
    );
    let later = "SELECT count(*) FROM deleted_files d JOIN users ON users.id = user_id AND username IN ('ann', 'bob')
                 WHERE filename >= 'f175'";
    let of_young = of_user(database, ann.id()).0 + of_user(database, bob.id()).0;
    assert_eq!(of_young, 500);
    assert!(database.value::<i64>(later) >= 496, "the latest of all stay");
    // Once they have nothing left, others make room.
    database.run(&format!("UPDATE users SET storage_quota = 5000 WHERE id = '{}'", victim.id()));
    insert_deleted(database, victim.id(), 10, 120, false);
    wait_until(|| database.value::<i64>("SELECT sum(deleted_bytes)::bigint FROM users") <= 1000);
    assert_eq!(of_user(database, ann.id()).0 + of_user(database, bob.id()).0, 0);
    assert_eq!(of_user(database, made.id()), (1, 100));
    assert_eq!(differences(database), []);
}

/// Whoever had about as many before the others came pays last, and whoever has far more pays first, whenever it was.
#[test]
fn of_users_with_about_as_many_deleted_bytes_the_one_who_deleted_last_makes_room_first() {
    let quota = ("CLOAKROOM_DELETED_QUOTA", "30000");
    let (api, [victim, large]) = Server::with_users(&[quota], ["victim", "large"]);
    let database = &api.database;
    database.run(
        "INSERT INTO users (id, email, email_key, password_hash)
             SELECT gen_random_uuid(), n || '@example.com', n || '@example.com', '-' FROM generate_series(1, 50) n;
         UPDATE users SET created_at = now() - interval '8 days'",
    );
    let neighbours: Vec<String> =
        database.value("SELECT array_agg(id::text) FROM users WHERE password_hash = '-'");
    let insert_of_neighbours = |first: usize, last: usize| {
        let ids = neighbours[first..last].join("', '");
        database.run(&format!(
            "INSERT INTO deleted_files (id, user_id, filename, original_filename, content_type, file_size, file_hash,
                                        upload_date, updated_at, is_public, version, was_young)
             SELECT gen_random_uuid(), id, 'f', 'f', 'text/plain', 10, 'h', now(), now(), false, 1, false
             FROM users, generate_series(1, 95) WHERE id IN ('{ids}')"
        ));
        let bytes = "SELECT sum(deleted_bytes)::bigint FROM users";
        wait_until(|| database.value::<i64>(bytes) <= 30_000);
    };
    let begin = |size| {
        database.run("DELETE FROM deleted_files");
        insert_deleted(database, victim.id(), 100, size, false);
        database.run("UPDATE deleted_files SET deleted_at = deleted_at - interval '5 days'");
    };
    begin(10);
    insert_of_neighbours(0, 50);
    assert_eq!(of_user(database, victim.id()), (100, 1000), "all at once");
    begin(10);
    insert_of_neighbours(0, 30);
    for next in 30..33 {
        insert_of_neighbours(next, next + 1);
    }
    assert_eq!(of_user(database, victim.id()), (100, 1000), "one after the other");
    // With less than half of the most bytes nobody pays, however late.
    begin(100);
    insert_deleted(database, large.id(), 210, 100, false);
    database.run("UPDATE deleted_files SET deleted_at = deleted_at - interval '1 day'");
    insert_of_neighbours(0, 2);
    let left = [victim.id(), large.id(), &neighbours[0], &neighbours[1]];
    assert_eq!(left.map(|user| of_user(database, user).0), [100, 181, 95, 95]);
    assert_eq!(differences(database), []);
}

#[test]
fn contents_that_wait_for_a_backup_count_towards_the_quota_of_the_service() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_STORAGE_QUOTA", "100000")], ["ann"]);
    let backup = api.database.begin(AS_OF_A_BACKUP);
    let content = "x".repeat(40_000);
    for _ in 0..2 {
        let file = api.new_file(&ann, "a.txt", &content);
        api.delete_for_good(&ann, &file).expect(204);
    }
    api.upload(&ann, "a.txt", &content).refused(507, "Storage quota exceeded");
    assert_eq!(api.file_stats(&ann), (0, 0), "they do not count for the user");
    assert_eq!(api.data.contents().len(), 2);
    assert_eq!(differences(&api.database), []);
    // A deleted file that can be restored does not count, until it is purged.
    let small = api.new_file(&ann, "b.txt", &"x".repeat(20_000));
    api.upload(&ann, "c.txt", "x").refused(507, "Storage quota exceeded");
    api.delete_file(&ann, &small).expect(204);
    let other = api.new_file(&ann, "c.txt", &"x".repeat(20_000));
    api.delete_for_good(&ann, &small).expect(204);
    api.delete_for_good(&ann, &other).expect(204);
    api.upload(&ann, "d.txt", "x").refused(507, "Storage quota exceeded");
    backup.roll_back();
    wait_until(|| api.database.count("deleted_contents") == 0);
    api.upload(&ann, "a.txt", &content).expect(201);
    assert_eq!(api.metric("cloakroom_stored_bytes"), Some(40_000.0));
}
