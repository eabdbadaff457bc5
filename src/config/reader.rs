//! Looking settings up, by their kind.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::values::Secret;

/// Looks settings up, notes what was found and what is wrong with it.
pub struct Reader {
    pub(super) variables: HashMap<String, String>,
    pub(super) shown: Vec<(&'static str, String)>,
    pub(super) faults: Vec<String>,
}

impl Reader {
    /// The first of `names` that is set and not empty, with the name it was found under.
    pub(super) fn look_up(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|&name| {
            let value = self.variables.get(name)?.trim();
            (!value.is_empty()).then(|| (name, value.to_owned()))
        })
    }

    pub(super) fn or_default(&mut self, name: &'static str, default: &str) -> String {
        let value = self.look_up(&[name]).map_or_else(|| default.to_owned(), |(_, value)| value);
        self.shown.push((name, value.clone()));
        value
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.or_default(name, "");
        (!value.is_empty()).then_some(value)
    }

    /// A value of a type with its own text form; `default` must parse.
    pub(super) fn parsed<T: FromStr + Default>(
        &mut self,
        name: &'static str,
        default: &str,
        allowed: &str,
    ) -> T {
        let value = self.or_default(name, default);
        self.or_fault(name, &value, allowed, value.parse().ok())
    }

    pub(super) fn or_fault<T: Default>(
        &mut self,
        name: &str,
        held: impl Display,
        allowed: &str,
        parsed: Option<T>,
    ) -> T {
        parsed.unwrap_or_else(|| {
            self.faults.push(format!("{name} holds \"{held}\"; allowed: {allowed}"));
            T::default()
        })
    }

    /// One word of a closed list; the first is the default.
    pub(super) fn choice<T: Copy + Default>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> T {
        let value = self.or_default(name, words[0].0);
        let parsed = words.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice);
        let allowed: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.or_fault(name, value, &allowed.join(", "), parsed)
    }

    pub(super) fn listen(&mut self) -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], 8000));
        let value = self.or_default("CLOAKROOM_LISTEN", &default.to_string());
        value.parse().unwrap_or_else(|_| {
            let allowed = "an address and port, such as 127.0.0.1:8000 or [::]:8000";
            self.faults.push(format!("CLOAKROOM_LISTEN holds \"{value}\"; allowed: {allowed}"));
            default
        })
    }

    pub(super) fn count(&mut self, names: &[&'static str], default: usize, most: u32) -> u32 {
        self.whole(names, default as u64, most.into()) as u32
    }

    /// A size in bytes, at most an exbibyte, so that sums of two fit the database's integers.
    pub(super) fn bytes(&mut self, names: &[&'static str], default: u64) -> u64 {
        self.whole(names, default, 1 << 60)
    }

    pub(super) fn whole(&mut self, names: &[&'static str], default: u64, most: u64) -> u64 {
        let (name, value) = self.look_up(names).unwrap_or_else(|| (names[0], default.to_string()));
        self.shown.push((names[0], value.clone()));
        let parsed = value.parse().ok().filter(|n| (1..=most).contains(n));
        self.or_fault(name, value, &format!("a whole number from 1 to {most}"), parsed)
    }

    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        let value = self.or_default(name, if default { "true" } else { "false" });
        let parsed = match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        };
        self.or_fault(name, value, "true or false", parsed)
    }

    pub(super) fn secret(&mut self, names: &[&'static str], allowed: &str) -> Secret {
        let found = self.look_up(names);
        self.shown
            .push((names[0], if found.is_some() { "(set, not shown)" } else { "" }.to_owned()));
        found.map(|(_, value)| Secret::new(value)).unwrap_or_else(|| {
            self.faults.push(format!("{} is not set; allowed: {allowed}", names[0]));
            Secret::default()
        })
    }

    pub(super) fn optional_secret(&mut self, name: &'static str, without: &str) -> Option<Secret> {
        let found = self.look_up(&[name]);
        self.shown.push((
            name,
            if found.is_some() { "(set, not shown)".into() } else { format!("({without})") },
        ));
        found.map(|(_, value)| Secret::new(value))
    }

    pub(super) fn networks(&mut self, name: &'static str) -> Vec<IpNet> {
        let value = self.or_default(name, "");
        let parsed = value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                part.parse().ok().or_else(|| {
                    part.parse().ok().map(|address: std::net::IpAddr| IpNet::from(address))
                })
            })
            .collect();
        self.or_fault(
            name,
            value,
            "comma-separated addresses or CIDR blocks, such as 10.0.0.0/8",
            parsed,
        )
    }

    /// A level, or `env_logger` directives of which the ones for this program count.
    pub(super) fn log_level(&mut self) -> log::LevelFilter {
        let (name, value) = self
            .look_up(&["CLOAKROOM_LOG", "RUST_LOG"])
            .unwrap_or(("CLOAKROOM_LOG", "info".into()));
        let mut level = Some(log::LevelFilter::Info);
        for directive in value.split(',').map(str::trim) {
            let (target, word) = directive.split_once('=').unwrap_or(("cloakroom", directive));
            match word.parse() {
                Ok(parsed) if target == "cloakroom" => level = level.and(Some(parsed)),
                Ok(_) => {}
                Err(_) => level = None,
            }
        }
        self.shown.push(("CLOAKROOM_LOG", value.clone()));
        self.or_fault(name, value, "off, error, warn, info, debug or trace", level.map(Level)).0
    }
}

/// `LevelFilter` with a default for a value that was refused anyway.
struct Level(log::LevelFilter);

impl Default for Level {
    fn default() -> Self {
        Level(log::LevelFilter::Info)
    }
}
