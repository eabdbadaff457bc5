//! The files of the console, the pages for people. They are part of the binary. `console/index.html` loads all others,
//! from paths with a hash of all of them, so that browsers may keep them for good.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::config::{Config, Registration, Smtp};
use crate::http::representations::Representations;
use crate::model::hex;

/// Includes files of `console/` at compile time, each with its name.
macro_rules! files {
    ($($name:literal,)*) => {
        &[$(($name, include_bytes!(concat!("console/", $name)))),*]
    };
}

/// The page. In it, `{assets}` stands for the path of the folder of the others, and `{service}` for what they need to
/// know of the settings.
const PAGE: &str = include_str!("console/index.html");

/// All that the page loads.
const FILES: &[(&str, &[u8])] = files![
    "account.js",
    "accounts.js",
    "api.js",
    "browser.js",
    "controls.js",
    "dialogs.js",
    "dom.js",
    "drops.js",
    "errors.js",
    "file-actions.js",
    "file-links.js",
    "file-type.js",
    "filters.js",
    "format.js",
    "forms.js",
    "frame.js",
    "icon.svg",
    "limits.js",
    "main.js",
    "notices.js",
    "pages/account-leave.js",
    "pages/account-password.js",
    "pages/account-profile.js",
    "pages/account-second-factor.js",
    "pages/account-sessions.js",
    "pages/account-tokens.js",
    "pages/audit-event.js",
    "pages/audit.js",
    "pages/exports.js",
    "pages/file.js",
    "pages/files.js",
    "pages/forgotten.js",
    "pages/register.js",
    "pages/reset.js",
    "pages/sign-in.js",
    "pages/stats.js",
    "pages/user-access.js",
    "pages/user-new.js",
    "pages/user-profile.js",
    "pages/user.js",
    "pages/users.js",
    "plots.js",
    "router.js",
    "save.js",
    "style.css",
    "tables.js",
    "tabs.js",
    "texts.js",
    "texts/account.js",
    "texts/admin.js",
    "texts/files.js",
    "transfers.js",
    "tray.js",
    "uploads.js",
    "user-agents.js",
];

/// Digits of the hash in the paths of files: 64 bits, by which no two versions are the same by chance.
const VERSION_DIGITS: usize = 16;

/// The console, as it is sent.
pub struct Console {
    page: Representations,
    /// The hash of all files, in lower-case hexadecimal digits.
    version: String,
    files: HashMap<&'static str, Representations>,
}

/// What a path of the console names.
pub enum Found<'a> {
    Page(&'a Representations),
    File(&'a Representations),
    Nothing,
}

impl Console {
    /// Compresses all files, and writes into the page what the service offers and takes with these settings.
    pub fn new(config: &Config) -> Console {
        let mut hash = Sha256::new_with_prefix(PAGE);
        for (name, content) in FILES {
            // The lengths keep a byte that moves from one file to the next from going unnoticed.
            hash.update(format!("{name} {}\n", content.len()));
            hash.update(content);
        }
        let version = hex(&hash.finalize()[..VERSION_DIGITS / 2]);
        // Media types have no `<`, so nothing in this ends the element that it stands in.
        let service = json!({
            "registration": config.registration == Registration::Open,
            "passwordResets": !matches!(config.smtp, Smtp::Off),
            "types": config.allowed_upload_types.iter().collect::<Vec<_>>(),
            "fileBytes": config.max_upload_size,
            "userBytes": config.user_storage_quota,
        });
        let page = PAGE.replace("{assets}", &format!("/console/{version}"));
        let page = page.replace("{service}", &service.to_string());
        let file = |(name, content): &(&'static str, &'static [u8])| {
            (*name, Representations::new(content_type(name), *content))
        };
        Console {
            page: Representations::new(content_type("index.html"), page.into_bytes()),
            version,
            files: FILES.iter().map(file).collect(),
        }
    }

    /// What has a path, which is relative to `/console/`. Files have paths that begin with a hash; one of another
    /// version may be asked for by a page that was loaded before an upgrade.
    pub fn find(&self, path: &str) -> Found<'_> {
        let (version, name) = path.split_once('/').unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if version.len() != VERSION_DIGITS || !version.bytes().all(is_digit) {
            return Found::Page(&self.page);
        }
        let file = self.files.get(name).filter(|_| version == self.version);
        file.map_or(Found::Nothing, Found::File)
    }
}

/// The media type of a file by the end of its name.
fn content_type(name: &str) -> &'static str {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Adds the names of all files below `folder`, relative to `base`.
    fn add_names(base: &Path, folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                add_names(base, &path, names);
            } else {
                let name = path.strip_prefix(base).expect("a file below the folder");
                names.insert(name.to_str().expect("UTF-8").to_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_table_and_has_a_type() {
        let (base, mut found) =
            (concat!(env!("CARGO_MANIFEST_DIR"), "/src/api/console"), BTreeSet::new());
        add_names(Path::new(base), Path::new(base), &mut found);
        assert!(found.remove("index.html"));
        let listed: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, found.into_iter().collect::<Vec<_>>(), "in alphabetical order");
        for (name, content) in FILES {
            assert_ne!(content_type(name), "application/octet-stream", "{name}");
            let text = std::str::from_utf8(content).expect("UTF-8");
            assert!(text.lines().count() <= 400, "{name} has more than 400 lines");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120), "{name} has a line of {longest:?} characters");
        }
    }

    #[test]
    fn only_paths_with_a_hash_name_files_and_only_those_of_this_version_are_there() {
        let console = Console::new(&Config::of_test_database());
        let (version, other) = (&console.version, "0123456789abcdef");
        let (name, _) = FILES.first().expect("a file");
        assert!(matches!(console.find(&format!("{version}/{name}")), Found::File(_)));
        for path in [format!("{other}/{name}"), format!("{version}/x.js"), format!("{version}/")] {
            assert!(matches!(console.find(&path), Found::Nothing), "{path}");
        }
        let upper = version.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A");
        let id = "11d8d66a-4d13-4a2e-8da9-fdfeee782a50";
        for path in ["", "files", version, &format!("{upper}/{name}"), &format!("users/{id}")] {
            assert!(matches!(console.find(path), Found::Page(_)), "{path}");
        }
    }
}
