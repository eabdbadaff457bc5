//! What follows from several settings together.

use super::settings::{Config, MAX_BYTES};
use super::words::{EmailConfirmation, PasswordLogin, Registration};

impl Config {
    /// Whether accounts must confirm their e-mail addresses.
    pub fn confirms_email(&self) -> bool {
        self.email_confirmation == EmailConfirmation::Required
    }

    /// Whether anybody may make an account with a password.
    pub fn registers(&self) -> bool {
        self.registration == Registration::Open && self.password_login == PasswordLogin::On
    }

    /// How many passwords may be hashed at once: one on each core, but under a memory limit of the control group no
    /// more than a quarter of it has room for.
    pub fn hashes_at_once(&self, cores: usize) -> usize {
        let room = self.memory_limit.map_or(u64::MAX, |limit| limit / 4 / self.scrypt.memory());
        cores.min(room.max(1) as usize)
    }

    /// Bytes that the files of all young accounts which registered themselves may have together. Where registrations
    /// are limited, half of the quota is left to others, so that one address cannot fill the service for all.
    pub fn young_storage_quota(&self) -> u64 {
        if self.registrations_per_day == 0 { MAX_BYTES } else { self.storage_quota / 2 }
    }

    /// Every configured secret whose tokens are valid, each with its name for messages.
    pub fn signing_secrets(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let current = self.jwt_secret.iter().map(|secret| ("CLOAKROOM_JWT_SECRET", secret));
        let old = self.jwt_old_secrets.iter();
        let old = old.map(|secret| ("a secret in CLOAKROOM_JWT_OLD_SECRETS", secret));
        current.chain(old).map(|(name, secret)| (name, secret.expose()))
    }
}
