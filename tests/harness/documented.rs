//! The OpenAPI document of each service that a test starts. Every response that any test gets is compared with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{Answer, Directory, OutputText, command};

/// The statuses that any request may get, which the response `default` of each operation stands for. An operation lists
/// all others by itself.
const ANY_OPERATION: [u16; 8] = [400, 408, 417, 431, 500, 503, 504, 505];

/// The refusals (401 and 403) that some settings add to any operation, which the response `default` stands for as well.
const BY_SETTINGS: [&str; 4] =
    ["API_KEY_REQUIRED", "INVALID_API_KEY", "FOREIGN_PAGE", "DEVELOPMENT_ADMIN"];

/// The settings that change what the document says about responses, and the one that adds the headers of limits.
const SETTINGS: [&str; 6] = [
    "CLOAKROOM_DOCS",
    "CLOAKROOM_ERROR_FORMAT",
    "CLOAKROOM_RATE_LIMIT_ENABLED",
    "CLOAKROOM_REGISTRATION",
    "CLOAKROOM_SMTP_URL",
    "CLOAKROOM_TEST_ENDPOINTS_ENABLED",
];

type Settings = BTreeMap<&'static str, String>;

/// The settings of each service that has been started, by its address.
static SERVICES: LazyLock<Mutex<HashMap<String, Settings>>> = LazyLock::new(Mutex::default);
/// The documents that have been needed so far.
static DOCUMENTS: LazyLock<Mutex<HashMap<Settings, Arc<Document>>>> = LazyLock::new(Mutex::default);

/// What `cloakroom openapi` prints with these settings.
pub fn document(settings: &[(&str, &str)]) -> Value {
    let data = Directory::create();
    let mut command = command("postgres://localhost/unused", &data, settings);
    let printed = command.arg("openapi").output().expect("the binary runs").exits(0).out();
    serde_json::from_str(&printed).expect("JSON")
}

/// The operation of a request in a document; `None` for a path or a method that it does not have.
pub fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
    let segments: Vec<&str> = path.split('/').collect();
    let ids = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let fits = |(part, segment): (&&str, &&str)| part.starts_with('{') || part == segment;
        let is_match = parts.len() == segments.len() && parts.iter().zip(&segments).all(fits);
        is_match.then(|| template.matches('{').count())
    };
    let paths = document["paths"].as_object().expect("paths");
    // Of several templates that match, the one with fewer ids is meant.
    let matching = paths.iter().filter_map(|(template, item)| Some((ids(template)?, item)));
    let (_, item) = matching.min_by_key(|(ids, _)| *ids)?;
    let method = if method == "HEAD" { "get" } else { &method.to_ascii_lowercase() };
    item.get(method)
}

/// The value itself, or the component that it refers to.
pub fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a component"),
        None => value,
    }
}

/// What an operation says about a status; `None` if it says nothing.
pub fn response<'a>(document: &'a Value, operation: &'a Value, status: u16) -> Option<&'a Value> {
    let responses = &operation["responses"];
    let is_any = ANY_OPERATION.contains(&status);
    let listed = responses.get(status.to_string());
    let found = listed.or_else(|| responses.get("default").filter(|_| is_any));
    found.map(|response| follow(document, response))
}

/// What identifies an error: its code, reason, message and fields, and its hint; without figures.
pub fn key(body: &Value) -> String {
    let (code, reason) = (&body["error_code"], &body["reason"]);
    let text = format!("{code} {reason} {} {}", body["detail"], body["hint"]);
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// The keys of the errors that a response of the document has as examples.
pub fn keys_of(document: &Value, response: &Value) -> BTreeSet<String> {
    let content = &follow(document, response)["content"]["application/json"];
    let examples = content["examples"].as_object().into_iter().flat_map(|all| all.values());
    examples.map(|example| key(&follow(document, example)["value"])).collect()
}

/// Notes the settings of a service, so that its responses are compared with the document that it serves.
pub fn note_service(address: &str, command: &Command) {
    let settings = SETTINGS.into_iter().filter_map(|name| {
        let mut values = command.get_envs().filter(|(variable, _)| *variable == name);
        let value = values.next()?.1?.to_str()?;
        // Documents differ only in whether there is a mail server.
        let is_url = name == "CLOAKROOM_SMTP_URL" && value != "none";
        (!is_url).then(|| (name, value.to_owned()))
    });
    let mut services = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    services.insert(address.to_owned(), settings.collect());
}

/// Fails if the service's document has the endpoint, but not this response to it. Responses of what stands before a
/// service, such as nginx, are not compared.
#[track_caller]
pub fn assert_documented(method: &str, url: &str, answer: &Answer) {
    let (address, path) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap_or_default();
    let path = format!("/{}", path.split('?').next().unwrap_or_default());
    let service = SERVICES.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned();
    let Some(document) = service.map(Document::of) else { return };
    if let Some(operation) = operation(&document.json, method, &path)
        && let Err(problem) = document.check(operation, method, answer)
    {
        panic!("not as the OpenAPI document says: {problem}: {answer:?}");
    }
}

/// A document, and its schemas as the validator uses them.
struct Document {
    json: Value,
    is_limited: bool,
    schemas: Schemas,
    /// The schemas by the references to them.
    by_reference: HashMap<String, SchemaIndex>,
}

impl Document {
    fn of(settings: Settings) -> Arc<Document> {
        let mut documents = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let pairs: Vec<_> =
                settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let is_limited = pairs.contains(&("CLOAKROOM_RATE_LIMIT_ENABLED", "true"));
            Arc::new(Document::compile(document(&pairs), is_limited))
        };
        documents.entry(settings.clone()).or_insert_with(make).clone()
    }

    fn compile(json: Value, is_limited: bool) -> Document {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.enable_format_assertions();
        compiler.add_resource("file:///openapi.json", json.clone()).expect("a document");
        let names = json["components"]["schemas"].as_object().expect("schemas").keys();
        let mut compiled = |name: &String| {
            let reference = format!("#/components/schemas/{name}");
            let url = format!("file:///openapi.json{reference}");
            let index = compiler.compile(&url, &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
            (reference, index)
        };
        let by_reference = names.map(&mut compiled).collect();
        Document { json, is_limited, schemas, by_reference }
    }

    /// Says how a response differs from what is documented.
    fn check(&self, operation: &Value, method: &str, answer: &Answer) -> Result<(), String> {
        let body = String::from_utf8_lossy(&answer.bytes);
        let is_by_settings = BY_SETTINGS.iter().any(|reason| body.contains(reason));
        let default = || follow(&self.json, &operation["responses"]["default"]);
        let listed = response(&self.json, operation, answer.status);
        let Some(documented) = listed.or_else(|| is_by_settings.then(default)) else {
            return Err(format!("no status {}", answer.status));
        };
        if !answer.has_header("X-Request-ID") {
            return Err("no header X-Request-ID".to_owned());
        }
        for (name, header) in documented["headers"].as_object().into_iter().flatten() {
            let is_required = follow(&self.json, header)["required"] == true;
            let is_of_limit = self.is_limited && name.starts_with("X-RateLimit-");
            if (is_required || is_of_limit) && !answer.has_header(name) {
                return Err(format!("no header {name}"));
            }
        }
        let Some(contents) = documented["content"].as_object() else {
            return if answer.bytes.is_empty() { Ok(()) } else { Err("a body".to_owned()) };
        };
        let media_type = answer.headers.get("Content-Type").and_then(|value| value.to_str().ok());
        let named = media_type.and_then(|media_type| contents.get(media_type));
        let Some(content) = named.or_else(|| contents.get("*/*")) else {
            return Err(format!("content type {media_type:?}"));
        };
        let is_readable =
            media_type == Some("application/json") && !answer.has_header("Content-Encoding");
        if method == "HEAD" || !is_readable {
            return Ok(());
        }
        let body = serde_json::from_slice(&answer.bytes).map_err(|e| e.to_string())?;
        match content["schema"]["$ref"].as_str() {
            Some(reference) => {
                let index = self.by_reference[reference];
                self.schemas.validate(&body, index).map_err(|e| format!("{e:#}"))
            }
            // Only the document itself has no schema with a name.
            None if operation["operationId"] == "get_openapi_document" && body.is_object() => {
                Ok(())
            }
            None => Err("no schema".to_owned()),
        }
    }
}
