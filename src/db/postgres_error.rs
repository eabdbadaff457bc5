//! The meaning of the errors of the `postgres` crate: for a request, for the pool, and in the log.

use std::error::Error as _;

use postgres::error::{Severity, SqlState};

use crate::error::{Error, Unique};

/// Whether the connection can no longer be used: it failed, or the server or a pooler before it ended it. Whoever ends
/// a connection says so with an error of the severity FATAL or PANIC, which may arrive before the connection is seen to
/// end. PgBouncer does it with a code of class 08 where its own connection to the server broke under a statement, which
/// may have been carried out. A server that refuses a change has changed nothing, and its connections are good.
pub fn is_connection_lost(error: &postgres::Error) -> bool {
    match error.as_db_error() {
        Some(db) => {
            matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
                || db.code().code().starts_with("08")
        }
        None => has_failed(error),
    }
}

/// Whether the connection itself failed.
fn has_failed(error: &postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// Whether the server refused a prepared statement because the type of its result has changed since, as after a
/// migration by another process. It is refused before it runs, so it may be prepared again and repeated even if it
/// writes. Recognised by PostgreSQL's routine, because the message ("cached plan must not change result type") is
/// translated to the server's language and its SQLSTATE, 0A000, is shared by many errors.
pub fn is_stale_plan(error: &postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db| {
        db.code() == &SqlState::FEATURE_NOT_SUPPORTED
            && db.routine() == Some("RevalidateCachedQuery")
    })
}

/// Whether a later try may succeed, also one to connect: the connection failed, the server is starting, stopping or a
/// standby, or the SQLSTATE is of class 08 (connection failures) or 53 (lack of resources).
pub fn is_unavailable(error: &postgres::Error) -> bool {
    let Some(code) = error.code() else { return has_failed(error) };
    ["08", "53"].contains(&&code.code()[..2])
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
        ]
        .contains(code)
}

/// Whether the server refuses changes altogether: it lacks resources (class 53), above all disk space, or is read-only,
/// as a standby is, and as many providers make it when a disk is nearly full. Nothing was changed then.
pub fn refuses_changes(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        code.code().starts_with("53") || code == &SqlState::READ_ONLY_SQL_TRANSACTION
    })
}

/// Translates an error for the request that met it. Constraints are recognised by their names.
pub fn translate(error: &postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) if db.code() == &SqlState::UNIQUE_VIOLATION => match db.constraint() {
            Some("users_username_key") => Error::Taken(Unique::Username),
            Some("users_email_key") => Error::Taken(Unique::Email),
            Some("users_identity_key") => Error::IdentityInUse,
            constraint => Error::Internal(format!("unique violation of {constraint:?}")),
        },
        Some(db) if db.constraint() == Some("users_last_admin") => Error::LastAdmin,
        Some(db) if db.constraint() == Some("outbox_registrations") => {
            log::warn!("database: {}", describe(error));
            Error::Unavailable
        }
        Some(db) if db.code() == &SqlState::QUERY_CANCELED => Error::TimedOut,
        // The same to a client, who should not have to know which of the two timers ended first. The service can serve
        // others meanwhile, so it is not unavailable. The operator is told, who may end what holds the lock.
        Some(db) if db.code() == &SqlState::LOCK_NOT_AVAILABLE => {
            log::warn!("database: {}", describe(error));
            Error::TimedOut
        }
        _ if is_unavailable(error) => {
            log::warn!("database: {}", describe(error));
            Error::Unavailable
        }
        _ => Error::Internal(describe(error)),
    }
}

/// Returns what to do about an error whose message does not show its cause. Statements are prepared on a connection and
/// used on it later. If they are missing then, or exist before, a pooler before the server exchanges connections.
fn advice(code: &SqlState) -> &'static str {
    if code == &SqlState::LOCK_NOT_AVAILABLE {
        return "; pg_locks and pg_stat_activity show what holds the lock";
    }
    if [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT].contains(code) {
        "; a connection pooler before the database must use session pooling"
    } else {
        ""
    }
}

/// Formats an error for the log, with what to do about it if that is not obvious. PostgreSQL's DETAIL is left out,
/// because it may hold values of a row.
pub fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => {
            let (severity, message, code) = (db.severity(), db.message(), db.code());
            format!("{severity}: {message} ({}){}", code.code(), advice(code))
        }
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
