//! The error responses of an operation: which errors an endpoint can fail with, and what the document says about them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use time::macros::datetime;

use super::{Access, DocumentedEndpoint, components};
use crate::config::{ApiKeyScope, Config, ErrorFormat};
use crate::error::{Error, FieldError, FieldLocation, Forbidden, TokenProblem};
use crate::http::input::Encoding;
use crate::http::request::MAX_TEXT_BODY;
use crate::http::response::error_body;
use crate::model::problems;
use crate::model::timestamp::Timestamp;

/// The time in examples of errors. It is fixed, so that the document is the same each time it is made.
const EXAMPLE_TIME: Timestamp = Timestamp(datetime!(2026-01-31 12:00 UTC));

/// The responses to requests that fail, by status.
pub fn error_responses(endpoint: &DocumentedEndpoint, config: &Config) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<Error>> = BTreeMap::new();
    let specific = (endpoint.operation.errors)(config);
    for error in specific.into_iter().chain(general_errors(endpoint, config)) {
        let errors = by_status.entry(error.status()).or_default();
        if errors.iter().all(|other| other.message() != error.message()) {
            errors.push(error);
        }
    }
    by_status
        .into_iter()
        .map(|(status, errors)| {
            let response = if SHARED_STATUSES.contains(&status) {
                json!({ "$ref": format!("#/components/responses/Error{status}") })
            } else {
                let headers = components::header_references(endpoint, config, status);
                error_response(status, &errors, headers, config.error_format)
            };
            (status.to_string(), response)
        })
        .collect()
}

/// The statuses whose responses are the same for all endpoints that have them.
const SHARED_STATUSES: [u16; 7] = [408, 417, 431, 500, 503, 504, 505];

/// The errors of [`SHARED_STATUSES`].
fn shared_errors() -> Vec<Error> {
    vec![
        Error::HeadTooSlow,
        Error::BodyTooSlow,
        Error::ExpectationFailed,
        Error::HeadersTooLarge,
        Error::Internal(String::new()),
        Error::Unavailable,
        Error::TimedOut,
        Error::VersionNotSupported,
    ]
}

/// The responses with [`SHARED_STATUSES`], to which all endpoints refer.
pub fn shared_responses(config: &Config) -> Map<String, Value> {
    let response = |status: u16| {
        let errors = shared_errors().into_iter().filter(|error| error.status() == status);
        let headers = components::shared_header_references(status);
        let errors: Vec<_> = errors.collect();
        (format!("Error{status}"), error_response(status, &errors, headers, config.error_format))
    };
    SHARED_STATUSES.map(response).into_iter().collect()
}

/// The errors that an endpoint has because of who may use it and what it reads, and those of the HTTP server, which any
/// request can get.
fn general_errors(endpoint: &DocumentedEndpoint, config: &Config) -> Vec<Error> {
    let mut errors = vec![
        Error::BadRequest,
        Error::HeadTooSlow,
        Error::ExpectationFailed,
        Error::HeadersTooLarge,
        Error::VersionNotSupported,
        Error::Internal(String::new()),
    ];
    let encodings: Vec<_> =
        endpoint.operation.inputs.iter().map(|input| input.encoding()).collect();
    if encodings.iter().any(|encoding| *encoding != Encoding::Query) {
        errors.extend([
            Error::BodyCutShort,
            Error::BodyMalformed,
            Error::BodyTooLarge(MAX_TEXT_BODY),
        ]);
    }
    if let Some(error) = field_error(endpoint) {
        errors.push(Error::Invalid(vec![error]));
    }
    if endpoint.limit.is_none() {
        return errors;
    }
    errors.extend([Error::Unavailable, Error::TimedOut]);
    errors.extend(access_errors(endpoint, config));
    if config.rate_limit_enabled {
        let login = endpoint.operation.id == "login";
        errors.push(Error::RateLimited { retry_after: 12, login });
    }
    errors
}

/// The errors of requests whose sender may not use the endpoint.
fn access_errors(endpoint: &DocumentedEndpoint, config: &Config) -> Vec<Error> {
    let (access, mut errors) = (endpoint.access, Vec::new());
    if !config.auth_enabled {
        return errors;
    }
    if access != Access::Anyone {
        errors.extend([
            Error::AuthenticationRequired,
            Error::InvalidScheme,
            Error::InvalidAuthorization,
            Error::InvalidToken(TokenProblem::Expired),
            Error::UserNotUsable,
        ]);
    }
    // The endpoint refuses all personal access tokens, or else the read-only ones because it changes something.
    let knows_user = matches!(access, Access::User | Access::Admin | Access::Export);
    if knows_user && (!endpoint.accepts_personal_tokens || endpoint.method != "GET") {
        errors.push(Error::NotPermitted(Forbidden::PersonalToken));
    }
    if access == Access::Admin || access == Access::Export && config.export_require_admin {
        errors.push(Error::AdminRequired);
    }
    let is_export = access == Access::Export;
    if config.api_key_enabled && (is_export || config.api_key_scope == ApiKeyScope::All) {
        errors.push(Error::ApiKeyMissing { is_export });
        errors.push(Error::ApiKeyInvalid);
    }
    errors
}

/// An example of a bad field, if the endpoint has fields or an id.
fn field_error(endpoint: &DocumentedEndpoint) -> Option<FieldError> {
    let inputs = endpoint.operation.inputs.iter();
    let mut params = inputs.flat_map(|input| {
        let location = match input.encoding() {
            Encoding::Query => FieldLocation::Query,
            Encoding::Json | Encoding::JsonOrForm | Encoding::Multipart => FieldLocation::Body,
        };
        input.params().into_iter().map(move |param| (location, param))
    });
    let error = |location, field, problem| FieldError { location, field: Some(field), problem };
    if let Some((location, param)) = params.next() {
        return Some(match param.is_required {
            true => error(location, param.name, problems::missing()),
            false => error(location, param.name, problems::not_utf8()),
        });
    }
    endpoint.id_name().map(|name| {
        let problem = problems::problem("uuid_parsing", "Invalid UUID");
        error(FieldLocation::Path, name, problem)
    })
}

/// A response with an example for each error.
fn error_response(
    status: u16,
    errors: &[Error],
    headers: Map<String, Value>,
    format: ErrorFormat,
) -> Value {
    let examples = errors.iter().map(|error| {
        let body = error_body(error, format, EXAMPLE_TIME);
        (error.message().into_owned(), json!({ "value": body }))
    });
    let examples: Map<_, _> = examples.collect();
    let schema = match (format, status) {
        (ErrorFormat::Envelope, _) => "ErrorEnvelope",
        (ErrorFormat::Detail, 422) => "ValidationError",
        (ErrorFormat::Detail, _) => "Error",
    };
    let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
    let messages: Vec<_> = errors.iter().map(|error| format!("`{}`", error.message())).collect();
    json!({
        "description": messages.join(", "),
        "headers": headers,
        "content": { "application/json": { "schema": schema, "examples": examples } },
    })
}
