//! A database for each test.

use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;

use postgres::types::FromSql;
use postgres::{Client, NoTls};

use super::data_directory::unique_name;
use super::{OutputText, run, wait_until};

/// A new database. It is dropped when its last owner is.
pub struct Database {
    /// Where servers under test reach it.
    pub url: String,
    /// Where the test itself does. It differs from `url` if there is a connection pooler before the database.
    direct_url: String,
    name: String,
    superuser_url: String,
    /// What each server that was started on it has logged so far.
    pub logs: Mutex<Vec<Arc<Mutex<String>>>>,
}

impl Database {
    /// Creates an empty one on the PostgreSQL server that `scripts/test` starts. The servers under test reach it
    /// through the connection pooler at the host and port that `CLOAKROOM_TEST_POOLER` names, if it is set.
    pub fn create() -> Arc<Database> {
        Database::copy_of("template1")
    }

    /// Creates an empty one there with these options of `CREATE DATABASE`.
    pub fn create_with(options: &str) -> Arc<Database> {
        Database::copy_of(&format!("template0 {options}"))
    }

    /// Creates one there that has the service's schema, and no installation id yet. It is a copy of a database that is
    /// migrated once a process, which is faster than another migration.
    pub fn create_migrated() -> Arc<Database> {
        static TEMPLATE: LazyLock<String> = LazyLock::new(make_template);
        Database::copy_of(&TEMPLATE)
    }

    /// Creates one that says that it has the version of the schema before this one, and returns both versions.
    pub fn create_outdated() -> (Arc<Database>, i32, i32) {
        let database = Database::create_migrated();
        let version = "UPDATE refinery_schema_history SET version = version - 1 RETURNING version";
        let outdated: i32 = database.value(version);
        (database, outdated, outdated + 1)
    }

    fn copy_of(template: &str) -> Arc<Database> {
        let mut database = Database::new(&server_url(), template);
        if let Ok(pooler) = std::env::var("CLOAKROOM_TEST_POOLER") {
            let (credentials, rest) = database.url.split_once('@').expect("a URL with a user");
            let (_, name) = rest.split_once('/').expect("a URL with a database");
            database.url = format!("{credentials}@{pooler}/{name}");
        }
        Arc::new(database)
    }

    /// Makes another one with all that is in this one, as it is; nobody may be connected to it.
    pub fn copy(&self) -> Arc<Database> {
        Database::copy_of(&self.name)
    }

    /// Creates it on the PostgreSQL server of a superuser's URL.
    pub fn create_on(superuser_url: &str) -> Arc<Database> {
        Arc::new(Database::new(superuser_url, "template1"))
    }

    fn new(superuser_url: &str, template: &str) -> Database {
        let name = format!("cloakroom_test_{}", unique_name());
        let url = create(superuser_url, &name, template);
        let (superuser_url, logs) = (superuser_url.to_owned(), Mutex::default());
        Database { direct_url: url.clone(), url, name, superuser_url, logs }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lines that contain `text` in the logs of all servers that were started on it.
    pub fn logged(&self, text: &str) -> Vec<String> {
        let logs = self.logs.lock().expect("no panic");
        let lines = |log: &Arc<Mutex<String>>| {
            let log = log.lock().expect("log");
            log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect::<Vec<_>>()
        };
        logs.iter().flat_map(lines).collect()
    }

    pub fn client(&self) -> Client {
        connect(&self.direct_url)
    }

    /// The only value of the only row of a query.
    #[track_caller]
    pub fn value<T: for<'a> FromSql<'a>>(&self, sql: &str) -> T {
        self.client().query_one(sql, &[]).expect("a row").get(0)
    }

    /// The texts in the first column of a query.
    #[track_caller]
    pub fn texts(&self, sql: &str) -> Vec<String> {
        self.client().query(sql, &[]).expect("rows").iter().map(|row| row.get(0)).collect()
    }

    /// The number of rows of `FROM {from}`, where `from` may have a `WHERE`.
    #[track_caller]
    pub fn count(&self, from: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {from}"))
    }

    #[track_caller]
    pub fn run(&self, sql: &str) {
        self.client().batch_execute(sql).expect("SQL of the test");
    }

    /// Runs statements in a transaction that stays open, and so keeps the locks they took.
    pub fn begin(&self, sql: &str) -> OpenTransaction {
        let mut client = self.client();
        client
            .batch_execute("BEGIN")
            .and_then(|()| client.batch_execute(sql))
            .expect("a transaction");
        OpenTransaction(client)
    }

    /// Runs statements in a transaction, and `work` beside it until a statement of it waits for a lock of theirs. Then
    /// commits them, and returns what the work returned.
    #[track_caller]
    pub fn commit_during<T: Send>(&self, sql: &str, work: impl FnOnce() -> T + Send) -> T {
        let transaction = self.begin(sql);
        thread::scope(|scope| {
            let waiting = scope.spawn(work);
            self.wait_for_blocked_statement();
            transaction.commit();
            waiting.join().expect("no panic")
        })
    }

    /// Waits until exactly one statement waits for a lock.
    #[track_caller]
    pub fn wait_for_blocked_statement(&self) {
        wait_until(|| self.blocked_statements() == 1);
    }

    /// Waits for the next hour where this one ends soon, for what is counted by the hour.
    pub fn wait_unless_hour_lasts(&self) {
        // Minutes are whole numbers: seconds would be rounded, half a second before the hour to the next one.
        let minute = "SELECT extract(minute FROM now())::bigint";
        wait_until(|| self.value::<i64>(minute) < 59);
    }

    /// How many statements wait for a lock.
    pub fn blocked_statements(&self) -> i64 {
        self.connections("wait_event_type = 'Lock'")
    }

    /// How many connections to it meet a condition.
    pub fn connections(&self, condition: &str) -> i64 {
        let own = "pg_stat_activity WHERE datname = current_database()";
        self.count(&format!("{own} AND {condition}"))
    }

    /// Waits until all requests for password resets have been processed, and all messages sent.
    #[track_caller]
    pub fn wait_for_empty_outbox(&self) {
        wait_until(|| self.count("password_reset_requests") + self.count("outbox") == 0);
    }

    /// Ends the connections of the servers under test that meet `condition`, and waits for their end.
    pub fn end_connections(&self, condition: &str) {
        self.run(&format!(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND {condition}"
        ));
    }

    /// Gives a user so many sessions, which were opened two days ago, a second after each other.
    pub fn insert_sessions(&self, user: &str, count: i64) {
        self.run(&format!(
            "INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at, address, user_agent)
             SELECT gen_random_uuid(), '{user}', gen_random_uuid(), now() - interval '2 days' - n * interval '1 s',
                    now() + interval '1 day', '192.0.2.7', 'curl'
             FROM generate_series(1, {count}) n;
             ANALYZE sessions"
        ));
    }

    /// The number of live sessions of a user.
    #[track_caller]
    pub fn live_sessions(&self, user: &str) -> i64 {
        self.count(&format!(
            "sessions s JOIN users u ON u.id = s.user_id AND u.session_epoch = s.epoch
             WHERE u.id = '{user}' AND s.ended_at IS NULL AND s.expires_at > now()"
        ))
    }

    /// Inserts a file record without a content for each of the sizes.
    pub fn insert_files(&self, owner: &str, sizes: &[i64]) {
        self.run(&format!(
            "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), '{owner}', 'f', 'f', 'text/plain', size, 'f', 'h'
             FROM unnest(ARRAY{sizes:?}) size"
        ));
    }
}

/// The URL of the PostgreSQL server that `scripts/test` starts.
fn server_url() -> String {
    std::env::var("CLOAKROOM_TEST_DATABASE_URL")
        .expect("CLOAKROOM_TEST_DATABASE_URL is not set: run the tests with scripts/test")
}

/// Creates a database and returns its URL.
fn create(superuser_url: &str, name: &str, template: &str) -> String {
    connect(superuser_url)
        .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}"))
        .expect("CREATE DATABASE");
    let (server, _) = superuser_url.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

/// Makes the database that `Database::create_migrated` copies, and returns its name. Nothing runs at the end of a test
/// process that could drop it, so this drops those of processes that have ended.
fn make_template() -> String {
    const PREFIX: &str = "cloakroom_template_";
    let url = server_url();
    let mut client = connect(&url);
    let all = "SELECT datname FROM pg_database WHERE starts_with(datname, $1)";
    for row in client.query(all, &[&PREFIX]).expect("rows") {
        let name: String = row.get("datname");
        if !Path::new("/proc").join(&name[PREFIX.len()..]).exists() {
            client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).expect("DROP");
        }
    }
    let name = format!("{PREFIX}{}", std::process::id());
    run(&create(&url, &name, "template1"), &["migrate"], &[]).exits(0);
    name
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).expect("a connection to the test database")
}

impl Drop for Database {
    fn drop(&mut self) {
        // A test that has a PostgreSQL server of its own may have stopped it.
        if let Ok(mut client) = Client::connect(&self.superuser_url, NoTls) {
            let _ = client
                .batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        }
    }
}

/// A transaction that is still open.
pub struct OpenTransaction(Client);

impl OpenTransaction {
    pub fn commit(mut self) {
        self.0.batch_execute("COMMIT").expect("COMMIT");
    }

    pub fn roll_back(mut self) {
        self.0.batch_execute("ROLLBACK").expect("ROLLBACK");
    }
}
