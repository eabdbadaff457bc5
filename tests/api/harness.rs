//! Starts the real binary on a fresh database and speaks HTTP to it.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use serde_json::{Value, json};

/// Signing secret of every server a test starts, so that tests can forge tokens.
pub const SECRET: &str = "a-secret-for-tests-0123456789abcdef-0123456789abcdef-0123456789abcdef";
/// A password that obeys the rules.
pub const PASSWORD: &str = "correct horse";

static COUNTER: AtomicU32 = AtomicU32::new(0);

fn unique() -> String {
    format!("{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// URL of a superuser's database on the server that `scripts/test` starts.
fn superuser_url() -> String {
    std::env::var("CLOAKROOM_TEST_DATABASE_URL")
        .expect("CLOAKROOM_TEST_DATABASE_URL is not set: run the tests with scripts/test")
}

/// A fresh database, dropped at the end.
pub struct Database {
    pub url: String,
    name: String,
    superuser_url: String,
}

impl Database {
    pub fn create() -> Arc<Database> {
        Database::create_on(&superuser_url())
    }

    /// On a server of the test's own.
    pub fn create_on(superuser_url: &str) -> Arc<Database> {
        let name = format!("cloakroom_test_{}", unique());
        connect(superuser_url)
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .expect("CREATE DATABASE");
        let (server, _) = superuser_url.rsplit_once('/').expect("a URL with a database");
        Arc::new(Database {
            url: format!("{server}/{name}"),
            name,
            superuser_url: superuser_url.to_owned(),
        })
    }

    pub fn client(&self) -> Client {
        connect(&self.url)
    }

    /// One value of one row.
    pub fn value<T: for<'a> postgres::types::FromSql<'a>>(&self, sql: &str) -> T {
        self.client().query_one(sql, &[]).expect("a row").get(0)
    }

    pub fn run(&self, sql: &str) {
        self.client().batch_execute(sql).expect("SQL of the test");
    }
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).expect("a connection to the test database")
}

impl Drop for Database {
    fn drop(&mut self) {
        // The server of a test's own may be gone by now.
        if let Ok(mut client) = Client::connect(&self.superuser_url, NoTls) {
            let _ = client
                .batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        }
    }
}

/// A directory, removed at the end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn create() -> Directory {
        let path = std::env::temp_dir().join(format!("cloakroom-test-{}", unique()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The binary with a clean environment and settings that suit tests: cheap hashes, no rate limits.
pub fn command(database_url: &str, data: &Path, settings: &[(&str, &str)]) -> Command {
    command_at(Path::new(env!("CARGO_BIN_EXE_cloakroom")), database_url, data, settings)
}

/// The same with a copy of the binary.
pub fn command_at(
    binary: &Path,
    database_url: &str,
    data: &Path,
    settings: &[(&str, &str)],
) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().stdin(Stdio::null()).current_dir(data).envs([
        ("CLOAKROOM_DATABASE_URL", database_url),
        ("CLOAKROOM_LISTEN", "127.0.0.1:0"),
        ("CLOAKROOM_JWT_SECRET", SECRET),
        ("CLOAKROOM_SCRYPT", "4,8,1"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "false"),
    ]);
    command.env("CLOAKROOM_DATA_DIR", data).envs(settings.iter().copied());
    command
}

/// The same command behind a line of shell, which may set limits.
pub fn within_shell(line: &str, command: Command) -> Command {
    let mut shell = Command::new("/bin/bash");
    shell
        .args(["-c", &format!("{line} && exec \"$0\"")])
        .arg(command.get_program())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        shell.envs(value.map(|value| (name, value)));
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// Runs a command of the binary to its end.
pub fn run(database_url: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let data = Directory::create();
    command(database_url, &data.0, settings).args(arguments).output().expect("the binary runs")
}

/// A running server, killed at the end.
#[allow(dead_code)]
pub struct Server {
    pub address: String,
    pub database: Arc<Database>,
    pub data: Arc<Directory>,
    child: Child,
    log: Arc<Mutex<String>>,
}

#[allow(dead_code)]
impl Server {
    /// On a database of its own.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        Server::start_on(&Database::create(), settings)
    }

    pub fn start_on(database: &Arc<Database>, settings: &[(&str, &str)]) -> Server {
        Server::start_with(database, &Arc::new(Directory::create()), settings)
    }

    /// On a database and a data directory that outlive it.
    pub fn start_with(
        database: &Arc<Database>,
        data: &Arc<Directory>,
        settings: &[(&str, &str)],
    ) -> Server {
        Server::spawn(command(&database.url, &data.0, settings), database, data)
    }

    /// From a command that ends up as the binary.
    pub fn spawn(mut command: Command, database: &Arc<Database>, data: &Arc<Directory>) -> Server {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let mut address = None;
        while address.is_none() {
            let Some(Ok(line)) = lines.next() else {
                panic!("the server ended at start: {}", log.lock().expect("log"));
            };
            address = line
                .split_once("listening on http://")
                .map(|(_, rest)| rest.split(['"', ' ']).next().expect("an address").to_owned());
            log.lock().expect("log").push_str(&(line + "\n"));
        }
        let copy = log.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                copy.lock().expect("log").push_str(&(line + "\n"));
            }
        });
        let (address, database, data) =
            (address.expect("an address"), database.clone(), data.clone());
        Server { address, database, data, child, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Everything logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    /// Waits until the log holds `text` and gives the line.
    pub fn logged(&self, text: &str) -> String {
        eventually(|| self.log().lines().rev().find(|line| line.contains(text)).map(str::to_owned))
    }

    /// A request below `/api/v1`.
    pub fn api(&self, method: &str, path: &str) -> Request {
        self.request(method, &format!("/api/v1{path}"))
    }

    pub fn request(&self, method: &str, path: &str) -> Request {
        Request {
            method: method.to_owned(),
            url: format!("http://{}{path}", self.address),
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.api("POST", path).json(body).send()
    }

    pub fn get(&self, path: &str, token: &str) -> Answer {
        self.api("GET", path).bearer(token).send()
    }

    /// Registers `name` with `name@example.com` and signs it in.
    pub fn sign_up(&self, name: &str) -> Tokens {
        self.post(
            "/auth/register",
            json!({"username": name, "email": format!("{name}@example.com"), "password": PASSWORD}),
        )
        .expect(201);
        self.sign_in(name)
    }

    pub fn sign_in(&self, name: &str) -> Tokens {
        self.post("/auth/login", json!({"username": name, "password": PASSWORD}))
            .expect(200)
            .tokens()
    }

    /// Signs up and makes an admin of it.
    pub fn sign_up_admin(&self, name: &str) -> Tokens {
        self.sign_up(name);
        self.database.run(&format!("UPDATE users SET role = 'admin' WHERE username = '{name}'"));
        self.sign_in(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pair of tokens and whose they are.
#[derive(Debug, Clone)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub user: Value,
}

impl Tokens {
    pub fn id(&self) -> &str {
        self.user["id"].as_str().expect("an id")
    }
}

/// A request in the making.
#[derive(Clone)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn bearer(self, token: &str) -> Request {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn json(self, body: Value) -> Request {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    pub fn form(self, body: &str) -> Request {
        self.header("Content-Type", "application/x-www-form-urlencoded").body(body)
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    pub fn send(&self) -> Answer {
        self.try_send().unwrap_or_else(|e| panic!("{} {}: {e}", self.method, self.url))
    }

    pub fn try_send(&self) -> Result<Answer, ureq::Error> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(60)))
            .max_redirects(0)
            .build()
            .into();
        let mut request =
            ureq::http::Request::builder().method(self.method.as_str()).uri(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = match &self.body {
            Some(body) => agent.run(request.body(body.as_slice())?),
            None => agent.run(request.body(())?),
        }?;
        let (parts, body) = response.into_parts();
        let body = body.into_with_config().limit(u64::MAX).read_to_vec()?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, bytes: body })
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    /// The default error body (contract, 4).
    #[track_caller]
    pub fn refused(self, status: u16, message: &str) -> Answer {
        assert_eq!((self.status, &self.json()["detail"]), (status, &json!(message)));
        self
    }

    /// A 422 that names exactly these fields and kinds of problem, in any order.
    #[track_caller]
    pub fn invalid(self, expected: &[(&str, &str)]) -> Answer {
        let body = self.json();
        assert_eq!((self.status, &body["error_code"]), (422, &json!("VALIDATION_ERROR")), "{body}");
        let mut found: Vec<_> = body["detail"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|fault| {
                let loc: Vec<_> = fault["loc"]
                    .as_array()
                    .expect("loc")
                    .iter()
                    .map(|l| l.as_str().expect("text"))
                    .collect();
                (loc.join("."), fault["type"].as_str().expect("type").to_owned())
            })
            .collect();
        found.sort();
        let mut expected: Vec<_> =
            expected.iter().map(|(l, t)| ((*l).to_owned(), (*t).to_owned())).collect();
        expected.sort();
        assert_eq!(found, expected, "{body}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|e| {
            panic!("{e}: {} {:?}", self.status, String::from_utf8_lossy(&self.bytes))
        })
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {:?}", self.headers))
            .to_str()
            .expect("ASCII")
    }

    pub fn tokens(&self) -> Tokens {
        let body = self.json();
        let text = |name: &str| {
            body[name].as_str().unwrap_or_else(|| panic!("no {name}: {body}")).to_owned()
        };
        Tokens {
            access: text("access_token"),
            refresh: text("refresh_token"),
            user: body["user"].clone(),
        }
    }
}

/// Runs `work` on `n` threads at once and gives the outcomes.
pub fn parallel<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = std::sync::Barrier::new(n);
    thread::scope(|scope| {
        let (work, barrier) = (&work, &barrier);
        let threads: Vec<_> = (0..n)
            .map(|i| {
                scope.spawn(move || {
                    barrier.wait();
                    work(i)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Asks until there is an answer, for ten seconds.
#[track_caller]
pub fn eventually<T>(ask: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "did not happen within ten seconds");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The parts of a median comparison: the middle of `values`.
pub fn median<T: Ord + Copy + Debug>(mut values: Vec<T>) -> T {
    values.sort();
    values[values.len() / 2]
}
