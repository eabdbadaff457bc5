//! What operations share: schemas of errors, headers of responses, ways to authenticate, and groups.

use serde_json::{Map, Value, json};

use super::{Access, DocumentedEndpoint, Tag};
use crate::config::Config;
use crate::http::status::error_code;

impl Tag {
    /// All groups, in the order in which pages show them.
    pub const ALL: [Tag; 8] = [
        Tag::Authentication,
        Tag::Account,
        Tag::Files,
        Tag::Users,
        Tag::Administration,
        Tag::Exports,
        Tag::TestOnly,
        Tag::Service,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Tag::Authentication => "Authentication",
            Tag::Account => "Your account",
            Tag::Files => "Files",
            Tag::Users => "Users",
            Tag::Administration => "Administration",
            Tag::Exports => "Exports",
            Tag::TestOnly => "Test only",
            Tag::Service => "Service",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Tag::Authentication => {
                "Registration, sign-in, refresh of tokens, sign-out and password resets."
            }
            Tag::Account => "The account of the signed-in user.",
            Tag::Files => "Files of the signed-in user, and public files of others.",
            Tag::Users => "Accounts, for administrators.",
            Tag::Administration => "Lists and statistics, for administrators.",
            Tag::Exports => "Users as CSV.",
            Tag::TestOnly => {
                "Endpoints that help to test clients. They are disabled unless a setting enables them."
            }
            Tag::Service => "Probes, metrics and this document. No authentication, no rate limit.",
        }
    }
}

impl Access {
    /// The sentence that ends the description of an operation.
    pub fn about(self) -> &'static str {
        match self {
            Access::Admin => "For administrators.",
            Access::Export => "The settings of the service say who may export.",
            Access::Anyone | Access::RefreshToken | Access::User => "",
        }
    }
}

/// The bodies of errors in both formats. The setting `CLOAKROOM_ERROR_FORMAT` chooses between them.
pub fn error_schemas() -> Map<String, Value> {
    let mut codes: Vec<_> = (400..600).map(error_code).filter(|code| !code.is_empty()).collect();
    codes.dedup();
    let field_errors =
        json!({ "type": "array", "items": { "$ref": "#/components/schemas/FieldError" } });
    let hint = json!({
        "type": "string",
        "description": "What the sender of the request can do about it, for people.",
    });
    let schemas = json!({
        "Error": {
            "type": "object",
            "required": ["detail", "error_code"],
            "properties": {
                "detail": { "type": "string", "description": "A message for people." },
                "error_code": { "type": "string", "enum": codes, "description": "The kind of error, for programs." },
                "hint": hint,
            },
        },
        "ValidationError": {
            "type": "object",
            "required": ["detail", "error_code", "field_errors"],
            "properties": {
                "detail": field_errors,
                "error_code": { "type": "string", "enum": ["VALIDATION_ERROR"] },
                "field_errors": {
                    "type": "object",
                    "description": "The messages of `detail` for each field, by its name.",
                    "additionalProperties": { "type": "array", "items": { "type": "string" } },
                },
                "hint": hint,
            },
        },
        "FieldError": {
            "type": "object",
            "required": ["loc", "msg", "type"],
            "properties": {
                "loc": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "`body`, `query` or `path`, then the field, if the error is that of a single field.",
                },
                "msg": { "type": "string", "description": "A message for people." },
                "type": {
                    "type": "string",
                    "enum": [
                        "missing", "string_type", "bool_type", "int_parsing", "datetime_parsing", "uuid_parsing",
                        "enum", "string_too_short", "string_too_long", "value_error", "json_invalid",
                    ],
                    "description": "The kind of error, for programs.",
                },
            },
        },
        "Hint": { "type": "object", "required": ["hint"], "properties": { "hint": hint } },
        "ErrorEnvelope": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {
                    "type": "object",
                    "required": ["code", "message", "details", "timestamp"],
                    "properties": {
                        "code": { "type": "string", "enum": codes, "description": "The kind of error, for programs." },
                        "message": { "type": "string", "description": "A message for people." },
                        "details": {
                            "type": ["array", "null"],
                            "items": {
                                "anyOf": [
                                    { "$ref": "#/components/schemas/FieldError" },
                                    { "$ref": "#/components/schemas/Hint" },
                                ],
                            },
                            "description": "The errors of single fields, and last a hint.",
                        },
                        "timestamp": { "type": "string", "format": "date-time" },
                    },
                },
            },
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

/// The headers that responses with this status have in addition to those of all responses.
fn own_headers(status: u16) -> &'static [&'static str] {
    match status {
        401 => &["WWW-Authenticate"],
        429 => &["Retry-After", "X-RateLimit-Retry-After"],
        503 => &["Retry-After"],
        _ => &[],
    }
}

/// References to the headers of the endpoint's responses with this status.
pub fn header_references(
    endpoint: &DocumentedEndpoint,
    config: &Config,
    status: u16,
) -> Map<String, Value> {
    let is_limited = endpoint.limit.is_some() && config.rate_limit_enabled;
    let limits: &[&str] = match is_limited {
        true => &["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
        false => &[],
    };
    references(&[&["X-Request-ID"], limits, own_headers(status)].concat())
}

/// References to the headers that the responses of all endpoints with this status have.
pub fn shared_header_references(status: u16) -> Map<String, Value> {
    references(&[&["X-Request-ID"], own_headers(status)].concat())
}

fn references(names: &[&str]) -> Map<String, Value> {
    let reference = |name: &&str| {
        ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
    };
    names.iter().map(reference).collect()
}

/// The descriptions of response headers, to which the responses of all operations refer.
pub fn headers() -> Value {
    let text = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let number = |about: &str| json!({ "description": about, "schema": { "type": "integer", "minimum": 0 } });
    let required = |mut header: Value| {
        header["required"] = true.into();
        header
    };
    json!({
        "X-Request-ID": {
            "description": "The id of the request: its own `X-Request-ID` if that is a UUID, otherwise a new one.",
            "required": true,
            "schema": { "type": "string", "format": "uuid" },
        },
        "X-RateLimit-Limit": number("The capacity of the token bucket that the request counted against."),
        "X-RateLimit-Remaining": number("How many requests are left in it."),
        "X-RateLimit-Reset": number("When it will be full again, as a Unix time in seconds."),
        "X-RateLimit-Retry-After": required(number("The same as `Retry-After`.")),
        "Retry-After": required(number("After how many seconds to try again.")),
        "WWW-Authenticate": required(text(
            "`Bearer`. If the request has a token, it is followed by `error=\"invalid_token\"` and an \
             `error_description` (RFC 6750, 3): `expired`, `session ended`, `not an access token`, `not a refresh \
             token`, or `malformed or not ours`.",
        )),
    })
}

/// The ways to authenticate, in the order in which pages offer them. The API key is among them only if the settings ask
/// for one.
pub fn security_schemes(config: &Config) -> Value {
    let mut schemes = json!({
        "password": {
            "type": "oauth2",
            "description": "Signs in with a username or an e-mail address and a password (RFC 6749, 4.3). Clients \
                            need no id and no secret.",
            "flows": { "password": { "tokenUrl": "/api/v1/auth/login", "scopes": {} } },
        },
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "An `access_token` from a login, a refresh, or a registration without a username; or a \
                            personal access token.",
        },
    });
    if config.api_key_enabled {
        schemes["api_key"] = json!({ "type": "apiKey", "in": "header", "name": "X-API-Key" });
    }
    schemes
}
