//! The audit log: events as administrators see them, and the words that they consist of.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::position::TimePosition;
use super::timestamp::Timestamp;

/// Something that somebody did or was refused. No field holds a password, a token, a key, or a name or address of a
/// person.
#[derive(Serialize)]
pub struct AuditEvent {
    pub id: Uuid,
    pub at: Timestamp,
    pub action: String,
    pub outcome: String,
    /// The account that acted. `None` if nobody was signed in, and for commands of the command line.
    pub actor_id: Option<Uuid>,
    /// What was acted on: `user`, `file`, `session` or `token`.
    pub subject_type: Option<String>,
    pub subject_id: Option<Uuid>,
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The value of `X-Request-ID`.
    pub request_id: Option<Uuid>,
    /// Its members depend on the action.
    pub details: Value,
}

impl AuditEvent {
    /// Its place in the log.
    pub fn position(&self) -> TimePosition {
        TimePosition { at: self.at, id: self.id }
    }
}

/// Every action. The type `audit_action` of the database has the same ones.
pub const ACTIONS: [&str; 34] = [
    "auth.register",
    "auth.login",
    "auth.logout",
    "auth.refresh_reuse",
    "auth.session_end",
    "auth.token_create",
    "auth.token_delete",
    "password.change",
    "password.reset_request",
    "password.reset",
    "email.change",
    "email.change_request",
    "user.create",
    "user.update",
    "user.delete",
    "users.export",
    "file.upload",
    "file.update",
    "file.delete",
    "file.restore",
    "file.purge",
    "file.link_create",
    "file.link_delete",
    "file.receive",
    "admin.create",
    "access.denied",
    "second_factor.enable",
    "second_factor.disable",
    "second_factor.recovery",
    "identity.join",
    "identity.leave",
    "auth.role",
    "folder.move",
    "folder.delete",
];
/// Every outcome. The type `audit_outcome` of the database has the same ones.
pub const OUTCOMES: [&str; 2] = ["success", "failure"];
