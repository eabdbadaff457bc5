//! The audit log and the data agree: under parallel changes, when an event cannot be written, and after a crash.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn parallel_changes_of_one_account_are_an_unbroken_chain_of_events() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let ann = api.register("ann").expect(201).id();
    parallel(20, |i| {
        let role = if i % 2 == 0 { "admin" } else { "user" };
        api.update_user(&root, &ann, json!({"role": role, "is_active": i % 3 == 0})).expect(200);
    });
    let mut events = api.all_events(&root, &format!("subject_id={ann}&action=user.update"));
    events.reverse();
    let mut state = json!({"role": "user", "is_active": true});
    for event in &events {
        assert_eq!(event["details"]["old"], state, "{events:?}");
        state = event["details"]["new"].clone();
    }
    let last = api.show_user(&root, &ann).expect(200);
    last.has(state);
    assert!(events.len() > 1);
}

/// What requests change: one row for each account, session, token, file and link.
const STATE: &str = "SELECT string_agg(row, '; ' ORDER BY row) FROM (
    SELECT concat_ws(' ', id, username, name, role, is_deleted, password_hash) AS row FROM users
    UNION ALL SELECT concat_ws(' ', 'session', id, ended_at) FROM sessions
    UNION ALL SELECT 'token ' || id FROM personal_tokens
    UNION ALL SELECT concat_ws(' ', 'file', id, filename) FROM files
    UNION ALL SELECT 'link ' || id FROM file_links
    UNION ALL SELECT 'event ' || id FROM audit_events) rows";

#[test]
fn an_event_is_written_with_its_change_or_neither_is() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let token = api.create_token(&ann, json!({"name": "a"})).expect(201).id();
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    let several = api.post("/links", &ann, json!({"files": [file]})).expect(201).id();
    let session = api.sign_in("ann").session();
    let before: String = api.database.value(STATE);
    api.database.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
         CREATE TRIGGER fail BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    for answer in [
        api.register("bob"),
        api.login("ann", PASSWORD),
        api.update_me(&ann, json!({"name": "Ann"})),
        api.change_password(&ann, PASSWORD, NEW_PASSWORD),
        api.update_user(&root, ann.id(), json!({"role": "admin"})),
        api.delete_user(&root, ann.id()),
        api.upload(&ann, "b.txt", "text"),
        api.update_file(&ann, &file, json!({"filename": "c.txt"})),
        api.create_link(&ann, &file, json!({})),
        api.delete_link(&ann, &file, &link),
        api.post("/links", &ann, json!({"folder": "/"})),
        api.delete(&format!("/links/{several}"), &ann),
        api.delete_file(&ann, &file),
        api.export_full(&root),
        api.end_session(&ann, &session),
        api.end_user_sessions(&root, ann.id()),
        api.create_token(&ann, json!({"name": "b"})),
        api.delete_token(&ann, &token),
        api.delete_user_tokens(&root, ann.id()),
        api.delete_me(&ann, PASSWORD),
        api.logout(&ann),
    ] {
        answer.expect(500);
    }
    assert_eq!(api.database.value::<String>(STATE), before);
    api.database.run("DROP TRIGGER fail ON audit_events");
    api.me(&ann).expect(200).has(json!({"name": null, "role": "user"}));
    api.login("ann", PASSWORD).expect(200);
}

/// What the log and the data disagree about: each query must count nothing.
const DISAGREEMENTS: [&str; 8] = [
    "users u WHERE NOT EXISTS (SELECT FROM audit_events e
     WHERE e.subject_id = u.id AND e.action IN ('auth.register', 'user.create', 'admin.create'))",
    "users u WHERE is_deleted IS DISTINCT FROM EXISTS (SELECT FROM audit_events e
     WHERE e.subject_id = u.id AND e.action = 'user.delete' AND e.outcome = 'success')",
    "audit_events e WHERE subject_type = 'user' AND NOT EXISTS (SELECT FROM users u WHERE u.id = e.subject_id)",
    "files f WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.subject_id = f.id AND e.action = 'file.upload')",
    "audit_events e WHERE action = 'file.upload' AND NOT EXISTS (SELECT FROM files f WHERE f.id = e.subject_id)
     AND NOT EXISTS (SELECT FROM audit_events d WHERE d.subject_id = e.subject_id AND d.action = 'file.delete')
     AND NOT EXISTS (SELECT FROM users u WHERE u.id = e.actor_id AND u.is_deleted)",
    "(SELECT details->>'session_id' AS id FROM audit_events WHERE details ? 'session_id') e
     FULL JOIN sessions s ON s.id::text = e.id WHERE s.id IS NULL OR e.id IS NULL",
    "personal_tokens t WHERE NOT EXISTS (SELECT FROM audit_events e
     WHERE e.subject_id = t.id AND e.action = 'auth.token_create')",
    "audit_events e WHERE action = 'auth.token_create'
     AND EXISTS (SELECT FROM personal_tokens t WHERE t.id = e.subject_id)
         = EXISTS (SELECT FROM audit_events d WHERE d.subject_id = e.subject_id AND d.action = 'auth.token_delete')
     AND NOT EXISTS (SELECT FROM users u WHERE u.id = e.actor_id AND u.is_deleted)",
];

/// Registers, signs in, uploads and deletes until the service is gone.
fn change_things(api: &Server, root: &Tokens, thread: usize, round: usize) {
    for n in 0.. {
        let name = format!("u{round}_{thread}_{n}");
        if change_account(api, root, &name, n).is_none() {
            return;
        }
    }
}

/// `None` once the service is gone, or too slow.
fn change_account(api: &Server, root: &Tokens, name: &str, n: usize) -> Option<()> {
    let post = |path: &str, body| api.request("POST", path).json(body);
    let delete = |path: String, by: &Tokens| api.request("DELETE", &path).by(by).try_send().ok();
    let email = format!("{name}@example.com");
    let body = json!({"username": name, "email": email, "password": PASSWORD});
    let made = |request: Request| {
        let answer = request.try_send().ok()?;
        (answer.status == 201).then(|| answer.id())
    };
    let user = made(post("/auth/register", body))?;
    let login = json!({"username": name, "password": PASSWORD});
    let answer = post("/auth/login", login).try_send().ok()?;
    let tokens = (answer.status == 200).then(|| answer.tokens())?;
    for file in 0..2 {
        let form = file_form("a.txt", "text/plain", b"text").bytes();
        let id = made(api.upload_request(&tokens, form))?;
        if file == 1 {
            delete(format!("/uploads/{id}"), &tokens)?;
        }
    }
    let token = made(post("/auth/tokens", json!({"name": "a"})).by(&tokens))?;
    if n.is_multiple_of(3) {
        delete(format!("/auth/tokens/{token}"), &tokens)?;
    }
    if n % 2 == 1 {
        delete(format!("/users/{user}"), root)?;
    }
    Some(())
}

#[test]
fn after_a_kill_at_any_moment_the_log_and_the_data_agree() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let happened = || {
        let most = [("file.upload", 5), ("user.delete", 0), ("auth.token_create", 0)];
        let events = |action| database.count(&format!("audit_events WHERE action = '{action}'"));
        most.into_iter().all(|(action, number)| events(action) > number)
    };
    let mut root = None;
    for round in 0..5_u64 {
        let api = Server::start_with(&database, &data, &[]);
        let root = root.get_or_insert_with(|| api.sign_up_admin("root"));
        thread::scope(|scope| {
            for thread in 0..4 {
                let (api, root) = (&api, &*root);
                scope.spawn(move || change_things(api, root, thread, round as usize));
            }
            // Any moment will do, once something of each kind has happened: the checks hold at all of them.
            let begin = Instant::now();
            while !happened() && begin.elapsed() < Duration::from_secs(30) {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(Duration::from_millis(50 + 130 * round));
            api.signal(Signal::KILL);
        });
        drop(api);
        // What the killed process had sent may still be running.
        let running = "pg_stat_activity WHERE datname = current_database() AND application_name = 'cloakroom'";
        wait_until(|| database.count(running) == 0);
        for disagreement in DISAGREEMENTS {
            assert_eq!(database.count(disagreement), 0, "round {round}: {disagreement}");
        }
    }
    assert!(happened());
}
