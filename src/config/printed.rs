//! The table of settings as people read it: in Markdown, and as a sample of a file of settings.

use std::collections::HashMap;
use std::fmt::Write;

use super::reader::SettingsReader;
use super::settings::{Config, SETTINGS, SettingDescription};

/// The longest line of the sample, in characters.
const MAX_LINE: usize = 120;

/// The table of all settings.
pub fn markdown_table() -> String {
    let mut text = "| Variable | Default | Meaning |\n|---|---|---|\n".to_owned();
    for (setting, default) in defaults() {
        let names: Vec<_> = setting.names.iter().map(|name| format!("`{name}`")).collect();
        let (names, meaning) = (names.join(", also "), meaning(setting));
        // Writing to a string never fails.
        let _ = writeln!(text, "| {names} | {default} | {meaning} |");
    }
    text
}

/// Each setting with its meaning and its default in comments. A default that is not one value, or is secret, is left
/// out; that of production is taken where they differ.
pub fn sample() -> String {
    let entries = defaults().map(|(setting, default)| {
        let (mut entry, mut length) = ("#".to_owned(), 1);
        for word in meaning(setting).split(' ') {
            if length + 1 + word.chars().count() > MAX_LINE {
                entry.push_str("\n#");
                length = 1;
            }
            entry.extend([" ", word]);
            length += 1 + word.chars().count();
        }
        let name = setting.names.first().unwrap_or(&"");
        let value = default.rsplit('`').nth(1).unwrap_or_default();
        format!("{entry}\n#{name}={value}\n")
    });
    entries.collect::<Vec<_>>().join("\n")
}

/// Each setting with its default in Markdown: the value that is in force if no variable is set, or a text about it.
fn defaults() -> impl Iterator<Item = (&'static SettingDescription, String)> {
    let mut reader = SettingsReader::new(HashMap::new());
    Config::read(&mut reader);
    SETTINGS.iter().zip(reader.shown).map(|(setting, shown)| {
        let value =
            if shown.value.is_empty() { "none".to_owned() } else { format!("`{}`", shown.value) };
        (setting, setting.default.map_or(value, str::to_owned))
    })
}

fn meaning(setting: &SettingDescription) -> String {
    setting.meaning.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
