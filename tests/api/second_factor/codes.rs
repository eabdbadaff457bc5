//! Signing in to an account with a second factor, and the limits of wrong codes.

use std::process::Command;

use crate::harness::*;

const TRUSTED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");
const TOO_MANY: &str = "Too many login attempts. Please try again later.";
const INVALID: &str = "Invalid code";
const REQUIRED: &str = "Second factor required";
const BAD_LOGIN: &str = "Invalid username or password";

/// A service behind a proxy, its user `ann`, and the second factor of the account.
fn service(settings: &[(&str, &str)]) -> (Server, Tokens, SecondFactor) {
    let (api, [ann]) = Server::with_users(&[&[TRUSTED], settings].concat(), ["ann"]);
    let factor = api.new_second_factor(&ann, PASSWORD);
    (api, ann, factor)
}

fn login_from(api: &Server, address: &str, password: &str, code: &str) -> Answer {
    let request = api.request("POST", "/auth/login").header("X-Forwarded-For", address);
    request.json(json!({"username": "ann", "password": password, "code": code})).send()
}

#[test]
fn the_right_password_needs_a_code_and_a_wrong_one_is_told_nothing() {
    let (api, _, factor) = service(&[]);
    let required =
        json!({"error_code": "SECOND_FACTOR_REQUIRED", "reason": "SECOND_FACTOR_REQUIRED"});
    api.login("ann", PASSWORD).refused(401, REQUIRED).has(required);
    let answer = api.login_with(json!({"username": "ann", "password": PASSWORD, "code": null}));
    answer.refused(401, REQUIRED);
    let invalid = json!({"error_code": "SECOND_FACTOR_INVALID", "reason": "SECOND_FACTOR_INVALID"});
    for code in [&factor.wrong_code(), "12345", "no code", "A4DQ-OBYH-A4DQ-OBYH"] {
        api.login_with_code("ann", PASSWORD, code).refused(401, INVALID).has(invalid.clone());
    }
    // With a wrong password nothing says that there is a second factor, whatever the code.
    api.login("ann", "wrong").refused(401, BAD_LOGIN);
    api.login_with_code("ann", "wrong", &factor.code()).refused(401, BAD_LOGIN);
    api.login_with_code("nobody", "wrong", &factor.code()).refused(401, BAD_LOGIN);
    let code = factor.code();
    let answer = api.login_with_code("ann@example.com", PASSWORD, &code).expect(200);
    assert_eq!(answer.tokens().user["second_factor"], json!(true));
    // Each code once.
    api.login_with_code("ann", PASSWORD, &code).refused(401, INVALID);
    // Accounts without a second factor ignore the code.
    api.sign_up("bob");
    api.login_with_code("bob", PASSWORD, "123456").expect(200);
}

#[test]
fn codes_of_any_app_whose_clock_is_nearly_right_are_taken_in_their_order_also_in_the_form_of_oauth()
{
    let (api, ann, factor) = service(&[]);
    let send = |code: &str| {
        let form = format!("grant_type=password&username=ann&password=correct+horse&code={code}");
        api.request("POST", "/auth/login").form(form).send()
    };
    let refused = json!({"error": "invalid_grant", "error_description": REQUIRED});
    send("").refused(401, REQUIRED).has(refused);
    send(&factor.wrong_code()).refused(401, INVALID).has(json!({"error": "invalid_grant"}));
    send(&factor.code()).expect(200);
    api.forget_used_codes();
    // Debian's app on the command line.
    let command = ["--totp", "--base32", &factor.secret];
    let output = Command::new("oathtool").args(command).output().expect("oathtool is installed");
    api.login_with_code("ann", PASSWORD, output.exits(0).out().trim()).expect(200);
    // None that is older than the last one.
    within_one_step(|| {
        api.forget_used_codes();
        api.login_with_code("ann", PASSWORD, &factor.code()).expect(200);
        api.login_with_code("ann", PASSWORD, &factor.code_at(-30)).refused(401, INVALID);
        api.login_with_code("ann", PASSWORD, &factor.code_at(30)).expect(200);
        api.login_with_code("ann", PASSWORD, &factor.code()).refused(401, INVALID);
    });
    // Another password keeps the second factor.
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    api.login("ann", NEW_PASSWORD).refused(401, REQUIRED);
    api.forget_used_codes();
    api.login_with_code("ann", NEW_PASSWORD, &factor.code()).expect(200);
}

#[test]
fn ten_wrong_codes_of_a_network_within_an_hour_are_all_it_has_on_two_processes() {
    let (api, _, factor) = service(&[]);
    let other = api.beside(&[TRUSTED]);
    let wrong = factor.wrong_code();
    let statuses = parallel(30, |n| {
        login_from([&api, &other][n % 2], &format!("203.0.113.{n}"), PASSWORD, &wrong).status
    });
    assert_eq!(tally(statuses), [(401, 10), (429, 20)].into());
    // A right one is refused there too, and a password without a code is told the same as ever.
    let answer = login_from(&api, "203.0.113.200", PASSWORD, &factor.code()).refused(429, TOO_MANY);
    let wait: u64 = answer.header("Retry-After").parse().expect("seconds");
    assert!((1..=3600).contains(&wait), "{wait}");
    login_from(&api, "203.0.113.7", PASSWORD, "").refused(401, REQUIRED);
    login_from(&api, "203.0.113.7", "wrong", &factor.code()).refused(401, BAD_LOGIN);
    let counter = "cloakroom_rate_limit_refusals_total{class=\"second-factor\"}";
    let refusals: f64 = [&api, &other].iter().filter_map(|api| api.metric(counter)).sum();
    assert!(refusals >= 21.0, "{refusals}");
    // The neighbours, and an IPv6 /48, are other networks.
    login_from(&api, "203.0.112.7", PASSWORD, &wrong).refused(401, INVALID);
    for n in 0..10 {
        login_from(&api, &format!("2001:db8:1:{n}::1"), PASSWORD, &wrong).refused(401, INVALID);
    }
    login_from(&api, "2001:db8:1:ffff::1", PASSWORD, &wrong).refused(429, TOO_MANY);
    login_from(&api, "2001:db8:2::1", PASSWORD, &wrong).refused(401, INVALID);
    // Each counts for an hour.
    let earlier = "ARRAY(SELECT at - interval '1 hour' FROM unnest(wrong_code_times) at)";
    api.database.run(&format!("UPDATE users SET wrong_code_times = {earlier}"));
    login_from(&api, "203.0.113.7", PASSWORD, &wrong).refused(401, INVALID);
    login_from(&api, "203.0.113.7", PASSWORD, &factor.code()).expect(200);
}

#[test]
fn a_limit_that_is_reached_while_a_code_is_checked_refuses_right_and_wrong_ones_alike() {
    let (api, ann, factor) = service(&[PATIENT]);
    let (codes, wrong) = (&factor.recovery_codes, factor.wrong_code());
    let send_during = |change: &str, to: &str, code: &str| {
        let change = format!("UPDATE users SET {change}");
        let answer = api.database.commit_during(&change, || match to {
            "sign-in" => api.login_with_code("ann", PASSWORD, code),
            "recovery-codes" => api.renew_recovery_codes(&ann, PASSWORD, code),
            _ => api.disable_second_factor(&ann, PASSWORD, code),
        });
        let nothing = "wrong_codes = 0, wrong_code_times = NULL, wrong_code_networks = NULL";
        api.database.run(&format!("UPDATE users SET {nothing}"));
        answer.case(to)
    };
    let ten = "wrong_codes = 10, wrong_code_times = array_fill(now(), ARRAY[10]),
               wrong_code_networks = array_fill(sign_in_network('127.0.0.1'), ARRAY[10])";
    for code in [&codes[0], &wrong] {
        for (to, message) in [
            ("sign-in", TOO_MANY),
            ("recovery-codes", "Rate limit exceeded"),
            ("second-factor", "Rate limit exceeded"),
        ] {
            let answer = send_during(ten, to, code).refused(429, message);
            let wait: u64 = answer.header("Retry-After").parse().expect("seconds");
            assert!((3500..=3600).contains(&wait), "{wait}");
            assert_eq!(answer.rate_limit(), (10, 0));
        }
        let hundred = "wrong_codes = 100";
        let required = json!({"reason": "TOO_MANY_WRONG_CODES"});
        send_during(hundred, "sign-in", code).refused(401, REQUIRED).has(required);
        for to in ["recovery-codes", "second-factor"] {
            send_during(hundred, to, code).refused(400, INVALID);
        }
    }
    // Without a limit a code that was used meanwhile is a wrong one.
    send_during("recovery_codes = '{}'", "sign-in", &codes[0]).refused(401, INVALID);
    send_during("second_factor_sealed = NULL", "sign-in", &codes[1]).refused(401, BAD_LOGIN);
}

#[test]
fn an_owner_whose_password_a_stranger_knows_still_gets_in() {
    let (api, ann, factor) = service(&[]);
    for n in 0..5 {
        for _ in 0..10 {
            let address = format!("198.51.{n}.7");
            login_from(&api, &address, PASSWORD, &factor.wrong_code()).refused(401, INVALID);
        }
        api.forget_used_codes();
        login_from(&api, "203.0.113.7", PASSWORD, &factor.code()).expect(200);
        // A success of the owner does not give the stranger's network more codes.
        let address = format!("198.51.{n}.8");
        login_from(&api, &address, PASSWORD, &factor.wrong_code()).refused(429, TOO_MANY);
    }
    api.me(&ann).expect(200);
}

#[test]
fn after_a_hundred_wrong_codes_in_a_row_the_password_serves_no_longer_until_it_is_reset() {
    let (api, ann, factor) = service(&mail_settings("smtp://127.0.0.1:1"));
    let wrong = factor.wrong_code();
    let statuses = parallel(11, |network| {
        let address = format!("198.51.{network}.7");
        let login = |_| login_from(&api, &address, PASSWORD, &wrong).status;
        (0..10).map(login).collect::<Vec<_>>()
    });
    // The last ones are told that a second factor is required, or wait in the same moment.
    let statuses = tally(statuses.into_iter().flatten());
    assert_eq!(statuses[&401] + statuses.get(&429).unwrap_or(&0), 110, "{statuses:?}");
    assert_eq!(api.database.value::<i32>("SELECT max(wrong_codes) FROM users"), 100);
    let refused = json!({"error_code": "SECOND_FACTOR_REQUIRED", "reason": "TOO_MANY_WRONG_CODES"});
    for code in ["", &factor.code(), &factor.recovery_codes[0]] {
        login_from(&api, "203.0.113.7", PASSWORD, code).refused(401, REQUIRED).has(refused.clone());
    }
    api.disable_second_factor(&ann, PASSWORD, &factor.code()).refused(400, INVALID);
    let notices = "outbox WHERE kind = 'too_many_wrong_codes'";
    assert_eq!(api.database.count(notices), 1);
    // Who is signed in stays so, and a reset takes the second factor not away.
    api.me(&ann).expect(200);
    api.reset_password(&api.reset_token("ann@example.com"), NEW_PASSWORD).expect(200);
    login_from(&api, "203.0.113.7", NEW_PASSWORD, "")
        .refused(401, REQUIRED)
        .has(json!({"reason": "SECOND_FACTOR_REQUIRED"}));
    login_from(&api, "203.0.113.7", NEW_PASSWORD, &factor.code()).expect(200);
    assert_eq!(api.database.count(notices), 1);
}

#[test]
fn a_sign_in_that_lacks_only_the_code_does_not_count_twenty_times_an_hour() {
    let (api, _, factor) = service(&[]);
    let limits = [("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_AUTH", "2")];
    let limited = api.beside(&[TRUSTED, limits[0], limits[1]]);
    let login = || login_from(&limited, "203.0.113.7", PASSWORD, "");
    for _ in 0..20 {
        let answer = login().refused(401, REQUIRED);
        assert_eq!(answer.rate_limit(), (2, 2));
        let reset: u64 = answer.header("X-RateLimit-Reset").parse().expect("a time");
        assert!(reset <= now() + 1, "the bucket is full: {reset}");
    }
    let statuses = [(); 4].map(|()| login().status);
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    // Right and wrong codes count as other sign-ins do.
    let answer = login_from(&limited, "203.0.112.7", PASSWORD, &factor.wrong_code());
    assert_eq!(answer.refused(401, INVALID).rate_limit(), (2, 1));
}
