//! The settings that the Debian package installs. `scripts/test-production` tests the package itself.

use crate::harness::*;

const SETTINGS: &str = include_str!("../../../scripts/debian/cloakroom.env");
/// What the units have in common.
const UNITS: &str = include_str!("../../../scripts/debian/common.conf");

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
fn the_settings_of_the_package_end_with_the_defaults_that_the_program_prints() {
    let printed = run("", &["config", "--sample"], &[]).exits(0).out();
    assert!(SETTINGS.ends_with(&printed), "cloakroom.env does not end with this: {printed}");
    // With all of them nothing changes, but for those that the units set otherwise.
    let of_units = defaults_of_the_units();
    let mut settings = assignments(SETTINGS, "#");
    settings
        .retain(|(name, value)| !value.is_empty() && of_units.iter().all(|unit| unit.0 != *name));
    assert!(settings.len() > 40, "{settings:?}");
    let with_defaults = config(&[&settings[..], REQUIRED].concat()).exits(0).out();
    assert_eq!(with_defaults, config(REQUIRED).exits(0).out());
}

#[test]
fn the_settings_of_the_package_lack_only_a_database() {
    let settings = assignments(SETTINGS, "");
    let value = |name| settings.iter().find(|(found, _)| *found == name).unwrap().1;
    assert_eq!((value("CLOAKROOM_DATABASE_URL"), value("CLOAKROOM_JWT_SECRET")), ("", ""));
    // The installation makes a secret, of which only the length matters here.
    let secret = ("CLOAKROOM_JWT_SECRET", SECRET);
    let output = config(&[&settings[..], &[secret]].concat()).exits(2);
    let output = output.reports("CLOAKROOM_DATABASE_URL is not set");
    assert_eq!(output.err().lines().count(), 2, "{output:?}");
    let database = ("CLOAKROOM_DATABASE_URL", NOWHERE);
    config(&[&settings[..], &[secret, database]].concat()).exits(0);
}

/// Without its name, bytes that are not synced are none after a crash of the process.
#[test]
fn the_units_let_the_service_read_which_boot_this_is() {
    assert!(UNITS.contains("ProtectKernelTunables=true") && !UNITS.contains("\nProcSubset="));
}

/// What people meet on their first day, by any of the four ways to set the service up.
#[test]
fn the_settings_for_a_team_are_those_that_the_package_the_images_and_run_begin_with() {
    let (_, team) = SETTINGS.split_once("\n# For a team").unwrap();
    let (team, _) = team.split_once("\n# ---").unwrap();
    let expected = [
        ("CLOAKROOM_REGISTRATION", "off"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "any"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "1073741824"),
        ("CLOAKROOM_RATE_LIMIT_UPLOAD", "600"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "1200"),
        ("CLOAKROOM_PUBLIC_LIST", "on"),
        ("CLOAKROOM_STORAGE_QUOTA", ""),
        ("CLOAKROOM_USER_STORAGE_QUOTA", ""),
        ("CLOAKROOM_DELETED_QUOTA", ""),
    ];
    assert_eq!(assignments(team, ""), expected);
    // The other scripts read them there.
    for script in ["image", "run"] {
        let path = format!("{}/scripts/{script}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("/^# For a team/,/^# ---/"), "{script}");
    }
    // A form is a little larger than its file.
    let nginx = include_str!("../../../scripts/nginx.conf");
    assert!(nginx.contains("client_max_body_size 1025m;"));
}
