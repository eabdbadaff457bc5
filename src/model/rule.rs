//! The form of a rule for a value that clients send: how it is parsed, and the same rule as a JSON Schema, which the
//! OpenAPI document shows.

use serde_json::{Value, json};

use super::problems;
use crate::error::Problem;

/// A rule for a text. `T` is the value that a text which obeys the rule stands for.
pub struct Rule<T> {
    pub(super) parse: fn(&str) -> Result<T, Problem>,
    pub(super) schema: fn() -> Value,
}

impl<T> Rule<T> {
    /// Returns the value that `text` stands for, or what is wrong with it.
    pub fn parse(&self, text: &str) -> Result<T, Problem> {
        (self.parse)(text)
    }

    /// The rule as a JSON Schema (draft 2020-12), with an example that obeys it where that helps.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }
}

/// A rule for a list of texts.
pub struct ListRule {
    pub(super) max_items: Option<usize>,
    pub(super) item: Rule<String>,
}

impl ListRule {
    /// Returns the texts, or what is wrong with the list or the first bad text.
    pub fn parse(&self, texts: &[&str]) -> Result<Vec<String>, Problem> {
        match self.max_items {
            Some(max) if texts.len() > max => Err(problems::too_many_items(max)),
            _ => texts.iter().map(|text| self.item.parse(text)).collect(),
        }
    }

    /// The rule as a JSON Schema.
    pub fn schema(&self) -> Value {
        let mut schema = json!({ "type": "array", "items": self.item.schema() });
        if let Some(max) = self.max_items {
            schema["maxItems"] = max.into();
        }
        schema
    }
}
