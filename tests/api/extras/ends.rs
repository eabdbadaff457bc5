//! What ends sessions, personal access tokens, links to files and reset tokens of an account, and what does not: at
//! once, in every process, and with nothing personal left of what has ended.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::*;

/// All that [`Things`] are.
const ALL: &str = "own other sessionless personal link folder reset";

/// Two processes, of which the second hashes passwords at another cost, and an administrator.
struct World {
    api: Server,
    second: Server,
    root: Tokens,
}

/// What an account has that may end.
struct Things {
    name: String,
    /// The session that asks for what happens, where that is done by the owner.
    own: Tokens,
    other: Tokens,
    /// A signed token that is of no session.
    sessionless: String,
    personal: String,
    file: String,
    /// Made with the personal access token, and so are the other ones.
    link: String,
    /// To several files, of which there is only that one.
    several: String,
    /// To the folder of the file.
    folder: String,
    /// To send files to that folder by. It ends as that to the folder does, with the upload by it.
    sending: String,
    sent: String,
    reset: String,
}

impl Things {
    fn email(&self) -> String {
        format!("{}@example.com", self.name)
    }

    fn other_email(&self) -> Value {
        json!({"email": format!("{}@other.example", self.name)})
    }
}

impl World {
    fn start() -> World {
        let test_only = ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true");
        let (api, [root]) = Server::with_users(&[test_only], ["root"]);
        let dearer = ("CLOAKROOM_SCRYPT", "5,8,1");
        let second = api.beside(&[dearer]);
        World { api, second, root }
    }

    /// Signs up a user who has one of each.
    fn things(&self) -> Things {
        static USERS: AtomicUsize = AtomicUsize::new(0);
        let (api, name) = (&self.api, format!("user{}", USERS.fetch_add(1, Ordering::Relaxed)));
        let (own, other) = (api.sign_up(&name), api.sign_in(&name));
        let sessionless = token_without_session(own.id());
        let personal = api.new_token(&own, false);
        let file = api.new_file(&own, "a.txt", "text");
        let link = api.new_link(&personal, &file);
        let [several, folder] = [json!({"files": [file]}), json!({"folder": "/"})].map(|target| {
            let link = api.post("/links", &personal, target).expect(201).json();
            link["url"].as_str().expect("a path").to_owned()
        });
        api.settle();
        let sending = api.ask_for_files(&personal, json!({"upload_to": "/"}));
        let sent = api.begin_by_link(&sending, 4);
        // It ends with the account alone.
        api.begin_partial(&own, 4);
        let reset = api.reset_token(&format!("{name}@example.com"));
        Things {
            name,
            own,
            other,
            sessionless,
            personal,
            file,
            link,
            several,
            folder,
            sending,
            sent,
            reset,
        }
    }

    /// Changes the user as an administrator.
    fn change(&self, things: &Things, change: Value) -> Answer {
        self.api.update_user(&self.root, things.own.id(), change)
    }

    /// The things that both processes accept. Others must be refused by both, with the message for their kind.
    fn left(&self, things: &Things, cause: &str) -> String {
        let usable =
            format!("users WHERE id = '{}' AND is_active AND NOT is_deleted", things.own.id());
        let ended = match self.api.database.count(&usable) {
            1 => "Invalid token",
            _ => "User not found or inactive",
        };
        let is_accepted = |answer: Answer, status: u16, message: &str| {
            answer.status == 200 || answer.case(cause).refused(status, message).status == 200
        };
        let accepted = |api: &Server| {
            let is_live = |tokens: &Tokens| {
                let refreshed = is_accepted(api.refresh(&tokens.refresh), 401, ended);
                assert_eq!(is_accepted(api.me(tokens), 401, ended), refreshed, "{cause}");
                refreshed
            };
            let opens = |link: &str| is_accepted(api.open_link(link), 404, "Link not found");
            assert_eq!(opens(&things.link), opens(&things.several), "{cause}");
            let sends = opens(&format!("{}?about=true", things.sending));
            assert_eq!(sends, opens(&things.folder), "{cause}");
            // What is no form is refused, if the link is one.
            let status = if sends { 422 } else { 404 };
            api.send_request(&things.sending, Form::default()).send().case(cause).expect(status);
            let status = if sends { 200 } else { 404 };
            api.tus("HEAD", &things.sent, Anonymous).send().case(cause).expect(status);
            [
                is_live(&things.own),
                is_live(&things.other),
                is_accepted(api.me(&things.sessionless), 401, ended),
                is_accepted(api.me(&things.personal), 401, "Invalid token"),
                opens(&things.link),
                opens(&things.folder),
            ]
        };
        let first = accepted(&self.api);
        assert_eq!(accepted(&self.second), first, "both processes, {cause}");
        // Last, because the use of a reset token ends all else.
        let reset = self.api.reset_password(&things.reset, NEW_PASSWORD);
        let reset = is_accepted(reset, 400, "Invalid or expired token");
        let all = ALL.split(' ').zip(first.into_iter().chain([reset]));
        all.filter_map(|(name, is_left)| is_left.then_some(name)).collect::<Vec<_>>().join(" ")
    }

    /// Expects that nothing personal is kept of the sessions that have ended, of which there are so many, and no row of
    /// personal tokens and links that have.
    fn expect_traces(&self, things: &Things, left: &str, cause: &str) {
        let count = |from: &str| {
            self.api.database.count(&format!("{from} user_id = '{}'", things.own.id()))
        };
        // The background thread marks those that end together.
        wait_until(|| self.api.database.count("ended_epochs") == 0);
        let ended = ["own", "other"].iter().filter(|name| !left.contains(*name)).count();
        let is_ended = "sessions WHERE ended_at IS NOT NULL AND";
        assert_eq!(count(is_ended), ended as i64, "sessions that have ended, {cause}");
        let personal = "(address IS NOT NULL OR user_agent IS NOT NULL) AND";
        assert_eq!(count(&format!("{is_ended} {personal}")), 0, "addresses of sessions, {cause}");
        let is_left = |name| i64::from(left.contains(name));
        assert_eq!(count("personal_tokens WHERE"), is_left("personal"), "rows of tokens, {cause}");
        let account = format!("users WHERE NOT is_deleted AND id = '{}'", things.own.id());
        let is_there = self.api.database.count(&account);
        let uploads = "partial_uploads WHERE link_id IS NULL AND expires_at > now() AND";
        assert_eq!(count(uploads), is_there, "uploads that have not ended, {cause}");
        // The links of an inactive account only wait.
        if cause != "a deactivation" {
            let left = 2 * (is_left("link") + is_left("folder"));
            assert_eq!(count("file_links WHERE"), left, "rows of links, {cause}");
        }
    }
}

/// What happens, what goes on after it, and the request that does it.
type Cause = (&'static str, &'static str, fn(&World, &Things) -> Answer);

/// What goes on when all sessions end, and what when one of the two does.
const NO_SESSION: &str = "personal link folder reset";
const OTHER_SESSION: &str = "other sessionless personal link folder reset";
const OWN_SESSION: &str = "own sessionless personal link folder reset";
const ALL_BUT_RESET: &str = "own other sessionless personal link folder";

const BY_THE_OWNER: [Cause; 16] = [
    ("nothing", ALL, |w, t| w.api.me(&t.own)),
    ("logout here", OTHER_SESSION, |w, t| w.second.logout_scope(&t.own, "local")),
    ("logout elsewhere", "own personal link folder reset", |w, t| {
        w.api.logout_scope(&t.own, "others")
    }),
    ("logout", NO_SESSION, |w, t| w.second.logout(&t.own)),
    ("logout everywhere", NO_SESSION, |w, t| w.api.logout_scope(&t.own, "all")),
    ("the end of another session", OWN_SESSION, |w, t| {
        w.api.end_session(&t.own, &t.other.session())
    }),
    ("the end of the own session", OTHER_SESSION, |w, t| {
        w.api.end_session(&t.own, &t.own.session())
    }),
    ("a refresh token that never was", OTHER_SESSION, |w, t| {
        let forged = with_member(&claims(&t.own.refresh), "jti", UNKNOWN_ID);
        w.api.refresh(&sign(forged)).refused(401, "Invalid token");
        w.api.me(&t.other)
    }),
    ("a refresh token that was replaced longer ago than the grace", OTHER_SESSION, |w, t| {
        let next = w.api.refresh(&t.own.refresh).expect(200).tokens();
        let earlier = "UPDATE sessions SET rotated_at = ARRAY[now() - interval '11 s']";
        w.api.database.run(&format!("{earlier} WHERE id = '{}'", t.own.session()));
        w.api.refresh(&t.own.refresh).refused(401, "Invalid token");
        w.api.refresh(&next.refresh).refused(401, "Invalid token");
        w.api.logged("was used again");
        w.api.me(&t.other)
    }),
    ("a change of the password, to the same one", "own", |w, t| {
        w.api.change_password(&t.own, PASSWORD, PASSWORD)
    }),
    ("a change of the password by a token without a session", "", |w, t| {
        w.api.change_password(&t.sessionless, PASSWORD, PASSWORD)
    }),
    ("a reset of the password with a later token", "", |w, t| {
        w.api.reset_password(&w.api.reset_token(&t.email()), PASSWORD)
    }),
    ("another address", ALL_BUT_RESET, |w, t| w.api.update_me(&t.own, t.other_email())),
    ("the same address and another name", ALL, |w, t| {
        w.api.update_me(&t.own, json!({"name": "Ann", "email": t.email()}))
    }),
    ("a second factor", "own personal link folder reset", |w, t| {
        w.api.new_second_factor(&t.own, PASSWORD);
        w.api.me(&t.own)
    }),
    ("the deletion of the own account", "", |w, t| w.api.delete_me(&t.own, PASSWORD)),
];

const BY_OTHERS: [Cause; 16] = [
    ("an end of all sessions", NO_SESSION, |w, t| w.api.end_user_sessions(&w.root, t.own.id())),
    ("an end of all personal tokens", "own other sessionless link folder reset", |w, t| {
        w.api.delete_user_tokens(&w.root, t.own.id())
    }),
    ("a second factor that is taken away", NO_SESSION, |w, t| {
        w.api.reset_second_factor(&w.root, t.own.id())
    }),
    ("another role", NO_SESSION, |w, t| w.change(t, json!({"role": "admin"}))),
    ("the same role and activity", ALL, |w, t| {
        w.change(t, json!({"role": "user", "is_active": true}))
    }),
    ("another address", ALL_BUT_RESET, |w, t| w.change(t, t.other_email())),
    ("a name and permissions", ALL, |w, t| w.change(t, json!({"name": "A", "permissions": ["x"]}))),
    ("a password that is set, the same one", "", |w, t| w.change(t, json!({"password": PASSWORD}))),
    ("a deactivation", "", |w, t| w.change(t, json!({"is_active": false}))),
    ("a deactivation that is taken back", "link folder", |w, t| {
        w.change(t, json!({"is_active": false})).expect(200);
        w.change(t, json!({"is_active": true}))
    }),
    ("a deletion", "", |w, t| w.api.delete_user(&w.root, t.own.id())),
    ("create-admin", "", |w, t| {
        w.api.create_admin(&t.email(), PASSWORD);
        assert_eq!(w.second.sign_in(&t.name).user["role"], "admin");
        w.api.me(&w.root)
    }),
    ("a hash that is renewed", ALL, |w, t| {
        let sql = format!("SELECT password_hash FROM users WHERE id = '{}'", t.own.id());
        let hash = || w.api.database.value::<String>(&sql);
        let before = hash();
        let answer = w.second.login(&t.name, PASSWORD);
        assert_ne!(hash(), before);
        answer
    }),
    ("another user's password", ALL, |w, _| {
        w.api.change_password(&w.things().own, PASSWORD, NEW_PASSWORD)
    }),
    ("another name of the file, and the end of another file", ALL, |w, t| {
        w.api.update_file(&t.own, &t.file, json!({"filename": "b.txt"})).expect(200);
        let other = w.api.new_file(&t.own, "c.txt", "c");
        w.api.new_link(&t.own, &other);
        w.api.delete_file(&t.own, &other)
    }),
    ("the deletion of the file", "own other sessionless personal folder reset", |w, t| {
        w.api.delete_file(&t.own, &t.file)
    }),
];

#[test]
fn each_cause_ends_what_it_should_everywhere_and_leaves_the_rest() {
    let world = World::start();
    let bystander = world.things();
    for (cause, expected, happen) in BY_THE_OWNER.into_iter().chain(BY_OTHERS) {
        let things = world.things();
        let answer = happen(&world, &things).case(cause);
        assert!(answer.status == 200 || answer.expect(204).bytes.is_empty());
        world.expect_traces(&things, expected, cause);
        assert_eq!(world.left(&things, cause), expected, "{cause}");
    }
    assert_eq!(world.left(&bystander, "all of it"), ALL);
    let (last, of_root) = (world.things(), world.api.new_token(&world.root, false));
    world.api.delete("/users/test-only/delete-all", &world.root).expect(200);
    assert_eq!(world.left(&last, "a deletion of all users"), "");
    world.api.me(of_root).refused(401, "Invalid token");
    assert_eq!(
        world.api.database.count("personal_tokens") + world.api.database.count("file_links"),
        0
    );
}
