//! Each refusal has a cause, which the log names with the request, and is counted.

use std::collections::BTreeSet;

use crate::harness::*;

/// How a case makes a sign-in fail.
enum Way {
    Claim(&'static str, Value),
    Token(&'static str),
    Reply(u16, &'static [u8]),
    /// What the browser brings back, beside the state.
    Query(&'static str),
    /// Members of the document, of another process.
    Document(&'static str, Value),
    /// Keys of the set, of another process.
    Keys(fn(&OpenIdProvider)),
}

use Way::{Claim, Document, Keys, Query, Reply as Answer, Token};

fn two_keys(provider: &OpenIdProvider) {
    provider.with(|state| {
        state.keys.push(state.keys[0].clone());
        state.key_id = None;
    });
}

fn other_key(provider: &OpenIdProvider) {
    provider.with(|state| state.key_id = Some("another".to_owned()));
}

fn wrong_signature(provider: &OpenIdProvider) {
    provider.with(|state| state.key = ProviderKey::new());
}

#[rustfmt::skip] // One case a row, as in a table.
fn cases() -> Vec<(Way, &'static str, &'static str)> {
    vec![
        (Claim("iss", json!("https://login.example.com")), "invalid",
            "the ID token is refused: Required issuer mismatch"),
        (Claim("aud", json!("other")), "invalid", "the ID token is refused: Required audience mismatch"),
        (Claim("nonce", json!("other")), "invalid", "the ID token is refused: Required nonce mismatch"),
        (Claim("exp", json!(now() - 90)), "invalid", "the ID token is refused: Token has expired"),
        (Claim("iat", json!(now() + 90)), "invalid", "the ID token is refused: Clock drift detected"),
        (Claim("iat", json!(now() - 700)), "invalid", "the ID token is refused: Token is too old"),
        (Claim("nbf", json!(now() + 90)), "invalid", "the ID token is refused: Token not valid yet"),
        (Claim("aud", json!([CLIENT_ID, "other"])), "invalid", "the ID token is for another client too"),
        (Claim("sub", Value::Null), "invalid", "the ID token lacks exp, iat or a usable sub"),
        (Claim("auth_time", json!(now() - 400)), "invalid", "the ID token has no auth_time of just now"),
        (Token("a.b.c"), "invalid", "the ID token cannot be read"),
        (Token("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"), "invalid",
            "the ID token has another algorithm; \"HS256\"; taken are RS256"),
        (Keys(two_keys), "invalid", "the ID token fits several of the provider's keys"),
        (Keys(other_key), "invalid", "the ID token is signed with none of the provider's keys; its kid is \"another\""),
        (Keys(wrong_signature), "invalid", "the ID token is not signed by the provider"),
        (Answer(503, b"{}"), "unavailable", "its token endpoint answers without usable JSON; the status is 503"),
        (Answer(200, &[b' '; 300_000]), "unavailable", "its token endpoint sends too much, or breaks off"),
        (Answer(401, b"{}"), "unavailable", "it refuses this client: CLOAKROOM_OIDC_CLIENT_ID or its secret is wrong"),
        (Answer(400, br#"{"error":"invalid_grant"}"#), "invalid",
            "its token endpoint refuses the code; it answers 400 with the error \"invalid_grant\""),
        (Answer(200, b"{}"), "invalid", "its token endpoint gives no id_token"),
        (Query("error=access_denied"), "denied", "it has refused; \"access_denied\""),
        (Query("error=temporarily_unavailable"), "unavailable", "it says that it has failed"),
        (Query(""), "invalid", "the browser has brought neither a code nor an error"),
        (Query("code=a&iss=https://login.example.com"), "invalid",
            "the browser was sent back by another issuer; \"https://login.example.com\""),
        (Document("authorization_response_iss_parameter_supported", json!(true)), "invalid",
            "the browser has brought no issuer, which its document promises"),
        (Document("issuer", json!("https://login.example.com")), "unavailable",
            "its document names another issuer than CLOAKROOM_OIDC_ISSUER; \"https://login.example.com\""),
        (Document("jwks_uri", json!("file:///etc/passwd")), "unavailable",
            "its document has a URL that is not https; \"file:///etc/passwd\""),
    ]
}

/// Causes that other tests provoke, in this file and beside it.
const OTHERS: [&str; 6] = [
    "its document is late",
    "its userinfo endpoint tells about another subject",
    "the browser has brought no state",
    "the sign-in began at another issuer",
    "too many people sign in at once",
    "100,000 states were used lately",
];

#[test]
fn each_cause_is_logged_with_its_request_and_counted() {
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    let first = provider.service(&[]);
    let good = provider.with(|state| (state.keys.clone(), state.key.clone()));
    for (way, reason, cause) in cases() {
        provider.with(|state| {
            (state.keys, state.key) = good.clone();
            state.key_id = Some("first".to_owned());
            state.claims.clear();
            state.document.clear();
            state.replies.clear();
            state.token = None;
        });
        let mut own = None;
        let mut departure = None;
        let mut query = None;
        match way {
            Claim(name, value) => provider.claim(name, value),
            Token(token) => provider.with(|state| state.token = Some(token.to_owned())),
            Answer(status, body) => {
                provider.reply("/token", Reply::With(status, String::new(), body.to_vec()))
            }
            Query(text) => query = Some(text),
            Keys(change) => {
                change(&provider);
                own = Some(first.beside(&provider_settings(&issuer)));
            }
            Document(name, value) => {
                departure = Some(first.depart(""));
                provider.with(|state| state.document.insert(name.to_owned(), value));
                own = Some(first.beside(&provider_settings(&issuer)));
            }
        }
        let api = own.as_ref().unwrap_or(&first);
        let again = if cause.contains("auth_time") { "&again=1" } else { "" };
        let departure = departure.unwrap_or_else(|| api.depart(again));
        let query = match query {
            Some(text) => format!("{text}&state={}", departure.query["state"]),
            None => provider.authorize(&departure),
        };
        let path = format!("/auth/oidc/callback?{query}");
        let answer = api.request("GET", &path).header("Cookie", &departure.cookie).send();
        let id = answer.header("X-Request-ID");
        let page = format!("/console/oidc#error={reason}&request_id={id}");
        assert_eq!(answer.header("Location"), page, "{cause}");
        let line = api.logged(&format!("request {id}: sign-in by {issuer} is {reason}: "));
        assert!(line.contains(cause), "{line}");
        assert!(line.to_lowercase().contains("warn"), "{line}");
        let count = format!("cloakroom_provider_sign_ins_total{{outcome=\"{reason}\"}}");
        assert!(api.metric(&count).is_some_and(|count| count >= 1.0), "{cause}");
    }
}

/// The text of each cause in the program is in the table above, or in the list below it.
#[test]
fn no_cause_is_without_a_test() {
    let sources = [
        include_str!("../../../src/openid/client.rs"),
        include_str!("../../../src/openid/id_token.rs"),
        include_str!("../../../src/provider/round_trip.rs"),
    ];
    let begins =
        ["the ID token ", "the browser ", "the sign-in began", "too many ", "100,000 ", "its "];
    let literals = sources.iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let is_cause = |text: &&str| {
        let detail = text.starts_with("its kid")
            || text.starts_with("its state")
            || text.ends_with("endpoint")
            || text.contains('{');
        let whole = begins.iter().any(|begin| text.starts_with(begin)) && text.contains(' ');
        whole && !detail && !["its document", "its key set"].contains(text)
    };
    let written: BTreeSet<_> = literals.filter(is_cause).collect();
    let tested: Vec<_> = cases().into_iter().map(|(_, _, cause)| cause).chain(OTHERS).collect();
    for cause in &written {
        assert!(tested.iter().any(|test| test.starts_with(cause)), "{cause}");
    }
    assert!(written.len() >= 15, "{written:?}");
    // A refusal is made by what asks for a cause, nowhere else.
    let made = sources.iter().any(|text| text.contains("Fault { reason:"));
    assert!(!made && sources[2].matches("Fault::new(").count() <= 2);
}

#[test]
fn a_cause_is_logged_once_a_minute_and_cleaned() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[("CLOAKROOM_OIDC_REGISTRATION", "on")]);
    let come_back = |query: &str| {
        let departure = api.depart("");
        api.come_back(&format!("{query}&state={}", departure.query["state"]), &departure.cookie)
    };
    for _ in 0..3 {
        assert_eq!(come_back("error=a%0Ab%E2%80%AE%22c"), "error=denied");
    }
    let line = api.logged("it has refused");
    assert!(line.contains(r#""ab\"c""#), "{line}");
    assert_eq!(api.log().matches("it has refused").count(), 1);
    assert_eq!(api.come_back("code=a", ""), "error=invalid");
    api.logged("the browser has brought no state");
    provider.with(|state| state.userinfo = json!({"sub": "eve"}));
    assert_eq!(api.provider_error(&provider, ""), "invalid");
    api.logged("its userinfo endpoint tells about another subject");
    // What is signed is not read, and named.
    provider.reply(
        "/userinfo",
        Reply::With(200, String::new(), b"eyJhbGciOiJSUzI1NiJ9.e30.AA".to_vec()),
    );
    assert_eq!(api.provider_error(&provider, ""), "unavailable");
    api.logged("its userinfo endpoint answers without usable JSON; the status is 200, and the body a token");
    // A state is not used while the table is full of them.
    api.database.run(
        "INSERT INTO provider_sign_ins (state_hash) SELECT int4send(n) FROM generate_series(1, 100000) n",
    );
    let departure = api.depart("");
    let query = provider.authorize(&departure);
    assert_eq!(api.come_back(&query, &departure.cookie), "error=unavailable");
    api.logged("100,000 states were used lately");
    // Another issuer by now.
    let other = OpenIdProvider::start();
    let beside = api.beside(&provider_settings(&other.issuer()));
    assert_eq!(beside.come_back(&query, &departure.cookie), "error=invalid");
    beside.logged("the sign-in began at another issuer");
}
