//! Reads settings from environment variables, one function for each kind of value.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::mail::Smtp;
use super::values::{Secret, comma_separated, size};
use super::words::word;

/// Names without our prefix that hosting platforms and other programs use for the same thing. Each one is read if
/// the setting's own name is not set.
const FALLBACK_NAMES: [(&str, &str); 4] = [
    ("CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "ACCESS_TOKEN_EXPIRE_MINUTES"),
    ("CLOAKROOM_DATABASE_URL", "DATABASE_URL"),
    ("CLOAKROOM_LOG", "RUST_LOG"),
    ("CLOAKROOM_MAX_UPLOAD_SIZE", "MAX_UPLOAD_SIZE"),
];

/// Variables with our prefix that commands and scripts use. They are not settings, but must not be reported as
/// misspelt ones either.
const OTHER_VARIABLES: [&str; 6] = [
    "CLOAKROOM_ADMIN_PASSWORD",
    "CLOAKROOM_ALLOCATOR_SET",
    "CLOAKROOM_ENV_FILES_READ_BY",
    "CLOAKROOM_PG_OPTIONS",
    "CLOAKROOM_TEST_DATABASE_URL",
    "CLOAKROOM_USER_PASSWORD",
];

/// The setting of the database's connection string, and what it may hold.
pub const DATABASE_URL: &str = "CLOAKROOM_DATABASE_URL";
pub const DATABASE_URLS: &str = "a PostgreSQL URL, such as postgres://user:password@host/database, or key/value text, \
                                 such as host=localhost dbname=cloakroom";

/// Looks settings up, and collects their effective values and everything that is wrong with them.
///
/// An unset or empty variable gives the default. A value that is refused is noted in `faults` and gives the default
/// as well, so that reading goes on and finds every fault. Blanks around a value are ignored.
pub struct SettingsReader {
    variables: HashMap<String, String>,
    /// Each setting read so far.
    pub shown: Vec<ShownSetting>,
    /// The name of each setting that was refused, and a line about it: the variable, its value (unless that is secret)
    /// and the allowed values.
    pub faults: Vec<(&'static str, String)>,
}

/// A setting for display.
pub struct ShownSetting {
    pub name: &'static str,
    /// The effective value, secrets masked.
    pub value: String,
    /// The variable that it comes from, which may be one of the fallback names; `None` if it has its default.
    pub variable: Option<&'static str>,
}

/// A variable that is named like a setting but is none, so it is probably misspelt.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    pub name: String,
    /// The most similar setting.
    pub nearest: &'static str,
}

impl UnknownVariable {
    /// A sentence for the operator.
    pub fn warning(&self) -> String {
        format!("{} is no setting; did you mean {}?", self.name, self.nearest)
    }

    /// Adds its name to the fault that says that the nearest setting is not set. Returns false if there is no such
    /// fault.
    pub fn explain(&self, faults: &mut [String]) -> bool {
        let not_set = format!("{} is not set", self.nearest);
        let explained = faults.iter_mut().find(|fault| fault.starts_with(&not_set));
        explained.is_some_and(|fault| {
            fault.insert_str(not_set.len(), &format!(" ({} looks like it)", self.name));
            true
        })
    }
}

impl SettingsReader {
    pub fn new(variables: HashMap<String, String>) -> SettingsReader {
        SettingsReader { variables, shown: Vec::new(), faults: Vec::new() }
    }

    /// The variable under which a setting was found, and its value. `None` if it is not set.
    fn look_up(&self, name: &'static str) -> Option<(&'static str, String)> {
        let mut fallbacks = FALLBACK_NAMES.iter();
        let fallback = fallbacks.find(|(own, _)| *own == name).map(|(_, fallback)| *fallback);
        [Some(name), fallback].into_iter().flatten().find_map(|name| {
            let value = self.variables.get(name)?.trim();
            (!value.is_empty()).then(|| (name, value.to_owned()))
        })
    }

    /// Whether a setting that was read has a value of its own rather than its default.
    pub fn is_set(&self, name: &'static str) -> bool {
        self.shown.iter().any(|setting| setting.name == name && setting.variable.is_some())
    }

    /// The effective value of a setting that was read, as it is shown; empty if it was not read.
    pub fn shown_value(&self, name: &'static str) -> &str {
        let shown = self.shown.iter().find(|setting| setting.name == name);
        shown.map_or("", |setting| &setting.value)
    }

    /// Notes the effective value of a setting, and where it comes from.
    fn show(&mut self, name: &'static str, value: impl Display) {
        let variable = self.look_up(name).map(|(variable, _)| variable);
        self.shown.push(ShownSetting { name, value: value.to_string(), variable });
    }

    /// Parses a setting. Returns `None` if it is not set, or if `parse` refuses it; then notes a fault, whose text ends
    /// with `allowed`.
    fn parse<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let (variable, text) = self.look_up(name)?;
        let value = parse(&text);
        if value.is_none() {
            let text = format!("{variable} holds \"{text}\"; allowed: {allowed}");
            self.faults.push((name, text));
        }
        value
    }

    /// Parses a setting like [`SettingsReader::parse`], and shows it as it was written, or `unset` if it is not set.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        unset: impl Display,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let shown = self.look_up(name).map_or_else(|| unset.to_string(), |(_, text)| text);
        self.show(name, shown);
        self.parse(name, allowed, parse)
    }

    /// A setting whose type knows how to parse and to display it.
    pub fn parsed<T: FromStr + Display>(
        &mut self,
        name: &'static str,
        default: T,
        allowed: &str,
    ) -> T {
        self.read(name, &default, allowed, |text| text.parse().ok()).unwrap_or(default)
    }

    /// A setting without a default.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.read(name, "", allowed, parse)
    }

    /// The same for a text that may hold a secret if it is wrong, so that it is not shown then.
    pub fn optional_hidden<T>(
        &mut self,
        name: &'static str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.look_up(name).map(|(_, text)| text);
        let value = text.as_deref().and_then(parse);
        if text.is_some() && value.is_none() {
            let text = format!("{name} holds \"(not shown)\"; allowed: {allowed}");
            self.faults.push((name, text));
        }
        self.show(name, text.filter(|_| value.is_some()).unwrap_or_default());
        value
    }

    /// A word of a closed list. An alias is shown as the word it stands for.
    pub fn choice<C: ValueEnum>(&mut self, name: &'static str, default: C) -> C {
        let words: Vec<_> = C::value_variants().iter().map(word).collect();
        let chosen = self.parse(name, &words.join(", "), |text| C::from_str(text, false).ok());
        let chosen = chosen.unwrap_or(default);
        self.show(name, word(&chosen));
        chosen
    }

    /// A boolean. Several common spellings are accepted, in upper or lower case.
    pub fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        };
        let allowed = "true or false (also 1, yes, on; 0, no, off)";
        self.read(name, default, allowed, parse).unwrap_or(default)
    }

    /// A whole number within `range`.
    pub fn number<N: Copy + Display + FromStr + PartialOrd>(
        &mut self,
        name: &'static str,
        default: N,
        range: RangeInclusive<N>,
    ) -> N {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let parse = |text: &str| text.parse().ok().filter(|n| range.contains(n));
        self.read(name, default, &allowed, parse).unwrap_or(default)
    }

    /// A number of bytes from 1 to `max`. It may have a unit, see [`size`], and is shown without one.
    pub fn size(&mut self, name: &'static str, default: u64, max: u64) -> u64 {
        let allowed = format!(
            "a number of bytes from 1 to {max}, also with K, M, G or T, such as 10M (10 MiB, 10 x 1024 x 1024 bytes)"
        );
        let parse = |text: &str| size(text).filter(|bytes| (1..=max).contains(bytes));
        let bytes = self.parse(name, &allowed, parse).unwrap_or(default);
        self.show(name, bytes);
        bytes
    }

    /// A whole number of seconds, from one to a day.
    pub fn seconds(&mut self, name: &'static str, default: u64) -> Duration {
        Duration::from_secs(self.number(name, default, 1..=86_400))
    }

    /// A secret, whose value is not shown. `unset` is shown if it is not set.
    pub fn secret(&mut self, name: &'static str, unset: &str) -> Option<Secret> {
        let secret = self.look_up(name).map(|(_, value)| Secret::new(value));
        self.show(name, if secret.is_some() { "(set, not shown)" } else { unset });
        secret
    }

    /// Comma-separated secrets, of which only the number is shown.
    pub fn secrets(&mut self, name: &'static str) -> Vec<Secret> {
        let text = self.look_up(name).map_or(String::new(), |(_, value)| value);
        let secrets: Vec<_> =
            comma_separated(&text).map(|part| Secret::new(part.to_owned())).collect();
        self.show(
            name,
            match secrets.len() {
                0 => String::new(),
                n => format!("({n} set, not shown)"),
            },
        );
        secrets
    }

    /// The connection string of the database, which must be set. If it is not, or is the URL of another kind of
    /// database, that is a fault, and the result is empty.
    pub fn database_url(&mut self) -> Secret {
        let name = DATABASE_URL;
        self.secret(name, "");
        let fault = match self.look_up(name) {
            None => format!("{name} is not set"),
            Some((variable, url)) => match url.split_once("://") {
                Some((scheme, _)) if is_foreign_scheme(scheme) => {
                    format!("{variable} is no PostgreSQL URL: it begins with {scheme}://")
                }
                _ => return Secret::new(url),
            },
        };
        self.faults.push((name, format!("{fault}; allowed: {DATABASE_URLS}")));
        Secret::new(String::new())
    }

    /// The mail server. A refused value is not shown, because it may hold a password.
    pub fn smtp(&mut self, name: &'static str) -> Smtp {
        let text = self.look_up(name).map_or(String::new(), |(_, value)| value);
        let smtp = text.parse().unwrap_or_else(|()| {
            let allowed = "none, smtp://host:port or smtps://user:password@host:port";
            let text = format!("{name} holds \"(not shown)\"; allowed: {allowed}");
            self.faults.push((name, text));
            Smtp::Unset
        });
        self.show(name, &smtp);
        smtp
    }

    /// The variables that are named like settings but are none. Must be called after all settings have been read,
    /// because those are the known ones.
    pub fn unknown_variables(&self) -> Vec<UnknownVariable> {
        let known: Vec<_> = self.shown.iter().map(|setting| setting.name).collect();
        let is_known = |name: &str| known.contains(&name) || OTHER_VARIABLES.contains(&name);
        let mut unknown: Vec<_> = self
            .variables
            .keys()
            .filter(|name| name.starts_with("CLOAKROOM_") && !is_known(name))
            .map(|name| {
                let similarity = |known: &&str| strsim::jaro_winkler(known, name);
                let nearest = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
                let nearest = nearest.copied().unwrap_or_default();
                UnknownVariable { name: name.clone(), nearest }
            })
            .collect();
        unknown.sort_by(|a, b| a.name.cmp(&b.name));
        unknown
    }
}

/// Whether a text before `://` is the scheme of a URL, and not PostgreSQL's. In `key=value` pairs, `://` may be part of
/// a password.
fn is_foreign_scheme(text: &str) -> bool {
    let is_scheme = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_scheme && !["postgres", "postgresql"].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(variables: &[(&str, &str)]) -> SettingsReader {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        SettingsReader::new(variables.iter().map(owned).collect())
    }

    #[test]
    fn a_misspelt_setting_is_reported_with_the_nearest_name() {
        let mut reader =
            reader(&[("CLOAKROOM_LISTN", "x"), ("CLOAKROOM_LISTEN", "x"), ("PATH", "x")]);
        for name in ["CLOAKROOM_LOG", "CLOAKROOM_LISTEN", "CLOAKROOM_ENV"] {
            reader.optional(name, "", |_| Some(()));
        }
        assert_eq!(
            reader.unknown_variables(),
            [UnknownVariable { name: "CLOAKROOM_LISTN".to_owned(), nearest: "CLOAKROOM_LISTEN" }]
        );
    }

    #[test]
    fn a_setting_is_shown_with_the_variable_it_comes_from() {
        let mut reader =
            reader(&[("DATABASE_URL", "postgres://x"), ("CLOAKROOM_ENV", "production")]);
        reader.database_url();
        reader.parsed("CLOAKROOM_ENV", String::new(), "");
        reader.parsed("CLOAKROOM_LOG", "info".to_owned(), "");
        let shown = reader.shown.iter().map(|it| (it.name, it.value.as_str(), it.variable));
        let expected = [
            ("CLOAKROOM_DATABASE_URL", "(set, not shown)", Some("DATABASE_URL")),
            ("CLOAKROOM_ENV", "production", Some("CLOAKROOM_ENV")),
            ("CLOAKROOM_LOG", "info", None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_own_name_of_a_setting_wins_over_its_fallback() {
        let both = [("CLOAKROOM_MAX_UPLOAD_SIZE", " 5 "), ("MAX_UPLOAD_SIZE", "6")];
        let size = |variables| reader(variables).number("CLOAKROOM_MAX_UPLOAD_SIZE", 1, 1..=9);
        assert_eq!(size(&both), 5);
        assert_eq!(size(&both[1..]), 6);
        let empty = [("CLOAKROOM_MAX_UPLOAD_SIZE", " "), ("MAX_UPLOAD_SIZE", "6")];
        assert_eq!(size(&empty), 6);
    }
}
