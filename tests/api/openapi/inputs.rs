//! What the document says about inputs is what the service accepts: each bound and each word is sent as it is and
//! beyond.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use crate::harness::*;
use crate::openapi::document::{everything, operations};
use crate::openapi::request_examples::parameters_of;

/// Where an input stands in a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Query,
    Json,
    Form,
    Multipart,
}

/// An operation with one of the ways to send inputs to it.
struct Inputs<'a> {
    operation: &'a str,
    method: String,
    path: String,
    place: Place,
    /// The schemas by name.
    fields: Map<String, Value>,
    required: BTreeSet<String>,
}

/// All inputs of an operation but the ids in its path.
fn inputs_of<'a>(
    document: &'a Value,
    method: &str,
    path: &str,
    operation: &'a Value,
) -> Vec<Inputs<'a>> {
    let inputs = |place, fields, required| Inputs {
        operation: operation["operationId"].as_str().expect("an id"),
        method: method.to_owned(),
        path: path.to_owned(),
        place,
        fields,
        required,
    };
    let parameters = parameters_of(document, operation);
    let query = parameters.filter(|parameter| parameter["in"] == "query").map(|parameter| {
        let name = parameter["name"].as_str().expect("a name").to_owned();
        (name, resolved(document, &parameter["schema"]))
    });
    let mut found = vec![inputs(Place::Query, query.collect(), BTreeSet::new())];
    for (media_type, content) in
        operation["requestBody"]["content"].as_object().into_iter().flatten()
    {
        let schema = follow(document, &content["schema"]);
        let place = match media_type.as_str() {
            "application/json" => Place::Json,
            "application/x-www-form-urlencoded" => Place::Form,
            "multipart/form-data" => Place::Multipart,
            other => panic!("{other}"),
        };
        let fields = schema["properties"].as_object().expect("properties").iter();
        let fields = fields.map(|(name, schema)| (name.clone(), resolved(document, schema)));
        // Where another name is accepted too, `if` has the advised one.
        let required = [&schema["required"], &schema["if"]["required"]];
        let required = required.into_iter().filter_map(Value::as_array).flatten();
        let required = required.map(|name| name.as_str().expect("a name").to_owned());
        found.push(inputs(place, fields.collect(), required.collect()));
    }
    found
}

/// The schema of a field in which components stand as they are, also that of which `null` is the alternative.
fn resolved(document: &Value, schema: &Value) -> Value {
    match schema["oneOf"].as_array().map(Vec::as_slice) {
        Some([schema, null]) if null["type"] == "null" => {
            let mut resolved = follow(document, schema).clone();
            resolved["type"] = json!([resolved["type"], "null"]);
            resolved
        }
        _ => follow(document, schema).clone(),
    }
}

impl Inputs<'_> {
    /// Sends one value, or none, by a new administrator, because some operations end sessions.
    fn send(&self, api: &Server, field: Option<(&str, &Value)>) -> Answer {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("admin_{}", SENT.fetch_add(1, Ordering::Relaxed));
        let sender = api.sign_up_admin(&name);
        let mut path = self.path.clone();
        if path.contains("{user_id}") {
            path = path.replace("{user_id}", api.sign_up(&format!("{name}_other")).id());
        }
        if path.contains("{file_id}") {
            path = path.replace("{file_id}", &api.new_file(&sender, "a.txt", "text"));
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<_> = field.iter().map(|(name, value)| (*name, text(value))).collect();
        let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let json: Map<_, _> =
            field.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
        let request = match self.place {
            Place::Query => api.request_at_root(&self.method, &format!("{path}?{encoded}")),
            Place::Json => api.request_at_root(&self.method, &path).json(json.into()),
            Place::Form => api.request_at_root(&self.method, &path).form(encoded),
            Place::Multipart => {
                let form = pairs
                    .iter()
                    .fold(Form::default(), |form, (name, value)| form.field(name, value));
                api.request_at_root(&self.method, &path)
                    .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"))
                    .body(form.bytes())
            }
        };
        request.by(&sender).send()
    }
}

/// Values that a schema accepts and values that it refuses, at the edges of its rules.
#[derive(Default)]
struct Values {
    accepted: Vec<Value>,
    refused: Vec<Value>,
}

impl Values {
    fn of(schema: &Value, place: Place) -> Values {
        let mut values = Values::default();
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        if kinds.contains(&"null".into()) {
            values.accepted.push(Value::Null);
        }
        values.accepted.extend(schema["examples"].as_array().into_iter().flatten().cloned());
        match kinds[0].as_str().expect("a type") {
            "string" => values.texts(schema, place),
            "integer" => values.integers(schema),
            "boolean" => {
                values.accepted.extend([json!(true), json!(false)]);
                values.refused.push("perhaps".into());
            }
            "array" => values.lists(schema, place),
            other => panic!("{other}"),
        }
        values
    }

    fn texts(&mut self, schema: &Value, place: Place) {
        if let Some(words) = schema["enum"].as_array() {
            self.accepted.extend(words.iter().cloned());
            self.refused.push("no-such-word".into());
        }
        if let Some(length) = schema["minLength"].as_u64() {
            self.accepted.push(text_of(schema, length));
            self.refused.push(text_of(schema, length - 1));
        }
        if let Some(length) = schema["maxLength"].as_u64() {
            self.accepted.push(text_of(schema, length));
            self.refused.push(text_of(schema, length + 1));
        }
        if schema["pattern"].is_string() {
            // Without an example, Swagger UI makes a text up from the pattern.
            assert!(schema["examples"][0].is_string(), "{schema}");
            self.refused.push("text with a \0".into());
        }
        match schema["format"].as_str() {
            Some("uuid") => {
                self.accepted.push(UNKNOWN_ID.into());
                self.refused.push("no-id".into());
            }
            Some("email" | "date-time") => self.refused.push("ann".into()),
            Some("password") | None => {}
            Some(other) => panic!("{other}"),
        }
        if place == Place::Json {
            self.refused.push(json!(5));
        }
    }

    fn integers(&mut self, schema: &Value) {
        let edge =
            |name: &str| schema[name].as_i64().unwrap_or_else(|| panic!("no {name}: {schema}"));
        let (min, max) = (edge("minimum"), edge("maximum"));
        self.accepted.extend([json!(min), json!(max)]);
        self.refused.extend([json!(min - 1), json!(max.cast_unsigned() + 1), json!("x")]);
    }

    fn lists(&mut self, schema: &Value, place: Place) {
        let items = Values::of(&schema["items"], place);
        self.accepted.extend(items.accepted.into_iter().map(|item| json!([item])));
        self.refused.extend(items.refused.into_iter().map(|item| json!([item])));
        if let Some(length) = schema["maxItems"].as_u64() {
            let list = |length| Value::from(vec!["x"; usize::try_from(length).expect("a length")]);
            self.accepted.push(list(length));
            self.refused.push(list(length + 1));
        }
        self.refused.push("x".into());
    }
}

/// A text of this length that breaks no other rule of the schema.
fn text_of(schema: &Value, length: u64) -> Value {
    let length = usize::try_from(length).expect("a length");
    let text = "a".repeat(length);
    if schema["format"] != "email" {
        return text.into();
    }
    // A name of 64 characters and a domain whose labels have at most 63.
    let domain: Vec<_> =
        text.as_bytes()[65..].chunks(64).map(|part| "a".repeat(part.len().min(63))).collect();
    format!("{}@{}", "a".repeat(64), domain.join(".")).into()
}

/// Whether a response is a refusal of this field.
fn refuses(answer: &Answer, operation: &str, field: &str) -> bool {
    // What is sent under another name is called by the advised one.
    let field = match (operation, field) {
        ("login", "email") => "username",
        ("change_password", "old_password") => "current_password",
        _ => field,
    };
    // Clients of lists know a 400 for these two.
    if answer.status == 400 && matches!(field, "limit" | "offset") {
        return true;
    }
    let names = |place: &str| place.split('.').nth(1) == Some(field);
    answer.status == 422 && answer.problems().iter().any(|(place, _)| names(place))
}

#[test]
fn bounds_and_words_are_those_of_the_service() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let document = everything();
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        for inputs in inputs_of(&document, &method, &path, operation) {
            for (name, schema) in &inputs.fields {
                if schema["format"] == "binary" {
                    continue;
                }
                let values = Values::of(schema, inputs.place);
                let accepted = values.accepted.iter().map(|value| (value, false));
                for (value, is_refused) in
                    accepted.chain(values.refused.iter().map(|value| (value, true)))
                {
                    let answer = inputs.send(&api, Some((name, value)));
                    let case = format!("{} {:?} {name}={value}", inputs.operation, inputs.place);
                    assert!(answer.status < 500, "{case}: {answer:?}");
                    assert_eq!(
                        refuses(&answer, inputs.operation, name),
                        is_refused,
                        "{case}: {answer:?}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn what_is_required_is_missed() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let document = everything();
    for (method, path, operation) in operations(&document) {
        for inputs in inputs_of(&document, &method, &path, operation) {
            if inputs.place == Place::Query && inputs.fields.is_empty() {
                continue;
            }
            let answer = inputs.send(&api, None);
            let problems = if answer.status == 422 { answer.problems() } else { Vec::new() };
            let missing = problems.iter().filter(|(_, kind)| kind == "missing");
            let missing =
                missing.filter_map(|(place, _)| place.split('.').nth(1).map(str::to_owned));
            assert_eq!(
                missing.collect::<BTreeSet<_>>(),
                inputs.required,
                "{}: {answer:?}",
                inputs.operation
            );
        }
    }
}
