//! Tokens whose signatures were verified lately. Verifying one takes longer than everything else that the process
//! computes for a small request, and clients send the same token again and again.
//!
//! A valid signature stays valid while the process runs, so remembering it is safe. Everything that can change is
//! checked for each request: the time, and, in the database, the session and the user.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};

/// Most tokens in one generation. With two generations, at most 2,048 tokens are remembered, in about half a MiB.
const MAX_GENERATION: usize = 1024;

/// Values by the SHA-256 of a token. The token itself would take ten times as much memory, and anyone who reads the
/// memory could use it.
pub struct VerifiedTokens<T> {
    generations: RwLock<Generations<T>>,
}

type Key = [u8; 32];

/// When the young generation is full, it becomes the old one, and the tokens that were not used since are forgotten.
struct Generations<T> {
    young: HashMap<Key, Arc<T>>,
    old: HashMap<Key, Arc<T>>,
}

impl<T> VerifiedTokens<T> {
    pub fn new() -> VerifiedTokens<T> {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        VerifiedTokens { generations: RwLock::new(generations) }
    }

    /// Returns the value that was remembered for `token`.
    pub fn get(&self, token: &str) -> Option<Arc<T>> {
        let key = key(token);
        let generations = self.generations.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = generations.young.get(&key) {
            return Some(known.clone());
        }
        let known = generations.old.get(&key)?.clone();
        drop(generations);
        self.insert_key(key, known.clone());
        Some(known)
    }

    /// Remembers `token`, which must have a valid signature: otherwise anyone could fill the memory with tokens.
    pub fn insert(&self, token: &str, known: Arc<T>) {
        self.insert_key(key(token), known);
    }

    fn insert_key(&self, key: Key, known: Arc<T>) {
        let mut generations = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= MAX_GENERATION {
            generations.old = mem::take(&mut generations.young);
        }
        generations.young.insert(key, known);
    }
}

fn key(token: &str) -> Key {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_are_used_are_remembered_and_the_number_of_all_is_bounded() {
        let tokens = VerifiedTokens::new();
        for n in 0..10 * MAX_GENERATION {
            tokens.insert(&n.to_string(), Arc::new(n));
            if n >= 7 {
                assert_eq!(tokens.get("7").as_deref(), Some(&7));
            }
        }
        let count =
            (0..10 * MAX_GENERATION).filter(|n| tokens.get(&n.to_string()).is_some()).count();
        assert!(count <= 2 * MAX_GENERATION, "{count}");
        assert!(tokens.get("0").is_none());
    }
}
