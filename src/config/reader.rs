//! Reads settings from environment variables, one function for each kind of value.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use super::mail::Smtp;
use super::values::{Choice, Secret, comma_separated, own_log_level};

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
const OTHER_VARIABLES: [&str; 4] = [
    "CLOAKROOM_ADMIN_PASSWORD",
    "CLOAKROOM_ALLOCATOR_SET",
    "CLOAKROOM_PG_OPTIONS",
    "CLOAKROOM_TEST_DATABASE_URL",
];

/// Looks settings up, and collects their effective values and everything that is wrong with them.
///
/// An unset or empty variable gives the default. A value that is refused is noted in `faults` and gives the default
/// as well, so that reading goes on and finds every fault. Blanks around a value are ignored.
pub struct SettingsReader {
    variables: HashMap<String, String>,
    /// Each setting read so far.
    pub shown: Vec<ShownSetting>,
    pub faults: Vec<Fault>,
}

/// A setting as people are shown it.
pub struct ShownSetting {
    pub name: &'static str,
    /// The effective value, secrets masked.
    pub value: String,
    /// The variable that it comes from, which may be one of the fallback names; `None` if it has its default.
    pub variable: Option<&'static str>,
}

/// Something that is wrong with a setting.
pub struct Fault {
    pub setting: &'static str,
    /// One line: the variable, its value (unless that is secret) and what is allowed.
    pub text: String,
}

/// A variable that is named like a setting but is none, so it is probably misspelt.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    pub name: String,
    /// The most similar setting.
    pub nearest: &'static str,
}

impl UnknownVariable {
    /// What to tell the operator about it.
    pub fn warning(&self) -> String {
        format!("{} is no setting; did you mean {}?", self.name, self.nearest)
    }

    /// Names it in the fault that it explains, which is that the setting is not set. Returns whether there is one.
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

    /// Whether a setting has a value of its own rather than its default.
    pub fn is_set(&self, name: &'static str) -> bool {
        self.look_up(name).is_some()
    }

    /// Notes the effective value of a setting, and where it comes from.
    fn show(&mut self, name: &'static str, value: String) {
        let variable = self.look_up(name).map(|(variable, _)| variable);
        self.shown.push(ShownSetting { name, value, variable });
    }

    /// Notes that a setting, found under the name `variable`, holds a value that is not allowed.
    fn refuse(&mut self, setting: &'static str, variable: &str, value: &str, allowed: &str) {
        let text = format!("{variable} holds \"{value}\"; allowed: {allowed}");
        self.faults.push(Fault { setting, text });
    }

    /// Parses a setting and shows it as it was written. Returns `None` if it is not set, in which case `unset` is
    /// shown, or if `parse` refuses it, which is noted with what would be `allowed`.
    fn read<T>(
        &mut self,
        name: &'static str,
        unset: impl Display,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let Some((variable, text)) = self.look_up(name) else {
            self.show(name, unset.to_string());
            return None;
        };
        let value = parse(&text);
        if value.is_none() {
            self.refuse(name, variable, &text, allowed);
        }
        self.show(name, text);
        value
    }

    /// A setting that accepts any text.
    pub fn text(&mut self, name: &'static str, default: &str) -> String {
        self.read(name, default, "", |text| Some(text.to_owned()))
            .unwrap_or_else(|| default.to_owned())
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

    /// A word of a closed list. An alias is shown as the word it stands for.
    pub fn choice<C: Choice>(&mut self, name: &'static str, default: C) -> C {
        let chosen = match self.look_up(name) {
            None => default,
            Some((_, word)) => C::from_word(&word).unwrap_or_else(|| {
                let words: Vec<_> = C::WORDS.iter().map(|(word, _)| *word).collect();
                self.refuse(name, name, &word, &words.join(", "));
                default
            }),
        };
        self.show(name, chosen.word().to_owned());
        chosen
    }

    /// A boolean. Several common spellings are accepted, in upper or lower case.
    pub fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        };
        self.read(name, default, "true or false", parse).unwrap_or(default)
    }

    /// A whole number from 1 to `max`.
    pub fn count(&mut self, name: &'static str, default: u32, max: u32) -> u32 {
        self.number(name, default, max)
    }

    /// A size from 1 to 2^60 bytes (an exbibyte), so that the sum of two fits the signed 64 bits of the database.
    pub fn bytes(&mut self, name: &'static str, default: u64) -> u64 {
        self.number(name, default, 1 << 60)
    }

    /// A whole number of seconds, from one to a day.
    pub fn seconds(&mut self, name: &'static str, default: u32) -> Duration {
        Duration::from_secs(self.number(name, default, 86_400).into())
    }

    /// A whole number of minutes from 1 to `max`.
    pub fn minutes(&mut self, name: &'static str, default: u32, max: u32) -> Duration {
        Duration::from_secs(60) * self.number(name, default, max)
    }

    /// A whole number of days of 24 hours, from 1 to `max`.
    pub fn days(&mut self, name: &'static str, default: u32, max: u32) -> Duration {
        Duration::from_secs(86_400) * self.number(name, default, max)
    }

    /// A whole number from 1 to `max`.
    fn number<N: Copy + Display + From<u8> + FromStr + PartialOrd>(
        &mut self,
        name: &'static str,
        default: N,
        max: N,
    ) -> N {
        let allowed = format!("a whole number from 1 to {max}");
        let parse = |text: &str| text.parse().ok().filter(|n| (N::from(1)..=max).contains(n));
        self.read(name, default, &allowed, parse).unwrap_or(default)
    }

    /// A secret, of which is only shown whether it is set: `unset` if not.
    pub fn secret(&mut self, name: &'static str, unset: &str) -> Option<Secret> {
        let secret = self.look_up(name).map(|(_, value)| Secret::new(value));
        let shown = if secret.is_some() { "(set, not shown)" } else { unset };
        self.show(name, shown.to_owned());
        secret
    }

    /// The connection string of the database, which must be set. If it is not, or is the URL of another kind of
    /// database, that is a fault, and the result is empty.
    pub fn database_url(&mut self, name: &'static str) -> Secret {
        let allowed = "a PostgreSQL URL, such as postgres://user:password@host/database";
        let found = self.look_up(name);
        let scheme = found.as_ref().and_then(|(_, url)| Some(url.split_once("://")?.0));
        // In `key=value` pairs, `://` may be part of a password.
        let scheme = scheme.filter(|scheme| scheme.bytes().all(|b| b.is_ascii_alphanumeric()));
        let text = match (&found, scheme) {
            (None, _) => format!("{name} is not set; allowed: {allowed}"),
            (Some((variable, _)), Some(scheme))
                if !["postgres", "postgresql"].contains(&scheme) =>
            {
                format!(
                    "{variable} is no PostgreSQL URL: it begins with {scheme}://; allowed: {allowed}"
                )
            }
            _ => return self.secret(name, "").unwrap_or_else(|| Secret::new(String::new())),
        };
        self.show(name, String::new());
        self.faults.push(Fault { setting: name, text });
        Secret::new(String::new())
    }

    /// Comma-separated secrets, of which only the number is shown.
    pub fn secrets(&mut self, name: &'static str) -> Vec<Secret> {
        let text = self.look_up(name).map_or(String::new(), |(_, value)| value);
        let secrets: Vec<_> =
            comma_separated(&text).map(|part| Secret::new(part.to_owned())).collect();
        let shown = match secrets.len() {
            0 => String::new(),
            n => format!("({n} set, not shown)"),
        };
        self.show(name, shown);
        secrets
    }

    /// A password that is not a setting, so it is not shown. Blanks around it are a part of it and kept.
    pub fn password(&self, name: &str) -> Option<Secret> {
        self.variables.get(name).filter(|password| !password.is_empty()).cloned().map(Secret::new)
    }

    /// The mail server. A refused value is not shown, because it may hold a password.
    pub fn smtp(&mut self, name: &'static str) -> Smtp {
        let text = self.look_up(name).map_or(String::new(), |(_, value)| value);
        let smtp = text.parse().unwrap_or_else(|()| {
            let allowed = "none, smtp://host:port or smtps://user:password@host:port";
            self.refuse(name, name, "(not shown)", allowed);
            Smtp::Unset
        });
        self.show(name, smtp.to_string());
        smtp
    }

    /// The level of this program's own log records.
    pub fn log_level(&mut self, name: &'static str) -> log::LevelFilter {
        let allowed = "off, error, warn, info, debug or trace";
        self.read(name, "info", allowed, own_log_level).unwrap_or(log::LevelFilter::Info)
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
                UnknownVariable {
                    name: name.clone(),
                    nearest: nearest.copied().unwrap_or_default(),
                }
            })
            .collect();
        unknown.sort_by(|a, b| a.name.cmp(&b.name));
        unknown
    }
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
            reader.text(name, "");
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
        reader.database_url("CLOAKROOM_DATABASE_URL");
        reader.text("CLOAKROOM_ENV", "");
        reader.text("CLOAKROOM_LOG", "info");
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
        assert_eq!(reader(&both).bytes("CLOAKROOM_MAX_UPLOAD_SIZE", 1), 5);
        assert_eq!(reader(&both[1..]).bytes("CLOAKROOM_MAX_UPLOAD_SIZE", 1), 6);
        let empty = [("CLOAKROOM_MAX_UPLOAD_SIZE", " "), ("MAX_UPLOAD_SIZE", "6")];
        assert_eq!(reader(&empty).bytes("CLOAKROOM_MAX_UPLOAD_SIZE", 1), 6);
    }
}
