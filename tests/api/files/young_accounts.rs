//! What accounts younger than seven days that registered themselves may store together, where registrations are
//! limited: half of the service's quota, however many of them there are. Each of their files counts as 16 KiB at least,
//! and its description counts too.

use std::thread;

use super::hostile_uploads::answer_to;
use super::uploads_under_way::AS_OF_A_BACKUP;
use crate::accounts::totals::differences;
use crate::harness::*;

/// Registrations are limited, which the tests on this host are not.
const LIMITED: (&str, &str) = ("CLOAKROOM_REGISTRATIONS_PER_DAY", "50");
const QUOTA: (&str, &str) = ("CLOAKROOM_STORAGE_QUOTA", "200000");
/// The least that a file counts.
const LEAST: usize = 16 * 1024;

fn upload(api: &Server, user: &Tokens, size: usize) -> Answer {
    api.upload(user, "a.txt", vec![b'x'; size])
}

#[track_caller]
fn refused(answer: Answer) {
    let answer = answer.refused(507, "Storage quota exceeded");
    answer.has(json!({"error_code": "STORAGE_QUOTA_EXCEEDED", "reason": "STORAGE_FULL"}));
}

fn set_age(api: &Server, user: &str, age: &str) {
    api.database.run(&format!(
        "UPDATE users SET created_at = now() - interval '{age}' WHERE username = '{user}'"
    ));
}

#[test]
fn young_accounts_that_registered_themselves_share_half_of_the_quota_and_others_the_whole() {
    let (api, [ann, bob, dora]) = Server::with_users(&[LIMITED, QUOTA], ["ann", "bob", "dora"]);
    set_age(&api, "dora", "7 days");
    let root = api.sign_up_admin("root");
    let made = json!({"email": "carl@example.com", "name": "Carl", "password": PASSWORD});
    api.create_user(&root, made).expect(201);
    let carl = api.sign_in("carl@example.com");
    let by_address = json!({"email": "emil@example.com", "password": PASSWORD});
    let emil = api.register_with(by_address).expect(201).tokens();

    upload(&api, &dora, 80_000).expect(201);
    // More than half is used then, of which young accounts have less.
    upload(&api, &ann, 60_000).expect(201);
    upload(&api, &bob, 40_000 - LEAST).expect(201);
    refused(upload(&api, &emil, LEAST + 1));
    upload(&api, &emil, 1).expect(201);
    for full in [&ann, &bob, &emil] {
        refused(upload(&api, full, 1));
    }
    // A link from a mail settles an account, but the mailbox may be a stranger's too.
    api.reset_password(&api.reset_token("ann@example.com"), PASSWORD).expect(200);
    let ann = api.sign_in("ann");
    refused(upload(&api, &ann, 1));
    for other in [&carl, &dora] {
        upload(&api, other, 100).expect(201);
    }
    // An account is young no longer, and neither it nor its files count then.
    set_age(&api, "ann", "7 days");
    upload(&api, &ann, 100).expect(201);
    upload(&api, &bob, 1).expect(201);
    // The quota of the service holds for everybody.
    refused(upload(&api, &carl, 60_000));
}

#[test]
fn parallel_uploads_of_many_young_accounts_leave_half_of_the_quota_to_others() {
    // Files of this size wait for each other, so the half is exact.
    let api = Server::start(&[LIMITED, ("CLOAKROOM_STORAGE_QUOTA", "240000")]);
    let users: Vec<_> = (0..4).map(|i| api.sign_up(&format!("user{i}"))).collect();
    let statuses = parallel(24, |i| upload(&api, &users[i % 4], 20_000).status);
    assert_eq!(tally(statuses), [(201, 6), (507, 18)].into());
    set_age(&api, "user0", "7 days");
    let statuses = parallel(8, |_| upload(&api, &users[0], 20_000).status);
    assert_eq!(tally(statuses), [(201, 6), (507, 2)].into());
}

#[test]
fn an_account_that_create_admin_takes_over_is_the_operators() {
    let (api, [ann, _]) = Server::with_users(&[LIMITED, QUOTA], ["ann", "bob"]);
    api.database.insert_files(ann.id(), &[100_000]);
    api.create_admin("bob@example.com", NEW_PASSWORD);
    let bob = api.login("bob", NEW_PASSWORD).expect(200).tokens();
    upload(&api, &bob, 1).expect(201);
    refused(upload(&api, &ann, 1));
}

#[test]
fn without_a_limit_of_registrations_young_accounts_fill_the_whole_quota() {
    let (api, [ann, bob]) = Server::with_users(&[QUOTA], ["ann", "bob"]);
    upload(&api, &ann, 100_000).expect(201);
    upload(&api, &bob, 100_000).expect(201);
    refused(upload(&api, &ann, 1));
}

#[test]
fn a_young_account_is_told_before_the_body_is_sent_that_their_half_is_used_up() {
    const WAITING: &str = "Expect: 100-continue\r\nContent-Length: 500";
    let (api, [ann, bob, dora]) = Server::with_users(
        &[LIMITED, ("CLOAKROOM_STORAGE_QUOTA", "2000000")],
        ["ann", "bob", "dora"],
    );
    set_age(&api, "dora", "8 days");
    api.database.insert_files(ann.id(), &[700_000, 300_000]);
    for (user, status) in [(&ann, 507), (&bob, 507), (&dora, 100)] {
        assert_eq!(answer_to(&api, user, WAITING, b"").status, status);
    }
    // What is left bounds the draft.
    api.database.run("DELETE FROM files WHERE file_size = 300000");
    wait_until(|| api.database.count("deleted_contents") == 0);
    let beginning = file_form("a.txt", "text/plain", &[b'x'; 400_000]).bytes();
    assert_eq!(answer_to(&api, &bob, "Content-Length: 900000", &beginning).status, 507);
    upload(&api, &bob, 300_000).expect(201);
}

#[test]
fn the_half_of_young_accounts_is_compared_again_when_a_file_is_recorded() {
    let (api, [ann, bob, dora]) =
        Server::with_users(&[LIMITED, QUOTA, PATIENT], ["ann", "bob", "dora"]);
    set_age(&api, "dora", "8 days");
    for (user, status) in [(&ann, 507), (&dora, 201)] {
        let id = user.id();
        let lock = api.database.begin(&format!("SELECT FROM users WHERE id = '{id}' FOR UPDATE"));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| upload(&api, user, 1000));
            api.database.wait_for_blocked_statement();
            let used: i64 =
                api.database.value("SELECT coalesce(sum(file_size), 0)::bigint FROM files");
            api.database.insert_files(bob.id(), &[99_500 - used]);
            lock.roll_back();
            assert_eq!(waiting.join().expect("no panic").status, status);
        });
    }
    assert_eq!(api.data.contents().len(), 1);
}

#[test]
fn all_that_young_accounts_have_on_the_disk_counts_with_its_descriptions() {
    // Their half has room for ten of the smallest files.
    let quota = (2 * 10 * LEAST).to_string();
    let settings = [LIMITED, ("CLOAKROOM_STORAGE_QUOTA", &quota)];
    let (api, [ann, bob, root]) = Server::with_users(&settings, ["ann", "bob", "root"]);
    let empty = |user| upload(&api, user, 0);
    // The longest description takes as much as the file.
    let described = file_form("a.txt", "text/plain", b"").field("description", &"𝄞".repeat(4096));
    let mut files = vec![api.upload_form(&ann, described).expect(201).id()];
    files.extend((0..8).map(|_| empty(&bob).expect(201).id()));
    refused(empty(&ann));
    // Another description counts in place of the former.
    api.update_file(&ann, &files[0], json!({"description": "short"})).expect(200);
    refused(empty(&ann));
    api.update_file(&ann, &files[0], json!({"description": ""})).expect(200);
    empty(&ann).expect(201);
    refused(empty(&ann));
    // So do deleted files, and when one is restored, it counts as before.
    if has_extras() {
        api.delete_file(&ann, &files[0]).expect(204);
        refused(empty(&ann));
        api.post(&format!("/uploads/{}/restore", files[0]), &ann, json!({})).expect(200);
    }
    // And contents, while they wait for their removal, also those of a deleted account.
    let backup = api.database.begin(AS_OF_A_BACKUP);
    api.delete_for_good(&ann, &files[0]).expect(204);
    api.delete_user(&root, bob.id()).expect(204);
    wait_until(|| api.database.count("deleted_contents") == 9);
    refused(empty(&ann));
    backup.roll_back();
    wait_until(|| api.database.count("deleted_contents") == 0);
    for _ in 0..9 {
        empty(&ann).expect(201);
    }
    refused(empty(&ann));
    assert_eq!(differences(&api.database), []);
}
