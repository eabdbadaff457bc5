//! The responses of the document to requests that fail. Their examples are made of the program's own table of errors,
//! so that what a client is told stands in one place.

use serde_json::{Map, Value, json};
use time::macros::datetime;

use super::samples::samples;
use crate::config::{Config, ErrorFormat};
use crate::error::{Error, FieldError, FieldLocation, Problem};
use crate::http::error_response::{self, error_response};
use crate::http::response::ResponseBody;
use crate::model::problems::{MISSING, NOT_JSON};
use crate::model::timestamp::Timestamp;

/// The time in examples of errors. It is fixed, so that the document is the same each time it is made.
const EXAMPLE_TIME: Timestamp = Timestamp(datetime!(2026-01-31 12:00 UTC));

/// All errors that a response of the document may name.
pub struct Errors {
    samples: Vec<Error>,
    format: ErrorFormat,
}

impl Errors {
    pub fn new(config: &Config) -> Errors {
        Errors { samples: samples(config), format: config.error_format }
    }

    /// The reasons and the codes of all errors, each once, for the schemas of error bodies.
    pub fn words(&self) -> Value {
        let invalid = [MISSING, NOT_JSON].map(FieldError::of_body);
        let all = || self.samples.iter().chain(&invalid);
        let reasons = sorted(all().map(Error::reason).collect());
        let codes = sorted(all().map(error_response::code).collect());
        json!({ "reasons": reasons, "codes": codes })
    }

    /// The members of a response with the errors that the items name: a description, which consists of their messages,
    /// the headers that only such errors have, if any, and an example of each.
    pub fn response(&self, items: &[Value]) -> Map<String, Value> {
        let errors: Vec<_> = items.iter().flat_map(|item| self.named(item)).collect();
        let (mut messages, mut headers, mut examples) = (Vec::new(), Map::new(), Map::new());
        for error in &errors {
            let message = format!("`{}`", error.message());
            if !messages.contains(&message) {
                messages.push(message);
            }
            let sent = error_response(error, self.format, EXAMPLE_TIME);
            for (name, _) in sent.headers.iter().filter(|(name, _)| *name != "Content-Type") {
                let reference = format!("#/components/headers/{name}");
                headers.insert((*name).to_owned(), json!({ "$ref": reference }));
            }
            examples.insert(name_of_example(error), json!({ "value": body(&sent.body) }));
        }
        let schema = format!("#/components/schemas/{}", self.schema(&errors));
        let content = json!({ "schema": { "$ref": schema }, "examples": examples });
        let mut members = Map::new();
        members.insert("description".to_owned(), messages.join(", ").into());
        if !headers.is_empty() {
            members.insert("headers".to_owned(), headers.into());
        }
        members.insert("content".to_owned(), json!({ "application/json": content }));
        members
    }

    /// The name of the schema that bodies of these errors have.
    fn schema(&self, errors: &[Error]) -> &'static str {
        match self.format {
            ErrorFormat::Envelope => "ErrorEnvelope",
            ErrorFormat::Detail
                if errors.iter().any(|error| matches!(error, Error::Invalid(_))) =>
            {
                "ValidationError"
            }
            ErrorFormat::Detail => "ApiError",
        }
    }

    /// The errors that an item of `x-errors` names.
    fn named(&self, item: &Value) -> Vec<Error> {
        match item {
            Value::String(words) => vec![self.find(words)],
            Value::Array(fields) => vec![Error::Invalid(fields.iter().map(field_error).collect())],
            group => {
                let items = group["reasons"].as_array().into_iter().flatten();
                items.flat_map(|item| self.named(item)).collect()
            }
        }
    }

    /// The error with a reason, before which its status stands if several errors have the reason.
    #[expect(
        clippy::expect_used,
        reason = "a test makes all documents of a program that has these words"
    )]
    fn find(&self, words: &str) -> Error {
        let (status, reason) = match words.split_once(' ') {
            Some((status, reason)) => (status.parse().ok(), reason),
            None => (None, words),
        };
        let is_meant = |error: &&Error| {
            error.reason() == reason && status.is_none_or(|status: u16| status == error.status())
        };
        self.samples.iter().find(is_meant).cloned().expect("the reason of an error")
    }
}

fn sorted(mut words: Vec<&'static str>) -> Vec<&'static str> {
    words.sort_unstable();
    words.dedup();
    words
}

/// An error of a field, given as `body.email value_error Invalid e-mail address`. The texts are leaked, because those
/// of errors are constants. The document is made once.
fn field_error(text: &Value) -> FieldError {
    let text: &'static str = text.as_str().unwrap_or_default().to_owned().leak();
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default();
    let (place, kind, message) = (next(), next(), next());
    let (location, field) = match place.split_once('.') {
        Some((location, field)) => (location, Some(field)),
        None => (place, None),
    };
    let location = match location {
        "path" => FieldLocation::Path,
        "query" => FieldLocation::Query,
        _ => FieldLocation::Body,
    };
    FieldError { location, field, problem: Problem { kind, message: message.into() } }
}

/// The reason, after which the first field stands if errors of several fields have it.
fn name_of_example(error: &Error) -> String {
    let fields = match error {
        Error::Invalid(fields) => fields.as_slice(),
        _ => &[],
    };
    match fields.first().and_then(|first| first.field) {
        Some(field) => format!("{} ({field})", error.reason()),
        None => error.reason().to_owned(),
    }
}

fn body(body: &ResponseBody) -> Value {
    match body {
        ResponseBody::Bytes(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
        _ => Value::Null,
    }
}
