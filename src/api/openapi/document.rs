//! Builds the document: the paths with their operations, and around them what they share.

use serde_json::{Map, Value, json};

use schemars::generate::{SchemaGenerator, SchemaSettings};

use super::errors::{error_responses, shared_responses};
use super::{Access, Answer, Content, DocumentedEndpoint, Tag, components};
use crate::config::{ApiKeyScope, Config, Environment};
use crate::http::input::Encoding;
use crate::http::params::ParamDescription;

/// What a client's developer must know about all endpoints, in Markdown.
const INTRODUCTION: &str = include_str!("introduction.md");

/// The document as JSON, for a service with these settings and endpoints.
pub fn document(config: &Config, endpoints: &[DocumentedEndpoint]) -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut builder = Builder { config, generator: settings.into_generator(), bodies: Map::new() };
    let mut paths = Map::new();
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path()).or_insert_with(|| json!({}));
        path[endpoint.method.to_ascii_lowercase()] = builder.operation(endpoint);
    }
    let tags = Tag::ALL.iter().filter(|tag| endpoints.iter().any(|e| e.operation.tag == **tag));
    let mut schemas = builder.generator.take_definitions(true);
    schemas.extend(builder.bodies);
    schemas.extend(components::error_schemas());
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cloakroom",
            "summary": "Accounts and files over HTTP and JSON.",
            "description": INTRODUCTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags.map(|tag| json!({ "name": tag.name(), "description": tag.about() })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": shared_responses(config),
            "headers": components::headers(),
            "securitySchemes": components::security_schemes(config),
        },
    });
    document.to_string()
}

struct Builder<'a> {
    config: &'a Config,
    /// Collects the schemas of answers.
    generator: SchemaGenerator,
    /// The schemas of request bodies.
    bodies: Map<String, Value>,
}

impl Builder<'_> {
    fn operation(&mut self, endpoint: &DocumentedEndpoint) -> Value {
        let operation = endpoint.operation;
        let mut value = json!({
            "operationId": operation.id,
            "tags": [operation.tag.name()],
            "summary": operation.summary,
        });
        let description = [operation.description, endpoint.access.about()].join("\n\n");
        if !description.trim().is_empty() {
            value["description"] = description.trim().into();
        }
        let parameters = parameters(endpoint);
        if !parameters.is_empty() {
            value["parameters"] = parameters.into();
        }
        if let Some(body) = self.request_body(endpoint) {
            value["requestBody"] = body;
        }
        let answers = operation.answers.iter().map(|answer| {
            (
                answer.status.to_string(),
                answer_response(answer, endpoint, self.config, &mut self.generator),
            )
        });
        let mut responses: Map<String, Value> = answers.collect();
        responses.extend(error_responses(endpoint, self.config));
        value["responses"] = responses.into();
        value["security"] = security(endpoint, self.config).into();
        value
    }

    /// The body that the endpoint reads, in each of its encodings. Each has a schema of its own, because `null` stands
    /// for an absent value in JSON only.
    fn request_body(&mut self, endpoint: &DocumentedEndpoint) -> Option<Value> {
        let operation = endpoint.operation;
        let input = operation.inputs.iter().find(|input| input.encoding() != Encoding::Query)?;
        let params = input.params();
        let name = pascal_case(operation.id);
        let mut content = Map::new();
        if input.encoding() != Encoding::Multipart {
            let schema = self.body_schema(format!("{name}Request"), &params, true);
            let examples = operation.examples.iter().filter_map(|(title, text)| {
                let value: Value = serde_json::from_str(text).ok()?;
                Some(((*title).to_owned(), json!({ "value": value })))
            });
            let examples: Map<_, _> = examples.collect();
            let mut json_content = json!({ "schema": schema });
            if !examples.is_empty() {
                json_content["examples"] = examples.into();
            }
            content.insert("application/json".into(), json_content);
        }
        let form = match input.encoding() {
            Encoding::JsonOrForm => Some("application/x-www-form-urlencoded"),
            Encoding::Multipart => Some("multipart/form-data"),
            Encoding::Json | Encoding::Query => None,
        };
        if let Some(media_type) = form {
            let schema = self.body_schema(format!("{name}Form"), &params, false);
            let mut form_content = json!({ "schema": schema });
            if input.encoding() == Encoding::Multipart {
                let types: Vec<_> = self.config.allowed_upload_types.iter().collect();
                form_content["encoding"] = json!({ "file": { "contentType": types.join(", ") } });
            }
            content.insert(media_type.into(), form_content);
        }
        // A body that may be empty need not be sent.
        let is_required = params.iter().any(|param| param.is_required);
        Some(json!({ "required": is_required, "content": content }))
    }

    /// Adds the schema of an object with these properties to the document, and returns a reference to it.
    fn body_schema(
        &mut self,
        name: String,
        params: &[ParamDescription],
        is_nullable: bool,
    ) -> Value {
        let property = |param: &ParamDescription| {
            let mut schema = described(param.schema.clone(), param.about);
            if is_nullable && !param.is_required {
                accept_null(&mut schema);
            }
            (param.name.to_owned(), schema)
        };
        let properties: Map<_, _> = params.iter().map(property).collect();
        let required: Vec<_> =
            params.iter().filter(|param| param.is_required).map(|param| param.name).collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        self.bodies.insert(name, schema);
        reference
    }
}

/// The parameters in the path, in the query and in headers.
fn parameters(endpoint: &DocumentedEndpoint) -> Vec<Value> {
    let id = endpoint.id_name().map(|name| {
        let schema = json!({ "type": "string", "format": "uuid" });
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let operation = endpoint.operation;
    let queries = operation.inputs.iter().filter(|input| input.encoding() == Encoding::Query);
    let query = queries.flat_map(|input| input.params()).map(|param| {
        let parameter = json!({ "name": param.name, "in": "query", "required": param.is_required });
        let mut parameter = described(parameter, param.about);
        parameter["schema"] = param.schema;
        parameter
    });
    let headers = operation.headers.iter().map(|(name, about)| {
        json!({ "name": name, "in": "header", "description": about, "schema": { "type": "string" } })
    });
    id.into_iter().chain(query).chain(headers).collect()
}

fn answer_response(
    answer: &Answer,
    endpoint: &DocumentedEndpoint,
    config: &Config,
    generator: &mut SchemaGenerator,
) -> Value {
    let mut headers = components::header_references(endpoint, config, answer.status);
    headers.extend(answer.headers.iter().map(|(name, about)| {
        ((*name).to_owned(), json!({ "description": about, "schema": { "type": "string" } }))
    }));
    let mut response = json!({ "description": answer.description, "headers": headers });
    match answer.content {
        Content::Empty => {}
        Content::Json(schema) => {
            response["content"] = json!({ "application/json": { "schema": schema(generator) } });
        }
        Content::Text(media_type) => {
            let schema = json!({ "type": "string" });
            response["content"] = json!({ media_type: { "schema": schema } });
        }
        Content::Bytes => {
            let schema = json!({ "type": "string", "format": "binary" });
            response["content"] = json!({ "*/*": { "schema": schema } });
        }
    }
    response
}

/// The security requirements of the operation: alternatives, of which a request must fulfil one. An empty alternative
/// means that the request needs no credentials.
fn security(endpoint: &DocumentedEndpoint, config: &Config) -> Vec<Value> {
    if !config.auth_enabled || endpoint.limit.is_none() {
        return Vec::new();
    }
    let is_export = endpoint.access == Access::Export;
    let needs_key =
        config.api_key_enabled && (is_export || config.api_key_scope == ApiKeyScope::All);
    let is_open = match endpoint.access {
        Access::Anyone | Access::RefreshToken => true,
        Access::User | Access::Admin => false,
        Access::Export => {
            let is_development = config.environment == Environment::Development;
            !config.api_key_enabled
                && !config.export_require_admin
                && (config.allow_anonymous_export || is_development)
        }
    };
    let needs_no_token = matches!(endpoint.access, Access::Anyone | Access::RefreshToken);
    let mut alternatives = Vec::new();
    if is_open {
        alternatives.push(json!({}));
    }
    if !needs_no_token {
        alternatives.extend([json!({ "bearer": [] }), json!({ "password": [] })]);
    }
    if needs_key {
        alternatives.iter_mut().for_each(|alternative| alternative["api_key"] = json!([]));
    }
    // An empty list means the same as a single empty alternative, and more tools understand it.
    if alternatives == [json!({})] { Vec::new() } else { alternatives }
}

/// Adds a description to a schema or a parameter, unless it is empty.
fn described(mut value: Value, about: &str) -> Value {
    if !about.is_empty() {
        value["description"] = about.into();
    }
    value
}

/// Makes a schema accept `null` as well.
fn accept_null(schema: &mut Value) {
    let null = Value::String("null".into());
    schema["type"] = Value::Array(vec![schema["type"].take(), null]);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
}

/// Turns `change_password` into `ChangePassword`.
fn pascal_case(name: &str) -> String {
    let capitalised = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('_').map(capitalised).collect()
}
