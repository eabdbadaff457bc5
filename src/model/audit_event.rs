//! The audit log: events as administrators see them, and the words that they consist of.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

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

/// Every action. The type `audit_action` of the database has the same ones.
pub const ACTIONS: [&str; 31] = [
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
    "admin.create",
    "access.denied",
    "second_factor.enable",
    "second_factor.disable",
    "second_factor.recovery",
    "identity.join",
    "identity.leave",
    "auth.role",
];
/// Every outcome. The type `audit_outcome` of the database has the same ones.
pub const OUTCOMES: [&str; 2] = ["success", "failure"];

/// The place of an event in the log, which is in the order of times and then of ids. It is no number of events, so
/// events that are added meanwhile neither hide nor repeat others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPosition {
    pub at: Timestamp,
    pub id: Uuid,
}

impl AuditPosition {
    /// After every event.
    pub const END: AuditPosition =
        AuditPosition { at: Timestamp(datetime!(9999-12-31 0:00 UTC)), id: Uuid::max() };

    /// The place of `event`.
    pub fn of(event: &AuditEvent) -> AuditPosition {
        AuditPosition { at: event.at, id: event.id }
    }

    /// Parses what [`AuditPosition::fmt`] has written. The year must be 1 to 9999, as in [`Timestamp::parse`].
    pub fn parse(text: &str) -> Option<AuditPosition> {
        let (micros, id) = text.split_once('-')?;
        let micros: i64 = micros.parse().ok()?;
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()?;
        let is_valid = (1..=9999).contains(&at.year());
        is_valid.then_some(AuditPosition { at: Timestamp(at), id: id.parse().ok()? })
    }
}

/// The form in which clients pass it on: Unix time in microseconds, `-`, and the id.
impl fmt::Display for AuditPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at.0.unix_timestamp_nanos() / 1000, self.id.simple())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_as_it_was_written_and_nothing_else_is() {
        let written = AuditPosition {
            at: Timestamp(datetime!(2026-01-02 03:04:05.000006 UTC)),
            id: Uuid::from_u128(7),
        };
        let text = written.to_string();
        assert_eq!(text, "1767323045000006-00000000000000000000000000000007");
        assert_eq!(AuditPosition::parse(&text), Some(written));
        let id = "00000000000000000000000000000007";
        for text in [
            "",
            "1",
            id,
            "1-",
            "-1",
            &format!("x-{id}"),
            &format!("1-{id}7"),
            &format!("9223372036854775807-{id}"),
            &format!("253402300800000000-{id}"),
            &format!("-62135596800000001-{id}"),
        ] {
            assert_eq!(AuditPosition::parse(text), None, "{text}");
        }
    }
}
