//! Queries read no more than they must: each order of a list has an index that leads to the page, and which plan a
//! search has depends on how many match. `extras/plans.rs` has how often statements are planned.

use std::sync::Arc;

use crate::harness::*;

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
    prepare(client, "custom", types, include_str!("../../../sql/accounts/list.sql"));
}

/// The same of lists of files.
fn prepare_list_of_files(client: &mut postgres::Client) {
    let types = "uuid, text, text[], text, boolean, bigint, bigint, text, text, boolean";
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
    database.run(
        "UPDATE files SET folder = 'a' || chr(1) WHERE id < '40000000-0000-0000-0000-000000000000'",
    );
    database.run("VACUUM ANALYZE files");
    let mut client = database.client();
    prepare_list_of_files(&mut client);
    for (column, index) in [("filename", "name"), ("file_size", "size"), ("upload_date", "newest")]
    {
        for descending in [true, false] {
            for (types, folder, index) in [
                ("NULL", "NULL", format!("files_{index}")),
                ("'{text/plain}'", "NULL", format!("files_{index}")),
                ("NULL", "E'a\\x01'", format!("files_folder_{index}")),
            ] {
                let values = format!(
                    "'{ann}', NULL, {types}, '{column}', {descending}, 20, 0, {folder}, NULL, NULL"
                );
                let plan = plan_of(&mut client, &values);
                let scans = |line: &&String| line.contains(&format!("using {index} on"));
                let mut reads = plan.iter().filter(scans).filter_map(|line| rows_read(line));
                assert!(reads.any(|count| (1..100).contains(&count)), "{column}: {plan:#?}");
            }
        }
        // Of a type that few files have, all are read and sorted.
        let values =
            format!("'{ann}', NULL, '{{image/png}}', '{column}', true, 20, 0, NULL, NULL, NULL");
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
    let values = format!("'{UNKNOWN_ID}', 'x', NULL, 'upload_date', true, 20, 0, NULL, NULL, NULL");
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
