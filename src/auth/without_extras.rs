//! What the core build has in place of the modules of these names, see `src/without_extras.rs`.

/// No password matches a hash that another program made.
pub mod imported {
    use crate::config::ScryptCost;

    pub fn turns(stored: &str, _: ScryptCost, _: usize) -> Option<usize> {
        if stored.starts_with("imported:") {
            log::warn!("this build cannot check the password hash of an account from elsewhere");
        }
        Some(0)
    }

    pub fn matches(_: &str, _: &str) -> bool {
        false
    }
}

/// No list refuses passwords.
pub mod refused_passwords {
    use crate::config::Config;
    use crate::error::Problem;
    use crate::model::rules;

    pub struct RefusedPasswords;

    impl RefusedPasswords {
        pub fn load(_: &Config) -> Result<RefusedPasswords, String> {
            Ok(RefusedPasswords)
        }

        pub fn accept(&self, text: &str) -> Result<String, Problem> {
            rules::password(text)
        }
    }
}

/// Nothing is sealed.
pub mod sealing {
    pub struct SealingKeys;

    impl SealingKeys {
        pub fn new<'a>(_: impl Iterator<Item = &'a [u8]>) -> SealingKeys {
            SealingKeys
        }
    }
}
