//! Environment variables that only the tools read. They are no settings.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The password that a variable holds; `None` if it is not set or empty. Blanks around it are a part of it.
pub fn password(variable: &str) -> Option<String> {
    let password = env::var_os(variable)?.to_string_lossy().into_owned();
    Some(password).filter(|password| !password.is_empty())
}

/// The variables that programs started by this one may see: where they find programs and libraries, and the language
/// of their messages. No secret is among them.
pub fn inherited_by_programs() -> Vec<(&'static str, OsString)> {
    let names = ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_MESSAGES"];
    names.into_iter().filter_map(|name| Some((name, env::var_os(name)?))).collect()
}

/// The directories in which programs are searched for.
pub fn program_directories() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}
