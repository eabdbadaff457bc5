//! A browser's way to the provider and back. What must be known when it comes back is sealed in a cookie, so that
//! nobody stores anything who only starts.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use form_urlencoded::Serializer;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::code::digest;
use super::statements::{self, Proven};
use crate::auth::random_bytes;
use crate::auth::sealing::SealingKeys;
use crate::error::{Error, Problem};
use crate::http::client_address::site;
use crate::http::params::Params;
use crate::http::response::Response;
use crate::model::identity::Identity;
use crate::model::problems::value_error;
use crate::model::rules;
use crate::model::timestamp::unix_time;
use crate::openid::{Fault, Grant, MAX_AGE, Metadata, Person, Provider, words};
use crate::request::context::RequestContext;

/// How long the way may take, in seconds.
const LIFETIME: u64 = 600;
/// What cookies are sealed for.
const PURPOSE: &[u8] = b"cloakroom sign-in by an OpenID provider";
/// Characters of a challenge, the SHA-256 of a secret in base64 (RFC 7636, 4.2).
const CHALLENGE: usize = 43;

/// What the cookie holds.
struct Attempt {
    /// Of which all other secrets are made: the state, the nonce, and the verifier for the provider.
    secret: [u8; 32],
    began: u64,
    /// Whether the person must sign in to the provider anew.
    is_again: bool,
    /// The hash of the page's own secret.
    challenge: String,
    issuer: String,
}

impl Attempt {
    /// A secret of its own for each label.
    fn secret(&self, label: &str) -> String {
        digest(&[label.as_bytes(), &self.secret].concat())
    }

    fn seal(&self, keys: &SealingKeys) -> Result<String, Error> {
        let (began, again) = (self.began.to_be_bytes(), [u8::from(self.is_again)]);
        let texts = [self.challenge.as_bytes(), self.issuer.as_bytes()].concat();
        let sealed = keys.seal(PURPOSE, &[&self.secret[..], &began, &again, &texts].concat())?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    fn open(keys: &SealingKeys, cookie: &str) -> Option<Attempt> {
        let plain = keys.open(PURPOSE, &BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?)?;
        let (secret, rest) = plain.split_first_chunk()?;
        let (began, rest) = rest.split_first_chunk()?;
        let (again, rest) = rest.split_first()?;
        let (challenge, issuer) = str::from_utf8(rest).ok()?.split_at_checked(CHALLENGE)?;
        let (secret, began) = (*secret, u64::from_be_bytes(*began));
        let (challenge, issuer) = (challenge.to_owned(), issuer.to_owned());
        Some(Attempt { secret, began, is_again: *again != 0, challenge, issuer })
    }
}

/// The provider, which there is wherever the endpoints are.
fn provider<'a>(context: &RequestContext<'a>) -> Result<&'a Provider, Error> {
    context.app.provider.as_ref().ok_or(Error::FeatureOff)
}

/// `GET /api/v1/auth/oidc/start`: sends the browser to the provider (OpenID Connect Core, 3.1.2.1).
pub fn start(context: &mut RequestContext) -> Result<Response, Error> {
    let read = |query: &mut Params| {
        let is_again = query.choice("again", &[("1", true)]).unwrap_or(false);
        (query.required("challenge", challenge), is_again)
    };
    let (challenge, is_again) = context.request.query().read(read)?;
    let provider = provider(context)?;
    let known = provider.metadata(MAX_AGE).map_err(|fault| {
        report(context, provider, &fault);
        Error::ProviderUnavailable
    })?;
    let (began, issuer) = (unix_time().as_secs(), provider.settings.issuer.clone());
    let attempt = Attempt { secret: random_bytes()?, began, is_again, challenge, issuer };
    let state = attempt.secret("state");
    let mut query = Serializer::new(String::new());
    query.append_pair("response_type", "code").append_pair("scope", &provider.settings.scopes);
    query.append_pair("client_id", &provider.settings.client_id);
    query.append_pair("redirect_uri", &redirect_uri(context));
    query.append_pair("state", &state).append_pair("nonce", &attempt.secret("nonce"));
    query.append_pair("code_challenge", &digest(attempt.secret("verifier").as_bytes()));
    query.append_pair("code_challenge_method", "S256");
    if is_again {
        query.append_pair("prompt", "login").append_pair("max_age", "300");
    }
    let endpoint = &known.document.authorization_endpoint;
    let sealed = attempt.seal(&context.app.sealing_keys)?;
    let cookie = cookie(context, &cookie_name(context, &state), &sealed, LIFETIME);
    let location = with_query(endpoint, &query.finish());
    Ok(Response::empty(303).with_header("Location", location).with_header("Set-Cookie", cookie))
}

/// `GET /api/v1/auth/oidc/callback`: takes what the browser brings back from the provider, and sends it to the console
/// with a code, or with the reason why there is none, in the fragment, which no server and no log sees.
pub fn callback(context: &mut RequestContext) -> Result<Response, Error> {
    let names = ["state", "code", "error", "iss"];
    let read = |query: &mut Params| names.map(|name| query.optional(name, rules::token));
    let answer = context.request.query().read(read).unwrap_or_default();
    let attempt = answer[0].as_deref().and_then(|state| find_attempt(context, state));
    let proven = match (&attempt, &answer) {
        (Some(attempt), [Some(state), rest @ ..]) => prove(context, attempt, state, rest),
        (None, [Some(_), ..]) => Err(expired("no cookie of that state, or an old one").into()),
        _ => Err(Fault::invalid("the browser has brought no state", "").into()),
    };
    let fragment = match proven {
        Ok(fragment) => {
            context.app.metrics.count_provider_sign_in("proven");
            fragment
        }
        Err(Refusal::Of(fault)) => {
            report(context, provider(context)?, &fault);
            format!("error={}&request_id={}", fault.reason, context.id)
        }
        Err(Refusal::Failed(error)) => return Err(error),
    };
    let location = format!("/console/oidc#{fragment}");
    let response = Response::empty(303).with_header("Location", location);
    // A state that somebody else has made up ends no cookie of the same name.
    Ok(match attempt {
        Some(attempt) => {
            let name = cookie_name(context, &attempt.secret("state"));
            response.with_header("Set-Cookie", cookie(context, &name, "", 0))
        }
        None => response,
    })
}

/// The attempt that a state belongs to, if this browser began it and it is not too old.
fn find_attempt(context: &RequestContext, state: &str) -> Option<Attempt> {
    let cookie = find_cookie(context, &cookie_name(context, state))?;
    Attempt::open(&context.app.sealing_keys, cookie)
        .filter(|attempt| attempt.secret("state") == state)
        .filter(|attempt| unix_time().as_secs() < attempt.began + LIFETIME)
}

/// Why a callback gives no code.
enum Refusal {
    Of(Fault),
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Of(fault)
    }
}

/// Counts a sign-in that has come to nothing, and logs its cause.
fn report(context: &RequestContext, provider: &Provider, fault: &Fault) {
    context.app.metrics.count_provider_sign_in(fault.reason);
    provider.log(context.id, fault);
}

fn expired(detail: &str) -> Fault {
    Fault::new("expired", "the sign-in has expired", detail)
}

/// Proves who has come back, and stores that under a new code. Returns the fragment with it, with what people know the
/// identity by, and where they sign out at the provider, if it says so (RP-Initiated Logout 1.0, 2).
fn prove(
    context: &RequestContext,
    attempt: &Attempt,
    state: &str,
    [code, error, issuer]: &[Option<String>; 3],
) -> Result<String, Refusal> {
    let provider = provider(context)?;
    let own = &provider.settings.issuer;
    let fault = if attempt.issuer != *own {
        Fault::invalid("the sign-in began at another issuer", words(&attempt.issuer))
    } else if let Some(issuer) = issuer.as_ref().filter(|issuer| *issuer != own) {
        Fault::invalid("the browser was sent back by another issuer", words(issuer))
    } else if let Some(error @ ("server_error" | "temporarily_unavailable")) = error.as_deref() {
        Fault::unavailable("it says that it has failed", words(error))
    } else if let Some(error) = error {
        Fault::new("denied", "it has refused", words(error))
    } else if let Some(code) = code {
        return redeem(context, attempt, state, (code, issuer.is_some()));
    } else {
        Fault::invalid("the browser has brought neither a code nor an error", "")
    };
    Err(fault.into())
}

/// Redeems the code of the provider. The state is used before the provider is asked, and once nothing is in the way of
/// that.
fn redeem(
    context: &RequestContext,
    attempt: &Attempt,
    state: &str,
    (code, names_issuer): (&str, bool),
) -> Result<String, Refusal> {
    let provider = provider(context)?;
    let known = provider.metadata(MAX_AGE)?;
    if known.document.names_issuer && !names_issuer {
        let cause = "the browser has brought no issuer, which its document promises";
        return Err(Fault::invalid(cause, "").into());
    }
    let _turn = provider.turn(site(context.client).unwrap_or(context.client))?;
    let state_hash: [u8; 32] = Sha256::digest(state).into();
    match statements::use_state(&context.db, &state_hash)? {
        Some(true) => {}
        Some(false) => return Err(expired("its state was used before").into()),
        None => return Err(Fault::unavailable("100,000 states were used lately", "").into()),
    }
    let (proven, label) = ask(context, provider, &known, attempt, code)?;
    let code = BASE64_URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
    let code_hash: [u8; 32] = Sha256::digest(&code).into();
    let challenge = &attempt.challenge;
    statements::store_code(&context.db, &state_hash, &code_hash, challenge, &proven)?;
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let end = known.document.end_session_endpoint.as_ref().map(|endpoint| {
        let mut query = Serializer::new(String::new());
        query.append_pair("client_id", &provider.settings.client_id);
        format!("&end={}", encode(&with_query(endpoint, &query.finish())))
    });
    Ok(format!("code={code}&name={}{}", encode(&label), end.unwrap_or_default()))
}

/// The URL of an endpoint, which may have a query, with more of it.
fn with_query(endpoint: &str, query: &str) -> String {
    let mark = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{mark}{query}")
}

/// Asks the provider whom its code is for, and for what the ID token lacks: what an account needs where one is to be
/// made, the claim of administrators, and what people know the identity by. Without the last it goes on.
fn ask(
    context: &RequestContext,
    provider: &Provider,
    known: &Metadata,
    attempt: &Attempt,
    code: &str,
) -> Result<(Proven, String), Refusal> {
    let (verifier, nonce) = (&attempt.secret("verifier"), &attempt.secret("nonce"));
    let grant = Grant { code, redirect_uri: &redirect_uri(context), verifier, nonce };
    let mut person = provider.prove(known, &grant)?;
    if attempt.is_again {
        person.has_just_signed_in()?;
    }
    let settings = &provider.settings;
    let issuer = settings.issuer.clone();
    let claim = settings.admin_claim.as_ref();
    let admin =
        |person: &Person| claim.map(|(name, value)| person.has_claim(name, value, settings));
    let needs_more = admin(&person) == Some(None)
        || context.app.config.oidc_registration
            && !person.is_complete()
            && statements::find(&context.db, &issuer, &person.subject, context.client)?.is_none();
    if needs_more || person.label().is_empty() {
        match provider.complete(known, &mut person) {
            Err(fault) if needs_more => return Err(fault.into()),
            Err(fault) => provider.log(context.id, &fault),
            Ok(()) => {}
        }
    }
    let email = person.confirmed_email(settings);
    let may_join = attempt.is_again || !known.document.tells_auth_time();
    let (label, name) = (person.label(), person.name());
    let is_admin = admin(&person).map(|has| has.unwrap_or(false));
    let (subject, is_fresh) = (person.subject, attempt.is_again);
    let identity = Identity { issuer, subject, email, is_fresh };
    Ok((Proven { identity, name, may_join, is_admin }, label))
}

fn challenge(text: &str) -> Result<String, Problem> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_good = text.len() == CHALLENGE && text.bytes().all(is_digit);
    let problem = "Must be 43 letters, digits, hyphens and underscores";
    is_good.then(|| text.to_owned()).ok_or_else(|| value_error(problem))
}

/// Where the provider sends browsers back to.
fn redirect_uri(context: &RequestContext) -> String {
    format!("{}/api/v1/auth/oidc/callback", public_url(context))
}

fn public_url<'a>(context: &RequestContext<'a>) -> &'a str {
    context.app.config.public_url.as_deref().unwrap_or_default()
}

/// The name of the cookie for a state. There are sixteen, so that a browser may go several ways at once, and no more.
/// Over https its prefix keeps other hosts from setting it (RFC 6265bis, 4.1.3.2).
fn cookie_name(context: &RequestContext, state: &str) -> String {
    let prefix = if public_url(context).starts_with("https:") { "__Host-" } else { "" };
    format!("{prefix}oidc-{:x}", Sha256::digest(state)[0] >> 4)
}

/// The value of `Set-Cookie`. The cookie comes along when the provider's page sends the browser back, but not when
/// another page does so by a form or a script (RFC 6265bis, 5.6.7.1).
fn cookie(context: &RequestContext, name: &str, value: &str, lifetime: u64) -> String {
    let secure = if public_url(context).starts_with("https:") { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={lifetime}; HttpOnly; SameSite=Lax{secure}")
}

/// The value of a cookie of the request.
fn find_cookie<'a>(context: &RequestContext<'a>, name: &str) -> Option<&'a str> {
    let pairs = context.request.headers("Cookie").flat_map(|header| header.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    named.find_map(|(found, value)| (found == name).then_some(value))
}
