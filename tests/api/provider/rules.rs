//! The rules of sign-in with OpenID Connect, and the tests that show them. "Core" is OpenID Connect Core 1.0, "BCP" is
//! RFC 9700, the best current practice for the security of OAuth 2.0.
//!
//! | Rule | Source | Test |
//! |---|---|---|
//! | The ID token names the issuer exactly | Core 3.1.3.7 (2) | `callback::an_id_token_that_breaks_one_rule_is_refused` |
//! | Its audience is this client, and no other one | Core 3.1.3.7 (3) | the same |
//! | `azp`, if there is one, is this client | Core 3.1.3.7 (4, 5) | the same |
//! | Its signature is that of a key of the provider | Core 3.1.3.7 (6) | the same |
//! | Its algorithm is RS256, PS256 or ES256, never `none` or that of a shared secret | Core 3.1.3.7 (7, 8) | the same |
//! | It has not expired, and was issued lately | Core 3.1.3.7 (9, 10) | the same |
//! | It has the nonce of this sign-in | Core 3.1.3.7 (11), BCP 2.1.1 | the same |
//! | After `max_age`, the person has just signed in | Core 3.1.3.7 (13) | `callback::a_fresh_sign_in_is_proven_by_auth_time` |
//! | A subject has at most 255 characters | Core 2 | `callback::an_id_token_that_breaks_one_rule_is_refused` |
//! | What userinfo tells is about the same subject | Core 5.3.2 | `token::what_the_id_token_lacks_userinfo_tells` |
//! | Only a key with `kid`, or the only one that fits | Core 10.1 | `callback::keys_are_chosen_by_id_or_as_the_only_one` |
//! | A key that is not known is fetched, at most once a minute | Core 10.1.1 | `callback::keys_are_chosen_by_id_or_as_the_only_one` |
//! | The redirect URI is one, compared exactly | BCP 2.1, 4.1 | `start::a_start_sends_the_browser_to_the_provider` |
//! | PKCE with S256 | BCP 2.1.1 | the same |
//! | The state is bound to the browser, and used once | BCP 4.7 | `callback::a_state_is_good_once_in_its_browser` |
//! | The issuer is that of the request (RFC 9207) | BCP 4.4 | `callback::the_issuer_of_an_answer_is_compared` |
//! | The client is authenticated as discovery says | BCP 2.5, RFC 6749 2.3.1 | `callback::the_client_is_authenticated_as_discovery_says` |
//! | No open redirector, and nothing is followed | BCP 4.11 | `outage::what_a_provider_does_wrong_has_a_reason` |
//! | Nothing of tokens, codes, cookies or addresses is logged | BCP 4.2, 4.3 | `token::nothing_secret_is_logged` |
//! | A provider that hangs holds few threads and little memory | | `outage::a_provider_that_hangs_holds_little` |
//! | A code is good once, for its verifier, five times at most | RFC 7636, 4.6 | `token::a_code_is_good_once_for_its_verifier` |
//! | An identity is never found by an address | Core 5.7 | `token::an_address_of_an_account_does_not_open_it` |
//! | What ends an identity ends its sessions and all tokens | | `identity::what_ends_an_identity` |
//! | Each setting that cannot work is refused at the start | | `settings::what_cannot_work_is_refused` |
