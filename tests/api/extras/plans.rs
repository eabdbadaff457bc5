//! Prepared statements keep their plans. PostgreSQL plans a statement anew for its first five executions, and then for
//! good unless the plan for any values looks as cheap as those were.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use crate::harness::*;

/// How often each statement runs.
const RUNS: i64 = 20;
/// The most executions for which PostgreSQL plans a statement that is to keep its plan.
const MAX_CUSTOM_PLANS: i64 = 5;

/// Statements with parameters that clients cannot make run so often, or that are not prepared.
const NOT_ON_THE_TOUR: [&str; 4] = [
    // Planned for their parameters each time, and not prepared.
    "audit/page exports/batch_of_filter exports/count files/list undo/list db/stats/daily \
     accounts/list",
    // By commands and at the start.
    "tools/audit/settled_before tools/audit/since tools/checks/user_totals tools/has_file \
     tools/with_owners db/installation/insert tools/restore/remove_files tools/restore/renew \
     db/schema_history/insert second_factor/reseal second_factor/sealed provider/count \
     request/ensure_development_admin request/find_development_admin \
     accounts/upsert_admin accounts/count_imported tools/import/taken tools/import/users",
    // By the background threads.
    "audit/insert_failures audit/insert_skipped audit/sweep db/sweep \
     tools/contents_after files/unrecorded partial/ended partial/expire mail/defer mail/remove \
     db/removals/contents db/removals/contents_due db/removals/due db/removals/expire \
     db/removals/forget_contents db/removals/list_contents db/removals/make_room db/removals/make_room_of_user \
     db/removals/remove changes/forget request/latest_changes \
     mail/insert_counted_resets \
     db/schema_history/unsuited sign_in/end_epoch \
     db/stats/fold",
    // Only by tests of clients.
    "accounts/delete_all",
];

/// A place in the list of the files of a link: after a file with no folder, a random id and the name `visitors.txt`.
const A_PLACE: &str = "OGYxNGU0NWZjZWVhNDY3ZmFiMmYwYzJiOGE1ZDljMTF2aXNpdG9ycy50eHQ";

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
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/sql"));
    let mut statements = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a file");
            let name = path.strip_prefix(root).expect("a file below it").with_extension("");
            let name = name.to_str().expect("UTF-8").to_owned();
            let is_schema = name.ends_with("schema") || name == "accounts/ends";
            if text.contains("$1") && path.extension().is_some_and(|it| it == "sql") && !is_schema {
                statements.insert(name, text);
            }
        }
    }
    statements
}

/// Uses every endpoint whose statements have parameters. `n` makes names unique.
fn tour(api: &Server, provider: &OpenIdProvider, root: &Tokens, n: i64) {
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
    api.get("/uploads/public", &tokens).expect(200);
    api.update_file(&tokens, &file, json!({"description": "A file"})).expect(200);
    api.download(&tokens, &file).expect(200);
    let link = api.create_link(&tokens, &file, json!({})).expect(201);
    api.open_link(link.json()["url"].as_str().expect("a path")).expect(200);
    api.list_links(&tokens, &file).expect(200);
    api.get("/links", &tokens).expect(200);
    api.delete_link(&tokens, &file, &link.id()).expect(204);
    for target in [json!({"files": [file]}), json!({"folder": "/"})] {
        let link = api.post("/links", &tokens, target).expect(201);
        let url = link.json()["url"].as_str().expect("a path").to_owned();
        for path in
            ["", "?about=true", &format!("?about=true&after={A_PLACE}"), &format!("/{file}")]
        {
            api.open_link(&format!("{url}{path}")).expect(200);
        }
        api.delete(&format!("/links/{}", link.id()), &tokens).expect(204);
    }
    // Who registered asks for files after a week.
    let older = "UPDATE users SET created_at = created_at - interval '8 days' WHERE id";
    api.database.run(&format!("{older} = '{id}'"));
    // It takes less than a file may have, so what came is counted.
    let sending = api.ask_for_files(&tokens, json!({"max_bytes": 1000}));
    api.about_link(&sending);
    let form = || file_form("a.txt", "text/plain", b"a");
    api.send_request(&sending, form()).header("Idempotency-Key", "a").send().expect(201);
    let partial = api.begin_partial(&tokens, 4);
    api.adding(&partial, &tokens, 0, b"1").send().expect(204);
    api.partial_uploads(&tokens);
    api.adding(&partial, &tokens, 1, b"234").send().expect(204);
    api.tus("DELETE", &partial, &tokens).send().expect(204);
    let partial = api.begin_by_link(&sending, 1);
    api.adding(&partial, Anonymous, 0, b"1").send().expect(204);
    for query in ["", "?folder=/", &format!("?ids={file}")] {
        api.get(&format!("/uploads/zip{query}"), &tokens).expect(200);
    }
    api.delete_file(&tokens, &file).expect(204);
    let many = json!({"ids": [api.new_file(&tokens, "a.txt", "a")], "is_public": true});
    api.post("/uploads/update", &tokens, many.clone()).expect(200);
    api.post("/uploads/delete", &tokens, many).expect(200);
    let form = file_form("a.txt", "text/plain", b"a").field("folder", "/a");
    api.upload_form(&tokens, form).expect(201);
    api.get("/folders", &tokens).expect(200);
    api.list_files(&tokens, "folder=/a").expect(200);
    api.post("/folders/move", &tokens, json!({"from": "/a", "to": "/b"})).expect(200);
    api.delete("/folders?folder=/b", &tokens).expect(200);

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
    provider.person(&name);
    provider.claim("groups", json!([]));
    api.join(&tokens, &api.provider_code(provider, "&again=1"), Some(PASSWORD)).expect(204);
    api.provider_token(&api.provider_code(provider, ""), VERIFIER, None).expect(401);
    let code = Some(&*factor.recovery_codes[1]);
    api.provider_token(&api.provider_code(provider, ""), VERIFIER, code).expect(200);
    api.delete(&format!("/users/{id}/identity"), root).expect(204);
    api.renew_recovery_codes(&tokens, PASSWORD, &factor.recovery_codes[0]).expect(200);
    api.forget_used_codes();
    api.disable_second_factor(&tokens, PASSWORD, &factor.code()).expect(204);
    api.reset_second_factor(root, &id).expect(204);
    api.change_password(api.sign_in(&name), PASSWORD, NEW_PASSWORD).expect(200);
    api.reset_password(&api.reset_token(&email), PASSWORD).expect(200);

    api.get("/users/export", root).expect(200);
    api.show_user(root, &id).expect(200);
    api.update_user(root, &id, json!({"name": "Another"})).expect(200);
    api.post(&format!("/users/{id}/password-link"), root, json!({})).expect(204);
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
        ("CLOAKROOM_PUBLIC_LIST", "on"),
    ];
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    let claim = ("CLOAKROOM_OIDC_ADMIN_CLAIM", "groups:admins");
    let settings = [&settings[..], &provider_settings(&issuer), &[claim]].concat();
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
        tour(&api, &provider, &root, n);
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
