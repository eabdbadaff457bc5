//! The settings that the Debian package installs. `scripts/test-production` tests the package itself.

use std::collections::BTreeMap;

use crate::harness::*;

const SETTINGS: &str = include_str!("../../scripts/debian/cloakroom.env");
/// What the units have in common.
const UNITS: &str = include_str!("../../scripts/debian/common.conf");
const NOWHERE: &str = "postgres://cloakroom:secret@127.0.0.1:1/cloakroom";

/// The lines `NAME=value` of a text, after this beginning.
fn assignments<'a>(text: &'a str, beginning: &str) -> Vec<(&'a str, &'a str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(beginning));
    lines
        .filter(|line| line.starts_with("CLOAKROOM_"))
        .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{line}")))
        .collect()
}

/// What the units set for settings that are not in the file.
fn defaults_of_the_units() -> Vec<(&'static str, &'static str)> {
    let line = UNITS.lines().find_map(|line| line.strip_prefix("Environment=")).unwrap();
    line.split(' ').map(|setting| setting.split_once('=').unwrap()).collect()
}

/// Runs `cloakroom config` as a unit would, with these settings beside the defaults of the units.
fn config(settings: &[(&str, &str)]) -> std::process::Output {
    // What the harness sets has its default again where it is empty.
    let harness =
        ["CLOAKROOM_LISTEN", "CLOAKROOM_SCRYPT", "CLOAKROOM_RATE_LIMIT_ENABLED"].map(|n| (n, ""));
    run(NOWHERE, &["config"], &[&harness, &defaults_of_the_units()[..], settings].concat())
}

/// Enough for production to start.
const REQUIRED: &[(&str, &str)] =
    &[("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "false"), ("CLOAKROOM_SMTP_URL", "none")];

#[test]
fn the_settings_of_the_package_are_all_that_there_are_with_their_defaults() {
    let text = config(REQUIRED).exits(0).out();
    let mut expected: BTreeMap<_, _> = assignments(&text, "").into_iter().collect();
    // These have no default, or one that depends on the machine.
    for name in [
        "CLOAKROOM_DATABASE_URL",
        "CLOAKROOM_JWT_SECRET",
        "CLOAKROOM_SMTP_URL",
        "CLOAKROOM_DATABASE_POOL_SIZE",
        "CLOAKROOM_WORKERS",
    ] {
        assert!(!expected.insert(name, "").unwrap().is_empty(), "{name}");
    }
    let mut shown = assignments(SETTINGS, "#");
    let set = assignments(SETTINGS, "");
    shown.extend(set.iter().filter(|(_, value)| value.is_empty()));
    let found: BTreeMap<_, _> = shown.iter().copied().collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), shown.len(), "a setting stands there twice");
}

#[test]
fn the_settings_of_the_package_lack_only_a_database() {
    let settings = assignments(SETTINGS, "");
    let value = |name| settings.iter().find(|(found, _)| *found == name).unwrap().1;
    assert_eq!((value("CLOAKROOM_DATABASE_URL"), value("CLOAKROOM_JWT_SECRET")), ("", ""));
    // The installation makes a secret, of which only the length matters here.
    let secret = ("CLOAKROOM_JWT_SECRET", SECRET);
    let text = config(&[&settings[..], &[secret]].concat()).exits(2).err();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("CLOAKROOM_DATABASE_URL is not set"), "{text}");
    let database = ("CLOAKROOM_DATABASE_URL", NOWHERE);
    config(&[&settings[..], &[secret, database]].concat()).exits(0);
}
