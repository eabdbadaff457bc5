//! Of requests that come at one moment, to two processes, exactly as many succeed as may.

use crate::harness::*;

/// Two processes on one database and one data directory.
struct Two {
    first: Server,
    second: Server,
}

impl Two {
    fn start() -> Two {
        let first = Server::start(&[]);
        let second = first.beside(&[]);
        Two { first, second }
    }

    /// Sends twenty requests at once and expects that one of them is answered `done`, and all others one of `late`.
    /// Returns the number of the one.
    fn one_of_twenty(
        &self,
        what: &str,
        done: u16,
        late: &[u16],
        send: impl Fn(&Server, usize) -> Answer + Sync,
    ) -> usize {
        let servers = [&self.first, &self.second];
        let statuses = parallel(20, |n| send(servers[n % 2], n).status);
        let winners: Vec<_> = (0..20).filter(|n| statuses[*n] == done).collect();
        let others = statuses.iter().filter(|status| late.contains(*status)).count();
        assert_eq!((winners.len(), others), (1, 19), "{what}: {statuses:?}");
        winners[0]
    }
}

#[test]
fn of_twenty_requests_at_one_moment_one_succeeds() {
    let two = Two::start();
    let api = &two.first;
    let register = |api: &Server, n: usize| {
        let email = format!("same{n}@example.com");
        api.register_with(json!({"username": "same", "email": email, "password": PASSWORD}))
    };
    two.one_of_twenty("registrations of one name", 201, &[400], register);
    let (ann, other) = (api.sign_up("ann"), api.sign_in("ann"));
    let session = other.session();
    two.one_of_twenty("the end of a session", 204, &[404], |api, _| {
        api.end_session(&ann, &session)
    });
    api.me(&other).refused(401, "Invalid token");
    let token = api.create_token(&ann, json!({"name": "a"})).expect(201);
    two.one_of_twenty("the end of a token", 204, &[404], |api, _| {
        api.delete_token(&ann, &token.id())
    });
    let file = api.new_file(&ann, "a.txt", "text");
    let link = api.create_link(&ann, &file, json!({})).expect(201).id();
    two.one_of_twenty("the end of a link", 204, &[404], |api, _| {
        api.delete_link(&ann, &file, &link)
    });
    let several = api.post("/links", &ann, json!({"files": [file]})).expect(201).id();
    two.one_of_twenty("the end of a link to several", 204, &[404], |api, _| {
        api.delete(&format!("/links/{several}"), &ann)
    });
    let upload = api.begin_partial(&ann, 4);
    api.adding(&upload, &ann, 0, b"te").send().expect(204);
    two.one_of_twenty("the end of an upload", 204, &[404], |api, _| {
        api.tus("DELETE", &upload, &ann).send()
    });
    two.one_of_twenty("the deletion of a file", 204, &[404], |api, _| api.delete_file(&ann, &file));
    assert_eq!(api.database.count("deleted_files"), 1);
    let restored = api.request("POST", &format!("/uploads/{file}/restore")).by(&ann);
    assert_eq!(tally(parallel(20, |_| restored.send().status)), [(200, 20)].into());
    assert_eq!(api.file_stats(&ann), (1, 4));
    let reset = api.reset_token("ann@example.com");
    let password = |n: usize| format!("battery staple {n}");
    let winner = two.one_of_twenty("uses of a reset token", 200, &[400], |api, n| {
        api.reset_password(&reset, &password(n))
    });
    assert_eq!(api.database.count("used_password_reset_tokens"), 1);
    api.login("ann", &password((winner + 1) % 20)).expect(401);
    let ann = api.login("ann", &password(winner)).expect(200).tokens();
    // Later requests find no user, or find that the credentials have changed since they checked the password.
    two.one_of_twenty("the deletion of an account", 204, &[400, 401], |api, _| {
        api.delete_me(&ann, &password(winner))
    });
}

#[test]
fn of_twenty_sign_ins_with_one_code_one_succeeds() {
    let two = Two::start();
    let api = &two.first;
    let eve = api.sign_up("eve");
    let factor = api.new_second_factor(&eve, PASSWORD);
    let (code, recovery) = (factor.code(), &factor.recovery_codes[0]);
    two.one_of_twenty("sign-ins with a code", 200, &[401], |api, _| {
        api.login_with_code("eve", PASSWORD, &code)
    });
    // Using a right code twice is no guess, so the owner is not refused after it.
    api.forget_used_codes();
    api.login_with_code("eve", PASSWORD, &code).expect(200);
    two.one_of_twenty("sign-ins with a recovery code", 200, &[401, 429], |api, _| {
        api.login_with_code("eve", PASSWORD, recovery)
    });
    assert_eq!(api.database.live_sessions(eve.id()), 4);
    assert_eq!(api.database.count("audit_events WHERE action = 'second_factor.recovery'"), 1);
}

#[test]
fn bounded_numbers_are_not_exceeded_by_requests_at_one_moment() {
    let two = Two::start();
    let (api, servers) = (&two.first, [&two.first, &two.second]);
    let [ann, bob] = ["ann", "bob"].map(|name| api.sign_up(name));
    let file = api.new_file(&ann, "a.txt", "a");
    let create_token = |n: usize| servers[n % 2].create_token(&ann, json!({"name": "a"}));
    let create_link = |n: usize| servers[n % 2].create_link(&ann, &file, json!({}));
    let delete_token = |id: &str| api.delete_token(&ann, id);
    let delete_link = |id: &str| api.delete_link(&ann, &file, id);
    type Row<'a> = (
        &'static str,
        usize,
        &'static str,
        &'a (dyn Fn(usize) -> Answer + Sync),
        &'a dyn Fn(&str) -> Answer,
        &'static str,
    );
    let rows: [Row; 2] = [
        ("personal_tokens", 50, "token", &create_token, &delete_token, "Too many tokens"),
        ("file_links", 100, "url", &create_link, &delete_link, "Too many links"),
    ];
    for (table, most, secret, create, delete, message) in rows {
        let made = parallel(most + 10, create);
        let statuses = tally(made.iter().map(|answer| answer.status));
        assert_eq!(statuses, [(201, most), (409, 10)].into(), "{table}");
        let mut made: Vec<_> = made.into_iter().filter(|answer| answer.status == 201).collect();
        let mut secrets: Vec<_> = made.iter().map(|a| a.json()[secret].to_string()).collect();
        secrets.sort();
        secrets.dedup();
        assert_eq!(secrets.len(), most, "{table}");
        create(0).refused(409, message).has(json!({"error_code": "CONFLICT"}));
        // One that has ended or expired makes room for another.
        delete(&made.remove(7).id()).case(table).expect(204);
        create(0).case(table).expect(201);
        create(1).case(table).expect(409);
        let id = made.remove(7).id();
        api.database.run(&format!("UPDATE {table} SET expires_at = now() WHERE id = '{id}'"));
        create(1).case(table).expect(201);
        create(0).case(table).expect(409);
    }
    assert_eq!(api.list_tokens(&ann).expect(200).list("tokens").len(), 50);
    assert_eq!(api.list_links(&ann, &file).expect(200).list("links").len(), 100);
    // They are those of one user, and of one file.
    api.new_token(&bob, false);
    api.new_link(&ann, &api.new_file(&ann, "b.txt", "b"));
}
