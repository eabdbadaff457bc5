//! Reads accounts from rows.

use std::time::Duration;

use postgres::Row;

use super::from_row;
use crate::model::rules;
use crate::model::second_factor::StoredSecondFactor;
use crate::model::timestamp::Timestamp;
use crate::model::user::{Stats, User};

/// Reads the columns of a [`User`], which every query that returns accounts selects.
pub fn user_from_row(row: &Row) -> User {
    from_row!(row => User {
        id, username, email, name, permissions, is_active, created_at, updated_at, last_login, second_factor,
        has_password, has_identity, storage_quota, file_quota;
        // The table's check constraint admits no other word.
        role: rules::role(row.get("role")).unwrap_or_default(),
        pending_email: None,
        stats: from_row!(row => Stats { total_uploads, total_storage_used }),
    })
}

/// Reads a [`StoredSecondFactor`], as if it could not be confirmed. `None` if the row has none.
pub fn second_factor_from_row(row: &Row) -> Option<StoredSecondFactor> {
    let wait = row.get::<_, Option<f64>>("wait_seconds");
    Some(StoredSecondFactor {
        sealed: row.get::<_, Option<_>>("second_factor_sealed")?,
        enabled_at: row.get::<_, Option<_>>("second_factor_at").map(Timestamp),
        is_pending: false,
        recovery_codes: row.get::<_, Option<_>>("recovery_codes").unwrap_or_default(),
        is_refused: row.get("is_refused"),
        wait: wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    })
}
