//! Requests as the document describes them, by an administrator to whom belongs what their paths name.

use super::document::ALL_ON;
use crate::harness::partial::{ALL, BYTES, id_of, metadata};
use crate::harness::*;

/// The content of the file, which is that of the examples.
const CONTENT: &str = "Keys are at the front desk.\n";
/// So that each example finds its names free.
const FREE_NAMES: &str = "UPDATE users SET username = NULL, email = id || '@example.org',
                                           email_key = id || '@example.org'
                          WHERE NOT is_deleted AND NOT is_development_admin";

/// A service with all that the document describes: a process that asks for no confirmation of addresses, so that who
/// registers can sign in, and another one beside it for the operations that confirm them.
pub struct Everything {
    pub api: Server,
    confirming: Server,
    provider: OpenIdProvider,
}

impl Everything {
    pub fn start() -> Everything {
        let provider = OpenIdProvider::start();
        let issuer = provider.issuer();
        let mut settings = vec![ALL_ON[0], ALL_ON[2]];
        if has_extras() {
            settings.extend(provider_settings(&issuer));
        }
        let api = Server::start(&settings);
        settings.extend(if has_extras() { &ALL_ON[1..2] } else { &[] });
        let confirming = api.beside(&settings);
        Everything { api, confirming, provider }
    }
}

/// An administrator, and what the variables of paths stand for.
pub struct Scene<'a> {
    api: &'a Server,
    confirming: &'a Server,
    provider: &'a OpenIdProvider,
    pub sender: Tokens,
    variables: Vec<(&'static str, String)>,
    /// The secret part of a link to several files.
    several: String,
    /// And of one to send files by.
    sending: String,
    /// The id of an upload by that.
    sent: String,
}

impl Scene<'_> {
    /// Makes an administrator with this password, a file of it with a link, and another user; both with a token.
    pub fn new<'a>(all: &'a Everything, password: &str) -> Scene<'a> {
        let Everything { api, confirming, provider } = all;
        api.database.run(FREE_NAMES);
        let body =
            json!({"username": "sender", "email": "sender@example.com", "password": password});
        api.register_with(body).expect(201);
        api.database.run(
            "UPDATE users SET role = 'admin', is_self_registered = false WHERE username = 'sender'",
        );
        let sender = api.login("sender", password).expect(200).tokens();
        let other = api.sign_up("other");
        let file = api.new_file(&sender, "visitors.txt", CONTENT);
        let mut variables = vec![
            ("{user_id}", other.id().to_owned()),
            ("{session_id}", sender.session()),
            ("{file_id}", file.clone()),
        ];
        let [mut several, mut sending, mut sent] = [const { String::new() }; 3];
        if has_extras() {
            api.new_token(&other, true);
            let token = api.create_token(&sender, json!({"name": "a script"})).expect(201);
            let link = api.create_link(&sender, &file, json!({})).expect(201);
            let secret = |link: &Answer| {
                let url = link.json()["url"].as_str().expect("a path").to_owned();
                url.rsplit('/').next().expect("a token").to_owned()
            };
            let new = |target| secret(&api.post("/links", &sender, target).expect(201));
            several = new(json!({"files": [file]}));
            sending = new(json!({"upload_to": "/", "note": "Photos, please"}));
            let all = format!("/api/v1/links/{sending}/partial");
            let [own, by_link] = [(ALL, true), (&all, false)].map(|(path, is_own)| {
                let token = if is_own { &*sender.access } else { "" };
                let begun = api.beginning(path, token, CONTENT.len()).send().expect(201);
                id_of(begun.header("Location")).to_owned()
            });
            sent = by_link;
            variables.extend([
                ("{upload_id}", own),
                ("{token_id}", token.id()),
                ("{link_id}", link.id()),
                ("{token}", secret(&link)),
            ]);
        }
        Scene { api, confirming, provider, sender, variables, several, sending, sent }
    }

    /// The path of an operation, with values in place of its variables.
    pub fn path_of(&self, operation: &Operation, query: &str) -> String {
        let fill_in = |path: String, (name, value): &(&str, String)| path.replace(name, value);
        let template = match operation.id() {
            // The owner names a link by its id.
            "end_link" => operation.path.replace("{token}", "{link_id}"),
            "download_file_by_link" => operation.path.replace("{token}", &self.several),
            "send_file_by_link" => operation.path.replace("{token}", &self.sending),
            id if id.ends_with("upload_by_link") => {
                let path = operation.path.replace("{token}", &self.sending);
                path.replace("{upload_id}", &self.sent)
            }
            // Only a list has pages.
            "download_by_link" if query.contains("after=") => {
                operation.path.replace("{token}", &self.several)
            }
            _ => operation.path.to_owned(),
        };
        self.variables.iter().fold(template, fill_in)
    }

    /// A request with this query, or none, and without a body.
    pub fn with_query(&self, operation: &Operation, query: &str) -> Request {
        let path = self.path_of(operation, query);
        let api = if path.contains("confirm") { self.confirming } else { self.api };
        let mut request = api.request_at_root(&operation.method, &format!("{path}{query}"));
        if path.contains("/partial") {
            request = request.header("Tus-Resumable", "1.0.0");
            request = match operation.method.as_str() {
                "POST" => request
                    .header("Upload-Length", &CONTENT.len().to_string())
                    .header("Upload-Metadata", &metadata(&[("filename", "visitors.txt")])),
                "PATCH" => request.header("Upload-Offset", "0"),
                _ => request,
            };
        }
        let is_open = operation.json["security"] == json!([]);
        if is_open { request } else { request.by(&self.sender) }
    }

    /// A request with these values, in its query or in a body of the media type.
    pub fn request(&self, operation: &Operation, media_type: &str, values: &Value) -> Request {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<_> = members(values).map(|(name, value)| (name, text(value))).collect();
        let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let with_query = |query: &str| self.with_query(operation, query);
        match media_type {
            "query" => with_query(&format!("?{encoded}")),
            "application/json" => with_query("").json(values.clone()),
            BYTES => with_query("").header("Content-Type", BYTES).body(text(values)),
            "application/x-www-form-urlencoded" => with_query("").form(encoded),
            "multipart/form-data" => {
                let add = |form: Form, (name, value): &(&str, String)| match *name {
                    "file" => form.file("visitors.txt", "text/plain", value.as_bytes()),
                    _ => form.field(name, value),
                };
                let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
                let form = pairs.iter().fold(Form::default(), add);
                with_query("").header("Content-Type", &media_type).body(form.bytes())
            }
            other => panic!("{other}"),
        }
    }

    /// A new code of the provider, for an identity that no account has.
    fn provider_code(&self, more: &str) -> Value {
        self.provider.person(&format!("person-of-{}", self.sender.id()));
        json!({"code": self.api.provider_code(self.provider, more), "verifier": VERIFIER})
    }

    /// Joins that identity to the account of the sender.
    fn join(&self, password: &str) {
        let code = self.provider_code("&again=1")["code"].as_str().expect("a text").to_owned();
        self.api.join(&self.sender, &code, Some(password)).expect(204);
    }

    /// A request with an example. Tokens and codes are the only values that an example cannot know.
    pub fn example(&self, operation: &Operation, media_type: &str, example: &Value) -> Request {
        let (api, mut values) = (self.api, example.clone());
        let password = example["current_password"].as_str().unwrap_or(PASSWORD);
        match operation.id() {
            "login" => {
                let ann = json!({"username": "ann", "email": "ann@example.com", "password": example["password"]});
                api.register_with(ann).expect(201);
            }
            // Programs take an example of a file for a text.
            "upload_file" | "send_file_by_link" => {
                values["file"] = json!("Keys are at the front desk.\n")
            }
            "create_link" | "list_folders" | "move_folder" | "delete_folder" => {
                let form = Form::default().field("folder", "/invoices/2026");
                let form = form.then(file_form("a.txt", "text/plain", b"a"));
                api.upload_form(&self.sender, form).expect(201);
                if operation.id() == "delete_folder" {
                    values["folder"] = json!("/invoices");
                }
            }
            "refresh_tokens" | "refresh_tokens_by_other_path" => {
                values["refresh_token"] = json!(self.sender.refresh)
            }
            "confirm_email" => {
                let ann = json!({"username": "ann", "email": "ann@example.com", "password": example["password"]});
                let register = || drop(self.confirming.register_with(ann).expect(201));
                values["token"] = json!(self.confirming.confirmation_token(register));
            }
            "reset_password" => {
                values["token"] = json!(api.reset_token("sender@example.com"));
                if values["oidc"].is_object() {
                    values["oidc"] = self.provider_code("");
                }
            }
            "start_provider_sign_in" => values["challenge"] = json!(challenge_of(VERIFIER)),
            "sign_in_by_provider" => {
                self.join(password);
                values = self.provider_code("");
            }
            "join_identity" => {
                values = self.provider_code("&again=1");
                values["current_password"] = json!(password);
            }
            "leave_identity" => self.join(password),
            "confirm_second_factor" => {
                let offer = api.begin_second_factor(&self.sender, password).expect(200).json();
                let secret = offer["secret"].as_str().expect("a secret").to_owned();
                let code = SecondFactor { secret, recovery_codes: Vec::new() }.code();
                values["code"] = json!(code);
            }
            "get_second_factor" => drop(api.new_second_factor(&self.sender, password)),
            "disable_second_factor" | "renew_recovery_codes" => {
                let factor = api.new_second_factor(&self.sender, password);
                values["code"] = json!(factor.recovery_codes[0]);
            }
            _ => {}
        }
        self.request(operation, media_type, &values)
    }
}
