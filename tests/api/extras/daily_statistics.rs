//! `GET /admin/stats/daily`: what came on each of the last days.

use crate::harness::*;

/// The days that are answered, the oldest first.
#[track_caller]
fn days(api: &Server, root: impl Credentials, count: u32) -> Vec<Value> {
    api.get(&format!("/admin/stats/daily?days={count}"), root).expect(200).list("days")
}

/// The figures of a day: users, files, bytes, sign-ins and refusals.
fn figures(day: &Value) -> [i64; 5] {
    ["users", "files", "bytes", "sign_ins", "refusals"]
        .map(|name| day[name].as_i64().expect("a number"))
}

/// Stores what came `days` before the first moment of today (UTC), or on the second before that with `days` of more.
fn add_history(database: &Database, owner: &str) {
    database.run(&format!(
        "SET timezone = 'Pacific/Auckland';
         CREATE TEMP VIEW today AS SELECT date_trunc('day', now(), 'UTC') AS began;
         INSERT INTO users (id, username, email, email_key, password_hash, created_at)
         SELECT gen_random_uuid(), 'u' || n, 'u' || n || '@example.com', 'u' || n || '@example.com', '-', began - moment
         FROM today, (VALUES (1, interval '0'), (2, '1 second'), (3, '1 day'), (4, '400 days')) v (n, moment);
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date)
         SELECT gen_random_uuid(), '{owner}', 'f', 'f', 'text/plain', size, 'f', 'h', began - moment
         FROM today, (VALUES (1, interval '0'), (10, '1 second'), (100, '1 day'), (1000, '2 days')) v (size, moment);
         INSERT INTO audit_events (at, action, outcome, details)
         SELECT began - moment, action::audit_action, outcome::audit_outcome, details::jsonb
         FROM today, (VALUES
             (interval '0', 'auth.login', 'success', '{{}}'), ('1 second', 'auth.login', 'success', '{{}}'),
             ('1 second', 'auth.login', 'failure', '{{}}'), ('2 seconds', 'auth.login', 'failure', '{{\"count\": 70}}'),
             ('3 seconds', 'access.denied', 'failure', '{{\"count\": 5}}'),
             ('2 seconds', 'auth.login', 'failure', '{{\"reason\": \"second_factor_required\"}}'),
             ('2 seconds', 'auth.login', 'failure', '{{\"reason\": \"second_factor_required\", \"count\": 40}}'),
             ('2 seconds', 'auth.login', 'failure', '{{\"reason\": \"second_factor_invalid\"}}'),
             ('1 day', 'access.denied', 'failure', '{{}}'), ('1 day', 'file.update', 'success', '{{\"count\": 9}}')
         ) v (moment, action, outcome, details)"
    ));
}

#[test]
fn each_day_has_what_came_in_it_and_others_are_zeros() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let today = figures(&days(&api, &root, 1)[0]);
    add_history(&api.database, root.id());
    let found = days(&api, &root, 4);
    let dates = "SELECT string_agg(to_char((now() AT TIME ZONE 'UTC')::date - n, 'YYYY-MM-DD'), ' ' ORDER BY n DESC)
                 FROM generate_series(0, 3) n";
    let dates: String = api.database.value(dates);
    let answered: Vec<_> = found.iter().map(|day| day["date"].as_str().expect("a date")).collect();
    assert_eq!(answered.join(" "), dates);
    let [users, files, bytes, sign_ins, refusals] = today;
    let now = [users + 1, files + 1, bytes + 1, sign_ins + 1, refusals];
    let expected = [[0; 5], [0, 1, 1000, 0, 0], [2, 2, 110, 1, 78], now];
    assert_eq!(found.iter().map(figures).collect::<Vec<_>>(), expected);
    assert_eq!(days(&api, &root, 365).len(), 365);
    assert_eq!(days(&api, &root, 365)[361..], found);
    assert_eq!(api.get("/admin/stats/daily", &root).expect(200).list("days").len(), 30);
}

#[test]
fn what_is_deleted_counts_no_more_for_the_day_on_which_it_came() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let before = figures(&days(&api, &root, 1)[0]);
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "content");
    api.new_file(&ann, "b.txt", "more");
    let change = || {
        let [users, files, bytes, ..] = figures(&days(&api, &root, 1)[0]);
        [users - before[0], files, bytes]
    };
    assert_eq!(change(), [1, 2, 11]);
    api.delete_file(&ann, &file).expect(204);
    assert_eq!(change(), [1, 1, 4]);
    // Whether or not the background thread has removed the records of the files already.
    api.delete_user(&root, ann.id()).expect(204);
    assert_eq!(change(), [0, 0, 0]);
    wait_until(|| api.database.count("files") == 0);
    assert_eq!(change(), [0, 0, 0]);
}

#[test]
fn sign_ins_and_refusals_are_counted_as_they_happen() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let before = figures(&days(&api, &root, 1)[0]);
    api.sign_in("ann");
    api.login("ann", "wrong password").expect(401);
    api.login("nobody", "wrong password").expect(401);
    api.get("/admin/stats/daily", &ann).expect(403);
    let counted = || {
        let [.., sign_ins, refusals] = figures(&days(&api, &root, 1)[0]);
        (sign_ins - before[3], refusals - before[4])
    };
    // Refused actions are written within a second.
    wait_until(|| counted() == (1, 3));
}

/// Also in a flood, of which some have no event of their own.
#[test]
fn a_sign_in_that_lacks_only_its_code_is_an_event_and_no_refusal() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    api.new_second_factor(&ann, PASSWORD);
    parallel(8, |n| {
        let password = if n % 2 == 0 { PASSWORD } else { "wrong password" };
        for _ in 0..60 {
            api.login("ann", password).expect(401);
        }
    });
    let recorded = |filter: &str| {
        let number = "SELECT coalesce(sum(coalesce((details ->> 'count')::bigint, 1)), 0)::bigint";
        let sql = format!("{number} FROM audit_events WHERE outcome = 'failure' AND {filter}");
        api.database.value::<i64>(&sql)
    };
    // Refused actions are written within a second.
    wait_until(|| recorded("action = 'auth.login'") == 480);
    assert_eq!(recorded("details ->> 'reason' = 'second_factor_required'"), 240);
    assert_eq!(figures(&days(&api, &root, 1)[0])[4], 240);
    let counter = |name| {
        let name = format!("cloakroom_audit_failures_total{{recorded_as=\"{name}\"}}");
        api.metric(&name).unwrap_or_default()
    };
    assert_eq!(counter("event") + counter("count"), 240.0);
}

#[test]
fn folding_keeps_the_days_of_more_than_a_year_and_adds_up_those_before() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    add_history(&api.database, root.id());
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date)
         SELECT gen_random_uuid(), '{}', 'f', 'f', 'text/plain', n, 'f', 'h', now() - make_interval(days => n)
         FROM generate_series(1, 1000) n",
        root.id()
    ));
    let stats = || (days(&api, &root, 365), api.admin_stats(&root).expect(200).json());
    let before = stats();
    // So many rows that the background thread folds them.
    api.database.run(
        "INSERT INTO account_totals SELECT '2020-01-01', 'user', true, 0 FROM generate_series(1, 30000);
         INSERT INTO file_totals SELECT '2020-01-01', 0, 0 FROM generate_series(1, 30000)",
    );
    let rows = |table| api.database.count(table);
    wait_until(|| rows("account_totals") <= 4000 && rows("file_totals") <= 4000);
    assert_eq!(stats(), before);
    let check = include_str!("../../../sql/tools/checks/copies.sql");
    assert_eq!(api.database.client().query(check, &[]).expect("rows").len(), 0);
}

#[test]
fn events_are_found_by_indexes() {
    let database = Database::create_migrated();
    database.run(
        "INSERT INTO audit_events (at, action, outcome, details)
         SELECT now() - make_interval(secs => n * 60), 'auth.login',
                (CASE n % 3 WHEN 0 THEN 'failure' ELSE 'success' END)::audit_outcome,
                CASE n % 900 WHEN 0 THEN '{\"count\": 2}'::jsonb ELSE '{}' END
         FROM generate_series(1, 50000) n",
    );
    database.run("VACUUM ANALYZE audit_events");
    let mut client = database.client();
    let query = include_str!("../../../sql/db/stats/daily.sql").replace("$1", "3");
    let rows = client.query(&format!("EXPLAIN {query}"), &[]).expect("a plan");
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let uses = |text: &str| plan.iter().filter(|line| line.contains(text)).count();
    assert_eq!((uses("audit_events_kind"), uses("audit_events_folded")), (3, 1), "{plan:#?}");
    assert_eq!(uses("Seq Scan on audit_events"), 0, "{plan:#?}");
}
