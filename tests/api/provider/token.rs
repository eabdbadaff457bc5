//! The code, and what it does.

use crate::harness::*;

const REGISTRATION: (&str, &str) = ("CLOAKROOM_OIDC_REGISTRATION", "on");

#[test]
fn a_code_is_good_once_for_its_verifier() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION]);
    provider.person("ann");
    let code = api.provider_code(&provider, "");
    api.post("/auth/oidc/token", Anonymous, json!({"code": code})).expect(422);
    let invalid = |code: &str, verifier: &str| {
        api.provider_token(code, verifier, None).refused(400, "Invalid or expired code");
    };
    for _ in 0..4 {
        invalid(&code, "another-verifier-of-the-page-0123456789abcdef");
    }
    let ann = api.provider_token(&code, VERIFIER, None).expect(200).tokens();
    invalid(&code, VERIFIER);
    // Five wrong verifiers use it up, and so do five minutes.
    let code = api.provider_code(&provider, "");
    for _ in 0..5 {
        invalid(&code, "another-verifier-of-the-page-0123456789abcdef");
    }
    invalid(&code, VERIFIER);
    let code = api.provider_code(&provider, "");
    api.database.run(
        "UPDATE provider_sign_ins SET code_expires_at = code_expires_at - interval '5 minutes'",
    );
    invalid(&code, VERIFIER);
    // Of twenty at once one is signed in.
    let code = api.provider_code(&provider, "");
    let statuses = parallel(20, |_| api.provider_token(&code, VERIFIER, None).status);
    assert_eq!(tally(statuses), [(200, 1), (400, 19)].into());
    assert_eq!(api.list_sessions(&ann).expect(200).list("sessions").len(), 2);
}

#[test]
fn an_identity_makes_one_account_with_a_confirmed_address() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION]);
    provider.person("ann");
    provider.claim("name", " Ann ");
    let codes: Vec<_> = (0..4).map(|_| api.provider_code(&provider, "")).collect();
    let found = parallel(4, |i| api.provider_token(&codes[i], VERIFIER, None).expect(200).tokens());
    assert!(found.iter().all(|tokens| tokens.id() == found[0].id()), "one account");
    let me = api.me(&found[0]).expect(200).has(json!({
        "email": "ann@example.com", "name": "Ann", "username": null, "role": "user",
        "has_password": false, "has_identity": true,
    }));
    assert_eq!(api.database.count("users WHERE is_self_registered AND is_settled"), 1, "{me:?}");
    // Without a password there is none that could be guessed.
    api.login("ann@example.com", "").expect(422);
    api.login("ann@example.com", PASSWORD).expect(401);
    // The provider must say that it has confirmed the address.
    provider.with(|state| state.userinfo = json!({"sub": "bob"}));
    for (verified, email) in [
        (json!(false), json!("bob@example.com")),
        (json!("yes"), json!("bob@example.com")),
        (Value::Null, json!("bob@example.com")),
        (json!(true), Value::Null),
        (json!(true), json!("no address")),
    ] {
        provider.claim("sub", "bob");
        provider.claim("email", email);
        provider.claim("email_verified", verified);
        let code = api.provider_code(&provider, "");
        let answer = api.provider_token(&code, VERIFIER, None);
        answer
            .refused(409, "The provider confirms no e-mail address")
            .has(json!({"reason": "EMAIL_NOT_VERIFIED"}));
    }
    assert_eq!(api.database.count("users WHERE NOT is_development_admin"), 1);
}

/// What the provider says of an address never opens an account.
#[test]
fn an_address_of_an_account_does_not_open_it() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION]);
    api.register("ann").expect(201);
    provider.person("ann");
    let code = api.provider_code(&provider, "");
    api.provider_token(&code, VERIFIER, None).refused(409, "Email already exists");
    // Another issuer has another Ann.
    let other = OpenIdProvider::start();
    provider.person("eve");
    let code = api.provider_code(&provider, "");
    let eve = api.provider_token(&code, VERIFIER, None).expect(200).tokens();
    other.claim("sub", "eve");
    let api = api.beside(&provider_settings(&other.issuer()));
    let code = api.provider_code(&other, "");
    api.provider_token(&code, VERIFIER, None)
        .refused(404, "No account has this identity")
        .has(json!({"reason": "NO_ACCOUNT"}));
    // A right verifier uses the code up, whatever the answer.
    api.provider_token(&code, VERIFIER, None).refused(400, "Invalid or expired code");
    api.me(&eve).expect(200);
}

#[test]
fn accounts_that_the_provider_makes_are_counted() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[
        REGISTRATION,
        ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1"),
    ]);
    let sign_in = |name: &str, address: &str| {
        provider.person(name);
        let code = api.provider_code(&provider, "");
        let request = api.request("POST", "/auth/oidc/token").header("X-Forwarded-For", address);
        request.json(json!({"code": code, "verifier": VERIFIER})).send()
    };
    sign_in("ann", "203.0.113.7").expect(200);
    sign_in("bob", "203.0.113.7").expect(429);
    // Who has an account makes none.
    sign_in("ann", "203.0.113.7").expect(200);
    sign_in("bob", "198.51.100.7").expect(200);
}

#[test]
fn what_the_id_token_lacks_userinfo_tells() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION]);
    let told =
        json!({"sub": "ann", "email": "ann@example.com", "email_verified": true, "name": "Ann"});
    provider.with(|state| state.userinfo = with_member(&told, "sub", "eve"));
    assert_eq!(api.provider_error(&provider, ""), "invalid");
    // An address counts only with what the same answer says of it.
    provider.claim("email", "eve@example.com");
    provider.with(|state| state.userinfo = json!({"sub": "ann", "email_verified": true}));
    let code = api.provider_code(&provider, "");
    let answer = api.provider_token(&code, VERIFIER, None);
    answer.refused(409, "The provider confirms no e-mail address");
    provider.with(|state| state.userinfo = told);
    let code = api.provider_code(&provider, "");
    let made = api.provider_token(&code, VERIFIER, None).expect(200);
    assert_eq!(made.json()["user"]["email"], "ann@example.com");
    // It is asked only where an account is to be made.
    let before = provider.count("/userinfo");
    api.provider_code(&provider, "");
    let api = api.beside(&provider_settings(&provider.issuer()));
    provider.claim("sub", "bob");
    api.provider_code(&provider, "");
    assert_eq!(provider.count("/userinfo"), before);
}

#[test]
fn a_second_factor_is_asked_for_and_the_code_waits_for_it() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let ann = api.sign_up("ann");
    let code = api.provider_code(&provider, "&again=1");
    api.join(&ann, &code, Some(PASSWORD)).expect(204);
    let factor = api.new_second_factor(&ann, PASSWORD);
    api.forget_used_codes();
    let code = api.provider_code(&provider, "");
    let token = |otp: Option<&str>| api.provider_token(&code, VERIFIER, otp);
    token(None).refused(401, "Second factor required");
    token(Some(&factor.wrong_code())).refused(401, "Invalid code");
    let failures = "audit_events WHERE action = 'auth.login' AND outcome = 'failure' AND details ->> 'by' = 'oidc'";
    wait_until(|| api.database.count(failures) == 2);
    token(Some(&factor.code())).expect(200);
    token(Some(&factor.code())).refused(400, "Invalid or expired code");
    // Five tries use it up.
    let code = api.provider_code(&provider, "");
    for _ in 0..5 {
        api.provider_token(&code, VERIFIER, None).refused(401, "Second factor required");
    }
    api.provider_token(&code, VERIFIER, None).refused(400, "Invalid or expired code");
    // Also with a code that is older than the end of the account.
    let code = api.provider_code(&provider, "");
    api.database.run("UPDATE users SET is_active = false");
    api.provider_token(&code, VERIFIER, None).refused(403, "Inactive or deleted user.");
    api.provider_token(&code, VERIFIER, None).refused(400, "Invalid or expired code");
}

#[test]
fn a_session_of_the_provider_ends_when_the_settings_say_so() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION, ("CLOAKROOM_OIDC_SESSION_HOURS", "1")]);
    provider.person("ann");
    let code = api.provider_code(&provider, "");
    let ann = api.provider_token(&code, VERIFIER, None).expect(200).tokens();
    let exp = |token: &str| claims(token)["exp"].as_u64().expect("a time");
    let end = exp(&ann.refresh);
    assert!(end <= now() + 3600 && exp(&ann.access) <= end);
    let next = api.refresh(&ann.refresh).expect(200).tokens();
    assert!(exp(&next.refresh) <= end && exp(&next.access) <= end);
    // At its end it is refreshed no more, whatever its tokens say.
    api.database.run("UPDATE sessions SET ends_at = now() - interval '1 second'");
    api.refresh(&next.refresh).expect(401);
    let events = api
        .database
        .count("audit_events WHERE action = 'auth.register' AND details ->> 'by' = 'oidc'");
    assert_eq!(events, 1);
}

#[test]
fn only_administrators_sign_in_with_passwords_if_the_settings_say_so() {
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    let (api, [_, ann]) = Server::with_users(&[], ["root", "ann"]);
    let admins = [("CLOAKROOM_PASSWORD_LOGIN", "admins"), ("CLOAKROOM_OIDC_NAME", "Example Login")];
    let api = api.beside(&[&provider_settings(&issuer)[..], &admins].concat());
    api.login("root", PASSWORD).expect(200);
    api.login("ann", PASSWORD)
        .refused(403, "Sign in with Example Login")
        .has(json!({"reason": "PROVIDER_REQUIRED"}));
    // Neither does who has a second factor come to it.
    let bob = api.beside(&[]).sign_up("bob");
    api.new_second_factor(&bob, PASSWORD);
    api.login("bob", PASSWORD).refused(403, "Sign in with Example Login");
    // A password is of use elsewhere, and changed and reset as ever.
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    api.reset_password(&api.reset_token("ann@example.com"), PASSWORD).expect(200);
    api.login("ann", NEW_PASSWORD).refused(401, "Invalid username or password");
    api.register("bob").refused(404, "This feature is not available");
    api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    api.login("ann", PASSWORD).refused(403, "Inactive or deleted user.");
    // The only failed sign-ins are those with a wrong password, and to an inactive account.
    let failures = "audit_events WHERE action = 'auth.login' AND outcome = 'failure'";
    wait_until(|| api.database.count(failures) == 2);
}

#[test]
fn nothing_secret_is_logged() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[REGISTRATION, ("CLOAKROOM_LOG", "trace")]);
    provider.person("ann");
    let departure = api.depart("");
    let query = provider.authorize(&departure);
    let fragment = api.come_back(&query, &departure.cookie);
    let code = fragment.split(['=', '&']).nth(1).expect("a code");
    api.provider_token(code, VERIFIER, None).expect(200);
    api.logged("/auth/oidc/token");
    provider.reply("/token", Reply::With(500, String::new(), b"ann@example.com".to_vec()));
    assert_eq!(api.provider_error(&provider, ""), "unavailable");
    let log = api.log();
    let cookie = departure.cookie.split_once('=').expect("a value").1;
    let state = &departure.query["state"];
    for secret in [
        code,
        VERIFIER,
        cookie,
        state,
        "ann@example.com",
        CLIENT_SECRET,
        "a-code-of-the-provider",
        "an-access-token",
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
