//! Why a browser has proven nobody. Each refusal has a cause, in words for the operator, who finds it in the log.

use crate::model::rules;

/// Longest part of a cause that others have sent, in characters.
const MAX_WORDS: usize = 100;

/// A refusal. There is none without a cause.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The word in the address of the page, and the label of the metric: `denied` by the provider or the person,
    /// `expired` or used already, `unavailable` while the provider cannot be used, `invalid` if it proves nothing.
    pub reason: &'static str,
    /// What is wrong: one of the few sentences that this program has for that.
    pub cause: String,
    /// What was found, and what was expected. It holds no token, and nothing that was sent but by [`words`].
    pub detail: String,
    /// Whether other keys of the provider may help.
    pub is_of_key: bool,
}

impl Fault {
    pub fn new(reason: &'static str, cause: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault { reason, cause: cause.into(), detail: detail.into(), is_of_key: false }
    }

    pub fn invalid(cause: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault::new("invalid", cause, detail)
    }

    pub fn unavailable(cause: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault::new("unavailable", cause, detail)
    }
}

/// What others have sent, as a few words that may stand in a log: visible characters in quotation marks.
pub fn words(sent: &str) -> String {
    let cleaned = rules::user_agent(sent).unwrap_or_default();
    format!("{:?}", cleaned.chars().take(MAX_WORDS).collect::<String>())
}
