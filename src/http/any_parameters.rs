//! What a client may send as parameters: anything. They are what it has written, and within their rules.

#![cfg(test)]

use super::params::Params;
use crate::error::{Error, FieldLocation};
use crate::model::audit::AuditPosition;
use crate::model::change::ChangeCursor;
use crate::model::filename::{filename, uploaded_filename};
use crate::model::rules;
use crate::model::timestamp::Timestamp;

const NAMES: [&str; 5] = ["a", "n", "page", "size", "é"];

/// The last value of a name in a query, by the rules of the URL Standard for `application/x-www-form-urlencoded`.
fn last_value<'a>(query: &'a str, wanted: &str) -> Option<String> {
    let decode = |part: &'a str| {
        let spaced = part.replace('+', " ");
        percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .filter(|pair| *pair != ("", ""))
        .rfind(|pair| decode(pair.0) == wanted)
        .map(|p| decode(p.1))
}

/// Whatever a rule makes of a text, it accepts, and leaves as it is.
fn check_rules(text: &str) {
    for rule in [
        rules::username,
        rules::email,
        rules::name,
        rules::token_name,
        rules::description,
        rules::sha256,
        rules::password,
        filename,
        uploaded_filename,
    ] {
        if let Ok(value) = rule(text) {
            assert_eq!(rule(&value).as_deref(), Ok(&*value), "{text:?}");
        }
    }
    if let Ok(name) = uploaded_filename(text) {
        assert_eq!(filename(&name).as_deref(), Ok(&*name), "{text:?}");
    }
    if let Some(address) = rules::email_in_ascii(text) {
        assert_eq!(rules::email_in_ascii(&address), None, "{text:?}");
    }
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&time.text()).map(Timestamp::text), Some(time.text()));
    }
    if let Some(position) = AuditPosition::parse(text) {
        assert_eq!(AuditPosition::parse(&position.to_string()), Some(position));
    }
    if let Some(cursor) = ChangeCursor::parse(text) {
        assert_eq!(ChangeCursor::parse(&cursor.to_string()), Some(cursor));
    }
}

/// Reads numbers, of which `written` is the text of one.
fn check_numbers(params: Params, written: impl Fn(&str) -> Option<f64>) {
    let outcome = params.read(|params| {
        let page = params.page();
        let number = params.integer("n", 7, -9..=i64::MAX);
        (page, number)
    });
    match outcome {
        Ok((page, number)) => {
            assert!(number >= -9 && written("n").unwrap_or(7.0) == number as f64);
            let Ok(page) = page else { return };
            assert!(page.page >= 1 && (1..=100).contains(&page.size) && page.offset >= 0);
        }
        Err(Error::Invalid(errors)) => assert!((1..=16).contains(&errors.len())),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn fuzz_parameters() {
    fuzz::check("parameters", |input| {
        let text = String::from_utf8_lossy(input);
        check_rules(&text);
        let query = Params::from_urlencoded(FieldLocation::Query, &text);
        if percent_encoding::percent_decode_str(&text).decode_utf8().is_ok() {
            for name in NAMES {
                assert_eq!(query.sent_text(name), last_value(&text, name).as_deref(), "{name}");
            }
        }
        check_numbers(query, |name| last_value(&text, name)?.parse().ok());
        if let Ok(body) = Params::from_json(&text) {
            let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            for name in NAMES {
                assert_eq!(body.sent_text(name), json[name].as_str(), "{name}");
            }
            check_numbers(body, |name| json[name].as_f64());
        }
    });
}
