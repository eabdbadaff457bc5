//! Requests that are overtaken by another change: a statement of theirs waits for a row that the change has locked, and
//! what they do is decided by what the change leaves.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::*;

const INVALID: &str = "Invalid token";
const WRONG: &str = "Current password is incorrect";
const UNUSABLE: &str = "User not found or inactive";
const NOBODY: &str = "User not found";
const NO_SUCH_LINK: &str = "Link not found";
const NO_UPLOAD: &str = "Upload not found";
const BAD_LOGIN: &str = "Invalid username or password";

/// A service that asks for the password where an address changes, and an administrator with a personal token.
struct World {
    api: Server,
    root: Tokens,
    token_of_root: String,
}

impl World {
    fn start() -> World {
        let required = ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true");
        let (api, [root]) = Server::with_users(&[required, PATIENT], ["root"]);
        World { token_of_root: api.new_token(&root, false), api, root }
    }
}

/// A user with two sessions, a file, a link to send files by, an upload in several requests and one by that link, a
/// personal token, and a second factor that is offered.
struct User {
    name: String,
    own: Tokens,
    other: Tokens,
    file: String,
    sending: String,
    upload: String,
    sent: String,
    personal: String,
    factor: SecondFactor,
}

impl User {
    fn of(api: &Server) -> User {
        static USERS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("user{}", USERS.fetch_add(1, Ordering::Relaxed));
        let (own, other) = (api.sign_up(&name), api.sign_in(&name));
        let file = api.new_file(&own, "a.txt", "text");
        api.settle();
        let sending = api.ask_for_files(&own, json!({}));
        let upload = api.begin_partial(&own, 7);
        let sent = api.begin_by_link(&sending, 7);
        let personal = api.new_token(&own, false);
        let factor = api.offer_second_factor(&own, PASSWORD);
        User { name, own, other, file, sending, upload, sent, personal, factor }
    }

    fn id(&self) -> &str {
        self.own.id()
    }
}

/// What is overtaken, the change that it waits for, the status and message of its answer (without a message if it
/// succeeds), which rows there are in the end, how many, and the request. `{id}` is the user's id, `{name}` the name,
/// `{session}` the id of the session that sends the request.
type Row =
    (&'static str, &'static str, u16, &'static str, &'static str, i64, fn(&World, &User) -> Answer);

const NEW_PASSWORD_SET: &str =
    "UPDATE users SET password_hash = '-', credentials_version = credentials_version + 1
                                WHERE id = '{id}'";
const NEW_VERSION: &str =
    "UPDATE users SET credentials_version = credentials_version + 1 WHERE id = '{id}'";
const PROMOTION: &str = "UPDATE users SET role = 'admin' WHERE id = '{id}'";
const NEW_EMAIL: &str =
    "UPDATE users SET email = '{name}@new.example', email_key = '{name}@new.example'
                         WHERE id = '{id}'";
const NEW_FACTOR: &str =
    "UPDATE users SET second_factor_sealed = '', second_factor_at = now() WHERE id = '{id}'";
const DELETED: &str = "UPDATE users SET is_deleted = true WHERE id = '{id}'";
const NO_FILE: &str = "SELECT FROM users WHERE id = '{id}' FOR NO KEY UPDATE; DELETE FROM files WHERE user_id = '{id}'";
const NO_LINK: &str = "SELECT FROM users WHERE id = '{id}' FOR NO KEY UPDATE;
    DELETE FROM file_links WHERE user_id = '{id}'";
const INACTIVE: &str = "UPDATE users SET is_active = false WHERE id = '{id}'";
const END_OF_ALL: &str =
    "UPDATE users SET sessions_ended_at = now() WHERE id = '{id}'; SELECT end_sessions('{id}')";
/// The same beside a lock for which the creation of an account waits.
const LOCK_AND_END_OF_ALL: &str = "LOCK TABLE outbox;
     UPDATE users SET sessions_ended_at = now() WHERE id = '{id}'; SELECT end_sessions('{id}')";
const END_OF_SESSIONS: &str = "SELECT end_sessions('{id}')";
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
    INSERT INTO personal_tokens (id, user_id, token_hash, name, scope, expires_at)
    VALUES ('{id}', '{id}', 'x', 'a', 'all', now() + interval '1 day')";

const AS_BEFORE: &str = "users WHERE id = '{id}' AND NOT is_deleted
                         AND email = '{name}@example.com' AND password_hash <> '-'";
const LIVE: &str = "sessions s JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
                    WHERE u.id = '{id}' AND s.ended_at IS NULL";
/// The session that was opened by `SIGN_IN`.
const LIVE_SIGN_IN: &str =
    "sessions s JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
                            WHERE s.id = '{id}' AND s.ended_at IS NULL";
const TOKENS: &str = "personal_tokens WHERE user_id = '{id}'";
const LINKS: &str = "file_links WHERE user_id = '{id}' AND upload_to IS NULL";
const ALL_LINKS: &str = "file_links WHERE user_id = '{id}'";
const FILES: &str = "files WHERE user_id = '{id}'";
const UPLOADED: &str = "files WHERE user_id = '{id}' AND filename = 'b.txt'";
const IN_PIECES: &str = "files WHERE user_id = '{id}' AND file_size = 7";
const NETWORKS: &str = "sign_in_networks WHERE user_id = '{id}'";
const NO_NEW: &str = "users WHERE email = 'of-{name}@example.com'";
const AS_USER: &str = "users WHERE id = '{id}' AND role = 'user'";
const FIRST_VERSION: &str = "users WHERE id = '{id}' AND credentials_version = 1";
const WITH_NEW_EMAIL: &str =
    "users WHERE id = '{id}' AND email = '{name}@new.example' AND name = 'Ann'";
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

fn confirm(w: &World, user: &User) -> Answer {
    w.api.confirm_second_factor(&user.own, &user.factor.code())
}

fn new_token(w: &World, user: &User) -> Answer {
    w.api.create_token(&user.own, json!({"name": "a"}))
}

fn new_link(w: &World, user: &User) -> Answer {
    w.api.create_link(&user.own, &user.file, json!({}))
}

fn new_link_to_several(w: &World, user: &User) -> Answer {
    w.api.post("/links", &user.own, json!({"files": [user.file]}))
}

/// Sends a file by a link, of which nothing stays if it is refused.
fn send(w: &World, user: &User) -> Answer {
    let before = w.api.data.contents().len();
    let answer = w.api.send_file(&user.sending, "b.txt", b"b");
    assert_eq!(w.api.data.contents().len(), before, "contents: {answer:?}");
    answer
}

/// All bytes of an upload in several requests.
fn add(w: &World, user: &User) -> Answer {
    w.api.adding(&user.upload, &user.own, 0, b"content").send()
}

fn add_by_link(w: &World, user: &User) -> Answer {
    w.api.adding(&user.sent, Anonymous, 0, b"content").send()
}

fn delete(w: &World, user: &User) -> Answer {
    w.api.delete_user(&w.root, user.id())
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

const BY_A_CHANGE_OF_THE_ACCOUNT: [Row; 26] = [
    ("an address, with a password of before", NEW_VERSION, 400, WRONG, AS_BEFORE, 1, set_email),
    ("a deletion, with a password of before", NEW_VERSION, 400, WRONG, AS_BEFORE, 1, |w, user| {
        w.api.delete_me(&user.own, PASSWORD)
    }),
    // As a form does that sends all fields: the address of before must not come back without the password.
    ("a name, with the address of before", NEW_EMAIL, 200, "", WITH_NEW_EMAIL, 1, |w, user| {
        let email = format!("{}@example.com", user.name);
        w.api.update_me(&user.own, json!({"email": email, "name": "Ann"}))
    }),
    ("a sign-in, by a new password", NEW_PASSWORD_SET, 401, BAD_LOGIN, LIVE, 2, |w, user| {
        w.api.login(&user.name, PASSWORD)
    }),
    ("a sign-in without a code", NEW_FACTOR, 401, "Second factor required", LIVE, 2, |w, user| {
        w.api.login(&user.name, PASSWORD)
    }),
    ("a token, by a new password", NEW_PASSWORD_SET, 401, INVALID, TOKENS, 0, new_token),
    ("a link, by a new password", NEW_PASSWORD_SET, 401, INVALID, LINKS, 0, new_link),
    ("a token's link, by a new password", NEW_PASSWORD_SET, 401, INVALID, LINKS, 0, |w, user| {
        w.api.create_link(&user.personal, &user.file, json!({}))
    }),
    ("a link, by the file's end", NO_FILE, 404, "File not found", LINKS, 0, new_link),
    ("links, by a new password", NEW_PASSWORD_SET, 401, INVALID, LINKS, 0, new_link_to_several),
    ("links, by a file's end", NO_FILE, 404, "File not found", LINKS, 0, new_link_to_several),
    ("a folder's link, by a new password", NEW_PASSWORD_SET, 401, INVALID, LINKS, 0, |w, user| {
        w.api.post("/links", &user.own, json!({"folder": "/"}))
    }),
    (
        "a sender's link, by a new password",
        NEW_PASSWORD_SET,
        401,
        INVALID,
        ALL_LINKS,
        0,
        |w, user| w.api.post("/links", &user.own, json!({"upload_to": "/"})),
    ),
    ("an upload, by the owner's deletion", DELETED, 401, UNUSABLE, UPLOADED, 0, |w, user| {
        let before = w.api.data.contents().len();
        let answer = w.api.upload(&user.own, "b.txt", "b");
        let after = w.api.data.contents().len();
        assert_eq!(after, before, "contents, of an upload by the owner's deletion: {answer:?}");
        answer
    }),
    ("a file by a link, by the link's end", NO_LINK, 404, NO_SUCH_LINK, UPLOADED, 0, send),
    ("a file by a link, by a new password", NEW_PASSWORD_SET, 404, NO_SUCH_LINK, UPLOADED, 0, send),
    ("a file by a link, by a deactivation", INACTIVE, 404, NO_SUCH_LINK, UPLOADED, 0, send),
    ("a file by a link, by a deletion", DELETED, 404, NO_SUCH_LINK, UPLOADED, 0, send),
    ("bytes, by the owner's deletion", DELETED, 404, NO_UPLOAD, IN_PIECES, 0, add),
    ("bytes by a link, by the link's end", NO_LINK, 404, NO_UPLOAD, IN_PIECES, 0, add_by_link),
    (
        "bytes by a link, by a new password",
        NEW_PASSWORD_SET,
        404,
        NO_UPLOAD,
        IN_PIECES,
        0,
        add_by_link,
    ),
    ("bytes by a link, by a deactivation", INACTIVE, 404, NO_UPLOAD, IN_PIECES, 0, add_by_link),
    ("bytes by a link, by a deletion", DELETED, 404, NO_UPLOAD, IN_PIECES, 0, add_by_link),
    ("a second factor, by a new password", NEW_VERSION, 401, INVALID, NO_FACTOR, 1, |w, user| {
        confirm(w, user).has(json!({"reason": "SESSION_ENDED"}))
    }),
    ("a new password, by a promotion", PROMOTION, 404, NOBODY, FIRST_VERSION, 1, |w, user| {
        w.api.update_user(&w.token_of_root, user.id(), json!({"password": NEW_PASSWORD}))
    }),
    ("a deletion with a token, by a promotion", PROMOTION, 404, NOBODY, AS_BEFORE, 1, |w, user| {
        w.api.delete_user(&w.token_of_root, user.id())
    }),
];

const BY_A_CHANGE_OF_SESSIONS: [Row; 20] = [
    ("a sign-in, by the end of all", END_OF_ALL, 200, "", LIVE, 1, |w, user| {
        let answer = w.api.login(&user.name, PASSWORD);
        w.api.me(answer.tokens()).expect(200);
        w.api.refresh(&answer.tokens().refresh).expect(200);
        loses_its_session(w, user, answer)
    }),
    // As an administrator who was demoted meanwhile.
    ("a promotion, by the end of all", END_OF_ALL, 401, INVALID, AS_USER, 1, |w, user| {
        let admin = sign(with_member(&claims(&user.own.access), "role", "admin"));
        w.api.update_user(&admin, user.id(), json!({"role": "admin"}))
    }),
    (
        "a new account, by the end of all",
        LOCK_AND_END_OF_ALL,
        401,
        INVALID,
        NO_NEW,
        0,
        |w, user| {
            let admin = sign(with_member(&claims(&user.own.access), "role", "admin"));
            let email = format!("of-{}@example.com", user.name);
            let new = json!({"email": email, "name": "New", "password": PASSWORD, "role": "admin"});
            w.api.create_user(&admin, new)
        },
    ),
    ("an address, by the end of all", END_OF_ALL, 401, INVALID, AS_BEFORE, 1, set_email),
    ("a token, by the end of all", END_OF_ALL, 401, INVALID, TOKENS, 1, new_token),
    ("a second factor, by the end of all", END_OF_ALL, 401, INVALID, NO_FACTOR, 1, |w, user| {
        let answer = confirm(w, user).has(json!({"reason": "SESSION_ENDED"}));
        loses_its_session(w, user, answer)
    }),
    ("a logout of others, by the end of all", END_OF_SESSIONS, 204, "", LIVE, 0, |w, user| {
        loses_its_session(w, user, logout_others(w, user))
    }),
    ("a new password, by the end of all", END_OF_SESSIONS, 200, "", LIVE, 0, |w, user| {
        loses_its_session(w, user, change_password(w, user))
    }),
    ("an end of all sessions, by a sign-in", SIGN_IN, 204, "", LIVE, 0, |w, user| {
        ends_the_sign_in(w, user, w.api.end_user_sessions(&w.root, user.id()))
    }),
    ("a logout, by a sign-in", SIGN_IN, 204, "", LIVE, 0, |w, user| {
        ends_the_sign_in(w, user, w.api.logout(&user.own))
    }),
    ("a logout of others, by a sign-in", SIGN_IN, 204, "", LIVE, 1, |w, user| {
        ends_the_sign_in(w, user, keeps_its_session(w, user, logout_others(w, user)))
    }),
    ("a new password, by a sign-in", SIGN_IN, 200, "", LIVE, 1, |w, user| {
        ends_the_sign_in(w, user, keeps_its_session(w, user, change_password(w, user)))
    }),
    ("another role, by a sign-in", SIGN_IN, 200, "", LIVE_SIGN_IN, 0, |w, user| {
        w.api.update_user(&w.root, user.id(), json!({"role": "admin"}))
    }),
    ("a deletion, by a sign-in", SIGN_IN, 204, "", NETWORKS, 0, delete),
    ("a deletion, by an upload", UPLOAD, 204, "", FILES, 0, delete),
    ("a new password, by a token", NEW_TOKEN, 200, "", TOKENS, 0, change_password),
    ("a refresh, by the end of others", END_OF_OTHERS, 200, "", LIVE, 1, |w, user| {
        let answer = w.api.refresh(&user.own.refresh);
        w.api.refresh(&answer.tokens().refresh).expect(200);
        keeps_its_session(w, user, answer)
    }),
    ("a logout of others, by their end", END_OF_OTHERS, 204, "", LIVE, 1, |w, user| {
        keeps_its_session(w, user, logout_others(w, user))
    }),
    ("a second factor, by the end of others", END_OF_OTHERS, 200, "", NO_FACTOR, 0, |w, user| {
        keeps_its_session(w, user, confirm(w, user))
    }),
    ("a new password, by the end of others", END_OF_OTHERS, 200, "", LIVE, 1, |w, user| {
        keeps_its_session(w, user, change_password(w, user))
    }),
];

#[test]
fn what_is_overtaken_by_a_change_is_decided_by_what_that_leaves() {
    let world = World::start();
    for (what, change, status, message, rows, expected, request) in
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
