//! The way to the provider.

use crate::harness::*;

#[test]
fn a_start_sends_the_browser_to_the_provider() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let departure = api.depart("");
    assert!(departure.location.starts_with(&format!("{}/authorize?", provider.issuer())));
    let text = |name: &str| departure.query[name].as_str();
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", "http://127.0.0.1:8000/api/v1/auth/oidc/callback"),
        ("scope", "openid email profile"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(text(name), value, "{name}");
    }
    assert!(!departure.query.contains_key("prompt") && !departure.query.contains_key("max_age"));
    let secrets = [text("state"), text("nonce"), text("code_challenge")];
    assert!(secrets.iter().all(|secret| secret.len() == 43), "{secrets:?}");
    let other = api.depart("&again=1");
    assert_eq!((&*other.query["prompt"], &*other.query["max_age"]), ("login", "300"));
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(other.query[name], departure.query[name], "{name}");
    }
    // The document was fetched once for both.
    assert_eq!(provider.count("/.well-known/openid-configuration"), 1);
}

#[test]
fn the_cookie_is_small_sealed_and_only_for_this_service() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let Departure { query, cookie, set_cookie, .. } = api.depart("");
        let rest = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax";
        assert_eq!(set_cookie, format!("{cookie}{rest}"));
        assert!(set_cookie.len() <= 512, "{set_cookie}");
        let (name, value) = cookie.split_once('=').expect("a value");
        assert!(query.values().all(|text| !value.contains(text.as_str())));
        names.insert(name.to_owned());
    }
    // The longest issuer and the longest name of the cookie.
    let issuer = format!("/{}", "a".repeat(199 - provider.issuer().len()));
    let long = OpenIdProvider::start_at(&issuer);
    assert_eq!(long.issuer().len(), 200);
    let https = ("CLOAKROOM_PUBLIC_URL", "https://files.example.com");
    let set_cookie = long.service(&[https]).depart("").set_cookie;
    assert!(set_cookie.len() <= 512, "{}: {set_cookie}", set_cookie.len());
    assert!(
        names.len() <= 16 && names.iter().all(|name| name.len() == "oidc-0".len()),
        "{names:?}"
    );
    assert!(set_cookie.starts_with("__Host-oidc-") && set_cookie.ends_with("; Secure"));
}

#[test]
fn a_start_needs_a_challenge_and_is_no_page_for_scripts() {
    let provider = OpenIdProvider::start();
    let origins = ("CLOAKROOM_CORS_ORIGINS", "*");
    let key = [("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY", "a-key-of-the-tests")];
    let api = provider.service(&[origins, key[0], key[1], ("CLOAKROOM_API_KEY_SCOPE", "all")]);
    for challenge in ["", "a", &"a".repeat(44), &format!("{}%2B", "a".repeat(42))] {
        let path = format!("/auth/oidc/start?challenge={challenge}");
        api.request("GET", &path).send().expect(422);
    }
    api.start_sign_in("&again=yes").expect(422);
    let start = format!("/auth/oidc/start?challenge={}", challenge_of(VERIFIER));
    for path in [&start, "/auth/oidc/callback"] {
        let head = api.request("HEAD", path).send().expect(405);
        assert_eq!(head.header("Allow"), "GET");
        for method in ["HEAD", "POST", "OPTIONS"] {
            let other = api.request(method, path).header("Origin", "https://a.example");
            let answer = other.header("Access-Control-Request-Method", "GET").send().expect(405);
            let mut names = answer.headers.keys().map(|name| name.as_str());
            assert!(!names.any(|name| name.starts_with("access-control-")), "{method} {answer:?}");
        }
        let answer =
            api.request("GET", path).header("Origin", "https://a.example").send().expect(303);
        assert!(!answer.has_header("Access-Control-Allow-Origin"), "{answer:?}");
        assert_eq!(answer.header("Cache-Control"), "no-store");
    }
    // The other endpoints ask for the key.
    api.provider_token("a", VERIFIER, None).expect(401);
}

#[test]
fn without_a_provider_there_is_nothing_of_it() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (method, path) in [
        ("GET", "/auth/oidc/start"),
        ("GET", "/auth/oidc/callback"),
        ("POST", "/auth/oidc/token"),
        ("POST", "/auth/oidc/join"),
        ("DELETE", "/auth/oidc"),
    ] {
        let answer = api.request(method, path).by(&ann).send();
        answer.refused(404, "This feature is not available");
    }
    api.request("HEAD", "/auth/oidc/start").send().expect(404);
}

#[test]
fn sixty_requests_a_minute_come_from_an_address() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[("CLOAKROOM_RATE_LIMIT_ENABLED", "true")]);
    let first = api.start_sign_in("").expect(303);
    assert_eq!(first.header("X-RateLimit-Limit"), "60");
    // One more is given back each second.
    wait_until(|| api.start_sign_in("").status == 429);
    let path = format!("/auth/oidc/start?challenge={}", challenge_of(VERIFIER));
    let answer = api.request("GET", &path).header("Accept", "text/html").send().expect(303);
    let page = "/console/oidc#error=unavailable&request_id=";
    assert_eq!(answer.header("Location"), format!("{page}{}", answer.header("X-Request-ID")));
    // The way back and the last step have limits of their own.
    assert_eq!(api.come_back("", ""), "error=invalid");
    api.provider_token("a", VERIFIER, None).refused(400, "Invalid or expired code");
}
