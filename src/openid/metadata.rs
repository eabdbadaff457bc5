//! What a provider says of itself: the document of OpenID Connect Discovery 1.0, and its keys (RFC 7517).

use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

/// The members of the document (Discovery, 3; RFC 9207, 3) that are used here.
#[derive(Deserialize)]
pub struct Document {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: Option<String>,
    /// Where people sign out (RP-Initiated Logout 1.0, 2.1).
    pub end_session_endpoint: Option<String>,
    #[serde(default)]
    claims_supported: Vec<String>,
    /// With which ID tokens may be signed.
    #[serde(rename = "id_token_signing_alg_values_supported")]
    pub algorithms: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether each answer to a browser names the issuer.
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    pub names_issuer: bool,
}

/// A set of keys, each of which is read when a token names it.
#[derive(Deserialize)]
pub struct KeySet {
    pub keys: Vec<Value>,
}

/// All that is known of a provider.
pub struct Metadata {
    pub document: Document,
    pub key_set: KeySet,
    pub fetched_at: Instant,
}

impl Document {
    /// Whether ID tokens say when the person has signed in.
    pub fn tells_auth_time(&self) -> bool {
        self.claims_supported.iter().any(|claim| claim == "auth_time")
    }

    /// Whether the secret of the client stands in the body, because the provider does not know it in a header. A
    /// document that names no method means the header.
    pub fn takes_secret_in_body(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
        let knows = |name: &str| methods.iter().any(|method| method == name);
        knows("client_secret_post") && !knows("client_secret_basic")
    }

    /// All URLs that it names.
    pub fn urls(&self) -> impl Iterator<Item = &String> {
        let required = [&self.authorization_endpoint, &self.token_endpoint, &self.jwks_uri];
        required.into_iter().chain(&self.userinfo_endpoint).chain(&self.end_session_endpoint)
    }
}
