//! The code by which a browser proves an identity. It is good once, for five minutes, and only together with the secret
//! of the page that began (as in RFC 7636), so whoever reads the address of a page cannot use it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::statements::{self, Proven};
use crate::error::Error;
use crate::http::params::Params;
use crate::model::identity::Identity;
use crate::model::{problems, rules};
use crate::request::context::RequestContext;

/// A code, and the secret that belongs to it, as a client has sent them.
pub struct SentCode {
    code: String,
    verifier: String,
}

/// Reads both as members of the object `oidc`, if there is one. It takes the place of another field.
pub fn read(body: &mut Params, other_field: &str) -> Option<SentCode> {
    let [code, verifier] = body.texts("oidc", ["code", "verifier"])?;
    if body.has(other_field) {
        body.add_error("oidc", problems::not_beside(other_field));
    }
    Some(SentCode { code, verifier })
}

/// Reads both as fields.
pub fn read_fields(body: &mut Params) -> SentCode {
    let code = body.required("code", rules::token);
    SentCode { code, verifier: body.required("verifier", rules::token) }
}

impl SentCode {
    /// The hash under which the code is stored.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.code).into()
    }
}

/// Uses a code, and returns the identity that it proves. Fails with [`Error::InvalidProviderCode`].
pub fn take(context: &RequestContext, sent: &SentCode) -> Result<Identity, Error> {
    take_all(context, sent).map(|proven| proven.identity)
}

/// The same with all that the code stands for.
pub fn take_all(context: &RequestContext, sent: &SentCode) -> Result<Proven, Error> {
    let found =
        statements::take_code(&context.db, &sent.hash(), &digest(sent.verifier.as_bytes()))?;
    found.ok_or(Error::InvalidProviderCode)
}

/// SHA-256 as a challenge has it (RFC 7636, 4.2).
pub fn digest(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}
