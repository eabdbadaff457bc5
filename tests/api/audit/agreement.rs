//! The audit log and the data agree: under parallel changes, when an event cannot be written, and after a crash.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

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

#[test]
fn an_event_is_written_with_its_change_or_neither_is() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let file = api.new_file(&ann, "a.txt", "text");
    let token = api.create_token(&ann, json!({"name": "a"})).expect(201).id();
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    let session = claims(&api.sign_in("ann").access)["sid"].as_str().expect("text").to_owned();
    let before = api.database.count("audit_events");
    api.database.run(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
         CREATE TRIGGER fail BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION fail()",
    );
    api.register("bob").expect(500);
    api.login("ann", PASSWORD).expect(500);
    api.update_me(&ann, json!({"name": "Ann"})).expect(500);
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(500);
    api.update_user(&root, ann.id(), json!({"role": "admin"})).expect(500);
    api.delete_user(&root, ann.id()).expect(500);
    api.upload(&ann, "b.txt", "text").expect(500);
    api.update_file(&ann, &file, json!({"filename": "c.txt"})).expect(500);
    api.create_link(&ann, &file, json!({})).expect(500);
    api.delete_link(&ann, &file, &link).expect(500);
    api.delete_file(&ann, &file).expect(500);
    api.export_full(&root).expect(500);
    api.end_session(&ann, &session).expect(500);
    api.end_user_sessions(&root, ann.id()).expect(500);
    api.create_token(&ann, json!({"name": "b"})).expect(500);
    api.delete_token(&ann, &token).expect(500);
    api.delete_user_tokens(&root, ann.id()).expect(500);
    api.delete_me(&ann, PASSWORD).expect(500);
    api.logout(&ann).expect(500);
    api.database.run("DROP TRIGGER fail ON audit_events");
    assert_eq!(api.database.count("audit_events"), before);
    assert_eq!(api.database.count("users"), 2);
    assert_eq!(api.database.count("files WHERE filename = 'a.txt'"), 1);
    assert_eq!(api.database.count("sessions WHERE ended_at IS NULL"), 3);
    assert_eq!(api.database.count(&format!("personal_tokens WHERE id = '{token}'")), 1);
    assert_eq!(api.database.count("personal_tokens"), 1);
    assert_eq!(api.database.count(&format!("file_links WHERE id = '{link}'")), 1);
    assert_eq!(api.database.count("file_links"), 1);
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
        let body =
            json!({"username": name, "email": format!("{name}@example.com"), "password": PASSWORD});
        let Ok(answer) = api.request("POST", "/auth/register").json(body).try_send() else {
            return;
        };
        let id = answer.json()["id"].as_str().map(str::to_owned);
        let login = json!({"username": name, "password": PASSWORD});
        let Ok(answer) = api.request("POST", "/auth/login").json(login).try_send() else { return };
        if answer.status != 200 {
            return;
        }
        let tokens = answer.tokens();
        for file in 0..2 {
            let form = file_form("a.txt", "text/plain", b"text").bytes();
            let Ok(answer) = api.upload_request(&tokens, form).try_send() else { return };
            let Some(id) = answer.json()["id"].as_str().map(str::to_owned) else { return };
            let delete = api.request("DELETE", &format!("/uploads/{id}")).by(&tokens);
            if file == 1 && delete.try_send().is_err() {
                return;
            }
        }
        let create = api.request("POST", "/auth/tokens").by(&tokens).json(json!({"name": "a"}));
        let Ok(answer) = create.try_send() else { return };
        let Some(token) = answer.json()["id"].as_str().map(str::to_owned) else { return };
        let delete = api.request("DELETE", &format!("/auth/tokens/{token}")).by(&tokens);
        if n % 3 == 0 && delete.try_send().is_err() {
            return;
        }
        let delete = api.request("DELETE", &format!("/users/{}", id.unwrap_or_default())).by(root);
        if n % 2 == 1 && delete.try_send().is_err() {
            return;
        }
    }
}

#[test]
fn after_a_kill_at_any_moment_the_log_and_the_data_agree() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let mut root = None;
    for round in 0..5_u64 {
        let api = Server::start_with(&database, &data, &[]);
        let root = root.get_or_insert_with(|| {
            let body =
                json!({"username": "root", "email": "root@example.com", "password": PASSWORD});
            api.register_with(body).expect(201);
            api.database.run("UPDATE users SET role = 'admin'");
            api.sign_in("root")
        });
        thread::scope(|scope| {
            for thread in 0..4 {
                let (api, root) = (&api, &*root);
                scope.spawn(move || change_things(api, root, thread, round as usize));
            }
            // Any moment will do: the checks hold at all of them.
            thread::sleep(Duration::from_millis(150 + 130 * round));
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
    assert!(database.count("audit_events WHERE action = 'file.upload'") > 5);
    assert!(database.count("audit_events WHERE action = 'user.delete'") > 0);
    assert!(database.count("audit_events WHERE action = 'auth.token_create'") > 0);
}
