//! Ending all sessions of a user takes the same time however many there are, and ends the right ones whatever waits for
//! the user's row.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::*;

const MANY: i64 = 200_000;
/// What a busy machine may add to the work for many sessions. Work on each of them takes seconds.
const MARGIN: Duration = Duration::from_millis(500);

fn session_id(tokens: &Tokens) -> String {
    claims(&tokens.access)["sid"].as_str().expect("a session").to_owned()
}

/// Has the background thread never told of sessions that end together, so that their rows stay as they are.
fn keep_unmarked(database: &Database) {
    database.run(
        "CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER dropped BEFORE INSERT ON ended_epochs FOR EACH ROW EXECUTE FUNCTION drop_it()",
    );
}

/// A service, an administrator, and two users: one has no session, the other one very many.
struct World {
    api: Server,
    root: Tokens,
    few: Tokens,
    many: Tokens,
    /// Access and refresh tokens of some of the many sessions.
    some: Vec<[String; 2]>,
}

impl World {
    fn start() -> World {
        let api = Server::start(&[]);
        let (root, few, many) =
            (api.sign_up_admin("root"), api.sign_up("few"), api.sign_up("many"));
        api.database.run(
            "DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE role = 'user')",
        );
        api.database.insert_sessions(many.id(), MANY);
        // All ended sessions stay for the next step.
        keep_unmarked(&api.database);
        api.database.run("CREATE TABLE kept_users AS SELECT id, password_hash FROM users");
        let sample = "SELECT id::text, refresh_id::text FROM sessions WHERE user_agent = 'curl'
                      ORDER BY created_at DESC LIMIT 10";
        let rows = api.database.client().query(sample, &[]).expect("rows");
        let some =
            rows.iter().map(|row| tokens_of_session(many.id(), row.get(0), row.get(1))).collect();
        World { api, root, few, many, some }
    }

    /// Makes the users and their sessions what they were before something was ended.
    fn restore(&self) {
        self.api.database.run(
            "UPDATE users SET session_epoch = 1, sessions_ended_at = NULL, is_active = true, role = 'user',
                              password_hash = k.password_hash
             FROM kept_users k WHERE k.id = users.id AND username <> 'root';
             DELETE FROM sessions s USING users u
             WHERE u.id = s.user_id AND u.username <> 'root' AND s.user_agent IS DISTINCT FROM 'curl'",
        );
    }

    /// Checks that the sample of the many sessions is accepted, or that none of it is.
    #[track_caller]
    fn expect_sample(&self, is_live: bool, message: &str) {
        for [access, refresh] in &self.some {
            if is_live {
                self.api.me(access).expect(200);
            } else {
                self.api.me(access).refused(401, message);
                self.api.refresh(refresh).refused(401, message);
            }
        }
    }
}

/// One way to end sessions, and what it leaves of them.
struct End {
    name: &'static str,
    /// Ends sessions of the sender; the text is a token that resets the sender's password.
    work: fn(&World, &Tokens, &str) -> Answer,
    status: u16,
    /// Whether the session of the request goes on, and whether the others do.
    own: bool,
    others: bool,
    message: &'static str,
}

impl End {
    /// One that ends all sessions.
    fn all(name: &'static str, work: fn(&World, &Tokens, &str) -> Answer, status: u16) -> End {
        End { name, work, status, own: false, others: false, message: INVALID }
    }

    /// One after which the account cannot be used.
    fn account(name: &'static str, work: fn(&World, &Tokens, &str) -> Answer, status: u16) -> End {
        End { message: "User not found or inactive", ..End::all(name, work, status) }
    }
}

const INVALID: &str = "Invalid token";
const RESET: &str = "a reset of the password";
const DELETION: &str = "a deletion";

fn ends() -> [End; 9] {
    [
        End {
            own: true,
            ..End::all("logout of others", |w, user, _| w.api.logout_scope(user, "others"), 204)
        },
        End::all("logout", |w, user, _| w.api.logout(user), 204),
        End {
            others: true,
            ..End::all("logout here", |w, user, _| w.api.logout_scope(user, "local"), 204)
        },
        End {
            own: true,
            ..End::all(
                "a change of the password",
                |w, user, _| w.api.change_password(user, PASSWORD, NEW_PASSWORD),
                200,
            )
        },
        End::all(RESET, |w, _, token| w.api.reset_password(token, NEW_PASSWORD), 200),
        End::all(
            "an administrator who ends all sessions",
            |w, user, _| w.api.end_user_sessions(&w.root, user.id()),
            204,
        ),
        End::all(
            "another role",
            |w, user, _| w.api.update_user(&w.root, user.id(), json!({"role": "admin"})),
            200,
        ),
        End::account(
            "a deactivation",
            |w, user, _| w.api.update_user(&w.root, user.id(), json!({"is_active": false})),
            200,
        ),
        End::account(DELETION, |w, user, _| w.api.delete_user(&w.root, user.id()), 204),
    ]
}

/// What each step took with few sessions, and with many.
#[derive(Default)]
struct Times(BTreeMap<(&'static str, bool), Vec<Duration>>);

impl Times {
    fn measure<T>(&mut self, name: &'static str, is_many: bool, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.0.entry((name, is_many)).or_default().push(begin.elapsed());
        result
    }

    /// The shortest time of each step is the one without the delays of a busy machine.
    fn expect_the_same(&self) {
        for (name, is_many) in self.0.keys().filter(|(_, is_many)| *is_many) {
            let shortest = |is_many| self.0[&(*name, is_many)].iter().min().expect("a time");
            let (one, many) = (shortest(false), shortest(*is_many));
            println!("{name}: {one:?} with one session, {many:?} with {MANY}");
            assert!(
                *many < 2 * *one + MARGIN,
                "{name}: {one:?} with one session, {many:?} with {MANY}"
            );
        }
    }
}

#[test]
fn whatever_ends_sessions_takes_as_long_for_two_hundred_thousand_as_for_one() {
    let world = World::start();
    let mut times = Times::default();
    for end in ends() {
        // A deletion cannot be undone.
        for round in 0..if end.name == DELETION { 1 } else { 3 } {
            for is_many in [false, true] {
                end_sessions(&world, &end, round == 0, is_many, &mut times);
            }
        }
    }
    times.expect_the_same();
}

/// Signs a user in and ends sessions. For the one with many, the first time, checks which have ended.
fn end_sessions(world: &World, end: &End, is_first: bool, is_many: bool, times: &mut Times) {
    let End { name, work, status, own, others, message } = *end;
    let (user, username) = if is_many { (&world.many, "many") } else { (&world.few, "few") };
    let tokens = times.measure("a sign-in", is_many, || world.api.sign_in(username));
    times.measure("a list", is_many, || world.api.list_sessions(&tokens).expect(200));
    let reset_token = match name {
        RESET => world.api.reset_token(&format!("{username}@example.com")),
        _ => String::new(),
    };
    let is_checked = is_many && is_first;
    if is_checked {
        world.expect_sample(true, "");
    }
    let answer = times.measure(name, is_many, || work(world, &tokens, &reset_token));
    answer.case(name).expect(status);
    if is_checked {
        world.expect_sample(others, message);
        world.api.me(&tokens).case(name).expect(if own { 200 } else { 401 });
        let left = world.api.database.live_sessions(user.id());
        assert_eq!((left > 0, left > 1), (own || others, others), "{name}: {left} are left");
    }
    if name != DELETION {
        world.restore();
    }
}

#[test]
fn a_sign_in_that_waited_for_an_end_of_all_sessions_is_not_ended_by_it() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let end = api.database.begin(&format!(
        "UPDATE users SET sessions_ended_at = now() WHERE id = '{0}'; SELECT end_sessions('{0}')",
        ann.id()
    ));
    thread::scope(|scope| {
        let sign_in = scope.spawn(|| api.sign_in("ann"));
        api.database.wait_for_blocked_statement();
        end.commit();
        let again = sign_in.join().expect("no panic");
        api.me(&again).expect(200);
        api.refresh(&again.refresh).expect(200);
        api.me(&ann).refused(401, INVALID);
    });
}

#[test]
fn an_end_of_all_sessions_that_waited_for_a_sign_in_ends_it_too() {
    let api = Server::start(&[]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let ends: [&(dyn Fn(&Tokens) -> Answer + Sync); 4] = [
        &|_| api.end_user_sessions(&root, ann.id()),
        &|tokens| api.logout(tokens),
        &|tokens| api.logout_scope(tokens, "others"),
        &|tokens| api.change_password(tokens, PASSWORD, NEW_PASSWORD),
    ];
    for (n, end) in ends.iter().enumerate() {
        let (session, own) = (uuid(n as u32), api.sign_in("ann"));
        let sign_in = api.database.begin(&format!(
            "UPDATE users SET last_login = now() WHERE id = '{0}';
             INSERT INTO sessions (id, user_id, refresh_id, expires_at, epoch)
             SELECT '{session}', id, '{session}', now() + interval '1 day', session_epoch FROM users WHERE id = '{0}'",
            ann.id()
        ));
        thread::scope(|scope| {
            let end = scope.spawn(|| end(&own).status);
            api.database.wait_for_blocked_statement();
            sign_in.commit();
            assert!(matches!(end.join().expect("no panic"), 200 | 204));
        });
        for token in tokens_of_session(ann.id(), &session, &session) {
            let answer = if claims(&token)["type"] == "access" {
                api.me(&token)
            } else {
                api.refresh(&token)
            };
            answer.case(n).refused(401, INVALID);
        }
    }
}

#[test]
fn a_sign_in_with_the_password_of_before_a_change_that_it_waited_for_is_refused() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let change = api.database.begin(&format!(
        "UPDATE users SET password_hash = '-', credentials_version = credentials_version + 1 WHERE id = '{0}';
         SELECT end_sessions('{0}')",
        ann.id()
    ));
    thread::scope(|scope| {
        let sign_in = scope.spawn(|| api.login("ann", PASSWORD));
        api.database.wait_for_blocked_statement();
        change.commit();
        sign_in.join().expect("no panic").refused(401, "Invalid username or password");
    });
    assert_eq!(api.database.live_sessions(ann.id()), 0);
}

#[test]
fn a_session_that_is_kept_stays_live_whatever_waited_for_that() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let kept = session_id(&ann);
    let mut tokens = ann.clone();
    for step in ["a refresh", "another logout of others", "a change of the password"] {
        let other = api.sign_in("ann");
        let end = api.database.begin(&format!("SELECT end_sessions('{}', '{kept}')", ann.id()));
        let answer = thread::scope(|scope| {
            let waiting = scope.spawn(|| match step {
                "a refresh" => api.refresh(&tokens.refresh).case(step).expect(200),
                "another logout of others" => {
                    api.logout_scope(&tokens, "others").case(step).expect(204)
                }
                _ => api.change_password(&tokens, PASSWORD, NEW_PASSWORD).case(step).expect(200),
            });
            api.database.wait_for_blocked_statement();
            end.commit();
            waiting.join().expect("no panic")
        });
        if step == "a refresh" {
            tokens = answer.tokens();
        }
        api.me(&tokens).case(step).expect(200);
        api.me(&other).case(step).refused(401, INVALID);
    }
    api.refresh(&tokens.refresh).expect(200);
    assert_eq!(api.database.live_sessions(ann.id()), 1);
}

#[test]
fn a_session_that_has_ended_is_not_kept_by_a_request_that_it_sent_before() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for scope in ["others", "the password"] {
        let tokens = api.sign_in("ann");
        let end = api.database.begin(&format!("SELECT end_sessions('{}')", ann.id()));
        thread::scope(|threads| {
            let waiting = threads.spawn(|| match scope {
                "others" => api.logout_scope(&tokens, scope).status,
                _ => api.change_password(&tokens, PASSWORD, NEW_PASSWORD).status,
            });
            api.database.wait_for_blocked_statement();
            end.commit();
            waiting.join().expect("no panic");
        });
        api.me(&tokens).case(scope).refused(401, INVALID);
        api.refresh(&tokens.refresh).case(scope).refused(401, INVALID);
    }
}

#[test]
fn sessions_that_ended_with_others_are_ended_everywhere_before_their_rows_are_marked() {
    let api = Server::start(&[]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let old = api.refresh(&ann.refresh).expect(200).tokens();
    keep_unmarked(&api.database);
    api.end_user_sessions(&root, ann.id()).expect(204);
    let again = api.sign_in("ann");
    assert_eq!(api.database.count("sessions WHERE ended_at IS NULL"), 3);
    api.me(&old).refused(401, INVALID);
    // The current refresh token, one that was replaced just now, and one that never was this session's.
    let forged = sign(with_member(&claims(&old.refresh), "jti", UNKNOWN_ID));
    for refresh in [&old.refresh, &ann.refresh, &forged] {
        api.refresh(refresh).refused(401, INVALID);
    }
    api.end_session(&again, &session_id(&old)).refused(404, "Session not found");
    let listed = api.list_sessions(&again).expect(200).json();
    assert_eq!(names_of(&listed["sessions"], "id"), [session_id(&again)]);
    let listed = api.user_sessions(&root, ann.id()).expect(200).json();
    assert_eq!(names_of(&listed["sessions"], "id"), [session_id(&again)]);
    api.logout(&again).expect(204);
    let logout = &api.all_events(&root, "action=auth.logout")[0];
    assert_eq!(logout["details"], json!({"scope": "all", "sessions": 1}));
    assert_eq!(api.all_events(&root, "action=auth.refresh_reuse").len(), 0);
}
