//! What a client may send as parameters: anything. They are what it has written, and within their rules.

#![cfg(test)]

use serde_json::Value;

use super::params::Params;
use crate::error::{Error, FieldLocation};
#[cfg(feature = "extras")]
use crate::model::change::ChangeCursor;
use crate::model::filename::{filename, uploaded_filename};
#[cfg(feature = "extras")]
use crate::model::position::TimePosition;
use crate::model::rules;
use crate::model::text::email_key;
use crate::model::timestamp::Timestamp;

const NAMES: [&str; 5] = ["a", "n", "page", "size", "é"];
/// How booleans are spelt: true and false in turn.
const BOOLEANS: [&str; 12] =
    ["true", "false", "1", "0", "yes", "no", "on", "off", "y", "n", "t", "f"];

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
    let key = email_key(text);
    assert_eq!(email_key(&key), key, "{text:?}");
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&time.text()).map(Timestamp::text), Some(time.text()));
    }
    #[cfg(feature = "extras")]
    if let Some(position) = TimePosition::parse(text) {
        assert_eq!(TimePosition::parse(&position.to_string()), Some(position));
    }
    #[cfg(feature = "extras")]
    if let Some(cursor) = ChangeCursor::parse(text) {
        assert_eq!(ChangeCursor::parse(&cursor.to_string()), Some(cursor));
    }
}

/// The whole number that a text means: digits, after which zeros may follow a point, and blanks around them.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    let (digits, zeros) = text.split_once('.').unwrap_or((text, "0"));
    digits.parse().ok().filter(|_| !zeros.is_empty() && zeros.chars().all(|c| c == '0'))
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

/// Reads what was sent as `a` as a value of each type. What is refused is `None`.
fn check_value(params: impl Fn() -> Params, sent: Option<&Value>) {
    const WORDS: [(&str, u8); 2] = [("asc", 1), ("desc", 2)];
    let value = sent.filter(|value| !value.is_null());
    let choice = |v: &Value| WORDS.iter().find(|(word, _)| v == word).map(|(_, n)| Some(*n));
    let found = params().read(|params| params.choice("a", &WORDS)).ok();
    assert_eq!(found, value.map_or(Some(None), choice));
    let word = |text: &str| {
        let place = BOOLEANS.iter().position(|word| word.eq_ignore_ascii_case(text));
        place.map(|place| place % 2 == 0)
    };
    let boolean = |v: &Value| match (v.as_bool(), v.as_f64(), v.as_str()) {
        (Some(flag), ..) => Some(flag),
        (_, Some(number), _) => {
            [(0.0, false), (1.0, true)].iter().find(|it| it.0 == number).map(|it| it.1)
        }
        (.., text) => word(text?),
    };
    let found = params().read(|params| params.boolean("a")).ok();
    assert_eq!(found, value.map_or(Some(None), |v| boolean(v).map(Some)));
    let filter = |v: &Value| match v.as_str()? {
        "" => Some(None),
        text => word(text).map(Some),
    };
    let found = params().read(|params| params.filter("a", rules::boolean)).ok();
    assert_eq!(found, value.map_or(Some(None), filter));
    let is_word = |text: &String| (1..=64).contains(&text.chars().count()) && !text.contains('\0');
    let list = |v: &Value| serde_json::from_value::<Vec<String>>(v.clone()).ok();
    let list = |v| list(v).filter(|l| l.len() <= 100 && l.iter().all(is_word)).map(Some);
    let found = params().read(|params| params.list("a", rules::permissions)).ok();
    assert_eq!(found, value.map_or(Some(None), list));
    let is_whole = |float: &f64| float.fract() == 0.0 && *float <= 2_f64.powi(53);
    let quota = |v: &Value| match v.as_str() {
        Some(text) => whole(text),
        None => v.as_i64().or(v.as_f64().filter(is_whole).map(|float| float as i64)),
    };
    let quota = |v| quota(v).filter(|number| *number >= 0).map(|number| Some(Some(number)));
    let found = params().read(|params| params.quota("a")).ok();
    assert_eq!(found, value.map_or(Some(sent.map(|_| None)), quota));
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
            let query = || Params::from_urlencoded(FieldLocation::Query, &text);
            check_value(query, last_value(&text, "a").map(Value::from).as_ref());
        }
        let number = |text: &str| text.trim().parse().ok();
        check_numbers(query, |name| number(&last_value(&text, name)?));
        if let Ok(body) = Params::from_json(&text) {
            let json: Value = serde_json::from_str(&text).unwrap_or_default();
            for name in NAMES {
                assert_eq!(body.sent_text(name), json[name].as_str(), "{name}");
            }
            check_numbers(body, |name| {
                json[name].as_f64().or_else(|| number(json[name].as_str()?))
            });
            let body = || Params::from_json(&text).unwrap_or(Params::new(FieldLocation::Body));
            check_value(body, json.get("a"));
        }
    });
}
