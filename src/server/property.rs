//! Property tests with a budget of time instead of a number of cases.

#![cfg(test)]

use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{TestCaseResult, TestRunner};

/// Checks a property on random values for `CLOAKROOM_TEST_PROPERTY_SECONDS` seconds, by default for one. The variable
/// is read when the tests are compiled, because only `config` and `tools::environment` may read the environment of a
/// running process.
pub fn check_property<S: Strategy>(values: &S, property: impl Fn(S::Value) -> TestCaseResult) {
    let seconds = option_env!("CLOAKROOM_TEST_PROPERTY_SECONDS").and_then(|text| text.parse().ok());
    let deadline = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    while Instant::now() < deadline {
        if let Err(failure) = TestRunner::default().run(values, &property) {
            panic!("{failure}");
        }
    }
}
