//! Exports whose sender loses the right to them while they are sent, or while they wait for their turn. Whoever reads
//! slowly must not get what comes after that.

use crate::harness::*;

/// Only administrators export, so that a role matters.
const ADMINS: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
const EXPORTS: [&str; 4] =
    ["/users/export?email=@", "/users/export-full", "/users/exports/csv", "/admin/audit/export"];
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// More accounts and events than the buffers between the server and a client hold that reads only a head: 10 MB of
/// each.
const UNREAD: &str = "
    INSERT INTO users (id, email, email_key, name, password_hash, created_at)
    SELECT gen_random_uuid(), 'u' || i || '@example.com', 'u' || i || '@example.com',
    repeat('x', 4000), '-', '2026-01-01'
    FROM generate_series(1, 2500) i;
    INSERT INTO audit_events (at, action, address, details)
    SELECT now() - make_interval(secs => i), 'users.export', '192.0.2.1', jsonb_build_object('x', repeat('x', 4000))
    FROM generate_series(1, 2500) i";

/// Two processes, and an administrator who takes rights away.
struct World {
    api: Server,
    second: Server,
    root: Tokens,
}

/// An administrator whose exports run.
struct Sender {
    name: String,
    /// The session of the exports.
    own: Tokens,
    other: Tokens,
    personal: String,
}

/// What happens, whether exports by a session and by a personal access token break, and the request that does it.
type Cause = (&'static str, [bool; 2], fn(&World, &Sender) -> Answer);

const CAUSES: [Cause; 11] = [
    ("nothing", [false, false], |w, s| w.api.me(&s.own)),
    ("the end of the session", [true, false], |w, s| w.api.end_session(&s.other, &s.own.session())),
    ("the end of another session", [false, false], |w, s| {
        w.api.end_session(&s.own, &s.other.session())
    }),
    ("a sign-out everywhere", [true, false], |w, s| w.second.logout(&s.other)),
    ("an end of all sessions by an administrator", [true, false], |w, s| {
        w.second.end_user_sessions(&w.root, s.own.id())
    }),
    ("an end of all personal tokens", [false, true], |w, s| {
        w.second.delete_user_tokens(&w.root, s.own.id())
    }),
    ("a change of the password", [true, true], |w, s| {
        w.second.change_password(&s.other, PASSWORD, NEW_PASSWORD)
    }),
    ("a demotion", [true, true], |w, s| w.change(s, json!({"role": "user"}))),
    ("a deactivation", [true, true], |w, s| w.change(s, json!({"is_active": false}))),
    ("a deletion", [true, true], |w, s| w.second.delete_user(&w.root, s.own.id())),
    ("another name", [false, false], |w, s| w.change(s, json!({"name": "other"}))),
];

impl World {
    fn start(settings: &[(&str, &str)]) -> World {
        let (api, [root]) = Server::with_users(settings, ["root"]);
        let second = api.beside(settings);
        api.database.run(UNREAD);
        World { api, second, root }
    }

    fn change(&self, sender: &Sender, change: Value) -> Answer {
        self.second.update_user(&self.root, sender.own.id(), change)
    }

    fn sender(&self, name: String) -> Sender {
        let own = self.api.sign_up_admin(&name);
        let (other, personal) = (self.api.sign_in(&name), self.api.new_token(&own, false));
        Sender { name, own, other, personal }
    }
}

/// The first line of a request for an export.
fn line(path: &str, version: &str) -> String {
    format!("GET /api/v1{path} HTTP/{version}")
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn what_ends_the_right_to_an_export_breaks_it_also_from_another_process() {
    let world = World::start(&[ADMINS]);
    for (n, (cause, breaks, happen)) in CAUSES.into_iter().enumerate() {
        // Two exports of one user run at a time, so there are two senders.
        let senders = [0, 1].map(|m| [0, 1].map(|k| world.sender(format!("sender{n}_{m}_{k}"))));
        let mut running = Vec::new();
        for (k, path) in EXPORTS.iter().enumerate() {
            for (by_token, senders) in senders.iter().enumerate() {
                let (sender, version) = (&senders[k / 2], ["1.1", "1.0"][k % 2]);
                let token = if by_token == 1 { &sender.personal } else { &sender.own.access };
                let connection = world.api.begin_reading(&line(path, version), token.clone());
                running.push((path, version, by_token, connection));
            }
        }
        for sender in senders.iter().flatten() {
            let status = happen(&world, sender).case(cause).status;
            assert!([200, 204].contains(&status), "{cause} {}", sender.name);
        }
        let later = format!("later{n}");
        world.api.register(&later).expect(201);
        for (path, version, by_token, mut connection) in running {
            let what = format!("{path} by token {by_token}, HTTP/{version}, {cause}");
            let (rest, is_reset) = connection.rest_and_end();
            let is_whole = if version == "1.1" { rest.ends_with(LAST_CHUNK) } else { !is_reset };
            assert_eq!(is_whole, !breaks[by_token], "{what}");
            // The newest account is in the last batch, and is no event that was there.
            let shows_later = contains(&rest, &later);
            assert_eq!(shows_later, is_whole && !path.contains("audit"), "{what}");
        }
    }
    world.api.logged("an export broke off");
}

#[test]
fn a_second_factor_that_administrators_need_and_that_is_taken_away_breaks_their_exports() {
    let world = World::start(&[ADMINS, ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required")]);
    for (n, path) in EXPORTS.into_iter().enumerate() {
        let name = format!("ann{n}");
        let ann = world.api.sign_up_admin(&name);
        let factor = world.api.new_second_factor(&ann, PASSWORD);
        let mut export = world.api.begin_reading(&line(path, "1.1"), &ann);
        world.api.forget_used_codes();
        world.second.disable_second_factor(&ann, PASSWORD, &factor.code()).expect(204);
        assert!(!export.rest().ends_with(LAST_CHUNK), "{path}");
        let refusal = world.api.get(path, &ann).expect(403);
        refusal.has(json!({"reason": "ADMIN_SECOND_FACTOR_REQUIRED"}));
    }
}

#[test]
fn where_users_may_export_the_loss_of_a_role_does_not_break_the_export_of_a_personal_token() {
    let world = World::start(&[]);
    let ann = world.sender("ann".into());
    let mut of_users = world.api.begin_reading(&line(EXPORTS[1], "1.1"), &ann.personal);
    let mut of_events = world.api.begin_reading(&line(EXPORTS[3], "1.1"), &ann.personal);
    let mut of_nobody = world.api.begin_reading(&line(EXPORTS[1], "1.1"), Anonymous);
    world.change(&ann, json!({"role": "user"})).expect(200);
    assert!(of_users.rest().ends_with(LAST_CHUNK));
    assert!(!of_events.rest().ends_with(LAST_CHUNK));
    assert!(of_nobody.rest().ends_with(LAST_CHUNK));
}

#[test]
fn what_only_expires_breaks_no_export_unless_something_ends_as_well() {
    let world = World::start(&[ADMINS]);
    let database = &world.api.database;
    let expire = |table: &str, user: &Tokens| {
        database.run(&format!(
            "UPDATE {table} SET expires_at = now() - interval '1 ms' WHERE user_id = '{}'",
            user.id()
        ));
    };
    for (n, path) in EXPORTS.into_iter().enumerate() {
        let ann = world.sender(format!("ann{n}"));
        let exp = now() + 3;
        let token = sign(with_member(&claims(&ann.own.access), "exp", exp));
        let mut by_access_token = world.api.begin_reading(&line(path, "1.1"), &token);
        let mut by_personal_token = world.api.begin_reading(&line(path, "1.1"), &ann.personal);
        let bob = world.sender(format!("bob{n}"));
        let mut by_session = world.api.begin_reading(&line(path, "1.1"), &bob.own);
        let mut by_session_that_ends = world.api.begin_reading(&line(path, "1.1"), &bob.own);
        expire("personal_tokens", &ann.own);
        expire("sessions", &bob.own);
        wait_until(|| now() > exp);
        for token in [&token, &ann.personal, &bob.own.access] {
            world.api.me(token).refused(401, "Invalid token");
        }
        assert!(by_access_token.rest().ends_with(LAST_CHUNK), "{path}");
        assert!(by_personal_token.rest().ends_with(LAST_CHUNK), "{path}");
        assert!(by_session.rest().ends_with(LAST_CHUNK), "{path}");
        world.second.end_user_sessions(&world.root, bob.own.id()).expect(204);
        assert!(!by_session_that_ends.rest().ends_with(LAST_CHUNK), "{path}");
    }
}

#[test]
fn an_export_that_has_waited_for_its_turn_is_refused_as_it_would_have_been_at_first() {
    let world = World::start(&[ADMINS]);
    let requests = || world.api.metric("cloakroom_requests_running").expect("the gauge");
    type Wait = (&'static str, bool, u16, &'static str, fn(&World, &Sender) -> Answer);
    let causes: [Wait; 5] = [
        ("nothing", false, 200, "", CAUSES[0].2),
        ("the end of the session", false, 401, "Invalid token", CAUSES[1].2),
        ("a deletion", false, 401, "User not found or inactive", CAUSES[9].2),
        ("the end of the token", true, 401, "Invalid token", CAUSES[5].2),
        ("a demotion", true, 403, "Admin privileges required.", CAUSES[7].2),
    ];
    for (n, (cause, by_token, status, message, happen)) in causes.into_iter().enumerate() {
        for (m, path) in EXPORTS.into_iter().enumerate() {
            let sender = world.sender(format!("sender{n}_{m}"));
            let token = if by_token { &sender.personal } else { &sender.own.access };
            let running =
                [(); 2].map(|()| world.api.begin_reading(&line(EXPORTS[0], "1.1"), token));
            let events = world.api.database.count("audit_events WHERE action = 'users.export'");
            let mut waiting = world.api.begin(&line(path, "1.1"), token);
            // The gauge counts the request that asks for it.
            wait_until(|| requests() == 2.0);
            let answer = happen(&world, &sender).case(cause);
            assert!([200, 204].contains(&answer.status), "{cause}");
            drop(running);
            if status == 200 {
                assert!(waiting.head().expect("a head").starts_with("HTTP/1.1 200"), "{path}");
                assert!(waiting.rest().ends_with(LAST_CHUNK), "{path}");
                continue;
            }
            let answer = waiting.answer();
            assert_eq!(answer.status, status, "{path} {cause}");
            assert_eq!(answer.json()["detail"], message, "{path} {cause}");
            let since = world.api.database.count("audit_events WHERE action = 'users.export'");
            assert_eq!(since, events, "an export that is refused is none");
        }
    }
}

/// This server ends a response that broke off as if it were whole, but with nothing that came later.
#[test]
fn with_rouille_nothing_follows_either() {
    let world = World::start(&[ADMINS, ("CLOAKROOM_HTTP_SERVER", "rouille")]);
    for (n, path) in EXPORTS.into_iter().enumerate() {
        let sender = world.sender(format!("sender{n}"));
        let [mut ended, mut whole] = [&sender.own.access, &sender.personal]
            .map(|token| world.api.begin_reading(&line(path, "1.1"), token));
        world.second.end_session(&sender.other, &sender.own.session()).expect(204);
        let rest = ended.rest();
        assert!(rest.len() < 7 << 20, "{path}: {} bytes", rest.len());
        let rest = whole.rest();
        assert!(rest.len() > 9 << 20 && rest.ends_with(LAST_CHUNK), "{path}: {} bytes", rest.len());
    }
}
