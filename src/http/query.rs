//! Query parameters.

use std::collections::HashMap;

use crate::error::{Error, FieldError, Place, Problem};

/// The parameters of a query; of several with one name the last counts.
pub struct Query {
    values: HashMap<String, String>,
}

impl Query {
    /// Parses the text after `?`.
    pub fn parse(text: &str) -> Query {
        Query {
            values: form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        }
    }

    /// A parameter of a closed list; `default` where it is absent.
    pub fn one_of<T: Copy>(
        &self,
        name: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, Error> {
        let Some(text) = self.values.get(name) else {
            return Ok(default);
        };
        choices
            .iter()
            .find(|(word, _)| word == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                refuse(name, crate::model::fields::one_of(&words.join(", ")))
            })
    }
}

fn refuse(name: &'static str, problem: Problem) -> Error {
    Error::Invalid(vec![FieldError {
        place: Place::Query,
        field: Some(name),
        problem,
    }])
}
