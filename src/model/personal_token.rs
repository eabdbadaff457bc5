//! Personal access tokens as clients see them.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::timestamp::Timestamp;

/// A personal access token, without its secret text.
//
// The database holds only a hash of that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PersonalToken {
    pub id: Uuid,
    /// The name that its user has given it.
    pub name: String,
    /// Whether it is accepted only for `GET` and `HEAD`.
    pub read_only: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The last use, rounded down to the hour. `null` if it has not been used.
    pub last_used_at: Option<Timestamp>,
}
