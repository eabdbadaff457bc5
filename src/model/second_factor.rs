//! Second factors as they are stored, and the codes that they accept.

use std::time::Duration;

use super::timestamp::Timestamp;

/// A second factor, or one that is offered to its user, as a client with a certain address meets it.
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "no code is checked"))]
pub struct StoredSecondFactor {
    /// `None` if it is only offered.
    pub enabled_at: Option<Timestamp>,
    /// Whether it is offered, and may still be confirmed.
    pub is_pending: bool,
    /// The sealed secret.
    pub sealed: Vec<u8>,
    /// The hashes of the recovery codes that are left.
    pub recovery_codes: Vec<Vec<u8>>,
    /// Whether no code is taken until the password is another one, because a hundred wrong ones came in a row.
    pub is_refused: bool,
    /// How long no code is taken from the client's network, because ten wrong ones came from there within an hour.
    pub wait: Option<Duration>,
}

/// A code that fits the second factor. Only the statement that uses it decides whether it is taken: parallel requests
/// may have used it, or a limit may be reached meanwhile.
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "no code is accepted"))]
pub enum AcceptedCode {
    /// A one-time password, of this time step.
    Totp(i64),
    /// A recovery code with this hash.
    Recovery([u8; 32]),
}

impl AcceptedCode {
    /// The time step or the hash, of which the other is `None`.
    pub fn params(&self) -> (Option<i64>, Option<&[u8]>) {
        match self {
            AcceptedCode::Totp(step) => (Some(*step), None),
            AcceptedCode::Recovery(hash) => (None, Some(hash)),
        }
    }
}
