//! How many events one user can cause: what is too much is counted, and nothing of somebody else is hidden.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::harness::*;

/// Events of this user that stand for one change, in the hour that has most of them.
fn most_in_an_hour(database: &Database, user: &Tokens) -> i64 {
    database.value(&format!(
        "SELECT coalesce(max(events), 0) FROM (
             SELECT count(*) AS events FROM audit_events WHERE actor_id = '{}' AND NOT details ? 'count'
             GROUP BY date_trunc('hour', at)
         ) hours",
        user.id()
    ))
}

/// Makes the user's next changes exceed the limit, also if an hour begins meanwhile.
fn exceed_limit(database: &Database, user: &Tokens) {
    database.run(&format!(
        "INSERT INTO own_changes VALUES ('{}', 'infinity', 100, 100)
         ON CONFLICT (user_id) DO UPDATE SET hour = 'infinity', in_hour = 100",
        user.id()
    ));
}

/// Ends the hour in which changes were counted, so that events are written for them.
fn end_hour(database: &Database) {
    database.run("UPDATE skipped_changes SET hour = hour - interval '1 hour'");
}

/// Changes the user's name so many times, each time to one that it never was.
fn rename(api: &Server, user: &Tokens, times: usize) {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    for _ in 0..times {
        let name = format!("Ann {}", NAMES.fetch_add(1, Ordering::Relaxed));
        api.update_me(user, json!({ "name": name })).expect(200);
    }
}

/// How many changes the events of this action stand for that have a number.
fn counted(api: &Server, root: &Tokens, user: &Tokens, action: &str) -> i64 {
    let events = api.all_events(root, &format!("actor_id={}&action={action}", user.id()));
    events.iter().filter_map(|event| event["details"]["count"].as_i64()).sum()
}

#[test]
fn a_hundred_changes_in_an_hour_are_events_and_the_others_one_event_when_the_hour_is_over() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    api.database.wait_unless_hour_lasts();
    rename(&api, &ann, 130);
    let own = api.all_events(&root, &format!("subject_id={}&action=user.update", ann.id())).len();
    // A registration, a sign-in, and 100 changes.
    assert!(most_in_an_hour(&api.database, &ann) <= 102);
    assert_eq!(api.database.count("audit_events WHERE details ? 'count'"), 0);
    end_hour(&api.database);
    wait_until(|| own as i64 + counted(&api, &root, &ann, "user.update") == 130);
    let event = &api.all_events(&root, "action=user.update&limit=1")[0];
    assert_eq!(event["details"]["count"], json!(130 - own));
    assert!(event["details"]["hour"].as_str().expect("a time").ends_with(":00:00.000000Z"));
    let fields = ["outcome", "actor_id", "subject_type", "subject_id", "request_id"];
    let expected = json!(["success", ann.id(), "user", ann.id(), null]);
    assert_eq!(json!(fields.map(|field| &event[field])), expected);
    assert_eq!(api.database.count("skipped_changes"), 0);
}

#[test]
fn a_thousand_changes_on_a_day_are_events_and_a_new_hour_brings_new_ones() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.wait_unless_hour_lasts();
    let events = || api.database.count("audit_events WHERE action = 'user.update'");
    exceed_limit(&api.database, &ann);
    rename(&api, &ann, 1);
    assert_eq!(events(), 0);
    let skipped = "SELECT sum(changes)::bigint FROM skipped_changes";
    // Sign-outs that end nothing are counted too.
    for _ in 0..3 {
        api.logout_scope(&ann, "others").expect(204);
    }
    assert_eq!(api.database.count("audit_events WHERE action = 'auth.logout'"), 0);
    assert_eq!(api.database.value::<i64>(skipped), 4);
    // The hundred changes become those of the hour before.
    let hour_before = "date_trunc('hour', now(), 'UTC') - interval '1 hour'";
    api.database.run(&format!("UPDATE own_changes SET hour = {hour_before}"));
    rename(&api, &ann, 2);
    assert_eq!(events(), 2);
    // Of 999 on a day that does not end during this test.
    api.database.run("UPDATE own_changes SET hour = 'infinity', in_hour = 50, on_day = 999");
    rename(&api, &ann, 3);
    assert_eq!(events(), 3);
    assert_eq!(api.database.value::<i64>(skipped), 6);
    // A day later.
    api.database.run("UPDATE own_changes SET hour = now() - interval '1 day'");
    rename(&api, &ann, 1);
    assert_eq!(events(), 4);
}

#[test]
fn changes_of_profile_files_tokens_sessions_and_second_factor_are_counted_and_nothing_else_is() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    api.database.wait_unless_hour_lasts();
    for user in [&root, &ann] {
        exceed_limit(&api.database, user);
    }
    let before = api.database.count("audit_events");
    let body = json!({"name": "Ann", "email": "ann2@example.com"});
    api.update_me(&ann, body).expect(200);
    let file = api.new_file(&ann, "a.txt", "one");
    api.update_file(&ann, &file, json!({"filename": "b.txt"})).expect(200);
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    api.delete_link(&ann, &file, &link).expect(204);
    api.delete_file(&ann, &file).expect(204);
    let token = api.create_token(&ann, json!({"name": "a"})).expect(201).id();
    api.delete_token(&ann, &token).expect(204);
    let factor = api.new_second_factor(&ann, PASSWORD);
    api.disable_second_factor(&ann, PASSWORD, &factor.recovery_codes[0]).expect(204);
    assert_eq!(api.database.count("audit_events"), before);
    end_hour(&api.database);
    let counted_ones = "user.update email.change file.upload file.update file.delete file.link_create file.link_delete \
                        auth.token_create auth.token_delete second_factor.enable second_factor.disable \
                        second_factor.recovery";
    for action in counted_ones.split(' ') {
        wait_until(|| counted(&api, &root, &ann, action) == 1);
    }
    // Whatever else the same users do has its event, and so has what administrators do to others.
    let before = api.database.count("audit_events");
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    let ann = api.login("ann", NEW_PASSWORD).expect(200).tokens();
    api.list_users(&ann, "").expect(403);
    let changes = json!({"name": "A", "email": "ann3@example.com", "is_active": false});
    api.update_user(&root, ann.id(), changes).expect(200);
    api.update_user(&root, root.id(), json!({"permissions": ["x"]})).expect(200);
    api.reset_second_factor(&root, ann.id()).expect(204);
    wait_until(|| api.database.count("audit_events") == before + 7);
    assert_eq!(api.database.count("skipped_changes"), 0);
}

#[test]
fn what_was_counted_is_written_after_a_restart_and_once_by_two_processes() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.database.wait_unless_hour_lasts();
    exceed_limit(&api.database, &ann);
    rename(&api, &ann, 7);
    let (database, data, _) = api.end(Signal::KILL);
    end_hour(&database);
    let _both = [(); 2].map(|()| Server::start_with(&database, &data, &[]));
    wait_until(|| database.count("skipped_changes") == 0);
    let counts =
        "SELECT string_agg(details->>'count', ',') FROM audit_events WHERE details ? 'count'";
    assert_eq!(database.value::<String>(counts), "7");
}

/// Also with two processes, whoever sends the requests.
#[test]
fn requests_to_reset_a_password_are_an_event_in_two_minutes_and_none_goes_uncounted() {
    let api = Server::start(&[]);
    let other = api.beside(&[]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let events = |user: &Tokens| {
        api.all_events(&root, &format!("action=password.reset_request&subject_id={}", user.id()))
    };
    let request = |server: &Server, name: &str| {
        let answer = server.request_reset(&format!("{name}@example.com")).expect(200);
        answer.header("X-Request-ID").to_owned()
    };
    let all_are_taken = || wait_until(|| api.database.count("password_reset_requests") == 0);
    let ids =
        parallel(8, |n| (0..25).map(|_| request([&api, &other][n % 2], "ann")).collect::<Vec<_>>());
    let of_root = request(&api, "root");
    all_are_taken();
    let first = events(&ann);
    assert_eq!((first.len(), &first[0]["details"]), (1, &json!({})));
    // They are one message too.
    let token = format!("password reset token of user {}", ann.id());
    api.database.wait_for_empty_outbox();
    wait_until(|| !api.database.logged(&token).is_empty());
    assert_eq!(api.database.logged(&token).len(), 1);
    let id = first[0]["request_id"].as_str().expect("an id").to_owned();
    assert!(ids.concat().contains(&id) && first[0]["address"].is_string(), "{first:?}");
    // Those of another account are events of their own.
    assert_eq!(events(&root)[0]["request_id"], json!(of_root));
    let end_two_minutes = || {
        let earlier = "event_at = event_at - interval '2 minutes'";
        api.database.run(&format!("UPDATE password_reset_counts SET {earlier}"));
    };
    end_two_minutes();
    wait_until(|| events(&ann).len() == 2);
    let counted = events(&ann)[0].clone();
    assert_eq!(counted["details"], json!({"count": 199}));
    assert_eq!((&counted["outcome"], &counted["actor_id"]), (&json!("success"), &json!(null)));
    // That one begins two minutes as well, after which one more is counted, and then nothing.
    request(&other, "ann");
    all_are_taken();
    assert_eq!(events(&ann).len(), 2);
    end_two_minutes();
    wait_until(|| events(&ann).len() == 3);
    assert_eq!(events(&ann)[0]["details"], json!({"count": 1}));
    end_two_minutes();
    wait_until(|| api.database.count("password_reset_counts") == 0);
    let next = request(&api, "ann");
    all_are_taken();
    let last = events(&ann);
    assert_eq!((last.len(), &last[0]["details"]), (4, &json!({})));
    assert_eq!(last[0]["request_id"], json!(next));
}

#[test]
fn one_user_who_changes_everything_at_once_is_counted_exactly_and_nothing_deadlocks() {
    let (api, [root, ann]) =
        Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "12")], ["root", "ann"]);
    let files = [(); 12].map(|()| api.new_file(&ann, "a.txt", "one"));
    parallel(12, |thread| {
        for round in 0..15 {
            let id = &files[thread];
            if thread % 4 == 0 {
                rename(&api, &ann, 1);
            }
            let name = format!("{thread}-{round}.txt");
            api.update_file(&ann, id, json!({ "filename": name })).expect(200);
            let token = api.create_token(&ann, json!({ "name": name })).expect(201).id();
            api.delete_token(&ann, &token).expect(204);
            let other = api.new_file(&ann, &name, "two");
            api.delete_file(&ann, &other).expect(204);
        }
    });
    assert!(most_in_an_hour(&api.database, &ann) <= 102);
    end_hour(&api.database);
    wait_until(|| api.database.count("skipped_changes") == 0);
    let number = |action: &str| {
        let own = format!("audit_events WHERE action = '{action}' AND NOT details ? 'count'");
        api.database.count(&own) + counted(&api, &root, &ann, action)
    };
    for (action, expected) in [
        ("file.upload", 192),
        ("file.update", 180),
        ("file.delete", 180),
        ("auth.token_create", 180),
        ("auth.token_delete", 180),
        ("user.update", 45),
    ] {
        assert_eq!(number(action), expected, "{action}");
    }
    assert!(!api.log().contains("deadlock"), "{}", api.log());
}

#[test]
fn files_that_a_user_deletes_during_a_backup_do_not_stop_the_sweep() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let files: Vec<_> = (0..30).map(|n| api.new_file(&ann, "a.txt", &n.to_string())).collect();
    exceed_limit(&api.database, &ann);
    let lock = "SELECT pg_advisory_xact_lock(hashtext('cloakroom: removal of contents'))";
    let backup = api.database.begin(lock);
    for file in &files {
        api.delete_for_good(&ann, file).expect(204);
        make_older(&api.data.content(file), 2);
    }
    assert_eq!(api.collect_garbage(), swept(0, 0));
    assert_eq!(api.data.contents().len(), 30);
    backup.roll_back();
    wait_until(|| api.data.contents().is_empty());
}

#[test]
fn a_flood_of_one_kind_of_refusal_does_not_hide_another_kind() {
    let (api, [mia]) = Server::with_users(&[], ["mia"]);
    let stop = AtomicBool::new(false);
    let ids: Vec<_> = thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    api.list_users(&mia, "").expect(403);
                }
            });
        }
        let flood = "audit_events WHERE action = 'access.denied' AND details ? 'count'";
        wait_until(|| api.database.count(flood) > 0);
        let failed = |_| {
            let answer = api.login("mia", "wrong").expect(401);
            answer.header("X-Request-ID").to_owned()
        };
        (0..20).map(failed).collect()
    });
    for id in ids {
        let event = format!("audit_events WHERE action = 'auth.login' AND request_id = '{id}'");
        wait_until(|| api.database.count(&event) == 1);
    }
}
