//! The examples of requests work, and a page that fills in a form from the document fills in nothing else: Swagger UI
//! takes the first named example of a body, and makes up a text from its `pattern` if there is none.

use serde_json::{Value, json};

use crate::harness::*;
use crate::openapi::document::{everything, operation_of, operations};

/// The named examples of a body or a parameter.
pub fn named_examples<'a>(document: &'a Value, content: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let examples = content["examples"].as_object().into_iter().flatten();
    examples.map(|(name, example)| (name.as_str(), &follow(document, example)["value"])).collect()
}

/// The parameters of an operation.
pub fn parameters_of<'a>(
    document: &'a Value,
    operation: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.map(|parameter| follow(document, parameter))
}

/// The service, and an administrator whose requests the examples are.
struct Stage {
    api: Server,
    admin: Tokens,
}

impl Stage {
    fn new() -> Stage {
        let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
        let admin = api.sign_up_admin("keeper");
        Stage { api, admin }
    }

    /// Removes all accounts, so that each example finds its names free, and makes an administrator with the password
    /// that the example gives as the current one.
    fn clear(&mut self, body: &Value) -> Tokens {
        let api = &self.api;
        api.delete("/users/test-only/delete-all", &self.admin).expect(200);
        self.admin = api.sign_up_admin("keeper");
        let password = body["current_password"].as_str().unwrap_or(PASSWORD);
        let sender =
            json!({"username": "sender", "email": "sender@example.com", "password": password});
        api.register_with(sender).expect(201);
        api.database.run("UPDATE users SET role = 'admin' WHERE username = 'sender'");
        api.login("sender", password).expect(200).tokens()
    }

    /// A code for a request of the sender: a recovery code of its second factor, or a code of the one that is offered
    /// to it. A sign-in ignores it, because its account has none.
    fn code(&self, path: &str, sender: &Tokens, body: &Value) -> String {
        let password = body["current_password"].as_str().unwrap_or(PASSWORD);
        if !path.ends_with("/confirm") {
            return match path.ends_with("/login") {
                true => "123456".to_owned(),
                false => self.api.new_second_factor(sender, password).recovery_codes[0].clone(),
            };
        }
        let offer = self.api.begin_second_factor(sender, password).expect(200).json();
        let secret = offer["secret"].as_str().expect("a secret").to_owned();
        SecondFactor { secret, recovery_codes: Vec::new() }.code()
    }

    /// Sends an example to its operation.
    fn send(&mut self, method: &str, path: &str, media_type: &str, body: &Value) -> Answer {
        let sender = self.clear(body);
        let api = &self.api;
        let mut body = body.clone();
        if path.ends_with("/login") {
            let ann = json!({"username": "ann", "email": "ann@example.com", "password": body["password"]});
            api.register_with(ann).expect(201);
        }
        // Tokens and codes are the only values that an example cannot know.
        if body["refresh_token"].is_string() {
            body["refresh_token"] = json!(sender.refresh);
        }
        if path.ends_with("/reset-password") {
            body["token"] = json!(api.reset_token("sender@example.com"));
        }
        if body["code"].is_string() {
            body["code"] = json!(self.code(path, &sender, &body));
        }
        let mut path = path.to_owned();
        if path.contains("{user_id}") {
            path = path.replace("{user_id}", api.sign_up("other").id());
        }
        if path.contains("{file_id}") {
            path = path.replace("{file_id}", &api.new_file(&sender, "a.txt", "text"));
        }
        let request = api.request_at_root(method, &path).by(&sender);
        match media_type {
            "application/json" => request.json(body).send(),
            "application/x-www-form-urlencoded" => {
                let fields = body.as_object().expect("an object").iter();
                let pairs = fields.map(|(name, value)| (name, value.as_str().expect("a text")));
                let mut form = form_urlencoded::Serializer::new(String::new());
                request.form(form.extend_pairs(pairs).finish()).send()
            }
            "multipart/form-data" => {
                let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
                request.header("Content-Type", &media_type).body(form_of(&body).bytes()).send()
            }
            other => panic!("{other}"),
        }
    }
}

/// The form of an example, in which a file is a text.
fn form_of(body: &Value) -> Form {
    let fields = body.as_object().expect("an object").iter();
    fields.fold(Form::default(), |form, (name, value)| {
        let text = value.as_str().expect("a text");
        match name.as_str() {
            "file" => form.file("visitors.txt", "text/plain", text.as_bytes()),
            _ => form.field(name, text),
        }
    })
}

#[test]
fn every_body_has_named_examples_and_each_of_them_works() {
    let document = everything();
    let mut stage = Stage::new();
    let mut sent = 0;
    for (method, path, operation) in operations(&document) {
        let contents = operation["requestBody"]["content"].as_object().into_iter().flatten();
        for (media_type, content) in contents {
            let examples = named_examples(&document, content);
            assert!(!examples.is_empty(), "{method} {path} has no example of a body");
            for (name, body) in examples {
                let answer = stage.send(&method, &path, media_type, body).case(name);
                assert!((200..300).contains(&answer.status), "{answer:?}");
                sent += 1;
            }
        }
    }
    assert!(sent > 20, "{sent}");
}

#[test]
fn the_first_example_of_a_change_of_an_account_is_one_field_that_can_be_taken_back() {
    let document = everything();
    for path in ["/api/v1/users/x", "/api/v1/admin/users/x"] {
        let operation = operation(&document, "PUT", path).expect("an operation");
        let content = &operation["requestBody"]["content"]["application/json"];
        let first = named_examples(&document, content)[0];
        assert_eq!(first, ("Deactivate", &json!({"is_active": false})));
    }
}

/// Swagger UI sends an `example` or a `default` of a parameter although nobody typed it. As all filters and both ways
/// to ask for a page together, that would find nothing or be refused.
#[test]
fn parameters_are_explained_and_nothing_is_filled_into_them() {
    let document = everything();
    for (method, path, operation) in operations(&document) {
        for parameter in parameters_of(&document, operation) {
            let name = &parameter["name"];
            assert!(parameter["description"].is_string(), "{method} {path}: {name}");
            let schema = &parameter["schema"];
            let filled = [
                &parameter["example"],
                &parameter["examples"],
                &schema["example"],
                &schema["default"],
            ];
            assert!(filled.iter().all(|value| value.is_null()), "{method} {path}: {name}");
        }
    }
}

#[test]
fn what_only_repeats_something_is_deprecated() {
    let document = everything();
    let is_deprecated = |value: &Value| value["deprecated"] == true;
    let all = operations(&document);
    let found = all.iter().filter(|(_, _, operation)| is_deprecated(operation));
    let mut found: Vec<_> = found.map(|(method, path, _)| format!("{method} {path}")).collect();
    found.sort();
    let expected = [
        "GET /api/v1/auth/me",
        "GET /api/v1/users/export-full",
        "GET /api/v1/users/export-simple",
        "GET /api/v1/users/exports/csv",
        "PUT /api/v1/admin/users/{user_id}",
    ];
    assert_eq!(found, expected);
    // Of the two ways to ask for a page, the one that the response repeats is the advised one.
    for (id, names) in [("list_files", ["limit", "offset"]), ("list_users", ["page", "size"])] {
        let operation = operation_of(&document, id);
        let has = |name| {
            let mut all = parameters_of(&document, operation);
            all.any(|one| one["name"] == name && is_deprecated(one))
        };
        assert!(names.into_iter().all(has), "{id}");
    }
}
