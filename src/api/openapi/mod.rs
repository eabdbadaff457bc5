//! The OpenAPI document (version 3.1). It is data: the JSON files beside this one, each a part of it, which are put
//! together and adapted to the settings when the document is first asked for. What is not OpenAPI in them is replaced:
//!
//! - `"x-if": "auth !docs"` leaves an object out unless all of these conditions hold.
//! - `"x-include": "headers/limited"` stands for the members of that object in `fragments.json`. Other members of the
//!   same object are added to them, and replace those of the same name. A fragment that is not an object replaces the
//!   object as a whole.
//! - `"x-errors": [...]` stands for the description and the content of a response with these errors, whose bodies are
//!   given in the `detail` format.
//! - A `description` or a `hint` may be a list of lines.
//! - `{max_upload_size}` in a text, and each other name in [`figures`], is replaced by its value.

mod figures;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::config::{Config, ErrorFormat};
use figures::{Figures, conditions, figures};

/// The parts, in the order in which pages show the groups of endpoints.
const PARTS: [&str; 13] = [
    include_str!("components.json"),
    include_str!("successes.json"),
    include_str!("errors.json"),
    include_str!("authentication.json"),
    include_str!("sessions.json"),
    include_str!("account.json"),
    include_str!("files.json"),
    include_str!("users.json"),
    include_str!("administration.json"),
    include_str!("exports.json"),
    include_str!("test_only.json"),
    include_str!("service.json"),
    include_str!("conventions.json"),
];
const FRAGMENTS: &str = include_str!("fragments.json");
/// The time in examples of errors. It is fixed, so that the document is the same each time it is made.
const EXAMPLE_TIME: &str = "2026-01-31T12:00:00.000000Z";

/// The document of a service with these settings, as JSON.
pub fn document(config: &Config) -> String {
    let adapter = Adapter {
        conditions: conditions(config),
        figures: figures(config),
        fragments: parse(FRAGMENTS),
        error_format: config.error_format,
    };
    let mut document = json!({});
    for part in PARTS.into_iter().filter_map(|part| adapter.adapted(parse(part))) {
        merge(&mut document, part);
    }
    document.to_string()
}

/// Adapts the parts of the document to the settings.
struct Adapter {
    conditions: HashMap<&'static str, bool>,
    figures: Figures,
    fragments: Value,
    error_format: ErrorFormat,
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
            return self.adapted(included(&self.fragments, &path, members));
        }
        let mut adapted = Map::new();
        for (name, value) in members {
            match (name.as_str(), self.adapted(value)) {
                (_, None) => {}
                ("x-errors", Some(Value::Array(errors))) => {
                    adapted.extend(self.error_response(&errors))
                }
                (text @ ("description" | "hint"), Some(Value::Array(lines))) => {
                    let separator = if text == "hint" { " " } else { "\n" };
                    let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
                    adapted.insert(name, lines.join(separator).into());
                }
                (_, Some(value)) => drop(adapted.insert(name, value)),
            }
        }
        Some(adapted.into())
    }

    /// Whether a condition holds. A `!` before it negates it.
    fn holds(&self, word: &str) -> bool {
        match word.strip_prefix('!') {
            Some(condition) => !self.conditions[condition],
            None => self.conditions[word],
        }
    }

    /// The description of a response with these errors, which are its messages, and its content, an example for each.
    fn error_response(&self, errors: &[Value]) -> [(String, Value); 2] {
        let has_fields = errors.iter().any(|error| error["detail"].is_array());
        let schema = match self.error_format {
            ErrorFormat::Envelope => "#/components/schemas/ErrorEnvelope",
            ErrorFormat::Detail if has_fields => "#/components/schemas/ValidationError",
            ErrorFormat::Detail => "#/components/schemas/Error",
        };
        let message =
            |error: &Value| error["detail"].as_str().unwrap_or("Validation failed").to_owned();
        let body = |error: &Value| match self.error_format {
            ErrorFormat::Envelope => envelope(error, &message(error)),
            ErrorFormat::Detail => error.clone(),
        };
        let examples: Map<_, _> =
            errors.iter().map(|error| (message(error), json!({ "value": body(error) }))).collect();
        let messages: Vec<_> = examples.keys().map(|message| format!("`{message}`")).collect();
        let content = json!({ "schema": { "$ref": schema }, "examples": examples });
        [
            ("description".to_owned(), messages.join(", ").into()),
            ("content".to_owned(), json!({ "application/json": content })),
        ]
    }
}

/// The body of an error in the envelope format.
fn envelope(error: &Value, message: &str) -> Value {
    let mut details = error["detail"].as_array().cloned().unwrap_or_default();
    details.extend(error.get("hint").map(|hint| json!({ "hint": hint })));
    let details = (!details.is_empty()).then_some(details);
    let code = &error["error_code"];
    json!({ "error": { "code": code, "message": message, "details": details, "timestamp": EXAMPLE_TIME } })
}

/// The fragment at this path with `members` added, which replace its own of the same name.
fn included(fragments: &Value, path: &str, members: Map<String, Value>) -> Value {
    let mut fragment = fragments.pointer(&format!("/{path}")).cloned().unwrap_or_default();
    if let Value::Object(all) = &mut fragment {
        all.extend(members);
    }
    fragment
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
    use crate::config::{ApiKeyScope, Registration, Smtp};

    /// The default settings, changed in each way that the document knows.
    fn settings() -> Vec<Config> {
        let changes: [fn(&mut Config); 12] = [
            |_| {},
            |config| config.api_key_enabled = true,
            |config| config.api_key_scope = ApiKeyScope::All,
            |config| config.auth_enabled = false,
            |config| config.docs = false,
            |config| config.email_change_requires_password = true,
            |config| config.export_require_admin = true,
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

    /// Fails if a name or a text in the value should have been replaced, or if a reference leads nowhere.
    fn check(value: &Value, document: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let is_known = !name.starts_with("x-") || name == "x-codeSamples";
                    let may_be_null = ["details", "last_login", "last_used_at", "name"];
                    let is_value = !value.is_null() || may_be_null.contains(&name.as_str());
                    assert!(is_known && is_value, "{name}: {value}");
                    check(value, document);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, document)),
            Value::String(text) => {
                let figures = figures(&Config::of_test_database());
                assert!(figures.iter().all(|(name, _)| !text.contains(name)), "{text}");
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
        let conditions = conditions(&Config::of_test_database());
        let mut forms =
            conditions.keys().map(|word| [' ', '!', '"'].map(|before| format!("{before}{word}")));
        assert!(forms.all(|forms| forms.iter().any(|form| is_used(form))));
    }

    #[test]
    fn the_document_is_complete_with_any_settings() {
        for config in settings() {
            let document = parse(&document(&config));
            check(&document, &document);
        }
    }
}
