//! One method per endpoint. Tests whose subject is a path, a header or a malformed body build the request themselves.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{
    Anonymous, Answer, Credentials, OutputText, PASSWORD, Request, Server, Tokens, eventually, run,
    wait_until,
};

/// Any endpoint.
impl Server {
    pub fn get(&self, path: &str, sender: impl Credentials) -> Answer {
        self.request("GET", path).by(sender).send()
    }

    pub fn post(&self, path: &str, sender: impl Credentials, body: Value) -> Answer {
        self.request("POST", path).by(sender).json(body).send()
    }

    pub fn put(&self, path: &str, sender: impl Credentials, body: Value) -> Answer {
        self.request("PUT", path).by(sender).json(body).send()
    }

    pub fn delete(&self, path: &str, sender: impl Credentials) -> Answer {
        self.request("DELETE", path).by(sender).send()
    }
}

/// Outside `/api/v1`.
impl Server {
    pub fn healthz(&self) -> Answer {
        self.request_at_root("GET", "/healthz").send()
    }

    pub fn readyz(&self) -> Answer {
        self.request_at_root("GET", "/readyz").send()
    }

    pub fn metrics(&self) -> String {
        self.request_at_root("GET", "/metrics").send().expect(200).text()
    }

    /// The value of a metric, whose name includes its labels. `None` if it is missing.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        self.metrics().lines().find_map(value)
    }
}

/// `/auth`.
impl Server {
    /// Registers `name` with `name@example.com` and the usual password.
    pub fn register(&self, name: &str) -> Answer {
        let email = format!("{name}@example.com");
        self.register_with(json!({"username": name, "email": email, "password": PASSWORD}))
    }

    pub fn register_with(&self, body: Value) -> Answer {
        self.post("/auth/register", Anonymous, body)
    }

    /// Signs in with a username or an e-mail address.
    pub fn login(&self, name: &str, password: &str) -> Answer {
        self.login_with(json!({"username": name, "password": password}))
    }

    pub fn login_with(&self, body: Value) -> Answer {
        self.post("/auth/login", Anonymous, body)
    }

    pub fn refresh(&self, refresh_token: &str) -> Answer {
        self.post("/auth/refresh", Anonymous, json!({"refresh_token": refresh_token}))
    }

    pub fn logout(&self, sender: impl Credentials) -> Answer {
        self.request("POST", "/auth/logout").by(sender).send()
    }

    pub fn logout_scope(&self, sender: impl Credentials, scope: &str) -> Answer {
        self.request("POST", &format!("/auth/logout?scope={scope}")).by(sender).send()
    }

    pub fn request_reset(&self, email: &str) -> Answer {
        self.post("/auth/request-password-reset", Anonymous, json!({"email": email}))
    }

    pub fn reset_password(&self, token: &str, new_password: &str) -> Answer {
        let body = json!({"token": token, "new_password": new_password});
        self.post("/auth/reset-password", Anonymous, body)
    }

    /// Requests a password reset and takes the token from the log, where it stands in development: from that of another
    /// process on the database if that looked for mail first. Waits before until an earlier one is no longer being
    /// sent, and forgets the messages to the account and its mailbox, because otherwise only one in two minutes is
    /// sent, and few a day while the account is not settled.
    pub fn reset_token(&self, email: &str) -> String {
        let of_account = format!("users.id = user_id AND lower(email) = lower('{email}')");
        let waiting = format!("outbox, users WHERE kind = 'password_reset' AND {of_account}");
        wait_until(|| self.database.count(&waiting) == 0);
        self.database.run(&format!(
            "DELETE FROM password_reset_messages USING users WHERE {of_account};
             DELETE FROM mail_counts WHERE key = sha256(convert_to(lower('{email}'), 'UTF8'))"
        ));
        let tokens = || self.database.logged("password reset token");
        let before = tokens();
        self.request_reset(email).expect(200);
        let line = eventually(|| tokens().into_iter().find(|line| !before.contains(line)));
        line.split_whitespace().last().expect("a token").to_owned()
    }

    /// Has a mail with a link that confirms an address queued, and takes the token from the outbox, before any process
    /// on the database can send it, or drop it because its settings ask for no confirmation.
    pub fn confirmation_token(&self, ask: impl FnOnce()) -> String {
        let delay = |by: &str| {
            let default = format!("SET DEFAULT now() + interval '{by}'");
            self.database.run(&format!("ALTER TABLE outbox ALTER COLUMN due_at {default}"));
        };
        delay("1 day");
        ask();
        delay("0");
        let taken = "DELETE FROM outbox WHERE sealed_token IS NOT NULL RETURNING sealed_token";
        let token = URL_SAFE_NO_PAD.encode(self.database.value::<Vec<u8>>(taken));
        self.database.run("UPDATE outbox SET due_at = now() WHERE attempts = 0");
        token
    }

    pub fn list_sessions(&self, sender: impl Credentials) -> Answer {
        self.get("/auth/sessions", sender)
    }

    pub fn end_session(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/auth/sessions/{id}"), sender)
    }

    pub fn create_token(&self, sender: impl Credentials, body: Value) -> Answer {
        self.post("/auth/tokens", sender, body)
    }

    /// Makes a personal access token and returns it.
    #[track_caller]
    pub fn new_token(&self, sender: impl Credentials, read_only: bool) -> String {
        let body = json!({"name": "a script", "read_only": read_only});
        let answer = self.create_token(sender, body).expect(201);
        answer.json()["token"].as_str().expect("a token").to_owned()
    }

    pub fn list_tokens(&self, sender: impl Credentials) -> Answer {
        self.get("/auth/tokens", sender)
    }

    pub fn delete_token(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/auth/tokens/{id}"), sender)
    }

    /// The current user by `GET /auth/me`.
    pub fn me(&self, sender: impl Credentials) -> Answer {
        self.get("/auth/me", sender)
    }
}

/// Accounts in a state that a test needs.
impl Server {
    /// Starts a service on a new database and signs up these users, of whom `root` is an administrator.
    pub fn with_users<const N: usize>(
        settings: &[(&str, &str)],
        names: [&str; N],
    ) -> (Server, [Tokens; N]) {
        let api = Server::start(settings);
        let users = names.map(|name| match name {
            "root" => api.sign_up_admin(name),
            _ => api.sign_up(name),
        });
        (api, users)
    }

    /// Makes the account of an address an administrator's with this password, by the command.
    pub fn create_admin(&self, email: &str, password: &str) {
        let password = [("CLOAKROOM_ADMIN_PASSWORD", password)];
        run(&self.database.url, &["create-admin", "--email", email], &password).exits(0);
    }

    /// Registers `name` and signs it in.
    pub fn sign_up(&self, name: &str) -> Tokens {
        self.register(name).expect(201);
        self.sign_in(name)
    }

    pub fn sign_in(&self, name: &str) -> Tokens {
        self.login(name, PASSWORD).expect(200).tokens()
    }

    /// Registers `name`, makes it an administrator and signs it in.
    pub fn sign_up_admin(&self, name: &str) -> Tokens {
        self.register(name).expect(201);
        self.database.run(&format!("UPDATE users SET role = 'admin' WHERE username = '{name}'"));
        self.sign_in(name)
    }
}

/// `/users` and `/admin`.
impl Server {
    /// The current user by `GET /users/me`.
    pub fn profile(&self, sender: impl Credentials) -> Answer {
        self.get("/users/me", sender)
    }

    /// The `stats` of the current user: the number of files, and their size in bytes.
    pub fn file_stats(&self, sender: impl Credentials) -> (i64, i64) {
        let stats = self.profile(sender).expect(200).json()["stats"].clone();
        let number = |name: &str| stats[name].as_i64().expect("a number");
        (number("total_uploads"), number("total_storage_used"))
    }

    pub fn update_me(&self, sender: impl Credentials, body: Value) -> Answer {
        self.put("/users/me", sender, body)
    }

    pub fn change_password(&self, sender: impl Credentials, current: &str, new: &str) -> Answer {
        let body = json!({"current_password": current, "new_password": new});
        self.post("/users/change-password", sender, body)
    }

    pub fn delete_me(&self, sender: impl Credentials, password: &str) -> Answer {
        self.post("/users/me/delete", sender, json!({"current_password": password}))
    }

    pub fn create_user(&self, sender: impl Credentials, body: Value) -> Answer {
        self.post("/users", sender, body)
    }

    pub fn list_users(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/users?{query}"), sender)
    }

    pub fn show_user(&self, sender: impl Credentials, id: &str) -> Answer {
        self.get(&format!("/users/{id}"), sender)
    }

    pub fn update_user(&self, sender: impl Credentials, id: &str, body: Value) -> Answer {
        self.put(&format!("/users/{id}"), sender, body)
    }

    pub fn delete_user(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/users/{id}"), sender)
    }

    pub fn user_sessions(&self, sender: impl Credentials, id: &str) -> Answer {
        self.get(&format!("/users/{id}/sessions"), sender)
    }

    pub fn end_user_sessions(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/users/{id}/sessions"), sender)
    }

    pub fn user_tokens(&self, sender: impl Credentials, id: &str) -> Answer {
        self.get(&format!("/users/{id}/tokens"), sender)
    }

    pub fn delete_user_tokens(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/users/{id}/tokens"), sender)
    }

    /// `GET /admin/users`, the list in pages.
    pub fn page_users(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/admin/users?{query}"), sender)
    }

    pub fn admin_stats(&self, sender: impl Credentials) -> Answer {
        self.get("/admin/stats", sender)
    }

    /// `GET /admin/audit`, a page of the audit log.
    pub fn audit(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/admin/audit?{query}"), sender)
    }

    /// All events of the audit log that match, the newest first, page by page.
    pub fn all_events(&self, sender: impl Credentials, query: &str) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.audit(&sender, &format!("{query}{cursor}")).expect(200).json();
            found.extend(page["events"].as_array().expect("events").iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&before={next}"),
                None => return found,
            }
        }
    }

    pub fn export_audit(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/admin/audit/export?{query}"), sender)
    }

    pub fn export(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/users/export?{query}"), sender)
    }

    pub fn export_full(&self, sender: impl Credentials) -> Answer {
        self.get("/users/export-full", sender)
    }
}

/// `/uploads`; `form.rs` has the verbs that send files.
impl Server {
    pub fn list_files(&self, sender: impl Credentials, query: &str) -> Answer {
        self.get(&format!("/uploads?{query}"), sender)
    }

    /// All files of a user, page by page.
    pub fn all_files(&self, sender: impl Credentials) -> Vec<Value> {
        let mut found = Vec::new();
        for page in 1.. {
            let body =
                self.list_files(&sender, &format!("size=100&page={page}")).expect(200).json();
            let items = body["items"].as_array().expect("items");
            if items.is_empty() {
                assert_eq!(body["total"], json!(found.len()));
                break;
            }
            found.extend(items.iter().cloned());
        }
        found
    }

    pub fn show_file(&self, sender: impl Credentials, id: &str) -> Answer {
        self.get(&format!("/uploads/{id}"), sender)
    }

    pub fn update_file(&self, sender: impl Credentials, id: &str, body: Value) -> Answer {
        self.put(&format!("/uploads/{id}"), sender, body)
    }

    pub fn delete_file(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/uploads/{id}"), sender)
    }

    pub fn delete_for_good(&self, sender: impl Credentials, id: &str) -> Answer {
        self.delete(&format!("/uploads/{id}?permanently=true"), sender)
    }

    pub fn create_link(&self, sender: impl Credentials, file: &str, body: Value) -> Answer {
        self.post(&format!("/uploads/{file}/links"), sender, body)
    }

    /// Makes a link to a file and returns its path.
    #[track_caller]
    pub fn new_link(&self, sender: impl Credentials, file: &str) -> String {
        let answer = self.create_link(sender, file, json!({})).expect(201);
        answer.json()["url"].as_str().expect("a path").to_owned()
    }

    pub fn list_links(&self, sender: impl Credentials, file: &str) -> Answer {
        self.get(&format!("/uploads/{file}/links"), sender)
    }

    pub fn delete_link(&self, sender: impl Credentials, file: &str, link: &str) -> Answer {
        self.delete(&format!("/uploads/{file}/links/{link}"), sender)
    }

    /// Downloads by a link, given by its path.
    pub fn open_link(&self, path: &str) -> Answer {
        self.request_at_root("GET", path).send()
    }

    pub fn download(&self, sender: impl Credentials, id: &str) -> Answer {
        self.download_request("GET", sender, id).send()
    }

    /// A download to which headers can be added, such as `Range`.
    pub fn download_request(&self, method: &str, sender: impl Credentials, id: &str) -> Request {
        self.request(method, &format!("/uploads/{id}/download")).by(sender)
    }
}
