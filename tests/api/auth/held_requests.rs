//! Requests whose head came before a revocation, and whose body after it. Whoever holds a connection open must not be
//! able to take an account back from its owner.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::*;

/// A little longer than a body may take without another look at its sender.
const HELD: Duration = Duration::from_millis(1200);
const INVALID: &str = "Invalid token";
const UNUSABLE: &str = "User not found or inactive";

/// A service with an administrator who takes rights away, and an account that is changed.
struct World {
    api: Server,
    root: Tokens,
    victim: Tokens,
}

/// An administrator who holds a request open.
struct Actor {
    name: String,
    /// The session of the request.
    held: Tokens,
    /// Another session of the same account.
    other: Tokens,
    factor: Option<SecondFactor>,
    file: String,
}

/// What an administrator has to do with a second factor.
#[derive(Clone, Copy, PartialEq)]
enum Factor {
    None,
    Offered,
    On,
}

/// Every request of a signed-in user that has a body: method, path, body, the second factor that it needs, and the
/// status if nothing is taken away meanwhile. `{code}` is a code of the second factor, `{name}` the account's name.
const REQUESTS: [(&str, &str, &str, Factor, u16); 15] = [
    ("PUT", "/users/me", r#"{"email": "{name}@thief.example"}"#, Factor::None, 200),
    (
        "POST",
        "/users/change-password",
        r#"{"current_password": "{password}", "new_password": "of the thief"}"#,
        Factor::None,
        200,
    ),
    ("POST", "/users/me/delete", r#"{"current_password": "{password}"}"#, Factor::None, 204),
    ("POST", "/auth/tokens", r#"{"name": "of the thief"}"#, Factor::None, 201),
    ("POST", "/auth/second-factor", r#"{"current_password": "{password}"}"#, Factor::None, 200),
    ("POST", "/auth/second-factor/confirm", r#"{"code": "{code}"}"#, Factor::Offered, 200),
    (
        "POST",
        "/auth/second-factor/recovery-codes",
        r#"{"current_password": "{password}", "code": "{code}"}"#,
        Factor::On,
        200,
    ),
    (
        "DELETE",
        "/auth/second-factor",
        r#"{"current_password": "{password}", "code": "{code}"}"#,
        Factor::On,
        204,
    ),
    (
        "POST",
        "/users",
        r#"{"email": "{name}-2@thief.example", "name": "x", "password": "of the thief", "role": "admin"}"#,
        Factor::None,
        201,
    ),
    ("PUT", "/users/{user_id}", r#"{"name": "of the thief"}"#, Factor::None, 200),
    ("PUT", "/admin/users/{user_id}", r#"{"role": "admin"}"#, Factor::None, 200),
    ("POST", "/users/test-only/create", "{}", Factor::None, 201),
    ("POST", "/uploads", FORM, Factor::None, 201),
    ("PUT", "/uploads/{file_id}", r#"{"is_public": true}"#, Factor::None, 200),
    ("POST", "/uploads/{file_id}/links", "{}", Factor::None, 201),
];

const FORM: &str = "--a-boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n\
                    of the thief\r\n--a-boundary--\r\n";

impl World {
    fn start() -> World {
        let (api, [root, victim]) =
            Server::with_users(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")], ["root", "victim"]);
        World { api, root, victim }
    }

    fn actor(&self, name: String, factor: Factor) -> Actor {
        let api = &self.api;
        let held = api.sign_up_admin(&name);
        let file = api.new_file(&held, "a.txt", "text");
        let factor = match factor {
            Factor::None => None,
            Factor::On => Some(api.new_second_factor(&held, PASSWORD)),
            Factor::Offered => Some(api.offer_second_factor(&held, PASSWORD)),
        };
        let code = factor.as_ref().map_or_else(|| "000000".into(), SecondFactor::code);
        let other = api.login_with_code(&name, PASSWORD, &code).expect(200).tokens();
        Actor { name, held, other, factor, file }
    }

    /// Sends the head of a request, and waits until its sender has been authenticated.
    fn hold(&self, method: &str, path: &str, token: &str, actor: &Actor, body: &str) -> Held {
        let path = path.replace("{user_id}", self.victim.id()).replace("{file_id}", &actor.file);
        let code = actor.factor.as_ref().map(SecondFactor::code).unwrap_or_default();
        let body = body.replace("{name}", &actor.name).replace("{password}", PASSWORD);
        let body = body.replace("{code}", &code);
        let mut connection = RawConnection::open(&self.api.address);
        connection.send(format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: multipart/form-data; boundary=a-boundary\r\nExpect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        ));
        assert!(connection.head().expect("a head").contains(" 100 "), "{method} {path}");
        Held { connection, body }
    }

    /// Notes what there is, for [`World::expect_no_change`].
    fn note_state(&self) {
        self.api
            .database
            .run(&format!("DROP TABLE IF EXISTS noted; CREATE TABLE noted AS {STATE}"));
    }

    #[track_caller]
    fn expect_no_change(&self, what: &str) {
        let new: Option<String> = self.api.database.value(&format!(
            "SELECT string_agg(row, '; ') FROM (({STATE}) EXCEPT TABLE noted) new"
        ));
        assert_eq!(new, None, "{what}");
    }
}

/// One row for each account, token, link and file, with what a request can change of it.
const STATE: &str = "
    SELECT concat_ws(' ', id, username, email, name, role, is_active, is_deleted, password_hash, credentials_version,
                     encode(second_factor_sealed, 'hex'), second_factor_at, recovery_codes::text) AS row FROM users
    UNION ALL SELECT 'token ' || id FROM personal_tokens
    UNION ALL SELECT 'link ' || id FROM file_links
    UNION ALL SELECT concat_ws(' ', 'file', id, is_public) FROM files";

/// A request without its body.
struct Held {
    connection: RawConnection,
    body: String,
}

impl Held {
    fn finish(mut self) -> RawAnswer {
        self.connection.send(&self.body);
        self.connection.answer()
    }
}

/// A way to take rights away, and the message of requests after it.
type Revocation = (&'static str, fn(&World, &Actor), &'static str);

const REVOCATIONS: [Revocation; 7] = [
    (
        "a change of the password",
        |w, actor| {
            w.api.change_password(&actor.other, PASSWORD, NEW_PASSWORD).expect(200);
        },
        INVALID,
    ),
    (
        "a reset",
        |w, actor| {
            let token = w.api.reset_token(&format!("{}@example.com", actor.name));
            w.api.reset_password(&token, NEW_PASSWORD).expect(200);
        },
        INVALID,
    ),
    (
        "a sign-out everywhere",
        |w, actor| {
            w.api.logout(&actor.other).expect(204);
        },
        INVALID,
    ),
    (
        "the end of that session",
        |w, actor| {
            let id = actor.held.session();
            w.api.end_session(&actor.other, &id).expect(204);
        },
        INVALID,
    ),
    ("a deactivation", |w, actor| w.change(actor, json!({"is_active": false})), UNUSABLE),
    ("a demotion", |w, actor| w.change(actor, json!({"role": "user"})), INVALID),
    (
        "a deletion",
        |w, actor| {
            w.api.delete_user(&w.root, actor.held.id()).expect(204);
        },
        UNUSABLE,
    ),
];

impl World {
    fn change(&self, actor: &Actor, body: Value) {
        self.api.update_user(&self.root, actor.held.id(), body).expect(200);
    }

    /// Holds every request, or every one that a personal access token may send with such a token, each of another
    /// administrator. Applies `revoke` to all of them, and returns the answers with the statuses of no revocation.
    fn answers(
        &self,
        round: &str,
        by_token: bool,
        revoke: impl Fn(&Actor),
    ) -> Vec<(String, RawAnswer, u16)> {
        let accepted = |path: &str| path.starts_with("/uploads") || path == "/users/{user_id}";
        let requests = REQUESTS.iter().filter(|request| !by_token || accepted(request.1));
        let actors = requests.enumerate().map(|(n, request)| {
            let actor = self.actor(format!("{round}_{n}"), request.3);
            let token = match by_token {
                true => self.api.new_token(&actor.held, false),
                false => actor.held.access.clone(),
            };
            (request, actor, token)
        });
        let actors: Vec<_> = actors.collect();
        self.api.forget_used_codes();
        let held = actors.iter().map(|((method, path, body, _, status), actor, token)| {
            (format!("{method} {path}"), self.hold(method, path, token, actor, body), *status)
        });
        let held: Vec<_> = held.collect();
        thread::sleep(HELD);
        actors.iter().for_each(|(_, actor, _)| revoke(actor));
        self.note_state();
        held.into_iter().map(|(name, held, status)| (name, held.finish(), status)).collect()
    }
}

#[test]
fn a_request_whose_body_comes_after_a_revocation_changes_nothing() {
    let world = World::start();
    for (name, answer, status) in world.answers("no", false, |_| ()) {
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{name}, nothing taken away: {text}");
    }
    for (round, (revocation, revoke, message)) in REVOCATIONS.into_iter().enumerate() {
        for (name, answer, _) in
            world.answers(&format!("round{round}"), false, |actor| revoke(&world, actor))
        {
            let what = format!("{name} after {revocation}");
            assert_eq!((answer.status, &answer.json()["detail"]), (401, &json!(message)), "{what}");
        }
        world.expect_no_change(revocation);
    }
}

#[test]
fn the_requests_are_all_that_a_signed_in_user_can_send_with_a_body() {
    let document = document(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            // The refresh token is in the body itself.
            if operation.get("requestBody").is_some()
                && operation["security"] != json!([])
                && !path.ends_with("/auth/refresh")
            {
                documented.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let tested = REQUESTS.iter().map(|(method, path, ..)| format!("{method} /api/v1{path}"));
    assert_eq!(tested.collect::<BTreeSet<_>>(), documented);
}

/// What happens to the actors, and the refusal that follows.
type Round<'a> = (&'a dyn Fn(&Actor), Option<(u16, &'static str)>);

#[test]
fn a_request_whose_body_comes_after_the_end_of_its_personal_token_changes_nothing() {
    let world = World::start();
    let end_token = |actor: &Actor| {
        let ids = world.api.list_tokens(&actor.other).expect(200).names("tokens", "id");
        world.api.delete_token(&actor.other, &ids[0]).expect(204);
    };
    let end_tokens = |actor: &Actor| {
        world.api.delete_user_tokens(&world.root, actor.held.id()).expect(204);
    };
    let change = |actor: &Actor| (REVOCATIONS[0].1)(&world, actor);
    let deactivate = |actor: &Actor| (REVOCATIONS[4].1)(&world, actor);
    let demote = |actor: &Actor| (REVOCATIONS[5].1)(&world, actor);
    let delete = |actor: &Actor| (REVOCATIONS[6].1)(&world, actor);
    let ended = (401, INVALID);
    let rounds: [Round; 7] = [
        (&|_| (), None),
        (&end_token, Some(ended)),
        (&end_tokens, Some(ended)),
        (&change, Some(ended)),
        (&deactivate, Some(ended)),
        (&delete, Some(ended)),
        // The token goes on, but not as an administrator's.
        (&demote, Some((403, "Admin privileges required."))),
    ];
    for (round, (revoke, refusal)) in rounds.into_iter().enumerate() {
        for (name, answer, status) in world.answers(&format!("token{round}"), true, revoke) {
            let is_refused = |(status, _): &(u16, _)| *status == 401 || name.contains("/users");
            match refusal.filter(is_refused) {
                None => assert_eq!(answer.status, status, "{name}, round {round}"),
                Some((status, message)) => {
                    let found = (answer.status, answer.json()["detail"].clone());
                    assert_eq!(found, (status, json!(message)), "{name}, round {round}");
                }
            }
        }
        if refusal == Some(ended) {
            world.expect_no_change(&format!("round {round}"));
        }
    }
}

#[test]
fn an_upload_goes_on_after_its_access_token_has_expired() {
    let world = World::start();
    let actor = world.actor("ann".into(), Factor::None);
    let exp = now() + 2;
    let token = sign(with_member(&claims(&actor.held.access), "exp", exp));
    let held = world.hold("POST", "/uploads", &token, &actor, FORM);
    wait_until(|| now() > exp);
    world.api.me(&token).refused(401, INVALID);
    assert_eq!(held.finish().status, 201);
}

/// Such a body may be too quick for another look at its sender, so the statement looks.
#[test]
fn what_takes_an_account_over_or_outlives_a_session_is_refused_however_quick_its_body_comes() {
    let world = World::start();
    let paths = [
        "/users/me",
        "/auth/tokens",
        "/users",
        "/admin/users/{user_id}",
        "/users/test-only/create",
    ];
    for (n, path) in paths.into_iter().enumerate() {
        let request = REQUESTS.iter().find(|request| request.1 == path).expect("a request");
        let (method, _, body, factor, _) = *request;
        for (round, (revocation, revoke, message)) in REVOCATIONS.into_iter().enumerate() {
            let actor = world.actor(format!("quick_{n}_{round}"), factor);
            let held = world.hold(method, path, &actor.held.access, &actor, body);
            revoke(&world, &actor);
            world.note_state();
            let answer = held.finish();
            let what = format!("{path} after {revocation}");
            assert_eq!((answer.status, &answer.json()["detail"]), (401, &json!(message)), "{what}");
            world.expect_no_change(&what);
        }
    }
    // A second factor ends other sessions, but is confirmed by none that has ended.
    let (path, body) = ("/auth/second-factor/confirm", r#"{"code": "{code}"}"#);
    let actor = world.actor("quick".into(), Factor::Offered);
    let held = world.hold("POST", path, &actor.held.access, &actor, body);
    world.api.logout_scope(&actor.held, "local").expect(204);
    let answer = held.finish();
    assert_eq!((answer.status, &answer.json()["reason"]), (401, &json!("SESSION_ENDED")));
    world.api.me(&actor.other).expect(200).has(json!({"second_factor": false}));
}

/// The row of an account is locked while two requests come: what the first one takes away, the second one has not.
#[test]
fn what_waited_for_a_row_is_refused_if_its_sender_was_signed_out_meanwhile() {
    let world = World::start();
    let api = &world.api;
    let ann = api.sign_up_admin("ann");
    let demotion = json!({"role": "user"});
    for (name, request) in [
        ("a promotion", ("PUT", format!("/users/{}", ann.id()), json!({"role": "admin"}))),
        ("an address", ("PUT", "/users/me".into(), json!({"email": "ann@thief.example"}))),
        ("a token", ("POST", "/auth/tokens".into(), json!({"name": "late"}))),
    ] {
        let (method, path, body) = request;
        let thief = api.sign_in("ann");
        let lock = api.database.begin("SELECT FROM users WHERE username = 'ann' FOR UPDATE");
        thread::scope(|scope| {
            let demoted = scope.spawn(|| api.update_user(&world.root, ann.id(), demotion.clone()));
            api.database.wait_for_blocked_statement();
            let late = scope.spawn(|| api.request(method, &path).by(&thief).json(body).send());
            wait_until(|| api.database.blocked_statements() == 2);
            lock.commit();
            demoted.join().expect("an answer").expect(200);
            let late = late.join().expect("an answer");
            assert_eq!((late.status, &late.json()["detail"]), (401, &json!(INVALID)), "{name}");
        });
        let ann = "users WHERE username = 'ann' AND role = 'user' AND email = 'ann@example.com'";
        assert_eq!(
            (api.database.count(ann), api.database.count("personal_tokens")),
            (1, 0),
            "{name}"
        );
        api.database.run("UPDATE users SET role = 'admin' WHERE username = 'ann'");
    }
}
