//! The secret that signs tokens: from the settings, or made and kept in the data directory. And the keys that seal
//! second factors, for which it serves if the settings have none: what an old key has sealed is sealed anew at the
//! start, so that the old key is needed no longer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::auth::random_bytes;
use crate::auth::sealing::SealingKeys;
use crate::config::Config;
use crate::model::hex;
use crate::storage::create_private_file;

/// The configured secret. If none is configured, which only development allows, it is read from the file `jwt-secret`
/// in the data directory, which is made at the first start, and must be as long as the algorithm demands. The error is
/// a message for the operator.
pub fn load(config: &Config) -> Result<Vec<u8>, String> {
    if let Some(secret) = &config.jwt_secret {
        return Ok(secret.expose().as_bytes().to_vec());
    }
    let path = path(config);
    let shown = path.display();
    let secret = read_or_create(&path).map_err(|e| format!("{shown}: {e}"))?;
    let length = secret.len();
    if length < config.jwt_algorithm.min_secret_bytes() {
        return Err(format!(
            "{shown} holds {length} bytes, too few; remove it to have it made anew"
        ));
    }
    Ok(secret)
}

/// The keys that seal second factors. Beside those of the settings, which come first, the secrets that sign tokens open
/// what was sealed before the settings had any. `signing_secret` is `None` if it was not made yet.
pub fn sealing_keys(config: &Config, signing_secret: Option<&[u8]>) -> SealingKeys {
    let of_settings = config.seal_keys.iter().map(|key| key.expose().as_bytes());
    let old = config.jwt_old_secrets.iter().map(|secret| secret.expose().as_bytes());
    SealingKeys::new(of_settings.chain(signing_secret).chain(old))
}

pub fn path(config: &Config) -> PathBuf {
    config.data_dir.join("jwt-secret")
}

/// Reads the file, after making it if it does not exist.
fn read_or_create(path: &Path) -> io::Result<Vec<u8>> {
    if !path.exists() {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let secret = random_bytes::<64>().map_err(|e| io::Error::other(format!("{e:?}")))?;
        // If several processes start together, one of them creates the file, and all of them read that one.
        create_private_file(path, hex(&secret).as_bytes())?;
    }
    fs::read(path)
}
