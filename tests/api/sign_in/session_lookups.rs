//! Requests that come together are authenticated by one query. Nobody may notice, except by the speed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use uuid::Uuid;

use crate::harness::*;

/// What a token is answered: the status, and the id of the account or the message.
type Outcome = (u16, String);

/// A token, what it must be answered, and what kind of token it is.
type Case = (String, Outcome, &'static str);

/// A server, the proxy before its database, and tokens of every kind.
struct Lookups {
    proxy: DatabaseProxy,
    api: Server,
    cases: Vec<Case>,
    sessions: Vec<Uuid>,
}

fn outcome(answer: Answer) -> Outcome {
    let member = if answer.status == 200 { "id" } else { "detail" };
    (answer.status, answer.json()[member].as_str().expect("a text").to_owned())
}

impl Lookups {
    fn start(settings: &[(&str, &str)]) -> Lookups {
        let (database, data) = (Database::create(), Arc::new(Directory::create()));
        let proxy = DatabaseProxy::start(&database.url);
        let api = Server::spawn(command(&proxy.url, &data, settings), &database, &data);
        let (cases, sessions) = cases(&api);
        Lookups { proxy, api, cases, sessions }
    }

    /// Sends every token `copies` times at once, and expects its own answer for each.
    fn send_all(&self, copies: usize) {
        parallel(self.cases.len() * copies, |n| {
            let (token, expected, kind) = &self.cases[n % self.cases.len()];
            assert_eq!(outcome(self.api.me(token)), *expected, "{kind}");
        });
    }

    /// How many queries have looked up several sessions.
    fn shared_queries(&self) -> usize {
        self.proxy.count_sent(|piece| {
            self.sessions.iter().filter(|id| contains(piece, id.as_bytes())).count() > 1
        })
    }
}

/// Makes accounts in every state, and a token of every kind. Also returns the ids of their sessions.
fn cases(api: &Server) -> (Vec<Case>, Vec<Uuid>) {
    let names = ["ann", "bob", "cleo", "dan", "eve", "fay"];
    let [ann, bob, signed_out, inactive, deleted, development_admin] =
        names.map(|name| api.sign_up(name));
    let session = |tokens: &Tokens| claims(&tokens.access)["sid"].clone();
    let id_of = |session: &Value| session.as_str().expect("an id").to_owned();
    let [ended, too_old, expired] = [(); 3].map(|()| api.sign_in("ann"));
    api.logout_scope(&ended, "local").expect(204);
    for (tokens, change) in [
        (&too_old, "created_at = now() - interval '90 days'"),
        (&expired, "expires_at = now() - interval '1 second'"),
    ] {
        let id = id_of(&session(tokens));
        api.database.run(&format!("UPDATE sessions SET {change} WHERE id = '{id}'"));
    }
    api.database.run(
        "UPDATE users SET sessions_ended_at = now() WHERE username = 'cleo';
         UPDATE users SET is_active = false WHERE username = 'dan';
         UPDATE users SET is_deleted = true WHERE username = 'eve';
         UPDATE users SET is_development_admin = true WHERE username = 'fay'",
    );
    let token = |user: &str, member: &str, value: Value| {
        let claims = json!({"sub": user, "iat": now(), "exp": FAR_FUTURE});
        sign(with_member(&claims, member, value))
    };
    let without_time = |user: &str| sign(json!({"sub": user, "exp": FAR_FUTURE}));
    let access = |tokens: &Tokens| tokens.access.clone();
    let is_user = |user: &Tokens| (200, user.id().to_owned());
    let has_ended = || (401, "Invalid token".to_owned());
    let no_account = || (401, "User not found or inactive".to_owned());
    // Times are whole seconds: a token of the one in which all ended is refused.
    let ended_at = "SELECT extract(epoch FROM date_trunc('second', sessions_ended_at))::bigint
                    FROM users WHERE username = 'cleo'";
    let end: i64 = api.database.value(ended_at);
    let cases = [
        (access(&ann), is_user(&ann), "a live session"),
        (access(&bob), is_user(&bob), "a live session of another user"),
        (access(&ended), has_ended(), "an ended session"),
        (access(&too_old), has_ended(), "a session past its maximum age"),
        (access(&expired), has_ended(), "a session whose tokens have expired"),
        (token(ann.id(), "sid", session(&bob)), has_ended(), "another user's session"),
        (token(ann.id(), "sid", json!(UNKNOWN_ID)), has_ended(), "an unknown session"),
        (token(ann.id(), "iat", json!(now() - 60)), is_user(&ann), "no session"),
        (without_time(bob.id()), is_user(&bob), "no session and no time"),
        (token(signed_out.id(), "iat", json!(end)), has_ended(), "no session, when all ended"),
        (token(signed_out.id(), "iat", json!(end + 1)), is_user(&signed_out), "no session, later"),
        (without_time(signed_out.id()), has_ended(), "no session and no time, all ended"),
        (access(&inactive), no_account(), "an inactive user"),
        (access(&deleted), no_account(), "a deleted user"),
        (access(&development_admin), no_account(), "the development admin"),
        (token(UNKNOWN_ID, "sid", session(&ann)), no_account(), "an unknown user"),
    ];
    let sessions = [&ann, &bob, &ended, &too_old, &inactive];
    let sessions = sessions.map(|tokens| id_of(&session(tokens)).parse().expect("an id"));
    (cases.into(), sessions.into())
}

#[test]
fn every_token_is_answered_alone_as_in_a_crowd() {
    let lookups = Lookups::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1"), PATIENT]);
    for (token, expected, kind) in &lookups.cases {
        assert_eq!(outcome(lookups.api.me(token)), *expected, "{kind} alone");
    }
    assert_eq!(lookups.shared_queries(), 0);
    wait_until(|| {
        // The only connection waits for the table, and the requests that come meanwhile for the connection.
        let lock = lookups.api.database.begin("LOCK TABLE users");
        thread::scope(|scope| {
            scope.spawn(|| lookups.send_all(4));
            lookups.api.database.wait_for_blocked_statement();
            lock.roll_back();
        });
        lookups.shared_queries() >= 20
    });
}

#[test]
fn a_connection_that_hangs_holds_up_only_the_lookups_that_went_through_it() {
    let lookups = Lookups::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "4"), PATIENT]);
    let Lookups { proxy, api, cases, sessions } = &lookups;
    let [(ann, is_ann, _), (bob, is_bob, _), ..] = &cases[..] else { panic!("no cases") };
    let (is_released, over) = (AtomicBool::new(false), AtomicBool::new(false));
    proxy.hold(sessions[0].as_bytes());
    thread::scope(|scope| {
        let _stop = SetOnDrop(&over);
        // Some of these may be asked together with the one that hangs.
        for _ in 0..8 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(outcome(api.me(bob)), *is_bob);
                }
            });
        }
        let held = scope.spawn(|| {
            let outcome = outcome(api.me(ann));
            (outcome, is_released.load(Ordering::Relaxed))
        });
        wait_until(|| proxy.held() == 1);
        for _ in 0..50 {
            assert_eq!(outcome(api.me(bob)), *is_bob);
        }
        assert_eq!(proxy.held(), 1);
        is_released.store(true, Ordering::Relaxed);
        proxy.release();
        assert_eq!(held.join().expect("no panic"), (is_ann.clone(), true));
    });
}

#[test]
fn after_a_database_that_hung_every_token_gets_its_own_answer_again() {
    let lookups = Lookups::start(&[
        ("CLOAKROOM_DATABASE_POOL_SIZE", "2"),
        ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3"),
    ]);
    for _ in 0..3 {
        lookups.proxy.hold(b"");
        let statuses =
            parallel(32, |n| lookups.api.me(&lookups.cases[n % lookups.cases.len()].0).status);
        assert_eq!(tally(statuses).into_iter().collect::<Vec<_>>(), [(503, 32)]);
        lookups.proxy.release();
        wait_until(|| lookups.api.me(&lookups.cases[0].0).status == 200);
        lookups.send_all(2);
    }
}
