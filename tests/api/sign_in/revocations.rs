//! Ending all sessions of a user takes the same time however many there are. `extras/ends.rs` has what ends,
//! `overtaken.rs` what waits for the user's row meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::harness::*;

const MANY: i64 = 200_000;
/// What a busy machine may add to the work for many sessions. Work on each of them takes seconds.
const MARGIN: Duration = Duration::from_millis(500);

/// Has the background thread never told of sessions that end together, so that their rows stay as they are.
pub fn keep_unmarked(database: &Database) {
    database.run(
        "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER dropped BEFORE INSERT ON ended_epochs FOR EACH ROW EXECUTE FUNCTION drop_it()",
    );
}

/// A way to end sessions of the sender, whether sessions are left beside the sender's, and its request. The text is a
/// token that resets the sender's password.
type End = (&'static str, bool, fn(&Server, &Tokens, &Tokens, &str) -> Answer);

const RESET: &str = "a reset of the password";
const DELETION: &str = "a deletion";
const ALL_SESSIONS: &str = "an end of all sessions";
const ENDS: [End; 9] = [
    ("logout of others", false, |api, _, user, _| api.logout_scope(user, "others")),
    ("logout", false, |api, _, user, _| api.logout(user)),
    ("logout here", true, |api, _, user, _| api.logout_scope(user, "local")),
    ("a change of the password", false, |api, _, user, _| {
        api.change_password(user, PASSWORD, NEW_PASSWORD)
    }),
    (RESET, false, |api, _, _, token| api.reset_password(token, NEW_PASSWORD)),
    (ALL_SESSIONS, false, |api, root, user, _| api.end_user_sessions(root, user.id())),
    ("another role", false, |api, root, user, _| {
        api.update_user(root, user.id(), json!({"role": "admin"}))
    }),
    ("a deactivation", false, |api, root, user, _| {
        api.update_user(root, user.id(), json!({"is_active": false}))
    }),
    (DELETION, false, |api, root, user, _| api.delete_user(root, user.id())),
];

#[test]
fn whatever_ends_sessions_takes_as_long_for_two_hundred_thousand_as_for_one() {
    let (api, [root, _, many]) = Server::with_users(&[], ["root", "few", "many"]);
    let of_users = "user_id IN (SELECT id FROM users WHERE role = 'user')";
    api.database.run(&format!("DELETE FROM sessions WHERE {of_users}"));
    api.database.insert_sessions(many.id(), MANY);
    // All ended sessions stay for the next step.
    keep_unmarked(&api.database);
    api.database.run("CREATE TABLE kept_users AS SELECT id, password_hash FROM users");
    let sample =
        "SELECT id::text FROM sessions WHERE user_agent = 'curl' ORDER BY created_at DESC LIMIT 10";
    let rows = api.database.client().query(sample, &[]).expect("rows");
    let sample =
        rows.iter().map(|row| tokens_of_session(many.id(), row.get(0), UNKNOWN_ID)[0].clone());
    let sample: Vec<String> = sample.collect();
    let mut times: BTreeMap<(&str, bool), Vec<Duration>> = BTreeMap::new();
    for (name, others_are_left, work) in ENDS {
        if name == ALL_SESSIONS && !has_extras() {
            continue;
        }
        // A deletion cannot be undone.
        for _ in 0..if name == DELETION { 1 } else { 3 } {
            for (is_many, username) in [(false, "few"), (true, "many")] {
                let mut measure = |name, work: &dyn Fn() -> Answer| {
                    let begin = Instant::now();
                    let answer = work();
                    times.entry((name, is_many)).or_default().push(begin.elapsed());
                    answer
                };
                let user =
                    measure("a sign-in", &|| api.login(username, PASSWORD)).expect(200).tokens();
                if has_extras() {
                    measure("a list", &|| api.list_sessions(&user)).expect(200);
                }
                let token = match name {
                    RESET => api.reset_token(&format!("{username}@example.com")),
                    _ => String::new(),
                };
                let answer = measure(name, &|| work(&api, &root, &user, &token)).case(name);
                assert!([200, 204].contains(&answer.status), "{answer:?}");
                for access in sample.iter().filter(|_| is_many) {
                    api.me(access).case(name).expect(if others_are_left { 200 } else { 401 });
                }
                // Makes the users and their sessions what they were before.
                api.database.run(
                    "UPDATE users SET session_epoch = 1, sessions_ended_at = NULL, is_active = true, role = 'user',
                                      password_hash = k.password_hash
                     FROM kept_users k WHERE k.id = users.id AND username <> 'root';
                     DELETE FROM sessions s USING users u
                     WHERE u.id = s.user_id AND u.username <> 'root' AND s.user_agent IS DISTINCT FROM 'curl'",
                );
            }
        }
    }
    for (name, _) in times.keys().filter(|(_, is_many)| *is_many) {
        // The shortest time of each step is the one without the delays of a busy machine.
        let shortest = |is_many| times[&(*name, is_many)].iter().min().expect("a time");
        let (one, many) = (*shortest(false), *shortest(true));
        // A deletion has one time only. Work on each of the sessions would take seconds.
        let margin = if *name == DELETION { 4 * MARGIN } else { MARGIN };
        assert!(many < 5 * one + margin, "{name}: {one:?} with one session, {many:?} with {MANY}");
    }
}
