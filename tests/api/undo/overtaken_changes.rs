//! Changes and deletions of a file that others overtake: their statements have begun, and wait for the owner's row,
//! while others delete, restore or change the file. A condition has failed only if one was sent and the file is there.

use std::thread;

use crate::harness::*;

/// A request about a file, which may be in the state of an `ETag` only.
type Change = fn(&Server, &Tokens, &str, &str) -> Answer;

const CHANGE: Change = |api, ann, id, _| api.update_file(ann, id, json!({"description": "new"}));
const DELETE: Change = |api, ann, id, _| api.delete_file(ann, id);
const PURGE: Change = |api, ann, id, _| api.delete_for_good(ann, id);
const RESTORE: Change =
    |api, ann, id, _| api.request("POST", &format!("/uploads/{id}/restore")).by(ann).send();
const CHANGE_IF: Change = |api, ann, id, tag| {
    let request = api.request("PUT", &format!("/uploads/{id}")).by(ann).header("If-Match", tag);
    request.json(json!({"description": "new"})).send()
};
const DELETE_IF: Change = |api, ann, id, tag| {
    api.request("DELETE", &format!("/uploads/{id}")).by(ann).header("If-Match", tag).send()
};
const PURGE_IF: Change = |api, ann, id, tag| {
    let path = format!("/uploads/{id}?permanently=true");
    api.request("DELETE", &path).by(ann).header("If-Match", tag).send()
};
const PURGE_IF_OTHER: Change = |api, ann, id, _| PURGE_IF(api, ann, id, "\"99\"");

/// Where the file is at first, what overtakes the request, the request, its status, and where the file is then: there,
/// deleted, or gone for good.
type Race = (&'static str, &'static [Change], Change, u16, &'static str);

const RACES: [Race; 20] = [
    ("there", &[DELETE], DELETE, 404, "deleted"),
    ("there", &[PURGE], DELETE, 404, "gone"),
    ("there", &[CHANGE], DELETE, 204, "deleted"),
    ("there", &[DELETE], PURGE, 204, "gone"),
    ("there", &[PURGE], PURGE, 404, "gone"),
    ("there", &[CHANGE], PURGE, 204, "gone"),
    ("there", &[DELETE, RESTORE], PURGE, 204, "gone"),
    ("deleted", &[RESTORE], PURGE, 204, "gone"),
    ("deleted", &[PURGE], PURGE, 404, "gone"),
    ("there", &[CHANGE], CHANGE, 200, "there"),
    ("there", &[DELETE], CHANGE, 404, "deleted"),
    ("there", &[PURGE], CHANGE, 404, "gone"),
    ("there", &[CHANGE], CHANGE_IF, 412, "there"),
    ("there", &[PURGE], CHANGE_IF, 404, "gone"),
    ("there", &[CHANGE], DELETE_IF, 412, "there"),
    ("there", &[PURGE], DELETE_IF, 404, "gone"),
    ("there", &[CHANGE], PURGE_IF, 412, "there"),
    ("deleted", &[PURGE], PURGE_IF_OTHER, 404, "gone"),
    ("deleted", &[RESTORE], PURGE_IF_OTHER, 412, "there"),
    ("deleted", &[RESTORE], PURGE_IF, 204, "gone"),
];

/// Where a file is.
fn place(api: &Server, id: &str) -> &'static str {
    let is_in = |table: &str| api.database.count(&format!("{table} WHERE id = '{id}'")) == 1;
    match (is_in("files"), is_in("deleted_files")) {
        (true, false) => "there",
        (false, true) => "deleted",
        (false, false) => "gone",
        (true, true) => "in two places",
    }
}

#[test]
fn what_overtakes_a_change_decides_its_outcome_and_is_never_taken_for_a_failed_condition() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let second = api.beside(&[]);
    let owner = format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", ann.id());
    for (n, (first, overtakers, change, status, last)) in RACES.into_iter().enumerate() {
        let file = api.upload(&ann, "a.txt", "a").expect(201);
        let (id, tag) = (file.id(), file.header("ETag"));
        if first == "deleted" {
            api.delete_file(&ann, &id).expect(204);
        }
        let lock = api.database.begin(&owner);
        thread::scope(|scope| {
            let mut waiting = Vec::new();
            for (m, step) in overtakers.iter().enumerate() {
                waiting.push(scope.spawn(|| step(&api, &ann, &id, tag)));
                wait_until(|| api.database.blocked_statements() == m as i64 + 1);
            }
            let changed = scope.spawn(|| change(&second, &ann, &id, tag));
            wait_until(|| api.database.blocked_statements() == overtakers.len() as i64 + 1);
            lock.roll_back();
            for overtaker in waiting {
                let answer = overtaker.join().expect("no panic").case(n);
                // A file that is restored may be gone again before it is read for the answer.
                assert!([200, 204, 404].contains(&answer.status), "{answer:?}");
            }
            changed.join().expect("no panic").case(n).expect(status);
        });
        assert_eq!(place(&api, &id), last, "{n}");
    }
}

#[test]
fn of_deletions_for_good_during_a_restoration_one_deletes_and_the_others_find_nothing() {
    let (api, [ann]) = Server::with_users(&[PATIENT], ["ann"]);
    let second = api.beside(&[]);
    let owner = format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", ann.id());
    for _ in 0..5 {
        let id = api.new_file(&ann, "a.txt", "a");
        api.delete_file(&ann, &id).expect(204);
        let lock = api.database.begin(&owner);
        thread::scope(|scope| {
            let restored = scope.spawn(|| RESTORE(&api, &ann, &id, ""));
            api.database.wait_for_blocked_statement();
            let purges =
                [&api, &second].map(|api| scope.spawn(|| PURGE(api, &ann, &id, "").status));
            wait_until(|| api.database.blocked_statements() == 3);
            lock.roll_back();
            let status = restored.join().expect("no panic").status;
            assert!([200, 404].contains(&status), "{status}");
            let mut statuses = purges.map(|purge| purge.join().expect("no panic"));
            statuses.sort_unstable();
            assert_eq!(statuses, [204, 404]);
        });
        assert_eq!(place(&api, &id), "gone");
    }
}
