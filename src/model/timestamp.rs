//! Points in time as the API shows them.

use serde::{Serialize, Serializer};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// RFC 3339, UTC, `Z`, microseconds (contract, 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub OffsetDateTime);

impl Timestamp {
    /// The text form.
    pub fn text(self) -> String {
        // Formatting fails only for years that do not fit four digits; those never leave the database.
        self.0
            .to_offset(UtcOffset::UTC)
            .format(FORMAT)
            .unwrap_or_default()
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_timestamp_is_utc_with_six_digits() {
        assert_eq!(
            Timestamp(datetime!(2026-01-02 03:04:05.000006 +02:00)).text(),
            "2026-01-02T01:04:05.000006Z"
        );
        assert_eq!(
            Timestamp(datetime!(2026-01-02 03:04:05 UTC)).text(),
            "2026-01-02T03:04:05.000000Z"
        );
    }
}
