//! The OpenAPI document (version 3.1). The router's table gives the paths, methods and rules of access, and names an
//! [`Operation`] for each endpoint; the functions that read requests give the parameters, and the types of responses
//! give their schemas. So the document follows the code, and only its sentences are written by hand.

mod components;
mod document;
mod errors;

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema};

use super::middleware::rate_limit::Limit;
use crate::config::Config;
use crate::error::Error;
use crate::http::input::DescribedInput;

pub use document::document;

/// What the document says about an endpoint beyond what the router's table says.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The name of the function that generated clients have for the endpoint.
    pub id: &'static str,
    pub tag: Tag,
    pub summary: &'static str,
    /// In Markdown; may be empty.
    pub description: &'static str,
    /// Everything that the handler reads from the query and the body.
    pub inputs: &'static [&'static dyn DescribedInput],
    /// Examples of valid request bodies: the title and the JSON of each. If there are none, the pages that show the
    /// document make one up from the schema.
    pub examples: &'static [(&'static str, &'static str)],
    /// Request headers that change the response, each with its description.
    pub headers: &'static [(&'static str, &'static str)],
    /// The responses to requests that succeed.
    pub answers: &'static [Answer],
    /// The errors that only this endpoint has. Those that follow from the router's table and from `inputs` are added
    /// by the document.
    pub errors: fn(&Config) -> Vec<Error>,
}

impl Operation {
    /// An operation without text, which constants take their remaining fields from.
    pub const EMPTY: Operation = Operation {
        id: "",
        tag: Tag::Service,
        summary: "",
        description: "",
        inputs: &[],
        examples: &[],
        headers: &[],
        answers: &[],
        errors: |_| Vec::new(),
    };
}

/// The groups of endpoints, in the order in which pages show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    Authentication,
    Account,
    Files,
    Users,
    Administration,
    Exports,
    TestOnly,
    Service,
}

/// A response to a request that succeeds: a status below 400, and its body.
#[derive(Clone, Copy)]
pub struct Answer {
    pub status: u16,
    pub description: &'static str,
    pub content: Content,
    /// Headers beyond those that every response has, each with its description.
    pub headers: &'static [(&'static str, &'static str)],
}

/// The body of a response.
#[derive(Clone, Copy)]
pub enum Content {
    Empty,
    /// JSON; the function adds the schema of its type to the document and returns a reference to it.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text of this media type.
    Text(&'static str),
    /// Bytes whose media type is known only from the response.
    Bytes,
}

/// A response with a JSON body of type `T`.
pub const fn json<T: JsonSchema>(status: u16, description: &'static str) -> Answer {
    let content = Content::Json(SchemaGenerator::subschema_for::<T>);
    Answer { status, description, content, headers: &[] }
}

/// A response with status 204, which has no body.
pub const NO_CONTENT: Answer = Answer {
    status: 204,
    description: "Done. The response has no body.",
    content: Content::Empty,
    headers: &[],
};

/// Who may use an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anyone,
    /// The bearer of a refresh token, which may come in the body.
    RefreshToken,
    /// A signed-in user.
    User,
    Admin,
    /// Whoever may export according to the settings.
    Export,
}

/// An endpoint of the router's table, as the document describes it.
pub struct DocumentedEndpoint {
    pub method: &'static str,
    /// The beginning of the path, such as `/api/v1`.
    pub prefix: &'static str,
    /// The rest of the path, with `{name}` in place of an id.
    pub template: &'static str,
    pub access: Access,
    pub limit: Option<Limit>,
    /// Whether a personal access token is accepted in place of an access token.
    pub accepts_personal_tokens: bool,
    pub operation: &'static Operation,
}

impl DocumentedEndpoint {
    fn path(&self) -> String {
        format!("{}{}", self.prefix, self.template)
    }

    /// The name of the id in the path, if there is one.
    fn id_name(&self) -> Option<&'static str> {
        self.template.split(['{', '}']).nth(1)
    }
}
