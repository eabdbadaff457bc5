//! Typed parameters from the body or the query of a request. Every parameter that breaks a rule is noted, so that one
//! response can report all of them.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value};

use crate::error::{Error, FieldError, FieldLocation, Problem};
use crate::model::page::PageRequest;
use crate::model::{problems, rules};

/// Most errors that are noted of one query or body, so that what a client sends bounds no response.
const MAX_ERRORS: usize = 16;

/// The named values in the body or the query of a request, and the errors found in them so far.
pub struct Params {
    location: FieldLocation,
    values: Map<String, Value>,
    errors: Vec<FieldError>,
}

/// The size of a page in a request that gives none.
const DEFAULT_PAGE_SIZE: i64 = 20;

impl Params {
    /// Makes an empty set of parameters. The fields of a multipart form are added with [`Params::set`].
    pub fn new(location: FieldLocation) -> Params {
        Params { location, values: Map::new(), errors: Vec::new() }
    }

    /// Parses a JSON object, whose fields are the parameters. An empty body counts as an object without fields.
    pub fn from_json(text: &str) -> Result<Params, Error> {
        if text.trim().is_empty() {
            return Ok(Params::new(FieldLocation::Body));
        }
        // The parser refuses values that are nested deeper than 127, so its recursion is bounded.
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Params { values, ..Params::new(FieldLocation::Body) }),
            Ok(_) => Err(FieldError::of_body(problems::NOT_AN_OBJECT)),
            Err(_) => Err(FieldError::of_body(problems::NOT_JSON)),
        }
    }

    /// Parses `application/x-www-form-urlencoded` text: a query, or a body that is an HTML form. Of several pairs with
    /// the same name the last one counts. Text that is not UTF-8 is an error of the query or body as a whole.
    pub fn from_urlencoded(location: FieldLocation, text: &str) -> Params {
        // The parser replaces what is not UTF-8. All pairs can be checked at once, because the characters between them
        // are ASCII.
        if percent_encoding::percent_decode_str(text).decode_utf8().is_err() {
            let error = FieldError { location, field: None, problem: problems::NOT_UTF8 };
            return Params { errors: vec![error], ..Params::new(location) };
        }
        let pairs = form_urlencoded::parse(text.as_bytes());
        let values = pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into()));
        Params { values: values.collect(), ..Params::new(location) }
    }

    /// Lets `read` take the parameters it wants. Returns its result, or all errors that were noted meanwhile. If the
    /// query or body as a whole has an error, `read` is not called.
    pub fn read<T>(mut self, read: impl FnOnce(&mut Params) -> T) -> Result<T, Error> {
        if !self.errors.is_empty() {
            return Err(Error::Invalid(self.errors));
        }
        let value = read(&mut self);
        self.finish(Some(value))
    }

    /// Returns `value`, or the errors if any were noted. If `value` is `None`, at least one must have been noted.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Error> {
        value.filter(|_| self.errors.is_empty()).ok_or(Error::Invalid(self.errors))
    }

    /// Adds a text parameter, in place of an earlier one with this name.
    pub fn set(&mut self, name: &str, text: String) {
        self.values.insert(name.to_owned(), text.into());
    }

    /// Notes that a parameter breaks a rule, unless [`MAX_ERRORS`] were noted.
    pub fn add_error(&mut self, name: &'static str, problem: Problem) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError { location: self.location, field: Some(name), problem });
        }
    }

    /// Accepts the parameter `other` as another name of `name`, if `name` itself is absent.
    pub fn alias(&mut self, name: &'static str, other: &str) {
        if !self.has(name)
            && let Some(value) = self.values.remove(other)
        {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// The text of a parameter as the client sent it. `None` if it is absent or no text.
    pub fn sent_text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Whether the parameter is present. A JSON `null` counts as absent.
    pub fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    /// Reads a text that must be present and obey `rule`. After an error the result is a default value, which
    /// [`Params::read`] never returns.
    pub fn required<T: Default>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> T {
        if !self.has(name) {
            self.add_error(name, problems::MISSING);
        }
        self.optional(name, rule).unwrap_or_default()
    }

    /// Reads a text that must obey `rule` if it is present. An empty text is present.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        self.value(name, |value| rule(value.as_str().ok_or(problems::NOT_A_STRING)?))
    }

    /// Reads a value of any type that `parse` accepts, if it is present.
    fn value<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, Problem>,
    ) -> Option<T> {
        let value = self.values.get(name).filter(|value| !value.is_null())?;
        parse(value).map_err(|problem| self.add_error(name, problem)).ok()
    }

    /// Reads a quota, a number from 0 to 2^63 - 1, if it is sent. `null` is sent, too: no quota, so `Some(None)`.
    pub fn quota(&mut self, name: &'static str) -> Option<Option<i64>> {
        let has_quota = !self.values.get(name)?.is_null();
        Some(has_quota.then(|| self.integer(name, 0, 0..=i64::MAX)))
    }

    /// Reads a filter of a list, which must obey `rule`. An empty text is no filter, because forms send the fields that
    /// were left empty, too.
    pub fn filter<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        match self.sent_text(name) {
            Some("") => None,
            _ => self.optional(name, rule),
        }
    }

    /// Reads a word of a closed list. Returns the value that is paired with it.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.optional(name, |text| rules::choice(text, choices))
    }

    /// Reads a whole number that must lie in the range: a JSON number, or decimal digits in a text. Returns `default`
    /// if it is absent. `5.0` is a whole number, because JSON has only one type of numbers, and so have languages of
    /// clients; forms and spreadsheets make texts of all values.
    pub fn integer(
        &mut self,
        name: &'static str,
        default: i64,
        allowed: RangeInclusive<i64>,
    ) -> i64 {
        let number = self.value(name, |value| match value {
            Value::Number(number) => {
                rules::in_range(whole_number(number).ok_or(problems::NOT_AN_INTEGER)?, &allowed)
            }
            Value::String(text) => rules::integer(text, &allowed),
            _ => Err(problems::NOT_AN_INTEGER),
        });
        number.unwrap_or(default)
    }

    /// Reads which page is asked for, either as `page` and `size` or as `limit` and `offset`. Giving both is a field
    /// error (422), and so is a `page` or `size` out of range. A `limit` or `offset` out of range is the inner error
    /// (400).
    pub fn page(&mut self) -> Result<PageRequest, Error> {
        let is_by_page = self.has("page") || self.has("size");
        let page = self.integer("page", 1, 1..=i64::MAX);
        let size = self.integer("size", DEFAULT_PAGE_SIZE, 1..=PageRequest::MAX_SIZE);
        let limit = self.optional("limit", rules::any_integer);
        let offset = self.optional("offset", rules::any_integer);
        if limit.is_none() && offset.is_none() {
            return Ok(PageRequest::by_page(page, size));
        }
        if is_by_page {
            for (name, value) in [("limit", limit), ("offset", offset)] {
                if value.is_some() {
                    self.add_error(name, problems::not_beside("page or size"));
                }
            }
        }
        PageRequest::by_offset(limit.unwrap_or(DEFAULT_PAGE_SIZE), offset.unwrap_or(0))
    }

    /// Reads `sort_order`, which all sorted lists take. Descending is the default.
    pub fn is_descending(&mut self) -> bool {
        self.choice("sort_order", &[("asc", false), ("desc", true)]).unwrap_or(true)
    }

    /// Reads a boolean of a JSON body, where it may also be 0, 1 or a text as in a query.
    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.value(name, |value| match value {
            Value::Bool(flag) => Ok(*flag),
            Value::String(text) => rules::boolean(text),
            Value::Number(number) => match whole_number(number) {
                Some(bit @ 0..=1) => Ok(bit == 1),
                _ => Err(problems::NOT_A_BOOLEAN),
            },
            _ => Err(problems::NOT_A_BOOLEAN),
        })
    }

    /// Reads a JSON object, if it is present, that has texts with these names.
    #[cfg(feature = "oidc")]
    pub fn texts<const N: usize>(
        &mut self,
        name: &'static str,
        members: [&str; N],
    ) -> Option<[String; N]> {
        self.value(name, |value| {
            let texts = members.map(|member| value.get(member).and_then(Value::as_str));
            let is_complete = texts.iter().all(Option::is_some);
            is_complete
                .then(|| texts.map(|text| text.unwrap_or_default().to_owned()))
                .ok_or(if value.is_object() { problems::MISSING } else { problems::NOT_AN_OBJECT })
        })
    }

    /// Reads a JSON array of strings that must obey `rule` if it is present.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        rule: impl FnOnce(&[&str]) -> Result<Vec<T>, Problem>,
    ) -> Option<Vec<T>> {
        self.value(name, |value| {
            let items = value.as_array().ok_or(problems::NOT_A_LIST)?;
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            rule(&texts.ok_or(problems::NOT_A_LIST)?)
        })
    }
}

/// The value of a JSON number that is whole and fits 64 bits. One with a fraction or an exponent must also be one of
/// the numbers up to 2^53 that floating point represents exactly.
fn whole_number(number: &Number) -> Option<i64> {
    const MAX_EXACT: f64 = (1_i64 << f64::MANTISSA_DIGITS) as f64;
    let is_whole = |float: &f64| float.fract() == 0.0 && float.abs() <= MAX_EXACT;
    number.as_i64().or_else(|| number.as_f64().filter(is_whole).map(|float| float as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Params {
        Params::from_urlencoded(FieldLocation::Query, text)
    }

    #[test]
    fn all_errors_of_a_query_are_reported_together() {
        let outcome = query("page=0&size=x&order=up&active=maybe&q=%00").read(|params| {
            params.integer("page", 1, 1..=i64::MAX);
            params.integer("size", 20, 1..=100);
            params.choice("order", &[("asc", 1), ("desc", 2)]);
            params.filter("active", rules::boolean);
            params.filter("q", rules::search);
        });
        let Err(Error::Invalid(errors)) = outcome else {
            panic!("not refused");
        };
        let found: Vec<_> = errors
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
    fn numbers_in_a_body_are_whole_however_they_are_written() -> Result<(), Error> {
        let read =
            |text: &str| Params::from_json(text)?.read(|params| params.integer("n", 7, -9..=365));
        for (text, n) in [
            ("1", 1),
            ("-9", -9),
            ("30.0", 30),
            ("3e1", 30),
            ("-0.0", 0),
            ("null", 7),
            ("\"60\"", 60),
            ("\" 60 \"", 60),
            ("\"60.0\"", 60),
        ] {
            assert_eq!(read(&format!(r#"{{"n": {text}}}"#))?, n, "{text}");
        }
        for (text, kind) in [
            ("1.5", "int_parsing"),
            ("366", "value_error"),
            ("18446744073709551615", "int_parsing"),
            ("1e300", "int_parsing"),
            ("\"1.5\"", "int_parsing"),
            ("\"366\"", "value_error"),
            ("\"\"", "int_parsing"),
            ("true", "int_parsing"),
        ] {
            let Err(Error::Invalid(errors)) = read(&format!(r#"{{"n": {text}}}"#)) else {
                panic!("{text} is not refused");
            };
            assert_eq!(errors[0].problem.kind, kind, "{text}");
        }
        Ok(())
    }

    #[test]
    fn numbers_are_whole_and_fit_64_bits() -> Result<(), Error> {
        let read = |text: &str| query(text).read(|params| params.integer("n", 7, 1..=i64::MAX));
        for (text, n) in [
            ("", 7),
            ("n=1", 1),
            ("n=9223372036854775807", i64::MAX),
            ("n=1&n=2", 2),
            ("n=+20", 20),
            ("n=20.0", 20),
        ] {
            assert_eq!(read(text)?, n, "{text}");
        }
        for text in
            ["n=", "n=0", "n=-1", "n=1.5", "n=1.", "n=.0", "n=1e3", "n=9223372036854775808", "n=+"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn numbers_of_a_body_fit_64_bits() -> Result<(), Error> {
        let read = |text: &str| {
            Params::from_json(text)?.read(|params| params.integer("n", 7, 1..=i64::MAX))
        };
        for (text, n) in
            [("{}", 7), (r#"{"n": null}"#, 7), (r#"{"n": 9223372036854775807}"#, i64::MAX)]
        {
            assert_eq!(read(text)?, n, "{text}");
        }
        for value in ["0", "-1", "1.5", "1e16", "9223372036854775808", "\"x\"", "true", "[1]"] {
            assert!(read(&format!(r#"{{"n": {value}}}"#)).is_err(), "{value}");
        }
        Ok(())
    }

    #[test]
    fn an_empty_filter_is_none() -> Result<(), Error> {
        let filter = |params: &mut Params| params.filter("flag", rules::boolean);
        assert_eq!(query("").read(filter)?, None);
        assert_eq!(query("flag=").read(filter)?, None);
        assert_eq!(query("flag=0&flag=TRUE").read(filter)?, Some(true));
        assert!(query("flag=%20").read(filter).is_err());
        Ok(())
    }

    #[test]
    fn a_boolean_of_a_body_is_one_however_clients_write_it() -> Result<(), Error> {
        let read = |value: &str| {
            let body = Params::from_json(&format!(r#"{{"flag": {value}}}"#))?;
            body.read(|params| params.boolean("flag"))
        };
        for (value, flag) in [
            ("false", Some(false)),
            ("null", None),
            ("\"true\"", Some(true)),
            ("\"Off\"", Some(false)),
            ("1", Some(true)),
            ("0.0", Some(false)),
        ] {
            assert_eq!(read(value)?, flag, "{value}");
        }
        for value in ["2", "-1", "0.5", "\"\"", "\"maybe\"", "[]"] {
            assert!(read(value).is_err(), "{value}");
        }
        Ok(())
    }
}
