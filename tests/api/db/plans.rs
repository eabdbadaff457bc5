//! Prepared statements keep their plans. PostgreSQL plans a statement anew for its first five executions, and then for
//! good unless the plan for any values looks as cheap as those were.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use serde_json::json;

use crate::harness::*;

/// How often each statement runs.
const RUNS: i64 = 20;
/// The most executions for which PostgreSQL plans a statement that is to keep its plan.
const MAX_CUSTOM_PLANS: i64 = 5;

/// Statements with parameters that clients cannot make run so often, or that are not prepared.
const NOT_ON_THE_TOUR: [&str; 5] = [
    // Planned for their parameters each time, and not prepared.
    "audit/page exports/batch exports/count files/list files/list_deleted stats/daily users/list",
    // By commands and at the start.
    "audit/settled_before audit/since checks/user_totals checks/verify_index \
     files/with_owners installation/insert restore/remove_files restore/renew \
     schema_history/insert second_factors/reseal second_factors/sealed \
     users/ensure_development_admin users/find_development_admin \
     users/upsert_admin",
    // By the background threads.
    "audit/insert_failures audit/insert_skipped audit/sweep file_links/sweep \
     files/contents_after files/unrecorded idempotency_keys/sweep outbox/defer outbox/remove \
     outbox/sweep personal_tokens/sweep removals/contents removals/contents_due removals/due removals/expire \
     removals/forget_contents removals/list_contents removals/make_room removals/make_room_of_user \
     removals/remove changes/forget changes/latest \
     resets/insert_counted resets/sweep \
     schema_history/unsuited sessions/end_epoch sessions/sweep sessions/sweep_networks \
     stats/fold",
    // By several requests that come together.
    "files/insert_many",
    // Only by tests of clients.
    "users/delete_all",
];

/// What PostgreSQL tells about a prepared statement of the connection that asks.
const COUNTS: &str =
    "SELECT 'counts', custom_plans, generic_plans, statement FROM pg_prepared_statements";

/// Passes connections on to a database. When a client has closed its connection, the proxy asks the database on the
/// same connection how its prepared statements were planned, which no other connection can see.
struct PlanProxy {
    url: String,
    connections: Receiver<JoinHandle<Vec<u8>>>,
}

/// How often a statement was planned for its parameters, and how often it ran.
#[derive(Debug, Default)]
struct PlanCounts {
    custom: i64,
    runs: i64,
}

impl PlanProxy {
    fn start(url: &str) -> PlanProxy {
        let (listener, target, url) = listen_before(url);
        let (sender, connections) = channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&target).expect("the database");
                let client = client.expect("a connection");
                let connection = thread::spawn(move || pass(client, server).expect("sockets"));
                if sender.send(connection).is_err() {
                    return;
                }
            }
        });
        PlanProxy { url, connections }
    }

    /// The counts of all statements, after all clients have closed their connections.
    fn counts(self) -> BTreeMap<String, PlanCounts> {
        let mut counts = BTreeMap::<String, PlanCounts>::new();
        for connection in self.connections.try_iter() {
            for row in rows(&connection.join().expect("no panic")) {
                let [name, custom, generic, statement] = row.as_slice() else { continue };
                if name == "counts" {
                    let number = |text: &String| text.parse::<i64>().expect("a number");
                    let count = counts.entry(statement.clone()).or_default();
                    count.custom = count.custom.max(number(custom));
                    count.runs += number(custom) + number(generic);
                }
            }
        }
        counts
    }
}

/// Passes on what both sides send, and asks for the counts once the client has closed the connection. Returns all that
/// the server sent.
fn pass(mut client: TcpStream, mut server: TcpStream) -> io::Result<Vec<u8>> {
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let asking = thread::spawn(move || {
        // A client that was killed may reset the connection.
        let _ = io::copy(&mut from_client, &mut to_server);
        let length = (COUNTS.len() + 5) as u32;
        let query = [b"Q", &length.to_be_bytes()[..], COUNTS.as_bytes(), b"\0"].concat();
        // A client that said good-bye has ended the server's side as well.
        let _ = to_server.write_all(&query).and_then(|()| to_server.write_all(b"X\0\0\0\x04"));
    });
    let (mut received, mut block) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(count @ 1..) = server.read(&mut block) {
        received.extend_from_slice(&block[..count]);
        let _ = client.write_all(&block[..count]);
    }
    asking.join().expect("no panic");
    Ok(received)
}

/// The rows among a server's messages, each as its columns' texts (PostgreSQL manual, "Message Formats").
fn rows(mut messages: &[u8]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = messages {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let Some((body, next)) = rest.split_at_checked(length) else { break };
        if *kind == b'D' {
            rows.push(columns(&body[2..]));
        }
        messages = next;
    }
    rows
}

fn columns(mut values: &[u8]) -> Vec<String> {
    let mut columns = Vec::new();
    while let [a, b, c, d, rest @ ..] = values {
        // A length of -1 is a null.
        let length = i32::from_be_bytes([*a, *b, *c, *d]).max(0) as usize;
        let (value, next) = rest.split_at(length);
        columns.push(String::from_utf8_lossy(value).into_owned());
        values = next;
    }
    columns
}

/// All statements with parameters, by name. One without has nothing that it could be planned for.
fn statements() -> BTreeMap<String, String> {
    let entries =
        |path: &str| fs::read_dir(path).expect(path).map(|entry| entry.expect("an entry"));
    let mut statements = BTreeMap::new();
    for directory in entries(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")) {
        let group = directory.file_name().into_string().expect("a name");
        if !directory.path().is_dir() {
            continue;
        }
        for file in entries(&directory.path().display().to_string()) {
            let name = file.file_name().into_string().expect("a name");
            let text = fs::read_to_string(file.path()).expect("a file");
            if text.contains("$1") {
                statements.insert(format!("{group}/{}", name.trim_end_matches(".sql")), text);
            }
        }
    }
    statements
}

/// Uses every endpoint whose statements have parameters. `n` makes names unique.
fn tour(api: &Server, root: &Tokens, n: i64) {
    let name = format!("user{n}");
    let email = format!("{name}@example.com");
    let id = api.register(&name).expect(201).id();
    api.register_with(json!({"email": format!("other{n}@example.com"), "password": PASSWORD}))
        .expect(201);
    let tokens = api.sign_in(&name);
    api.me(&tokens).expect(200);
    api.update_me(&tokens, json!({"name": "A name"})).expect(200);

    let file = api.new_file(&tokens, "a.txt", "content");
    let keyed = api.upload_request(&tokens, file_form("a.txt", "text/plain", b"content").bytes());
    let keyed = keyed.header("Idempotency-Key", &file).send().expect(201);
    api.delete_file(&tokens, &keyed.id()).expect(204);
    api.post(&format!("/uploads/{}/restore", keyed.id()), &tokens, json!({})).expect(200);
    api.get("/changes", &tokens).expect(200);
    api.list_files(&tokens, "").expect(200);
    api.list_files(&tokens, "search=a&sort_by=filename").expect(200);
    api.update_file(&tokens, &file, json!({"description": "A file"})).expect(200);
    api.download(&tokens, &file).expect(200);
    let link = api.create_link(&tokens, &file, json!({})).expect(201);
    api.open_link(link.json()["url"].as_str().expect("a path")).expect(200);
    api.list_links(&tokens, &file).expect(200);
    api.delete_link(&tokens, &file, &link.id()).expect(204);
    api.delete_file(&tokens, &file).expect(204);

    let personal = api.new_token(&tokens, false);
    api.get("/auth/me", personal.as_str()).expect(200);
    let listed = api.list_tokens(&tokens).expect(200).json();
    api.delete_token(&tokens, listed["tokens"][0]["id"].as_str().expect("an id")).expect(204);
    api.user_tokens(root, &id).expect(200);
    api.delete_user_tokens(root, &id).expect(204);

    let other = claims(&api.sign_in(&name).access);
    api.end_session(&tokens, other["sid"].as_str().expect("a session")).expect(204);
    api.list_sessions(&tokens).expect(200);
    let tokens = api.refresh(&tokens.refresh).expect(200).tokens();
    for scope in ["others", "local"] {
        api.logout_scope(&tokens, scope).expect(204);
    }
    api.logout(api.sign_in(&name)).expect(204);
    api.end_user_sessions(root, &id).expect(204);
    let tokens = api.sign_in(&name);
    let factor = api.new_second_factor(&tokens, PASSWORD);
    api.login_with_code(&name, PASSWORD, &factor.wrong_code()).expect(401);
    api.login_with_code(&name, PASSWORD, &factor.code()).expect(200);
    api.renew_recovery_codes(&tokens, PASSWORD, &factor.recovery_codes[0]).expect(200);
    api.forget_used_codes();
    api.disable_second_factor(&tokens, PASSWORD, &factor.code()).expect(204);
    api.reset_second_factor(root, &id).expect(204);
    api.change_password(api.sign_in(&name), PASSWORD, NEW_PASSWORD).expect(200);
    api.reset_password(&api.reset_token(&email), PASSWORD).expect(200);

    api.get("/users/export", root).expect(200);
    api.show_user(root, &id).expect(200);
    api.update_user(root, &id, json!({"name": "Another"})).expect(200);
    api.delete_user(root, &id).expect(204);
}

#[test]
fn no_statement_is_planned_anew_for_each_request() {
    let database = Database::create();
    let proxy = PlanProxy::start(&database.url);
    let data = Arc::new(Directory::create());
    // A file of the largest size would exceed all quotas, so what there is is counted.
    let settings = [
        ("CLOAKROOM_DATABASE_POOL_SIZE", "1"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1000"),
        ("CLOAKROOM_STORAGE_QUOTA", "100000000"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "200000000"),
    ];
    let api = Server::spawn(command(&proxy.url, &data, &settings), &database, &data);
    let root = api.sign_up_admin("root");
    // Plans depend on the size of the tables.
    api.database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, password_hash)
             SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com', '-'
             FROM generate_series(1, 2000) i;
         INSERT INTO sessions (id, user_id, refresh_id, expires_at)
             SELECT gen_random_uuid(), id, gen_random_uuid(), now() + interval '1 day' FROM users;
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), '{}', 'f', 'f', 'text/plain', 1, 'f', 'h' FROM generate_series(1, 2000);
         ANALYZE",
        root.id()
    ));
    // A token without a session is looked up by a statement of its own.
    let without_session = sign(json!({"sub": root.id(), "iat": now(), "exp": now() + 600}));
    for _ in 0..RUNS {
        api.me(&without_session).expect(200);
        api.list_files(&without_session, "").expect(200);
    }
    for n in 0..RUNS {
        tour(&api, &root, n);
    }
    // Requests that come together are authenticated by one statement.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..100).for_each(|_| drop(api.me(&root).expect(200))));
        }
    });
    drop(api);
    let required = ("CLOAKROOM_EMAIL_CONFIRMATION", "required");
    let api = Server::spawn(
        command(&proxy.url, &data, &[settings[0], settings[1], required]),
        &database,
        &data,
    );
    for n in 0..RUNS {
        let name = format!("waits{n}");
        let confirm = |token: String| {
            let body = json!({"token": token, "password": PASSWORD});
            api.post("/auth/confirm-email", Anonymous, body).expect(200);
        };
        let logged = |n: i64| {
            let line = eventually(|| {
                let log = api.log();
                let mut tokens =
                    log.lines().filter(|line| line.contains("e-mail confirmation token"));
                tokens.nth(usize::try_from(n).expect("a number")).map(str::to_owned)
            });
            line.split_whitespace().last().expect("a token").to_owned()
        };
        api.register(&name).expect(201);
        confirm(logged(2 * n));
        let (user, wish) = (api.sign_in(&name), json!({"email": format!("moved{n}@example.com")}));
        api.update_me(&user, wish).expect(200);
        confirm(logged(2 * n + 1));
    }
    drop(api);
    let counts = proxy.counts();
    let is_on_tour =
        |name: &str| !NOT_ON_THE_TOUR.iter().any(|names| names.split(' ').any(|one| one == name));
    let faults: Vec<String> = statements()
        .iter()
        .filter_map(|(name, text)| {
            let PlanCounts { custom, runs } = *counts.get(text).unwrap_or(&PlanCounts::default());
            let is_fault = custom > MAX_CUSTOM_PLANS || (is_on_tour(name) && runs < RUNS);
            is_fault.then(|| format!("{name}: {custom} of {runs} runs were planned"))
        })
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_order_of_accounts_has_an_index() {
    let database = Database::create_migrated();
    // A third has no name.
    database.run(
        "INSERT INTO users (id, username, email, email_key, name, password_hash, created_at)
             SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com',
                    CASE WHEN i % 3 > 0 THEN 'User ' || i * 7919 % 100000 END, '-', now() - make_interval(mins => i)
             FROM generate_series(1, 100000) i;
         ANALYZE users",
    );
    database.run("VACUUM ANALYZE listed_users");
    let mut client = database.client();
    prepare_list_of_accounts(&mut client);
    let nulls = "NULL, ".repeat(9);
    for (order, index) in [
        ("created_at asc", "using listed_users_oldest"),
        ("created_at desc", "using listed_users_created"),
        ("name asc", "using listed_users_name on"),
        ("name desc", "using listed_users_name_desc"),
        ("email asc", "using listed_users_email"),
        ("email desc", "Backward using listed_users_email"),
    ] {
        let plan = plan_of(&mut client, &format!("{nulls}'{order}', 20, 20"));
        // The index leads to no more accounts than those up to the end of the page and a few that compare equal.
        let mut reads =
            plan.iter().filter(|line| line.contains(index)).filter_map(|line| rows_read(line));
        assert!(reads.any(|count| count < 100), "{order}: {plan:#?}");
        // All of them are counted by their totals.
        assert!(plan.iter().any(|line| line.contains("on account_totals")), "{order}: {plan:#?}");
        assert_eq!(scans_of_users(&plan), 0, "{order}: {plan:#?}");
        // A page far out is skipped to in the index alone.
        let plan = plan_of(&mut client, &format!("{nulls}'{order}', 20, 99900"));
        let skips = |line: &String| line.contains("Index Only Scan") && line.contains(index);
        assert!(plan.iter().any(skips), "{order}: {plan:#?}");
    }
    // These have none, so all accounts are read, once.
    for order in ["last_login", "total_storage_used"] {
        for order in [format!("{order} asc"), format!("{order} desc")] {
            let plan = plan_of(&mut client, &format!("{nulls}'{order}', 20, 20"));
            assert_eq!(scans_of_users(&plan), 1, "{order}: {plan:#?}");
        }
    }
}

/// How many scans of a plan read all of the table `users`.
fn scans_of_users(plan: &[String]) -> usize {
    let is_scan =
        |line: &&String| line.contains("Seq Scan on users") && !line.contains("never executed");
    plan.iter().filter(is_scan).count()
}

#[test]
fn a_search_reads_all_accounts_if_many_match_and_only_those_of_the_index_if_few_do() {
    let database = Database::create_migrated();
    database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash)
             SELECT gen_random_uuid(), 'u' || i, 'user' || i || '@example.com', 'user' || i || '@example.com', '-'
             FROM generate_series(1, 50000) i;
         ANALYZE users",
    );
    database.run("VACUUM ANALYZE listed_users");
    let mut client = database.client();
    prepare_list_of_accounts(&mut client);
    // In two columns, or in all three.
    for (search, uses_index) in [
        ("'%example.com%', NULL", false),
        ("NULL, '%example.com%'", false),
        ("'%a%', NULL", false),
        ("'%user4999%', NULL", true),
        ("NULL, '%user4999%'", true),
        ("'%zzzzzz%', NULL", true),
        ("NULL, '%zzzzzz%'", true),
    ] {
        for order in ["created_at desc", "name asc", "email asc"] {
            let plan = plan_of(
                &mut client,
                &format!("NULL, NULL, {search}, {}'{order}', 20, 0", "NULL, ".repeat(5)),
            );
            let run: Vec<&String> =
                plan.iter().filter(|line| !line.contains("never executed")).collect();
            let seen = |text: &str| run.iter().any(|line| line.contains(text));
            assert_eq!(
                seen("Bitmap Index Scan on listed_users_search"),
                uses_index,
                "{search}: {plan:#?}"
            );
            assert_eq!(seen("Seq Scan on listed_users"), !uses_index, "{search}: {plan:#?}");
            // The order leads to the page only if many match.
            assert_ne!(seen("Scan using listed_users_"), uses_index, "{search}: {plan:#?}");
        }
    }
}

/// Prepares the query of lists of accounts as the service runs it: planned for its values.
fn prepare_list_of_accounts(client: &mut postgres::Client) {
    let types = "text, text, text, text, uuid[], text, boolean, timestamptz, timestamptz, text, bigint, bigint";
    prepare(client, "custom", types, include_str!("../../../sql/users/list.sql"));
}

/// The same of lists of files.
fn prepare_list_of_files(client: &mut postgres::Client) {
    let types = "uuid, text, text[], text, boolean, bigint, bigint";
    prepare(client, "custom", types, include_str!("../../../sql/files/list.sql"));
}

/// Prepares a statement as `list`, planned for its values each time (`custom`) or for any (`generic`).
fn prepare(client: &mut postgres::Client, mode: &str, types: &str, sql: &str) {
    let prepare =
        format!("SET plan_cache_mode = force_{mode}_plan; PREPARE list ({types}) AS {sql}");
    client.batch_execute(&prepare).expect("a statement");
}

/// How many rows a line of a plan says were read.
fn rows_read(line: &str) -> Option<u32> {
    let (_, rows) = line.split_once("(actual ")?.1.split_once("rows=")?;
    rows.split_whitespace().next()?.parse().ok()
}

/// Runs the statement `list` and returns its plan.
fn plan_of(client: &mut postgres::Client, values: &str) -> Vec<String> {
    let rows = client.query(&format!("EXPLAIN (ANALYZE) EXECUTE list ({values})"), &[]);
    rows.expect("a plan").iter().map(|row| row.get(0)).collect()
}

/// Inserts Ann, whose id is [`UNKNOWN_ID`], Bob, and files in the order of their upload: each `share`th is Ann's.
fn insert_files_of_two(database: &Database, files: u32, share: u32) {
    let (ann, bob) = (UNKNOWN_ID, "11111111-1111-4111-8111-111111111111");
    database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, password_hash)
             VALUES ('{ann}', 'ann', 'ann@example.com', 'ann@example.com', '-'),
                    ('{bob}', 'bob', 'bob@example.com', 'bob@example.com', '-');
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date)
             SELECT gen_random_uuid(), CASE WHEN i % {share} = 0 THEN '{ann}'::uuid ELSE '{bob}' END,
                    'File ' || i * 7919 % 60000, 'f', CASE WHEN i % 100 < 2 THEN 'image/png' ELSE 'text/plain' END,
                    i * 31 % 50000, 'f', 'h', now() - make_interval(mins => i)
             FROM generate_series({files}, 1, -1) i"
    ));
}

#[test]
fn each_order_of_files_has_an_index_which_leads_to_the_page() {
    let database = Database::create_migrated();
    let ann = UNKNOWN_ID;
    insert_files_of_two(&database, 60_000, 2);
    database.run("VACUUM ANALYZE files");
    let mut client = database.client();
    prepare_list_of_files(&mut client);
    for (column, index) in
        [("filename", "files_name"), ("file_size", "files_size"), ("upload_date", "files_newest")]
    {
        for descending in [true, false] {
            for types in ["NULL", "'{text/plain}'"] {
                let plan = plan_of(
                    &mut client,
                    &format!("'{ann}', NULL, {types}, '{column}', {descending}, 20, 0"),
                );
                let scans = |line: &&String| line.contains(&format!("using {index} on"));
                let mut reads = plan.iter().filter(scans).filter_map(|line| rows_read(line));
                assert!(reads.any(|count| (1..100).contains(&count)), "{column}: {plan:#?}");
            }
        }
        // Of a type that few files have, all are read and sorted.
        let values = format!("'{ann}', NULL, '{{image/png}}', '{column}', true, 20, 0");
        let plan = plan_of(&mut client, &values);
        let most = plan
            .iter()
            .filter(|line| line.contains("on files"))
            .filter_map(|line| rows_read(line))
            .max();
        assert!(most.expect("a scan") <= 1000, "{column}: {plan:#?}");
    }
}

#[test]
fn no_parallel_workers_take_part_in_a_search() {
    let database = Database::create_migrated();
    insert_files_of_two(&database, 5000, 1);
    let mut client = database.client();
    // Workers look free of charge, so they take part wherever they can.
    let free = "ANALYZE; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
                SET min_parallel_table_scan_size = 0";
    client.batch_execute(free).expect("settings");
    prepare_list_of_files(&mut client);
    let values = format!("'{UNKNOWN_ID}', 'x', NULL, 'upload_date', true, 20, 0");
    let plan = plan_of(&mut client, &values);
    let search = plan.iter().position(|line| line.contains("strpos"));
    let search = search.unwrap_or_else(|| panic!("no search: {plan:#?}"));
    // What a line is part of stands above it and further to the left.
    let mut indentation = usize::MAX;
    for line in plan[..=search].iter().rev() {
        let own = line.len() - line.trim_start().len();
        assert!(own >= indentation || !line.contains("Gather"), "{plan:#?}");
        indentation = indentation.min(own);
    }
}

#[test]
fn what_young_accounts_have_stored_is_read_from_theirs_alone() {
    let database = Database::create_migrated();
    database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash, created_at, is_self_registered)
             SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com',
                    '-', now() - make_interval(hours => i), true
             FROM generate_series(1, 20000) i;
         ANALYZE users",
    );
    let mut client = database.client();
    client.batch_execute("BEGIN; SELECT young_disk_usage(1, 0)").expect("a number");
    let reads =
        "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'users'";
    let row = client.query_one(reads, &[]).expect("the reads of this transaction");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 7 * 24 - 1));
}

#[test]
fn a_page_of_files_reads_no_files_of_other_users() {
    let database = Database::create_migrated();
    let ann = UNKNOWN_ID;
    // Nearly all files are Bob's.
    insert_files_of_two(&database, 20_000, 100);
    database.run("ANALYZE");
    let api = Server::start_with(&database, &Arc::new(Directory::create()), &[]);
    let token = sign(json!({"sub": ann, "iat": now(), "exp": now() + 600}));
    api.list_files(&token, "").expect(200).has(json!({"total": 200}));
    let mut client = database.client();
    let types = "uuid, bigint, bigint";
    prepare(&mut client, "generic", types, include_str!("../../../sql/files/list_newest.sql"));
    let plan = plan_of(&mut client, &format!("'{ann}', 20, 0"));
    assert!(plan.iter().any(|line| line.contains("using files_newest")), "{plan:#?}");
}
