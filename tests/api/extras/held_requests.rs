//! Requests whose head came before a revocation, and whose body after it. Whoever holds a connection open must not be
//! able to take an account back from its owner.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::partial::{BYTES, id_of};
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
    /// The path of an upload that is about to come in several requests.
    upload: String,
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
#[rustfmt::skip] // One row a request, as in a table.
const REQUESTS: [(&str, &str, &str, Factor, u16); 22] = [
    ("PUT", "/users/me", r#"{"email": "{name}@thief.example"}"#, Factor::None, 200),
    ("POST", "/users/change-password", r#"{"new_password": "of the thief", "current_password": "{password}"}"#,
     Factor::None, 200),
    ("POST", "/users/me/delete", PASSWORD_ONLY, Factor::None, 204),
    ("POST", "/auth/tokens", r#"{"name": "of the thief"}"#, Factor::None, 201),
    ("POST", "/auth/second-factor", PASSWORD_ONLY, Factor::None, 200),
    ("POST", "/auth/second-factor/confirm", r#"{"code": "{code}"}"#, Factor::Offered, 200),
    ("POST", "/auth/second-factor/recovery-codes", PASSWORD_AND_CODE, Factor::On, 200),
    ("DELETE", "/auth/second-factor", PASSWORD_AND_CODE, Factor::On, 204),
    ("POST", "/users", r#"{"email": "{name}-2@thief.example", "name": "x", "password": "of a thief", "role": "admin"}"#,
     Factor::None, 201),
    ("PUT", "/users/{user_id}", r#"{"name": "of the thief"}"#, Factor::None, 200),
    ("PUT", "/admin/users/{user_id}", r#"{"role": "admin"}"#, Factor::None, 200),
    ("POST", "/users/test-only/create", "{}", Factor::None, 201),
    ("POST", "/uploads", FORM, Factor::None, 201),
    ("POST", "/uploads/partial", "text", Factor::None, 201),
    ("PATCH", "/uploads/partial/{upload_id}", "text", Factor::None, 204),
    ("PUT", "/uploads/{file_id}", r#"{"is_public": true}"#, Factor::None, 200),
    ("POST", "/uploads/restore", r#"{"deleted_since": "2026-01-01T00:00:00Z"}"#, Factor::None, 200),
    ("POST", "/uploads/{file_id}/links", "{}", Factor::None, 201),
    ("POST", "/links", r#"{"files": ["{file_id}"]}"#, Factor::None, 201),
    ("POST", "/folders/move", r#"{"from": "/a", "to": "/b"}"#, Factor::None, 200),
    ("POST", "/uploads/update", r#"{"ids": ["{file_id}"], "is_public": true}"#, Factor::None, 200),
    ("POST", "/uploads/delete", r#"{"ids": ["{file_id}"]}"#, Factor::None, 200),
];

const PASSWORD_ONLY: &str = r#"{"current_password": "{password}"}"#;
const PASSWORD_AND_CODE: &str = r#"{"current_password": "{password}", "code": "{code}"}"#;
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
        let form = file_form("a.txt", "text/plain", b"text").field("folder", "/a");
        let file = api.upload_form(&held, form).expect(201).id();
        let deleted = api.new_file(&held, "b.txt", "text");
        api.delete_file(&held, &deleted).expect(204);
        let factor = match factor {
            Factor::None => None,
            Factor::On => Some(api.new_second_factor(&held, PASSWORD)),
            Factor::Offered => Some(api.offer_second_factor(&held, PASSWORD)),
        };
        let code = factor.as_ref().map_or_else(|| "000000".into(), SecondFactor::code);
        let other = api.login_with_code(&name, PASSWORD, &code).expect(200).tokens();
        let upload = api.begin_partial(&held, 4);
        Actor { name, held, other, factor, file, upload }
    }

    /// Sends the head of a request, and waits until its sender has been authenticated.
    fn hold(&self, method: &str, path: &str, token: &str, actor: &Actor, body: &str) -> Held {
        let path = path.replace("{user_id}", self.victim.id()).replace("{file_id}", &actor.file);
        let path = path.replace("{upload_id}", id_of(&actor.upload));
        let code = actor.factor.as_ref().map(SecondFactor::code).unwrap_or_default();
        let body = body.replace("{name}", &actor.name).replace("{password}", PASSWORD);
        let body = body.replace("{code}", &code).replace("{file_id}", &actor.file);
        let mut connection = RawConnection::open(&self.api.address);
        let headers = match path.contains("/partial") {
            false => "Content-Type: multipart/form-data; boundary=a-boundary".to_owned(),
            true => format!(
                "Content-Type: {BYTES}\r\nTus-Resumable: 1.0.0\r\nUpload-Length: {}\r\nUpload-Offset: 0\r\n\
                 Upload-Metadata: filename YS50eHQ=",
                body.len()
            ),
        };
        connection.send(format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{headers}\r\n\
             Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
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

/// A way to take rights away, the message of requests after it, and what does it.
type Revocation = (&'static str, &'static str, fn(&World, &Actor) -> Answer);

const REVOCATIONS: [Revocation; 7] = [
    ("a change of the password", INVALID, |w, actor| {
        w.api.change_password(&actor.other, PASSWORD, NEW_PASSWORD)
    }),
    ("a reset", INVALID, |w, actor| {
        let sql = "SELECT credentials_version FROM users WHERE id";
        let version: i32 = w.api.database.value(&format!("{sql} = '{}'", actor.held.id()));
        let token =
            json!({"sub": actor.held.id(), "type": "password_reset", "ver": version, "iat": now()});
        w.api.reset_password(&sign(with_member(&token, "exp", now() + 600)), NEW_PASSWORD)
    }),
    ("a sign-out everywhere", INVALID, |w, actor| w.api.logout(&actor.other)),
    (END_OF_SESSION, INVALID, |w, actor| w.api.end_session(&actor.other, &actor.held.session())),
    ("a demotion", INVALID, |w, actor| w.change(actor, json!({"role": "user"}))),
    ("a deactivation", UNUSABLE, |w, actor| w.change(actor, json!({"is_active": false}))),
    ("a deletion", UNUSABLE, |w, actor| w.api.delete_user(&w.root, actor.held.id())),
];
const END_OF_SESSION: &str = "the end of that session";

/// The same for a personal access token, with the status. Where there is no message, nothing is taken away.
type TokenRevocation = (&'static str, u16, &'static str, fn(&World, &Actor) -> Answer);

const TOKEN_REVOCATIONS: [TokenRevocation; 7] = [
    ("nothing", 200, "", |w, actor| w.api.me(&actor.other)),
    ("its end", 401, INVALID, |w, actor| {
        let ids = w.api.list_tokens(&actor.other).expect(200).names("tokens", "id");
        w.api.delete_token(&actor.other, &ids[0])
    }),
    ("the end of all", 401, INVALID, |w, actor| w.api.delete_user_tokens(&w.root, actor.held.id())),
    ("a change of the password", 401, INVALID, REVOCATIONS[0].2),
    ("a deactivation", 401, INVALID, REVOCATIONS[5].2),
    ("a deletion", 401, INVALID, REVOCATIONS[6].2),
    // The token goes on, but not as an administrator's.
    ("a demotion", 403, "Admin privileges required.", REVOCATIONS[4].2),
];

impl World {
    fn change(&self, actor: &Actor, body: Value) -> Answer {
        self.api.update_user(&self.root, actor.held.id(), body)
    }

    /// Holds every request whose path is chosen, each of another administrator, by a session or by a personal access
    /// token. Applies `revoke` to all of them, and returns the answers with the statuses of no revocation.
    fn answers(
        &self,
        by_token: bool,
        is_chosen: impl Fn(&str) -> bool,
        held: Duration,
        revoke: fn(&World, &Actor) -> Answer,
    ) -> Vec<(String, RawAnswer, u16)> {
        static ACTORS: AtomicUsize = AtomicUsize::new(0);
        let actors = REQUESTS.iter().filter(|request| is_chosen(request.1)).map(|request| {
            let name = format!("actor{}", ACTORS.fetch_add(1, Ordering::Relaxed));
            let actor = self.actor(name, request.3);
            let token = match by_token {
                true => self.api.new_token(&actor.held, false),
                false => actor.held.access.clone(),
            };
            (request, actor, token)
        });
        let actors: Vec<_> = actors.collect();
        self.api.forget_used_codes();
        let requests = actors.iter().map(|((method, path, body, _, status), actor, token)| {
            (format!("{method} {path}"), self.hold(method, path, token, actor, body), *status)
        });
        let requests: Vec<_> = requests.collect();
        thread::sleep(held);
        for (_, actor, _) in &actors {
            let answer = revoke(self, actor);
            assert!([200, 204].contains(&answer.status), "{answer:?}");
        }
        self.note_state();
        requests.into_iter().map(|(name, held, status)| (name, held.finish(), status)).collect()
    }
}

/// What takes an account over or outlives a session. Its body may be too quick for another look at the sender, so its
/// statement looks.
const DANGEROUS: [&str; 5] =
    ["/users/me", "/auth/tokens", "/users", "/admin/users/{user_id}", "/users/test-only/create"];

#[test]
fn a_request_whose_body_comes_after_a_revocation_changes_nothing_however_quick_it_comes() {
    let world = World::start();
    for (name, answer, status) in world.answers(false, |_| true, HELD, |w, a| w.api.me(&a.other)) {
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{name}, nothing taken away: {text}");
    }
    for (revocation, message, revoke) in REVOCATIONS {
        let mut answers = world.answers(false, |_| true, HELD, revoke);
        world.expect_no_change(revocation);
        for path in DANGEROUS {
            answers.extend(world.answers(false, |p| p == path, Duration::ZERO, revoke));
            world.expect_no_change(revocation);
        }
        for (name, answer, _) in answers {
            let what = format!("{name} after {revocation}");
            assert_eq!((answer.status, &answer.json()["detail"]), (401, &json!(message)), "{what}");
        }
        // A second factor ends other sessions, but is confirmed by none that has ended.
        if revocation == END_OF_SESSION {
            let path = "/auth/second-factor/confirm";
            let answers = world.answers(false, |p| p == path, Duration::ZERO, revoke);
            assert_eq!(answers[0].1.json()["reason"], "SESSION_ENDED");
            world.expect_no_change(revocation);
        }
    }
}

#[test]
fn the_requests_are_all_that_a_signed_in_user_can_send_with_a_body() {
    let document = document(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            // The refresh token is in the body itself.
            // `PATCH` is the same as `PUT`, but for the bytes of an upload.
            if (method != "patch" || path.contains("/partial/"))
                && operation.get("requestBody").is_some()
                && operation["security"] != json!([])
                && !path.contains("/auth/refresh")
            {
                documented.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let tested = REQUESTS.iter().map(|(method, path, ..)| format!("{method} /api/v1{path}"));
    assert_eq!(tested.collect::<BTreeSet<_>>(), documented);
}

#[test]
fn a_request_whose_body_comes_after_the_end_of_its_personal_token_changes_nothing() {
    let world = World::start();
    let accepted =
        |path: &str| path.starts_with("/uploads") || ["/links", "/users/{user_id}"].contains(&path);
    for (revocation, status, message, revoke) in TOKEN_REVOCATIONS {
        for (name, answer, usual) in world.answers(true, accepted, HELD, revoke) {
            let what = format!("{name} after {revocation}");
            if status == 401 || status == 403 && name.contains("/users") {
                let found = (answer.status, answer.json()["detail"].clone());
                assert_eq!(found, (status, json!(message)), "{what}");
            } else {
                assert_eq!(answer.status, usual, "{what}");
            }
        }
        if status == 401 {
            world.expect_no_change(revocation);
        }
    }
}

#[test]
fn an_upload_goes_on_after_its_access_token_has_expired() {
    let world = World::start();
    let actor = world.actor("ann".into(), Factor::None);
    let exp = now() + 5;
    let token = sign(with_member(&claims(&actor.held.access), "exp", exp));
    let held = world.hold("POST", "/uploads", &token, &actor, FORM);
    wait_until(|| now() > exp);
    world.api.me(&token).refused(401, INVALID);
    assert_eq!(held.finish().status, 201);
}

/// Requests that wait while a search of their user runs.
#[rustfmt::skip] // One row a request, as in a table.
const SEARCHES: [(&str, &str, &str); 8] = [
    ("GET", "/uploads?search=x", ""),
    ("GET", "/uploads?deleted=true", ""),
    ("GET", "/uploads/public?search=x", ""),
    ("POST", "/uploads/restore", r#"{"deleted_since": "2026-01-01T00:00:00Z"}"#),
    ("POST", "/uploads/delete", r#"{"ids": ["{file_id}"]}"#),
    ("POST", "/uploads/update", r#"{"ids": ["{file_id}"], "is_public": true}"#),
    ("POST", "/folders/move", r#"{"from": "/a", "to": "/b"}"#),
    ("DELETE", "/folders?folder=/a", ""),
];

#[test]
fn what_has_waited_for_the_turn_of_a_search_is_refused_after_the_end_of_its_session() {
    let settings = [PATIENT, ("CLOAKROOM_PUBLIC_LIST", "on")];
    let (api, [root, victim]) = Server::with_users(&settings, ["root", "victim"]);
    let world = World { api, root, victim };
    let (api, actor) = (&world.api, world.actor("ann".into(), Factor::None));
    world.note_state();
    let lock = api.database.begin("LOCK TABLE files IN ACCESS EXCLUSIVE MODE");
    let mut running = api.begin("GET /api/v1/uploads?search=x HTTP/1.1", &actor.other);
    wait_until(|| api.database.blocked_statements() == 1);
    let begin = |(method, path, body): (&str, &str, &str)| {
        let body = body.replace("{file_id}", &actor.file);
        let length = format!("{method} /api/v1{path} HTTP/1.1\r\nContent-Length: {}", body.len());
        let mut connection = api.begin(&length, &actor.held);
        connection.send(body);
        connection
    };
    let waiting = SEARCHES.map(begin);
    // With the one that runs and the one that asks for it.
    wait_until(|| api.metric("cloakroom_requests_running") == Some(2.0 + SEARCHES.len() as f64));
    thread::sleep(HELD);
    api.end_session(&actor.other, &actor.held.session()).expect(204);
    lock.roll_back();
    assert_eq!(running.answer().status, 200);
    for ((method, path, _), mut connection) in SEARCHES.into_iter().zip(waiting) {
        let answer = connection.answer();
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (401, &json!(INVALID)),
            "{method} {path}"
        );
    }
    world.expect_no_change("requests that waited");
}
