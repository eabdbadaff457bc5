//! Uploads that a client sends again with the same `Idempotency-Key`.

pub mod statements;
