//! Passwords that are known to attackers, who try them first, so nobody may set them (NIST SP 800-63B, 3.1.1.2).

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::config::{Config, Environment};
use crate::error::Problem;
use crate::model::problems::value_error;
use crate::model::rules;
use crate::model::text::folded;

/// The most used passwords, in production refused without a setting.
const MOST_USED: &str = include_str!("refused_passwords.txt");

/// The largest file, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The refused passwords, compared without regard to case.
pub struct RefusedPasswords {
    /// Their hashes. A large list has millions of lines, of which these take less memory than the texts.
    hashes: HashSet<u64>,
    /// Has random keys, so nobody can find another text with the hash of one of them.
    hasher: RandomState,
}

impl RefusedPasswords {
    /// Reads those that the settings name. On failure: what is wrong with the setting.
    pub fn load(config: &Config) -> Result<RefusedPasswords, String> {
        let mut refused = RefusedPasswords { hashes: HashSet::new(), hasher: RandomState::new() };
        if config.environment == Environment::Production {
            let lines = MOST_USED.lines().skip_while(|line| line.starts_with('#'));
            lines.for_each(|line| refused.add(line));
        }
        if let Some(path) = &config.refused_passwords {
            let skipped = refused
                .add_file(path)
                .map_err(|e| format!("CLOAKROOM_REFUSED_PASSWORDS: {}: {e}", path.display()))?;
            if skipped > 0 {
                log::warn!(
                    "CLOAKROOM_REFUSED_PASSWORDS: {skipped} lines are no UTF-8, and refuse nothing"
                );
            }
        }
        Ok(refused)
    }

    /// Adds the lines of a file. Returns how many were skipped because they are no UTF-8.
    fn add_file(&mut self, path: &Path) -> io::Result<usize> {
        let mut reader = BufReader::new(File::open(path)?.take(MAX_FILE + 1));
        let (mut line, mut size, mut skipped) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line)? {
                0 => return Ok(skipped),
                read => size += read as u64,
            }
            if size > MAX_FILE {
                return Err(io::Error::other("larger than 64 MiB"));
            }
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            match str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
                Ok(text) => self.add(text),
                Err(_) => skipped += 1,
            }
        }
    }

    fn add(&mut self, password: &str) {
        self.hashes.insert(self.hasher.hash_one(folded(password)));
    }

    /// The rule for a new password: that of every password, and that it is not refused.
    pub fn accept(&self, text: &str) -> Result<String, Problem> {
        let password = rules::password(text)?;
        if self.hashes.contains(&self.hasher.hash_one(folded(&password))) {
            return Err(value_error("This password is known to attackers"));
        }
        Ok(password)
    }
}
