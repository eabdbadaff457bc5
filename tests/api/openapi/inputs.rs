//! What the document says about inputs is what the service accepts: each bound and each word is sent as it is and
//! beyond, and what is required is left out.

use std::collections::BTreeSet;

use crate::harness::*;
use crate::openapi::document::everything;
use crate::openapi::scene::{Everything, Scene};

/// One of the ways to send inputs to an operation.
struct Inputs<'a> {
    /// That of a body, or `query`.
    media_type: &'a str,
    /// The schemas by name.
    fields: Vec<(&'a str, Value)>,
    required: BTreeSet<&'a str>,
}

/// All inputs of an operation but the ids in its path.
fn inputs_of<'a>(operation: &Operation<'a>) -> Vec<Inputs<'a>> {
    let query: Vec<_> =
        operation.parameters().filter(|parameter| parameter["in"] == "query").collect();
    let name = |parameter: &'a Value| parameter["name"].as_str().expect("a name");
    let required = query.iter().filter(|parameter| parameter["required"] == true);
    let required = required.map(|parameter| name(parameter)).collect();
    let query = query
        .into_iter()
        .map(|parameter| (name(parameter), resolved(operation, &parameter["schema"])));
    let query = Inputs { media_type: "query", fields: query.collect(), required };
    let body = |(media_type, content): (&'a str, &'a Value)| {
        let schema = operation.follow(&content["schema"]);
        let fields = members(&schema["properties"]);
        let fields = fields.map(|(name, schema)| (name, resolved(operation, schema))).collect();
        // Where another name is accepted too, `if` has the advised one.
        let required = [&schema["required"], &schema["if"]["required"]];
        let required = required.into_iter().filter_map(Value::as_array).flatten();
        Inputs { media_type, fields, required: required.filter_map(Value::as_str).collect() }
    };
    let bodies = operation.bodies().map(body);
    bodies.chain([query]).filter(|inputs| !inputs.fields.is_empty()).collect()
}

/// The schema of a field in which components stand as they are, also that of which `null` is the alternative.
fn resolved<'a>(operation: &Operation<'a>, schema: &'a Value) -> Value {
    match schema["oneOf"].as_array().map(Vec::as_slice) {
        Some([schema, null]) if null["type"] == "null" => {
            let mut resolved = operation.follow(schema).clone();
            resolved["type"] = json!([resolved["type"], "null"]);
            resolved
        }
        _ => {
            // What stands beside a reference holds as well.
            let mut resolved = operation.follow(schema).clone();
            for (name, value) in members(schema).filter(|(name, _)| *name != "$ref") {
                resolved[name] = value.clone();
            }
            resolved
        }
    }
}

/// A value at the edge of a rule: `None` if the schema accepts it, else the type of the problem, which is empty if the
/// rule does not decide it.
type Edge = (Value, Option<&'static str>);

fn edges_of(schema: &Value, media_type: &str) -> Vec<Edge> {
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let mut accepted: Vec<_> =
        schema["examples"].as_array().into_iter().flatten().cloned().collect();
    if kinds.contains(&"null".into()) {
        accepted.push(Value::Null);
    }
    let mut edges = match kinds[0].as_str().expect("a type") {
        "string" => edges_of_text(schema, media_type),
        "integer" => {
            let edge =
                |name: &str| schema[name].as_i64().unwrap_or_else(|| panic!("no {name}: {schema}"));
            let min = edge("minimum");
            accepted.push(json!(min));
            let mut edges = vec![(json!(min - 1), Some("")), (json!("x"), Some(""))];
            // Without one it is a quota.
            if let Some(max) = schema["maximum"].as_i64() {
                accepted.push(json!(max));
                edges.push((json!(max.cast_unsigned() + 1), Some("")));
            }
            edges
        }
        "boolean" => {
            accepted.extend([json!(true), json!(false)]);
            let words = "True t YES y On 1 FALSE F no N off 0".split(' ');
            let edges = words.map(|word| (json!(word), None));
            edges
                .chain(["perhaps", "2", " ", "truee"].map(|word| (json!(word), Some(""))))
                .collect()
        }
        "array" => {
            let items = edges_of(&schema["items"], media_type).into_iter();
            let mut edges: Vec<_> =
                items.map(|(item, problem)| (json!([item]), problem.map(|_| ""))).collect();
            if let Some(length) = schema["maxItems"].as_u64() {
                let is_id = schema["items"]["format"] == "uuid";
                let item = |n| if is_id { uuid(n) } else { "x".to_owned() };
                let list = |length| {
                    json!((0..u32::try_from(length).expect("it")).map(item).collect::<Vec<_>>())
                };
                edges.extend([(list(length), None), (list(length + 1), Some(""))]);
            }
            edges.push((json!("x"), Some("")));
            edges
        }
        "object" => vec![(json!("x"), Some("")), (json!({}), Some(""))],
        other => panic!("{other}"),
    };
    edges.extend(accepted.into_iter().map(|value| (value, None)));
    edges
}

fn edges_of_text(schema: &Value, media_type: &str) -> Vec<Edge> {
    let mut edges = Vec::new();
    if let Some(words) = schema["enum"].as_array() {
        edges.extend(words.iter().map(|word| (word.clone(), None)));
        edges.push((json!("no-such-word"), Some("")));
    }
    if let Some(length) = schema["minLength"].as_u64() {
        edges.push((text_of(schema, length), None));
        // What is empty may be called something else.
        let problem = if length == 1 { "" } else { "string_too_short" };
        edges.push((text_of(schema, length - 1), Some(problem)));
    }
    if let Some(length) = schema["maxLength"].as_u64() {
        edges.push((text_of(schema, length), None));
        edges.push((text_of(schema, length + 1), Some("string_too_long")));
    }
    if schema["pattern"].is_string() {
        // Without an example, Swagger UI makes a text up from the pattern.
        assert!(schema["examples"][0].is_string(), "{schema}");
        edges.push((json!("text with a \0"), Some("")));
    }
    match schema["format"].as_str() {
        Some("uuid") => edges.extend([(json!(UNKNOWN_ID), None), (json!("no-id"), Some(""))]),
        Some("date-time") => {
            // The unit tests of `model/timestamp.rs` have all forms.
            let forms = [
                "2026-01-31T12:00",
                "2026-01-31 12:00:00+0100",
                "2026-01-31 12:00 01",
                "2026-01-31",
            ];
            edges.extend(forms.map(|form| (json!(form), None)));
            let others = ["ann", "2026-W05-6", "2026-01-31T12", "2026-01-31T12:00 Z", "12:00"];
            edges.extend(others.map(|other| (json!(other), Some("datetime_parsing"))));
        }
        Some("password") | None => {}
        Some(other) => panic!("{other}"),
    }
    if is_address(schema) {
        edges.push((json!("ann"), Some("")));
        // An address need not be of ASCII.
        edges.push((json!("jörg@übersee.example"), None));
    }
    if media_type == "application/json" {
        edges.push((json!(5), Some("string_type")));
    }
    edges
}

/// Whether the field is an e-mail address. No `format` says so: generators know only those of ASCII.
fn is_address(schema: &Value) -> bool {
    schema["examples"][0] == "ann@example.com" && schema["pattern"].is_null()
}

/// A text of this length that breaks no other rule of the schema.
fn text_of(schema: &Value, length: u64) -> Value {
    let text = "a".repeat(usize::try_from(length).expect("a length"));
    if !is_address(schema) {
        return text.into();
    }
    // A name of 64 characters and a domain whose labels have at most 63.
    let domain: Vec<_> =
        text.as_bytes()[65..].chunks(64).map(|part| "a".repeat(part.len().min(63))).collect();
    format!("{}@{}", "a".repeat(64), domain.join(".")).into()
}

/// The types of the problems that a response has with this field.
fn problems_of(answer: &Answer, operation: &str, field: &str) -> Vec<String> {
    // What is sent under another name is called by the advised one.
    let field = match (operation, field) {
        ("login", "email") => "username",
        ("refresh_tokens" | "refresh_tokens_by_other_path", "token") => "refresh_token",
        ("change_password", "old_password") => "current_password",
        _ => field,
    };
    // Clients of lists know a 400 for these two.
    if answer.status == 400 && matches!(field, "limit" | "offset") {
        return vec!["out_of_range".to_owned()];
    }
    let problems = if answer.status == 422 { answer.problems() } else { Vec::new() };
    let of_field = problems.into_iter().filter(|(place, _)| place.split('.').nth(1) == Some(field));
    of_field.map(|(_, kind)| kind).collect()
}

#[test]
fn bounds_and_words_are_those_of_the_service() {
    let all = Everything::start();
    let document = everything();
    let mut tried = 0;
    for operation in Operation::all(&document) {
        for Inputs { media_type, fields, .. } in inputs_of(&operation) {
            let mut scene = None;
            for (name, schema) in fields.iter().filter(|(_, schema)| schema["format"] != "binary") {
                for (value, problem) in edges_of(schema, media_type) {
                    let sender = scene.get_or_insert_with(|| Scene::new(&all, PASSWORD));
                    let mut values = json!({*name: value});
                    // Only deleted files can be sorted by this.
                    if value == "deleted_at" {
                        values["deleted"] = json!(true);
                    }
                    // One of the two must be there, and null is as good as nothing.
                    if operation.id() == "update_files" && value.is_null() {
                        values[if *name == "folder" { "is_public" } else { "folder" }] = json!("1");
                    }
                    if operation.id() == "create_link" && value.is_null() {
                        match *name {
                            "files" | "upload_to" => values["folder"] = json!("/"),
                            "folder" => {
                                let file = all.api.new_file(&sender.sender, "a.txt", "a");
                                values["files"] = json!([file]);
                            }
                            _ => {}
                        }
                    }
                    // Others have no meaning for a link to files.
                    if operation.id() == "create_link"
                        && ["max_files", "max_bytes", "note", "notify"].contains(name)
                    {
                        values["upload_to"] = json!("/");
                    }
                    // Only a list of files has pages.
                    if operation.id() == "download_by_link" && *name == "after" {
                        values["about"] = json!(true);
                    }
                    let answer = sender.request(&operation, media_type, &values).send();
                    let case = format!("{} {media_type} {name}={value}", operation.id());
                    assert!(answer.status < 500, "{case}: {answer:?}");
                    let problems = problems_of(&answer, operation.id(), name);
                    let is_expected = match problem {
                        None => problems.is_empty(),
                        Some(kind) => problems.iter().any(|found| found.contains(kind)),
                    };
                    assert!(is_expected, "{case}, {problem:?}: {answer:?}");
                    // What has an effect may end the session.
                    if answer.status < 300 && operation.method != "GET" {
                        scene = None;
                    }
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn what_is_required_is_missed() {
    let all = Everything::start();
    let document = everything();
    for operation in Operation::all(&document) {
        for Inputs { media_type, required, .. } in inputs_of(&operation) {
            let request = Scene::new(&all, PASSWORD).request(&operation, media_type, &json!({}));
            let is_json = media_type == "application/json" && !required.is_empty();
            let bodies = ["", "  ", r#"{"unknown": 1}"#].into_iter().filter(|_| is_json);
            let others = bodies.map(|body| request.clone().body(body));
            for request in [request.clone()].into_iter().chain(others) {
                let answer = request.send();
                let problems = if answer.status == 422 { answer.problems() } else { Vec::new() };
                let place = if media_type == "query" { "query" } else { "body" };
                let mut required = required.clone();
                if operation.id() == "update_files" {
                    // One of the two is enough.
                    required.extend(["is_public", "folder"]);
                }
                if operation.id() == "create_link" {
                    required.extend(["files", "folder", "upload_to"]);
                }
                let missing =
                    required.iter().map(|name| (format!("{place}.{name}"), "missing".to_owned()));
                assert_eq!(problems, missing.collect::<Vec<_>>(), "{answer:?}");
            }
        }
    }
}
