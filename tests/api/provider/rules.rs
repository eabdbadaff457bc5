//! The rules of sign-in with OpenID Connect, and the tests that show them. "Core" is OpenID Connect Core 1.0, "BCP" is
//! RFC 9700, the best current practice for the security of OAuth 2.0.

use std::collections::BTreeSet;

/// A rule, its source, and the test that breaks it.
type Rule = (&'static str, &'static str, &'static str);

#[rustfmt::skip] // One rule a line, as in a table.
const RULES: &[Rule] = &[
    ("The ID token names the issuer exactly", "Core 3.1.3.7 (2)",
        "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("Its audience is this client, and no other one", "Core 3.1.3.7 (3)",
        "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("`azp`, if there is one, is this client", "Core 3.1.3.7 (4, 5)",
        "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("Its signature is that of a key of the provider", "Core 3.1.3.7 (6)",
        "callback::keys_are_chosen_by_id_or_as_the_only_one"),
    ("Its algorithm is RS256, PS256 or ES256, never `none` or that of a shared secret", "Core 3.1.3.7 (7, 8)",
        "callback::keys_are_chosen_by_id_or_as_the_only_one"),
    ("It has not expired, and was issued lately", "Core 3.1.3.7 (9, 10)",
        "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("It has the nonce of this sign-in", "Core 3.1.3.7 (11), BCP 2.1.1",
        "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("After `max_age`, the person has just signed in", "Core 3.1.3.7 (13)",
        "callback::a_fresh_sign_in_is_proven_by_auth_time"),
    ("A subject has at most 255 characters", "Core 2", "callback::an_id_token_that_breaks_one_rule_is_refused"),
    ("What userinfo tells is about the same subject", "Core 5.3.2", "token::what_the_id_token_lacks_userinfo_tells"),
    ("An identity is never found by an address", "Core 5.7", "token::an_address_of_an_account_does_not_open_it"),
    ("A key is the one with the `kid`, or else the only one that fits", "Core 10.1",
        "callback::keys_are_chosen_by_id_or_as_the_only_one"),
    ("A key that is not known is fetched, at most once a minute", "Core 10.1.1",
        "callback::a_new_key_is_fetched_at_most_once_a_minute"),
    ("Nothing that a token names is fetched", "RFC 8725 3.10", "callback::a_token_does_not_say_where_its_key_is"),
    ("The issuer of the document is that of the settings", "Discovery 4.3",
        "outage::what_a_provider_says_of_itself_wrongly_is_remembered_for_five_seconds"),
    ("The provider is asked over TLS, and its certificate is verified", "Core 3.1.3.1, 16.17",
        "outage::a_provider_is_known_by_its_authority"),
    ("The redirect URI is one, compared exactly", "BCP 2.1, 4.1", "start::a_start_sends_the_browser_to_the_provider"),
    ("PKCE with S256", "BCP 2.1.1", "start::a_start_sends_the_browser_to_the_provider"),
    ("The state is bound to the browser, and used once", "BCP 4.7", "callback::a_state_is_good_once_in_its_browser"),
    ("A way to the provider and back takes at most ten minutes", "BCP 4.7",
        "callback::a_cookie_is_good_for_ten_minutes_and_one_issuer"),
    ("A state is remembered for longer than its cookie", "BCP 4.7",
        "callback::a_way_ends_after_ten_minutes_and_a_state_is_remembered_for_longer"),
    ("The cookie is kept from scripts, other hosts and forms of other pages", "BCP 4.7",
        "start::the_cookie_is_small_sealed_and_only_for_this_service"),
    ("The issuer of an answer is that of the request", "RFC 9207 2.4, BCP 4.4",
        "callback::the_issuer_of_an_answer_is_compared"),
    ("The client is authenticated as discovery says", "BCP 2.5, RFC 6749 2.3.1",
        "callback::the_client_is_authenticated_as_discovery_says"),
    ("An error of the provider is told, and nothing that it says", "RFC 6749 4.1.2.1",
        "callback::what_the_provider_says_of_an_attempt_is_told_in_few_words"),
    ("No open redirector, and no redirect is followed", "BCP 4.11", "outage::what_a_provider_does_wrong_has_a_reason"),
    ("Nothing of tokens, codes, cookies or addresses is logged", "BCP 4.2, 4.3", "token::nothing_secret_is_logged"),
    ("Only a page of this service begins a sign-in, and no script of another one reads it", "BCP 2.6",
        "start::a_start_needs_a_challenge_and_is_no_page_for_scripts"),
    ("A code is good once, for its verifier, five times at most", "RFC 7636 4.6",
        "token::a_code_is_good_once_for_its_verifier"),
    ("A second factor is asked for beside the provider", "",
        "token::a_second_factor_is_asked_for_and_the_code_waits_for_it"),
    ("Two requests at once make one account", "", "token::an_identity_makes_one_account_with_a_confirmed_address"),
    ("An address makes so many accounts a day", "", "token::accounts_that_the_provider_makes_are_counted"),
    ("A session ends some time after its sign-in", "",
        "token::a_session_of_the_provider_ends_when_the_settings_say_so"),
    ("Only administrators have passwords where the settings say so", "",
        "token::only_administrators_sign_in_with_passwords_if_the_settings_say_so"),
    ("An identity is joined by its owner, who has just proven it", "",
        "identity::an_identity_is_joined_by_its_owner_who_has_just_proven_it"),
    ("An account that it makes has the address that is confirmed", "",
        "identity::an_account_that_an_identity_makes_has_the_address_that_the_provider_has_confirmed"),
    ("The owner is told", "", "identity::a_mail_tells_the_owner_of_a_new_identity"),
    ("One account has an identity", "", "identity::of_two_accounts_that_join_one_identity_at_once_one_has_it"),
    ("What ends an identity ends its sessions and all tokens", "", "identity::what_ends_an_identity"),
    ("Who opens a mailed link has the account alone", "",
        "identity::a_mailed_link_joins_an_identity_in_place_of_a_password"),
    ("The same, if the account has no password and has this identity already", "",
        "identity::whoever_proves_the_mailbox_has_the_account_alone_also_with_the_same_identity"),
    ("A fresh code takes the place of the current password, of its identity alone", "",
        "identity::a_fresh_code_takes_the_place_of_the_current_password"),
    ("What all wait for is fetched once", "", "outage::what_all_wait_for_is_fetched_once"),
    ("A provider that hangs holds few threads and little memory", "", "outage::a_provider_that_hangs_holds_little"),
    ("One request waits for it, however many there are", "",
        "outage::one_request_waits_for_a_provider_that_does_not_say_what_it_is"),
    ("Strangers have a limit", "", "start::sixty_requests_a_minute_come_from_an_address"),
    ("Without a provider there is nothing of it", "", "start::without_a_provider_there_is_nothing_of_it"),
    ("Each setting that cannot work is refused at the start", "", "settings::what_cannot_work_is_refused"),
];

#[test]
fn each_rule_has_a_test_and_each_test_a_rule() {
    let files = [
        ("callback", include_str!("callback.rs")),
        ("identity", include_str!("identity.rs")),
        ("outage", include_str!("outage.rs")),
        ("settings", include_str!("settings.rs")),
        ("start", include_str!("start.rs")),
        ("token", include_str!("token.rs")),
    ];
    let tests = files.iter().flat_map(|(file, text)| {
        let tests = text.split("#[test]\nfn ").skip(1);
        tests.map(move |rest| format!("{file}::{}", rest.split('(').next().unwrap_or_default()))
    });
    let named: BTreeSet<_> = RULES.iter().map(|(_, _, test)| (*test).to_owned()).collect();
    assert_eq!(named, tests.collect::<BTreeSet<_>>());
}
