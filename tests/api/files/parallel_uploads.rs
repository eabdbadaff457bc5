//! Uploads that come together are recorded in one commit. Each is decided by its own quota and owner all the same.

use std::thread;
use std::time::Duration;

use crate::harness::*;

/// Uploads of these users that come while one runs that cannot end. `meanwhile` is called once the others wait too.
/// Returns their answers.
fn together(api: &Server, users: &[&Tokens], meanwhile: impl FnOnce()) -> Vec<Answer> {
    let requests = users.iter().enumerate().map(|(n, user)| request(api, user, n)).collect();
    sent_together(api, users, requests, meanwhile)
}

/// The same with these requests of the users.
pub fn sent_together(
    api: &Server,
    users: &[&Tokens],
    requests: Vec<Request>,
    meanwhile: impl FnOnce(),
) -> Vec<Answer> {
    let first = api.sign_up("first");
    // The first change of a user is recorded alone.
    for user in users {
        let own_changes = "INSERT INTO own_changes SELECT id, now(), 1, 1 FROM users";
        let id = user.id();
        api.database.run(&format!("{own_changes} WHERE id = '{id}' ON CONFLICT DO NOTHING"));
    }
    let lock = api.database.begin("LOCK TABLE files IN EXCLUSIVE MODE");
    thread::scope(|scope| {
        let alone = scope.spawn(|| api.upload(&first, "first.txt", "first"));
        api.database.wait_for_blocked_statement();
        let uploads: Vec<_> =
            requests.into_iter().map(|request| scope.spawn(move || request.send())).collect();
        wait_for_batch(api, users.len());
        meanwhile();
        lock.roll_back();
        alone.join().expect("no panic").expect(201);
        uploads.into_iter().map(|upload| upload.join().expect("no panic")).collect()
    })
}

/// Waits until so many contents are stored beside the first one, and a second statement is to record the first of them.
fn wait_for_batch(api: &Server, contents: usize) {
    wait_until(|| api.data.contents().len() == contents + 1);
    wait_until(|| api.database.blocked_statements() >= 2);
    // Those that were stored last may not have come to it yet.
    thread::sleep(Duration::from_millis(100));
}

fn upload(api: &Server, user: &Tokens, n: usize) -> Answer {
    request(api, user, n).send()
}

pub fn request(api: &Server, user: &Tokens, n: usize) -> Request {
    let form = file_form(&format!("{n}.txt"), "text/plain", &content(n));
    let form = form.field("description", &format!("Number {n}"));
    api.upload_request(user, form.bytes()).header("X-Request-ID", &request_id(n))
}

/// Every third one is UTF-8.
fn content(n: usize) -> Vec<u8> {
    vec![[b'x', 0, 0xe9][n % 3]; n + 1]
}

fn request_id(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

#[test]
fn uploads_that_come_together_are_recorded_in_one_commit() {
    let api = Server::start(&[PATIENT]);
    let users = ["ann", "bob", "carl"].map(|name| api.sign_up(name));
    let senders: Vec<_> = (0..9).map(|n| &users[n % 3]).collect();
    for (n, answer) in together(&api, &senders, || ()).into_iter().enumerate() {
        let answer = answer.expect(201).has(json!({
            "user_id": senders[n].id(),
            "filename": format!("{n}.txt"),
            "original_filename": format!("{n}.txt"),
            "content_type": "text/plain",
            "file_size": n + 1,
            "file_hash": sha256(&content(n)),
            "description": format!("Number {n}"),
            "is_public": false,
        }));
        let file = answer.id();
        api.get(&format!("/uploads/{file}"), senders[n]).expect(200).has(answer.json());
        assert_eq!(api.download(senders[n], &file).expect(200).bytes, content(n));
        if has_extras() {
            let link = api.create_link(senders[n], &file, json!({"inline": true})).expect(201);
            let answer = api.open_link(link.json()["url"].as_str().expect("a path")).expect(200);
            let kinds = ["text/plain; charset=utf-8", "text/plain", "text/plain"];
            assert_eq!(answer.header("Content-Type"), kinds[n % 3]);
        }
        let event = format!(
            "audit_events WHERE action = 'file.upload' AND subject_id = '{file}' AND actor_id = '{}'
             AND request_id = '{}' AND host(address) = '127.0.0.1' AND details = '{{\"file_size\": {}}}'",
            senders[n].id(),
            request_id(n),
            n + 1
        );
        assert_eq!(api.database.count(&event), 1);
    }
    // Of ten files, nine were to be recorded while the first one was.
    let commits = api.database.value::<i64>("SELECT count(DISTINCT xmin::text) FROM files");
    assert!(commits < 10, "no two files have one commit");
    assert_eq!(api.file_stats(&users[0]), (3, 1 + 4 + 7));
    assert_eq!(api.database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), 5 + 45);
}

#[test]
fn each_of_those_that_come_together_has_its_own_quota_and_owner() {
    let settings = [PATIENT, ("CLOAKROOM_USER_FILE_QUOTA", "3")];
    let (api, [ann, bob, carl]) = Server::with_users(&settings, ["ann", "bob", "carl"]);
    let leave = || {
        let id = carl.id();
        api.database.run(&format!("UPDATE users SET is_active = false WHERE id = '{id}'"));
    };
    let senders = [&ann, &ann, &ann, &ann, &ann, &bob, &bob, &carl];
    let mut answers = together(&api, &senders, leave);
    let of_carl = answers.pop().expect("the last answer");
    of_carl.refused(401, "User not found or inactive");
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(tally(statuses[..5].to_vec()), [(201, 3), (507, 2)].into());
    assert_eq!(statuses[5..], [201, 201]);
    assert_eq!(api.data.contents().len(), 1 + 3 + 2);
}

#[test]
fn each_of_those_that_come_together_counts_for_the_half_of_young_accounts_if_it_is_theirs() {
    let limited = ("CLOAKROOM_REGISTRATIONS_PER_DAY", "50");
    let (api, [ann, bob, carl]) = Server::with_users(
        &[PATIENT, limited, ("CLOAKROOM_STORAGE_QUOTA", "240000")],
        ["ann", "bob", "carl"],
    );
    // As if their half had been used up after the requests had begun.
    let fill = || {
        api.database.run(
            "UPDATE users SET created_at = now() - interval '7 days' WHERE username IN ('carl', 'first');
             UPDATE users SET disk_usage = 120000 WHERE username = 'ann';
             UPDATE storage_shards SET disk_usage = 120000 WHERE shard = 0",
        );
    };
    let answers = together(&api, &[&ann, &carl, &bob, &carl, &ann], fill);
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [507, 201, 507, 201, 507]);
}

/// Statements that lock a row which the upload of a user needs.
fn locks(user: &str) -> [String; 3] {
    [
        format!("SELECT FROM users WHERE id = '{user}' FOR UPDATE"),
        format!("SELECT FROM own_changes WHERE user_id = '{user}' FOR UPDATE"),
        format!("UPDATE own_changes SET in_hour = 2 WHERE user_id = '{user}'"),
    ]
}

#[test]
fn nobody_waits_for_what_another_user_has_locked() {
    let (api, [ann, bob, first]) = Server::with_users(&[PATIENT], ["ann", "bob", "first"]);
    // A user's first upload is recorded alone.
    api.new_file(&ann, "a.txt", "a");
    api.new_file(&bob, "b.txt", "b");
    for lock in locks(ann.id()) {
        let before = api.data.contents().len();
        let table = api.database.begin("LOCK TABLE files IN EXCLUSIVE MODE");
        let lock = api.database.begin(&lock);
        thread::scope(|scope| {
            let alone = scope.spawn(|| api.upload(&first, "first.txt", "first"));
            api.database.wait_for_blocked_statement();
            let of_ann = scope.spawn(|| upload(&api, &ann, 1));
            let (api, bob) = (&api, &bob);
            let of_bob = [2, 3].map(|n| scope.spawn(move || upload(api, bob, n)));
            wait_for_batch(api, before + 3);
            table.roll_back();
            alone.join().expect("no panic").expect(201);
            for upload in of_bob {
                upload.join().expect("no panic").expect(201);
            }
            assert!(!of_ann.is_finished());
            lock.roll_back();
            of_ann.join().expect("no panic").expect(201);
        });
    }
}

#[test]
fn whether_they_were_recorded_is_unknown_if_their_connection_breaks() {
    let settings = [PATIENT, ("CLOAKROOM_DATABASE_POOL_SIZE", "20")];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    // So many that some of them are stored at nearly the same time, also on a slow disk.
    let users = [&ann, &bob].repeat(6);
    let answers = together(&api, &users, || {
        // The first statement that waits records one file alone, the second one all that came meanwhile.
        let is_batch = "wait_event_type = 'Lock' AND query LIKE '-- Records uploaded files%'
             AND query_start > (SELECT min(query_start) FROM pg_stat_activity WHERE datname = current_database()
                                AND wait_event_type = 'Lock' AND query LIKE '-- Records uploaded files%')";
        wait_until(|| api.database.connections(is_batch) >= 1);
        api.database.end_connections(is_batch);
    });
    let unknown: Vec<_> = answers.into_iter().filter(|answer| answer.status != 201).collect();
    assert!(unknown.len() >= 2, "no two of them were to be recorded together");
    for answer in unknown {
        let answer = answer.refused(503, "Service temporarily unavailable");
        answer.has(json!({"reason": "OUTCOME_UNKNOWN"}));
    }
    assert_eq!(api.data.contents().len(), 13, "they stay until a sweep has found no record");
}
