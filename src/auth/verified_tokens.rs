//! Tokens whose signatures were verified lately. Verifying one takes longer than everything else that the process
//! computes for a small request, and clients send the same token again and again.
//!
//! A valid signature stays valid while the process runs, so remembering it is safe. Everything that can change is
//! checked for each request: the time, and, in the database, the session and the user.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};

/// Most tokens that are remembered, in about half a MiB. When one more comes, all are forgotten, and each is verified
/// anew at its next use.
const MAX_TOKENS: usize = 2048;

/// Values by the SHA-256 of a token. The token itself would take ten times as much memory, and anyone who reads the
/// memory could use it.
pub struct VerifiedTokens<T>(RwLock<HashMap<[u8; 32], Arc<T>>>);

impl<T> VerifiedTokens<T> {
    pub fn new() -> VerifiedTokens<T> {
        VerifiedTokens(RwLock::default())
    }

    /// Returns the value that was remembered for `token`.
    pub fn get(&self, token: &str) -> Option<Arc<T>> {
        let key = key(token);
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Remembers `token`, which must have a valid signature: otherwise anyone could fill the memory with tokens.
    pub fn insert(&self, token: &str, known: Arc<T>) {
        let key = key(token);
        let mut tokens = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_TOKENS {
            tokens.clear();
        }
        tokens.insert(key, known);
    }
}

fn key(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_remembered_and_the_number_of_all_is_bounded() {
        let tokens = VerifiedTokens::new();
        for n in 0..10 * MAX_TOKENS {
            tokens.insert(&n.to_string(), Arc::new(n));
            assert_eq!(tokens.get(&n.to_string()).as_deref(), Some(&n));
        }
        let count = (0..10 * MAX_TOKENS).filter(|n| tokens.get(&n.to_string()).is_some()).count();
        assert!(count <= MAX_TOKENS, "{count}");
        assert!(tokens.get("0").is_none());
    }
}
