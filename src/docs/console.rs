//! The console: a page for people, and the script modules and styles that it loads, which are parts of the binary.

use std::borrow::Cow;
use std::iter;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::config::{Config, Registration, Smtp};
use crate::model::hex;
use crate::model::media_type::spellings;

/// Includes files of a folder at compile time, each with its name.
macro_rules! files {
    ($folder:literal $($name:literal)*) => {
        &[$(($name, include_bytes!(concat!($folder, $name)))),*]
    };
}

/// The page of the console. In it, `{assets}` stands for the path of the folder of the others, and `{service}` for what
/// they need to know of the settings.
const CONSOLE: &str = include_str!("../console/index.html");

/// All that the page of the console loads, from paths with a hash of all of it, so that browsers may keep it for good.
#[rustfmt::skip]
const ASSETS: &[(&str, &[u8])] = files!("../console/"
    "account.js" "accounts.js" "api.js" "browser.js" "changes.js" "controls.js" "dialogs.js"
    "dom.js" "drops.js" "errors.js" "file-actions.js" "file-links.js" "file-list.js" "file-marks.js" "file-type.js" "folders.js"
    "format.js" "forms.js" "frame.js" "icon.svg" "limits.js" "mail-token.js" "main.js" "notices.js" "pages.css"
    "pages/account-leave.js" "pages/account-password.js" "pages/account-profile.js" "pages/account-second-factor.js"
    "pages/account-sessions.js" "pages/account-tokens.js" "pages/audit-event.js" "pages/audit.js" "pages/confirm.js"
    "pages/deleted-files.js" "pages/exports.js" "pages/file.js" "pages/files.js" "pages/forgotten.js"
    "pages/link.js" "pages/register.js" "pages/reset.js" "pages/sign-in.js" "pages/stats.js" "pages/user-access.js"
    "pages/user-new.js" "pages/user-profile.js" "pages/user.js" "pages/users.js" "picks.js" "plots.js" "preview.js"
    "router.js" "save.js" "selection.js" "style.css" "tables.js" "tabs.js" "texts.js" "texts/account.js"
    "texts/admin.js" "texts/confirmation.js" "texts/file-types.js" "texts/files.js" "texts/one-file.js" "transfers.js" "tray.js"
    "uploads.js" "user-agents.js"
);

/// Bytes of the hash in the paths: by 64 bits no two versions are the same by chance.
const VERSION_BYTES: usize = 8;

/// The page and all that it loads: path, name of the file, and content.
pub fn files(config: &Config) -> impl Iterator<Item = (String, &'static str, Cow<'static, [u8]>)> {
    let mut hash = Sha256::new_with_prefix(CONSOLE);
    for (name, content) in ASSETS {
        // The lengths keep a byte that moves from one file to the next from going unnoticed.
        hash.update(format!("{name} {}\n", content.len()));
        hash.update(content);
    }
    let assets = format!("/console/{}", hex(&hash.finalize()[..VERSION_BYTES]));
    let page = console(config, &assets).into_bytes();
    let files = ASSETS.iter();
    let files = files
        .map(move |(name, content)| (format!("{assets}/{name}"), *name, Cow::Borrowed(*content)));
    iter::once(("/console".to_owned(), "index.html", Cow::Owned(page))).chain(files)
}

/// The page of the console with what it needs to know of the settings.
fn console(config: &Config, assets: &str) -> String {
    // Media types have no `<`, so nothing in this ends the element that it stands in.
    let service = json!({
        "registration": config.registration == Registration::Open,
        "passwordResets": !matches!(config.smtp, Smtp::Off),
        "emailConfirmation": config.confirms_email(),
        "types": config.allowed_upload_types.iter().collect::<Vec<_>>(),
        "spellings": config.allowed_upload_types.iter().flat_map(spellings).collect::<Vec<_>>(),
        "fileBytes": config.max_upload_size,
        "trashDays": config.trash_days,
        "userBytes": config.user_storage_quota,
        "userFiles": config.user_file_quota,
    });
    CONSOLE.replace("{assets}", assets).replace("{service}", &service.to_string())
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
            (concat!(env!("CARGO_MANIFEST_DIR"), "/src/console"), BTreeSet::new());
        add_names(Path::new(base), Path::new(base), &mut found);
        assert!(found.remove("index.html"));
        let listed: Vec<_> = ASSETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, found.into_iter().collect::<Vec<_>>(), "in alphabetical order");
        for (name, content) in ASSETS {
            let text = std::str::from_utf8(content).expect("UTF-8");
            assert!(text.lines().count() <= 400, "{name} has more than 400 lines");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120), "{name} has a line of {longest:?} characters");
        }
    }
}
