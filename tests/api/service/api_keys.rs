//! API keys: for exports, or for every endpoint. `exports/users.rs` has all combinations for exports.

use crate::harness::*;

const ON: (&str, &str) = ("CLOAKROOM_API_KEY_ENABLED", "true");
const EVERYWHERE: (&str, &str) = ("CLOAKROOM_API_KEY_SCOPE", "all");

#[test]
fn with_scope_all_every_endpoint_needs_a_key() {
    let api = Server::start(&[ON, ("CLOAKROOM_API_KEY", "one,two"), EVERYWHERE]);
    let register = api.request("POST", "/auth/register");
    let register = register.json(json!({"email": "ann@example.com", "password": PASSWORD}));
    register.send().refused(401, "API key is required");
    register.clone().header("X-API-Key", "three").send().refused(401, "Invalid API key");
    let ann = register.header("X-API-Key", "two").send().expect(201).tokens();
    api.profile(Anonymous).refused(401, "Authentication required");
    api.profile(&ann).refused(401, "API key is required");
    let profile =
        |key: &str| api.request("GET", "/users/me").by(&ann).header("X-API-Key", key).send();
    profile("on").refused(401, "Invalid API key");
    profile("one").expect(200);
    // The key is checked before the role.
    api.list_users(&ann, "").refused(401, "API key is required");
    api.healthz().expect(200);
}

#[test]
fn where_no_key_is_configured_what_needs_one_refuses_and_all_else_works() {
    let api = Server::start(&[ON]);
    api.logged("CLOAKROOM_API_KEY holds no key");
    let ann = api.sign_up("ann");
    api.profile(&ann).expect(200);
    let api = Server::start(&[ON, EVERYWHERE]);
    api.login_with(json!({})).refused(500, "API key validation misconfigured");
    api.readyz().expect(200);
}

#[test]
fn requests_with_wrong_keys_count_against_the_rate_limit() {
    let api = Server::start(&[
        ON,
        ("CLOAKROOM_API_KEY", "one"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "2"),
    ]);
    let ann = api.sign_up("ann");
    let probe = |key: &str| {
        api.request("GET", "/users/export-alive").by(&ann).header("X-API-Key", key).send()
    };
    for _ in 0..2 {
        probe("x").refused(401, "Invalid API key");
    }
    for key in ["x", "one"] {
        probe(key).refused(429, "Rate limit exceeded");
    }
}
