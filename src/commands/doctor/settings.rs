//! The settings in force and where they come from, and what is wrong with them.

use crate::commands::doubtful_settings::{self, DoubtfulSetting};
use crate::commands::findings::Findings;
use crate::config::{Config, Environment, ShownSetting};

/// Lists the settings, those with their defaults only if `all` is true, and then what is wrong with them.
pub fn look(findings: &mut Findings, config: &Config, refused: &[String], all: bool) {
    for ShownSetting { name, value, variable } in &config.shown {
        let source = match variable {
            Some(variable) if variable == name => "set".to_owned(),
            Some(variable) => format!("from {variable}"),
            None if all => "default".to_owned(),
            None => continue,
        };
        findings.ok(&format!("setting: {name}={value} ({source})"));
    }
    let defaults = config.shown.iter().filter(|setting| setting.variable.is_none()).count();
    if !all {
        findings.ok(&format!("setting: {defaults} others have their defaults, which --all shows"));
    }
    for fault in refused {
        findings.fault(&format!("setting: {fault}"), "`serve` refuses to start with it.");
    }
    for DoubtfulSetting { level, text, advice } in doubtful_settings::find(config) {
        let text = format!("setting: {text}");
        match level {
            log::Level::Error => findings.fault(&text, advice),
            _ => findings.warning(&text, advice),
        }
    }
    // A development service that only this host reaches may be as unsafe as it likes.
    if config.environment == Environment::Development && !config.listen.ip().is_loopback() {
        for text in config.unsafe_in_production() {
            findings.warning(&format!("setting: {text}"), "");
        }
    }
}
