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

/// The refusals (401 and 403) that some settings add to any operation, and that of a coded body, which the response
/// `default` stands for as well.
const BY_REASON: [&str; 5] = [
    "API_KEY_REQUIRED",
    "INVALID_API_KEY",
    "FOREIGN_PAGE",
    "DEVELOPMENT_ADMIN",
    "CONTENT_ENCODING",
];

/// The settings that change what the document says about responses, and the one that adds the headers of limits.
const SETTINGS: [&str; 13] = [
    "CLOAKROOM_DOCS",
    "CLOAKROOM_ERROR_FORMAT",
    "CLOAKROOM_LOGOUT_STATUS",
    "CLOAKROOM_OIDC_CLIENT_ID",
    "CLOAKROOM_OIDC_CLIENT_SECRET",
    "CLOAKROOM_OIDC_ISSUER",
    "CLOAKROOM_PASSWORD_LOGIN",
    "CLOAKROOM_PUBLIC_LIST",
    "CLOAKROOM_PUBLIC_URL",
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

/// Whether the binary has what the core build lacks.
pub fn has_extras() -> bool {
    static FOUND: LazyLock<bool> =
        LazyLock::new(|| document(&[])["paths"].get("/api/v1/changes").is_some());
    *FOUND
}

/// A function that tells whether a value is as the schema at a JSON pointer of the document says.
pub fn validator(pointer: &str) -> impl Fn(&Value) -> bool {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource("file:///openapi.json", document(&[])).expect("a document");
    let url = format!("file:///openapi.json#{pointer}");
    let index = compiler.compile(&url, &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
    move |value| schemas.validate(value, index).is_ok()
}

/// The members of an object; of anything else none.
pub fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// The value itself, or the component that it refers to.
pub fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a component"),
        None => value,
    }
}

/// An operation of a document.
#[derive(Clone)]
pub struct Operation<'a> {
    document: &'a Value,
    pub method: String,
    pub path: &'a str,
    pub json: &'a Value,
}

impl<'a> Operation<'a> {
    /// All but those of `PATCH` that repeat `PUT`.
    pub fn all(document: &'a Value) -> Vec<Operation<'a>> {
        let of_path = |(path, item): (&'a str, &'a Value)| {
            let is_own = |method: &str| method != "patch" || item.get("put").is_none();
            members(item).filter(move |(method, _)| is_own(method)).map(move |(method, json)| {
                Operation { document, method: method.to_ascii_uppercase(), path, json }
            })
        };
        members(&document["paths"]).flat_map(of_path).collect()
    }

    /// The operation with this id.
    #[track_caller]
    pub fn named(document: &'a Value, id: &str) -> Operation<'a> {
        let mut all = Operation::all(document).into_iter();
        all.find(|operation| operation.id() == id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// The operation of a request; `None` for a path or a method that the document does not have.
    pub fn of_request(document: &'a Value, method: &str, path: &str) -> Option<Operation<'a>> {
        let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        let segments: Vec<_> = path.split('/').collect();
        let is_match = |template: &&str| {
            let parts: Vec<_> = template.split('/').collect();
            let fits = |(part, segment): (&&str, &&str)| part.starts_with('{') || part == segment;
            parts.len() == segments.len() && parts.iter().zip(&segments).all(fits)
        };
        // Of several templates that match, the one with fewer ids is meant.
        let templates = members(&document["paths"]).map(|(template, _)| template);
        let template = templates.filter(is_match).min_by_key(|path| path.matches('{').count())?;
        // Where it would change something, `GET` has no `HEAD` beside it.
        let is_pure = !template.contains("/oidc/");
        let method = match method {
            "HEAD" if is_pure => "GET",
            "PATCH" if document["paths"][template].get("put").is_some() => "PUT",
            method => method,
        };
        let mut all = Operation::all(document).into_iter();
        all.find(|operation| operation.path == template && operation.method == method)
    }

    pub fn id(&self) -> &'a str {
        self.json["operationId"].as_str().expect("an id")
    }

    pub fn follow(&self, value: &'a Value) -> &'a Value {
        follow(self.document, value)
    }

    pub fn parameters(&self) -> impl Iterator<Item = &'a Value> {
        let listed = self.json["parameters"].as_array().into_iter().flatten();
        listed.map(|parameter| follow(self.document, parameter))
    }

    /// The media types of a body, with their contents.
    pub fn bodies(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        members(&self.json["requestBody"]["content"])
    }

    /// The statuses, of which one is `default`, with their responses.
    pub fn responses(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let all = members(&self.json["responses"]);
        all.map(|(status, response)| (status, follow(self.document, response)))
    }

    /// What it says about a status; `None` if it says nothing.
    pub fn response(&self, status: u16) -> Option<&'a Value> {
        let of = |name: &str| self.responses().find(|(status, _)| *status == name);
        let is_any = ANY_OPERATION.contains(&status);
        let found = of(&status.to_string()).or_else(|| of("default").filter(|_| is_any));
        found.map(|(_, response)| response)
    }

    /// The named examples of a content.
    pub fn examples(&self, content: &'a Value) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let all = members(&content["examples"]);
        all.map(|(name, example)| (name, &follow(self.document, example)["value"]))
    }

    /// The keys of the errors that a response has as examples.
    pub fn keys_of(&self, response: &'a Value) -> BTreeSet<String> {
        let examples = self.examples(&response["content"]["application/json"]);
        examples.map(|(_, error)| key(error)).collect()
    }

    /// The keys of the errors that it shows for a status.
    pub fn keys(&self, status: u16) -> BTreeSet<String> {
        self.response(status).map(|response| self.keys_of(response)).unwrap_or_default()
    }
}

/// What identifies an error: its code, reason, message and fields, and its hint; without figures.
pub fn key(body: &Value) -> String {
    let (code, reason) = (&body["error_code"], &body["reason"]);
    let text = format!("{code} {reason} {} {}", body["detail"], body["hint"]);
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// Notes the settings of a service, so that its responses are compared with the document that it serves.
pub fn note_service(address: &str, command: &Command) {
    let settings = SETTINGS.into_iter().filter_map(|name| {
        let mut values = command.get_envs().filter(|(variable, _)| *variable == name);
        let value = values.next()?.1?.to_str()?;
        // Documents differ only in whether there is a mail server, and a provider.
        let is_url = name == "CLOAKROOM_SMTP_URL" && value != "none";
        let value =
            if name == "CLOAKROOM_OIDC_ISSUER" { "https://login.example.com" } else { value };
        let value =
            if name == "CLOAKROOM_PUBLIC_URL" { "https://files.example.com" } else { value };
        (!is_url && !value.is_empty()).then(|| (name, value.to_owned()))
    });
    let mut services = SERVICES.lock().unwrap_or_else(PoisonError::into_inner);
    services.insert(address.to_owned(), settings.collect());
}

/// Forgets a service that is about to end: another one, or what passes requests on, may get its address.
pub fn forget_service(address: &str) {
    SERVICES.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
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
    if let Some(operation) = Operation::of_request(&document.json, method, &path)
        && let Err(problem) = document.check(&operation, method, answer)
    {
        panic!("not as the OpenAPI document says: {problem}: {answer:?}");
    }
}

/// A document, and its schemas as the validator uses them.
pub struct Document {
    pub json: Value,
    schemas: Schemas,
    /// The schemas by the references to them.
    by_reference: HashMap<String, SchemaIndex>,
    is_limited: bool,
}

impl Document {
    fn of(settings: Settings) -> Arc<Document> {
        let mut documents = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let pairs: Vec<_> =
                settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Arc::new(Document::new(&pairs))
        };
        documents.entry(settings.clone()).or_insert_with(make).clone()
    }

    pub fn new(settings: &[(&str, &str)]) -> Document {
        let json = document(settings);
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.enable_format_assertions();
        compiler.add_resource("file:///openapi.json", json.clone()).expect("a document");
        let mut compiled = |(name, _): (&str, &Value)| {
            let reference = format!("#/components/schemas/{name}");
            let url = format!("file:///openapi.json{reference}");
            let index = compiler.compile(&url, &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
            (reference, index)
        };
        let by_reference = members(&json["components"]["schemas"]).map(&mut compiled).collect();
        let is_limited = settings.contains(&("CLOAKROOM_RATE_LIMIT_ENABLED", "true"));
        Document { json, schemas, by_reference, is_limited }
    }

    /// Says how a value differs from the schema of a content. Only texts and the document itself have schemas without a
    /// name.
    pub fn validate(&self, content: &Value, value: &Value) -> Result<(), String> {
        let schema = &content["schema"];
        match (schema["$ref"].as_str(), schema["type"].as_str()) {
            (Some(reference), _) => {
                let index = self.by_reference[reference];
                self.schemas.validate(value, index).map_err(|e| format!("{e:#}"))
            }
            (None, Some("string")) if value.is_string() => Ok(()),
            (None, Some("object")) if value["openapi"].is_string() => Ok(()),
            _ => Err(format!("no schema: {schema}")),
        }
    }

    /// Says how a response differs from what is documented.
    fn check(&self, operation: &Operation, method: &str, answer: &Answer) -> Result<(), String> {
        let body = String::from_utf8_lossy(&answer.bytes);
        let is_of_any = BY_REASON.iter().any(|reason| body.contains(reason));
        let default = || follow(&self.json, &operation.json["responses"]["default"]);
        let listed = operation.response(answer.status);
        let Some(documented) = listed.or_else(|| is_of_any.then(default)) else {
            return Err(format!("no status {}", answer.status));
        };
        if !answer.has_header("X-Request-ID") {
            return Err("no header X-Request-ID".to_owned());
        }
        for (name, header) in members(&documented["headers"]) {
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
        self.validate(content, &serde_json::from_slice(&answer.bytes).map_err(|e| e.to_string())?)
    }
}
