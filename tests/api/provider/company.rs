//! A company's own provider: whom it makes accounts for, who is an administrator, and many people at once.

use std::thread;
use std::time::Duration;

use crate::harness::*;

const REGISTRATION: (&str, &str) = ("CLOAKROOM_OIDC_REGISTRATION", "on");

fn sign_in(api: &Server, provider: &OpenIdProvider) -> Answer {
    api.provider_token(&api.provider_code(provider, ""), VERIFIER, None)
}

#[test]
fn what_ones_own_provider_says_of_addresses_is_believed_and_its_people_are_no_strangers() {
    let provider = OpenIdProvider::start();
    let limits = [
        ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1"),
        REGISTRATION,
    ];
    let all = [&limits[..], &[("CLOAKROOM_OIDC_EMAILS", "all")]].concat();
    let api = provider.service(&all);
    for name in ["ann", "bob"] {
        provider.person(name);
        provider.claim("email_verified", false);
        sign_in(&api, &provider).expect(200);
    }
    assert_eq!(api.database.count("users WHERE is_self_registered"), 0);
    // An address that is confirmed in a text counts too, and only those of the domains.
    let of = [&limits[..], &[("CLOAKROOM_OIDC_DOMAINS", "Example.org, example.com")]].concat();
    let api = provider.service(&of);
    for name in ["ann", "bob"] {
        provider.person(name);
        provider.claim("email_verified", "true");
        sign_in(&api, &provider).expect(200);
    }
    provider.person("eve");
    for email in ["eve@example.net", "eve@sub.example.com", "eve@notexample.com"] {
        provider.claim("email", email);
        sign_in(&api, &provider)
            .refused(403, "Not enough permissions")
            .has(json!({"reason": "FOREIGN_DOMAIN"}));
    }
    provider.claim("email_verified", false);
    sign_in(&api, &provider).refused(409, "The provider confirms no e-mail address");
    assert_eq!(api.database.count("users WHERE is_self_registered"), 0);
}

#[test]
fn a_claim_may_be_named_by_a_url_and_an_address_must_be_confirmed() {
    let provider = OpenIdProvider::start();
    for (setting, name, value, verified, role) in [
        ("https://corp.example/roles:admin", "https://corp.example/roles", "admin", true, "admin"),
        ("urn:corp:roles:admin", "urn:corp:roles", "admin", true, "admin"),
        ("email:boss@example.com", "email", "boss@example.com", true, "admin"),
        ("email:boss@example.com", "email", "boss@example.com", false, "user"),
    ] {
        let api = provider.service(&[REGISTRATION, ("CLOAKROOM_OIDC_ADMIN_CLAIM", setting)]);
        provider.person("ann");
        provider.with(|state| state.userinfo = json!({"sub": "ann"}));
        assert_eq!(sign_in(&api, &provider).expect(200).json()["user"]["role"], "user");
        provider.claim(name, value);
        provider.claim("email_verified", verified);
        let user = sign_in(&api, &provider).expect(200).json()["user"].clone();
        assert_eq!(user["role"], role, "{setting} {verified}");
        // Whether the address is confirmed may be told by userinfo alone.
        if name == "email" {
            let told = json!({"sub": "ann", "email": value, "email_verified": verified});
            provider.with(|state| state.userinfo = told);
            provider.with(|state| state.claims.remove("email_verified"));
            let user = sign_in(&api, &provider).expect(200).json()["user"].clone();
            assert_eq!(user["role"], role, "{setting} {verified} by userinfo");
        }
    }
}

#[test]
fn a_claim_gives_the_role_and_takes_it_but_never_from_the_last_administrator() {
    let provider = OpenIdProvider::start();
    let claim = ("CLOAKROOM_OIDC_ADMIN_CLAIM", "groups:files:admins");
    let api = provider.service(&[REGISTRATION, claim]);
    let role = |name: &str, groups: Value| {
        provider.person(name);
        provider.claim("groups", groups);
        let made = sign_in(&api, &provider).expect(200);
        let role = made.json()["user"]["role"].as_str().expect("a role").to_owned();
        // The session is one of this role.
        let me = api.me(made.tokens()).expect(200).json();
        assert_eq!(me["role"], role.as_str());
        role
    };
    assert_eq!(role("ann", json!(["a", "files:admins"])), "admin");
    assert_eq!(role("ann", json!(["a"])), "admin", "the last one");
    assert_eq!(role("bob", json!("files:admins")), "admin");
    assert_eq!(role("ann", json!(["a"])), "user");
    assert_eq!(role("bob", json!("files")), "admin", "the last one");
    assert_eq!(role("eve", json!(["files"])), "user");
    assert_eq!(role("eve", json!({"files:admins": true})), "user");
    // A claim that the ID token lacks is asked of userinfo.
    let userinfo = json!({"sub": "eve", "groups": ["files:admins"]});
    provider.with(|state| state.userinfo = userinfo);
    assert_eq!(role("eve", Value::Null), "admin");
    let events = "audit_events WHERE action = 'auth.role' AND details ->> 'by' = 'oidc'";
    assert_eq!(api.database.count(events), 4);
    let taken = format!("{events} AND details ->> 'old' = 'admin' AND details ->> 'new' = 'user'");
    assert_eq!(api.database.count(&taken), 1);
    // Without the setting a claim means nothing.
    let api = api.beside(&provider_settings(&provider.issuer()));
    provider.person("ann");
    provider.claim("groups", json!(["files:admins"]));
    assert_eq!(sign_in(&api, &provider).expect(200).json()["user"]["role"], "user");
}

#[test]
fn a_name_that_the_id_token_lacks_is_asked_of_userinfo() {
    let provider = OpenIdProvider::start();
    let scopes = ("CLOAKROOM_OIDC_SCOPES", "openid  groups");
    let api = provider.service(&[scopes]);
    let label = || {
        let departure = api.depart("");
        assert_eq!(departure.query["scope"], "openid groups");
        let fragment = api.come_back(&provider.authorize(&departure), &departure.cookie);
        fragment.split_once("&name=").expect("a name").1.to_owned()
    };
    provider.with(|state| state.userinfo = json!({"sub": "ann", "name": "Ann"}));
    assert_eq!(label(), "Ann");
    // Without it the sign-in goes on, and the log says why.
    provider.reply("/userinfo", Reply::With(500, String::new(), b"{}".to_vec()));
    assert_eq!(label(), "");
    api.logged("its userinfo endpoint answers without usable JSON; the status is 500");
}

#[test]
fn fifty_people_at_once_are_all_signed_in() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let ways: Vec<_> = (0..50).map(|_| api.depart("")).collect();
    let queries: Vec<_> = ways.iter().map(|way| provider.authorize(way)).collect();
    provider.reply("/token", Reply::Late(Duration::from_millis(250)));
    let found = parallel(50, |i| api.come_back(&queries[i], &ways[i].cookie));
    assert!(found.iter().all(|fragment| fragment.starts_with("code=")), "{found:?}");
}

/// Whoever has the fewest turns gets the next one, however many of another network wait.
#[test]
fn a_network_does_not_take_all_turns_from_others() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8")]);
    let ways: Vec<_> = (0..41).map(|_| api.depart("")).collect();
    let queries: Vec<_> = ways.iter().map(|way| provider.authorize(way)).collect();
    provider.reply("/token", Reply::Held);
    let come_back = |i: usize, address: &str| {
        let path = format!("/auth/oidc/callback?{}", queries[i]);
        let request = api.request("GET", &path).header("Cookie", &ways[i].cookie);
        request.header("X-Forwarded-For", address).send().expect(303);
    };
    let running = || api.metric("cloakroom_requests_running").expect("the gauge") as usize - 1;
    thread::scope(|scope| {
        for i in 0..40 {
            // All of one /48, which its client may use at will.
            scope.spawn(move || come_back(i, &format!("2001:db8:7:{i}::1")));
        }
        wait_until(|| provider.count("/token") == 15 && running() == 40);
        scope.spawn(|| come_back(40, "198.51.100.7"));
        wait_until(|| running() == 41);
        provider.with(|state| state.replies.clear());
    });
    let asked = provider
        .with(|state| state.requests.iter().map(|(_, body)| body.clone()).collect::<Vec<_>>());
    let asked: Vec<_> = asked.iter().filter(|body| body.contains("grant_type")).collect();
    let code = queries[40].split('&').next().expect("a code");
    let place = asked.iter().position(|body| body.split('&').any(|pair| pair == code));
    assert!(place.is_some_and(|place| place < 30), "{place:?}: {asked:?}");
}
