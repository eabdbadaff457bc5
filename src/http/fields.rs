//! Reading typed fields from a body, noting every fault on the way.

use serde_json::{Map, Value};

use crate::error::{Error, FieldError, Place, Problem};
use crate::model::rules;

/// A rule: the text of a field to its value, or what is wrong with it.
pub type Rule<T> = fn(&str) -> Result<T, Problem>;

/// The fields of a body.
pub struct Fields {
    values: Map<String, Value>,
    faults: Vec<FieldError>,
}

impl Fields {
    /// Hands the fields to `read` and gives what it made of them, or every fault it met.
    pub fn read<T>(
        values: Map<String, Value>,
        read: impl FnOnce(&mut Fields) -> T,
    ) -> Result<T, Error> {
        let mut fields = Fields { values, faults: Vec::new() };
        let outcome = read(&mut fields);
        if fields.faults.is_empty() { Ok(outcome) } else { Err(Error::Invalid(fields.faults)) }
    }

    /// Accepts `other` in place of `name`, where `name` is absent.
    pub fn alias(&mut self, name: &'static str, other: &str) {
        if !self.has(name)
            && let Some(value) = self.values.remove(other)
        {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// Whether the field is there; `null` is the same as absent.
    pub fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    /// A field that must be there. After a fault the value is a placeholder that [`Fields::read`]
    /// drops.
    pub fn required<T: Default>(&mut self, name: &'static str, rule: Rule<T>) -> T {
        if !self.has(name) {
            self.fault(name, rules::missing());
        }
        self.optional(name, rule).unwrap_or_default()
    }

    /// A field that may be absent or `null`.
    pub fn optional<T>(&mut self, name: &'static str, rule: Rule<T>) -> Option<T> {
        let outcome = match self.values.get(name)? {
            Value::Null => return None,
            Value::String(text) => rule(text),
            _ => Err(rules::not_a_string()),
        };
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }

    /// A boolean that may be absent or `null`.
    pub fn optional_boolean(&mut self, name: &'static str) -> Option<bool> {
        match self.values.get(name)? {
            Value::Null => None,
            Value::Bool(value) => Some(*value),
            _ => {
                self.fault(name, rules::not_a_boolean());
                None
            }
        }
    }

    /// A list of strings that may be absent or `null`.
    pub fn optional_list<T>(
        &mut self,
        name: &'static str,
        rule: fn(&[&str]) -> Result<T, Problem>,
    ) -> Option<T> {
        let words: Option<Vec<&str>> = match self.values.get(name)? {
            Value::Null => return None,
            Value::Array(items) => items.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let outcome = words.ok_or_else(rules::not_a_list).and_then(|words| rule(&words));
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }

    fn fault(&mut self, field: &'static str, problem: Problem) {
        self.faults.push(FieldError { place: Place::Body, field: Some(field), problem });
    }
}
