//! Points in time, as clients send and receive them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// The length of the text form, `2026-01-02T03:04:05.000000Z`, in bytes.
const LENGTH: usize = 27;
/// The length of the date in it, in bytes.
const DATE_LENGTH: usize = 10;

/// A point in time, written as RFC 3339 in UTC with `Z` and microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub OffsetDateTime);

impl Timestamp {
    pub fn now() -> Timestamp {
        Timestamp(OffsetDateTime::now_utc())
    }

    /// The text form, without an allocation, because an export writes millions of them.
    pub fn bytes(self) -> [u8; LENGTH] {
        let at = self.0.to_offset(UtcOffset::UTC);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        // RFC 3339 has four digits for the year, and no stored timestamp needs more.
        write_digits(&mut text[..4], at.year().clamp(0, 9999).unsigned_abs());
        write_digits(&mut text[5..7], u8::from(at.month()).into());
        write_digits(&mut text[8..10], at.day().into());
        write_digits(&mut text[11..13], at.hour().into());
        write_digits(&mut text[14..16], at.minute().into());
        write_digits(&mut text[17..19], at.second().into());
        write_digits(&mut text[20..26], at.microsecond());
        text
    }

    /// The time without a fraction of its second, as in headers of HTTP.
    pub fn to_the_second(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.unix_timestamp().max(0).unsigned_abs())
    }

    /// The text form.
    pub fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Parses RFC 3339, and forms of ISO 8601 that programs write: a time without an offset is UTC, a date alone is its
    /// midnight in UTC, the seconds may be absent, and an offset may lack its colon or its minutes. A space is accepted
    /// in place of `T`, and of the `+` of an offset, because decoding a query string turns an unescaped `+` into a
    /// space.
    ///
    /// The year in UTC must be 1 to 9999: [`Timestamp::bytes`] has four digits for it, and the conversion to UTC, which
    /// the database client does as well, panics beyond.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let (date, time) = text.split_at_checked(DATE_LENGTH)?;
        // The library accepts any character between date and time, but RFC 3339 allows only these.
        let time = match time {
            "" => "00:00",
            time => time.strip_prefix(['T', 't', ' '])?,
        };
        let offset = time.find(['Z', 'z', '+', '-', ' ']).unwrap_or(time.len());
        let (time, offset) = time.split_at(offset);
        let seconds = if time.len() == "00:00".len() { ":00" } else { "" };
        let offset = offset.replacen(' ', "+", 1);
        let offset = match offset.split_at_checked("+00".len()) {
            Some((hours, "")) => format!("{hours}:00"),
            Some((hours, minutes)) if minutes.len() == 2 => format!("{hours}:{minutes}"),
            None if offset.is_empty() => "Z".into(),
            _ => offset,
        };
        let text = format!("{date}T{time}{seconds}{offset}");
        let utc = OffsetDateTime::parse(&text, &Rfc3339).ok()?.checked_to_offset(UtcOffset::UTC)?;
        (1..=9999).contains(&utc.year()).then_some(Timestamp(utc))
    }
}

/// The time since 1970-01-01 UTC by the system clock.
pub fn unix_time() -> Duration {
    // With a clock before 1970 this is zero. Tokens then last longer, but no request fails because of it.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Fills `digits` with the decimal digits of `number`, padded with zeros.
fn write_digits(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The text form is ASCII.
        serializer.serialize_str(str::from_utf8(&self.bytes()).unwrap_or_default())
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

    #[test]
    fn rfc_3339_and_what_programs_write_of_iso_8601_are_understood_and_nothing_else() {
        for (text, meant) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02t03:04:05z", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02 03:04:05Z", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600000Z"),
            ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02T03:04:05 02:00", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02 03:04:05 02:00", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02T23:30:00-05:30", "2026-01-03T05:00:00.000000Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
            ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02 03:04:05.6", "2026-01-02T03:04:05.600000Z"),
            ("2026-01-02", "2026-01-02T00:00:00.000000Z"),
            ("2026-01-02T03:04", "2026-01-02T03:04:00.000000Z"),
            ("2026-01-02 02:00", "2026-01-02T02:00:00.000000Z"),
            ("2026-01-02T03:04Z", "2026-01-02T03:04:00.000000Z"),
            ("2026-01-02t03:04z", "2026-01-02T03:04:00.000000Z"),
            ("2026-01-02T03:04+02:00", "2026-01-02T01:04:00.000000Z"),
            ("2026-01-02T03:04:05+0200", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02T03:04:05-0530", "2026-01-02T08:34:05.000000Z"),
            ("2026-01-02T03:04:05+02", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02T03:04:05.6-05", "2026-01-02T08:04:05.600000Z"),
            ("2026-01-02 03:04:05 0200", "2026-01-02T01:04:05.000000Z"),
            ("2026-01-02 03:04 02", "2026-01-02T01:04:00.000000Z"),
            ("2026-01-02 03:04 02:00", "2026-01-02T01:04:00.000000Z"),
            ("2026-01-02T03:04:05+0000", "2026-01-02T03:04:05.000000Z"),
            ("2026-01-02T03:04:05+00", "2026-01-02T03:04:05.000000Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z"),
            ("0001-01-01", "0001-01-01T00:00:00.000000Z"),
            ("0000-12-31T23:30:00-01:00", "0001-01-01T00:30:00.000000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(
                Timestamp::parse(text).map(Timestamp::text).as_deref(),
                Some(meant),
                "{text}"
            );
        }
        for text in [
            "",
            "now",
            "2026-01",
            "2026-01-0\u{e9}",
            "2026-02-30",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+00:01",
            "0000-06-01",
            "10000-01-01T00:00:00Z",
            "-001-01-01T00:00:00Z",
            "2026-13-02T03:04:05Z",
            "2026-02-29T03:04:05Z",
            "2026-01-02T24:04:05Z",
            "2026-01-02x03:04:05Z",
            "1767323045",
            "2026-01-02T03:04:05Z ",
            "2026-01-02T03:04:05 Z",
            "2026-01-02 03:04:05 +0000",
            "2026-01-02T03:04:05+2",
            "2026-01-02T03:04:05+200",
            "2026-01-02T03:04:05+2:00",
            "2026-01-02T03:04:05+020000",
            "2026-01-02T03:04:05+02:00:00",
            "2026-01-02T03:04:05+0\u{e9}0",
            "2026-01-02T03:04:05+\u{e9}00",
            "2026-01-02T03:04:05+02:",
            "2026-01-02T03:04:05+0260",
            "2026-01-02T03:04:05+24",
            "2026-01-02T03:04:05Z00",
            "2026-01-02T03:04:05+",
            "2026-01-02T03:04.5",
            "2026-01-02T03:04:05,6",
            "2026-01-02T03",
            "2026-01-02T",
            "2026-01-02T0304",
            "2026-01-02T030405",
            "2026-01-02Z",
            "2026-01-02+02:00",
            "20260102T030405Z",
            "2026-W01-5T03:04:05Z",
            "2026-W01-5",
            "2026-002",
            "2026-01-02T23:59:60",
            "2026-01-02T03:04:60Z",
            "9999-12-31T23:59-0001",
            "2026-01-02\u{e9}03:04:05Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
