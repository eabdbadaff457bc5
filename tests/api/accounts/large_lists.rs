//! Lists of so many accounts that most are found by the order and not by the filter: the same answers as one plain
//! query gives, and plans that do not depend on where in the order the matches are.

use std::thread;

use crate::harness::*;

/// Of these, some filters find more than the ten thousand up to which the matches are sorted.
const ACCOUNTS: i64 = 12_000;

/// Fills the table: many names and times are the same, and a third of the accounts has no name.
fn insert_accounts(database: &Database) {
    database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, name, password_hash, role, is_active, created_at,
                            last_login, total_storage_used)
         SELECT gen_random_uuid(), 'User' || i, 'A' || i * 7919 % {ACCOUNTS} || '@Example.com',
                'a' || i * 7919 % {ACCOUNTS} || '@example.com',
                CASE WHEN i % 3 > 0 THEN (ARRAY['Zoe', 'zOE', 'Adam', 'Émile'])[i % 4 + 1] || i % 50 END, '-',
                CASE WHEN i % 1000 = 0 THEN 'admin' ELSE 'user' END, i % 90 > 0,
                timestamptz '2026-01-01Z' + i / 7 * interval '1 hour',
                CASE WHEN i % 4 > 0 THEN timestamptz '2026-02-01Z' + i * 7919 % 500 * interval '1 hour' END,
                i * 7919 % 700
         FROM generate_series(1, {ACCOUNTS}) i;
         ANALYZE users, listed_users"
    ));
}

#[test]
fn a_page_is_what_a_plain_query_gives_in_each_order_with_each_filter_and_however_far_out() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    insert_accounts(&api.database);
    let mut client = api.database.client();
    for (filter, condition) in [
        ("", "true"),
        ("role=admin", "role = 'admin'"),
        ("active=true", "is_active"),
        ("active=false", "NOT is_active"),
        ("search=EXAMPLE", "true"),
        ("search=user12", "username LIKE 'User12%'"),
        ("email=a1&active=true", "email LIKE 'A1%' AND is_active"),
        ("name=%C3%A9mile1", "name LIKE 'Émile1%'"),
        ("name=o", "name ILIKE 'zoe%'"),
        ("created_after=2026-01-03", "created_at >= '2026-01-03Z'"),
        ("search=nobody", "false"),
        ("text=E", "true"),
        ("text=DAM", "name ILIKE '%dam%'"),
        ("text=ser12", "username LIKE 'User12%'"),
    ] {
        for (order, by) in [
            ("sort_by=created_at&sort_order=asc", "created_at, id"),
            ("sort_by=created_at&sort_order=desc", "created_at DESC, id"),
            ("sort_by=name&sort_order=asc", "folded(name) COLLATE \"C\", id"),
            ("sort_by=name&sort_order=desc", "folded(name) COLLATE \"C\" DESC NULLS LAST, id"),
            ("sort_by=email&sort_order=asc", "email_key, id"),
            ("sort_by=email&sort_order=desc", "email_key DESC, id"),
            ("sort_by=last_login&sort_order=asc", "last_login NULLS LAST, id"),
            ("sort_by=last_login&sort_order=desc", "last_login DESC NULLS LAST, id"),
            ("sort_by=total_storage_used&sort_order=asc", "total_storage_used, id"),
            ("sort_by=total_storage_used&sort_order=desc", "total_storage_used DESC, id"),
        ] {
            let sql = format!(
                "SELECT id::text FROM users WHERE {condition} AND NOT is_development_admin ORDER BY {by}"
            );
            let rows = client.query(&sql, &[]).expect("rows");
            let all: Vec<String> = rows.iter().map(|row| row.get("id")).collect();
            let total = all.len();
            for offset in [0, 20, total / 2, total.saturating_sub(5), total, 50_000] {
                let query = format!("{filter}&{order}&limit=10&offset={offset}");
                let body = api.list_users(&root, &query).case(&query).expect(200).json();
                let expected: Vec<_> = all.iter().skip(offset).take(10).cloned().collect();
                assert_eq!(names_of(&body["users"], "id"), expected, "{query}");
                // Root has a row of its own in the totals, and matches what everybody does.
                assert_eq!(body["total"], total, "{query}");
            }
        }
    }
}

#[test]
fn a_search_finds_parts_of_one_column_without_regard_to_case_and_takes_no_character_for_a_wildcard()
{
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, name, password_hash) VALUES
         (gen_random_uuid(), 'Ann_Lee', 'x100%@example.org', 'x100%@example.org', 'ÉMILE \\ Zola', '-'),
         (gen_random_uuid(), 'annalee', 'x1000@example.org', 'x1000@example.org', NULL, '-')",
    );
    for (query, expected) in [
        ("search=N_L", "Ann_Lee"),
        ("search=00%25@", "Ann_Lee"),
        ("search=leex1", ""),
        ("search=lee%0Ax1", ""),
        ("search=lee%01x1", ""),
        ("email=annx", ""),
        ("search=zola", ""),
        ("name=%C3%A9mile%20%5C", "Ann_Lee"),
        ("search=ANNALEE", "annalee"),
        // What nobody is shown is not found either.
        ("search=%24", ""),
        ("search=scrypt", ""),
        ("email=EXAMPLE.ORG&sort_by=email&sort_order=asc", "Ann_Lee annalee"),
    ] {
        let body = api.list_users(&root, query).case(query).expect(200).json();
        assert_eq!(names_of(&body["users"], "username").join(" "), expected, "{query}");
    }
    // A change of the account is found at once, and what it was is not.
    let id: String = api.database.value("SELECT id::text FROM users WHERE username = 'annalee'");
    api.update_user(&root, &id, json!({"username": "bettylou"})).expect(200);
    for (query, total) in [("search=annalee", 0), ("search=ettyl", 1)] {
        api.list_users(&root, query).expect(200).has(json!({"total": total}));
    }
}

#[test]
fn two_lists_that_read_all_accounts_run_at_a_time_and_others_are_answered_meanwhile() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "30")]);
    let (root, second) = (api.sign_up_admin("root"), api.sign_up_admin("second"));
    let lock = api.database.begin("LOCK TABLE listed_users IN ACCESS EXCLUSIVE MODE");
    let blocked = || api.database.blocked_statements();
    let waiting = || api.metric("cloakroom_requests_running").expect("the gauge") as usize - 1;
    let most = cores_up_to_two();
    thread::scope(|scope| {
        // The index helps with three letters or digits in a row.
        let short = ["search=a", "email=m", "name=%20", "text=a.b", "search=ab&name=long"];
        let unindexed = ["sort_by=last_login", "sort_by=total_storage_used&search=example"];
        let short = short.into_iter().chain(unindexed);
        let short = short.map(|query| scope.spawn(|| api.list_users(&root, query)));
        let short = Vec::from_iter(short);
        wait_until(|| waiting() == short.len() && blocked() == most);
        for _ in 0..5 {
            api.me(&root).expect(200);
            api.admin_stats(&second).expect(200);
        }
        let long = scope.spawn(|| api.list_users(&second, "search=example"));
        wait_until(|| blocked() == most + 1);
        assert_eq!(waiting(), short.len() + 1);
        lock.roll_back();
        for search in short {
            search.join().expect("no panic").expect(200);
        }
        long.join().expect("no panic").expect(200);
    });
}
