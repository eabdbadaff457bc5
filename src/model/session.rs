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
    /// When its refresh token was last replaced. `null` if it never was.
    pub last_refreshed_at: Option<Timestamp>,
    /// When it expires unless it is refreshed before.
    pub expires_at: Timestamp,
    /// The client's IP address at the last refresh, or at the sign-in if there was none. `null` if it is not known.
    pub address: Option<IpAddr>,
    /// The `User-Agent` of the same request, at most 200 characters. `null` if it had none.
    pub user_agent: Option<String>,
    /// Whether this is the session of the request's own access token.
    pub is_current: bool,
}
