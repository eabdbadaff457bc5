//! Keeps a flood of lines with the same cause out of the log: a full disk, or a database that refuses every change, is
//! met by each request.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::semaphore::lock;

/// How long lines are left out after one with the same cause.
const PERIOD: Duration = Duration::from_secs(10);
/// Most causes that are remembered. Lines with others are written.
const MAX_CAUSES: usize = 200;

/// The causes of the lines that were written lately.
#[derive(Default)]
pub struct Flood(Mutex<HashMap<String, Cause>>);

struct Cause {
    written_at: Instant,
    left_out: u64,
}

impl Flood {
    /// Whether to write a line now: `Some` has the number of lines with its cause that were left out before it. Texts
    /// that differ only in digits have the same cause, because PostgreSQL names files and blocks. Lines about requests
    /// and accounts have ids in them, so none of these is left out.
    pub fn admit(&self, text: &str, now: Instant) -> Option<u64> {
        let mut causes = lock(&self.0);
        let key: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some(cause) = causes.get_mut(&key) {
            if now.saturating_duration_since(cause.written_at) < PERIOD {
                cause.left_out += 1;
                return None;
            }
            cause.written_at = now;
            return Some(std::mem::take(&mut cause.left_out));
        }
        if causes.len() >= MAX_CAUSES {
            causes.retain(|_, cause| now.saturating_duration_since(cause.written_at) < PERIOD);
        }
        if causes.len() < MAX_CAUSES {
            causes.insert(key, Cause { written_at: now, left_out: 0 });
        }
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_written_once_in_ten_seconds_and_then_with_the_number_of_lines_left_out() {
        let (flood, start) = (Flood::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(flood.admit("no space for base/16384/1259", at(0)), Some(0));
        assert_eq!(flood.admit("no space for base/16384/2619", at(1)), None);
        assert_eq!(flood.admit("another cause", at(1)), Some(0));
        assert_eq!(flood.admit("no space for base/16384/1259", at(9)), None);
        assert_eq!(flood.admit("no space for base/16384/1259", at(10)), Some(2));
        assert_eq!(flood.admit("no space for base/16384/1259", at(20)), Some(0));
    }

    #[test]
    fn the_causes_that_are_remembered_are_bounded_and_no_line_is_lost_for_it() {
        let (flood, start) = (Flood::default(), Instant::now());
        for n in 0..2 * MAX_CAUSES {
            assert_eq!(flood.admit(&"x".repeat(n), start), Some(0));
        }
        assert_eq!(lock(&flood.0).len(), MAX_CAUSES);
        assert_eq!(flood.admit("new", start + PERIOD), Some(0));
        assert_eq!(lock(&flood.0).len(), 1);
    }
}
