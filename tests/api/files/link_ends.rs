//! What ends links to files, and what does not. All links that do not work are answered alike.

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
    let (api, [root]) = Server::with_users(&[], ["root"]);
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
fn links_that_have_expired_are_removed_in_the_background() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
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
