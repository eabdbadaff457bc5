//! The examples are what the service takes and answers, and a page that fills in a form from the document fills in
//! nothing else: Swagger UI takes the first named example of a body, and makes up a text from its `pattern` if there is
//! none.

use serde_json::Map;

use crate::harness::*;
use crate::openapi::document::everything;
use crate::openapi::scene::{Everything, Scene};

/// The content of a response of this media type, or else of the first that is documented.
fn content_of<'a>(response: &'a Value, media_type: &str) -> &'a Value {
    let mut contents = members(&response["content"]);
    let first = || members(&response["content"]).next();
    let found = contents.find(|(name, _)| *name == media_type).or_else(first);
    found.map_or(&Value::Null, |(_, content)| content)
}

#[test]
fn every_response_with_a_content_has_an_example_and_all_are_valid() {
    let document = Document::new(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let mut validated = 0;
    for operation in Operation::all(&document.json) {
        for (status, response) in operation.responses() {
            for (media_type, content) in members(&response["content"]) {
                let at = format!("{} {status} {media_type}", operation.id());
                assert!(operation.examples(content).next().is_some(), "{at} has no example");
                for (name, value) in operation.examples(content) {
                    let outcome = document.validate(content, value);
                    outcome.unwrap_or_else(|problem| panic!("{at} {name}: {problem}"));
                    validated += 1;
                }
            }
        }
    }
    assert!(validated > 500, "{validated}");
}

/// The names of all members, and of those of the first item of each list. The details of an event depend on it.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(_) => {
            let shape_of = |(name, value): (&str, &Value)| {
                let shape = if name == "details" { Value::Null } else { shape(value) };
                (name.to_owned(), shape)
            };
            members(value).map(shape_of).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            items.iter().take(1).filter(|item| item.is_object()).map(shape).collect()
        }
        _ => Value::Null,
    }
}

/// Fails unless a real response is a success and has what an example shows of it: the members of an object, and the
/// words that say what was done; the columns of a table; lines of figures; or all of a file, with its headers.
#[track_caller]
fn assert_exemplary(operation: &Operation, answer: &Answer) {
    assert!((200..400).contains(&answer.status), "{answer:?}");
    let response = operation.response(answer.status).expect("a response");
    let media_type =
        answer.headers.get("Content-Type").map_or("", |value| value.to_str().expect("ASCII"));
    let content = content_of(response, media_type);
    let text = String::from_utf8_lossy(&answer.bytes);
    let examples: Vec<_> = operation.examples(content).map(|(_, example)| example).collect();
    let text_of_example = || examples[0].as_str().expect("a text");
    if media_type == "application/json" {
        let real = answer.json();
        let is_like = |example: &Value| {
            let words = ["message", "status"].iter().all(|word| example[word] == real[word]);
            shape(example) == shape(&real) && words
        };
        let is_the_beginning = operation.id() == "get_openapi_document";
        assert!(is_the_beginning || examples.into_iter().any(is_like), "{content:#}: {answer:?}");
    } else if media_type.starts_with("text/csv") {
        let (header, _) = text.split_once("\r\n").expect("a header");
        assert!(!csv_rows(header, text_of_example().as_bytes()).is_empty(), "{answer:?}");
    } else if operation.id() == "get_metrics" {
        let has = |line: &str| text.lines().any(|real| real == line);
        assert!(text_of_example().lines().all(has), "{answer:?}");
    } else if operation.id().starts_with("download_") {
        match (answer.status, media_type) {
            (304, _) => {}
            (_, "application/zip") => assert!(text.starts_with(text_of_example()), "{answer:?}"),
            _ => assert_eq!(text, text_of_example()),
        }
        let headers = members(&response["headers"]).filter(|(name, _)| *name != "Last-Modified");
        let mut compared = 0;
        for (name, header) in headers {
            if let Some(example) = operation.follow(header)["example"].as_str() {
                assert_eq!(answer.header(name), example, "{name}");
                compared += 1;
            }
        }
        assert!(compared >= if answer.status == 304 { 1 } else { 2 }, "{answer:?}");
    } else {
        assert_eq!((&*text, content), ("", &Value::Null), "{answer:?}");
    }
}

#[test]
fn every_body_but_a_form_has_named_examples_and_all_answers_are_as_the_examples_show() {
    let document = everything();
    let all = Everything::start();
    let mut sent = 0;
    for operation in Operation::all(&document) {
        let (nothing, form) = (json!({}), json!({ "description": "For visitors" }));
        let mut bodies = Vec::new();
        for (media_type, content) in operation.bodies() {
            let mut examples: Vec<_> = operation.examples(content).collect();
            if media_type == "multipart/form-data" {
                // Clients that are made of the document send the fields of an example alone, and a file as a text.
                assert!(examples.is_empty(), "{} has an example of a form", operation.id());
                examples.push(("a description", &form));
            }
            assert!(!examples.is_empty(), "{} has no example of a body", operation.id());
            bodies.extend(examples.into_iter().map(|(name, body)| (media_type, name, body)));
        }
        sent += bodies.len();
        if bodies.is_empty() {
            bodies.push(("query", "nothing", &nothing));
        }
        for (media_type, name, body) in bodies {
            let scene = Scene::new(&all, body["current_password"].as_str().unwrap_or(PASSWORD));
            let request = scene.example(&operation, media_type, body);
            let answer = request.send().case(name);
            assert_exemplary(&operation, &answer);
            for (status, name, value) in [(206, "Range", "bytes=0-3"), (304, "If-None-Match", "*")]
            {
                if operation.json["responses"].get(status.to_string()).is_some() {
                    let answer = request.clone().header(name, value).send().expect(status);
                    assert_exemplary(&operation, &answer);
                }
            }
        }
    }
    assert!(sent > 20, "{sent}");
}

#[test]
fn a_deleted_file_and_what_a_link_tells_of_a_file_are_as_examples_show() {
    let (document, api) = (everything(), Server::start(&[]));
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    let link = api.new_link(&ann, &file);
    let about = api.request_at_root("GET", &format!("{link}?about=true")).send();
    assert_exemplary(&Operation::named(&document, "download_by_link"), &about);
    api.delete_file(&ann, &file).expect(204);
    let listed = api.list_files(&ann, "deleted=true");
    assert_exemplary(&Operation::named(&document, "list_files"), &listed);
    api.new_file(&ann, "b.txt", "text");
    let link = api.post("/links", &ann, json!({"folder": "/"})).expect(201).json();
    let url = link["url"].as_str().expect("a path");
    let about = api.request_at_root("GET", &format!("{url}?about=true")).send();
    assert_exemplary(&Operation::named(&document, "download_by_link"), &about);
    api.settle();
    let link = api.ask_for_files(&ann, json!({"note": "Photos, please"}));
    let about = api.request_at_root("GET", &format!("{link}?about=true")).send();
    assert_exemplary(&Operation::named(&document, "download_by_link"), &about);
}

#[test]
fn links_lead_from_an_example_to_an_operation() {
    let document = everything();
    let mut links = 0;
    for operation in Operation::all(&document) {
        for (_, response) in operation.responses() {
            for (_, link) in members(&response["links"]) {
                let at = format!("{}: {link}", operation.id());
                let target =
                    Operation::named(&document, link["operationId"].as_str().expect("an id"));
                // Generators refuse an object there, and an expression alone is not what an endpoint takes.
                assert!(link["requestBody"].is_null(), "{at}");
                for (name, expression) in members(&link["parameters"]) {
                    assert!(target.parameters().any(|one| one["name"] == name), "{at}");
                    let pointer =
                        expression.as_str().and_then(|text| text.strip_prefix("$response.body#"));
                    let pointer = pointer.expect(&at);
                    let mut examples = operation.examples(content_of(response, ""));
                    assert!(examples.all(|(_, body)| body.pointer(pointer).is_some()), "{at}");
                }
                links += 1;
            }
        }
    }
    assert!(links > 20, "{links}");
}

#[test]
fn the_first_example_of_a_change_of_an_account_is_one_field_that_can_be_taken_back() {
    let document = everything();
    for id in ["update_user", "admin_update_user"] {
        let operation = Operation::named(&document, id);
        let (_, content) = operation.bodies().next().expect("a body");
        let first = operation.examples(content).next();
        assert_eq!(first, Some(("Deactivate", &json!({"is_active": false}))));
    }
}
