//! What ends links to files, and what does not. All links that do not work are answered alike.

use std::thread;

use serde_json::{Value, json};

use crate::harness::*;

const GONE: &str = "Link not found";

/// The parts of a refusal that do not differ between two requests.
fn refusal(answer: Answer) -> (u16, Value, Vec<String>) {
    let names = answer.headers.keys().map(|name| name.as_str().to_owned()).collect();
    (answer.status, answer.json(), names)
}

#[test]
fn links_that_do_not_work_are_answered_alike_whatever_the_cause() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    let link_of = |name: &str| {
        let user = api.sign_up(name);
        let file = api.new_file(&user, "a.txt", "text");
        let answer = api.create_link(&user, &file, json!({})).expect(201).json();
        let text = |name: &str| answer[name].as_str().expect("text").to_owned();
        (user, file, text("id"), text("url"))
    };
    let (_, _, expired, expired_url) = link_of("ann");
    let (bob, file, link, revoked_url) = link_of("bob");
    let (cyd, cyd_file, _, without_file_url) = link_of("cyd");
    let (dan, _, _, without_owner_url) = link_of("dan");
    let (eve, _, _, of_inactive_url) = link_of("eve");
    for url in [&expired_url, &revoked_url, &without_file_url, &without_owner_url, &of_inactive_url]
    {
        api.open_link(url).expect(200);
    }
    api.database.run(&format!("UPDATE file_links SET expires_at = now() WHERE id = '{expired}'"));
    api.delete_link(&bob, &file, &link).expect(204);
    api.delete_file(&cyd, &cyd_file).expect(204);
    api.delete_user(&root, dan.id()).expect(204);
    api.update_user(&root, eve.id(), json!({"is_active": false})).expect(200);
    let unknown = format!("/api/v1/links/{}", "A".repeat(43));
    let expected = refusal(api.open_link(&unknown).refused(404, GONE));
    for path in [
        &expired_url,
        &revoked_url,
        &without_file_url,
        &without_owner_url,
        &of_inactive_url,
        "/api/v1/links/x",
        "/api/v1/links/%00",
        "/api/v1/links/%ff%fe",
        &format!("/api/v1/links/{UNKNOWN_ID}"),
        &format!("{revoked_url}A"),
        &revoked_url[..revoked_url.len() - 1],
        &format!("/api/v1/links/{}", "A".repeat(4000)),
    ] {
        assert_eq!(refusal(api.open_link(path)), expected, "{path}");
        api.request_at_root("HEAD", path).send().expect(404);
    }
    // Those of an inactive account only wait.
    api.update_user(&root, eve.id(), json!({"is_active": true})).expect(200);
    assert_eq!(api.open_link(&of_inactive_url).expect(200).text(), "text");
    assert_eq!(api.database.count("file_links"), 2, "the expired one is left to the sweep");
}

#[test]
fn links_end_with_the_password_the_file_and_the_account() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
    let of_bob = api.new_link(&bob, &api.new_file(&bob, "b.txt", "b"));
    let file = api.new_file(&ann, "a.txt", "text");
    let create_admin = || {
        let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
        run(&api.database.url, &["create-admin", "--email", "ann@example.com"], &password).exits(0);
    };
    let causes: [(&str, &dyn Fn()); 5] = [
        ("a change of the password, to the same one", &|| {
            api.change_password(api.sign_in("ann"), PASSWORD, PASSWORD).expect(200);
        }),
        ("a reset of the password", &|| {
            api.reset_password(&api.reset_token("ann@example.com"), PASSWORD).expect(200);
        }),
        ("a password set by an admin", &|| {
            api.update_user(&root, ann.id(), json!({"password": PASSWORD})).expect(200);
        }),
        ("create-admin", &create_admin),
        ("deletion by its owner", &|| {
            drop(api.delete_me(api.sign_in("ann"), PASSWORD).expect(204))
        }),
    ];
    for (cause, end) in causes {
        let link = api.new_link(api.sign_in("ann"), &file);
        api.open_link(&link).case(cause).expect(200);
        end();
        api.open_link(&link).case(cause).refused(404, GONE);
        assert_eq!(api.database.count("file_links"), 1, "{cause}");
    }
    api.open_link(&of_bob).expect(200);
    api.delete("/users/test-only/delete-all", &root).expect(200);
    api.open_link(&of_bob).refused(404, GONE);
    assert_eq!(api.database.count("file_links"), 0);
}

#[test]
fn links_work_on_after_changes_of_other_things_than_the_password_and_the_account() {
    let api = Server::start(&[]);
    let dearer = Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let file = api.new_file(&ann, "a.txt", "text");
    let token = api.new_token(&ann, false);
    let link = api.new_link(&token, &file);
    let stays: [(&str, &dyn Fn()); 8] = [
        ("another file is deleted", &|| {
            let other = api.new_file(&ann, "b.txt", "b");
            api.new_link(&ann, &other);
            api.delete_file(&ann, &other).expect(204);
        }),
        ("the file is renamed", &|| {
            api.update_file(&ann, &file, json!({"filename": "c.txt"})).expect(200);
        }),
        ("the token that made it ends", &|| {
            api.delete_user_tokens(&root, ann.id()).expect(204);
        }),
        ("logout", &|| drop(api.logout(&ann).expect(204))),
        ("another address", &|| {
            api.update_me(api.sign_in("ann"), json!({"email": "ann2@example.com"})).expect(200);
        }),
        ("another role", &|| {
            api.update_user(&root, ann.id(), json!({"role": "admin"})).expect(200);
        }),
        ("a renewed hash", &|| drop(dearer.sign_in("ann"))),
        ("another user's password", &|| {
            api.change_password(api.sign_up("bob"), PASSWORD, NEW_PASSWORD).expect(200);
        }),
    ];
    for (event, happen) in stays {
        happen();
        assert_eq!(api.open_link(&link).case(event).expect(200).text(), "text");
    }
}

#[test]
fn a_link_that_is_made_while_the_password_changes_or_the_file_goes_is_not_left_behind() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    let change =
        "UPDATE users SET password_hash = '-', credentials_version = credentials_version + 1";
    let removal = "SELECT FROM users FOR NO KEY UPDATE; DELETE FROM files";
    let (session, token) = (|| ann.access.clone(), || api.new_token(&ann, false));
    let senders: [(&str, &dyn Fn() -> String, u16, &str); 3] = [
        (change, &session, 401, "Invalid token"),
        (change, &token, 401, "Invalid token"),
        (removal, &session, 404, "File not found"),
    ];
    for (meanwhile, sender, status, message) in senders {
        let sender = sender();
        let transaction = api.database.begin(meanwhile);
        thread::scope(|scope| {
            let request = scope.spawn(|| api.create_link(&sender, &file, json!({})));
            api.database.wait_for_blocked_statement();
            transaction.commit();
            request.join().expect("no panic").refused(status, message);
        });
        assert_eq!(api.database.count("file_links"), 0, "{meanwhile}");
    }
}

#[test]
fn links_that_have_expired_are_removed_in_the_background() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    let (first, second) = (api.new_link(&ann, &file), api.new_link(&ann, &file));
    let oldest = "(SELECT id FROM file_links ORDER BY created_at LIMIT 1)";
    api.database.run(&format!("UPDATE file_links SET expires_at = now() WHERE id = {oldest}"));
    api.open_link(&first).refused(404, GONE);
    let listed = api.list_links(&ann, &file).expect(200).json();
    assert_eq!(listed["links"].as_array().map(Vec::len), Some(1));
    // A sweep runs at the start, and every hour.
    let again = Server::start_with(&api.database, &api.data, &[]);
    wait_until(|| api.database.count("file_links") == 1);
    again.open_link(&second).expect(200);
}

#[test]
fn of_twenty_parallel_requests_to_end_a_link_one_ends_it() {
    let api = Server::start(&[]);
    let second = Server::start_with(&api.database, &api.data, &[]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    let link = api.create_link(&ann, &file, json!({})).expect(201);
    let url = link.json()["url"].as_str().expect("a path").to_owned();
    second.open_link(&url).expect(200);
    let statuses =
        parallel(20, |i| [&api, &second][i % 2].delete_link(&ann, &file, &link.id()).status);
    assert_eq!(tally(statuses), [(204, 1), (404, 19)].into());
    for process in [&api, &second] {
        process.open_link(&url).refused(404, GONE);
    }
}
