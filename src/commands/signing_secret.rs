//! The secret that signs tokens.

use std::fs;
use std::io;
use std::path::Path;

use crate::config::Config;
use crate::model::hex::hex;
use crate::storage::private_file;

/// The configured secret. Where none is configured, which only development allows, it is the one in the
/// file `jwt-secret` of the data directory, made at the first start. On failure: what to tell the operator.
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

fn read_or_create(path: &Path) -> io::Result<Vec<u8>> {
    if !path.exists() {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // Of processes that start together one creates it, and all read that.
        private_file::create(path, random_hex(64)?.as_bytes())?;
    }
    fs::read(path)
}

/// `count` random bytes from the operating system, as hexadecimal digits.
fn random_hex(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}
