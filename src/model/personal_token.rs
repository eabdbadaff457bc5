//! Personal access tokens as clients see them.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::timestamp::Timestamp;

/// A personal access token, without the token itself.
//
// Only its hash is stored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PersonalToken {
    pub id: Uuid,
    /// What its user calls it.
    pub name: String,
    /// Whether it only serves to read.
    pub read_only: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The hour of the last use.
    pub last_used_at: Option<Timestamp>,
}
