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

/// Defines a method for each endpoint: its name, the method of HTTP and the path below `/api/v1`, whose variables are
/// the arguments after the sender. `post` and `put` take a body of JSON as well.
macro_rules! verbs {
    ($($name:ident($($variable:ident),*): $verb:ident $path:literal $($body:ident)?;)*) => {
        impl Server {$(
            pub fn $name(&self, sender: impl Credentials, $($variable: &str,)* $($body: Value)?) -> Answer {
                self.$verb(&format!($path), sender, $($body)?)
            }
        )*}
    };
}

verbs! {
    list_sessions(): get "/auth/sessions";
    end_session(id): delete "/auth/sessions/{id}";
    create_token(): post "/auth/tokens" body;
    list_tokens(): get "/auth/tokens";
    delete_token(id): delete "/auth/tokens/{id}";
    me(): get "/auth/me";
    profile(): get "/users/me";
    update_me(): put "/users/me" body;
    create_user(): post "/users" body;
    list_users(query): get "/users?{query}";
    show_user(id): get "/users/{id}";
    update_user(id): put "/users/{id}" body;
    delete_user(id): delete "/users/{id}";
    user_sessions(id): get "/users/{id}/sessions";
    end_user_sessions(id): delete "/users/{id}/sessions";
    user_tokens(id): get "/users/{id}/tokens";
    delete_user_tokens(id): delete "/users/{id}/tokens";
    page_users(query): get "/admin/users?{query}";
    admin_stats(): get "/admin/stats";
    audit(query): get "/admin/audit?{query}";
    export_audit(query): get "/admin/audit/export?{query}";
    export(query): get "/users/export?{query}";
    export_full(): get "/users/export-full";
    list_files(query): get "/uploads?{query}";
    show_file(id): get "/uploads/{id}";
    update_file(id): put "/uploads/{id}" body;
    delete_file(id): delete "/uploads/{id}";
    delete_for_good(id): delete "/uploads/{id}?permanently=true";
    create_link(file): post "/uploads/{file}/links" body;
    list_links(file): get "/uploads/{file}/links";
    delete_link(file, link): delete "/uploads/{file}/links/{link}";
    download(id): get "/uploads/{id}/download";
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

    /// Makes a personal access token and returns it.
    #[track_caller]
    pub fn new_token(&self, sender: impl Credentials, read_only: bool) -> String {
        let body = json!({"name": "a script", "read_only": read_only});
        let answer = self.create_token(sender, body).expect(201);
        answer.json()["token"].as_str().expect("a token").to_owned()
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
    /// The `stats` of the current user: the number of files, and their size in bytes.
    pub fn file_stats(&self, sender: impl Credentials) -> (i64, i64) {
        let stats = self.profile(sender).expect(200).json()["stats"].clone();
        let number = |name: &str| stats[name].as_i64().expect("a number");
        (number("total_uploads"), number("total_storage_used"))
    }

    pub fn change_password(&self, sender: impl Credentials, current: &str, new: &str) -> Answer {
        let body = json!({"current_password": current, "new_password": new});
        self.post("/users/change-password", sender, body)
    }

    pub fn delete_me(&self, sender: impl Credentials, password: &str) -> Answer {
        self.post("/users/me/delete", sender, json!({"current_password": password}))
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
}

/// `/uploads`; `form.rs` has the verbs that send files.
impl Server {
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

    /// Makes a link to a file and returns its path.
    #[track_caller]
    pub fn new_link(&self, sender: impl Credentials, file: &str) -> String {
        let answer = self.create_link(sender, file, json!({})).expect(201);
        answer.json()["url"].as_str().expect("a path").to_owned()
    }

    /// Downloads by a link, given by its path.
    pub fn open_link(&self, path: &str) -> Answer {
        self.request_at_root("GET", path).send()
    }

    /// A download to which headers can be added, such as `Range`.
    pub fn download_request(&self, method: &str, sender: impl Credentials, id: &str) -> Request {
        self.request(method, &format!("/uploads/{id}/download")).by(sender)
    }
}
