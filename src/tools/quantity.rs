//! Numbers as the messages of commands show them.

/// The number with the noun in its singular or plural: `0 faults`, `1 fault`, `2 faults`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The number of bytes in the largest unit of which there is a whole one, such as `10 MiB` or `1.50 GiB`.
pub fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, None);
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, Some(larger));
    }
    match unit {
        None => count(number, "byte"),
        Some(unit) if value.fract() == 0.0 => format!("{value} {unit}"),
        Some(unit) => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_given_in_the_largest_unit_that_has_a_whole_one() {
        for (number, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1_572_864, "1.50 MiB"),
            (u64::from(u32::MAX) + 1, "4 GiB"),
            (5 << 50, "5120 TiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }
}
