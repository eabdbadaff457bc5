//! The console: a page for people, and the script modules and styles that it loads, which are parts of the binary.

use std::collections::BTreeSet;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::config::{Config, PasswordLogin, Smtp};
use crate::model::hex;
use crate::model::media_type::spellings;

/// Includes files of a folder at compile time, each with its name.
macro_rules! files {
    ($folder:literal $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name)))),*]
    };
}

/// The page of the console, which has a form of its own for each of [`PAGES`]. In it, `{assets}` stands for the path of
/// the folder of the others, `{service}` for what they need to know of the settings, `{preloads}` for the modules that
/// are needed first, and `{heading}` for that of the page, which is seen until they have come, unless `{hidden}`;
/// `{class}` is what the page looks like from the first.
const CONSOLE: &str = include_str!("../console/index.html");

/// All that the page of the console loads, from paths with a hash of all of it, so that browsers may keep it for good.
#[rustfmt::skip]
const ASSETS: &[(&str, &str)] = files!("../console/"
    "account.js" "accounts.js" "api.js" "browser.js" "changes.js" "contents.js" "controls.js" "dialogs.js" "dom.js"
    "drops.js" "file-actions.js" "file-links.js" "file-list.js" "file-type.js" "folders.js" "format.js" "forms.js"
    "frame.js" "icon.svg" "identity.js" "link-page.js" "mail-token.js" "main.js" "marks.js" "pages.css"
    "pages/account-identity.js" "pages/account-leave.js" "pages/account-password.js" "pages/account-profile.js"
    "pages/account-second-factor.js" "pages/account-sessions.js" "pages/account-tokens.js" "pages/audit.js"
    "pages/confirm.js" "pages/deleted-files.js" "pages/file.js" "pages/files.js" "pages/forgotten.js" "pages/link.js"
    "pages/links.js" "pages/oidc.js" "pages/public.js" "pages/register.js" "pages/reset.js" "pages/send.js"
    "pages/sign-in.js" "pages/stats.js" "pages/user-new.js" "pages/user-profile.js" "pages/user.js" "pages/users.js"
    "preview.js" "proof.js" "qr.js" "resumable.js" "router.js" "selection.js" "shared-files.js" "style.css" "tables.js"
    "tabs.js" "text-preview.js" "texts.js" "texts/account.js" "texts/admin.js" "texts/confirmation.js"
    "texts/file-types.js"
    "texts/files.js" "texts/identity.js" "texts/one-file.js" "texts/send.js" "texts/shared-files.js" "transfers.js"
    "tray.js" "uploads.js" "user-agents.js" "view.js"
);

/// Bytes of the hash in the paths: by 64 bits no two versions are the same by chance.
const VERSION_BYTES: usize = 8;

/// Where people come back from the OpenID provider, where there is one.
const PROVIDER_PAGE: &str = "/console/oidc";

/// The pages on which people begin: path, module, and for those without a navigation the heading until it is known. All
/// other paths of the console have that of the files, which is the first one of those who are signed in.
const PAGES: [(&str, &str, Option<&str>); 9] = [
    ("/console", "pages/sign-in.js", Some("")),
    ("/console/files", "pages/files.js", None),
    ("/console/register", "pages/register.js", Some("Create an account")),
    ("/console/forgotten", "pages/forgotten.js", Some("Reset your password")),
    ("/console/link", "pages/link.js", Some("A file for you")),
    ("/console/send", "pages/send.js", Some("Send files")),
    ("/console/reset", "pages/reset.js", Some("Choose a password")),
    ("/console/confirm", "pages/confirm.js", Some("Confirm your e-mail address")),
    (PROVIDER_PAGE, "pages/oidc.js", Some("Sign in")),
];

/// The pages and all that they load: path, name of the file, and content.
pub fn files(config: &Config) -> impl Iterator<Item = (String, &'static str, String)> {
    let mut hash = Sha256::new_with_prefix(CONSOLE);
    let contents: Vec<_> = ASSETS.iter().map(|(_, content)| without_comments(content)).collect();
    for ((name, _), content) in ASSETS.iter().zip(&contents) {
        // The lengths keep a byte that moves from one file to the next from going unnoticed.
        hash.update(format!("{name} {}\n", content.len()));
        hash.update(content);
    }
    let assets = format!("/console/{}", hex(&hash.finalize()[..VERSION_BYTES]));
    let is_offered = |path| path != PROVIDER_PAGE || config.provider.is_some();
    let offered = PAGES.into_iter().filter(|(path, ..)| is_offered(*path));
    let pages = offered.map(|(path, module, heading)| {
        (path.to_owned(), "index.html", console(config, &assets, module, heading))
    });
    let pages: Vec<_> = pages.collect();
    let files = ASSETS.iter().zip(contents);
    let files = files.map(move |((name, _), content)| (format!("{assets}/{name}"), *name, content));
    pages.into_iter().chain(files)
}

/// A module or a style sheet with empty lines in place of those that are comments: a quarter of what a first visit
/// loads, compressed, and half a second in a slow network. What browsers say of a line is still true.
fn without_comments(content: &str) -> String {
    let mut is_inside = false;
    let mut kept = String::with_capacity(content.len());
    for line in content.lines() {
        let text = line.trim();
        let is_end = text.ends_with("*/");
        // What follows the type of something in its line is no comment.
        is_inside |= text.starts_with("/*") && (is_end || !text.contains("*/"));
        if !is_inside && !text.starts_with("//") {
            kept.push_str(line);
        }
        kept.push('\n');
        is_inside &= !is_end;
    }
    kept
}

/// Adds a module and all that it imports, and these, and so on. A browser finds out about them only one after the
/// other, which takes a round trip each time.
fn add_module(name: &'static str, found: &mut BTreeSet<&'static str>) {
    if found.insert(name) {
        for import in imports_of(name) {
            add_module(import, found);
        }
    }
}

/// The modules that one imports when it is loaded. What it imports while the page is used is named in a call, such as
/// `import("./preview.js")`.
fn imports_of(module: &str) -> impl Iterator<Item = &'static str> {
    let folder = module.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let text = ASSETS.iter().find(|(name, _)| *name == module).map_or("", |(_, content)| content);
    let imports = text.split(" from \"").skip(1).chain(text.split("\nimport \"").skip(1));
    imports.filter_map(move |rest| {
        let import = rest.split('"').next()?;
        let path = match import.strip_prefix("./") {
            Some(path) => format!("{folder}{path}"),
            None => import.trim_start_matches("../").to_owned(),
        };
        ASSETS.iter().find(|(name, _)| *name == path).map(|(name, _)| *name)
    })
}

/// The page of the console with what it needs to know of the settings.
fn console(config: &Config, assets: &str, module: &'static str, heading: Option<&str>) -> String {
    let mut modules = BTreeSet::new();
    add_module("main.js", &mut modules);
    add_module(module, &mut modules);
    if config.provider.is_some() && heading.is_some() {
        add_module("identity.js", &mut modules); // which such pages import themselves
    }
    modules.remove("main.js"); // its script is in every page
    let link = |name| format!("<link rel=\"modulepreload\" href=\"{{assets}}/{name}\">\n");
    let preloads: String = modules.into_iter().map(link).collect();
    let provider = config.provider.as_ref().map(|provider| {
        json!({
            "name": provider.name,
            "registration": config.oidc_registration,
            "leads": config.password_login == PasswordLogin::Admins,
        })
    });
    let service = json!({
        "registration": config.registers(),
        "passwordResets": !matches!(config.smtp, Smtp::Off),
        "emailConfirmation": config.confirms_email(),
        "publicList": config.public_list,
        "types": config.allowed_upload_types.iter().collect::<Vec<_>>(),
        "spellings": config.allowed_upload_types.iter().flat_map(spellings).collect::<Vec<_>>(),
        "fileBytes": config.max_upload_size,
        "trashDays": config.trash_days,
        "userBytes": config.user_storage_quota,
        "userFiles": config.user_file_quota,
        "provider": provider,
    });
    // Without `<` nothing in this ends the element that it stands in.
    let service = service.to_string().replace('<', "\\u003c");
    let html = CONSOLE.replace("{preloads}", &preloads).replace("{assets}", assets);
    let html = html.replace("{hidden}", if heading.is_some() { "" } else { "hidden" });
    let is_link = ["pages/link.js", "pages/send.js"].contains(&module);
    let html = html.replace("{class}", if is_link { "is-link" } else { "" });
    html.replace("{heading}", heading.unwrap_or_default()).replace("{service}", &service)
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
        for (name, text) in ASSETS {
            assert!(text.lines().count() <= 400, "{name} has more than 400 lines");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(120), "{name} has a line of {longest:?} characters");
        }
    }

    #[test]
    fn lines_that_are_comments_become_empty_and_all_others_stay() {
        let text = "// a\nb; // c\n/** d\n * e */\n  /** f */ g\n/* h */\ni(\"/*\")\n";
        assert_eq!(without_comments(text), "\nb; // c\n\n\n  /** f */ g\n\ni(\"/*\")\n");
    }

    /// What the script that draws a page would name otherwise than its document would change before the person's eyes.
    #[test]
    fn every_import_is_followed_and_the_headings_are_those_of_the_texts() {
        for (name, content) in ASSETS {
            let written = content.lines().filter(|line| line.starts_with("import ")).count();
            assert_eq!(imports_of(name).count(), written, "{name}");
        }
        for (path, module, heading) in PAGES {
            assert!(ASSETS.iter().any(|(name, _)| *name == module), "{path}");
            let title = format!("title: \"{}", heading.unwrap_or_default());
            assert!(ASSETS.iter().any(|(_, content)| content.contains(&title)), "{path}");
        }
    }
}
