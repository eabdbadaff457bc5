//! Reading typed parameters from a query, noting every fault on the way.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::error::{Error, FieldError, Place, Problem};
use crate::model::rules;

/// The parameters of a query; of several with one name the last counts.
pub struct Query {
    values: HashMap<String, String>,
    faults: Vec<FieldError>,
}

impl Query {
    /// Parses the text after `?`, hands the parameters to `read` and gives what it made of them, or
    /// every fault it met.
    pub fn read<T>(text: &str, read: impl FnOnce(&mut Query) -> T) -> Result<T, Error> {
        let mut query = Query {
            values: form_urlencoded::parse(text.as_bytes()).into_owned().collect(),
            faults: Vec::new(),
        };
        let outcome = read(&mut query);
        if query.faults.is_empty() { Ok(outcome) } else { Err(Error::Invalid(query.faults)) }
    }

    /// A parameter that may be absent. An empty one is not absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        rule: impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let outcome = rule(self.values.get(name)?);
        outcome.map_err(|problem| self.fault(name, problem)).ok()
    }

    /// A whole number of that range; `default` where it is absent.
    pub fn integer(
        &mut self,
        name: &'static str,
        default: i64,
        allowed: RangeInclusive<i64>,
    ) -> i64 {
        self.optional(name, |text| rules::integer(text, &allowed)).unwrap_or(default)
    }

    /// A parameter of a closed list.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.optional(name, |text| rules::choice(text, choices))
    }

    fn fault(&mut self, field: &'static str, problem: Problem) {
        self.faults.push(FieldError { place: Place::Query, field: Some(field), problem });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_a_query_are_told_together() {
        let outcome = Query::read("page=0&size=x&order=up&active=maybe&q=%00", |q| {
            q.integer("page", 1, 1..=i64::MAX);
            q.integer("size", 20, 1..=100);
            q.choice("order", &[("asc", 1), ("desc", 2)]);
            q.optional("active", rules::boolean);
            q.optional("q", rules::given);
        });
        let Err(Error::Invalid(faults)) = outcome else {
            panic!("not refused");
        };
        let told: Vec<_> = faults
            .iter()
            .map(|f| (f.field.unwrap_or(""), f.problem.kind, &*f.problem.message))
            .collect();
        assert_eq!(
            told,
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
        let read = |text: &str| Query::read(text, |q| q.integer("n", 7, 1..=i64::MAX));
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
}
