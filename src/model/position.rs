//! Places in lists, by which clients ask for the next page.

use std::fmt;

use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use super::problems::value_error;
use super::timestamp::Timestamp;
use crate::error::Problem;

/// A place in a list that is in the order of times and then of ids. It is no number of rows, so what is added meanwhile
/// neither hides nor repeats others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimePosition {
    pub at: Timestamp,
    pub id: Uuid,
}

impl TimePosition {
    /// Later than all: where a list begins whose newest rows come first.
    pub const END: TimePosition =
        TimePosition { at: Timestamp(datetime!(9999-12-31 0:00 UTC)), id: Uuid::max() };

    /// Parses what [`TimePosition::fmt`] has written. The year must be 1 to 9999, as in [`Timestamp::parse`].
    pub fn parse(text: &str) -> Option<TimePosition> {
        let (micros, id) = text.split_once('-')?;
        let micros: i64 = micros.parse().ok()?;
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()?;
        let is_valid = (1..=9999).contains(&at.year());
        is_valid.then_some(TimePosition { at: Timestamp(at), id: id.parse().ok()? })
    }

    /// The same for the cursor in a query.
    pub fn cursor(text: &str) -> Result<TimePosition, Problem> {
        TimePosition::parse(text).ok_or_else(|| value_error("Invalid cursor"))
    }
}

/// The form in which clients pass it on: Unix time in microseconds, `-`, and the id.
impl fmt::Display for TimePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at.0.unix_timestamp_nanos() / 1000, self.id.simple())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_as_it_was_written_and_nothing_else_is() {
        let written = TimePosition {
            at: Timestamp(datetime!(2026-01-02 03:04:05.000006 UTC)),
            id: Uuid::from_u128(7),
        };
        let text = written.to_string();
        assert_eq!(text, "1767323045000006-00000000000000000000000000000007");
        assert_eq!(TimePosition::parse(&text), Some(written));
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
            assert_eq!(TimePosition::parse(text), None, "{text}");
        }
    }
}
