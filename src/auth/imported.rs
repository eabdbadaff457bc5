//! Password hashes that other programs made, which `cloakroom import-users` stores: bcrypt, Argon2id (RFC 9106), and
//! scrypt where it costs more work than this program's own. They are only checked. The first right sign-in replaces
//! each by a hash of this program.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use scrypt::Scrypt;
use scrypt::password_hash::PasswordVerifier;
use scrypt::phc::PasswordHash;
use subtle::ConstantTimeEq;

use crate::config::ScryptCost;
use crate::error::Problem;
use crate::model::problems::value_error;

/// What a stored hash begins with that is checked here. Without it `auth::password` checks the hash, which learns from
/// it how much work every check has to be; what others have chosen must not become the work of all.
const PREFIX: &str = "imported:";

/// How many times the work of this program's own hashes an imported one of scrypt may take.
const MAX_WORK: u64 = 4;
/// The memory of bcrypt in bytes.
const BCRYPT_MEMORY: u64 = 4096;
const NOT_A_HASH: &str = "Must be a hash of bcrypt ($2a$, $2b$, $2y$), of Argon2id ($argon2id$v=19$m=...,t=...,p=...$) \
                          or of scrypt ($scrypt$ln=...,r=...,p=...$)";

/// A hash that can be checked.
enum ImportedHash<'a> {
    Bcrypt(&'a str),
    Argon2id { params: Params, salt: Vec<u8>, output: Vec<u8> },
    Scrypt(PasswordHash, ScryptCost),
}

impl ImportedHash<'_> {
    /// The bytes that a check takes.
    fn memory(&self) -> u64 {
        match self {
            ImportedHash::Bcrypt(_) => BCRYPT_MEMORY,
            ImportedHash::Argon2id { params, .. } => u64::from(params.m_cost()) * 1024,
            ImportedHash::Scrypt(_, cost) => cost.memory(),
        }
    }

    /// Whether it is the hash of the password. Of bcrypt the first 72 bytes count, as in the programs that have made
    /// it.
    fn matches(&self, password: &[u8]) -> bool {
        match self {
            ImportedHash::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
            ImportedHash::Argon2id { params, salt, output } => {
                let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
                let mut computed = vec![0; output.len()];
                argon2.hash_password_into(password, salt, &mut computed).is_ok()
                    && computed.ct_eq(output).into()
            }
            ImportedHash::Scrypt(hash, _) => Scrypt::new().verify_password(password, hash).is_ok(),
        }
    }
}

/// Accepts a hash from elsewhere if it is within the bounds of an import, and returns it as it is to be stored. One of
/// scrypt that takes no more memory and work than `cost`, the one of this program's own hashes, is stored as one of
/// these, and checked as they are.
pub fn parse(text: &str, cost: ScryptCost) -> Result<String, Problem> {
    let hash = read(text).map_err(value_error)?;
    match hash {
        ImportedHash::Scrypt(_, own)
            if own.memory() > cost.memory() || own.work() > MAX_WORK * cost.work() =>
        {
            Err(value_error(format!(
                "Must take at most the memory, and {MAX_WORK} times the work, of CLOAKROOM_SCRYPT={cost}"
            )))
        }
        ImportedHash::Scrypt(_, own) if own.work() <= cost.work() => Ok(text.to_owned()),
        _ => Ok(format!("{PREFIX}{text}")),
    }
}

/// The bytes that the check of a stored hash takes here; `None` if it is not checked here.
pub fn memory(stored: &str) -> Option<u64> {
    Some(read(stored.strip_prefix(PREFIX)?).ok()?.memory())
}

/// The turns of the queue that the check of a stored hash takes, as many as its memory is multiples of that of `cost`;
/// 0 if it is not checked here. `None` if it takes more than all, of which the log is told.
pub fn turns(stored: &str, cost: ScryptCost, all: usize) -> Option<usize> {
    let turns = memory(stored).map_or(0, |bytes| bytes.div_ceil(cost.memory()).max(1) as usize);
    if turns > all {
        log::warn!(
            "a password was not checked: that takes the memory of {turns} hashes of CLOAKROOM_SCRYPT={cost}, because \
             its hash was imported, and {all} may run at once: one on each core, and no more than a quarter of the \
             memory limit of the control group has room for"
        );
        return None;
    }
    Some(turns)
}

/// Whether a stored hash is an imported one, and that of the password. Takes as long, and as much memory, as the
/// program that made it chose; no time if it is not checked here.
pub fn matches(password: &str, stored: &str) -> bool {
    let hash = stored.strip_prefix(PREFIX).and_then(|text| read(text).ok());
    hash.is_some_and(|hash| hash.matches(password.as_bytes()))
}

/// Reads a hash in the one form that its format allows: parameters in their order, numbers without leading zeros,
/// Base64 without padding or left-over bits. On failure: what it must be.
fn read(text: &str) -> Result<ImportedHash<'_>, &'static str> {
    let parts: Vec<&str> = text.split('$').collect();
    match *parts {
        ["", "2a" | "2b" | "2y", cost, rest] => read_bcrypt(text, cost, rest),
        ["", "argon2id", "v=19", params, salt, output] => read_argon2id(params, salt, output),
        ["", "argon2id" | "argon2i" | "argon2d", ..] => {
            Err("Must be $argon2id$v=19$m=...,t=...,p=...$, with a salt and an output after it")
        }
        ["", "scrypt", params, _, _] => read_scrypt(text, params),
        _ => Err(NOT_A_HASH),
    }
}

fn read_bcrypt<'a>(
    text: &'a str,
    cost: &str,
    rest: &str,
) -> Result<ImportedHash<'a>, &'static str> {
    let is_whole = text.len() == 60 && cost.len() == 2 && rest.is_ascii();
    let cost: Option<u32> =
        cost.bytes().all(|b| b.is_ascii_digit()).then(|| cost.parse().ok()).flatten();
    if !is_whole || text.parse::<bcrypt::HashParts>().is_err() {
        return Err("Must have the 60 characters of a hash of bcrypt");
    }
    match cost {
        Some(4..=14) => Ok(ImportedHash::Bcrypt(text)),
        _ => Err("Must have a cost of bcrypt from 04 to 14"),
    }
}

fn read_argon2id(
    params: &str,
    salt: &str,
    output: &str,
) -> Result<ImportedHash<'static>, &'static str> {
    let within = |[m, t, p]: &[u32; 3]| {
        (8..=65_536).contains(m) && (1..=10).contains(t) && (1..=4).contains(p) && *m >= 8 * p
    };
    let [m, t, p] = numbers(params, ["m", "t", "p"]).filter(within).ok_or(
        "Must have m from 8 to 65536, at least 8 for each of p, t from 1 to 10, p from 1 to 4",
    )?;
    let decode = |text: &str| STANDARD_NO_PAD.decode(text).ok();
    let salt = decode(salt).filter(|it| (8..=64).contains(&it.len()));
    let output = decode(output).filter(|it| (16..=64).contains(&it.len()));
    let (salt, output) = salt
        .zip(output)
        .ok_or("Must have a salt of 8 to 64 bytes and an output of 16 to 64 bytes in Base64")?;
    let params = Params::new(m, t, p, Some(output.len())).map_err(|_| NOT_A_HASH)?;
    Ok(ImportedHash::Argon2id { params, salt, output })
}

/// Its bounds are those of `CLOAKROOM_SCRYPT`, so that nothing overflows. [`parse`] has closer ones.
fn read_scrypt(text: &str, params: &str) -> Result<ImportedHash<'static>, &'static str> {
    let numbers = numbers(params, ["ln", "r", "p"]).ok_or(NOT_A_HASH)?;
    let cost = format!("{},{},{}", numbers[0], numbers[1], numbers[2]).parse();
    let cost: ScryptCost =
        cost.map_err(|()| "Must have ln from 1 to 24, r from 1 to 32, p from 1 to 64")?;
    let hash = PasswordHash::new(text).map_err(
        |_| "Must have a salt of 8 to 48 bytes and an output of 10 to 64 bytes in Base64",
    )?;
    Ok(ImportedHash::Scrypt(hash, cost))
}

/// The numbers of parameters such as `m=1,t=2,p=3`, which have these names in this order.
fn numbers(text: &str, names: [&str; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(',');
    let numbers = names.map(|name| {
        let number = parts.next()?.strip_prefix(name)?.strip_prefix('=')?;
        let is_plain = number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0');
        is_plain.then(|| number.parse::<u32>().ok()).flatten()
    });
    let [Some(first), Some(second), Some(third)] = numbers else { return None };
    parts.next().is_none().then_some([first, second, third])
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: ScryptCost = ScryptCost { log_n: 4, r: 8, p: 1 };
    /// Of `correct horse`, by Python's `bcrypt`.
    const BCRYPT: &str = "$2b$04$gkY9uau.VlTjS52KpkCwzuCTUp2p0WdO3aifsRd6iUUTKHmAd8SxG";
    const SALT: &str = "qoUhld6BhOBHVM49NtJKsw";
    const OUTPUT: &str = "JlnWkz5onY90yGkLB7Louij2mS7gjoQ3KzueDhrVDkA";

    #[test]
    fn a_hash_within_the_bounds_is_stored_with_the_prefix_unless_it_is_as_our_own() {
        let argon2id = |params: &str| format!("$argon2id$v=19${params}${SALT}${OUTPUT}");
        let scrypt = |params: &str| format!("$scrypt${params}${SALT}${OUTPUT}");
        for good in [
            BCRYPT.to_owned(),
            BCRYPT.replace("$2b$04", "$2a$14"),
            BCRYPT.replace("$2b$", "$2y$"),
            argon2id("m=8,t=1,p=1"),
            argon2id("m=65536,t=10,p=4"),
            format!("$argon2id$v=19$m=8,t=1,p=1${}${}", "A".repeat(11), "A".repeat(22)),
            format!("$argon2id$v=19$m=8,t=1,p=1${0}${0}", "A".repeat(86)),
            scrypt("ln=4,r=8,p=4"),
            scrypt("ln=3,r=16,p=2"),
            scrypt("ln=1,r=32,p=8"),
        ] {
            assert_eq!(parse(&good, COST), Ok(format!("imported:{good}")));
        }
        for own in [scrypt("ln=4,r=8,p=1"), scrypt("ln=2,r=8,p=4"), scrypt("ln=1,r=1,p=64")] {
            assert_eq!(parse(&own, COST), Ok(own));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let argon2id = |params: &str| format!("$argon2id$v=19${params}${SALT}${OUTPUT}");
        let scrypt = |params: &str| format!("$scrypt${params}${SALT}${OUTPUT}");
        let sized = |salt: usize, output: usize| {
            format!("$argon2id$v=19$m=8,t=1,p=1${}${}", "A".repeat(salt), "A".repeat(output))
        };
        for bad in [
            "correct horse".to_owned(),
            "$".repeat(60),
            "5f4dcc3b5aa765d61d8327deb882cf99".into(),
            "$1$abc$def".into(),
            format!("imported:{BCRYPT}"),
            format!("{BCRYPT} "),
            BCRYPT[..59].into(),
            BCRYPT.replace("$2b$", "$2x$"),
            BCRYPT.replace("$2b$", "$2$"),
            BCRYPT.replace("$04$", "$03$"),
            BCRYPT.replace("$04$", "$15$"),
            BCRYPT.replace("$04$", "$+4$"),
            BCRYPT.replace("$04$", "$4$"),
            BCRYPT.replace('g', "="),
            // Bits that are left over.
            BCRYPT.replace("CwzuCT", "CwzvCT"),
            BCRYPT.replace("gkY", "\u{e9}Y"),
            argon2id("m=7,t=1,p=1"),
            argon2id("m=65537,t=1,p=1"),
            argon2id("m=8,t=0,p=1"),
            argon2id("m=8,t=11,p=1"),
            argon2id("m=64,t=1,p=0"),
            argon2id("m=64,t=1,p=5"),
            argon2id("m=31,t=1,p=4"),
            argon2id("m=08,t=1,p=1"),
            argon2id("m=+8,t=1,p=1"),
            argon2id("m=8,t=1"),
            argon2id("t=1,m=8,p=1"),
            argon2id("m=8,t=1,p=1,keyid=AAAA"),
            argon2id("m=8,t=1,p=1,data=AAAA"),
            argon2id("m=8,m=8,t=1,p=1"),
            argon2id("m=99999999999,t=1,p=1"),
            argon2id("m=8,t=1,p=1") + "$",
            argon2id("m=8,t=1,p=1").replace("argon2id", "argon2i"),
            argon2id("m=8,t=1,p=1").replace("argon2id", "argon2d"),
            argon2id("m=8,t=1,p=1").replace("v=19", "v=16"),
            argon2id("m=8,t=1,p=1").replace("$v=19", ""),
            argon2id("m=8,t=1,p=1") + "=",
            sized(10, 22),
            sized(87, 22),
            sized(11, 21),
            sized(11, 87),
            scrypt("ln=5,r=8,p=1"),
            scrypt("ln=4,r=8,p=5"),
            scrypt("ln=4,r=0,p=1"),
            scrypt("ln=25,r=1,p=1"),
            scrypt("ln=4,r=4294967295,p=4294967295"),
            scrypt("ln=4,p=1,r=8"),
            "$scrypt$ln=4,r=8,p=1$$".into(),
            format!("$scrypt$ln=4,r=8,p=1${SALT}"),
        ] {
            assert!(parse(&bad, COST).is_err(), "{bad}");
            assert!(!matches("correct horse", &format!("imported:{bad}")), "{bad}");
        }
    }

    #[test]
    fn a_check_takes_as_many_turns_as_its_memory_is_multiples_and_at_most_all() {
        let of = |params: &str| format!("imported:$argon2id$v=19${params}${SALT}${OUTPUT}");
        // A hash of this program takes 16 KiB.
        for (params, expected) in
            [("m=8,t=1,p=1", 1), ("m=16,t=10,p=1", 1), ("m=17,t=1,p=1", 2), ("m=64,t=1,p=1", 4)]
        {
            assert_eq!(turns(&of(params), COST, 4), Some(expected), "{params}");
        }
        assert_eq!(turns(&of("m=65,t=1,p=1"), COST, 4), None);
        assert_eq!(turns(&format!("imported:{BCRYPT}"), COST, 1), Some(1));
        for other in ["", "$scrypt$ln=9,r=8,p=1$", BCRYPT, "imported:", "imported:$2b$"] {
            assert_eq!(turns(other, COST, 1), Some(0), "{other}");
            assert!(!matches("correct horse", other), "{other}");
        }
        assert!(matches("correct horse", &format!("imported:{BCRYPT}")));
        assert!(!matches("Correct horse", &format!("imported:{BCRYPT}")));
    }
}
