//! Of one user's changes two run at once in a process. The others wait in the order in which they came, without a
//! connection, so that they hold up nobody else.

use std::thread;

use crate::harness::*;

/// The pool has six connections for changes.
const POOL: (&str, &str) = ("CLOAKROOM_DATABASE_POOL_SIZE", "8");
/// Keeps all changes of a user waiting until it is rolled back.
fn lock(api: &Server, user: &Tokens) -> OpenTransaction {
    api.database.begin(&format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", user.id()))
}

/// How many requests wait for the database without a connection.
fn waiting(api: &Server) -> usize {
    api.metric("cloakroom_pool_waiting").expect("the gauge") as usize
}

#[test]
fn changes_of_one_user_hold_up_nobody_elses() {
    let (api, [ann, bob]) = Server::with_users(&[POOL, PATIENT], ["ann", "bob"]);
    let root = api.sign_up_admin("root");
    let files: Vec<_> = (0..20).map(|n| api.new_file(&ann, &format!("{n}.txt"), "a")).collect();
    let of_bob = api.new_file(&bob, "b.txt", "b");
    let reset = api.reset_token("ann@example.com");
    let locked = lock(&api, &ann);
    let (api, ann, files, root) = (&api, &ann, &files, &root);
    thread::scope(|scope| {
        // Each kind of change that locks the user's row, by one request or many.
        let mut changes = vec![
            scope.spawn(|| api.update_me(ann, json!({"name": "Ann"}))),
            scope.spawn(|| api.login("ann", PASSWORD)),
            scope.spawn(|| api.upload(ann, "new.txt", "a")),
            scope.spawn(|| api.reset_password(&reset, NEW_PASSWORD)),
        ];
        if has_extras() {
            changes.push(scope.spawn(|| api.create_link(ann, &files[0], json!({}))));
            changes.push(scope.spawn(|| api.create_token(ann, json!({"name": "a"}))));
        }
        for file in files {
            changes
                .push(scope.spawn(move || api.update_file(ann, file, json!({"is_public": true}))));
            changes.push(scope.spawn(move || api.delete_file(ann, file)));
        }
        wait_until(|| waiting(api) == changes.len() - 2 && api.database.blocked_statements() == 2);
        // An administrator's own changes wait for the row too, and two of them at most.
        for name in ["A", "B", "C"] {
            let id = ann.id();
            changes.push(scope.spawn(move || api.update_user(root, id, json!({"name": name}))));
        }
        wait_until(|| waiting(api) == changes.len() - 4 && api.database.blocked_statements() == 4);
        api.update_file(&bob, &of_bob, json!({"is_public": true})).expect(200);
        api.upload(&bob, "c.txt", "c").expect(201);
        api.sign_in("bob");
        assert_eq!(waiting(api), changes.len() - 4, "nobody waited for them");
        locked.roll_back();
        for change in changes {
            let answer = change.join().expect("no panic");
            assert!(answer.status < 500, "{}", answer.status);
        }
    });
    assert_eq!(waiting(api), 0);
}

#[test]
fn changes_of_one_user_are_made_in_the_order_in_which_they_came() {
    const CHANGES: usize = 8;
    let (api, [ann]) = Server::with_users(&[POOL, PATIENT], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "a");
    // The change to the name `n` ends when its own lock is released.
    api.database.run(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock(NEW.filename::bigint); RETURN NEW; END $$;
         CREATE TRIGGER wait BEFORE UPDATE ON files FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let (api, ann, file) = (&api, &ann, &file);
    let lock = |n| api.database.begin(&format!("SELECT pg_advisory_xact_lock({n})"));
    let wanted = "SELECT string_agg(objid::text, '') FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    thread::scope(|scope| {
        let mut changes: Vec<_> = (0..CHANGES)
            .map(|n| {
                let (lock, name) = (lock(n), json!({"filename": n.to_string()}));
                let change = scope.spawn(move || api.update_file(ann, file, name));
                let blocked = || api.database.blocked_statements() as usize;
                wait_until(|| blocked() + waiting(api) == n + 1);
                (n.to_string(), lock, change)
            })
            .collect();
        while !changes.is_empty() {
            let wanted = eventually(|| api.database.value::<Option<String>>(wanted));
            // Which of two that run comes first is for the database to say.
            let place = changes.iter().take(2).position(|(name, ..)| *name == wanted);
            let (_, lock, change) = changes.remove(place.expect("one of the first two"));
            lock.roll_back();
            change.join().expect("no panic").expect(200);
        }
    });
}

#[test]
fn who_waits_too_long_is_told_to_come_again() {
    let (api, [ann]) =
        Server::with_users(&[POOL, ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")], ["ann"]);
    let _locked = lock(&api, &ann);
    // On a busy machine they may come one after the other, and then each has a permit once the one before it is late.
    let refused = eventually(|| {
        let answers = parallel(20, |n| api.update_me(&ann, json!({"name": format!("Ann {n}")})));
        let (refused, late): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.status == 503);
        late.into_iter().for_each(|answer| drop(answer.refused(504, "Request timed out")));
        (!refused.is_empty()).then_some(refused)
    });
    for answer in refused {
        let answer = answer.refused(503, "Service temporarily unavailable");
        assert!(!answer.header("Retry-After").is_empty());
    }
}
