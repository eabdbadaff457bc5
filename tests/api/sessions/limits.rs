//! The limits of what ends sessions and tokens, which owners need when somebody else has one of theirs.

use std::time::Instant;

use crate::harness::*;
use crate::service::rate_limits::{ON, TRUSTED, number, use_up};

#[test]
fn what_ends_sessions_and_tokens_has_30_requests_a_minute_for_each_session() {
    let api = Server::start(&[ON]);
    let (stolen, owner) = (api.sign_up("ann"), api.sign_in("ann"));
    use_up(30, 200, |n| {
        api.get(if n % 2 == 0 { "/auth/sessions" } else { "/auth/tokens" }, &stolen)
    });
    // A token comes back every two seconds, and the next one not within the second that begins now.
    wait_until(|| {
        let answer = api.list_tokens(&stolen);
        answer.status == 429 && number(&answer, "Retry-After") == 2
    });
    api.logout(&stolen).refused(429, "Rate limit exceeded");
    // Another session of the same user, and what is of another class.
    api.me(&stolen).expect(200);
    let answer = api.list_sessions(&owner).expect(200);
    assert_eq!(answer.rate_limit(), (30, 29));
    api.logout(&owner).expect(204);
    api.me(&stolen).expect(401);
}

#[test]
fn all_sessions_of_a_user_in_a_network_have_four_times_the_limit_of_one_for_what_ends_them() {
    let api = Server::start(&[ON, TRUSTED, ("CLOAKROOM_RATE_LIMIT_AUTH", "1000")]);
    api.register("ann").expect(201);
    let sessions: Vec<_> = (0..5).map(|_| api.sign_in("ann")).collect();
    let list = |n: usize, client: &str| {
        let request = api.request("GET", "/auth/sessions").by(&sessions[n]);
        request.header("X-Forwarded-For", client).send()
    };
    let begin = Instant::now();
    for n in 0..120 {
        list(n / 30, "203.0.113.9").expect(200);
    }
    // Two tokens come back each second; the fifth session has thirty of its own.
    let mut more = (0..30).map(|_| list(4, "203.0.113.9"));
    let refused = more.find(|answer| answer.status != 200).expect("a refusal");
    assert!(more.len() as u64 + 2 * begin.elapsed().as_secs() >= 27, "{refused:?}");
    assert_eq!(refused.refused(429, "Rate limit exceeded").rate_limit(), (120, 0));
    // The owner elsewhere is not kept from it.
    list(4, "203.0.114.9").expect(200);
}
