//! Unit tests of the module above.

#![cfg(test)]

use super::*;

const NOW: u64 = 1_800_000_000;

fn keys_of(algorithm: Algorithm, secret: &[u8], old: &[&[u8]]) -> SigningKeys {
    SigningKeys::new(algorithm, secret, old.iter().copied(), None)
}

fn keys() -> SigningKeys {
    keys_of(Algorithm::Hs256, &[7; 32], &[])
}

fn claims() -> Claims {
    Claims {
        user: Uuid::from_u128(1),
        username: Some("ann".into()),
        email: Some("ann@example.com".into()),
        role: Role::Admin,
        token_type: TokenType::Refresh,
        session: Some(Uuid::from_u128(2)),
        id: Some(Uuid::from_u128(3)),
        version: Some(4),
        issued_at: Some(NOW),
        expires_at: NOW + 1,
    }
}

#[test]
fn a_signed_token_verifies_to_the_same_claims_but_username_and_email() -> Result<(), Error> {
    let verified = Claims { username: None, email: None, ..claims() };
    for algorithm in [Algorithm::Hs256, Algorithm::Hs384, Algorithm::Hs512] {
        let keys = keys_of(algorithm, &[7; 64], &[]);
        assert_eq!(
            keys.verify(&keys.sign(claims())?, TokenType::Refresh, NOW),
            Ok(verified.clone())
        );
    }
    Ok(())
}

#[test]
fn a_token_that_is_remembered_still_expires_and_no_other_passes_for_it() -> Result<(), Error> {
    let keys = keys();
    let claims = Claims { username: None, email: None, token_type: TokenType::Access, ..claims() };
    let token = keys.sign(claims.clone())?;
    for _ in 0..2 {
        assert_eq!(keys.verify(&token, TokenType::Access, NOW), Ok(claims.clone()));
    }
    assert!(keys.verified.get(&token).is_some());
    assert_eq!(keys.verify(&token, TokenType::Access, NOW + 1), Err(TokenProblem::Expired));
    let other_type = keys.verify(&token, TokenType::Refresh, NOW);
    assert_eq!(other_type, Err(TokenProblem::NotRefresh));
    let forged = format!("{}{}", &token[..token.len() - 4], "AAAA");
    for _ in 0..2 {
        let outcome = keys.verify(&forged, TokenType::Access, NOW);
        assert_eq!(outcome, Err(TokenProblem::NotOurs));
    }
    assert!(keys.verified.get(&forged).is_none());
    Ok(())
}

#[test]
fn a_token_is_refused_from_its_expiry_on() -> Result<(), Error> {
    let token = keys().sign(claims())?;
    assert!(keys().verify(&token, TokenType::Refresh, NOW).is_ok());
    for late in [NOW + 1, NOW + 2] {
        let verified = keys().verify(&token, TokenType::Refresh, late);
        assert_eq!(verified, Err(TokenProblem::Expired));
    }
    Ok(())
}

#[test]
fn a_token_of_another_type_is_refused_as_such_also_when_it_has_expired() -> Result<(), Error> {
    for expires_at in [NOW + 1, NOW - 1] {
        let token = keys().sign(Claims { expires_at, ..claims() })?;
        let verified = keys().verify(&token, TokenType::Access, NOW);
        assert_eq!(verified, Err(TokenProblem::NotAccess));
        let access = Claims { token_type: TokenType::Access, expires_at, ..claims() };
        let token = keys().sign(access)?;
        let verified = keys().verify(&token, TokenType::Refresh, NOW);
        assert_eq!(verified, Err(TokenProblem::NotRefresh));
    }
    Ok(())
}

#[test]
fn a_token_issued_in_the_future_is_accepted() -> Result<(), Error> {
    let token = keys().sign(claims())?;
    assert!(keys().verify(&token, TokenType::Refresh, NOW - 30).is_ok());
    Ok(())
}

#[test]
fn another_key_or_algorithm_is_refused() -> Result<(), Error> {
    for other in
        [keys_of(Algorithm::Hs256, &[8; 32], &[]), keys_of(Algorithm::Hs512, &[7; 64], &[])]
    {
        // Whether a forged token has expired is nobody's business.
        for expires_at in [NOW + 60, NOW - 60] {
            let token = other.sign(Claims { expires_at, ..claims() })?;
            let verified = keys().verify(&token, TokenType::Refresh, NOW);
            assert_eq!(verified, Err(TokenProblem::NotOurs));
        }
    }
    Ok(())
}

#[test]
fn an_old_secret_verifies_and_only_the_current_one_signs() -> Result<(), Error> {
    let (one, other): (&[u8], &[u8]) = (&[7; 32], &[8; 32]);
    let before = keys_of(Algorithm::Hs256, one, &[]);
    let announced = keys_of(Algorithm::Hs256, one, &[other]);
    let changed = keys_of(Algorithm::Hs256, other, &[one]);
    let after = keys_of(Algorithm::Hs256, other, &[]);
    for (signer, verifier, is_valid) in [
        (&before, &announced, true),
        (&before, &changed, true),
        (&before, &after, false),
        (&announced, &before, true),
        (&announced, &changed, true),
        (&changed, &before, false),
        (&changed, &announced, true),
        (&changed, &after, true),
        (&after, &announced, true),
    ] {
        let token = signer.sign(claims())?;
        assert_eq!(verifier.verify(&token, TokenType::Refresh, NOW).is_ok(), is_valid);
    }
    Ok(())
}

#[test]
fn a_key_id_is_the_same_in_every_process() {
    // The first 16 digits of `(printf 'cloakroom token key id:'; printf '\7%.0s' {1..32}) | sha256sum`.
    assert_eq!(key_id(&[7; 32]), "58e34b5e8386e07e");
}
