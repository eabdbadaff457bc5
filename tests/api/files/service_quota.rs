//! The total of all files, and the quota that it must not exceed: exact, and nothing that everybody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::*;

const USED: &str = "SELECT sum(used)::bigint FROM storage_shards";
/// The bytes that the totals have, and those that the records have, in one snapshot.
const TOTALS: &str = "SELECT (SELECT sum(used)::bigint FROM storage_shards),
                             (SELECT coalesce(sum(used), 0)::bigint FROM stored_contents),
                             (SELECT coalesce(sum(disk_usage), 0)::bigint FROM stored_contents),
                             (SELECT coalesce(sum(disk_usage), 0)::bigint FROM users),
                             (SELECT sum(disk_usage)::bigint FROM storage_shards)";

/// Runs `work`, and looks again and again whether the totals agree and are within `quota`, also while it runs.
fn watched<T>(database: &Database, quota: i64, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut client = database.client();
            loop {
                let is_last = is_over.load(Ordering::Relaxed);
                let row = client.query_one(TOTALS, &[]).expect("totals");
                let [kept, counted, usage, of_users, of_shards] =
                    [0, 1, 2, 3, 4].map(|n| row.get::<_, i64>(n));
                assert_eq!((kept, of_users, of_shards), (counted, usage, usage));
                assert!(kept <= quota, "{kept} bytes");
                if is_last {
                    return;
                }
            }
        });
        let result = {
            let _over = SetOnDrop(&is_over);
            work()
        };
        watcher.join().expect("the totals always agree");
        result
    })
}

/// Keeps an upload of a user from ending: it waits for a row that no other user's needs, and has asked for the quotas.
fn hold_up(api: &Server, user: &str) -> OpenTransaction {
    api.database.begin(&format!("INSERT INTO own_changes VALUES ('{user}', now(), 1, 1)"))
}

#[test]
fn an_upload_that_does_not_end_holds_up_no_other_user() {
    let (api, [ann, bob]) = Server::with_users(&[PATIENT], ["ann", "bob"]);
    let file = api.new_file(&bob, "a.txt", "1");
    let stuck = hold_up(&api, ann.id());
    // Others have recorded files, and their commits take long.
    let slow = ["carl", "dora", "emil"].map(|name| {
        let user = api.sign_up(name);
        api.database.begin(&format!(
            "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             VALUES (gen_random_uuid(), '{}', 'f', 'f', 'text/plain', 10, 'f', 'h')",
            user.id()
        ))
    });
    thread::scope(|scope| {
        let upload = scope.spawn(|| api.upload(&ann, "a.txt", "123"));
        api.database.wait_for_blocked_statement();
        api.upload(&bob, "b.txt", "12345").expect(201);
        api.upload(&bob, "large.txt", vec![b'x'; 5_000_000]).expect(201);
        api.delete_file(&bob, &file).expect(204);
        stuck.roll_back();
        upload.join().expect("no panic").expect(201);
    });
    slow.into_iter().for_each(OpenTransaction::commit);
    wait_until(|| api.database.count("deleted_contents") == 0);
    watched(&api.database, 5_000_038, || ());
    assert_eq!(api.database.value::<i64>(USED), 5_000_038);
}

#[test]
fn an_upload_near_the_quota_waits_for_those_that_it_cannot_see_yet() {
    let (api, [ann, bob, carl]) = Server::with_users(
        &[PATIENT, ("CLOAKROOM_STORAGE_QUOTA", "2400000")],
        ["ann", "bob", "carl"],
    );
    let stuck = hold_up(&api, ann.id());
    thread::scope(|scope| {
        let small = scope.spawn(|| api.upload(&ann, "a.txt", "x"));
        api.database.wait_for_blocked_statement();
        let large = scope.spawn(|| api.upload(&bob, "b.txt", vec![b'x'; 2_400_000]));
        wait_until(|| api.database.connections("wait_event = 'advisory'") == 1);
        stuck.roll_back();
        small.join().expect("no panic").expect(201);
        large.join().expect("no panic").refused(507, "Storage quota exceeded");
    });
    api.upload(&carl, "c.txt", vec![b'x'; 2_399_999]).expect(201);
    api.upload(&ann, "a.txt", "x").refused(507, "Storage quota exceeded");
    watched(&api.database, 2_400_000, || ());
}

#[test]
fn uploads_of_several_users_fill_the_quota_exactly_and_never_exceed_it() {
    // If the server has 300 connections, files of 1,000 bytes wait for each other once a quarter of the quota is left,
    // and larger ones always do.
    let quota = 2_400_000;
    let api = Server::start(&[("CLOAKROOM_STORAGE_QUOTA", &quota.to_string())]);
    let users: Vec<_> = (0..8).map(|i| api.sign_up(&format!("user{i}"))).collect();
    api.database.insert_files(users[0].id(), &[quota * 3 / 4 - 5000]);
    watched(&api.database, quota, || {
        let upload = |i: usize, size: usize| api.upload(&users[i % 8], "a.txt", vec![b'x'; size]);
        let statuses = parallel(32, |i| upload(i, if i < 16 { 1000 } else { 80_000 }).status);
        // There is room for all small files and for seven large ones. What has come of a large one that is refused
        // later counts until then, so a few others may be refused as well.
        let mut tally = tally(statuses);
        let (stored, refused) = (tally.remove(&201), tally.remove(&507));
        assert!(tally.is_empty() && stored <= Some(23) && refused >= Some(9), "{tally:?}");
        let left = (quota - api.database.value::<i64>(USED)) as usize / 1000;
        let statuses = parallel(left + 3, |i| upload(i, 1000).status);
        assert_eq!(self::tally(statuses), [(201, left), (507, 3)].into());
    });
    assert_eq!(api.database.value::<i64>(USED), quota);
}

#[test]
fn totals_agree_at_any_moment_while_files_come_and_go() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let users: Vec<_> = (0..6).map(|i| api.sign_up(&format!("user{i}"))).collect();
    api.database.insert_files(users[5].id(), &[9; 2500]);
    watched(&api.database, i64::MAX, || {
        parallel(6, |i| {
            if i == 5 {
                api.delete_user(&root, users[5].id()).expect(204);
                return;
            }
            for round in 0..12 {
                let file = api.new_file(&users[i], "a.txt", "four");
                if round % 3 != 0 {
                    api.delete_file(&users[i], &file).expect(204);
                }
            }
        });
        wait_until(|| api.database.count("pending_removals") == 0);
        let waiting = || api.database.count("deleted_contents");
        wait_until(|| waiting() == 0);
    });
    assert_eq!(api.database.value::<i64>(USED), 5 * 4 * 4);
}

#[test]
fn the_quota_of_the_service_is_exact_under_parallel_uploads_of_several_users() {
    let api = Server::start(&[("CLOAKROOM_STORAGE_QUOTA", "7999")]);
    let users: Vec<_> = (0..4).map(|i| api.sign_up(&format!("user{i}"))).collect();
    let statuses = parallel(24, |i| api.upload(&users[i % 4], "a.txt", [b'x'; 1000]).status);
    assert_eq!(tally(statuses), [(201, 7), (507, 17)].into());
    assert_eq!(api.data.contents().len(), 7);
    assert_eq!(api.database.value::<i64>(USED), 7000);
    assert_eq!(
        api.database.value::<i64>("SELECT sum(total_storage_used)::bigint FROM users"),
        7000
    );
}
