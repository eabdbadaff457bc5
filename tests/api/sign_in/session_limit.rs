//! A user has at most a thousand live sessions.

use crate::harness::*;

const MOST: i64 = 1000;
const INVALID: &str = "Invalid token";

/// Makes a session that was opened so long ago, and was refreshed so long ago, or never.
fn insert_session(api: &Server, user: &str, id: &str, opened: &str, refreshed: Option<&str>) {
    let refreshed =
        refreshed.map_or("'{}'".to_owned(), |ago| format!("ARRAY[now() - interval '{ago}']"));
    api.database.run(&format!(
        "INSERT INTO sessions (id, user_id, refresh_id, created_at, rotated_at, expires_at)
         VALUES ('{id}', '{user}', '{id}', now() - interval '{opened}', {refreshed}, now() + interval '1 day')"
    ));
}

#[test]
fn a_sign_in_past_the_thousandth_session_ends_the_one_that_is_needed_least() {
    let api = Server::start(&[("CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "120")]);
    let ann = api.register("ann").expect(201).id();
    // In the order in which they are to end. The access token of the third one has not expired.
    let first = [
        (uuid(1), "200 min", None),
        (uuid(2), "130 min", None),
        (uuid(3), "3 days", Some("2 days")),
        (uuid(4), "4 days", Some("100 min")),
        (uuid(5), "90 min", None),
        (uuid(6), "5 days", Some("80 min")),
    ];
    for (id, opened, refreshed) in first.iter().rev() {
        insert_session(&api, &ann, id, opened, *refreshed);
    }
    // These do not count.
    insert_session(&api, &ann, &uuid(7), "6 days", None);
    insert_session(&api, &ann, &uuid(8), "6 days", None);
    api.database.run(&format!(
        "UPDATE sessions SET ended_at = now() WHERE id = '{}';
         UPDATE sessions SET expires_at = now() WHERE id = '{}';
         INSERT INTO sessions (id, user_id, refresh_id, created_at, rotated_at, expires_at)
         SELECT gen_random_uuid(), '{ann}', gen_random_uuid(), now() - interval '9 days',
                ARRAY[now() - n * interval '1 s'], now() + interval '1 day'
         FROM generate_series(1, {}) n",
        uuid(7),
        uuid(8),
        MOST - first.len() as i64 - 1
    ));
    let newest = api.sign_in("ann");
    assert_eq!(api.database.live_sessions(&ann), MOST);
    for (n, (id, ..)) in first.iter().enumerate() {
        let [access, _] = tokens_of_session(&ann, id, id);
        api.me(&access).case(n).expect(200);
        api.sign_in("ann");
        api.me(&access).case(n).refused(401, INVALID);
        assert_eq!(api.database.live_sessions(&ann), MOST);
        for (later, ..) in &first[n + 1..] {
            api.me(&tokens_of_session(&ann, later, later)[0]).case(n).expect(200);
        }
    }
    api.me(&newest).expect(200);
    if has_extras() {
        assert_eq!(api.list_sessions(&newest).expect(200).list("sessions").len() as i64, MOST);
    }
}

/// Registers a user who has so many sessions, and returns the id.
fn register_with_sessions(api: &Server, name: &str, count: i64) -> String {
    let id = api.register(name).expect(201).id();
    api.database.insert_sessions(&id, count);
    id
}

#[test]
fn parallel_sign_ins_do_not_exceed_a_thousand_sessions_and_more_become_fewer() {
    let api = Server::start(&[PATIENT]);
    let second = Server::start_on(&api.database, &[PATIENT]);
    let ann = register_with_sessions(&api, "ann", MOST - 5);
    for tokens in parallel(16, |n| [&api, &second][n % 2].sign_in("ann")) {
        api.me(tokens).expect(200);
    }
    assert_eq!(api.database.live_sessions(&ann), MOST);
    // One counts the session of another one that it waited for.
    let bob = register_with_sessions(&api, "bob", MOST - 1);
    let other = format!(
        "UPDATE users SET last_login = now() WHERE id = '{bob}';
         INSERT INTO sessions (id, user_id, refresh_id, expires_at)
         VALUES ('{0}', '{bob}', '{0}', now() + interval '1 day')",
        uuid(1)
    );
    api.me(api.database.commit_during(&other, || api.sign_in("bob"))).expect(200);
    assert_eq!(api.database.live_sessions(&bob), MOST);
    api.me(&tokens_of_session(&bob, &uuid(1), UNKNOWN_ID)[0]).expect(200);
    // Users who have more than that become fewer with each sign-in.
    let eve = register_with_sessions(&api, "eve", MOST + 500);
    for n in 1..=3 {
        let tokens = api.sign_in("eve");
        assert_eq!(api.database.live_sessions(&eve), MOST + 500 - n);
        if has_extras() {
            let shown = api.list_sessions(&tokens).expect(200).list("sessions");
            assert_eq!((shown.len() as i64, &shown[0]["is_current"]), (MOST, &true.into()));
        }
    }
}
