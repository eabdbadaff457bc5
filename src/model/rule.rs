//! What a rule for values from clients consists of: a parser, and a JSON Schema that says the same for the OpenAPI
//! document. The rules themselves are in `rules`.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::problems::{self, problem, value_error};
use crate::error::Problem;

/// A rule for a text. `T` is the type that the text is parsed into.
pub struct Rule<T> {
    pub(super) parse: fn(&str) -> Result<T, Problem>,
    pub(super) schema: fn() -> Value,
}

impl<T> Rule<T> {
    /// Parses the text. The error says which part of the rule it breaks.
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
    /// Parses each text. The error is that of the list, if it has too many items, or else of the first bad text.
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

/// Accepts a text whose number of characters is `allowed` and that has no NUL, which PostgreSQL cannot store.
pub fn check_length(text: &str, allowed: RangeInclusive<usize>) -> Result<&str, Problem> {
    let (min, max, count) = (*allowed.start(), *allowed.end(), text.chars().count());
    if text.contains('\0') {
        Err(value_error("Must not contain NUL characters"))
    } else if count < min {
        Err(problem("string_too_short", format!("Must be at least {min} characters long")))
    } else if count > max {
        Err(problem("string_too_long", format!("Must be at most {max} characters long")))
    } else {
        Ok(text)
    }
}
