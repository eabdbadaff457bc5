//! Secrets that sign tokens: which key a token is checked with, how a secret is changed, and who issued a token.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use jwt_simple::prelude::HS256Key;

use crate::harness::*;

/// The secret that replaces [`SECRET`].
const NEXT: &str = "the-next-secret-0123456789abcdef-0123456789abcdef-0123456789abcdef";
const OLD_SECRETS: &str = "CLOAKROOM_JWT_OLD_SECRETS";
const ISSUER: &str = "CLOAKROOM_JWT_ISSUER";

/// The settings of a process in each step of a change from [`SECRET`] to [`NEXT`].
const BEFORE: [(&str, &str); 2] = [("CLOAKROOM_JWT_SECRET", SECRET), (OLD_SECRETS, "")];
const ANNOUNCED: [(&str, &str); 2] = [("CLOAKROOM_JWT_SECRET", SECRET), (OLD_SECRETS, NEXT)];
const CHANGED: [(&str, &str); 2] = [("CLOAKROOM_JWT_SECRET", NEXT), (OLD_SECRETS, SECRET)];

/// A key of the secret, which writes `id` as `kid` into its tokens.
fn key(secret: &str, id: Option<&str>) -> HS256Key {
    let key = HS256Key::from_bytes(secret.as_bytes());
    id.map_or(key.clone(), |id| key.with_key_id(id))
}

#[test]
fn a_token_is_checked_with_the_key_that_it_names() {
    let [old, last] = ["an-old-secret-0123456789abcdef-01", "another-0123456789abcdef-01234567"];
    let secrets = format!("{old}, {last}");
    let (api, [ann]) = Server::with_users(&[(OLD_SECRETS, &secrets)], ["ann"]);
    let current_id = header(&ann.access).key_id().expect("a kid").to_owned();
    let is_digits = current_id.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(current_id.len() == 16 && is_digits, "{current_id}");
    assert_eq!(header(&ann.refresh).key_id(), Some(current_id.as_str()));
    let good = json!({"sub": ann.id(), "iat": now(), "exp": now() + 600});
    let me = |key: HS256Key| api.me(sign_with(&key, good.clone()));
    me(key(SECRET, Some(&current_id))).expect(200);
    me(key(SECRET, None)).case("the current secret without a kid").expect(200);
    me(key(old, None)).case("an old secret without a kid").expect(200);
    me(key(last, None)).case("the last old one").expect(200);
    for (key, reason) in [
        (key(SECRET, Some("0000000000000000")), "an unknown kid, although the secret is right"),
        (key(SECRET, Some("")), "an empty kid"),
        (key(old, Some(&current_id)), "an old secret under the name of the current one"),
        (key(NEXT, Some(&current_id)), "another secret under the name of the current one"),
        (key(NEXT, None), "another secret without a kid"),
    ] {
        me(key).case(reason).refused(401, "Invalid token");
    }
}

/// Two processes on one database are restarted one after the other, first with the new secret among the old ones, then
/// with both exchanged. Requests go to whichever process is up, as a load balancer sends them.
#[test]
fn changing_the_secret_in_two_steps_signs_nobody_out_while_two_processes_restart() {
    let first = Server::start(&BEFORE);
    let (database, data) = (first.database.clone(), first.data.clone());
    let start = |settings: &[_]| Server::start_with(&database, &data, settings);
    let idle = first.sign_up("idle");
    let reset = first.reset_token("idle@example.com");
    for name in ["ann", "bob", "cid"] {
        first.register(name).expect(201);
    }
    let processes = [first, start(&BEFORE)].map(RwLock::new);
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let at = |i: usize| processes[i % 2].read().expect("no panic");
    thread::scope(|scope| {
        let stop_at_end = SetOnDrop(&stop);
        for (worker, name) in ["ann", "bob", "cid"].into_iter().enumerate() {
            let (stop, rounds, at) = (&stop, &rounds, &at);
            scope.spawn(move || {
                let mut tokens = at(worker).sign_in(name);
                for i in worker.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    // Each token is used at another process than the one that made it.
                    at(i + 1).me(&tokens).expect(200);
                    tokens = at(i + 1).refresh(&tokens.refresh).expect(200).tokens();
                    let again = at(i).sign_in(name);
                    at(i + 1).me(&again).expect(200);
                    at(i + 1).logout_scope(&again, "local").expect(204);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Every state of the two processes sees some of the work.
        let wait_for_work = || {
            let seen = rounds.load(Ordering::Relaxed);
            wait_until(|| rounds.load(Ordering::Relaxed) > seen + 10);
        };
        for settings in [ANNOUNCED, CHANGED] {
            for process in &processes {
                wait_for_work();
                *process.write().expect("no panic") = start(&settings);
            }
        }
        wait_for_work();
        drop(stop_at_end);
    });
    // Who has done nothing all the while is still signed in, and a reset token sent before works.
    at(0).me(&idle).expect(200);
    let renewed = at(1).refresh(&idle.refresh).expect(200).tokens();
    assert_ne!(header(&renewed.access).key_id(), header(&idle.access).key_id());
    at(0).reset_password(&reset, NEW_PASSWORD).expect(200);
}

#[test]
fn with_an_issuer_only_its_own_tokens_are_valid() {
    let api = Server::start(&[(ISSUER, "https://cloak.example.com")]);
    let other = Server::start_on(&api.database, &[(ISSUER, "https://other.example.com")]);
    let open = Server::start_on(&api.database, &[]);
    let ann = api.sign_up("ann");
    // Whichever process looks for mail first makes the token.
    let reset_by = |server: &Server, issuer: &str| {
        let reset = || server.reset_token("ann@example.com");
        eventually(|| Some(reset()).filter(|token| claims(token)["iss"] == issuer))
    };
    reset_by(&api, "https://cloak.example.com");
    for token in [&ann.access, &ann.refresh] {
        assert_eq!(claims(token)["iss"], "https://cloak.example.com");
    }
    assert!(claims(&open.sign_in("ann").access).get("iss").is_none());
    api.me(&ann).expect(200);
    other.me(&ann).refused(401, "Invalid token");
    other.refresh(&ann.refresh).refused(401, "Invalid token");
    let reset = reset_by(&other, "https://other.example.com");
    api.reset_password(&reset, NEW_PASSWORD).refused(400, "Invalid or expired token");
    api.me(open.sign_in("ann")).case("no issuer").refused(401, "Invalid token");
    // Without the setting the issuer is not looked at.
    open.me(&ann).expect(200);
    let good = json!({"sub": ann.id(), "exp": now() + 600, "iss": "https://cloak.example.com"});
    api.me(sign(good.clone())).expect(200);
    for issuer in ["", "https://cloak.example.com/", "HTTPS://cloak.example.com"] {
        api.me(sign(with_member(&good, "iss", issuer))).case(issuer).refused(401, "Invalid token");
    }
    api.refresh(&ann.refresh).expect(200);
    other.reset_password(&reset, NEW_PASSWORD).expect(200);
}
