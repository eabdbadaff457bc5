//! Typed parameters of a request, from its body or its query. Every parameter that breaks a rule is
//! noted, and all of them are answered together.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::{Error, FieldError, Place, Problem};
use crate::model::rules;

/// The named values of one part of a request, and the faults found in them so far.
pub struct Params {
    place: Place,
    values: Map<String, Value>,
    faults: Vec<FieldError>,
}

impl Params {
    /// No parameters. Parts of a multipart body are added with [`Params::set`].
    pub fn new(place: Place) -> Params {
        Params { place, values: Map::new(), faults: Vec::new() }
    }

    /// The fields of a JSON object. An empty body is an object without fields.
    pub fn from_json(text: &str) -> Result<Params, Error> {
        if text.trim().is_empty() {
            return Ok(Params::new(Place::Body));
        }
        // The parser refuses arrays and objects nested deeper than 127, so its recursion is bounded.
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Params { values, ..Params::new(Place::Body) }),
            Ok(_) => Err(FieldError::of_body(rules::not_an_object())),
            Err(_) => Err(FieldError::of_body(rules::not_json())),
        }
    }

    /// The pairs of `application/x-www-form-urlencoded` text: an HTML form in the body, or a query. Of
    /// several pairs with one name the last counts.
    pub fn from_urlencoded(place: Place, text: &str) -> Params {
        let pairs = form_urlencoded::parse(text.as_bytes());
        let values = pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into()));
        Params { values: values.collect(), ..Params::new(place) }
    }

    /// Lets `read` take the parameters it wants. Returns what it made of them, or all faults it met.
    pub fn read<T>(mut self, read: impl FnOnce(&mut Params) -> T) -> Result<T, Error> {
        let value = read(&mut self);
        self.finish(Some(value))
    }

    /// `value`, or the faults noted so far. Where it is missing one of them says why.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Error> {
        value.filter(|_| self.faults.is_empty()).ok_or(Error::Invalid(self.faults))
    }

    /// Adds a text parameter, unless one of that name is there already.
    pub fn set(&mut self, name: &str, text: String) {
        self.values.entry(name).or_insert(text.into());
    }

    /// Notes that a parameter is bad.
    pub fn fault(&mut self, name: &'static str, problem: Problem) {
        self.faults.push(FieldError { place: self.place, field: Some(name), problem });
    }

    /// Reads `other` under the name `name`, where `name` itself is absent.
    pub fn alias(&mut self, name: &'static str, other: &str) {
        if !self.has(name)
            && let Some(value) = self.values.remove(other)
        {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// Whether the parameter is there. `null` is the same as absent.
    pub fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    /// A text that must be there and obey `rule`. After a fault this is a placeholder, which
    /// [`Params::read`] drops.
    pub fn required<T: Default>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> T {
        if !self.has(name) {
            self.fault(name, rules::missing());
        }
        self.optional(name, rule).unwrap_or_default()
    }

    /// A text that obeys `rule` where it is there. An empty text is not absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let outcome = match self.values.get(name)? {
            Value::Null => return None,
            Value::String(text) => rule(text),
            _ => Err(rules::not_a_string()),
        };
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }

    /// A word of a closed list, as the value that stands beside it.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.optional(name, |text| rules::choice(text, choices))
    }

    /// A whole number of the range, or `default` where it is absent.
    pub fn integer(
        &mut self,
        name: &'static str,
        default: i64,
        allowed: RangeInclusive<i64>,
    ) -> i64 {
        self.optional(name, |text| rules::integer(text, &allowed)).unwrap_or(default)
    }

    /// A boolean: in a body a JSON one, in a query a word.
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let outcome = match self.values.get(name)? {
            Value::Null => return None,
            Value::Bool(value) => Ok(*value),
            Value::String(text) if self.place == Place::Query => rules::boolean(text),
            _ => Err(rules::not_a_boolean()),
        };
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }

    /// A list of texts that obeys `rule`.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&[&str]) -> Result<T, Problem>,
    ) -> Option<T> {
        let words: Option<Vec<&str>> = match self.values.get(name)? {
            Value::Null => return None,
            Value::Array(items) => items.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let outcome = words.ok_or_else(rules::not_a_list).and_then(|words| rule(&words));
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Params {
        Params::from_urlencoded(Place::Query, text)
    }

    #[test]
    fn all_faults_of_a_query_are_answered_together() {
        let outcome = query("page=0&size=x&order=up&active=maybe&q=%00").read(|params| {
            params.integer("page", 1, 1..=i64::MAX);
            params.integer("size", 20, 1..=100);
            params.choice("order", &[("asc", 1), ("desc", 2)]);
            params.boolean("active");
            params.optional("q", rules::non_empty);
        });
        let Err(Error::Invalid(faults)) = outcome else {
            panic!("not refused");
        };
        let found: Vec<_> = faults
            .iter()
            .map(|f| (f.field.unwrap_or(""), f.problem.kind, &*f.problem.message))
            .collect();
        assert_eq!(
            found,
            [
                ("page", "value_error", "Must be at least 1"),
                ("size", "int_parsing", "Must be an integer"),
                ("order", "enum", "Must be one of: asc, desc"),
                ("active", "bool_type", "Must be a boolean"),
                ("q", "value_error", "Must not contain NUL characters"),
            ]
        );
    }

    #[test]
    fn numbers_are_whole_and_fit_64_bits() -> Result<(), Error> {
        let read = |text: &str| query(text).read(|params| params.integer("n", 7, 1..=i64::MAX));
        for (text, n) in [("", 7), ("n=1", 1), ("n=9223372036854775807", i64::MAX), ("n=1&n=2", 2)]
        {
            assert_eq!(read(text)?, n, "{text}");
        }
        for text in ["n=", "n=0", "n=-1", "n=1.0", "n=1e3", "n=9223372036854775808", "n=+", "n=%20"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_word_is_a_boolean_in_a_query_only() -> Result<(), Error> {
        let flag = |params: &mut Params| params.boolean("flag");
        assert_eq!(query("flag=TRUE").read(flag)?, Some(true));
        assert_eq!(Params::from_json(r#"{"flag": false}"#)?.read(flag)?, Some(false));
        assert_eq!(Params::from_json(r#"{"flag": null}"#)?.read(flag)?, None);
        assert!(Params::from_json(r#"{"flag": "true"}"#)?.read(flag).is_err());
        Ok(())
    }
}
