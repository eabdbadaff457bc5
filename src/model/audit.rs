//! Refused actions, which the audit log calls failures.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// An event about a refused action, as it waits to be written.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// By the clock of the process. Together with `id` it identifies the event, so that it is not recorded twice.
    pub at: Timestamp,
    pub id: Uuid,
    pub action: RefusedAction,
    pub actor_id: Option<Uuid>,
    /// The account that the action was about, if it is known.
    pub subject_id: Option<Uuid>,
    pub address: Option<IpAddr>,
    pub request_id: Option<Uuid>,
    /// A JSON object.
    pub details: Value,
}

/// An action that can be refused before any statement runs that would record it. Its name in the audit log is a word of
/// the type `audit_action` of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "some are refused by extras"))]
pub enum RefusedAction {
    #[serde(rename = "auth.login")]
    Login,
    /// A sign-in by the OpenID provider.
    #[serde(rename = "auth.login")]
    ProviderLogin,
    /// A sign-in that lacks only the code of the second factor. It is recorded as a sign-in, but the figures of
    /// refusals leave it out, because clients that do not know of second factors send the password alone first.
    #[serde(rename = "auth.login")]
    LoginWithoutCode,
    #[serde(rename = "password.change")]
    PasswordChange,
    #[serde(rename = "password.reset")]
    PasswordReset,
    #[serde(rename = "email.change")]
    EmailChange,
    #[serde(rename = "user.delete")]
    UserDelete,
    #[serde(rename = "second_factor.enable")]
    SecondFactorEnable,
    #[serde(rename = "second_factor.disable")]
    SecondFactorDisable,
    #[serde(rename = "identity.join")]
    IdentityJoin,
    #[serde(rename = "identity.leave")]
    IdentityLeave,
    /// Anything that asks for the role `admin`.
    #[serde(rename = "access.denied")]
    Access,
}

impl RefusedAction {
    /// The `details` of an event, if nothing more is known of it: a JSON object.
    pub fn details(self) -> Value {
        match self {
            // db/stats/daily.sql knows these by the reason.
            RefusedAction::LoginWithoutCode => json!({ "reason": "second_factor_required" }),
            _ => json!({}),
        }
    }
}
