//! Identities: how one is joined, what it is good for, and what ends it.

use crate::harness::*;

fn joined(provider: &OpenIdProvider, api: &Server, user: &Tokens, subject: &str) {
    provider.person(subject);
    let code = api.provider_code(provider, "&again=1");
    api.join(user, &code, Some(PASSWORD)).expect(204);
}

fn signed_in(provider: &OpenIdProvider, api: &Server) -> Tokens {
    let code = api.provider_code(provider, "");
    api.provider_token(&code, VERIFIER, None).expect(200).tokens()
}

#[test]
fn an_identity_is_joined_by_its_owner_who_has_just_proven_it() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let [ann, bob] = ["ann", "bob"].map(|name| api.sign_up(name));
    provider.person("ann-there");
    let code = |more: &str| api.provider_code(&provider, more);
    let denied = "Current password is incorrect";
    let refused =
        "audit_events WHERE outcome = 'failure' AND action IN ('identity.join', 'identity.leave')";
    api.join(&ann, &code("&again=1"), None).refused(400, denied);
    api.join(&ann, &code("&again=1"), Some(NEW_PASSWORD)).refused(400, denied);
    let stale = api.join(&ann, &code(""), Some(PASSWORD));
    stale.refused(400, "Invalid or expired code").has(json!({"reason": "CODE_NOT_FRESH"}));
    let token = api.new_token(&ann, false);
    api.join(&token, &code("&again=1"), Some(PASSWORD)).refused(403, "Not enough permissions");
    api.leave(&token, PASSWORD).refused(403, "Not enough permissions");
    api.leave(&ann, PASSWORD).refused(404, "No identity");
    joined(&provider, &api, &ann, "ann-there");
    api.me(&ann).expect(200).has(json!({"has_password": true, "has_identity": true}));
    // Once more is nothing new, but another one is, and so is another account.
    joined(&provider, &api, &ann, "ann-there");
    let taken = api.join(&bob, &code("&again=1"), Some(PASSWORD));
    taken.refused(409, "Identity already in use").has(json!({"reason": "IDENTITY_IN_USE"}));
    provider.person("else");
    let other = api.join(&ann, &code("&again=1"), Some(PASSWORD));
    other
        .refused(409, "Account already has an identity")
        .has(json!({"reason": "IDENTITY_PRESENT"}));
    api.leave(&ann, NEW_PASSWORD).refused(400, denied);
    wait_until(|| api.database.count(refused) == 4);
    assert_eq!(
        api.database.count("audit_events WHERE action = 'identity.join' AND outcome = 'success'"),
        1
    );
    let told = "outbox WHERE kind = 'identity_joined'";
    assert!(api.database.count(told) <= 1);
    provider.person("ann-there");
    assert_eq!(signed_in(&provider, &api).id(), ann.id());
    // A provider that never tells when somebody has signed in: any start will do.
    provider.with(|state| state.document.insert("claims_supported".into(), json!(["sub"])));
    let api = api.beside(&provider_settings(&provider.issuer()));
    provider.person("bob-there");
    let code = api.provider_code(&provider, "");
    api.join(&bob, &code, Some(PASSWORD)).expect(204);
}

#[test]
fn an_identity_of_a_provider_that_moved_is_none_until_it_is_joined_anew() {
    let (former, present) = (OpenIdProvider::start(), OpenIdProvider::start());
    let before = former.service(&[]);
    let ann = before.sign_up("ann");
    joined(&former, &before, &ann, "ann");
    let api = before.beside(&provider_settings(&present.issuer()));
    api.me(&ann).expect(200).has(json!({"has_identity": false}));
    before.me(&ann).expect(200).has(json!({"has_identity": true}));
    api.leave(&ann, PASSWORD).refused(404, "No identity");
    api.logged("1 accounts have an identity of another issuer than");
    joined(&present, &api, &ann, "ann");
    api.me(&ann).expect(200).has(json!({"has_identity": true}));
    assert_eq!(signed_in(&present, &api).id(), ann.id());
    let code = before.provider_code(&former, "");
    before.provider_token(&code, VERIFIER, None).refused(404, "No account has this identity");
    // Where the settings name no provider, any identity counts: an administrator can end it.
    let nobody = api.beside(&[]);
    nobody.me(&ann).expect(200).has(json!({"has_identity": true}));
}

#[test]
fn a_mail_tells_the_owner_of_a_new_identity() {
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    let (smtp, api) = service_with_mail(&provider_settings(&issuer));
    let ann = api.sign_up("ann");
    joined(&provider, &api, &ann, "ann-there");
    let mail = smtp.wait_for_mail_to("ann@example.com");
    assert!(mail.text().contains("ann-there@example.com"), "{}", mail.text());
    // A provider that has moved may know its people by the same subjects.
    let present = OpenIdProvider::start();
    let api = api.beside(&provider_settings(&present.issuer()));
    joined(&present, &api, &ann, "ann-there");
    let mail = smtp.wait_for_mail_to("ann@example.com");
    assert!(mail.text().contains("ann-there@example.com"), "{}", mail.text());
}

/// What the provider has confirmed is what the account has, and where its mail goes.
#[test]
fn an_account_that_an_identity_makes_has_the_address_that_the_provider_has_confirmed() {
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    let registration = ("CLOAKROOM_OIDC_REGISTRATION", "on");
    let (smtp, api) = service_with_mail(
        &[
            &provider_settings(&issuer)[..],
            &[registration, ("CLOAKROOM_EMAIL_CONFIRMATION", "required")],
        ]
        .concat(),
    );
    provider.person("umlaut");
    let email = "J\u{d6}rg@example.com";
    provider.claim("email", email);
    api.me(signed_in(&provider, &api)).expect(200).has(json!({ "email": email }));
    api.request_reset("j\u{f6}rg@EXAMPLE.com").expect(200);
    smtp.wait_for_mail_to(email);
}

#[test]
fn of_two_accounts_that_join_one_identity_at_once_one_has_it() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let users = ["ann", "bob"].map(|name| api.sign_up(name));
    let codes = [(); 2].map(|()| api.provider_code(&provider, "&again=1"));
    let statuses = parallel(2, |i| api.join(&users[i], &codes[i], Some(PASSWORD)).status);
    assert_eq!(tally(statuses), [(204, 1), (409, 1)].into());
}

#[test]
fn what_ends_an_identity() {
    let provider = OpenIdProvider::start();
    let (api, [root]) = Server::with_users(&provider_settings(&provider.issuer()), ["root"]);
    for (name, end) in [
        (
            "leave",
            &(|user: &Tokens| drop(api.leave(user, PASSWORD).expect(204))) as &dyn Fn(&Tokens),
        ),
        ("admin", &|user| {
            api.delete(&format!("/users/{}/identity", user.id()), &root).expect(204);
        }),
        ("reset", &|user| {
            let token = api.reset_token(user.user["email"].as_str().expect("text"));
            api.reset_password(&token, NEW_PASSWORD).expect(200);
        }),
        ("password", &|user| {
            api.update_user(&root, user.id(), json!({"password": NEW_PASSWORD})).expect(200);
        }),
        ("command", &|user| {
            api.create_admin(user.user["email"].as_str().expect("text"), NEW_PASSWORD)
        }),
        ("deletion", &|user| drop(api.delete_user(&root, user.id()).expect(204))),
    ] {
        let user = api.sign_up(name);
        joined(&provider, &api, &user, name);
        let there = signed_in(&provider, &api);
        let script = api.new_token(&user, false);
        end(&user);
        api.me(&there).expect(401);
        api.refresh(&there.refresh).expect(401);
        api.me(&script).expect(401);
        let code = api.provider_code(&provider, "");
        let answer = api.provider_token(&code, VERIFIER, None).case(name);
        answer.refused(404, "No account has this identity");
        if ["leave", "admin"].contains(&name) {
            // A session that a password has opened goes on.
            api.me(&user).expect(200).has(json!({"has_identity": false}));
        }
    }
    assert_eq!(api.database.count("users WHERE identity_email IS NOT NULL"), 0);
    assert_eq!(api.database.count("audit_events WHERE action = 'identity.leave'"), 2);
    // What leaves it: another password of one's own, and nothing to end.
    let user = api.sign_up("stays");
    joined(&provider, &api, &user, "stays");
    api.change_password(&user, PASSWORD, NEW_PASSWORD).expect(200);
    api.me(&user).expect(200).has(json!({"has_identity": true}));
    let path = |id: &str| format!("/users/{id}/identity");
    api.delete(&path(root.id()), &root).expect(204);
    api.delete(&path(UNKNOWN_ID), &root).expect(404);
    api.delete(&path(user.id()), &user).expect(403);
    let script = api.new_token(&root, false);
    api.delete(&path(user.id()), &script).expect(403);
    // Without a password it is the only way in.
    api.database.run("UPDATE users SET password_hash = NULL WHERE username = 'stays'");
    api.leave(signed_in(&provider, &api), PASSWORD)
        .refused(409, "The account has no password")
        .has(json!({"reason": "PASSWORD_MISSING"}));
}

#[test]
fn a_mailed_link_joins_an_identity_in_place_of_a_password() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let ann = api.sign_up("ann");
    joined(&provider, &api, &ann, "former");
    let there = signed_in(&provider, &api);
    let token = api.reset_token("ann@example.com");
    provider.person("new");
    let code = api.provider_code(&provider, "");
    let oidc = json!({"code": code, "verifier": VERIFIER});
    let reset = |body: Value| api.post("/auth/reset-password", Anonymous, body);
    reset(json!({"token": token})).expect(422);
    reset(json!({"token": token, "oidc": oidc, "new_password": NEW_PASSWORD})).expect(422);
    reset(json!({"token": token, "oidc": "x"})).expect(422);
    reset(json!({"token": token, "oidc": {"code": code}})).expect(422);
    reset(json!({"token": token, "oidc": oidc})).expect(200);
    api.me(&ann).expect(401);
    api.me(&there).expect(401);
    let ann = signed_in(&provider, &api);
    api.me(&ann).expect(200).has(json!({"has_password": false, "has_identity": true}));
    api.login("ann", PASSWORD).expect(401);
    provider.person("former");
    let code = api.provider_code(&provider, "");
    api.provider_token(&code, VERIFIER, None).expect(404);
    // An invitation is a mailed link, too.
    let root = api.sign_up_admin("root");
    let wanted = json!({"email": "cyd@example.com", "name": "Cyd", "invite": true});
    api.create_user(&root, wanted).expect(201);
    let line = eventually(|| {
        let lines = api.database.logged("password reset token");
        lines.into_iter().find(|line| !line.contains(&token))
    });
    let invitation = line.split_whitespace().last().expect("a token").to_owned();
    provider.person("cyd-there");
    let code = api.provider_code(&provider, "");
    reset(json!({"token": invitation, "oidc": {"code": code, "verifier": VERIFIER}})).expect(200);
    let cyd = api.me(signed_in(&provider, &api)).expect(200);
    cyd.has(json!({"email": "cyd@example.com", "has_password": false, "has_identity": true}));
    // An identity that another account has is refused, and the link stays good.
    api.register("bob").expect(201);
    let token = api.reset_token("bob@example.com");
    provider.person("new");
    let code = api.provider_code(&provider, "");
    let taken = reset(json!({"token": token, "oidc": {"code": code, "verifier": VERIFIER}}));
    taken.refused(409, "Identity already in use");
    api.reset_password(&token, NEW_PASSWORD).expect(200);
}

#[test]
fn whoever_proves_the_mailbox_has_the_account_alone_also_with_the_same_identity() {
    let providers = [OpenIdProvider::start(), OpenIdProvider::start()];
    let api = providers[0].service(&[]);
    let mut signed_in = api.sign_up("ann");
    // The same person three times, and then somebody of the same subject at another provider.
    for provider in [&providers[0], &providers[0], &providers[0], &providers[1]] {
        let api = api.beside(&provider_settings(&provider.issuer()));
        provider.person("ann-there");
        let script = api.new_token(&signed_in, false);
        let file = api.upload(&signed_in, "a.txt", "a").expect(201).json()["id"].clone();
        let link = api.new_link(&signed_in, file.as_str().expect("text"));
        api.database.run("UPDATE users SET wrong_codes = 50");
        let token = api.reset_token("ann@example.com");
        let code = api.provider_code(provider, "");
        let body = json!({"token": token, "oidc": {"code": code, "verifier": VERIFIER}});
        api.post("/auth/reset-password", Anonymous, body).expect(200);
        api.me(&signed_in).expect(401);
        api.me(&script).expect(401);
        api.open_link(&link).expect(404);
        assert_eq!(api.database.value::<i32>("SELECT wrong_codes FROM users"), 0);
        let code = api.provider_code(provider, "");
        signed_in = api.provider_token(&code, VERIFIER, None).expect(200).tokens();
    }
}

#[test]
fn a_fresh_code_takes_the_place_of_the_current_password() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true")]);
    let ann = api.sign_up("ann");
    joined(&provider, &api, &ann, "ann-there");
    let oidc =
        |more: &str| json!({"code": api.provider_code(&provider, more), "verifier": VERIFIER});
    let invalid = "Invalid or expired code";
    let change = |proof: Value| {
        let body = json!({"new_password": NEW_PASSWORD, "oidc": proof});
        api.post("/users/change-password", &ann, body)
    };
    change(oidc("")).refused(400, invalid);
    provider.person("eve");
    change(oidc("&again=1")).refused(400, invalid);
    provider.person("ann-there");
    let both = json!({"new_password": NEW_PASSWORD, "oidc": oidc("&again=1"), "current_password": PASSWORD});
    api.post("/users/change-password", &ann, both).expect(422);
    change(oidc("&again=1")).expect(200);
    api.update_me(&ann, json!({"email": "a@example.com"}))
        .refused(400, "Current password is incorrect");
    let body = json!({"email": "a@example.com", "oidc": oidc("&again=1")});
    api.update_me(&ann, body).expect(200);
    let begun = api.post("/auth/second-factor", &ann, json!({"oidc": oidc("&again=1")}));
    begun.expect(200);
    // Also where there is more to prove, and where an address is confirmed.
    let factor = api.new_second_factor(&ann, NEW_PASSWORD);
    let body = json!({"oidc": oidc("&again=1"), "code": factor.recovery_codes[0]});
    api.request("DELETE", "/auth/second-factor").by(&ann).json(body).send().expect(204);
    let confirming = api.beside(
        &[
            &provider_settings(&provider.issuer())[..],
            &[("CLOAKROOM_EMAIL_CONFIRMATION", "required")],
        ]
        .concat(),
    );
    let token = confirming.confirmation_token(|| {
        let wish = json!({"email": "b@example.com", "oidc": oidc("&again=1")});
        confirming.update_me(&ann, wish).expect(200);
    });
    let confirm = |proof: Value| {
        let body = json!({"token": token, "oidc": proof});
        confirming.post("/auth/confirm-email", Anonymous, body)
    };
    confirm(oidc("")).refused(400, invalid);
    // A code is used up also beside a token that is not good.
    let proof = oidc("&again=1");
    let wrong = json!({"token": "no.token", "oidc": proof});
    let refused = confirming.post("/auth/confirm-email", Anonymous, wrong);
    refused.refused(400, "Invalid or expired token");
    confirm(proof).refused(400, invalid);
    confirm(oidc("&again=1")).expect(200);
    api.me(&ann).expect(200).has(json!({"email": "b@example.com"}));
    // But not to leave, and not for an account without an identity.
    let body = json!({"oidc": oidc("&again=1")});
    api.request("DELETE", "/auth/oidc").by(&ann).json(body).send().expect(422);
    let bob = api.sign_up("bob");
    let body = json!({"oidc": oidc("&again=1")});
    api.post("/users/me/delete", &bob, body).refused(400, invalid);
    api.post("/users/me/delete", &ann, json!({"oidc": oidc("&again=1")})).expect(204);
}
