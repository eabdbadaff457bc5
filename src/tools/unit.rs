//! What systemd knows of the packaged service: whether it runs, why it ended, where its socket listens, and what its
//! unit lets it see and write.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{environment, within_max_wait};

/// The properties that are asked for (systemd.exec(5), org.freedesktop.systemd1(5)).
const PROPERTIES: &str = "--property=Id,LoadState,ActiveState,SubState,StatusText,Listen,ReadWritePaths,StateDirectory,\
                          ProtectSystem,ProtectHome,PrivateTmp";
const UNITS: [&str; 3] = ["cloakroom.service", "cloakroom.socket", "cloakroom-backup.service"];

type Properties = HashMap<String, String>;

/// The units of the package.
pub struct Unit {
    service: Properties,
    /// The address of `cloakroom.socket`, if that holds the port.
    pub socket: Option<SocketAddr>,
    /// Whether the last run of `cloakroom-backup.service` failed.
    pub backup_has_failed: bool,
}

impl Unit {
    /// Asks systemd, and returns `None` if there is none, or no such unit. Only if the settings come from files, as
    /// those of the unit do, are they its own: on the same host there may be another service in development.
    pub fn find(env_files: &[PathBuf]) -> Option<Unit> {
        if env_files.is_empty() {
            return None;
        }
        let mut command = Command::new("systemctl");
        command.args(["show", "--no-pager", PROPERTIES]).args(UNITS);
        command.env_clear().envs(environment::inherited_by_programs()).stdin(Stdio::null());
        let output = within_max_wait(move || command.output())?.ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut units: HashMap<_, _> = text.split("\n\n").map(properties).map(by_id).collect();
        let [service, socket, backup] = UNITS.map(|id| units.remove(id).unwrap_or_default());
        let listens = is(&socket, "ActiveState", "active");
        let is_loaded = is(&service, "LoadState", "loaded");
        is_loaded.then(|| Unit {
            service,
            socket: socket.get("Listen").filter(|_| listens).and_then(|text| tcp_address(text)),
            backup_has_failed: is(&backup, "ActiveState", "failed"),
        })
    }

    fn property(&self, name: &str) -> &str {
        self.service.get(name).map_or("", String::as_str)
    }

    /// Its state, and the last line that the service has sent about itself.
    pub fn description(&self) -> String {
        let (state, text) = (self.property("ActiveState"), self.property("StatusText"));
        let said = if text.is_empty() { String::new() } else { format!(": {text}") };
        format!("cloakroom.service is {state}{said}")
    }

    /// Whether the service has ended with a failure, and perhaps will be tried again.
    pub fn has_failed(&self) -> bool {
        self.property("ActiveState") == "failed" || self.property("SubState") == "auto-restart"
    }

    /// Why the service may not write to a directory that this process may write to. `None` if it may.
    pub fn refuses(&self, directory: &Path) -> Option<&'static str> {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let is_below = |places: &[&str]| places.iter().any(|place| directory.starts_with(place));
        if self.property("ProtectHome") != "no" && is_below(&["/home", "/root", "/run/user"]) {
            return Some("ProtectHome= hides it");
        }
        if self.property("PrivateTmp") == "yes" && is_below(&["/tmp", "/var/tmp"]) {
            return Some("with PrivateTmp= it sees a directory of its own there");
        }
        let writable = self.property("ReadWritePaths").split(' ');
        let writable = writable.map(|path| PathBuf::from(path.trim_start_matches(['-', '+'])));
        let state = self.property("StateDirectory").split(' ');
        let state =
            state.filter(|name| !name.is_empty()).map(|name| Path::new("/var/lib").join(name));
        let mut allowed = writable.filter(|path| path.is_absolute()).chain(state);
        let is_strict = self.property("ProtectSystem") == "strict";
        (is_strict && !allowed.any(|path| directory.starts_with(path)))
            .then_some("ProtectSystem=strict makes it read-only")
    }
}

fn is(unit: &Properties, name: &str, value: &str) -> bool {
    unit.get(name).is_some_and(|found| found == value)
}

/// The lines `NAME=value` about a unit.
fn properties(text: &str) -> Properties {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn by_id(unit: Properties) -> (String, Properties) {
    (unit.get("Id").cloned().unwrap_or_default(), unit)
}

/// The address in `127.0.0.1:8000 (Stream)`.
fn tcp_address(text: &str) -> Option<SocketAddr> {
    text.split(' ').next()?.parse().ok()
}
