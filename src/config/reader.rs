//! Reads settings from environment variables, one function for each kind of value.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use super::values::{Secret, comma_separated, size};
use super::words::{Switch, word};

/// Variables with our prefix that commands and scripts use. They are not settings, but must not be reported as
/// misspelt ones either.
const OTHER_VARIABLES: [&str; 6] = [
    "CLOAKROOM_ADMIN_PASSWORD",
    "CLOAKROOM_ALLOCATOR_SET",
    "CLOAKROOM_PG_OPTIONS",
    "CLOAKROOM_PG_SOCKET",
    "CLOAKROOM_PROGRAM",
    "CLOAKROOM_TEST_DATABASE_URL",
];

/// The setting of the database's connection string.
pub const DATABASE_URL: &str = "CLOAKROOM_DATABASE_URL";
/// What it may hold.
pub const DATABASE_URLS: &str = "a PostgreSQL URL, such as postgres://user:password@host/database, or key/value text, \
                                 such as host=localhost dbname=cloakroom";

/// Reads one setting after the other, and collects their effective values and everything that is wrong with them.
///
/// An unset or empty variable gives the default. A value that is refused is recorded in `faults` and gives the default
/// as well, so that reading goes on and finds every fault. Blanks around a value are ignored.
pub struct SettingsReader {
    variables: HashMap<String, String>,
    /// The variables of the setting that is read: its name, and others that are read if that one is not set.
    names: &'static [&'static str],
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
    /// The variable that it comes from, which may be another than `name`; `None` if it has its default.
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
}

impl SettingsReader {
    pub fn new(variables: HashMap<String, String>) -> SettingsReader {
        SettingsReader { variables, names: &[], shown: Vec::new(), faults: Vec::new() }
    }

    /// Goes on to the setting with these variables. The methods below read it.
    pub fn setting(&mut self, names: &'static [&'static str]) -> &mut SettingsReader {
        self.names = names;
        self
    }

    /// The name of the setting.
    fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// The variable that holds the setting, and its value. `None` if it is not set.
    fn look_up(&self) -> Option<(&'static str, String)> {
        self.names.iter().find_map(|name| {
            let value = self.variables.get(*name)?.trim();
            (!value.is_empty()).then(|| (*name, value.to_owned()))
        })
    }

    /// Whether a setting that was read has a value of its own rather than its default.
    pub fn is_set(&self, name: &str) -> bool {
        self.shown.iter().any(|setting| setting.name == name && setting.variable.is_some())
    }

    /// Records the effective value of the setting, and where it comes from.
    fn show(&mut self, value: impl Display) {
        let variable = self.look_up().map(|(variable, _)| variable);
        self.shown.push(ShownSetting { name: self.name(), value: value.to_string(), variable });
    }

    /// Records a fault of the setting.
    pub fn refuse(&mut self, fault: String) {
        self.faults.push((self.name(), fault));
    }

    /// Parses the setting. Returns `None` if it is not set, or if `parse` refuses it; then records a fault, whose text
    /// ends with `allowed`.
    fn parse<T>(&mut self, allowed: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let (variable, text) = self.look_up()?;
        let value = parse(&text);
        if value.is_none() {
            self.refuse(format!("{variable} holds \"{text}\"; allowed: {allowed}"));
        }
        value
    }

    /// Parses the setting, and shows it as it was written, or `unset`, its default if it has one, if it is not set.
    pub fn read<T>(
        &mut self,
        unset: impl Display,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let shown = self.look_up().map_or_else(|| unset.to_string(), |(_, text)| text);
        self.show(shown);
        self.parse(allowed, parse)
    }

    /// A setting whose type knows how to parse and to display it.
    pub fn parsed<T: FromStr + Display>(&mut self, default: T, allowed: &str) -> T {
        self.read(&default, allowed, |text| text.parse().ok()).unwrap_or(default)
    }

    /// The same for a text that may hold a secret. It is not shown if it is wrong; `show` says what is shown of it
    /// otherwise.
    pub fn optional_hidden<T>(
        &mut self,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        show: impl FnOnce(&str, &T) -> String,
    ) -> Option<T> {
        let text = self.look_up().map(|(_, text)| text);
        let value = text.as_deref().and_then(parse);
        if text.is_some() && value.is_none() {
            self.refuse(format!("{} holds \"(not shown)\"; allowed: {allowed}", self.name()));
        }
        let shown = value.as_ref().zip(text);
        self.show(shown.map_or_else(String::new, |(value, text)| show(&text, value)));
        value
    }

    /// A word of a closed list.
    pub fn choice<C: ValueEnum>(&mut self, default: C) -> C {
        let words: Vec<_> = C::value_variants().iter().map(word).collect();
        let chosen = self.parse(&words.join(", "), |text| C::from_str(text, false).ok());
        let chosen = chosen.unwrap_or(default);
        self.show(word(&chosen));
        chosen
    }

    /// Whether something is `on`, and not `off`.
    pub fn switch(&mut self, default: bool) -> bool {
        self.choice(if default { Switch::On } else { Switch::Off }) == Switch::On
    }

    /// A boolean. Several common spellings are accepted, in upper or lower case.
    pub fn flag(&mut self, default: bool) -> bool {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        };
        let allowed = "true or false (also 1, yes, on; 0, no, off)";
        self.read(default, allowed, parse).unwrap_or(default)
    }

    /// A whole number within `range`.
    pub fn number<N: Copy + Display + FromStr + PartialOrd>(
        &mut self,
        default: N,
        range: RangeInclusive<N>,
    ) -> N {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let parse = |text: &str| text.parse().ok().filter(|n| range.contains(n));
        self.read(default, &allowed, parse).unwrap_or(default)
    }

    /// A number of bytes within `range`. It may have a unit, see [`size`], and is shown without one.
    pub fn size(&mut self, default: u64, range: RangeInclusive<u64>) -> u64 {
        let allowed = format!(
            "a number of bytes from {} to {}, also with K, M, G or T, such as 10M (10 MiB, 10 x 1024 x 1024 bytes)",
            range.start(),
            range.end()
        );
        let parse = |text: &str| size(text).filter(|bytes| range.contains(bytes));
        let bytes = self.parse(&allowed, parse).unwrap_or(default);
        self.show(bytes);
        bytes
    }

    /// A whole number of seconds, from one to a day.
    pub fn seconds(&mut self, default: u64) -> Duration {
        Duration::from_secs(self.number(default, 1..=86_400))
    }

    /// A secret, whose value is not shown. `unset` is shown if it is not set.
    pub fn secret(&mut self, unset: &str) -> Option<Secret> {
        let secret = self.look_up().map(|(_, value)| Secret::new(value));
        self.show(if secret.is_some() { "(set, not shown)" } else { unset });
        secret
    }

    /// Comma-separated secrets, of which only the number is shown.
    pub fn secrets(&mut self) -> Vec<Secret> {
        let text = self.look_up().map_or(String::new(), |(_, value)| value);
        let secrets: Vec<_> =
            comma_separated(&text).map(|part| Secret::new(part.to_owned())).collect();
        self.show(match secrets.len() {
            0 => String::new(),
            n => format!("({n} set, not shown)"),
        });
        secrets
    }

    /// The connection string of the database, which must be set. If it is not, or is the URL of another kind of
    /// database, that is a fault, and the result is empty.
    pub fn database_url(&mut self) -> Secret {
        self.secret("");
        let fault = match self.look_up() {
            None => format!("{DATABASE_URL} is not set"),
            Some((variable, url)) => match url.split_once("://") {
                Some((scheme, _)) if is_foreign_scheme(scheme) => {
                    format!("{variable} is no PostgreSQL URL: it begins with {scheme}://")
                }
                _ => return Secret::new(url),
            },
        };
        self.refuse(format!("{fault}; allowed: {DATABASE_URLS}"));
        Secret::new(String::new())
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
        for names in [&["CLOAKROOM_LOG"], &["CLOAKROOM_LISTEN"], &["CLOAKROOM_ENV"]] {
            reader.setting(names).read("", "", |_| Some(()));
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
        reader.setting(&[DATABASE_URL, "DATABASE_URL"]).database_url();
        reader.setting(&["CLOAKROOM_ENV"]).parsed(String::new(), "");
        reader.setting(&["CLOAKROOM_LOG"]).parsed("info".to_owned(), "");
        let shown = reader.shown.iter().map(|it| (it.name, it.value.as_str(), it.variable));
        let expected = [
            ("CLOAKROOM_DATABASE_URL", "(set, not shown)", Some("DATABASE_URL")),
            ("CLOAKROOM_ENV", "production", Some("CLOAKROOM_ENV")),
            ("CLOAKROOM_LOG", "info", None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_own_name_of_a_setting_wins_over_another() {
        let both = [("CLOAKROOM_MAX_UPLOAD_SIZE", " 5 "), ("MAX_UPLOAD_SIZE", "6")];
        let names = &["CLOAKROOM_MAX_UPLOAD_SIZE", "MAX_UPLOAD_SIZE"];
        let size = |variables| reader(variables).setting(names).number(1, 1..=9);
        assert_eq!(size(&both), 5);
        assert_eq!(size(&both[1..]), 6);
        let empty = [("CLOAKROOM_MAX_UPLOAD_SIZE", " "), ("MAX_UPLOAD_SIZE", "6")];
        assert_eq!(size(&empty), 6);
    }
}
