//! Requests that are overtaken by another change: a statement of theirs waits for a row that the change has locked, and
//! what they do is decided by what the change leaves.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::harness::*;

const INVALID: &str = "Invalid token";
const WRONG: &str = "Current password is incorrect";
const UNUSABLE: &str = "User not found or inactive";

/// A service that asks for the password where an address changes, and an administrator with a personal token.
struct World {
    api: Server,
    root: Tokens,
    token_of_root: String,
}

/// A user with two sessions, a file, a personal token, and a second factor that is offered.
struct User {
    name: String,
    own: Tokens,
    other: Tokens,
    file: String,
    personal: String,
    factor: SecondFactor,
}

impl User {
    fn of(api: &Server) -> User {
        static USERS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("user{}", USERS.fetch_add(1, Ordering::Relaxed));
        let (own, other) = (api.sign_up(&name), api.sign_in(&name));
        let file = api.new_file(&own, "a.txt", "text");
        let personal = api.new_token(&own, false);
        let factor = api.offer_second_factor(&own, PASSWORD);
        User { name, own, other, file, personal, factor }
    }

    fn id(&self) -> &str {
        self.own.id()
    }
}

/// One request: what it is, the change that it waits for, the request, its answer (without a message if it succeeds),
/// and which rows there are in the end, and how many. `{id}` is the user's id, `{name}` the name, `{session}` the id of
/// the session that sends the request.
type Row = (
    &'static str,
    &'static str,
    fn(&World, &User) -> Answer,
    (u16, &'static str),
    (&'static str, i64),
);

const NEW_PASSWORD_SET: &str =
    "UPDATE users SET password_hash = '-', credentials_version = credentials_version + 1
                                WHERE id = '{id}'";
const NEW_VERSION: &str =
    "UPDATE users SET credentials_version = credentials_version + 1 WHERE id = '{id}'";
const PROMOTION: &str = "UPDATE users SET role = 'admin' WHERE id = '{id}'";
const END_OF_ALL: &str =
    "UPDATE users SET sessions_ended_at = now() WHERE id = '{id}'; SELECT end_sessions('{id}')";
const END_OF_OTHERS: &str = "SELECT end_sessions('{id}', '{session}')";
/// A sign-in whose session has the id of the user.
const SIGN_IN: &str = "UPDATE users SET last_login = now() WHERE id = '{id}';
    INSERT INTO sign_in_networks (user_id, network) VALUES ('{id}', '203.0.113.0/24');
    INSERT INTO sessions (id, user_id, refresh_id, expires_at, epoch)
    SELECT id, id, id, now() + interval '1 day', session_epoch FROM users WHERE id = '{id}'";
const UPLOAD: &str = "SELECT FROM users WHERE id = '{id}' FOR NO KEY UPDATE;
    INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
    VALUES (gen_random_uuid(), '{id}', 'f', 'f', 'text/plain', 1, 'f', 'h')";
const NEW_TOKEN: &str = "SELECT FROM users WHERE id = '{id}' FOR NO KEY UPDATE;
    INSERT INTO personal_tokens (id, user_id, token_hash, name, read_only, expires_at)
    VALUES ('{id}', '{id}', 'x', 'a', false, now() + interval '1 day')";

const AS_BEFORE: &str = "users WHERE id = '{id}' AND NOT is_deleted
                         AND email = '{name}@example.com' AND password_hash <> '-'";
const LIVE: &str = "sessions s JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
                    WHERE u.id = '{id}' AND s.ended_at IS NULL";
/// The session that was opened by `SIGN_IN`.
const LIVE_SIGN_IN: &str =
    "sessions s JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
                            WHERE s.id = '{id}' AND s.ended_at IS NULL";
const TOKENS: &str = "personal_tokens WHERE user_id = '{id}'";
const LINKS: &str = "file_links WHERE user_id = '{id}'";
const FILES: &str = "files WHERE user_id = '{id}'";
const NO_FACTOR: &str = "users WHERE id = '{id}' AND second_factor_at IS NULL";

fn set_email(w: &World, user: &User) -> Answer {
    let body = json!({"email": format!("{}@new.example", user.name), "current_password": PASSWORD});
    w.api.update_me(&user.own, body)
}

fn change_password(w: &World, user: &User) -> Answer {
    w.api.change_password(&user.own, PASSWORD, NEW_PASSWORD)
}

fn logout_others(w: &World, user: &User) -> Answer {
    w.api.logout_scope(&user.own, "others")
}

/// A request of whose session all goes on.
fn keeps_its_session(w: &World, user: &User, answer: Answer) -> Answer {
    w.api.me(&user.own).expect(200);
    w.api.me(&user.other).refused(401, INVALID);
    answer
}

/// A request of whose session nothing goes on.
fn loses_its_session(w: &World, user: &User, answer: Answer) -> Answer {
    w.api.me(&user.own).refused(401, INVALID);
    w.api.refresh(&user.own.refresh).refused(401, INVALID);
    answer
}

/// A request that ends the session of `SIGN_IN`.
fn ends_the_sign_in(w: &World, user: &User, answer: Answer) -> Answer {
    let [access, refresh] = tokens_of_session(user.id(), user.id(), user.id());
    w.api.me(&access).refused(401, INVALID);
    w.api.refresh(&refresh).refused(401, INVALID);
    answer
}

const BY_A_CHANGE_OF_THE_ACCOUNT: [Row; 13] = [
    (
        "an address, confirmed with a password of before",
        NEW_VERSION,
        set_email,
        (400, WRONG),
        (AS_BEFORE, 1),
    ),
    (
        "a deletion, confirmed with a password of before",
        NEW_VERSION,
        |w, user| w.api.delete_me(&user.own, PASSWORD),
        (400, WRONG),
        (AS_BEFORE, 1),
    ),
    (
        // As a form does that sends all fields: the address of before must not come back without the password.
        "a name, with the address of before and no password",
        "UPDATE users SET email = '{name}@new.example' WHERE id = '{id}'",
        |w, user| {
            let email = format!("{}@example.com", user.name);
            w.api.update_me(&user.own, json!({"email": email, "name": "Ann"}))
        },
        (200, ""),
        ("users WHERE id = '{id}' AND email = '{name}@new.example' AND name = 'Ann'", 1),
    ),
    (
        "a sign-in with the password of before",
        NEW_PASSWORD_SET,
        |w, user| w.api.login(&user.name, PASSWORD),
        (401, "Invalid username or password"),
        (LIVE, 2),
    ),
    (
        "a sign-in without a code, where a second factor is confirmed",
        "UPDATE users SET second_factor_sealed = '', second_factor_at = now() WHERE id = '{id}'",
        |w, user| w.api.login(&user.name, PASSWORD),
        (401, "Second factor required"),
        (LIVE, 2),
    ),
    (
        "a token, where the password changes",
        NEW_PASSWORD_SET,
        |w, user| w.api.create_token(&user.own, json!({"name": "a"})),
        (401, INVALID),
        (TOKENS, 0),
    ),
    (
        "a link by a session, where the password changes",
        NEW_PASSWORD_SET,
        |w, user| w.api.create_link(&user.own, &user.file, json!({})),
        (401, INVALID),
        (LINKS, 0),
    ),
    (
        "a link by a token, where the password changes",
        NEW_PASSWORD_SET,
        |w, user| w.api.create_link(&user.personal, &user.file, json!({})),
        (401, INVALID),
        (LINKS, 0),
    ),
    (
        "a link, where the file goes",
        "SELECT FROM users WHERE id = '{id}' FOR NO KEY UPDATE; DELETE FROM files WHERE user_id = '{id}'",
        |w, user| w.api.create_link(&user.own, &user.file, json!({})),
        (404, "File not found"),
        (LINKS, 0),
    ),
    (
        "an upload, where the owner is deleted",
        "UPDATE users SET is_deleted = true WHERE id = '{id}'",
        |w, user| {
            let before = w.api.data.contents().len();
            let answer = w.api.upload(&user.own, "b.txt", "b");
            assert_eq!(w.api.data.contents().len(), before);
            answer
        },
        (401, UNUSABLE),
        ("files WHERE user_id = '{id}' AND filename = 'b.txt'", 0),
    ),
    (
        "a confirmation of a second factor, where the password changes",
        NEW_VERSION,
        |w, user| {
            w.api
                .confirm_second_factor(&user.own, &user.factor.code())
                .has(json!({"reason": "SESSION_ENDED"}))
        },
        (401, INVALID),
        (NO_FACTOR, 1),
    ),
    (
        "a password that an administrator sets with a token, where the user becomes an administrator",
        PROMOTION,
        |w, user| w.api.update_user(&w.token_of_root, user.id(), json!({"password": NEW_PASSWORD})),
        (404, "User not found"),
        ("users WHERE id = '{id}' AND credentials_version = 1", 1),
    ),
    (
        "a deletion by an administrator with a token, where the user becomes an administrator",
        PROMOTION,
        |w, user| w.api.delete_user(&w.token_of_root, user.id()),
        (404, "User not found"),
        (AS_BEFORE, 1),
    ),
];

const BY_A_CHANGE_OF_SESSIONS: [Row; 14] = [
    (
        "a sign-in, where all sessions end",
        END_OF_ALL,
        |w, user| {
            let answer = w.api.login(&user.name, PASSWORD);
            w.api.me(answer.tokens()).expect(200);
            w.api.refresh(&answer.tokens().refresh).expect(200);
            loses_its_session(w, user, answer)
        },
        (200, ""),
        (LIVE, 1),
    ),
    (
        "an end of all sessions, where the user signs in",
        SIGN_IN,
        |w, user| ends_the_sign_in(w, user, w.api.end_user_sessions(&w.root, user.id())),
        (204, ""),
        (LIVE, 0),
    ),
    (
        "a logout, where the user signs in",
        SIGN_IN,
        |w, user| ends_the_sign_in(w, user, w.api.logout(&user.own)),
        (204, ""),
        (LIVE, 0),
    ),
    (
        "a logout of others, where the user signs in",
        SIGN_IN,
        |w, user| ends_the_sign_in(w, user, keeps_its_session(w, user, logout_others(w, user))),
        (204, ""),
        (LIVE, 1),
    ),
    (
        "a change of the password, where the user signs in",
        SIGN_IN,
        |w, user| ends_the_sign_in(w, user, keeps_its_session(w, user, change_password(w, user))),
        (200, ""),
        (LIVE, 1),
    ),
    (
        "another role, where the user signs in",
        SIGN_IN,
        |w, user| w.api.update_user(&w.root, user.id(), json!({"role": "admin"})),
        (200, ""),
        (LIVE_SIGN_IN, 0),
    ),
    (
        "a deletion, where the user signs in",
        SIGN_IN,
        |w, user| w.api.delete_user(&w.root, user.id()),
        (204, ""),
        ("sign_in_networks WHERE user_id = '{id}'", 0),
    ),
    (
        "a deletion, where the user uploads",
        UPLOAD,
        |w, user| w.api.delete_user(&w.root, user.id()),
        (204, ""),
        (FILES, 0),
    ),
    (
        "a change of the password, where a token is made",
        NEW_TOKEN,
        change_password,
        (200, ""),
        (TOKENS, 0),
    ),
    (
        "a refresh, where the other sessions end",
        END_OF_OTHERS,
        |w, user| {
            let answer = w.api.refresh(&user.own.refresh);
            w.api.refresh(&answer.tokens().refresh).expect(200);
            keeps_its_session(w, user, answer)
        },
        (200, ""),
        (LIVE, 1),
    ),
    (
        "a logout of others, where they end",
        END_OF_OTHERS,
        |w, user| keeps_its_session(w, user, logout_others(w, user)),
        (204, ""),
        (LIVE, 1),
    ),
    (
        "a confirmation of a second factor, where the other sessions end",
        END_OF_OTHERS,
        |w, user| {
            keeps_its_session(w, user, w.api.confirm_second_factor(&user.own, &user.factor.code()))
        },
        (200, ""),
        (NO_FACTOR, 0),
    ),
    (
        "a confirmation of a second factor, where all sessions end",
        END_OF_ALL,
        |w, user| {
            let answer = w.api.confirm_second_factor(&user.own, &user.factor.code());
            loses_its_session(w, user, answer.has(json!({"reason": "SESSION_ENDED"})))
        },
        (401, INVALID),
        (NO_FACTOR, 1),
    ),
    (
        "a change of the password, where the other sessions end",
        END_OF_OTHERS,
        |w, user| keeps_its_session(w, user, change_password(w, user)),
        (200, ""),
        (LIVE, 1),
    ),
];

#[test]
fn what_is_overtaken_by_a_change_is_decided_by_what_that_leaves() {
    let required = ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true");
    let (api, [root]) = Server::with_users(&[required], ["root"]);
    let token_of_root = api.new_token(&root, false);
    let world = World { api, root, token_of_root };
    for (what, change, request, (status, message), (rows, expected)) in
        BY_A_CHANGE_OF_THE_ACCOUNT.into_iter().chain(BY_A_CHANGE_OF_SESSIONS)
    {
        let user = User::of(&world.api);
        let filled = |text: &str| {
            let text = text.replace("{id}", user.id()).replace("{name}", &user.name);
            text.replace("{session}", &user.own.session())
        };
        let answer = world.api.database.commit_during(&filled(change), || request(&world, &user));
        let answer = answer.case(what).expect(status);
        if status >= 400 {
            answer.refused(status, message);
        }
        // The background thread removes what was a deleted user's.
        wait_until(|| world.api.database.count("pending_removals") == 0);
        assert_eq!(world.api.database.count(&filled(rows)), expected, "{what}");
    }
}

#[test]
fn a_session_that_has_ended_is_not_kept_by_a_request_that_it_sent_before() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let world = World { token_of_root: api.new_token(&root, false), api, root };
    for request in [logout_others, change_password] {
        let user = User::of(&world.api);
        let end = format!("SELECT end_sessions('{}')", user.id());
        let answer = world.api.database.commit_during(&end, || request(&world, &user));
        loses_its_session(&world, &user, answer);
    }
}
