//! The secret that signs tokens: from the settings, or made and kept in the data directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::config::Config;
use crate::model::hex::hex;

/// The configured secret. If none is configured, which only development allows, it is read from the file `jwt-secret`
/// in the data directory, which is made at the first start. The error is a message for the operator.
pub fn load(config: &Config) -> Result<Vec<u8>, String> {
    if let Some(secret) = &config.jwt_secret {
        return Ok(secret.expose().as_bytes().to_vec());
    }
    let path = config.data_dir.join("jwt-secret");
    let secret = read_or_create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    match secret.len() {
        length if length >= config.jwt_algorithm.min_secret_bytes() => Ok(secret),
        length => Err(format!(
            "{} holds {length} bytes, too few; remove it to have it made anew",
            path.display()
        )),
    }
}

/// Reads the file, after making it if it does not exist.
fn read_or_create(path: &Path) -> io::Result<Vec<u8>> {
    if !path.exists() {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        create(path)?;
    }
    fs::read(path)
}

/// Writes a new secret to a temporary file and then links it to `path`. The link fails if another process was faster,
/// so that processes that start together use the same secret. A crash never leaves an incomplete file at `path`.
fn create(path: &Path) -> io::Result<()> {
    let temporary = path.with_extension(random_hex(16)?);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(random_hex(64)?.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Returns `count` random bytes from the operating system as hexadecimal digits.
fn random_hex(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}
