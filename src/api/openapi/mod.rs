//! The OpenAPI document (version 3.1). It is data: the JSON files beside this one, each a part of it, which are put
//! together and adapted to the settings when the document is first asked for. What is not OpenAPI in them is replaced:
//!
//! - `"x-if": "auth !docs"` leaves an object out unless all of these conditions hold.
//! - `"x-include": "headers/limited"` stands for the members of that object in `fragments.json`. Other members of the
//!   same object are added to them, and replace those of the same name. A fragment that is not an object replaces the
//!   object as a whole.
//! - `"x-errors": ["409 EMAIL_TAKEN", "LAST_ADMIN"]` stands for the description, the headers and the content of a
//!   response with these errors, which are named by their reasons. An item may also be an object with `reasons`, or a
//!   list: the errors of the fields of one request. Without any error the object is left out.
//! - A `description` may be a list of lines.
//! - `{largest_file}` in a text, and each other name in [`figures`], is replaced by its value.

mod errors;
mod figures;
mod limits;
mod samples;
mod sharing;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use self::errors::Errors;
use self::figures::{Figures, conditions, figures};
use crate::config::Config;
use crate::model::audit;

/// The parts, in the order in which pages show the groups of endpoints.
const PARTS: [&str; 15] = [
    include_str!("components.json"),
    include_str!("successes.json"),
    include_str!("errors.json"),
    include_str!("authentication.json"),
    include_str!("sessions.json"),
    include_str!("second_factor.json"),
    include_str!("account.json"),
    include_str!("files.json"),
    include_str!("links.json"),
    include_str!("users.json"),
    include_str!("administration.json"),
    include_str!("exports.json"),
    include_str!("test_only.json"),
    include_str!("service.json"),
    include_str!("conventions.json"),
];
const FRAGMENTS: &str = include_str!("fragments.json");

/// The document of a service with these settings, as JSON.
pub fn document(config: &Config) -> String {
    let errors = Errors::new(config);
    let mut fragments = parse(FRAGMENTS);
    fragments["program"] = errors.words();
    fragments["program"]["actions"] = json!(audit::ACTIONS);
    let (conditions, figures) = (conditions(config), figures(config));
    let adapter = Adapter { conditions, figures, fragments, errors };
    let mut document = json!({});
    for part in PARTS.into_iter().filter_map(|part| adapter.adapted(parse(part))) {
        merge(&mut document, part);
    }
    limits::add_headers(&mut document);
    sharing::share(&mut document);
    document.to_string()
}

/// Adapts the parts of the document to the settings.
struct Adapter {
    conditions: HashMap<&'static str, bool>,
    figures: Figures,
    fragments: Value,
    errors: Errors,
}

impl Adapter {
    /// Returns `None` if the value is left out because of its `x-if`.
    fn adapted(&self, value: Value) -> Option<Value> {
        match value {
            Value::Object(members) => self.adapted_object(members),
            Value::Array(items) => {
                Some(items.into_iter().filter_map(|item| self.adapted(item)).collect())
            }
            Value::String(text) => {
                let fill = |text: String, (name, value): &(&str, String)| text.replace(name, value);
                Some(self.figures.iter().fold(text, fill).into())
            }
            other => Some(other),
        }
    }

    fn adapted_object(&self, mut members: Map<String, Value>) -> Option<Value> {
        if let Some(Value::String(words)) = members.shift_remove("x-if")
            && !words.split(' ').all(|word| self.holds(word))
        {
            return None;
        }
        if let Some(Value::String(path)) = members.shift_remove("x-include") {
            return self.adapted(self.included(&path, members));
        }
        let (mut adapted, mut response) = (Map::new(), Map::new());
        for (name, value) in members {
            match (name.as_str(), self.adapted(value)) {
                (_, None) => {}
                ("x-errors", Some(Value::Array(items))) if items.is_empty() => return None,
                ("x-errors", Some(Value::Array(items))) => {
                    response = self.errors.response(&items);
                }
                ("description", Some(Value::Array(lines))) => {
                    let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
                    adapted.insert(name, lines.join("\n").into());
                }
                ("responses", Some(Value::Object(mut responses))) => {
                    responses.sort_keys();
                    adapted.insert(name, responses.into());
                }
                (_, Some(value)) => drop(adapted.insert(name, value)),
            }
        }
        // Of a response with errors, its own headers are added to theirs.
        for (name, value) in adapted {
            match (response.get_mut(&name), value) {
                (Some(Value::Object(all)), Value::Object(own)) => all.extend(own),
                (_, value) => drop(response.insert(name, value)),
            }
        }
        Some(response.into())
    }

    /// The fragment at this path with `members` added, which replace its own of the same name unless they are left out.
    fn included(&self, path: &str, members: Map<String, Value>) -> Value {
        let mut fragment = self.fragments.pointer(&format!("/{path}")).cloned().unwrap_or_default();
        if let Value::Object(all) = &mut fragment
            && let Some(Value::Object(members)) = self.adapted(members.into())
        {
            all.extend(members);
        }
        fragment
    }

    /// Whether a condition holds. A `!` before it negates it.
    fn holds(&self, word: &str) -> bool {
        match word.strip_prefix('!') {
            Some(condition) => !self.conditions[condition],
            None => self.conditions[word],
        }
    }
}

/// Adds a part to the document: joins objects and lists, and replaces any other value.
fn merge(document: &mut Value, part: Value) {
    match (document, part) {
        (Value::Object(document), Value::Object(part)) => {
            for (name, value) in part {
                merge(document.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(document), Value::Array(part)) => document.extend(part),
        (document, part) => *document = part,
    }
}

#[expect(clippy::expect_used, reason = "a test parses each file that is a part of the program")]
fn parse(json: &str) -> Value {
    serde_json::from_str(json).expect("valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AdminSecondFactor, ApiKeyScope, ErrorFormat, Registration, Smtp};

    /// The default settings, changed in each way that the document knows.
    fn settings() -> Vec<Config> {
        let changes: [fn(&mut Config); 14] = [
            |_| {},
            |config| config.admin_second_factor = AdminSecondFactor::Required,
            |config| config.api_key_enabled = true,
            |config| config.api_key_scope = ApiKeyScope::All,
            |config| config.auth_enabled = false,
            |config| config.docs = false,
            |config| config.email_change_requires_password = true,
            |config| config.export_require_admin = true,
            |config| config.public_url = Some("https://files.example.com".to_owned()),
            |config| config.smtp = Smtp::Off,
            |config| config.rate_limit_enabled = false,
            |config| config.registration = Registration::Off,
            |config| config.test_endpoints_enabled = true,
            |config| config.error_format = ErrorFormat::Envelope,
        ];
        let changed = |first: &fn(&mut Config), second: &fn(&mut Config)| {
            let mut config = Config::of_test_database();
            first(&mut config);
            second(&mut config);
            config
        };
        let pairs =
            |(index, first)| changes[index..].iter().map(move |second| changed(first, second));
        changes.iter().enumerate().flat_map(pairs).collect()
    }

    /// Fails if a name in the value should have been replaced, or if a reference leads nowhere.
    fn check(value: &Value, document: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let is_known = !name.starts_with("x-")
                        || ["x-codeSamples", "x-limits"].contains(&name.as_str());
                    let may_be_null = ["details", "last_login", "last_used_at", "name"];
                    let is_value = !value.is_null() || may_be_null.contains(&name.as_str());
                    assert!(is_known && is_value, "{name}: {value}");
                    check(value, document);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, document)),
            Value::String(text) => {
                let target =
                    text.strip_prefix("#/").map(|path| document.pointer(&format!("/{path}")));
                assert!(target != Some(None), "{text}");
            }
            _ => {}
        }
    }

    #[test]
    fn every_fragment_and_every_condition_is_used() {
        let is_used = |text: &str| PARTS.iter().chain([&FRAGMENTS]).any(|part| part.contains(text));
        let Value::Object(groups) = parse(FRAGMENTS) else { panic!("an object of groups") };
        for (group, fragments) in groups {
            for (name, _) in fragments.as_object().into_iter().flatten() {
                assert!(is_used(&format!("\"x-include\": \"{group}/{name}\"")), "{group}/{name}");
            }
        }
        let figures = figures(&Config::of_test_database());
        for (name, _) in &figures {
            assert!(is_used(name) || figures.iter().any(|(_, text)| text.contains(name)), "{name}");
        }
        let conditions = conditions(&Config::of_test_database());
        let mut forms =
            conditions.keys().map(|word| [' ', '!', '"'].map(|before| format!("{before}{word}")));
        assert!(forms.all(|forms| forms.iter().any(|form| is_used(form))));
    }

    #[test]
    fn the_document_is_complete_with_any_settings() {
        for config in settings() {
            let text = document(&config);
            for (name, _) in figures(&config) {
                assert!(!text.contains(name), "{name}");
            }
            let document = parse(&text);
            check(&document, &document);
        }
    }
}
