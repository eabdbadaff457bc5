//! What a provider does wrong, and what becomes of those who wait for it.

use std::thread;
use std::time::Instant;

use crate::harness::*;

const DOCUMENT: &str = "/.well-known/openid-configuration";

fn status(status: u16, body: &[u8]) -> Reply {
    Reply::With(status, String::new(), body.to_vec())
}

#[test]
fn what_a_provider_does_wrong_has_a_reason() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let elsewhere = format!("Location: {}/keys\r\n", provider.issuer());
    api.provider_code(&provider, "");
    for (case, reply, reason) in [
        ("5xx", status(503, b"{}"), "unavailable"),
        ("no JSON", status(200, b"<html>"), "unavailable"),
        ("no object", status(200, b"[]"), "unavailable"),
        ("large", status(200, &[b' '; 300_000]), "unavailable"),
        ("a redirect", Reply::With(302, elsewhere.clone(), b"{}".to_vec()), "unavailable"),
        ("refuses the client", status(401, b"{}"), "unavailable"),
        ("the same in its words", status(400, br#"{"error":"invalid_client"}"#), "unavailable"),
        ("a proxy refuses", status(403, b"<html>"), "unavailable"),
        ("too many requests", status(429, b"{}"), "unavailable"),
        ("a code that is none", status(400, br#"{"error":"invalid_grant"}"#), "invalid"),
        ("no token", status(200, b"{}"), "invalid"),
        ("a token that is no text", status(200, br#"{"id_token":1}"#), "invalid"),
    ] {
        provider.reply("/token", reply);
        assert_eq!(api.provider_error(&provider, ""), reason, "{case}");
    }
    api.logged("it refuses this client: CLOAKROOM_OIDC_CLIENT_ID or its secret is wrong");
    assert_eq!(provider.count("/keys"), 1, "the redirect is not followed");
}

#[test]
fn what_a_provider_says_of_itself_wrongly_is_remembered_for_five_seconds() {
    let provider = OpenIdProvider::start();
    let path = format!("/auth/oidc/start?challenge={}", challenge_of(VERIFIER));
    for (name, value) in [
        ("issuer", json!("https://login.example.com")),
        ("issuer", json!(format!("{}/", provider.issuer()))),
        ("token_endpoint", json!("http://login.example.com/token")),
        ("jwks_uri", json!("file:///etc/passwd")),
        ("authorization_endpoint", json!("javascript:alert(1)")),
        ("userinfo_endpoint", json!("http://login.example.com/userinfo")),
        ("end_session_endpoint", json!("javascript:alert(1)")),
        ("token_endpoint", Value::Null),
    ] {
        provider.with(|state| {
            state.document.clear();
            state.document.insert(name.to_owned(), value);
        });
        let api = provider.service(&[]);
        let before = provider.count(DOCUMENT);
        for _ in 0..3 {
            let answer = api.request("GET", &path).send();
            answer
                .refused(503, "Sign-in provider is not available")
                .has(json!({"reason": "PROVIDER_UNAVAILABLE"}));
        }
        assert_eq!(provider.count(DOCUMENT), before + 1);
        let answer = api.request("GET", &path).header("Accept", "text/html,*/*").send().expect(303);
        let page = "/console/oidc#error=unavailable&request_id=";
        assert_eq!(answer.header("Location"), format!("{page}{}", answer.header("X-Request-ID")));
    }
    // Later it is asked again.
    let api = provider.service(&[]);
    api.start_sign_in("").expect(503);
    provider.with(|state| state.document.clear());
    wait_until(|| api.start_sign_in("").status == 303);
}

#[test]
fn what_all_wait_for_is_fetched_once() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let statuses = tally(parallel(20, |_| api.start_sign_in("").status));
    // On a slow machine some may wait for too long.
    assert!(
        statuses.contains_key(&303) && statuses.keys().all(|it| [303, 503].contains(it)),
        "{statuses:?}"
    );
    assert_eq!((provider.count(DOCUMENT), provider.count("/keys")), (1, 1));
}

#[test]
fn a_provider_is_known_by_its_authority() {
    let authority = CertificateAuthority::create();
    let provider = OpenIdProvider::start_with_tls(authority.certify("localhost"));
    let https = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
    let file = authority.file();
    let api = provider.service(&[https, ("CLOAKROOM_OIDC_CA", &file)]);
    api.provider_code(&provider, "");
    // The system does not trust it, and neither does who names another one.
    provider.service(&[https]).start_sign_in("").expect(503);
    let other = CertificateAuthority::create();
    provider.service(&[https, ("CLOAKROOM_OIDC_CA", &other.file())]).start_sign_in("").expect(503);
    // Nor is it believed under another name.
    let impostor = OpenIdProvider::start_with_tls(authority.certify("login.example.com"));
    impostor.service(&[https, ("CLOAKROOM_OIDC_CA", &file)]).start_sign_in("").expect(503);
}

#[test]
fn a_provider_that_hangs_holds_little() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let ways: Vec<_> = (0..40).map(|_| api.depart("")).collect();
    let queries: Vec<_> = ways.iter().map(|way| provider.authorize(way)).collect();
    provider.reply("/token", Reply::Nothing);
    let before = api.peak_memory();
    let began = Instant::now();
    let running = || api.metric("cloakroom_requests_running").expect("the gauge") as usize - 1;
    let found = thread::scope(|scope| {
        let found = scope.spawn(|| {
            parallel(40, |i| (api.come_back(&queries[i], &ways[i].cookie), began.elapsed()))
        });
        wait_until(|| provider.count("/token") == 15);
        // The others have gone before these come to an end.
        wait_until(|| running() <= 15);
        found.join().expect("no panic")
    });
    assert!(found.iter().all(|(fragment, _)| fragment == "error=unavailable"), "{found:?}");
    // Of the others some may have got their turn just when it was over, and the states of all others are still good.
    let asked = provider.count("/token");
    assert!((15..=30).contains(&asked), "{asked}");
    assert_eq!(api.database.count("provider_sign_ins"), asked as i64);
    api.logged("too many people sign in at once");
    let mut times: Vec<_> = found.iter().map(|(_, time)| time.as_secs_f32()).collect();
    times.sort_by(f32::total_cmp);
    assert!(times[0] < times[39] && api.peak_growth(before) < 16 << 20, "{times:?}");
    // All others are served meanwhile, and it is asked again afterwards.
    provider.with(|state| state.replies.clear());
    api.provider_code(&provider, "");
    // One that sends a byte a second comes to an end, too.
    provider.reply("/token", Reply::Drops);
    assert_eq!(api.provider_error(&provider, ""), "unavailable");
    provider.port.close();
    assert_eq!(api.provider_error(&provider, ""), "unavailable");
}

/// The start of the service is the first to ask.
#[test]
fn one_request_waits_for_a_provider_that_does_not_say_what_it_is() {
    let provider = OpenIdProvider::start();
    provider.reply(DOCUMENT, Reply::Drops);
    let api = provider.service(&[]);
    wait_until(|| provider.count(DOCUMENT) == 1);
    // The others are gone before that comes to an end, and none of them asks beside it.
    assert_eq!(tally(parallel(20, |_| api.start_sign_in("").status)), [(503, 20)].into());
    api.logged("its document is late");
    assert_eq!(provider.count(DOCUMENT), 1);
    api.logged("cannot be used: its document ");
    api.start_sign_in("").expect(503);
}
