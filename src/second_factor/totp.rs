//! The second factor: one-time passwords by time (TOTP, RFC 6238) with the parameters that every authenticator app
//! knows, SHA-1, six digits and steps of 30 seconds, and the recovery codes that serve in their place.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use totp_rs::{Algorithm, Builder};
use uuid::Uuid;

use crate::auth::sealing::SealingKeys;
use crate::error::Error;

/// Bytes of a secret: as many as SHA-1 has (RFC 4226, 4, R6).
const SECRET_BYTES: usize = 20;
/// Bytes of randomness in a recovery code.
pub const RECOVERY_CODE_BYTES: usize = 10;
/// The digits of base 32 (RFC 4648, 6).
const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Digits of a one-time password.
const CODE_DIGITS: usize = 6;
/// Seconds of a time step.
const STEP: u64 = 30;
/// What an authenticator app calls the service.
const ISSUER: &str = "Cloakroom";

/// The secret that the service shares with the user's authenticator app.
pub struct TotpSecret(pub [u8; SECRET_BYTES]);

impl TotpSecret {
    /// Seals the secret of a user.
    pub fn seal(&self, keys: &SealingKeys, user: Uuid) -> Result<Vec<u8>, Error> {
        keys.seal(user.as_bytes(), &self.0)
    }

    /// Opens the sealed secret of a user. `None` if none of the keys has sealed it for this user.
    pub fn open(keys: &SealingKeys, user: Uuid, sealed: &[u8]) -> Option<TotpSecret> {
        let secret = keys.open(user.as_bytes(), sealed)?;
        Some(TotpSecret(<[u8; SECRET_BYTES]>::try_from(secret).ok()?))
    }

    /// The secret as people type it into an app.
    pub fn base32(&self) -> String {
        base32(&self.0)
    }

    /// The URI that apps read from a QR code. `account` is shown beside the name of the service.
    pub fn uri(&self, account: &str) -> String {
        let account = utf8_percent_encode(account, NON_ALPHANUMERIC);
        let secret = self.base32();
        format!(
            "otpauth://totp/{ISSUER}:{account}?secret={secret}&issuer={ISSUER}&algorithm=SHA1\
             &digits={CODE_DIGITS}&period={STEP}"
        )
    }

    /// The time step of which this is the code, if that is the step of `now` (Unix time, seconds), the one before, or
    /// the one after: clocks of telephones differ (RFC 6238, 5.2).
    pub fn step_of(&self, code: &str, now: u64) -> Option<i64> {
        // The builder's other checks are about names in URIs, which the library does not make here.
        let totp = Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(CODE_DIGITS as u8)
            .with_step_duration(STEP)
            .with_skew(1)
            .with_secret(self.0)
            .build_noncompliant();
        // Unix time in steps is far below the largest number.
        totp.check(code, now).map(u64::cast_signed)
    }
}

/// What a user sends as a code.
#[derive(Debug, PartialEq, Eq)]
pub enum Code {
    /// Six digits, from an authenticator app.
    Totp(String),
    /// Anything else: the hash that it has as a recovery code, under which such codes are stored. One hash without a
    /// salt is enough, because nobody can guess 80 random bits.
    Recovery([u8; 32]),
}

impl Code {
    /// Ignores spaces and hyphens, with which codes are shown, and upper and lower case.
    pub fn parse(text: &str) -> Code {
        let is_separator = |c: char| c.is_whitespace() || c == '-';
        let text = text.replace(is_separator, "").to_ascii_uppercase();
        match text.len() == CODE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Code::Totp(text),
            false => Code::Recovery(Sha256::digest(text).into()),
        }
    }
}

/// A recovery code of these random bytes, in groups that are easy to read, and its hash.
pub fn recovery_code(random: [u8; RECOVERY_CODE_BYTES]) -> (String, [u8; 32]) {
    let digits = base32(&random);
    let groups: Vec<_> = (0..digits.len()).step_by(4).map(|at| &digits[at..at + 4]).collect();
    (groups.join("-"), Sha256::digest(&digits).into())
}

/// The bytes, whose number is a multiple of five, in base 32 (RFC 4648, 6).
fn base32(bytes: &[u8]) -> String {
    let digits = |five: &[u8]| {
        let number = five.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (0..8).rev().map(move |place| char::from(DIGITS[(number >> (5 * place) & 31) as usize]))
    };
    bytes.chunks(5).flat_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the test vectors in RFC 6238, appendix B.
    const SECRET: TotpSecret = TotpSecret(*b"12345678901234567890");

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // The last six of the eight digits that the RFC has.
        for (time, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(SECRET.step_of(code, time), Some(time as i64 / 30), "{time}");
        }
    }

    #[test]
    fn a_code_is_good_for_its_step_and_for_the_steps_beside_it() {
        // The code of step 1, which lasts from 30 to 59.
        for (now, step) in
            [(0, Some(1)), (1, Some(1)), (30, Some(1)), (59, Some(1)), (89, Some(1)), (90, None)]
        {
            assert_eq!(SECRET.step_of("287082", now), step, "{now}");
        }
        let step = 1_111_111_111 / 30;
        for (now, expected) in [
            (step * 30 - 31, None),
            (step * 30 - 30, Some(step)),
            (step * 30 + 59, Some(step)),
            (step * 30 + 60, None),
        ] {
            assert_eq!(SECRET.step_of("050471", now), expected.map(u64::cast_signed), "{now}");
        }
    }

    #[test]
    fn texts_that_are_no_six_digits_are_no_codes() {
        for code in ["", "28708", "2870820", "+28708", "28708x", "２８７０８２", "287082\0"] {
            assert_eq!(SECRET.step_of(code, 59), None, "{code}");
            assert!(matches!(Code::parse(code), Code::Recovery(_)), "{code}");
        }
        for code in ["287082", " 287 082\n", "287-082"] {
            assert_eq!(Code::parse(code), Code::Totp("287082".to_owned()));
        }
    }

    #[test]
    fn a_recovery_code_is_recognised_with_and_without_its_hyphens_in_upper_and_lower_case() {
        let (code, hash) = recovery_code([7; 10]);
        assert_eq!(code, "A4DQ-OBYH-A4DQ-OBYH");
        for text in [&code, "a4dqobyha4dqobyh", " A4DQ OBYH A4DQ OBYH "] {
            assert_eq!(Code::parse(text), Code::Recovery(hash), "{text}");
        }
        assert_ne!(Code::parse("A4DQ-OBYH-A4DQ-OBYI"), Code::Recovery(hash));
    }

    #[test]
    fn base_32_is_that_of_rfc_4648() {
        assert_eq!(SECRET.base32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(base32(b"fooba"), "MZXW6YTB");
    }

    #[test]
    fn nothing_in_the_name_of_an_account_changes_the_uri() {
        assert_eq!(
            SECRET.uri("a b&secret=x@example.com?#/é"),
            "otpauth://totp/Cloakroom:a%20b%26secret%3Dx%40example%2Ecom%3F%23%2F%C3%A9\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Cloakroom&algorithm=SHA1&digits=6&period=30"
        );
    }
}
