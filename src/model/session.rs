//! Sessions as clients see them.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::timestamp::Timestamp;

/// A session that has not ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Session {
    pub id: Uuid,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When its refresh token was last replaced.
    pub last_refreshed_at: Option<Timestamp>,
    /// When it ends unless it is refreshed before.
    pub expires_at: Timestamp,
    /// Where the last refresh came from, or else the sign-in. `null` if that was before addresses were stored.
    pub address: Option<IpAddr>,
    /// What the same client called itself.
    pub user_agent: Option<String>,
    /// Whether the request that shows it belongs to it.
    pub is_current: bool,
}
